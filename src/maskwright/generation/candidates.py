"""Several candidates for one output, written side by side; the model then says which it finds likeliest as a whole.

Candidates must differ, and in ways that matter.  One takes the likeliest token each time.  The others are guided by contrast prompts
(``guidance.py``), with several strengths; some of them take the likeliest token, some draw it.  How a candidate was
found plays no part in the choice, which is by log p(text | prompt) of the model alone, EOS included.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import torch

from maskwright.generation.chooser import Chooser, sampler
from maskwright.generation.guidance import Guide
from maskwright.generation.key_values import KeyValueRows

_Key = TypeVar("_Key", bound=Hashable)
_STRENGTHS = (1.5, 2.0, 1.25, 1.75)
"""Of guided candidates that take the likeliest token."""
_DRAWN_STRENGTH = 1.5
_DRAWN_TEMPERATURE = 0.7
_POWER = 4.0
"""Of the posterior: candidates are weighed by p(text) to this power."""


@dataclass(frozen=True)
class Plan:
    """How one candidate is written.  ``guide``: None for the model as it is; ``drawn``: tokens are drawn, not the likeliest taken."""

    guide: Guide | None
    drawn: bool

    def chooser(self, seed: int | None) -> Chooser:
        """A way to choose its tokens."""
        if not self.drawn:
            return Chooser()
        return sampler(_DRAWN_TEMPERATURE, seed=seed)


def plans(count: int, contrasts: Sequence[list[int]]) -> list[Plan]:
    """How ``count`` candidates are written: the first without a guide, the others in turns with each contrast prompt."""
    return list(islice(_all_plans(contrasts), count))


def _all_plans(contrasts: Sequence[list[int]]) -> Iterator[Plan]:
    yield Plan(None, drawn=False)
    for strength in _STRENGTHS if contrasts else ():
        for prompt in contrasts:
            yield Plan(Guide(prompt, strength), drawn=False)
            yield Plan(Guide(prompt, _DRAWN_STRENGTH), drawn=True)
    while True:
        yield Plan(None, drawn=True)


def whole_logprob(rows: KeyValueRows, prompt: list[int], tokens: list[int], eos_ids: Sequence[int]) -> float:
    """log p(tokens and then EOS | prompt), of the model alone: one forward pass.  ``rows`` has none before and behind it."""
    (logits,) = rows.add([prompt], [tokens])
    rows.keep([])
    logprobs = logits.log_softmax(-1)
    written = logprobs[:-1].gather(1, torch.tensor(tokens, dtype=torch.int64)[:, None]).sum()
    return float(written + logprobs[-1, list(eos_ids)].logsumexp(0))


def posterior(logprobs: Mapping[_Key, float]) -> dict[_Key, float]:
    """Shares of p(text) to the power 4 among what was found."""
    best = max(logprobs.values())
    weights = {key: math.exp(_POWER * (logprob - best)) for key, logprob in logprobs.items()}
    total = sum(weights.values())
    return {key: weight / total for key, weight in weights.items()}
