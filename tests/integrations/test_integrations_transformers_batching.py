"""Grammars in the continuous batching of transformers, with a real (tiny) model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="runs a model")
pytest.importorskip("transformers", reason="runs a model")
pytest.importorskip(
    "transformers.generation.continuous_batching.cb_logits_processors",
    reason="this transformers has no continuous batching with processors",
)

import tiny_model
import torch
from devices import DEVICE
from transformers import AutoModelForCausalLM, AutoTokenizer, ContinuousBatchingConfig, GenerationConfig

import maskwright as mw
from maskwright.integrations.transformers_batching import GrammarProcessor, add_grammars

TOKENIZER = AutoTokenizer.from_pretrained(tiny_model.TINY)
VOCABULARY = mw.Vocabulary.from_huggingface(TOKENIZER)
EOS = TOKENIZER.eos_token_id
SIZES = {
    name: size
    for name, size in {"num_blocks": 64, "page_size": 16, "max_batch_tokens": 128}.items()
    if name in ContinuousBatchingConfig.__dataclass_fields__  # older ones call a page a block
}
PROMPTS = [TOKENIZER.encode(each["request"]) for each in tiny_model.REQUESTS.values()][:3]
SOURCES = [
    mw.JsonSchema({"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}, "required": ["a", "b"], "additionalProperties": False}),
    mw.Regex("(yes|no), [0-9]{3}"),
    mw.Choice(["Paris", "Parma"]),
    mw.Regex("q{20}"),
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> Any:
    torch.manual_seed(0)
    return AutoModelForCausalLM.from_pretrained(tiny_model.TINY).to(DEVICE)


class Server:
    """A manager that runs, with grammars."""

    def __init__(
        self, model: Any, *, masks: int = 64, batching: dict[str, Any] | None = None, **generation: Any
    ) -> None:
        generation = {
            "do_sample": False,
            "max_new_tokens": 40,
            "eos_token_id": EOS,
            "pad_token_id": 0,
            **generation,
        }
        self.manager = model.init_continuous_batching(
            generation_config=GenerationConfig(**generation),
            continuous_batching_config=ContinuousBatchingConfig(
                use_async_batching=False,
                **SIZES,
                **(batching or {}),
            ),
        )
        self.processor = add_grammars(self.manager, VOCABULARY, masks=masks)
        self.manager.start()

    def outputs(self, requests: list[tuple[list[int], Any]]) -> list[list[int]]:
        names = [
            self.manager.add_request(prompt, **({} if grammar is None else {"grammar": grammar}))
            for prompt, grammar in requests
        ]
        found: dict[str, list[int]] = {}
        while len(found) < len(names):
            result = self.manager.get_result(timeout=60)
            assert result is not None, "the manager ended"
            if result.is_finished():
                assert result.error is None
                found[result.request_id] = result.generated_tokens
        return [found[name] for name in names]


@pytest.fixture
def serve(model: Any) -> Iterator[Any]:
    servers = []

    def start(**options: Any) -> Server:
        servers.append(Server(model, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.manager.stop(block=True)


def check(grammar: Any, output: list[int]) -> None:
    matcher = grammar.matcher()
    assert matcher.accept_tokens(output) == len(output)
    assert matcher.is_terminated


@pytest.mark.slow
@pytest.mark.parametrize(
    "generation", [{}, {"do_sample": True, "temperature": 1.3, "top_k": 5, "top_p": 0.9}]
)
def test_each_request_has_its_own(serve: Any, generation: dict[str, Any]) -> None:
    server = serve(**generation)
    grammars = [mw.compile(source, VOCABULARY) for source in SOURCES]
    requests = [(prompt, grammar) for prompt in PROMPTS for grammar in grammars]
    for (_, grammar), output in zip(requests, server.outputs(requests), strict=True):
        check(grammar, output)
    assert not server.processor.errors


def test_requests_without_a_grammar_are_as_they_were(serve: Any, model: Any) -> None:
    plain = model.generate(
        torch.tensor(PROMPTS[:1], device=DEVICE),
        do_sample=False,
        max_new_tokens=40,
        eos_token_id=EOS,
        pad_token_id=0,
    )[0, len(PROMPTS[0]) :].tolist()
    grammar = mw.compile(SOURCES[1], VOCABULARY)
    free, held = serve().outputs([(PROMPTS[0], None), (PROMPTS[0], grammar)])
    assert free == plain
    check(grammar, held)


def test_greedy_outputs_are_those_of_generate(serve: Any, model: Any) -> None:
    from maskwright.hf import LogitsProcessor

    grammars = [mw.compile(source, VOCABULARY) for source in SOURCES]
    # In front: a model that is being served may not do for generate.
    expected = [
        model.generate(
            torch.tensor(PROMPTS[:1], device=DEVICE), do_sample=False, max_new_tokens=40, eos_token_id=EOS, pad_token_id=0,
            logits_processor=[LogitsProcessor(grammar)],
        )[0, len(PROMPTS[0]) :].tolist()
        for grammar in grammars
    ]  # fmt: skip
    assert serve().outputs([(PROMPTS[0], grammar) for grammar in grammars]) == expected


def test_masks_are_sent_once(serve: Any) -> None:
    server = serve()
    grammar = mw.compile(SOURCES[3], VOCABULARY)
    server.outputs([(PROMPTS[0], grammar)])
    sent = server.processor._table.sent
    assert 0 < sent < 64
    server.outputs([(prompt, grammar) for prompt in PROMPTS])
    assert server.processor._table.sent == sent


def test_what_made_room_goes_on_where_it_was() -> None:
    """transformers moves what was written into the prompt then."""
    processor = GrammarProcessor(mw.MaskTable(len(VOCABULARY), 8, "cpu"), VOCABULARY)
    grammar = mw.compile(SOURCES[1], VOCABULARY)
    from transformers.generation.continuous_batching.requests import FutureRequestState, RequestState

    state = RequestState("r", [5, 6, 7], logit_processor_kwargs={"grammar": grammar}, max_new_tokens=50)
    written = TOKENIZER.encode("yes, 1", add_special_tokens=False)
    matcher = grammar.matcher()
    for token in written:
        state.generated_tokens.append(token)
        matcher.accept_token(token)
        if len(state.generated_tokens) % 2 == 0:
            state = state.create_equivalent_initial_request()
        row = processor.prepare_tensor_args([FutureRequestState(state, True, {}, 1)])
        mask = processor._table.masks[row.item()].numpy()
        assert np.array_equal(mask, np.asarray(matcher.next_token_bitmask()))
    assert state._true_initial_tokens == 3 and not processor.errors


def test_a_request_that_fails_ends_alone(serve: Any) -> None:
    server = serve()
    other = mw.Vocabulary.from_huggingface(TOKENIZER, vocab_size=len(VOCABULARY) + 32)
    foreign = mw.compile(SOURCES[1], other)
    several = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}},
    }
    small = mw.compile(mw.JsonSchema(several), VOCABULARY, limits=mw.Limits(max_parser_states=3))
    good = mw.compile(SOURCES[1], VOCABULARY)
    outputs = server.outputs([(PROMPTS[0], each) for each in (good, foreign, small, good)])
    check(good, outputs[0])
    assert outputs[3] == outputs[0]
    assert outputs[1] == [EOS]
    assert outputs[2][-1] == EOS and len(outputs[2]) < 20
    assert small.matcher().accept_tokens(outputs[2][:-1]) == len(outputs[2]) - 1
    assert sorted(type(error).__name__ for error in server.processor.errors.values()) == [
        "LimitError",
        "VocabularyError",
    ]


def test_what_add_request_refuses(serve: Any) -> None:
    server = serve()
    name = server.manager.add_request(PROMPTS[0], grammar={"type": "object"})
    result = server.manager.get_result(name, timeout=60)
    assert "grammar" in result.error and "CompiledGrammar" in result.error


def test_what_add_grammars_refuses(model: Any, serve: Any) -> None:
    server = serve()
    with pytest.raises(mw.MaskwrightError, match="before"):
        add_grammars(server.manager, VOCABULARY)
    server.manager.stop(block=True)
    with pytest.raises(mw.MaskwrightError, match="already"):
        add_grammars(server.manager, VOCABULARY)
    config = ContinuousBatchingConfig(**SIZES)
    manager = model.init_continuous_batching(GenerationConfig(), config)
    wide = mw.Vocabulary.from_huggingface(TOKENIZER, vocab_size=len(VOCABULARY) + 1)
    with pytest.raises(mw.VocabularyError, match="wide"):
        add_grammars(manager, wide)
    manager.continuous_batching_config.use_async_batching = True
    with pytest.raises(mw.MaskwrightError, match="use_async_batching=False"):
        add_grammars(manager, VOCABULARY)
