"""What share of real generation masks take, and how much of that could be computed ahead while the model runs.

    python bench/mask_share.py [--every 140] [--tokens 128] [--model NAME] [--out FILE]

A real model (SmolLM2-135M-Instruct unless another is named) answers greedily in schemas of MaskBench's development cases, each twice
with one compiled grammar.  The first time, states of the grammar are new, and the second time all are known: the difference is what
computing ahead could save at the very most.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import time
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from quality import Setup, load
from walks import DEFAULT_DATA, percentile

import maskwright as mw
from maskwright.hf import LogitsProcessor


class Timed(LogitsProcessor):
    """With the seconds of each call."""

    calls: list[float]

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        before = self.mask_seconds
        found = super().__call__(input_ids, scores)
        self.calls.append(self.mask_seconds - before)
        return found


def written(setup: Setup, grammar: mw.CompiledGrammar, schema: Any, tokens: int) -> tuple[float, list[float]]:
    """Seconds of a whole generation, and of each mask in it."""
    text = "Write one JSON value for this schema:\n" + json.dumps(schema)[:1500]
    prompt = setup.tokenizer.apply_chat_template(
        [{"role": "user", "content": text}], add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    processor = Timed(grammar)
    processor.calls = []
    begun = time.perf_counter()
    setup.model.generate(**prompt, max_new_tokens=tokens, do_sample=False, logits_processor=[processor])
    return time.perf_counter() - begun, processor.calls


def shown(seconds: list[float]) -> dict[str, float]:
    """Microseconds."""
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1.0}
    return {name: percentile(seconds, share) for name, share in shares.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--every", type=int, default=140)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="MaskBench cases, .jsonl.gz")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--model")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    setup = load(arguments.model, arguments.tokens)
    vocabulary = mw.Vocabulary.from_huggingface(setup.tokenizer, int(setup.model.config.vocab_size))
    with gzip.open(arguments.data, "rt", encoding="utf-8") as lines:
        schemas = [json.loads(line)["schema"] for line in islice(lines, 0, None, arguments.every)]
    totals: list[float] = []
    new: list[float] = []
    known: list[float] = []
    saved: list[float] = []
    for schema in schemas:
        try:
            grammar = mw.compile_json_schema(schema, vocabulary)
        except mw.MaskwrightError:
            continue
        seconds, calls = written(setup, grammar, schema, arguments.tokens)
        _, again = written(setup, grammar, schema, arguments.tokens)
        totals.append(seconds)
        new += calls
        known += again
        saved.append((sum(calls) - sum(again)) / seconds)
        print(
            f"{len(totals)}: {len(calls)} tokens, {seconds:.2f} s, masks {sum(calls) * 1e3:.2f} and {sum(again) * 1e3:.2f} ms"
        )
    result = {
        "generations": len(totals),
        "tokens": len(new),
        "model_us_a_token": 1e6 * (sum(totals) - sum(new)) / len(new),
        "new_us": shown(new),
        "known_us": shown(known),
        "share_of_masks": sum(new) / sum(totals),
        "share_that_ahead_could_save": {
            "all": (sum(new) - sum(known)) / sum(totals),
            "median": statistics.median(saved),
            "most": max(saved),
        },
    }
    print(json.dumps(result, indent=1))
    if arguments.out:
        arguments.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
