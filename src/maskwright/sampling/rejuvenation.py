"""Metropolis-Hastings moves that make resampled particles differ again (resample-move, Gilks and Berzuini 2001).

A move cuts a text behind its first i tokens and writes it anew with the sampler's own proposal (the kernel
of Gonzalez et al. 2025, arXiv 2506.05754, in its form for one cut).  With A(x) the weight that x has gathered behind
token i, the new text is accepted with probability min(1, A(x') / A(x)); random weights, as AWRS has them, are kept
with the text that they belong to (pseudo-marginal, Andrieu and Roberts 2009).  The intermediate target is left
invariant, so weights and evidence do not change.

What is moved and when must not depend on the particles, or an invariant kernel does not keep estimates
unbiased: duplicates only, small rewards only, or only islands that were just resampled are all wrong (the
tests show the first one fail).  So moves come at the end of every block, the cut is one number for all, drawn without
looking at them, and all unfinished particles are moved, staying among the unfinished: a new text that ends
before the others is a rejected proposal, which is the same kernel restricted to a set.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maskwright.sampling.logspace import Booleans, Floats, Integers
from maskwright.sampling.population import Population


class Paths:
    """What moves need to know about the past: for each number of tokens, what a particle had gathered by then.

    ``total`` [P]: all changes of the log-weight, as if there were no resampling.  ``bases[s]``: the total
    after s tokens less the twist then.  ``scores[s]``: log p of those tokens.
    """

    def __init__(self, count: int) -> None:
        self.total = np.zeros(count)
        self.bases = [np.zeros(count)]
        self.scores = [np.zeros(count)]

    def record(self, population: Population, change: Floats) -> None:
        """After a step."""
        self.total = self.total + change
        live = population.is_live
        twists, scores = np.zeros(len(population)), self.scores[-1].copy()
        twists[live] = population.rows.log_twists[population.row_of[live]]
        scores[live] = population.rows.cumulative[population.row_of[live]]
        self.bases.append(self.total - twists)
        self.scores.append(scores)

    def gather(self, ancestors: Integers) -> None:
        self.total = self.total[ancestors]
        self.bases = [values[ancestors] for values in self.bases]
        self.scores = [values[ancestors] for values in self.scores]

    def replace(self, particles: Integers, cut: int, other: Paths, accepted: Booleans) -> None:
        """Take over what ``other`` gathered behind the cut, for the accepted ones of ``particles``."""
        chosen = particles[accepted]
        base = self.bases[cut][chosen]
        for step in range(1, len(other.bases)):
            self.bases[cut + step][chosen] = base + other.bases[step][accepted]
            self.scores[cut + step][chosen] = other.scores[step][accepted]
        self.total[chosen] = base + other.total[accepted]


def rejuvenate(
    population: Population, paths: Paths, moving: Integers, look: Callable[[Population], Floats] | None
) -> float:
    """Try to move the particles ``moving``, all of them unfinished; the share accepted.

    ``look`` gives the look-ahead twists of a population's rows.
    """
    problem = population.problem
    written = len(paths.bases) - 1
    cut = int(problem.rng.integers(written))
    if not len(moving):
        return 0.0
    texts = {i: population.prefix(i).ids() for i in np.flatnonzero(population.is_live).tolist()}
    starts = [tuple(texts[i][:cut]) for i in moving.tolist()]
    distinct = {ids: index for index, ids in enumerate(dict.fromkeys(starts))}
    rows = problem.rows([list(ids) for ids in distinct])
    row_of = np.array([distinct[ids] for ids in starts])
    rows.cumulative[row_of] = paths.scores[cut][moving]
    trial = Population(problem, rows, row_of)
    behind = Paths(len(moving))
    for _ in range(written - cut):
        behind.record(trial, trial.step() if trial.is_live.any() else np.zeros(len(trial)))
    if look is not None and trial.is_live.any():
        behind.total = behind.total + trial.retwist(trial.rows.log_twists + look(trial))
    ratio = behind.total - (paths.total[moving] - paths.bases[cut][moving])
    accepted = trial.is_live & (-problem.rng.standard_exponential(len(moving)) < ratio)
    if accepted.any():
        paths.replace(moving, cut, behind, accepted)
        twists = {i: population.rows.log_twists[population.row_of[i]] for i in texts}
        for index in np.flatnonzero(accepted).tolist():
            particle = int(moving[index])
            texts[particle] = trial.prefix(index).ids()
            twists[particle] = trial.rows.log_twists[trial.row_of[index]]
        population.rewrite(texts, twists, paths.scores[-1])
    return float(accepted.mean())
