"""A causal language model with one row of its key-value cache for each running output.

Rows may read different numbers of tokens in one pass.  Shorter ones are padded on the left, and the padding, like tokens
that were read and then rejected, stays in the cache as masked columns:

    columns   0 1 2 3 4 5 6 7
    row 0     a b c d e . . f      `.` is masked: rejected, or padding
    row 1     . . x y z u v w

Positions count what is not masked.  Columns that serve nobody are cut out now and then.  Models whose cache
does not allow this (sliding windows) run in step instead; those whose positions or states do not (no ``position_ids``,
recurrent states) run one by one.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import torch
from transformers.cache_utils import DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from maskwright.generation.model_cache import cache_of, cache_parameter, masks_columns, pads_in_front

_PREFIXES_KEPT = 4
_LEAST_SHARED = 16
"""Tokens that prompts must share for their prefix to be read once."""
_SLACK = 32
"""Masked columns that are not worth cutting out."""


class KeyValueRows:
    """The rows of one batch.  ``prefixes``: what is kept of earlier prompts, shared by batches of one model."""

    def __init__(self, model: Any, prefixes: Prefixes) -> None:
        self.model = model
        self.prefixes = prefixes
        self._parameters = inspect.signature(model.forward).parameters
        self._takes = cache_parameter(model) or "past_key_values"
        self._cache: Any = None
        self._mask = torch.zeros((0, 0), dtype=torch.bool)
        config = model.config.get_text_config(decoder=True)
        takes_positions = "position_ids" in self._parameters
        self.flexible = masks_columns(config, takes_positions)
        """Whether rows may read different numbers of tokens, and join others; known behind the first pass."""
        self.croppable = True
        """Whether a row alone may take tokens back; known behind the first pass."""
        layers = DynamicCache(config=model.config).layers
        kinds = (DynamicLayer, DynamicSlidingWindowLayer)
        self.recurrent = not all(type(layer) in kinds for layer in layers)
        """Behind a cache, tokens are read one by one: Mamba and Jamba continue a state by one token only."""
        together = not self.recurrent and pads_in_front(config, takes_positions)
        self.widest = sys.maxsize if together else 1
        """How many rows may run together: recurrent states of some cannot be taken out of those of others, nor may
        positions that count columns differ from one row to the next."""

    def __len__(self) -> int:
        return len(self._mask)

    def add(self, prompts: list[list[int]], starts: list[list[int]]) -> list[Any]:
        """New rows that read ``prompts[i]`` and, as far as possible, ``starts[i]``.

        Returns for each the logits (float32 [tokens of the start that were read + 1, V]) behind the prompt and behind
        each of them.
        """
        cache, mask, logits = self._read_prompts(prompts, starts)
        plain = _is_plain(cache)
        self.flexible = self.flexible and plain
        self.croppable = plain
        if len(self):
            cache, mask = _joined(self._cache, self._mask, cache, mask)
        self._cache, self._mask = cache, mask
        return logits

    def _read_prompts(self, prompts: list[list[int]], starts: list[list[int]]) -> tuple[Any, Any, list[Any]]:
        shared = _common(prompts)
        self.prefixes.check(self.model)
        cache, have = self.prefixes.find(prompts[0][:shared])
        if cache is None:
            cache = DynamicCache(config=self.model.config)
        if len(prompts) > 1 and shared - have >= _LEAST_SHARED:
            ids = torch.tensor([prompts[0][have:shared]])
            mask = torch.ones((1, shared), dtype=torch.bool)
            _, cache = self._forward(cache, ids, mask, 1)
            self.prefixes.keep(prompts[0][:shared], cache)
            have = shared
        if not self.flexible and len({len(start) for start in starts}) > 1:
            starts = [[] for _ in starts]
        if len(prompts) > 1 and have:
            cache.batch_repeat_interleave(len(prompts))
        rest = [[*prompt[have:], *start] for prompt, start in zip(prompts, starts, strict=True)]
        ids, new = _padded(rest)
        mask = torch.cat([torch.ones((len(prompts), have), dtype=torch.bool), new], dim=1)
        kept = [len(start) + 1 for start in starts]
        logits, cache = self._forward(cache, ids, mask, max(kept))
        if len(prompts) == 1:
            self.prefixes.keep(prompts[0], cache)
        return cache, mask, [row[-keep:] for row, keep in zip(logits, kept, strict=True)]

    def feed(self, tokens: list[list[int]]) -> list[Any]:
        """Let row i read ``tokens[i]`` (equally many, unless ``flexible``): float32 logits [len(tokens[i]), V] of each."""
        ids, new = _padded(tokens)
        passes, step = [], 1 if self.recurrent else ids.shape[1]
        for at in range(0, ids.shape[1], step):
            mask = torch.cat([self._mask, new[:, at : at + step]], dim=1)
            logits, self._cache = self._forward(self._cache, ids[:, at : at + step], mask, step)
            self._mask = mask
            passes.append(logits)
        logits = torch.cat(passes, dim=1)
        return [row[-len(given) :] for row, given in zip(logits, tokens, strict=True)]

    def reject(self, counts: Sequence[int]) -> None:
        """Row i has not read its last ``counts[i]`` tokens."""
        for row, count in enumerate(counts):
            if count:
                self._mask[row, -count:] = False
        self._tidy()

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on, in this order."""
        if not rows:
            self._cache, self._mask = None, self._mask[:0, :0]
        elif rows != list(range(len(self))):
            self._cache.batch_select_indices(torch.tensor(rows, device=self.model.device))
            self._mask = self._mask[rows]
            self._tidy()

    def _tidy(self) -> None:
        used = self._mask.any(dim=0)
        columns = len(used)
        behind = columns - (int(used.nonzero()[-1]) + 1)
        if behind and self.croppable:
            self._cache.crop(-behind)
            self._mask = self._mask[:, : columns - behind]
        longest = int(self._mask.sum(dim=1).max())
        if self.flexible and self._mask.shape[1] > longest + longest // 4 + _SLACK:
            self._compact(longest)

    def _compact(self, longest: int) -> None:
        """Move what is not masked to the right, and cut the rest."""
        order = self._mask.to(torch.int8).argsort(dim=1, stable=True)[:, -longest:]
        self._mask = self._mask.gather(1, order)
        at = order.to(self.model.device)[:, None, :, None]
        for layer in self._cache.layers:
            layer.keys, layer.values = (
                part.gather(2, at.expand(-1, part.shape[1], -1, part.shape[3]))
                for part in (layer.keys, layer.values)
            )

    def _forward(self, cache: Any, ids: Any, mask: Any, keep: int) -> tuple[Any, Any]:
        """Logits [rows, >= keep, V] on the CPU, and the cache behind the pass."""
        device = self.model.device
        options: dict[str, Any] = {}
        if "position_ids" in self._parameters:
            positions = (mask.long().cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
            options["position_ids"] = positions.to(device)
        if "logits_to_keep" in self._parameters:
            options["logits_to_keep"] = keep
        if not mask.all():
            options["attention_mask"] = mask.long().to(device)
        with torch.no_grad():
            output = self.model(input_ids=ids.to(device), use_cache=True, **{self._takes: cache}, **options)
        return output.logits[:, -keep:].float().cpu(), cache_of(output)


class Prefixes:
    """Caches of prompts that were read lately: the longest common prefix of the next one is not read again."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[int, ...], Any] = OrderedDict()
        self._written: tuple[Any, ...] = ()

    def forget(self) -> None:
        """Drop all of them."""
        self._kept.clear()

    def check(self, model: Any) -> None:
        """Drop all of them where the model is no longer what read them: other parameters, or other values in them."""
        written = _written(model)
        if written != self._written:
            self.forget()
        self._written = written

    def find(self, ids: list[int]) -> tuple[Any, int]:
        """(a cache that has read a prefix of ``ids``, its length); (None, 0) when none is worth it."""
        best: tuple[int, ...] = ()
        length = 0
        for known in self._kept:
            common = _common_length(known, ids)
            if common > length:
                best, length = known, common
        if length < _LEAST_SHARED:
            return None, 0
        self._kept.move_to_end(best)
        return _shortened(self._kept[best], length), length

    def keep(self, ids: list[int], cache: Any) -> None:
        """Remember a cache with one row that has read ``ids``, and perhaps more."""
        if _is_plain(cache) and len(ids) >= _LEAST_SHARED:
            self._kept[tuple(ids)] = _shortened(cache, len(ids))
            self._kept.move_to_end(tuple(ids))
            while len(self._kept) > _PREFIXES_KEPT:
                self._kept.popitem(last=False)


def _written(model: Any) -> tuple[Any, ...]:
    """What changes with the parameters of a model: which they are, where, of which type, and how often they were written to.

    Not seen is what writes through ``parameter.data``, or without a parameter (an adapter that is switched)."""
    return tuple(
        (id(each), each.device, each.dtype, 0 if each.is_inference() else each._version)
        for each in model.parameters()
    )


def _is_plain(cache: Any) -> bool:
    """Whether every layer keeps keys and values of all columns, so that they may be cut and joined."""
    return type(cache) is DynamicCache and all(type(layer) is DynamicLayer for layer in cache.layers)


def _shortened(cache: Any, length: int) -> Any:
    """A cache with the first columns of another, which is left as it is: layers replace their tensors."""
    made = copy.copy(cache)
    made.layers = [copy.copy(layer) for layer in cache.layers]
    for layer in made.layers:
        layer.keys, layer.values = layer.keys[..., :length, :], layer.values[..., :length, :]
    return made


def _joined(cache: Any, mask: Any, other: Any, other_mask: Any) -> tuple[Any, Any]:
    """The rows of both; the shorter one is padded on the left with masked columns."""
    columns = max(mask.shape[1], other_mask.shape[1])
    pad = torch.nn.functional.pad
    for layer, added in zip(cache.layers, other.layers, strict=True):
        layer.keys, layer.values = (
            torch.cat([pad(part, (0, 0, columns - part.shape[2], 0)) for part in parts])
            for parts in ((layer.keys, added.keys), (layer.values, added.values))
        )
    masks = [pad(each, (columns - each.shape[1], 0)) for each in (mask, other_mask)]
    return cache, torch.cat(masks)


def _padded(rows: list[list[int]]) -> tuple[Any, Any]:
    """(ids, which of them count), padded on the left."""
    width = max(map(len, rows))
    ids = torch.tensor([[0] * (width - len(row)) + row for row in rows])
    counts = torch.tensor([[False] * (width - len(row)) + [True] * len(row) for row in rows])
    return ids, counts


def _common_length(a: Sequence[int], b: Sequence[int]) -> int:
    most = min(len(a), len(b))
    for at in range(most):
        if a[at] != b[at]:
            return at
    return most


def _common(prompts: list[list[int]]) -> int:
    """The length of what all prompts begin with; each keeps at least one token of its own."""
    length = min(map(len, prompts)) - 1
    for prompt in prompts[1:]:
        length = min(length, _common_length(prompts[0], prompt))
    return length
