"""A text that grows: what is thought and said in it, and the calls.

The grammar has seen to it that calls are well formed, so that they only need to be told apart:

    I will look.\\n<tool_call>\\n{"name": "find", "arguments": {"city": "Paris"}}\\n</tool_call>
    said           begin of the tool `find`                  its arguments      end

Where a family writes a call as JSON behind a mark, its arguments are told as they come.  Of other families (sections, XML, thinking in front), text
is told as it comes, and from the first mark on what the template reads from the whole output.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

from maskwright.frontends.tools.templates import Thinks, ToolTemplate

_WORDS = ("true", "false", "null")
_JSON = re.compile(r'[{["0-9-]|' + "|".join(_WORDS))
"""What JSON texts begin with."""


@dataclass(frozen=True, slots=True)
class Thought:
    """Thinking in front of an answer."""

    text: str


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


Event = Thought | Said | CallBegins | CallGoesOn


class Reader(Protocol):
    """Pieces of a text -> events."""

    def feed(self, text: str) -> Iterable[Event]:
        """What is new behind a piece of text."""

    def finish(self) -> Iterable[Event]:
        """What was held back."""


def reader_for(
    template: ToolTemplate, tools: list[dict[str, Any]], thinking: Thinks | None, *, or_json: bool
) -> Reader:
    """``tools``: those that may be called.  ``or_json``: the output is calls, or else a JSON text and nothing else."""
    plain = template.arguments is None and template.thinking is None and template.content is None
    plain = plain and bool(template.trigger.partition("{")[0])
    made: Reader
    if (
        plain
        and template.calls.begin == ("",)
        and not any("{index}" in form.begin for form in template.forms)
    ):
        made = CallReader((tool["function"]["name"] for tool in tools), template)
    else:
        made = WholeReader(template, tools, thinking)
    return JsonOr(made, template, thinking) if or_json else made


def thinks(template: ToolTemplate, thinking: Thinks | None) -> Thinks:
    """Whether thinking comes first; ``thinking``: None where nothing is said of it."""
    if template.thinking is None:
        return "off"
    return template.thinking.default if thinking is None else thinking


def is_told_from_json(template: ToolTemplate) -> bool:
    """Whether calls begin with something that no JSON text does."""
    return _JSON.match(template.trigger) is None


class JsonOr:
    """A JSON text, if the output begins like one behind its thinking; else what another reader finds."""

    def __init__(self, other: Reader, template: ToolTemplate, thinking: Thinks | None) -> None:
        self._other = other
        self._thinking = thinking
        # Thinking is all that it is asked for: what stands behind that is no channel.
        self._template = replace(template, content=None)
        self._marks = [*_WORDS, template.between]
        if thinks(template, thinking) != "off" and template.thinking is not None:
            self._marks += template.thinking.begin
        self._text = ""
        self._is_json: bool | None = None

    def feed(self, text: str) -> Iterable[Event]:
        """What is new behind a piece of text."""
        if self._is_json is None:
            self._text = text = self._text + text
            found = self._template.parse(text, (), thinking=self._thinking)
            begun = found.content.lstrip()
            if any(mark.startswith(begun) and mark != begun for mark in self._marks):
                return  # Nothing, or the beginning of what is told by its end.
            self._is_json = _JSON.match(begun) is not None
            if self._is_json:
                text = found.content
                if found.thinking:
                    yield Thought(found.thinking)
        yield from [Said(text)] if self._is_json else self._other.feed(text)

    def finish(self) -> Iterable[Event]:
        """What was held back."""
        if self._is_json is None:
            yield from self._other.feed(self._text)
        if not self._is_json:
            yield from self._other.finish()


class WholeReader:
    """Text up to the first mark as it comes; the rest when it is all there."""

    def __init__(self, template: ToolTemplate, tools: list[dict[str, Any]], thinking: Thinks | None) -> None:
        self._template = template
        self._tools = tools
        self._thinking = thinking
        self._waits = (
            template.thinking is not None
            or template.content is not None
            or not template.trigger.partition("{")[0]
        )
        self._trigger = template.trigger.partition("{")[0]
        self._text = ""
        self._told = 0

    def feed(self, text: str) -> Iterable[Event]:
        """What is new behind a piece of text."""
        self._text += text
        if self._waits:
            return
        at = self._text.find(self._trigger, self._told)
        self._waits = at >= 0
        free = at if at >= 0 else len(self._text) - _begun(self._text, self._trigger)
        # Blanks in front of a call are not part of what is said.
        free = len(self._text[:free].rstrip())
        if free > self._told:
            yield Said(self._text[self._told : free])
            self._told = free

    def finish(self) -> Iterable[Event]:
        """What the template reads, without what was told."""
        found = self._template.parse(self._text, self._tools, thinking=self._thinking)
        if found.thinking:
            yield Thought(found.thinking)
        told = self._text[: self._told]
        if left := found.content.removeprefix(told.lstrip() if found.calls else told):
            yield Said(left)
        for index, call in enumerate(found.calls):
            yield CallBegins(index, call.name)
            yield CallGoesOn(index, json.dumps(call.arguments, ensure_ascii=False))


class CallReader:
    """Calls that are a mark, a name and JSON, in free text.  White space around calls counts where text comes before and behind it."""

    def __init__(self, names: Iterable[str], template: ToolTemplate) -> None:
        self.trigger = template.trigger.partition("{")[0]
        self.begins: dict[str, tuple[str, str]] = {}
        for name in names:
            quoted = json.dumps(name, ensure_ascii=False)
            for form in template.forms:
                begin = form.begin.replace("{name}", name).replace("{json_name}", quoted)
                self.begins[begin] = name, form.end
        self.calls = 0
        self._rest = ""
        self._blank = ""
        self._said = False
        self._end = ""
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
            if not self.calls and self._blank:
                yield Said(self._blank)

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
        if not self._said:
            self._blank = ""
        self._rest = self._rest[at + len(begin) :]
        self._scan = _JsonScan()
        name, self._end = self.begins[begin]
        yield CallBegins(self.calls, name)
        return True

    def _say(self, text: str) -> Iterator[Event]:
        """Blanks at the end are held back: beside calls they count only if more is said."""
        text = self._blank + text
        if self.calls and not self._said:
            text = text.lstrip()
        said = text.rstrip()
        self._blank = text[len(said) :]
        if said:
            self._said = True
            yield Said(said)

    def _arguments(self, scan: _JsonScan) -> Generator[Event, None, bool]:
        """Arguments; whether they are over."""
        rest = self._rest
        at = 0
        ended = False
        while at < len(rest):
            if scan.may_end:
                if rest.startswith(self._end, at):
                    ended = True
                    break
                if self._end.startswith(rest[at:]):
                    break
            scan.read(rest[at])
            at += 1
        # Behind the last character there is nothing to wait for, where nothing ends a call.
        ended = ended or (scan.may_end and not self._end)
        if at:
            yield CallGoesOn(self.calls, rest[:at])
        self._rest = rest[at:]
        if ended:
            self._rest = self._rest[len(self._end) :]
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
