"""A deadline for code that never looks at the clock: the package lark, which reads what strangers write."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from math import inf
from time import monotonic
from typing import TypeVar

from maskwright.deadline import check_time, ends_at

_T = TypeVar("_T")
_AGAIN = 0.05
"""Seconds."""


class _Late(BaseException):
    """Raised between two lines of a call that is late."""


class _Watch(threading.Thread):
    """Raises ``_Late`` in the thread that made it, as soon as so many seconds are over and until it is told to stop: some of
    what a program does swallows exceptions, such as calls by the garbage collector."""

    def __init__(self, seconds: float) -> None:
        super().__init__(daemon=True)
        self.watched = ctypes.c_ulong(threading.get_ident())
        self.seconds = seconds
        self.lock = threading.Lock()
        self.over = threading.Event()
        self.fired = False
        self.start()

    def run(self) -> None:
        wait = self.seconds
        while not self.over.wait(wait):
            wait = _AGAIN
            with self.lock:
                if not self.over.is_set():
                    self.fired = True
                    ctypes.pythonapi.PyThreadState_SetAsyncExc(self.watched, ctypes.py_object(_Late))

    def stop(self) -> None:
        with self.lock:
            self.over.set()
            if self.fired:
                # If it has not come yet, it will not.
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self.watched, None)


def within_time(call: Callable[[], _T]) -> _T:
    """What a call of Python code returns, or ``LimitError`` (max_seconds) when the deadline of this thread is over.

    The call ends wherever it is, so it must change nothing that outlives it.
    """
    end = ends_at()
    if end == inf:
        return call()
    check_time()
    watch = _Watch(end - monotonic())
    try:
        try:
            return call()
        finally:
            _stop(watch)
    except _Late:
        _stop(watch)
        check_time()
        raise


def _stop(watch: _Watch) -> None:
    while True:
        try:
            return watch.stop()
        except _Late:
            continue
