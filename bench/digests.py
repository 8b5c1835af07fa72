"""Did a mask move?  Digests of everything that the engine says about a fixed, broad set of sources.

    python bench/digests.py --out old.json.gz               # before a change of the core
    python bench/digests.py --out new.json.gz --against old.json.gz
    python bench/digests.py --compare old.json.gz new.json.gz

A file has a line for each source: masks along texts and random walks, shortest completions, forced text, what is accepted and
rejected, errors, masks of sets of states and of canvases.  A difference is named by source, text and token.  The same build
writes the same file each time, on every machine.  ``--quick`` asks a small part; MaskBench and the official JSON Schema suite
are asked when they are in ``MASKWRIGHT_DATA`` (default: ``shared/data`` beside the checkout).  ``--state-budget 0``: grammars
begin anew with their states all the time, which must change nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from unittest.mock import patch

from digest_record import MASK_HEX, record

FORMAT = 1
MOST_TOKENS = 200
MOST_JOBS = 2

Record = dict[str, Any]

# --- making


def share(quick: bool, only: str, budget: int | None, part: int, parts: int) -> list[tuple[int, str]]:
    """(Index, line) of every ``parts``-th source; ``budget``: bytes of states that a grammar may keep."""
    import digest_sources

    lines, seconds, started = [], Counter[str](), time.monotonic()
    for index, source in enumerate(digest_sources.sources(quick)):
        if index % parts != part or not fnmatchcase(source.name, only):
            continue
        words = digest_sources.words(source.words)
        if budget is not None:
            words.vocabulary.state_budget = budget
        line = json.dumps(record(source, words, MOST_TOKENS), sort_keys=True)
        lines.append((index, line))
        now = time.monotonic()
        if now - started > 10:
            print(f"{source.name}: {now - started:.0f} s", file=sys.stderr, flush=True)
        seconds[source.name.split("/")[0]] += now - started
        started = now
    print(
        ", ".join(f"{group} {spent:.0f} s" for group, spent in seconds.items()), file=sys.stderr, flush=True
    )
    return lines


def make(quick: bool, only: str, budget: int | None, jobs: int) -> Iterator[str]:
    """The lines of a file: what it is of, then its records in order."""
    import digest_sources

    yield json.dumps({"format": FORMAT, "quick": quick, "only": only, "missing": digest_sources.missing()})
    # What is on disk may have been put there by another build.
    with tempfile.TemporaryDirectory() as cache, patch.dict(os.environ, MASKWRIGHT_CACHE_DIR=cache):
        if jobs == 1:
            shares = [share(quick, only, budget, 0, 1)]
        else:
            context = multiprocessing.get_context("spawn")
            with ProcessPoolExecutor(jobs, mp_context=context) as pool:
                asked = [quick] * jobs, [only] * jobs, [budget] * jobs, range(jobs), [jobs] * jobs
                shares = list(pool.map(share, *asked))
    for _, line in sorted(line for lines in shares for line in lines):
        yield line


def write(path: Path, lines: Iterable[str]) -> None:
    # Neither name nor time in the header, so that equal digests are equal files.
    with open(path, "wb") as raw, gzip.GzipFile("", "wb", mtime=0, fileobj=raw) as file:
        for line in lines:
            file.write(line.encode() + b"\n")


# --- comparing


def read(path: Path) -> tuple[Record, dict[str, Record]]:
    """What a file is of, and its records by name."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        header = json.loads(next(file))
        return header, {found["name"]: found for found in map(json.loads, file)}


def compare(old: dict[str, Record], new: dict[str, Record]) -> Iterator[str]:
    """A line for every source that differs."""
    for name in {**old, **new}:
        if name not in new:
            yield f"{name}: only in the old file"
        elif name not in old:
            yield f"{name}: only in the new file"
        elif old[name]["digest"] != new[name]["digest"]:
            found = difference(old[name], new[name])
            if found:
                yield f"{name}: {found}"


def difference(old: Record, new: Record) -> str:
    """Where two records of one name begin to differ; empty where only one of them stopped at a limit.

    How many states there are is nobody's business but the engine's.  So a text that a limit ended is compared as far as
    both files go.
    """
    if old["source"] != new["source"]:
        return "another source by this name: what is asked has changed, not what is answered"
    if old.get("error") != new.get("error"):
        return f"compiling: {old.get('error', 'no error')!r} is now {new.get('error', 'no error')!r}"
    limited = False
    for before, after in zip(old["texts"], new["texts"], strict=True):
        ended = any(text["error"].startswith("LimitError") for text in (before, after))
        limited = limited or ended
        if before["name"] == "batch" and limited:
            continue  # it begins where the texts ended
        found = "" if before == after else _text_difference(before, after, old["words"], ended)
        if found:
            return f"{before['name']}: {found}"
    return ""


def _text_difference(old: Record, new: Record, words: str, ended: bool) -> str:
    masks = [
        [text["masks"][at : at + MASK_HEX] for at in range(0, len(text["masks"]), MASK_HEX)]
        for text in (old, new)
    ]
    spots = [
        (before, after) for before, after in zip(old["spots"], new["spots"], strict=False) if before != after
    ]
    found = [
        (_first(*masks, ended), "mask"),
        (_first(old["marks"], new["marks"], ended), "accepting, ended or rejected"),
        (_first(old["ids"], new["ids"], ended), "the next token"),
        (spots[0][0][0], spots[0][0][1]) if spots else (None, ""),
    ]
    places = [(at, number, what) for number, (at, what) in enumerate(found) if at is not None]
    if not places:
        if ended:
            return ""
        return f"error {old['error']!r} is now {new['error']!r}, behind {_told(old, len(old['ids']), words)}"
    at, _, what = min(places)
    return f"{what} differs at token {at}, behind {_told(old, at, words)}"


def _first(old: Any, new: Any, ended: bool) -> int | None:
    """The first place where two sequences differ; ``ended``: one may be longer."""
    shorter = min(len(old), len(new))
    longer = None if ended or len(old) == len(new) else shorter
    return next((i for i in range(shorter) if old[i] != new[i]), longer)


def _told(text: Record, count: int, words: str) -> str:
    """The end of a text as it was read, in tokens."""
    import digest_sources

    tokens = digest_sources.words(words).vocabulary.tokens
    ids = text["ids"][:count][-12:]
    return f"{'... ' if count > len(ids) else ''}{[tokens[i] for i in ids]} (ids {ids})"


def report(old: Path, new: Path) -> int:
    """Prints what differs; 0 when nothing does."""
    (header, before), (other, after) = read(old), read(new)
    if header != other:
        print(f"the files are not of the same sources: {header} and {other}")
        return 1
    found = list(compare(before, after))
    for line in found:
        print(line)
    print(
        f"{len(found)} of {len(before)} sources differ" if found else f"{len(before)} sources, none differs"
    )
    return 1 if found else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="write digests to this file (.json.gz)")
    parser.add_argument("--against", type=Path, help="and compare them with this file")
    parser.add_argument("--compare", type=Path, nargs=2, metavar=("OLD", "NEW"), help="compare two files")
    parser.add_argument("--quick", action="store_true", help="a small part of the sources")
    parser.add_argument("--only", default="*", help="sources whose names match this pattern, as 'counted/*'")
    parser.add_argument("--state-budget", type=int, help="bytes of states that a grammar may keep")
    parser.add_argument("--jobs", type=int, default=1, choices=range(1, MOST_JOBS + 1), help="processes")
    args = parser.parse_args(arguments)
    if args.compare:
        if args.out or args.against:
            parser.error("--compare reads two files and writes none")
        return report(*args.compare)
    if not args.out:
        parser.error("say where to write (--out FILE), or what to compare (--compare OLD NEW)")
    lines = list(make(args.quick, args.only, args.state_budget, args.jobs))
    write(args.out, lines)
    header = json.loads(lines[0])
    if header["missing"]:
        print(
            f"not here, and so not asked: {', '.join(header['missing'])} (MASKWRIGHT_DATA names their folder)"
        )
    print(f"{len(lines) - 1} sources, {args.out.stat().st_size / 1e6:.1f} MB in {args.out}")
    return report(args.against, args.out) if args.against else 0


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        sys.exit(main())
