"""How many instructions does compiling a new schema take, with its first mask, and which functions take them?

    python bench/micro/instructions.py                       # thousands of instructions a schema, for each kind
    python bench/micro/instructions.py --functions 40        # and the functions of the package that take most, with what they call
    python bench/micro/instructions.py --only 'object of 5'  # of some kinds

Counted by callgrind, which must be installed (package valgrind): a count is the same to a few tenths of a percent however busy the
machine is, so it tells small gains from noise.  It leaves out what the kernel does and how far caches reach: time is measured besides.
Each schema has names that were never seen; the vocabulary is small, so that reading it takes no time.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import maskwright as mw

WARM, COUNTED = 10, 40
"""Schemas that fill what all schemas share, and those that are counted."""
TYPES = ("string", "integer", "boolean", "number", "null")


def plain_object(members: int, name: str) -> dict[str, Any]:
    """So many required members of all types."""
    names = [f"{name}_{i}" for i in range(members)]
    properties = {each: {"type": TYPES[i % len(TYPES)], "description": "x"} for i, each in enumerate(names)}
    return {"type": "object", "properties": properties, "required": names}


KINDS: dict[str, Callable[[str], Any]] = {
    "string": lambda name: {"type": "string", "title": name},
    "any object": lambda name: {"type": "object", "title": name},
    "enum": lambda name: {"enum": [name, "other"]},
    "object of 1": lambda name: plain_object(1, name),
    "object of 5": lambda name: plain_object(5, name),
    "object of 20": lambda name: plain_object(20, name),
    "5 objects of 3": lambda name: {
        "type": "object",
        "properties": {f"{name}{i}": plain_object(3, name) for i in range(5)},
    },
    "array of objects": lambda name: {"type": "array", "items": plain_object(3, name), "minItems": 1},
    "choice of 3 objects": lambda name: {
        "anyOf": [plain_object(2, f"{name}{i}") for i in range(3)],
    },
}


def small_vocabulary() -> mw.Vocabulary:
    """All bytes, pairs of letters, and tokens that JSON has."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    pairs = [(a + b).encode() for a in letters for b in letters]
    words = [*(bytes([byte]) for byte in range(256)), *pairs, b'":', b'",', b'{"', b"</s>"]
    return mw.Vocabulary(words, eos_ids=[len(words) - 1])


def asked(kind: str, out: Path) -> None:
    """In a process of its own, which callgrind watches."""
    vocabulary = small_vocabulary()
    mask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)

    def first_mask(schema: Any) -> None:
        mw.compile_json_schema(schema, vocabulary).matcher().fill_next_token_bitmask(mask, 0)

    def control(*what: str) -> None:
        subprocess.run(["callgrind_control", *what, str(os.getpid())], check=True, stdout=subprocess.DEVNULL)

    first_mask(True)
    for i in range(WARM):
        first_mask(KINDS[kind](f"warm{i}"))
    schemas = [KINDS[kind](f"counted{i}") for i in range(COUNTED)]
    gc.collect()
    gc.freeze()
    gc.disable()
    control("-i", "on")
    for schema in schemas:
        first_mask(schema)
    control("-i", "off")
    control("-d")
    out.touch()


def counted(kind: str, functions: int) -> str:
    """A line for a kind, and one for each function."""
    with tempfile.TemporaryDirectory() as folder:
        out, done = Path(folder) / "out", Path(folder) / "done"
        valgrind = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        command = [*valgrind, sys.executable, __file__, "--child", kind, str(done)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if not done.exists():
            raise SystemExit(run.stderr[-2000:])
        profile = out.with_name("out.1")
        total = int(re.findall(r"^totals: (\d+)", profile.read_text(encoding="utf-8"), re.MULTILINE)[-1])
        lines = [f"{kind:20} {total / COUNTED / 1000:8.0f}"]
        if functions:
            annotate = ["callgrind_annotate", "--inclusive=yes", "--threshold=99", str(profile)]
            table = subprocess.run(annotate, capture_output=True, text=True, check=True).stdout
            found = re.findall(r"^ *([\d,]+) \( *[\d.]+%\) +\S*?:(__pyx_\w+)(?!')", table, re.MULTILINE)
            for count, name in found[:functions]:
                lines.append(f"    {int(count.replace(',', '')) / COUNTED / 1000:8.1f}  {name}")
        return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", default="*", help="kinds whose names match this pattern")
    parser.add_argument("--functions", type=int, default=0, help="so many functions of each kind")
    parser.add_argument("--child", nargs=2, metavar=("KIND", "FILE"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        asked(args.child[0], Path(args.child[1]))
        return
    if shutil.which("callgrind_control") is None:
        raise SystemExit("callgrind is not installed: it is in the package valgrind")
    print("thousands of instructions for a new schema and its first mask")
    for kind in KINDS:
        if fnmatchcase(kind, args.only):
            print(counted(kind, args.functions), flush=True)


if __name__ == "__main__":
    main()
