"""Whether packed tables are such: every number is one that the engine can take.

The digest of sealed bytes finds damage.  This is for mistakes of whoever made them: no number leads out of an array.  It is
no proof that the engine can work with them, which relies on what the compiler sees to (that every rule has a text, say).
What is wrong raises ``GrammarError``, or any error of Python for what has another shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from operator import le, lt
from typing import Any, NoReturn

import numpy as np

from maskwright.errors import GrammarError
from maskwright.limits import MAX_COUNT
from maskwright.regular.expressions import MAX_CODE_POINT

PLAIN, REPEATED, RECORD, INDENTED = 0, 1, 2, 3
_MAX_TAGS = 1 << 24
_MAX_COLUMNS = 1 << 16
_SPELLINGS = ("utf8", "quoted", "printed")
_OPERATIONS = 3
"""Of an epsilon edge: free, into a loop, out of it."""


def wrong(what: str) -> NoReturn:
    """Raises the error for bytes that are no compiled grammar."""
    raise GrammarError(f"this is no compiled grammar ({what}): send it again, or compile the source")


def need(good: bool, what: str) -> None:
    """Raises the same error, unless what must be so is."""
    if not good:
        wrong(what)


def _within(numbers: Iterable[int], low: int, high: int, what: str) -> None:
    """All are integers from ``low`` to below ``high``."""
    given = list(numbers)
    if given and not (set(map(type, given)) == {int} and min(given) >= low and max(given) < high):
        wrong(f"{what}: not all are within {low} and {high - 1}")


def _columns(rows: Sequence[Sequence[Any]], count: int, what: str) -> list[Sequence[Any]]:
    """The columns of rows of so many numbers."""
    need(set(map(len, rows)) <= {count}, what)
    return list(zip(*rows, strict=True)) if rows else [()] * count


def check_automaton(kind: str, content: Sequence[Any], data: bytes, kinds: Sequence[str]) -> None:
    """Of an automaton behind others of these kinds: the arguments of the engine, and the bytes behind them."""
    if kind == "keyset":
        _check_keyset(content, data, kinds)
    elif kind == "words":
        _check_words(content, data)
    else:
        need(kind in ("text", "lexer"), "a kind of automaton")
        _check_nfa(kind, content, data)


def _check_keyset(content: Sequence[Any], data: bytes, kinds: Sequence[str]) -> None:
    names, tags, other, base, count, spelling = content
    need(not data and spelling in _SPELLINGS[1:], "keys")
    need(len(names) == len(tags) and len(set(names)) == len(names), "names of keys")
    _within(tags, -1, _MAX_TAGS, "tags of keys")
    _within([other, count], 0, _MAX_TAGS, "kinds of keys")
    _within([base], -1, len(kinds), "other keys")
    need(base < 0 or kinds[base] == "text", "the automaton of other keys")


def _check_words(content: Sequence[Any], data: bytes) -> None:
    texts, starts, tags = content
    _within(content, 0, len(data) + 1, "sizes of texts")
    need(texts + starts + tags == len(data), "sizes of texts")
    places = np.frombuffer(data[texts : texts + starts], dtype=np.int64).tolist()
    need(bool(places) and places[0] == 0 and places[-1] == texts, "places of texts")
    need(all(a < b for a, b in pairwise(places)), "places of texts")
    words = [data[a:b] for a, b in pairwise(places)]
    need(bool(words) and all(a < b for a, b in pairwise(words)), "the order of texts")
    marks = np.frombuffer(data[texts + starts :], dtype=np.int32)
    need(len(marks) in (0, len(words)), "tags of texts")
    _within(marks.tolist(), 0, _MAX_TAGS, "tags of texts")


def _check_nfa(kind: str, content: Sequence[Any], data: bytes) -> None:
    states, first, sets, size, epsilons, loops, accepts, *rest = content
    _within([states], 1, MAX_COUNT // 16, "states")
    for ranges in sets:
        lows, highs = _columns(ranges, 2, "characters")
        _within([*lows, *highs], 0, MAX_CODE_POINT + 1, "characters")
        need(all(map(le, lows, highs)) and all(map(lt, highs, lows[1:])), "characters")
    _within([size], 0, len(data) + 1, "edges")
    edges = np.frombuffer(data[:size], dtype=np.int32).reshape(-1, 3)
    if len(edges):
        lowest, highest = edges.min(axis=0), edges.max(axis=0)
        need(int(lowest.min()) >= 0, "edges")
        need(max(highest[0], highest[2]) < states and highest[1] < len(sets), "edges")
    sources, targets, operations, inside = _columns(epsilons, 4, "edges")
    _within([*sources, *targets], 0, states, "edges")
    _within(operations, 0, _OPERATIONS, "edges")
    _within(inside, -1, max(len(loops), 1), "loops")
    _within(
        [loop for operation, loop in zip(operations, inside, strict=True) if operation],
        0,
        len(loops),
        "loops",
    )
    lows, highs = _columns(loops, 2, "loops")
    _within(lows, 0, MAX_COUNT, "loops")
    _within(highs, -1, MAX_COUNT + 1, "loops")
    if kind == "text":
        (spelling,) = rest
        need(size == len(data), "edges")
        _within([first], 0, states, "the first state")
        need(spelling in _SPELLINGS, "spelling")
        tags = _MAX_TAGS
    else:
        tags = _check_lexer(first, states, rest, data[size:])
    accepting, marks = _columns(accepts, 2, "accepting states")
    _within(accepting, 0, states, "accepting states")
    _within(marks, 0, tags, "tags")


def _check_lexer(starts: list[int], states: int, content: Sequence[Any], behind: bytes) -> int:
    """How many tags its automaton may accept with.  ``behind``: which terminals may follow, a row of bits for each set."""
    ignored, follow, avoided, names, newline, line_break, columns, quote, *rest = content
    early, placed, after, beside, guards, opens, begins = rest
    count = len(starts)
    need(count > 0, "terminals")
    _within(starts, 0, states, "terminals")
    _within([*ignored, *early, *opens], 0, count, "terminals")
    _within(begins, 0, 256, "bytes")
    width = (count + 7) // 8
    rows = 0 if follow is None else len(after)
    need(len(behind) == (follow or 0) == rows * width, "terminals behind others")
    if rows:
        last = np.frombuffer(behind, dtype=np.uint8)[width - 1 :: width]
        need(int(last.max()) < 1 << (count - 1) % 8 + 1, "terminals behind others")
    _within(after, -1, count, "terminals behind others")
    # Where no terminal is ever waited for, there are no rows.
    needed = (count,) if placed and follow is not None else (0, count) if placed else (0,)
    need(len(beside) in needed, "ignored terminals")
    for ignored_ones in beside:
        _within(ignored_ones, 0, count, "ignored terminals")
    for one, other in avoided:
        _within([one], 0, count, "terminals that clash")
        _within([other], -1, count + 1, "terminals that clash")
    begins, owners, unless = _columns(guards, 3, "what is refused")
    _within(begins, 0, states, "what is refused")
    _within(owners, 0, count, "what is refused")
    for beside_them in unless:
        _within(beside_them, 0, count, "what is refused")
    need(all(type(name) is str for name in names), "names")
    _within([newline, line_break, quote], -1, count, "the newline")
    _within([columns], 0, _MAX_COLUMNS, "columns")
    return count + 1 + int(columns)


def check_tables(plain: Sequence[Any], kinds: Sequence[str], known: int, terminals: int) -> None:
    """Of tables behind ``known`` others, with automata of these kinds and so many terminals of their lexer."""
    numbers, lexer, terms, calls, final, guard, guards, rules, repeated, records, *rest = plain
    indented, start, imports, names, _ = rest
    _within(numbers, 0, len(kinds), "automata")
    need("lexer" not in {kinds[at] for at in numbers}, "automata")
    _within([lexer], -1, len(kinds), "the lexer")
    need(lexer < 0 or kinds[lexer] == "lexer", "the lexer")
    _within(imports, 0, known, "imports")
    places, automata, targets = len(terms), len(numbers), len(rules) + len(imports)
    need(len(calls) == len(final) == len(guard) == places, "places")
    need(len(names) == len(rules) and all(type(name) is str for name in names), "names")
    read, behind, tags = _columns(list(chain.from_iterable(terms)), 3, "places")
    _within(read, -terminals, automata, "automata")
    _within(behind, 0, places, "places")
    _within(tags, -1, _MAX_TAGS, "tags")
    called, behind = _columns(list(chain.from_iterable(calls)), 2, "places")
    _within(called, 0, targets, "rules")
    _within(behind, 0, places, "places")
    _within(final, 0, 2, "places")
    _within(guard, 0, len(guards) + 1, "arrays")
    for free, least, _, *bounds in guards:
        _within([free, *bounds], -1, MAX_COUNT + 1, "arrays")
        _within([least], 0, MAX_COUNT + 1, "arrays")
    sizes = {PLAIN: places, REPEATED: len(repeated), RECORD: len(records), INDENTED: len(indented)}
    for kind, size in sizes.items():
        _within([rule[1] for rule in rules if rule[0] == kind], 0, size, "rules")
    _within([rule[0] for rule in rules], 0, len(sizes), "kinds of rules")
    firsts, others, lows, highs = _columns(repeated, 4, "counts")
    _within([*firsts, *others], 0, targets, "rules")
    _within(lows, 0, MAX_COUNT + 1, "counts")
    _within(highs, -1, MAX_COUNT + 1, "counts")
    for record in records:
        _check_record(record, [kinds[at] for at in numbers], targets)
    _within(indented, 0, targets, "rules")
    need(not indented or lexer >= 0, "lines without a lexer")
    _within([start], 0, len(rules), "the first rule")


def _check_record(record: Sequence[Any], kinds: Sequence[str], rules: int) -> None:
    keys, sorts, values, absent, lengths, required, least, most, obligations, *rest = record
    count = len(lengths)
    need(len(values) == count + len(sorts) and len(absent) == len(required) == count, "members")
    _within(sorts, 0, len(sorts), "kinds of members")
    # Without keys, it is an array of one kind of members.
    keyless = not keys and count == 0 and len(sorts) == 1
    need(keyless or len(keys) == 1 << (max(sorts) + 1 if sorts else 0), "keys")
    _within(keys, -1, len(kinds), "keys")
    need(all(kinds[at] == "keyset" for at in keys if at >= 0), "keys")
    ways = list(chain.from_iterable(values))
    _within([rule for rule, _ in ways], 0, rules, "rules")
    _within([reached for _, reached in ways], 0, 1 << 32, "obligations")
    _within([*absent, obligations], 0, 1 << 32, "obligations")
    _within([*lengths, least], 0, MAX_COUNT + 1, "members")
    _within([most], -1, MAX_COUNT + 1, "members")
    _within(rest[3:], 0, len(kinds), "marks")
