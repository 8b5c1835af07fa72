"""What a sampler returns: weighted texts, and how they came about."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type, listed
from maskwright.errors import MaskwrightError
from maskwright.sampling.logspace import (
    MINUS_INFINITY,
    Booleans,
    Floats,
    Integers,
    effective_sample_size,
    log_mean_exp,
    normalized,
)
from maskwright.sampling.population import Counts


@dataclass(eq=False)
class Posterior:
    """Weighted samples of the target.

    ``exp(log_evidence)`` is an unbiased estimate of the target's total mass, and for every function f
    ``mean(exp(log_weights) · f(sequences))`` one of its unnormalised integral.  ``expect`` and ``posterior``
    normalise the weights, which costs a bias of order 1 / N.

    When every particle died, ``log_evidence`` is minus infinity, ``weights`` are zero, ``probabilities()`` is
    empty and ``expect`` has nothing to answer with (None); nothing is ever NaN.
    """

    sequences: list[list[int]]
    """The texts as token ids, EOS excluded; a particle that died has what it wrote before."""
    log_weights: Floats
    """[particles]; minus infinity for those that died."""
    is_complete: Booleans
    """[particles]: whether the text ended (with EOS) and is good; the others died."""
    islands: int = 1
    """Independent runs that are pooled here, each a slice of equal size of all the arrays."""
    ess_history: list[Any] = field(default_factory=list)
    """Effective sample size before each possible resampling: floats, or arrays [islands]."""
    genealogy: list[Integers] = field(default_factory=list)
    """For each possible resampling the ancestor of every particle; ``arange`` where none took place."""
    counts: Counts = field(default_factory=Counts)
    logprobs: list[list[float]] = field(default_factory=list)
    """The model's log-probability of each token of ``sequences``, and of EOS behind complete ones; NaN for tokens that a
    move (``rejuvenation``) read anew.  Empty for pooled runs."""

    @property
    def log_evidence(self) -> float:
        """Logarithm of the estimated mass of the target: the mean weight of all particles, dead ones included."""
        return float(log_mean_exp(self.log_weights)) if len(self.log_weights) else MINUS_INFINITY

    @property
    def island_log_evidence(self) -> Floats:
        """The estimate of each island, [islands]."""
        return log_mean_exp(self.log_weights.reshape(self.islands, -1))

    @property
    def weights(self) -> Floats:
        """Normalised weights, [particles]."""
        return normalized(self.log_weights)

    @property
    def ess(self) -> float:
        """Effective sample size of the final weights."""
        return float(effective_sample_size(self.log_weights))

    @property
    def all_dead(self) -> bool:
        """Whether nothing good was found."""
        return not np.isfinite(self.log_weights).any()

    def probabilities(self, decode: Callable[[list[int]], Hashable] | None = None) -> dict[Any, float]:
        """Probabilities of the texts, or of what ``decode`` makes of them, the largest first.

        Several token sequences that decode to one value are summed up.
        """
        found: dict[Any, float] = {}
        for ids, weight in zip(self.sequences, self.weights.tolist(), strict=True):
            if weight > 0:
                value = decode(list(ids)) if decode is not None else tuple(ids)
                found[value] = found.get(value, 0.0) + weight
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    def expect(self, function: Callable[[list[int]], float]) -> float | None:
        """The weighted mean of ``function(ids)``; None when all particles died."""
        if self.all_dead:
            return None
        pairs = zip(self.sequences, self.weights.tolist(), strict=True)
        return float(sum(weight * function(list(ids)) for ids, weight in pairs if weight > 0))

    def plot(
        self, path: str | Path, title: str = "", decode: Callable[[list[int]], Any] | None = None
    ) -> None:
        """Genealogy and effective sample sizes as ``.png`` (needs matplotlib), or as an ``.html`` page, where ``decode`` says
        what texts token ids are.
        """
        from maskwright.sampling.plots import plot_genealogy

        plot_genealogy(self, Path(path), title, decode)

    def _repr_html_(self) -> str:
        """What a notebook shows: figures, the genealogy, and the heaviest texts (as token ids)."""
        from maskwright.base.html import some, table
        from maskwright.pages.genealogy import picture

        figures = [
            ("particles", f"{len(self.sequences):,}"),
            ("ended", f"{int(self.is_complete.sum()):,}"),
            ("effective sample size", f"{self.ess:.1f}"),
            ("log evidence", f"{self.log_evidence:.3f}"),
            ("forward passes", f"{self.counts.model_calls:,}"),
        ]
        made = table("Weighted samples", ("", ""), figures)
        if self.genealogy:
            made += picture(self)
        rows = [(f"{share:.4f}", " ".join(map(str, ids))) for ids, share in self.probabilities().items()]
        return made + some("Texts, as token ids", ("probability", "ids"), rows)


def pooled(parts: Sequence[Posterior]) -> Posterior:
    """Runs with as many particles each as one posterior, every run weighted by its evidence.

    Raises ``MaskwrightError`` for no runs, and for runs whose islands differ in size.
    """
    parts = listed(parts, "parts", "posteriors")
    if not parts:
        raise MaskwrightError("pooled needs at least one posterior")
    sizes = []
    for part in parts:
        check_type(part, Posterior, "parts", MaskwrightError)
        sizes.append(len(part.log_weights) / part.islands)
    # The mean weight of all would not be that of the runs.
    odd = next((at for at, size in enumerate(sizes) if size != sizes[0]), None)
    if odd is not None:
        raise MaskwrightError(
            f"pooled: run 0 has {sizes[0]:g} particles an island and run {odd} has {sizes[odd]:g}; pool runs with as many each"
        )
    return Posterior(
        [ids for part in parts for ids in part.sequences],
        np.concatenate([part.log_weights for part in parts]),
        np.concatenate([part.is_complete for part in parts]),
        islands=sum(part.islands for part in parts),
    )
