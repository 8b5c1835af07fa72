"""Shorter ways to the multiples of a number say the same as the long ones."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import maskwright as mw
from maskwright.frontends.json_schema.numbers import languages as numbers
from maskwright.frontends.json_schema.numbers.languages import Bound, number_regular
from maskwright.frontends.json_schema.numbers.large_divisors import few_multiples
from maskwright.frontends.json_schema.numbers.multiples import (
    common_multiple,
    further_divisor,
    is_multiple,
    lowest,
    plain_multiples,
)
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regular.dfa import difference, is_empty, matcher
from maskwright.regular.expressions import NOTHING

DIVISORS = st.builds(lambda k, e: Decimal(k).scaleb(e), st.integers(1, 400), st.integers(-3, 3))


@given(DIVISORS, DIVISORS, st.integers(0, 10**6))
def test_a_further_divisor_divides_the_same_multiples(divisor, other, factor):
    multiple = common_multiple((divisor, other), DEFAULT_LIMITS)
    further = further_divisor(divisor, multiple)
    assert lowest(further)[0] <= lowest(multiple)[0]
    for n in range(factor, factor + 12):
        value = divisor * n
        assert is_multiple(value, further) == is_multiple(value, multiple)


@pytest.mark.parametrize(
    ("divisor", "multiple", "further"), [(6, 18, 9), (4004, 12012, 3), (8, 16, 16), ("0.5", "1.5", "0.3")]
)
def test_further_divisors(divisor, multiple, further):
    assert further_divisor(Decimal(divisor), Decimal(multiple)) == Decimal(further)


@given(
    st.lists(st.tuples(st.integers(0, 99), st.integers(0, 60), st.booleans(), st.booleans()), max_size=3),
    DIVISORS,
)
def test_few_multiples_are_those_within(spans, divisor):
    intervals = [(Bound(Decimal(a), x), Bound(Decimal(a + n), y)) for a, n, x, y in spans]
    found = few_multiples(intervals, divisor, 400)
    if found is None:
        assert sum(n / Fraction(divisor) for _, n, _, _ in spans) > 300
        return
    expected = []
    for a, n, x, y in spans:
        factor = -(-a // Fraction(divisor))
        while (value := factor * Fraction(divisor)) <= a + n:
            if not (x and value == a) and not (y and value == a + n):
                expected.append(value)
            factor += 1
    assert [Fraction(value) for value in found] == expected


def test_there_may_be_too_many_multiples():
    assert few_multiples([(Bound(Decimal(0)), None)], Decimal(5), 10**6) is None
    assert few_multiples([(Bound(Decimal(0)), Bound(Decimal(100)))], Decimal(5), 20) is None
    assert len(few_multiples([(Bound(Decimal(0)), Bound(Decimal(100)))], Decimal(5), 21)) == 21


@pytest.mark.parametrize("integral", [None, True])
@pytest.mark.parametrize(
    ("low", "high", "divisor", "other"),
    [(0, 100, "5", None), (-30, 12, "2.5", "5"), (0, 1, "0.25", None), (5, 5, "5", None), (-300, 300, "3333", None),
     (7, 20, "0.5", "1.5"), (1, 99, "12", "8"), (10**45, 10**45 + 9, "3", "7")],
)  # fmt: skip
def test_listed_multiples_are_the_language(monkeypatch, low, high, divisor, other, integral):
    others = () if other is None else (Decimal(other),)
    bounds = Bound(Decimal(low)), Bound(Decimal(high))
    languages = []
    for few in (-1, 1000):
        monkeypatch.setattr(numbers, "_FEW", few)
        number_regular.cache_clear()
        languages.append(
            number_regular(*bounds, integral, (Decimal(divisor),), others, (), DEFAULT_LIMITS, 10)
        )
    number_regular.cache_clear()
    product, listed = languages
    assert is_empty(difference(product, listed)) and is_empty(difference(listed, product))


def test_no_automaton_is_made_for_multiples_outside_of_the_bounds():
    plain_multiples.cache_clear()
    number_regular.cache_clear()
    bounds = Bound(Decimal(0), True), Bound(Decimal(300), True)
    assert number_regular(*bounds, None, (Decimal(3333),), (), (), DEFAULT_LIMITS) == NOTHING
    assert plain_multiples.cache_info().misses == 0


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5, 6, 7, 8, 12, 15, 25, 28, 64, 75, 125, 3333])
def test_remainders_with_the_same_behind_them_are_one_state(k):
    allows = matcher(plain_multiples(Decimal(k), None, DEFAULT_LIMITS), DEFAULT_LIMITS)
    for n in (*range(4 * k + 12), 10**9 + 7, 10**9 * k):
        assert allows(str(n)) == (n % k == 0), n


@pytest.mark.parametrize(
    "schema",
    [
        {"multipleOf": 1.5},
        {"multipleOf": 0.25},
        {"multipleOf": 0.123},
        {"multipleOf": 1.2345},
        {"multipleOf": 1.5, "minimum": 5},
        {"multipleOf": 7.77, "maximum": -3},
        {"not": {"multipleOf": 1.5}},
    ],
)
def test_the_longest_numbers_are_taken_by_a_validator_that_holds_doubles(schema):
    jsonschema_rs = pytest.importorskip("jsonschema_rs")
    schema = {"type": "number", **schema}
    validator = jsonschema_rs.validator_for(schema)
    vocabulary = mw.Vocabulary([bytes([i]) for i in range(256)] + [b""], (256,))
    grammar = mw.compile_json_schema(schema, vocabulary)
    mask = mw.allocate_token_bitmask(1, 257)
    chosen = random.Random(3)
    longest = 0
    for _ in range(60):
        matcher, text, point = grammar.matcher(), "", chosen.randrange(1, 20)
        while len(text) < 60:
            matcher.fill_next_token_bitmask(mask, 0)
            allowed = [i for i in range(257) if mask[0, i // 32] >> (i % 32) & 1]
            digits = [i for i in allowed if 48 <= i < 58]
            if ord(".") in allowed and (len(text) >= point or not digits):
                token = ord(".")
            elif digits:
                token = chosen.choice(digits)
            elif 256 in allowed:
                break
            else:
                token = chosen.choice(allowed)
            assert matcher.accept_token(token)
            text += chr(token)
        assert validator.is_valid(json.loads(text)), text
        if "." not in text:
            longest = max(longest, len(text.lstrip("-")))
    assert longest in {0, 15, 16}


@pytest.mark.parametrize(("divisor", "digits"), [("7", 3), ("70", 3), ("0.7", 2), ("0.07", 3), ("0.001", 2)])
def test_multiples_have_at_most_so_many_digits(divisor, digits):
    # Of fractions, those before the point and behind it together.
    reads = matcher(plain_multiples(Decimal(divisor), digits, DEFAULT_LIMITS))
    places = max(-Decimal(divisor).as_tuple().exponent, 0)
    refused = 0
    for n in (*range(1_000), *range(1_000, 2_000_000, 199)):
        text = f"{Decimal(divisor) * n:f}"
        if Decimal(divisor).normalize().as_tuple().digits == (1,) or not places:
            fits = len(text.partition(".")[0]) <= digits
        else:
            fits = len(text) <= digits + 1 + max(digits, places)
        refused += not fits
        assert reads(text) == fits, text
    assert refused


def test_very_many_remainders_are_a_limit_before_they_are_made():
    few = mw.Limits(max_regex_states=1_000)
    with pytest.raises(mw.LimitError, match="max_regex_states") as caught:
        plain_multiples(Decimal("0.00997"), 20, few)
    # So many before equal ones are one: there may be too many to make.
    assert caught.value.given == 3 + 7 * 997


@pytest.mark.parametrize("negation", [{"multipleOf": 2}, {"multipleOf": 7}, {"type": "integer"}])
def test_numbers_that_are_told_apart_have_fifteen_digits(negation):
    """Doubles hold all of these; of integers with 16, some are read as the multiple beside them."""
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    grammar = mw.compile_json_schema({"type": "number", "not": negation}, vocabulary)

    def takes(text):
        matcher = grammar.matcher()
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting

    for text in ("1.62816372553801", "99999999999999.9", "-12345678901234.5", "0.12345678901234"):
        assert takes(text), text
    assert takes("999999999999997") == (negation != {"type": "integer"})
    for text in (
        "9007199254740993",
        "9999999999999999",
        "-9999999999999999",
        "999999999999999.9",
        "1.628163725538019",
    ):
        assert not takes(text), text
