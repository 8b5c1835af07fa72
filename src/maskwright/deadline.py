"""The time that compiling one source may take.

Compiling is many small steps that call each other deeply.  Those that can be repeated very often call
``check_time``; the time itself belongs to the thread, so that no step has to hand it on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic

from maskwright.errors import LimitError


class _Deadline(threading.local):
    end = inf
    seconds = 0.0


_thread = _Deadline()


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Work that must end within so many seconds (0: no limit), or the fewer that an outer deadline leaves."""
    before = _thread.end, _thread.seconds
    end = monotonic() + seconds if seconds else inf
    if end < _thread.end:
        _thread.end, _thread.seconds = end, seconds
    try:
        yield
    finally:
        _thread.end, _thread.seconds = before


def check_time() -> None:
    """Raises ``LimitError`` (max_seconds) when the deadline of this thread is over, again and again."""
    late = monotonic() - _thread.end
    if late > 0:
        raise LimitError("max_seconds", _thread.seconds + late, _thread.seconds)


def check_time_again(error: LimitError) -> None:
    """To be called where a limit is no error: the deadline remains one."""
    if error.limit == "max_seconds":
        raise error
