"""Phrases that are put down before anything else, and the rest of a canvas from coarse to fine.

As in POINTER (Zhang et al., EMNLP 2020, arXiv 2005.00558) a text grows from the words that it must have: in each round one more token
comes into every gap, so a text of n tokens takes about log2 n rounds.  There, a round inserts; here, the length is known, and a
round fills the middle slot of every run of open slots (``Schedule(score="middle")``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

import numpy as np
import numpy.typing as npt

from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import EMPTY, OPEN, text_bytes
from maskwright.errors import CanvasError, UnsatisfiableError, VocabularyError
from maskwright.vocabulary.vocabulary import Vocabulary


def middles(slots: Sequence[int]) -> list[int]:
    """The middle of every run of neighbours among some slots, which are in order."""
    found: list[int] = []
    begin = 0
    for at in range(1, len(slots) + 1):
        if at == len(slots) or slots[at] != slots[at - 1] + 1:
            found.append(slots[(begin + at - 1) // 2])
            begin = at
    return found


def checked_anchors(anchors: Sequence[str], spell: Callable[[str], list[int]]) -> dict[str, list[list[int]]]:
    """By phrase, the tokens that spell it behind a blank and without one, where some do.

    Raises ``CanvasError`` for what is no list of phrases, ``UnsatisfiableError`` for one that no tokens spell.
    """
    if (
        isinstance(anchors, (str, bytes))
        or not isinstance(anchors, Iterable)
        or not all(isinstance(each, str) and each for each in anchors)
    ):
        raise CanvasError("anchors: expected a list of phrases, none of them empty")
    ways: dict[str, list[list[int]]] = {}
    for anchor in anchors:
        text_bytes(anchor, "anchors")
        ways[anchor] = []
        for text in (" " + anchor, anchor):
            with contextlib.suppress(VocabularyError):
                ways[anchor].append(spell(text))
        if not ways[anchor]:
            raise UnsatisfiableError(f"anchors: no tokens spell {anchor!r}; choose another phrase")
    return ways


def check_written(
    anchors: Iterable[str], vocabulary: Vocabulary, tokens: Sequence[int], ends: Sequence[int]
) -> None:
    """Raises ``UnsatisfiableError`` unless all phrases are in the text of a full canvas, where none can be put down."""
    text = vocabulary.decode(
        [each for each in takewhile(lambda each: each not in ends, tokens) if each != EMPTY]
    )
    for anchor in anchors:
        if anchor.encode() not in text:
            raise UnsatisfiableError(
                f"anchors: no slot is open, and the fixed text has no {anchor!r}: leave slots for it, or leave it out"
            )


def place_anchors(
    canvas: Canvas,
    anchors: dict[str, list[list[int]]],
    log_probs: npt.NDArray[np.float64],
    rows: dict[int, int],
) -> list[int]:
    """Put phrases down where the model likes them best; the slots that were filled, in order.

    ``anchors``: by phrase, its tokens in several ways; ``log_probs``: of every token by row, ``rows``: by slot.  The phrase with the
    likeliest place is first.  Raises ``UnsatisfiableError`` where no place is left for one.
    """
    ways: list[tuple[float, str, list[tuple[float, int, list[int]]]]] = []
    for anchor, spelled in anchors.items():
        places = []
        for ids in spelled:
            for first in range(len(canvas) - len(ids) + 1):
                slots = range(first, first + len(ids))
                if all(slot in rows for slot in slots):
                    score = sum(log_probs[rows[slot], token] for slot, token in zip(slots, ids, strict=True))
                    places.append((float(score), first, ids))
        places.sort(key=lambda place: -place[0])
        ways.append((places[0][0] if places else -np.inf, anchor, places))
    filled: list[int] = []
    for _, anchor, places in sorted(ways, key=lambda way: -way[0]):
        taken = next((done for _, first, ids in places if (done := _put(canvas, first, ids))), None)
        if taken is None:
            raise UnsatisfiableError(
                f"anchors: no place is left for {anchor!r}: the grammar must allow it, and the canvas must have room"
            )
        filled += taken
    return sorted(filled)


def _put(canvas: Canvas, first: int, ids: list[int]) -> list[int]:
    """Put down all tokens of a phrase, or none."""
    done: list[int] = []
    for slot, token in enumerate(ids, first):
        if canvas.tokens[slot] != OPEN or not canvas.try_commit(slot, token):
            canvas.uncommit(done)
            return []
        done.append(slot)
    return done
