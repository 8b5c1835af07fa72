"""A filling found with exact questions: depth first, asking ``reading.py`` what can still be completed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from maskwright.diffusion.reading import Reading
from maskwright.diffusion.slots import EMPTY

LOOK_AHEAD = 16
"""Slots that a search looks ahead at every slot; every so many slots it looks to the end."""

Candidates = Callable[[int, int, bool], Iterator[int]]
"""Of a state and a slot: tokens for it, at least one of every class that is viable."""
Rest = Callable[[int, int], "list[int] | None"]
"""Of a state and a slot: tokens from this slot on that complete a text, or None."""


def exact_filling(
    reading: Reading, state: int, first: int, candidates: Candidates, old_rest: Rest, finish: Rest
) -> list[int] | None:
    """Tokens for the slots from ``first`` on, from ``state``; None when there are none.

    ``candidates`` of a state, a slot and whether they have to be viable; ``old_rest`` completes a text as one did that is known,
    ``finish`` behind all fixed text.
    Whether the rest can be filled is asked every ``LOOK_AHEAD`` slots; in between, whether that many more can.
    Where the first answer is no, the slots since the last yes are searched again, asking at every one.
    """
    texts: list[int] = []
    states = [state]
    choices = [candidates(state, first, False)] if first <= reading.last else []
    sure = first
    """From the text up to this slot the rest can be filled."""
    careful = first
    """Before this slot, each is asked for."""
    while True:
        i = first + len(texts)
        rest = old_rest(states[-1], i)
        if rest is not None:
            return texts + rest
        if i > reading.last:
            rest = finish(states[-1], i)
            if rest is not None:
                return texts + rest
            if not texts:
                return None
        else:
            whole = i < careful or i + 1 - sure >= LOOK_AHEAD or i == reading.last
            for token in choices[-1]:
                after = states[-1] if token == EMPTY else reading.sets.next(states[-1], token)
                reading.spend()
                if after < 0 or not reading.goes_on(after, i + 1, i + 1 + LOOK_AHEAD):
                    continue
                if whole and not reading.viable(after, i + 1):
                    if i < careful:
                        continue
                    careful = i + 1
                    del texts[sure - first :], states[sure - first + 1 :], choices[sure - first :]
                    choices.append(candidates(states[-1], sure, True))
                    break
                texts.append(token)
                states.append(after)
                if whole:
                    sure = i + 1
                if i + 1 <= reading.last:
                    choices.append(candidates(after, i + 1, i + 1 < careful))
                break
            else:
                reading.refute(states[-1], i)
                choices.pop()
                if not choices:
                    return None
                texts.pop()
                states.pop()
                sure = min(sure, first + len(texts))
            continue
        texts.pop()
        states.pop()
        sure = min(sure, first + len(texts))
