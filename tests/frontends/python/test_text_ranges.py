"""Ranges as regular expressions: exactly the texts between the bounds, by comparison."""

from __future__ import annotations

import datetime
import random
import re

import pytest

from maskwright.frontends.python.ranges import at_least, at_most, between, integers
from maskwright.frontends.python.times import duration_pattern


def test_integers() -> None:
    rng = random.Random(1)
    for _ in range(300):
        low, high = sorted(rng.randint(-1200, 1200) for _ in range(2))
        both, above, below = (re.compile(str(integers(*b))) for b in ((low, high), (low, None), (None, high)))
        for number in {low - 1, low, high, high + 1, 0, 1, -1, *rng.sample(range(-2000, 2000), 40)}:
            text = str(number)
            assert bool(both.fullmatch(text)) == (low <= number <= high), (low, high, number)
            assert bool(above.fullmatch(text)) == (low <= number)
            assert bool(below.fullmatch(text)) == (number <= high)
        assert not both.fullmatch("-0") and not both.fullmatch("00")
    assert integers(3, 2) is None
    assert re.fullmatch(str(integers(None, None)), "-" + "9" * 40)


def test_dates() -> None:
    rng = random.Random(2)
    days = [datetime.date.fromordinal(rng.randint(1, 3_000_000)).isoformat() for _ in range(60)]
    for low, high in zip(days, reversed(days), strict=True):
        low, high = min(low, high), max(low, high)
        patterns = [between(low, high), at_least(low), at_most(high)]
        for day in [*days, low, high]:
            expected = [low <= day <= high, low <= day, day <= high]
            assert [bool(re.fullmatch(p, day)) for p in patterns] == expected, (low, high, day)


@pytest.mark.parametrize("seed", range(20))
def test_durations(seed: int) -> None:
    rng = random.Random(seed)

    def any_duration() -> datetime.timedelta:
        return datetime.timedelta(days=rng.randint(-3, 12), seconds=rng.randint(0, 86_399))

    low, high = sorted((any_duration(), any_duration()))
    pattern = re.compile(str(duration_pattern(low, high)))
    for duration in [low, high, *(any_duration() for _ in range(60))]:
        size = abs(duration)
        minutes, seconds = divmod(size.seconds, 60)
        text = f"{'-' * (duration < size)}P{size.days}DT{minutes // 60:02}H{minutes % 60:02}M{seconds:02}S"
        assert bool(pattern.fullmatch(text)) == (low <= duration <= high), (low, high, text)
    assert duration_pattern(high, low) is None or low == high
