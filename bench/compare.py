"""Ratios out of results of ``maskbench.py``: ours to the peers of one run, or one run to another.

    python bench/compare.py A.json           # ours / peer in this run: below 1, ours is faster or smaller
    python bench/compare.py A.json B.json    # B / A for every engine: the peers show how the machine drifted

Exit code 2 for files that are no such results.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TIMES = ("first mask", "second", "mask", "mask+accept")
STATISTICS = ("avg", "p50", "p90", "p99", "p99.9", "max")
OURS = "ours"

Figures = dict[str, dict[str, float]]
"""Numbers of one engine: figure -> statistic -> value."""


class ResultsError(Exception):
    """A file does not hold results; the message says which and why."""


def load(path: Path) -> dict[str, Any]:
    try:
        results = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ResultsError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise ResultsError(f"{path}: not JSON: {error}") from error
    if not isinstance(results, dict) or not results.get("engines"):
        raise ResultsError(f'{path}: not results of maskbench.py: it has no "engines"')
    try:
        found = [engines for _, _, engines in sections(results)]
        numbers = [
            n for engines in found for one in engines.values() for part in one.values() for n in part.values()
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise ResultsError(f"{path}: not results of maskbench.py, or damaged: {error!r}") from error
    if not numbers or not all(isinstance(number, (int, float)) for number in numbers):
        raise ResultsError(f"{path}: not results of maskbench.py: no numbers of {', '.join(TIMES)}")
    return results


def sections(results: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Figures]]]:
    """The key, the title and the numbers by engine of each part of the results."""
    engines = results["engines"]
    yield "all", "all cases", {name: _times(one) for name, one in engines.items()}
    common = results.get("common")
    if common and len(engines) > 1:
        title = f"the {common['cases']} cases that every engine passes"
        yield "common", title, {name: _times(one) for name, one in common["engines"].items()}
    yield "costs", "set-up and memory", {name: _costs(one) for name, one in engines.items()}


def _times(engine: dict[str, Any]) -> Figures:
    return {name: engine[name] for name in TIMES if engine.get(name)}


def _costs(engine: dict[str, Any]) -> Figures:
    # Imports are no part of it: what is imported already when an engine is, differs between them.
    found = {
        f"set-up {kind}": {part: value for part, value in parts.items() if part != "import"}
        for kind, parts in engine.get("setup", {}).items()
    }
    if "memory" in engine:
        memory = engine["memory"]
        found["memory"] = {"peak": memory["peak"], "peak, added": memory["peak"] - memory["before"]}
    return found


def ratio(above: Figures, below: Figures, figure: str, statistic: str) -> str:
    """``above / below``, or a dash where either is missing."""
    high, low = above.get(figure, {}).get(statistic), below.get(figure, {}).get(statistic)
    return f"{high / low:.3f}" if high is not None and low else "-"


def with_warm(peer: Figures) -> Figures:
    """A peer has only a cold set-up: both of ours are compared with it."""
    cold = peer.get("set-up cold")
    return {**peer, "set-up warm": cold} if cold else peer


def table(title: str, rows: list[tuple[str, str]], columns: dict[str, tuple[Figures, Figures]]) -> None:
    """Print a ratio for every figure and column; nothing when there is none."""
    cells = [(" ".join(row), [ratio(*pair, *row) for pair in columns.values()]) for row in rows]
    if not any(value != "-" for _, values in cells for value in values):
        return
    width = max(len(name) for name, _ in cells)
    widths = [max(10, len(column)) for column in columns]
    print(f"\n{title}")
    print(" " * width, *(f"{column:>{w}}" for column, w in zip(columns, widths, strict=True)), sep="  ")
    for name, values in cells:
        shown = (f"{value:>{w}}" for value, w in zip(values, widths, strict=True))
        print(f"{name:{width}}", *shown, sep="  ")


def rows_of(*engines: Figures) -> list[tuple[str, str]]:
    """Every figure and statistic that some engine has, in order; counts are no figures."""
    found = {
        (figure, statistic): None
        for one in engines
        for figure, parts in one.items()
        for statistic in (STATISTICS if figure in TIMES else parts)
    }
    return list(found)


def show_one(results: dict[str, Any]) -> None:
    if OURS not in results["engines"] or len(results["engines"]) < 2:
        raise ResultsError("one file needs ours and a peer in it; pass two files to compare two runs")
    peers = [name for name in results["engines"] if name != OURS]
    print("ours / peer; below 1, ours is faster or smaller")
    for _, title, engines in sections(results):
        ours = engines[OURS]
        table(title, rows_of(ours), {peer: (ours, with_warm(engines[peer])) for peer in peers})


def show_two(first: dict[str, Any], second: dict[str, Any]) -> None:
    shared = [name for name in second["engines"] if name in first["engines"]]
    if not shared:
        raise ResultsError("the two files have no engine in common")
    print("B / A; below 1, B is faster or smaller")
    for key in ("machine", "versions", "options"):
        if first.get(key) != second.get(key):
            print(f"not the same {key}: A {first.get(key)}, B {second.get(key)}")
    if first.get("cases") != second.get("cases"):
        print(f"not the same number of cases: A {first.get('cases')}, B {second.get('cases')}")
    before = {key: (title, engines) for key, title, engines in sections(first)}
    for key, title, engines in sections(second):
        if key not in before:
            continue
        earlier_title, earlier = before[key]
        if title != earlier_title:
            title = f"{title}; in A {earlier_title}"
        rows = rows_of(*(engines[name] for name in shared))
        table(title, rows, {name: (engines[name], earlier[name]) for name in shared})


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="RESULTS", help="one or two files")
    args = parser.parse_args()
    if len(args.files) > 2:
        parser.error("one or two files")
    try:
        loaded = [load(path) for path in args.files]
        if len(loaded) == 1:
            show_one(loaded[0])
        else:
            show_two(*loaded)
    except ResultsError as error:
        print(f"compare: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
