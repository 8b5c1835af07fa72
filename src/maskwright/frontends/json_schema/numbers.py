"""Numbers within bounds, as regular languages over their decimal digits.

Bounds are exact: integers, ``Decimal``, or floats read as the decimal that Python prints.
Bounded numbers are written without an exponent, except that a lower bound of zero or less
alone leaves the non-negative numbers unrestricted.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, localcontext

from maskwright.errors import LimitError
from maskwright.frontends.json_schema.lexemes import (
    DIGIT,
    EXPONENT,
    FRACTION,
    MAX_FRACTION_DIGITS,
    MAX_INTEGER_DIGITS,
    MINUS,
    NATURAL,
    NONZERO,
)
from maskwright.regular import EPSILON, NOTHING, Lit, Regular, alt, cat, chars, repeat

_ZERO = Lit("0")


@dataclass(frozen=True, slots=True)
class Bound:
    value: Decimal
    exclusive: bool = False


def exact(value: int | float | Decimal) -> Decimal:
    """The decimal that a JSON number denotes; a float stands for the text that Python prints."""
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
        least = _integral(low.value, ROUND_CEILING)
        if low.exclusive and least == low.value:
            least += 1
    if high is not None:
        greatest = _integral(high.value, ROUND_FLOOR)
        if high.exclusive and greatest == high.value:
            greatest -= 1
    return least, greatest


def _integral(value: Decimal, rounding: str) -> int:
    if value.adjusted() > 10 * MAX_INTEGER_DIGITS:
        raise LimitError("digits of a numeric bound", value.adjusted(), 10 * MAX_INTEGER_DIGITS)
    with localcontext() as context:
        context.prec = 11 * MAX_INTEGER_DIGITS + len(value.as_tuple().digits)
        return int(value.to_integral_value(rounding=rounding))


# --- integers -------------------------------------------------------------------------------


def integer_language(least: int | None, greatest: int | None) -> Regular:
    """Integers in least..greatest (None: unbounded), in decimal; NOTHING when there are none."""
    if least is not None and greatest is not None and least > greatest:
        return NOTHING
    parts = [_naturals(max(least or 0, 0), greatest)] if greatest is None or greatest >= 0 else []
    if least is None or least <= 0:
        below = None if least is None else -least
        parts.append(cat(MINUS, _naturals(0 if greatest is None or greatest >= 0 else -greatest, below)))
    return alt(*parts)


def _naturals(low: int, high: int | None) -> Regular:
    """low..high without leading zeros."""
    if high is None:
        if low == 0:
            return NATURAL
        digits = len(str(low))
        longer = cat(NONZERO, repeat(DIGIT, digits, max(digits, MAX_INTEGER_DIGITS - 1)))
        return alt(_same_length(str(low), "9" * digits), longer)
    if low > high:
        return NOTHING
    parts = []
    start = low
    while start <= high:
        stop = min(high, 10 ** len(str(start)) - 1)
        parts.append(_same_length(str(start), str(stop)))
        start = stop + 1
    return alt(*parts)


def _same_length(low: str, high: str) -> Regular:
    """Digit strings between two of equal length."""
    if low == high:
        return Lit(low)
    common = 0
    while low[common] == high[common]:
        common += 1
    prefix, low, high = low[:common], low[common:], high[common:]
    rest = len(low) - 1
    if rest == 0:
        return cat(Lit(prefix), _digits(low, high))
    first, last = int(low[0]), int(high[0])
    parts = []
    if low[1:].strip("0"):
        parts.append(cat(Lit(low[0]), _same_length(low[1:], "9" * rest)))
        first += 1
    if high[1:].strip("9"):
        parts.append(cat(Lit(high[0]), _same_length("0" * rest, high[1:])))
        last -= 1
    if first <= last:
        parts.append(cat(_digits(str(first), str(last)), repeat(DIGIT, rest, rest)))
    return cat(Lit(prefix), alt(*parts))


def _digits(low: str, high: str) -> Regular:
    return chars((ord(low), ord(high)))


# --- decimals -------------------------------------------------------------------------------


def number_language(low: Bound | None, high: Bound | None) -> Regular:
    """Numbers within the bounds (None: unbounded); NOTHING when there are none."""
    parts = []
    if high is None or high.value >= 0:
        if high is None and (low is None or low.value < 0 or (low.value == 0 and not low.exclusive)):
            parts.append(cat(NATURAL, repeat(FRACTION, 0, 1), repeat(EXPONENT, 0, 1)))
        else:
            parts.append(_decimals(low if low is not None and low.value >= 0 else Bound(Decimal(0)), high))
    if low is None or low.value <= 0:
        if low is None and (high is None or high.value > 0 or (high.value == 0 and not high.exclusive)):
            parts.append(cat(MINUS, NATURAL, repeat(FRACTION, 0, 1), repeat(EXPONENT, 0, 1)))
        else:
            nearest = (
                Bound(-high.value, high.exclusive)
                if high is not None and high.value <= 0
                else Bound(Decimal(0))
            )
            farthest = None if low is None else Bound(-low.value, low.exclusive)
            parts.append(cat(MINUS, _decimals(nearest, farthest)))
    return alt(*(p for p in parts if p != NOTHING))


def _split(value: Decimal) -> tuple[int, str]:
    """The integer part of a non-negative decimal, and its fraction's digits without end zeros."""
    if value.adjusted() > 10 * MAX_INTEGER_DIGITS or value.as_tuple().exponent < -10 * MAX_FRACTION_DIGITS:  # type: ignore[operator]
        raise LimitError("digits of a numeric bound", abs(value.adjusted()), 10 * MAX_INTEGER_DIGITS)
    whole, _, fraction = format(value, "f").partition(".")
    return int(whole), fraction.rstrip("0")


def _decimals(low: Bound, high: Bound | None) -> Regular:
    """Decimals between non-negative bounds: whole part, then perhaps a fraction."""
    low_whole, low_fraction = _split(low.value)
    if high is None:
        return alt(
            cat(_naturals(low_whole + 1, None), repeat(FRACTION, 0, 1)),
            _with_fraction(low_whole, low_fraction, low.exclusive, None, False),
        )
    high_whole, high_fraction = _split(high.value)
    if low_whole == high_whole:
        return _with_fraction(low_whole, low_fraction, low.exclusive, high_fraction, high.exclusive)
    if low_whole > high_whole:
        return NOTHING
    return alt(
        _with_fraction(low_whole, low_fraction, low.exclusive, None, False),
        cat(_naturals(low_whole + 1, high_whole - 1), repeat(FRACTION, 0, 1)),
        _with_fraction(high_whole, "", False, high_fraction, high.exclusive),
    )


def _with_fraction(whole: int, low: str, low_open: bool, high: str | None, high_open: bool) -> Regular:
    empty, digits = _fraction(None if low == "" and not low_open else low, low_open, high, high_open)
    parts = ([EPSILON] if empty else []) + ([] if digits == NOTHING else [cat(Lit("."), digits)])
    return cat(Lit(str(whole)), alt(*parts))


def _fraction(low: str | None, low_open: bool, high: str | None, high_open: bool) -> tuple[bool, Regular]:
    """Fractions between two, given by their digits without end zeros (None: no bound).

    Returns whether no digits at all are within, and the non-empty digit strings that are.
    """
    if high == "":
        # Only zeros are left, and only if zero is allowed.
        if high_open or low is not None:
            return False, NOTHING
        return True, repeat(_ZERO, 1, MAX_FRACTION_DIGITS)
    if high is None and low is None:
        return True, repeat(DIGIT, 1, MAX_FRACTION_DIGITS)
    if high is None and low == "":
        zeros = repeat(_ZERO, 0, MAX_FRACTION_DIGITS)
        return False, cat(zeros, NONZERO, repeat(DIGIT, 0, MAX_FRACTION_DIGITS))
    first = int(low[0]) if low else 0
    last = int(high[0]) if high else 9
    parts: list[Regular] = []
    for digit in range(first, last + 1):
        lower = low[1:] if low and digit == first else ("" if low == "" and digit == 0 else None)
        if lower == "" and not low_open:
            lower = None
        upper = high[1:] if high is not None and digit == last else None
        empty, rest = _fraction(lower, low_open, upper, high_open)
        tail = alt(*([EPSILON] if empty else []), *([] if rest == NOTHING else [rest]))
        if tail != NOTHING:
            parts.append(cat(Lit(str(digit)), tail))
    return low is None, alt(*parts)
