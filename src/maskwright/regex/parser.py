"""Patterns to trees: a parser for the ECMA-262 and the Python dialect.

The ECMA dialect is that of ECMA-262 in Unicode mode, section 22.2.1, with those leniencies of
Annex B.1.2 that patterns in schemas rely on: identity escapes of punctuation, and ``]``, ``}``
and ``{`` as literals where they close or quantify nothing.  Groups are kept on a stack of our
own, so no pattern can exhaust Python's.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from maskwright.base.deadline import check_time, if_many, in_time, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.limits import Limits
from maskwright.regex import unicode_sets
from maskwright.regex.escapes import EscapeReader, Int
from maskwright.regex.syntax import Look, TextEnd, TextStart, WordBoundary
from maskwright.regular.expressions import (
    NOTHING,
    ROOM,
    Chars,
    Ranges,
    Regular,
    Text,
    alt,
    cat,
    chars,
    complement_ranges,
    has_scalar,
    normalize_ranges,
    put_in_order,
    repeat,
)

Dialect: TypeAlias = Literal["ecma", "python"]

# What the flag x ignores outside of classes.
_VERBOSE_SPACE = " \t\n\r\v\f"
_VERBOSE_START = (*_VERBOSE_SPACE, "#")

_DIGITS = frozenset("0123456789")
_CHARACTERS = 10
"""Of a pattern for each state that it may have."""
# Trees may share nodes.
_ASCII = tuple([Chars(((code, code),)) for code in range(0x80)])


class Item:
    """One thing in a sequence, and how often it stands there."""

    tree: Regular
    """All of it."""
    lazy: bool
    """Whether a lazy quantifier is in it."""
    group: Group | None
    """What is repeated, where that is a group; else ``body``."""
    body: Regular
    low: object
    """The counts: each is an ``int``, or None above."""
    high: object
    fewest: bool
    """Whether fewer repetitions are tried before more."""

    def __init__(self, tree: Regular, lazy: bool, group: Group | None) -> None:
        self.tree = tree
        self.body = tree
        self.lazy = lazy
        self.group = group
        self.low = 1
        self.high = 1
        self.fewest = False

    def repeated(self, low: Int, high: Int | None, lazy: bool) -> None:
        self.tree = repeat(self.body, low, high)
        self.low = low
        self.high = high
        self.fewest = lazy and low != high
        self.lazy = self.lazy or self.fewest


class Group:
    """A group: what is read so far of it."""

    opened_at: int
    flags: frozenset[str]
    agreed: int
    look: tuple[bool, bool] | None
    """(behind, negative) of a look-around."""
    alternatives: list[list[Item]]
    """But the last one."""
    items: list[Item]
    quantifiable: bool

    def __init__(self, opened_at: int, flags: frozenset[str], agreed: int) -> None:
        self.opened_at = opened_at
        self.flags = flags
        self.agreed = agreed
        self.look = None
        self.alternatives = []
        self.items = []
        self.quantifiable = False

    def push(self, tree: object, quantifiable: bool) -> None:
        self.items.append(Item(tree, False, None))  # type: ignore[arg-type]
        self.quantifiable = quantifiable

    def push_group(self, inner: Group) -> None:
        lazy = False
        item: Item
        for items in (*inner.alternatives, inner.items):
            for item in items:
                lazy = lazy or item.lazy
        self.items.append(Item(inner.body(), lazy, inner))
        self.quantifiable = True

    def repeat_last(self, low: Int, high: Int | None, lazy: bool) -> None:
        item: Item = self.items[-1]
        item.repeated(low, high, lazy)
        self.quantifiable = False

    def _parts(self) -> list[Regular]:
        """The alternatives."""
        return [
            cat(*[item.tree for item in if_many(items)])
            for items in in_time((*self.alternatives, self.items))
        ]

    def body(self) -> Regular:
        parts = self._parts()
        if len(parts) == 1:
            return parts[0]
        # Single characters merge into one set: [abc] and a|b|c are the same.
        single = [part.ranges for part in parts if isinstance(part, Chars)]
        if len(single) > 1:
            others = [part for part in parts if not isinstance(part, Chars)]
            return alt(chars(*[r for ranges in single for r in ranges]), *others)
        return alt(*parts)


class Parser(EscapeReader):
    """One pattern; ``parse`` may be called once."""

    limits: Limits
    outer_flags: frozenset[str]
    root: Group
    groups: list[Group]
    """Those that are open."""

    def __init__(
        self,
        pattern: Text,
        dialect: Dialect,
        limits: Limits,
        flags: str = "",
        *,
        agreed: int = 0,
    ) -> None:
        super().__init__(pattern, dialect)
        self.limits = limits
        self.agreed = agreed
        self.outer_flags = self._known_flags(flags)
        self.root = Group(0, self.outer_flags, agreed)
        self.groups = []

    def parse(self) -> Regular:
        """The tree, with ``Assertion`` leaves.

        Raises ``GrammarError`` for what is malformed or not regular, and ``LimitError`` for
        groups nested deeper than ``limits.max_depth``, and for patterns too long for ``limits.max_regex_states``.
        """
        pattern = self.pattern
        groups = [Group(0, self._leading_flags() if self.python else self.outer_flags, self.agreed)]
        self.groups = groups
        self.root = groups[0]
        self.flags = groups[0].flags
        atoms: int = 0
        most: int = self.limits.max_regex_states
        if len(pattern) > _CHARACTERS * most:
            # What goes through all of it at once should not take long.
            raise self._too_long(len(pattern) // _CHARACTERS)
        while self.at < len(pattern):
            check_time()
            if atoms > most:
                raise self._too_long(atoms)
            c = pattern[self.at]
            group: Group = groups[-1]
            self.flags = group.flags
            self.agreed = group.agreed
            if self.python and "x" in self.flags and (c == "#" or c in _VERBOSE_SPACE):
                self._skip_verbose()
            elif c == "(":
                opened = self._open(len(groups))
                if opened is not None:
                    groups.append(opened)
            elif c == ")":
                if len(groups) == 1:
                    raise self.error("this ')' closes no group: escape it as '\\)'")
                self.at += 1
                groups.pop()
                outer: Group = groups[-1]
                if group.look is None:
                    outer.push_group(group)
                else:
                    behind, negative = group.look
                    look = Look(group.body(), behind, negative, self.place(group.opened_at))
                    outer.push(look, False)
            elif c == "|":
                self.at += 1
                group.alternatives.append(group.items)
                group.items = []
                group.quantifiable = False
            elif c in "*+?{":
                self._quantifier(group)
            elif c == "[":
                atoms += 1
                group.push(self._charset(self._agreed_set(True)), True)
            elif c == ".":
                self.at += 1
                group.push(Chars(self._dot()), True)
            elif c in "^$":
                self.at += 1
                group.push(self._anchor(c), False)
            elif c == "\\":
                atoms += 1
                self._escape(group)
            else:
                atoms += 1
                self.at += 1
                group.push(self._character(ord(c)), True)
        if len(groups) > 1:
            raise self.error("this group is not closed: add ')'", groups[-1].opened_at)
        return self.root.body()

    def _too_long(self, states: Int) -> LimitError:
        subject = f"a pattern of {len(self.pattern)} characters"
        return LimitError("max_regex_states", states, self.limits.max_regex_states, subject=subject)

    def release(self) -> None:
        """Let go of what was read."""
        for group in (self.root, *self.groups):
            let_go(group.alternatives, group.items)

    def _character(self, code: Int) -> Regular:
        if code < 0x80 and "i" not in self.flags:
            return _ASCII[code]
        return self._charset(((code, code),))

    def _charset(self, ranges: Ranges) -> Regular:
        if "i" in self.flags:
            ranges = unicode_sets.case_variants(ranges, self.case_rules())
        return Chars(ranges) if has_scalar(ranges) else NOTHING

    def _dot(self) -> Ranges:
        if "s" in self.flags:
            return unicode_sets.EVERY_CODE_POINT
        return complement_ranges(self._line_ends())

    def _line_ends(self) -> Ranges:
        fewest = self.python or self.agreed < 0
        return unicode_sets.LINE_FEED if fewest else unicode_sets.ECMA_LINE_TERMINATOR

    def _anchor(self, c: str) -> object:
        if "m" in self.flags:
            look = Look(Chars(self._line_ends()), c == "^", False, self.place(self.at - 1))
            edge = TextStart() if c == "^" else TextEnd()
            return alt(edge, look)  # type: ignore[arg-type]
        return TextStart() if c == "^" else TextEnd(newline=self.python or self.agreed < 0)

    def _escape(self, group: Group) -> None:
        letter = self.pattern[self.at + 1 : self.at + 2]
        if letter in ("b", "B"):
            self.at += 2
            boundary = WordBoundary(self.shorthand("w"), letter == "B")
            group.push(boundary, False)
        elif self.python and letter in ("A", "Z", "z"):
            self.at += 2
            group.push(TextStart() if letter == "A" else TextEnd(), False)
        else:
            value = self._agreed_set(False) if letter in ("s", "S") else self.escape(False)
            group.push(self._character(value) if isinstance(value, int) else self._charset(value), True)

    def _agreed_set(self, in_class: bool) -> Ranges:
        """The set here: a class in brackets, or an escape such as \\s."""
        start = self.at
        own: Ranges = self._class() if in_class else self.escape(False)  # type: ignore[assignment]
        if not self.agreed:
            return own
        self.at = start
        self.python_spaces = True
        others: Ranges = self._class() if in_class else self.escape(False)  # type: ignore[assignment]
        self.python_spaces = False
        return self._agreement(own, others)

    def _agreement(self, own: Ranges, others: Ranges) -> Ranges:
        """What is in both sets, or in one of them.  White space of any other engine is Python's or that of ECMA-262."""
        if own == others:
            return own
        if self.agreed < 0:
            return normalize_ranges([*own, *others])
        return complement_ranges(normalize_ranges([*complement_ranges(own), *complement_ranges(others)]))

    def _class(self) -> Ranges:
        pattern, opened_at = self.pattern, self.at
        self.at += 1
        negated = pattern.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        room = ROOM
        first = self.at
        while True:
            check_time()
            if len(ranges) > room:
                room = put_in_order(ranges)
            if self.at >= len(pattern):
                raise self.error("this character class is not closed: add ']'", opened_at)
            if pattern[self.at] == "]" and not (self.python and self.at == first):
                break
            start = self.at
            low = self._class_atom()
            is_range = pattern.startswith("-", self.at) and not pattern.startswith("-]", self.at)
            if not is_range or self.at + 1 >= len(pattern):
                ranges += ((low, low),) if isinstance(low, int) else low
                continue
            self.at += 1
            high = self._class_atom()
            if isinstance(low, int) and isinstance(high, int):
                if low > high:
                    raise self.error("this range is reversed: write the lower character first", start)
                ranges.append((low, high))
            elif self.python:
                raise self.error("a class such as \\w cannot end a range: escape the '-'", start)
            else:
                # Annex B: the hyphen is a literal next to a class such as \w.
                for end in (low, 0x2D, high):
                    ranges += ((end, end),) if isinstance(end, int) else end
        self.at += 1
        merged = normalize_ranges(ranges)
        if not negated:
            return merged
        if "i" in self.flags:
            merged = unicode_sets.case_variants(merged, self.case_rules())
        return complement_ranges(merged)

    def _class_atom(self) -> int | Ranges:
        c = self.pattern[self.at]
        if c == "\\":
            return self.escape(True)
        self.at += 1
        return ord(c)

    def _quantifier(self, group: Group) -> None:
        start = self.at
        bounds = self._bounds()
        if bounds is None:
            group.push(self._character(0x7B), True)
            return
        if not group.quantifiable:
            raise self.error(f"{self.pattern[start]!r} repeats nothing: escape it or remove it", start)
        low, high = bounds
        if high is not None and low > high:
            raise self.error("the bounds are reversed: write the lower one first", start)
        lazy = self.pattern.startswith("?", self.at)
        if lazy:
            self.at += 1
        elif self.python and self.pattern.startswith("+", self.at):
            raise self.error("possessive quantifiers are not supported: remove the '+'")
        group.repeat_last(low, high, lazy)

    def _bounds(self) -> tuple[int, int | None] | None:
        """The bounds of the quantifier here; None when its brace is a literal."""
        c = self.pattern[self.at]
        if c != "{":
            self.at += 1
            return (0, 1) if c == "?" else (0 if c == "*" else 1, None)
        close = self.pattern.find("}", self.at)
        low, comma, high = self.pattern[self.at + 1 : max(close, 0)].partition(",")
        valid = (low or (self.python and comma)) and _DIGITS.issuperset(low + high)
        if close < 0 or not valid:
            self.at += 1
            return None
        least, most = self._bound(low or "0"), self._bound(high) if high else None
        self.at = close + 1
        return least, most if comma else least

    def _bound(self, digits: str) -> int:
        # Python converts thousands of digits only; so many say enough.
        bound = int(digits.lstrip("0")[:18] or "0")
        if bound > self.limits.max_count:
            raise LimitError("max_count", bound, self.limits.max_count, place=self.place(self.at))
        return bound

    def _skip_verbose(self) -> None:
        if self.pattern[self.at] != "#":
            self.at += 1
            return
        end = self.pattern.find("\n", self.at)
        self.at = len(self.pattern) if end < 0 else end + 1

    def _leading_flags(self) -> frozenset[str]:
        flags = set(self.outer_flags)
        while True:
            while "x" in flags and self.pattern[self.at : self.at + 1] in _VERBOSE_START:
                self._skip_verbose()
            if not self.pattern.startswith("(?", self.at):
                break
            end = self.at + 2
            while end < len(self.pattern) and self.pattern[end].isalpha() and self.pattern[end] != "P":
                end += 1
            if end == self.at + 2 or not self.pattern.startswith(")", end):
                break
            flags |= self._flag_letters(self.at + 2, end)
            self.at = end + 1
        return frozenset(flags)

    def _flag_letters(self, start: Int, end: Int) -> set[str]:
        letters = self.pattern[start:end]
        for i, letter in enumerate(letters):
            if letter not in self._flags_known():
                raise self.error(f"the flag {letter!r} is not supported: remove it", start + i)
        return set(letters) - {"u"}

    def _known_flags(self, letters: str) -> frozenset[str]:
        known = self._flags_known() + ("" if self.python else "u")
        for letter in letters:
            if letter not in known:
                raise GrammarError(f"the flag {letter!r} is not supported: use some of {known!r}")
        return frozenset(letters) - {"u"}

    def _flags_known(self) -> str:
        return "aimsux" if self.python else "ims"

    def _open(self, depth: Int) -> Group | None:
        """The group that begins here, below so many others; None for a comment."""
        pattern, start = self.pattern, self.at
        group = Group(start, self.flags, self.agreed)
        if depth > self.limits.max_depth:
            raise LimitError("max_depth", depth, self.limits.max_depth, place=self.place(start))
        if not pattern.startswith("(?", start):
            self.at += 1
        elif pattern.startswith("(?:", start):
            self.at += 3
        elif pattern.startswith(("(?=", "(?!"), start):
            self.at += 3
            group.look = (False, pattern[start + 2] == "!")
        elif pattern.startswith(("(?<=", "(?<!"), start):
            self.at += 4
            group.look = (True, pattern[start + 3] == "!")
        elif pattern.startswith("(?<", start) or (self.python and pattern.startswith("(?P<", start)):
            self.at += 3 if pattern.startswith("(?<", start) else 4
            self._group_name()
        elif self.python and pattern.startswith("(?#", start):
            close = pattern.find(")", start)
            if close < 0:
                raise self.error("this comment is not closed: add ')'", start)
            self.at = close + 1
            return None
        else:
            self._other_group(group)
        if group.look is not None and group.look[1]:
            group.agreed = -self.agreed
        return group

    def _group_name(self) -> None:
        close = self.pattern.find(">", self.at)
        name = self.pattern[self.at : close] if close >= 0 else ""
        if not name.replace("$", "_").isidentifier():
            raise self.error("a group name must be an identifier followed by '>'")
        self.at = close + 1

    def _other_group(self, group: Group) -> None:
        """Groups that change flags; anything else is refused."""
        pattern, start = self.pattern, self.at
        if pattern[start + 2 : start + 3].isdigit():
            raise self.error("recursive groups are not supported: rewrite the pattern without", start)
        for opening, what in _REFUSED_GROUPS.items():
            if pattern.startswith(opening, start):
                raise self.error(f"{what} not supported: rewrite the pattern without", start)
        end = start + 2
        while end < len(pattern) and (pattern[end].isalpha() or pattern[end] == "-"):
            end += 1
        if pattern.startswith(")", end) and end > start + 2:
            where = "must stand at the start" if self.python else "are not part of ECMA-262"
            raise self.error(f"flags for a whole pattern {where}: use a group such as (?i:...)", start)
        if not pattern.startswith(":", end):
            raise self.error("unknown kind of group: '(?' must be followed by ':', '=', '!' or '<'", start)
        on, _, off = pattern[start + 2 : end].partition("-")
        off_at = start + 3 + len(on)
        added = self._flag_letters(start + 2, start + 2 + len(on))
        if "a" in on and "u" in on:
            raise self.error("the flags 'a' and 'u' exclude each other: remove one", start + 2)
        before = self.flags - {"a"} if "u" in on and self.python else self.flags
        group.flags = (before | added) - self._flag_letters(off_at, off_at + len(off))
        self.at = end + 1


_REFUSED_GROUPS = {
    "(?P=": "back-references are",
    "(?P>": "recursive groups are",
    "(?&": "recursive groups are",
    "(?>": "atomic groups are",
    "(?(": "conditional groups are",
    "(?R": "recursive groups are",
    "(?|": "branch resets are",
}


def parse(pattern: Text, dialect: Dialect, limits: Limits, flags: str = "", agreed: int = 0) -> Regular:
    """The tree of a pattern, with ``Assertion`` leaves; see ``Parser.parse`` and ``EscapeReader.agreed``."""
    if dialect not in ("ecma", "python"):
        raise GrammarError(f"unknown dialect {dialect!r}: use 'ecma' or 'python'")
    parser = Parser(pattern, dialect, limits, flags, agreed=agreed)
    try:
        return parser.parse()
    finally:
        parser.release()
