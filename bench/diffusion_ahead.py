"""How many model calls does asking ahead save, at equal texts?

    PYTHONPATH=src python bench/diffusion_ahead.py --examples 20

The demo masked-diffusion model on held-out requests, one slot a step; each request is filled with ``ahead`` of 1, 2, 4 and 8, greedy and
at temperature 1.  The texts are compared with those of ``ahead=1``.
"""

from __future__ import annotations

import argparse
import random

import torch
from demo_data import draw
from diffusion import demo_vocabulary
from transformers import AutoModelForMaskedLM

import maskwright as mw
from maskwright.demo import demo_diffusion_path
from maskwright.diffusion import Schedule, infill_steps
from maskwright.diffusion.adapters import HuggingFaceDiffusionModel


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20)
    args = parser.parse_args()
    torch.set_num_threads(1)
    tokenizer, vocabulary = demo_vocabulary()
    module = AutoModelForMaskedLM.from_pretrained(demo_diffusion_path()).eval()
    rng = random.Random("held-out 0")
    examples = [draw(rng, frozenset()) for _ in range(args.examples)]
    for temperature in (0.0, 1.0):
        texts: list[list[int]] = []
        for ahead in (1, 2, 4, 8):
            calls = steps = 0
            found = []
            for example in examples:
                answer = tokenizer(example.answer(), add_special_tokens=False)["input_ids"]
                slots = 8 * (len(answer) // 8 + 1)
                model = HuggingFaceDiffusionModel(
                    module, tokenizer, prompt=tokenizer(example.prompt)["input_ids"]
                )
                compiled = mw.compile_json_schema(example.schema, vocabulary)
                schedule = Schedule(temperature=temperature, ahead=ahead)
                for step in infill_steps(model, compiled, [None] * slots, schedule=schedule, seed=0):
                    calls += step.calls if step.number else 0
                steps += step.number
                found.append(step.tokens)
            texts = texts or found
            print(
                f"temperature {temperature}, ahead {ahead}: {steps} steps, {calls} calls, equal texts: {found == texts}",
                flush=True,
            )


if __name__ == "__main__":
    main()
