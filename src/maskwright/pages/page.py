"""The frame of all pages: one file, colours for light and dark, no request to anywhere."""

from __future__ import annotations

import html
import json
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

_ASSETS = Path(__file__).parent / "assets"


def escape(text: object) -> str:
    """Text as HTML, also within quotes."""
    return html.escape(str(text))


@cache
def asset(name: str) -> str:
    """A style or a script that comes with this package."""
    return (_ASSETS / name).read_text(encoding="utf-8")


def embedded(data: Any) -> str:
    """JSON as the content of a ``script`` element, which ends at ``</`` and at nothing else."""
    return (
        json.dumps(data, ensure_ascii=False)
        .replace("<", "\\u003c")
        .replace("\u2028", "\\u2028")
        .replace("\u2029", "\\u2029")
    )


def page(
    title: str, body: str, *, scripts: Sequence[str] = (), data: Any = None, connects: bool = False
) -> str:
    """A whole page.

    body: HTML within ``main``.  scripts: names of assets, run in order.  data: read by scripts from the element ``data``.
    connects: whether its scripts may ask the server that it comes from; otherwise the page is not allowed any request.
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    if connects:
        policy += "; connect-src 'self'"
    given = "" if data is None else f'<script type="application/json" id="data">{embedded(data)}</script>\n'
    code = "".join(f"<script>\n{asset(name)}</script>\n" for name in scripts)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n<title>{escape(title)}</title>\n'
        f"<style>\n{asset('page.css')}</style>\n</head>\n<body>\n<main>\n<h1>{escape(title)}</h1>\n{body}</main>\n{given}{code}</body>\n</html>\n"
    )


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()
) -> str:
    """A table; ``numbers``: columns that are set flush right.  The first column names its row.  All cells are text."""
    right = set(numbers)

    def cell(kind: str, at: int, content: object) -> str:
        mark = ' class="number"' if at in right else ""
        scope = ' scope="row"' if kind == "th" else ""
        return f"<{kind}{scope}{mark}>{escape(content)}</{kind}>"

    head = "".join(
        f'<th scope="col"{" class=number" if i in right else ""}>{escape(name)}</th>'
        for i, name in enumerate(heads)
    )
    lines = [
        "<tr>" + "".join(cell("th" if i == 0 else "td", i, each) for i, each in enumerate(row)) + "</tr>"
        for row in rows
    ]
    return (
        f'<div class="scrolls" tabindex="0" role="region" aria-label="{escape(caption)}"><table>\n'
        f"<caption>{escape(caption)}</caption>\n<thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{chr(10).join(lines)}\n</tbody></table></div>\n"
    )


def facts(pairs: Iterable[tuple[str, object]]) -> str:
    """Names and figures, as a list."""
    return (
        '<dl class="facts">'
        + "".join(f"<div><dt>{escape(n)}</dt><dd>{escape(v)}</dd></div>" for n, v in pairs)
        + "</dl>\n"
    )
