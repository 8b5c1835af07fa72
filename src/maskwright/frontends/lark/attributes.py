"""``rule[capture, lazy, suffix="..."]: ...``: attributes of rules, which the package lark does not know."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from maskwright.errors import GrammarError, line_column
from maskwright.frontends.lark.literals import REGEXP, STRING
from maskwright.frontends.lark.modes import (
    Mode,
    check_lexeme,
    check_mode,
    found_outside_of_patterns,
    take_modes,
)

if TYPE_CHECKING:
    from maskwright.frontends.lark.reader import LarkText

_HEAD = re.compile(r"^[ \t]*[?!]*(\w+)[ \t]*(\[)", re.MULTILINE)
_ITEM = re.compile(rf"\s*(\w+)\s*(?:=\s*({STRING}i?|{REGEXP}[imslux]*|<[^<>\n]+>|[\w.+-]+)\s*)?(,|\])")
_COLON = re.compile(r"\s*(\.\s*-?\d+)?\s*:")
_LIST = "__LIST_APPEND:"
_KNOWN = ("capture", "lazy", "stop", "suffix", "stop_capture", "mode")
_SAMPLING = {
    "max_tokens": "a number of tokens is no property of a text; bound its characters, as in /(.|\\n){0,200}/",
    "temperature": "a grammar says what may be written; set the temperature where tokens are sampled",
}


@dataclass(frozen=True, slots=True)
class Capture:
    """Under which name texts of a rule are captured: the last one, or a list of all."""

    name: str
    append: bool = False


@dataclass(frozen=True, slots=True)
class Attributes:
    """What stands in the brackets behind a rule's name."""

    rule: str
    place: str
    lexeme: str = ""
    """The terminal that the rule consists of, where it ends as early as it can."""
    end: str = ""
    """The terminal that ends it."""
    is_stop: bool = False
    """Whether the end stands behind it, and does not belong to it."""
    capture: Capture | None = None
    stop_capture: Capture | None = None
    mode: str = ""
    """In which it is read; empty: in that of the rule that uses it."""


@dataclass(frozen=True, slots=True)
class Attributed:
    """A text without attributes and modes, and these by rule and by name."""

    text: str
    attributes: dict[str, Attributes]
    added: tuple[str, ...]
    """The places of the rules for which there is one more line behind the text that was given."""
    lines: int
    """Of the text that was given."""
    modes: dict[str, Mode]

    @property
    def ends(self) -> set[str]:
        """The terminals that end rules."""
        return {each.end for each in self.attributes.values() if each.end}

    def apart(self, source: LarkText) -> LarkText:
        """The same text, in which no other rule reads what a rule that ends early is made of.

        The package lark calls all texts and patterns without a name by that of a terminal that is defined as they are."""
        own = {each.lexeme: each.rule for each in self.attributes.values() if each.lexeme}
        plain = {}
        for name in own.keys() & source.terminals.keys():
            terminal = source.terminals[name]
            written = json.dumps(terminal.pattern) if terminal.is_string else f"/{terminal.pattern}/"
            # The priority is that of the rule.
            rank = (0, *terminal.rank[1:])
            plain[name] = replace(terminal, name=f"__ANON_{name}", raw=written, rank=rank)
        rules = {
            rule: [
                [
                    (plain[name].name if is_terminal and own.get(name, rule) != rule else name, is_terminal)
                    for name, is_terminal in expansion
                ]
                for expansion in expansions
            ]
            for rule, expansions in source.rules.items()
        }
        ignored = [plain[name].name if name in plain else name for name in source.ignored]
        terminals = {**source.terminals, **{each.name: each for each in plain.values()}}
        return replace(source, terminals=terminals, rules=rules, ignored=ignored)

    def place(self, place: str) -> str:
        """A place of ``text`` in the text that was given."""
        line, _, _ = place.partition(":")
        behind = int(line) - self.lines - 1 if line.isdecimal() else -1
        return self.added[behind] if 0 <= behind < len(self.added) else place


def take_attributes(text: str) -> Attributed:
    """The text without attributes and modes; lines stay where they are, and columns but behind what a mode defines.

    A rule that is lazy or has an end becomes a terminal and a rule of it; so do its ends.  Raises ``GrammarError``
    for unknown attributes, and for those that say nothing about a text.
    """
    text, modes = take_modes(text)
    found: dict[str, Attributes] = {}
    out: list[str] = []
    added: list[str] = []
    places: list[str] = []
    at = 0
    for head in found_outside_of_patterns(_HEAD, text):
        given, end = _items(text, head.end())
        colon = _COLON.match(text, end)
        if colon is None:
            raise _error("a colon is missing behind the attributes", text, end)
        name, place = head[1], line_column(text, head.start(1))
        made = _attributes(text, name, place, given, len(found), added)
        bad = check_mode(made.mode, modes) if made.mode else None
        if bad is not None:
            raise _error(bad, text, given["mode"][1])
        if made.lexeme:
            end_name = (given.get("stop") or given.get("suffix") or ("", 0))[0] or ""
            check_lexeme(text, name, colon.end(), end_name, made.mode, modes)
        if name in found:
            raise GrammarError(f"{name} has attributes twice", place=place, source=text)
        found[name] = made
        places += [place] * (len(added) - len(places))
        shown = made.lexeme or name
        out += [text[at : head.start(1)] if not made.lexeme else _plain(text[at : head.start(1)]), shown]
        out.append(" " * (end - head.start(1) - len(shown)))
        at = end
    out.append(text[at:])
    whole = "".join(out) + "".join(f"\n{line}" for line in added) + ("\n" if added else "")
    return Attributed(whole, found, tuple(places), text.count("\n") + 1, modes)


def _plain(text: str) -> str:
    """Without what shapes trees in front of a name: a terminal has none of it."""
    return re.sub(r"[?!]+\Z", lambda marks: " " * len(marks[0]), text)


def _items(text: str, at: int) -> tuple[dict[str, tuple[str | None, int]], int]:
    """Values of attributes with their places, and where they end."""
    given: dict[str, tuple[str | None, int]] = {}
    while True:
        item = _ITEM.match(text, at)
        if item is None:
            raise _error('attributes of a rule are written [capture, suffix="..."]', text, at)
        name = item[1]
        if name in given:
            raise _error(f"{name} is given twice", text, item.start(1))
        given[name] = item[2], item.start(1)
        at = item.end()
        if item[3] == "]":
            return given, at


def _attributes(
    text: str,
    rule: str,
    place: str,
    given: dict[str, tuple[str | None, int]],
    number: int,
    added: list[str],
) -> Attributes:
    for name, (value, start) in given.items():
        if name in _SAMPLING:
            raise _error(f"{name} cannot be enforced: {_SAMPLING[name]}", text, start)
        if name not in _KNOWN:
            raise _error(f"there is no attribute {name}; there are {', '.join(_KNOWN)}", text, start)
        if name == "lazy" and value is not None:
            raise _error("lazy has no value", text, start)
        if name not in ("lazy", "capture") and value is None:
            raise _error(f"{name} needs a value", text, start)
    ends = [name for name in ("stop", "suffix") if name in given]
    if len(ends) > 1:
        raise GrammarError(f"{rule} has a stop and a suffix: only one can end it", place=place, source=text)
    lexeme = end = ""
    if ends or "lazy" in given:
        if not rule.islower():
            message = f"lazy, stop and suffix belong to rules: write {rule.lower()}[...]: {rule}"
            raise GrammarError(message, place=place, source=text)
        lexeme = f"LEX_{number}"
        added.append(f"{rule}: {lexeme}")
    for name in ends:
        value, start = given[name]
        assert value is not None
        if value in ('""', '""i'):
            raise _error(f"{name} needs some text: the end token ends the whole text anyway", text, start)
        if value.startswith("<"):
            raise _error(f"a token always ends what is before it: write {value} behind {rule}", text, start)
        end = f"{lexeme}_END"
        added.append(f"{end}: {value}")
    if "stop_capture" in given and not ends:
        raise _error("stop_capture needs a stop or a suffix", text, given["stop_capture"][1])
    capture = _capture(text, rule, "capture", given)
    mode = given["mode"][0] or "" if "mode" in given else ""
    if mode and not rule.islower():
        raise _error(
            f"modes belong to rules: {rule} is in that of the rule that uses it", text, given["mode"][1]
        )
    stop_capture = _capture(text, rule, "stop_capture", given)
    return Attributes(rule, place, lexeme, end, "stop" in given, capture, stop_capture, mode)


def _capture(
    text: str, rule: str, attribute: str, given: dict[str, tuple[str | None, int]]
) -> Capture | None:
    if attribute not in given:
        return None
    value, start = given[attribute]
    name: object = rule
    if value is not None:
        try:
            name = json.loads(value)
        except ValueError:
            name = None
    if not isinstance(name, str) or not name.removeprefix(_LIST):
        raise _error(f'{attribute} needs a name, as in {attribute}="name"', text, start)
    return Capture(name.removeprefix(_LIST), name.startswith(_LIST))


def _error(message: str, text: str, at: int) -> GrammarError:
    return GrammarError(message, place=line_column(text, at), source=text)
