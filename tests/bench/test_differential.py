"""What ``bench/differential.py`` makes of tokens that one engine alone allows; the other engine is ours with another schema."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("mistral_common")

import differential
import maskbench_engines
import toys

import maskwright as mw

VOCABULARY = toys.byte_vocabulary()


class Peer:
    """Compiles its own schema, whatever it is given."""

    repeat_limit = 0.0

    def __init__(self, schema: Any, **options: Any) -> None:
        self.bitmask = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
        self.compiled = mw.compile_json_schema(schema, VOCABULARY, **options)

    def compile(self, schema: Any) -> Callable[[], maskbench_engines.Sequence]:
        return lambda: maskbench_engines.OurSequence(self.compiled.matcher(), self.bitmask)


def encode(text: str) -> list[int]:
    return list(text.encode())


def classes(schema: Any, peer: Peer, text: str) -> set[str]:
    sides = differential.Sides(schema, VOCABULARY, encode, peer)
    found = differential.along(sides, encode(text), random.Random(1), Counter())
    return {one.verdict for one in found}


SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}},
    "required": ["a"],
    "additionalProperties": False,
}
OTHER = {
    "type": "object",
    "properties": {"a": {"const": "x"}},
    "required": ["a"],
    "additionalProperties": False,
}


def test_equal_engines_agree() -> None:
    assert classes(SCHEMA, Peer(SCHEMA, **differential.WIDE), '{"a":"x"}') == set()


def test_narrower_engines_refuse_valid_texts() -> None:
    found = classes(SCHEMA, Peer(OTHER, **differential.WIDE), '{"a":"x"}')
    assert found == {"they refuse valid text: ASCII"}
    found = classes(SCHEMA, Peer(SCHEMA, whitespace="flexible"), '{"a":"x"}')
    assert "they refuse valid text: an escape" in found


def test_wider_engines_write_invalid_texts() -> None:
    assert classes(OTHER, Peer(SCHEMA, **differential.WIDE), '{"a":"x"}') == {
        "they write invalid text: const"
    }


def test_choices_of_ours_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differential, "PLACES", 100)
    spaced = Peer(SCHEMA, **{**differential.WIDE, "max_whitespace": 200})
    found = classes(SCHEMA, spaced, "{\n" + " " * 64 + '"a":"x"}')
    assert found == {"our choice: the amount of white space"}
    either = {**SCHEMA, "properties": {"a": {"const": "t"}, "b": {"const": "n"}}, "required": ["a", "b"]}
    compact = Peer(either, property_order="any", whitespace="compact")
    assert "our choice: the order of members" in classes(either, compact, '{"a":"t","b":"n"}')


def test_errors_of_ours_are_named() -> None:
    """Judged by another schema than the one that both compiled."""
    sides = differential.Sides(SCHEMA, VOCABULARY, encode, Peer(OTHER, **differential.WIDE))
    sides.validator = differential.walks.validator_for(OTHER)
    found = {
        one.verdict for one in differential.along(sides, encode('{"a":"x"}'), random.Random(1), Counter())
    }
    assert found == {"OURS: we write invalid text: const"}
    sides = differential.Sides(OTHER, VOCABULARY, encode, Peer(SCHEMA, **differential.WIDE))
    sides.validator = differential.walks.validator_for(SCHEMA)
    found = {
        one.verdict for one in differential.along(sides, encode('{"a":"x"}'), random.Random(1), Counter())
    }
    assert found == {"OURS: we refuse valid text"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a":1,"a":2}', "a key comes twice"),
        (b'"\xff"', "no JSON"),
        (b"NaN", "no JSON"),
        (b'{"a":"z"}', "enum"),
        (b'{"a":"y"}', ""),
    ],
)
def test_verdicts(text: bytes, expected: str) -> None:
    sides = differential.Sides(SCHEMA, VOCABULARY, encode, Peer(SCHEMA))
    assert sides.verdict(text) == expected
