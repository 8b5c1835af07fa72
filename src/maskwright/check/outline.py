"""The rules of a grammar as its author wrote them, and what can be said about them without a lexer.

All relations are least fixed points over the rules (Hopcroft, Ullman, *Introduction to Automata Theory*, chapter 7):
which rules derive a text, the empty text, themselves alone, or themselves at the beginning.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from maskwright.base.deadline import check_time
from maskwright.check.report import Finding, Report, Severity
from maskwright.errors import (
    LimitError,
    MaskwrightError,
    UnsatisfiableError,
    UnsupportedSchemaError,
    caret_snippet,
)
from maskwright.frontends.characters import Items, Loop, Node, Ways, references, strong_components
from maskwright.ir.grammar import Ref
from maskwright.regular.determinize import leaf_sets
from maskwright.regular.dfa import is_empty, length_bounds
from maskwright.regular.expressions import Regular, Repeat, intersect_ranges, postorder

_CODES = {UnsatisfiableError: "unsatisfiable", LimitError: "limit", UnsupportedSchemaError: "unsupported"}

BLANKS = (
    (0x09, 0x0D), (0x1C, 0x20), (0x85, 0x85), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A),
    (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000),
)  # fmt: skip
"""The code points that ``\\s`` matches in Python."""


@dataclass(slots=True)
class Outline:
    """``rules`` by number, the first ``len(names)`` of them, and those that a text may derive from.

    ``owners`` are the names as the author knows them: parts of a rule that a reader made rules of have its name.
    ``places`` (``line:column``) are where a name is defined, as far as the text says it.
    """

    text: str
    rules: list[Node]
    owners: list[str]
    start: int
    places: dict[str, str] = field(default_factory=dict)

    def finding(
        self, severity: Severity, code: str, name: str, message: str, *, shown: bool = True
    ) -> Finding:
        """A finding about a rule, with its line if that is ``shown`` and known."""
        return located(self.text, severity, code, self.places.get(name), message, shown=shown)


def located(
    text: str, severity: Severity, code: str, place: str | None, message: str, *, shown: bool = True
) -> Finding:
    """A finding at a place of a text (None: at its beginning), with a caret snippet if it is ``shown``."""
    if shown and place is not None:
        message = f"{message}\n{caret_snippet(text, place)}"
    return Finding(severity, code, place or "1:1", message)


def finding_of(error: MaskwrightError) -> Finding:
    """An error of a source as a finding: at its place, where that is one of the text or a JSON pointer."""
    code = next((code for kind, code in _CODES.items() if isinstance(error, kind)), "malformed")
    place: str | None = getattr(error, "place", None)
    if place is None or not (place.startswith(("/", "#")) or place.partition(":")[0].isdecimal()):
        return Finding("error", code, "1:1", str(error))
    return Finding("error", code, place, str(error).removeprefix(f"{place}: "))


def check_rules(outline: Outline, report: Report, *, left_recursion: bool = False) -> None:
    """Unreachable rules, rules that derive nothing, cycles, empty repetitions, hidden left recursion (or any), blanks."""
    rules = outline.rules
    reachable = closure([outline.start], [references(body) for body in rules])
    productive = _fixed_point(rules, _is_productive)
    nullable = _fixed_point(rules, _is_nullable)
    used = {outline.owners[rule] for rule in reachable}
    for name in dict.fromkeys(outline.owners):
        if name not in used and name in outline.places:
            message = f"nothing leads from {outline.owners[outline.start]} to the rule {name}"
            report.findings.append(outline.finding("warning", "unreachable-rule", name, message))
    _check_productive(outline, report, reachable, productive)
    _check_cycles(outline, report, reachable, nullable)
    _check_left(outline, report, reachable, nullable, left_recursion)
    _check_blanks(outline, report, reachable)


def _check_productive(outline: Outline, report: Report, reachable: set[int], productive: list[bool]) -> None:
    start = outline.owners[outline.start]
    for name in _names(outline, (rule for rule in reachable if not productive[rule])):
        message = f"the rule {name} derives no text: every alternative contains itself, or nothing at all"
        severity: Severity = "error" if name == start else "warning"
        report.findings.append(outline.finding(severity, "unproductive-rule", name, message))


def _check_cycles(outline: Outline, report: Report, reachable: set[int], nullable: list[bool]) -> None:
    own = {outline.owners[rule]: rule for rule in range(len(outline.owners) - 1, -1, -1)}
    alone = [list(_alone(body, nullable)) if i in reachable else [] for i, body in enumerate(outline.rules)]
    for group in _cycles(alone):
        check_time()
        # The first rule of a name is the author's, others are parts of it.
        names = _names(outline, group)
        if len(names) == 1 and not any(own[outline.owners[rule]] == rule for rule in group):
            message = f"a repetition in the rule {names[0]} repeats what may be empty: no end of ways to read a text"
            code = "nullable-loop"
        else:
            code, way = "cycle", " -> ".join([*names, names[0]])
            message = f"the rule {names[0]} derives itself alone ({way}): no end of ways to read a text"
        report.findings.append(outline.finding("warning", code, names[0], message))
    for rule in sorted(reachable):
        check_time()
        if any(_is_empty_loop(node, nullable) for node in nodes(outline.rules[rule])):
            name = outline.owners[rule]
            message = (
                f"a repetition in the rule {name} repeats what may be empty: no end of ways to read a text"
            )
            report.findings.append(outline.finding("warning", "nullable-loop", name, message))


def _check_left(
    outline: Outline, report: Report, reachable: set[int], nullable: list[bool], always: bool
) -> None:
    left = [list(_left(body, nullable)) if i in reachable else [] for i, body in enumerate(outline.rules)]
    for group in _cycles([[rule for rule, _ in edges] for edges in left]):
        name = _names(outline, group)[0]
        if any(behind and target in group for rule in group for target, behind in left[rule]):
            code = "hidden-left-recursion"
            message = (
                f"the rule {name} is left-recursive behind something that may be empty (hidden left recursion): fine "
                "here, but recursive-descent and LALR parsers do not take it"
            )
        elif always:
            code = "left-recursion"
            message = f"the rule {name} is left-recursive: fine here, but llama.cpp does not take it"
        else:
            continue
        report.hints.append(outline.finding("note", code, name, message, shown=False))


def _check_blanks(outline: Outline, report: Report, reachable: set[int]) -> None:
    rules = outline.rules
    after = [references(body) for body in rules]
    before = _reversed(after)
    others = closure([i for i, body in enumerate(rules) if not _only_blanks(body)], before)
    filled = closure([i for i, body in enumerate(rules) if _has_leaves(body)], before)
    blank = [i not in others for i in range(len(rules))]
    found = {rule for rule in reachable if any(_repeats_blanks(n, blank) for n in nodes(rules[rule]))}
    for group in _cycles(after):
        if blank[group[0]] and group[0] in filled:
            found.update(reachable.intersection(group))
    for name in _names(outline, found):
        report.hints.append(outline.finding("note", "unbounded-blanks", name, BLANKS_MESSAGE, shown=False))


BLANKS_MESSAGE = "white space without a bound: a model may write blanks until its budget ends; {0,n} in place of * bounds them"


# --- bodies ---------------------------------------------------------------------------------


def nodes(body: Node) -> Iterator[Node]:
    """All nodes of a body above its regular parts, and these."""
    work = [body]
    while work:
        node = work.pop()
        yield node
        if isinstance(node, (Items, Ways)):
            work.extend(reversed(node.items))
        elif isinstance(node, Loop):
            work.append(node.body)


def _derives(node: Node, known: list[bool], leaf: Callable[[Regular], bool]) -> bool:
    """Whether a body derives a text of a kind, when one does of which every part is of that kind."""
    if isinstance(node, Ref):
        return known[node.rule]
    if isinstance(node, Items):
        return all(_derives(item, known, leaf) for item in node.items)
    if isinstance(node, Ways):
        return any(_derives(item, known, leaf) for item in node.items)
    if isinstance(node, Loop):
        return node.min == 0 or _derives(node.body, known, leaf)
    return leaf(node)


def _is_nullable(node: Node, known: list[bool]) -> bool:
    return _derives(node, known, lambda part: (length_bounds(part) or (1, 1))[0] == 0)


def _is_productive(node: Node, known: list[bool]) -> bool:
    return _derives(node, known, lambda part: not is_empty(part))


def _alone(node: Node, nullable: list[bool]) -> Iterator[int]:
    """The rules that a body may consist of, all else being empty."""
    if isinstance(node, Ref):
        yield node.rule
    elif isinstance(node, Ways):
        for item in node.items:
            yield from _alone(item, nullable)
    elif isinstance(node, Loop):
        if node.min <= 1 or _is_nullable(node.body, nullable):
            yield from _alone(node.body, nullable)
    elif isinstance(node, Items):
        solid = [i for i, item in enumerate(node.items) if not _is_nullable(item, nullable)]
        for i, item in enumerate(node.items):
            if solid in ([], [i]):
                yield from _alone(item, nullable)


def _left(node: Node, nullable: list[bool], behind: bool = False) -> Iterator[tuple[int, bool]]:
    """The rules that a body may begin with, and whether behind something that may be empty."""
    if isinstance(node, Ref):
        yield node.rule, behind
    elif isinstance(node, Ways):
        for item in node.items:
            yield from _left(item, nullable, behind)
    elif isinstance(node, Loop):
        yield from _left(node.body, nullable, behind)
    elif isinstance(node, Items):
        for item in node.items:
            yield from _left(item, nullable, behind)
            if not _is_nullable(item, nullable):
                return
            behind = True


def _is_empty_loop(node: Node, nullable: list[bool]) -> bool:
    return isinstance(node, Loop) and node.max is None and _is_nullable(node.body, nullable)


def is_blank(node: Regular) -> bool:
    """Whether a language has no characters but white space."""
    return all(intersect_ranges(ranges, BLANKS) == ranges for ranges in leaf_sets(node))


def _only_blanks(body: Node) -> bool:
    return all(isinstance(n, (Ref, Items, Ways, Loop)) or is_blank(n) for n in nodes(body))


def _has_leaves(body: Node) -> bool:
    return any(not isinstance(n, (Ref, Items, Ways, Loop)) and bool(leaf_sets(n)) for n in nodes(body))


def _repeats_blanks(node: Node, blank: list[bool]) -> bool:
    if isinstance(node, (Ref, Items, Ways)):
        return False
    if isinstance(node, Loop):
        inside = all(blank[rule] for rule in references(node.body)) and _only_blanks(node.body)
        return node.max is None and inside and bool(references(node.body))
    return repeats_blanks(node)


def repeats_blanks(node: Regular) -> bool:
    """Whether part of an expression is a repetition of white space without a bound."""
    for part in postorder(node):
        if isinstance(part, Repeat) and part.max is None:
            check_time()
            if is_blank(part.body):
                return True
    return False


# --- relations ------------------------------------------------------------------------------


def _fixed_point(rules: list[Node], holds: Callable[[Node, list[bool]], bool]) -> list[bool]:
    before = _reversed([references(body) for body in rules])
    known = [False] * len(rules)
    work = list(range(len(rules)))
    waiting = [True] * len(rules)
    while work:
        check_time()
        rule = work.pop()
        waiting[rule] = False
        if holds(rules[rule], known):
            known[rule] = True
            for caller in before[rule]:
                if not known[caller] and not waiting[caller]:
                    waiting[caller] = True
                    work.append(caller)
    return known


def _reversed(after: list[list[int]]) -> list[list[int]]:
    """Which rules refer to each one."""
    before: list[list[int]] = [[] for _ in after]
    for rule, targets in enumerate(after):
        check_time()
        for target in targets:
            before[target].append(rule)
    return before


def closure(first: Iterable[int], after: list[list[int]]) -> set[int]:
    """What can be reached."""
    seen = set(first)
    work = list(seen)
    while work:
        check_time()
        for target in after[work.pop()]:
            if target not in seen:
                seen.add(target)
                work.append(target)
    return seen


def _cycles(after: list[list[int]]) -> list[list[int]]:
    """The groups of rules that lead to each other, or of one that leads to itself; sorted."""
    return [
        sorted(group) for group in strong_components(after) if len(group) > 1 or group[0] in after[group[0]]
    ]


def _names(outline: Outline, rules: Iterable[int]) -> list[str]:
    return list(dict.fromkeys(outline.owners[rule] for rule in sorted(rules)))
