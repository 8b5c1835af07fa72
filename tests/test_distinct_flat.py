"""What a mask inside an array of different items costs does not grow with the strings that came: work is counted, not timed."""

from __future__ import annotations

import itertools
import json
import random
import string
from typing import Any

import pytest

import maskwright as mw

PAIRS = ["".join(pair) for pair in itertools.product(string.ascii_lowercase, repeat=2)]
PLAIN = {"type": "array", "uniqueItems": True, "items": {"type": "string"}}
NESTED = {"type": "array", "uniqueItems": True, "items": {"type": "array", "items": {"type": "string"}}}


def _vocabulary() -> mw.Vocabulary:
    texts = [bytes([byte]) for byte in range(256)]
    texts += [pair.encode() for pair in PAIRS]
    texts += [f'{pair}"'.encode() for pair in PAIRS]
    return mw.Vocabulary([*texts, b"<eos>"], eos_ids=[len(texts)])


def _allowed(matcher: Any, vocabulary: mw.Vocabulary) -> set[int]:
    bitmask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    matcher.fill_next_token_bitmask(bitmask)
    words = bitmask[0].tolist()
    return {token for token in range(vocabulary.vocab_size) if words[token // 32] >> (token % 32) & 1}


@pytest.mark.parametrize("schema", [PLAIN, NESTED])
def test_a_mask_at_the_start_of_a_string_looks_at_few_states(schema: Any) -> None:
    vocabulary = _vocabulary()
    grammar = mw.compile(mw.JsonSchema(schema), vocabulary)
    before, behind = ('["', '"]') if schema is NESTED else ('"', '"')
    rng = random.Random(1)
    words = sorted({"".join(rng.choices(string.ascii_lowercase, k=6)) for _ in range(4000)})
    rng.shuffle(words)
    short = rng.sample(PAIRS, 20)
    items = [f"{before}{word}{behind}" for word in [*short, *words]]
    matcher = grammar.matcher()
    assert matcher.accept_bytes(("[" + ", ".join(items) + ", " + before).encode())
    # Nearly every token agrees with a string that came.
    assert len({word[:2] for word in words}) > 600
    states = grammar.statistics["tracker_states"]
    found = _allowed(matcher, vocabulary)
    assert grammar.statistics["tracker_states"] - states < 200
    ends = {pair: 256 + len(PAIRS) + number for number, pair in enumerate(PAIRS)}
    # A list of strings may go on behind one that came.
    wrong = set() if schema is NESTED else {ends[pair] for pair in short}
    assert set(ends.values()) - found == wrong
    assert set(range(256, 256 + len(PAIRS))) <= found


def test_a_string_that_came_is_refused_however_it_is_spelled() -> None:
    vocabulary = _vocabulary()
    grammar = mw.compile(mw.JsonSchema(PLAIN, escapes="any"), vocabulary)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(
        json.dumps(["ab", "é", "x\ny", "c"], ensure_ascii=False)[:-1].encode() + b', "'
    )
    quote = 34
    for read, same in (
        (b"ab", True),
        (b"\\u0061b", True),
        (b"a\\u0062", True),
        (b"\\u00e9", True),
        ("é".encode(), True),
        (b"x\\ny", True),
        (b"x\\u000ay", True),
        (b"x\\\\ny", False),
        (b"a", False),
        (b"abc", False),
        (b"c\\u0063", False),
    ):
        other = matcher.fork()
        assert other.accept_bytes(read)
        assert (quote in _allowed(other, vocabulary)) is not same, read
    for read in (b"\\u006", b"a\\"):
        other = matcher.fork()
        assert other.accept_bytes(read)
        assert (ord("1") in _allowed(other, vocabulary)) == (read == b"\\u006")


@pytest.mark.parametrize("bound", [{"maxLength": 1}, {"pattern": "^[ab]$"}, {"enum": ["a", "b", "ab"]}])
def test_where_few_strings_are_left_they_are_searched_for(bound: Any) -> None:
    vocabulary = _vocabulary()
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "string", **bound}, "minItems": 2}
    matcher = mw.compile(mw.JsonSchema(schema), vocabulary).matcher()
    assert matcher.accept_bytes(b'["a", "')
    found = _allowed(matcher, vocabulary)
    assert ord("b") in found
    # Only where "ab" may still come.
    assert (ord("a") in found) == ("enum" in bound)
