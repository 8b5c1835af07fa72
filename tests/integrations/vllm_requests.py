"""What vLLM's engine does around a back-end, with its real classes and without a model."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import tiny_model
import vllm.v1.structured_output as structured_output
from transformers import AutoTokenizer
from vllm.config import StructuredOutputsConfig
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.v1.request import Request

import maskwright as mw
from maskwright.integrations import vllm as plugin

plugin.register()

WIDTH = 1600
"""Logits of the model: some more than the tokenizer has ids, and a whole number of words."""
TOKENIZER = AutoTokenizer.from_pretrained(tiny_model.TINY)
TOKENIZER.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
EOS = TOKENIZER.eos_token_id
THINK, END_THINK = TOKENIZER.convert_tokens_to_ids(["<think>", "</think>"])


def vocabulary(eos_ids: list[int] | None = None) -> mw.Vocabulary:
    return mw.Vocabulary.from_huggingface(
        TOKENIZER, vocab_size=WIDTH, eos_ids=eos_ids, word_start_mark="keep"
    )


class Engine:
    """The structured outputs of one engine, front-end and core."""

    def __init__(
        self,
        *,
        drafted: int = 0,
        sequences: int = 8,
        width: int = WIDTH,
        tokenizer: Any = TOKENIZER,
        generation_config: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        options.setdefault("backend", plugin.NAME)
        self.tokenizer = tokenizer
        self.model_config = SimpleNamespace(
            skip_tokenizer_init=False,
            is_diffusion=False,
            hf_config=SimpleNamespace(model_type="llama"),
            get_vocab_size=lambda: width,
            try_get_generation_config=lambda: generation_config or {},
        )
        self.generation_config = generation_config or {}
        self.config = StructuredOutputsConfig(**options)
        self.vllm_config = SimpleNamespace(
            parallel_config=SimpleNamespace(distributed_executor_backend=None),
            scheduler_config=SimpleNamespace(max_num_seqs=sequences),
            model_config=self.model_config,
            structured_outputs_config=self.config,
            speculative_config=None,
            num_speculative_tokens=drafted,
        )
        original = structured_output.cached_tokenizer_from_config
        structured_output.cached_tokenizer_from_config = lambda model_config: tokenizer
        try:
            self.manager = structured_output.StructuredOutputManager(self.vllm_config)
        finally:
            structured_output.cached_tokenizer_from_config = original
        self.requests: dict[str, Request] = {}

    def checked(self, given: dict[str, Any] | SamplingParams, **sampling: Any) -> SamplingParams:
        """As the front-end checks it."""
        params = given
        if isinstance(params, dict):
            params = SamplingParams(
                structured_outputs=StructuredOutputsParams(**given), max_tokens=200, **sampling
            )
        params.update_from_generation_config(self.generation_config, self.tokenizer.eos_token_id)
        params._validate_structured_outputs(self.model_config, self.config, self.tokenizer)
        return params

    def add(
        self, given: dict[str, Any] | SamplingParams | None, prompt: tuple[int, ...] = (1,), **sampling: Any
    ) -> Request:
        """As the core takes it up, with its grammar compiled."""
        params = SamplingParams(max_tokens=200) if given is None else self.checked(given, **sampling)
        request = Request(f"request-{len(self.requests)}", list(prompt), params, None)
        self.requests[request.request_id] = request
        self.manager.grammar_init(request)
        held = request.structured_output_request
        while held is not None and not held.is_grammar_ready:
            time.sleep(0.001)
        return request

    def masks(self, *requests: Request, drafts: dict[str, list[int]] | None = None) -> Any:
        """Rows of booleans, in the order of the requests."""
        names = [request.request_id for request in requests]
        return allowed(self.manager.grammar_bitmask(self.requests, names, drafts or {}))

    def accept(self, request: Request, tokens: list[int]) -> bool:
        request.append_output_token_ids(tokens)
        return self.manager.accept_tokens(request, tokens)


def grammar_of(request: Request) -> Any:
    grammar = request.structured_output_request.grammar
    if isinstance(grammar, Exception):
        raise grammar
    return grammar


def allowed(rows: Any) -> Any:
    """A bitmask as booleans."""
    return np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=-1, bitorder="little").astype(bool)
