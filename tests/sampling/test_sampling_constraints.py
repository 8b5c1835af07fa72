"""Constraints, predicates in pools, products, baselines, ASAp and plots."""

from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sampling_models import (
    Exact,
    bigram,
    bigram_model,
    enumerate_target,
    is_complete,
    is_prefix,
    predicate,
    total_variation,
)

import maskwright as mw
from maskwright import ConstraintError, MaskwrightError
from maskwright.sampling import (
    END,
    Asap,
    CallableModel,
    Everything,
    GrammarConstraint,
    Predicate,
    Product,
    locally_constrained,
    rejection_sampling,
    sample_verify,
    smc,
)

TARGET = enumerate_target()
MASS = sum(TARGET.values())


def has_even_length(ids: list[int]) -> bool:
    return len(ids) % 2 == 0


# --- texts


def test_prefix_and_complete_of_everything_composed() -> None:
    vocabulary = mw.Vocabulary.from_bytes([b"[", b"]", b"1", b",", b"</s>"], eos_ids=4)
    grammar = GrammarConstraint(
        mw.compile_json_schema({"type": "array", "items": {"const": 1}}, vocabulary, whitespace="compact")
    )
    even = Predicate(complete=has_even_length)
    both = grammar * even * Everything()
    assert isinstance(both, Product) and len(both.factors) == 3 and not both.exact
    assert (grammar * Everything()).exact
    for ids, prefix, complete in [
        ([], True, False),
        ([0], True, False),
        ([0, 1], True, True),
        ([0, 2, 1], True, False),
        ([0, 2, 3, 2, 1], True, False),
        ([0, 3], False, False),
        ([0, 1, 4], False, False),
    ]:
        assert grammar.prefix(ids) == prefix and both.prefix(ids) == prefix
        assert both.complete(ids) == complete
    with pytest.raises(MaskwrightError, match="not allowed"):
        grammar.advance(grammar.start(), 2)
    with pytest.raises(MaskwrightError):
        Product([])
    with pytest.raises(TypeError):
        grammar * 3  # type: ignore[operator]


def test_factors_are_asked_in_order_and_only_for_what_is_left() -> None:
    asked: list[list[int]] = []
    first = Predicate(lambda ids: ids[-1:] != [1])
    second = Predicate(lambda ids: asked.append(ids) or True)
    both = first * second
    state = both.start()
    assert both.check([state] * 3, [0, 1, 2]).tolist() == [True, False, True]
    assert asked == [[0], [2]]


def test_a_prefix_alone_and_a_complete_alone() -> None:
    short = Predicate(lambda ids: len(ids) < 2)
    assert short.complete([0]) and not short.complete([0, 0])
    even = Predicate(complete=has_even_length)
    assert even.prefix([0]) and not even.complete([0]) and even.calls == 1
    assert even.check([(), (1,)], [END, END]).tolist() == [True, False]


@pytest.mark.parametrize("pool", ["thread", "process"])
def test_pools_give_the_same_answers(pool: str) -> None:
    plain = predicate()
    pooled = Predicate(is_prefix, is_complete, workers=2, pool=pool)
    try:
        found = [smc(bigram_model(), c, 32, max_tokens=6, seed=1) for c in (plain, pooled)]
    finally:
        pooled.close()
    assert found[0].sequences == found[1].sequences and plain.calls == pooled.calls
    assert found[0].log_weights.tolist() == found[1].log_weights.tolist()


def test_threads_are_used() -> None:
    barrier = threading.Barrier(2, timeout=30)

    def meet(ids: list[int]) -> bool:
        barrier.wait()
        return True

    constraint = Predicate(meet, workers=2)
    assert constraint.check([(), ()], [0, 1]).tolist() == [True, True]
    constraint.close()


def test_errors_of_predicates_come_through() -> None:
    def broken(ids: list[int]) -> bool:
        raise KeyError("inside")

    for workers in (0, 2):
        constraint = Predicate(broken, workers=workers)
        with pytest.raises(KeyError, match="inside"):
            smc(bigram_model(), constraint, 4, max_tokens=3)
        constraint.close()
    with pytest.raises(MaskwrightError, match="pool"):
        Predicate(pool="none")
    with pytest.raises(MaskwrightError, match="workers"):
        Predicate(workers=-1)
    with pytest.raises(MaskwrightError, match="function"):
        Predicate(prefix=3)  # type: ignore[arg-type]


def test_a_product_is_of_constraints() -> None:
    wrong: Any = [Everything(), None]
    with pytest.raises(MaskwrightError, match="factors: expected Constraint, got NoneType"):
        Product(wrong)


# --- baselines


def test_sample_verify() -> None:
    found = sample_verify(bigram_model(), predicate(), 20_000, 6, seed=1)
    assert math.exp(found.log_evidence) == pytest.approx(MASS, abs=4 * 0.5 / 20_000**0.5)
    assert total_variation(found.probabilities(), TARGET) < 0.03
    assert (found.is_complete == np.isfinite(found.log_weights)).all()


def test_rejection_sampling() -> None:
    found = rejection_sampling(bigram_model(), predicate(), 5000, 6, seed=1, max_proposals=50_000)
    assert found.is_complete.all() and len(set(found.log_weights.tolist())) == 1
    assert math.exp(found.log_evidence) == pytest.approx(MASS, abs=4 * 0.5 / 10_000**0.5)
    assert total_variation(found.probabilities(), TARGET) < 0.05


def test_rejection_sampling_with_a_reward() -> None:
    def reward(ids: list[int]) -> float:
        return 1.0 + (2 in ids)

    target = enumerate_target(6, lambda p, ids: p * reward(list(ids)))
    found = rejection_sampling(
        bigram_model(), predicate(), 4000, 6, seed=2, reward=reward, reward_bound=2.0, max_proposals=50_000
    )
    assert total_variation(found.probabilities(), target) < 0.05
    assert math.exp(found.log_evidence) == pytest.approx(sum(target.values()), rel=0.08)
    with pytest.raises(ConstraintError, match="reward_bound"):
        rejection_sampling(bigram_model(), predicate(), 500, 6, seed=2, reward=reward)
    with pytest.raises(MaskwrightError):
        rejection_sampling(bigram_model(), predicate(), 5, 6, reward_bound=math.inf)


@pytest.mark.slow
def test_one_sample_has_an_unbiased_estimate() -> None:
    vocabulary = mw.Vocabulary.from_bytes([b"a", b"b", b""], eos_ids=[2])
    constraint = GrammarConstraint(mw.compile_regex("a", vocabulary))
    row = np.log([0.3, 0.3, 0.4])
    model = CallableModel(lambda prefixes: np.tile(row, (len(prefixes), 1)), 3, 2)
    runs = [rejection_sampling(model, constraint, 1, 3, seed=seed) for seed in range(500)]
    assert all(run.sequences == [[0]] and run.is_complete.all() for run in runs)
    found = np.array([math.exp(run.log_evidence) for run in runs])
    assert found.mean() == pytest.approx(0.12, abs=4 * found.std() / len(found) ** 0.5)


def test_baselines_need_a_constraint_of_the_models_ids() -> None:
    wide = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b"d", b"e", b""], eos_ids=[5])
    for sampler in (sample_verify, rejection_sampling):
        with pytest.raises(MaskwrightError, match="a Constraint is needed"):
            sampler(bigram_model(), None, 4, 6)  # type: ignore[arg-type]
        with pytest.raises(mw.VocabularyError, match="6 ids, the model 5"):
            sampler(bigram_model(), GrammarConstraint(mw.compile_regex("a", wide)), 4, 6)


def test_arguments_of_rejection_sampling() -> None:
    wrong: Any
    for name, values in {
        "seed": ("a", -1, 0.5),
        "n_samples": (0, 1.5, "a", None),
        "max_proposals": (0, None),
        "reward_bound": (0, -1, "a", None, math.nan),
    }.items():
        for wrong in values:
            with pytest.raises(MaskwrightError, match=name):
                rejection_sampling(bigram_model(), predicate(), **{"max_tokens": 6, name: wrong})
    with pytest.raises(MaskwrightError, match="n_samples"):
        Asap(bigram_model(), predicate(), 6).sample(0)


def test_rejection_sampling_that_runs_out() -> None:
    never = Predicate(complete=lambda ids: False)
    found = rejection_sampling(bigram_model(), never, 4, 6, seed=1, max_proposals=40)
    assert found.all_dead and found.probabilities() == {} and len(found.sequences) == 4
    rare = rejection_sampling(bigram_model(), predicate(), 1000, 6, seed=1, max_proposals=200)
    assert 0 < rare.is_complete.sum() < 200
    assert math.exp(rare.log_evidence) == pytest.approx(rare.is_complete.sum() / 200)


@pytest.mark.slow
def test_local_constraints_have_the_same_law_with_and_without_masks() -> None:
    exact = locally_constrained(bigram_model(), Exact(), 20_000, 6, seed=1).probabilities()
    black_box = locally_constrained(bigram_model(), predicate(), 20_000, 6, seed=2).probabilities()
    assert 0.5 * sum(abs(exact.get(k, 0) - black_box.get(k, 0)) for k in TARGET) < 0.03
    assert len({round(value * 20_000, 6) % 1 for value in exact.values()}) == 1


@pytest.mark.parametrize("make", [Exact, predicate])
def test_asap_learns_the_target(make: type[Exact]) -> None:
    sampler = Asap(bigram_model(), make(), 6, seed=1)
    assert sampler.log_evidence_bound == 0
    early = sampler.sample(5)
    sampler.sample(400)
    late = sampler.sample(4000)
    # The tree is complete: f is the exact expected future, and samples are exact.
    assert math.exp(sampler.log_evidence_bound) == pytest.approx(MASS, rel=1e-3)
    assert total_variation(late.probabilities(), TARGET) < 0.04
    assert early.counts.model_rows == late.counts.model_rows <= 62


def test_asap_where_nothing_is_good() -> None:
    sampler = Asap(bigram_model(), Predicate(lambda ids: len(ids) < 2, lambda ids: False), 4, seed=1)
    found = sampler.sample(30)
    assert found.all_dead and found.probabilities() == {}
    assert sampler.log_evidence_bound == -math.inf


# --- pictures


def test_plots(tmp_path: Path) -> None:
    found = smc(bigram_model(), predicate(), 16, 0.9, max_tokens=6, seed=1)
    found.plot(tmp_path / "run.html", "A <run>")
    text = (tmp_path / "run.html").read_text()
    assert "A &lt;run&gt;" in text and text.count("<path") == 2 and "polyline" in text
    assert text.count("L") > 16 * (len(found.genealogy) - 1)
    with pytest.raises(MaskwrightError, match="png"):
        found.plot(tmp_path / "run.pdf")
    pytest.importorskip("matplotlib", reason="the optional extra plots is not installed")
    found.plot(tmp_path / "run.png")
    assert (tmp_path / "run.png").read_bytes().startswith(b"\x89PNG")


def test_plots_of_nothing(tmp_path: Path) -> None:
    found = smc(bigram_model(), Predicate(lambda ids: False), 4, max_tokens=3, seed=1)
    found.plot(tmp_path / "run.html")
    sample_verify(bigram_model(), predicate(), 4, 6, seed=1).plot(tmp_path / "run.html")
    assert bigram([]).sum() == pytest.approx(1)
