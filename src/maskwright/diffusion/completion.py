"""The end of a text in few tokens, where the slots that are left are few."""

from __future__ import annotations

from maskwright.diffusion.reading import Reading


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
