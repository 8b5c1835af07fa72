"""The intermediate representation: a context-free grammar over lexemes.

Front-ends build a ``Grammar``; the compiler lowers it to flat arrays for the engine.  The
language is plain set semantics: a text is in the language when some derivation spells it.

A rule's body is one of
- an expression: ``Term``, ``Ref``, ``Seq``, ``Choice``;
- ``Repeated``: another rule, ``min`` to ``max`` times, counted in a register and not unrolled;
- ``Record``: members in a fixed order, chosen by key, each key at most once.

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


@dataclass(frozen=True, slots=True)
class Member:
    """A member of a record: its key, the rule of its value (None: may not occur)."""

    name: str
    value: int | None
    required: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """``open (member (comma member)*)? close``, a member being ``key colon value``.

    Declared members come in the order given, each at most once, required ones always; then any
    number of others (keys that are not the name of any declared member), when ``other_value``
    is the rule of their values; for ``other_key``, see ``Keyset.other``.  ``close_empty`` closes a record with no members.
    """

    members: tuple[Member, ...]
    other_key: Lexeme | None
    other_value: int | None
    open: Term
    close_empty: Term
    colon: Term
    comma: Term
    close: Term


Body: TypeAlias = Expr | Repeated | Record


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
