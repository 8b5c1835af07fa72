"""A report of what was measured: JSON of ``maskwright bench`` and of the programs in ``bench/``, as tables and curves.

Nothing is known of any one program.  Objects that are alike (engines, families) are rows of tables, one for each thing that they say;
so are lists of objects, which are curves as well.  What else there is stands as figures.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from maskwright.base.html import cut, escape, facts, table
from maskwright.errors import MaskwrightError
from maskwright.pages.page import page

_CURVE = 5
"""Numbers that make a curve."""
_MOST_CURVES = 8
"""Of one table."""
_MOST_ROWS = 400
_DEEPEST = 12
_WIDTH, _HEIGHT = 260, 90
_CELL = 200
_Rows: TypeAlias = list[tuple[str, Mapping[str, Any]]]
_Along: TypeAlias = tuple[str, Sequence[Any]]
"""What curves are drawn over: its name, and a number for each row."""


def report(results: Mapping[str, Any], title: str = "Measured") -> str:
    """The page: HTML, one file.  ``results``: by name, what ``json.load`` gives.

    Raises ``MaskwrightError`` where there is none.
    """
    if not results:
        raise MaskwrightError("a report needs results: the name of each, and its figures")
    links = " · ".join(f'<a href="#result-{i}">{escape(name)}</a>' for i, name in enumerate(results))
    body = f'<nav aria-label="results"><p>{links}</p></nav>\n' if len(results) > 1 else ""
    for i, (name, value) in enumerate(results.items()):
        body += f'<section id="result-{i}"><h2>{escape(name)}</h2>\n{_shown(value, (name,))}</section>\n'
    return page(title, body)


def _shown(value: Any, path: tuple[str, ...]) -> str:
    """A value below its heading; ``path`` are the names that lead to it."""
    if len(path) > _DEEPEST:
        return "<p>…</p>\n"
    if isinstance(value, Mapping):
        return _object({str(key): each for key, each in value.items()}, path)
    if not isinstance(value, (list, tuple)):
        return f"<p>{escape(_figure(value))}</p>\n"
    if value and all(isinstance(each, Mapping) for each in value):
        return _group([(str(i), each) for i, each in enumerate(value)], path, _along(value))
    if any(isinstance(each, (list, tuple, Mapping)) for each in value):
        return "".join(_below(f"{path[-1]} {i}", each, path) for i, each in enumerate(value[:_MOST_ROWS]))
    return _curve(path[-1], value, range(len(value)), "place") + f"<p>{escape(_listed(value))}</p>\n"


def _object(value: Mapping[str, Any], path: tuple[str, ...]) -> str:
    """Figures first; then objects that are alike as rows; then the others, each for itself."""
    plain = [(key, _figure(each)) for key, each in value.items() if not _is_inner(each)]
    inner = {key: each for key, each in value.items() if _is_inner(each)}
    made = facts(plain) if plain else ""
    rows = [(key, each) for key, each in inner.items() if isinstance(each, Mapping)]
    if len(rows) > 1 and _are_alike([each for _, each in rows]):
        made += _group(rows, path)
        inner = {key: each for key, each in inner.items() if not isinstance(each, Mapping)}
    return made + "".join(_below(key, each, path) for key, each in inner.items())


def _below(name: str, value: Any, path: tuple[str, ...]) -> str:
    opened = " open" if len(path) < 2 else ""
    return (
        f"<details{opened}><summary><strong>{escape(name)}</strong></summary>\n"
        f'<div class="below">{_shown(value, (*path, name))}</div></details>\n'
    )


def _group(rows: _Rows, path: tuple[str, ...], along: _Along | None = None) -> str:
    """A table of the figures of rows; one more for each object that they have; and what else they have."""
    columns = list(dict.fromkeys(str(key) for _, row in rows for key in row))
    inner = [key for key in columns if any(_is_inner(row.get(key)) for _, row in rows)]
    plain = [key for key in columns if key not in inner]
    made = _table(rows, plain, path, along) if plain else ""
    for key in inner:
        below = [(label, row[key]) for label, row in rows if _is_inner(row.get(key))]
        if all(isinstance(each, Mapping) for _, each in below) and len(path) < _DEEPEST:
            made += _group(below, (*path, key), along if len(below) == len(rows) else None)
        else:
            made += "".join(_below(f"{label}: {key}", each, path) for label, each in below[:_MOST_ROWS])
    return made


def _table(rows: _Rows, columns: Sequence[str], path: tuple[str, ...], along: _Along | None) -> str:
    numbers = [i + 1 for i, key in enumerate(columns) if all(_is_number(row.get(key, 0)) for _, row in rows)]
    lines = [[label, *(_figure(row.get(key, "")) for key in columns)] for label, row in rows[:_MOST_ROWS]]
    left = len(rows) - len(lines)
    return (
        ("" if along is None else _curves(rows, columns, along))
        + table(", ".join(path), ("name" if along is None else "row", *columns), lines, numbers=numbers)
        + (f"<p>… and {left:,} more rows</p>\n" if left > 0 else "")
    )


def _along(rows: Sequence[Mapping[str, Any]]) -> _Along:
    """The first figure of rows where it grows, else their places."""
    name = next(iter(rows[0]), "")
    first = [row.get(name) for row in rows]
    if all(map(_is_number, first)) and all(a < b for a, b in itertools.pairwise(first)):  # type: ignore[operator]
        return str(name), first
    return "row", range(len(rows))


def _curves(rows: _Rows, columns: Sequence[str], along: _Along) -> str:
    """A curve for each column of numbers."""
    what, places = along
    drawn = [_curve(key, [row.get(key) for _, row in rows], places, what) for key in columns if key != what]
    made = [each for each in drawn if each][:_MOST_CURVES]
    return f'<div class="curves">{"".join(made)}</div>\n' if made else ""


def _curve(name: str, values: Sequence[Any], along: Sequence[float], what: str) -> str:
    """Numbers as a curve from 0 on; empty where they are none, or too few, or all the same."""
    if len(values) < _CURVE or not all(map(_is_number, values)):
        return ""
    places = [float(at) for at in along]
    wide = places[0] > 0 and places[-1] > 100 * places[0]
    if wide:
        places = [math.log(at) for at in places]
    low, high = places[0], places[-1]
    top, bottom = max(0.0, *values), min(0.0, *values)
    if min(values) == max(values) or not math.isfinite(top - bottom):
        return ""
    points = " ".join(
        f"{_WIDTH * (at - low) / (high - low):.1f},{_HEIGHT * (top - value) / (top - bottom):.1f}"
        for at, value in zip(places, values, strict=True)
    )
    said = f"{name} over {what}: from {_figure(values[0])} to {_figure(values[-1])}, at most {_figure(max(values))}"
    below = f"{name}, up to {_figure(max(values))}; {what} {_figure(along[0])} to {_figure(along[-1])}"
    return (
        f'<figure><svg class="curve" viewBox="0 -2 {_WIDTH} {_HEIGHT + 4}" role="img" aria-label="{escape(said)}">'
        f'<polyline points="{points}"/></svg>'
        f"<figcaption>{escape(below)}{', logarithmic' if wide else ''}</figcaption></figure>\n"
    )


def _is_inner(value: Any) -> bool:
    """Whether a value is more than a figure or a few of them."""
    if isinstance(value, Mapping):
        return bool(value)
    if not isinstance(value, (list, tuple)):
        return False
    return len(value) >= _CURVE or any(isinstance(each, (list, tuple, Mapping)) for each in value)


def _are_alike(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether rows share at least half of what they say with the first one."""
    first = set(rows[0])
    return all(2 * len(first & set(row)) >= len(first | set(row)) for row in rows)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _figure(value: Any) -> str:
    """A figure for people: numbers with four digits that count."""
    if isinstance(value, (list, tuple)):
        return _listed(value) if value else "none"
    if value is None or value == {}:
        return "none"
    if not _is_number(value):
        return cut(str(value), _CELL)
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    if not 1e-3 <= abs(value) < 1e12:
        return f"{value:.3g}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def _listed(values: Sequence[Any]) -> str:
    return cut(", ".join(_figure(each) for each in values[:_MOST_ROWS]), 5 * _CELL)
