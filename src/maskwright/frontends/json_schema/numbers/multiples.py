"""The texts of the multiples of a number, as automata over remainders.

A divisor is ``k`` times a power of ten, ``k`` not divisible by ten.  A digit leads from remainder
``r`` to ``10 r + digit`` modulo ``k``; the power of ten says how many digits behind the point
count, or how many zeros must end the digits before it.  Magnitudes only, as in ``texts``.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from decimal import Decimal
from functools import lru_cache
from math import gcd, lcm

from maskwright._subsets import reduce
from maskwright.errors import LimitError
from maskwright.frontends.json_schema.numbers.bounds import Bound, parts, written_digits
from maskwright.frontends.json_schema.numbers.texts import (
    DIGIT,
    EXPONENT_MARK,
    GREATEST_PLAIN,
    NONZERO,
    SCIENTIFIC_DIGITS,
    ZERO,
    exponents,
    natural,
    positive_bounds,
    scientific,
    zeros,
)
from maskwright.limits import Limits
from maskwright.regular.determinize import Dfa, alphabet_of
from maskwright.regular.expressions import NOTHING, Lit, Machine, Regular, alt, cat, chars, repeat
from maskwright.regular.memo import remembered

EXACT_REMAINDERS = 32
"""Up to this divisor, scientific form has every multiple of so many digits."""
MAX_SCIENTIFIC_REMAINDERS = 16
"""Up to this divisor, factors 2 and 5 left aside, multiples are also written in scientific form."""
_CHARACTERS = "0123456789."
_ALPHABET = alphabet_of([((ord(c), ord(c)),) for c in _CHARACTERS])
*_DIGITS, _POINT = (_ALPHABET.members(((ord(c), ord(c)),))[0] for c in _CHARACTERS)


def is_multiple(value: Decimal, divisor: Decimal) -> bool:
    """Whether the value is an integer times the divisor (above zero), exactly, at any size."""
    _, digits, exponent = value.as_tuple()
    _, divisor_digits, divisor_exponent = divisor.as_tuple()
    assert isinstance(exponent, int) and isinstance(divisor_exponent, int), "numbers"
    if not value:
        return True
    coefficient, k = (int("".join(map(str, d))) for d in (digits, divisor_digits))
    shift = exponent - divisor_exponent
    if shift >= 0:
        return coefficient * pow(10, shift, k) % k == 0
    return -shift <= len(digits) and coefficient % (k * 10**-shift) == 0


def common_multiple(divisors: tuple[Decimal, ...], limits: Limits) -> Decimal:
    """The number whose multiples are the multiples of all the divisors.

    Raises ``LimitError`` for one of more than ``limits.max_constant_digits`` digits.
    """
    found = [parts(divisor) for divisor in divisors]
    least = min(exponent for _, exponent in found)
    k = lcm(*(coefficient * 10 ** (exponent - least) for coefficient, exponent in found))
    digits = written_digits(k)
    if digits > limits.max_constant_digits:
        raise LimitError("max_constant_digits", digits, limits.max_constant_digits)
    return Decimal((0, tuple(map(int, str(k))), least))


def further_divisor(divisor: Decimal, multiple: Decimal) -> Decimal:
    """A divisor of those multiples of one which a multiple of it divides: of 6 and 18 it is 9.

    Its automaton is smaller, and tells no more apart.  Factors 2 and 5 would count zeros beside all remainders.
    """
    (k, exponent), (more, other) = parts(divisor), parts(multiple)
    least = min(exponent, other)
    more *= 10 ** (other - least)
    factor = more // (k * 10 ** (exponent - least))
    if gcd(factor, 10) > 1:
        return multiple
    # The powers of those primes of which it has more.
    rest = more
    while (shared := gcd(rest, factor)) > 1:
        rest //= shared
    return Decimal((0, tuple(map(int, str(more // rest))), least))


def lowest(divisor: Decimal) -> tuple[int, int]:
    """The divisor as ``k`` times a power of ten, ``k`` not divisible by ten."""
    k, exponent = parts(divisor)
    digits = str(k).rstrip("0")
    return int(digits), exponent + len(str(k)) - len(digits)


# --- plain decimals -------------------------------------------------------------------------


@remembered(256)
def plain_multiples(divisor: Decimal, digits: int | None, limits: Limits) -> Regular:
    """The plain texts of the multiples; ``digits`` None: with any number of digits."""
    k, power = lowest(divisor)
    if power >= 0:
        longest = None if digits is None else digits - power
        whole: Regular = Lit("0")
        if longest is None or longest > 0:
            whole = alt(whole, cat(_positive(k, longest, limits), repeat(ZERO, power, power)))
        return cat(whole, repeat(zeros(digits), 0, 1))
    if k == 1:
        rest = None if digits is None else max(digits + power, 0)
        return cat(
            natural(digits), repeat(cat(Lit("."), repeat(DIGIT, 1, -power), repeat(ZERO, 0, rest)), 0, 1)
        )
    return _decimal(k, -power, digits, limits)


def _positive(k: int, longest: int | None, limits: Limits) -> Regular:
    if k == 1:
        return cat(NONZERO, repeat(DIGIT, 0, None if longest is None else longest - 1))
    # A state for zero, and one for all other remainders that have the same ten behind them: these are neighbours.
    shared = gcd(k, 10)
    states = [1 if r % k == 0 else 2 + 10 * r % k // shared for r in range(k + 9)]
    rows = [dict(zip(_DIGITS[1:], states[1:10], strict=True)), _row(states[:10])]
    rows += [_row(states[first : first + 10]) for first in range(0, k, shared)]
    return _machine(rows, [False, True] + [False] * (k // shared), longest, limits)


def _decimal(k: int, places: int, most: int | None, limits: Limits) -> Regular:
    """Multiples of k / 10**places; the states are the remainders behind each number of digits."""
    count = 3 + (places + 2) * k
    if count > limits.max_regex_states:
        raise LimitError("max_regex_states", count, limits.max_regex_states)
    start, zero, point, digits = 0, 1, 2, [2 + (i + 1) * k for i in range(places + 1)]
    rows: list[dict[int, int]] = [{} for _ in range(count - 1)]
    accepting = [False] * len(rows)
    rows[start] = _row([digits[0] + d % k if d else zero for d in range(10)])
    rows[zero] = {_POINT: point}
    accepting[zero] = True
    for r in range(k):
        after = [(10 * r + d) % k for d in range(10)]
        rows[point + r] = _row([digits[1] + a for a in after])
        rows[digits[0] + r] = _row([digits[0] + a for a in after]) | {_POINT: point + r}
        for place in range(places + 1):
            accepting[digits[place] + r] = r * 10 ** (places - place) % k == 0
            if 0 < place < places:
                rows[digits[place] + r] = _row([digits[place + 1] + a for a in after])
    rows[digits[places]] = {_DIGITS[0]: digits[places]}
    return _machine(rows, accepting, None if most is None else most + 1 + max(most, places), limits)


def _row(targets: list[int]) -> dict[int, int]:
    """Where the ten digits lead."""
    return dict(zip(_DIGITS, targets, strict=True))


def _machine(
    rows: list[dict[int, int]], accepting: list[bool], longest: int | None, limits: Limits
) -> Regular:
    """The language of a deterministic automaton over the minterms; state 0 is the start."""
    table = reduce(_ALPHABET, rows, accepting)
    if len(table) > limits.max_regex_states:
        raise LimitError("max_regex_states", len(table), limits.max_regex_states)
    return Dfa(table).machine(None if longest is None else (0, longest))


# --- scientific form ------------------------------------------------------------------------


def scientific_is_exact(divisor: Decimal) -> bool:
    """Whether ``scientific_multiples`` has every multiple of 17 digits or fewer, without end zeros."""
    k, _ = lowest(divisor)
    return k <= EXACT_REMAINDERS and _without_ten(k) <= MAX_SCIENTIFIC_REMAINDERS


def _without_ten(k: int) -> int:
    """``k`` without its factors 2 and 5."""
    while (shared := gcd(k, 10)) > 1:
        k //= shared
    return k


@remembered(256)
def scientific_multiples(divisor: Decimal, least: int, greatest: int, digits: int) -> Regular:
    """Multiples in scientific form, with exponents from ``least`` to ``greatest``.

    With ``f`` fraction digits, at most ``SCIENTIFIC_DIGITS`` and ``digits``, and the exponent ``e``, the digits are
    followed by e - f - power zeros before the remainder is taken: there is a least exponent for
    each remainder.  A mantissa may end in zeros where the exponent leaves place for them.
    """
    k, power = lowest(divisor)
    odd = _without_ten(k)
    if odd > MAX_SCIENTIFIC_REMAINDERS:
        return NOTHING
    # For each remainder, how many zeros make a multiple of it (None: none do).
    if k <= EXACT_REMAINDERS:
        needs = [next((t for t in range(6) if r * 10**t % k == 0), None) for r in range(k)]
    else:
        # The factors 2 and 5 are all left to zeros.
        zero: int | None = next(t for t in range(10 * k) if 10**t * odd % k == 0)
        k, needs = odd, [zero] + [None] * (odd - 1)
    rows, needs = _merged(k, tuple(needs))
    most = min(SCIENTIFIC_DIGITS, digits)
    return _ScientificMultiples(rows, needs, power, least, greatest, most).machine()


@remembered(256)
def _merged(k: int, needs: tuple[int | None, ...]) -> tuple[list[list[int]], list[int | None]]:
    """The remainders modulo ``k`` that nothing tells apart as one: where digits lead, and the needs."""
    classes = _numbered(needs)
    while True:
        rows = [[classes[(10 * r + digit) % k] for digit in range(10)] for r in range(k)]
        finer = _numbered([(classes[r], *rows[r]) for r in range(k)])
        if max(finer) == max(classes):
            break
        classes = finer
    members = {c: r for r, c in reversed(list(enumerate(classes)))}
    return [rows[members[c]] for c in range(len(members))], [needs[members[c]] for c in range(len(members))]


def _numbered(keys: Sequence[Hashable]) -> list[int]:
    numbers: dict[Hashable, int] = {}
    return [numbers.setdefault(key, len(numbers)) for key in keys]


class _ScientificMultiples:
    """The automaton: states are a class of remainders (0: of zero) and a count of fraction digits."""

    def __init__(
        self, rows: list[list[int]], needs: list[int | None], power: int, least: int, greatest: int, most: int
    ) -> None:
        self.rows, self.needs, self.power, self.least, self.greatest = rows, needs, power, least, greatest
        self.most = most
        self.edges: list[tuple[int, Regular, int]] = []
        self.states: dict[Hashable, int] = {"start": 0, "end": 1}
        self.pending: list[tuple[int, int]] = []
        self.known_steps: dict[tuple[int, int], list[tuple[int, Regular]]] = {}

    def machine(self) -> Regular:
        self.add_digits(0, 0, 1, 0)
        for r, places in self.pending:
            here = self.states[r, places]
            need = self.needs[r]
            if need is not None:
                self.add_exponents(here, max(places + self.power + need, self.least))
            if places == 0:
                point = self.state(("point", r))
                self.edges.append((here, Lit("."), point))
                self.add_digits(point, r, 0, 1)
            elif places < self.most:
                self.add_digits(here, r, 0, places + 1)
        if all(target != 1 for _, _, target in self.edges):
            return NOTHING
        return Machine(len(self.states), 0, tuple(self.edges), (1,))

    def state(self, key: Hashable) -> int:
        return self.states.setdefault(key, len(self.states))

    def add_digits(self, source: int, r: int, first: int, places: int) -> None:
        states = self.states
        for target, label in self.steps(r, first):
            key = target, places
            number = states.get(key)
            if number is None:
                number = states[key] = len(states)
                self.pending.append(key)
            self.edges.append((source, label, number))

    def steps(self, r: int, first: int) -> list[tuple[int, Regular]]:
        """Where digits from ``first`` on lead: the same behind each number of places."""
        found = self.known_steps.get((r, first))
        if found is None:
            together: dict[int, list[tuple[int, int]]] = {}
            for digit in range(first, 10):
                code = ord("0") + digit
                together.setdefault(self.rows[r][digit], []).append((code, code))
            found = [(target, chars(*codes)) for target, codes in together.items()]
            self.known_steps[r, first] = found
        return found

    def add_exponents(self, source: int, low: int) -> None:
        # Negative ones, then those up to the next ten, then the others: the later parts are shared.
        while low <= self.greatest:
            known = ("exponent", low) in self.states
            here = self.state(("exponent", low))
            self.edges.append((source, EXPONENT_MARK, here))
            after = 0 if low < 0 else low + 10 - low % 10 if low < 20 else self.greatest + 1
            if not known:
                self.edges.append((here, exponents(low, min(after - 1, self.greatest)), 1))
            low = after


@remembered(256)
def scientific_integers(low: int, high: int | None, digits: int) -> Regular:
    """Integers in scientific form, above zero; NOTHING when there are none."""
    bounds = positive_bounds(Bound(Decimal(low)), None if high is None else Bound(Decimal(high)))
    return scientific(
        *bounds,
        lambda exponent: min(exponent, SCIENTIFIC_DIGITS, digits),
        lambda least, greatest: scientific_multiples(Decimal(1), least, greatest, digits),
    )


@lru_cache(maxsize=64)
def any_integer(digits: int, zero: bool) -> Regular:
    """The integers that are not negative, or above zero."""
    exponent = cat(EXPONENT_MARK, repeat(Lit("+"), 0, 1), repeat(DIGIT, 1, 2))
    more = cat(repeat(zeros(digits), 0, 1), repeat(exponent, 0, 1))
    whole = natural(digits) if zero else cat(NONZERO, repeat(DIGIT, 0, digits - 1))
    return alt(cat(whole, more), scientific_integers(1, None, digits))


def large_scientific(digits: int) -> Regular:
    """The integers that printers write in scientific form, up to the greatest double."""
    return scientific_integers(int(GREATEST_PLAIN), None, digits)
