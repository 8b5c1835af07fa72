"""The time that compiling one source may take.

Compiling is many small steps that call each other deeply.  Those that can be repeated very often call
``check_time``; the time itself belongs to the thread, so that no step has to hand it on.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

import cython

from maskwright.errors import LimitError

if not cython.compiled:
    from time import monotonic

    def PyErr_CheckSignals() -> None:
        """Python does it itself."""


class _Deadline(threading.local):
    end = inf
    seconds = 0.0


_thread = _Deadline()
_ends: list[float] = []
"""The deadlines of all threads."""
_TURN_SECONDS: float = 0.001
_turn: float = 0.0
"""When compiled code next lets other threads run."""
_soonest: float = inf
"""Before the first of them there is nothing to look at."""


def _note(ends: list[float]) -> None:
    global _soonest
    _soonest = min(ends, default=inf)


@contextmanager
def deadline(seconds: float) -> Iterator[None]:
    """Work that must end within so many seconds (0: no limit), or the fewer that an outer deadline leaves."""
    before = _thread.end, _thread.seconds
    end = monotonic() + seconds if seconds else inf
    if end < _thread.end:
        _thread.end, _thread.seconds = end, seconds
    _ends.append(_thread.end)
    _note(_ends)
    try:
        yield
    finally:
        _ends.remove(_thread.end)
        _thread.end, _thread.seconds = before
        _note(_ends)


def check_time() -> None:
    """Raises ``LimitError`` (max_seconds) when the deadline of this thread is over, again and again; and what handlers of
    signals raise, such as KeyboardInterrupt: compiled code has no other place for them."""
    global _turn
    PyErr_CheckSignals()
    now: float = monotonic()
    if now > _turn:
        # Whoever waits for the interpreter gets it, as between two lines of Python.
        _turn = now + _TURN_SECONDS
        with cython.nogil:  # type: ignore[attr-defined]
            pass
    if now <= _soonest:
        return
    late = now - _thread.end
    if late > 0:
        raise LimitError("max_seconds", _thread.seconds + late, _thread.seconds)


def ends_at() -> float:
    """When the deadline of this thread is over, by the clock of ``time.monotonic``; infinity: there is none."""
    return _thread.end


def seconds_left() -> float:
    """What the deadline of this thread leaves; 0: there is none.  Raises ``LimitError`` when it is over."""
    check_time()
    return 0.0 if _thread.end == inf else max(_thread.end - monotonic(), 1e-9)


def check_time_again(error: LimitError) -> None:
    """To be called where a limit is no error: the deadline remains one."""
    if error.limit == "max_seconds":
        raise error
