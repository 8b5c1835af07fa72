"""Many tools at once: what compiling costs the first time, with schemas known, and what masks cost beside one tool.

    python bench/tools.py [--tools 400] [--repeat 20]

Real schemas from the development cases are the parameters; the vocabulary is tekken's.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from maskbench_tokenizers import tekken

import maskwright as mw


def object_tools(seed: int, low: int, high: int) -> Iterator[dict[str, Any]]:
    """Tools whose parameters are object schemas of ``low`` to ``high`` bytes that compile, in a random order."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        cases = [case for case in map(json.loads, lines) if isinstance(case["schema"], dict)]
    random.Random(seed).shuffle(cases)
    count = 0
    for case in cases:
        if case["schema"].get("type") != "object" or not low <= len(str(case["schema"])) <= high:
            continue
        try:
            mw.compile_json_schema(case["schema"], BYTES)
        except mw.MaskwrightError:
            continue
        name = f"{re.sub('[^a-z]+', '_', case['id'].lower())[:40]}_{count}"
        count += 1
        yield {"type": "function", "function": {"name": name, "parameters": case["schema"]}}


def tools_of(count: int, seed: int) -> list[dict[str, Any]]:
    """The first ones of at most 4 000 bytes."""
    return list(islice(object_tools(seed, 0, 4000), count))


DATA = Path(__file__).parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def mask_times(compiled: Any, texts: list[bytes], repeat: int) -> list[float]:
    """Microseconds of every mask along the texts, one byte at a time; the least of several passes."""
    mask = mw.allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
    best: list[float] = []
    for _ in range(repeat):
        times = []
        for text in texts:
            matcher = compiled.matcher()
            for byte in text:
                started = time.perf_counter()
                matcher.fill_next_token_bitmask(mask)
                times.append((time.perf_counter() - started) * 1e6)
                assert matcher.accept_bytes(bytes([byte]))
        best = times if not best else [min(pair) for pair in zip(best, times, strict=True)]
    return sorted(best)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tools", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=20)
    args = parser.parse_args()
    tools = tools_of(args.tools, 1)
    vocabulary = tekken().vocabulary()
    mw.compile_regex("a", vocabulary)
    started = time.perf_counter()
    mw.compile(mw.StructuralTag.from_tools(tools), vocabulary)
    print(f"{len(tools)} tools, nothing known: {(time.perf_counter() - started) * 1e3:.1f} ms")
    rng, times = random.Random(2), []
    for _ in range(args.repeat):
        # Another order is another tag; its schemas are known.
        rng.shuffle(tools)
        started = time.perf_counter()
        mw.compile(mw.StructuralTag.from_tools(tools), vocabulary)
        times.append((time.perf_counter() - started) * 1e3)
    print(
        f"schemas known, the set is new: least {min(times):.1f} ms, median {sorted(times)[len(times) // 2]:.1f} ms"
    )
    started = time.perf_counter()
    many = mw.compile(mw.StructuralTag.from_tools(tools), vocabulary)
    print(f"the same set again: {(time.perf_counter() - started) * 1e3:.2f} ms")
    one = mw.compile(mw.StructuralTag.from_tools(tools[:1]), vocabulary)
    name = tools[0]["function"]["name"]
    text = f'Let me see.\n<tool_call>\n{{"name": "{name}", "arguments": {{'.encode()
    for label, compiled in (("one tool", one), (f"{len(tools)} tools", many)):
        for passes, kind in ((1, "first pass"), (args.repeat, "known masks")):
            found = mask_times(compiled, [text], passes)
            print(f"{label}, {kind}: p50 {found[len(found) // 2]:.2f} us, max {found[-1]:.1f} us")


if __name__ == "__main__":
    main()
