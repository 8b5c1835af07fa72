"""Phrases by sequential Monte Carlo: the same target as without looking ahead, on a model whose texts can be listed."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from sampling_models import EOS, bigram, bigram_model

import maskwright as mw
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.sampling import CallableModel, GrammarConstraint, Posterior, phrase_smc
from maskwright.sampling.phrases import _Guided

VOCABULARY = mw.Vocabulary.from_bytes([b"a", b"b", b"ab", b" ba", b""], eos_ids=[EOS])
PHRASES = ["ab", "ba"]
BUDGET = 5


def target() -> dict[tuple[int, ...], float]:
    """p of every text with both phrases, its end included."""
    found = {}
    for n in range(BUDGET):
        for ids in itertools.product(range(4), repeat=n):
            text = b"".join(VOCABULARY.tokens[i] for i in ids).decode()
            if all(phrase in text for phrase in PHRASES):
                steps = [bigram(ids[:at])[token] for at, token in enumerate([*ids, EOS])]
                found[ids] = float(np.prod(steps))
    return found


def run(seed: int, **options: Any) -> Posterior:
    constraint = GrammarConstraint(mw.compile(mw.Contains(PHRASES), VOCABULARY))
    return phrase_smc(
        bigram_model(), constraint, PHRASES, VOCABULARY, 8, max_tokens=BUDGET, seed=seed, **options
    )


def errors(runs: int = 300, **options: Any) -> tuple[float, float]:
    """By how many standard errors the evidence, and the mass of texts that begin with ``ab``, are wrong."""
    exact = target()
    wanted = (sum(exact.values()), sum(p for ids, p in exact.items() if ids[0] == 2))
    found = np.zeros((runs, 2))
    for seed in range(runs):
        result = run(seed, **options)
        weights = np.exp(result.log_weights)
        begins = [bool(ids) and ids[0] == 2 for ids in result.sequences]
        found[seed] = weights.mean(), (weights * begins).mean()
    distance = np.abs(found.mean(axis=0) - wanted) / (found.std(axis=0) / runs**0.5)
    return float(distance[0]), float(distance[1])


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"boost": 0.0, "pull": 0.0}, {"boost": 1.5, "pull": 3.0}])
def test_the_target_is_the_model_restricted_to_the_constraint(options: dict[str, Any]) -> None:
    assert max(errors(**options)) < 4


def test_proposals_that_do_not_divide_out_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Guided, "log_reward", lambda self, ids: 0.0)
    assert max(errors(100)) > 6


def test_defaults_are_divided_by_the_temperature(monkeypatch: pytest.MonkeyPatch) -> None:
    nats: list[tuple[float, float]] = []

    def noted(self: _Guided, model: Any, phrases: Any, vocabulary: Any, boost: float, pull: float) -> None:
        nats.append((boost, pull))
        guided(self, model, phrases, vocabulary, boost, pull)

    guided = _Guided.__init__
    monkeypatch.setattr(_Guided, "__init__", noted)
    for temperature in (1.0, 0.5, 1e-9):
        monkeypatch.setattr(CallableModel, "temperature", temperature)
        run(0)
    run(0, boost=2.0, pull=3.0)
    assert nats == [(6.0, 8.0), (12.0, 16.0), (1000.0, 10_000.0), (2.0, 3.0)]


def test_log_probabilities_are_the_models() -> None:
    result = run(3)
    for ids, logprobs, done in zip(result.sequences, result.logprobs, result.is_complete, strict=True):
        steps = [np.log(bigram(ids[:at])[token]) for at, token in enumerate([*ids, EOS] if done else ids)]
        np.testing.assert_allclose(logprobs, steps, atol=1e-9)


def flat(probabilities: list[float]) -> CallableModel:
    """The same distribution behind every prefix; the last id is the end."""
    row = np.log(probabilities)
    return CallableModel(lambda prefixes: np.tile(row, (len(prefixes), 1)), len(row), len(row) - 1)


@pytest.mark.slow
def test_ratios_that_no_double_holds() -> None:
    """What the proposals are divided out by: far above 1, far below it, and what a missing phrase is taken to cost."""
    words = mw.Vocabulary.from_bytes([b"the", b"x", b"y", b""], eos_ids=[3])
    late = GrammarConstraint(mw.compile_regex("[xy]{240}the", words))
    found = phrase_smc(flat([0.05, 0.45, 0.3, 0.2]), late, ["the"], words, 8, max_tokens=300, seed=0)
    assert found.log_evidence == pytest.approx(240 * math.log(0.75) + math.log(0.05 * 0.2))
    data = mw.Vocabulary.from_bytes([*(bytes((byte,)) for byte in range(256)), b""], eos_ids=256)
    phrase = "ab" * 75
    constraint = GrammarConstraint(mw.compile(mw.Contains([phrase]), data))
    for pull in (10.0, 800.0, 10_000.0):
        found = phrase_smc(
            flat([1 / 257] * 257), constraint, [phrase], data, 4, max_tokens=151, seed=0, pull=pull
        )
        assert found.log_evidence == pytest.approx(-151 * math.log(257))


@pytest.mark.parametrize(
    "options", [{"boost": 1000.0}, {"pull": 10_000.0}, {"boost": 1000.0, "pull": 10_000.0}]
)
def test_the_largest_preferences_leave_the_evidence_as_it_is(options: dict[str, Any]) -> None:
    words = mw.Vocabulary.from_bytes([b"the", b"x", b"y", b""], eos_ids=[3])
    late = GrammarConstraint(mw.compile_regex("[xy]{240}the", words))
    steps = [0.05, 0.45, 0.3, 0.2]
    found = phrase_smc(flat(steps), late, ["the"], words, 8, max_tokens=300, seed=0, **options)
    assert found.log_evidence == pytest.approx(240 * math.log(0.75) + math.log(0.05 * 0.2), rel=1e-9)
    for ids, logprobs in zip(found.sequences, found.logprobs, strict=True):
        assert logprobs == pytest.approx([math.log(steps[token]) for token in [*ids, 3]], rel=1e-9)


def test_bad_arguments() -> None:
    with pytest.raises(MaskwrightError, match="texts: expected phrases"):
        phrase_smc(
            bigram_model(), GrammarConstraint(mw.compile(mw.Contains(["a"]), VOCABULARY)), "ab", VOCABULARY
        )
    with pytest.raises(MaskwrightError, match="twist is not available"):
        run(0, twist=lambda ids: 1.0)
    for wrong in (math.nan, math.inf, 1e308, 10_001, -1):
        with pytest.raises(MaskwrightError, match="boost"):
            run(0, boost=wrong)
        with pytest.raises(MaskwrightError, match="pull"):
            run(0, pull=wrong)
    with pytest.raises(MaskwrightError, match="boost"):
        run(0, boost=1001)
    constraint = GrammarConstraint(mw.compile(mw.Contains(["a"]), VOCABULARY))
    for texts in (5, None, [], [""], [5], b"a", ["\ud800"]):
        with pytest.raises(MaskwrightError, match="texts"):
            phrase_smc(bigram_model(), constraint, texts, VOCABULARY)  # type: ignore[arg-type]
    for vocabulary in (None, 5):
        with pytest.raises(VocabularyError, match="vocabulary"):
            phrase_smc(bigram_model(), constraint, ["a"], vocabulary)  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="model"):
        phrase_smc(None, constraint, ["a"], VOCABULARY)  # type: ignore[arg-type]
    other = mw.Vocabulary.from_bytes([b"a", b""], eos_ids=[1])
    with pytest.raises(VocabularyError, match="5 ids"):
        phrase_smc(bigram_model(), GrammarConstraint(mw.compile(mw.Contains(["a"]), other)), ["a"], other)
