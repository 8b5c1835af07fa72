"""Enumerable models, constraints and statistics for the tests of sampling.

Everything here is written the slow and obvious way: all texts are listed, so that each expectation is a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from maskwright.sampling import END, CallableModel, Constraint, Posterior, Predicate

EOS = 4
LONGEST = 4
_random = np.random.default_rng(20260101)
FIRST = _random.dirichlet(np.full(5, 0.7))
NEXT = _random.dirichlet(np.full(5, 0.7), size=4)


def bigram(ids: Sequence[int]) -> np.ndarray:
    """p(next token) over 0, 1, 2, 3 and EOS."""
    return NEXT[ids[-1]] if len(ids) else FIRST


def bigram_model() -> CallableModel:
    return CallableModel(lambda prefixes: np.log([bigram(ids) for ids in prefixes]), 5, EOS)


def is_prefix(ids: Sequence[int]) -> bool:
    """Zeros open and ones close, no 2 follows a 2, and what is open can be closed in time."""
    depth = 0
    for at, token in enumerate(ids):
        depth += (token == 0) - (token == 1)
        if depth < 0 or (token == 2 and at and ids[at - 1] == 2):
            return False
    return depth <= LONGEST - len(ids)


def is_complete(ids: Sequence[int]) -> bool:
    return is_prefix(ids) and ids.count(0) == ids.count(1)


def predicate() -> Predicate:
    return Predicate(is_prefix, is_complete)


class Exact(Constraint):
    """The same texts with exact masks, from asking about every token."""

    exact = True

    def start(self) -> tuple[int, ...]:
        return ()

    def advance(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return (*state, token)

    def masks(self, states: Sequence[tuple[int, ...]]) -> np.ndarray:
        bits = [
            sum(1 << v for v in range(4) if is_prefix((*state, v))) | (is_complete(state) << EOS)
            for state in states
        ]
        return np.array(bits, dtype=np.int32)[:, None]

    def _allows(self, state: tuple[int, ...], token: int) -> bool:
        return is_complete(state) if token == END else is_prefix((*state, token))


Texts = dict[tuple[int, ...], float]


def enumerate_target(
    max_tokens: int = 6,
    weight: Callable[[float, tuple[int, ...]], float] = lambda p, ids: p,
    distribution: Callable[[Sequence[int]], np.ndarray] = bigram,
    prefix: Callable[[Sequence[int]], bool] = is_prefix,
    complete: Callable[[Sequence[int]], bool] = is_complete,
    eos: Sequence[int] = (EOS,),
) -> Texts:
    """Every good text of at most ``max_tokens`` tokens, EOS included, with its unnormalised weight."""
    found: Texts = {}
    work: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while work:
        ids, p = work.pop()
        probabilities = distribution(ids)
        if complete(ids):
            found[ids] = weight(p * float(sum(probabilities[i] for i in eos)), ids)
        if len(ids) < max_tokens - 1:
            for v in range(len(probabilities)):
                if v not in eos and prefix((*ids, v)):
                    work.append(((*ids, v), p * float(probabilities[v])))
    return found


def total_variation(found: Mapping[Any, float], target: Texts) -> float:
    """Distance of normalised ``found`` and ``target``."""
    mass = sum(target.values())
    assert set(found) <= set(target)
    return 0.5 * sum(abs(found.get(ids, 0.0) - value / mass) for ids, value in target.items())


def deviations(posterior: Posterior, target: Texts) -> tuple[float, float]:
    """(z of the evidence, the largest |z| of the cells) over the islands of a posterior.

    A cell is a text with at least 200 expected hits; the others are one cell together, because a studentised
    mean of few hits is far from normal.  z is the distance to the exact value in standard errors.
    """
    islands = posterior.islands
    size = len(posterior.sequences) // islands
    number = {ids: index for index, ids in enumerate(target)}
    exact = np.array(list(target.values()))
    weights = np.exp(posterior.log_weights) / size
    found = np.zeros((islands, len(target)))
    for particle, (ids, weight) in enumerate(zip(posterior.sequences, weights.tolist(), strict=True)):
        if weight > 0:
            found[particle // size, number[tuple(ids)]] += weight
    large = exact / exact.sum() * islands * size >= 200
    cells = np.column_stack([found[:, large], found[:, ~large].sum(axis=1)])
    values = np.append(exact[large], exact[~large].sum())
    z = _deviations(np.column_stack([found.sum(axis=1)]), exact.sum(keepdims=True))
    return float(z[0]), float(np.abs(_deviations(cells, values)).max())


def _deviations(samples: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """z of each column; columns without any spread must be right to 1e-9."""
    errors = samples.std(axis=0, ddof=1) / len(samples) ** 0.5
    certain = errors < 1e-12
    means = samples.mean(axis=0)
    assert np.allclose(means[certain], exact[certain], rtol=1e-9, atol=1e-12)
    return np.where(certain, 0.0, (means - exact) / np.where(certain, 1.0, errors))
