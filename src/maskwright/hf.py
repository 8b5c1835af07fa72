"""A logits processor for ``generate`` of Hugging Face transformers.

``generate`` does not tell a processor when a generation begins, which rows are finished, or how
beams were permuted, and assisted decoding goes back and forth.  So the state is a function of
the tokens of a row alone: matchers are kept by generated prefix, and a row's matcher is that of
its longest known prefix, advanced by what is missing.
"""

from __future__ import annotations

import time
import warnings
from array import array
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from transformers import LogitsProcessor as _Base

from maskwright._core import Matcher
from maskwright.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from maskwright.compiler import CompiledGrammar
from maskwright.errors import BitmaskError, VocabularyError

_LOOK_BACK = 64
"""How many tokens back a known prefix is looked for before a row is read from its start."""
_KNOWN_PER_ROW = 256
"""Prefixes remembered for each row."""


class LogitsProcessor(_Base):
    """Restricts ``generate`` to a grammar, or to one grammar a prompt.

    Works with greedy search, sampling, beams, ``num_return_sequences``, batches, assisted and prompt-lookup
    decoding.  A list of grammars is spread evenly over the rows, in order.  ``prompt_length``: columns of
    ``input_ids`` that belong to the prompt (default: those of the first call).  One processor may serve
    several ``generate`` calls; ``reset`` makes the next call a new generation for certain.

    Raises ``VocabularyError`` when the logits do not have the vocabulary's width, ``BitmaskError`` when the
    rows cannot be spread over the grammars.  A prefix that the grammar refuses (beams may carry
    such rows at a score of minus infinity) is left as it is.
    """

    supports_continuous_batching = False

    def __init__(
        self, grammar: CompiledGrammar | Sequence[CompiledGrammar], *, prompt_length: int | None = None
    ) -> None:
        self.grammars = [grammar] if isinstance(grammar, CompiledGrammar) else list(grammar)
        if not self.grammars:
            raise BitmaskError("a logits processor needs at least one grammar")
        sizes = {g.vocabulary.size for g in self.grammars}
        if len(sizes) > 1:
            raise VocabularyError(f"the grammars have vocabularies of different sizes: {sorted(sizes)}")
        self.vocab_size = sizes.pop()
        self.mask_seconds = 0.0
        """Time spent on advancing matchers and filling masks so far, in seconds."""
        self._given_prompt_length = prompt_length
        self._warned = False
        self.reset()

    def reset(self) -> None:
        """Forget all prefixes: the next call begins a new generation."""
        self._prompt: torch.Tensor | None = None
        # (grammar, bytes of the generated ids) -> matcher; None: refused by the grammar
        self._known: OrderedDict[tuple[int, bytes], Matcher | None] = OrderedDict()

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """``input_ids`` [rows, length], ``scores`` [rows, V]; the scores of disallowed tokens become -inf."""
        if scores.shape[-1] != self.vocab_size:
            raise VocabularyError(
                f"the model has {scores.shape[-1]} logits, the vocabulary {self.vocab_size} ids; build it with "
                f"Vocabulary.from_huggingface(tokenizer, vocab_size={scores.shape[-1]})"
            )
        started = time.perf_counter()
        rows = scores.shape[0]
        if rows % len(self.grammars):
            raise BitmaskError(f"{rows} rows cannot be spread over {len(self.grammars)} grammars")
        generated = self._generated(input_ids)
        bitmask = allocate_token_bitmask(rows, self.vocab_size)
        for row in range(rows):
            matcher = self._matcher(row // (rows // len(self.grammars)), generated[row])
            if matcher is not None:
                matcher.fill_next_token_bitmask(bitmask, row)
        while len(self._known) > _KNOWN_PER_ROW * rows:
            self._known.popitem(last=False)
        self.mask_seconds += time.perf_counter() - started
        return self._apply(scores, bitmask)

    def _apply(self, scores: torch.Tensor, bitmask: Any) -> torch.Tensor:
        masked = scores.clone()
        apply_token_bitmask_inplace(masked, bitmask)
        empty = torch.isneginf(masked.amax(dim=-1))
        if bool(empty.any()):
            # Other processors forbade all that the grammar allows: the grammar has the last word.
            ours = torch.zeros_like(scores)
            apply_token_bitmask_inplace(ours, bitmask)
            masked[empty] = ours[empty]
            if not self._warned:
                self._warned = True
                warnings.warn(
                    "other logits processors forbid every token that the grammar allows (min_new_tokens, "
                    "bad_words_ids, ...?); the grammar was followed",
                    stacklevel=3,
                )
        return masked

    def _generated(self, input_ids: torch.Tensor) -> list[list[int]]:
        # A new generation is one with fewer columns than the prompt, other rows or another prompt.
        prompt = self._prompt
        new = (
            prompt is None
            or prompt.shape[0] != input_ids.shape[0]
            or input_ids.shape[1] < prompt.shape[1]
            or not torch.equal(input_ids[:, : prompt.shape[1]], prompt)
        )
        if new:
            length = (
                self._given_prompt_length if self._given_prompt_length is not None else input_ids.shape[1]
            )
            self.reset()
            self._prompt = prompt = input_ids[:, :length].clone()
        assert prompt is not None
        generated: list[list[int]] = input_ids[:, prompt.shape[1] :].tolist()
        if not new and self._given_prompt_length is None and self._continues_after_end(generated):
            self.reset()
            self._prompt = input_ids.clone()
            return [[] for _ in generated]
        return generated

    def _continues_after_end(self, generated: list[list[int]]) -> bool:
        # Several unknown tokens behind a finished text: the old output has become a new prompt.
        for row, ids in enumerate(generated):
            grammar = row // (len(generated) // len(self.grammars))
            if len(ids) < 2 or any(_key(grammar, ids[:n]) in self._known for n in (len(ids), len(ids) - 1)):
                return False
            matcher = self.grammars[grammar].matcher()
            matcher.accept_tokens(ids)
            if not matcher.is_terminated or len(matcher.accepted_tokens) + 1 >= len(ids):
                return False
        return bool(generated)

    def _matcher(self, grammar: int, ids: list[int]) -> Matcher | None:
        key = _key(grammar, ids)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        start = 0
        matcher: Matcher | None = None
        for length in range(len(ids) - 1, max(len(ids) - 1 - _LOOK_BACK, -1), -1):
            ancestor = _key(grammar, ids[:length])
            if ancestor in self._known:
                matcher, start = self._known[ancestor], length
                if matcher is None:
                    self._known[key] = None
                    return None
                matcher = matcher.fork()
                break
        if matcher is None:
            matcher = self.grammars[grammar].matcher()
        for token in ids[start:]:
            # What follows EOS is padding.
            if matcher.is_terminated:
                break
            if not 0 <= token < self.vocab_size or not matcher.accept_token(token):
                matcher = None
                break
        self._known[key] = matcher
        return matcher


def _key(grammar: int, ids: list[int]) -> tuple[int, bytes]:
    return grammar, array("i", ids).tobytes()
