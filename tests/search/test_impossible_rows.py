"""Prefixes behind which a model has no probability for anything, as products of models have, and temperatures without a measure."""

from __future__ import annotations

import numpy as np
import pytest

import maskwright as mw
from maskwright.sampling import (
    CallableModel,
    Everything,
    GrammarConstraint,
    LanguageModel,
    phrase_smc,
    product,
    smc,
)
from maskwright.search import Strategy, best_first, search

LETTERS = mw.Vocabulary.from_bytes([b"a", b"b", b""], eos_ids=2)


def after_a(row: list[float]) -> CallableModel:
    usual = [0.5, 0.3, 0.2]

    def rows(prefixes: list[list[int]]) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log([usual if not prefix or prefix[-1] == 1 else row for prefix in prefixes])

    return CallableModel(rows, 3, 2)


def disagreeing() -> LanguageModel:
    """Behind "a", one of the two has "a" alone, and the other one "b"."""
    return product([after_a([1, 0, 0]), after_a([0, 1, 0])])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["greedy", "sample", "beam", "best_first", "mcts", "smc"])
def test_all_strategies_do_without_such_prefixes(method: str) -> None:
    grammar = GrammarConstraint(mw.compile_regex("[ab]*", LETTERS))
    for temperature in (1.0, 0.5, 2.0):
        strategy = Strategy(method, temperature=temperature, max_tokens=3)
        found = search(disagreeing(), strategy, {"grammar": grammar}, lambda ids: 0.5, budget=20)
        assert all(0 not in ids for ids in found.rewards)


def test_particles_that_come_there_die_with_phrases_as_well() -> None:
    constraint = GrammarConstraint(mw.compile(mw.Contains(["b"]), LETTERS))
    plain = smc(disagreeing(), constraint, 400, max_tokens=4, seed=0)
    for options in ({}, {"boost": 0, "pull": 0}):
        found = phrase_smc(disagreeing(), constraint, ["b"], LETTERS, 400, max_tokens=4, seed=0, **options)
        assert found.log_evidence == pytest.approx(plain.log_evidence, abs=0.2)
        assert all(0 not in ids for ids in found.probabilities(tuple))


def test_greedy_is_the_same_at_all_temperatures() -> None:
    model = CallableModel(lambda prefixes: np.log(np.tile([0.1, 0.8, 0.1], (len(prefixes), 1))), 3, 2)
    grammar = GrammarConstraint(mw.compile_regex("[ab]", LETTERS))
    for temperature in (1e-6, 1.0, 1e17, 1e300):
        strategy = Strategy("greedy", temperature=temperature, max_tokens=3)
        assert search(model, strategy, {"grammar": grammar}, lambda ids: 0.5, budget=9).ids == [1]


def test_bounds_may_differ_from_rewards_by_rounding() -> None:
    model = CallableModel(lambda prefixes: np.log(np.tile([0.4, 0.4, 0.2], (len(prefixes), 1))), 3, 2)
    found = best_first(model, Everything(), max_tokens=3, reward=lambda ids: 0.1 + 0.2, bound=lambda ids: 0.3)
    assert found.found
    with pytest.raises(mw.MaskwrightError, match="larger than 0"):
        best_first(model, Everything(), max_tokens=3, reward=lambda ids: 0.3, bound=lambda ids: 0.2)
