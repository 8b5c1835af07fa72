"""How the tokens of one output are chosen: OpenAI's parameters, and those that other servers add."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from transformers.generation import logits_process as ready

from maskwright.generation.row import Choice


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

    def choice(self, prompt_length: int, index: int) -> Choice:
        """For the output at a place of its request; a seed for each."""
        processors = ready.LogitsProcessorList()
        warpers = ready.LogitsProcessorList()
        if self.repetition_penalty not in (None, 1.0):
            processors.append(ready.RepetitionPenaltyLogitsProcessor(float(self.repetition_penalty or 1.0)))
        if self.frequency_penalty or self.presence_penalty or self.logit_bias:
            processors.append(_Added(prompt_length, self))
        if self.temperature:
            warpers.append(ready.TemperatureLogitsWarper(float(self.temperature)))
            if self.top_k is not None:
                warpers.append(ready.TopKLogitsWarper(self.top_k))
            if self.top_p is not None:
                warpers.append(ready.TopPLogitsWarper(float(self.top_p)))
            if self.min_p is not None:
                warpers.append(ready.MinPLogitsWarper(float(self.min_p)))
        seed = None
        if self.seed is not None:
            seed = int(np.random.SeedSequence((self.seed % 2**64, index)).generate_state(1)[0])
        return Choice(processors, warpers, samples=bool(self.temperature), seed=seed)


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
