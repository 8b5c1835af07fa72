"""Look-ahead: twists from what comes next.

A twist is any positive function of the prefix; it moves resampling to where it is informed and divides out
again, so estimates stay unbiased.  The best one is the expected mass of good texts behind the prefix; both kinds
here estimate it.  An estimate by rollouts is drawn once for each prefix of a run and remembered: given all these
draws the twist is a fixed function, and what holds for such functions holds on average.
"""

from __future__ import annotations

import numpy as np

from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, log_mean_exp
from maskwright.sampling.population import Population


class LookAhead:
    """Logarithms of estimates of the mass behind the rows of a population.

    One step: the mass that the constraint's masks leave to the next token, known without any sampling (an
    auxiliary particle filter, Pitt and Shephard 1999).  More steps: the mean weight of ``rollouts`` runs
    of that many tokens behind each prefix, reward included where they end, and of one that counts as the
    one-step mass: an estimate of zero would lose texts where all rollouts happen to fail, and a tiny one
    would make few particles carry them.
    """

    def __init__(self, steps: int, rollouts: int) -> None:
        self._steps = steps
        self._rollouts = rollouts
        self._known: dict[tuple[int, ...], float] = {}

    def __call__(self, population: Population) -> Floats:
        """[R], minus infinity only where nothing good can follow."""
        mass = population.scores().log_mass
        if self._steps == 1:
            return mass
        keys = [tuple(prefix.ids()) for prefix in population.rows.prefixes]
        new = np.array([i for i, key in enumerate(keys) if key not in self._known], dtype=np.int64)
        if len(new):
            found = self._explore(population, new, mass[new])
            self._known.update(zip([keys[i] for i in new], found.tolist(), strict=True))
        return np.array([self._known[key] for key in keys])

    def _explore(self, population: Population, chosen: Integers, mass: Floats) -> Floats:
        rows = population.rows.select(chosen)
        scout = Population(population.problem, rows, np.repeat(np.arange(len(chosen)), self._rollouts))
        for _ in range(self._steps):
            if not scout.is_live.any():
                break
            scout.step()
        found = log_mean_exp(np.column_stack([scout.log_weights.reshape(len(chosen), -1), mass]))
        return np.where(mass > MINUS_INFINITY, found, MINUS_INFINITY)
