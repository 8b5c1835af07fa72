"""Deterministic automata over code points: subset construction, products, minimisation.

All work is done on minterms.  A minterm is a largest set of code points that no leaf tells
apart: a tree has few of them, out of 1 112 064 code points.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from maskwright._subsets import Alphabet as Alphabet
from maskwright._subsets import SideBySide, SubsetAutomaton, Table
from maskwright.base.deadline import check_time, check_time_again, in_time
from maskwright.errors import LimitError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regular.expressions import (
    ANY_CHAR,
    EPSILON,
    EVERY_TEXT,
    NOTHING,
    Chars,
    Lit,
    Machine,
    Ranges,
    Regular,
    made_of,
    postorder,
    repeat,
    weight,
)
from maskwright.regular.memo import ROOM, remembered
from maskwright.regular.thompson import Thompson

_PIECE = 4096
"""Characters of a text that are taken at once."""


def alphabet_of(sets: Iterable[Ranges]) -> Alphabet:
    """The minterms of some sets, as a partition of the Unicode scalar values."""
    return Alphabet(ANY_CHAR.ranges, sets)


def leaf_sets(*nodes: Regular) -> list[Ranges]:
    """The sets of all leaves."""
    sets: dict[Ranges, None] = {}
    seen: set[str] = set()
    for node in nodes:
        for part in postorder(node):
            check_time()
            if isinstance(part, Chars):
                sets[part.ranges] = None
            elif isinstance(part, Lit):
                for begin in range(0, len(part.text), _PIECE):
                    if begin:
                        check_time()
                    for c in dict.fromkeys(part.text[begin : begin + _PIECE]):
                        if c not in seen:
                            seen.add(c)
                            sets[((ord(c), ord(c)),)] = None
    return list(sets)


class _CodeThompson(Thompson):
    """Sets are minterms."""

    alphabet: Alphabet

    def __init__(self, alphabet: Alphabet, limits: Limits) -> None:
        super().__init__(limits, counting=False)
        self.alphabet = alphabet

    def key_of(self, ranges: Ranges) -> tuple[int, ...]:
        return self.alphabet.members(ranges)


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
        alphabet,
        builder.n_states,
        start,
        accept,
        list(builder.sets),
        builder.edges,
        epsilons,
        limits.max_regex_states,
    )


def check_states(given: int, limits: Limits) -> None:
    check_time()
    if given > limits.max_regex_states:
        raise LimitError("max_regex_states", given, limits.max_regex_states)


class Dfa:
    """A minimal deterministic automaton over the minterms of an alphabet; state 0 is the start.

    It has no state when no text is accepted.  Equal to those of equal languages.
    """

    table: Table
    _labels: list[Chars] | None
    _edges: tuple[tuple[int, Chars, int], ...] | None

    def __init__(self, table: Table) -> None:
        self.table = table
        self._labels = None
        self._edges = None

    def __len__(self) -> int:
        return len(self.table)

    def weight(self) -> int:
        """How many small objects it is made of; see ``expressions.weight``."""
        return self.table.weight()

    def __hash__(self) -> int:
        return hash(self.table.content())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dfa) and self.table.content() == other.table.content()

    @property
    def alphabet(self) -> Alphabet:
        return self.table.alphabet

    @property
    def rows(self) -> list[dict[int, int]]:
        """By state, targets by minterm; made anew each time."""
        return self.table.rows()

    @property
    def accepting(self) -> list[bool]:
        """By state; made anew each time."""
        return self.table.accepting()

    def accepts(self) -> tuple[int, ...]:
        return tuple([i for i, accepting in enumerate(self.table.accepting()) if accepting])

    def labels(self) -> list[Chars]:
        if self._labels is None:
            self._labels = [Chars(ranges) for ranges in self.table.labels()]
        return self._labels

    def edges(self) -> tuple[tuple[int, Chars, int], ...]:
        """One edge for each pair of states, labelled with its set."""
        if self._edges is None:
            self._edges = tuple(self.table.edges(self.labels()))
        return self._edges

    def leaving(self) -> list[list[tuple[Chars, int]]]:
        """By state, the edges that leave it; made anew each time."""
        leaving: list[list[tuple[Chars, int]]] = [[] for _ in range(len(self))]
        for source, label, target in self.edges():
            leaving[source].append((label, target))
        return leaving

    def to_regular(self) -> Regular:
        """The language as a tree: a ``Machine``, or something simpler where it is."""
        if not len(self):
            return NOTHING
        if len(self) == 1:
            edges = self.edges()
            return repeat(edges[0][1], 0, None) if edges else EPSILON
        return self.machine(None)

    def machine(self, length: tuple[int, int | None] | None) -> Machine:
        """The language as a tree, with bounds on the length (see ``Machine``)."""
        return Machine(len(self), 0, self, self.accepts(), length)


def product(nodes: Sequence[Regular], others: Sequence[Regular], limits: Limits) -> Dfa:
    """The minimal automaton of the texts of all the ``nodes`` (at least one) and none of the ``others``."""
    return Dfa(_asked(SideBySide.combine, nodes, others, (), limits))


def divided(nodes: Sequence[Regular], limits: Limits) -> dict[bytes, Dfa]:
    """By which of the languages a text is in (a byte for each, 1 or 0) the minimal automaton of such texts; of each that there are."""
    tables = _asked(SideBySide.divide, [EVERY_TEXT], (), nodes, limits)
    return {flags[1:]: dfa for flags, table in in_time(tables.items()) if len(dfa := Dfa(table))}


def shortest_length(
    nodes: Sequence[Regular], others: Sequence[Regular], limits: Limits = DEFAULT_LIMITS
) -> int | None:
    """The length of a shortest text of all the ``nodes`` (at least one) and none of the ``others``; None: there is none."""
    return _asked(SideBySide.shortest, nodes, others, (), limits)


_T = TypeVar("_T")


def _asked(
    question: Callable[[SideBySide], _T],
    nodes: Sequence[Regular],
    others: Sequence[Regular],
    told_apart: Sequence[Regular],
    limits: Limits,
) -> _T:
    """The answer of automata side by side; the answer, or that a limit is passed, does not depend on what was asked before."""
    check_time()
    try:
        return question(_side_by_side(nodes, others, told_apart, limits))
    except LimitError as error:
        # An automaton that is shared may have become large for the sake of others.
        _forget(error)
    try:
        return question(_side_by_side(nodes, others, told_apart, limits))
    except LimitError as error:
        _forget(error)
        if len(nodes) + len(others) + len(told_apart) == 1:
            raise
    # What each of them has too much multiplies.
    inside, outside, apart = (
        [_smallest(node, limits) for node in each] for each in (nodes, others, told_apart)
    )
    return question(_side_by_side(inside, outside, apart, limits))


def _smallest(node: Regular, limits: Limits) -> Regular:
    """The same language by its minimal automaton, where that is within the limits."""
    try:
        return minimal_dfa(node, limits).to_regular()
    except LimitError as error:
        check_time_again(error)
        return node


class _Automaton(NamedTuple):
    alphabet: Alphabet
    subsets: SubsetAutomaton
    smallest: bool  # as far as is known: it is not tried (again) to make it smaller


class _Shared(threading.local):
    """Automata by tree (or what it was made of) and limit.

    Each thread has its own: they determinise while they are read.  So what they take is looked at behind their use.
    """

    def __init__(self) -> None:
        self.known: dict[tuple[object, int], _Automaton] = {}
        self.bytes: dict[tuple[object, int], int] = {}
        self.total = 0
        self.read: list[tuple[object, int]] = []

    def look(self) -> None:
        """Forget all when they have become too much."""
        for key in self.read:
            if key in self.known:
                taken = self.known[key].subsets.held_bytes() + _OBJECT_BYTES * weight(key[0], ROOM)
                self.total += taken - self.bytes.get(key, 0)
                self.bytes[key] = taken
        self.read.clear()
        if self.total > _SHARED_BYTES:
            self.forget()

    def forget(self) -> None:
        self.known.clear()
        self.bytes.clear()
        self.total = 0


_shared = _Shared()
_MAX_SHARED = 256
_MAX_SHARED_STATES = 2000
_OBJECT_BYTES = 100
_SHARED_BYTES = _OBJECT_BYTES * ROOM
_LARGE = 1000


def _read(node: Regular, limits: Limits) -> _Automaton:
    dfa = made_of(node)
    key = (node if dfa is None else dfa, limits.max_regex_states)
    known = _shared.known
    _shared.read.append(key)
    found = known.get(key)
    if found is not None and not found.smallest and len(found.subsets) > _LARGE:
        found = known[key] = _smaller(found, limits) or found._replace(smallest=True)
    if found is None or len(found.subsets) > _MAX_SHARED_STATES:
        if len(known) >= _MAX_SHARED:
            _shared.forget()
        made = _Automaton(*automaton_of(node, limits), smallest=dfa is not None or found is not None)
        found = known[key] = made
    return found


def _smaller(found: _Automaton, limits: Limits) -> _Automaton | None:
    """The minimal automaton of the same language, where it is small enough to be kept."""
    # Not much more of it is determinised for that than has been already: transitions count, too (see Subsets).
    most = min(8 * len(found.subsets), limits.max_regex_states)
    try:
        table = SideBySide([found.subsets], [found.alphabet], [True], most).combine()
    except LimitError as error:
        check_time_again(error)
        return None
    if not 0 < len(table) <= _MAX_SHARED_STATES:
        return None
    return _Automaton(table.alphabet, table.automaton(limits.max_regex_states), smallest=True)


def automaton_of(node: Regular, limits: Limits) -> tuple[Alphabet, SubsetAutomaton]:
    """An automaton of the language that is determinised as far as it is read, and its alphabet."""
    dfa = made_of(node)
    if isinstance(dfa, Dfa):
        return dfa.alphabet, dfa.table.automaton(limits.max_regex_states)
    alphabet = alphabet_of(leaf_sets(node))
    return alphabet, subset_automaton(node, alphabet, limits)


def _forget(error: LimitError) -> None:
    check_time_again(error)
    _shared.forget()


def _side_by_side(
    nodes: Sequence[Regular], others: Sequence[Regular], told_apart: Sequence[Regular], limits: Limits
) -> SideBySide:
    _shared.look()
    automata = [_read(node, limits) for node in (*nodes, *others, *told_apart)]
    wanted: list[bool | None] = [*[True] * len(nodes), *[False] * len(others), *[None] * len(told_apart)]
    alphabets = [automaton.alphabet for automaton in automata]
    subsets = [automaton.subsets for automaton in automata]
    return SideBySide(subsets, alphabets, wanted, limits.max_regex_states)


def minimal_dfa(node: Regular, limits: Limits) -> Dfa:
    """The minimal deterministic automaton of the language."""
    dfa = made_of(node)
    if isinstance(dfa, Dfa) and len(dfa) <= limits.max_regex_states:
        return dfa
    return _minimal_dfa(node, limits)


@remembered(_MAX_SHARED)
def _minimal_dfa(node: Regular, limits: Limits) -> Dfa:
    return product([node], (), limits)
