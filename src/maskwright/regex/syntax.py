"""Assertions: the leaves of a parsed pattern that are no regular language by themselves.

They stand in ``Regular`` trees next to other leaves until ``resolve`` removes them.  They are
compared by identity, since their meaning depends on where they stand.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from maskwright.regular.expressions import Ranges, Regular


@dataclass(frozen=True, slots=True, eq=False)
class TextStart:
    """Nothing stands before."""


@dataclass(frozen=True, slots=True, eq=False)
class TextEnd:
    """Nothing stands behind; with ``newline``, a last line feed may."""

    newline: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class WordBoundary:
    """Exactly one neighbour is a word character; ``negative``: both or none are."""

    word: Ranges
    negative: bool


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """The text behind begins with ``body``, or the text before ends with it; or not."""

    body: Regular
    behind: bool
    negative: bool
    place: str


Assertion: TypeAlias = TextStart | TextEnd | WordBoundary | Look
ASSERTIONS = (TextStart, TextEnd, WordBoundary, Look)
