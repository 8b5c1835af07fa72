"""JSON text -> values, with places for what is wrong in it."""

from __future__ import annotations

import json
import json.decoder
import json.scanner
import math
import re
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

from maskwright.base.deadline import deadline, in_time
from maskwright.base.html import cut
from maskwright.base.interruption import within_time
from maskwright.errors import GrammarError, LimitError, MaskwrightError, line_column

_TOKENS = re.compile(r'"(?:\\.|[^"\\])*"?|[{}\[\],:]|[^\s{}\[\],:"]+', re.DOTALL)
"""Of JSON text, also of one that is malformed."""
_LONG = 400_000
"""Characters, of which Python's reader in C takes 10 ms.  It lets no other thread run meanwhile."""
_SHOWN = 40
"""Characters of a text in a message."""
_FINDING_SECONDS = 1.0
"""In which the places of a text are looked for; of a text of a megabyte, that is all of them."""
_MARKS = re.compile(r'"(?:\\.|[^"\\])*"|[{}\[\],:]', re.DOTALL)


def finite(digits: str) -> float:
    """A number as a double.  Raises ``GrammarError`` where it is larger than any."""
    value = float(digits)
    if math.isinf(value):
        raise GrammarError(f"the number {digits[:40]} is larger than a double holds")
    return value


class _Repeated(Exception):
    """An object has a member twice."""


class _Constant(Exception):
    """Something that JavaScript has, and JSON has not."""


class _InSteps(json.JSONDecoder):
    """Python's reader in Python: a fifth as fast, and others have their turns."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.parse_array = json.decoder.JSONArray  # type: ignore[attr-defined]
        self.parse_object = json.decoder.JSONObject  # type: ignore[attr-defined]
        self.scan_once = json.scanner.py_make_scanner(self)  # type: ignore[attr-defined]


def read_json(text: str | bytes, number: Callable[[str], Any] = Decimal) -> Any:
    """JSON text with exact decimals (or what ``number`` makes of them); no object may have a member twice.

    Raises ``GrammarError``, with line and column where the text is malformed; of a long text, ``LimitError`` (max_seconds).
    """
    options: dict[str, Any] = {
        "parse_float": number,
        "parse_constant": _refuse_constant,
        "object_pairs_hook": _members,
    }
    try:
        if len(text) <= _LONG:
            return json.loads(text, **options)
        return within_time(lambda: json.loads(text, cls=_InSteps, **options))
    except _Repeated:
        raise _repeated(text) from None
    except json.JSONDecodeError as error:
        message = f"malformed JSON: {error.msg}"
        if error.pos == 0 and error.doc:
            # Most likely something else than JSON: a pattern, or the name of a file.
            message += f"; the text begins with {cut(error.doc, _SHOWN)!r}"
        raise GrammarError(message, place=f"{error.lineno}:{error.colno}") from None
    except UnicodeDecodeError as error:
        raise GrammarError(f"the schema is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except RecursionError:
        raise GrammarError("the JSON text is nested too deeply to be read") from None
    except _Constant as error:
        name = str(error)
        place = _place_of(text, lambda token: token == name)
        raise GrammarError(f"malformed JSON: {name} is not a JSON value", place=place) from None
    except (ValueError, InvalidOperation) as error:
        if isinstance(error, MaskwrightError):
            raise
        # Python reads integers of 4300 digits, and exponents of 18.
        place = _place_of(text, lambda token: token[0] in "-0123456789" and not _is_number(token, number))
        message = "the JSON text has a number with more digits than can be read: shorten it"
        raise GrammarError(message, place=place) from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _Repeated
    return members


def _refuse_constant(name: str) -> Any:
    raise _Constant(name)


def _is_number(token: str, number: Callable[[str], Any]) -> bool:
    try:
        int(token) if token.lstrip("-").isdecimal() else number(token)
    except (ValueError, InvalidOperation):
        return False
    return True


def _decoded(text: str | bytes) -> str:
    """As ``json.loads`` decodes it."""
    return text if isinstance(text, str) else text.decode(json.detect_encoding(text), "surrogatepass")


def _place_of(text: str | bytes, is_it: Callable[[str], bool]) -> str | None:
    """The first token that ``is_it``."""
    text = _decoded(text)
    found = (token.start() for token in in_time(_TOKENS.finditer(text)) if is_it(token[0]))
    at = next(found, None)
    return None if at is None else line_column(text, at)


def _repeated(text: str | bytes) -> GrammarError:
    """The first member that comes twice, in a text that was read up to its object's end."""
    text = _decoded(text)
    objects: list[set[str] | None] = []
    before = ""
    for mark in in_time(_MARKS.finditer(text)):
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


class Places:
    """Where in JSON text its values are, by JSON pointers (RFC 6901; "#" is the whole).  Of malformed text, what can be made out of it."""

    def __init__(self, text: str) -> None:
        first = _TOKENS.search(text)
        self._whole: _Place = (first.span() if first is not None else (0, 0), {})
        self._text: str | None = text

    def _find(self, text: str) -> None:
        around: list[_Around] = []
        for token in in_time(_TOKENS.finditer(text)):
            mark = token[0]
            inner = around[-1] if around else None
            if mark in "}]":
                if around:
                    around.pop()
            elif mark == ",":
                if inner is not None:
                    inner.next()
            elif mark == ":":
                continue
            elif inner is not None and inner.wants_name:
                inner.enter(_name(mark), token.span())
            else:
                if inner is None:
                    place = self._whole = (token.span(), {})
                else:
                    place = inner.value(token.span())
                if mark in "{[":
                    around.append(_Around(place[1], is_object=mark == "{"))

    def span(self, pointer: str) -> tuple[int, int]:
        """Of a member its name, of anything else the first token; of what is not there, the nearest place around it.

        Indices of code points, the end excluded.
        """
        if self._text is not None and "/" in pointer:
            # Of a text that takes longer, what is known by then.
            with suppress(LimitError), deadline(_FINDING_SECONDS):
                self._find(self._text)
            self._text = None
        found = self._whole
        for part in pointer.split("/")[1:]:
            inner = found[1].get(part.replace("~1", "/").replace("~0", "~"))
            if inner is None:
                break
            found = inner
        return found[0]


_Place = tuple[tuple[int, int], "dict[str, _Place]"]
"""A span, and what is inside of the value."""


class _Around:
    """An object or array that is being read, and the place in it."""

    def __init__(self, inside: dict[str, _Place], *, is_object: bool) -> None:
        self._inside, self._index, self._is_object = inside, 0, is_object
        self._member: _Place | None = None
        self.wants_name = is_object

    def enter(self, name: str, span: tuple[int, int]) -> None:
        self.wants_name = False
        self._member = self._inside.setdefault(name, (span, {}))

    def value(self, span: tuple[int, int]) -> _Place:
        if self._member is not None:
            return self._member
        return self._inside.setdefault(str(self._index), (span, {}))

    def next(self) -> None:
        self.wants_name, self._member = self._is_object, None
        self._index += 1


def _name(mark: str) -> str:
    try:
        return str(json.loads(mark))
    except ValueError:
        return mark
