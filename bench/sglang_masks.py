"""Masks and tokens as SGLang's scheduler asks its grammar back-ends for them: maskwright beside XGrammar, random walks over one schema.

In an environment with SGLang (``make test-engines`` makes one):
    build/engines-env/bin/python bench/sglang_masks.py [--rows 64] [--steps 60]
"""

from __future__ import annotations

import argparse
import random
import time
from typing import Any

import numpy as np
from sglang.srt.constrained.base_grammar_backend import GrammarRow
from sglang.srt.constrained.xgrammar_backend import XGrammarGrammarBackend
from transformers import AutoTokenizer

from maskwright.generation.default_model import default_model
from maskwright.integrations.sglang import MaskwrightGrammarBackend

SCHEMA = (
    '{"type": "object", "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}}, '
    '"required": ["name", "age"], "additionalProperties": false}'
)


def walk(backend: Any, width: int, rows: int, steps: int) -> dict[str, Any]:
    """Microseconds: the first compile, then masks (all rows in one call) and tokens, a row."""
    begun = time.perf_counter()
    first = backend.dispatch_json(SCHEMA)
    compiled = 1e6 * (time.perf_counter() - begun)
    grammars = [first.copy() for _ in range(rows)]
    rng = random.Random(0)
    masks, tokens = [], []
    for _ in range(steps):
        entries = [GrammarRow(row, each) for row, each in enumerate(grammars) if not each.is_terminated()]
        if not entries:
            break
        mask = grammars[0].allocate_vocab_mask(width, rows, "cpu")
        begun = time.perf_counter()
        grammars[0].fill_vocab_mask_batched(entries, mask)
        masks.append(1e6 * (time.perf_counter() - begun) / len(entries))
        bits = np.unpackbits(mask.numpy().view(np.uint8), axis=1, bitorder="little")
        chosen = [rng.choice(np.flatnonzero(bits[entry.row]).tolist()) for entry in entries]
        begun = time.perf_counter()
        for entry, token in zip(entries, chosen, strict=True):
            entry.grammar.accept_token(token)
        tokens.append(1e6 * (time.perf_counter() - begun) / len(entries))
    return {"compile": compiled, "mask": masks, "token": tokens}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(default_model())
    width, end = len(tokenizer), tokenizer.eos_token_id
    makers = {
        "maskwright": lambda: MaskwrightGrammarBackend(tokenizer, width, [end]),
        "xgrammar": lambda: XGrammarGrammarBackend(tokenizer, width, [end]),
    }
    print(f"{options.rows} rows, {width} ids, microseconds a row (compile: once)")
    for name, make in makers.items():
        begun = time.perf_counter()
        backend = make()
        print(f"{name}: made in {time.perf_counter() - begun:.2f} s")
        for caches in ("cold", "warm"):
            found = walk(backend, width, options.rows, options.steps)
            mask, token = np.array(found["mask"]), np.array(found["token"])
            print(
                f"  {caches}: compile {found['compile']:.0f}, mask median {np.median(mask):.1f}, 90 % {np.quantile(mask, 0.9):.1f}, "
                f"slowest step {mask.max():.1f}, token median {np.median(token):.1f}"
            )


if __name__ == "__main__":
    main()
