"""Several candidates for one answer: SMC over a grammar with few particles, and which of them to return.

The target is p(text)^power over the texts of the grammar that fit the budget.  A power above 1 prefers texts that are likely as a
whole: a candidate whose last token was likely, but which can only go on in an unlikely way, gives way to copies of
the others.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright.compiler import CompiledGrammar
from maskwright.errors import ModelError
from maskwright.sampling.constraints import Bitmask, GrammarConstraint
from maskwright.sampling.models import LanguageModel
from maskwright.sampling.posterior import Posterior
from maskwright.sampling.sequential import smc


@dataclass(frozen=True, eq=False)
class Candidates:
    """Weighted texts of a grammar, and the one to return.

    ``chosen``: its index among ``posterior.sequences``.  ``seconds`` were spent in all, ``mask_seconds`` of them on the grammar.
    ``posterior.counts`` has the forward passes (that of the prompt included) and the rows that they read.
    """

    posterior: Posterior
    chosen: int
    seconds: float
    mask_seconds: float

    @property
    def token_ids(self) -> list[int]:
        """The chosen text, without EOS."""
        return self.posterior.sequences[self.chosen]

    @property
    def logprobs(self) -> list[float]:
        """The model's log-probability of each of ``token_ids`` and of EOS, before any mask."""
        return self.posterior.logprobs[self.chosen]


def several_candidates(
    model: LanguageModel,
    grammar: CompiledGrammar,
    max_tokens: int = 256,
    *,
    particles: int = 8,
    power: float = 4.0,
    ess_threshold: float = 0.9,
    seed: int | np.random.Generator | None = None,
) -> Candidates:
    """Write ``particles`` texts of the grammar side by side, and choose the likeliest that is left.

    ``max_tokens`` counts EOS; every candidate is complete within it.  ``power``, ``ess_threshold``, ``seed``: see ``smc``.
    The chosen text is the one with the highest log p(text), EOS included.

    Raises ``LimitError`` when the shortest text does not fit, ``ModelError`` when the model gives probability 0 to all
    that the grammar allows, and what ``smc`` raises.
    """
    started = time.perf_counter()
    constraint = _Timed(grammar)
    posterior = smc(
        model, constraint, particles, ess_threshold, power=power, max_tokens=max_tokens, seed=seed
    )
    if posterior.all_dead:
        raise ModelError("the model gives probability 0 to every text of the grammar that it came across")
    totals = np.where(posterior.is_complete, [sum(each) for each in posterior.logprobs], -np.inf)
    return Candidates(posterior, int(totals.argmax()), time.perf_counter() - started, constraint.seconds)


class _Timed(GrammarConstraint):
    """Adds up the seconds spent on the grammar."""

    def __init__(self, grammar: CompiledGrammar) -> None:
        super().__init__(grammar)
        self.seconds = 0.0

    def advance(self, state: Any, token: int) -> Any:
        started = time.perf_counter()
        following = super().advance(state, token)
        self.seconds += time.perf_counter() - started
        return following

    def masks(self, states: Sequence[Any]) -> Bitmask:
        started = time.perf_counter()
        found = super().masks(states)
        self.seconds += time.perf_counter() - started
        return found

    def needed(self, state: Any) -> int:
        started = time.perf_counter()
        found = super().needed(state)
        self.seconds += time.perf_counter() - started
        return found
