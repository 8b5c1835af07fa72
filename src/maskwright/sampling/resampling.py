"""Resampling: from N weighted particles to N equally likely ones, each expected N W_i times.

All schemes are unbiased, E[copies of i] = N W_i (Douc, Cappé and Moulines, "Comparison of resampling schemes
for particle filtering", 2005).  Residual and stratified resampling never have more variance than
multinomial; systematic has no such theorem, but its counts differ from N W_i by less than one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import MOST_COUNTED, check_type, one_of, real, whole
from maskwright.errors import MaskwrightError
from maskwright.sampling.logspace import Booleans, Floats, Integers

SCHEMES = ("systematic", "stratified", "residual", "multinomial")

_ROUNDED = 1e-6
"""By how much the sum of weights may miss 1: weights may have been single precision once."""


def check_particles(n_particles: int, ess_threshold: float, scheme: str) -> None:
    """Raise ``MaskwrightError`` for options of particles that make no sense."""
    whole(n_particles, "n_particles", low=1, high=MOST_COUNTED)
    real(ess_threshold, "ess_threshold", high=1.0)
    one_of(scheme, SCHEMES, "resampling")


def is_uneven(sizes: Floats, means: Floats, ess_threshold: float, n_particles: int) -> Booleans:
    """Whether effective sizes ask for resampling; ``means``: logarithms of mean weights, minus infinity for dead ones."""
    # Equal weights have an effective size of N up to rounding.
    least = min(ess_threshold * n_particles, n_particles * (1 - 1e-9))
    uneven: Booleans = (sizes < least) & np.isfinite(means)
    return uneven


def resample(weights: npt.ArrayLike, scheme: str, rng: np.random.Generator) -> Integers:
    """Ancestors [N], ascending, for ``weights`` [N] that are not negative and sum to one.

    A particle of weight zero is never chosen.  Raises ``MaskwrightError`` for another scheme, for other weights, and for what
    makes no random numbers.
    """
    one_of(scheme, SCHEMES, "resampling")
    check_type(rng, np.random.Generator, "rng", MaskwrightError)
    weights = _checked(weights)
    count = len(weights)
    if scheme == "residual":
        copies = np.floor(count * weights * (1 + 1e-12)).astype(np.int64)
        rest = np.maximum(count * weights - copies, 0.0)
        left = count - int(copies.sum())
        if left:
            np.add.at(copies, _invert(rest, np.sort(rng.random(left))), 1)
        return np.repeat(np.arange(count), copies)
    if scheme == "multinomial":
        return _invert(weights, np.sort(rng.random(count)))
    shifts = rng.random() if scheme == "systematic" else rng.random(count)
    return _invert(weights, (np.arange(count) + shifts) / count)


def _checked(weights: Any) -> Floats:
    try:
        found = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        found = None
    if found is None or found.ndim != 1:
        raise MaskwrightError(f"weights: expected numbers [N], got {weights!r}"[:300])
    if not (found > 0).any():
        raise MaskwrightError("no weight is positive, so there is nothing to resample")
    total = float(found.sum())
    if not ((found >= 0).all() and abs(total - 1) <= _ROUNDED):
        raise MaskwrightError(
            f"weights: they are not negative and sum to 1; these sum to {total:g}, the least is {found.min():g}"
        )
    return found


def _invert(weights: Floats, points: Floats) -> Integers:
    # Scaled by the last sum, so that rounding leaves no gap below 1; side="right" skips empty steps.
    sums = np.cumsum(weights)
    found = np.searchsorted(sums, points * sums[-1], side="right")
    chosen: Integers = np.minimum(found, np.flatnonzero(weights > 0)[-1])
    return chosen
