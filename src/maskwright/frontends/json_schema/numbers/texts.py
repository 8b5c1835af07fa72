"""The texts of JSON numbers (RFC 8259) between bounds, as regular languages.

Everything here is about magnitudes: texts without a sign, bounds that are not negative.
A magnitude is written as a plain decimal, or in scientific form: one digit before the point
(not 0, but for zero itself) and an exponent.  ``digits`` bounds the digits before the point and those behind
it, ``MAX_EXPONENT_DIGITS`` those of the exponent, so that a model cannot write digits for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import lru_cache

from maskwright.base.deadline import check_time
from maskwright.frontends.json_schema.numbers.bounds import Bound, scaled
from maskwright.regular.expressions import (
    EPSILON,
    NOTHING,
    Lit,
    Machine,
    Regular,
    alt,
    cat,
    chars,
    one_of,
    repeat,
)

NUMBER_DIGITS = 40
"""Enough for integers of 128 bits, and for any number that a double prints as without exponent."""
MAX_EXPONENT_DIGITS = 3
SCIENTIFIC_DIGITS = 16
"""Fraction digits of an integer in scientific form: a double needs 16 (IEEE 754, binary64)."""

DIGIT = one_of("0123456789")
NONZERO = one_of("123456789")
ZERO = one_of("0")
MINUS = Lit("-")
EXPONENT_MARK = one_of("eE")
_PLUS = repeat(Lit("+"), 0, 1)

EXPONENT = cat(EXPONENT_MARK, repeat(one_of("+-"), 0, 1), repeat(DIGIT, 1, MAX_EXPONENT_DIGITS))

# Of up to two digits, or three that begin with a zero.
_ANY_EXPONENT = cat(
    EXPONENT_MARK, repeat(one_of("+-"), 0, 1), alt(repeat(DIGIT, 1, 2), cat(ZERO, repeat(DIGIT, 2, 2)))
)
_DIGITS_BEFORE_EXPONENT = 200

LEAST_DOUBLE = Decimal("5e-324")
GREATEST_DOUBLE = Decimal("1.7976931348623157e308")
_FEW_DIGITS = 3
_GREATEST_EXPONENT = 10**MAX_EXPONENT_DIGITS - 1
_LONGEST_PLAIN = 400
_LEAST_SCIENTIFIC = Decimal("1e-4")
GREATEST_PLAIN = Decimal("1e15")


def has_scientific(low: Bound, high: Bound | None) -> bool:
    """Whether some printer may write a magnitude between these with an exponent.

    JavaScript begins at 1e21 and below 1e-6, Go as well, Python at 1e16 and below 1e-4,
    .NET at 1e15: from 1e-4 to 1e15 numbers are plain.  Zero is plain.
    """
    if high is None or high.value >= GREATEST_PLAIN:
        return True
    return high.value != 0 and low.value < _LEAST_SCIENTIFIC


@lru_cache(maxsize=64)
def natural(digits: int | None) -> Regular:
    """A whole number of up to so many digits (None: of any size)."""
    return alt(Lit("0"), cat(NONZERO, repeat(DIGIT, 0, None if digits is None else digits - 1)))


@lru_cache(maxsize=64)
def zeros(digits: int | None) -> Regular:
    """A point and zeros."""
    return cat(Lit("."), repeat(ZERO, 1, digits))


@lru_cache(maxsize=64)
def any_magnitude(digits: int) -> Regular:
    """All magnitudes that doubles hold, and plain ones of so many digits.

    With the exponents of ``_ANY_EXPONENT``, whatever digits there are stay within doubles; larger ones are written in
    scientific form.
    """
    few = min(digits, _DIGITS_BEFORE_EXPONENT)
    parts = [cat(_decimal(few), repeat(_ANY_EXPONENT, 0, 1)), zero_with_exponent(digits)]
    if few < digits:
        parts.append(_decimal(digits))
    beyond = cat(EXPONENT_MARK, alt(exponents(100, 307), exponents(-323, -100)))
    parts.append(cat(decimals(_ONE, _TEN, digits, 1), beyond))
    # What is left: where doubles end.
    parts.append(scientific(Bound(LEAST_DOUBLE), Bound(Decimal("1e-323"), True), lambda _: digits))
    parts.append(scientific(Bound(Decimal("1e308")), None, lambda _: digits))
    return alt(*parts)


def _decimal(digits: int) -> Regular:
    return cat(natural(digits), repeat(cat(Lit("."), repeat(DIGIT, 1, digits)), 0, 1))


@lru_cache(maxsize=64)
def zero_with_exponent(digits: int) -> Regular:
    return cat(Lit("0"), repeat(zeros(digits), 0, 1), EXPONENT)


# --- whole numbers --------------------------------------------------------------------------


def naturals(low: int, high: int | None, digits: int | None) -> Regular:
    """low..high without leading zeros (high None: of so many digits, or of any size)."""
    first = str(low)
    if high is None:
        longest = None if digits is None else max(digits, len(first))
        last = "9" * len(first)
    else:
        if low > high:
            return NOTHING
        last = str(high)
        longest = len(last)
    if high is not None and len(first) == len(last):
        return _same_length(first, last)
    found: list[Regular] = []
    # Whole lengths are one alternative: those between the shortest and the longest, or more.
    least, most = len(first), longest
    if low > 1 and first.strip("0") != "1":
        found.append(_same_length(first, "9" * len(first)))
        least += 1
    elif low == 0:
        found.append(Lit("0"))
    if high is not None and last.strip("9"):
        found.append(_same_length("1" + "0" * (len(last) - 1), last))
        most = len(last) - 1
    if most is None or least <= most:
        found.append(cat(NONZERO, repeat(DIGIT, least - 1, None if most is None else most - 1)))
    return alt(*found)


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
        return cat(Lit(prefix), _digits(int(low), int(high)))
    if rest > _FEW_DIGITS:
        return cat(Lit(prefix), _long_same_length(low, high))
    first, last = int(low[0]), int(high[0])
    found: list[Regular] = []
    if low[1:].strip("0"):
        found.append(cat(Lit(low[0]), _same_length(low[1:], "9" * rest)))
        first += 1
    if high[1:].strip("9"):
        found.append(cat(Lit(high[0]), _same_length("0" * rest, high[1:])))
        last -= 1
    if first <= last:
        found.append(cat(_digits(first, last), repeat(DIGIT, rest, rest)))
    return cat(Lit(prefix), alt(*found))


def _long_same_length(low: str, high: str) -> Regular:
    """Digit strings between two of equal length, different from the first digit on."""
    n = len(low)
    free, below, above = range(n + 1), range(n, 2 * n), range(2 * n, 3 * n)
    edges: list[tuple[int, Regular, int]] = [(i, DIGIT, i + 1) for i in range(1, n)]
    at_low: int | None = 0
    at_high: int | None = 0
    for i in range(n):
        first, last = int(low[i]), int(high[i])
        tight = [(at_low, first + 1, 9), (at_high, 0, last - 1)] if i else [(0, first + 1, last - 1)]
        # Nothing is left to compare with before zeros, or nines.
        still_low = at_low is not None and low[i + 1 :].strip("0") != ""
        still_high = at_high is not None and high[i + 1 :].strip("9") != ""
        tight += [(at_low, first, first), (at_high, last, last)]
        targets = [free[i + 1]] * (len(tight) - 2)
        targets.append(below[i + 1] if still_low else free[i + 1])
        targets.append(above[i + 1] if still_high else free[i + 1])
        for (source, a, b), target in zip(tight, targets, strict=True):
            if source is not None and a <= b:
                edges.append((source, _digits(a, b), target))
        at_low = below[i + 1] if still_low else None
        at_high = above[i + 1] if still_high else None
        if at_low is None and at_high is None:
            break
    return Machine(3 * n, 0, tuple(edges), (n,))


def _digits(low: int, high: int) -> Regular:
    return chars((48 + low, 48 + high))


# --- plain decimals -------------------------------------------------------------------------


def decimals(low: Bound, high: Bound | None, precision: int, digits: int | None) -> Regular:
    """Plain decimals between bounds, told apart up to ``precision`` fraction digits.

    With ``digits`` None, any number of digits may be written; texts with more fraction digits
    than ``precision`` may then be missing.
    """
    low_whole, low_fraction, low_open = _split(low, precision, up=True)
    # The first whole part behind which any fraction may stand.
    least = low_whole + (1 if low_fraction or low_open else 0)
    most = None if digits is None else precision
    if high is not None:
        high_whole, high_fraction, high_open = _split(high, precision, up=False)
        if digits is not None and high_whole >= 10 ** max(digits, len(str(least))):
            high = None
        elif low_whole == high_whole:
            return _with_fraction(low_whole, low_fraction, low_open, high_fraction, high_open, most)
        elif low_whole > high_whole:
            return NOTHING
    found: list[Regular] = []
    if least > low_whole:
        found.append(_with_fraction(low_whole, low_fraction, low_open, None, False, most))
    whole = naturals(least, None if high is None else high_whole - 1, digits)
    found.append(cat(whole, repeat(cat(Lit("."), _repeat(DIGIT, 1, most)), 0, 1)))
    if high is not None:
        found.append(_with_fraction(high_whole, "", False, high_fraction, high_open, most))
    return alt(*found)


def _split(bound: Bound, precision: int, up: bool) -> tuple[int, str, bool]:
    """A bound's whole part, its fraction's digits without end zeros, and whether it is exclusive."""
    units, is_exact = scaled(bound.value, precision)
    if up and not is_exact:
        units += 1
    whole, fraction = divmod(units, 10**precision)
    return whole, str(fraction).zfill(precision).rstrip("0"), bound.exclusive and is_exact


def _with_fraction(
    whole: int, low: str, low_open: bool, high: str | None, high_open: bool, most: int | None
) -> Regular:
    zero, digits = _fractions(low if low or low_open else None, low_open, high, high_open, most)
    return cat(Lit(str(whole)), alt(EPSILON if zero else NOTHING, cat(Lit("."), digits)))


def _fractions(
    low: str | None, low_open: bool, high: str | None, high_open: bool, most: int | None
) -> tuple[bool, Regular]:
    """Fractions between two, given by their digits without end zeros (None: no bound).

    Returns whether no digits at all are within, and the non-empty digit strings that are.
    """
    if high == "":
        # Only zeros are left, and only if zero is allowed.
        if high_open or low is not None:
            return False, NOTHING
        return True, _repeat(ZERO, 1, most)
    if low is None and high is None:
        return True, _repeat(DIGIT, 1, most)
    if most is not None and most <= 0:
        return low is None, NOTHING
    if not low and low is not None and high is None:
        return False, _some_nonzero(most)
    first = int(low[0]) if low else 0
    last = int(high[0]) if high is not None else 9
    if first > last:
        return low is None, NOTHING
    if len(high or low or "") > _FEW_DIGITS and (low is None or high is None):
        return low is None, _long_fractions(low, low_open, high, high_open, most)
    rest = None if most is None else most - 1
    below = None if low is None or (len(low) == 1 and not low_open) else low[1:]
    above = None if high is None else high[1:]
    if low is not None and high is not None and first == last:
        return False, _then(first, _fractions(below, low_open, above, high_open, rest))
    found: list[Regular] = []
    if below is not None:
        found.append(_then(first, _fractions(below, low_open, None, False, rest)))
        first += 1
    if above is not None:
        found.append(_then(last, _fractions(None, False, above, high_open, rest)))
        last -= 1
    if first <= last:
        found.append(cat(_digits(first, last), _repeat(DIGIT, 0, rest)))
    return low is None, alt(*found)


def _long_fractions(
    low: str | None, low_open: bool, high: str | None, high_open: bool, most: int | None
) -> Regular:
    """``_fractions`` with one bound, whose digits lead through a row of states."""
    digits = (low if high is None else high) or ""
    n = len(digits)
    free = n + 1
    edges: list[tuple[int, Regular, int]] = [(free, DIGIT, free)]
    for i, digit in enumerate(map(int, digits)):
        edges.append((i, _digits(digit, digit), i + 1))
        first, last = (digit + 1, 9) if high is None else (0, digit - 1)
        if first <= last:
            edges.append((i, _digits(first, last), free))
    accepts = [free]
    if high is not None:
        accepts += range(1, n)
        if not high_open:
            accepts.append(n)
            edges.append((n, ZERO, n))
    elif low_open:
        edges += [(n, ZERO, n), (n, NONZERO, free)]
    else:
        accepts.append(n)
        edges.append((n, DIGIT, free))
    return Machine(n + 2, 0, tuple(edges), tuple(accepts), None if most is None else (0, most))


def _then(digit: int, tails: tuple[bool, Regular]) -> Regular:
    stop, digits = tails
    return cat(Lit(str(digit)), alt(EPSILON if stop else NOTHING, digits))


def _some_nonzero(most: int | None) -> Regular:
    edges = ((0, ZERO, 0), (0, NONZERO, 1), (1, DIGIT, 1))
    return Machine(2, 0, edges, (1,), None if most is None else (0, most))


def _repeat(body: Regular, low: int, high: int | None) -> Regular:
    return NOTHING if high is not None and low > high else repeat(body, low, high)


# --- scientific form ------------------------------------------------------------------------


def exponents(low: int, high: int) -> Regular:
    """The exponents low..high, of two digits or as short as can be; NOTHING when there are none."""
    found = []
    if high >= 0 and low <= high:
        found.append(cat(_PLUS, _exponent_digits(max(low, 0), high)))
    if low < 0 and low <= high:
        found.append(cat(MINUS, _exponent_digits(max(-high, 1), -low)))
    return alt(*found)


def _exponent_digits(low: int, high: int) -> Regular:
    found: list[Regular] = []
    if low <= 9:
        found.append(cat(repeat(ZERO, 0, 1), _digits(low, min(high, 9))))
    if high >= 10:
        found.append(naturals(max(low, 10), high, None))
    return alt(*found)


def scientific(
    low: Bound,
    high: Bound | None,
    most: Callable[[int], int],
    decades: Callable[[int, int], Regular] | None = None,
) -> Regular:
    """Magnitudes above zero between bounds, in scientific form; NOTHING when there are none.

    Without a bound they end where doubles do, so that no reader sees zero or infinity.
    ``most`` says how many fraction digits an exponent may have, ``decades`` what is written with
    the exponents between two: where the bounds have theirs, and between these.
    """
    low, high = positive_bounds(low, high)
    if low.value > high.value:
        return NOTHING
    first, last = low.value.adjusted(), high.value.adjusted()
    low_digits, high_digits = (Bound(_significand(b.value), b.exclusive) for b in (low, high))
    if first == last:
        return _times_power(decimals(low_digits, high_digits, most(first), 1), first, first)
    found = []
    if low_digits.value != 1 or low.exclusive:
        found.append(_times_power(decimals(low_digits, _TEN, most(first), 1), first, first))
        first += 1
    if first < last:
        whole = decades or (lambda a, b: _times_power(decimals(_ONE, _TEN, most(a), 1), a, b))
        found.append(whole(first, last - 1))
    found.append(_times_power(decimals(_ONE, high_digits, most(last), 1), last, last))
    return alt(*found)


def positive_bounds(low: Bound, high: Bound | None) -> tuple[Bound, Bound]:
    """The bounds of scientific form; where one is missing, that of doubles (or of exponents)."""
    if low.value == 0:
        tiny = high is not None and high.value <= LEAST_DOUBLE
        low = Bound(Decimal(f"1e-{_GREATEST_EXPONENT}")) if tiny else Bound(LEAST_DOUBLE)
    if high is None:
        huge = low.value >= GREATEST_DOUBLE
        high = Bound(Decimal(f"1e{_GREATEST_EXPONENT + 1}"), True) if huge else Bound(GREATEST_DOUBLE)
    return low, high


_ONE = Bound(Decimal(1))
_TEN = Bound(Decimal(10), True)


def _significand(value: Decimal) -> Decimal:
    digits = value.as_tuple().digits
    return Decimal((0, digits, 1 - len(digits)))


def _times_power(mantissas: Regular, low: int, high: int) -> Regular:
    return cat(mantissas, EXPONENT_MARK, exponents(low, high))


# --- single values --------------------------------------------------------------------------


def plain_values(values: Sequence[Decimal]) -> Regular:
    """The plain spellings of some magnitudes, with any number of end zeros."""
    integers: list[Regular] = []
    fractions: list[Regular] = []
    for value in values:
        whole, fraction = _plain(value)
        if fraction:
            fractions.append(Lit(f"{whole}.{fraction}"))
        else:
            integers.append(Lit(whole))
    return alt(
        cat(alt(*integers), repeat(zeros(None), 0, 1)),
        cat(alt(*fractions), repeat(ZERO, 0, None)),
    )


def _plain(value: Decimal) -> tuple[str, str]:
    """The digits before the point, and those behind it without end zeros."""
    whole, _, fraction = format(value, "f").partition(".")
    return whole, fraction.rstrip("0")


def value_magnitudes(values: tuple[Decimal, ...], digits: int) -> Regular:
    """All spellings of some magnitudes: plain with any end zeros, and in scientific form."""
    integers: list[Regular] = []
    exact_integers: list[Regular] = []
    fractions: dict[int, list[Regular]] = {}
    found: list[Regular] = []
    for value in values:
        check_time()
        exponent = value.adjusted()
        if value == 0:
            integers.append(Lit("0"))
            found.append(zero_with_exponent(digits))
            continue
        if value.as_tuple().exponent == 0 and not _is_double(int(value)):
            exact_integers.append(Lit(str(int(value))))
            continue
        significant = "".join(map(str, value.as_tuple().digits)).rstrip("0")
        if exponent - len(significant) + 1 >= -_LONGEST_PLAIN and exponent <= _LONGEST_PLAIN:
            whole, fraction = _plain(value)
            if fraction:
                more = max(digits - len(fraction), 0)
                fractions.setdefault(more, []).append(Lit(f"{whole}.{fraction}"))
            else:
                integers.append(Lit(whole))
        if not -5 < exponent < 7:
            end = repeat(ZERO, 0, max(digits + 1 - len(significant), 0))
            if len(significant) == 1:
                mantissa = cat(Lit(significant), repeat(zeros(digits), 0, 1))
            else:
                mantissa = cat(Lit(f"{significant[0]}.{significant[1:]}"), end)
            found.append(_times_power(mantissa, exponent, exponent))
    if integers:
        found.append(cat(alt(*integers), repeat(zeros(digits), 0, 1)))
    found.extend(cat(alt(*texts), repeat(ZERO, 0, more)) for more, texts in fractions.items())
    return alt(*found, *exact_integers)


def _is_double(value: int) -> bool:
    """Whether a binary64 number holds an integer above zero."""
    return value < 1 << 1024 and (value // (value & -value)).bit_length() <= 53
