"""The common case of assertions: anchors at the ends of alternatives, without an automaton."""

from __future__ import annotations

import cython

from maskwright.base.deadline import check_time
from maskwright.regex.syntax import ASSERTIONS, TextEnd, TextStart
from maskwright.regular.dfa import length_bounds
from maskwright.regular.expressions import (
    EPSILON,
    EVERY_TEXT,
    Alt,
    Cat,
    Chars,
    Lit,
    Regular,
    Repeat,
    alt,
    cat,
    char,
    children,
    repeat,
)

_LAST_NEWLINE = repeat(char("\n"), 0, 1)

_MAX_DEPTH = 30
_MAX_BRANCHES = 64
_FREE, _BEFORE_NEWLINE, _END = 0, 1, 2


@cython.cclass
class _Branch:
    """One way to match: ``body``, which must stand at the ends of the text that are anchored."""

    at_start: bool
    end: int
    body: Regular

    def __init__(self, at_start: bool, end: int, body: Regular) -> None:
        self.at_start = at_start
        self.end = end
        self.body = body


class _NotSimpleError(Exception):
    """Some assertion is not at the end of an alternative."""


def asserting_nodes(order: list[Regular]) -> set[int]:
    """The ids of those nodes of a tree, given with children first, that are assertions or have some below."""
    found: set[int] = set()
    for node in order:
        check_time()
        if isinstance(node, (Chars, Lit)):
            continue
        if isinstance(node, ASSERTIONS):
            found.add(id(node))
        elif found:
            for child in children(node):
                if id(child) in found:
                    found.add(id(node))
                    break
    return found


def anchored_language(tree: Regular, asserting: set[int], search: bool) -> Regular | None:
    """The language of ``tree``, of which ``asserting_nodes`` are known; None when it needs an automaton.

    With ``search``, the texts in which a match of the tree occurs; else those that it matches.
    """
    try:
        branches = _branches(tree, asserting, 0)
    except _NotSimpleError:
        return None
    found = [_found(branch) if search else branch.body for branch in branches]
    return found[0] if len(found) == 1 else alt(*found)


@cython.cfunc
def _found(branch: _Branch) -> Regular:
    body = branch.body
    if not branch.at_start and branch.end == _FREE and _may_be_empty(body):
        return EVERY_TEXT
    parts: list[Regular] = list(body.parts) if isinstance(body, Cat) else [body]
    # Next to any text, a repetition may stop at its minimum.
    if not branch.at_start:
        parts[0] = _least(parts[0])
        parts.insert(0, EVERY_TEXT)
    if branch.end == _FREE:
        parts[-1] = _least(parts[-1])
        parts.append(EVERY_TEXT)
    elif branch.end == _BEFORE_NEWLINE:
        parts.append(_LAST_NEWLINE)
    return cat(*parts)


@cython.cfunc
def _least(node: Regular) -> Regular:
    return repeat(node.body, node.min, node.min) if isinstance(node, Repeat) else node


@cython.cfunc
def _branches(node: Regular, asserting: set[int], depth: int) -> list[_Branch]:
    check_time()
    if id(node) not in asserting:
        return [_Branch(False, _FREE, node)]
    if depth > _MAX_DEPTH:
        raise _NotSimpleError
    if isinstance(node, Cat):
        return _in_a_row(node, asserting, depth + 1)
    if isinstance(node, TextStart):
        return [_Branch(True, _FREE, EPSILON)]
    if isinstance(node, TextEnd):
        return [_Branch(False, _BEFORE_NEWLINE if node.newline else _END, EPSILON)]
    found: list[_Branch] = []
    if isinstance(node, Alt):
        for part in node.parts:
            found += _branches(part, asserting, depth + 1)
        return found
    if isinstance(node, Repeat) and node.min == 0 and node.max == 1:
        found = _branches(node.body, asserting, depth + 1)
        found.append(_Branch(False, _FREE, EPSILON))
        return found
    raise _NotSimpleError


@cython.cfunc
def _in_a_row(node: Cat, asserting: set[int], depth: int) -> list[_Branch]:
    ways = [_Branch(False, _FREE, EPSILON)]
    for part in _runs(node, asserting):
        below = _branches(part, asserting, depth)
        joined: list[_Branch] = []
        for a in ways:
            for b in below:
                check_time()
                way = _join(a, b)
                if way is not None:
                    joined.append(way)
        ways = joined
        if len(ways) > _MAX_BRANCHES:
            raise _NotSimpleError
    return ways


@cython.cfunc
def _runs(node: Cat, asserting: set[int]) -> list[Regular]:
    """The parts, those between assertions joined."""
    runs: list[Regular] = []
    plain: list[Regular] = []
    for part in node.parts:
        check_time()
        if id(part) not in asserting:
            plain.append(part)
            continue
        if plain:
            runs.append(cat(*plain))
            plain = []
        runs.append(part)
    if plain:
        runs.append(cat(*plain))
    return runs


@cython.cfunc
def _join(a: _Branch, b: _Branch) -> _Branch | None:
    """``a`` and then ``b``; None when an anchor between them cannot hold."""
    if b.at_start and not _is_epsilon(a.body):
        if _may_be_empty(a.body):
            raise _NotSimpleError
        return None
    end = b.end
    if _is_epsilon(b.body):
        end = max(a.end, b.end)
    elif a.end:
        if a.end == _BEFORE_NEWLINE or _may_be_empty(b.body):
            raise _NotSimpleError
        return None
    return _Branch(a.at_start or b.at_start, end, cat(a.body, b.body))


@cython.cfunc
def _is_epsilon(node: Regular) -> bool:
    return isinstance(node, Lit) and not node.text


@cython.cfunc
def _may_be_empty(node: Regular) -> bool:
    bounds = length_bounds(node)
    return bounds is not None and bounds[0] == 0
