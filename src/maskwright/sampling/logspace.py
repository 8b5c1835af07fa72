"""Arithmetic on logarithms of probabilities; minus infinity is the logarithm of zero, NaN never comes out."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.float64]
Integers: TypeAlias = npt.NDArray[np.int64]
Booleans: TypeAlias = npt.NDArray[np.bool_]

MINUS_INFINITY = float("-inf")

_PORTION = 1 << 17
"""Numbers that are exponentiated at once."""


def log_sum_exp(values: Any) -> Floats:
    """Logarithm of the sum of ``exp(values)`` over the last axis, relative to the largest term."""
    values = np.asarray(values, dtype=np.float64)
    if values.ndim == 2 and len(values) > 1 and values.size > _PORTION:
        # In portions that fit into caches: what is in between is never written to memory.
        portion = max(1, _PORTION // values.shape[1])
        parts = [log_sum_exp(values[i : i + portion]) for i in range(0, len(values), portion)]
        return np.concatenate(parts)
    top = values.max(axis=-1, keepdims=True, initial=MINUS_INFINITY)
    top = np.where(np.isfinite(top), top, 0.0)
    total: Floats = log(np.exp(values - top).sum(axis=-1)) + top[..., 0]
    return total


def log_mean_exp(values: Any) -> Floats:
    """Logarithm of the mean of ``exp(values)`` over the last axis."""
    mean: Floats = log_sum_exp(values) - np.log(np.asarray(values).shape[-1])
    return mean


def log(values: Any) -> Floats:
    """Logarithm, with minus infinity at zero and no warning."""
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(values, dtype=np.float64))


def normalized(log_weights: Any) -> Floats:
    """Weights that sum to 1; all zero when every log-weight is minus infinity."""
    log_weights = np.asarray(log_weights, dtype=np.float64)
    top = log_weights.max(axis=-1, keepdims=True, initial=MINUS_INFINITY)
    weights: Floats = np.exp(log_weights - np.where(np.isfinite(top), top, 0.0))
    # The logarithm of their sum would be lost beside a large one.
    total = weights.sum(axis=-1, keepdims=True)
    np.divide(weights, total, out=weights, where=total > 0)
    return weights


def normalized_rows(scores: Floats) -> Floats:
    """Log-distributions; rows without any mass stay so."""
    total = log_sum_exp(scores)
    found: Floats = scores - np.where(total > MINUS_INFINITY, total, 0.0)[:, None]
    return found


def tempered_rows(scores: Floats, temperature: float) -> Floats:
    """``normalized_rows`` of scores by a temperature, however small."""
    top = scores.max(axis=-1, keepdims=True)
    # The largest one stays at 0; others may go beyond what a double holds.
    with np.errstate(over="ignore"):
        return normalized_rows((scores - np.where(top > MINUS_INFINITY, top, 0.0)) / temperature)


def effective_sample_size(log_weights: Any) -> Floats:
    """``(sum w)² / sum w²`` over the last axis; zero when all weights are zero (Kong, Liu and Wong 1994)."""
    weights = normalized(log_weights)
    squares = (weights**2).sum(axis=-1)
    sizes: Floats = np.divide(1.0, squares, out=np.zeros_like(squares), where=squares > 0)
    return sizes
