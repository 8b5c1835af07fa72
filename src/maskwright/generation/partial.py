"""The value that an unfinished JSON text denotes so far."""

from __future__ import annotations

import re
from typing import Any, Final

NOTHING: Final = object()
"""No value yet."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(r"[-+.0-9eE]+$")


def partial_value(text: str) -> Any:
    """Plain data for the beginning of a JSON text, or ``NOTHING`` before there is any.

    A number at the end is left out, because it may go on; a string at the end is taken as it is.
    """
    import pydantic_core

    if '"' not in _STRING.sub("", text):
        text = _NUMBER.sub("", text)
    try:
        return pydantic_core.from_json(text, allow_partial="trailing-strings")
    except ValueError:
        return NOTHING
