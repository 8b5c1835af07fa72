"""Thompson's construction over ``Regular`` trees, with counted loops.

Large bounded repetitions stay counted (``loops``) instead of being unrolled.  There is one count, so counted
loops do not nest: of nested repetitions those are unrolled that cost the least.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import cython

from maskwright._subsets import Edges
from maskwright.base.deadline import check_time, if_many, in_time
from maskwright.errors import LimitError
from maskwright.limits import MAX_COUNT, Limits
from maskwright.regular.expressions import (
    NOTHING,
    Alt,
    Cat,
    Chars,
    Lit,
    Machine,
    Ranges,
    Regular,
    Repeat,
    Text,
    alt,
    cat,
    has_surrogate,
    is_minimal,
    made_of,
    postorder,
    repeat,
)

State: TypeAlias = int
Count: TypeAlias = int
Operation: TypeAlias = int
PLAIN, ENTER, LEAVE = 0, 1, 2
NO_SET = -1

# Up to this size, unrolling beats counting: fewer epsilons, and nested loops stay free to count.
_MANY_SETS = 4_096
"""The engine has a bit for each pair of a set and a class of characters, of which there may be as many, twice while it makes them."""
_SMALL_COPIES = 8
_SMALL_STATES = 64
# How deep a body is rewritten so that it does not match the empty string; deeper ones unroll.
_STRIP_DEPTH = 40


@cython.cclass
@dataclass(frozen=True)
class _Measure:
    """What the construction must know of a node; sizes are the states that it adds."""

    alive: bool
    nullable: bool
    counting: int
    """Size when loops may be counted."""
    unrolled: int
    """Size when they may not."""
    count_it: bool = False
    """Whether this repetition (or bounded machine) is itself counted, when it may be."""


_LEAF = _Measure(True, False, 0, 0)
_EMPTY = _Measure(False, False, 0, 0)


def _measure_parts(parts: list[_Measure], one_by_one: bool) -> _Measure:
    """Of a sequence, or of alternatives."""
    alive = nullable = one_by_one
    # Branches cost edges, not states; they count as well, to bound the work.
    counting = unrolled = max(len(parts) - 1, 0)
    for part in if_many(parts):
        if one_by_one:
            alive, nullable = alive and part.alive, nullable and part.nullable
        else:
            alive, nullable = alive or part.alive, nullable or part.nullable
        counting += part.counting
        unrolled += part.unrolled
    return _Measure(alive, nullable, counting, unrolled)


class Thompson:
    """Thompson's construction: places trees between two given states.

    Placing adds no edge into the source and none out of the target beyond those of the tree, so
    states can be shared.  ``edges`` are labelled with numbers of ``sets``.
    Raises ``LimitError`` above ``limits.max_regex_states`` states.
    """

    limits: Limits
    counting: bool
    n_states: int
    edges: Edges
    epsilons: list[tuple[int, int, int, int]]
    loops: list[tuple[int, int]]
    _loop_index: dict[tuple[int, int], int]
    _measured: dict[int, _Measure]
    _stripped: dict[int, Regular | None]
    sets: dict[tuple[Any, ...], int]
    _numbers: dict[int, tuple[Chars, int]]
    _codes: dict[int, int]
    _roots: list[Regular]
    """Measures are kept by identity: these trees must outlive the builder."""
    _stack: list[tuple[Regular, int, int, bool]]

    def __init__(self, limits: Limits, *, counting: bool) -> None:
        self.limits = limits
        self.counting = counting
        self.n_states = 0
        self.edges = Edges()
        self.epsilons = []
        self.loops = []
        self._loop_index = {}
        self._measured = {}
        self._stripped = {}
        self.sets = {}
        self._numbers = {}
        self._codes = {}
        self._roots = []
        self._stack = []

    def key_of(self, ranges: Ranges) -> tuple[Any, ...]:
        """What stands for a set; nothing, if no text has a code point of it."""
        return ranges

    def index_of(self, ranges: Ranges) -> State:
        """The number of a set, or ``NO_SET``."""
        key = self.key_of(ranges)
        if not key:
            return NO_SET
        number: int = self.sets.setdefault(key, len(self.sets))
        if number >= _MANY_SETS and number * number // 4 > self.limits.max_bytes:
            subject = f"{number} different sets of characters"
            raise LimitError("max_bytes", number * number // 4, self.limits.max_bytes, subject=subject)
        return number

    def other_leaf(self, node: object, source: State, target: State) -> None:
        """Place a leaf that is neither a set nor a text."""
        raise ValueError(f"no leaf of a regular tree: {node!r}")

    def leaf(self, node: object, source: State, target: State) -> None:
        """Lead from ``source`` to ``target`` by a set, or by what ``other_leaf`` knows."""
        if isinstance(node, Chars):
            index = self._index(node)
            if index != NO_SET:
                self.edges.append(source, index, target)
        else:
            self.other_leaf(node, source, target)

    def _index(self, node: Chars) -> State:
        # Few leaves stand at many edges, and a set takes long to hash.
        known: tuple[Chars, int] | None = self._numbers.get(id(node))
        if known is None:
            known = self._numbers[id(node)] = (node, self.index_of(node.ranges))
        return known[1]

    def new_state(self) -> State:
        self.n_states += 1
        return self.n_states - 1

    def place(self, root: Regular, source: State, target: State) -> None:
        """Lead from ``source`` to ``target`` by the texts of ``root``."""
        check_time()
        self._roots.append(root)
        self._measure(root)
        measure: _Measure = self._measured[id(root)]
        size = self.n_states + (measure.counting if self.counting else measure.unrolled)
        if size > self.limits.max_regex_states:
            raise LimitError("max_regex_states", size, self.limits.max_regex_states)
        self._stack = stack = [(root, source, target, self.counting)]
        while stack:
            check_time()
            node, source, target, counting = stack.pop()
            if isinstance(node, Cat):
                if self._measured[id(node)].alive:
                    for part in node.parts[:-1]:
                        middle = self.new_state()
                        stack.append((part, source, middle, counting))
                        source = middle
                    stack.append((node.parts[-1], source, target, counting))
            elif isinstance(node, Alt):
                for part in node.parts:
                    stack.append((part, source, target, counting))
            elif isinstance(node, Repeat):
                self._place_repeat(node, source, target, counting)
            elif isinstance(node, Machine):
                self._place_machine(node, source, target, counting)
            elif isinstance(node, Lit):
                if self._measured[id(node)].alive:
                    self._place_text(node.text, source, target)
            else:
                self.leaf(node, source, target)

    def _place_text(self, text: Text, source: State, target: State) -> None:
        if not text:
            self._plain(source, target)
        for i, c in enumerate(text):
            if i & 255 == 255:
                check_time()
            after = target if i == len(text) - 1 else self.new_state()
            index = self._codes.get(ord(c))
            if index is None:
                index = self._codes[ord(c)] = self.index_of(((ord(c), ord(c)),))
            self.edges.append(source, index, after)
            source = after

    def _plain(self, source: State, target: State) -> None:
        self.epsilons.append((source, target, PLAIN, 0))

    def _counted(self, op: Operation, source: State, target: State, low: Count, high: Count | None) -> None:
        self.epsilons.append((source, target, op, self._loop(low, high)))

    def _loop(self, low: Count, high: Count | None) -> Count:
        """The number of a loop."""
        if low > self.limits.max_count:
            raise LimitError("max_count", low, self.limits.max_count)
        bounds = (low, -1 if high is None or high > MAX_COUNT else high)
        loop = self._loop_index.setdefault(bounds, len(self.loops))
        if loop == len(self.loops):
            self.loops.append(bounds)
        return loop

    def _place_repeat(self, node: Repeat, source: State, target: State, counting: bool) -> None:
        measure: _Measure = self._measured[id(node)]
        body, low, high = node.body, node.min, node.max
        inner: _Measure = self._measured[id(body)]
        if not measure.alive:
            return
        if not inner.alive or high == 0:
            self._plain(source, target)
            return
        if inner.nullable:
            low = 0
        if counting and measure.count_it:
            stripped = self._stripped[id(node)]
            assert stripped is not None
            head, entry = self.new_state(), self.new_state()
            self._plain(source, head)
            self._counted(ENTER, head, entry, low, high)
            self._stack.append((stripped, entry, head, False))
            self._counted(LEAVE, head, target, low, high)
            return
        stack = self._stack
        for done in range(low - 1 if high is None else high):
            check_time()
            if done >= low:
                self._plain(source, target)
            after = self.new_state() if high is None or done + 1 < high else target
            stack.append((body, source, after, counting))
            source = after
        if high is None:
            head = self.new_state()
            self._plain(source, head)
            if low == 0:
                stack.append((body, head, head, counting))
                self._plain(head, target)
            else:
                last = self.new_state()
                stack.append((body, head, last, counting))
                self._plain(last, head)
                self._plain(last, target)

    def _place_machine(self, node: Machine, source: State, target: State, counting: bool) -> None:
        if node.length is None and made_of(node) is not None:
            self._place_table(node, source, target)
            return
        counted = node.length is not None and counting and self._measured[id(node)].count_it
        if counted and is_minimal(node):
            self._place_bounded_table(node, source, target)
            return
        edges = list(node.edges)
        if not is_minimal(node):  # whose sets are never empty
            edges = [edge for edge in in_time(edges) if self._measured[id(edge[1])].alive]
        stack = self._stack
        if counted:
            self._place_bounded(node, edges, source, target)
            return
        if node.length is not None:
            self._place_unrolled(node, edges, source, target)
            return
        # By state, where it is placed: the start, and where an edge leads; -1: nowhere.
        at: list[int] = [-1] * node.n_states
        entered, left = bytearray(node.n_states), bytearray(node.n_states)
        for a, _, b in in_time(edges):
            left[a] = entered[b] = 1
        if not entered[node.start]:
            at[node.start] = source
        if len(node.accepts) == 1 and node.accepts[0] != node.start and not left[node.accepts[0]]:
            at[node.accepts[0]] = target
        for state in range(node.n_states):
            if entered[state] and at[state] < 0:
                at[state] = self.new_state()
        if at[node.start] != source:
            self._plain(source, at[node.start])
        for a, label, b in edges:
            check_time()
            here = at[a]
            if here < 0:
                continue
            if isinstance(label, Chars):
                self.leaf(label, here, at[b])
            else:
                stack.append((label, here, at[b], counting))
        for accept in node.accepts:
            if at[accept] >= 0 and at[accept] != target:
                self._plain(at[accept], target)

    def _place_table(self, node: Machine, source: State, target: State) -> None:
        dfa = made_of(node)
        indices = [self._index(label) for label in dfa.labels()]
        self.n_states, steps = dfa.table.place(source, target, self.n_states, indices, self.edges)
        for a, b in steps:
            self._plain(a, b)

    def _place_bounded_table(self, node: Machine, source: State, target: State) -> None:
        # As ``_place_bounded``.
        low, high = node.length or (0, None)
        dfa = node.moves
        if not len(dfa):
            return
        indices = [self._index(label) for label in dfa.labels()]
        most = -1 if high is None or high > MAX_COUNT else high
        self._plain(source, self.n_states)
        entries, self.n_states, accepting = dfa.table.place_bounded(self.n_states, most, indices, self.edges)
        loops: dict[int, int] = {}
        for state, entry, need in entries:
            if need not in loops:
                loops[need] = self._loop(low, None if high is None else high - need)
            self.epsilons.append((state, entry, ENTER, loops[need]))
        for state in accepting:
            self._counted(LEAVE, state, target, low, high)

    def _place_bounded(
        self, node: Machine, edges: list[tuple[int, Regular, int]], source: int, target: int
    ) -> None:
        # Each edge counts one.  It may be entered only while the edges that are still needed
        # behind it fit under the bound: the loop of an edge has the bound less that distance.
        low, high = node.length or (0, None)
        distance = _distances(node.n_states, edges, node.accepts)
        at = {state: self.new_state() for state in distance}
        if node.start not in at:
            return
        entries: dict[tuple[int, int], int] = {}
        self._plain(source, at[node.start])
        for a, label, b in edges:
            check_time()
            if b not in distance:
                continue
            need = 0 if high is None else distance[b]
            if high is not None and high - need < 1:
                continue
            entry = entries.get((a, need))
            if entry is None:
                entry = entries[a, need] = self.new_state()
                self._counted(ENTER, at[a], entry, low, None if high is None else high - need)
            if isinstance(label, Chars):
                self.leaf(label, entry, at[b])
            else:
                self._stack.append((label, entry, at[b], False))
        for accept in node.accepts:
            self._counted(LEAVE, at[accept], target, low, high)

    def _place_unrolled(
        self, node: Machine, edges: list[tuple[int, Regular, int]], source: int, target: int
    ) -> None:
        low, high = node.length or (0, None)
        at = {(node.start, 0): self.new_state()}
        self._plain(source, at[node.start, 0])
        leaving: dict[int, list[tuple[Regular, int]]] = {}
        for a, label, b in edges:
            leaving.setdefault(a, []).append((label, b))
        work = [(node.start, 0)]
        accepts = set(node.accepts)
        while work:
            state, count = work.pop()
            here = at[state, count]
            if count >= low and state in accepts:
                self._plain(here, target)
            if count == high:
                continue
            after = min(count + 1, low) if high is None else count + 1
            for label, b in leaving.get(state, ()):
                check_time()
                if (b, after) not in at:
                    at[b, after] = self.new_state()
                    work.append((b, after))
                self._stack.append((label, here, at[b, after], False))

    def _measure(self, root: Regular) -> None:
        measured = self._measured
        for node in postorder(root, into_automata=False, known=measured):
            check_time()
            if id(node) in measured:
                continue
            if isinstance(node, Chars):
                measure = _LEAF if node.ranges else _EMPTY
            elif isinstance(node, (Cat, Alt)):
                parts = [measured[id(part)] for part in if_many(node.parts)]
                measure = _measure_parts(parts, isinstance(node, Cat))
            elif isinstance(node, Repeat):
                measure = self._measure_repeat(node)
            elif isinstance(node, Machine):
                measure = self._measure_machine(node)
            elif isinstance(node, Lit):
                size = max(len(node.text) - 1, 0)
                measure = _EMPTY if has_surrogate(node.text) else _Measure(True, not node.text, size, size)
            else:
                # An assertion is empty, but not everywhere: a repetition may not skip it.
                measure = _Measure(True, False, 0, 0)
            measured[id(node)] = measure

    def _measure_repeat(self, node: Repeat) -> _Measure:
        inner: _Measure = self._measured[id(node.body)]
        low, high = node.min, node.max
        if high is not None and low > high:
            return _Measure(False, False, 0, 0)
        if not inner.alive or high == 0:
            return _Measure(low == 0, low == 0, 0, 0)
        if inner.nullable:
            low = 0
        if high is None:
            extra, copies = 2, max(low, 1)
        else:
            extra, copies = 0, high
        unrolled = copies * (inner.unrolled + 1) + extra
        # Inside a copy the loops of the body may still count.
        counting = copies * (inner.counting + 1) + extra
        small = copies <= _SMALL_COPIES and counting <= _SMALL_STATES
        if not self.counting or copies == 1 or small:
            return _Measure(True, low == 0, counting, unrolled)
        stripped = _nonempty(node.body, self._measured) if inner.nullable else node.body
        self._stripped[id(node)] = stripped
        if stripped is None:
            return _Measure(True, low == 0, counting, unrolled)
        if stripped is not node.body:
            self._roots.append(stripped)
            self._measure(stripped)
        counted = self._measured[id(stripped)].unrolled + 2
        if counted >= counting:
            return _Measure(True, low == 0, counting, unrolled)
        return _Measure(True, low == 0, counted, unrolled, True)

    def _measure_machine(self, node: Machine) -> _Measure:
        size = counted = node.n_states
        # The edges of a minimal automaton are labelled with sets, which add no states.
        if not is_minimal(node):
            for _, label, _ in in_time(node.edges):
                measure: _Measure = self._measured[id(label)]
                size += measure.unrolled
                counted += measure.counting
        nullable = node.start in node.accepts
        if node.length is None:
            return _Measure(bool(node.accepts), nullable, counted, size)
        low, high = node.length
        unrolled = size * ((low if high is None else high) + 1)
        small = unrolled <= _SMALL_STATES
        alive = bool(node.accepts) and (high is None or low <= high)
        # Counted, an edge has an entry state of its own at most.
        counting = unrolled if small else size + len(node.edges)
        return _Measure(alive, nullable and low == 0, counting, unrolled, not small)


class Sizes:
    """How many states the automata of regular trees have, each node measured once."""

    def __init__(self, limits: Limits, *, counting: bool = True) -> None:
        self._builder = Thompson(limits, counting=counting)

    def __call__(self, root: Regular) -> int:
        builder: Thompson = self._builder
        # Measures are kept by identity.
        builder._roots.append(root)
        builder._measure(root)
        measure: _Measure = builder._measured[id(root)]
        return measure.counting


def without_empty_string(root: Regular, limits: Limits) -> Regular | None:
    """The language without the empty string; None where only an automaton can tell (``dfa.without_empty``)."""
    builder = Thompson(limits, counting=False)
    builder._measure(root)
    return _nonempty(root, builder._measured)


def _nonempty(root: Regular, measured: dict[int, _Measure]) -> Regular | None:
    """The language without the empty string; None where the rewriting would be too deep."""

    def strip(node: Regular, depth: int) -> Regular | None:
        measure = measured.get(id(node))
        if measure is not None and not measure.nullable:
            return node
        if depth > _STRIP_DEPTH:
            return None
        if isinstance(node, Alt):
            parts = [strip(part, depth + 1) for part in node.parts]
            return None if None in parts else alt(*(part for part in parts if part is not None))
        if isinstance(node, Cat):
            first = strip(node.parts[0], depth + 1)
            if len(node.parts) == 1 or first is None:
                return first
            rest = cat(*node.parts[1:])
            behind = strip(rest, depth + 1)
            return None if behind is None else alt(cat(first, rest), behind)
        if isinstance(node, Repeat):
            body = strip(node.body, depth + 1)
            return None if body is None else repeat(body, 1, node.max)
        if isinstance(node, Machine) and node.length is None:
            start = node.n_states
            copies = tuple((start, label, b) for a, label, b in node.edges if a == node.start)
            return Machine(start + 1, start, (*node.edges, *copies), node.accepts)
        return NOTHING if isinstance(node, Lit) else None

    return strip(root, 0)


def _distances(
    n_states: int, edges: list[tuple[int, Regular, int]], accepts: tuple[int, ...]
) -> dict[int, int]:
    """The least number of edges to an accepting state, of the states that reach one."""
    entering: list[list[int]] = [[] for _ in range(n_states)]
    for a, _, b in edges:
        entering[b].append(a)
    distance = dict.fromkeys(accepts, 0)
    queue = list(accepts)
    for state in queue:
        for before in entering[state]:
            if before not in distance:
                distance[before] = distance[state] + 1
                queue.append(before)
    return distance
