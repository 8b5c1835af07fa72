"""Do many threads on shared grammars see what one thread sees?

    python bench/threads.py --minutes 10 --threads 32 --out bench/results/TODAY-threads.json

First one thread walks through every grammar along fixed random choices and keeps a digest of each mask.  Then all threads do the same at once,
with forks, rollbacks, batches and compiling in between, while two more change what is kept: one lets masks and states go, one
changes the number of threads of the pool.  Any other mask, error or hang is a defect; it is printed, and the exit status is 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import maskbench_tokenizers
import numpy as np

import maskwright as mw
from maskwright.compiling.shipped import shipped_grammar

RECORD = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "mail": {"format": "email", "type": "string"},
        "age": {"type": "integer"},
    },
    "required": ["name"],
}
SOURCES: dict[str, Any] = {
    "record": RECORD,
    "free": {"type": "object", "additionalProperties": {"type": "number"}},
    "unique": {"type": "array", "items": {"type": ["integer", "string"]}, "uniqueItems": True, "minItems": 2},
    "union": {
        "oneOf": [
            RECORD,
            {"type": "array", "items": RECORD},
            {"pattern": "^[a-z]+-[0-9]{2,40}$", "type": "string"},
        ]
    },
    "anything": {},
    "sql": shipped_grammar("sql"),
    "python": shipped_grammar("python"),
    "smiles": shipped_grammar("smiles"),
}
WALKS, STEPS = 4, 40
GRACE = 600
"""Seconds for what is under way at the end; on a busy machine, that is a compile in each thread."""


def compiled(name: str, vocabulary: mw.Vocabulary, seconds: float = 0.0) -> mw.CompiledGrammar:
    """Limits are part of what a compiled grammar is known by: with others it is compiled anew."""
    limits = mw.Limits(max_seconds=600 + seconds)
    source = SOURCES[name]
    if isinstance(source, dict):
        return mw.compile_json_schema(source, vocabulary, limits=limits)
    return mw.compile(source, vocabulary, limits=limits)


def digest(mask: Any) -> str:
    return hashlib.blake2b(mask.tobytes(), digest_size=8).hexdigest()


def choose(mask: Any, rng: random.Random) -> int:
    words = np.flatnonzero(mask)
    word = int(words[rng.randrange(len(words))])
    bits = [bit for bit in range(32) if mask[word] >> bit & 1]
    return 32 * word + rng.choice(bits)


def walk(grammar: mw.CompiledGrammar, seed: int, width: int) -> tuple[list[int], list[str]]:
    """Tokens chosen at random, and the digest of the mask before each."""
    rng, mask = random.Random(seed), np.zeros(width, dtype=np.int32)
    matcher = grammar.matcher()
    tokens: list[int] = []
    digests: list[str] = []
    for _ in range(STEPS):
        matcher.fill_next_token_bitmask(mask)
        digests.append(digest(mask))
        tokens.append(choose(mask, rng))
        if not matcher.accept_token(tokens[-1]):
            raise AssertionError(f"token {tokens[-1]} was in the mask and is refused")
        if matcher.is_terminated:
            break
    return tokens, digests


class Stress:
    def __init__(self, vocabulary: mw.Vocabulary, seconds: float) -> None:
        self.vocabulary = vocabulary
        self.width = (vocabulary.vocab_size + 31) // 32
        self.shared = {name: compiled(name, vocabulary) for name in SOURCES}
        self.expected = {
            (name, seed): walk(self.shared[name], seed, self.width)
            for name in SOURCES
            for seed in range(WALKS)
        }
        self.end = time.monotonic() + seconds
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.problems: list[str] = []

    def run(self, threads: int) -> None:
        jobs: list[Callable[[], None]] = [lambda seed=seed: self.walker(seed) for seed in range(threads)]
        jobs += [self.evictor, self.pool]
        started = [threading.Thread(target=self.guarded, args=(job,), daemon=True) for job in jobs]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join(max(self.end - time.monotonic(), 0) + GRACE)
            if thread.is_alive():
                self.problems.append("a thread hangs")

    def guarded(self, job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as error:  # whatever it is, it is a finding
            self.problems.append(f"{type(error).__name__}: {error}")

    def walker(self, seed: int) -> None:
        rng, counts = random.Random(seed), Counter[str]()
        while time.monotonic() < self.end and not self.problems:
            name, walk_seed = rng.choice(sorted(self.expected))
            kind = rng.choice(("along", "along", "back", "batch", "anew"))
            counts[kind] += 1
            if kind == "anew":
                grammar = compiled(name, self.vocabulary, rng.randrange(20))
            else:
                grammar = self.shared[name]
            if kind == "batch":
                self.batch(name, grammar)
            else:
                self.along(name, walk_seed, grammar, rng, back=kind == "back")
        with self.lock:
            self.counts += counts

    def along(
        self, name: str, seed: int, grammar: mw.CompiledGrammar, rng: random.Random, *, back: bool
    ) -> None:
        tokens, digests = self.expected[name, seed]
        mask = np.zeros(self.width, dtype=np.int32)
        matcher, at = grammar.matcher(), 0
        steps = 3 * STEPS if back else len(tokens)
        for _ in range(steps):
            matcher.fill_next_token_bitmask(mask)
            self.compare(mask, digests[at], f"{name}, walk {seed}, token {at}")
            if rng.random() < 0.1:
                fork = matcher.fork()
                fork.accept_token(choose(mask, rng))
                fork.fill_next_token_bitmask(mask)
            if back and at and rng.random() < 0.4:
                count = rng.randint(1, at)
                matcher.rollback(count)
                at -= count
                continue
            matcher.accept_token(tokens[at])
            at += 1
            if at == len(digests):
                break

    def batch(self, name: str, grammar: mw.CompiledGrammar) -> None:
        matchers = [grammar.matcher() for _ in range(WALKS)]
        masks = np.zeros((WALKS, self.width), dtype=np.int32)
        for at in range(min(len(self.expected[name, seed][0]) for seed in range(WALKS))):
            mw.fill_next_token_bitmasks(matchers, masks)
            for seed, matcher in enumerate(matchers):
                tokens, digests = self.expected[name, seed]
                self.compare(masks[seed], digests[at], f"{name}, walk {seed} in a batch, token {at}")
                matcher.accept_token(tokens[at])

    def compare(self, mask: Any, wanted: str, place: str) -> None:
        if digest(mask) != wanted:
            self.problems.append(f"another mask: {place}")

    def evictor(self) -> None:
        rng = random.Random(-1)
        while time.monotonic() < self.end and not self.problems:
            self.vocabulary.mask_budget = rng.choice((0, 100_000, 8 << 20, 128 << 20))
            self.vocabulary.state_budget = rng.choice((0, 200_000, 64 << 20))
            time.sleep(rng.random() / 10)

    def pool(self) -> None:
        rng = random.Random(-2)
        while time.monotonic() < self.end and not self.problems:
            mw.set_threads(rng.choice((1, 2, 5)))
            time.sleep(rng.random())


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--threads", type=int, default=32)
    parser.add_argument(
        "--tokenizer", choices=sorted(maskbench_tokenizers.TOKENIZERS), default="sentencepiece"
    )
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    sys.setswitchinterval(1e-4)
    stress = Stress(maskbench_tokenizers.TOKENIZERS[args.tokenizer]().vocabulary(), 60 * args.minutes)
    stress.run(args.threads)
    found = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "minutes": args.minutes,
        "threads": args.threads,
        "done": dict(sorted(stress.counts.items())),
        "problems": stress.problems[:20],
        "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    print(json.dumps(found, indent=1))
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 1 if stress.problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
