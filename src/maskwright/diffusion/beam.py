"""A filling found text by text, for grammars with a lexer.

There the set of all texts that some open slots can hold grows with every slot (docs/internals/sets.md), and one filling is all that a
canvas needs.  A beam search reads the canvas from left to right and keeps some texts at every slot:

    SELECT ▢ ▢ ▢ FROM t      " a" then "b" then "c": behind each, " FROM t" can be read
                             " f" then "(" then "1": it cannot be, yet

A text whose state can read the fixed text that comes next is likely to be kept; of those that lead to the same state behind it, few.
What is found is a filling.  That nothing is found says nothing: ``reading.py`` decides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, islice

from maskwright._core import StateSets
from maskwright.diffusion.filling import Rest
from maskwright.diffusion.reading import Reading
from maskwright.diffusion.slots import EMPTY, OPEN
from maskwright.errors import VocabularyError

_NARROW, _WIDE = 16, 96
"""Texts kept at a slot."""
_CLASSES = 8
"""Times the width: classes of tokens tried in a run of open slots."""
_MEASURED = 4
"""Times the width: texts for which a completion is looked for, to keep some with each: many with short ones, some with others."""
_LISTED = 48
"""One in so many of them has its classes listed at each slot."""
_STEPS = 16
"""Tokens that are read for one step of the budget."""
_SPELLED = bytes(range(32, 127)) + b"\n"

Ways = dict[int, tuple[int, int]]
"""By state: a state before the slot, and the token that leads from there to it."""


def likely_tokens(sets: StateSets, segment: Callable[[bytes], list[int]]) -> list[int]:
    """Tokens that spell a character, or a terminal of the lexer, also behind a blank; none where there is no lexer."""
    texts = dict.fromkeys(blank + text for text in sets.terminal_samples for blank in (b"", b" "))
    if texts:
        texts.update(dict.fromkeys(bytes([byte]) for byte in _SPELLED))
    found = []
    for text in texts:
        with contextlib.suppress(VocabularyError):
            ids = segment(text)
            if len(ids) == 1:
                found.append(ids[0])
    return found


def beam_filling(
    reading: Reading,
    likely: Iterable[int],
    state: int,
    first: int,
    old_rest: Rest,
    finish: Rest,
    wide: bool,
) -> list[int] | None:
    """Tokens for the slots from ``first`` on, from ``state``; None when none are found.

    ``likely``: tokens that are tried in every open slot; ``old_rest`` completes a text as one did that is known, ``finish`` behind all
    fixed text.  ``wide``: where nothing is found, more texts are kept, which takes ten times as long.
    Raises ``OutOfBudget``.
    """
    beam = _Beam(reading, likely)
    for width in (_NARROW, _WIDE) if wide else (_NARROW,):
        found = beam.filling(width, state, first, old_rest, finish)
        if found is not None:
            return found
    return None


class _Beam:
    def __init__(self, reading: Reading, likely: Iterable[int]) -> None:
        self.reading = reading
        self.next = reading.sets.next
        never = reading.banned | reading.ends
        common = dict.fromkeys([*(token for token in reading.tokens if token >= 0), *likely])
        self._common = [token for token in common if token not in never]

    def filling(self, width: int, state: int, first: int, old_rest: Rest, finish: Rest) -> list[int] | None:
        self.width = width
        reading = self.reading
        levels: list[Ways] = []
        beam: Iterable[int] = [state]
        tried: dict[int, None] = {}
        for i in range(first, reading.last + 1):
            token = reading.tokens[i]
            if token != OPEN:
                tried = {}
                ways = (
                    {state: (state, EMPTY) for state in beam} if token == EMPTY else self._read(beam, token)
                )
            else:
                if not tried:
                    tried = dict.fromkeys(self._common)
                for each in islice(beam, self.width // _LISTED + 1):
                    tried.update(dict.fromkeys(self._classes(each)))
                ways = self._kept(self._open(beam, tried, reading.optional[i]), i + 1)
            if not ways:
                return None
            reading.check_clock()
            levels.append(ways)
            for after in ways:
                rest = old_rest(after, i + 1)
                if rest is not None:
                    return self._path(levels, after) + rest
            beam = ways
        for after in beam:
            rest = finish(after, reading.last + 1)
            if rest is not None:
                return self._path(levels, after) + rest
        return None

    def _path(self, levels: Sequence[Ways], state: int) -> list[int]:
        found = []
        for ways in reversed(levels):
            state, token = ways[state]
            found.append(token)
        return found[::-1]

    def _read(self, beam: Iterable[int], token: int) -> Ways:
        self.reading.spend()
        found: Ways = {}
        for state in beam:
            after = self.next(state, token)
            if after >= 0:
                found.setdefault(after, (state, token))
        return found

    def _open(self, beam: Iterable[int], tried: Collection[int], optional: bool) -> Ways:
        found: Ways = {}
        for state in beam:
            self.reading.spend(len(tried) // _STEPS)
            if optional:
                found.setdefault(state, (state, EMPTY))
            for token in chain((self.reading.near_completion(state) or ())[:1], tried):
                after = self.next(state, token)
                if after >= 0:
                    found.setdefault(after, (state, token))
        return found

    def _classes(self, state: int) -> list[int]:
        """One token of each class of those that may follow, evenly taken."""
        found = [int(ids[0]) for _, ids in self.reading.classes_of(state)]
        return found[:: len(found) // (_CLASSES * self.width) + 1]

    def _kept(self, ways: Ways, i: int) -> Ways:
        """At most so many of the states before slot ``i``."""
        tokens, width = self.reading.tokens, self.width
        at = i
        while at < len(tokens) and tokens[at] in (OPEN, EMPTY) and at <= self.reading.last:
            at += 1
        ready: dict[int, list[int]] = {}
        others: dict[int, list[int]] = {}
        for state in ways:
            after, read = self._behind(state, at)
            if after >= 0:
                ready.setdefault(after, []).append(state)
            elif at > i:
                others.setdefault(read, []).append(state)
        kept = list(islice(_turns(ready.values()), width))
        if others:
            measured = list(islice(_turns(others.values()), _MEASURED * width))
            alike: dict[tuple[int, ...], list[int]] = {}
            for state in measured:
                alike.setdefault(tuple(self.reading.near_completion(state) or ()), []).append(state)
            texts = sorted(alike, key=len)
            far = texts[width // 2 :]
            texts[width // 2 :] = far[:: 2 * len(far) // width + 1]
            more = list(islice(_turns(alike[text] for text in texts), width))
            kept = kept[: width - min(len(more), width // 2)]
            kept += more[: width - len(kept)]
        return {state: ways[state] for state in kept}

    def _behind(self, state: int, at: int) -> tuple[int, int]:
        """The state behind the fixed text that begins at a slot, -1 when it cannot be read; how many of its tokens can be."""
        reading = self.reading
        if at > reading.last:
            return (state if reading.ends or reading.sets.is_accepting(state) else -1), 0
        read = 0
        for token in reading.tokens[at : reading.last + 1]:
            if token == OPEN:
                break
            if token != EMPTY:
                state = self.next(state, token)
                if state < 0:
                    break
                read += 1
        return state, read


def _turns(groups: Iterable[Sequence[int]]) -> Iterable[int]:
    """The first of each group, then the second of each."""
    left = [iter(group) for group in groups]
    while left:
        going = []
        for each in left:
            for value in islice(each, 1):
                yield value
                going.append(each)
        left = going
