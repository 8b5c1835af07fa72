"""Completions of a text: of what a model suggests, and in few tokens where few slots are left."""

from __future__ import annotations

from collections.abc import Sequence

from maskwright.diffusion.reading import Reading
from maskwright.diffusion.slots import EMPTY, OPEN


def short_completion(reading: Reading, state: int, room: int) -> list[int] | None:
    """At most ``room`` tokens that complete the text."""
    text: list[int] = []
    while True:
        left = room - len(text)
        completion = reading.completion(state)
        if completion is not None and len(completion) <= left:
            return text + completion
        if not reading.within(state, left):
            return None
        left = reading.most_left(state)
        # The completion of fewest bytes takes too many tokens; the first ones are likely good.
        count = len(completion) // 2 if completion is not None else 0
        while count > 0:
            after = state
            for token in completion[:count] if completion is not None else ():
                after = reading.sets.next(after, token)
            if count < left and reading.within(after, left - count):
                break
            count //= 2
        if completion is not None and count > 0:
            text += completion[:count]
            state = after
            continue
        for target, ids in reading.classes_of(state):
            token = int(ids[0])
            after = reading.sets.next(state, token)
            if after >= 0 and reading.within(target, left - 1):
                text.append(token)
                state = after
                break
        else:
            return None


def longest_part(reading: Reading, guess: Sequence[int]) -> list[int] | None:
    """The canvas's tokens, those of ``guess`` where it is open, up to the last slot from which they can be completed.

    None when that is before the last fixed text.
    """
    state = reading.sets.start
    states, texts = [state], []
    for i, fixed in enumerate(reading.tokens):
        token = fixed if fixed != OPEN else guess[i]
        if token in reading.ends and reading.optional[i] and i < reading.last:
            token = EMPTY
        if token in reading.ends or i == reading.end or token == OPEN:
            break
        if fixed == OPEN and (token in reading.banned or (token == EMPTY and not reading.optional[i])):
            break
        after = state if token == EMPTY else reading.sets.next(state, token)
        if after < 0:
            break
        texts.append(token)
        states.append(after)
        state = after
    i = len(texts)
    if i <= reading.last:
        return None
    if not reading.ends:
        return texts if i == len(reading.tokens) and reading.sets.is_accepting(state) else None
    # What is before a part that can be completed can be, too.
    low, high = reading.last + 1, i
    if reading.can_end(states[high], high, reading.end):
        return texts
    if not reading.can_end(states[low], low, reading.end):
        return None
    while low < high - 1:
        middle = (low + high) // 2
        if reading.can_end(states[middle], middle, reading.end):
            low = middle
        else:
            high = middle
    return texts[:low]
