"""Can the open slots be filled?  Reading a canvas from left to right, all fillings at once.

``Reading.viable(state, i)`` says whether the slots from ``i`` on can be filled, one token each, so that a text in
``state`` becomes one of the language.  A state may be that of many texts (``StateSets``), and an open
slot leads to the state of all texts that are one token longer; so a question is one walk to the right, never
a search.  Answers are kept by slot and state: fixing a slot leaves every *no* true, and opening one every
*yes*.

Exact when the state sets are (``StateSets.exact``); else a *yes* means that nothing but two equal keys of
one object can still be in the way.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright._core import StateSets
from maskwright.diffusion.distance import Distances
from maskwright.diffusion.slots import EMPTY, OPEN, Slots
from maskwright.errors import LimitError, UnsatisfiableError, VocabularyError

Classes: TypeAlias = list[tuple[int, npt.NDArray[np.int32]]]
"""Tokens by the state that they lead to."""
Snapshot: TypeAlias = tuple[list[int], list[set[int]], list[set[int]], list[int], int, int]

_FRESH_COST = 4
_PARTS_A_STEP = 8
"""What a step from a state that is new costs, in looks at known ones."""
_SHORT_SEARCH = 250
"""Threads looked at in a short search for a completion."""


class OutOfBudget(Exception):
    """The steps allowed for one question are spent."""


class Reading:
    """A canvas under a grammar; ``ends``: the ids of end tokens (none: the text fills every slot).

    ``banned``: ids of text that open slots do not get.
    """

    def __init__(
        self, sets: StateSets, slots: Slots, ends: frozenset[int], banned: frozenset[int] = frozenset()
    ) -> None:
        self.sets = sets
        self.tokens = list(slots.tokens)
        self.optional = list(slots.optional)
        self.ends = ends
        self.banned = banned
        self.steps_left: float = float("inf")
        self.until: float = float("inf")
        """When the search for a first filling ends (``time.monotonic``)."""
        self.known: Sequence[int] = ()
        """States from which a filling is known, by slot, from ``known_from`` on (-1: behind the text)."""
        self.known_from = 0
        self._any: dict[int, int] = {}
        self._classes: dict[int, Classes] = {}
        self._narrowed: set[int] = set()
        """States from which banned tokens alone lead to some others."""
        self._distances = Distances()
        self._completions: dict[int, list[int] | None] = {}
        self._near: dict[int, list[int] | None] = {}
        self.renew()

    def fork(self) -> Reading:
        """A copy with slots of its own; what is known of states is shared."""
        other = copy.copy(self)
        other.tokens, other.optional = list(self.tokens), list(self.optional)
        other._yes, other._no, other._forward = list(self._yes), list(self._no), list(self._forward)
        # Sets are copied when they are written to.
        self._owned.clear()
        other._owned = set()
        return other

    def renew(self) -> None:
        """Forget everything about the canvas, after slots came or went."""
        self._yes: list[set[int]] = [set() for _ in self.tokens]
        self._no: list[set[int]] = [set() for _ in self.tokens]
        self._owned: set[tuple[bool, int]] = set()
        self._forward = [self.sets.start]
        self.end = 0
        """The first slot with an end token."""
        self.last = len(self.tokens) - 1
        """The last slot with fixed text; behind it the text may end anywhere."""
        self._survey()

    def _survey(self) -> None:
        """Go to the first end from a slot that is not behind it, and to the last text from one not before it."""
        tokens, ends = self.tokens, self.ends
        while self.end < len(tokens) and tokens[self.end] not in ends:
            self.end += 1
        while ends and self.last >= 0 and (tokens[self.last] < 0 or tokens[self.last] in ends):
            self.last -= 1

    # --- changing slots

    def change(self, position: int, token: int) -> None:
        """Put a token (or ``OPEN``, ``EMPTY``) into a slot."""
        self.change_many([(position, token)])

    def change_many(self, changes: Sequence[tuple[int, int]]) -> None:
        """The same in several slots; at least one."""
        end = self.end
        widened = any(self.tokens[position] != OPEN for position, _ in changes)
        for position, token in changes:
            self.tokens[position] = token
            if token in self.ends:
                self.end = min(self.end, position)
            elif token >= 0:
                self.last = max(self.last, position)
        self._survey()
        del self._forward[min(position for position, _ in changes) + 1 :]
        last = max(position for position, _ in changes)
        fixed = any(token != OPEN for _, token in changes)
        stale = last + 1 if end == self.end else len(self.tokens)
        if widened:
            self._forget(False, stale)
        if fixed:
            self._forget(True, stale)

    def _forget(self, answer: bool, stop: int) -> None:
        """Forget such answers for slots before ``stop``."""
        known = self._yes if answer else self._no
        for i, states in enumerate(known[:stop]):
            if states:
                known[i] = set()
                self._owned.add((answer, i))

    def snapshot(self) -> Snapshot:
        """What ``restore`` needs to take changes back; what is found out until then is forgotten."""
        saved = (self.tokens, self._yes, self._no, self._forward, self.end, self.last)
        self.tokens, self._forward = list(self.tokens), list(self._forward)
        self._yes, self._no = list(self._yes), list(self._no)
        # Sets are copied when they are written to.
        self._owned.clear()
        return saved

    def restore(self, saved: Snapshot) -> None:
        self.tokens, self._yes, self._no, self._forward, self.end, self.last = saved
        self._owned.clear()

    def _note(self, answer: bool, trail: list[tuple[int, int]]) -> None:
        known = self._yes if answer else self._no
        for i, state in trail:
            if (answer, i) not in self._owned:
                known[i] = set(known[i])
                self._owned.add((answer, i))
            known[i].add(state)

    # --- states

    def spend(self, steps: int = 1) -> None:
        self.steps_left -= steps
        if self.steps_left < 0:
            raise OutOfBudget

    def check_clock(self) -> None:
        if time.monotonic() > self.until:
            raise OutOfBudget

    def any(self, state: int) -> int:
        """The state behind any one token."""
        target = self._any.get(state)
        if target is None:
            self.check_clock()
            self.spend(_FRESH_COST + self.sets.cost(state) // _PARTS_A_STEP)
            target = self._any_allowed(state) if self.banned else self.sets.any(state)
            self._any[state] = target
        return target

    def _any_allowed(self, state: int) -> int:
        classes = self.classes_of(state)
        if state not in self._narrowed:
            return self.sets.any(state)
        target = -1
        for after, _ in classes:
            target = self.sets.join(target, after)
        return target

    def classes_of(self, state: int) -> Classes:
        """Tokens that an open slot may get, by where they lead, large classes first."""
        classes = self._classes.get(state)
        if classes is None:
            self.spend(len(self._classes) // 8 + 20)
            found = [(target, np.frombuffer(ids, dtype=np.int32)) for target, ids in self.sets.classes(state)]
            if self.banned:
                banned = np.array(list(self.banned))
                kept = [(target, ids[~np.isin(ids, banned)]) for target, ids in found]
                found = [(target, ids) for target, ids in kept if len(ids)]
                if len(found) < len(kept):
                    self._narrowed.add(state)
            classes = self._classes[state] = sorted(found, key=lambda entry: -len(entry[1]))
        return classes

    def behind(self, state: int, i: int) -> int:
        """The state behind slot ``i``, -1 when there is none."""
        token = self.tokens[i]
        if token == EMPTY:
            return state
        if token != OPEN:
            return self.sets.next(state, token)
        after = self.any(state)
        return self.sets.join(state, after) if self.optional[i] else after

    def states_along(self, texts: Sequence[int]) -> list[int]:
        """The state before each slot of a full canvas (-1: behind the text), and behind the last one."""
        states = [state := int(self.sets.start)]
        follow, ends = self.sets.next, self.ends
        for token in texts:
            if token in ends:
                state = -1
            elif token != EMPTY and state >= 0:
                state = follow(state, token)
            states.append(state)
        return states

    def forward(self, i: int) -> int:
        """The state of all texts that the slots before ``i`` can hold, -1 when there are none."""
        while len(self._forward) <= i:
            state = self._forward[-1]
            self.spend()
            self._forward.append(-1 if state < 0 else self.behind(state, len(self._forward) - 1))
        return self._forward[i]

    # --- questions

    def viable(self, state: int, i: int) -> bool:
        """Whether a text in ``state`` can be completed in the slots from ``i`` on."""
        trail: list[tuple[int, int]] = []
        tokens, follow = self.tokens, self.sets.next
        while True:
            if state < 0:
                answer = False
                break
            if i > self.last:
                answer = self.can_end(state, i, self.end)
                break
            if state in self._no[i]:
                answer = False
                break
            if state in self._yes[i]:
                answer = True
                break
            trail.append((i, state))
            if i >= self.known_from and self._is_known(state, i):
                answer = True
                break
            self.spend()
            state = follow(state, tokens[i]) if tokens[i] >= 0 else self.behind(state, i)
            i += 1
        self._note(answer, trail)
        return answer

    def goes_on(self, state: int, i: int, stop: int) -> bool:
        """Whether the slots from ``i`` to before ``stop`` can be filled, whatever comes behind them: necessary for ``viable``."""
        while state >= 0 and i < stop and i <= self.last:
            if state in self._yes[i]:
                return True
            if state in self._no[i]:
                return False
            if i >= self.known_from and self._is_known(state, i):
                return True
            self.spend()
            state = self.behind(state, i)
            i += 1
        return state >= 0

    def refute(self, state: int, i: int) -> None:
        """Note that a text in ``state`` cannot be completed from slot ``i`` on, as a search has found."""
        self._note(False, [(i, state)])

    def _is_known(self, state: int, i: int) -> bool:
        known = self.known[i] if i < len(self.known) else -1
        return known >= 0 and (known == state or self.sets.covers(state, known))

    def can_end(self, state: int, i: int, end: int) -> bool:
        """Whether a text in ``state`` can be completed in the open slots from ``i`` to before ``end``."""
        if not self.ends:
            return self.sets.is_accepting(state)
        return end >= i and self.within(state, self.tokens[i:end].count(OPEN))

    def completion(self, state: int) -> list[int] | None:
        """Some short completion of one of the texts in ``state``."""
        if state not in self._completions:
            self._completions[state] = self._completion_within(state)
        return self._completions[state]

    def near_completion(self, state: int) -> list[int] | None:
        """The same, where a short search finds one."""
        if state in self._completions:
            return self._completions[state]
        if state not in self._near:
            try:
                self._near[state] = self._completion_within(state, _SHORT_SEARCH)
            except LimitError:
                if self.sets.is_full:
                    raise
                self._near[state] = None
        return self._near[state]

    def _completion_within(self, state: int, max_search: int = -1) -> list[int] | None:
        self.spend()
        try:
            found = self.sets.shortest_completion(state, max_search)
        except VocabularyError:
            # No tokens spell these bytes; others may do.
            return None
        return None if found is None or self.banned.intersection(found) else found

    def within(self, state: int, room: int) -> bool:
        """Whether ``room`` tokens or fewer complete a text in ``state``."""
        known = self._distances.known_within(state, room)
        if known is not None:
            return known
        completion = self.completion(state)
        if completion is not None and len(completion) <= room:
            self._distances.note(state, len(completion))
            return True
        # The fewest bytes need not be the fewest tokens.
        return self._distances.within(state, room, self.sets.is_accepting, self._walk_on)

    def _walk_on(self, state: int) -> int:
        self.spend()
        return self.any(state)

    def most_left(self, state: int) -> int:
        """As many tokens as are known to complete a text in ``state``, of which ``within`` was true."""
        return int(self._distances.most(state))

    def completes(self, state: int, rest: Sequence[int]) -> bool:
        """Whether slots that hold ``rest`` complete a text in ``state``."""
        for i, token in enumerate(rest):
            if token in self.ends:
                if any(behind != EMPTY and behind not in self.ends for behind in rest[i:]):
                    return False
                break
            if token != EMPTY:
                state = self.sets.next(state, token)
                if state < 0:
                    return False
        return bool(self.sets.is_accepting(state))

    def check_tail(self) -> None:
        """Raises ``UnsatisfiableError`` for text behind an end."""
        if self.ends and self.end <= self.last:
            raise UnsatisfiableError(
                f"slot {self.end} holds an end token, but slot {self.last} behind it holds text"
            )

    def why(self) -> str:
        """Where the fixed text leaves the language, or that the slots do not suffice."""
        for i in range(len(self.tokens)):
            if self.forward(i + 1) < 0:
                held = self.tokens[i]
                what = f"token {held}" if held >= 0 else "any token"
                return f"the canvas cannot be filled: no text of the language has {what} in slot {i}"
            if i > self.last:
                break
        room = sum(token == OPEN for token in self.tokens)
        return f"the canvas cannot be filled: its {room} open slots are too few or too many for any text of the language"
