"""Arguments of samplers that make no sense: errors that name them."""

from __future__ import annotations

import copy
import sys
from typing import Any

import numpy as np
import pytest
from byte_walks import BYTES
from sampling_models import Exact, bigram_model, predicate

import maskwright as mw
from maskwright.errors import ConstraintError, MaskwrightError
from maskwright.sampling import (
    Constraint,
    GrammarConstraint,
    LanguageModel,
    ModelState,
    Predicate,
    awrs,
    pooled,
    rejection_sampling,
    smc,
)
from maskwright.sampling.adaptive import awrs_batch
from maskwright.sampling.resampling import resample
from maskwright.search import Session, Strategy, best_first, mcts, search


def test_what_is_not_pooled() -> None:
    for parts in (5, None, [1], [None]):
        with pytest.raises(MaskwrightError, match="parts"):
            pooled(parts)  # type: ignore[arg-type]
    runs = [
        smc(bigram_model(), Exact(), n, max_tokens=4, islands=i, seed=n) for n, i in ((4, 1), (4, 2), (6, 1))
    ]
    assert pooled(iter(runs[:2])).island_log_evidence.shape == (3,)  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="run 0 has 4 particles an island and run 1 has 6"):
        pooled([runs[0], runs[2]])
    with pytest.raises(MaskwrightError, match="run 2 has 6"):
        pooled(runs)


@pytest.mark.parametrize("grammar", [1, None, "a", mw.compile_choice([[97]], BYTES)])
def test_what_is_no_grammar(grammar: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"grammar: expected CompiledGrammar|TrieConstraint"):
        GrammarConstraint(grammar)


@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual", "multinomial"])
def test_weights_that_are_none(scheme: str) -> None:
    rng = np.random.default_rng(0)
    assert resample([0.5, 0.5], scheme, rng).shape == (2,)  # type: ignore[arg-type]
    assert resample(np.array([1, 0]), scheme, rng).tolist() == [0, 0]
    for weights in (
        [0.5, 0.4],
        [2.0, 2.0],
        [-0.5, 1.5],
        [np.nan, 1.0],
        [np.inf, 0.0],
        "a",
        None,
        [[1.0]],
        1.0,
        ["a"],
        [1j],
    ):
        with pytest.raises(MaskwrightError, match="weight"):
            resample(weights, scheme, rng)  # type: ignore[arg-type]


def test_scores_and_verdicts_that_are_none() -> None:
    for scores in ("a", None, ["a"], [[1.0], [1.0, 2.0]], {}):
        with pytest.raises(MaskwrightError, match="logprobs"):
            awrs(scores, lambda token: True)
        with pytest.raises(MaskwrightError, match="logprobs"):
            awrs_batch(scores, lambda rows, tokens: tokens >= 0)  # type: ignore[arg-type]
    for accept in (None, 5, "a"):
        with pytest.raises(MaskwrightError, match="accept"):
            awrs([0.0], accept)  # type: ignore[arg-type]
        with pytest.raises(MaskwrightError, match="accept"):
            awrs_batch(np.zeros((1, 1)), accept)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [5, "a", [1]])
def test_what_is_no_function(wrong: Any) -> None:
    model, constraint = bigram_model(), predicate()
    calls: list[tuple[str, Any]] = [
        ("reward", lambda: smc(model, constraint, 2, reward=wrong)),
        ("twist", lambda: smc(model, constraint, 2, twist=wrong)),
        ("reward", lambda: rejection_sampling(model, constraint, 2, reward=wrong)),
        ("reward", lambda: best_first(model, constraint, reward=wrong)),
        ("bound", lambda: best_first(model, constraint, reward=len, bound=wrong)),
        ("reward", lambda: mcts(model, constraint, wrong)),
        ("reward", lambda: search(model, Strategy("greedy", constraints=()), {}, wrong, budget=3)),
    ]
    for name, call in calls:
        with pytest.raises(MaskwrightError, match=name):
            call()


@pytest.mark.parametrize("workers", [None, "a", 1.5, True, -1])
def test_numbers_of_workers(workers: Any) -> None:
    with pytest.raises(MaskwrightError, match="workers"):
        Predicate(len, workers=workers)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "values"),
    [("max_tokens", (2**63, 2**70)), ("ramp", (2**63, 2**70)), ("n_particles", (2**31, 2**70)),
     ("islands", (2**31, 2**70)), ("rollouts", (2**31, 2**70)), ("power", (10**400,))],
)  # fmt: skip
def test_numbers_beyond_all_measure(name: str, values: tuple[int, ...]) -> None:
    for value in values:
        with pytest.raises(MaskwrightError, match=name):
            smc(bigram_model(), Exact(), **{"n_particles": 2, "max_tokens": 4, "lookahead": 2, name: value})
    with pytest.raises(MaskwrightError, match="islands of n_particles"):
        smc(bigram_model(), Exact(), 2**20, islands=2**20)


def test_large_numbers_that_mean_something() -> None:
    options: dict[str, Any] = {"power": 2**70, "max_tokens": sys.maxsize, "lookahead": 2**70}
    found = smc(bigram_model(), Exact(), 2, seed=0, **options)
    same = smc(bigram_model(), Exact(), 2, seed=0, power=2.0**70, max_tokens=2**60, lookahead=50)
    assert found.sequences == same.sequences and found.log_evidence == same.log_evidence


class Scored(LanguageModel):
    """One that answers with given scores, whatever came."""

    vocab_size, eos_ids = BYTES.vocab_size, BYTES.eos_ids

    def __init__(self, scores: Any) -> None:
        self.scores = scores

    def state(self, prefixes: Any) -> ModelState:
        return ScoredState(self.scores)


class ScoredState(ModelState):
    def __init__(self, scores: Any) -> None:
        self.logprobs = scores

    def extend(self, parents: Any, tokens: Any) -> ModelState:
        return self


@pytest.mark.parametrize(
    ("value", "size"), [(np.nan, BYTES.vocab_size), (np.inf, BYTES.vocab_size), (-1.0, BYTES.vocab_size - 1)]
)
def test_scores_of_a_model_that_are_none(value: float, size: int) -> None:
    scores = np.full((1, size), -1.0)
    scores[0, 97] = value
    model, grammar = Scored(scores), mw.compile_regex("a{1,3}", BYTES)
    constraint = GrammarConstraint(grammar)
    for run in (
        lambda: best_first(model, constraint, max_tokens=6),
        lambda: mcts(model, constraint, lambda ids: 1.0, max_tokens=6),
        lambda: search(
            model, Strategy("beam", max_tokens=6), {"grammar": constraint}, lambda text: 1.0, budget=9
        ),
        lambda: Session(model, grammar, max_tokens=6).forward(),
    ):
        with pytest.raises(MaskwrightError, match="the model's log-probabilities"):
            run()


def test_verdicts_that_are_no_booleans() -> None:
    scores = np.log(np.full((2, 4), 0.25))
    for answer in (np.ones(2, int), np.ones(3, bool), np.array(["False", "True"]), None, [np.nan, 1.0]):
        for method in ("auto", "recursive", "geometric"):
            with pytest.raises(ConstraintError, match=r"must answer booleans \[\d\]"):
                awrs_batch(scores, lambda rows, tokens, answer=answer: answer, 0, method=method)
    # A list of them is one.
    draws = awrs_batch(scores, lambda rows, tokens: [True] * len(rows), 0)
    assert draws.log_weights.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "many", [1 << 31, 1 << 70, 10**5000], ids=["31 bits", "70 bits", "not written by Python"]
)
def test_so_many_would_never_end(many: int) -> None:
    run = {"max_tokens": 4}
    for name, call in {
        "rejuvenation": lambda: smc(bigram_model(), Exact(), 3, rejuvenation=many, **run),
        "max_accepts": lambda: awrs(np.zeros(4), bool, 1, method="geometric", max_accepts=many),
        "max_rejects": lambda: awrs(np.zeros(4), bool, 1, max_rejects=many),
        "probes": lambda: awrs(np.zeros(4), bool, 1, probes=many),
        "n_samples": lambda: rejection_sampling(bigram_model(), predicate, many, **run),
    }.items():
        with pytest.raises(MaskwrightError, match=f"{name}: expected at most"):
            call()


def test_a_session_is_not_changed_while_it_writes() -> None:
    grammar = mw.compile_gbnf('root ::= "(" root? ")"', BYTES)

    class Meddling(Scored):
        def state(self, prefixes: Any) -> ModelState:
            with pytest.raises(MaskwrightError, match="is writing"):
                session.forward("token")
            with pytest.raises(MaskwrightError, match="is writing"):
                session.backward("token")
            return super().state(prefixes)

    session = Session(Meddling(np.full((1, BYTES.vocab_size), -5.0)), grammar, max_tokens=8, seed=1)
    text = session.forward()
    assert session.finished and text == "(" * (len(text) // 2) + ")" * (len(text) // 2)
    # When it has raised, it goes on.
    session = Session(Scored(np.full((1, BYTES.vocab_size), np.nan)), grammar, max_tokens=8)
    for _ in range(2):
        with pytest.raises(MaskwrightError, match="NaN"):
            session.forward()
    with pytest.raises(MaskwrightError, match="copied"):
        copy.copy(session)


class Odd(Constraint):
    """One that answers with whatever it is told to."""

    exact = False

    def __init__(self, verdicts: Any = None, masks: Any = None) -> None:
        self.vocab_size, self.eos_ids = BYTES.vocab_size, BYTES.eos_ids
        self.verdicts, self.answer = verdicts, masks

    def start(self) -> Any:
        return ()

    def advance(self, state: Any, token: int) -> Any:
        return state

    def masks(self, states: Any) -> Any:
        return self.answer

    def check(self, states: Any, tokens: Any) -> Any:
        return np.ones(len(tokens), bool) if self.verdicts is None else self.verdicts(len(tokens))


ODD = [
    *(
        Odd(verdicts=answer)
        for answer in (lambda n: [1] * n, lambda n: np.ones(n), lambda n: None, lambda n: [True])
    ),
    *(Odd(masks=answer) for answer in (5, np.ones((1, 9)), np.ones((1, 3), np.int32), np.ones(9, np.int32))),
]


@pytest.mark.parametrize("constraint", ODD)
def test_constraints_that_answer_something_else(constraint: Odd) -> None:
    model = Scored(np.full((1, BYTES.vocab_size), -np.log(BYTES.vocab_size)))
    runs = [
        lambda: best_first(model, constraint, max_tokens=3),
        lambda: mcts(model, constraint, lambda ids: 1.0, max_tokens=3),
        lambda: search(
            model, Strategy("beam", max_tokens=3), {"grammar": constraint}, lambda text: 1.0, budget=9
        ),
        lambda: smc(model, constraint, 1, max_tokens=3, seed=1),
    ]
    # One verdict is what a single token asks for.
    for run in runs[1:3] if constraint is ODD[3] else runs:
        with pytest.raises(ConstraintError, match=r"Odd\.(check|masks) answered .* it must answer"):
            run()
