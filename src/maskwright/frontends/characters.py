"""Grammars over characters -> grammars over lexemes.

A scannerless grammar has no terminals but characters.  Read one character at a time it would be
correct and slow: its regular parts are what tokens run through.  So the largest regular parts
become lexemes.

A rule is regular when its body is, once regular rules are put in place of their names; a group of
rules that refer to each other only at the ends of their alternatives (right-linear), or only at the
beginnings (left-linear), is solved like a system of linear equations (Arden's rule: the least
solution of ``X = A X | B`` is ``A* B``).  In every other rule, neighbours in a sequence that are regular are
one lexeme, and so are the regular alternatives of a choice.  Rules that are large stay apart, so that
those who use them share one automaton.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TypeAlias

from maskwright.base.deadline import check_time
from maskwright.frontends.lexical import regular_expr
from maskwright.ir.grammar import EMPTY, Choice, Expr, Grammar, Ref, Repeated, Seq
from maskwright.limits import Limits
from maskwright.regular.expressions import (
    EPSILON,
    NOTHING,
    Alt,
    Cat,
    Chars,
    Lit,
    Machine,
    Regular,
    Repeat,
    alt,
    cat,
    chars,
    repeat,
)
from maskwright.regular.thompson import Sizes

# States of an automaton up to which a regular rule is copied into those that use it, ...
_SMALL = 200
# ... and up to which the rules that make up a regular rule, or neighbours in a sequence, are joined.
_LARGE = 5000
# Rules that are solved together.
_MOST_EQUATIONS = 40


@dataclass(frozen=True, slots=True)
class Loop:
    """``body``, ``min`` to ``max`` times (None: unbounded)."""

    body: Node
    min: int
    max: int | None


@dataclass(frozen=True, slots=True)
class Items:
    """A sequence of nodes that are not all regular."""

    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Ways:
    """Alternatives that are not all regular."""

    items: tuple[Node, ...]


Node: TypeAlias = Regular | Ref | Items | Ways | Loop
_REGULAR = (Chars, Lit, Cat, Alt, Repeat, Machine)
_Linear: TypeAlias = dict[int | None, Regular]
"""A sum: what stands before (or behind) each rule of a group, and under None the rest."""


def items(parts: Iterable[Node], fits: Callable[[Regular, Regular], bool] | None = None) -> Node:
    """A sequence; neighbours that are regular are joined, if they ``fits``."""
    out: list[Node] = []
    # Regular neighbours that nobody asks of one by one are joined at once.
    run: list[Regular] = []
    for part in parts:
        check_time()
        for p in part.items if isinstance(part, Items) else (part,):
            last = out[-1] if out else None
            if p == EPSILON:
                continue
            if fits is None and isinstance(p, _REGULAR):
                run.append(p)
            elif (
                isinstance(p, _REGULAR) and isinstance(last, _REGULAR) and fits is not None and fits(last, p)
            ):
                out[-1] = cat(last, p)
            else:
                if run:
                    out.append(cat(*run))
                    run = []
                out.append(p)
    if run:
        out.append(cat(*run))
    if NOTHING in out:
        return NOTHING
    return EPSILON if not out else out[0] if len(out) == 1 else Items(tuple(out))


def ways(parts: Iterable[Node]) -> Node:
    """Alternatives; the regular ones are joined where the first of them stands, and single characters become one set."""
    ranges: list[tuple[int, int]] = []
    regular: list[Regular] = []
    others: dict[Node, None] = {}
    place = None
    for part in parts:
        check_time()
        for p in part.items if isinstance(part, Ways) else (part,):
            if place is None and isinstance(p, _REGULAR) and p != NOTHING:
                place = len(others)
            if isinstance(p, Chars):
                ranges += p.ranges
            elif isinstance(p, Lit) and len(p.text) == 1:
                ranges.append((ord(p.text), ord(p.text)))
            elif isinstance(p, _REGULAR):
                regular.append(p)
            else:
                others[p] = None
    joined = alt(*([chars(*ranges)] if ranges else []), *regular)
    if not others:
        return joined
    out: list[Node] = list(others)
    if place is not None:
        out.insert(place, joined)
    return out[0] if len(out) == 1 else Ways(tuple(out))


def loop(body: Node, low: int, high: int | None) -> Node:
    """A repetition."""
    if isinstance(body, _REGULAR):
        return repeat(body, low, high)
    if high == 0:
        return EPSILON
    return body if low == high == 1 else Loop(body, low, high)


def to_lexemes(
    rules: Sequence[Node], names: Sequence[str], start: int, limits: Limits, kept: Set[int] = frozenset()
) -> Grammar:
    """The grammar of rules over characters, with the rules that ``start`` leads to.

    ``kept``: rules that stay rules of their own where others refer to them.  Raises ``LimitError`` for a lexeme that is too large.
    """
    regular = _Regular(rules, limits, kept)
    for group in strong_components([references(node) for node in rules]):
        regular.look_at(group)
    return _Emitter(rules, names, regular, limits).emit(start)


class _Regular:
    """Which rules are regular, and their languages."""

    def __init__(self, rules: Sequence[Node], limits: Limits, kept: Set[int]) -> None:
        self.rules = rules
        self.kept = kept
        self.size = Sizes(limits)
        self.known: dict[int, Regular] = {}

    def look_at(self, group: list[int]) -> None:
        """A group of rules that refer to each other, all others that they refer to looked at before."""
        check_time()
        if len(group) == 1:
            body = self.fold(self.rules[group[0]], _LARGE)
            if isinstance(body, _REGULAR):
                if self.size(body) <= _LARGE or isinstance(self.rules[group[0]], _REGULAR):
                    self.known[group[0]] = body
                return
        if len(group) <= _MOST_EQUATIONS and self.kept.isdisjoint(group):
            bodies = {rule: self.fold(self.rules[rule], _LARGE) for rule in group}
            for right in (True, False):
                solved = self.solve(bodies, right)
                if solved is not None:
                    self.known.update(solved)
                    return

    def fold(self, node: Node, most: int) -> Node:
        """The node with regular rules of up to ``most`` states in place of their names."""
        if isinstance(node, Ref):
            found = None if node.rule in self.kept else self.known.get(node.rule)
            return node if found is None or self.size(found) > most else found
        if isinstance(node, Items):
            return items((self.fold(item, most) for item in node.items), self.fits)
        if isinstance(node, Ways):
            return ways(self.fold(item, most) for item in node.items)
        if isinstance(node, Loop):
            return loop(self.fold(node.body, most), node.min, node.max)
        return node

    def fits(self, a: Regular, b: Regular) -> bool:
        """Whether two neighbours may become one lexeme."""
        check_time()
        return self.size(a) + self.size(b) <= _LARGE

    # --- groups of rules as linear equations

    def solve(self, bodies: dict[int, Node], right: bool) -> dict[int, Regular] | None:
        """The languages of rules that are right-linear (or left-linear) in each other; None: they are not."""
        equations: dict[int, _Linear] = {}
        for rule, body in bodies.items():
            equation = self.linear(body, bodies, right)
            if equation is None:
                return None
            equations[rule] = equation
        join = cat if right else lambda a, b: cat(b, a)
        order = list(bodies)
        for rule in order:
            equation = equations[rule]
            own = equation.pop(rule, None)
            if own is not None:
                around = repeat(own, 0, None)
                equations[rule] = equation = {key: join(around, value) for key, value in equation.items()}
            for other in order:
                before = equations[other].pop(rule, None) if other != rule else None
                if before is not None:
                    added = {key: join(before, value) for key, value in equation.items()}
                    equations[other] = _sum(equations[other], added)
                    if any(self.size(value) > _LARGE for value in equations[other].values()):
                        return None
        return {rule: equations[rule].get(None, NOTHING) for rule in order}

    def linear(self, node: Node, group: dict[int, Node], right: bool) -> _Linear | None:
        if isinstance(node, _REGULAR):
            return {None: node}
        if isinstance(node, Ref):
            return {node.rule: EPSILON} if node.rule in group else None
        if isinstance(node, Loop):
            inner = self.linear(node.body, group, right) if (node.min, node.max) == (0, 1) else None
            return None if inner is None else _sum(inner, {None: EPSILON})
        if isinstance(node, Ways):
            total: _Linear = {}
            for item in node.items:
                inner = self.linear(item, group, right)
                if inner is None:
                    return None
                total = _sum(total, inner)
            return total
        *before, last = node.items if right else reversed(node.items)
        inner = self.linear(last, group, right)
        if inner is None or not all(isinstance(part, _REGULAR) for part in before):
            return None
        known: list[Regular] = [part for part in before if isinstance(part, _REGULAR)]
        if right:
            return {key: cat(*known, value) for key, value in inner.items()}
        return {key: cat(value, *reversed(known)) for key, value in inner.items()}


def _sum(a: _Linear, b: _Linear) -> _Linear:
    total = dict(a)
    for key, value in b.items():
        joined = ways((total[key], value)) if key in total else value
        assert isinstance(joined, _REGULAR)
        total[key] = joined
    return total


class _Emitter:
    """Bodies as expressions; rules are emitted as they are referred to."""

    def __init__(
        self, rules: Sequence[Node], names: Sequence[str], regular: _Regular, limits: Limits
    ) -> None:
        self.rules = rules
        self.names = names
        self.regular = regular
        self.limits = limits
        self.grammar = Grammar()
        self.index: dict[int, int] = {}
        self.work: list[int] = []

    def emit(self, start: int) -> Grammar:
        self.grammar.start = self.rule(start)
        while self.work:
            check_time()
            rule = self.work.pop()
            node: Node = self.regular.known.get(rule) or self.regular.fold(self.rules[rule], _SMALL)
            self.grammar.rules[self.index[rule]] = self.expr(node, self.names[rule])
        return self.grammar

    def rule(self, rule: int) -> int:
        if rule not in self.index:
            self.index[rule] = self.grammar.reserve(self.names[rule])
            self.work.append(rule)
        return self.index[rule]

    def expr(self, node: Node, name: str) -> Expr:
        if isinstance(node, Ref):
            return Ref(self.rule(node.rule))
        if isinstance(node, Items):
            return Seq(tuple(self.expr(item, name) for item in node.items))
        if isinstance(node, Ways):
            return Choice(tuple(self.expr(item, name) for item in node.items))
        if isinstance(node, Loop):
            body = self.expr(node.body, name)
            if (node.min, node.max) == (0, 1):
                return Choice((body, EMPTY))
            once = body.rule if isinstance(body, Ref) else self.grammar.add(f"{name} (item)", body)
            repeated = Repeated(once, once, node.min, node.max)
            return Ref(self.grammar.add(f"{name} (repeated)", repeated))
        return regular_expr(node, self.limits)


def references(node: Node) -> list[int]:
    """The rules that a node refers to, each once."""
    found: dict[int, None] = {}
    work = [node]
    while work:
        part = work.pop()
        if isinstance(part, Ref):
            found[part.rule] = None
        elif isinstance(part, (Items, Ways)):
            work.extend(part.items)
        elif isinstance(part, Loop):
            work.append(part.body)
    return list(found)


def strong_components(after: Sequence[Sequence[int]]) -> list[list[int]]:
    """Strongly connected components of a graph, each behind those that it leads to (Tarjan 1972)."""
    number: dict[int, int] = {}
    low: dict[int, int] = {}
    open_rules: list[int] = []
    opened: dict[int, int] = {}
    is_open: set[int] = set()
    groups: list[list[int]] = []
    for root in range(len(after)):
        if root in number:
            continue
        number[root] = low[root] = len(number)
        opened[root] = len(open_rules)
        open_rules.append(root)
        is_open.add(root)
        path = [(root, iter(after[root]))]
        while path:
            check_time()
            rule, rest = path[-1]
            for target in rest:
                if target not in number:
                    number[target] = low[target] = len(number)
                    opened[target] = len(open_rules)
                    open_rules.append(target)
                    is_open.add(target)
                    path.append((target, iter(after[target])))
                    break
                if target in is_open:
                    low[rule] = min(low[rule], number[target])
            else:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[rule])
                if low[rule] == number[rule]:
                    group = open_rules[opened[rule] :]
                    del open_rules[-len(group) :]
                    is_open.difference_update(group)
                    groups.append(group)
    return groups
