"""Strategies within a budget, their files, and tuning, on a model whose texts can be listed."""

from __future__ import annotations

import dataclasses
import importlib.util
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sampling_models as toy
from test_search import EOS, GRAMMAR, VOCABULARY, distribution, model, ranked

import maskwright as mw
from maskwright.sampling import CallableModel, GrammarConstraint, Predicate
from maskwright.search import Strategy, Task, search, tune
from maskwright.search.strategy import METHODS

GOAL = [3, 0, 5, 1, 1, 4, 4]  # (a+(bb))


@pytest.fixture(scope="module")
def constraints() -> dict[str, Any]:
    return {
        "grammar": GrammarConstraint(mw.compile_lark(GRAMMAR, VOCABULARY)),
        "no a": Predicate(lambda ids: 0 not in ids),
    }


def near(ids: list[int]) -> float:
    """How much of the goal a text has."""
    return len(
        list(itertools.takewhile(lambda pair: pair[0] == pair[1], zip(ids, GOAL, strict=False)))
    ) / len(GOAL)


def only(goal: tuple[int, ...]) -> Any:
    return lambda ids: float(tuple(ids) == goal)


@pytest.mark.parametrize("method", METHODS)
def test_budgets_hold_and_rewards_are_asked_once(method: str, constraints: dict[str, Any]) -> None:
    for budget in (1, 7, 40, 200):
        asked: list[tuple[int, ...]] = []

        def reward(ids: list[int], asked: list[tuple[int, ...]] = asked) -> float:
            asked.append(tuple(ids))
            return near(ids)

        counted = model()
        strategy = Strategy(method, width=4, max_tokens=9)
        best = search(counted, strategy, constraints, reward, budget=budget, seed=1)
        assert counted.rows == best.calls <= budget
        assert len(asked) == len(set(asked)) == len(best.rewards)
        assert best.reward == max(best.rewards.values(), default=0.0)
        assert all(constraints["grammar"].complete(list(ids)) and len(ids) < 9 for ids in asked)
        again = search(model(), strategy, constraints, near, budget=budget, seed=1)
        assert again == best


def test_what_each_method_finds_first(constraints: dict[str, Any]) -> None:
    """Best first finds the likeliest texts, in order; greedy is a beam of one; a beam of thousands is exhaustive."""
    listed = ranked(constraints["grammar"], 6)
    best = search(model(), Strategy("best_first", max_tokens=6), constraints, near, budget=5000)
    assert list(best.rewards) == [ids for ids, _ in listed]
    wide = search(model(), Strategy("beam", width=5000, max_tokens=6), constraints, near, budget=10**6)
    assert set(wide.rewards) == {ids for ids, _ in listed}
    greedy = search(model(), Strategy("greedy", max_tokens=6), constraints, near, budget=100)
    assert (
        greedy.rewards
        == search(model(), Strategy("beam", width=1, max_tokens=6), constraints, near, budget=100).rewards
    )
    full = search(model(), Strategy("mcts", max_tokens=6), constraints, only(()), budget=10**6, seed=0)
    assert set(full.rewards) == {ids for ids, _ in listed}


def test_a_reward_of_one_ends_the_search(constraints: dict[str, Any]) -> None:
    goal = ranked(constraints["grammar"], 6)[0][0]
    for method in ("sample", "best_first", "mcts", "smc"):
        best = search(model(), Strategy(method, max_tokens=6), constraints, only(goal), budget=10_000, seed=0)
        assert best.ids == list(goal) and best.reward == 1.0 and best.calls < 3000
    first = search(model(), Strategy("best_first", max_tokens=6), constraints, only(goal), budget=10_000)
    assert list(first.rewards) == [goal] and first.calls < 30


def tempered(temperature: float) -> CallableModel:
    """The model at a temperature, by its definition: both ends are one, of the sum of their p."""

    def function(prefixes: list[list[int]]) -> np.ndarray:
        p = np.array([distribution(ids) for ids in prefixes])
        p[:, EOS[0]] += p[:, EOS[1]]
        p[:, EOS[1]] = 0
        p **= 1 / temperature
        with np.errstate(divide="ignore"):
            return np.log(p / p.sum(axis=1, keepdims=True))

    return CallableModel(function, 9, EOS)


@pytest.mark.parametrize("temperature", [0.25, 0.7, 3.0])
@pytest.mark.parametrize("method", METHODS)
def test_a_temperature_is_that_of_the_model(
    method: str, temperature: float, constraints: dict[str, Any]
) -> None:
    for seed in range(3):
        strategy = Strategy(method, width=4, power=0.5, temperature=temperature, max_tokens=9)
        best = search(model(), strategy, constraints, near, budget=150, seed=seed)
        plain = dataclasses.replace(strategy, temperature=1.0)
        assert best == search(tempered(temperature), plain, constraints, near, budget=150, seed=seed)
        if method not in ("greedy", "beam"):
            assert best != search(model(), plain, constraints, near, budget=150, seed=seed)


def test_texts_are_in_the_order_of_a_sharpened_p(constraints: dict[str, Any]) -> None:
    """Against listing all texts: the order differs, and few calls go deeper."""
    found = toy.enumerate_target(
        6,
        lambda p, ids: p,
        lambda ids: np.exp(tempered(0.25).state([list(ids)]).logprobs[0]),
        constraints["grammar"].prefix,
        constraints["grammar"].complete,
        EOS,
    )
    listed = sorted((ids for ids, p in found.items() if p > 0), key=lambda ids: -found[ids])
    assert listed != [ids for ids, _ in ranked(constraints["grammar"], 6)]
    strategy = Strategy("best_first", temperature=0.25, max_tokens=6)
    assert list(search(model(), strategy, constraints, near, budget=5000).rewards) == listed


def test_constraints_are_chosen_by_name(constraints: dict[str, Any]) -> None:
    strategy = Strategy("sample", max_tokens=6, constraints=("grammar", "no a"))
    best = search(model(), strategy, constraints, near, budget=500, seed=2)
    assert best.rewards and not any(0 in ids for ids in best.rewards)
    free = search(
        model(), Strategy("sample", max_tokens=6, constraints=()), constraints, near, budget=500, seed=2
    )
    assert any(not constraints["grammar"].complete(list(ids)) for ids in free.rewards)
    with pytest.raises(mw.MaskwrightError, match="names tests; there are grammar, no a"):
        search(model(), Strategy(constraints=("tests",)), constraints, near, budget=5)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_files(suffix: str, tmp_path: Path) -> None:
    names = ("grammar", 'a "name"', "\U0001f600 \u20ac", "\x00\x1f\x7f\x80\u2028\n\\")
    strategy = Strategy("smc", width=3, power=0.1 + 0.2, constraints=names)
    path = tmp_path / f"strategy{suffix}"
    strategy.save(path)
    assert Strategy.load(path) == strategy
    for text in ("method = 1 2", "[1]", '{"metho": "smc"}', "metho = 1"):
        path.write_text(text, "utf-8")
        with pytest.raises(mw.MaskwrightError, match="strategy"):
            Strategy.load(path)
    with pytest.raises(mw.MaskwrightError, match="nosuch"):
        Strategy.load(tmp_path / "nosuch.toml")
    for text in ('["' * 100_000, "[" * 100_000, "a = " + "[" * 100_000, '{"method": ' * 100_000):
        path.write_text(text, "utf-8")
        with pytest.raises(mw.MaskwrightError, match="strategy"):
            Strategy.load(path)
    with pytest.raises(mw.MaskwrightError, match="nosuch"):
        strategy.save(tmp_path / "nosuch" / "strategy.toml")


@pytest.mark.parametrize("path", [None, 5, b"strategy.toml", "\0"])
def test_what_is_no_path(path: Any) -> None:
    for call in (Strategy.load, Strategy().save):
        with pytest.raises(mw.MaskwrightError, match=r"path|null"):
            call(path)


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_numbers_of_other_types_are_pythons(suffix: str, tmp_path: Path) -> None:
    strategy = Strategy(
        "sample", width=np.int64(3), temperature=np.float32(0.5), exploration=np.int8(2), power=1, max_tokens=np.uint16(9)
    )  # fmt: skip
    numbers = (
        strategy.width,
        strategy.max_tokens,
        strategy.temperature,
        strategy.exploration,
        strategy.power,
    )
    assert [type(each) for each in numbers] == [int, int, float, float, float]
    path = tmp_path / f"strategy{suffix}"
    strategy.save(path)
    assert Strategy.load(path) == strategy == Strategy("sample", 3, 0.5, 2.0, 1.0, 9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "best"},
        {"width": 0},
        {"temperature": 0.0},
        {"temperature": 1e-310},
        {"temperature": float("inf")},
        {"power": float("nan")},
        {"max_tokens": 1.5},
        {"constraints": "grammar"},
        {"constraints": 5},
        {"constraints": None},
        {"constraints": ("grammar", 5)},
        {"constraints": ("grammar", "\ud83d")},
        {"method": ["smc"]},
        {"method": np.array(["smc", "beam"])},
    ],
)
def test_bad_strategies(wrong: dict[str, Any]) -> None:
    with pytest.raises(mw.MaskwrightError, match=next(iter(wrong))):
        Strategy(**wrong)


def test_the_least_temperature_is_greedy(constraints: dict[str, Any]) -> None:
    """Also where the grammar forbids what the model wants: no forbidden token is taken for its p of next to 1."""
    greedy = search(model(), Strategy("greedy", max_tokens=9), constraints, near, budget=30)
    for method in ("sample", "greedy"):
        cold = Strategy(method, temperature=1e-6, max_tokens=9)
        found = search(model(), cold, constraints, near, budget=30, seed=0)
        assert found.ids is not None and found.rewards == greedy.rewards


def test_rewards_beyond_doubles(constraints: dict[str, Any]) -> None:
    for method in ("greedy", "smc"):
        with pytest.raises(mw.ConstraintError, match="reward"):
            search(model(), Strategy(method, max_tokens=9), constraints, lambda ids: 10**5000, budget=50)


@pytest.mark.parametrize("method", METHODS)
def test_a_text_must_have_room(method: str, constraints: dict[str, Any]) -> None:
    message = "max_tokens is 1, but the shortest text takes 2 tokens, EOS included"
    with pytest.raises(mw.LimitError, match=message):
        search(model(), Strategy(method, max_tokens=1), constraints, near, budget=50)
    pytest.importorskip("optuna")
    with pytest.raises(mw.LimitError, match=message):
        tune([Task(model(), constraints, near)], budget=200, calls=10, methods=(method,), max_tokens=1)


@pytest.mark.parametrize("seed", [-1, "a", 1.5, True, [1]])
def test_bad_seeds_of_tuning(seed: Any, constraints: dict[str, Any]) -> None:
    pytest.importorskip("optuna")
    with pytest.raises(mw.MaskwrightError, match="seed"):
        tune([Task(model(), constraints, near)], budget=20, calls=10, seed=seed)


def test_seeds_of_tuning_are_those_of_searches(constraints: dict[str, Any]) -> None:
    pytest.importorskip("optuna")
    tasks = [Task(model(), constraints, near)]
    for seed in (None, 2**32, 2**70, np.int64(3), np.random.default_rng(0)):
        assert tune(tasks, budget=20, calls=10, max_tokens=9, seed=seed).trials
    same = [tune(tasks, budget=60, calls=10, max_tokens=9, seed=np.random.default_rng(5)) for _ in range(2)]
    assert same[0] == same[1]


@pytest.mark.slow
def test_tuning_finds_what_the_tasks_need(constraints: dict[str, Any]) -> None:
    """An unlikely goal with a reward on the way to it needs a tree, and is spoiled by a wrong constraint."""
    pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    tasks = [Task(model(), constraints, near) for _ in range(2)]
    tuned = tune(tasks, budget=20_000, calls=400, max_tokens=9, seed=0)
    assert sum(trial.calls for trial in tuned.trials) <= 20_000 and len(tuned.trials) >= 7
    assert {trial.strategy.method for trial in tuned.trials[:6]} == set(METHODS)
    best = max(trial.reward for trial in tuned.trials)
    assert "no a" not in tuned.strategy.constraints
    greedy = next(trial for trial in tuned.trials if trial.strategy.method == "greedy")
    assert best >= 4 / 7 > greedy.reward
    assert (
        tuned.trials
        == tune(
            [Task(model(), constraints, near) for _ in range(2)],
            budget=20_000,
            calls=400,
            max_tokens=9,
            seed=0,
        ).trials
    )
    with pytest.raises(mw.LimitError, match=r"do not last for one trial .*: [0-9]+ do"):
        tune(tasks, budget=799, calls=400)
    with pytest.raises(mw.MaskwrightError, match="at least one task"):
        tune([], budget=799, calls=400)


@pytest.mark.slow
def test_generators_take_a_strategy() -> None:
    """A value of the type, or None where the budget does not last for one."""
    pytest.importorskip("torch", reason="the generator runs a model")
    from tiny_model import TINY

    gen = mw.Generator.from_pretrained(TINY)
    schema = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 0, "maximum": 9}},
        "required": ["n"],
        "additionalProperties": False,
    }
    best = gen.search(
        "Seven.", schema, Strategy("mcts", max_tokens=20), lambda value: value["n"] / 10, budget=300, seed=0
    )
    assert set(best) == {"n"} and best["n"] >= 7
    first = gen.metrics.rates()
    assert (first.outputs, first.schema_validity) == (1, 1.0)
    assert first.tokens_per_output is not None and 20 < first.tokens_per_output <= 300
    assert (
        gen.search("Seven.", schema, Strategy("sample", max_tokens=20), lambda value: 0.0, budget=2, seed=0)
        is None
    )
    second = gen.metrics.rates()
    assert (second.outputs, second.schema_validity, second.latency_p50_seconds) == (
        2,
        0.5,
        first.latency_p50_seconds,
    )
    # Nothing is a value as well; a reward that raises says nothing of the output.
    nothing = gen.search(
        "x", {"type": "null"}, Strategy("greedy", max_tokens=8), lambda value: 1.0, budget=20
    )
    assert nothing is None and gen.metrics.rates().schema_validity == pytest.approx(2 / 3)
    with pytest.raises(ZeroDivisionError):
        gen.search("x", {"type": "null"}, Strategy("greedy", max_tokens=8), lambda value: 1 / 0, budget=20)
    assert gen.metrics.rates().outputs == 3


@pytest.mark.slow
@pytest.mark.parametrize("as_path", [str, Path])
def test_generators_take_a_file_and_the_constraints_that_it_names(as_path: Any, tmp_path: Path) -> None:
    """A constraint of the strategy that the caller has; those that it does not name are left out."""
    pytest.importorskip("torch", reason="the generator runs a model")
    from tiny_model import TINY

    gen = mw.Generator.from_pretrained(TINY)
    source = mw.Regex("[ab]{2}")
    one_of = mw.compile_regex("b[ab]", gen.vocabulary)
    given = {"tests": GrammarConstraint(one_of), "nothing": Predicate(lambda ids: not ids)}
    path = tmp_path / "strategy.toml"
    Strategy("sample", max_tokens=8, constraints=("grammar", "tests")).save(path)
    asked: list[str] = []

    def reward(text: str) -> float:
        asked.append(text)
        return 0.5

    found = gen.search("x", source, as_path(path), reward, constraints=given, budget=60, seed=0)
    assert found in ("ba", "bb") and asked and all(text[0] == "b" for text in asked)
    asked.clear()
    gen.search("x", source, Strategy("beam", max_tokens=8), reward, constraints=given, budget=60)
    assert {text[0] for text in asked} == {"a", "b"}


@pytest.mark.slow
def test_what_generators_cannot_search_with(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="the generator runs a model")
    from tiny_model import TINY

    gen = mw.Generator.from_pretrained(TINY)

    def call(strategy: Any, **options: Any) -> Any:
        return gen.search("x", mw.Regex("[ab]{2}"), strategy, lambda text: 0.5, budget=20, **options)

    tests = Strategy("sample", max_tokens=8, constraints=("grammar", "tests"))
    with pytest.raises(mw.MaskwrightError, match=r"names tests; there are grammar.*constraints="):
        call(tests)
    with pytest.raises(mw.MaskwrightError, match="nosuch"):
        call(tmp_path / "nosuch.toml")
    for wrong in (5, None, {"method": "sample"}):
        with pytest.raises(mw.MaskwrightError, match="strategy: expected a Strategy or the path of its file"):
            call(wrong)
    for given in (5, [("tests", None)], {"tests": None}, {"tests": lambda ids: True}):
        with pytest.raises(mw.MaskwrightError, match="constraints"):
            call(tests, constraints=given)
    with pytest.raises(mw.MaskwrightError, match="'grammar' is that of the output type"):
        call(tests, constraints={"grammar": Predicate(lambda ids: True)})


@pytest.mark.parametrize("budget", [0, -1, float("inf"), float("nan"), 1.5, None])
def test_budgets_that_are_none(budget: Any, constraints: dict[str, Any]) -> None:
    with pytest.raises(mw.MaskwrightError, match="budget"):
        search(model(), Strategy("mcts"), constraints, near, budget=budget)
    if importlib.util.find_spec("optuna") is not None:
        with pytest.raises(mw.MaskwrightError, match="budget"):
            tune([Task(model(), constraints, near)], budget=budget, calls=5)
        with pytest.raises(mw.MaskwrightError, match="calls"):
            tune([Task(model(), constraints, near)], budget=5, calls=budget)


def test_what_is_no_strategy(constraints: dict[str, Any]) -> None:
    for wrong in ("strategy.toml", None, {"method": "sample"}):
        with pytest.raises(mw.MaskwrightError, match="strategy: expected Strategy"):
            search(model(), wrong, constraints, near, budget=5)  # type: ignore[arg-type]
    for given in (None, [], {"grammar": None}):
        with pytest.raises(mw.MaskwrightError, match="constraint"):
            search(model(), Strategy("greedy"), given, near, budget=5)  # type: ignore[arg-type]
