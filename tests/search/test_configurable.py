"""Constraints with parameters: in searches, in files, and chosen by ``tune``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.sampling import CallableModel, GrammarConstraint, Predicate
from maskwright.search import Configurable, Strategy, Task, search, strategy, tune

EOS = 3
VOCABULARY = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b""], eos_ids=EOS)
MODEL = CallableModel(lambda prefixes: np.log([[0.4, 0.3, 0.1, 0.2]] * len(prefixes)), 4, EOS)
GRAMMAR = GrammarConstraint(mw.compile_regex("[abc]{1,5}", VOCABULARY))
SHORT = Configurable(
    lambda most, first: Predicate(
        lambda ids: len(ids) <= most and VOCABULARY.decode(ids[:1]) in (b"", first.encode())
    ),
    most=[2, 3, 4],
    first=["a", "b"],
)
CONSTRAINTS = {"grammar": GRAMMAR, "short": SHORT}


def likeliest(most: int, first: str) -> list[tuple[int, ...]]:
    """Of all texts that the parameters leave, in the order of p."""
    p = {"a": 0.4, "b": 0.3, "c": 0.1}
    texts = ["".join(text) for n in range(1, most + 1) for text in itertools.product("abc", repeat=n)]
    texts = [text for text in texts if text[0] == first]
    texts.sort(key=lambda text: -np.prod([p[c] for c in text]))
    return [tuple("abc".index(c) for c in text) for text in texts]


@pytest.mark.parametrize("given", [{}, {"most": 3}, {"most": 4, "first": "b"}, {"first": "b"}])
def test_a_search_sees_the_texts_that_the_parameters_leave(given: dict[str, Any]) -> None:
    chosen = Strategy(
        "best_first", constraints=("grammar", "short"), parameters={"short": given} if given else {}
    )
    found = search(MODEL, chosen, CONSTRAINTS, lambda ids: 0.0, budget=500)
    assert set(found.rewards) == set(likeliest(given.get("most", 2), given.get("first", "a")))


def right(ids: list[int]) -> float:
    """Three letters, of which the first is b."""
    return 0.9 * (ids[:1] == [1]) * (len(ids) == 3) + 0.1


def tuned(budget: int = 1200) -> Strategy:
    tasks = [Task(MODEL, CONSTRAINTS, right)] * 3
    methods = ("greedy", "beam")
    return tune(
        tasks, budget=budget, calls=20, methods=methods, required=("grammar", "short"), max_tokens=6
    ).strategy


@pytest.mark.slow
def test_tuning_chooses_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Greedy goes on as long as it may: only ``most=3, first="b"`` makes that right."""
    pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    chosen = tuned()
    assert chosen.parameters == {"short": {"most": 3, "first": "b"}}
    assert search(MODEL, chosen, CONSTRAINTS, right, budget=20).reward == 1.0
    # A search that forgets the parameters learns nothing from them.
    configured = strategy.configured
    monkeypatch.setattr(strategy, "configured", lambda known, names, _: configured(known, names, {}))
    assert search(MODEL, tuned(), CONSTRAINTS, right, budget=20).reward < 1.0


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_files_hold_parameters(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"strategy{suffix}"
    given = {
        "short": {"most": 3, "first": "b"},
        'a "name".with\nall\x7f': {"yes": True, "share": 1e-7, "größe": "∞"},
        "empty": {},
    }
    written = Strategy("mcts", constraints=("grammar", *given), parameters=given)
    written.save(path)
    loaded = Strategy.load(path)
    assert loaded == written and loaded.parameters == given and hash(loaded) == hash(written)
    assert loaded != Strategy("mcts", constraints=("grammar", *given))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (3, "parameters"),
        ({"other": {}}, "'other' is not among the constraints"),
        ({"short": 3}, "parameters: 'short'"),
        ({"short": {"most": float("nan")}}, "finite"),
        ({"short": {"most": [1]}}, "'most'"),
        ({"short": {"most": "\ud800"}}, "half a character"),
        ({"short": {3: 3}}, "'short'"),
    ],
)
def test_what_is_no_parameter(parameters: Any, message: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=message):
        Strategy(constraints=("grammar", "short"), parameters=parameters)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"short": {"least": 3}}, "'short': no parameter 'least'; there are most, first"),
        ({"short": {"most": 7}}, "'short': most: 7 is not among 2, 3, 4"),
        ({"short": {"most": True}}, "True is not among"),
        ({"grammar": {"most": 3}}, "'grammar' has no parameters"),
    ],
)
def test_parameters_that_are_not_there(parameters: Any, message: str) -> None:
    chosen = Strategy(constraints=("grammar", "short"), parameters=parameters)
    with pytest.raises(mw.MaskwrightError, match=message):
        search(MODEL, chosen, CONSTRAINTS, right, budget=20)


def grammar_of(**parameters: Any) -> GrammarConstraint:
    return GRAMMAR


@pytest.mark.parametrize(
    ("make", "choices", "message"),
    [
        (grammar_of, {"most": []}, "most: expected a list"),
        (grammar_of, {"most": "abc"}, "most: expected a list"),
        (grammar_of, {"most": 3}, "most: expected a list"),
        (grammar_of, {"most": [None]}, "most"),
        (grammar_of, {"most": [float("inf")]}, "most: expected a finite number"),
        (grammar_of, {"most": [2**63]}, "most: expected an integer of 64 bits"),
        (grammar_of, {"\ud800": [1]}, "half a character"),
        (
            lambda least: GRAMMAR,
            {"most": [1]},
            "make: missing a required argument: 'least'; its parameters are most",
        ),
        (3, {}, "make: expected a function of the parameters, got int"),
    ],
)
def test_what_is_not_configurable(make: Any, choices: dict[str, Any], message: str) -> None:
    with pytest.raises(mw.MaskwrightError, match=message):
        Configurable(make, **choices)


def test_what_makes_no_constraint() -> None:
    given: dict[str, Any] = {"grammar": Configurable(lambda: 3)}  # type: ignore[arg-type,return-value]
    with pytest.raises(mw.MaskwrightError, match="what make returns"):
        search(MODEL, Strategy(), given, right, budget=20)
    with pytest.raises(mw.MaskwrightError, match="constraints"):
        search(MODEL, Strategy(), {"grammar": GRAMMAR, 3: GRAMMAR}, right, budget=20)  # type: ignore[dict-item]


def test_values_are_those_of_the_choices() -> None:
    """A file says 3.0, numpy says int64: what is made gets the 3 that it named."""
    seen: list[Any] = []

    def make(**given: Any) -> GrammarConstraint:
        seen.append(given)
        return GRAMMAR

    constraint = Configurable(make, make=[np.int64(2), 3], self=[True, 1])
    for value in (3.0, np.float64(3.0), np.int64(3)):
        constraint.made({"make": value})
    constraint.made({"self": 1})
    assert [repr(each) for each in seen] == ["{'make': 3, 'self': True}"] * 3 + ["{'make': 2, 'self': 1}"]


def test_parameters_that_were_changed_are_not_saved(tmp_path: Path) -> None:
    changed = Strategy(constraints=("short",), parameters={"short": {"most": 3}})
    changed.parameters["short"]["most"] = [1]  # type: ignore[index]
    with pytest.raises(mw.MaskwrightError, match="'most'"):
        changed.save(tmp_path / "changed.toml")
    assert not list(tmp_path.iterdir())


def test_names_of_constraints_and_parameters_do_not_meet() -> None:
    """However they are called: each parameter is chosen by itself."""
    pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    constraints = {
        "a": Configurable(grammar_of, **{"b: c": [1, 2]}),
        "a: b": Configurable(grammar_of, c=["x", "y"]),
        "uses a": Configurable(grammar_of, c=[True, 1]),
        "a: c": GRAMMAR,
    }
    found = tune(
        [Task(MODEL, constraints, right)], budget=400, calls=5, required=("a", "a: b", "uses a"), max_tokens=6
    )
    tried = [trial.strategy.parameters for trial in found.trials]
    for name, parameter, count in (("a", "b: c", 2), ("a: b", "c", 2), ("uses a", "c", 2)):
        assert len({repr(each[name][parameter]) for each in tried}) == count
    assert len({(each["a"]["b: c"], each["a: b"]["c"]) for each in tried}) > 2


def test_tasks_whose_parameters_differ() -> None:
    pytest.importorskip("optuna", reason="the optional extra tune is not installed")
    other = Configurable(lambda most: GRAMMAR, most=[2])
    tasks = [Task(MODEL, CONSTRAINTS, right), Task(MODEL, {"grammar": GRAMMAR, "short": other}, right)]
    with pytest.raises(mw.MaskwrightError, match="'short' has other parameters"):
        tune(tasks, budget=100, calls=5)
    tasks[1] = Task(MODEL, {"grammar": GRAMMAR}, right)
    with pytest.raises(mw.MaskwrightError, match="some tasks have no 'short'"):
        tune(tasks, budget=100, calls=5, required=("grammar", "short"))
