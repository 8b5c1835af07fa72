"""Continuous batching of transformers, with a grammar for each request (``docs/engines.md``)."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from transformers.generation.continuous_batching.cb_logits_processors import ContinuousBatchingLogitsProcessor

import maskwright as mw
from maskwright.integrations.following import Follower
from maskwright.integrations.requests import allow

__all__ = ["GrammarProcessor", "add_grammars"]

_REQUESTS_KEPT = 4096
"""Requests that are followed at a time; transformers does not tell processors when one ends."""


def add_grammars(manager: Any, vocabulary: mw.Vocabulary, *, masks: int = 1024) -> GrammarProcessor:
    """Let requests of a ``ContinuousBatchingManager`` have grammars: ``manager.add_request(ids, grammar=compiled)``.

    Call it before ``manager.start()``.  Requests without a grammar are as they were.  ``masks``: how many masks stay on the device
    (``mw.MaskTable``), at least one for each sequence of a batch.  Raises ``MaskwrightError`` with asynchronous batching, which prepares a
    step before the token of the last one is known, when the manager runs, and when it has grammars already; ``VocabularyError`` when the
    vocabulary is not as wide as the logits.
    """
    if manager.is_running():
        raise mw.MaskwrightError("add_grammars comes before manager.start()")
    if manager.continuous_batching_config.use_async_batching:
        raise mw.MaskwrightError(
            "asynchronous batching prepares a step before the last token is known, and a mask depends on it: "
            "use ContinuousBatchingConfig(use_async_batching=False)"
        )
    width = manager.model.config.get_text_config().vocab_size
    if len(vocabulary) != width:
        raise mw.VocabularyError(
            f"the model's logits are {width} wide, the vocabulary has {len(vocabulary)} ids; build it with vocab_size={width}"
        )
    processors = manager.logit_processor
    if any(isinstance(each, GrammarProcessor) for each in processors.logits_processor):
        raise mw.MaskwrightError("this manager has grammars already")
    added = GrammarProcessor(mw.MaskTable(len(vocabulary), masks, manager.model.device), vocabulary)
    # In front: what is cut to the likeliest tokens later has to be cut from the allowed ones.
    processors.logits_processor.insert(0, added)
    processors.tensors_required += 1
    processors.do_processing = True
    processors.supported_keys.update(added.supported_kwargs)
    return added


class GrammarProcessor(ContinuousBatchingLogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Masks by request; made by ``add_grammars``.

    What is raised while a batch is prepared would end all requests.  So nothing is: a request whose mask cannot be computed (a limit), or
    whose grammar is of another vocabulary, may only end; ``errors`` has why, by the id of the request, for the latest of them.
    """

    supported_kwargs = {"grammar": mw.CompiledGrammar}  # noqa: RUF012 - as its class has it
    ignored_kwargs = ()

    def __init__(self, table: mw.MaskTable, vocabulary: mw.Vocabulary) -> None:
        self.errors: OrderedDict[str, mw.MaskwrightError] = OrderedDict()
        self._table = table
        self._vocabulary = vocabulary
        self._followers: OrderedDict[str, Follower] = OrderedDict()

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """The mask that allows everything."""
        int32_tensor.fill_(0)

    def prepare_tensor_args(self, requests_with_new_token: list[Any]) -> torch.Tensor:
        """int32 [requests], on the CPU: which mask of the table each has."""
        return self._table.rows([self._mask(future.state) for future in requests_with_new_token])

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """``scores`` [n, V] with minus infinity where a token is not allowed; changed in place."""
        self._table.apply(scores, tensor_arg[: len(scores)])
        return scores

    def _mask(self, state: Any) -> Any:
        grammar = state.logit_processor_kwargs.get("grammar")
        if grammar is None:
            return None
        name = state.request_id
        follower = self._followers.pop(name, None)
        if follower is None or follower.compiled is not grammar:
            follower = Follower(grammar, 0)
        self._followers[name] = follower
        while len(self._followers) > _REQUESTS_KEPT:
            self._followers.popitem(last=False)
        mask = self._foreign(grammar, follower)
        if mask is None:
            # Where a request had to make room for others, what it wrote has become a part of its prompt.
            before = state.initial_tokens[state._true_initial_tokens :] if state._true_initial_tokens else []
            mask = follower.mask(np.array([*before, *state.generated_tokens], dtype=np.int64))
        if follower.error is not None:
            self.errors[name] = follower.error
            while len(self.errors) > _REQUESTS_KEPT:
                self.errors.popitem(last=False)
        return mask

    def _foreign(self, grammar: Any, follower: Follower) -> Any:
        if grammar.vocabulary is self._vocabulary:
            return None
        follower.error = mw.VocabularyError(
            "the grammar was compiled for another vocabulary than add_grammars has"
        )
        row = np.zeros((len(self._vocabulary) + 31) // 32, dtype=np.int32)
        allow(row, self._vocabulary.eos_ids)
        return row
