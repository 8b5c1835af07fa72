"""Phrases that are put down before anything else, and the rest of a canvas from coarse to fine.

As in POINTER (Zhang et al., EMNLP 2020, arXiv 2005.00558) a text grows from the words that it must have: in each round one more token
comes into every gap, so a text of n tokens takes about log2 n rounds.  There, a round inserts; here, the length is known, and a
round fills the middle slot of every run of open slots (``Schedule(score="middle")``).

Phrases may share slots with each other and with fixed text.  They are tried as the model spells them, at the likeliest places first, and
are taken back where others find no place then.  Where this leads nowhere, all tokens are tried that have phrases, or parts of them, in them.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import EMPTY, OPEN, text_bytes
from maskwright.errors import CanvasError, LimitError, UnsatisfiableError, VocabularyError
from maskwright.vocabulary.vocabulary import Vocabulary

MAX_TRIES = 10_000
"""Proposals that a search for the places of phrases may make."""
Anchors: TypeAlias = dict[str, list[list[int]]]
"""Phrases, and the tokens that spell them in several ways."""
_Moves: TypeAlias = "Iterator[tuple[list[tuple[int, int]], _Begin]]"
"""What may be put down next, as slots and ids, and what gives the moves behind it."""
_Begin: TypeAlias = "Callable[[], _Moves | None]"
"""None: all phrases are written."""


def middles(slots: Sequence[int]) -> list[int]:
    """The middle of every run of neighbours among some slots, which are in order."""
    found: list[int] = []
    begin = 0
    for at in range(1, len(slots) + 1):
        if at == len(slots) or slots[at] != slots[at - 1] + 1:
            found.append(slots[(begin + at - 1) // 2])
            begin = at
    return found


def checked_anchors(
    anchors: Sequence[str], spell: Callable[[str], list[int]], vocabulary: Vocabulary
) -> Anchors:
    """By phrase, the tokens that spell it behind a blank and without one, where some do.

    Raises ``CanvasError`` for what is no list of phrases, ``UnsatisfiableError`` for one that is in no tokens.
    """
    if (
        isinstance(anchors, (str, bytes))
        or not isinstance(anchors, Iterable)
        or not all(isinstance(each, str) and each for each in anchors)
    ):
        raise CanvasError("anchors: expected a list of phrases, none of them empty")
    ways: Anchors = {}
    for anchor in anchors:
        text_bytes(anchor, "anchors")
        ways[anchor] = []
        for text in (" " + anchor, anchor):
            with contextlib.suppress(VocabularyError):
                ways[anchor].append(spell(text))
        if not ways[anchor] and not _is_in_tokens(anchor.encode(), vocabulary):
            raise UnsatisfiableError(f"anchors: no tokens spell {anchor!r}; choose another phrase")
    return ways


def _is_in_tokens(phrase: bytes, vocabulary: Vocabulary) -> bool:
    """Whether tokens one after another can have a phrase in them."""
    reached = {0}
    for read in range(len(phrase)):
        if read in reached:
            reached.update(*(_read_behind(phrase, read, data) for data in set(vocabulary.tokens)))
    return len(phrase) in reached


def unwritten(anchors: Iterable[str], canvas: Canvas) -> list[str]:
    """The phrases that are not in what a canvas holds, in their order."""
    texts = [b""]
    for slot, token in enumerate(canvas.tokens):
        if token in canvas.ends:
            break
        if token == OPEN:
            texts.append(b"")
        elif token != EMPTY:
            texts[-1] += canvas.vocabulary.decode([token], start=_may_begin(canvas, slot))
    return [anchor for anchor in anchors if not any(anchor.encode() in text for text in texts)]


def _may_begin(canvas: Canvas, slot: int) -> bool:
    """Whether a slot may hold the first token of the text."""
    tokens = canvas.tokens[:slot]
    before = [token for i, token in enumerate(tokens) if token >= 0 or not canvas.is_optional(i)]
    return OPEN not in before and canvas.vocabulary.at_start(before)


def place_anchors(
    canvas: Canvas, anchors: Anchors, log_probs: npt.NDArray[np.float64], rows: dict[int, int]
) -> list[int]:
    """Put phrases down where the model likes them best; the slots that were filled, in order.

    ``log_probs``: of every token by row [rows, V]; ``rows``: by open slot.  The phrase with the likeliest place is first.  Raises
    ``UnsatisfiableError`` where no filling has all phrases, ``LimitError`` where the search ends before that is known; the canvas is
    as it was then.
    """
    search = _Search(canvas, anchors, log_probs, rows)
    with contextlib.suppress(LimitError):
        taken = search.run(list(anchors), search.spelled)
        if taken is not None:
            return taken
    for phrase in anchors:
        # That one has no place at all is soon known, and better said.
        with contextlib.suppress(LimitError):
            alone = search.run([phrase], search.in_any_tokens)
            if alone is None:
                raise UnsatisfiableError(
                    f"anchors: no place is left for {phrase!r}: the grammar must allow it, and the canvas must have room"
                )
            canvas.uncommit(alone)
    taken = search.run(list(anchors), search.in_any_tokens)
    if taken is None:
        raise UnsatisfiableError(
            f"anchors: no place is left for {_named(anchors)} together: each has one, but the canvas must have room for all"
        )
    return taken


def _named(phrases: Iterable[str]) -> str:
    return ", ".join(map(repr, phrases))


class _Search:
    """Phrases put down, and taken back where those that are left have no place then."""

    def __init__(
        self, canvas: Canvas, anchors: Anchors, log_probs: npt.NDArray[np.float64], rows: dict[int, int]
    ) -> None:
        self._canvas = canvas
        self._anchors = anchors
        self._log_probs = log_probs
        self._rows = rows
        self._parts: dict[tuple[bytes, int, bool], dict[int, list[int]]] = {}

    def run(self, phrases: list[str], ways: Callable[[list[str], _Begin], _Moves]) -> list[int] | None:
        """The slots that the first way fills, in order; None where there is none, and the canvas is as it was.

        Raises ``LimitError`` where that is not known.
        """
        canvas = self._canvas
        undecided, tries = canvas.undecided, 0

        def begin() -> _Moves | None:
            left = unwritten(phrases, canvas)
            return ways(left, begin) if left else None

        stack, taken = [begin()], list[list[int]]()
        try:
            while stack and stack[-1] is not None:
                move = next(stack[-1], None)
                if move is None:
                    stack.pop()
                    canvas.uncommit(taken.pop() if taken else [])
                    continue
                tries += 1
                if tries > MAX_TRIES:
                    raise _unknown(phrases, "max_tries", tries, MAX_TRIES)
                done = self._put(move[0])
                if done is not None:
                    taken.append(done)
                    stack.append(move[1]())
        except BaseException:
            canvas.uncommit(itertools.chain(*taken))
            raise
        if stack:
            return sorted(itertools.chain(*taken))
        if canvas.undecided > undecided:
            raise _unknown(phrases, "search_budget", canvas.search_budget + 1, canvas.search_budget)
        return None

    def _put(self, tokens: list[tuple[int, int]]) -> list[int] | None:
        """Put down all of some tokens, or none; their slots."""
        done: list[int] = []
        for slot, token in tokens:
            if not self._canvas.try_commit(slot, token):
                self._canvas.uncommit(done)
                return None
            done.append(slot)
        return done

    def spelled(self, phrases: list[str], begin: _Begin) -> _Moves:
        """The phrase with the likeliest place, as the model spells it; likeliest places first."""
        best = max(
            (self._places(phrase) for phrase in phrases),
            key=lambda places: places[0][0] if places else -np.inf,
        )
        for _, tokens in best:
            yield tokens, begin

    def _places(self, phrase: str) -> list[tuple[float, list[tuple[int, int]]]]:
        """Where a phrase agrees with what is held: the log-probability of what is to be put down there, and that."""
        slots = [(slot, held) for slot, held in enumerate(self._canvas.tokens) if held != EMPTY]
        places = []
        for ids in self._anchors[phrase]:
            for first in range(len(slots) - len(ids) + 1):
                pairs = list(zip(slots[first : first + len(ids)], ids, strict=True))
                tokens = [(slot, token) for (slot, held), token in pairs if held == OPEN]
                if tokens and all(held in (OPEN, token) for (_, held), token in pairs):
                    places.append((sum(self._score(slot, token) for slot, token in tokens), tokens))
        return sorted(places, key=lambda place: -place[0])

    def _score(self, slot: int, token: int) -> float:
        return float(self._log_probs[self._rows[slot], token])

    def in_any_tokens(self, phrases: list[str], begin: _Begin) -> _Moves:
        """The first phrase in whatever tokens have it in them, token by token."""
        phrase = phrases[0].encode()
        hopeful = self._hopeful(phrase)
        for slot in range(len(self._canvas)):
            yield from self._from(phrase, hopeful, begin, slot, 0)

    def _hopeful(self, phrase: bytes) -> list[set[int]]:
        """By slot, behind how many bytes of a phrase the rest might follow, if each slot could get what it may with any other."""
        hopeful: list[set[int]] = [set()]
        for slot in reversed(range(len(self._canvas))):
            after = {*hopeful[-1], len(phrase)}
            choices = self._choices(phrase, slot)
            found = {
                read
                for read in range(len(phrase))
                if any(after.intersection(ends) for _, ends in choices(read))
            }
            if self._may_be_empty(slot):
                found |= hopeful[-1] - {0}
            hopeful.append(found)
        return hopeful[::-1]

    def _choices(self, phrase: bytes, slot: int) -> Callable[[int], Iterator[tuple[int, list[int]]]]:
        """What a slot may hold behind so many bytes of a phrase, and how many may be read then."""
        canvas = self._canvas
        held, start = canvas.tokens[slot], _may_begin(canvas, slot)
        allowed = canvas.allowed(slot) if held == OPEN else None

        def choices(read: int) -> Iterator[tuple[int, list[int]]]:
            parts = self._parts_of(phrase, read, start)
            if allowed is None:
                return iter([(held, parts[held])] if held in parts else [])
            return ((token, ends) for token, ends in parts.items() if allowed[token])

        return choices

    def _may_be_empty(self, slot: int) -> bool:
        held = self._canvas.tokens[slot]
        return held == EMPTY or (held == OPEN and self._canvas.is_optional(slot))

    def _from(self, phrase: bytes, hopeful: list[set[int]], begin: _Begin, slot: int, read: int) -> _Moves:
        """What may be put into a slot behind so many bytes of a phrase."""
        if read not in hopeful[slot]:
            return
        is_open = self._canvas.tokens[slot] == OPEN
        on = partial(self._from, phrase, hopeful, begin, slot + 1)
        if read and self._may_be_empty(slot):
            yield [(slot, EMPTY)] if is_open else [], partial(on, read)
        choices = list(self._choices(phrase, slot)(read))
        if is_open:
            choices.sort(key=lambda choice: -self._score(slot, choice[0]))
        for token, ends in choices:
            for after in ends:
                if after == len(phrase) or after in hopeful[slot + 1]:
                    yield (
                        [(slot, token)] if is_open else [],
                        begin if after == len(phrase) else partial(on, after),
                    )

    def _parts_of(self, phrase: bytes, read: int, start: bool) -> dict[int, list[int]]:
        """By token, how much of a phrase may be read behind it, where it goes on with the phrase or, with nothing read, begins it."""
        key = phrase, read, start
        if key not in self._parts:
            found = self._parts[key] = {}
            vocabulary = self._canvas.vocabulary
            for token, data in enumerate(vocabulary.tokens):
                ends = _read_behind(phrase, read, vocabulary.decode([token]) if start else data)
                if ends:
                    found[token] = ends
        return self._parts[key]


def _read_behind(phrase: bytes, read: int, data: bytes) -> list[int]:
    """How many bytes of a phrase may be read behind ``data``, of which ``read`` were before it."""
    if read:
        rest = phrase[read:]
        return (
            [min(len(phrase), read + len(data))]
            if data and (rest.startswith(data) or data.startswith(rest))
            else []
        )
    if phrase in data:
        return [len(phrase)]
    return [count for count in range(1, min(len(phrase), len(data) + 1)) if data.endswith(phrase[:count])]


def _unknown(phrases: list[str], limit: str, given: float, allowed: float) -> LimitError:
    message = (
        f"anchors: {limit} is {allowed:g}, which does not tell whether there is a place for {_named(phrases)}; a grammar that "
        "demands them (mw.Contains) finds one, or says that there is none"
    )
    return LimitError(limit, given, allowed, message=message)
