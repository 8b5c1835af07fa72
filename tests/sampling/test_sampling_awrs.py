"""awrs: E[w · 1{token = v}] = p(v) c(v), by enumerating all orders and by 10⁶ draws, and what breaks it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from maskwright import BitmaskError, ConstraintError, MaskwrightError, ModelError
from maskwright.sampling import Draws, adaptive, awrs, awrs_batch, order
from maskwright.sampling.order import Order, Table

# Many draws; tests of constraints, blocks and budgets run the same code with few.
pytestmark = pytest.mark.slow

DRAWS = 250_000
ERRORS = 4.0


class Scripted(np.random.Generator):
    """Orders of draws that are given, one a row."""

    def __init__(self, orders: np.ndarray) -> None:
        super().__init__(np.random.PCG64(0))
        self.orders = orders


class ScriptedOrder:
    """What ``Order`` does, in the order given, with masses that are summed up each time."""

    def __init__(self, table: Table, rows: np.ndarray, rng: Scripted) -> None:
        self._p = np.exp(table.logs[rows])
        self._orders = rng.orders
        self.left = np.full(len(rows), self._p.shape[1])

    def draw(self, at: np.ndarray) -> np.ndarray:
        tokens = self._orders[at, self._orders.shape[1] - self.left[at]]
        self.left[at] -= 1
        return tokens

    def log_rest(self, at: np.ndarray) -> np.ndarray:
        rest = [self._p[i, self._orders[i, len(self._orders[i]) - self.left[i] :]].sum() for i in at]
        with np.errstate(divide="ignore"):
            return np.log(rest)


def plackett_luce(p: np.ndarray, order: tuple[int, ...]) -> float:
    """The probability that draws without replacement come in this order."""
    left, probability = p.sum(), 1.0
    for v in order:
        probability *= p[v] / left
        left -= p[v]
    return probability


DISTRIBUTIONS = {
    "falling": [0.5, 0.25, 0.125, 0.125],
    "equal": [0.25, 0.25, 0.25, 0.25],
    "peaked": [0.7, 0.1, 0.1, 0.1],
    "not normalised": [0.2, 0.1, 0.05, 0.01],
}


@pytest.mark.parametrize("name", DISTRIBUTIONS)
@pytest.mark.parametrize("probes", [1, 2, 3])
@pytest.mark.parametrize(
    "limits", [{}, {"max_rejects": 1}, {"max_rejects": 2}, {"max_rejects": 3}, {"min_remaining": 0.4}]
)
def test_recursive_weights_are_exact_over_all_orders(
    name: str, probes: int, limits: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptive, "Order", ScriptedOrder)
    p = np.array(DISTRIBUTIONS[name])
    orders = list(itertools.permutations(range(4)))
    chances = np.array([plackett_luce(p, order) for order in orders])
    assert chances.sum() == pytest.approx(1, abs=1e-12)
    for mask in itertools.product([False, True], repeat=4):
        good = np.array(mask)
        draws = awrs_batch(
            np.log(np.tile(p, (len(orders), 1))),
            lambda rows, tokens, good=good: good[tokens],
            Scripted(np.array(orders)),
            method="recursive",
            probes=probes,
            **limits,
        )
        weights = np.exp(draws.log_weights) * chances
        found = np.bincount(draws.tokens, weights, minlength=4)
        assert found == pytest.approx(p * good, abs=1e-12)
        assert (
            (good[draws.tokens] == np.isfinite(draws.log_weights)).all() or "max_rejects" in limits or limits
        )


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_calls_are_those_of_the_closed_form(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rejects before the first accept: sum of p_v / (p_v + Z) over bad tokens; then one probe unless none is left."""
    monkeypatch.setattr(adaptive, "Order", ScriptedOrder)
    p = np.array(DISTRIBUTIONS[name])
    orders = list(itertools.permutations(range(4)))
    chances = np.array([plackett_luce(p, order) for order in orders])
    for mask in itertools.product([False, True], repeat=4):
        good = np.array(mask)
        if not good.any():
            continue
        draws = awrs_batch(
            np.log(np.tile(p, (len(orders), 1))),
            lambda rows, tokens, good=good: good[tokens],
            Scripted(np.array(orders)),
            method="recursive",
        )
        mass = p[good].sum()
        last = np.array([not any(good[v] for v in order[:3]) for order in orders])
        expected = 1 + (p[~good] / (p[~good] + mass)).sum() + (1 - (chances * last).sum())
        assert (chances * draws.calls).sum() == pytest.approx(expected, abs=1e-12)


# --- many draws

NEAR_ZERO = {
    "one token has all mass": ([1.0 - 1e-15] + [1e-16] * 10, [False] + [True] * 10),
    "one token has all mass, one of the others is good": (
        [1.0 - 1e-15] + [1e-16] * 10,
        [False] * 10 + [True],
    ),
    "subnormal": ([1.0, 2.2e-313], [False, True]),
    "subnormal beside the good one": ([1.0, 2.2e-313], [True, False]),
    "good mass 1e-8": ([0.6, 0.4 - 1e-8, 6e-9, 4e-9], [False, False, True, True]),
    "a zero": ([0.5, 0.3, 0.2, 0.0], [False, True, True, True]),
}
ORDINARY = {
    "six tokens": ([0.5, 0.2, 0.1, 0.1, 0.06, 0.04], [False, False, True, False, True, True]),
    "confident and good": ([0.9, 0.05, 0.03, 0.02], [True, False, True, False]),
    "confident and bad": ([0.9, 0.05, 0.03, 0.02], [False, True, False, True]),
    "all good": ([0.4, 0.3, 0.2, 0.1], [True] * 4),
}
CASES = {**NEAR_ZERO, **ORDINARY}
METHODS: dict[str, dict[str, Any]] = {
    "auto": {},
    "auto, two probes": {"probes": 2},
    "auto, limits": {"max_rejects": 3, "min_remaining": 0.2},
    "recursive": {"method": "recursive"},
    "two probes": {"method": "recursive", "probes": 2},
    "geometric": {"method": "geometric"},
    "geometric, limits": {"method": "geometric", "max_accepts": 3, "max_rejects": 4},
    "recursive, limits": {"method": "recursive", "max_rejects": 2},
}

Sampler = Callable[[np.ndarray, np.ndarray, np.random.Generator], Draws]


def deviations(p: np.ndarray, good: np.ndarray, sampler: Sampler, count: int = DRAWS) -> np.ndarray:
    """z of E[w · 1{v}] for every token v; tokens without any spread must be right to 1e-9."""
    chunk = 50_000
    sums, squares = np.zeros(len(p)), np.zeros(len(p))
    rng = np.random.default_rng(20261121)
    for _ in range(count // chunk):
        with np.errstate(divide="ignore"):
            draws = sampler(np.log(np.tile(p, (chunk, 1))), good, rng)
        # Relative to the good mass, so that squares of tiny weights do not vanish.
        weights = np.exp(draws.log_weights - np.log((p * good).sum()))
        sums += np.bincount(draws.tokens, weights, minlength=len(p))
        squares += np.bincount(draws.tokens, weights**2, minlength=len(p))
    mean = sums / count
    exact = p * good / (p * good).sum()
    error = np.sqrt(np.maximum(squares / count - mean**2, 0) / count)
    certain = error <= 1e-12 * (1 + mean)
    assert mean[certain] == pytest.approx(exact[certain], rel=1e-9, abs=0)
    return np.divide(mean - exact, error, out=np.zeros_like(mean), where=~certain)


def real(options: dict[str, Any]) -> Sampler:
    return lambda logprobs, good, rng: awrs_batch(logprobs, lambda rows, v: good[v], rng, **options)


@pytest.mark.parametrize(
    ("method", "case"),
    [pytest.param("auto", c, marks=pytest.mark.slow) if "subnormal" in c else ("auto", c) for c in CASES]
    + [pytest.param(m, c, marks=pytest.mark.slow) for m in ("recursive", "geometric") for c in ORDINARY],
)
def test_many_draws(method: str, case: str) -> None:
    p, good = map(np.array, CASES[case])
    assert np.abs(deviations(p, good, real(METHODS[method]))).max() < ERRORS


@pytest.mark.parametrize(
    "method", [name for name in METHODS if name not in ("auto", "recursive", "geometric")]
)
def test_many_draws_with_options(method: str) -> None:
    p, good = map(np.array, CASES["six tokens"])
    assert np.abs(deviations(p, good, real(METHODS[method]))).max() < ERRORS


def test_a_larger_vocabulary() -> None:
    """182 tokens, most of the mass on two that are bad, the rest spread over many orders of magnitude.

    Cells with few expected hits are no normal variables; those are summed up.
    """
    logits = np.concatenate([[0.0, -0.1], np.linspace(-3, -30, 180)])
    p = np.exp(logits) / np.exp(logits).sum()
    good = np.arange(182) % 3 == 2
    rng = np.random.default_rng(5)
    sums, squares, count, chunk = np.zeros(2), np.zeros(2), 50_000, 10_000
    cells = np.where(p * good > 0.02 * (p * good).sum(), 0, 1)
    for _ in range(count // chunk):
        draws = awrs_batch(np.log(np.tile(p, (chunk, 1))), lambda rows, v: good[v], rng)
        weights = np.exp(draws.log_weights)
        sums += np.bincount(cells[draws.tokens], weights, minlength=2)
        squares += np.bincount(cells[draws.tokens], weights**2, minlength=2)
    mean = sums / count
    error = np.sqrt((squares / count - mean**2) / count)
    exact = np.bincount(cells, p * good, minlength=2)
    assert np.abs((mean - exact) / error).max() < ERRORS


# --- orders of draws


@pytest.mark.parametrize("sort_after", [0, 2, 24])
def test_orders_follow_plackett_and_luce(sort_after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """10⁵ orders of five tokens, one without mass and one left out, however they are drawn."""
    monkeypatch.setattr(order, "_SORT_AFTER", sort_after)
    p = np.array([0.5, 0.0, 0.25, 0.15, 0.07, 0.03])
    with np.errstate(divide="ignore"):
        table = Table(np.log(np.tile(p, (2, 1))))
    count = 100_000 if sort_after else 20_000
    without = np.tile([-1, 3], (count, 1))
    drawn = Order(table, np.arange(count) % 2, np.random.default_rng(3), without)
    everything = np.arange(count)
    rounds = np.column_stack([drawn.draw(everything) for _ in range(4)])
    assert (drawn.left == 0).all() and np.isneginf(drawn.log_rest(everything[:10])).all()
    p[3] = 0.0
    for row in itertools.permutations([0, 2, 4, 5]):
        expected = plackett_luce(p, row)
        found = (rounds == row).all(axis=1).mean()
        assert abs(found - expected) < ERRORS * math.sqrt(expected / count) + 1e-12


def test_what_is_left_is_exact_at_every_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the masses that are left are far below the first ones, and when all is sorted."""
    monkeypatch.setattr(order, "_SORT_AFTER", 10)
    rng = np.random.default_rng(8)
    logs = rng.normal(size=(4, 50)) * np.array([[1.0], [30.0], [300.0], [3.0]])
    logs[3, rng.random(50) < 0.5] = -np.inf
    rows = np.array([0, 1, 2, 3, 3, 0])
    drawn = Order(Table(logs), rows, rng)
    left = [set(np.flatnonzero(np.isfinite(logs[row])).tolist()) for row in rows]
    while (at := np.flatnonzero(drawn.left > 0)).size:
        exact = [np.logaddexp.reduce(logs[rows[i], sorted(left[i])]) for i in at]
        assert drawn.log_rest(at) == pytest.approx(np.array(exact), rel=1e-12, abs=1e-12)
        for i, token in zip(at.tolist(), drawn.draw(at).tolist(), strict=True):
            left[i].remove(token)
    assert not any(left)


def test_one_large_vocabulary() -> None:
    """Shares of the likeliest of 131 072 tokens, by orders that share one row."""
    rng = np.random.default_rng(4)
    logs = rng.normal(size=131_072) * 3
    p = np.exp(logs) / np.exp(logs).sum()
    table = Table(logs[None])
    assert table.log_mass == pytest.approx(np.logaddexp.reduce(logs), rel=1e-12)
    count = 20_000
    tokens = np.concatenate([table.sample(np.zeros(500, dtype=int), rng) for _ in range(count // 500)])
    top = np.argsort(p)[-20:]
    found = np.bincount(tokens, minlength=len(p))[top] / count
    assert np.abs((found - p[top]) / np.sqrt(p[top] / count)).max() < ERRORS


# --- estimators that are wrong, and the same test


def two_runs(wrong: str = "") -> Sampler:
    """The estimator of the COLM 2025 paper: (1 - ψ) / (n + 1) with ψ the mass rejected in the first of two runs."""

    def sample(logprobs: np.ndarray, good: np.ndarray, rng: np.random.Generator) -> Draws:
        rows = np.arange(len(logprobs))
        p = np.exp(logprobs)
        rejected = np.zeros(p.shape, dtype=bool)
        mass, count = np.zeros(len(p)), np.zeros(len(p))
        token = np.full(len(p), -1)
        for run in range(2):
            races = np.where(rejected, np.inf, rng.standard_exponential(p.shape) / p)
            first = np.where(good, races, np.inf).argmin(axis=1)
            token = first if run == 0 else token
            new = ~good & (races < races[rows, first][:, None])
            rejected |= new
            count += new.sum(axis=1)
            if run == 0 or wrong == "mass of both runs":
                mass += (p * new).sum(axis=1)
        weight = (1 - mass) / (count + (0 if wrong == "n" else 1))
        if wrong == "none":
            weight = np.ones(len(p))
        return Draws(token, np.log(weight), count.astype(int))

    return sample


def always_probed(logprobs: np.ndarray, good: np.ndarray, rng: np.random.Generator) -> Draws:
    """Recursive estimator that takes the probe for granted."""
    draws = awrs_batch(logprobs, lambda rows, v: good[v], rng, method="recursive", max_rejects=None)
    p = np.exp(logprobs)
    return draws._replace(log_weights=np.log(np.maximum(np.exp(draws.log_weights), p[:, 0])))


def test_the_estimator_of_the_paper_passes() -> None:
    p, good = map(np.array, CASES["six tokens"])
    assert np.abs(deviations(p, good, two_runs())).max() < ERRORS


@pytest.mark.parametrize("wrong", ["mass of both runs", "none"])
def test_wrong_estimators_are_caught(wrong: str) -> None:
    p, good = map(np.array, CASES["six tokens"])
    assert np.abs(deviations(p, good, two_runs(wrong))).max() > 3 * ERRORS


def test_a_probe_taken_for_granted_is_caught() -> None:
    p, good = map(np.array, CASES["six tokens"])
    assert np.abs(deviations(p, good, always_probed)).max() > 3 * ERRORS


# --- variance


def test_more_probes_have_less_variance() -> None:
    p, good = map(np.array, CASES["six tokens"])
    logprobs = np.log(np.tile(p, (100_000, 1)))
    spreads = [
        np.exp(
            awrs_batch(logprobs, lambda rows, v: good[v], 3, method="recursive", probes=probes).log_weights
        ).var()
        for probes in (1, 2, 4)
    ]
    assert spreads[0] > spreads[1] > spreads[2] > 0


def test_geometric_variance_is_the_closed_form() -> None:
    """relative variance -ln Z / (1 - Z) - 1 for two accepts."""
    p, good = map(np.array, CASES["six tokens"])
    mass = (p * good).sum()
    draws = awrs_batch(np.log(np.tile(p, (200_000, 1))), lambda r, v: good[v], 4, method="geometric")
    relative = np.exp(draws.log_weights).var() / mass**2
    assert relative == pytest.approx(-math.log(mass) / (1 - mass) - 1, rel=0.03)


# --- one draw


def test_one_draw_unpacks_and_counts() -> None:
    asked: list[int] = []

    def accept(v: int) -> bool:
        asked.append(v)
        return v in (1, 3)

    for seed in range(300):
        asked.clear()
        draw = awrs(np.log([0.4, 0.3, 0.2, 0.1]), accept, np.random.default_rng(seed))
        token, log_weight = draw
        assert token in (1, 3) and math.isfinite(log_weight)
        assert len(set(asked)) == len(asked) == draw.calls


def test_accepted_tokens_have_weight_and_only_they() -> None:
    for seed, method in itertools.product(range(100), ("recursive", "geometric")):
        token, log_weight = awrs(
            np.log([0.6, 0.3, 0.1]), lambda v: v == 2, seed, method=method, max_rejects=2
        )
        assert (token == 2) == math.isfinite(log_weight)


def test_pruned_tokens_are_never_asked_about_and_cost_no_variance() -> None:
    allowed = np.array([False, True, True, False])
    words = np.array([0b0110], dtype=np.int32)
    for given in (allowed, words):
        weights = {
            round(
                awrs(
                    np.log([0.4, 0.3, 0.2, 0.1]), [False, True, True].__getitem__, seed, allowed=given
                ).log_weight,
                12,
            )
            for seed in range(20)
        }
        assert weights == {round(math.log(0.5), 12)}


def test_weights_below_the_smallest_number_are_finite() -> None:
    for method, seed in itertools.product(("auto", "recursive", "geometric"), range(50)):
        draw = awrs([0.0, -2000.0], lambda v: v == 1, seed, method=method)
        assert draw.token == 1 and -2100 < draw.log_weight < -1900


def test_confident_tokens_cost_little_more_than_one_call() -> None:
    """Where the first token is nearly everything, what comes behind it is looked at now and then."""
    p, good = np.array([0.95, 0.03, 0.02]), np.array([True, False, True])
    draws = awrs_batch(np.log(np.tile(p, (100_000, 1))), lambda rows, v: good[v], 6)
    assert 1.1 < draws.calls.mean() < 1.2
    assert np.median(draws.calls) == 1


def test_nothing_good() -> None:
    token, log_weight = awrs(np.log([0.5, 0.5]), lambda v: False, 0)
    assert token in (0, 1) and log_weight == -math.inf
    token, log_weight = awrs([-math.inf, -math.inf], lambda v: True, 0)
    assert token == -1 and log_weight == -math.inf


def test_many_rejects() -> None:
    """Beyond the draws that are looked for one by one."""
    calls = 0

    def accept(v: int) -> bool:
        nonlocal calls
        calls += 1
        return v == 299

    draw = awrs(np.log(np.full(300, 1 / 300)), accept, 1)
    assert draw.token == 299 and draw.calls == calls > 24
    # Below p(x) where the end came early, but never below a fifth of it (inverse.py).
    assert math.log(1 / 300 / 5) < draw.log_weight <= 0


def test_seeds_repeat() -> None:
    first = [awrs(np.log([0.4, 0.3, 0.2, 0.1]), lambda v: v > 1, seed) for seed in range(20)]
    again = [awrs(np.log([0.4, 0.3, 0.2, 0.1]), lambda v: v > 1, seed) for seed in range(20)]
    assert first == again and len({token for token, _ in first}) > 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "best"}, "method"),
        ({"probes": 0}, "probes"),
        ({"max_accepts": 1}, "max_accepts"),
        ({"max_rejects": 0}, "max_rejects"),
        ({"method": "geometric", "max_rejects": 1}, "max_rejects"),
        ({"probes": "x"}, "probes"),
        ({"probes": math.nan}, "probes"),
        ({"max_rejects": math.nan}, "max_rejects"),
        ({"max_accepts": 2.5}, "max_accepts"),
        ({"min_remaining": 1.0}, "min_remaining"),
        ({"min_remaining": "x"}, "min_remaining"),
        ({"method": "geometric", "min_remaining": 0.1}, "min_remaining"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MaskwrightError, match=message):
        awrs(np.log([0.5, 0.5]), lambda v: True, 0, **options)


@pytest.mark.parametrize("wrong", [-1, "x", 0.5])
def test_bad_seeds(wrong: Any) -> None:
    with pytest.raises(MaskwrightError, match="rng: expected an integer of at least 0"):
        awrs(np.log([0.5, 0.5]), lambda v: True, wrong)


def test_bad_scores() -> None:
    for scores in ([0.0, math.nan], [0.0, math.inf], [[0.0, 0.0]], []):
        with pytest.raises(ModelError):
            awrs(scores, lambda v: True, 0)
    with pytest.raises(BitmaskError):
        awrs([0.0, 0.0], lambda v: True, 0, allowed=[True])


def test_an_answer_that_is_no_boolean() -> None:
    with pytest.raises(ConstraintError, match="None"):
        awrs([0.0, 0.0], lambda v: None, 0)  # type: ignore[arg-type, return-value]
