"""Deterministic automata over code points: subset construction, products, minimisation.

All work is done on minterms.  A minterm is a largest set of code points that no leaf tells
apart: a tree has few of them, out of 1 112 064 code points.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from maskwright._subsets import SubsetAutomaton, combine
from maskwright.automata import Thompson
from maskwright.deadline import check_time
from maskwright.errors import LimitError
from maskwright.limits import Limits
from maskwright.regular import (
    ANY_CHAR,
    EPSILON,
    NOTHING,
    Chars,
    Lit,
    Machine,
    Ranges,
    Regular,
    postorder,
    repeat,
)


class Alphabet:
    """The minterms of some sets, as a partition of the Unicode scalar values."""

    def __init__(self, sets: Iterable[Ranges]) -> None:
        index = {ANY_CHAR.ranges: 0}
        for ranges in sets:
            index.setdefault(ranges, len(index))
        toggles: dict[int, int] = {}
        for ranges, i in index.items():
            for low, high in ranges:
                toggles[low] = toggles.get(low, 0) ^ 1 << i
                toggles[high + 1] = toggles.get(high + 1, 0) ^ 1 << i
        minterms: dict[int, list[tuple[int, int]]] = {}
        inside, at = 0, 0
        for point in sorted(toggles):
            if inside & 1:
                minterms.setdefault(inside, []).append((at, point - 1))
            inside ^= toggles[point]
            at = point
        self.minterms: list[list[tuple[int, int]]] = list(minterms.values())
        self._index = index
        self._masks = list(minterms)
        self._members: dict[Ranges, tuple[int, ...]] = {}
        self._points: tuple[list[int], list[tuple[int, int, int]]] | None = None

    def members(self, ranges: Ranges) -> tuple[int, ...]:
        """The minterms that make up one of the sets given."""
        found = self._members.get(ranges)
        if found is None:
            bit = 1 << self._index[ranges]
            found = tuple(i for i, mask in enumerate(self._masks) if mask & bit)
            self._members[ranges] = found
        return found

    def minterm_of(self, code: int) -> int | None:
        """The minterm of a code point; None for a surrogate."""
        if self._points is None:
            ordered = sorted((low, high, i) for i, ranges in enumerate(self.minterms) for low, high in ranges)
            self._points = [low for low, _, _ in ordered], ordered
        lows, ordered = self._points
        at = bisect_right(lows, code) - 1
        return ordered[at][2] if at >= 0 and code <= ordered[at][1] else None

    def union(self, minterms: Iterable[int]) -> Ranges:
        out: list[tuple[int, int]] = []
        for low, high in sorted(r for i in minterms for r in self.minterms[i]):
            if out and out[-1][1] == low - 1:
                out[-1] = (out[-1][0], high)
            else:
                out.append((low, high))
        return tuple(out)


def leaf_sets(*nodes: Regular) -> list[Ranges]:
    """The sets of all leaves."""
    sets: dict[Ranges, None] = {}
    for node in nodes:
        for part in postorder(node):
            if isinstance(part, Chars):
                sets[part.ranges] = None
            elif isinstance(part, Lit):
                sets.update((((ord(c), ord(c)),), None) for c in part.text)
    return list(sets)


class _CodeThompson(Thompson):
    def __init__(self, alphabet: Alphabet, limits: Limits) -> None:
        super().__init__(limits, counting=False)
        self.alphabet = alphabet
        self.sets: dict[tuple[int, ...], int] = {}
        self.edges: list[tuple[int, int, int]] = []

    def leaf(self, node: Regular, source: int, target: int) -> None:
        if isinstance(node, Chars):
            members = self.alphabet.members(node.ranges)
            self.edges.append((source, self.sets.setdefault(members, len(self.sets)), target))
        else:
            raise ValueError(f"no leaf of a regular tree: {node!r}")


def subset_automaton(node: Regular, alphabet: Alphabet, limits: Limits) -> SubsetAutomaton:
    """The deterministic automaton of a tree, computed as far as it is asked for; state 0 is the start.

    Raises ``LimitError`` above ``limits.max_regex_states`` states (or when the sets that stand
    for them become too large), now or later.
    """
    builder = _CodeThompson(alphabet, limits)
    start, accept = builder.new_state(), builder.new_state()
    builder.place(node, start, accept)
    epsilons = [(a, b) for a, b, _, _ in builder.epsilons]
    return SubsetAutomaton(
        builder.n_states, start, accept, list(builder.sets), builder.edges, epsilons, limits.max_regex_states
    )


def check_states(given: int, limits: Limits) -> None:
    check_time()
    if given > limits.max_regex_states:
        raise LimitError("max_regex_states", given, limits.max_regex_states)


@dataclass
class Dfa:
    """A minimal deterministic automaton: rows map minterms to states; state 0 is the start.

    ``rows`` is empty when no text is accepted.
    """

    alphabet: Alphabet
    rows: list[dict[int, int]]
    accepting: list[bool]

    def edges(self) -> list[tuple[int, Regular, int]]:
        """One edge for each pair of states, labelled with its set."""
        out: list[tuple[int, Regular, int]] = []
        for state, row in enumerate(self.rows):
            together: dict[int, list[int]] = {}
            for minterm, target in row.items():
                together.setdefault(target, []).append(minterm)
            for target, minterms in together.items():
                out.append((state, Chars(self.alphabet.union(minterms)), target))
        return out

    def to_regular(self) -> Regular:
        """The language as a tree: a ``Machine``, or something simpler where it is."""
        if not self.rows:
            return NOTHING
        edges = self.edges()
        if len(self.rows) == 1:
            return repeat(edges[0][1], 0, None) if edges else EPSILON
        accepts = tuple(i for i, accepting in enumerate(self.accepting) if accepting)
        return Machine(len(self.rows), 0, tuple(edges), accepts)


def product(
    nodes: Sequence[Regular],
    accept: Callable[[Sequence[bool]], bool],
    needed: Sequence[bool],
    limits: Limits,
) -> Dfa:
    """The minimal automaton of a boolean combination; no text is in it unless each node that is
    ``needed`` accepts it, or a longer one."""
    check_time()
    alphabet = Alphabet(leaf_sets(*nodes))
    automata = [subset_automaton(node, alphabet, limits) for node in nodes]
    return Dfa(alphabet, *combine(automata, list(needed), accept, limits.max_regex_states))


def minimal_dfa(node: Regular, limits: Limits) -> Dfa:
    """The minimal deterministic automaton of the language."""
    return product([node], all, [True], limits)
