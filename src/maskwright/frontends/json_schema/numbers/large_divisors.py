"""Divisors with more remainders than an automaton can tell apart: their multiples are listed.

Where an interval has few multiples, as in most schemas with such divisors, that is exact.  Elsewhere the first
``MAX_LISTED`` are kept, or, of numbers that must *not* be multiples, those up to the next multiple.
Where bounds leave few, those of any divisor are listed (``few_multiples``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from maskwright.frontends.json_schema.numbers.bounds import (
    Bound,
    parts,
    tighter_high,
    tighter_low,
    within,
)
from maskwright.frontends.json_schema.numbers.multiples import is_multiple, lowest
from maskwright.limits import Limits

_GREATEST_EXPONENT = 400
MAX_LISTED = 1_000
"""So many multiples of a large divisor are written, the least ones."""


def is_large(divisor: Decimal, limits: Limits) -> bool:
    """Whether no automaton is made for the multiples."""
    return lowest(divisor)[0] > limits.max_multiple_remainders


def least_multiples(
    intervals: Iterable[tuple[Bound, Bound | None]], divisor: Decimal, others: Sequence[Decimal]
) -> tuple[Decimal, ...]:
    """The least multiples of a divisor within the intervals (of magnitudes), none of them one of ``others``."""
    found: list[Decimal] = []
    for low, high in intervals:
        least = _floor_factor(low.value, divisor)
        for factor in range(least, least + MAX_LISTED + 1):
            value = _times(divisor, factor)
            if not within(value, None, high) or value.adjusted() > _GREATEST_EXPONENT:
                break
            if within(value, low, None) and not any(is_multiple(value, other) for other in others):
                found.append(value)
    return tuple(found)


def few_multiples(
    intervals: Iterable[tuple[Bound, Bound | None]], divisor: Decimal, most: int
) -> list[Decimal] | None:
    """The multiples of a divisor within the intervals (of magnitudes); None when these are long enough for more than ``most``."""
    found: list[Decimal] = []
    for low, high in intervals:
        if high is None:
            return None
        least, greatest = _floor_factor(low.value, divisor), _floor_factor(high.value, divisor)
        if len(found) + greatest - least >= most:
            return None
        multiples = (_times(divisor, factor) for factor in range(least, greatest + 1))
        found += [value for value in multiples if within(value, low, high)]
    return found


def up_to_the_next_multiple(low: Bound, high: Bound | None, divisor: Decimal) -> tuple[Bound, Bound | None]:
    """The part of an interval (of magnitudes) in which the first number above its end is no multiple."""
    factor = _floor_factor(low.value, divisor)
    before, after = (Bound(_times(divisor, f), True) for f in (factor, factor + 1))
    least = tighter_low(low, before)
    assert least is not None
    return least, tighter_high(high, after)


def _floor_factor(value: Decimal, divisor: Decimal) -> int:
    (a, exponent), (b, other) = parts(value), parts(divisor)
    shift = exponent - other
    return a * int(10**shift) // b if shift >= 0 else a // (b * int(10**-shift))


def _times(divisor: Decimal, factor: int) -> Decimal:
    coefficient, exponent = parts(divisor)
    return Decimal((0, tuple(map(int, str(coefficient * factor))), exponent))
