"""What a case is.  The files beside this one have the cases, by the kind of source."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import maskwright as mw


class Case(NamedTuple):
    """Something that a stranger may send."""

    name: str
    """Of a family of cases, and what makes this one: ``schemas/nested arrays/10000``."""
    make: Callable[[], Any]
    """The source; or, where ``use`` is given, what that takes."""
    use: Callable[[Any, mw.Limits], Iterator[Callable[[], Any]]] | None = None
    """Operations, each of which must end by itself; None: whatever can be done with a source (``operations.py``)."""


def family(name: str, make: Callable[[Any], Any], sizes: Iterable[Any]) -> Iterator[Case]:
    """A case for each size, which is whatever ``make`` takes."""
    for size in sizes:
        yield Case(f"{name}/{size}", lambda size=size: make(size))


def nested(depth: int, inner: Any, wrap: Callable[[Any], Any]) -> Any:
    """``inner`` inside so many wrappings."""
    for _ in range(depth):
        inner = wrap(inner)
    return inner
