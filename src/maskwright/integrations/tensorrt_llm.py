"""TensorRT-LLM: a logits post-processor by its documented signature (``docs/engines.md``).

The signature is that of ``tensorrt_llm.sampling_params.LogitsProcessor``, which any callable may have; the package is not imported.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from typing import Any

import numpy as np

import maskwright as mw
from maskwright.integrations.following import Followers, checked_width

__all__ = ["LogitsProcessor"]

_REQUESTS_KEPT = 4096
"""Requests that one processor follows at a time; TensorRT-LLM does not tell when one ends."""


class LogitsProcessor:
    """Keeps the outputs of requests in a language: ``SamplingParams(logits_processor=LogitsProcessor(grammar))``.

    ``grammar``: compiled for the vocabulary of the model, as wide as its logits.  One object serves any number of requests, in any
    order, and beams.  It can be pickled, as TensorRT-LLM does for its workers; what arrives has no state.

    Where no mask can be computed (a limit), only the ends are allowed: the request ends, and the log and ``errors`` say why.
    """

    def __init__(self, grammar: Any) -> None:
        Followers(grammar)  # raises for what is no grammar
        self._grammar = grammar
        self._forget()

    def _forget(self) -> None:
        self._requests: OrderedDict[int, _Request] = OrderedDict()
        self.errors: OrderedDict[int, mw.MaskwrightError] = OrderedDict()
        """Why requests had to end, by their ids; the latest of them."""

    def __call__(
        self,
        req_id: int,
        logits: Any,
        token_ids: list[list[int]],
        stream_ptr: int | None,
        client_id: int | None,
    ) -> None:
        """Set the logits of disallowed tokens to minus infinity, in place.

        ``logits``: ``[..., beams, V]``.  ``token_ids``: for each beam, all its tokens so far, the prompt included.
        Raises ``VocabularyError`` when the logits are not as wide as the vocabulary.
        """
        checked_width(self._grammar.vocabulary, logits.shape[-1])
        rows = logits.reshape(-1, logits.shape[-1]) if logits.is_contiguous() else None
        if rows is None or len(rows) != len(token_ids):
            raise mw.MaskwrightError(
                f"logits of one request are contiguous and have a row for each of {len(token_ids)} beams, not the shape {list(logits.shape)}"
            )
        request = self._requests.pop(req_id, None)
        if request is None or not request.continues(token_ids):
            request = _Request(self._grammar, token_ids[0], len(token_ids))
        self._requests[req_id] = request
        while len(self._requests) > _REQUESTS_KEPT:
            self._requests.popitem(last=False)
        masks = np.stack([request.followers.mask(np.array(ids, dtype=np.int64)) for ids in token_ids])
        if request.followers.error is not None:
            self.errors[req_id] = request.followers.error
            while len(self.errors) > _REQUESTS_KEPT:
                self.errors.popitem(last=False)
        with _on_stream(logits, stream_ptr):
            mw.apply_token_bitmask_inplace(rows, masks)

    def __getstate__(self) -> dict[str, Any]:
        return {"_grammar": self._grammar}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._grammar = state["_grammar"]
        self._forget()


class _Request:
    """One request, whose beams come from any of the last step's."""

    def __init__(self, grammar: Any, prompt: list[int], beams: int) -> None:
        self._prompt = list(prompt)
        self.followers = Followers(grammar, len(prompt), most=2 * beams)

    def continues(self, token_ids: list[list[int]]) -> bool:
        """Whether these can be later tokens of this request."""
        return all(ids[: len(self._prompt)] == self._prompt for ids in token_ids)


def _on_stream(logits: Any, stream_ptr: int | None) -> Any:
    if stream_ptr is None or not logits.is_cuda:
        return contextlib.nullcontext()
    import torch

    stream: Any = torch.cuda.ExternalStream
    return torch.cuda.stream(stream(stream_ptr))
