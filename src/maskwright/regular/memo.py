"""Functions that remember what they answered, in bounded memory.

Languages of patterns, numbers and texts are asked for again and again, within a schema and by the next one.  What a stranger sends may make
each of them large: the number of answers says nothing about their size.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

from maskwright.limits import Limits
from maskwright.regular.expressions import Alt, Cat, Chars, Lit, Machine, Repeat

ROOM = 100_000
"""Small objects that one function may hold as arguments and answers: some 10 MB."""
OBJECT_BYTES = 100
"""Of a small object, roughly."""
_TEXT = 64
"""Characters, or states of an automaton, that take as much as a small object: roughly."""
_STATES = 4

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
            added = weight((arguments, *named.values(), answer))
            if held + added > ROOM:
                cached.cache_clear()
                held = 0
            held += added
            return answer

        cached = lru_cache(most)(asked)
        return cached  # type: ignore[return-value]

    return decorate


def weight(value: Any) -> int:
    """How many small objects it is made of, roughly; no more than a few above ``ROOM`` are counted."""
    total = 0
    stack = [value]
    while stack and total <= ROOM:
        each = stack.pop()
        total += 1
        if isinstance(each, (str, bytes)):
            total += len(each) // _TEXT
        elif isinstance(each, (tuple, list)):
            # Pairs of numbers are most of what is long.
            if len(each) > ROOM:
                return total + len(each)
            stack += each
        elif isinstance(each, (Cat, Alt)):
            stack += each.parts
        elif isinstance(each, Chars):
            total += 2 * len(each.ranges)
        elif isinstance(each, Lit):
            total += len(each.text) // _TEXT
        elif isinstance(each, Repeat):
            stack.append(each.body)
        elif isinstance(each, Machine):
            total += _STATES * len(each.moves) + len(each.accepts)
        elif not isinstance(each, Limits):
            # Groups of keywords, terms of the grammar and their lexemes.
            fields = getattr(each, "__dataclass_fields__", None)
            if fields is None:
                fields = ("key", "regular") if hasattr(each, "regular") else ()
            stack += [getattr(each, name) for name in fields]
    return total
