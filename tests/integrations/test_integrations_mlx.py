"""The logits processor of MLX-LM, in MLX-LM itself with a tiny Llama on the CPU (``make test-engines``)."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip(
    "mlx_lm", reason="MLX-LM is not installed: make test-engines has it in an environment of its own"
)

import mlx.core as mx
import tiny_model
from mlx_lm.generate import BatchGenerator, batch_generate, generate, stream_generate
from mlx_lm.sample_utils import make_sampler
from mlx_lm.utils import load

import maskwright as mw
from maskwright.integrations.mlx import LogitsProcessor, vocabulary

MODEL, TOKENIZER = load(str(tiny_model.TINY))
VOCABULARY = vocabulary(TOKENIZER, MODEL)
EOS = TOKENIZER.eos_token_id
PROMPTS = [TOKENIZER.encode(each["request"]) for each in tiny_model.REQUESTS.values()][:3]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
GRAMMARS = [
    mw.compile(source, VOCABULARY)
    for source in (mw.JsonSchema(SCHEMA), mw.Regex("(yes|no), [0-9]{3}"), mw.Choice(["Paris", "Parma"]))
]


def written(processors: list[Any], prompt: list[int] = PROMPTS[0], **options: Any) -> list[int]:
    return [
        part.token
        for part in stream_generate(
            MODEL, TOKENIZER, prompt, max_tokens=60, logits_processors=processors, **options
        )
    ]


def check(grammar: Any, output: list[int]) -> None:
    matcher = grammar.matcher()
    assert matcher.accept_tokens(output) == len(output)
    assert matcher.is_terminated


@pytest.mark.parametrize("temperature", [0.0, 1.5])
def test_one_processor_for_one_call_after_another(temperature: float) -> None:
    mx.random.seed(0)
    for grammar in GRAMMARS:
        processor = LogitsProcessor(grammar)
        for prompt in (*PROMPTS, PROMPTS[0], PROMPTS[0]):
            check(grammar, written([processor], prompt, sampler=make_sampler(temp=temperature)))
            processor.check()


def test_the_text() -> None:
    text = generate(
        MODEL, TOKENIZER, PROMPTS[0], max_tokens=60, logits_processors=[LogitsProcessor(GRAMMARS[0])]
    )
    assert json.loads(text)["a"] in ("x", "y")


def test_long_prompts_come_in_parts() -> None:
    check(GRAMMARS[1], written([LogitsProcessor(GRAMMARS[1])], PROMPTS[0] * 5, prefill_step_size=16))


def test_a_batch_with_one_grammar_for_each_sequence() -> None:
    processors = [LogitsProcessor(grammar) for grammar in GRAMMARS]
    generator = BatchGenerator(MODEL, stop_tokens=[[EOS]], max_tokens=60)
    names = generator.insert(PROMPTS, logits_processors=[[processor] for processor in processors])
    found: dict[int, list[int]] = {name: [] for name in names}
    while responses := generator.next_generated():
        for response in responses:
            found[response.uid].append(response.token)
    for grammar, processor, name in zip(GRAMMARS, processors, names, strict=True):
        processor.check()
        check(grammar, found[name])


def test_one_processor_for_a_batch() -> None:
    """With a prompt that comes twice."""
    processor = LogitsProcessor(GRAMMARS[1])
    prompts = [*PROMPTS, PROMPTS[0]]
    mx.random.seed(0)
    answer = batch_generate(
        MODEL,
        TOKENIZER,
        prompts,
        max_tokens=60,
        logits_processors=[processor],
        sampler=make_sampler(temp=1.5),
    )
    processor.check()
    for text in answer.texts:
        matcher = GRAMMARS[1].matcher()
        assert matcher.accept_bytes(text.encode()) and matcher.is_accepting
    assert len(set(answer.texts)) > 1


def test_drafts_of_another_model_change_nothing() -> None:
    for grammar in GRAMMARS:
        plain = written([LogitsProcessor(grammar)])
        processor = LogitsProcessor(grammar)
        for drafted in (1, 3):
            assert written([processor], draft_model=MODEL, num_draft_tokens=drafted) == plain
            processor.check()


@pytest.mark.parametrize("dtype", [mx.float32, mx.float16, mx.bfloat16])
@pytest.mark.parametrize("rows", [(1,), ()])
def test_logits_of_allowed_tokens_are_as_they_were(dtype: Any, rows: tuple[int, ...]) -> None:
    processor, rng = LogitsProcessor(GRAMMARS[0]), random.Random(0)
    matcher, tokens = GRAMMARS[0].matcher(), list(PROMPTS[0])
    while not matcher.is_terminated:
        logits = mx.random.normal((*rows, len(VOCABULARY))).astype(dtype)
        made = processor(mx.array(tokens), logits)
        assert made.dtype == dtype and made.shape == logits.shape
        row = mw.allocate_token_bitmask(1, len(VOCABULARY))
        matcher.fill_next_token_bitmask(row)
        allowed = np.unpackbits(row.view(np.uint8), bitorder="little")[: len(VOCABULARY)].astype(bool)
        before, after = (np.array(each.astype(mx.float32)).reshape(-1) for each in (logits, made))
        assert np.array_equal(after, np.where(allowed, before, -np.inf))
        tokens.append(rng.choice(np.flatnonzero(allowed).tolist()))
        assert matcher.accept_token(tokens[-1])


def test_a_limit_ends_the_output() -> None:
    several = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "minItems": 9}
    grammar = mw.compile(mw.JsonSchema(several), VOCABULARY, limits=mw.Limits(max_parser_states=3))
    processor = LogitsProcessor(grammar)
    assert written([processor])[-1] == EOS
    with pytest.raises(mw.LimitError, match="max_parser_states"):
        processor.check()
    processor.reset()
    processor.check()


def test_bad_arguments() -> None:
    with pytest.raises(mw.VocabularyError, match="compiled grammar"):
        LogitsProcessor({"type": "object"})
    with pytest.raises(mw.VocabularyError, match="wide"):
        LogitsProcessor(GRAMMARS[0])(mx.array(PROMPTS[0]), mx.zeros((1, 7)))
    with pytest.raises(mw.VocabularyError, match="width"):
        vocabulary(TOKENIZER, object())
