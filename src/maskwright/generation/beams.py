"""Beam search, by transformers' own, kept inside the grammar and the token budget."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from transformers import GenerationConfig

from maskwright.compiling.compiler import CompiledGrammar
from maskwright.generation.encoder_decoder import decoder_start
from maskwright.generation.logits_processor import LogitsProcessor


class _InTime(LogitsProcessor):
    """Masks, and leaves only those of the likeliest tokens behind which the budget suffices.

    Beam search looks at the ``2 · beams`` likeliest tokens of each beam, so no more need to be looked for.  ``lock``: held
    by the search, and not while this works.  ``check``: raises where the search is to end.
    """

    def __init__(
        self,
        grammar: CompiledGrammar,
        prompt_length: int,
        room: int,
        beams: int,
        lock: Any,
        check: Callable[[], None],
    ) -> None:
        super().__init__(grammar, prompt_length=prompt_length)
        self.room = room
        self.beams = beams
        self.lock = lock
        self.check = check
        self.calls = 0

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        self.lock.release()
        try:
            self.check()
            return self._in_time(input_ids, scores)
        finally:
            self.lock.acquire()

    def _in_time(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        masked = super().__call__(input_ids, scores)
        left = self.room - (input_ids.shape[1] - int(self._prompt_length or 0))
        ids = input_ids.detach().cpu().numpy().astype("int64", copy=False)
        kept = torch.full_like(masked, float("-inf"))
        for row, matcher in enumerate(self._follow(ids)):
            if matcher is not None:
                for token in self._fitting(matcher, masked[row], left):
                    kept[row, token] = masked[row, token]
        return kept

    def _fitting(self, matcher: Any, scores: torch.Tensor, left: int) -> list[int]:
        found: list[int] = []
        looked = 0
        # More and more of the likeliest, until enough fit; the next token of the shortest completion always does.
        while len(found) < 2 * self.beams and looked < len(scores):
            most = min(max(8 * self.beams, 4 * looked), len(scores))
            values, order = scores.topk(most)
            for score, token in zip(values[looked:].tolist(), order[looked:].tolist(), strict=True):
                if score == float("-inf"):
                    return found
                after = matcher.fork()
                if matcher.is_terminated or (
                    after.accept_token(token)
                    and (after.is_terminated or len(after.shortest_completion()) < left - 1)
                ):
                    found.append(token)
                    if len(found) == 2 * self.beams:
                        break
            looked = most
        return found


def beam_search(
    model: Any,
    prompt: list[int],
    grammar: CompiledGrammar,
    room: int,
    beams: int,
    count: int,
    pad: int,
    *,
    lock: Any,
    check: Callable[[], None],
) -> tuple[list[list[int]], int, float]:
    """The ``count`` best outputs of a search with so many beams (token ids without EOS), the forward passes that it
    took, and the seconds spent on masks.  Different texts come before the same text in other tokens, and where the search
    finds fewer than ``count``, outputs come again: callers count on so many for each prompt.

    ``room``: the tokens of an output, EOS included; the shortest one must fit.  ``lock``: held during each forward pass.
    ``check``: called behind each; what it raises ends the search.
    """
    encodes = bool(model.config.is_encoder_decoder)
    processor = _InTime(grammar, 1 if encodes else len(prompt), room, beams, lock, check)
    ids = torch.tensor([prompt], device=model.device)
    options: dict[str, Any] = {}
    if "attention_mask" in inspect.signature(model.forward).parameters:
        options["attention_mask"] = torch.ones_like(ids)
    config = GenerationConfig(
        do_sample=False,
        num_beams=beams,
        num_return_sequences=beams,
        max_new_tokens=room,
        eos_token_id=list(grammar.vocabulary.eos_ids),
        pad_token_id=pad,
        decoder_start_token_id=decoder_start(model) if encodes else None,
    )
    # What a config leaves open, generate takes from that of the model, which is left as it is: a penalty, say.
    searching = copy.copy(model)
    vars(searching)["generation_config"] = config
    with lock:
        output = searching.generate(ids, generation_config=config, logits_processor=[processor], **options)
    written = output[:, (1 if encodes else len(prompt)) :].tolist()
    ends = set(grammar.vocabulary.eos_ids)
    first: dict[bytes, list[int]] = {}
    again: list[list[int]] = []
    for row in written:
        end = next((at for at, token in enumerate(row) if token in ends), len(row))
        text = grammar.vocabulary.decode(row[:end])
        if text in first:
            again.append(row[:end])
        else:
            first[text] = row[:end]
    return [*first.values(), *again][:count], processor.calls, processor.mask_seconds
