"""Deterministic automata over code points: subset construction, products, minimisation.

All work is done on minterms.  A minterm is a largest set of code points that no leaf tells
apart: a tree has few of them, out of 1 112 064 code points.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from maskwright.automata import Thompson
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

DEAD = -1
"""In the state of a product: this automaton accepts no continuation."""

# Elements of state sets, or transitions, that may be computed for each state allowed.
WORK_PER_STATE = 4


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
        self.edges: list[tuple[int, tuple[int, ...], int]] = []

    def leaf(self, node: Regular, source: int, target: int) -> None:
        if isinstance(node, Chars):
            self.edges.append((source, self.alphabet.members(node.ranges), target))
        else:
            raise ValueError(f"no leaf of a regular tree: {node!r}")


class SubsetAutomaton:
    """The deterministic automaton of a tree, by lazy subset construction.

    State 0 is the start.  Raises ``LimitError`` above ``limits.max_regex_states`` states (or
    when the sets that stand for them become too large).
    """

    def __init__(self, node: Regular, alphabet: Alphabet, limits: Limits) -> None:
        builder = _CodeThompson(alphabet, limits)
        start, self._accept = builder.new_state(), builder.new_state()
        builder.place(node, start, self._accept)
        self._limits = limits
        self._edges: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in range(builder.n_states)]
        for a, members, b in builder.edges:
            self._edges[a].append((members, b))
        self._epsilons: list[list[int]] = [[] for _ in range(builder.n_states)]
        for a, b, _, _ in builder.epsilons:
            self._epsilons[a].append(b)
        self._ids: dict[frozenset[int], int] = {}
        self._sets: list[frozenset[int]] = []
        self._rows: list[dict[int, int] | None] = []
        self._work = 0
        self._intern({start})

    def accepting(self, state: int) -> bool:
        return self._accept in self._sets[state]

    def row(self, state: int) -> dict[int, int]:
        """Target states by minterm; a minterm that is missing leads nowhere."""
        row = self._rows[state]
        if row is None:
            reached: dict[int, set[int]] = {}
            for q in self._sets[state]:
                for members, target in self._edges[q]:
                    for i in members:
                        reached.setdefault(i, set()).add(target)
            self._count_work(len(reached))
            # Minterms mostly go together: close each distinct set once.
            closed: dict[frozenset[int], int] = {}
            row = self._rows[state] = {}
            for i, targets in reached.items():
                key = frozenset(targets)
                if key not in closed:
                    closed[key] = self._intern(targets)
                row[i] = closed[key]
        return row

    def _intern(self, states: set[int]) -> int:
        work = list(states)
        while work:
            for target in self._epsilons[work.pop()]:
                if target not in states:
                    states.add(target)
                    work.append(target)
        self._count_work(len(states))
        key = frozenset(q for q in states if self._edges[q] or q == self._accept)
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = len(self._sets)
            self._sets.append(key)
            self._rows.append(None)
            check_states(found + 1, self._limits)
        return found

    def _count_work(self, amount: int) -> None:
        self._work += amount
        check_states(self._work // WORK_PER_STATE, self._limits)


def check_states(given: int, limits: Limits) -> None:
    if given > limits.max_regex_states:
        raise LimitError("max_regex_states", given, limits.max_regex_states)


@dataclass
class Dfa:
    """A trimmed deterministic automaton: rows map minterms to states; state 0 is the start.

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
    hopeless: Callable[[tuple[int, ...]], bool],
    limits: Limits,
) -> Dfa:
    """The automaton of a boolean combination; states that are ``hopeless`` are not explored."""
    alphabet = Alphabet(leaf_sets(*nodes))
    automata = [SubsetAutomaton(node, alphabet, limits) for node in nodes]
    start = (0,) * len(nodes)
    ids = {start: 0}
    order = [start]
    rows: list[dict[int, int]] = []
    accepting: list[bool] = []
    transitions = 0
    for state in order:
        inside = [q != DEAD and a.accepting(q) for a, q in zip(automata, state, strict=True)]
        accepting.append(accept(inside))
        below = [a.row(q) if q != DEAD else {} for a, q in zip(automata, state, strict=True)]
        row: dict[int, int] = {}
        for minterm in sorted(set().union(*below)):
            target = tuple([row_.get(minterm, DEAD) for row_ in below])
            if hopeless(target):
                continue
            found = ids.get(target)
            if found is None:
                found = ids[target] = len(order)
                order.append(target)
                check_states(len(order), limits)
            row[minterm] = found
        transitions += len(row)
        check_states(transitions // WORK_PER_STATE, limits)
        rows.append(row)
    return minimise(trim(Dfa(alphabet, rows, accepting)))


def minimal_dfa(node: Regular, limits: Limits) -> Dfa:
    """The minimal deterministic automaton of the language."""
    return product([node], all, lambda state: DEAD in state, limits)


def trim(dfa: Dfa) -> Dfa:
    """Without the states that reach no accepting one; the others keep their order."""
    before: list[list[int]] = [[] for _ in dfa.rows]
    for state, row in enumerate(dfa.rows):
        for target in set(row.values()):
            before[target].append(state)
    work = [i for i, accepting in enumerate(dfa.accepting) if accepting]
    useful = set(work)
    while work:
        for state in before[work.pop()]:
            if state not in useful:
                useful.add(state)
                work.append(state)
    if not useful:
        return Dfa(dfa.alphabet, [], [])
    kept = sorted(useful)
    new = {state: i for i, state in enumerate(kept)}
    rows = [{m: new[t] for m, t in dfa.rows[state].items() if t in new} for state in kept]
    return Dfa(dfa.alphabet, rows, [dfa.accepting[state] for state in kept])


def minimise(dfa: Dfa) -> Dfa:
    """The minimal automaton of a trimmed one, by Hopcroft's partition refinement.

    Missing transitions need no dead state: a trimmed state is never equivalent to it, and
    splitting on every block's predecessors tells present transitions from missing ones.
    """
    n = len(dfa.rows)
    if n < 2:
        return dfa
    before: list[dict[int, list[int]]] = [{} for _ in range(n)]
    for state, row in enumerate(dfa.rows):
        for minterm, target in row.items():
            before[target].setdefault(minterm, []).append(state)
    groups: dict[tuple[bool, frozenset[int]], set[int]] = {}
    for state, row in enumerate(dfa.rows):
        groups.setdefault((dfa.accepting[state], frozenset(row)), set()).add(state)
    blocks = list(groups.values())
    block_of = [0] * n
    for index, block in enumerate(blocks):
        for state in block:
            block_of[state] = index
    waiting = set(range(len(blocks)))
    while waiting:
        splitter = blocks[waiting.pop()]
        entering: dict[int, list[int]] = {}
        for target in splitter:
            for minterm, states in before[target].items():
                entering.setdefault(minterm, []).extend(states)
        for states in entering.values():
            touched: dict[int, set[int]] = {}
            for state in states:
                touched.setdefault(block_of[state], set()).add(state)
            for index, part in touched.items():
                block = blocks[index]
                if len(part) == len(block):
                    continue
                block -= part
                blocks.append(part)
                for state in part:
                    block_of[state] = len(blocks) - 1
                if index in waiting or len(part) <= len(block):
                    waiting.add(len(blocks) - 1)
                else:
                    waiting.add(index)
    if len(blocks) == n:
        return dfa
    # Blocks are numbered by their first state, so that the start stays 0.
    order: dict[int, int] = {}
    for state in range(n):
        order.setdefault(block_of[state], len(order))
    rows: list[dict[int, int]] = [{} for _ in order]
    accepting = [False] * len(order)
    for state, row in enumerate(dfa.rows):
        index = order[block_of[state]]
        if not rows[index]:
            rows[index] = {m: order[block_of[t]] for m, t in row.items()}
            accepting[index] = dfa.accepting[state]
    return Dfa(dfa.alphabet, rows, accepting)
