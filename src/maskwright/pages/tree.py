"""The compiled form of a schema as a tree: what became of it before the engine gets it (``maskwright.ir.grammar``)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from typing import Any

from maskwright.base.deadline import deadline
from maskwright.base.html import cut, escape, facts
from maskwright.check.grammars import compile_for_bytes
from maskwright.check.tracks import said, track_of
from maskwright.errors import MaskwrightError
from maskwright.frontends.json_schema.algebra.groups import NumberGroup, StringGroup
from maskwright.ir.grammar import (
    Choice,
    Distinct,
    Grammar,
    Import,
    Indented,
    Keyset,
    Lexeme,
    Record,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Words,
)
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.pages.page import page
from maskwright.regular.expressions import Alt, Cat, Chars, Lit, Machine, Repeat
from maskwright.sources import JsonSchema

_MOST = 20_000
"""Items of the tree."""
_DEEPEST = 60
_LISTED = 40
"""Texts of a list, members without a value of interest, and the like."""
_LABEL = 160
_MARK = re.compile(r"(compact|flexible|printed)(?: \d+)?(?: empty)? ([\[\]{}:,])")
"""The key of a lexeme of punctuation: how white space is written around it, and itself."""
_TOOLS = """<p><button type="button" class="act" id="open">Open all</button><button type="button" class="act" id="close">Close all</button></p>
"""


def tree(source: Any, limits: Limits = DEFAULT_LIMITS, title: str = "The compiled form") -> str:
    """The page: HTML, one file.  ``source``: a ``JsonSchema``, or any other source.

    Raises what compiling the source raises.
    """
    grammar, compiled = compile_for_bytes(source, limits)
    with deadline(limits.max_seconds):
        drawn = _Tree(prune(grammar))
        items = drawn.item(grammar.start, "The whole text", 0)
    try:
        shortest = compiled.matcher().shortest_completion_bytes().decode("utf-8", "backslashreplace")
    except MaskwrightError as error:
        shortest = f"not found: {error}"
    figures: list[tuple[str, object]] = [
        ("Rules", len(grammar.rules)),
        ("Lexemes", len(drawn.lexemes)),
        ("Objects", sum(isinstance(body, Record) and body.has_colons for body in grammar.rules)),
        ("Other grammars", len(grammar.imports())),
        ("A shortest text", _short(shortest)),
    ]
    body = (
        facts(figures)
        + '<p class="quiet">Each rule stands where it is used first; elsewhere there is a link to it. A lexeme is a regular language: what tokens run through.</p>\n'
        + _TOOLS
        + f'<ul class="tree">{items}</ul>\n'
        + _source(source)
    )
    return page(title, body, scripts=["tree.js"])


def _source(source: Any) -> str:
    import json

    if not isinstance(source, JsonSchema):
        return ""
    schema = source.schema
    text = schema if isinstance(schema, str) else json.dumps(schema, indent=2, ensure_ascii=False)
    return f"<details><summary>The schema</summary><pre>{escape(text)}</pre></details>\n"


def _short(text: str) -> str:
    return cut(text, _LABEL)


class _Tree:
    """Rules as nested lists; each is told once."""

    def __init__(self, grammar: Grammar) -> None:
        self.grammar = grammar
        self.lexemes: set[Any] = set()
        self._told: set[int] = set()
        self._count = 0

    def item(self, rule: int, label: str, depth: int) -> str:
        """A rule."""
        body = self.grammar.rules[rule]
        while isinstance(body, (Choice, Seq)) and len(body.items) == 1:
            only = body.items[0]
            if isinstance(only, Ref):
                rule = only.rule
            body = self.grammar.rules[rule] if isinstance(only, Ref) else only
        if isinstance(body, (Term, Import)):
            return self._leaf(label, self._term(body))
        if isinstance(body, Ref):
            return self.item(body.rule, label, depth)
        name = self.grammar.names[rule]
        if rule in self._told:
            return self._leaf(label, f'<a href="#rule-{rule}">{escape(_short(name))}</a>')
        if depth > _DEEPEST or self._count > _MOST:
            return self._leaf(label, "…")
        self._told.add(rule)
        kind, below = self._body(body, depth + 1)
        head = f'<strong>{escape(_short(label))}</strong> <span class="quiet">{escape(kind)}</span>'
        opened = " open" if depth < 2 else ""
        return f'<li id="rule-{rule}"><details{opened}><summary>{head}</summary><ul>{"".join(below)}</ul></details></li>'

    def _leaf(self, label: str, content: str) -> str:
        self._count += 1
        return f"<li><strong>{escape(_short(label))}</strong> {content}</li>"

    def _body(self, body: Any, depth: int) -> tuple[str, list[str]]:
        """What a body is, and the items below it."""
        if isinstance(body, Record):
            return self._record(body, depth)
        if isinstance(body, Repeated):
            parts = [self.item(body.first, "the first", depth)]
            if body.rest != body.first:
                parts.append(self.item(body.rest, "each later one", depth))
            return f"items: {_times(body.min, body.max)}", parts
        if isinstance(body, Distinct):
            kind = "an array with items that are equal" if body.repeats else "an array of different items"
            return kind, self._expression(body.array, depth)
        if isinstance(body, Indented):
            return "a block of lines further in", [self.item(body.rule, "a line", depth)]
        if isinstance(body, Choice):
            return f"one of {len(body.items):,}" if body.items else "no text", self._several(
                body.items, "or", depth
            )
        if isinstance(body, Seq):
            return "one behind the other" if body.items else "the empty text", self._several(
                body.items, "then", depth
            )
        if isinstance(body, Switch):
            return "by its first part, one of", self._switch(body, depth)
        return type(body).__name__, []

    def _several(self, items: Iterable[Any], label: str, depth: int) -> list[str]:
        return [part for each in items for part in self._expression(each, depth, label)]

    def _expression(self, body: Any, depth: int, label: str = "is") -> list[str]:
        if isinstance(body, Ref):
            return [self.item(body.rule, label, depth)]
        if isinstance(body, (Term, Import)):
            return [self._leaf(label, self._term(body))]
        if depth > _DEEPEST or self._count > _MOST:
            return [self._leaf(label, "…")]
        kind, below = self._body(body, depth + 1)
        self._count += 1
        return [
            f'<li><details open><summary><strong>{label}</strong> <span class="quiet">{escape(kind)}</span></summary>'
            f"<ul>{''.join(below)}</ul></details></li>"
        ]

    def _record(self, body: Record, depth: int) -> tuple[str, list[str]]:
        for mark in (
            body.open,
            body.close_empty,
            body.comma,
            body.close,
            *((body.colon,) if body.has_colons else ()),
        ):
            self._term(mark)
        what = "texts, all different" if body.bare and body.unique else "texts" if body.bare else "members"
        what = "items" if body.keyless else what
        counted = not body.has_colons or body.min > 0 or body.max is not None
        kind = "object" if body.has_colons else "array"
        kind += f": {_times(body.min, body.max)} {what}" if counted else ""
        if not body.ordered:
            kind += ", in any order"
        if body.obligations:
            kind += f", {body.obligations} conditions to meet by one of them"
        parts = []
        for member in body.members:
            mark = "required" if member.required else "" if member.values else "must not occur"
            label = f"{member.name!r}" + (f", {mark}" if mark else "")
            parts += self._ways(label, member.values, depth)
        for other in body.others:
            if other.keys is None:
                parts += self._ways("each", other.values, depth)
                continue
            keys = self._language(other.keys)
            if body.bare:
                parts.append(self._leaf("each", f"<code>{escape(keys)}</code>"))
            else:
                parts += self._ways(f"other keys ({keys})", other.values, depth)
        if not body.others:
            parts.append(self._leaf("other keys", "none"))
        return kind, parts

    def _ways(self, label: str, values: Iterable[tuple[int, int]], depth: int) -> list[str]:
        """The ways to write a member's value."""
        listed = list(values)
        if not listed:
            return [self._leaf(label, "")]
        parts = []
        for i, (rule, reached) in enumerate(listed):
            way = f", way {i + 1}" if len(listed) > 1 else ""
            meets = f" (meets {reached.bit_count()})" if reached else ""
            parts.append(self.item(rule, label + way + meets, depth))
        return parts

    def _switch(self, body: Switch, depth: int) -> list[str]:
        parts = []
        for i, case in enumerate(body.cases):
            if isinstance(body.lexemes, Words):
                texts = [text.decode("utf-8", "replace") for text, tag in body.lexemes.items() if tag == i]
                label = _listed(texts)
            else:
                label = self._language(body.lexemes[i])
            parts += self._expression(case, depth, escape(_short(label)))
        return parts

    def _term(self, body: Term | Import) -> str:
        """A lexeme, a token, or another grammar."""
        if isinstance(body, Import):
            name = body.key[0] if isinstance(body.key, tuple) else body.key
            # Behind the name of a key of bytes come its options.
            shown = (
                name.partition(b" (")[0].decode("utf-8", "replace") if isinstance(name, bytes) else str(name)
            )
            return f'<span class="quiet">the grammar of</span> {escape(_short(shown))}'
        return f"<code>{escape(_short(self._language(body.lexeme)))}</code>"

    def _language(self, lexeme: Any) -> str:
        """A lexeme in words: its kind, and what sets it apart."""
        if isinstance(lexeme, Words):
            self.lexemes.add(lexeme.key)
            return _one_of([text.decode("utf-8", "replace") for text, _ in lexeme.items()[: _LISTED + 1]])
        if isinstance(lexeme, Keyset):
            self.lexemes.add(lexeme)
            return _one_of(list(lexeme.names)) + (", or another" if lexeme.other is not None else "")
        if isinstance(lexeme, Lexeme):
            self.lexemes.add(lexeme.key)
            return _key(lexeme.key)
        return str(lexeme)


def _times(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} or more" if low else "any number of"
    return f"{low}" if low == high else f"{low} to {high}"


def _listed(texts: list[str]) -> str:
    shown = ", ".join(map(repr, texts[:_LISTED]))
    return shown + (", …" if len(texts) > _LISTED else "")


def _one_of(texts: list[str]) -> str:
    return ("one of " if len(texts) > 1 else "") + _listed(texts)


def _number(group: NumberGroup) -> str:
    if group.values is not None:
        listed = ", ".join(map(str, group.values))
        return f"one of the numbers {listed}" if len(group.values) > 1 else f"the number {listed}"
    kind = {True: "integer", False: "number that is no integer", None: "number"}[group.integral]
    low, high = group.low, group.high
    parts = [kind]
    if low is not None and high is not None and not (low.exclusive or high.exclusive):
        parts = [f"{kind} from {low.value} to {high.value}"]
    else:
        if low is not None:
            parts.append(f"{'more than' if low.exclusive else 'at least'} {low.value}")
        if high is not None:
            parts.append(f"{'less than' if high.exclusive else 'at most'} {high.value}")
    parts += [f"multiple of {each}" for each in group.multiples]
    parts += [f"no multiple of {each}" for each in group.non_multiples]
    parts += [f"not {each}" for each in group.excluded]
    if group.plain is not None:
        parts.append(f"{'without' if group.plain else 'with'} fraction or exponent")
    return ", ".join(parts)


def _string(group: StringGroup) -> str:
    low, high = group.min_length, group.max_length
    parts = []
    if high is not None and low:
        parts.append(_characters(f"{low}" if low == high else f"{low} to {high}", high))
    elif high is not None:
        parts.append(_characters(f"at most {high}", high))
    elif low:
        parts.append(_characters(f"at least {low}", low))
    parts += [f"format {each}" for each in group.formats] + [
        f"not format {each}" for each in group.not_formats
    ]
    parts += [f"pattern {each}" for each in group.patterns] + [
        f"not pattern {each}" for each in group.not_patterns
    ]
    parts += [] if group.values is None else [_one_of(list(group.values))]
    parts += [f"not {each!r}" for each in group.excluded]
    return ", ".join(parts)


def _characters(count: str, number: int) -> str:
    return f"{count} character{'' if number == 1 else 's'}"


def _key(key: Any) -> str:
    """What identifies a lexeme, for people: texts as they are, and of groups what is not usual."""
    if isinstance(key, str):
        mark = _MARK.fullmatch(key)
        return key.removeprefix("printed ") if mark is None else f'"{mark[2]}", whitespace {mark[1]}'
    if isinstance(key, NumberGroup):
        return _number(key)
    if isinstance(key, StringGroup):
        return _string(key)
    if isinstance(key, (Chars, Lit, Cat, Alt, Repeat, Machine)):
        return said(track_of(key, 1000))
    if is_dataclass(key) and not isinstance(key, type):
        parts = []
        for each in fields(key):
            value = getattr(key, each.name)
            # What is usual, and marks of how a part came about.
            if value == each.default or value is None or value is False or value == ():
                continue
            parts.append(each.name if value is True else f"{each.name} {_key(value)}")
        return ", ".join(parts) or "any"
    if isinstance(key, tuple):
        # Numbers are limits on digits and the like, which are the same for all.
        usual = {"printed", *(("number",) if any(isinstance(each, NumberGroup) for each in key) else ())}
        return ", ".join(
            _key(each)
            for each in key
            if not (each is None or each == () or isinstance(each, int) or each in usual)
        )
    return str(key)
