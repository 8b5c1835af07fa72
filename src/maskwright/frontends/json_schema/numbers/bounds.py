"""Bounds of numbers: exact decimals, of any size.

Only comparisons and constructors of ``Decimal`` are exact; its arithmetic rounds, even ``-x`` and
``abs(x)``.  So everything here, and in the modules that use it, calculates with integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

"""Largest power of ten, up or down, in a bound or divisor: beyond those of doubles."""


@dataclass(frozen=True)
class Bound:
    value: Decimal
    exclusive: bool = False


def exact(value: int | float | Decimal) -> Decimal:
    """The decimal that a JSON number denotes; a float stands for the text that Python prints."""
    # Its subclasses print what they like: numpy.float64(2.0).
    return Decimal(float.__repr__(value)) if isinstance(value, float) else Decimal(value)


def tighter_low(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return b if a is None else a
    if a.value == b.value:
        return Bound(a.value, a.exclusive or b.exclusive)
    return max(a, b, key=lambda bound: bound.value)


def tighter_high(a: Bound | None, b: Bound | None) -> Bound | None:
    if a is None or b is None:
        return b if a is None else a
    if a.value == b.value:
        return Bound(a.value, a.exclusive or b.exclusive)
    return min(a, b, key=lambda bound: bound.value)


def within(value: Decimal, low: Bound | None, high: Bound | None) -> bool:
    if low is not None and (value < low.value or (low.exclusive and value == low.value)):
        return False
    return not (high is not None and (value > high.value or (high.exclusive and value == high.value)))


def integer_bounds(low: Bound | None, high: Bound | None) -> tuple[int | None, int | None]:
    """The least and greatest integer within the bounds."""
    least = greatest = None
    if low is not None:
        floor, whole = scaled(low.value, 0)
        least = floor if whole and not low.exclusive else floor + 1
    if high is not None:
        floor, whole = scaled(high.value, 0)
        greatest = floor - 1 if whole and high.exclusive else floor
    return least, greatest


def scaled(value: Decimal, digits: int) -> tuple[int, bool]:
    """The floor of the value times 10 to the power of ``digits``, and whether it is exact."""
    coefficient, exponent = parts(value)
    exponent += digits
    if exponent >= 0:
        return coefficient * 10**exponent, True
    floor, rest = divmod(coefficient, 10**-exponent)
    return floor, rest == 0


def parts(value: Decimal) -> tuple[int, int]:
    """The value as coefficient times a power of ten."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "a number"
    coefficient = int("".join(map(str, digits)))
    return (-coefficient if sign else coefficient), (exponent if value else 0)


def written_digits(value: int | float | Decimal) -> int:
    """How many digits a JSON number has before its point, or behind it if these are more, written plainly.

    For integers of many digits a lower bound, and at least as many as they have but one.
    """
    if isinstance(value, int):
        return 1 if -10 < value < 10 else int(value.bit_length() * 0.30102) + 1
    number = exact(value)
    if not number:
        return 1
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int), "a number"
    return max(number.adjusted() + 1, -exponent, 1)
