"""Sets of numbers -> the regular language of their texts.

A set is given by bounds, divisors and single numbers; everything is exact.  Its texts are signs
before magnitudes: ``texts`` writes those between bounds, ``multiples`` those of divisors.

Every text denotes a number of the set.  Plain decimals are complete up to the digits that texts
may have.  With constraints, exponents are written in scientific form only, and only where the
constraints leave numbers that some printer writes with an exponent (``has_scientific``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import TypeAlias

from maskwright.base.deadline import in_time
from maskwright.frontends.json_schema.numbers.bounds import (
    Bound,
    exact,
    integer_bounds,
    tighter_high,
    tighter_low,
    within,
)
from maskwright.frontends.json_schema.numbers.large_divisors import (
    few_multiples,
    is_large,
    least_multiples,
    up_to_the_next_multiple,
)
from maskwright.frontends.json_schema.numbers.multiples import (
    any_integer,
    common_multiple,
    further_divisor,
    is_multiple,
    large_scientific,
    lowest,
    plain_multiples,
    scientific_integers,
    scientific_is_exact,
    scientific_multiples,
)
from maskwright.frontends.json_schema.numbers.texts import (
    DIGIT,
    EXPONENT,
    GREATEST_PLAIN,
    MINUS,
    NONZERO,
    NUMBER_DIGITS,
    SCIENTIFIC_DIGITS,
    any_magnitude,
    decimals,
    has_scientific,
    naturals,
    plain_values,
    scientific,
    value_magnitudes,
    zero_with_exponent,
    zeros,
)
from maskwright.limits import Limits
from maskwright.regular.determinize import minimal_dfa
from maskwright.regular.dfa import difference, intersect
from maskwright.regular.expressions import NOTHING, Lit, Machine, Regular, alt, cat, repeat
from maskwright.regular.memo import remembered

__all__ = [
    "Bound",
    "exact",
    "integer_bounds",
    "is_multiple",
    "number_regular",
    "plain_integers",
    "tighter_high",
    "tighter_low",
    "value_texts",
    "values_texts",
    "within",
    "written_numbers",
]

_Interval: TypeAlias = tuple[Bound, Bound | None]
"""Magnitudes: from a bound that is not negative to another, or without end."""

_FEW = 20
"""So many multiples, for each product that this saves, are sooner listed than found among those of all sizes."""
_ZERO = Decimal(0)
_ONE = Decimal(1)
_EXPONENTS = (-999, 999)
_LAST_DECADE = Bound(Decimal("1e308"))
_NO_END_ZEROS = cat(
    NONZERO, repeat(cat(Lit("."), repeat(DIGIT, 0, SCIENTIFIC_DIGITS - 1), NONZERO), 0, 1), EXPONENT
)


# Doubles tell numbers of 15 digits apart.
_GREATEST_TOLD = Bound(Decimal(10**15 - 1))
_TOLD_DIGITS = 15
_FEW_REMAINDERS = 500
"""Of a divisor with a fraction, up to which the digits before the point are counted apart from those behind it."""


def written_numbers(
    low: Bound | None,
    high: Bound | None,
    integral: bool | None,
    multiples: tuple[Decimal, ...],
    non_multiples: tuple[Decimal, ...],
    excluded: tuple[Decimal, ...],
    limits: Limits,
    digits: int = NUMBER_DIGITS,
) -> Regular:
    """``number_regular`` of the numbers that validators agree on; of all, where there are no such.

    Most validators hold numbers as doubles.  Of one with more than 15 digits they cannot tell whether it is an integer or a
    multiple, so where that matters, numbers are no longer, except as far as the constraints themselves are.
    """
    constraints = low, high, integral, multiples, non_multiples, excluded, limits
    if multiples or non_multiples or integral is False:
        found = number_regular(*constraints, min(digits, _TOLD_DIGITS), told_apart=True)
        if found != NOTHING:
            return found
    return number_regular(*constraints, digits)


@remembered(1024)
def number_regular(
    low: Bound | None,
    high: Bound | None,
    integral: bool | None,
    multiples: tuple[Decimal, ...],
    non_multiples: tuple[Decimal, ...],
    excluded: tuple[Decimal, ...],
    limits: Limits,
    digits: int = NUMBER_DIGITS,
    told_apart: bool = False,
) -> Regular:
    """The texts of the numbers in a set; NOTHING when there are none.

    The set is the numbers within the bounds that are integers (or are not; None: either),
    multiples of all of ``multiples``, of none of ``non_multiples`` (all above zero), and not ``excluded``.
    There are at most ``digits`` digits before the point, and behind it; more where the constraints have more.

    With divisors, texts in scientific form have at most 17 digits; they are left out for divisors
    with too many remainders (``MAX_SCIENTIFIC_REMAINDERS``), and for numbers that must not be multiples
    of one with more than ``EXACT_REMAINDERS``, unless they are below it.

    With ``told_apart`` and divisors, texts have so many digits in all, and what the divisors have behind their points.

    Of divisors with more than ``limits.max_multiple_remainders`` remainders, see ``large_divisors``.

    Raises ``LimitError`` for common multiples of more than ``limits.max_constant_digits`` digits, and above
    ``limits.max_regex_states`` states.
    """
    divisor = _ONE if integral else None
    if multiples:
        divisor = common_multiple((*multiples, _ONE) if integral else multiples, limits)
    others = (*non_multiples, _ONE) if integral is False else non_multiples
    if divisor is not None:
        if any(is_multiple(divisor, other) for other in others):
            return NOTHING
        others = tuple(common_multiple((divisor, other), limits) for other in others)
        excluded = tuple(value for value in excluded if is_multiple(value, divisor))

    large = [other for other in others if is_large(other, limits)]
    others = tuple(other for other in others if other not in large)

    def magnitudes(intervals: Sequence[_Interval]) -> Regular:
        for other in large:
            intervals = [up_to_the_next_multiple(*interval, other) for interval in intervals]
        intervals = [interval for interval in in_time(intervals) if _is_interval(*interval)]
        if divisor is not None and is_large(divisor, limits):
            values = least_multiples(intervals, divisor, others)
            return value_magnitudes(values, digits) if values else NOTHING
        if not others and divisor is None:
            return alt(*(_any(*interval, digits) for interval in in_time(intervals)))
        if not others and divisor == 1:
            return alt(*(_integers(*interval, digits) for interval in in_time(intervals)))
        return _with_divisors(intervals, divisor, others, limits, digits, told_apart)

    pieces = _pieces(low, high, excluded)
    positive = _not_negative(pieces)
    negative = _not_negative([(_negated(b), _negated(a)) for a, b in in_time(pieces)])
    if positive == negative:
        return cat(repeat(MINUS, 0, 1), magnitudes(positive))
    return alt(magnitudes(positive), cat(MINUS, magnitudes(negative)))


def plain_integers(least: int | None, greatest: int | None, digits: int | None = NUMBER_DIGITS) -> Regular:
    """The integers within bounds (None: none), without fraction and exponent; NOTHING when there are none.

    Without a bound they have ``digits`` digits, or any number of them.
    """
    parts: list[Regular] = []
    if greatest is None or greatest >= 0:
        parts.append(naturals(max(least or 0, 0), greatest, digits))
    if least is None or least <= 0:
        nearest = 0 if greatest is None or greatest >= 0 else -greatest
        parts.append(cat(MINUS, naturals(nearest, None if least is None else -least, digits)))
    return alt(*(part for part in parts if part != NOTHING))


def value_texts(value: Decimal) -> Regular:
    """All spellings of a number: plain with any end zeros, and in scientific form.

    A number without exponent or point (as Python integers are) that no double holds is only spelled
    so: readers would round its other spellings to another number.
    """
    return values_texts((value,))


def values_texts(values: tuple[Decimal, ...], digits: int = NUMBER_DIGITS) -> Regular:
    """``value_texts`` of some numbers, with up to ``digits`` digits behind the point."""
    # Equal decimals may have different exponents.
    return _values_texts(tuple(map(str, in_time(values))), digits)


@remembered(1024)
def _values_texts(written: tuple[str, ...], digits: int) -> Regular:
    values = tuple(map(Decimal, in_time(written)))
    positive = tuple(value for value in in_time(values) if value >= 0)
    negative = tuple(value.copy_abs() for value in in_time(values) if value <= 0)
    return alt(value_magnitudes(positive, digits), cat(MINUS, value_magnitudes(negative, digits)))


def _pieces(
    low: Bound | None, high: Bound | None, excluded: tuple[Decimal, ...]
) -> list[tuple[Bound | None, Bound | None]]:
    """The intervals that single numbers leave of one."""
    cuts = [Bound(value, True) for value in in_time(sorted(set(excluded))) if within(value, low, high)]
    return [(a, b) for a, b in in_time(pairwise([low, *cuts, high])) if a is None or _is_interval(a, b)]


def _is_interval(low: Bound, high: Bound | None) -> bool:
    """Whether there is a number between the bounds."""
    if high is None or low.value < high.value:
        return True
    return low.value == high.value and not low.exclusive and not high.exclusive


def _not_negative(pieces: Sequence[tuple[Bound | None, Bound | None]]) -> list[_Interval]:
    return [
        (Bound(_ZERO) if low is None or low.value < 0 else low, high)
        for low, high in in_time(pieces)
        if high is None or high.value > 0 or (high.value == 0 and not high.exclusive)
    ]


def _negated(bound: Bound | None) -> Bound | None:
    return None if bound is None else Bound(bound.value.copy_negate(), bound.exclusive)


def _has_zero(low: Bound) -> bool:
    return low.value == 0 and not low.exclusive


def _any(low: Bound, high: Bound | None, digits: int) -> Regular:
    if high is None and _has_zero(low):
        return any_magnitude(digits)
    found = [decimals(low, high, digits, digits)]
    if has_scientific(low, high):
        found.append(scientific(low, high, lambda exponent: digits))
        if _has_zero(low):
            found.append(zero_with_exponent(digits))
    return alt(*found)


def _integers(low: Bound, high: Bound | None, digits: int) -> Regular:
    least, greatest = integer_bounds(low, high)
    assert least is not None
    if greatest is None and least <= 1:
        return any_integer(digits, zero=least <= 0)
    if greatest is not None and greatest < least:
        return NOTHING
    longest = max(digits, len(str(least)))
    plain_end = None if greatest is None or greatest >= 10**longest else greatest
    found = [cat(naturals(least, plain_end, digits), repeat(zeros(digits), 0, 1))]
    if has_scientific(Bound(_ONE), high):
        large = int(GREATEST_PLAIN)
        whole = greatest is None and least <= large
        found.append(
            large_scientific(digits) if whole else scientific_integers(max(least, large), greatest, digits)
        )
        if least == 0:
            found.append(zero_with_exponent(digits))
    return alt(*found)


def _with_divisors(
    intervals: Sequence[_Interval],
    divisor: Decimal | None,
    others: tuple[Decimal, ...],
    limits: Limits,
    digits: int,
    told_apart: bool,
) -> Regular:
    """Magnitudes that are multiples of ``divisor`` (None: any) and of none of ``others``."""
    if others:
        # Zero is a multiple of everything.
        intervals = [(low, high) for low, high in intervals if high is None or high.value > 0]
    if not intervals:
        return NOTHING
    found = [_plain_with_divisors(intervals, divisor, others, limits, digits, told_apart)]
    for low, high in intervals:
        least = low if divisor is None else tighter_low(low, Bound(divisor))
        assert least is not None
        high = tighter_high(high, _GREATEST_TOLD) if told_apart else high
        if not has_scientific(least, high):
            continue
        if others:
            found.append(_scientific_non_multiples(low, high, divisor, others, limits, digits))
        else:
            assert divisor is not None
            found.append(_scientific_multiples(low, high, divisor, limits, digits))
            if _has_zero(low):
                found.append(zero_with_exponent(digits))
    return alt(*found)


def _plain_with_divisors(
    intervals: Sequence[_Interval],
    divisor: Decimal | None,
    others: tuple[Decimal, ...],
    limits: Limits,
    digits: int,
    told_apart: bool,
) -> Regular:
    if not others and all(high is not None and high.value == 0 for _, high in intervals):
        return cat(Lit("0"), repeat(zeros(digits), 0, 1))
    if not others and len(intervals) == 1 and _has_zero(intervals[0][0]) and intervals[0][1] is None:
        assert divisor is not None
        remainders, power = lowest(divisor)
        if not told_apart or power >= 0 or remainders == 1:
            return plain_multiples(divisor, digits, limits)
        if remainders > _FEW_REMAINDERS:
            # Both sides of the point together, since counting them apart takes that many automata side by side.
            language = plain_multiples(divisor, digits, limits)
            return replace(language, length=(0, digits + 1)) if isinstance(language, Machine) else language
    used = others if divisor is None else (divisor, *others)
    behind = max(0, *(-lowest(d)[1] for d in used))
    if told_apart and (behind or divisor is None):
        intervals = [
            (low, tighter_high(high, _GREATEST_TOLD) if low.value <= _GREATEST_TOLD.value else high)
            for low, high in intervals
        ]
    precision = max(digits, *(-lowest(d)[1] for d in used))
    # Without bounds on the digits the products are small: the result gets a bound on its length.
    clipped = [_clipped(low, high, digits) for low, high in intervals]
    values = None if divisor is None else few_multiples(clipped, divisor, _FEW * (1 + len(others)))
    if values is not None:
        kept = [value for value in values if not any(is_multiple(value, other) for other in others)]
        language = minimal_dfa(plain_values(kept), limits).to_regular()
    else:
        language = alt(*(decimals(*interval, precision, None) for interval in clipped))
        if divisor is not None:
            language = intersect([language, plain_multiples(divisor, None, limits)], limits)
        for other in others:
            more = other if divisor is None else further_divisor(divisor, other)
            language = difference(language, plain_multiples(more, None, limits), limits)
    if isinstance(language, Machine):
        whole = max(digits, *(low.value.adjusted() + 2 for low, _ in intervals))
        if not told_apart:
            longest = whole + 1 + precision
        else:
            # Digits behind the point count as well, which there are without a divisor, too.
            longest = max(whole + 1, 2 + behind) if behind or divisor is None else whole
        language = replace(language, length=(0, longest))
    return language


def _clipped(low: Bound, high: Bound | None, digits: int) -> _Interval:
    # A bound of many digits has many states, for texts that are too long to be written.
    end = Bound(Decimal(f"1e{max(digits, low.value.adjusted() + 2)}"), True)
    return low, end if high is not None and high.value > end.value else high


@remembered(256)
def _scientific_multiples(
    low: Bound, high: Bound | None, divisor: Decimal, limits: Limits, digits: int
) -> Regular:
    if low.value > divisor or high is not None or divisor > _LAST_DECADE.value:
        parts = [_seventeen_digits(low, high, digits), scientific_multiples(divisor, *_EXPONENTS, digits)]
        return intersect(parts, limits)
    last = scientific_multiples(divisor, 308, 308, digits)
    if last != NOTHING:
        last = intersect([_seventeen_digits(_LAST_DECADE, None, digits), last], limits)
    return alt(scientific_multiples(divisor, -323, 307, digits), last)


@remembered(256)
def _scientific_non_multiples(
    low: Bound,
    high: Bound | None,
    divisor: Decimal | None,
    others: tuple[Decimal, ...],
    limits: Limits,
    digits: int,
) -> Regular:
    exactly = all(map(scientific_is_exact, others))
    if not exactly:
        high = tighter_high(high, Bound(min(others), True))
    language = _seventeen_digits(low, high, digits)
    if divisor is not None:
        language = intersect([language, scientific_multiples(divisor, *_EXPONENTS, digits)], limits)
    if exactly and language != NOTHING:
        language = intersect([language, _NO_END_ZEROS], limits)
        for other in others:
            language = difference(language, scientific_multiples(other, *_EXPONENTS, digits), limits)
    return language


@remembered(256)
def _seventeen_digits(low: Bound, high: Bound | None, digits: int) -> Regular:
    most = min(SCIENTIFIC_DIGITS, digits)
    return scientific(low, high, lambda exponent: most)
