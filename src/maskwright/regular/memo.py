"""Functions that remember what they answered, in bounded memory.

Languages of patterns, numbers and texts are asked for again and again, within a schema and by the next one.  What a stranger sends may make
each of them large: the number of answers says nothing about their size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

from maskwright.regular.expressions import weight

ROOM = 100_000
"""Small objects that one function may hold as arguments and answers: some 10 MB."""
_F = TypeVar("_F", bound=Callable[..., Any])


def remembered(most: int) -> Callable[[_F], _F]:
    """``functools.lru_cache`` of ``most`` answers that forgets them all when they, with their arguments, would be more than
    ``ROOM``.  The last answer is kept whatever its size."""

    def decorate(function: _F) -> _F:
        held = 0

        @wraps(function)
        def asked(*arguments: Any, **named: Any) -> Any:
            nonlocal held
            answer = function(*arguments, **named)
            added = weight((*arguments, *named.values(), answer), ROOM)
            if held + added > ROOM:
                cached.cache_clear()
                held = 0
            held += added
            return answer

        cached = lru_cache(most)(asked)
        return cached  # type: ignore[return-value]

    return decorate
