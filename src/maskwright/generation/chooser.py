"""How the next token is chosen from masked logits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from maskwright.errors import MaskwrightError


class Chooser:
    """How a token is chosen from masked logits: the likeliest, or one that is drawn.

    ``processors`` and ``warpers`` are lists of transformers' logits processors; the latter see the logits less their
    maximum, in double precision, so that no temperature overflows.
    """

    def __init__(
        self, processors: Any = None, warpers: Any = None, *, samples: bool = False, seed: int | None = None
    ) -> None:
        self.processors = processors
        self.warpers = warpers
        self.samples = samples
        self.random = torch.Generator()
        if seed is None:
            self.random.seed()
        else:
            self.random.manual_seed(seed)

    def __call__(self, logits: Any, prompt: Sequence[int], written: Sequence[int]) -> int:
        """The choice among logits [V], disallowed ones minus infinity."""
        scores = logits[None]
        ids = torch.tensor([[*prompt, *written]]) if self.processors or self.warpers else None
        if self.processors:
            scores = _usable(self.processors(ids, scores), scores)
        if not self.samples:
            return int(scores.argmax())
        scores = (scores - scores.max()).double()
        if self.warpers:
            scores = _usable(self.warpers(ids, scores), scores)
        chances = torch.softmax(scores[0], dim=-1)
        return int(torch.multinomial(chances, 1, generator=self.random))


def sampler(
    temperature: float,
    *,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    repetition_penalty: float | None = None,
    processors: Sequence[Any] = (),
    seed: int | None = None,
) -> Chooser:
    """Transformers' own processors in its order, ``processors`` behind its penalty.  ``temperature`` 0 takes the likeliest token."""
    from transformers.generation import logits_process as ready

    first = ready.LogitsProcessorList()
    if repetition_penalty is not None:
        first.append(ready.RepetitionPenaltyLogitsProcessor(float(repetition_penalty)))
    first.extend(processors)
    warpers = ready.LogitsProcessorList()
    if temperature:
        warpers.append(ready.TemperatureLogitsWarper(float(temperature)))
        if top_k is not None:
            warpers.append(ready.TopKLogitsWarper(top_k))
        if top_p is not None:
            warpers.append(ready.TopPLogitsWarper(float(top_p)))
        if min_p is not None:
            warpers.append(ready.MinPLogitsWarper(float(min_p)))
    return Chooser(first, warpers, samples=bool(temperature), seed=seed)


def seed_at(seed: int | None, *places: int) -> int | None:
    """The seed of the output at a place, of any integer; None of None."""
    if seed is None:
        return None
    return int(np.random.SeedSequence((seed % 2**64, *places)).generate_state(1)[0])


def _usable(scores: Any, before: Any) -> Any:
    """The scores of logits processors; those before them where they forbid all that the grammar allows, which has precedence.

    Raises ``MaskwrightError`` for what is no number."""
    best = float(scores.max())
    if math.isnan(best) or best == math.inf:
        raise MaskwrightError("a logits processor made scores that are no finite numbers")
    return before if best == -math.inf else scores
