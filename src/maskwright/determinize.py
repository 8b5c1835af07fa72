"""Deterministic automata over code points: subset construction, products, minimisation.

All work is done on minterms.  A minterm is a largest set of code points that no leaf tells
apart: a tree has few of them, out of 1 112 064 code points.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from maskwright._subsets import Alphabet as Alphabet
from maskwright._subsets import SubsetAutomaton, combine
from maskwright.automata import State, Thompson
from maskwright.deadline import check_time, check_time_again
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


def alphabet_of(sets: Iterable[Ranges]) -> Alphabet:
    """The minterms of some sets, as a partition of the Unicode scalar values."""
    return Alphabet(ANY_CHAR.ranges, sets)


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
    alphabet: Alphabet
    sets: dict[tuple[int, ...], int]
    edges: list[tuple[int, int, int]]

    def __init__(self, alphabet: Alphabet, limits: Limits) -> None:
        super().__init__(limits, counting=False)
        self.alphabet = alphabet
        self.sets = {}
        self.edges = []

    def leaf(self, node: Regular, source: State, target: State) -> None:
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
        labels: dict[Ranges, Chars] = {}
        out: list[tuple[int, Regular, int]] = []
        for source, ranges, target in self.alphabet.edges(self.rows):
            label = labels.get(ranges)
            if label is None:
                label = labels[ranges] = Chars(ranges)
            out.append((source, label, target))
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
    try:
        return _combined([_read(node, limits) for node in nodes], accept, needed, limits)
    except LimitError as error:
        check_time_again(error)
        # An automaton that is shared may have become large for the sake of others.
        _shared.known.clear()
        return _combined([_read(node, limits) for node in nodes], accept, needed, limits)


class _Automaton(NamedTuple):
    sets: list[Ranges]
    alphabet: Alphabet
    subsets: SubsetAutomaton


class _Shared(threading.local):
    """Automata by tree and limit.  Each thread has its own: they determinise while they are read."""

    def __init__(self) -> None:
        self.known: dict[tuple[Regular, int], _Automaton] = {}


_shared = _Shared()
_MAX_SHARED = 256
_MAX_SHARED_STATES = 2000


def _read(node: Regular, limits: Limits) -> _Automaton:
    key = (node, limits.max_regex_states)
    found = _shared.known.get(key)
    if found is None or len(found.subsets) > _MAX_SHARED_STATES:
        if len(_shared.known) >= _MAX_SHARED:
            _shared.known.clear()
        sets = leaf_sets(node)
        alphabet = alphabet_of(sets)
        found = _Automaton(sets, alphabet, subset_automaton(node, alphabet, limits))
        _shared.known[key] = found
    return found


def _combined(
    automata: list[_Automaton],
    accept: Callable[[Sequence[bool]], bool],
    needed: Sequence[bool],
    limits: Limits,
) -> Dfa:
    if len(automata) == 1:
        alphabet = automata[0].alphabet
    else:
        alphabet = alphabet_of(ranges for automaton in automata for ranges in automaton.sets)
    finer = [automaton.alphabet.finer(alphabet) for automaton in automata]
    subsets = [automaton.subsets for automaton in automata]
    return Dfa(alphabet, *combine(subsets, finer, list(needed), accept, limits.max_regex_states))


def minimal_dfa(node: Regular, limits: Limits) -> Dfa:
    """The minimal deterministic automaton of the language."""
    return product([node], all, [True], limits)
