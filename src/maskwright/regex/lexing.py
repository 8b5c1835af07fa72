"""Patterns as a lexer takes them: a match somewhere in a text, whose length the pattern decides.

A backtracking matcher ends a match at one place; a lexer needs the set of texts at whose end a match may end.
For greedy patterns that is their language: the longest match counts.  Beside a lazy quantifier it is the match that
is tried first (``maskwright.regex.ordered``).
What a pattern sees of the text behind its match (look-ahead, word boundaries) says where there is no match.
"""

from __future__ import annotations

from typing import NamedTuple

from maskwright.errors import GrammarError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex.assertions import neighbours, resolve
from maskwright.regex.ordered import ASKS, ordered_matches
from maskwright.regex.parser import Dialect, Group, Item, Parser
from maskwright.regex.syntax import ASSERTIONS, Look, TextEnd, TextStart, WordBoundary
from maskwright.regular.dfa import (
    difference,
    first_matches_since,
    is_empty,
    length_bounds,
    without_empty,
)
from maskwright.regular.expressions import (
    EVERY_TEXT,
    NOTHING,
    Chars,
    Ranges,
    Regular,
    alt,
    cat,
    postorder,
)
from maskwright.regular.refusals import refused_texts


class Matches(NamedTuple):
    """The texts that a pattern matches, and others: a match that one of those begins with does not count."""

    language: Regular
    refused: Regular


def lexer_matches(
    pattern: str,
    dialect: Dialect = "python",
    limits: Limits = DEFAULT_LIMITS,
    flags: str = "",
    *,
    lazy: bool = True,
) -> Matches:
    """What a pattern matches inside of a text.

    ``lazy``: lazy quantifiers end a match as soon as what follows in the pattern matches; not where what follows the pattern counts, too.
    Raises ``GrammarError`` for what ``parse_regex`` refuses, and for patterns that look at the text before
    their match, need certain text behind it, or look further ahead behind a lazy quantifier than to where it may go on; ``LimitError``.
    """
    parser = Parser(pattern, dialect, limits, flags)
    tree = parser.parse()
    assertions = _assertions(tree)
    if any(isinstance(node, (TextStart, TextEnd)) for node in assertions):
        raise GrammarError("an anchor cannot tell where a terminal begins or ends: remove it")
    alternatives = _alternatives(parser.root)
    if assertions and not _looks_inside(alternatives, 0):
        if any(map(_looks_behind, assertions)):
            raise GrammarError(
                "a terminal cannot look at the text before it: move the look-behind behind something"
            )
        _check_before(tree, limits)
    if lazy and any(item.lazy for items in alternatives for item in items):
        return Matches(*_ordered(alternatives, bool(assertions), limits))
    language = resolve(tree, limits, search=False)
    ahead = sum(not _looks_behind(node) for node in assertions)
    return Matches(language, _refused(language, tree, alternatives, ahead, limits) if ahead else NOTHING)


def _assertions(tree: Regular) -> list[object]:
    return [node for node in postorder(tree) if isinstance(node, ASSERTIONS)]


def _alternatives(group: Group) -> list[list[Item]]:
    """Those of a pattern, or of the group that it consists of."""
    while not group.alternatives and len(group.items) == 1:
        inner = _group(group.items[0])
        if inner is None:
            break
        group = inner
    return [*group.alternatives, group.items]


def _group(item: Item) -> Group | None:
    """That which it is nothing but."""
    return item.group if item.low == item.high == 1 else None


def _ordered(alternatives: list[list[Item]], looks: bool, limits: Limits) -> tuple[Regular, Regular]:
    if looks:
        return ordered_matches(alternatives, limits)
    # What one alternative matches does not depend on the others.
    lazy: list[list[Item]] = []
    plain: list[Regular] = []
    for items in alternatives:
        if any(item.lazy for item in items):
            lazy.append(items)
        else:
            plain.append(cat(*(item.tree for item in items)))
    language, refused = ordered_matches(lazy, limits)
    return alt(language, *plain), refused


def _looks_behind(node: object) -> bool:
    return isinstance(node, Look) and node.behind


def _looks_inside(alternatives: list[list[Item]], read: int) -> bool:
    """Whether look-behind sees, as far as can be told easily, nothing but the match, of which ``read``
    characters at least come before."""
    for items in alternatives:
        before = read
        for item in items:
            needs = [_seen_before(node) for node in _assertions(item.tree)]
            if any(need is None or need > before for need in needs):
                inner = _group(item)
                if inner is None or not _looks_inside([*inner.alternatives, inner.items], before):
                    return False
            bounds = None if needs else length_bounds(item.tree)
            before += bounds[0] if bounds is not None else 0
    return True


def _seen_before(node: object) -> int | None:
    """How many characters before its place an assertion looks at; None: any number."""
    if isinstance(node, WordBoundary):
        return 1
    if not isinstance(node, Look) or not node.behind:
        return 0
    if _assertions(node.body):
        return None
    bounds = length_bounds(node.body)
    return bounds[1] if bounds is not None else 0


def _check_before(tree: Regular, limits: Limits) -> None:
    """What a pattern with word boundaries matches must not depend on what stands before."""
    alone = resolve(tree, limits, search=False)
    for before in neighbours(_assertions(tree)):
        there = resolve(tree, limits, search=False, before=before)
        if not (is_empty(difference(alone, there, limits)) and is_empty(difference(there, alone, limits))):
            raise GrammarError("a terminal cannot look at the text before it: remove what does")


def _refused(
    language: Regular, tree: Regular, alternatives: list[list[Item]], ahead: int, limits: Limits
) -> Regular:
    """Texts that show that a match does not count; ``ahead``: how many assertions look at what is behind."""
    parts: list[tuple[Regular, Regular]] = []
    plain: list[Regular] = []
    for items in alternatives:
        last = items[-1].tree if items else None
        before = cat(*(item.tree for item in items[:-1]))
        if isinstance(last, Look) and last.negative and not last.behind:
            if not all(map(_looks_behind, _assertions(last.body))):
                # More text could undo what is refused.
                raise GrammarError(
                    "a look-ahead at the end of a terminal cannot look further ahead itself: "
                    "list what may not follow, as in (?!as[^a-z]), or make it part of another terminal"
                )
            parts.append((resolve(before, limits, search=False), resolve(last.body, limits, search=False)))
        elif isinstance(last, WordBoundary) and not last.negative:
            before = resolve(before, limits, search=False)
            if not _ends_in(before, last.word, limits):
                raise GrammarError(ASKS)
            parts.append((before, Chars(last.word)))
        else:
            plain.append(cat(*(item.tree for item in items)))
    if len(parts) == ahead:
        return refused_texts(language, parts, resolve(alt(*plain), limits, search=False), limits)
    language = resolve(tree, limits, search=False)
    alone = cat(language, EVERY_TEXT)
    somewhere = resolve(cat(tree, EVERY_TEXT), limits, search=False)
    if not is_empty(difference(somewhere, alone, limits)):
        raise GrammarError(ASKS)
    # More text may undo a refusal (`(?!(in|input)\b)`), with a longer match; then the next one counts as well.
    simple = [cat(before, body) for before, body in parts]
    return alt(*simple, first_matches_since(difference(alone, somewhere, limits), language, limits))


def _ends_in(language: Regular, word: Ranges, limits: Limits) -> bool:
    """Whether all texts but the empty one end with a character of ``word``."""
    others = difference(without_empty(language, limits), cat(EVERY_TEXT, Chars(word)), limits)
    return is_empty(others)
