"""How many digits numbers may have (``max_number_digits``)."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest
from test_numbers import Numbers, bound, matcher, near, sample, spelled

from maskwright.errors import LimitError
from maskwright.frontends.json_schema.numbers.languages import values_texts


class TestDigits:
    """Numbers of few digits, or of more: the naive set is that of the same texts, cut."""

    SETS = (
        Numbers(),
        Numbers(integral=True),
        Numbers(bound(1), integral=True),
        Numbers(bound("0.5"), bound(200)),
        Numbers(bound(-3), bound("1e9"), integral=True),
        Numbers(multiples=(Decimal("0.5"),)),
        Numbers(multiples=(Decimal(3),)),
        Numbers(integral=False),
        Numbers(non_multiples=(Decimal(2),)),
        Numbers(excluded=(Decimal(5),)),
    )

    @pytest.mark.parametrize("numbers", SETS)
    @pytest.mark.parametrize("digits", [1, 3, 17])
    def test_fewer(self, numbers, digits):
        many, few = matcher(numbers.regular()), matcher(numbers.regular(digits))
        rng = random.Random(digits)
        texts = [text for value in near(numbers, rng) for text in spelled(value, rng)]
        texts += [sample(numbers.regular(digits), rng) for _ in range(50)]
        assert any(map(few, texts))
        for text in texts:
            mantissa = re.split("[eE]", text.lstrip("-"))[0]
            if all(len(part) <= digits for part in mantissa.split(".")):
                assert few(text) == many(text), text
            elif few(text):
                # Products have one bound on the whole length.
                assert numbers.multiples or numbers.non_multiples or numbers.integral is False, text
                assert many(text) and len(mantissa) <= 2 * max(digits, 2) + 1, text

    @pytest.mark.parametrize("numbers", SETS[:3])
    def test_more(self, numbers):
        many = matcher(numbers.regular(100))
        assert many("1" * 100) and not many("1" * 101)
        assert matcher(numbers.regular())("1" * 40) and not matcher(numbers.regular())("1" * 41)

    def test_constraints_have_their_own(self):
        high = matcher(Numbers(bound(12345), integral=True).regular(2))
        assert high("12345") and high("99999") and not high("100000") and not high("1234")
        assert matcher(values_texts((Decimal("1.2345"),), 2))("1.2345")


def test_common_multiples_of_very_many_digits_are_a_limit():
    divisors = tuple(Decimal(10**900 + odd) for odd in (1, 3, 7, 9, 11))
    with pytest.raises(LimitError, match="max_constant_digits"):
        Numbers(multiples=divisors).regular()
