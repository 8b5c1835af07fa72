"""The shipped Python grammar against the standard library: every file that ``ast`` accepts must be accepted.

    python bench/stdlib.py [--version 3.12] [--files N] [--seed N] [--jobs N] [--only PART-OF-A-PATH]

A version other than the default has a program of its own (``python3.12``) on PATH, whose ``ast`` judges its standard library.

Prints each file that is refused, with the line where it leaves the grammar and what was expected there, and last how
many of how many were accepted.  Files that are no UTF-8, or that ``ast`` refuses, are counted apart.  A last line
without a line feed gets one, as Python's own tokenizer does.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import subprocess
import sys
import sysconfig
import time
import warnings
from dataclasses import dataclass
from functools import partial
from multiprocessing import Pool
from pathlib import Path

from languages import said_by_python

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling.shipped import shipped_grammar

# Whole files make many states; they are let go with the process.
LIMITS = mw.Limits(max_seconds=600.0, max_lexer_states=10_000_000, max_parser_states=100_000_000)
FILES_A_PROCESS = 40


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a file: ``problem`` is None for one that was accepted, or that Python refuses too."""

    name: str
    is_python: bool
    size: int = 0
    seconds: float = 0.0
    problem: str | None = None


def source_text(path: Path, version: str | None) -> str | None:
    """The text of a file that Python accepts; None for any other."""
    data = path.read_bytes()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if version is None:
                ast.parse(data)
        text = data.decode("utf-8-sig")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if version is not None and said_by_python(version, [text]) != [""]:
        return None
    return text if text.endswith("\n") else text + "\n"


def standard_library(version: str | None) -> Path:
    """The folder of its files."""
    if version is None:
        return Path(sysconfig.get_path("stdlib"))
    command = [f"python{version}", "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"]
    return Path(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())


_compiled: list[mw.CompiledGrammar] = []


def check(root: Path, version: str | None, path: Path) -> Outcome:
    """Reads one file with the grammar."""
    name = path.relative_to(root).as_posix()
    text = source_text(path, version)
    if text is None:
        return Outcome(name, is_python=False)
    if not _compiled:
        _compiled.append(compile_for_bytes(shipped_grammar("python", version), LIMITS)[1])
    data = text.encode()
    matcher = _compiled[0].matcher()
    started = time.perf_counter()
    try:
        accepted = (not data or matcher.accept_bytes(data)) and matcher.is_accepting
        problem = None if accepted else _place(data)
    except mw.MaskwrightError as error:
        problem = str(error)
    return Outcome(name, True, len(data), time.perf_counter() - started, problem)


def _place(data: bytes) -> str:
    read = _compiled[0].matcher().longest_prefix(data)
    before = data[:read].decode("utf-8", "ignore")
    line = before.count("\n")
    shown = data.decode().split("\n")[line]
    column = len(before) - before.rfind("\n") - 1
    return f"line {line + 1}: {shown[max(0, column - 60) : column]!r} then {shown[column : column + 30]!r}"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", type=int, help="so many, chosen at random (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", metavar="PART", help="files whose path has this part")
    parser.add_argument("--version", help="of Python, and of its grammar (default: 3.11, this interpreter)")
    args = parser.parse_args()
    root = standard_library(args.version)
    paths = sorted(
        Path(folder) / file
        for folder, _, files in os.walk(root)
        for file in files
        if file.endswith(".py") and "site-packages" not in folder and args.only in os.path.join(folder, file)
    )
    random.Random(args.seed).shuffle(paths)
    outcomes: list[Outcome] = []
    with Pool(args.jobs, maxtasksperchild=FILES_A_PROCESS) as pool:
        for outcome in pool.imap_unordered(
            partial(check, root, args.version), paths[: args.files], chunksize=1
        ):
            outcomes.append(outcome)
            if outcome.problem is not None:
                print(f"{outcome.name}: {outcome.problem}", flush=True)
    read = [outcome for outcome in outcomes if outcome.is_python]
    refused = sum(outcome.problem is not None for outcome in read)
    size, seconds = sum(outcome.size for outcome in read), sum(outcome.seconds for outcome in read)
    print(
        f"{len(read) - refused} of {len(read)} files accepted ({size / 1e6:.1f} MB, {seconds / max(size, 1) * 1e6:.1f} us "
        f"a byte); {len(outcomes) - len(read)} are no Python for this interpreter"
    )
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
