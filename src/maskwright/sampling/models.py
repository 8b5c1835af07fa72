"""Language models as samplers see them: log-probabilities behind many prefixes, and branching."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from maskwright.base.arguments import check_function, listed
from maskwright.errors import MaskwrightError, ModelError, VocabularyError
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, log_sum_exp

STAY = -1
"""In place of a token: the row waits and keeps its log-probabilities."""

_TOLERANCE = 1e-3


class ModelState(ABC):
    """What a model knows behind R prefixes.  A value: ``extend`` makes another one and changes nothing."""

    logprobs: Floats
    """log p(next token | prefix), [R, V], normalised over all tokens, EOS included."""

    @abstractmethod
    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        """The state whose row i is row ``parents[i]`` followed by ``tokens[i]`` (or ``STAY``)."""


class LanguageModel(ABC):
    """A distribution over token sequences that end with one of ``eos_ids``."""

    vocab_size: int
    eos_ids: tuple[int, ...]
    room: int | None = None
    """The most tokens that can follow the prompt, EOS included; None: no limit."""
    temperature: float = 1.0
    """What its logits are divided by: guesses at log-probabilities are divided by it, too."""
    has_dropped: bool = False
    """Whether ways to write a text were left out (``ByteModel(prune=...)``), so that the model is no longer exactly itself."""

    @abstractmethod
    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        """The state behind prefixes of equal length (``[[]]``: the start)."""

    def rewound(self, state: ModelState, prefixes: Sequence[Sequence[int]]) -> ModelState:
        """``self.state(prefixes)``, where row i of ``state`` has read a text that begins with ``prefixes[i]``.

        A model that kept what it computed for that text need not read the prefix again.
        """
        return self.state(prefixes)


def check_equally_long(prefixes: Sequence[Sequence[int]]) -> None:
    """Raises ``MaskwrightError`` for prefixes of different lengths."""
    lengths = {len(each) for each in prefixes}
    if len(lengths) > 1:
        raise MaskwrightError(f"prefixes must be equally long, not {sorted(lengths)}")


class CallableModel(LanguageModel):
    """Any function of prefixes: ``function(prefixes: list[list[int]]) -> logprobs [B, V]``.

    ``eos_id``: one id or several.  ``rows`` counts the prefixes evaluated, ``calls`` the calls.
    Raises ``ModelError`` when the function returns another shape, NaN, or rows that do not sum to one;
    ``VocabularyError`` for EOS ids outside the vocabulary.
    """

    def __init__(
        self,
        function: Callable[[list[list[int]]], Any],
        vocab_size: int,
        eos_id: int | Iterable[int],
    ) -> None:
        check_function(function, "function")
        self._function = function
        self.vocab_size = _index(vocab_size, "vocab_size")
        ids = (
            [eos_id]
            if isinstance(eos_id, (int, np.integer))
            else listed(eos_id, "eos_id", "one or more ids", VocabularyError)
        )
        self.eos_ids = tuple(sorted({_index(i, "eos_id") for i in ids}))
        if not self.eos_ids or not all(0 <= i < self.vocab_size for i in self.eos_ids):
            raise VocabularyError(
                f"eos_id {eos_id}: one or more ids below vocab_size {self.vocab_size} are needed"
            )
        self.rows = 0
        self.calls = 0

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        copies = [list(prefix) for prefix in prefixes]
        return _CalledState(self, copies, self._evaluate(copies))

    def _evaluate(self, prefixes: list[list[int]]) -> Floats:
        if not prefixes:
            return np.empty((0, self.vocab_size))
        self.rows += len(prefixes)
        self.calls += 1
        found = self._function([list(prefix) for prefix in prefixes])
        try:
            logprobs = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(
                f"the model returned {type(found).__name__}, which is no array: {error}"
            ) from None
        if logprobs.shape != (len(prefixes), self.vocab_size):
            raise ModelError(
                f"the model returned {list(logprobs.shape)}, not [{len(prefixes)}, {self.vocab_size}]"
            )
        check_logprobs(logprobs, prefixes)
        return logprobs


class _CalledState(ModelState):
    def __init__(self, model: CallableModel, prefixes: list[list[int]], logprobs: Floats) -> None:
        self._model = model
        self._prefixes = prefixes
        self.logprobs = logprobs

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        prefixes = [self._prefixes[parent] for parent in parents]
        moving = np.flatnonzero(tokens != STAY)
        for i in moving:
            prefixes[i] = [*prefixes[i], int(tokens[i])]
        if len(moving) == len(tokens):
            return _CalledState(self._model, prefixes, self._model._evaluate(prefixes))
        logprobs = self.logprobs[parents]
        logprobs[moving] = self._model._evaluate([prefixes[i] for i in moving])
        return _CalledState(self._model, prefixes, logprobs)


def one_end(logprobs: Any, eos_ids: Sequence[int]) -> Floats:
    """``logprobs`` [R, V] as float64 with all EOS ids as the first one, minus infinity at the others; the array itself where it can be."""
    merged: Floats = np.asarray(logprobs, dtype=np.float64)
    end, *others = eos_ids
    if others:
        merged = merged.copy()
        merged[:, end] = log_sum_exp(merged[:, list(eos_ids)])
        merged[:, others] = MINUS_INFINITY
    return merged


def check_logprobs(logprobs: Floats, prefixes: Sequence[Any]) -> None:
    """Raise ``ModelError`` unless every row is a log-distribution."""
    with np.errstate(invalid="ignore", over="ignore"):
        sums = log_sum_exp(logprobs)
    wrong = np.flatnonzero(~(np.abs(sums) <= _TOLERANCE))
    if len(wrong):
        row = int(wrong[0])
        what = "contain NaN" if np.isnan(logprobs[row]).any() else f"sum to exp({sums[row]:.4g})"
        raise ModelError(
            f"the model's log-probabilities behind {prefixes[row]} {what}; apply log_softmax to logits"
        )


def _index(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise VocabularyError(f"{name}: expected an integer, got {type(value).__name__}") from None
