"""Are masks inside of lexer modes as fast as around them?  Python files of the standard library that have formatted strings with fields.

    python bench/modes.py [--files 60] [--out FILE]

A token belongs to where its first byte stands: inside of a formatted string, from its opening quotes to its closing ones (by ``ast``), or around it.
Times are those of ``fill_next_token_bitmask`` and ``accept_token`` together, tekken's vocabulary, one thread; each file is read twice: the first reading makes masks and
states, the second one finds those of the first.
"""

from __future__ import annotations

import argparse
import ast
import json
import sysconfig
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
from maskbench_tokenizers import tekken

from grammars import Ours

INSIDE, AROUND = "in formatted strings", "around them"


def inside(text: str) -> np.ndarray:
    """bool [bytes]: which bytes are in a formatted string with a field."""
    starts = np.cumsum([0, *[len(line.encode()) for line in text.splitlines(keepends=True)]])
    marked = np.zeros(len(text.encode()) + 1, dtype=bool)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr) and any(
            isinstance(each, ast.FormattedValue) for each in node.values
        ):
            assert node.end_lineno is not None and node.end_col_offset is not None
            marked[
                starts[node.lineno - 1] + node.col_offset : starts[node.end_lineno - 1] + node.end_col_offset
            ] = True
    return marked


def texts(count: int) -> list[str]:
    """The first files, by name, that have ten such strings and more, and no line breaks that ``str`` alone sees."""
    found = []
    for path in sorted(Path(sysconfig.get_path("stdlib")).rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        try:
            text = path.read_text("utf-8")
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            continue
        if (
            sum(isinstance(node, ast.JoinedStr) for node in ast.walk(tree)) < 10
            or text.splitlines() != text.split("\n")[:-1]
        ):
            continue
        found.append(text)
        if len(found) == count:
            break
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, default=60)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    tokenizer = tekken()
    engine = Ours(tokenizer)
    begin = engine.compile("python")
    micro: dict[str, list[float]] = defaultdict(list)
    files = texts(args.files)
    for text in files:
        marked = inside(text)
        for reading in ("first reading", "second reading"):
            at, step = 0, begin()
            for token in tokenizer.encode(text):
                began = time.perf_counter()
                accepted = step(token)
                took = 1e6 * (time.perf_counter() - began)
                if not accepted:
                    raise ValueError(f"the grammar refuses a file at byte {at}: {text[:80]!r}")
                micro[f"{reading}, {INSIDE if marked[at] else AROUND}"].append(took)
                at += len(engine.vocabulary.decode([token]))
    rows = {
        name: {
            "tokens": len(values), "avg": float(np.mean(values)),
            **{f"p{q:g}": float(np.percentile(values, q)) for q in (50, 99, 99.9)},
        }
        for name, values in micro.items()
    }  # fmt: skip
    for name, row in rows.items():
        print(name, {key: round(value, 1) for key, value in row.items()})
    if args.out:
        args.out.write_text(json.dumps({"files": len(files), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
