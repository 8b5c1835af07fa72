"""Adaptive weighted rejection sampling: one token under a black-box constraint, properly weighted.

Method: Lipkin et al., "Fast Controlled Generation from Language Models with Adaptive Weighted Rejection
Sampling" (COLM 2025, arXiv 2504.05410).  Tokens are drawn without replacement until one is accepted, so
that the accepted one is distributed as p(v) c(v) / Z with Z = sum of p(v) c(v), after few looks at c.  What
has to be estimated is Z, and

    E[exp(log_weight) · 1{token = v}] = p(v) · c(v)    for every token v               (proper weighting)

is what makes the pair usable in importance sampling and in sequential Monte Carlo.

**The estimator.**  Let x_1, x_2, ... be the order of the draws.  For a set G of tokens known to be good and a
set U of tokens not looked at yet, Z = p(G) + p(U) · P(next draw is good), since the next draw from U is good
with probability Z_U / p(U).  So stop after any draw, by a rule that looks at the past only, take the last
draw's verdict as the estimate of that probability, and the weight is

    p(G) + p(U) · 1{last draw was good},     U including the last draw.

In words: the mass of the tokens known to be good, all tokens that nobody looked at counting as good exactly
when the last draw was.  With one draw behind the accepted one (``probes=1``) this is the recursive
estimator of genlm-control, E[f] = q_1 f(x_1) + (1 - q_1) E[f | X != x_1], written without its products: they
telescope.  More probes reduce the variance and cost one evaluation each.  ``max_rejects`` and
``min_remaining`` declare a draw to be the last one although nothing was accepted before; being rules that look
at the past only, they keep the weight unbiased.  No mass is ever computed as 1 minus another, so nothing
cancels when the good tokens have probabilities of 1e-300.

**Which estimator** (``method="auto"``).  The recursive one believes the last draw alone: where many tokens share a small good mass, its relative
variance is 1 / Z.  The default is a third one (``inverse``), which goes on to the second good token and uses all draws before it, and stops
early where that hardly matters.  A token of probability 0.95 costs 1.2 evaluations on average.  ``probes``, ``max_rejects`` and
``min_remaining`` are options of the recursive estimator, and choose it.

**The geometric variant** simulates a run *with* replacement from the draws without replacement: rejected
tokens would have come again a geometric number of times.  Z is estimated from the numbers of accepts and
rejects as (A - 1) / (A + R - 1), the unbiased estimator for inverse binomial sampling (Girshick, Mosteller
and Savage 1946).  Accepted tokens are not evaluated twice.  Its relative variance, -ln Z / (1 - Z) - 1 for A = 2,
grows without bound when Z is small.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import MOST_COUNTED, check_function, generator, one_of, real, whole
from maskwright.errors import BitmaskError, ConstraintError, MaskwrightError, ModelError
from maskwright.masks import bitmask
from maskwright.sampling.inverse import inverse_draws
from maskwright.sampling.logspace import (
    MINUS_INFINITY,
    Booleans,
    Floats,
    Integers,
    log,
)
from maskwright.sampling.order import Order, Table
from maskwright.sampling.verdicts import booleans

Verdicts = Callable[[Integers, Integers], npt.NDArray[np.bool_]]
"""``accept(rows [n], tokens [n]) -> verdicts [n]``; a pair comes at most once."""

_MANY = 1e15
"""From here on, a count is taken for its logarithm."""


class Draw(tuple[int, float]):
    """What ``awrs`` returns: unpacks as (token, log_weight); ``calls`` is the number of evaluations."""

    token: int
    log_weight: float
    calls: int

    def __new__(cls, token: int, log_weight: float, calls: int) -> Draw:
        self = super().__new__(cls, (token, log_weight))
        self.token, self.log_weight, self.calls = token, log_weight, calls
        return self


class Draws(NamedTuple):
    """One draw for each row: all arrays [B]."""

    tokens: Integers
    log_weights: Floats
    calls: Integers


def awrs(
    logprobs: npt.ArrayLike,
    accept: Callable[[int], bool],
    rng: np.random.Generator | int | None = None,
    *,
    allowed: Any = None,
    method: str = "auto",
    probes: int = 1,
    max_rejects: int | None = None,
    max_accepts: int = 2,
    min_remaining: float = 0.0,
) -> Draw:
    """Draw a token with probability p(v) c(v) / Z and a weight with E[exp(log_weight)·1{token = v}] = p(v) c(v).

    ``logprobs`` [V]: log p(v); they need not sum to one.  ``accept(v)``: whether token v is good, asked once
    a token.  ``allowed``: tokens that can be good at all, as booleans [V] or as a bitmask (int32 [words]);
    the others are pruned at no cost and without variance.  ``rng``: a generator or a seed.

    ``method``: ``"recursive"``, ``"geometric"``, or ``"auto"``: inverse sampling, or the recursive one where ``probes``, ``max_rejects`` or
    ``min_remaining`` is given.  ``probes``: draws behind the accepted one, at most (not geometric).  ``max_accepts``: accepts of the simulated run
    (geometric), at least 2.  ``max_rejects``: at least 2 (geometric) or 1; ``min_remaining``: the share of the mass left below which a draw is
    the last one (recursive).  These limits keep the weight unbiased but make the weight 0 possible while good tokens
    exist.

    When nothing was accepted, the token is a rejected one, or -1 where no score that is allowed is finite, and the log-weight minus
    infinity; a token that was accepted always has a finite one.  Raises ``ModelError`` for NaN, plus infinity and no scores at all,
    ``ConstraintError`` when ``accept`` does not answer with a boolean, ``MaskwrightError`` for bad options.
    """
    scores = _numbers(logprobs)
    check_function(accept, "accept")
    if scores.ndim != 1:
        raise ModelError(f"logprobs must be [V], not {list(scores.shape)}")

    def verdicts(rows: Integers, tokens: Integers) -> Booleans:
        return np.array([boolean(accept(int(token)), "accept", int(token)) for token in tokens], dtype=bool)

    if allowed is not None:
        scores = np.where(allowed_tokens(allowed, len(scores)), scores, MINUS_INFINITY)
    draws = awrs_batch(
        scores[None],
        verdicts,
        rng,
        method=method,
        probes=probes,
        max_rejects=max_rejects,
        max_accepts=max_accepts,
        min_remaining=min_remaining,
    )
    return Draw(int(draws.tokens[0]), float(draws.log_weights[0]), int(draws.calls[0]))


def awrs_batch(
    logprobs: Floats,
    accept: Verdicts,
    rng: np.random.Generator | int | None = None,
    *,
    method: str = "auto",
    probes: int = 1,
    max_rejects: int | None = None,
    max_accepts: int = 2,
    min_remaining: float = 0.0,
) -> Draws:
    """``awrs`` for ``logprobs`` [B, V] at once: one call of ``accept(rows, tokens)`` a round.

    The rows go in step, so that a slow checker sees as many candidates together as there are rows.  A row
    without finite scores comes back with token -1 and weight zero.
    """
    logprobs = _numbers(logprobs)
    check_function(accept, "accept")
    if logprobs.ndim != 2 or not logprobs.shape[1]:
        raise ModelError(f"logprobs must be [B, V], not {list(logprobs.shape)}")
    return awrs_table(
        Table(logprobs),
        np.arange(len(logprobs)),
        lambda at, tokens: booleans(accept(at, tokens), len(at), "accept(rows, tokens)"),
        generator(rng, name="rng"),
        method=method,
        probes=probes,
        max_rejects=max_rejects,
        max_accepts=max_accepts,
        min_remaining=min_remaining,
    )


def _numbers(logprobs: npt.ArrayLike) -> Floats:
    try:
        return np.asarray(logprobs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ModelError(f"logprobs must be numbers, not {logprobs!r}"[:300]) from None


def awrs_table(
    table: Table,
    rows: Integers,
    accept: Verdicts,
    rng: np.random.Generator,
    *,
    method: str = "auto",
    probes: int = 1,
    max_rejects: int | None = None,
    max_accepts: int = 2,
    min_remaining: float = 0.0,
) -> Draws:
    """``awrs_batch`` for B draws from rows [B] of a table, which may come several times; ``accept`` gets positions in B."""
    check_options(method, probes, max_rejects, max_accepts, min_remaining)
    limit = max_rejects if max_rejects is not None else np.inf
    if method == "geometric":
        return _geometric(table, rows, accept, rng, max_accepts, limit)
    if method == "auto" and probes == 1 and max_rejects is None and not min_remaining:
        return Draws(*inverse_draws(table, rows, accept, rng))
    return _recursive(table, rows, accept, rng, probes, limit, min_remaining)


def _recursive(
    table: Table,
    rows: Integers,
    accept: Verdicts,
    rng: np.random.Generator,
    probes: int,
    max_rejects: float,
    min_remaining: float,
) -> Draws:
    count = len(rows)
    order = Order(table, rows, rng)
    log_good = np.full(count, MINUS_INFINITY)  # mass of the tokens that count as good
    rest_is_good, found = (np.zeros(count, dtype=bool) for _ in range(2))
    rejects, probed, calls = (np.zeros(count, dtype=np.int64) for _ in range(3))
    tokens = np.full(count, -1)
    least = log(min_remaining) + table.log_mass[rows] if min_remaining else None
    at = np.flatnonzero(order.left > 0)
    while len(at):
        last = np.where(found[at], probed[at] == probes - 1, rejects[at] >= max_rejects - 1)
        if least is not None:
            last |= ~found[at] & (order.log_rest(at) < least[at])
        drawn = order.draw(at)
        verdicts = accept(at, drawn)
        calls[at] += 1
        mass = np.where(verdicts, table.logs[rows[at], drawn], MINUS_INFINITY)
        log_good[at] = np.logaddexp(log_good[at], mass)
        rest_is_good[at] = verdicts & last
        probed[at] += found[at]
        rejects[at] += ~found[at] & ~verdicts
        first = ~found[at] & (verdicts | (tokens[at] < 0))
        tokens[at[first]] = drawn[first]
        found[at] |= verdicts
        at = at[~last & (order.left[at] > 0)]
    at = np.flatnonzero(rest_is_good)
    log_good[at] = np.logaddexp(log_good[at], order.log_rest(at))
    return Draws(tokens, log_good, calls)


def _geometric(
    table: Table,
    rows: Integers,
    accept: Verdicts,
    rng: np.random.Generator,
    max_accepts: int,
    max_rejects: float,
) -> Draws:
    count = len(rows)
    total = table.log_mass[rows]
    rejected = np.empty((count, 0), dtype=np.int64)  # tokens, -1: none
    log_rejected = np.full(count, MINUS_INFINITY)
    good: list[set[int]] = [set() for _ in range(count)]
    accepts, calls = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    rejects = np.zeros(count)  # of the simulated run, which may be longer than any number:
    log_rejects = np.full(count, MINUS_INFINITY)
    tokens = np.full(count, -1)
    alive = np.isfinite(total)

    def stopped(numbers: Floats) -> Booleans:
        limit = np.nan if np.isinf(max_rejects) else max_rejects
        late: Booleans = numbers >= limit
        return late

    for _ in range(max_accepts):
        started = at = np.flatnonzero(alive & ~stopped(rejects))
        order = Order(table, rows[started], rng, rejected[started])
        while len(at):
            rest = order.log_rest(np.searchsorted(started, at))
            again, log_again = _phantoms(log_rejected[at] - total[at], rest - total[at], rng)
            rejects[at] += again
            log_rejects[at] = np.logaddexp(log_rejects[at], log_again)
            at = at[~stopped(rejects[at])]
            mine = np.searchsorted(started, at)
            drawn = order.draw(mine)
            verdicts = np.array(
                [t in good[i] for i, t in zip(at.tolist(), drawn.tolist(), strict=True)], dtype=bool
            )
            new = ~verdicts
            if new.any():
                verdicts[new] = accept(at[new], drawn[new])
                calls[at[new]] += 1
            for i, token in zip(at[new & verdicts].tolist(), drawn[new & verdicts].tolist(), strict=True):
                good[i].add(token)
            bad = at[~verdicts]
            column = np.full(count, -1)
            column[bad] = drawn[~verdicts]
            rejected = np.column_stack([rejected, column])
            log_rejected[bad] = np.logaddexp(log_rejected[bad], table.logs[rows[bad], drawn[~verdicts]])
            rejects[at] += ~verdicts
            first = (accepts[at] == 0) & (verdicts | (tokens[at] < 0))
            tokens[at[first]] = drawn[first]
            accepts[at] += verdicts
            alive[at[~verdicts & (order.left[mine] == 0)]] = False
            at = at[~verdicts & (order.left[mine] > 0)]
    rejects = np.minimum(rejects, max_rejects)
    weight = log(np.minimum(accepts, max_accepts - 1))
    weight -= np.where(rejects < _MANY, np.log(np.maximum(accepts + rejects - 1, 1)), log_rejects)
    return Draws(tokens, weight + np.where(np.isfinite(total), total, 0.0), calls)


def _phantoms(again: Floats, other: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """How often a run with replacement would draw rejected tokens again before it draws another one.

    ``again``, ``other``: logarithms of the probabilities of both kinds.  The number, which may be infinity as a float,
    and its logarithm.
    """
    number, logarithm = np.zeros(len(again)), np.full(len(again), MINUS_INFINITY)
    some = np.flatnonzero(again > MINUS_INFINITY)
    if len(some):
        other = other[some]
        # log(again) = log(1 - other), from whichever of the two is the small one.
        log_again = np.where(other < -0.7, np.log1p(-np.exp(np.minimum(other, -0.7))), again[some])
        times = rng.standard_exponential(len(some))
        with np.errstate(divide="ignore", over="ignore"):
            number[some] = np.floor(-times / np.minimum(log_again, -0.0))
        # log_again is about -other where other is small.
        large = log(times) - np.where(other < -30, other, log(-log_again))
        logarithm[some] = np.where(number[some] < _MANY, log(number[some]), large)
    return number, logarithm


def allowed_tokens(allowed: Any, size: int) -> Booleans:
    """``allowed`` as booleans [V]: from booleans [V] or from a bitmask, int32 [ceil(V / 32)]."""
    array: npt.NDArray[Any] = np.asarray(allowed)
    if array.dtype == bool and array.shape == (size,):
        return array
    if array.dtype == np.int32 and array.shape == ((size + 31) // 32,):
        return bitmask.allowed_tokens(array, size)
    raise BitmaskError(
        f"allowed must be bool [{size}] or int32 [{(size + 31) // 32}], not {array.dtype} {list(array.shape)}"
    )


def boolean(answer: Any, what: str, about: Any) -> bool:
    """The answer, or a ``ConstraintError`` when it is no boolean (None: a forgotten ``return``)."""
    if isinstance(answer, (bool, np.bool_)):
        return bool(answer)
    raise ConstraintError(f"{what}({about}) answered {answer!r}; it must answer True or False")


def check_options(
    method: str = "auto",
    probes: int = 1,
    max_rejects: int | None = None,
    max_accepts: int = 2,
    min_remaining: float = 0.0,
) -> None:
    """Raise ``MaskwrightError`` for options of ``awrs`` that make no sense."""
    one_of(method, ("auto", "recursive", "geometric"), "method")
    # With less the weight would be no estimate.
    whole(probes, "probes", low=1, high=MOST_COUNTED)
    whole(max_accepts, "max_accepts", low=2, high=MOST_COUNTED)
    if max_rejects is not None:
        fewest = 2 if method == "geometric" else 1
        whole(max_rejects, "max_rejects", low=fewest, high=MOST_COUNTED)
    if real(min_remaining, "min_remaining", high=1.0) == 1:
        raise MaskwrightError("min_remaining is a share of the mass below 1")
    if min_remaining and method == "geometric":
        raise MaskwrightError("min_remaining belongs to the recursive estimator")
