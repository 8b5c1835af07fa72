"""The common case of assertions: anchors at the ends of alternatives, without an automaton."""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from maskwright.deadline import check_time
from maskwright.dfa import length_bounds
from maskwright.regex.syntax import ASSERTIONS, TextEnd, TextStart
from maskwright.regular import ANY_CHAR, EPSILON, Alt, Cat, Regular, Repeat, alt, cat, char, children, repeat

EVERY_TEXT = repeat(ANY_CHAR, 0, None)

_MAX_DEPTH = 30
_MAX_BRANCHES = 64
_FREE, _BEFORE_NEWLINE, _END = 0, 1, 2


class _Branch(NamedTuple):
    """One way to match: ``body``, which must stand at the ends of the text that are anchored."""

    at_start: bool
    end: int
    body: Regular
    nullable: bool


class _NotSimpleError(Exception):
    """Some assertion is not at the end of an alternative."""


def anchored_language(tree: Regular, order: list[Regular], *, search: bool) -> Regular | None:
    """The language of ``tree``, whose nodes are ``order``; None when it needs an automaton.

    With ``search``, the texts in which a match of the tree occurs; else those that it matches.
    """
    asserting: set[int] = set()
    for node in order:
        check_time()
        if isinstance(node, ASSERTIONS) or any(id(child) in asserting for child in children(node)):
            asserting.add(id(node))
    try:
        branches = _branches(tree, asserting, 0)
    except _NotSimpleError:
        return None
    if not search:
        return alt(*(branch.body for branch in branches))
    return alt(*(_found(branch) for branch in branches))


def _found(branch: _Branch) -> Regular:
    at_start, end, body, nullable = branch
    if nullable and not at_start and not end:
        return EVERY_TEXT
    parts: list[Regular] = list(body.parts) if isinstance(body, Cat) else [body]
    # Next to any text, a repetition may stop at its minimum.
    if not at_start:
        parts[0] = _least(parts[0])
    if not end:
        parts[-1] = _least(parts[-1])
    before = EPSILON if at_start else EVERY_TEXT
    behind = (EVERY_TEXT, repeat(char("\n"), 0, 1), EPSILON)[end]
    return cat(before, *parts, behind)


def _least(node: Regular) -> Regular:
    return repeat(node.body, node.min, node.min) if isinstance(node, Repeat) else node


def _branches(node: Regular, asserting: set[int], depth: int) -> list[_Branch]:
    if id(node) not in asserting:
        return [_Branch(False, _FREE, node, _may_be_empty(node))]
    if depth > _MAX_DEPTH:
        raise _NotSimpleError
    if isinstance(node, TextStart):
        return [_Branch(True, _FREE, EPSILON, True)]
    if isinstance(node, TextEnd):
        return [_Branch(False, _BEFORE_NEWLINE if node.newline else _END, EPSILON, True)]
    if isinstance(node, Alt):
        return [branch for part in node.parts for branch in _branches(part, asserting, depth + 1)]
    if isinstance(node, Repeat) and (node.min, node.max) == (0, 1):
        return [*_branches(node.body, asserting, depth + 1), _Branch(False, _FREE, EPSILON, True)]
    if not isinstance(node, Cat):
        raise _NotSimpleError
    ways = [_Branch(False, _FREE, EPSILON, True)]
    for part in _runs(node, asserting):
        below = _branches(part, asserting, depth + 1)
        ways = [joined for a in ways for b in below if (joined := _join(a, b)) is not None]
        if len(ways) > _MAX_BRANCHES:
            raise _NotSimpleError
    return ways


def _runs(node: Cat, asserting: set[int]) -> list[Regular]:
    """The parts, those between assertions joined."""
    runs: list[Regular] = []
    for plain, parts in groupby(node.parts, key=lambda part: id(part) not in asserting):
        group = list(parts)
        runs += [cat(*group)] if plain else group
    return runs


def _join(a: _Branch, b: _Branch) -> _Branch | None:
    """``a`` and then ``b``; None when an anchor between them cannot hold."""
    if b.at_start and a.body != EPSILON:
        if a.nullable:
            raise _NotSimpleError
        return None
    if a.end and b.body != EPSILON:
        if a.end == _BEFORE_NEWLINE or b.nullable:
            raise _NotSimpleError
        return None
    end = max(a.end, b.end) if b.body == EPSILON else b.end
    return _Branch(a.at_start or b.at_start, end, cat(a.body, b.body), a.nullable and b.nullable)


def _may_be_empty(node: Regular) -> bool:
    bounds = length_bounds(node)
    return bounds is not None and bounds[0] == 0
