"""A text that grows: what is said in it, and the calls.

The grammar has seen to it that calls are well formed, so that they only need to be told apart:

    I will look.\\n<tool_call>\\n{"name": "find", "arguments": {"city": "Paris"}}\\n</tool_call>
    said           begin of the tool `find`                  its arguments      end
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass

from maskwright.frontends.tools import ToolStyle


@dataclass(frozen=True, slots=True)
class Said:
    """A piece of text beside calls."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegins:
    """The call at a place, of a tool."""

    index: int
    name: str


@dataclass(frozen=True, slots=True)
class CallGoesOn:
    """A piece of the arguments of the call at a place."""

    index: int
    text: str


Event = Said | CallBegins | CallGoesOn


class CallReader:
    """Pieces of a text -> events.  White space around calls is part of neither."""

    def __init__(self, names: Iterable[str], style: ToolStyle) -> None:
        self.trigger = style.trigger
        self.end = style.end
        self.begins = {
            style.begin.replace("{name}", json.dumps(name) if style.quoted else name): name for name in names
        }
        self.calls = 0
        self._rest = ""
        self._blank = ""
        self._scan: _JsonScan | None = None

    def feed(self, text: str) -> Iterator[Event]:
        """What is new behind a piece of text."""
        self._rest += text
        moved = True
        while moved and self._rest:
            if self._scan is not None:
                moved = yield from self._arguments(self._scan)
            else:
                moved = yield from self._free()

    def finish(self) -> Iterator[Event]:
        """What was held back, in case that it was the beginning of a call."""
        rest, self._rest = self._rest, ""
        if self._scan is None:
            yield from self._say(rest)

    def _free(self) -> Generator[Event, None, bool]:
        """Text beside calls; whether there may be more to tell apart."""
        at = self._rest.find(self.trigger)
        if at < 0:
            free = len(self._rest) - _begun(self._rest, self.trigger)
            said, self._rest = self._rest[:free], self._rest[free:]
            yield from self._say(said)
            return False
        begin = next((begin for begin in self.begins if self._rest.startswith(begin, at)), None)
        if begin is None:
            if any(begin.startswith(self._rest[at:]) for begin in self.begins):
                yield from self._say(self._rest[:at])
                self._rest = self._rest[at:]
                return False
            # A trigger that begins no call, which the grammar does not write.
            end = at + len(self.trigger)
            said, self._rest = self._rest[:end], self._rest[end:]
            yield from self._say(said)
            return True
        yield from self._say(self._rest[:at])
        self._blank = ""
        self._rest = self._rest[at + len(begin) :]
        self._scan = _JsonScan()
        yield CallBegins(self.calls, self.begins[begin])
        return True

    def _say(self, text: str) -> Iterator[Event]:
        """Blanks at the end are held back: they count only if more is said."""
        text = self._blank + text
        said = text.rstrip()
        self._blank = text[len(said) :]
        if said:
            yield Said(said)

    def _arguments(self, scan: _JsonScan) -> Generator[Event, None, bool]:
        """Arguments; whether they are over."""
        rest = self._rest
        at = 0
        ended = False
        while at < len(rest):
            if scan.may_end:
                if rest.startswith(self.end, at):
                    ended = True
                    break
                if self.end.startswith(rest[at:]):
                    break
            scan.read(rest[at])
            at += 1
        if at:
            yield CallGoesOn(self.calls, rest[:at])
        self._rest = rest[at:]
        if ended:
            self._rest = self._rest[len(self.end) :]
            self._scan = None
            self.calls += 1
        return ended


class _JsonScan:
    """Whether a JSON value that is read character by character may be over."""

    def __init__(self) -> None:
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._begun = False

    @property
    def may_end(self) -> bool:
        return self._begun and self._depth == 0 and not self._in_string

    def read(self, character: str) -> None:
        if self._in_string:
            if self._escaped:
                self._escaped = False
            elif character == "\\":
                self._escaped = True
            elif character == '"':
                self._in_string = False
            return
        if character == '"':
            self._in_string = True
        elif character in "{[":
            self._depth += 1
        elif character in "}]":
            self._depth -= 1
        self._begun = self._begun or not character.isspace()


def _begun(text: str, word: str) -> int:
    """How many characters at the end may be the beginning of a word."""
    most = min(len(text), len(word) - 1)
    return next((n for n in range(most, 0, -1) if text.endswith(word[:n])), 0)
