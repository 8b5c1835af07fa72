"""Memory, while one vocabulary meets schemas that are ever new; and processes that are killed while they write caches.

    python bench/soak_schemas.py --schemas 100000 --out soak-schemas.json --plot soak-schemas.png
    python bench/soak_schemas.py --kills 200

Each schema differs from all others, is compiled once, gives a text by a random walk, and is dropped.  For every part of the run a line says: schemas so far,
memory of the process (MB), schemas a second.  Memory is flat when the last half of the run needs no more than the first: the exit status says so.

With ``--kills``, processes compile Lark grammars and vocabularies that nobody has seen, in one cache directory, and are killed at any moment.  After each, another one
must give the masks that are given without a cache.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import maskwright as mw

PARTS = 100
STEPS = 8
GROWTH_MB = 16
"""What a process may need more in the last half of a run than in the first: parts of an allocator's arenas."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


def vocabulary() -> mw.Vocabulary:
    """All bytes, and some pieces of JSON."""
    pieces = [b'{"', b'":', b'","', b'": "', b'"}', b"true", b"null", b"12", b"  ", b"\xc3\xa9", b"key"]
    return mw.Vocabulary.from_bytes(
        [*(bytes([i]) for i in range(256)), *pieces, None], eos_ids=[256 + len(pieces)]
    )


def schema(number: int) -> Any:
    """One of endlessly many: names, bounds, patterns and constants have the number in them."""
    rng = random.Random(number)
    return _schema(rng, f"{number:x}", 0)


def _schema(rng: random.Random, mark: str, depth: int) -> Any:
    def below() -> Any:
        return _schema(rng, mark, depth + 1)

    kind = rng.randrange(5 if depth else 2, 12) if depth < 3 else rng.randrange(5, 9)
    if kind < 5:
        names = [f"k{mark}{i}" for i in range(rng.randrange(1, 6))]
        made = {"type": "object", "properties": {name: below() for name in names}, "required": names[::2]}
        return {**made, "additionalProperties": rng.choice([False, True, below()])}
    if kind == 5:
        return {"type": "string", "pattern": f"^[a-{rng.choice('fgh')}]{{1,{rng.randrange(2, 30)}}}{mark}?$"}
    if kind == 6:
        return {
            "type": "integer",
            "minimum": rng.randrange(100),
            "maximum": int(mark, 16) + rng.randrange(100, 10**6),
        }
    if kind == 7:
        return {"enum": [f"{mark}{i}" for i in range(rng.randrange(1, 8))] + [rng.randrange(10**6), None]}
    if kind == 8:
        return {"type": "string", "minLength": rng.randrange(4), "maxLength": rng.randrange(4, 200)}
    if kind == 9:
        return {
            "type": "array",
            "items": below(),
            "uniqueItems": rng.random() < 0.3,
            "maxItems": rng.randrange(1, 9),
        }
    if kind == 10:
        return {"anyOf": [below(), below()]}
    return {"oneOf": [{"required": [f"a{mark}"]}, {"required": [f"b{mark}"]}], "type": "object"}


def text(compiled: mw.CompiledGrammar, rng: random.Random) -> bytes:
    """What a walk of a few tokens writes."""
    matcher = compiled.matcher()
    row = np.empty((1, (compiled.vocabulary.vocab_size + 31) // 32), dtype=np.int32)
    for _ in range(STEPS):
        matcher.fill_next_token_bitmask(row)
        allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
        assert matcher.accept_token(int(rng.choice(allowed)))
        if matcher.is_terminated:
            break
    if not matcher.is_terminated:
        completion = matcher.shortest_completion()
        assert matcher.accept_tokens(completion) == len(completion)
    return compiled.vocabulary.decode(matcher.accepted_tokens)


def resident() -> float:
    """Memory of this process (MB)."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE / 1e6


def soak(schemas: int, parts: int = PARTS) -> Iterator[dict[str, Any]]:
    words = vocabulary()
    refused = number = 0
    for part in range(parts):
        begun, first = time.perf_counter(), number
        while number < schemas * (part + 1) // parts:
            try:
                json.loads(text(mw.compile_json_schema(schema(number), words), random.Random(number)))
            except mw.MaskwrightError:
                refused += 1
            number += 1
        gc.collect()
        rate = (number - first) / (time.perf_counter() - begun)
        yield {
            "schemas": number,
            "refused": refused,
            "megabytes": round(resident(), 1),
            "schemas a second": round(rate, 1),
        }


def growth(rows: list[dict[str, Any]]) -> float:
    """How much more memory the last half of a run needed at most than the first (MB)."""
    half = len(rows) // 2
    return max(row["megabytes"] for row in rows[half:]) - max(row["megabytes"] for row in rows[:half])


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
    axis.plot([row["schemas"] for row in rows], [row["megabytes"] for row in rows])
    axis.set(
        xlabel="different schemas, compiled once each", ylabel="memory of the process, MB", ylim=(0, None)
    )
    axis.grid(True, alpha=0.3)
    figure.savefig(path, dpi=120)


# --- processes that are killed

_WRITER = """
import itertools, random, sys
import maskwright as mw
print("ready", flush=True)
rng = random.Random(sys.argv[1])
for i in itertools.count():
    pieces = [bytes(rng.choices(range(97, 123), k=4)) for _ in range(2_000)]
    words = mw.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), *pieces, None], eos_ids=[256 + len(pieces)])
    mw.compile_lark(f'start: A "X{rng.randrange(20)}"\\nA: /[a-z]+/', words, limits=mw.Limits(max_seconds=60)).matcher()
"""
_READER = """
import hashlib, numpy as np
import maskwright as mw
digest = hashlib.sha256()
words = mw.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), b"ab", b"x1", None], eos_ids=[258])
for i in range(20):
    matcher = mw.compile_lark(f'start: A "X{i}"\\nA: /[a-z]+/', words, limits=mw.Limits(max_seconds=60)).matcher()
    row = np.zeros((1, 9), dtype=np.int32)
    for token in b"abX":
        matcher.fill_next_token_bitmask(row)
        digest.update(row.tobytes())
        assert matcher.accept_token(token)
print(digest.hexdigest())
"""


def kills(count: int, seed: int = 0) -> int:
    """Kill writers of one cache directory; returns how many files are left of what they did not finish."""
    rng = random.Random(seed)
    path = os.pathsep.join(map(os.path.abspath, sys.path))
    with tempfile.TemporaryDirectory() as folder:
        cached = {**os.environ, "PYTHONPATH": path, "MASKWRIGHT_CACHE_DIR": folder}

        def read(environment: dict[str, str]) -> str:
            command = [sys.executable, "-c", _READER]
            return subprocess.run(
                command, env=environment, check=True, stdout=subprocess.PIPE, text=True
            ).stdout

        expected = read({**cached, "MASKWRIGHT_CACHE_DIR": ""})
        for number in range(count):
            command = [sys.executable, "-c", _WRITER, f"{seed} {number}"]
            writer = subprocess.Popen(command, env=cached, stdout=subprocess.PIPE)
            assert writer.stdout is not None and writer.stdout.readline() == b"ready\n"
            time.sleep(rng.uniform(0.0, 0.4))
            writer.send_signal(signal.SIGKILL)
            writer.communicate()
            assert read(cached) == expected, f"other masks after kill {number} of seed {seed}"
        return sum(not name.endswith(".bin") for name in os.listdir(folder))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--schemas", type=int, default=0)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    args = parser.parse_args()
    rows = []
    for row in soak(args.schemas) if args.schemas else ():
        rows.append(row)
        print(", ".join(f"{name} {value}" for name, value in row.items()), flush=True)
    if args.out is not None:
        args.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    if args.plot is not None:
        plot(rows, args.plot)
    if args.kills:
        left = kills(args.kills)
        print(f"{args.kills} writers killed; masks as without a cache; {left} unfinished files left")
    if rows:
        print(f"growth in the last half: {growth(rows):.1f} MB")
    return 1 if rows and growth(rows) > GROWTH_MB else 0


if __name__ == "__main__":
    sys.exit(main())
