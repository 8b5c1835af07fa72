"""Weaker criteria from the literature, as baselines: none of them guarantees a valid result.

- ``"none"``: every token is taken.
- ``"prefix"``: the text up to the last token put down is the beginning of one of the language (LAVE, arXiv 2602.00612;
  there a sample of fillings stands in for all of them, here all are looked at).
- ``"gaps"``: some text of any length in each run of open slots makes a text of the language (IG-CD, arXiv 2508.10111, and
  EPIC, arXiv 2606.00722); here "any length" is up to ``GAP`` tokens or four times the slots.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from maskwright._core import StateSets
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.reading import Reading
from maskwright.diffusion.sets import HoldsSets, state_sets
from maskwright.diffusion.slots import EMPTY, OPEN, Slots

CRITERIA = ("exact", "prefix", "gaps", "none")
GAP = 16
TAIL = 256


class LooseCanvas(HoldsSets):
    """The interface of ``Canvas`` with a weaker criterion; what no token passes is filled unchecked."""

    def __init__(
        self, grammar: CompiledGrammar, slots: Slots, eos_ids: Iterable[int], criterion: str
    ) -> None:
        self.grammar = grammar
        self.vocabulary = grammar.vocabulary
        self.criterion = criterion
        self.sets = state_sets(grammar)
        self.tokens_now = list(slots.tokens)
        self.optional = list(slots.optional)
        self.ends = frozenset(eos_ids)
        self.refused = 0
        self.undecided = 0
        self._guess = list(slots.tokens)

    def __len__(self) -> int:
        return len(self.tokens_now)

    @property
    def tokens(self) -> list[int]:
        return list(self.tokens_now)

    @property
    def open(self) -> list[int]:
        return [i for i, token in enumerate(self.tokens_now) if token == OPEN]

    def is_optional(self, position: int) -> bool:
        return self.optional[position]

    def fill(self, position: int) -> None:
        """The model's own token, unchecked."""
        self.tokens_now[position] = self._guess[position]

    def suggest(self, guess: Sequence[int]) -> bool:
        self._guess = list(guess)
        return False

    def may_follow(self, position: int, token: int) -> bool:
        return True

    def try_commit(self, position: int, token: int) -> bool:
        if self.tokens_now[position] != OPEN:
            return False
        self.tokens_now[position] = token
        if self.criterion != "none" and not self.with_room(self._passes):
            self.tokens_now[position] = OPEN
            self.refused += 1
            return False
        if token in self.ends and self.criterion != "none":
            for i in range(position + 1, len(self.tokens_now)):
                if self.tokens_now[i] == OPEN:
                    self.tokens_now[i] = token
        return True

    def commit_many(self, proposals: Sequence[tuple[int, int]]) -> list[int]:
        return [position for position, token in proposals if self.try_commit(position, token)]

    def uncommit(self, positions: Iterable[int]) -> None:
        for position in positions:
            self.tokens_now[position] = OPEN

    def replace(self, position: int, token: int) -> bool:
        before = self.tokens_now[position]
        self.tokens_now[position] = OPEN
        if self.try_commit(position, token):
            return True
        self.tokens_now[position] = before
        return False

    def _move(self, sets: StateSets) -> None:
        self.sets = sets

    def _passes(self) -> bool:
        end = next((i for i, token in enumerate(self.tokens_now) if token in self.ends), len(self))
        last = max((i for i, t in enumerate(self.tokens_now) if t >= 0 and t not in self.ends), default=-1)
        if end <= last:
            return False
        reading = self._reading(end, last)
        if self.criterion == "gaps":
            return reading.viable(reading.forward(0), 0)
        state = reading.forward(last + 1)
        return state >= 0 and (end == len(self) or reading.can_end(state, last + 1, end))

    def _reading(self, end: int, last: int) -> Reading:
        if self.criterion == "prefix":
            return Reading(self.sets, Slots(self.tokens_now, self.optional), self.ends)
        tokens: list[int] = []
        i = 0
        while i < end:
            stop = i
            while stop < end and self.tokens_now[stop] == OPEN:
                stop += 1
            if stop == i:
                tokens.append(self.tokens_now[i])
                i += 1
            else:
                tokens += [OPEN] * (max(GAP, 4 * (stop - i)) if i <= last else TAIL)
                i = stop
        tokens = [token for token in tokens if token != EMPTY] or [OPEN]
        return Reading(self.sets, Slots(tokens, [token == OPEN for token in tokens]), self.ends)
