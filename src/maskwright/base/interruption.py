"""A deadline for code that never looks at the clock: the package lark, which reads what strangers write.

An exception is raised in the thread that runs it, between two of its steps, again and again until it is stopped.  This module is
compiled: its own functions have no steps at which one could come, when nobody is there to catch it any more.
"""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import Any, TypeVar

from maskwright.base.deadline import Cancellation, cancellation_of_thread, check_time_now, ends_at

_T = TypeVar("_T")
_AGAIN = 0.05
"""Seconds."""

# Two functions that are not compiled: what a call is run by, which is found on the stack, and a place to wait for an exception.
_STEPS: dict[str, Any] = {}
exec(
    compile(
        "def run(call):\n    return call()\n\ndef wait():\n    while True:\n        pass\n", __file__, "exec"
    ),
    _STEPS,
)
_run: Any = _STEPS["run"]
_wait: Any = _STEPS["wait"]


class _Late(BaseException):
    """Raised between two lines of a call that is late."""


class _Watch(threading.Thread):
    """Raises ``_Late`` in the thread that made it, once started and as soon as a time has come or its work is cancelled, and until it is told to
    stop: some of what a program does swallows exceptions, such as calls by the garbage collector."""

    def __init__(self, end: float, cancellation: Cancellation | None) -> None:
        super().__init__(daemon=True)
        self.watched = ctypes.c_ulong(threading.get_ident())
        self.end = end
        self.cancellation = cancellation
        self.lock = threading.Lock()
        # Held until the call is over.
        self.running = threading.Lock()
        self.running.acquire()
        self.over = self.fired = False

    def run(self) -> None:
        while not self.running.acquire(timeout=self.wait()):
            if not self.is_late():
                continue
            with self.lock:
                if not self.over and not _is_swallowing(self.watched.value):
                    self.fired = True
                    _raise_in(self.watched)

    def wait(self) -> float:
        left = self.end - monotonic()
        if left <= 0:
            return _AGAIN
        return left if self.cancellation is None else min(left, _AGAIN)

    def is_late(self) -> bool:
        return monotonic() >= self.end or (self.cancellation is not None and self.cancellation.is_set)

    def stop(self) -> None:
        """To be called by the thread that made it: from now on, nothing comes any more."""
        with self.lock:
            self.over = True
            fired = self.fired
        self.running.release()
        if fired:
            # The last one may be on its way, or was swallowed.  Taken back, it would leave the interpreter's mark that one is on its
            # way, with which Python before 3.13 looks at every step for what is not there, and for ever where steps are traced.
            try:
                if _raise_in(self.watched):
                    _wait()
            except _Late:
                pass


def _is_swallowing(thread: int) -> bool:
    """Whether a thread is where the interpreter drops what is raised, and prints that it did: in a finalizer, or what is called for weak
    references or by the garbage collector."""
    frame = sys._current_frames().get(thread)
    called = [getattr(each, "__code__", None) for each in gc.callbacks]
    while frame is not None and frame.f_code is not _run.__code__:
        module = frame.f_globals.get("__name__")
        if (
            frame.f_code in called
            or frame.f_code.co_name == "__del__"
            or module in ("weakref", "_weakrefset")
        ):
            return True
        frame = frame.f_back
    return False


def _raise_in(thread: ctypes.c_ulong) -> bool:
    return bool(ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(_Late)))


def within_time(call: Callable[[], _T]) -> _T:
    """What a call of Python code returns, or ``LimitError`` (max_seconds) when the deadline of this thread is over, or
    ``Cancelled``.

    The call ends wherever it is, so it must change nothing that outlives it.
    """
    end, cancellation = ends_at(), cancellation_of_thread()
    if end == inf and cancellation is None:
        return call()
    check_time_now()
    watch = _Watch(end, cancellation)
    try:
        try:
            # It may be late before it has returned.
            watch.start()
            returned: _T = _run(call)
            return returned
        finally:
            watch.stop()
    except _Late:
        check_time_now()
        raise
