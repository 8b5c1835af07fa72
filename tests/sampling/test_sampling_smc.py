"""smc on models whose texts can all be listed: evidence, every cell, every option, and what breaks it."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from places import ROOT
from sampling_models import (
    EOS,
    Exact,
    bigram,
    bigram_model,
    deviations,
    enumerate_target,
    is_complete,
    is_prefix,
    predicate,
    total_variation,
)

from maskwright import ConstraintError, MaskwrightError, ModelError, VocabularyError
from maskwright.sampling import (
    CallableModel,
    Constraint,
    Draws,
    GrammarConstraint,
    Posterior,
    Predicate,
    awrs_batch,
    locally_constrained,
    pooled,
    resample,
    smc,
)
from maskwright.sampling import population as population_module
from maskwright.sampling import sequential as sequential_module
from maskwright.sampling.order import Table

# Many draws; tests of constraints, blocks and budgets run the same code with few.
pytestmark = pytest.mark.slow

ERRORS = 4.0
RUNS: dict[str, Any] = {"n_particles": 4, "islands": 4000, "max_tokens": 6, "seed": 20261121}


def check(posterior: Posterior, target: dict[tuple[int, ...], float]) -> None:
    evidence, worst = deviations(posterior, target)
    assert abs(evidence) < ERRORS
    assert worst < ERRORS


def reward(ids: Sequence[int]) -> float:
    return 1.0 + list(ids).count(2)


def rough_twist(ids: Sequence[int]) -> float:
    return 1.5 + list(ids).count(2) + 0.5 * list(ids).count(0)


# --- weights are right


@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual", "multinomial"])
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9, 1.0])
def test_schemes_and_thresholds(scheme: str, threshold: float) -> None:
    found = smc(bigram_model(), Exact(), resampling=scheme, ess_threshold=threshold, **RUNS)
    check(found, enumerate_target())


@pytest.mark.parametrize("make", [Exact, predicate, lambda: Exact() * predicate()])
@pytest.mark.parametrize(
    "options", [{}, {"probes": 2}, {"method": "recursive"}, {"method": "geometric"}, {"max_rejects": 2}]
)
def test_token_samplers(make: Callable[[], Constraint], options: dict[str, Any]) -> None:
    check(smc(bigram_model(), make(), awrs_options=options, **RUNS), enumerate_target())


@pytest.mark.parametrize("max_tokens", range(1, 7))
def test_budgets(max_tokens: int) -> None:
    """EOS is forced at the last position with the weight that it has; nothing is left unfinished."""
    target = enumerate_target(max_tokens)
    for constraint in (Exact(), predicate()):
        found = smc(bigram_model(), constraint, **{**RUNS, "max_tokens": max_tokens})
        check(found, target)
        assert all(len(ids) < max_tokens for ids in found.sequences)
        assert (found.is_complete == np.isfinite(found.log_weights)).all()


def power(exponent: float, rewarded: bool = False) -> dict[tuple[int, ...], float]:
    return enumerate_target(6, lambda p, ids: p**exponent * (reward(ids) if rewarded else 1.0))


@pytest.mark.parametrize("constraint", [Exact, predicate])
@pytest.mark.parametrize("ramp", [0, 3, 9])
@pytest.mark.parametrize("exponent", [0.5, 2.0])
def test_power(constraint: Callable[[], Constraint], ramp: int, exponent: float) -> None:
    check(smc(bigram_model(), constraint(), power=exponent, ramp=ramp, **RUNS), power(exponent))


EVERYTHING: dict[str, dict[str, Any]] = {
    "reward": {},
    "twist": {"twist": rough_twist},
    "look-ahead": {"lookahead": 1},
    "look-ahead by rollouts": {"lookahead": 2, "rollouts": 4},
    "look-ahead and twist": {"lookahead": 1, "twist": rough_twist},
    "two tokens a block": {"block": 2},
    "blocks by a function": {"block": lambda ids: ids[-1] in (0, 2)},
    "moves": {"rejuvenation": 2, "ess_threshold": 0.9},
    "moves behind blocks": {"rejuvenation": 1, "block": 2, "twist": rough_twist},
    "moves and look-ahead": {"rejuvenation": 1, "lookahead": 1, "twist": rough_twist, "ess_threshold": 0.9},
    "moves and rollouts": {"rejuvenation": 1, "lookahead": 2, "rollouts": 4, "ess_threshold": 0.9},
}


@pytest.mark.parametrize("name", EVERYTHING)
@pytest.mark.parametrize("constraint", [Exact, predicate])
def test_options_with_a_reward(name: str, constraint: Callable[[], Constraint]) -> None:
    target = enumerate_target(6, lambda p, ids: p * reward(ids))
    check(smc(bigram_model(), constraint(), reward=reward, **{**RUNS, **EVERYTHING[name]}), target)


def test_everything_at_once() -> None:
    options = {"power": 1.5, "ramp": 4, "rejuvenation": 1, "lookahead": 1, "twist": rough_twist, "block": 2}
    found = smc(bigram_model(), predicate(), reward=reward, **RUNS, **options)  # type: ignore[arg-type]
    check(found, power(1.5, rewarded=True))


def test_without_a_constraint() -> None:
    target = enumerate_target(4, prefix=lambda ids: True, complete=lambda ids: True)
    check(smc(bigram_model(), None, **{**RUNS, "max_tokens": 4}), target)


def test_several_eos_ids_are_one_end() -> None:
    def split(ids: Sequence[int]) -> np.ndarray:
        p = bigram(ids)
        return np.concatenate([p[:4], [0.3 * p[EOS], 0.7 * p[EOS]]])

    model = CallableModel(lambda prefixes: np.log([split(ids) for ids in prefixes]), 6, [4, 5])
    check(smc(model, predicate(), **RUNS), enumerate_target())


def test_a_reward_of_zero_is_a_dead_end() -> None:
    def picky(ids: list[int]) -> float:
        return float(ids.count(2) > 0)

    found = smc(bigram_model(), Exact(), reward=picky, twist=lambda ids: 1.0, **RUNS)
    target = {ids: w for ids, w in enumerate_target().items() if picky(list(ids))}
    check(found, target)
    assert not found.is_complete[np.isneginf(found.log_weights)].any()


# --- the same tests catch what is wrong


def all_that_is_left(
    table: Table, rows: np.ndarray, accept: Any, rng: np.random.Generator, **options: Any
) -> Draws:
    """The wrong estimator: once a token is accepted, whatever was not rejected counts as good."""
    logprobs = table.logs[rows]
    bad = np.zeros(logprobs.shape, dtype=bool)
    found = np.zeros(len(logprobs), dtype=bool)

    def watched(at: np.ndarray, tokens: np.ndarray) -> np.ndarray:
        verdicts = accept(at, tokens)
        bad[at, tokens] |= ~verdicts & ~found[at]
        found[at] |= verdicts
        return verdicts

    draws = awrs_batch(logprobs, watched, rng, method="recursive")
    left = np.log(np.where(bad, 0.0, np.exp(logprobs)).sum(axis=1))
    return draws._replace(log_weights=np.where(found, left, -np.inf))


def test_a_wrong_token_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(population_module, "awrs_table", all_that_is_left)
    _, worst = deviations(smc(bigram_model(), predicate(), **RUNS), enumerate_target())
    assert worst > 3 * ERRORS


def test_local_constraints_alone_are_caught() -> None:
    found = smc(bigram_model(), Exact(), ess_threshold=0, **RUNS)
    mass = sum(enumerate_target().values())
    found.log_weights = np.where(found.is_complete, math.log(mass), -math.inf)
    assert deviations(found, enumerate_target())[1] > 5 * ERRORS


def test_dropping_dead_particles_is_caught() -> None:
    found = smc(bigram_model(), predicate(), ess_threshold=0, awrs_options={"max_rejects": 1}, **RUNS)
    dead = np.isneginf(found.log_weights).reshape(found.islands, -1)
    alive = np.maximum((~dead).sum(axis=1, keepdims=True), 1)
    found.log_weights = (found.log_weights.reshape(dead.shape) + np.log(dead.shape[1] / alive)).ravel()
    assert deviations(found, enumerate_target())[1] > 5 * ERRORS


def test_moving_duplicates_only_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Selecting what is moved by looking at the particles does not leave the target invariant."""
    original = sequential_module.rejuvenate

    def duplicates(population: Any, paths: Any, moving: np.ndarray, look: Any) -> float:
        island = moving // 4
        keys = island * (population.row_of.max() + 1) + population.row_of[moving]
        first = np.unique(keys, return_index=True)[1]
        return original(population, paths, np.delete(moving, first), look)

    monkeypatch.setattr(sequential_module, "rejuvenate", duplicates)
    runs = {**RUNS, "islands": 8000}
    found = smc(bigram_model(), Exact(), rejuvenation=4, ess_threshold=1.0, resampling="multinomial", **runs)
    assert deviations(found, enumerate_target())[1] > 1.5 * ERRORS


# --- convergence


def distances(n_particles: int, islands: int, constraint: Constraint) -> float:
    """Mean total variation of single runs with ``n_particles``."""
    target = enumerate_target()
    found = smc(bigram_model(), constraint, n_particles, islands=islands, max_tokens=6, seed=7)
    total = []
    for island in range(islands):
        part = slice(island * n_particles, (island + 1) * n_particles)
        run = Posterior(found.sequences[part], found.log_weights[part], found.is_complete[part])
        total.append(total_variation(run.probabilities(), target))
    return float(np.mean(total))


@pytest.mark.parametrize("constraint", [Exact, predicate])
def test_total_variation_falls_as_one_over_the_root_of_n(constraint: Callable[[], Constraint]) -> None:
    sizes = [64, 256, 1024, 4096]
    found = [distances(n, 40, constraint()) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(found), 1)[0]
    assert -0.58 < slope < -0.42
    assert found[-1] < 0.02


def test_local_constraints_do_not_converge() -> None:
    found = locally_constrained(bigram_model(), Exact(), 20_000, 6, seed=1)
    assert total_variation(found.probabilities(), enumerate_target()) == pytest.approx(0.43, abs=0.02)


def test_pooled_runs_converge_though_each_is_small() -> None:
    runs = [smc(bigram_model(), Exact(), 4, islands=500, max_tokens=6, seed=seed) for seed in range(8)]
    together = pooled(runs)
    assert together.islands == 4000
    assert total_variation(together.probabilities(), enumerate_target()) < 0.03
    mean = np.log(np.mean([math.exp(run.log_evidence) for run in runs]))
    assert together.log_evidence == pytest.approx(mean)


# --- resampling


@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual", "multinomial"])
def test_resampling_is_unbiased(scheme: str) -> None:
    rng = np.random.default_rng(3)
    weights = np.array([0.37, 0.0, 0.31, 0.02, 0.3])
    counts = np.array([np.bincount(resample(weights, scheme, rng), minlength=5) for _ in range(20_000)])
    error = counts.std(axis=0, ddof=1) / len(counts) ** 0.5
    difference = np.abs(counts.mean(axis=0) - 5 * weights)
    assert (difference[error > 0] < ERRORS * error[error > 0]).all()
    assert counts[:, 1].max() == 0
    if scheme in ("systematic", "residual"):
        assert (counts >= np.floor(5 * weights)).all()
    if scheme == "systematic":
        assert (np.abs(counts - 5 * weights) < 1).all()


def test_resampling_variances_are_ordered() -> None:
    rng = np.random.default_rng(4)
    weights = rng.dirichlet(np.ones(8))
    spread = {
        scheme: np.mean([np.bincount(resample(weights, scheme, rng), minlength=8) ** 2 for _ in range(5000)])
        for scheme in ("stratified", "residual", "multinomial")
    }
    assert spread["stratified"] < spread["multinomial"]
    assert spread["residual"] < spread["multinomial"]


@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual", "multinomial"])
def test_resampling_edges(scheme: str) -> None:
    rng = np.random.default_rng(5)
    assert resample(np.array([1.0]), scheme, rng).tolist() == [0]
    assert resample(np.array([0.0, 0.0, 1.0]), scheme, rng).tolist() == [2, 2, 2]
    assert resample(np.array([1.0, 0.0, 0.0]), scheme, rng).tolist() == [0, 0, 0]
    third = np.full(3, 1 / 3)
    for _ in range(200):
        assert len(resample(third, scheme, rng)) == 3
    if scheme in ("systematic", "residual", "stratified"):
        assert resample(third, scheme, rng).tolist() == [0, 1, 2]


def test_nothing_to_resample_or_to_pool() -> None:
    for weights in (np.zeros(3), np.zeros(0), np.full(3, math.nan)):
        with pytest.raises(MaskwrightError, match="no weight is positive"):
            resample(weights, "systematic", np.random.default_rng(0))
    with pytest.raises(MaskwrightError, match="at least one"):
        pooled([])


def test_unknown_schemes() -> None:
    with pytest.raises(MaskwrightError, match="systematic"):
        resample(np.ones(1), "best", np.random.default_rng(0))


# --- what comes back


def test_histories() -> None:
    found = smc(bigram_model(), Exact(), 32, 0.9, max_tokens=6, seed=1)
    assert len(found.genealogy) == len(found.ess_history) == max(map(len, found.sequences)) + 1
    assert all(ancestors.shape == (32,) for ancestors in found.genealogy)
    assert any((ancestors != np.arange(32)).any() for ancestors in found.genealogy)
    assert all(isinstance(size, float) and 0 < size <= 32 + 1e-9 for size in found.ess_history)
    assert found.weights.sum() == pytest.approx(1)
    assert found.ess == pytest.approx(1 / (found.weights**2).sum())
    assert found.log_evidence == pytest.approx(np.log(np.exp(found.log_weights).mean()))
    islands = smc(bigram_model(), Exact(), 8, 0.9, max_tokens=6, seed=1, islands=3)
    assert islands.island_log_evidence.shape == islands.ess_history[0].shape == (3,)
    for ancestors in islands.genealogy:
        assert (ancestors // 8 == np.arange(24) // 8).all()


def test_posterior_sums_up_what_decodes_to_one_value() -> None:
    found = smc(bigram_model(), Exact(), 500, max_tokens=6, seed=1)
    by_length = found.probabilities(len)
    assert sum(by_length.values()) == pytest.approx(1)
    assert list(by_length.values()) == sorted(by_length.values(), reverse=True)
    assert found.expect(len) == pytest.approx(sum(length * p for length, p in by_length.items()))
    target = enumerate_target()
    exact = sum(len(ids) * p for ids, p in target.items()) / sum(target.values())
    assert found.expect(len) == pytest.approx(exact, abs=0.15)


def test_each_distinct_prefix_is_evaluated_once() -> None:
    seen: list[tuple[int, ...]] = []

    def function(prefixes: list[list[int]]) -> np.ndarray:
        seen.extend(map(tuple, prefixes))
        return np.log([bigram(ids) for ids in prefixes])

    found = smc(CallableModel(function, 5, EOS), Exact(), 500, max_tokens=6, seed=1)
    assert len(seen) == len(set(seen)) == found.counts.model_rows


def test_a_pair_is_checked_once_a_step_and_the_forced_end_once() -> None:
    asked: list[tuple[int, ...]] = []

    def complete(ids: list[int]) -> bool:
        asked.append(tuple(ids))
        return True

    smc(bigram_model(), Predicate(complete=complete), 100, max_tokens=1, seed=1)
    assert asked == [()]


SCRIPT = """
import sys; sys.path.insert(0, "tests")
from sampling_models import *
from maskwright.sampling import smc
found = smc(bigram_model(), predicate(), 16, max_tokens=6, seed=3, rejuvenation=1, block=2)
print(found.sequences, found.log_weights.tolist())
"""


def test_seeds_repeat_in_other_processes() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src"), "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_islands_do_not_depend_on_each_other() -> None:
    """Weights of one island have no correlation with those of another."""
    runs = [smc(bigram_model(), predicate(), 4, islands=2, max_tokens=6, seed=s) for s in range(400)]
    pairs = np.exp([run.island_log_evidence for run in runs])
    assert abs(np.corrcoef(pairs.T)[0, 1]) < ERRORS / len(runs) ** 0.5


# --- bad input


def dead(found: Posterior) -> None:
    assert found.all_dead and found.log_evidence == -math.inf and found.ess == 0
    assert not found.weights.any() and not np.isnan(found.weights).any()
    assert found.probabilities() == {} and found.expect(len) is None
    assert not found.is_complete.any() and np.isneginf(found.log_weights).all()


@pytest.mark.parametrize(
    "options", [{}, {"lookahead": 1}, {"rejuvenation": 1}, {"lookahead": 2}, {"islands": 2}]
)
def test_all_particles_dead(options: dict[str, Any]) -> None:
    nothing = [
        Predicate(lambda ids: not ids, lambda ids: False),
        Predicate(lambda ids: len(ids) < 3, lambda ids: False),
        Predicate(lambda ids: False),
    ]
    for constraint in nothing:
        dead(smc(bigram_model(), constraint, 8, max_tokens=6, seed=1, **options))
    dead(smc(bigram_model(), Exact(), 8, reward=lambda ids: 0.0, max_tokens=6, seed=1, **options))
    if "lookahead" not in options:
        dead(
            smc(
                bigram_model(),
                Exact(),
                8,
                twist=lambda ids: 0.0 if ids else 1.0,
                reward=lambda ids: float(bool(ids)),
                max_tokens=6,
                seed=1,
                **options,
            )
        )


def test_contradictory_predicates() -> None:
    never = Predicate(lambda ids: len(ids) < 2, lambda ids: len(ids) == 2)
    with pytest.raises(ConstraintError, match="complete accepts"):
        smc(bigram_model(), never, 8, max_tokens=6, seed=1)
    with pytest.raises(ConstraintError, match="complete accepts"):
        never.complete([0, 0])


def test_answers_that_are_no_booleans() -> None:
    with pytest.raises(ConstraintError, match="None"):
        smc(bigram_model(), Predicate(lambda ids: None), 8, max_tokens=6, seed=1)  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(
    "value", [math.nan, math.inf, -1.0, None, "much", pytest.param(10**5000, id="large")]
)
@pytest.mark.parametrize("name", ["reward", "twist"])
def test_bad_rewards(name: str, value: Any) -> None:
    with pytest.raises(ConstraintError, match=name):
        smc(bigram_model(), Exact(), 8, max_tokens=6, seed=1, **{name: lambda ids: value})


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (lambda n: np.full((n, 5), math.nan), "NaN"),
        (lambda n: np.full((n, 5), -math.inf), "sum"),
        (lambda n: np.zeros((n, 5)), "log_softmax"),
        (lambda n: np.zeros((n, 4)), "4"),
        (lambda n: np.zeros(5), "5"),
        (lambda n: "nothing", "array"),
        (lambda n: None, "NoneType|array|\\[\\]"),
    ],
)
def test_bad_models(rows: Callable[[int], Any], message: str) -> None:
    model = CallableModel(lambda prefixes: rows(len(prefixes)), 5, EOS)
    with pytest.raises(ModelError, match=message):
        smc(model, None, 4, max_tokens=3, seed=1)


def test_vocabularies_that_differ() -> None:
    import maskwright as mw

    vocabulary = mw.Vocabulary.from_bytes([b"1", b"2", b"[", b"]", b"", b""], eos_ids=[4])
    grammar = GrammarConstraint(
        mw.compile_json_schema({"type": "array", "items": {"enum": [1, 2]}}, vocabulary)
    )
    with pytest.raises(VocabularyError, match="6 ids"):
        smc(bigram_model(), grammar, 4, max_tokens=3)
    uniform = CallableModel(lambda prefixes: np.full((len(prefixes), 6), -math.log(6)), 6, [4, 5])
    with pytest.raises(VocabularyError, match="eos_ids"):
        smc(uniform, grammar * Exact(), 4, max_tokens=3)
    with pytest.raises(VocabularyError):
        CallableModel(lambda prefixes: None, 5, 5)
    with pytest.raises(VocabularyError):
        CallableModel(lambda prefixes: None, 5, [])


@pytest.mark.parametrize(
    "options",
    [
        {"n_particles": 0},
        {"n_particles": 1.5},
        {"ess_threshold": 2.0},
        {"ess_threshold": math.nan},
        {"resampling": "best"},
        {"max_tokens": 0},
        {"max_tokens": 2.5},
        {"power": 0.0},
        {"power": math.inf},
        {"ramp": -1},
        {"lookahead": -1},
        {"rollouts": 0},
        {"islands": 0},
        {"block": 0},
        {"block": "line"},
        {"block": lambda ids: True, "rejuvenation": 1},
        {"power": "2"},
        {"ramp": "2"},
        {"ramp": math.nan, "power": 2.0},
        {"reward": 3},
        {"awrs_options": {"probes": 0}},
        {"awrs_options": {"probes": "x"}},
        {"awrs_options": {"tries": 1}},
        {"awrs_options": 5},
    ],
)
@pytest.mark.parametrize("constraint", [predicate, Exact])
def test_bad_options(options: dict[str, Any], constraint: Callable[[], Constraint]) -> None:
    """Whatever the constraint needs, and with the option's name."""
    name = next(iter(options))
    with pytest.raises(MaskwrightError, match="awrs_options|probes" if name == "awrs_options" else name):
        smc(bigram_model(), constraint(), **{"n_particles": 4, "max_tokens": 4, **options})


def test_arguments_of_other_kinds() -> None:
    with pytest.raises(MaskwrightError, match="LanguageModel"):
        smc(bigram, Exact())  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="Constraint"):
        smc(bigram_model(), is_prefix)  # type: ignore[arg-type]
    assert is_complete([]) and is_prefix([0])
