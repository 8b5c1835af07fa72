"""The intermediate representation: a context-free grammar over lexemes.

Front-ends build a ``Grammar``; the compiler lowers it to flat arrays for the engine.  The
language is plain set semantics: a text is in the language when some derivation spells it.  With a
``Lexing``, which terminals a text consists of is decided by maximal munch.

A rule's body is one of
- an expression: ``Term``, ``Ref``, ``Seq``, ``Choice``, ``Switch``, ``Import``;
- ``Repeated``: another rule, ``min`` to ``max`` times, counted in a register and not unrolled;
- ``Record``: members in a fixed order, chosen by key, each key at most once;
- ``Distinct``: an array whose items are pairwise different.

Lexemes are regular languages that never match the empty string.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, islice
from typing import Literal, TypeAlias

from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.regular.automata import Columns
from maskwright.regular.expressions import Regular

Spelling: TypeAlias = Literal["utf8", "quoted", "printed"]
Name: TypeAlias = str
"""Or a subclass, as the tokens of lark are."""


class Lexeme:
    """A regular language and its spelling; ``key`` identifies the content, across grammars.

    Spelled "utf8", a text is its UTF-8 bytes.  Spelled "quoted" it is a quoted string (RFC 8259,
    section 7): between quotes, every code point raw where that is allowed, as its short escape, or as
    ``\\uXXXX`` (a surrogate pair above U+FFFF) with either case of digits.  "printed" is the part of that which JSON
    printers write: ``\\"``, ``\\\\``, ``\\b``, ``\\f``, ``\\n``, ``\\r``, ``\\t``; other control characters as ``\\uXXXX``; U+007F, ``<``, ``>``,
    ``&`` and what is above ASCII either raw or so; everything else raw.
    Equal keys must mean equal content: the engine shares automata and masks by key.
    """

    def __init__(self, key: Hashable, regular: Regular, spelling: Spelling = "utf8") -> None:
        self.key = key
        self.regular = regular
        self.spelling = spelling

    def __repr__(self) -> str:
        return f"Lexeme({self.key!r})"


@dataclass(frozen=True)
class Keyset:
    """Quoted strings from ``names``, and optionally any of ``other`` (quoted strings as well).

    ``names`` are the decoded texts, distinct.  Escaped spellings count as the text that they
    decode to (RFC 8259 section 7).  ``spelling`` is "quoted" or "printed"; ``other`` has the same, and must contain every name, and infinitely many
    strings behind every prefix of one, so that leaving names out never leads to a dead end.
    """

    names: tuple[str, ...]
    other: Lexeme | None = None
    spelling: Spelling = "quoted"


class Words:
    """Many texts as one lexeme: bytes, sorted, distinct and not empty, packed into ``data``.

    Text ``i`` is ``data[starts[i]:starts[i + 1]]``; ``tags[i]`` is its case where it stands in a ``Switch``, else 0.
    """

    def __init__(self, texts: Iterable[bytes], tags: Mapping[bytes, int] | None = None) -> None:
        ordered = _ordered(texts)
        data = bytearray()
        for piece in ordered:
            check_time()
            data += b"".join(piece)
        self.data = bytes(data)
        self.starts = array("q", accumulate(map(len, in_time(chain.from_iterable(ordered))), initial=0))
        self.tags = array("i")
        for piece in ordered:
            check_time()
            self.tags.extend([0 if tags is None else tags[text] for text in piece])
        digest = hashlib.blake2b(self.data, digest_size=24)
        digest.update(self.starts.tobytes())
        digest.update(self.tags.tobytes())
        self.key = ("words", len(self.tags), digest.digest())
        let_go(*ordered)

    @classmethod
    def tagged(cls, tags: Mapping[bytes, int]) -> Words:
        """Texts, each with its case."""
        return cls(tags, tags)

    def __len__(self) -> int:
        return len(self.tags)

    def items(self) -> list[tuple[bytes, int]]:
        """The texts and their tags."""
        data, starts = self.data, self.starts
        return [(data[starts[i] : starts[i + 1]], tag) for i, tag in enumerate(in_time(self.tags))]

    def where(self, keep: Callable[[int], bool]) -> Words:
        """The texts whose tag is to be kept."""
        if all(map(keep, set(self.tags))):
            return self
        return Words.tagged({text: tag for text, tag in self.items() if keep(tag)})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Words) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


_PIECE = 10_000


def _ordered(texts: Iterable[bytes]) -> list[list[bytes]]:
    """Sorted, and each once, in pieces: to sort a million takes a second, and to collect garbage in one list of them a thirtieth."""
    rest = iter(in_time(texts))
    listed = list(iter(lambda: list(islice(rest, _PIECE)), []))
    if len(listed) <= 1:
        return [sorted(set(piece)) for piece in listed]
    # Some of them, of which there are as many before as behind: what lies between two neighbours is a small part.
    cuts = sorted([text for piece in listed for text in piece[:: _PIECE // 2]])
    parts: list[list[bytes]] = [[] for _ in range(len(cuts) + 1)]
    for piece in listed:
        for text in in_time(piece):
            parts[bisect(cuts, text)].append(text)
        let_go(piece)
    for at, part in enumerate(parts):
        check_time()
        parts[at] = sorted(set(part))
    return parts


@dataclass(frozen=True)
class Tokens:
    """One token of the vocabulary, standing for itself: no other tokens that spell the same text will do.

    ``names`` are special tokens by name, ``ids`` are ranges of ids, ends included.  ``excluded``: every token but
    these, out of those that are text or special and do not end a text.  ``place``: where it was written, for errors.
    Where such a token is read, every lexeme is over.  Not inside of a ``Distinct``.
    """

    names: tuple[str, ...] = ()
    ids: tuple[tuple[int, int], ...] = ()
    excluded: bool = False
    place: str | None = field(default=None, compare=False)

    def __str__(self) -> str:
        ids = ",".join(f"{low}-{high}" if low < high else str(low) for low, high in self.ids)
        parts = [*self.names, *([f"<[{ids}]>"] if ids else [])]
        listed = ", ".join(parts)
        if self.excluded:
            return f"any token but {listed}" if parts else "any token"
        return listed


@dataclass(frozen=True)
class Boundary:
    """A place between two texts, read by no byte: behind it the longest match begins anew.

    What is waited for behind it does not compete with what is waited for before it, nor with what is behind another one (``key``).
    ``opens_line``: a line begins there, of a text with blocks by indentation.  Only in a grammar with a lexer.
    """

    key: Hashable
    opens_line: bool = False

    def __str__(self) -> str:
        return "a boundary"


AnyLexeme = Lexeme | Keyset | Words | Tokens | Boundary


@dataclass(frozen=True)
class Term:
    """A lexeme, a token, or a boundary."""

    lexeme: AnyLexeme


@dataclass(frozen=True)
class Ref:
    """A rule, by index into ``Grammar.rules``."""

    rule: int


@dataclass(frozen=True)
class Seq:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Choice:
    items: tuple[Expr, ...]


@dataclass(frozen=True)
class Switch:
    """One of several lexemes, and then the case that belongs to it: one lexer reads for all of them.

    ``lexemes`` are as many as ``cases`` and their languages are disjoint, or they are ``Words`` whose tags are
    positions in ``cases``.
    """

    lexemes: tuple[Lexeme, ...] | Words
    cases: tuple[Expr, ...]


@dataclass(frozen=True)
class Import:
    """The texts of another grammar, which is made when its tables are not known under ``key`` yet.

    Equal keys must mean equal content.  The grammar must not be unsatisfiable.  ``keep`` says whether its tables may be
    used again, ``stored`` whether they may in another process: then ``repr(key)`` says all that the key does.
    """

    key: Hashable
    make: Callable[[], Grammar] = field(compare=False, repr=False)
    keep: bool = field(default=True, compare=False, repr=False)
    stored: bool = field(default=False, compare=False, repr=False)


Expr: TypeAlias = Term | Ref | Seq | Choice | Switch | Import


@dataclass(frozen=True)
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
"""Ways to write a value: the rule, and the obligations of its record that it reaches (a bit set)."""


@dataclass(frozen=True)
class Member:
    """A member of a record: its key, and the ways to write its value (none: it may not occur)."""

    name: str
    values: Values
    required: bool = False
    absent: int = 0
    """The obligations that are reached when it is left out (a bit set)."""


@dataclass(frozen=True)
class OtherMembers:
    """Members whose keys, quoted strings, are in a language (None: they have no keys), and the ways to write their values."""

    keys: Lexeme | None
    values: Values


@dataclass(frozen=True)
class Record:
    """``open (member (comma member)*)? close``, a member being ``key colon value``.

    Declared members come in the order given, each at most once, required ones always; then other
    ones (keys that are not the name of any declared member).  Not ``ordered``, all may come in any
    order.  With ``unique``, no other key comes twice, however it is spelled.  In all, there are ``min`` to ``max``
    members, and each of the ``obligations`` (bits, from the lowest) is reached by a member's value or by
    leaving one out.  ``close_empty`` closes a record with no members.

    Two kinds are arrays.  A ``bare`` record has keys only, without colons and values: with ``unique``, a list of
    different strings.  One that is ``keyless`` has values only: its one kind of members has no keys.

    The languages of ``others`` are disjoint; for their keys see ``Keyset.other``.  ``spelling`` is that of all keys.
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
    obligations: int = 0
    ordered: bool = True
    unique: bool = False
    bare: bool = False
    spelling: Spelling = "quoted"

    @property
    def keyless(self) -> bool:
        return len(self.others) == 1 and self.others[0].keys is None

    @property
    def has_colons(self) -> bool:
        return not self.bare and not self.keyless


@dataclass(frozen=True)
class Indented:
    """``rule``, whose lines begin in one column, further in than those around it.

    Only in a grammar with ``Lexing.newline``, which stands before it and ends it.
    """

    rule: int


@dataclass(frozen=True)
class Distinct:
    """The arrays of ``array`` whose items are pairwise different; with ``repeats``, the others.

    ``array``: one or more alternatives, each beginning with a ``Term`` that is the bracket and white space behind
    it; every text is an array as JSON writes it (RFC 8259), with some items.  Items are equal when they are the
    same JSON value: numbers by value, strings decoded, objects whatever the order of their members.
    Not in a grammar with a ``Lexing``.

    ``free``: where the first ``free`` items are done, there are different ones for all places that still need one,
    whatever the earlier ones are; with ``repeats``, all items behind the first ``free`` may be the same values
    (None: neither is known).  ``least``: a number of values that the item at any place has at least.  ``most``: of
    items, with ``repeats`` only.  ``provided``: rules without which nothing is known about ``free``, should one of
    them have no text.

    ``tie``, with ``repeats``: the items at these two places are equal, instead of any two.  Both have the same rule,
    and no array ends before the second of them.
    """

    array: Expr
    free: int | None = None
    least: int = 0
    repeats: bool = False
    most: int | None = None
    provided: tuple[int, ...] = ()
    tie: tuple[int, int] | None = None


Body: TypeAlias = Expr | Repeated | Record | Indented | Distinct


@dataclass(frozen=True, eq=False)
class Lexing:
    """How a text falls into terminals where a grammar has a lexer: a contextual one, with maximal munch.

    ``terminals`` are the lexemes (spelled "utf8") that this is about, those of higher rank first; lexemes of
    a grammar that are not among them are matched in every possible way.  Where a terminal begins, let A be the terminals that the
    grammar accepts there, and the ignored ones.  It is the longest match of any terminal in A, and that of the
    highest rank in A among those that match as much.  ``ignored`` are positions in ``terminals``: such a
    terminal may come before any other one and at the end.  A rule that refers to it never sees it, but lets
    ignored text come where it stands, also where all that the grammar accepts are lexemes of another kind.
    """

    terminals: tuple[Lexeme, ...]
    ignored: tuple[int, ...] = ()
    refused: tuple[tuple[int, Regular], ...] = ()
    """Texts that count as a match where a terminal (a position) is in A, but as one of no terminal: if they are
    longest, nothing matches.  This is how a terminal looks ahead.  A text does not count where it makes no difference to
    what is read: where another terminal of A matches more of it than the last match of this one, or as much with a higher rank."""
    names: tuple[str, ...] = ()
    """Of the terminals, for messages."""
    newline: int | None = None
    """With ``Indented``: the terminal (a position) that ends a line.  Blanks behind its last line break are the
    next line's column; before the first line nothing is ignored."""
    line_break: int | None = None
    """The terminal (a position) that stands for a newline between brackets, where it may always be left out."""
    columns: int = 0
    """Lines begin in a column below this."""
    early: tuple[int, ...] = ()
    """Terminals (positions) of which no text begins another one: as soon as one in A matches, it is the next
    terminal, however long others could be."""
    placed: bool = False
    """Ignored terminals are in A only where the grammar accepts one: where a rule refers to it, and before no other
    terminal.  Reading one changes nothing in what the grammar accepts."""
    lines: Columns | None = None
    """The newline by the columns that it tells, where its characters do not say so themselves (inside a JSON string)."""
    quote: int | None = None
    """With ``newline``: the terminal (a position) around the lines.  A line begins behind it, and it may stand in any column, as
    the end of a text may."""
    of: tuple[Lexing, ...] = ()
    """The lexers of several grammars in one, whose terminals stand one behind the other: no place may wait for terminals of two.  None: it is of one grammar."""
    parts: tuple[int, ...] = ()
    """By terminal, the one (a position) that it is a part of; none: each is whole.  What a part refuses is told by the matches of the whole."""
    forbidden: tuple[tuple[int, Regular], ...] = ()
    """By terminal (a position), texts that count as a match, but as one of no terminal, where it is in A: also where another one of A
    matches more than its last match, unlike ``refused``.  Not with captures."""


@dataclass(frozen=True)
class Capture:
    """Texts of a rule are reported under ``name``: the last one, or with ``append`` all of them.

    ``parts``: the rule is one lexeme whose texts are a text of the first language and then one of the second; it is
    the first one that counts, or with ``second`` the second one.
    """

    name: str
    append: bool = False
    parts: tuple[Regular, Regular] | None = None
    second: bool = False


@dataclass(init=False, eq=False)
class Grammar:
    """Rules by index; ``start`` is the rule that the whole text must match.  Rules that share the same object as their
    body are lowered once.

    Without ``lexing``, a text may be split into lexemes in every possible way.  ``captures``: by rule, what is
    reported of its texts; they are no part of the language.  ``blank``: a rule of ignored text, which is no part of
    what is captured where it stands at an end.  ``helpers``: rules that were made out of a part of another one, so
    that nobody asks where they are.
    """

    rules: list[Body | None]
    names: list[str]
    start: int
    lexing: Lexing | None
    captures: dict[int, tuple[Capture, ...]]
    blank: int | None
    helpers: set[int]

    def __init__(
        self,
        rules: list[Body | None] | None = None,
        names: list[str] | None = None,
        start: int = 0,
        lexing: Lexing | None = None,
        captures: dict[int, tuple[Capture, ...]] | None = None,
        blank: int | None = None,
        helpers: set[int] | None = None,
    ) -> None:
        # By hand: factories of defaults, once compiled, import their module each time.
        self.rules = [] if rules is None else rules
        self.names = [] if names is None else names
        self.start = start
        self.lexing = lexing
        self.captures = {} if captures is None else captures
        self.blank = blank
        self.helpers = set() if helpers is None else helpers

    def reserve(self, name: Name) -> int:
        """Add a rule whose body is set later (recursion) and return its index."""
        self.rules.append(None)
        self.names.append(name)
        return len(self.rules) - 1

    def add(self, name: Name, body: Body) -> int:
        index = self.reserve(name)
        self.rules[index] = body
        return index

    def unshared(self) -> Grammar:
        """The same with a body of its own for each rule: where rules share one, a place does not tell which it is in."""
        seen: set[int] = set()
        rules: list[Body | None] = []
        for body in in_time(self.rules):
            rules.append(replace(body) if body is not None and id(body) in seen else body)
            seen.add(id(body))
        return replace(self, rules=rules)

    def imports(self) -> list[Import]:
        """The imports of all rules, each key once."""
        found: dict[Hashable, Import] = {}
        for body in self._leaves(terms=False):
            if isinstance(body, Import):
                made: Import = body
                found.setdefault(made.key, made)
        return list(found.values())

    def tokens(self) -> list[Tokens]:
        """The tokens that stand for themselves, without those of imports."""
        lexemes = [body.lexeme for body in self._leaves(terms=True) if isinstance(body, Term)]
        return list(dict.fromkeys(lexeme for lexeme in lexemes if isinstance(lexeme, Tokens)))

    def has_boundaries(self) -> bool:
        """Whether a boundary stands in some rule."""
        leaves = self._leaves(terms=True)
        return any(isinstance(body, Term) and isinstance(body.lexeme, Boundary) for body in leaves)

    def _leaves(self, terms: bool) -> list[Expr]:
        """The imports in rules, in order; with ``terms``, these as well."""
        leaves: list[Expr] = []
        work: list[Expr] = []
        looked = 0
        for rule in self.rules:
            looked += 1
            if looked & 1023 == 1023:
                check_time()
            if rule is None or isinstance(rule, (Ref, Repeated, Record, Indented)):
                continue
            if isinstance(rule, Choice):
                alternatives: Choice = rule
                if (
                    len(alternatives.items) == 1
                    and isinstance(alternatives.items[0], (Ref, Term))
                    and not terms
                ):
                    continue
            work.append(rule.array if isinstance(rule, Distinct) else rule)
            while work:
                looked += 1
                if looked & 1023 == 1023:
                    check_time()
                body = work.pop()
                items: tuple[Expr, ...]
                if isinstance(body, Choice):
                    choice: Choice = body
                    items = choice.items
                elif isinstance(body, Seq):
                    sequence: Seq = body
                    items = sequence.items
                elif isinstance(body, Switch):
                    switch: Switch = body
                    items = switch.cases
                else:
                    if terms or isinstance(body, Import):
                        leaves.append(body)
                    continue
                for i in range(len(items) - 1, -1, -1):
                    if not isinstance(items[i], Ref) and (terms or not isinstance(items[i], Term)):
                        work.append(items[i])
        return leaves


EMPTY = Seq(())
"""Matches the empty text."""
FAIL = Choice(())
"""Matches nothing."""
