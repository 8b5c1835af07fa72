"""Railroad diagrams of a grammar: every way through the tracks from left to right is a text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from maskwright.base.html import cut, escape, facts, table
from maskwright.check.tracks import Again, Fork, Name, Pattern, Row, Text, Track, said, tracks
from maskwright.errors import MaskwrightError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.pages.page import page
from maskwright.sources import GBNF, Lark, Regex

_TWICE = re.compile(r"(<text [^<>]*>[^<>]*</text>)\1")
_CONTROLS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"})
_WIDTH = 860
"""Of a row (pixels); what is longer is continued below."""
_LONGEST = 60
"""Characters of a box."""
_MOST_RULES = 1000


def railroad(source: Lark | GBNF | Regex, limits: Limits = DEFAULT_LIMITS, title: str = "The grammar") -> str:
    """The page: HTML, one file, with a diagram for each rule.

    Needs the package railroad-diagrams, or raises ``MaskwrightError``; raises ``GrammarError`` or ``LimitError`` for a source that cannot be
    read, and for one without rules.
    """
    drawing = _package()
    found = tracks(source, limits)
    names = list(found.rules)[:_MOST_RULES]
    places = {name: f"rule-{i}" for i, name in enumerate(names)}
    places |= {name: f"terminal-{i}" for i, name in enumerate(found.terminals)}
    drawn = _Drawing(drawing, places)
    figures: list[tuple[str, object]] = [("Rules", len(found.rules))]
    if found.terminals:
        figures.append(("Terminals", len(found.terminals)))
    if found.ignored:
        figures.append(("Ignored between terminals", _visible("  ".join(found.ignored))))
    text = source.pattern if isinstance(source, Regex) else source.text
    body = (
        facts(figures)
        + '<p class="quiet">A text takes one way through the tracks, from left to right. Round boxes are text, sharp ones rules and terminals, which are links.</p>\n'
        + (_index(names, places) if len(names) > 1 else "")
        + "".join(drawn.section(name, found.rules[name]) for name in names)
        + (
            f"<p>… and {len(found.rules) - len(names):,} more rules.</p>\n"
            if len(found.rules) > len(names)
            else ""
        )
        + _terminals(found.terminals, found.ignored, places)
        + f"<details><summary>The source</summary><pre>{escape(text)}</pre></details>\n"
    )
    return page(title, body)


def _visible(pattern: str) -> str:
    """A pattern in which control characters are written out."""
    return pattern.translate(_CONTROLS)


def _package() -> ModuleType:
    try:
        import railroad
    except ImportError:
        raise MaskwrightError(
            'railroad diagrams are drawn by the package railroad-diagrams: pip install "maskwright[diagrams]"'
        ) from None
    return railroad  # type: ignore[no-any-return, unused-ignore]


def _index(names: Sequence[str], places: Mapping[str, str]) -> str:
    links = " · ".join(f'<a href="#{places[name]}">{escape(name)}</a>' for name in names)
    return f'<nav aria-label="rules"><p>{links}</p></nav>\n'


def _terminals(terminals: Mapping[str, str], ignored: Sequence[str], places: Mapping[str, str]) -> str:
    if not terminals:
        return ""
    rows = [
        f'<tr id="{places[name]}"><th scope="row">{escape(name)}</th><td><code>{escape(cut(_visible(pattern), 500))}</code></td>'
        f"<td>{'ignored between terminals' if name in ignored else ''}</td></tr>"
        for name, pattern in terminals.items()
    ]
    whole = table("Terminals", ("terminal", "pattern", "remark"), [])
    return whole.replace("<tbody>\n", "<tbody>\n" + "\n".join(rows))


class _Drawing:
    """Tracks as diagrams of the package."""

    def __init__(self, package: Any, places: Mapping[str, str]) -> None:
        self.package = package
        self.places = places

    def section(self, name: str, track: Track) -> str:
        """A heading and a diagram."""
        parts: list[str] = []
        diagram = self.package.Diagram(self.item(track), type="complex")
        diagram.attrs |= {"role": "group", "aria-label": f"diagram of {name}"}
        diagram.writeSvg(parts.append)
        # The package writes the text of a link twice.
        drawn = _TWICE.sub(r"\1", "".join(parts))
        heading = f'<h2 id="{self.places[name]}">{escape(name)}</h2>\n<p class="quiet mono">{escape(_visible(said(track)))}</p>\n'
        return f'{heading}<div class="scrolls diagram" tabindex="0" role="region" aria-label="{escape(name)}">{drawn}</div>\n'

    def item(self, track: Track) -> Any:
        package = self.package
        if isinstance(track, Text):
            return package.Terminal(cut(json.dumps(track.text, ensure_ascii=False), _LONGEST))
        if isinstance(track, Pattern):
            return package.Terminal(cut(_visible(track.text), _LONGEST), cls="pattern")
        if isinstance(track, Name):
            place = self.places.get(track.name)
            return package.NonTerminal(cut(track.name, _LONGEST), href=place and f"#{place}")
        if isinstance(track, Row):
            return self.row([self.item(each) for each in track.items])
        if isinstance(track, Fork):
            return (
                package.Choice(0, *(self.item(each) for each in track.items))
                if track.items
                else package.Skip()
            )
        body = self.item(track.body)
        match track.min, track.max:
            case 0, 1:
                return package.Optional(body)
            case 0, None:
                return package.ZeroOrMore(body)
            case 1, None:
                return package.OneOrMore(body)
            case 1, 1:
                return body
        return package.OneOrMore(body, package.Comment(_times(track)))

    def row(self, items: list[Any]) -> Any:
        """A sequence, in several lines where it is wide."""
        package = self.package
        if not items:
            return package.Skip()
        lines: list[list[Any]] = [[]]
        width = 0.0
        for item in items:
            if lines[-1] and width + item.width > _WIDTH:
                lines.append([])
                width = 0.0
            lines[-1].append(item)
            width += item.width + 20
        rows = [package.Sequence(*line) for line in lines]
        return rows[0] if len(rows) == 1 else package.Stack(*rows)


def _times(track: Again) -> str:
    if track.max is None:
        return f"{track.min} times or more"
    return f"{track.min} times" if track.min == track.max else f"{track.min} to {track.max} times"
