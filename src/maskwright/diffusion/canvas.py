"""A canvas that can always be completed.

``Canvas`` holds tokens and open slots and a *witness*: a full text of the language that agrees with every
token put down so far.  A token is put down only together with a witness; so whatever model, schedule,
budget or interruption, filling the rest from the witness gives a text of the language that fits.

A proposal is decided in this order: it is what the witness says (free); reading the canvas says that no
filling exists (exact, ``Reading``); a new witness is found.  The search for one asks ``Reading`` at every step and so
goes straight to the end, except where two undeclared keys of one object may turn out equal.  When
``search_budget`` runs out the proposal is refused, which costs fidelity, never validity; ``undecided`` counts it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright._core import StateSets
from maskwright.base.arguments import check_limits, check_type, real, whole
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.beam import beam_filling, likely_tokens
from maskwright.diffusion.completion import longest_part, short_completion
from maskwright.diffusion.filling import LOOK_AHEAD, exact_filling
from maskwright.diffusion.reading import OutOfBudget, Reading
from maskwright.diffusion.sets import HoldsSets, state_sets
from maskwright.diffusion.showing import canvas_html
from maskwright.diffusion.slots import (
    EMPTY,
    OPEN,
    Slots,
    check_size,
    checked_ends,
    checked_id,
    checked_ids,
    read_canvas,
)
from maskwright.errors import CanvasError, LimitError, UnsatisfiableError
from maskwright.limits import DEFAULT_LIMITS, Limits

SEARCH_BUDGET = 16_000
"""Steps that one proposal may take; a step is a look at one state and slot."""
_TRIES_A_CLASS = 8
"""Tokens of one class that a search tries: one will do, unless keys clash."""


class Canvas(HoldsSets):
    """Slots under a compiled grammar, with a witness.

    ``slots``: ids, None or ``mask_id`` (open), text, ``Gap``; see ``read_canvas``.  ``eos_ids``: ids of end tokens,
    by default the vocabulary's; with none, the text has to fill every slot.  ``forbidden_ids``: ids that open slots never get; an end
    among them is none.  ``search_budget``: steps that one proposal may take.

    Raises ``UnsatisfiableError`` when no filling exists, ``CanvasError`` for what is no canvas, ``LimitError``
    when the first witness takes more than ``limits.max_canvas_steps`` or ``limits.max_seconds``, or the grammar's own limits.
    """

    def __init__(
        self,
        grammar: CompiledGrammar,
        slots: Sequence[Any] | Slots,
        *,
        mask_id: int | None = None,
        eos_ids: Iterable[int] | None = None,
        forbidden_ids: Iterable[int] = (),
        search_budget: float = SEARCH_BUDGET,
        encode: Callable[[str], list[int]] | None = None,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.sets = state_sets(grammar)
        self.vocabulary = vocabulary = grammar.vocabulary
        forbidden = checked_ids(forbidden_ids, "forbidden_ids", vocabulary)
        ends = [end for end in checked_ends(eos_ids, vocabulary) if end not in forbidden]
        check_limits(limits)
        self.grammar = grammar
        self.search_budget = real(search_budget, "search_budget", CanvasError)
        self.limits = limits
        if not isinstance(slots, Slots):
            slots = read_canvas(slots, vocabulary, mask_id, ends, encode, grammar._core.engine.segment)
        self._end_token = ends[0] if ends else None
        self._likely = likely_tokens(self.sets, grammar._core.engine.segment)
        self.reading = Reading(
            self.sets, slots, frozenset(ends), frozenset([i for i in forbidden if vocabulary.tokens[i]])
        )
        self.refused = 0
        """Proposals that no filling agrees with."""
        self.undecided = 0
        """Proposals refused because the budget ran out."""
        self._texts: list[int] = []
        self._states: list[int] = []
        self.reading.check_tail()
        started = time.monotonic()
        if limits.max_seconds > 0:
            self.reading.until = started + limits.max_seconds
        try:
            found = self.with_room(lambda: self._reread(limits.max_canvas_steps))
        except OutOfBudget:
            elapsed, most = time.monotonic() - started, limits.max_canvas_steps
            if time.monotonic() > self.reading.until:
                raise LimitError("max_seconds", elapsed, limits.max_seconds) from None
            raise LimitError("max_canvas_steps", most + 1, most) from None
        finally:
            self.reading.until = float("inf")
        if not found:
            raise UnsatisfiableError(self.with_room(lambda: self.reading.why()))

    def _move(self, sets: StateSets) -> None:
        until = self.reading.until
        self.reading = self._reading(sets, self.reading.tokens, self.reading.optional)
        self.reading.until = until
        self.sets, self._states = sets, []
        self._states = self.reading.states_along(self._texts) if self._texts else []

    def _reading(self, sets: StateSets, tokens: list[int], optional: list[bool]) -> Reading:
        """One of other slots or sets."""
        return Reading(sets, Slots(tokens, optional), self.reading.ends, self.reading.banned)

    def fork(self) -> Canvas:
        """A canvas that goes its own way from here; what ``copy`` and ``deepcopy`` make, too."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.reading = self.reading.fork()
        return other

    __copy__ = fork

    def __deepcopy__(self, _: dict[int, Any]) -> Canvas:
        return self.fork()

    _repr_html_ = canvas_html

    # --- what is there

    def __len__(self) -> int:
        return len(self.reading.tokens)

    @property
    def tokens(self) -> list[int]:
        """By slot: the id put down, ``OPEN`` or ``EMPTY``."""
        return list(self.reading.tokens)

    @property
    def open(self) -> list[int]:
        """The open slots."""
        return [i for i, token in enumerate(self.reading.tokens) if token == OPEN]

    @property
    def ends(self) -> frozenset[int]:
        """The ids of end tokens."""
        return self.reading.ends

    @property
    def exact(self) -> bool:
        """Whether ``allowed`` is exact, and not only nearly so (two undeclared keys of an object may clash)."""
        return bool(self.sets.exact)

    def witness(self) -> list[int]:
        """A full canvas, consistent with all that was put down: an id by slot, or ``EMPTY``."""
        return list(self._texts)

    def is_optional(self, position: int) -> bool:
        return self.reading.optional[self._position(position)]

    # --- what may come

    def allowed(self, position: int) -> npt.NDArray[np.bool_]:
        """Which ids slot ``position`` may hold, given all other slots (bool [vocabulary size]).

        Exactly those for which the rest can be filled (see ``exact``).  A slot with a token is taken as open.
        Raises ``LimitError``, and changes nothing, when this exceeds the grammar's ``Limits``.
        """
        at = self._position(position)
        return self.with_room(lambda: self._allowed_if_open(at))

    def _allowed_if_open(self, position: int) -> npt.NDArray[np.bool_]:
        reading = self.reading
        token = reading.tokens[position]
        if token != OPEN:
            reading.change(position, OPEN)
        try:
            return self._allowed(position)
        finally:
            if token != OPEN:
                reading.change(position, token)

    def _allowed(self, position: int) -> npt.NDArray[np.bool_]:
        reading = self.reading
        reading.steps_left = float("inf")
        out = np.zeros(self.vocabulary.vocab_size, dtype=np.bool_)
        if position < reading.end:
            state = reading.forward(position)
            for target, ids in reading.classes_of(state) if state >= 0 else ():
                if reading.viable(target, position + 1):
                    out[ids] = True
        if reading.ends and position > reading.last:
            behind = reading.last + 1
            if position > reading.end or reading.can_end(reading.forward(behind), behind, position):
                out[list(reading.ends)] = True
        return out

    def may_follow(self, position: int, token: int) -> bool:
        """Whether ``token`` fits what is before ``position``: quick, and necessary for it to be allowed."""
        at = self._position(position)
        held = self._token(at, token)
        if held in self.reading.ends:
            return at > self.reading.last
        if held in self.reading.banned:
            return False
        try:
            return self.with_room(lambda: self._reads(at, held))
        except (OutOfBudget, LimitError):
            return True
        finally:
            self.reading.steps_left = float("inf")

    def _reads(self, position: int, token: int) -> bool:
        self.reading.steps_left = self.search_budget
        state = self.reading.forward(position)
        return bool(state >= 0 and (token == EMPTY or self.sets.next(state, token) >= 0))

    # --- putting down

    def try_commit(self, position: int, token: int) -> bool:
        """Put a token into an open slot; False, and nothing changed, when it is refused.

        ``token`` may be ``EMPTY`` for an optional slot.  An end token fills what is open behind it.
        """
        return bool(self.commit_many([(position, token)]))

    def fill(self, position: int) -> None:
        """Put the witness's token into an open slot."""
        at = self._position(position)
        self.commit_many([(at, self._texts[at])])

    def commit_many(self, proposals: Sequence[tuple[int, int]]) -> list[int]:
        """Put down as many of ``proposals`` as fit together, earlier ones first; the positions taken.

        The result is that of trying one after another; whole groups are tried first.
        """
        asked = [(self._position(position), token) for position, token in proposals]
        checked = [(position, self._token(position, token)) for position, token in asked]
        group = [(position, token) for position, token in checked if self.reading.tokens[position] == OPEN]
        self._commit_group(group)
        return [position for position, token in group if self.reading.tokens[position] == token]

    def _commit_group(self, group: list[tuple[int, int]]) -> None:
        group = [(position, token) for position, token in group if self.reading.tokens[position] == OPEN]
        if not group:
            return
        verdict = None
        with contextlib.suppress(OutOfBudget, LimitError):
            verdict = self.with_room(lambda: self._try(group))
        if verdict:
            return
        if len(group) > 1:
            half = len(group) // 2
            self._commit_group(group[:half])
            self._commit_group(group[half:])
        elif verdict is None:
            self.undecided += 1
        else:
            self.refused += 1

    def _try(self, group: list[tuple[int, int]]) -> bool:
        """Whether the group could be put down; an error changes nothing."""
        reading = self.reading
        if any(token in reading.banned for _, token in group):
            return False
        if all(self._texts[position] == token for position, token in group):
            for position, token in group:
                self._put(position, token)
            # An end token that was put down may have filled others, where the witness ends with another one.
            self._texts = [
                text if token == OPEN else token
                for token, text in zip(reading.tokens, self._texts, strict=True)
            ]
            return True
        saved = reading.snapshot()
        try:
            for position, token in group:
                if reading.tokens[position] == OPEN:
                    self._put(position, token)
                elif reading.tokens[position] != token:
                    # An end token before it has filled the slot.
                    reading.restore(saved)
                    return False
            if 0 <= reading.end <= reading.last and reading.ends:
                found = False
            elif self.search_budget > 0 and (texts := self._swapped(group)) is not None:
                self._set_witness(texts)
                found = True
            else:
                found = self._reread(self.search_budget, min(group)[0], max(group)[0] + 1)
        except BaseException:
            reading.restore(saved)
            raise
        if not found:
            reading.restore(saved)
        return found

    def _put(self, position: int, token: int) -> None:
        reading = self.reading
        changes = [(position, token)]
        if token in reading.ends:
            for i in range(position + 1, len(reading.tokens)):
                if reading.tokens[i] == OPEN:
                    changes.append((i, EMPTY if reading.optional[i] else token))
        reading.change_many(changes)

    # --- taking back, editing

    def uncommit(self, positions: Iterable[int]) -> None:
        """Open slots again; the witness stays.

        Raises ``CanvasError`` for a slot that was given with a forbidden token: the witness has none without it.
        """
        check_type(positions, Iterable, "positions", CanvasError)
        changes = [(self._position(position), OPEN) for position in positions]
        for position, _ in changes:
            if (token := self.reading.tokens[position]) in self.reading.banned:
                raise CanvasError(
                    f"slot {position} holds token {token}, which open slots never get; replace it"
                )
        if changes:
            self.reading.change_many(changes)

    def replace(self, position: int, token: int) -> bool:
        """Put another token into a slot; False, and nothing changed, when it is refused."""
        at = self._position(position)
        held = self._token(at, token)
        before = self.reading.tokens[at]
        if before == OPEN:
            return self.try_commit(at, held)
        self.reading.change(at, OPEN)
        if self.try_commit(at, held):
            return True
        self.reading.change(at, before)
        return False

    def insert(self, position: int, count: int = 1) -> bool:
        """Add ``count`` open slots before ``position``; False, and nothing changed, when none fit."""
        at = self._position(position, 1)
        more = whole(count, "count", CanvasError, 1)
        check_size(len(self) + more)
        tokens, optional = self.reading.tokens, self.reading.optional
        # Behind an end token there are only end tokens.
        new = OPEN if at <= self.reading.end or self._end_token is None else self._end_token
        return self._reshape(
            [*tokens[:at], *[new] * more, *tokens[at:]], [*optional[:at], *[False] * more, *optional[at:]]
        )

    def delete(self, position: int) -> bool:
        """Remove a slot and what it holds; False, and nothing changed, when the rest cannot be completed."""
        at = self._position(position)
        if len(self) == 1:
            raise CanvasError("delete: the canvas would have no slot")
        tokens, optional = self.reading.tokens, self.reading.optional
        return self._reshape(tokens[:at] + tokens[at + 1 :], optional[:at] + optional[at + 1 :])

    def _reshape(self, tokens: list[int], optional: list[bool]) -> bool:
        before = self.sets, self.reading, self._texts, self._states
        self.reading = self._reading(self.sets, tokens, optional)
        self._texts, self._states = [], []
        try:
            if self.with_room(lambda: self._reread(self.search_budget)):
                return True
            self.refused += 1
        except (OutOfBudget, LimitError):
            self.undecided += 1
        self.sets, self.reading, self._texts, self._states = before
        return False

    # --- the witness

    def suggest(self, guess: Sequence[int]) -> bool:
        """Take the open slots' tokens from ``guess`` as witness, if that is a text that fits.

        ``guess``: by slot, an id, ``EMPTY`` for an optional slot, or ``OPEN`` for nothing.  What follows the last slot with a token
        may be cut and completed in another way.
        """
        if len(guess) != len(self):
            raise CanvasError(f"guess: expected an id for each of {len(self)} slots, got {len(guess)}")
        texts = [t if t in (OPEN, EMPTY) else checked_id(t, "guess", self.vocabulary) for t in guess]
        try:
            return self.with_room(lambda: self._suggested(texts))
        except (OutOfBudget, LimitError):
            return False
        finally:
            self.reading.steps_left = float("inf")

    def _suggested(self, guess: Sequence[int]) -> bool:
        self.reading.steps_left = self.search_budget
        texts = longest_part(self.reading, guess)
        if texts is None:
            return False
        rest = self._finish(self.reading.states_along(texts)[-1], len(texts))
        if rest is not None:
            self._set_witness(texts + rest)
        return rest is not None

    def _set_witness(self, texts: list[int]) -> None:
        self._texts, self._states = texts, self.reading.states_along(texts)

    def _reread(self, budget: float, first: int = 0, unchanged_from: int | None = None) -> bool:
        """Find a witness for the slots as they are; before ``first`` and from ``unchanged_from`` on they are what they were.

        False when there is none.  Raises ``OutOfBudget``.
        """
        reading = self.reading
        # Behind the last text it may end anywhere.
        first = min(first, reading.last + 1)
        reading.steps_left = budget
        keep = bool(self._states) and unchanged_from is not None
        ends_differ = keep and reading.end < len(self._texts) and self._texts[reading.end] not in reading.ends
        reading.known = self._states if keep and not ends_differ else ()
        reading.known_from = unchanged_from if unchanged_from is not None else 0
        try:
            if self._likely and self._read_by_beam(first, budget, keep):
                return True
            if not reading.viable(reading.forward(first), first):
                return False
            first = self._turn(unchanged_from) if keep else 0
            rest = self._filling(self._states[first] if keep else self.sets.start, first)
            if rest is None and first > 0:
                first = 0
                rest = self._filling(self.sets.start, 0)
        finally:
            reading.known = ()
            reading.steps_left = float("inf")
        if rest is None:
            # It looked viable: two keys clash in all that was tried.
            raise OutOfBudget
        self._set_witness(self._texts[:first] + rest)
        return True

    def _turn(self, changed: int | None) -> int:
        """Up to where the old witness can stay: the last slot from which its text can be completed."""
        reading = self.reading
        high = min(
            changed or 0, next((i for i, s in enumerate(self._states) if s < 0), len(self._states)) - 1
        )
        for i, token in enumerate(reading.tokens[:high]):
            if token != OPEN and token != self._texts[i]:
                high = i
                break
        low, step = high, 1
        while low > 0 and not reading.viable(self._states[low], low):
            high = low - 1
            low = max(0, low - step)
            step *= 2
        while low < high:
            middle = (low + high + 1) // 2
            if reading.viable(self._states[middle], middle):
                low = middle
            else:
                high = middle - 1
        return low

    def _filling(self, state: int, first: int) -> list[int] | None:
        return exact_filling(self.reading, state, first, self._candidates, self._old_rest, self._finish)

    def _read_by_beam(self, first: int, budget: float, keep: bool) -> bool:
        """Whether a beam search finds a witness; it may take half of the budget.  That it finds none says nothing."""
        reading = self.reading
        first = first if keep else 0
        # Back to where open slots begin, and to where the witness has not ended yet.
        while first > 0 and (reading.tokens[first - 1] == OPEN or self._states[first] < 0):
            first -= 1
        state = self._states[first] if first > 0 else int(self.sets.start)
        reading.steps_left = budget / 2
        try:
            rest = beam_filling(
                reading, self._likely, state, first, self._old_rest, self._short_finish, wide=not keep
            )
        except OutOfBudget:
            rest = None
        reading.steps_left = budget / 2
        if rest is not None:
            self._set_witness(self._texts[:first] + rest)
        return rest is not None

    def _short_finish(self, state: int, i: int) -> list[int] | None:
        """The same as ``_finish``, where it takes no long search."""
        room = self.reading.tokens[i : self.reading.end].count(OPEN)
        completion = self.reading.near_completion(state) if self.reading.ends else ()
        return None if completion is None or len(completion) > room else self._finish(state, i)

    def _old_rest(self, state: int, i: int) -> list[int] | None:
        """The old witness from slot ``i`` on, if it completes a text in ``state``."""
        known = i >= self.reading.known_from and self._agrees(i)
        return self._texts[i:] if known and self.reading.completes(state, self._texts[i:]) else None

    def _swapped(self, group: Sequence[tuple[int, int]]) -> list[int] | None:
        """The old witness with the tokens of ``group`` in their places, if that is a text of the language."""
        first = min(position for position, _ in group)
        texts = list(self._texts)
        for position, token in group:
            if token in self.reading.ends:
                return None
            texts[position] = token
        state = self._states[first] if self._states else -1
        return texts if state >= 0 and self.reading.completes(state, texts[first:]) else None

    def _candidates(self, state: int, i: int, careful: bool) -> Iterator[int]:
        """Tokens for slot ``i``, likely ones first; at least one of every class that is viable."""
        reading = self.reading
        fixed = reading.tokens[i]
        if fixed != OPEN:
            yield fixed
            return
        before = self._texts[i] if i < len(self._texts) else OPEN
        if before == EMPTY or (before >= 0 and before not in reading.ends):
            yield before
        if reading.optional[i]:
            yield EMPTY
        completion = reading.completion(state)
        if completion:
            yield completion[0]
        for target, ids in reading.classes_of(state):
            reading.spend()
            if reading.goes_on(target, i + 1, i + 1 + LOOK_AHEAD) and (
                not careful or reading.viable(target, i + 1)
            ):
                yield from ids[:_TRIES_A_CLASS].tolist()

    def _finish(self, state: int, i: int) -> list[int] | None:
        """The slots from ``i`` on, behind all fixed text: the old witness, or a short completion."""
        reading = self.reading
        if not reading.ends:
            return [] if self.sets.is_accepting(state) else None
        if i < len(self._states) and self._states[i] == state and self._agrees(i):
            return self._texts[i:]
        room = [k for k in range(i, reading.end) if reading.tokens[k] == OPEN]
        text = short_completion(reading, state, len(room))
        if text is None:
            return None
        rest = [self._tail_token(k) for k in range(i, len(self))]
        for k, token in zip(room, text, strict=False):
            rest[k - i] = token
        return rest

    def _agrees(self, i: int) -> bool:
        """Whether the old witness from slot ``i`` on is what the slots hold."""
        return len(self._texts) == len(self.reading.tokens) and all(
            token in (OPEN, text)
            for token, text in zip(self.reading.tokens[i:], self._texts[i:], strict=True)
        )

    def _tail_token(self, i: int) -> int:
        token = self.reading.tokens[i]
        if token != OPEN:
            return token
        assert self._end_token is not None, "without end tokens there is no tail"
        return EMPTY if self.reading.optional[i] else self._end_token

    # --- checks

    def _position(self, position: int, end: int = 0) -> int:
        at, last = whole(position, "position", CanvasError), len(self) - 1 + end
        if not 0 <= at <= last:
            raise CanvasError(f"position {at} is outside the canvas (0 to {last})")
        return at

    def _token(self, position: int, token: int) -> int:
        if token != EMPTY:
            return checked_id(token, "token", self.vocabulary)
        if not self.reading.optional[position]:
            raise CanvasError(f"slot {position} must hold a token")
        return EMPTY
