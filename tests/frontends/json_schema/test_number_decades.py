"""Numbers between bounds on both sides of a power of ten."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

import maskwright as mw

BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def takes(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


@pytest.mark.parametrize(
    ("bounds", "text"),
    [
        ({"minimum": 9.5e-6, "maximum": 1e-5}, "71E-6"),
        ({"exclusiveMinimum": 9e-5, "maximum": 1e-4}, "99e-5"),
        ({"minimum": 999e12, "maximum": 1e15}, "45.3e14"),
        ({"maximum": -999e12, "minimum": -1e15}, "-45.3e14"),
        ({"type": "integer", "minimum": 9500000000000000, "maximum": 20000000000000000}, "86E15"),
        ({"not": {"maximum": 9.5e-8}, "maximum": 1e-7}, "55e-8"),
        ({"exclusiveMinimum": 10**40 - 1, "maximum": 10**40}, "9" * 41),
        ({"minimum": 9.5e307}, "95E307"),
    ],
)
def test_none_is_above(bounds: dict[str, Any], text: str) -> None:
    assert not takes(mw.compile_json_schema({"type": "number", **bounds}, BYTES), text)


@pytest.mark.parametrize(("least", "most"), [(999.5, 1500), (99.5, 100), (999, 1000.5)])
def test_none_is_above_where_digits_end(least: float, most: float) -> None:
    schema = {"type": "number", "exclusiveMinimum": least, "maximum": most}
    compiled = mw.compile_json_schema(schema, BYTES, max_number_digits=3)
    assert takes(compiled, str(10 ** len(str(int(least)))))
    assert not takes(compiled, "9999")


def test_what_is_between() -> None:
    rng = random.Random(0)
    taken = 0
    for _ in range(60):
        decade = rng.choice([-320, -30, -8, -6, -1, 0, 1, 2, 15, 16, 21, 40, 306])
        low = Decimal(rng.choice(["9", "9.5", "9.9", "9.99", "99", "95", "8.9", "10"])).scaleb(decade)
        high = Decimal(rng.choice(["10", "10.5", "11", "19", "95", "99", "100"])).scaleb(decade)
        if low > high:
            continue
        exclusive = [rng.random() < 0.5, rng.random() < 0.5]
        names = [
            f"exclusive{name.title()}" if is_exclusive else name
            for name, is_exclusive in zip(("minimum", "maximum"), exclusive, strict=True)
        ]
        try:
            compiled = mw.compile_json_schema(
                f'{{"type": "number", "{names[0]}": {low}, "{names[1]}": {high}}}', BYTES
            )
        except mw.UnsatisfiableError:
            continue
        for _ in range(200):
            digits = rng.choice(["9", "99", "1", "10", "95", str(rng.randrange(1, 1000))])
            if len(digits) > 1 and rng.random() < 0.5:
                digits = f"{digits[0]}.{digits[1:]}"
            text = f"{digits}{rng.choice('eE')}{decade + rng.randint(-2, 2)}"
            if takes(compiled, text):
                value = Fraction(Decimal(text))
                above = value > low or (value == low and not exclusive[0])
                below = value < high or (value == high and not exclusive[1])
                assert above and below, (names, low, high, text)
                taken += 1
    assert taken > 500
