"""One black-box task for ``sampling.py``, by this library or by genlm-control: the argument says which.

Both draw from the tiny model under the same Python predicate (a JSON Schema, checked by text), with adaptive rejection,
16 particles, an ESS threshold of 0.5 and multinomial resampling.  The last line of output is JSON.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import maskwright as mw
from maskwright.demo import format_prompt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_model import REQUESTS, TINY

CASE = REQUESTS["folder"]
PROMPT = format_prompt(CASE["request"], CASE["schema"])
PARTICLES, BUDGET, RUNS = 16, 100, 5


class Checker:
    """The predicate on text, and how often it was asked."""

    def __init__(self, vocabulary: mw.Vocabulary) -> None:
        self._grammar = mw.compile_json_schema(CASE["schema"], vocabulary)
        self.calls = 0

    def __call__(self, text: bytes, complete: bool) -> bool:
        self.calls += 1
        matcher = self._grammar.matcher()
        good = not text or matcher.accept_bytes(text)
        return bool(good and (matcher.is_accepting or not complete))


def ours() -> tuple[Any, Checker]:
    from maskwright.sampling import HuggingFaceModel, Predicate, smc

    model = HuggingFaceModel(TINY, prompt=PROMPT)
    checker = Checker(model.vocabulary)
    decode = model.vocabulary.decode
    constraint = Predicate(lambda ids: checker(decode(ids), False), lambda ids: checker(decode(ids), True))

    def run(seed: int) -> tuple[float, int]:
        found = smc(model, constraint, PARTICLES, 0.5, resampling="multinomial", max_tokens=BUDGET, seed=seed)
        return found.log_evidence, sum(len(ids) + 1 for ids in found.sequences)

    return run, checker


def theirs() -> tuple[Any, Checker]:
    import asyncio

    from genlm.control import AWRS, Potential, PromptedLLM
    from transformers import AutoTokenizer

    llm = PromptedLLM.from_name(str(TINY), backend="hf", eos_byte_strings=[b"<|eos|>"])
    llm.set_prompt_from_str(PROMPT)
    vocabulary = mw.Vocabulary.from_huggingface(AutoTokenizer.from_pretrained(TINY))
    checker = Checker(vocabulary)

    class BlackBox(Potential):
        async def prefix(self, context: Any) -> float:
            return 0.0 if checker(_bytes(context), False) else -math.inf

        async def complete(self, context: Any) -> float:
            return 0.0 if checker(_bytes(context), True) else -math.inf

    def run(seed: int) -> tuple[float, int]:
        np.random.seed(seed)
        condition = BlackBox(llm.vocab)

        async def whole() -> Any:
            sampler = AWRS(llm, condition, seed=seed)
            return await sampler.smc(n_particles=PARTICLES, ess_threshold=0.5, max_tokens=BUDGET)

        found = asyncio.run(whole())
        return float(found.log_ml), sum(len(context) for context in found.contexts)

    return run, checker


def _bytes(context: Any) -> bytes:
    return b"".join(getattr(token, "byte_string", token) for token in context)


def main() -> None:
    import torch

    torch.set_num_threads(1)
    run, checker = ours() if sys.argv[1] == "maskwright" else theirs()
    run(100)
    checker.calls = 0
    evidence, tokens, times = [], 0, []
    for seed in range(RUNS):
        started = time.perf_counter()
        value, written = run(seed)
        times.append(time.perf_counter() - started)
        evidence.append(value)
        tokens += written
    print(
        json.dumps(
            {
                "best_seconds": min(times),
                "mean_seconds": float(np.mean(times)),
                "mean_evidence": float(np.mean(np.exp(evidence))),
                "evidence_spread": float(np.std(np.exp(evidence))),
                "checks_per_token": checker.calls / tokens,
                "tokens": tokens,
                "runs": RUNS,
            }
        )
    )


if __name__ == "__main__":
    main()
