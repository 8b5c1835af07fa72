"""The logits post-processor of TensorRT-LLM, called by its documented signature: the package needs a GPU even to be imported."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="logits of TensorRT-LLM are tensors")

import torch
import toys

import maskwright as mw
from maskwright.integrations import tensorrt_llm
from maskwright.integrations.tensorrt_llm import LogitsProcessor

VOCABULARY = toys.byte_vocabulary()
SIZE, EOS = VOCABULARY.vocab_size, VOCABULARY.eos_ids[0]
PROMPT = list(b"Name a city: ")
GRAMMAR = mw.compile_regex("(Paris|Parma|Pisa), [0-9]{2}", VOCABULARY)


def allowed(
    processor: LogitsProcessor, request: int, beams: list[list[int]], shape: Any = None
) -> list[set[int]]:
    """What each beam may write next, and that other logits are as they were."""
    logits = torch.randn(shape or (1, len(beams), SIZE))
    before = logits.clone()
    assert processor(request, logits, beams, None, None) is None
    kept = ~logits.isneginf()
    assert torch.equal(logits[kept], before[kept])
    return [set(row.nonzero().flatten().tolist()) for row in kept.reshape(-1, SIZE)]


def expected(text: bytes, grammar: Any = GRAMMAR) -> set[int]:
    matcher = grammar.matcher()
    assert matcher.accept_bytes(text)
    row = mw.allocate_token_bitmask(1, SIZE)
    matcher.fill_next_token_bitmask(row)
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def test_requests_in_any_order() -> None:
    processor, rng = LogitsProcessor(GRAMMAR), random.Random(0)
    outputs: dict[int, list[int]] = {request: [] for request in range(20)}
    while outputs:
        request = rng.choice(list(outputs))
        output = outputs[request]
        (row,) = allowed(processor, request, [PROMPT + output])
        assert row == expected(bytes(output))
        token = rng.choice(sorted(row))
        if token == EOS:
            del outputs[request]
        else:
            output.append(token)
    assert not processor.errors


def test_beams_change_places() -> None:
    processor, rng = LogitsProcessor(GRAMMAR), random.Random(1)
    beams: list[list[int]] = [[], [], []]
    for _ in range(6):
        rows = allowed(processor, 7, [PROMPT + beam for beam in beams])
        assert rows == [expected(bytes(beam)) for beam in beams]
        beams = [[*beams[i], rng.choice(sorted(rows[i]))] for i in (rng.randrange(3) for _ in beams)]
    assert len(processor._requests[7].followers._texts) <= 6


@pytest.mark.parametrize("shape", [(1, 1, SIZE), (1, SIZE)])
def test_shapes(shape: Any) -> None:
    assert allowed(LogitsProcessor(GRAMMAR), 1, [PROMPT], shape) == [{ord("P")}]


def test_an_id_that_comes_again_with_another_prompt() -> None:
    processor = LogitsProcessor(GRAMMAR)
    allowed(processor, 1, [PROMPT])
    allowed(processor, 1, [PROMPT + list(b"P")])
    assert allowed(processor, 1, [list(b"Another: ")]) == [{ord("P")}]


def test_the_end() -> None:
    processor = LogitsProcessor(GRAMMAR)
    output: list[int] = []
    for token in [*b"Pisa, 12", EOS, EOS]:
        allowed(processor, 1, [PROMPT + output])
        output.append(token)
    assert allowed(processor, 1, [PROMPT + output]) == [{EOS}] and not processor.errors


def test_a_failure_ends_its_request() -> None:
    several = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    grammar = mw.compile(mw.JsonSchema(several), VOCABULARY, limits=mw.Limits(max_parser_states=3))
    processor, output = LogitsProcessor(grammar), []
    for token in b"[1":
        allowed(processor, 1, [PROMPT + output])
        output.append(token)
    assert allowed(processor, 1, [PROMPT + output]) == [{EOS}]
    assert isinstance(processor.errors[1], mw.LimitError)


def test_a_token_that_is_not_allowed() -> None:
    processor = LogitsProcessor(GRAMMAR)
    allowed(processor, 1, [PROMPT])
    assert allowed(processor, 1, [PROMPT + list(b"x")]) == [{EOS}]
    assert f"token {ord('x')}" in str(processor.errors[1])


def test_it_travels_to_workers() -> None:
    processor = LogitsProcessor(GRAMMAR)
    allowed(processor, 1, [PROMPT])
    copy = pickle.loads(pickle.dumps(processor))
    assert allowed(copy, 1, [PROMPT + list(b"Pa")]) == [{ord("P")}], "it knows no requests yet"


def test_followed_requests_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensorrt_llm, "_REQUESTS_KEPT", 3)
    processor = LogitsProcessor(GRAMMAR)
    for request in range(10):
        allowed(processor, request, [PROMPT])
        allowed(processor, request, [[*PROMPT, 0]])
    assert list(processor._requests) == list(processor.errors) == [7, 8, 9]


def test_bad_arguments() -> None:
    with pytest.raises(mw.VocabularyError, match="compiled grammar"):
        LogitsProcessor({"type": "object"})
    processor = LogitsProcessor(GRAMMAR)
    with pytest.raises(mw.VocabularyError, match="wide"):
        processor(1, torch.zeros(1, 1, SIZE + 1), [PROMPT], None, None)
    with pytest.raises(mw.MaskwrightError, match="2 beams"):
        processor(1, torch.zeros(1, 1, SIZE), [PROMPT, PROMPT], None, None)
    with pytest.raises(mw.MaskwrightError, match="contiguous"):
        processor(1, torch.zeros(1, SIZE, 2).transpose(1, 2), [PROMPT, PROMPT], None, None)
