"""Mutation testing of the engine: which of many small changes in its modules (``cext/maskwright/_engine/*.pyx``) do its tests notice?

    python bench/core_mutants.py --count 100          # drawn from all files
    python bench/core_mutants.py stacks parser        # from some

All changes are compiled into one build, below ``build/mutants``, and each is behind a number that a process is given:

    if a < b:   ->   if a < mutant(17) + b:

so that a build serves for all, and what is not asked for changes nothing.  As in ``mutants.py``, a mutant that survives is equal to the original in all that
can be observed, costs only time or memory, or shows a hole in the tests.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mutants
from mutants import ROOT, SURVIVED

TREE = ROOT / "build" / "mutants"
ENGINE = Path("cext") / "maskwright" / "_engine"
TESTS = (
    "against_reference", "matcher", "tokens", "unique", "distinct_flat", "slices", "spelling", "limits", "lexing", "opening", "state_sets", "trees",
    "batch", "contains", "distinct", "generations", "eviction", "lexing_lookahead", "indentation", "mask_view", "speculation", "threads", "check_grammar",
)  # fmt: skip
"""The engine's own, in the order in which they are asked."""
BASELINE_SECONDS = 1200
"""The tests without a change may take so long."""
FAR_LONGER = 3
HEADER = """#pragma once
#include <cstdlib>
static const int MUTANT = std::getenv("MASKWRIGHT_MUTANT") ? std::atoi(std::getenv("MASKWRIGHT_MUTANT")) : 0;
static inline int mutant(int number) { return MUTANT == number; }
"""
DECLARED = 'cdef extern from "mutant.hpp" nogil:\n    int mutant(int number)\n'
_HEAD = re.compile(r"(?:cdef|cpdef|def) [^=]*\(.*\).*:$")
_CONDITION = re.compile(r"(\s+(?:if|elif) )(.+)(:.*)$")
_COMPARED = re.compile(r" (<|<=|>|>=) (?=[\w(])")
_ONE = re.compile(r" ([+-]) 1(?![\w.])")
_STATEMENT = re.compile(r"(\s+)([\w.\[\]\->() ]+ (?:\+|-|\||&)= .+|[\w.]+\(.*\)|continue)$")


def changes(lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """Small changes of a file: line (from 0), what, and the changed line with ``@`` for the mutant's number."""
    inside, quoted, depth = False, False, 0
    for at, line in enumerate(lines):
        code = line.rstrip()
        if not code.strip():
            continue
        if code.count('"""') % 2:
            quoted = not quoted
            continue
        if quoted or '"""' in code or code.lstrip().startswith("#"):
            continue
        if not line[0].isspace():
            inside = bool(_HEAD.match(code)) and "inline" not in code
        opened = depth > 0
        depth += sum(code.count(each) for each in "([{") - sum(code.count(each) for each in ")]}")
        if not inside or opened or depth or not line[0].isspace():
            continue
        if (
            code.lstrip().startswith(("cdef ", "def ", "cpdef ", "class ", "raise "))
            or '"' in code
            or "#" in code
        ):
            continue
        yield from ((at, what, changed) for what, changed in _of(code))


def _of(code: str) -> Iterator[tuple[str, str]]:
    condition = _CONDITION.match(code)
    if condition:
        before, test, behind = condition.groups()
        yield "condition negated", f"{before}(not ({test})) == mutant(@){behind}"
        for word, other in ((" and ", " or "), (" or ", " and ")):
            first, _, last = test.rpartition(word)
            if first and other not in test and _closed(first):
                kept = f"({last}) or mutant(@)" if word == " and " else f"({last}) and not mutant(@)"
                yield "last operand dropped", f"{before}({first}){word}({kept}){behind}"
    for found in _COMPARED.finditer(code):
        yield f"{found[1]} moved by one", f"{code[: found.end()]}mutant(@) + {code[found.end() :]}"
    for found in _ONE.finditer(code):
        yield (
            f"{found[1]} 1 -> {found[1]} 2",
            f"{code[: found.end() - 1]}(1 + mutant(@)){code[found.end() :]}",
        )
    statement = _STATEMENT.match(code)
    if statement and not statement[2].startswith(("if ", "while ", "for ", "with ", "return ", "elif ")):
        yield "left out", f"{statement[1]}if not mutant(@): {statement[2]}"


def _closed(text: str) -> bool:
    return all(text.count(a) == text.count(b) for a, b in ("()", "[]", "{}"))


class Build:
    """A copy of the package whose engine has mutants."""

    def __init__(self, names: list[str], count: int, seed: int) -> None:
        self.files = {
            path.stem: path.read_text(encoding="utf-8").splitlines()
            for path in sorted((ROOT / ENGINE).glob("*.pyx"))
            if not names or path.stem in names
        }
        every = [(name, *change) for name, lines in self.files.items() for change in changes(lines)]
        self.total = len(every)
        drawn: dict[tuple[str, int], tuple[str, int, str, str]] = {}
        for change in random.Random(seed).sample(every, len(every)):
            if len(drawn) < (count or len(every)):
                drawn.setdefault(change[:2], change)  # One of a line.
        self.mutants = dict(enumerate(sorted(drawn.values()), 1))

    def make(self) -> None:
        """Compile; what Cython or the C++ compiler cannot make sense of is left out."""
        shutil.rmtree(TREE, ignore_errors=True)
        shutil.copytree(ROOT / "cext", TREE / "cext")
        shutil.copytree(ROOT / "src", TREE / "src", symlinks=False)
        shutil.copytree(ROOT / "build" / "cython", TREE / "build" / "cython")
        for name in ("setup.py", "pyproject.toml", "README.md"):
            shutil.copy2(ROOT / name, TREE / name)
        (TREE / "cext" / "mutant.hpp").write_text(HEADER, encoding="utf-8")
        (TREE / ENGINE / "mutant.pxd").write_text(DECLARED, encoding="utf-8")
        while True:
            self._write()
            command = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace", "--parallel", "2"]
            done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                return
            places = re.findall(r"(\w+)\.pyx:(\d+):\d+: ", done.stdout + done.stderr)
            wrong = {(name, int(line) - 1) for name, line in places}
            left = {n: each for n, each in self.mutants.items() if each[:2] not in wrong}
            if len(left) == len(self.mutants):
                raise SystemExit((done.stdout + done.stderr)[-3000:])
            self.mutants = left

    def _write(self) -> None:
        changed = {name: list(lines) for name, lines in self.files.items()}
        for number, (name, at, _, line) in self.mutants.items():
            changed[name][at] = line.replace("@", str(number))
        for name, lines in changed.items():
            # In place of the first empty line, so that all others keep their numbers.
            lines[lines.index("")] = "from maskwright._engine.mutant cimport mutant"
            (TREE / ENGINE / f"{name}.pyx").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run(self, number: int, seconds: float) -> str:
        """What becomes of a mutant within so many seconds; 0 is none."""
        return mutants.tested(lambda: os.environ.update(MASKWRIGHT_MUTANT=str(number)), TESTS, seconds)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", help="modules of the engine")
    parser.add_argument("--count", type=int, default=100, help="changes drawn of all; 0 is all of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="file for the shares")
    args = parser.parse_args()
    build = Build(args.files, args.count, args.seed)
    build.make()
    print(f"{len(build.mutants)} mutants compiled, of {build.total} possible", flush=True)
    mutants.ready(TREE / "src")
    started = time.monotonic()
    if build.run(0, BASELINE_SECONDS) != SURVIVED:
        print("the tests fail without any change")
        return 1
    # What takes far longer than that on this machine has no end.
    seconds = FAR_LONGER * (time.monotonic() - started)
    with ThreadPoolExecutor(args.jobs) as threads:
        outcomes = dict(
            zip(build.mutants, threads.map(lambda n: build.run(n, seconds), build.mutants), strict=True)
        )
    for number, (name, at, what, _) in build.mutants.items():
        if outcomes[number] == SURVIVED:
            print(f"{name}.pyx:{at + 1}: {SURVIVED}: {what}: {build.files[name][at].strip()}")
    tried = Counter(name for name, *_ in build.mutants.values())
    survived = Counter(build.mutants[n][0] for n, outcome in outcomes.items() if outcome == SURVIVED)
    print(f"{sum(tried.values()) - sum(survived.values())} of {sum(tried.values())} killed")
    if args.out is not None:
        shares = {
            name: {"tried": tried[name], "killed": tried[name] - survived[name]} for name in sorted(tried)
        }
        args.out.write_text(json.dumps(shares, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
