"""Whatever number is written, readers that keep numbers as doubles find it: neither infinite, nor zero by underflow."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from test_numbers import matcher, sample

import maskwright as mw
from maskwright.frontends.json_schema.texts.lexemes import number_lexeme
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regular.dfa import minimal_dfa

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
SCHEMAS: list[Any] = [
    True,
    {"type": "number"},
    {"type": "integer"},
    {"type": "number", "minimum": 5},
    {"type": "number", "exclusiveMinimum": 0},
    {"type": "number", "multipleOf": 0.5},
    {"type": "number", "not": {"const": 3}},
]
INSIDE = ["1e308", "1.7976931348623157e308", "1.7976931348623157E+308", "1e100", "12345e30", "1e+022"]
OUTSIDE = [
    "1e400",
    "1e999",
    "1.8e308",
    "1.7976931348623158e308",
    "10e308",
    "0.1e-400",
    "1e-324",
    "2e-324",
    "1e-999",
]


@pytest.mark.parametrize("schema", SCHEMAS)
@pytest.mark.parametrize("sign", ["", "-"])
def test_nothing_beyond_doubles(schema: Any, sign: str) -> None:
    compiled = mw.compile_json_schema(schema, VOCABULARY)
    for text in OUTSIDE:
        read = compiled.matcher()
        assert not (read.accept_bytes((sign + text).encode()) and read.is_accepting), text


@pytest.mark.parametrize("digits", [1, 40, 250])
def test_numbers_of_any_value(digits: int) -> None:
    language = number_lexeme(digits, False).regular
    matches = matcher(language)
    if digits >= 40:
        assert all(
            map(matches, [*INSIDE, "5e-324", "123.5e-7", "0.001E99", "0e999", "0.0E-999", "9" * 40 + "e99"])
        )
    assert not any(map(matches, OUTSIDE))
    rng = random.Random(digits)
    for _ in range(500):
        text = sample(language, rng)
        value = float(text)
        assert abs(value) < float("inf"), text
        assert value != 0 or not Decimal(text), text


def test_the_automaton_stays_small() -> None:
    assert len(minimal_dfa(number_lexeme(40, False).regular, DEFAULT_LIMITS)) < 400
