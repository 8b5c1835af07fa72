"""The tokens of a vocabulary in the order of their bytes: a trie whose nodes are ranges of them.

    ranks   0 "a"   1 "ab"   2 "abc"   3 "b"
    node "a" is the range 0 to 4 without "b": 0 is exactly "a", 1 and 2 go on with the byte b

Nodes are made when somebody comes by.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import numpy as np

from maskwright.sampling.logspace import Floats, Integers


class Node:
    """The tokens that begin with the same bytes: those with ranks ``first`` to ``last`` (excluded).

    The first ``exact`` of them are these bytes; the others go on with one of ``following`` (ascending), those with
    ``following[i]`` from rank ``starts[i]`` on.
    """

    __slots__ = ("children", "exact", "first", "following", "last", "prefix", "starts")

    def __init__(self, tokens: Sequence[bytes], prefix: bytes, first: int, last: int) -> None:
        self.prefix = prefix
        self.first = first
        self.last = last
        at = first
        while at < last and len(tokens[at]) == len(prefix):
            at += 1
        self.exact = at - first
        starts, following = [], []
        while at < last:
            byte = tokens[at][len(prefix)]
            starts.append(at)
            following.append(byte)
            at = last if byte == 255 else bisect_left(tokens, prefix + bytes((byte + 1,)), at, last)
        self.starts: Integers = np.array(starts, dtype=np.int64)
        self.following: Integers = np.array(following, dtype=np.int64)
        self.children: dict[int, Node] = {}

    def masses(self, scores: Floats) -> Floats:
        """The log-mass of the tokens that go on with each of ``following``; ``scores``: log-masses of all of the node's."""
        if not len(self.starts):
            return np.zeros(0)
        found: Floats = np.logaddexp.reduceat(scores, self.starts - self.first)
        return found

    def cut(self, scores: Floats, child: Node) -> Floats:
        """The part of ``scores`` that belongs to a child; a copy, so that the whole can be let go of."""
        return scores[child.first - self.first : child.last - self.first].copy()


class ByteTrie:
    """The tokens that have bytes.  ``ids``: int64 [tokens], the id of each rank."""

    def __init__(self, tokens: Mapping[int, bytes]) -> None:
        listed = sorted((data, i) for i, data in tokens.items() if data)
        self.ids: Integers = np.array([i for _, i in listed], dtype=np.int64)
        self._tokens = [data for data, _ in listed]
        self.root = Node(self._tokens, b"", 0, len(listed))

    def child(self, node: Node, byte: int) -> Node | None:
        """The tokens that go on with a byte; None where there is none."""
        found = node.children.get(byte)
        if found is None:
            at = int(node.following.searchsorted(byte))
            if at == len(node.following) or node.following[at] != byte:
                return None
            last = int(node.starts[at + 1]) if at + 1 < len(node.starts) else node.last
            found = Node(self._tokens, node.prefix + bytes((byte,)), int(node.starts[at]), last)
            node.children[byte] = found
        return found
