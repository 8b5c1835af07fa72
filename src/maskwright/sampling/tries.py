"""A set of token sequences as a constraint: items of a recommender, in the tokens that its model was trained on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from maskwright.base.arguments import check_type
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.masks.bitmask import allocate_token_bitmask
from maskwright.masks.trie import TokenTrie
from maskwright.sampling.constraints import END, Bitmask, Constraint
from maskwright.sampling.logspace import Integers


class TrieConstraint(Constraint):
    """The sequences of a ``TokenTrie``; exact and measured.  States are the trie's."""

    exact = True
    measured = True

    def __init__(self, trie: TokenTrie) -> None:
        check_type(trie, TokenTrie, "trie", MaskwrightError)
        self.trie = trie
        self._needed = _needed(trie)

    def bind(self, vocab_size: int, eos_ids: Sequence[int]) -> None:
        if vocab_size != self.trie.vocab_size or set(eos_ids) != set(self.trie.eos_ids):
            raise VocabularyError(
                f"the trie has {self.trie.vocab_size} ids and ends with {sorted(self.trie.eos_ids)}, the model has {vocab_size} and "
                f"ends with {sorted(eos_ids)}"
            )

    def start(self) -> int:
        return 0

    def advance(self, state: int, token: int) -> int:
        following = self.trie.next(state, token)
        if following < 0:
            raise MaskwrightError(f"token {token} is not allowed here; ask the mask first")
        return following

    def masks(self, states: Sequence[int]) -> Bitmask:
        bitmask = allocate_token_bitmask(len(states), self.trie.vocab_size)
        bitmask[:] = 0
        bits = bitmask.view(np.uint32)
        for row, state in enumerate(states):
            ids = self.trie.children(state).astype(np.int64)
            if self.trie.final[state]:
                ids = np.concatenate([ids, self.trie.eos_ids])
            np.bitwise_or.at(bits[row], ids // 32, np.uint32(1) << (ids % 32).astype(np.uint32))
        return bitmask

    def needed(self, state: int) -> int:
        return int(self._needed[state])

    def _allows(self, state: int, token: int) -> bool:
        return bool(self.trie.final[state]) if token == END else self.trie.next(state, token) >= 0


def _needed(trie: TokenTrie) -> Integers:
    """The fewest tokens to a whole sequence behind each state [S]."""
    # States of one depth are neighbours: the children of a range of states are a range.
    levels = [(0, 1)]
    while levels[-1][0] < levels[-1][1]:
        first, last = levels[-1]
        levels.append((int(trie.offsets[first]) + 1, int(trie.offsets[last]) + 1))
    found = np.where(trie.final, 0, np.iinfo(np.int64).max - 1).astype(np.int64)
    for (first, last), (below, end) in zip(levels[-2::-1], levels[:0:-1], strict=True):
        parents = np.repeat(np.arange(first, last), np.diff(trie.offsets[first : last + 1]))
        np.minimum.at(found, parents, found[below:end] + 1)
    return found
