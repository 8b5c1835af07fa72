"""How the tokens of one output are chosen: OpenAI's parameters, and those that other servers add."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers.generation import logits_process as ready

from maskwright.generation.chooser import Chooser, sampler, seed_at


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """``temperature`` 0 takes the likeliest token.  ``logit_bias``: by token id, added to its logit.

    ``frequency_penalty``: taken off a token's logit for each time it was written; ``presence_penalty``: once.  All apply to what
    the grammar leaves.
    """

    temperature: float = 1.0
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    repetition_penalty: float | None = None
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: dict[int, float] = field(default_factory=dict)
    seed: int | None = None

    def chooser(self, prompt_length: int, index: int) -> Chooser:
        """For the output at a place of its request; a seed for each."""
        added = self.frequency_penalty or self.presence_penalty or self.logit_bias
        penalty = self.repetition_penalty
        return sampler(
            self.temperature,
            top_k=self.top_k,
            top_p=self.top_p,
            min_p=self.min_p,
            repetition_penalty=None if penalty == 1.0 else penalty,
            processors=[_Added(prompt_length, self)] if added else [],
            seed=seed_at(self.seed, index),
        )


class _Added(ready.LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """What is added to logits: penalties for what was written behind the prompt, and biases."""

    def __init__(self, prompt_length: int, sampling: Sampling) -> None:
        self.prompt_length = prompt_length
        self.frequency = sampling.frequency_penalty
        self.presence = sampling.presence_penalty
        self.ids = torch.tensor(list(sampling.logit_bias), dtype=torch.long)
        self.biases = torch.tensor(list(sampling.logit_bias.values()), dtype=torch.float32)

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        """Scores [1, V] behind ids [1, L]."""
        scores = scores.clone()
        if len(self.ids):
            scores[0, self.ids] += self.biases
        if self.frequency or self.presence:
            written, counts = input_ids[0, self.prompt_length :].unique(return_counts=True)
            scores[0, written] -= self.frequency * counts + self.presence
        return scores
