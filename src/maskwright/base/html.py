"""Pieces of HTML that pages and notebooks share.  Whatever is put into them is text: nothing of it becomes markup."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def escape(text: object) -> str:
    """Text as HTML, also within quotes."""
    return html.escape(str(text))


def cut(text: str, most: int) -> str:
    """At most so many characters of a text."""
    return text if len(text) <= most else text[: most - 1] + "…"


def table(
    caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: Iterable[int] = ()
) -> str:
    """A table; ``numbers``: columns that are set flush right.  The first column names its row.  All cells are text; one with
    line breaks keeps them."""
    right = set(numbers)

    def cell(kind: str, at: int, content: object) -> str:
        mark = ' class="number"' if at in right else ""
        scope = ' scope="row"' if kind == "th" else ""
        text = escape(content)
        if "\n" in text:
            text = f"<pre>{text}</pre>"
        return f"<{kind}{scope}{mark}>{text}</{kind}>"

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


def percent(share: float) -> str:
    """A share of one, for people."""
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


# --- notebooks ------------------------------------------------------------------------------

MOST_ROWS = 50
"""What a notebook shows of a long list."""
_MOST_CHARACTERS = 20_000


def shown(text: str) -> str:
    """A text as it stands, cut where it is too long to look at."""
    left = f"\n… {len(text) - _MOST_CHARACTERS:,} more characters" if len(text) > _MOST_CHARACTERS else ""
    return f'<pre style="white-space: pre-wrap">{escape(text[:_MOST_CHARACTERS] + left)}</pre>\n'


def some(
    caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]], *, numbers: Iterable[int] = ()
) -> str:
    """The first rows of a table, and how many are left out."""
    left = len(rows) - MOST_ROWS
    more = f"<p>… and {left:,} more</p>\n" if left > 0 else ""
    return table(caption, heads, rows[:MOST_ROWS], numbers=numbers) + more
