"""What SGLang's scheduler does around a grammar back-end, with its real classes and without a model or a GPU."""

from __future__ import annotations

import importlib.machinery
import sys
import time
import types
from array import array
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import tiny_model
import torch
from transformers import AutoTokenizer
from transformers.utils import is_torchvision_available

if not is_torchvision_available():
    # SGLang imports it for images on its way to the classes below; what is on the package index does not fit a torch for the CPU.
    for name in ("torchvision", "torchvision.transforms", "torchvision.transforms.functional"):
        module = types.ModuleType(name)
        module.__spec__ = importlib.machinery.ModuleSpec(name, None, is_package=True)
        module.__path__ = []
        module.__getattr__ = lambda attribute: type(attribute, (), {})  # type: ignore[method-assign]
        sys.modules[name] = module

from sglang.srt.constrained.base_grammar_backend import BaseGrammarObject
from sglang.srt.constrained.grammar_manager import GrammarManager
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.managers.scheduler_components.batch_result_processor import SchedulerBatchResultProcessor
from sglang.srt.runtime_context import SpawnRanks, publish, reset_context
from sglang.srt.sampling.sampling_batch_info import SamplingBatchInfo
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.server_args import ServerArgs
from sglang.srt.speculative.spec_utils import traverse_tree

import maskwright as mw
from maskwright.integrations import sglang as plugin

WIDTH = 1600
TOKENIZER = AutoTokenizer.from_pretrained(tiny_model.TINY)
TOKENIZER.add_special_tokens({"additional_special_tokens": ["<think>", "</think>"]})
TOKENIZER.additional_stop_token_ids = None
EOS = TOKENIZER.eos_token_id
END_THINK = TOKENIZER.convert_tokens_to_ids("</think>")


def vocabulary(eos_ids: list[int] | None = None) -> mw.Vocabulary:
    return mw.Vocabulary.from_huggingface(
        TOKENIZER, vocab_size=WIDTH, eos_ids=eos_ids, word_start_mark="keep"
    )


def ids(text: str) -> list[int]:
    return TOKENIZER.encode(text, add_special_tokens=False)


class Scheduler:
    """What of SGLang's scheduler is about grammars: its manager, its masks, and how it takes tokens up."""

    def __init__(
        self,
        *,
        tokenizer: Any = TOKENIZER,
        eos_token_ids: set[int] | None = None,
        speculative: bool = False,
        **options: Any,
    ) -> None:
        options.setdefault("grammar_backend", plugin.NAME)
        if speculative:
            options["speculative_algorithm"] = "NGRAM"
        reset_context()
        arguments = ServerArgs(model_path="dummy", device="cuda" if speculative else "cpu", **options)
        publish(arguments, role="test", ranks=SpawnRanks(world_rank=0, dp_rank=None))
        self.tokenizer = tokenizer
        self.eos_token_ids = {EOS} if eos_token_ids is None else eos_token_ids
        self.manager = GrammarManager(
            SimpleNamespace(
                server_args=arguments,
                tokenizer=tokenizer,
                model_config=SimpleNamespace(
                    vocab_size=WIDTH, hf_eos_token_id=self.eos_token_ids, think_end_ids=[END_THINK]
                ),
                dp_tp_cpu_group=None,
                dp_tp_group=SimpleNamespace(world_size=1, first_rank=0, is_first_rank=True),
                pp_group=None,
            )
        )
        self.backend = self.manager.grammar_backend

    def add(self, *, reasoning: bool = False, **grammar: Any) -> Req:
        """A request that waits, with its grammar compiled; finished where it was refused."""
        params = SamplingParams(max_new_tokens=200, **grammar)
        params.normalize(None)
        request = Req(
            f"request-{time.monotonic_ns()}",
            "",
            array("q", [1]),
            params,
            eos_token_ids=self.eos_token_ids,
            vocab_size=WIDTH,
            require_reasoning=reasoning,
        )
        request.tokenizer = self.tokenizer
        self.manager.process_req_with_grammar(request)
        while self.manager.has_waiting_grammars():
            self.manager.get_ready_grammar_requests()
        request.update_finish_state(0)
        return request

    def masks(self, *requests: Req) -> Any:
        """Rows of booleans, as the sampler gets them."""
        batch = SimpleNamespace(
            grammars=[request.grammar for request in requests],
            temperatures=torch.zeros(len(requests)),
            vocab_size=WIDTH,
            device="cpu",
        )
        SamplingBatchInfo.update_regex_vocab_mask(batch)
        logits = torch.zeros((len(requests), WIDTH))
        batch.grammar_mask.apply(logits)
        bits = allowed(batch.grammar_mask.vocab_mask)
        assert (logits.isneginf().numpy() != bits).all()
        return bits

    def take(self, request: Req, tokens: list[int]) -> list[int]:
        """What of the tokens is kept."""
        kept: list[int] = SchedulerBatchResultProcessor._accept_grammar_tokens(None, request, tokens)
        request.output_ids.extend(kept)
        request.update_finish_state(len(kept))
        if request.grammar is not None:
            request.grammar.finished = request.finished()
        return kept


def tree_masks(grammar: BaseGrammarObject, tokens: list[int], parents: list[int]) -> Any:
    """Rows of booleans for the nodes of a draft tree; node 0 is what was accepted last."""
    children: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        children.setdefault(parent, []).append(node)
    first = torch.tensor([children.get(node, [-1])[0] for node in range(len(tokens))])
    sibling = torch.full((len(tokens),), -1)
    for group in children.values():
        for node, following in pairwise(group):
            sibling[node] = following
    mask = grammar.allocate_vocab_mask(vocab_size=WIDTH, batch_size=len(tokens), device="cpu")
    traverse_tree(first, sibling, torch.tensor(tokens), grammar, mask, vocab_size=WIDTH)
    return allowed(mask)


def allowed(rows: Any) -> Any:
    """A bitmask as booleans."""
    return np.unpackbits(np.ascontiguousarray(rows).view(np.uint8), axis=-1, bitorder="little").astype(bool)
