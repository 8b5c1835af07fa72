"""``python -m maskwright.demo``: the demo model fills every demo schema before your eyes."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from maskwright.demo import demo_schemas

MAX_TOKENS = 200


def main() -> int:
    """Runs all cases; 1 when an output does not validate."""
    try:
        import jsonschema
        import torch
        from transformers.utils import logging

        from maskwright.generator import Generator
    except ImportError as error:
        print(f'{error}: the demo needs pip install "maskwright[hf,test]"', file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    # For so small a model, waiting for a second thread takes longer than its help saves.
    torch.set_num_threads(1)
    cases = demo_schemas()
    print("Loading the demo model ...", flush=True)
    generator = Generator.from_pretrained()
    started = time.perf_counter()
    mask_seconds = 0.0
    tokens = failures = 0
    for number, case in enumerate(cases.values(), 1):
        print(f"\n[{number}/{len(cases)}] {case['title']}\n  {case['request']}")
        result = _run_case(generator, case)
        mask_seconds += result["mask_seconds"]
        tokens += result["tokens"]
        try:
            jsonschema.validate(
                json.loads(result["text"]),
                case["schema"],
                format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER,
            )
            verdict = "valid"
        except (ValueError, jsonschema.ValidationError) as error:
            failures += 1
            verdict = f"INVALID: {str(error).splitlines()[0]}"
        print(f"  {verdict}, {result['tokens']} tokens")
    seconds = time.perf_counter() - started
    print(
        f"\n{len(cases) - failures} of {len(cases)} outputs validate. {tokens} tokens in {seconds:.2f} s, "
        f"{100 * mask_seconds / seconds:.1f} % of it in masks ({1e6 * mask_seconds / tokens:.0f} µs a token)."
    )
    return 1 if failures else 0


def _run_case(generator: Any, case: dict[str, Any]) -> dict[str, Any]:
    """Decode one case with the text growing on the screen (a dot a token when there is none)."""
    live = sys.stdout.isatty()
    print("  ", end="", flush=True)
    text = ""
    steps = generator.steps(case["request"], case["schema"], max_new_tokens=MAX_TOKENS)
    step = None
    for step in steps:
        print(step.text[len(text) :] if live else ".", end="", flush=True)
        text = step.text
    print("" if live else f"\n  {text}")
    assert step is not None, "a generation has at least one step"
    return {"text": text, "tokens": step.tokens, "mask_seconds": step.mask_seconds}


if __name__ == "__main__":
    sys.exit(main())
