"""What the calls that an exception came through had made."""

from __future__ import annotations

import inspect
from types import FrameType
from typing import Any

_PACKAGES = ("maskwright", "lark", "contextlib")
"""Whose calls make what is large, or hand it on; others may be looked at in a debugger."""


def taken_from_frames(error: BaseException | None, outside: BaseException | None) -> list[Any]:
    """The variables of this package's finished calls, and lark's, that an exception came through, and the exceptions before it, up
    to ``outside``.

    The frames have none of them any more: they would free all of it at once, together with the exception.
    """
    held: list[Any] = []
    while error is not None and error is not outside:
        trace = error.__traceback__
        while trace is not None:
            held += _taken_from(trace.tb_frame)
            trace = trace.tb_next
        error = error.__context__
    return held


def _taken_from(frame: FrameType) -> list[Any]:
    if str(frame.f_globals.get("__name__")).partition(".")[0] not in _PACKAGES:
        return []
    if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        # Its variables are those of a module or class.
        return []
    variables = frame.f_locals
    values = list(variables.values())
    try:
        frame.clear()
    except RuntimeError:
        # It still runs.
        return []
    if type(variables) is dict:
        variables.clear()
    return values
