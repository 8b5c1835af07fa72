"""The rules of a grammar as its author wrote them, as tracks that a text may run along: what a railroad diagram draws.

Of Lark these are the trees that the package has before it makes small rules of repetitions; of GBNF the nodes of its reader,
where characters side by side are one text and alternatives of one character are one set already.
"""

from __future__ import annotations

import ast
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from maskwright.base.deadline import check_time
from maskwright.base.html import cut
from maskwright.errors import GrammarError, line_column
from maskwright.frontends.characters import Items, Loop, Node, Ways
from maskwright.frontends.gbnf import read as read_gbnf
from maskwright.frontends.lark.attributes import take_attributes
from maskwright.frontends.lark.inline import MARK, Inlined, take_inline
from maskwright.frontends.lark.reader import read as read_lark
from maskwright.frontends.lark.reader import trees
from maskwright.frontends.regex import flag_letters
from maskwright.ir.grammar import Ref
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex
from maskwright.regular.expressions import MAX_CODE_POINT, Alt, Cat, Chars, Machine, Ranges, Regular, Repeat
from maskwright.sources import GBNF, Lark, Regex

_DEEPEST = 24
"""Levels of groups within a rule that are told apart."""
_MOST_ITEMS = 60
"""Parts of one sequence or choice that are told apart."""
_MOST_PARTS = 50_000
"""Parts of a source that are told apart: languages share what they repeat, and would not end written out."""
_GROUP = " (group)"


@dataclass(frozen=True)
class Text:
    """These characters."""

    text: str


@dataclass(frozen=True)
class Pattern:
    """What is no fixed text: a set of characters, a pattern, a token, an inline schema, or a part that is left out here."""

    text: str


@dataclass(frozen=True)
class Name:
    """A rule, or a terminal."""

    name: str


@dataclass(frozen=True)
class Row:
    """One part behind the other; without parts, nothing."""

    items: tuple[Track, ...]


@dataclass(frozen=True)
class Fork:
    """One of the parts."""

    items: tuple[Track, ...]


@dataclass(frozen=True)
class Again:
    """``min`` to ``max`` times (None: unbounded)."""

    body: Track
    min: int
    max: int | None


Track: TypeAlias = Text | Pattern | Name | Row | Fork | Again


@dataclass(frozen=True)
class Tracks:
    """``rules`` by name, the first one being where a text begins; ``terminals`` by name, with their pattern; those of ``ignored`` may come anywhere."""

    rules: dict[str, Track]
    terminals: dict[str, str] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()


def tracks(source: Lark | GBNF | Regex, limits: Limits = DEFAULT_LIMITS) -> Tracks:
    """The tracks of a source.  Raises ``GrammarError`` or ``LimitError`` for one that cannot be read, and for sources of other kinds."""
    if isinstance(source, Lark):
        return _lark(source, limits)
    if isinstance(source, GBNF):
        return _gbnf(source, limits)
    if isinstance(source, Regex):
        letters = source.flags if isinstance(source.flags, str) else flag_letters(source.flags)
        language = parse_regex(source.pattern, source.flavour, limits, letters)
        return Tracks({"pattern": track_of(language)})
    raise GrammarError(f"a {type(source).__name__} has no rules to draw: use Lark, GBNF or Regex")


# --- GBNF and regular expressions -----------------------------------------------------------


def _gbnf(source: GBNF, limits: Limits) -> Tracks:
    read = read_gbnf(source.text, limits)
    for message, at in read.undefined():
        raise GrammarError(message, place=line_column(source.text, at), source=source.text)
    start = read.start(source.root)
    drawn = _Regular(read.rules, read.names)
    rules = {source.root: drawn.track(read.rules[start], 0)}
    for i, name in enumerate(read.names):
        if i != start and name in read.defined_at:
            rules[name] = drawn.track(read.rules[i], 0)
    return Tracks(rules)


def track_of(language: Regular, most: int = _MOST_PARTS) -> Track:
    """A regular language as a track of at most so many parts."""
    return _Regular((), (), most).track(language, 0)


class _Regular:
    """Nodes of rules with these names as tracks."""

    def __init__(self, rules: Sequence[Node], names: Sequence[str], most: int = _MOST_PARTS) -> None:
        self.rules = rules
        self.names = names
        self.left = most

    def track(self, node: Node, depth: int) -> Track:
        check_time()
        self.left -= 1
        if depth > _DEEPEST or self.left < 0:
            return Pattern("…")
        if isinstance(node, Ref):
            name = self.names[node.rule]
            if name.endswith(_GROUP):
                return self.track(self.rules[node.rule], depth + 1)
            return Name(name)
        if isinstance(node, (Items, Cat)):
            return Row(self._several(node.items if isinstance(node, Items) else node.parts, depth))
        if isinstance(node, (Ways, Alt)):
            return Fork(self._several(node.items if isinstance(node, Ways) else node.parts, depth))
        if isinstance(node, (Loop, Repeat)):
            return Again(self.track(node.body, depth + 1), node.min, node.max)
        if isinstance(node, Chars):
            if len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
                return Text(chr(node.ranges[0][0]))
            return Pattern(shown_set(node.ranges))
        if isinstance(node, Machine):
            return Pattern("an automaton")
        return Text(str(node.text)) if node.text else Row(())

    def _several(self, parts: Sequence[Node], depth: int) -> tuple[Track, ...]:
        made = [self.track(part, depth + 1) for part in parts[:_MOST_ITEMS]]
        if len(parts) > _MOST_ITEMS:
            made.append(Pattern(f"… and {len(parts) - _MOST_ITEMS:,} more"))
        return tuple(made)


def shown_set(ranges: Ranges, most: int = 8) -> str:
    """A set of characters as patterns write it."""
    if ranges == ((0, MAX_CODE_POINT),):
        return "any character"
    inverted = len(ranges) > 1 and ranges[0][0] == 0 and ranges[-1][1] == MAX_CODE_POINT
    if inverted:
        ranges = tuple((a[1] + 1, b[0] - 1) for a, b in itertools.pairwise(ranges))
    parts = [_character(low) + (f"-{_character(high)}" if high > low else "") for low, high in ranges[:most]]
    return f"[{'^' if inverted else ''}{''.join(parts)}{'…' if len(ranges) > most else ''}]"


def _character(code: int) -> str:
    text = chr(code)
    if text in "\\]^-":
        return "\\" + text
    return text if text.isprintable() else json.dumps(text)[1:-1]


# --- Lark -----------------------------------------------------------------------------------


def _lark(source: Lark, limits: Limits) -> Tracks:
    taken = take_attributes(source.text)
    inlined = take_inline(taken.text)
    paths = list(source.import_paths)
    # Whether it is a grammar at all is what reading it says.
    whole = read_lark(inlined.text, source.start, paths, limits).used(source.start)
    reader = _Trees(inlined)
    found = {name: reader.track(tree, 0) for name, tree in trees(inlined.text, paths, limits)}
    rules = {source.start: found[source.start], **found}
    terminals = {
        name: f'"{terminal.pattern}"' if terminal.is_string else f"/{terminal.pattern}/{terminal.flags}"
        for name, terminal in whole.terminals.items()
        if name in reader.used or (name in whole.ignored and not name.startswith("__"))
    }
    ignored = [whole.terminals[name] for name in dict.fromkeys(whole.ignored) if name in whole.terminals]
    shown = (
        t.name if t.name in terminals else f'"{t.pattern}"' if t.is_string else f"/{t.pattern}/"
        for t in ignored
    )
    return Tracks(rules, terminals, tuple(shown))


class _Trees:
    """Trees of the package as tracks; ``used`` are the names that come up."""

    def __init__(self, inlined: Inlined) -> None:
        self.used: set[str] = set()
        self.left = _MOST_PARTS
        self.parts: Mapping[str, str] = {
            **{
                name: f"%json {cut(json.dumps(schema, ensure_ascii=False), 40)}"
                for name, schema in inlined.schemas.items()
            },
            **{name: str(tokens) for name, tokens in inlined.tokens.items()},
        }

    def track(self, tree: Any, depth: int) -> Track:
        check_time()
        self.left -= 1
        if depth > 4 * _DEEPEST or self.left < 0:
            return Pattern("…")
        kind = getattr(tree, "data", None)
        if kind is None:
            name = str(tree.name)
            if name in self.parts:
                return Pattern(self.parts[name])
            self.used.add(name)
            return Name(name)
        children = tree.children
        if kind in ("value", "alias"):
            return self.track(children[0], depth + 1)
        if kind == "literal":
            return _literal(str(children[0]))
        if kind == "range":
            return Pattern("..".join(map(str, children)))
        if kind == "maybe":
            return Again(self.track(children[0], depth + 1), 0, 1)
        if kind == "expr":
            body = self.track(children[0], depth + 1)
            return Again(body, *_bounds(str(children[1]), [int(each) for each in children[2:]]))
        made = [self.track(child, depth + 1) for child in children[:_MOST_ITEMS]]
        if len(children) > _MOST_ITEMS:
            made.append(Pattern(f"… and {len(children) - _MOST_ITEMS:,} more"))
        if len(made) == 1:
            return made[0]
        return Fork(tuple(made)) if kind == "expansions" else Row(tuple(made))


def _bounds(operator: str, numbers: Sequence[int]) -> tuple[int, int | None]:
    if operator == "~":
        return numbers[0], numbers[-1]
    return {"?": (0, 1), "*": (0, None), "+": (1, None)}[operator]


def _literal(text: str) -> Track:
    if MARK in text:
        return Pattern("%regex")
    if not text.endswith('"'):
        # A pattern, or a text in any case.
        return Pattern(text)
    try:
        return Text(str(ast.literal_eval(text)))
    except (SyntaxError, ValueError):
        return Pattern(text)


# --- in words


def said(track: Track, most: int = 400) -> str:
    """Tracks as grammars write them, for those who do not see them."""
    return cut(_said(track), most)


def _said(track: Track) -> str:
    if isinstance(track, Text):
        return json.dumps(track.text, ensure_ascii=False)
    if isinstance(track, Pattern):
        return track.text
    if isinstance(track, Name):
        return track.name
    if isinstance(track, Row):
        return (
            " ".join(f"({_said(each)})" if isinstance(each, Fork) else _said(each) for each in track.items)
            or "nothing"
        )
    if isinstance(track, Fork):
        return " | ".join(map(_said, track.items))
    body = f"({_said(track.body)})" if isinstance(track.body, (Row, Fork)) else _said(track.body)
    marks = {(0, 1): "?", (0, None): "*", (1, None): "+"}
    return body + marks.get(
        (track.min, track.max), f"{{{track.min},{'' if track.max is None else track.max}}}"
    )
