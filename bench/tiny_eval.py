"""Unconstrained greedy decoding of held-out examples: what the tiny model does without a mask."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from demo_data import Example
from jsonschema import Draft202012Validator, FormatChecker
from transformers import PreTrainedModel, PreTrainedTokenizerBase


class Rates(NamedTuple):
    """Shares of the answers that parse, that validate, and that equal the expected value."""

    count: int
    parses: float
    validates: float
    exact: float

    def __str__(self) -> str:
        return (
            f"{self.count} examples: parses {self.parses:.1%}, validates {self.validates:.1%}, "
            f"exact values {self.exact:.1%}"
        )


def _judge(text: str, example: Example) -> tuple[bool, bool, bool]:
    try:
        value: Any = json.loads(text)
    except ValueError:
        return False, False, False
    valid = Draft202012Validator(example.schema, format_checker=FormatChecker()).is_valid(value)
    # Python finds 1 == True == 1.0; the JSON text tells them apart.
    same = json.dumps(value, sort_keys=True) == json.dumps(example.value, sort_keys=True)
    return True, valid, same


@torch.inference_mode()
def greedy_answers(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    prompts: Sequence[str],
    max_new_tokens: int = 256,
    batch_size: int = 32,
) -> list[str]:
    """The greedy continuation of each prompt up to the end token."""
    answers: list[str] = []
    for start in range(0, len(prompts), batch_size):
        batch = tokenizer(
            list(prompts[start : start + batch_size]),
            return_tensors="pt",
            padding=True,
            padding_side="left",
            return_token_type_ids=False,
        )
        output = model.generate(**batch, max_new_tokens=max_new_tokens, do_sample=False)
        new = output[:, batch["input_ids"].shape[1] :]
        answers += tokenizer.batch_decode(new, skip_special_tokens=True)
    return answers


def measure(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, examples: Sequence[Example]
) -> tuple[Rates, dict[str, Rates]]:
    """Rates over all ``examples`` and by domain."""
    answers = greedy_answers(model, tokenizer, [example.prompt for example in examples])
    verdicts: dict[str, list[tuple[bool, bool, bool]]] = defaultdict(list)
    for text, example in zip(answers, examples, strict=True):
        verdicts[example.domain].append(_judge(text, example))
    by_domain = {domain: _rates(found) for domain, found in sorted(verdicts.items())}
    return _rates([verdict for found in verdicts.values() for verdict in found]), by_domain


def _rates(verdicts: Sequence[tuple[bool, bool, bool]]) -> Rates:
    totals = Counter(index for verdict in verdicts for index, passed in enumerate(verdict) if passed)
    return Rates(len(verdicts), *(totals[index] / len(verdicts) for index in range(3)))
