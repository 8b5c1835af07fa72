"""The value that an unfinished JSON text denotes so far, and the part of it that is open."""

from __future__ import annotations

import json
import re
from typing import Any, Final

NOTHING: Final = object()
"""No value yet."""

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_NUMBER = re.compile(r"(?<![a-z])[-+.0-9eE]+$")  # not the end of true and false


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


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*("?)|[][{}:,]|[^][{}:,"\s]+', re.DOTALL)


def _decoded(key: str) -> str:
    """What a quoted key spells; as it stands, where that is no JSON or has not ended."""
    try:
        return str(json.loads(key))
    except ValueError:
        return key.strip('"')


def open_parts(text: str) -> tuple[str, ...]:
    """JSON pointers of the values that are open at the end of the beginning of a JSON text, the innermost first.

    Within a key, and where one may begin, the object is the innermost.
    """
    stack: list[tuple[str, str]] = []  # "{" or "[", and the member or item under way
    key = ""
    value_open = True
    for found in _TOKEN.finditer(text):
        token = found[0]
        if token in ("{", "["):
            stack.append((token, "0" if token == "[" else ""))
            value_open = token == "["
        elif token in ("}", "]"):
            if stack:
                stack.pop()
            value_open = False
        elif token == ":":
            if stack:
                stack[-1] = ("{", key)
            value_open = True
        elif token == ",":
            if stack:
                kind, at = stack[-1]
                stack[-1] = (kind, str(int(at) + 1) if kind == "[" else "")
            value_open = bool(stack) and stack[-1][0] == "["
        elif token[0] == '"' and not value_open:
            key = _decoded(token)
        else:
            # A number may go on; what is closed or a whole literal may not.
            value_open = not (found[1] or token in ("true", "false", "null"))
    names = [at.replace("~", "~0").replace("/", "~1") for _, at in stack]
    pointers = ["/" + "/".join(names[: i + 1]) for i in range(len(names))]
    if stack and not value_open:
        pointers.pop()
    return tuple(reversed(pointers))
