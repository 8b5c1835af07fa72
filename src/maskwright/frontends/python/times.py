"""The dates, times and durations between bounds that pydantic reads, as regular expressions.

Bounds without an offset are compared with the clock as it is written; those with one, with the same moment in UTC.
Below an upper bound, seconds have no fraction.  Every function answers None where nothing lies between the bounds.
"""

from __future__ import annotations

import datetime

from maskwright.frontends.json_schema.texts.formats import PATTERNS
from maskwright.frontends.python.ranges import between, integers

_FRACTION = r"(?:\.[0-9]{1,6})?"
_OFFSET = "(?:[Zz]|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
_CLOCK = "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]"
_NO_LEAP_SECOND = "(?=[^:]*:[^:]*:[0-5])"
_DAY = datetime.timedelta(days=1)
_SECOND = datetime.timedelta(seconds=1)
_ZERO = datetime.timedelta(0)
_MOST_DURATION = 999_998 * _DAY
"""Longer ones serve nobody, and no sum of such has too many days."""


def date_pattern(low: datetime.date | None, high: datetime.date | None) -> str | None:
    """Beside the format ``date``: the days from ``low`` to ``high``."""
    low, high = low or datetime.date.min, high or datetime.date.max
    return None if low > high else f"^{between(low.isoformat(), high.isoformat())}$"


def datetime_pattern(
    low: datetime.datetime | None, high: datetime.datetime | None, *, offset: bool
) -> str | None:
    """Beside the format ``date-time``, or alone where there is no ``offset``: the moments from ``low`` to ``high``.

    Leap seconds are never among them: no ``datetime`` has any.
    """
    fraction = _FRACTION if high is None else ""
    if not offset:
        clock = _clock_range(low, high)
        return None if clock is None else f"^(?={PATTERNS['date']}T{_CLOCK}){clock}{fraction}$"
    if all(bound is None or bound.tzinfo is None for bound in (low, high)):
        clock = _clock_range(low, high)
        return None if clock is None else f"^{_NO_LEAP_SECOND}{clock}{fraction}{_OFFSET}$"
    # An offset moves the clock by less than a day: within the bounds by so much, any will do; nearer, Z alone.
    utc = [None if bound is None else bound.astimezone(datetime.UTC) for bound in (low, high)]
    clock, inside = _clock_range(*utc), _clock_range(_shifted(utc[0], _DAY), _shifted(utc[1], -_DAY))
    if clock is None:
        return None
    branches = [f"{clock}{fraction}Z"] + ([f"{inside}{fraction}{_OFFSET}"] if inside else [])
    return f"^{_NO_LEAP_SECOND}(?:{'|'.join(branches)})$"


def _shifted(moment: datetime.datetime | None, by: datetime.timedelta) -> datetime.datetime | None:
    try:
        return None if moment is None else moment + by
    except OverflowError:
        return moment


def _clock_range(low: datetime.datetime | None, high: datetime.datetime | None) -> str | None:
    first, last = (
        (bound or end).replace(tzinfo=None).isoformat(timespec="seconds")
        for bound, end in ((low, datetime.datetime.min), (high, datetime.datetime.max))
    )
    return None if first > last else between(first, last)


def time_pattern(low: datetime.time | None, high: datetime.time | None, *, offset: bool) -> str | None:
    """The clock times from ``low`` to ``high``, all with an offset or all without."""
    first, last = (
        bound.isoformat("seconds")[:8] for bound in (low or datetime.time.min, high or datetime.time.max)
    )
    fraction = _FRACTION if high is None else ""
    if first > last:
        return None
    return f"^(?={_CLOCK}){between(first, last)}{fraction}{_OFFSET if offset else ''}$"


def duration_pattern(low: datetime.timedelta | None, high: datetime.timedelta | None) -> str | None:
    """The durations from ``low`` to ``high``, as ``PnDTnHnMnS`` with two digits each behind the days."""
    low = -_MOST_DURATION if low is None else low
    high = _MOST_DURATION if high is None else high
    if low > high:
        return None
    branches = []
    if high >= _ZERO:
        branches += _positive(max(low, _ZERO), high)
    if low < _ZERO:
        branches += [f"-{branch}" for branch in _positive(max(-high, _SECOND), -low)]
    return f"^(?:{'|'.join(branches)})$"


def _positive(low: datetime.timedelta, high: datetime.timedelta) -> list[str]:
    if low.days == high.days:
        return [f"P{low.days}D{_time_part(_clock(low), _clock(high))}"]
    days = integers(low.days + 1, high.days - 1)
    return [
        f"P{low.days}D{_time_part(_clock(low), '23:59:59')}",
        *([] if days is None else [f"P{days}D{_time_part('00:00:00', '23:59:59')}"]),
        f"P{high.days}D{_time_part('00:00:00', _clock(high))}",
    ]


def _clock(duration: datetime.timedelta) -> str:
    minutes, seconds = divmod(duration.seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{seconds:02}"


def _time_part(low: str, high: str) -> str:
    def written(clock: str) -> str:
        return "T{}H{}M{}S".format(*clock.split(":"))

    return f"(?=T(?:[01][0-9]|2[0-3])H[0-5][0-9]M[0-5][0-9]S){between(written(low), written(high))}"
