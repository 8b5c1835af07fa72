"""No prefix is paid for twice; and searches that are wrong on purpose, which the tests of searches notice."""

from __future__ import annotations

import builtins
import collections
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import test_search
import test_search_strategies
from test_search import EOS, GRAMMAR, VOCABULARY, distribution, model, ranked, share_of_a
from test_search_strategies import near

import maskwright as mw
from maskwright.errors import MaskwrightError
from maskwright.sampling import CallableModel, GrammarConstraint, Predicate
from maskwright.sampling.models import one_end
from maskwright.search import (
    Strategy,
    Task,
    Trial,
    best_first,
    mcts,
    monte_carlo,
    search,
    strategy,
    tune,
    tuning,
)
from maskwright.search.best_first import _Children


@pytest.fixture(scope="module")
def grammar() -> mw.CompiledGrammar:
    return mw.compile_lark(GRAMMAR, VOCABULARY)


@pytest.fixture(scope="module")
def constraints(grammar: mw.CompiledGrammar) -> dict[str, Any]:
    return {"grammar": GrammarConstraint(grammar), "no a": Predicate(lambda ids: 0 not in ids)}


def counted() -> tuple[CallableModel, collections.Counter[tuple[int, ...]]]:
    """The model, and how often it was asked about each prefix."""
    asked: collections.Counter[tuple[int, ...]] = collections.Counter()

    def function(prefixes: list[list[int]]) -> np.ndarray:
        asked.update(map(tuple, prefixes))
        return np.log([distribution(ids) for ids in prefixes])

    return CallableModel(function, 9, EOS), asked


# --- what a tree keeps


def check_prefixes_are_paid_once(constraints: dict[str, Any], budget: int = 300) -> None:
    source, asked = counted()
    best = search(source, Strategy("mcts", max_tokens=9), constraints, near, budget=budget, seed=1)
    assert best.calls == sum(asked.values()) == source.rows
    assert max(asked.values()) == 1
    source, asked = counted()
    found = mcts(source, constraints["grammar"], near, simulations=200, max_tokens=9, seed=2)
    assert found.nodes == len(asked) == source.rows


def test_no_prefix_is_paid_for_twice(constraints: dict[str, Any]) -> None:
    check_prefixes_are_paid_once(constraints)


def test_a_tree_that_forgets_what_it_wrote_is_caught(
    constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It also has less of a budget left for texts."""
    kept = search(model(), Strategy("mcts", max_tokens=9), constraints, near, budget=300, seed=1)
    monkeypatch.setattr(monte_carlo, "_MOST_KEPT", 0)
    with pytest.raises(AssertionError):
        check_prefixes_are_paid_once(constraints)
    forgotten = search(model(), Strategy("mcts", max_tokens=9), constraints, near, budget=300, seed=1)
    assert len(kept.rewards) > len(forgotten.rewards)


def test_what_is_kept_changes_nothing_but_calls(
    constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = []
    for most in (1 << 24, 40, 0):
        monkeypatch.setattr(monte_carlo, "_MOST_KEPT", most)
        found = mcts(model(), constraints["grammar"], near, simulations=150, max_tokens=9, seed=4)
        nodes.append((found.nodes, found.found))
    assert nodes[0][1] == nodes[1][1] == nodes[2][1]
    assert nodes[0][0] < nodes[1][0] < nodes[2][0]


# --- trees


class _Unchanged(np.ndarray):
    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def _values_stay(enter: Any) -> Any:
    def wrong(node: Any) -> None:
        enter(node)
        node.values = node.values.view(_Unchanged)

    return wrong


def _closed_at_once(enter: Any) -> Any:
    def wrong(node: Any) -> None:
        enter(node)
        node.open[node.priors() < 0.5] = False

    return wrong


def _closed_are_chosen(choose: Any) -> Any:
    def wrong(node: Any, exploration: float) -> Any:
        held, node.open = node.open, np.ones_like(node.open)
        try:
            return choose(node, exploration)
        finally:
            node.open = held

    return wrong


def check_a_tree_is_exhausted(grammar: mw.CompiledGrammar) -> None:
    """One simulation for each prefix and each text is enough."""
    constraint = GrammarConstraint(grammar)
    expected = {ids for ids, _ in ranked(constraint, 5)}
    prefixes = sum(
        constraint.prefix(list(ids))
        for count in range(5)
        for ids in itertools.product(range(7), repeat=count)
    )
    simulations = prefixes + len(expected)
    found = mcts(model(), constraint, share_of_a, simulations=simulations, max_tokens=5, seed=1)
    assert found.proved and {tuple(each.ids) for each in found.found} == expected


def test_a_tree_is_exhausted(grammar: mw.CompiledGrammar) -> None:
    check_a_tree_is_exhausted(grammar)


@pytest.mark.parametrize(
    ("name", "wrong", "check"),
    [
        ("enter", _values_stay, test_search.test_it_finds_what_sampling_does_not),
        ("enter", _closed_at_once, check_a_tree_is_exhausted),
        ("choose", _closed_are_chosen, check_a_tree_is_exhausted),
    ],
)
def test_wrong_trees_are_caught(
    name: str,
    wrong: Callable[[Any], Any],
    check: Callable[[mw.CompiledGrammar], None],
    grammar: mw.CompiledGrammar,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(monte_carlo._Node, name, wrong(getattr(monte_carlo._Node, name)))
    # In a dead end there is nothing to choose.
    with pytest.raises((AssertionError, ValueError)):
        check(grammar)


# --- best first


def test_bounds_that_are_too_low_lose_the_best_text(
    grammar: mw.CompiledGrammar, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = _Children.worth
    monkeypatch.setattr(_Children, "worth", lambda self, rank: right(self, rank) - 0.5 * rank)
    with pytest.raises(AssertionError):
        test_search.test_the_likeliest_texts(grammar, 1, False)
    with pytest.raises(AssertionError):
        test_search.test_rewards(grammar)


def test_siblings_that_are_not_looked_at_are_missed(
    grammar: mw.CompiledGrammar, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = _Children.worth
    monkeypatch.setattr(_Children, "worth", lambda self, rank: right(self, rank) if rank < 2 else -np.inf)
    with pytest.raises(AssertionError):
        test_search.test_the_likeliest_texts(grammar, 3, False)


# --- strategies within a budget


def _free(self: Any, parents: Any, tokens: Any) -> Any:
    return strategy._MeteredState(self._owner, self._state.extend(parents, tokens))


def _by_state(self: Any, parents: Any, tokens: Any) -> Any:
    self._owner.pay(1)
    return _free(self, parents, tokens)


@pytest.mark.parametrize(
    ("method", "wrong"), [("greedy", _free), ("mcts", _free), ("smc", _free), ("beam", _by_state)]
)
def test_budgets_that_do_not_count_are_caught(
    method: str, wrong: Any, constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategy._MeteredState, "extend", wrong)
    if method == "mcts":
        # Nothing but its budget ends it.
        monkeypatch.setattr(
            strategy, "mcts", lambda *args, **options: mcts(*args, **options | {"simulations": 50})
        )
    if method == "smc":
        monkeypatch.setattr(strategy._Metered, "left", property(lambda self: 1 if not self.calls else 0))
    with pytest.raises(AssertionError):
        test_search_strategies.test_budgets_hold_and_rewards_are_asked_once(method, constraints)


def test_rewards_that_are_asked_again_are_caught(
    constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def again(self: Any, ids: list[int]) -> float:
        self.rewards[tuple(ids)] = found = self._reward(ids)
        return float(found)

    monkeypatch.setattr(strategy._Judged, "__call__", again)
    with pytest.raises(AssertionError):
        test_search_strategies.test_budgets_hold_and_rewards_are_asked_once("sample", constraints)


@pytest.mark.parametrize("method", ["beam", "best_first", "mcts"])
def test_methods_that_are_another_one_are_caught(
    method: str, constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(strategy._METHODS, method, strategy._greedy)
    with pytest.raises(AssertionError):
        test_search_strategies.test_what_each_method_finds_first(constraints)


def _no_temperature(self: Any, logprobs: Any) -> Any:
    return logprobs


def _each_end_apart(self: Any, logprobs: Any) -> Any:
    scores = np.asarray(logprobs) / self._temperature
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def _not_normalised(self: Any, logprobs: Any) -> Any:
    return one_end(logprobs, self.eos_ids) / self._temperature


@pytest.mark.parametrize(("method", "temperature"), [("smc", 3.0), ("best_first", 0.7)])
@pytest.mark.parametrize("wrong", [_no_temperature, _each_end_apart, _not_normalised])
def test_wrong_temperatures_are_caught(
    wrong: Any,
    method: str,
    temperature: float,
    constraints: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(strategy._Metered, "at_temperature", wrong)
    with pytest.raises(AssertionError):
        test_search_strategies.test_a_temperature_is_that_of_the_model(method, temperature, constraints)


def test_best_first_that_judges_at_its_end_is_caught(
    constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(model: Any, constraint: Any, chosen: Strategy, judged: Any, rng: Any) -> None:
        found = best_first(model, constraint, n=50, max_tokens=chosen.max_tokens, max_nodes=model.left)
        for each in found.found:
            judged(each.ids)

    monkeypatch.setitem(strategy._METHODS, "best_first", late)
    with pytest.raises(AssertionError):
        test_search_strategies.test_a_reward_of_one_ends_the_search(constraints)


# --- tuning


def check_tuning(constraints: dict[str, Any]) -> None:
    optuna = pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    count = 4
    models = [model() for _ in range(count)]
    tasks = [Task(each, constraints, near) for each in models]
    methods = ("greedy", "beam", "mcts")
    tuned = tune(tasks, budget=1500, calls=40, methods=methods, max_tokens=9, seed=0)
    trials = tuned.trials
    assert sum(each.rows for each in models) == sum(trial.calls for trial in trials) <= 1500
    finished = [trial for trial in trials if trial.tasks == count]
    best = max(trial.reward for trial in finished)
    fewest = min(trial.calls for trial in finished if trial.reward == best)
    chosen = [trial for trial in finished if trial.strategy == tuned.strategy]
    assert (best, fewest) in [(trial.reward, trial.calls) for trial in chosen]
    assert len({trial.reward for trial in trials}) > 1
    assert all("grammar" in trial.strategy.constraints for trial in trials)
    # By the rule: behind one task and behind three, the best third goes on; the budget may end the last trial.
    first: dict[int, list[float]] = {1: [], 3: []}
    ended = set()
    for trial in trials:
        again = [search(model(), trial.strategy, constraints, near, budget=40, seed=i) for i in range(count)]
        assert trial.reward == np.mean([each.reward for each in again[: trial.tasks]])
        assert trial.calls == sum(each.calls for each in again[: trial.tasks]) <= trial.tasks * 40
        length = count
        for rung, seen in first.items():
            if length == count:
                seen.append(float(np.mean([each.reward for each in again[:rung]])))
                if sum(value > seen[-1] for value in seen) >= max(1, len(seen) // 3):
                    length = rung
        assert trial.tasks == length or trial is trials[-1]
        ended.add(trial.tasks)
    assert {1, count} <= ended and optuna.logging.get_verbosity() == optuna.logging.WARNING


@pytest.mark.slow
def test_tuning_takes_the_best_trial_within_its_budget(constraints: dict[str, Any]) -> None:
    check_tuning(constraints)


def _the_first(*given: Any, key: Any = None) -> Any:
    return builtins.max(*given) if key is None else given[0][0]


def _the_worst(*given: Any, key: Any = None) -> Any:
    return builtins.max(*given) if key is None else min(*given, key=key)


def _of_one_task(model: Any, *args: Any, **options: Any) -> Any:
    """The same, whichever task is asked for."""
    return search(model, *args, **options | {"seed": 0})


def _never_ends(**options: Any) -> Any:
    import optuna

    return optuna.pruners.NopPruner()


def _ends_early(**options: Any) -> Any:
    import optuna

    return optuna.pruners.MedianPruner(n_startup_trials=1)


def _as_if_finished(*args: Any) -> Any:
    return Trial(*args[:-1], tasks=4)


def _beyond_the_budget(*args: Any, budget: int, **options: Any) -> Any:
    return search(*args, budget=3 * budget, **options)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("max", _the_first),
        ("max", _the_worst),
        ("search", _of_one_task),
        ("search", _beyond_the_budget),
        ("Trial", _as_if_finished),
    ],
)
def test_wrong_tuning_is_caught(
    name: str, wrong: Any, constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, name, wrong, raising=False)
    with pytest.raises(AssertionError):
        check_tuning(constraints)


@pytest.mark.slow
@pytest.mark.parametrize("wrong", [_never_ends, _ends_early])
def test_wrong_ends_of_trials_are_caught(
    wrong: Any, constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    optuna = pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    monkeypatch.setattr(optuna.pruners, "SuccessiveHalvingPruner", wrong)
    with pytest.raises(AssertionError):
        check_tuning(constraints)


def test_tuning_without_what_is_required_is_caught(
    constraints: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = tuning._suggested
    monkeypatch.setattr(
        tuning, "_suggested", lambda asked, methods, required, *others: right(asked, methods, (), *others)
    )
    with pytest.raises((AssertionError, MaskwrightError)):
        check_tuning(constraints)
