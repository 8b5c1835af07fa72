"""The intermediate representation: a context-free grammar over lexemes.

Front-ends build a ``Grammar``; the compiler lowers it to flat arrays for the engine.  The
language is plain set semantics: a text is in the language when some derivation spells it.

A rule's body is one of
- an expression: ``Term``, ``Ref``, ``Seq``, ``Choice``;
- ``Repeated``: another rule, ``min`` to ``max`` times, counted in a register and not unrolled;
- ``Record``: members in a fixed order, chosen by key, each key at most once;
- ``Distinct``: an array whose items are pairwise different.

Lexemes are regular languages that never match the empty string.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from maskwright.regular import Regular

Spelling: TypeAlias = Literal["utf8", "quoted"]


class Lexeme:
    """A regular language and its spelling; ``key`` identifies the content, across grammars.

    Spelled "utf8", a text is its UTF-8 bytes.  Spelled "quoted" it is a quoted string (RFC 8259,
    section 7): between quotes, every code point raw where that is allowed, as its short escape, or as
    ``\\uXXXX`` (a surrogate pair above U+FFFF) with either case of digits.
    Equal keys must mean equal content: the engine shares automata and masks by key.
    """

    __slots__ = ("key", "regular", "spelling")

    def __init__(self, key: Hashable, regular: Regular, spelling: Spelling = "utf8") -> None:
        self.key = key
        self.regular = regular
        self.spelling = spelling

    def __repr__(self) -> str:
        return f"Lexeme({self.key!r})"


@dataclass(frozen=True, slots=True)
class Keyset:
    """Quoted strings from ``names``, and optionally any of ``other`` (quoted strings as well).

    ``names`` are the decoded texts, distinct.  Escaped spellings count as the text that they
    decode to (RFC 8259 section 7).  ``other`` must contain every name, and infinitely many
    strings behind every prefix of one, so that leaving names out never leads to a dead end.
    """

    names: tuple[str, ...]
    other: Lexeme | None = None


@dataclass(frozen=True, slots=True)
class Term:
    """A lexeme."""

    lexeme: Lexeme | Keyset


@dataclass(frozen=True, slots=True)
class Ref:
    """A rule, by index into ``Grammar.rules``."""

    rule: int


@dataclass(frozen=True, slots=True)
class Seq:
    items: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    items: tuple[Expr, ...]


Expr: TypeAlias = Term | Ref | Seq | Choice


@dataclass(frozen=True, slots=True)
class Repeated:
    """``first`` once and then ``rest``, in all ``min`` to ``max`` items (None: unbounded).

    ``first`` is the rule of the first item and ``rest`` that of each later one (an item behind
    a separator, say).
    """

    first: int
    rest: int
    min: int
    max: int | None


Values: TypeAlias = tuple[tuple[int, int], ...]
"""Ways to write a value: the rule, and the goals of its record that it reaches (a bit set)."""


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a record: its key, and the ways to write its value (none: it may not occur)."""

    name: str
    values: Values
    required: bool = False
    absent: int = 0
    """The goals that are reached when it is left out (a bit set)."""


@dataclass(frozen=True, slots=True)
class OtherMembers:
    """Members whose keys, quoted strings, are in a language, and the ways to write their values."""

    keys: Lexeme
    values: Values


@dataclass(frozen=True, slots=True)
class Record:
    """``open (member (comma member)*)? close``, a member being ``key colon value``.

    Declared members come in the order given, each at most once, required ones always; then other
    ones (keys that are not the name of any declared member).  Not ``ordered``, all may come in any
    order.  With ``unique``, no other key comes twice, however it is spelled.  A ``bare`` record has keys only,
    without colons and values: with ``unique``, a list of different strings.  In all, there are ``min`` to ``max``
    members, and each of the ``goals`` (bits, from the lowest) is reached by a member's value or by
    leaving one out.  ``close_empty`` closes a record with no members.

    The languages of ``others`` are disjoint; for their keys see ``Keyset.other``.
    """

    members: tuple[Member, ...]
    others: tuple[OtherMembers, ...]
    open: Term
    close_empty: Term
    colon: Term
    comma: Term
    close: Term
    min: int = 0
    max: int | None = None
    goals: int = 0
    ordered: bool = True
    unique: bool = False
    bare: bool = False


@dataclass(frozen=True, slots=True)
class Distinct:
    """The arrays of ``array`` whose items are pairwise different; with ``repeats``, the others.

    ``array``: one or more alternatives, each beginning with a ``Term`` that is the bracket and white space behind
    it; every text is an array as JSON writes it (RFC 8259), with some items.  Items are equal when they are the same JSON value: numbers
    by value, strings decoded, objects whatever the order of their members.

    ``free``: where the first ``free`` items are done, what is demanded can be met by later items whatever
    the earlier ones are: different ones for all places that still need one, or one that repeats
    (None: not known to be so).  ``least``: a number of values that the item at any place has at least.
    """

    array: Expr
    free: int | None = None
    least: int = 0
    repeats: bool = False


Body: TypeAlias = Expr | Repeated | Record | Distinct


@dataclass(slots=True)
class Grammar:
    """Rules by index; ``start`` is the rule that the whole text must match."""

    rules: list[Body | None] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    start: int = 0

    def reserve(self, name: str) -> int:
        """Add a rule whose body is set later (recursion) and return its index."""
        self.rules.append(None)
        self.names.append(name)
        return len(self.rules) - 1

    def add(self, name: str, body: Body) -> int:
        index = self.reserve(name)
        self.rules[index] = body
        return index


EMPTY = Seq(())
"""Matches the empty text."""
FAIL = Choice(())
"""Matches nothing."""
