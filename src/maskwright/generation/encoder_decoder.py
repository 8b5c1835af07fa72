"""An encoder-decoder model with one row for each running output: prompts are read by the encoder, once.

Rows run in step: the decoder's positions are often relative to columns, so none may be padding.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, EncoderDecoderCache
from transformers.modeling_outputs import BaseModelOutput

from maskwright.errors import MaskwrightError
from maskwright.generation.model_cache import cache_of, cache_parameter


def decoder_start(model: Any) -> int:
    """The token with which a decoder begins.  Raises ``MaskwrightError`` where the model names none."""
    for config in (model.generation_config, model.config):
        if config.decoder_start_token_id is not None:
            return int(config.decoder_start_token_id)
    raise MaskwrightError(
        "the model names no decoder_start_token_id, with which its decoder begins; set it in generation_config"
    )


class EncoderDecoderRows:
    """As ``KeyValueRows``, for a model with an encoder."""

    flexible = False
    widest = sys.maxsize

    def __init__(self, model: Any) -> None:
        self.model = model
        self.croppable = True
        self._parameters = inspect.signature(model.forward).parameters
        self._takes = cache_parameter(model) or "past_key_values"
        self._start = decoder_start(model)
        self._cache: Any = None
        self._encoded: Any = None
        self._mask: Any = None

    def add(self, prompts: list[list[int]], starts: list[list[int]]) -> list[Any]:
        """New rows, where there are none yet; as ``KeyValueRows.add``."""
        width = max(map(len, prompts))
        device = self.model.device
        ids = torch.tensor([prompt + [0] * (width - len(prompt)) for prompt in prompts], device=device)
        self._mask = torch.tensor(
            [[1] * len(prompt) + [0] * (width - len(prompt)) for prompt in prompts], device=device
        )
        with torch.no_grad():
            encoder = self.model.get_encoder()
            self._encoded = encoder(input_ids=ids, attention_mask=self._mask).last_hidden_state
        config = self.model.config.get_text_config(decoder=True)
        self._cache = EncoderDecoderCache(DynamicCache(config=config), DynamicCache(config=config))
        if len({len(start) for start in starts}) > 1:
            starts = [[] for _ in starts]
        return self.feed([[self._start, *start] for start in starts])

    def feed(self, tokens: list[list[int]]) -> list[Any]:
        """Let the decoder of each row read equally many tokens: float32 logits [len(tokens[i]), V] of each."""
        ids = torch.tensor(tokens, device=self.model.device)
        keep = ids.shape[1]
        options = {"logits_to_keep": keep} if "logits_to_keep" in self._parameters else {}
        with torch.no_grad():
            output = self.model(
                encoder_outputs=BaseModelOutput(last_hidden_state=self._encoded),
                attention_mask=self._mask,
                decoder_input_ids=ids,
                use_cache=True,
                **{self._takes: self._cache},
                **options,
            )
        self._cache = cache_of(output)
        return list(output.logits[:, -keep:].float().cpu())

    def reject(self, counts: Sequence[int]) -> None:
        """Row i has not read its last ``counts[i]`` tokens.  Only a row alone is shown guesses."""
        if len(counts) == 1 and counts[0]:
            self._cache.self_attention_cache.crop(-counts[0])

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on, in this order."""
        if not rows:
            self._cache = self._encoded = self._mask = None
        elif rows != list(range(len(self._mask))):
            index = torch.tensor(rows, device=self.model.device)
            self._cache.batch_select_indices(index)
            self._encoded, self._mask = self._encoded[index], self._mask[index]
