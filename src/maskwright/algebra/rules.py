"""The rules of a grammar as an intersection reads them.

Imports are rules of the same table.  A counted repetition and a record become rules like others, one for each number of
items, or for each place, number of members and set of missing obligations; they are made when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace

from maskwright.algebra.inexact import Inexact
from maskwright.base.deadline import check_time
from maskwright.errors import LimitError
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Body,
    Capture,
    Choice,
    Distinct,
    Expr,
    Grammar,
    Import,
    Indented,
    Lexeme,
    Member,
    OtherMembers,
    Record,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Values,
)
from maskwright.ir.prune import prune
from maskwright.limits import Limits
from maskwright.regular.dfa import difference
from maskwright.regular.expressions import Lit, alt, is_nothing


class Rules:
    """A table of rules that grows; ``start`` is that of the grammar that it was made of, which must have a text."""

    def __init__(self, grammar: Grammar, limits: Limits) -> None:
        self.limits = limits
        self.bodies: list[Body] = []
        self.names: list[str] = []
        self.captures: dict[int, tuple[Capture, ...]] = {}
        self.helpers: set[int] = set()
        self._imported: dict[Hashable, int] = {}
        self._plain: dict[int, Expr] = {}
        self.start = self.include(prune(grammar))

    def add(self, name: str, body: Body) -> int:
        """A rule more."""
        if len(self.bodies) >= self.limits.max_rules:
            raise LimitError("max_rules", len(self.bodies) + 1, self.limits.max_rules)
        self.bodies.append(body)
        self.names.append(name)
        return len(self.bodies) - 1

    def include(self, grammar: Grammar) -> int:
        """The rules of another grammar, which is pruned; its start."""
        first = len(self.bodies)
        include(self, first, grammar)
        return first + grammar.start

    def imported(self, part: Import) -> int:
        """The rule of an import."""
        found = self._imported.get(part.key)
        if found is None:
            grammar = prune(part.make())
            if grammar.lexing is not None:
                raise Inexact("it has a grammar with a lexer as a part: use lexer='dynamic'")
            found = self._imported[part.key] = self.include(grammar)
        return found

    def plain(self, rule: int) -> Expr:
        """The body of a rule as an expression.  Raises ``Inexact`` for what no finite set of rules says."""
        found = self._plain.get(rule)
        if found is None:
            found = self._plain[rule] = self._as_expression(rule)
        return found

    def _as_expression(self, rule: int) -> Expr:
        body, name = self.bodies[rule], self.names[rule]
        if isinstance(body, Repeated):
            return self._repeated(body, name)
        if isinstance(body, Record):
            return _Places(self, body, name).start()
        if isinstance(body, Distinct):
            raise Inexact(_different_items(name))
        if isinstance(body, Indented):
            raise Inexact(f"{_where(name)}blocks by indentation are told apart by their column")
        return body

    def _repeated(self, body: Repeated, name: str) -> Expr:
        last = max(body.min, 1) if body.max is None else body.max
        if last > self.limits.max_pairs:
            raise LimitError("max_pairs", last, self.limits.max_pairs)
        if body.max is None:
            behind = self.add(name, FAIL)
            self.bodies[behind] = Choice((EMPTY, Seq((Ref(body.rest), Ref(behind)))))
        else:
            behind = self.add(name, EMPTY)
        for count in range(last - 1, -1, -1):
            check_time()
            more = Seq((Ref(body.rest if count else body.first), Ref(behind)))
            behind = self.add(name, Choice((EMPTY, more)) if count >= body.min else more)
        return Ref(behind)


def _different_items(name: str) -> str:
    return f"{_where(name)}the items of an array must be different (uniqueItems), which no finite number of states can know"


def _where(name: str) -> str:
    return f"{name}: " if name.startswith(("#", "/")) else ""


_Place = tuple[int, int, int]
"""The members behind which it is, in their order (of a record that is not ordered: those that came, as bits), how many came, and
the obligations that are missing (bits)."""


class _Places:
    """A record as rules: one for each place in it."""

    def __init__(self, rules: Rules, record: Record, name: str) -> None:
        self.rules = rules
        self.record = record
        self.name = name
        self.known: dict[_Place, int] = {}
        self.work: list[_Place] = []
        self.count = len(record.members)
        self.key_names = alt(*[Lit(member.name) for member in record.members])

    def start(self) -> Expr:
        record = self.record
        if record.others and record.unique and record.bare:
            raise Inexact(_different_items(self.name))
        if record.others and record.unique:
            raise Inexact(
                f"{_where(self.name)}no two undeclared members of an object may have one name, which no finite number of "
                "states can know: declare its members, and say additional_properties=False (or 'needed')"
            )
        begin = self.ref((0, 0, (1 << record.obligations) - 1))
        while self.work:
            check_time()
            place = self.work.pop()
            self.rules.bodies[self.known[place]] = Choice(tuple(self.ways(place)))
        return Seq((record.open, begin))

    def ref(self, place: _Place) -> Ref:
        if place not in self.known:
            if len(self.known) >= self.rules.limits.max_pairs:
                raise LimitError("max_pairs", len(self.known) + 1, self.rules.limits.max_pairs)
            self.known[place] = self.rules.add(self.name, FAIL)
            self.work.append(place)
        return Ref(self.known[place])

    def ways(self, place: _Place) -> list[Expr]:
        record = self.record
        at, count, missing = place
        found: list[Expr] = []
        if record.ordered:
            rest = [at] if at < self.count else []
            if rest and not record.members[at].required:
                found.append(self.ref((at + 1, count, missing & ~record.members[at].absent)))
            left_out: list[Member] = list(record.members[at:])
        else:
            rest = [i for i in range(self.count) if not at >> i & 1]
            left_out = [record.members[i] for i in rest]
        for i in rest:
            member = record.members[i]
            key = Lexeme(("name", record.spelling, member.name), Lit(member.name), record.spelling)
            found += self.member(
                self.named(key), member.values, at + 1 if record.ordered else at | 1 << i, count, missing
            )
        if record.ordered and left_out:
            return found
        for other in record.others:
            if other.keys is None:
                found += self.member((), other.values, at, count, missing)
                continue
            language = difference(other.keys.regular, self.key_names, self.rules.limits)
            if not is_nothing(language):
                key = Lexeme(("other names", record.spelling, language), language, record.spelling)
                found += self.member(self.named(key), other.values, at, count, missing)
        for member in left_out:
            missing &= ~member.absent
        if not missing and record.min <= count and not any(member.required for member in left_out):
            found.append(record.close if count else record.close_empty)
        return found

    def named(self, key: Lexeme) -> tuple[Expr, ...]:
        """What stands before a value: the key, and its colon."""
        return (Term(key), self.record.colon) if self.record.has_colons else (Term(key),)

    def member(
        self, before_value: tuple[Expr, ...], values: Values, at: int, count: int, missing: int
    ) -> list[Expr]:
        """A member, by the ways to write its value, and what may follow it."""
        record = self.record
        if record.max is not None and count >= record.max:
            return []
        # Nobody counts further than to what is asked for.
        more = count + 1 if record.max is not None else min(count + 1, max(record.min, 1))
        before: tuple[Expr, ...] = (record.comma,) if count else ()
        return [
            Seq((*before, *before_value, Ref(rule), self.ref((at, more, missing & ~obligations))))
            for rule, obligations in values
        ]


def include(out: Rules | Grammar, first: int, grammar: Grammar) -> None:
    """Add the rules of a grammar, from number ``first`` on, with what is said of them."""
    for body, name in zip(grammar.rules, grammar.names, strict=True):
        given = FAIL if body is None else body
        out.add(name, moved(given, lambda rule: first + rule) if first else given)
    out.captures |= {first + rule: given for rule, given in grammar.captures.items()}
    out.helpers |= {first + rule for rule in grammar.helpers}


def moved(body: Body, to: Callable[[int], int]) -> Body:
    """A body whose rules have other numbers."""
    if isinstance(body, Repeated):
        return replace(body, first=to(body.first), rest=to(body.rest))
    if isinstance(body, Indented):
        return Indented(to(body.rule))
    if isinstance(body, Distinct):
        return replace(
            body, array=_moved(body.array, to), provided=tuple([to(rule) for rule in body.provided])
        )
    if isinstance(body, Record):
        members = [replace(member, values=_moved_values(member.values, to)) for member in body.members]
        others = [OtherMembers(other.keys, _moved_values(other.values, to)) for other in body.others]
        return replace(body, members=tuple(members), others=tuple(others))
    return _moved(body, to)


def _moved_values(values: Values, to: Callable[[int], int]) -> Values:
    return tuple([(to(rule), obligations) for rule, obligations in values])


def _moved(expr: Expr, to: Callable[[int], int]) -> Expr:
    check_time()
    if isinstance(expr, Ref):
        return Ref(to(expr.rule))
    if isinstance(expr, Seq):
        return Seq(tuple([_moved(item, to) for item in expr.items]))
    if isinstance(expr, Choice):
        return Choice(tuple([_moved(item, to) for item in expr.items]))
    if isinstance(expr, Switch):
        return Switch(expr.lexemes, tuple([_moved(case, to) for case in expr.cases]))
    return expr
