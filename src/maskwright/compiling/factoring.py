"""Rule bodies as minimal deterministic automata, with helper rules put in place of their calls.

A parser of many rules at one place is a parser state of many items, and items that mean the same should be the
same: alternatives that begin alike, the first item of a list and the others.  A repetition arrives as a left-recursive
helper rule (``star: item | star item``).  Put in place, it is a loop of the rule around it: no call, and no cycle of
return addresses.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TypeAlias

from maskwright.base.deadline import check_time, in_time, let_go

# Deterministic rule bodies may have so many times as many states.
_MAX_GROWTH = 4
# And so many times as many places in all of them.
_MAX_PLACES = 64
_MAX_MOVES = 1_000_000
"""Moves that are looked at, or 64 times as many as there are."""
_MAX_NESTED = 32  # helper rules in helper rules
_FEW = 16  # states whose moves are sooner compared than hashed
_MAX_ROUNDS = 64  # of making states equal; longer bodies are left as they are
_OWN = -1
_MANY = 10_000  # places: what is made of more is let go of piece by piece


class PlainState:
    """A place in a rule body."""

    terms: list[tuple[int, int, int]]
    """(automaton, next plain state, tag)"""
    calls: list[tuple[int, int]]
    """(rule, next plain state)"""
    final: bool
    guard: int
    """Of an array of different items: one more than its index."""

    def __init__(
        self,
        terms: list[tuple[int, int, int]] | None = None,
        calls: list[tuple[int, int]] | None = None,
        final: bool = False,
    ) -> None:
        self.terms = [] if terms is None else terms
        self.calls = [] if calls is None else calls
        self.final = final
        self.guard = 0

    def add(self, other: PlainState) -> None:
        for term in other.terms:
            if term not in self.terms:
                self.terms.append(term)
        for call in other.calls:
            if call not in self.calls:
                self.calls.append(call)
        self.final = self.final or other.final

    def add_all(self, others: Sequence[PlainState]) -> None:
        """``add`` each."""
        if len(others) < _FEW:
            for other in others:
                self.add(other)
            return
        terms = dict.fromkeys(self.terms)
        calls = dict.fromkeys(self.calls)
        for other in others:
            check_time()
            terms.update(dict.fromkeys(other.terms))
            calls.update(dict.fromkeys(other.calls))
            self.final = self.final or other.final
        self.terms, self.calls = list(terms), list(calls)


_Place: TypeAlias = "tuple[int, int, _Place | None]"
"""A plain state, the rule that was put in place and that it belongs to (``_OWN``: none), and the place behind that."""


def factor(
    plain: list[PlainState], starts: dict[int, int], helpers: Collection[int]
) -> tuple[list[PlainState], dict[int, int]]:
    """Other plain states for the same languages; ``starts`` has the first one of each rule that is made of such.

    ``helpers``: rules of which nobody asks where they are; where they are not recursive in the middle, they are put
    in place.  What would take many more states is left as it is.
    """
    most = _MAX_GROWTH * len(plain)
    for inlined in dict.fromkeys((_inlined(plain, starts, helpers), frozenset[int]())):
        factoring = _Factoring(plain, starts, inlined)
        try:
            found = factoring.states(most)
            if found is not None:
                return _minimal(*found)
        finally:
            let_go(factoring.numbers, *factoring.sets, factoring.sets, factoring.again)
    return plain, starts


def _ends(state: PlainState) -> bool:
    return state.final and not state.terms and not state.calls


def _inlined(plain: list[PlainState], starts: dict[int, int], helpers: Collection[int]) -> frozenset[int]:
    """The helper rules that call no helper rule which leads back to them, but at their beginning or end."""
    called: dict[int, set[int]] = {}
    for rule in helpers:
        if rule not in starts:
            continue
        start = starts[rule]
        found = called[rule] = set()
        for state in _reachable(plain, start):
            for callee, back in plain[state].calls:
                at_an_end = callee == rule and (state == start or _ends(plain[back]))
                if callee in helpers and not at_an_end:
                    found.add(callee)
    # What leads back to itself is never ready.
    done: set[int] = set()
    for _ in range(_MAX_NESTED):
        ready = [rule for rule in called if rule not in done and called[rule] & called.keys() <= done]
        if not ready:
            break
        done.update(ready)
    return frozenset(done)


def _reachable(plain: list[PlainState], start: int) -> list[int]:
    found = {start: None}
    for state in in_time(work := [start]):
        after = [target for _, target, _ in plain[state].terms] + [back for _, back in plain[state].calls]
        new = [target for target in dict.fromkeys(after) if target not in found]
        found.update(dict.fromkeys(new))
        work += new
    return work


class _Factoring:
    def __init__(self, plain: list[PlainState], starts: dict[int, int], inlined: frozenset[int]) -> None:
        self.plain = plain
        self.starts = starts
        self.inlined = inlined
        self.again = {
            rule: [back for callee, back in plain[starts[rule]].calls if callee == rule] for rule in inlined
        }
        """What follows a left-recursive rule in itself: read any number of times behind its other texts."""
        self.numbers: dict[frozenset[_Place], int] = {}
        self.sets: list[list[_Place]] = []
        self.made: list[PlainState] = []
        self.left = _MAX_PLACES * len(plain)
        """Places that may still be looked at, and moves."""
        self.moves = max(_MAX_MOVES, 64 * sum([len(state.terms) + len(state.calls) for state in plain]))

    def number(self, places: list[_Place]) -> int:
        check_time()
        # In the order in which they come, which is the same in every process.
        places = list(dict.fromkeys(places))
        found = self.numbers.setdefault(frozenset(places), len(self.sets))
        if found == len(self.sets):
            self.sets.append(places)
            self.made.append(PlainState())
        return found

    def states(self, most: int) -> tuple[list[PlainState], dict[int, int]] | None:
        """None: there are too many."""
        starts = {rule: self.number([(start, _OWN, None)]) for rule, start in self.starts.items()}
        for number, places in enumerate(self.sets):
            check_time()
            if not self.fill(self.made[number], places) or len(self.sets) > most:
                return None
        return self.made, starts

    def fill(self, made: PlainState, places: list[_Place]) -> bool:
        """False: there are too many places or moves."""
        terms: dict[tuple[int, int], list[_Place]] = {}
        calls: dict[int, list[_Place]] = {}
        closed = self.closed(places)
        self.left -= len(closed)
        if self.left < 0:
            return False
        try:
            for place in closed:
                check_time()
                at, rule, behind = place
                state = self.plain[at]
                self.moves -= len(state.terms) + len(state.calls)
                if self.moves < 0:
                    return False
                made.final = made.final or (state.final and rule == _OWN)
                for term, target, tag in state.terms:
                    terms.setdefault((term, tag), []).append((target, rule, behind))
                for callee, back in state.calls:
                    if callee not in self.inlined:
                        calls.setdefault(callee, []).append((back, rule, behind))
            made.terms = [(term, self.number(after), tag) for (term, tag), after in terms.items()]
            made.calls = [(callee, self.number(after)) for callee, after in calls.items()]
        finally:
            if sum(map(len, terms.values())) > _MANY:
                let_go(*terms.values(), *calls.values(), terms, calls)
        return True

    def closed(self, places: list[_Place]) -> list[_Place]:
        """With where calls of inlined rules and their ends lead."""
        seen = set(places)
        work = list(places)
        for at, rule, behind in work:
            check_time()
            if len(work) > self.left:
                break
            state = self.plain[at]
            more: list[_Place] = []
            if state.final and rule != _OWN:
                assert behind is not None
                more.append(behind)
                more += [(back, rule, behind) for back in self.again[rule]]
            for callee, back in state.calls:
                if callee not in self.inlined or (callee == rule and at == self.starts[rule]):
                    continue
                if callee == rule and _ends(self.plain[back]):
                    more.append((self.starts[rule], rule, behind))
                else:
                    more.append((self.starts[callee], callee, (back, rule, behind)))
            new = [place for place in dict.fromkeys(more) if place not in seen]
            seen.update(new)
            work += new
        return work


def _minimal(plain: list[PlainState], starts: dict[int, int]) -> tuple[list[PlainState], dict[int, int]]:
    """With equal states merged (Moore, 1956), those of each rule apart: a place tells its rule."""
    owners: dict[int, int] = {}
    for rule, start in starts.items():
        for at in _reachable(plain, start):
            owners.setdefault(at, rule)
    classes = _numbered(
        [(_OWN if _ends(state) else owners[at], state.final) for at, state in enumerate(in_time(plain))]
    )
    count = 0
    for _ in range(_MAX_ROUNDS):
        check_time()
        before, count = count, max(classes, default=-1) + 1
        if count == before:
            break
        classes = _numbered(
            [
                (
                    classes[at],
                    frozenset([(term, tag, classes[target]) for term, target, tag in state.terms]),
                    frozenset([(rule, classes[back]) for rule, back in state.calls]),
                )
                for at, state in enumerate(in_time(plain))
            ]
        )
    else:
        return plain, starts
    made = [PlainState() for _ in range(count)]
    for at, state in enumerate(in_time(plain)):
        one = made[classes[at]]
        if not one.terms and not one.calls:
            one.final = state.final
            one.terms = [(term, classes[target], tag) for term, target, tag in state.terms]
            one.calls = [(rule, classes[back]) for rule, back in state.calls]
    return made, {rule: classes[start] for rule, start in starts.items()}


def _numbered(names: list[object]) -> list[int]:
    numbers: dict[object, int] = {}
    found = [numbers.setdefault(name, len(numbers)) for name in in_time(names)]
    let_go(names, numbers)
    return found
