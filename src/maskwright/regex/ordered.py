"""Patterns with lazy quantifiers: which match a backtracking matcher takes, as automata.

A matcher tries its choices in an order and takes the first that leads to a match.  All trials are run at once here: a
state is the list of their positions, those tried first in front.  Where one matches, those behind it are dropped, as they
would not be tried; those before it go on, since their match would be taken.  So the match that is taken is the
longest of those seen.  Where a match counts only with certain text behind it (a look-ahead), those behind it stay until it is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from maskwright._subsets import reduce
from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError
from maskwright.limits import Limits
from maskwright.regex.assertions import START, Context, Obligations, Owing
from maskwright.regex.parser import Group, Item
from maskwright.regex.syntax import ASSERTIONS, Assertion
from maskwright.regular.determinize import Dfa, check_states
from maskwright.regular.dfa import explored, length_bounds
from maskwright.regular.expressions import NOTHING, Chars, Ranges, Regular, is_nothing, postorder

ASKS = "a terminal cannot ask for certain text behind it: make that text part of it"

_NO_LOOP = 0
_NONE: Obligations = frozenset()
# Entries of states that may be computed for each state allowed.
_WORK_PER_STATE = 20

_MATCHED = -1
"""Stands for a position: trials behind it are dropped once it is known that nothing is owed."""
_Entry: TypeAlias = tuple[int, Obligations]


class _Edge(NamedTuple):
    """A way on that reads nothing."""

    target: int
    assertion: Assertion | None = None
    entered: int = _NO_LOOP
    """The loop that a repetition of is begun."""
    left: int = _NO_LOOP


class _State(NamedTuple):
    """Behind a beginning of a text."""

    context: Context
    runs: tuple[tuple[_Entry, ...], ...]
    """By alternative of the pattern."""
    matched: bool
    """Whether a match ends here."""
    refused: bool
    """Whether it is known here that the last match does not count."""
    standing: frozenset[Obligations] | None
    """On what the last match counts: one of these; None: it counts anyway, or not at all."""
    asking: frozenset[Obligations]
    """What would have to follow for there to be a match that is seen nowhere."""


class _Positions:
    """The positions of patterns; the ways on from each are in the order in which they are tried."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.edges: list[list[_Edge]] = []
        self.reads: dict[int, tuple[Ranges, int]] = {}
        self.loops = _NO_LOOP
        self._work: list[tuple[Group | Regular, int, int]] = []

    def new(self) -> int:
        self.edges.append([])
        check_states(len(self.edges), self.limits)
        return len(self.edges) - 1

    def place(self, items: Sequence[Item], source: int, target: int) -> None:
        self._sequence(items, source, target)
        while self._work:
            body, source, target = self._work.pop()
            if isinstance(body, Group):
                for inner in (*body.alternatives, body.items):
                    begin = self.new()
                    self.edges[source].append(_Edge(begin))
                    self._sequence(inner, begin, target)
            else:
                self._leaf(body, source, target)

    def _leaf(self, leaf: Regular, source: int, target: int) -> None:
        if isinstance(leaf, ASSERTIONS):
            self.edges[source].append(_Edge(target, leaf))
        elif not is_nothing(leaf):
            assert isinstance(leaf, Chars)
            begin = self.new()
            self.edges[source].append(_Edge(begin))
            self.reads[begin] = leaf.ranges, target

    def _sequence(self, items: Sequence[Item], source: int, target: int) -> None:
        for item in items:
            source = self._item(item, source)
        self.edges[source].append(_Edge(target))

    def _copy(self, item: Item, source: int, target: int) -> None:
        self._work.append((item.body if item.group is None else item.group, source, target))

    def _item(self, item: Item, source: int) -> int:
        """The position behind it."""
        low, high = _counts(item)
        for _ in range(low):
            behind = self.new()
            self._copy(item, source, behind)
            source = behind
        if high == low:
            return source
        target, loop = self.new(), _NO_LOOP
        bounds = length_bounds(item.body)
        if bounds is not None and bounds[0] == 0:
            # A repetition that reads nothing is the last one.
            self.loops += 1
            loop = self.loops
        at = self.new()
        self.edges[source].append(_Edge(at))
        for _ in range(1 if high is None else high - low):
            begin, behind = self.new(), at if high is None else self.new()
            ways = [_Edge(begin, entered=loop), _Edge(target, left=loop)]
            self.edges[at] += reversed(ways) if item.fewest else ways
            self._copy(item, begin, behind)
            at = behind
        if high is not None:
            self.edges[at].append(_Edge(target, left=loop))
        return target


def _counts(item: Item) -> tuple[int, int | None]:
    low, high = item.low, item.high
    assert isinstance(low, int)
    assert high is None or isinstance(high, int)
    return low, high


class _Trials(Owing):
    def __init__(self, alternatives: Sequence[Sequence[Item]], limits: Limits) -> None:
        positions = _Positions(limits)
        self.end = positions.new()
        # Behind these, all that a trial comes to is behind one match of what is tried in order.
        self.matches: set[int] = set()
        self.starts = []
        for items in alternatives:
            source = positions.new()
            self.starts.append(source)
            if any(item.lazy for item in items):
                head, tail = _parted(items)
                match = positions.new()
                self.matches.add(match)
                positions.place(head, source, match)
                source, items = match, tail
            positions.place(items, source, self.end)
        self.edges = positions.edges
        assertions = [edge.assertion for edges in self.edges for edge in edges if edge.assertion is not None]
        sets = dict.fromkeys([ranges for ranges, _ in positions.reads.values()])
        super().__init__(assertions, sets, limits, START, 0)
        members = {ranges: frozenset(self.alphabet.members(ranges)) for ranges in sets}
        self.reads = {at: (members[ranges], target) for at, (ranges, target) in positions.reads.items()}
        self.work = 0

    def languages(self) -> tuple[Regular, Regular]:
        """What matches, and texts that show that a match does not count."""
        start = _Step(self, self.start_context)
        for source in self.starts:
            start.run([(source, _NONE)])
        states, rows = explored(start.state(None, -1), self._moves, self.limits)
        matched, refused = (
            Dfa(reduce(self.alphabet, rows, flags)).to_regular()
            for flags in ([state.matched for state in states], [state.refused for state in states])
        )
        return matched, refused if any(state.refused for state in states) else NOTHING

    def _moves(self, state: _State) -> dict[int, _State]:
        check_time()
        return {minterm: self._move(state, minterm) for minterm in self._minterms(state)}

    def _minterms(self, state: _State) -> Sequence[int]:
        entries = [entry for run in state.runs for entry in run]
        self.work += len(entries)
        check_states(self.work // _WORK_PER_STATE, self.limits)
        if state.standing is not None or state.asking:
            return range(len(self.alphabet))
        found: set[int] = set()
        for at, _ in entries:
            if at != _MATCHED:
                found |= self.reads[at][0]
        return sorted(found)

    def _move(self, state: _State, minterm: int) -> _State:
        step = _Step(self, self.step_context(state.context, minterm))
        for run in state.runs:
            entries = []
            for at, before in run:
                owed = self.step_owed(before, minterm)
                if owed is None:
                    continue
                if at == _MATCHED:
                    entries.append((at, owed))
                    if not owed:
                        break
                elif minterm in self.reads[at][0]:
                    entries.append((self.reads[at][1], owed))
            step.run(entries)
        return step.state(state, minterm)

    def further(self, some: frozenset[Obligations], minterm: int) -> frozenset[Obligations]:
        stepped = [self.step_owed(owed, minterm) for owed in some]
        return frozenset([owed for owed in stepped if owed is not None])


class _Step:
    """Behind one more character."""

    def __init__(self, trials: _Trials, context: Context) -> None:
        self.trials = trials
        self.context = context
        self.runs: list[tuple[_Entry, ...]] = []
        self.ends: dict[Obligations, None] = {}
        """What is owed by the matches that end here."""

    def run(self, entries: Sequence[_Entry]) -> None:
        """Those of one alternative, the first tried first."""
        found: dict[_Entry, None] = {}
        seen: set[tuple[int, Obligations, frozenset[int]]] = set()
        waiting = False
        for at, owed in entries:
            if at == _MATCHED:
                waiting = True
                if owed:
                    found[at, owed] = None
                continue
            count = len(self.ends)
            matched = self._closed(at, owed, found, seen)
            if waiting and len(self.ends) > count:
                raise GrammarError(
                    "a look-ahead behind a lazy quantifier can look no further than where the pattern may go on to "
                    "match: let it look at one character, or make it part of another terminal"
                )
            if matched:
                break
        self.runs.append(tuple(found))

    def _closed(
        self,
        start: int,
        owing: Obligations,
        found: dict[_Entry, None],
        seen: set[tuple[int, Obligations, frozenset[int]]],
    ) -> bool:
        """Adds what is reached without reading; whether that is a match, behind which nothing more is tried."""
        trials = self.trials
        matched = False
        work: list[tuple[int, Obligations, frozenset[int]]] = [(start, owing, frozenset())]
        while work:
            at, owed, loops = key = work.pop()
            if at == _MATCHED:
                found.setdefault((at, owed))
                continue
            if key in seen:
                continue
            seen.add(key)
            trials.work += 1
            if at in trials.matches:
                if owed:
                    work.append((_MATCHED, owed, loops))
                else:
                    work.clear()
                    matched = True
            if at == trials.end:
                self.ends[owed] = None
            elif at in trials.reads:
                found.setdefault((at, owed))
            for edge in reversed(trials.edges[at]):
                if edge.entered and edge.entered in loops:
                    continue
                after: Obligations | None = owed
                if edge.assertion is not None:
                    after = trials.owed(edge.assertion, self.context, owed)
                if after is not None:
                    inside = loops - {edge.left} if edge.left else loops
                    work.append((edge.target, after, inside | {edge.entered} if edge.entered else inside))
        return matched

    def state(self, before: _State | None, minterm: int) -> _State:
        trials = self.trials
        ends = frozenset(self.ends)
        if any(trials.paid(owed) for owed in ends):
            standing = None if _NONE in ends else ends
            return _State(self.context, tuple(self.runs), True, False, standing, frozenset())
        asking = ends
        standing, refused = None, False
        if before is not None:
            asked = trials.further(before.asking, minterm)
            if any(map(trials.paid, asked)):
                raise GrammarError(ASKS)
            asking |= asked
            if before.standing is not None:
                standing = trials.further(before.standing, minterm)
                refused = not any(map(trials.paid, standing))
                if before.refused and not refused:
                    # More text could undo what is refused.
                    raise GrammarError(
                        "a look-ahead at the end of a terminal cannot look further ahead itself: "
                        "list what may not follow, as in (?!as[^a-z]), or make it part of another terminal"
                    )
                if not standing or _NONE in standing:
                    standing = None
        return _State(self.context, tuple(self.runs), False, refused, standing, asking)


def _parted(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """What is tried in order, and what may follow it, of which any match counts: greedy parts that may be left out."""
    end = len(items)
    while end:
        item = items[end - 1]
        bounds = length_bounds(item.tree)
        if item.lazy or bounds is None or any(isinstance(node, ASSERTIONS) for node in postorder(item.tree)):
            break
        if bounds[0]:
            low, high = _counts(item)
            if low == high:
                break
            # What must be there belongs to the first match.
            return [*items[: end - 1], _counted(item, low, low)], [
                _counted(item, 0, None if high is None else high - low),
                *items[end:],
            ]
        end -= 1
    return list(items[:end]), list(items[end:])


def _counted(item: Item, low: int, high: int | None) -> Item:
    copy = Item(item.body, False, item.group)
    copy.repeated(low, high, False)
    return copy


def ordered_matches(alternatives: Sequence[Sequence[Item]], limits: Limits) -> tuple[Regular, Regular]:
    """What alternatives match inside of a text, and texts that show that a match does not count.

    The longest match of one of the alternatives counts; within one that has a lazy quantifier, the match that is tried first.
    Raises ``GrammarError`` where a match needs certain text behind it, or where one of two matches counts by what is
    behind both; ``LimitError`` (max_regex_states).
    """
    return _Trials(alternatives, limits).languages()
