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


def _with(more: list[str]) -> mw.Vocabulary:
    texts = [bytes([byte]) for byte in range(256)] + [text.encode() for text in more]
    return mw.Vocabulary([*texts, b"<eos>"], eos_ids=[len(texts)])


def _vocabulary() -> mw.Vocabulary:
    return _with([*PAIRS, *(f'{pair}"' for pair in PAIRS)])


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


DIGITS = [f"{number:0{digits}}" for digits in (2, 3) for number in range(10**digits)]


@pytest.mark.parametrize("fewest", [0, 1000])
def test_where_few_numbers_are_left(fewest: int) -> None:
    vocabulary = _with(DIGITS)
    numbers = {"type": "integer", "minimum": 0, "maximum": 999}
    schema = {"type": "array", "uniqueItems": True, "items": numbers, "minItems": fewest}
    matcher = mw.compile(mw.JsonSchema(schema, whitespace="compact"), vocabulary).matcher()
    left = [5, 42, 307, 308, 30, 990]
    came = [number for number in range(1000) if number not in left]
    random.Random(2).shuffle(came)
    assert matcher.accept_bytes(("[" + "".join(f"{number}," for number in came)).encode())
    for read in ("", "3", "30", "4", "99", "5"):
        other = matcher.fork()
        assert other.accept_bytes(read.encode())
        found = _allowed(other, vocabulary)
        for token, digits in enumerate(DIGITS, 256):
            assert (token in found) == any(str(number).startswith(read + digits) for number in left), (
                read,
                digits,
            )
        # It ends here if it did not come.
        assert (ord(",") in found) == (read in {str(number) for number in left}), read


def test_a_mask_at_the_start_of_a_number_searches_nothing() -> None:
    vocabulary = _with(DIGITS)
    grammar = mw.compile(
        mw.JsonSchema({"type": "array", "uniqueItems": True, "items": {"type": "integer"}}), vocabulary
    )
    matcher = grammar.matcher()
    rng = random.Random(3)
    numbers = {rng.randrange(10**4, 10**5) for _ in range(6000)}
    assert matcher.accept_bytes(("[" + ", ".join(map(str, numbers)) + ", ").encode())
    states = grammar.statistics["tracker_states"]
    found = _allowed(matcher, vocabulary)
    # Three for each token that is tried; a search makes as many again.
    assert 0 < grammar.statistics["tracker_states"] - states < 4000
    assert {token for token, digits in enumerate(DIGITS, 256) if digits[0] != "0"} <= found
