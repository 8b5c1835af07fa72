"""Adaptive weighted rejection by inverse sampling: draws without replacement up to the second good token.

Tokens arrive at the times of independent exponential clocks with rates p(v): that is the order of draws without replacement.  Let x be the
first good token, and tau the time of the second one (infinity where there is none).  For every token x, tau is the first arrival among
the *other* good tokens, so it does not depend on when x came, as long as x came before it.  Hence

    p(x) / (1 - exp(-p(x) tau))

is an unbiased estimate of Z, and E[estimate · 1{x = v}] = p(v) c(v): the Horvitz-Thompson estimator of bottom-k samples (Duffield, Lund and
Thorup 2007; Cohen and Kaplan 2007).  The clocks need not be drawn.  Given the order, the time before draw j is exponential with rate
U(j), the mass that is left before it, and the mean over these times is a sum:

    Z = p(x) · sum over m >= 0 of  product over draws j of  U(j) / (U(j) + m p(x))              (the weight)

With many small tokens it is 1 / (draws - 1), as for draws with replacement; with two draws it is the whole mass; when all was drawn, p(x).
No choice between estimators is made, so nothing that the draws show can bias it.

**An end in time.**  Behind x, each bad draw takes the weight that a good one would give now, Z(j), further down towards p(x).  When they differ by
less than 80 % of p(x), the next draw is made with a probability only, and what it takes away is divided by the probability of getting that far: the
same mean.  With d for the difference, relative to p(x), and b for the first d below 0.8, that probability is 2 b / (0.8 + b) · sqrt(d / b): all that
can be taken away then is at most 2 b (0.8 + b) / (2 b) = 0.8 + b, of 1 + b, and every weight stays above p(x) / 5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from maskwright.sampling.logspace import MINUS_INFINITY, Booleans, Floats, Integers
from maskwright.sampling.order import Order, Table

_RARE = 0.8
"""The difference of Z(j) and p(x), relative to p(x), below which draws become rare."""
_TERMS = 16
"""Terms of the sum that are added one by one; the rest is an integral (Euler and Maclaurin), over panels of Gauss points."""
_PANELS = 12
_MOST = 700.0
"""Logarithms of ratios are cut off here: what lies beyond has no floating-point number."""
_POINTS, _SHARES = np.polynomial.legendre.leggauss(8)


def inverse_draws(
    table: Table,
    rows: Integers,
    accept: Callable[[Integers, Integers], Booleans],
    rng: np.random.Generator,
) -> tuple[Integers, Floats, Integers]:
    """Tokens, log-weights and numbers of evaluations [B] for draws from ``rows`` [B] of a table; see ``awrs_table``."""
    count = len(rows)
    order = Order(table, rows, rng)
    series = _Series(count)
    tokens = np.full(count, -1)
    found = np.zeros(count, dtype=bool)
    calls = np.zeros(count, dtype=np.int64)
    log_p = np.full(count, MINUS_INFINITY)
    # Relative to p(x): the weight, and what it would be if the next draw were good.
    weight, above = np.ones(count), np.ones(count)
    chance = np.ones(count)  # of getting as far as the next draw
    first_rare = np.full(count, np.nan)  # the difference at which draws became rare
    at = np.flatnonzero(order.left > 0)
    series.draw(at, order.log_rest(at))
    while len(at):
        drawn = order.draw(at)
        good = accept(at, drawn)
        calls[at] += 1
        first = ~found[at] & (good | (tokens[at] < 0))
        tokens[at[first]] = drawn[first]
        ended = found[at] & good
        bad = at[found[at] & ~good]
        new = at[~found[at] & good]
        found[new] = True
        log_p[new] = table.logs[rows[new], tokens[new]]
        at = at[~ended]
        going = order.left[at] > 0
        series.draw(at[going], order.log_rest(at[going]))
        now = np.ones(count)  # p(x) itself, when nothing is left
        asked = at[going & found[at]]
        now[asked] = series.ratios(asked, log_p[asked])
        weight[new] = now[new]
        sure = chance[bad] >= 1
        weight[bad] = np.where(sure, now[bad], weight[bad] - (above[bad] - now[bad]) / chance[bad])
        above[at] = now[at]
        at = at[going]
        at = at[~_stopped(at[found[at]], now - 1, chance, first_rare, rng)[at]]
    return tokens, np.where(found, log_p + np.log(weight), MINUS_INFINITY), calls


def _stopped(
    at: Integers, difference: Floats, chance: Floats, first_rare: Floats, rng: np.random.Generator
) -> Booleans:
    """Which of ``at`` make no more draw, as booleans over all; ``chance`` and ``first_rare`` are brought up to date."""
    late = at[difference[at] < _RARE]
    begin = late[np.isnan(first_rare[late])]
    first_rare[begin] = difference[begin]
    begun = first_rare[late] > 0
    share = np.divide(difference[late], first_rare[late], out=np.zeros(len(late)), where=begun)
    first = 2 * first_rare[late] / (_RARE + first_rare[late])
    following = np.minimum(chance[late], first * np.sqrt(share))
    stopped = np.zeros(len(difference), dtype=bool)
    stopped[late[rng.random(len(late)) * chance[late] >= following]] = True
    chance[late] = following
    return stopped


class _Series:
    """The sum of the weight, relative to p(x), for rows that go in step."""

    def __init__(self, count: int) -> None:
        self._rests: list[Floats] = []
        """log U(j) [B], by draw."""
        self._known = np.zeros(count, dtype=bool)
        """Rows that have their points."""
        width = _TERMS + 1 + _PANELS * len(_POINTS)
        self._places = np.zeros((count, width))
        """m of the terms."""
        self._terms = np.zeros((count, width))
        """Their products, by the weights that the rule of integration gives them."""
        self._slopes = np.zeros((count, 3))
        """Sums of the powers 1 to 3 of 1 / (U(j) / p(x) + m) at the last single term, for the derivatives there."""

    def draw(self, at: Integers, log_rest: Floats) -> None:
        """A draw of ``at``, before which ``log_rest`` was left."""
        column = np.full(len(self._known), np.nan)
        column[at] = log_rest
        self._rests.append(column)

    def ratios(self, at: Integers, log_p: Floats) -> Floats:
        """The sum over all draws that were told, the last one of which is taken for good."""
        if len(self._rests) == 2:
            # x was the first draw of all, and the sum telescopes to the mass before it.
            whole: Floats = np.exp(np.minimum(self._rests[0][at] - log_p, _MOST))
            return whole
        known = self._known[at]
        new, old = at[~known], at[known]
        if len(new):
            self._place(new, log_p[~known])
            for rests in self._rests:
                self._multiply(new, rests[new] - log_p[~known])
        if len(old):
            self._multiply(old, self._rests[-1][old] - log_p[known])
        terms = self._terms[at]
        one, two, three = self._slopes[at].T
        ends = 2 * terms[:, _TERMS] * (one / 12 - (one**3 + 3 * one * two + 2 * three) / 720)
        ratios: Floats = np.maximum(terms.sum(axis=1) + ends, 1.0)
        return ratios

    def _place(self, at: Integers, log_p: Floats) -> None:
        # Two factors are below 1 / m behind the second last rest, three behind the one before it.
        ends = np.minimum(self._rests[-2][at] - log_p + 36, self._rests[-3][at] - log_p + 18)
        low = np.log(_TERMS)
        length = (np.clip(ends, low + 18, _MOST) - low) / _PANELS
        middles = low + length[:, None] * (np.arange(_PANELS) + 0.5)
        places = np.exp(middles[:, :, None] + length[:, None, None] / 2 * _POINTS)
        self._places[at, : _TERMS + 1] = np.arange(_TERMS + 1)
        self._places[at, _TERMS + 1 :] = places.reshape(len(at), -1)
        self._terms[at, :_TERMS] = 1.0
        self._terms[at, _TERMS] = 0.5
        shares = length[:, None, None] / 2 * _SHARES * places
        self._terms[at, _TERMS + 1 :] = shares.reshape(len(at), -1)
        self._known[at] = True

    def _multiply(self, at: Integers, log_ratio: Floats) -> None:
        """One factor more: U(j) / (U(j) + m p(x)), where ``log_ratio`` is log(U(j) / p(x))."""
        inverse = np.exp(np.clip(-log_ratio, -_MOST, _MOST))
        with np.errstate(over="ignore"):
            self._terms[at] /= 1.0 + self._places[at] * inverse[:, None]
        slopes = inverse / (1.0 + _TERMS * inverse)
        self._slopes[at] += slopes[:, None] ** np.arange(1, 4)
