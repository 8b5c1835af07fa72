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
