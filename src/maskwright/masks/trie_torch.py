"""A token trie as torch tensors: batched steps without a loop over rows, on any device."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from maskwright.masks.trie import TokenTrie

# States with more children than this have their masks in a table.
_DENSE_DEGREE = 128


class TorchTrie:
    """A ``TokenTrie`` on a device.

    States are int64 tensors; -1 is the state without continuations.  An edge is one number, ``state *
    vocab_size + token``; edges are sorted, so a step is one binary search for the whole batch.  States with many
    children (the first levels, where all beams begin) have their masks in a dense table, int32 [D, ceil(V / 32)].
    """

    def __init__(self, trie: TokenTrie, device: Any, dense_bytes: int) -> None:
        self.vocab_size = trie.vocab_size
        self.words = (trie.vocab_size + 31) // 32
        degrees = np.diff(trie.offsets)
        parents = np.repeat(np.arange(trie.n_states), degrees)
        self.edges = torch.from_numpy(parents * trie.vocab_size + trie.tokens).to(device)
        self.tokens = torch.from_numpy(trie.tokens.astype(np.int64)).to(device)
        self.offsets = torch.from_numpy(trie.offsets).to(device)
        self.final = torch.from_numpy(trie.final).to(device)
        most = max(dense_bytes // (4 * self.words), 0)
        dense = np.flatnonzero(degrees > _DENSE_DEGREE)
        dense = np.sort(dense[np.argsort(-degrees[dense], kind="stable")[:most]])
        self.dense_states = torch.from_numpy(dense).to(device)
        self.table = torch.from_numpy(_rows([trie.children(state) for state in dense], self.words)).to(device)
        self.eos = torch.from_numpy(_rows([np.array(trie.eos_ids, dtype=np.int64)], self.words)).to(device)

    def step(self, states: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
        """The states behind ``tokens`` (both int64, of one shape); -1 where a token is not allowed."""
        if not len(self.edges):
            return torch.full_like(states, -1)
        wanted = states * self.vocab_size + tokens
        # A token outside the vocabulary would be an edge of another state.
        wanted = wanted.masked_fill((tokens < 0) | (tokens >= self.vocab_size) | (states < 0), -1)
        at = torch.searchsorted(self.edges, wanted)
        found = self.edges[at.clamp(max=len(self.edges) - 1)] == wanted
        return (at + 1).masked_fill_(~found, -1)

    def children(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """For states [B]: the tokens that may follow, int64 [B, M], and the states behind them; both -1 beyond a
        state's own.  M is the largest number of children in the batch."""
        live = states.clamp(min=0)
        first = self.offsets[live]
        return self._edges_from(first, (self.offsets[live + 1] - first) * (states >= 0))

    def _edges_from(self, first: torch.Tensor, count: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(int(count.max()) if len(count) else 0, device=count.device)
        edges = first[:, None] + positions
        outside = positions >= count[:, None]
        tokens = self.tokens[edges.clamp(max=max(len(self.tokens) - 1, 0))]
        return tokens.masked_fill_(outside, -1), edges.add_(1).masked_fill_(outside, -1)

    def bitmask(self, states: torch.Tensor) -> torch.Tensor:
        """For states [B]: which tokens may follow, int32 [B, ceil(V / 32)], EOS included where a sequence is
        complete; to be applied with ``maskwright.apply_token_bitmask_inplace``."""
        live = states.clamp(min=0)
        first = self.offsets[live]
        count = (self.offsets[live + 1] - first) * (states >= 0)
        dense = torch.zeros_like(states, dtype=torch.bool)
        if len(self.dense_states):
            row = torch.searchsorted(self.dense_states, states).clamp_(max=len(self.dense_states) - 1)
            dense = self.dense_states[row] == states
            count = count.masked_fill_(dense, 0)
        tokens, _ = self._edges_from(first, count)
        bits = torch.ones((), dtype=torch.int32, device=states.device) << (tokens & 31).int()
        mask = torch.zeros((len(states), self.words), dtype=torch.int32, device=states.device)
        # No token comes twice, so that sums are unions.
        mask.scatter_add_(1, (tokens >> 5).clamp_(min=0), bits.masked_fill_(tokens < 0, 0))
        if len(self.dense_states):
            mask = torch.where(dense[:, None], self.table[row], mask)
        ends = (states >= 0) & self.final[live]
        return torch.where(ends[:, None], mask | self.eos, mask)


def _rows(allowed: list[Any], words: int) -> np.ndarray:
    """Bitmasks of lists of tokens."""
    out = np.zeros((len(allowed), words * 4), dtype=np.uint8)
    for row, tokens in enumerate(allowed):
        bits = np.zeros(words * 32, dtype=np.uint8)
        bits[tokens] = 1
        out[row] = np.packbits(bits, bitorder="little")
    return out.view(np.int32)
