"""JSON text -> values, with places for what is wrong in it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from typing import Any

from maskwright.errors import GrammarError, line_column

_MARKS = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]', re.DOTALL)


class _Repeated(Exception):
    """An object has a member twice."""


def read_json(text: str | bytes, number: Callable[[str], Any] = Decimal) -> Any:
    """JSON text with exact decimals (or what ``number`` makes of them); no object may have a member twice.

    Raises ``GrammarError``, with line and column where the text is malformed.
    """
    try:
        return json.loads(
            text, parse_float=number, parse_constant=_refuse_constant, object_pairs_hook=_members
        )
    except _Repeated:
        raise _repeated(text) from None
    except json.JSONDecodeError as error:
        raise GrammarError(f"malformed JSON: {error.msg}", place=f"{error.lineno}:{error.colno}") from None
    except UnicodeDecodeError as error:
        raise GrammarError(f"the schema is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise GrammarError("the JSON text is nested too deeply to be read") from None
    except (ValueError, InvalidOperation) as error:
        if isinstance(error, GrammarError):
            raise
        # Python reads integers of 4300 digits, and exponents of 18.
        raise GrammarError(
            "the JSON text has a number with more digits than can be read: shorten it"
        ) from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Repeated
    return members


def _refuse_constant(name: str) -> Any:
    raise GrammarError(f"malformed JSON: {name} is not a JSON value")


def _repeated(text: str | bytes) -> GrammarError:
    """The first member that comes twice, in a text that was read up to its object's end."""
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    objects: list[set[str] | None] = []
    before = ""
    for mark in _MARKS.finditer(text):
        if mark[0] in "{[":
            objects.append(set() if mark[0] == "{" else None)
        elif mark[0] in "}]":
            objects.pop()
        elif mark[0][0] == '"' and before in "{," and objects and (names := objects[-1]) is not None:
            name = json.loads(mark[0])
            if name in names:
                place = line_column(text, mark.start())
                return GrammarError(f"the member {name!r} comes twice in one object", place=place)
            names.add(name)
        before = mark[0]
    raise AssertionError("some member comes twice")
