"""Inverse sampling: exact weights over all orders, its variance and its calls beside the fixed estimators, and what breaks it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from test_sampling_awrs import DISTRIBUTIONS, Scripted, ScriptedOrder, plackett_luce

from maskwright.sampling import CallableModel, Predicate, awrs_batch, inverse, smc
from maskwright.sampling.adaptive import awrs_table
from maskwright.sampling.inverse import inverse_draws
from maskwright.sampling.order import Table


def expectation(
    p: np.ndarray, good: np.ndarray, weights: Callable[..., np.ndarray] | None = None
) -> np.ndarray:
    """E[weight · 1{token = v}] by all orders of draws, each with its probability; ``weights(order, found)`` replaces the weight."""
    orders = list(itertools.permutations(range(len(p))))
    chances = np.array([plackett_luce(p, order) for order in orders])
    tokens, log_weights, _ = inverse_draws(
        Table(np.log(np.tile(p, (len(orders), 1)))),
        np.arange(len(orders)),
        lambda rows, drawn: good[drawn],
        Scripted(np.array(orders)),
    )
    found = np.exp(log_weights)
    if weights is not None:
        found = weights(orders, found)
    return np.bincount(tokens, found * chances, minlength=len(p))


@pytest.fixture
def to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Given orders, and no end before the second good token."""
    monkeypatch.setattr(inverse, "Order", ScriptedOrder)
    monkeypatch.setattr(
        inverse, "_stopped", lambda at, difference, *rest: np.zeros(len(difference), dtype=bool)
    )


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_weights_are_exact_over_all_orders(name: str, to_the_end: None) -> None:
    p = np.array(DISTRIBUTIONS[name])
    for mask in itertools.product([False, True], repeat=4):
        good = np.array(mask)
        assert expectation(p, good) == pytest.approx(p * good, rel=1e-8, abs=1e-10)


def test_choosing_by_the_draws_is_caught(to_the_end: None) -> None:
    """Among all the estimators that are unbiased, one that is chosen by what was drawn is biased."""
    p, good = np.array([0.4, 0.3, 0.2, 0.1]), np.array([True, False, True, False])

    def choosing(orders: list[tuple[int, ...]], found: np.ndarray) -> np.ndarray:
        recursive = np.empty(len(orders))
        for i, order in enumerate(orders):
            first = next(j for j, v in enumerate(order) if good[v])
            rest = p[list(order[first + 1 :])].sum()
            known = p[order[first]]
            recursive[i] = known + (rest if first < 3 and good[order[first + 1]] else 0.0)
        easy = np.array([good[order[0]] for order in orders])
        return np.where(easy, recursive, found)

    assert expectation(p, good, choosing) != pytest.approx(p * good, rel=1e-3)


def test_what_is_exact_has_no_variance(to_the_end: None) -> None:
    """All tokens good: the whole mass.  One good: its own."""
    for p in map(np.array, DISTRIBUTIONS.values()):
        orders = np.array(list(itertools.permutations(range(4))))
        for good, exact in ((np.ones(4, dtype=bool), p.sum()), (np.arange(4) == 2, p[2])):
            _, log_weights, _ = inverse_draws(
                Table(np.log(np.tile(p, (24, 1)))), np.arange(24), lambda r, v, g=good: g[v], Scripted(orders)
            )
            assert np.exp(log_weights) == pytest.approx(exact, rel=1e-9)


@pytest.mark.slow
def test_the_sum_is_that_of_its_terms() -> None:
    """Against half a million terms and the integral behind them, for rests of many sizes."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        p = np.exp(rng.normal(size=rng.integers(5, 40)) * rng.choice([0.1, 1.0, 3.0]))
        p = p[np.argsort(-p * rng.standard_exponential(len(p)))]
        rests = p[::-1].cumsum()[::-1]
        draws = int(rng.integers(3, len(p) + 1))
        x = int(rng.integers(0, draws - 1))
        series = inverse._Series(1)
        for rest in rests[:draws]:
            series.draw(np.array([0]), np.log([rest]))
        ratios = rests[:draws] / p[x]
        m = np.arange(500_000)
        terms = np.exp(-sum(np.log1p(m / ratio) for ratio in ratios))
        # Behind all ratios, the terms fall like a power.
        exact = terms.sum() + terms[-1] * m[-1] / (draws - 1)
        assert series.ratios(np.array([0]), np.log(p[x : x + 1]))[0] == pytest.approx(exact, rel=1e-4)


def relative(method: str, p: np.ndarray, good: np.ndarray, count: int) -> tuple[float, float, float]:
    """(z of the mean, relative variance, evaluations a draw)."""
    mass = p[good].sum()
    draws = awrs_table(
        Table(np.log(p)[None]),
        np.zeros(count, dtype=int),
        lambda at, drawn: good[drawn],
        np.random.default_rng(7),
        method=method,
    )
    weights = np.exp(draws.log_weights) / mass
    assert (weights[good[draws.tokens]] > 0).all()
    z = (weights.mean() - 1) / (weights.std() / math.sqrt(count) + 1e-12)
    return float(z), float(weights.var()), float(draws.calls.mean())


SHARED = {
    "equal tokens, 1 % good": (np.full(2000, 1 / 2000), np.arange(2000) % 100 == 0),
    "equal tokens, 2 % good": (np.full(1000, 1e-3), np.arange(1000) % 50 == 0),
    "behind one that is bad": (np.r_[0.9, np.full(1000, 1e-4)], np.arange(1001) % 50 == 1),
    "Zipf": (1 / np.arange(1, 1001), np.arange(1000) % 33 == 20),
    "log-normal": (np.exp(2 * np.random.default_rng(1).normal(size=1000)), np.arange(1000) % 20 == 3),
}


@pytest.mark.parametrize(
    "case", [case if case == "log-normal" else pytest.param(case, marks=pytest.mark.slow) for case in SHARED]
)
def test_many_tokens_that_share_a_small_mass(case: str) -> None:
    """At most twice the variance of the best fixed estimator, at about its calls (the figures are noisy)."""
    p, good = SHARED[case]
    p = p / p.sum()
    z, variance, calls = relative("auto", p, good, 2000)
    assert abs(z) < 4
    fixed = {method: relative(method, p, good, 2000) for method in ("recursive", "geometric")}
    best = min(fixed, key=lambda method: fixed[method][1])
    assert best == "geometric" and variance <= 2 * fixed[best][1] and calls <= 1.15 * fixed[best][2]
    # What the recursive estimator costs there: a variance of 1 / Z.
    assert variance < 0.5 * fixed["recursive"][1]


@pytest.mark.slow
def test_a_hundred_thousand_tokens_of_which_one_in_a_hundred_is_good() -> None:
    """Twice the variance of the geometric estimator at most, at no more calls.  Its variance is that of the formula: a measured one is
    mostly that of a few rare draws."""
    p, good = np.full(100_000, 1e-5), np.arange(100_000) % 100 == 0
    z, variance, calls = relative("auto", p, good, 400)
    assert abs(z) < 4 and variance <= 2 * (-math.log(0.01) / 0.99 - 1)
    assert calls <= 1.05 * relative("geometric", p, good, 400)[2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("p", "good"),
    [
        ([0.95, 0.03, 0.02], [True, False, True]),
        ([0.9, 0.05, 0.03, 0.02], [False, True, False, True]),
        ([0.5, 0.2, 0.1, 0.1, 0.06, 0.04], [False, False, True, False, True, True]),
        ([0.2, *[0.004] * 200], [True, *[False] * 199, True]),
        ([0.1, *[0.9 / 90] * 90], [True, *[False] * 90]),
    ],
)
def test_ends_before_the_second_good_token_are_unbiased(p: list[float], good: list[bool]) -> None:
    z, _, calls = relative("auto", np.array(p), np.array(good), 20_000)
    assert abs(z) < 4 and calls < 40


@pytest.mark.slow
def test_a_draw_left_out_without_its_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is taken away must be divided by the probability of being looked at."""
    stopped = inverse._stopped

    def careless(at, difference, chance, first_rare, rng):  # type: ignore[no-untyped-def]
        return stopped(at, difference, chance.copy(), first_rare, rng)

    monkeypatch.setattr(inverse, "_stopped", careless)
    z, _, _ = relative("auto", np.array([0.2, *[0.004] * 200]), np.array([True, *[False] * 200]), 40_000)
    assert abs(z) > 12


def test_weights_never_fall_below_a_fifth_of_the_token() -> None:
    """However many bad draws come behind it."""
    p = np.r_[0.3, np.full(2000, 0.7 / 2000)]
    draws = awrs_table(
        Table(np.log(p)[None]), np.zeros(2000, dtype=int), lambda at, v: v == 0, np.random.default_rng(3)
    )
    assert (draws.tokens == 0).all() and np.exp(draws.log_weights).min() > 0.3 / 5


@pytest.mark.slow
def test_evidence_of_four_steps() -> None:
    """2 % of 200 equal tokens are good, at each of four steps: most runs say about what is true."""
    size = 200

    def function(prefixes: list[list[int]]) -> np.ndarray:
        rows = np.full((len(prefixes), size + 1), -np.inf)
        for row, prefix in zip(rows, prefixes, strict=True):
            if len(prefix) < 4:
                row[:size] = -math.log(size)
            else:
                row[size] = 0.0
        return rows

    found = [
        smc(
            CallableModel(function, size + 1, size),
            Predicate(lambda ids: all(token % 50 == 0 for token in ids)),
            64,
            max_tokens=5,
            seed=seed,
        ).log_evidence
        - 4 * math.log(0.02)
        for seed in range(7)
    ]
    assert 0.5 < math.exp(np.median(found)) < 2


def test_rows_of_different_lengths_go_together() -> None:
    """Rows with one token, with none, with a token of 1e-300 and with many."""
    rows = np.full((4, 50), -np.inf)
    rows[0, 3] = -1.0
    rows[2, :3] = [0.0, -690.0, -691.0]
    rows[3] = np.log(1 / 50)
    good = np.ones((4, 50), dtype=bool)
    good[2, 0] = False
    for seed in range(20):
        draws = awrs_batch(rows, lambda at, v: good[at, v], seed)
        assert draws.tokens[:3].tolist() in ([3, -1, 1], [3, -1, 2])
        assert draws.log_weights[0] == pytest.approx(-1.0) and draws.log_weights[1] == -np.inf
        assert -692 < draws.log_weights[2] < -689 and draws.log_weights[3] == pytest.approx(0.0, abs=1e-9)
