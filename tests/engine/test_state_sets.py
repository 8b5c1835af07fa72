"""States of many texts against all the texts that they stand for."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright._core import StateSets
from maskwright.compiling.compiler import compile_regex
from maskwright.diffusion.sets import state_sets

TOKENS = [b"a", b"b", b"ab", b"ba", b"aab", b"bb"]
VOCABULARY = mw.Vocabulary.from_bytes([*TOKENS, None], eos_ids=[len(TOKENS)])
TEXTS = ["".join(letters) for length in range(6) for letters in itertools.product("ab", repeat=length)]


def patterns() -> st.SearchStrategy[str]:
    """Regular expressions with counted loops, of one character and of more."""
    atoms = st.sampled_from(["a", "b", "ab", "[ab]", "(a|ba)"])
    counts = st.tuples(st.integers(0, 3), st.integers(0, 3)).map(
        lambda pair: f"{{{pair[0]},{pair[0] + pair[1]}}}"
    )
    loops = st.one_of(counts, st.integers(0, 3).map("{{{},}}".format), st.sampled_from(["?", "*", "+", ""]))
    pieces = st.tuples(atoms, loops).map(lambda pair: f"(?:{pair[0]}){pair[1]}")
    rows = st.lists(pieces, min_size=1, max_size=4).map("".join)
    return st.lists(rows, min_size=1, max_size=2).map("|".join)


def walked(tokens: int) -> set[str]:
    rows = itertools.product(TOKENS, repeat=tokens)
    return {b"".join(row).decode() for row in rows}


def check(sets: StateSets, state: int, texts: set[str], pattern: re.Pattern[str]) -> None:
    """Compare a state with the texts that it stands for: what completes it."""
    for rest in TEXTS:
        expected = any(pattern.fullmatch(text + rest) for text in texts)
        after = sets.next_bytes(state, rest.encode()) if state >= 0 and rest else state
        assert (after >= 0 and sets.is_accepting(after)) == expected, (texts, rest)


@settings(max_examples=150, deadline=None)
@given(patterns(), st.lists(st.sampled_from(range(-1, len(TOKENS))), min_size=1, max_size=3), st.data())
def test_counted_loops_are_exact(pattern: str, steps: list[int], data: st.DataObject) -> None:
    """Known and unknown tokens in a row, and a union with one of the states before."""
    compiled_pattern = re.compile(pattern)
    try:
        sets = StateSets(compile_regex(pattern, VOCABULARY)._core)
    except mw.UnsatisfiableError:
        return
    state, texts = sets.start, {""}
    reached = [(state, texts)]
    for token in steps:
        if state < 0:
            break
        state = sets.any(state) if token < 0 else sets.next(state, token)
        added = walked(1) if token < 0 else {TOKENS[token].decode()}
        texts = {text + more for text in texts for more in added}
        check(sets, state, texts, compiled_pattern)
        reached.append((state, texts))
    other, more = data.draw(st.sampled_from(reached))
    both = sets.join(state, other)
    check(sets, both, texts | more, compiled_pattern)
    for part in (state, other):
        assert part < 0 or sets.covers(both, part)


@settings(max_examples=60, deadline=None)
@given(patterns(), st.integers(0, 2))
def test_classes_are_all_tokens_by_where_they_lead(pattern: str, opened: int) -> None:
    try:
        sets = StateSets(compile_regex(pattern, VOCABULARY)._core)
    except mw.UnsatisfiableError:
        return
    state = sets.start
    for _ in range(opened):
        state = sets.any(state)
        if state < 0:
            return
    found = {}
    for target, ids in sets.classes(state):
        for token in memoryview(ids).cast("i"):
            found[token] = target
    texts = walked(opened)
    compiled_pattern = re.compile(pattern)
    for token, text in enumerate(TOKENS):
        check(sets, found.get(token, -1), {before + text.decode() for before in texts}, compiled_pattern)
        assert (token in found) == (sets.next(state, token) >= 0)


@pytest.mark.parametrize("low", [0, 1, 5])
def test_long_counted_strings_are_few_states(low: int) -> None:
    """Forty unknown tokens inside a string of up to 100 000 characters: states stay as small as those of any string."""
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b"abc", None], eos_ids=[257])
    schema = {"type": "string", "minLength": low, "maxLength": 100_000}
    compiled = mw.compile_json_schema(schema, vocabulary, limits=mw.Limits(max_lexer_states=20_000))
    sets = StateSets(compiled._core)
    state = sets.next_bytes(sets.start, b'"')
    for _ in range(40):
        state = sets.any(state)
    assert sets.next_bytes(state, b'"') >= 0
    assert sets.cost(state) <= 2


LEXED = r"""
start: item (";" item)*
item: "list" NAME | ("listen" | NAME) (OP item)? | "(" item ")" | "ed" CODE
CODE: /b+(?!c)/
NAME: /[a-z]+/
OP: /[-+]|->/
%ignore / +/
"""
PIECES = [
    b" ",
    b"list",
    b"en",
    b"ed",
    b"b",
    b"bc",
    b"bb c",
    b"c",
    b"(",
    b"((",
    b")",
    b") ",
    b");",
    b"->",
    b"-",
    b"> x",
    b"; l",
    b"a->(",
    b" (b",
    b"x y",
]


@pytest.mark.parametrize("begun", ["", "list", "listen ", "(a->", "ed b", "ed bb", "(list a)"])
def test_behind_all_tokens_of_a_lexer_is_the_union(begun: str) -> None:
    vocabulary = mw.Vocabulary.from_bytes([*PIECES, None], eos_ids=[len(PIECES)])
    sets = state_sets(mw.compile_lark(LEXED, vocabulary))
    state = sets.next_bytes(sets.start, begun.encode()) if begun else sets.start
    one_by_one = [state]
    for _ in range(3):
        state = sets.any(state)
        behind = {sets.next(each, token) for each in one_by_one for token in range(len(PIECES))}
        one_by_one = [each for each in behind if each >= 0]
        expected = {t for each in one_by_one for t in range(len(PIECES)) if sets.next(each, t) >= 0}
        assert {t for t in range(len(PIECES)) if sets.next(state, t) >= 0} == expected
        assert sets.is_accepting(state) == any(map(sets.is_accepting, one_by_one))
        joined = one_by_one[0]
        for each in one_by_one[1:]:
            joined = sets.join(joined, each)
        assert joined == state
