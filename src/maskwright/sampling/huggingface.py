"""Causal language models of Hugging Face transformers, one forward pass for all distinct prefixes.

The key-value cache holds one row for each distinct prefix, the prompt's once.  Extending a state gathers the
rows that it needs, which is the copy when particles diverge and the drop when they die; nothing is gathered
where every row goes on once.  The cache's tensors are replaced and never written to, so states are values and a
search can go back to any of them.  Rows that wait get a masked column, and positions count what is not masked.
Models that count columns all the same (sliding windows, no ``position_ids``) read rows of each length apart instead.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from maskwright.base.arguments import real, whole
from maskwright.errors import MaskwrightError, ModelError, VocabularyError
from maskwright.generation.model_cache import cache_of, cache_parameter, masks_columns
from maskwright.sampling.logspace import Integers
from maskwright.sampling.models import STAY, LanguageModel, ModelState, check_equally_long
from maskwright.vocabulary.vocabulary import Vocabulary


class HuggingFaceModel(LanguageModel):
    """p(text | prompt) of a causal language model.

    ``model``: a model with a ``DynamicCache``, or the name or path of one.  ``tokenizer``: needed for a prompt
    that is text and for ``decode`` and ``vocabulary``; loaded by name when ``model`` is one.  ``prompt``: text, or
    token ids.  ``eos_ids``: one id or several, by default those of the generation config.  ``temperature`` divides
    the logits: it is part of what is called p here.  ``cache``: see ``set_prompt``.  The model stays on its device;
    log-probabilities come to the host in single precision.

    Raises ``MaskwrightError`` for a prompt without tokens, ``VocabularyError`` when no EOS is known, ``ModelError`` for a
    model that keeps no keys and values of each token: here, or at the first pass.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any = None,
        prompt: str | Sequence[int] = "",
        *,
        eos_ids: int | Iterable[int] | None = None,
        temperature: float = 1.0,
        cache: Any = None,
    ) -> None:
        if isinstance(model, (str, bytes)) or hasattr(model, "__fspath__"):
            from transformers import AutoModelForCausalLM, AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(model) if tokenizer is None else tokenizer
            model = AutoModelForCausalLM.from_pretrained(model).eval()
        if real(temperature, "temperature") == 0:
            raise MaskwrightError("temperature is positive, not 0")
        if getattr(model.config, "is_encoder_decoder", False):
            raise ModelError(
                f"{type(model).__name__} has an encoder: only causal language models are supported; mw.Generator takes this one"
            )
        self.model = model
        self.tokenizer = tokenizer
        self.temperature = temperature
        config = model.config.get_text_config()
        self.vocab_size = int(config.vocab_size)
        if eos_ids is None:
            eos_ids = model.generation_config.eos_token_id
        if eos_ids is None:
            raise VocabularyError("the model names no EOS token; pass eos_ids")
        self.eos_ids = tuple(sorted(set(_ids(eos_ids, "eos_ids"))))
        if not self.eos_ids or not all(0 <= i < self.vocab_size for i in self.eos_ids):
            raise VocabularyError(f"eos_ids {self.eos_ids} are not below the model's {self.vocab_size} ids")
        self._takes = cache_parameter(self.model) or "past_key_values"
        parameters = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in parameters
        self._masks_columns = masks_columns(config, self._takes_positions)
        self._positions = getattr(config, "max_position_embeddings", None)
        self._vocabulary: Vocabulary | None = None
        self.set_prompt(prompt, cache)

    def set_prompt(self, prompt: str | Sequence[int], cache: Any = None) -> None:
        """Condition on another prompt.

        ``cache``: a ``DynamicCache`` with one row that has read the first tokens of the prompt, but not all of them; only
        the others are read then.  It is left as it is.
        """
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise MaskwrightError("a prompt that is text needs a tokenizer; or pass token ids")
            ids = list(self.tokenizer(prompt)["input_ids"])
        else:
            ids = _ids(prompt, "prompt")
        if not ids:
            raise MaskwrightError("the prompt has no tokens; the model needs at least one to start from")
        if not all(0 <= i < self.vocab_size for i in ids):
            raise VocabularyError(f"the prompt has ids that are not below the model's {self.vocab_size}")
        have = 0 if cache is None else int(cache.get_seq_length())
        if have >= len(ids):
            raise MaskwrightError(
                f"the cache has read {have} tokens; the prompt has {len(ids)}, and one of them must be left to read"
            )
        self.prompt_ids = ids
        self._given = cache
        self.room = None if self._positions is None else max(0, self._positions - len(ids))
        self._start: _State | None = None

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer's vocabulary at the model's width, with the model's EOS ids; for ``compile``."""
        if self._vocabulary is None:
            if self.tokenizer is None:
                raise MaskwrightError("the vocabulary is the tokenizer's; pass one")
            self._vocabulary = Vocabulary.from_huggingface(
                self.tokenizer, vocab_size=self.vocab_size, eos_ids=self.eos_ids
            )
        return self._vocabulary

    def decode(self, ids: Sequence[int]) -> str:
        """The text of generated ids."""
        return self.vocabulary.decode(ids).decode("utf-8", "replace")

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        """The state behind the prompt and each of ``prefixes``.

        Raises ``MaskwrightError`` unless they are equally long, ``VocabularyError`` for an id that the model does not have.
        """
        check_equally_long(prefixes)
        if not all(0 <= i < self.vocab_size for prefix in prefixes for i in prefix):
            raise VocabularyError(f"the prefixes have ids that are not below the model's {self.vocab_size}")
        start = self._prompt_state()
        if not len(prefixes) or not len(prefixes[0]):
            return start.select(np.zeros(len(prefixes), dtype=np.int64))
        cache = _gathered(start.cache, np.zeros(len(prefixes), dtype=np.int64), 1)
        ids = torch.tensor([list(prefix) for prefix in prefixes])
        return self._forward(ids, cache, None, np.full(len(prefixes), len(self.prompt_ids)))

    def rewound(self, state: ModelState, prefixes: Sequence[Sequence[int]]) -> ModelState:
        """The same from the cache of ``state``: the last token of each prefix is all that is read."""
        if not len(prefixes) or not len(prefixes[0]) or not isinstance(state, _State) or not state.plain:
            return self.state(prefixes)
        cache = _gathered(state.cache, np.arange(len(prefixes)), len(state.lengths))
        kept = len(self.prompt_ids) + len(prefixes[0]) - 1
        for layer in cache.layers:
            layer.keys, layer.values = layer.keys[..., :kept, :], layer.values[..., :kept, :]
        last = torch.tensor([[prefix[-1]] for prefix in prefixes])
        return self._forward(last, cache, None, np.full(len(prefixes), kept))

    @property
    def prompt_cache(self) -> Any:
        """The ``DynamicCache`` behind the prompt, with one row; the prompt is read if it was not yet.  Do not write to it."""
        return self._prompt_state().cache

    def _prompt_state(self) -> _State:
        if self._start is None:
            cache, have = self._given, 0
            if cache is not None:
                cache, have = _gathered(cache, np.zeros(1, dtype=np.int64), 1), int(cache.get_seq_length())
            ids = torch.tensor([self.prompt_ids[have:]])
            self._start = self._forward(ids, cache, None, np.full(1, have))
        return self._start

    def _forward(self, ids: Any, cache: Any, attention: Any, lengths: Integers) -> _State:
        # ``lengths`` [rows]: the tokens that are not masked before ``ids`` [rows, n].
        device = self.model.device
        steps = torch.arange(ids.shape[1])
        options: dict[str, Any] = {}
        if self._takes_positions:
            options["position_ids"] = (torch.from_numpy(lengths)[:, None] + steps).to(device)
        if attention is not None:
            options["attention_mask"] = attention.to(device)
        with torch.inference_mode():
            output = self.model(
                input_ids=ids.to(device), use_cache=True, logits_to_keep=1, **{self._takes: cache}, **options
            )
            logits = output.logits[:, -1].float()
            if self.temperature != 1.0:
                logits = logits / self.temperature
            logprobs = torch.log_softmax(logits, dim=-1).cpu().numpy()
        if np.isnan(logprobs).any():
            raise ModelError("the model's logits contain NaN or are infinite")
        after = lengths + ids.shape[1]
        found = cache_of(output)
        odd = [each for each in getattr(found, "layers", [found]) if not _has_rows(each)]
        if odd:
            raise ModelError(
                f"{type(self.model).__name__} keeps {type(odd[0]).__name__}, not keys and values of each token: rows of it cannot be "
                f"gathered; mw.Generator may take this model"
            )
        return _State(self, found, attention, after, logprobs)


class _State(ModelState):
    """``attention`` [rows, columns]: which columns of the cache count; None: all."""

    def __init__(self, owner: HuggingFaceModel, cache: Any, attention: Any, lengths: Integers, logprobs: Any):
        self.owner = owner
        self.cache = cache
        self.attention = attention
        self.lengths = lengths
        self.logprobs = logprobs

    @property
    def plain(self) -> bool:
        """Whether the cache has a column for each token that was read, in every row."""
        return self.attention is None and all(type(layer) is DynamicLayer for layer in self.cache.layers)

    def select(self, rows: Integers) -> _State:
        cache = _gathered(self.cache, rows, len(self.lengths))
        attention = None if self.attention is None else self.attention[rows]
        return _State(self.owner, cache, attention, self.lengths[rows], self.logprobs[rows])

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        if not len(parents):
            return self.select(parents)
        waiting = tokens == STAY
        if waiting.any() and not self.owner._masks_columns:
            return _apart([self], np.zeros(len(parents), dtype=np.int64), parents, tokens)
        return self._read(parents, tokens)

    def _read(self, parents: Integers, tokens: Integers) -> _State:
        waiting = tokens == STAY
        lengths = self.lengths[parents]
        attention = self.attention[parents] if self.attention is not None else None
        if waiting.any() and attention is None:
            columns = self.cache.get_seq_length()
            attention = torch.ones((len(parents), columns), dtype=torch.long)
        if attention is not None:
            attention = torch.cat([attention, torch.from_numpy(~waiting).long()[:, None]], dim=1)
        cache = _gathered(self.cache, parents, len(self.lengths))
        ids = torch.from_numpy(np.where(waiting, 0, tokens))[:, None]
        state = self.owner._forward(ids, cache, attention, lengths)
        if waiting.any():
            state.lengths = np.where(waiting, lengths, state.lengths)
            state.logprobs[waiting] = self.logprobs[parents[waiting]]
        return state


class _Uneven(ModelState):
    """Rows of several lengths, no column masked: row i is row ``rows[i]`` of ``parts[part_of[i]]``."""

    def __init__(self, parts: list[_State], part_of: Integers, rows: Integers):
        self.parts = parts
        self.part_of = part_of
        self.rows = rows
        self.logprobs = np.stack([parts[p].logprobs[r] for p, r in zip(part_of, rows, strict=True)])

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        if not len(parents):
            return self.parts[0].select(parents)
        return _apart(self.parts, self.part_of[parents], self.rows[parents], tokens)


def _apart(parts: list[_State], part_of: Integers, rows: Integers, tokens: Integers) -> ModelState:
    """Row i is row ``rows[i]`` of ``parts[part_of[i]]`` followed by ``tokens[i]``; only rows that go on are read."""
    waiting = tokens == STAY
    groups: dict[int, list[tuple[_State, Integers]]] = {}
    for p, part in enumerate(parts):
        for stays in (True, False):
            places = np.flatnonzero((part_of == p) & (waiting == stays))
            if len(places):
                state = part.select(rows[places]) if stays else part._read(rows[places], tokens[places])
                # Layers of other kinds cannot be joined: such rows stay apart.
                group = int(state.lengths[0]) if _is_joinable(state.cache) else -1 - len(groups)
                groups.setdefault(group, []).append((state, places))
    states = [_joined([state for state, _ in group]) for group in groups.values()]
    taken = [np.concatenate([each for _, each in group]) for group in groups.values()]
    if len(states) == 1:
        return states[0].select(np.argsort(taken[0]))
    part_of, rows = np.empty(len(tokens), dtype=np.int64), np.empty(len(tokens), dtype=np.int64)
    for p, each in enumerate(taken):
        part_of[each], rows[each] = p, np.arange(len(each))
    return _Uneven(states, part_of, rows)


def _is_joinable(cache: Any) -> bool:
    return all(type(layer) in (DynamicLayer, DynamicSlidingWindowLayer) for layer in cache.layers)


def _joined(states: list[_State]) -> _State:
    """The rows of all, which have read equally many tokens."""
    first = states[0]
    if len(states) == 1:
        return first
    made = copy.copy(first.cache)
    made.layers = [copy.copy(layer) for layer in first.cache.layers]
    for at, layer in enumerate(made.layers):
        # A layer that shares another one's keys has none.
        if layer.keys is not None:
            same = [state.cache.layers[at] for state in states]
            layer.keys = torch.cat([each.keys for each in same])
            layer.values = torch.cat([each.values for each in same])
    lengths = np.concatenate([state.lengths for state in states])
    return _State(first.owner, made, None, lengths, np.concatenate([state.logprobs for state in states]))


def _ids(given: Any, name: str) -> list[int]:
    """Token ids: of one number, of several, or of a tensor's only row."""
    given = given.tolist() if hasattr(given, "tolist") else given
    listed = [given] if not isinstance(given, Iterable) or isinstance(given, (str, bytes)) else list(given)
    if len(listed) == 1 and isinstance(listed[0], (list, tuple)):
        listed = list(listed[0])
    return [whole(each, name, VocabularyError) for each in listed]


def _has_rows(layer: Any) -> bool:
    """Whether a layer's rows may be gathered; those of convolutions and recurrent states may not."""
    return hasattr(layer, "batch_select_indices") and not hasattr(layer, "update_conv_state")


def _gathered(cache: Any, rows: Integers, count: int) -> Any:
    """A cache with these rows of one that has ``count``; the given one is left as it is."""
    made = copy.copy(cache)
    made.layers = [copy.copy(layer) for layer in cache.layers]
    if len(rows) != count or (rows != np.arange(count)).any():
        made.batch_select_indices(torch.from_numpy(rows).to(cache.layers[0].keys.device))
    return made
