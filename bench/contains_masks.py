"""What phrases cost a grammar: time to compile, and new masks on random walks (single thread, SmolLM2's vocabulary).

    python bench/contains_masks.py [--walks 20] [--out FILE]

A walk takes a random one of the tokens that the mask allows, ends of the text left out, up to 40 of them.  Each row is a grammar of its own, in a process that
has compiled none like it: the first mask is new, later ones are as often as walks come to new states.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import maskwright as mw

STEPS = 40
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "note": {"type": "string"},
        "count": {"type": "integer"},
        "place": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "street": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        },
    },
    "required": ["name", "note", "count", "place"],
    "additionalProperties": False,
}
FREE = {
    "type": "object",
    "properties": {"tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    "additionalProperties": {"type": "string"},
}
PHRASES = ["storm", "harbour", "light"]
SOURCES: dict[str, Callable[[], Any]] = {
    "schema of four members, one nested": lambda: mw.JsonSchema(SCHEMA),
    "the same with 1 phrase": lambda: mw.JsonSchema(SCHEMA) & mw.Contains(PHRASES[:1]),
    "the same with 2 phrases": lambda: mw.JsonSchema(SCHEMA) & mw.Contains(PHRASES[:2]),
    "the same with 3 phrases": lambda: mw.JsonSchema(SCHEMA) & mw.Contains(PHRASES),
    "the same without a phrase": lambda: mw.JsonSchema(SCHEMA) - mw.Contains(PHRASES[:1]),
    "undeclared members and different items, 2 phrases": lambda: (
        mw.JsonSchema(FREE) & mw.Contains(PHRASES[:2])
    ),
    "shipped SQL grammar with one word": lambda: mw.shipped_grammar("sql") & mw.Contains(["users"]),
    "shipped SQL grammar": lambda: mw.Lark(mw.shipped_grammar("sql").text + "\n"),
    "shipped SQL grammar without one word": lambda: mw.shipped_grammar("sql") - mw.Contains(["users"]),
    "shipped Python grammar": lambda: mw.Lark(mw.shipped_grammar("python").text + "\n"),
    "shipped Python grammar without one name": lambda: mw.shipped_grammar("python") - mw.Contains(["eval"]),
    "shipped Python grammar without one keyword": lambda: (
        mw.shipped_grammar("python") - mw.Contains(["import"])
    ),
    "shipped SQL grammar between fences": lambda: (
        mw.Regex("```sql\\n") + mw.shipped_grammar("sql") + mw.Regex("\\n?```")
    ),
    "shipped Python grammar between fences": lambda: (
        mw.Regex("```python\\n") + mw.shipped_grammar("python") + mw.Regex("\\n?```")
    ),
    "shipped SQL or Python grammar": lambda: mw.shipped_grammar("sql") | mw.shipped_grammar("python"),
}


def measured(name: str, walks: int) -> dict[str, float]:
    gen = mw.Generator.from_pretrained()
    vocabulary = gen.vocabulary
    mw.compile_regex("a", vocabulary)  # what a vocabulary costs once
    began = time.perf_counter()
    grammar = mw.compile(SOURCES[name](), vocabulary, limits=mw.Limits(max_seconds=60))
    compile_ms = 1e3 * (time.perf_counter() - began)
    mask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    micro = []
    for walk in range(walks):
        matcher, rng = grammar.matcher(), random.Random(walk)
        for _ in range(STEPS):
            began = time.perf_counter()
            matcher.fill_next_token_bitmask(mask)
            micro.append(1e6 * (time.perf_counter() - began))
            allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
            allowed = allowed[~np.isin(allowed, list(vocabulary.eos_ids))]
            if not len(allowed):
                break
            matcher.accept_token(int(rng.choice(allowed)))
    return {
        "compile_ms": compile_ms,
        "first_us": micro[0],
        "mean_us": float(np.mean(micro)),
        "masks": len(micro),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--walks", type=int, default=20)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    rows = {}
    for name in SOURCES:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            rows[name] = pool.apply(measured, (name, args.walks))
        print(name, {key: round(value, 1) for key, value in rows[name].items()}, flush=True)
    if args.out:
        args.out.write_text(json.dumps({"walks": args.walks, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
