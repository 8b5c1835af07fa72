"""``python -m maskwright.demo``: a real model fills the schema of every demo case before your eyes.

The model sees a worked example of each schema in the conversation, as people show one to small models, and takes the likeliest
token at each step.  Beside each field stands what the request says.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from typing import Any, NamedTuple

from maskwright.demo import demo_cases
from maskwright.demo.fields import MISSING, Field, compare

MAX_TOKENS = 250
INSTRUCTION = "Extract the facts of the text as JSON."


class Outcome(NamedTuple):
    """What a case came to: ``error`` is what the validator says, or None."""

    text: str
    error: str | None
    fields: list[Field]
    tokens: int
    seconds: float
    mask_seconds: float


def main() -> int:
    """Runs all cases; 1 when an output does not validate."""
    try:
        import jsonschema  # noqa: F401
        import torch
        from transformers.utils import logging

        from maskwright.errors import ModelNotFoundError
        from maskwright.generation.generator import Generator
    except ImportError as error:
        print(f'{error}: the demo needs pip install "maskwright[demo]"', file=sys.stderr)
        return 2
    logging.disable_progress_bar()
    # A second thread saves little here, and where others want the cores, waiting for it takes ten times as long.
    torch.set_num_threads(1)
    cases = demo_cases()
    print("Loading SmolLM2-135M-Instruct (converted on the first run, which takes a while) ...", flush=True)
    try:
        generator = Generator.from_pretrained()
    except ModelNotFoundError as error:
        print(error, file=sys.stderr)
        return 2
    outcomes = []
    for number, case in enumerate(cases.values(), 1):
        print(f"\n[{number}/{len(cases)}] {case['title']}\n  {case['request']}")
        outcomes.append(run_case(generator, case))
        report(outcomes[-1])
    print("\n" + summary(outcomes))
    return 1 if any(outcome.error for outcome in outcomes) else 0


def messages(case: dict[str, Any]) -> list[dict[str, str]]:
    """The conversation before the answer: an instruction, the worked example, the request."""
    example = case["example"]
    return [
        {"role": "system", "content": INSTRUCTION},
        {"role": "user", "content": example["request"]},
        {"role": "assistant", "content": json.dumps(example["answer"], ensure_ascii=False)},
        {"role": "user", "content": case["request"]},
    ]


def run_case(generator: Any, case: dict[str, Any]) -> Outcome:
    """Decode one case; on a terminal the text grows on the screen, elsewhere a dot stands for each forward pass."""
    live = sys.stdout.isatty()
    print("  ", end="", flush=True)
    text = ""
    started = time.perf_counter()
    step = None
    for step in generator.steps(messages(case), case["schema"], max_new_tokens=MAX_TOKENS):
        print(step.text[len(text) :] if live else ".", end="", flush=True)
        text = step.text
    seconds = time.perf_counter() - started
    print("" if live else f"\n  {text}")
    assert step is not None, "a generation has at least one step"
    value, error = judged(text, case["schema"])
    return Outcome(text, error, compare(case["answer"], value), step.tokens, seconds, step.mask_seconds)


def judged(text: str, schema: Any) -> tuple[Any, str | None]:
    """The value of an output, and what a validator that is not ours has against it."""
    import jsonschema

    value: Any = MISSING
    try:
        value = json.loads(text)
        jsonschema.validate(value, schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER)
    except (ValueError, jsonschema.ValidationError) as error:
        return value, str(error).splitlines()[0]
    return value, None


def report(outcome: Outcome) -> None:
    """Print each field beside what the request says."""
    width = max(len(field.path) for field in outcome.fields)
    room = max(20, shutil.get_terminal_size((120, 24)).columns - width - 12)
    for field in outcome.fields:
        if field.is_right:
            line = _shown(field.written)
        else:
            line = f"{_shown(field.written)}   the request says: {_shown(field.expected)}"
        print(f"    {'✓' if field.is_right else '✗'} {field.path:{width}}  {line[:room]}")
    right = sum(field.is_right for field in outcome.fields)
    verdict = "valid" if outcome.error is None else f"INVALID: {outcome.error}"
    print(
        f"  {verdict}, {right} of {len(outcome.fields)} fields right, {outcome.tokens} tokens "
        f"in {outcome.seconds:.1f} s"
    )


def summary(outcomes: list[Outcome]) -> str:
    """One paragraph on all cases."""
    fields = [field for outcome in outcomes for field in outcome.fields]
    right = sum(field.is_right for field in fields)
    valid = sum(outcome.error is None for outcome in outcomes)
    tokens = sum(outcome.tokens for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    share = 100 * sum(outcome.mask_seconds for outcome in outcomes) / seconds
    return (
        f"{valid} of {len(outcomes)} outputs are valid (judged by jsonschema, formats included). "
        f"{right} of {len(fields)} fields are right ({100 * right / len(fields):.0f} %; case and blanks around texts do not "
        f"count). {tokens} tokens in {seconds:.1f} s, {share:.2f} % of it in masks."
    )


def _shown(value: Any) -> str:
    return "nothing" if value is MISSING else json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
