"""How many tokens complete a text: a walk over states of many texts, and what it finds out."""

from __future__ import annotations

from collections.abc import Callable

_UNKNOWN = (0.0, float("inf"))


class Distances:
    """By state, the fewest tokens after which one of its texts is complete, as a range."""

    def __init__(self) -> None:
        self._ranges: dict[int, tuple[float, float]] = {}

    def known_within(self, state: int, tokens: int) -> bool | None:
        """Whether ``tokens`` tokens or fewer do; None when it is not known."""
        low, high = self._ranges.get(state, _UNKNOWN)
        if high <= tokens:
            return True
        return False if low > tokens else None

    def most(self, state: int) -> float:
        """So many tokens do; infinity when nothing is known."""
        return self._ranges.get(state, _UNKNOWN)[1]

    def note(self, state: int, tokens: int) -> None:
        """So many tokens do, as a completion shows."""
        low, high = self._ranges.get(state, _UNKNOWN)
        self._ranges[state] = (low, min(high, tokens))

    def within(
        self, state: int, tokens: int, is_complete: Callable[[int], bool], any_token: Callable[[int], int]
    ) -> bool:
        """Whether ``tokens`` tokens or fewer do, by a walk; ``any_token``: the state behind any one token, or -1.

        What either of them raises leaves all ranges as they were.
        """
        trail: list[int] = []
        least: float = tokens + 1
        total: float | None = None
        while state >= 0 and len(trail) <= tokens:
            low, high = self._ranges.get(state, _UNKNOWN)
            if len(trail) + high <= tokens:
                total, least = len(trail) + high, len(trail) + low
                break
            if is_complete(state):
                self._ranges[state] = (0, 0)
                total = least = len(trail)
                break
            if len(trail) + low > tokens:
                break
            trail.append(state)
            state = any_token(state)
        if state < 0:
            least = float("inf")
        for used, passed in enumerate(trail):
            low, high = self._ranges.get(passed, _UNKNOWN)
            # None that was passed is complete, and every way leads to the next one.
            low = max(low, least - used)
            self._ranges[passed] = (low, high if total is None else min(high, total - used))
        return total is not None
