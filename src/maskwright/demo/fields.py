"""The fields of a JSON value: each leaf by its path, and which of them are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

MISSING = object()
"""Stands for a field that one of two values does not have."""


class Field(NamedTuple):
    """One field: where it is (``items.0.price``), what the request says, what was written; either may be ``MISSING``."""

    path: str
    expected: Any
    written: Any

    @property
    def is_right(self) -> bool:
        """Equal as JSON values; texts without regard to case and to blanks around them."""
        return bool(_plain(self.expected) == _plain(self.written))


def compare(expected: Any, written: Any) -> list[Field]:
    """The fields of both values: first those that are expected, then those that only were written (all wrong).

    ``written`` may be ``MISSING``: then every field is.
    """
    wanted = dict(_leaves(expected))
    found = dict(_leaves(written)) if written is not MISSING else {}
    return [Field(path, wanted.get(path, MISSING), found.get(path, MISSING)) for path in {**wanted, **found}]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Paths and values of what has no members; an empty object or array is a leaf."""
    if isinstance(value, (dict, list)) and value:
        members = value.items() if isinstance(value, dict) else enumerate(value)
        for name, part in members:
            yield from _leaves(part, f"{path}.{name}" if path else str(name))
    else:
        yield path, value


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value.strip().casefold()
    # In Python True is 1; in JSON it is not.
    return (type(value), value) if isinstance(value, bool) else value
