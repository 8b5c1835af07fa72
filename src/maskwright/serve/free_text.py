"""The matcher of an output without constraint: any tokens that are text, and the end."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

import numpy as np

from maskwright.masks.forced import Words
from maskwright.vocabulary.vocabulary import Vocabulary


class FreeText:
    """What a row asks of a matcher, for a language that everything belongs to.

    Special tokens and ids beyond the tokenizer are not allowed: no text has them.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._words = _allowed(vocabulary)
        self._ends = frozenset(vocabulary.eos_ids)
        self._count = 0
        self.is_terminated = False
        self.is_accepting = True

    def fill_next_token_bitmask(self, bitmask: Any, row: int = 0) -> None:
        """Write the mask, which is always the same, into int32 [words] or [rows, words]."""
        (bitmask if bitmask.ndim == 1 else bitmask[row])[:] = self._words

    def accept_token(self, token: int) -> bool:
        """Advance by a token; False, and nothing changes, when it is no text or the end was accepted."""
        if self.is_terminated or not self._words[token >> 5] >> (token & 31) & 1:
            return False
        self._count += 1
        self.is_terminated = token in self._ends
        return True

    def accept_tokens(self, tokens: Iterable[int]) -> int:
        """How many of them were accepted."""
        count = 0
        for token in tokens:
            if not self.accept_token(token):
                break
            count += 1
        return count

    def accept_bytes(self, data: bytes) -> bool:
        """Whether a text may go on so."""
        return not self.is_terminated

    def rollback(self, count: int) -> None:
        """Take tokens back."""
        self._count -= count
        self.is_terminated = False

    def reset(self) -> None:
        """Back to the start."""
        self.rollback(self._count)

    def fork(self) -> FreeText:
        """Another one at the same place."""
        return copy.copy(self)

    def shortest_completion(self) -> list[int]:
        """Nothing is missing anywhere."""
        return []


def _allowed(vocabulary: Vocabulary) -> Words:
    bits = np.zeros(-(-vocabulary.vocab_size // 32) * 32, dtype=np.uint8)
    bits[[i for i, token in enumerate(vocabulary.tokens) if token]] = 1
    bits[list(vocabulary.eos_ids)] = 1
    return np.packbits(bits, bitorder="little").view(np.int32)
