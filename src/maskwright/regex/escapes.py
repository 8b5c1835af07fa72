"""Backslash escapes of both dialects, and error positions in a pattern."""

from __future__ import annotations

import unicodedata
from typing import TypeAlias

from maskwright.errors import GrammarError, line_column
from maskwright.regex import unicode_sets
from maskwright.regular.expressions import MAX_CODE_POINT, Ranges, Text, complement_ranges

Int: TypeAlias = int
"""Of any size, or one of C, as the types of a compiled module say."""

_CONTROL = {"t": 0x09, "n": 0x0A, "v": 0x0B, "f": 0x0C, "r": 0x0D}
_HEX = frozenset("0123456789abcdefABCDEF")
_LETTER_HINTS = {
    "A": "write '^' for the start of the text",
    "Z": "write '$' for the end of the text",
    "z": "write '$' for the end of the text",
    "k": "back-references are not regular",
    "Q": "escape each character instead",
    "h": "write [ \\t]",
    "R": "write (?:\\r\\n|\\n)",
    "X": "write the code points out",
}


class EscapeReader:
    """A position in a pattern, and what the escape there means."""

    pattern: str
    python: bool
    at: int
    flags: frozenset[str]
    """In force here."""
    agreed: int
    """1: what is read here is to match only what it matches in all common engines; -1: whatever it matches in one of them;
    0: what the dialect says."""
    python_spaces: bool
    """Whether ``\\s`` is Python's, whatever the dialect."""

    def __init__(self, pattern: Text, dialect: str) -> None:
        self.pattern = str(pattern)
        self.python = dialect == "python"
        self.at = 0
        self.flags = frozenset()
        self.agreed = 0
        self.python_spaces = False

    def place(self, at: Int) -> str:
        return line_column(self.pattern, at)

    def error(self, message: str, at: int | None = None) -> GrammarError:
        return GrammarError(message, place=self.place(self.at if at is None else at), source=self.pattern)

    def case_rules(self) -> str:
        if not self.python:
            return "ecma"
        return "ascii" if "a" in self.flags else "python"

    def shorthand(self, letter: str) -> Ranges:
        """The set of \\d, \\s or \\w."""
        if letter == "s" and self.python_spaces:
            return unicode_sets.PYTHON_SPACE
        ascii_only = "a" in self.flags
        if letter == "d":
            plain = ascii_only or not self.python
            return unicode_sets.ASCII_DIGIT if plain else unicode_sets.python_digit()
        if letter == "s":
            if not self.python:
                return unicode_sets.ECMA_SPACE
            return unicode_sets.ASCII_SPACE if ascii_only else unicode_sets.PYTHON_SPACE
        if self.python and not ascii_only:
            return unicode_sets.python_word()
        if not self.python and "i" in self.flags:
            return unicode_sets.case_variants(unicode_sets.ASCII_WORD, "ecma")
        return unicode_sets.ASCII_WORD

    def escape(self, in_class: bool) -> int | Ranges:
        """The code point or set of the escape here, and moves behind it."""
        start = self.at
        if start + 1 >= len(self.pattern):
            raise self.error("a backslash must be followed by a character: write '\\\\' for a backslash")
        c = self.pattern[start + 1]
        self.at += 2
        if c in "dsw":
            return self.shorthand(c)
        if c in "DSW":
            return self._others(self.shorthand(c.lower()))
        if c in _CONTROL:
            return _CONTROL[c]
        if c == "b" and in_class:
            return 0x08
        if c == "x":
            return self._hex(2, start)
        if c == "u":
            return self._unicode_escape(start)
        if c in "0123456789":
            return self._digits(c, start, in_class)
        if c in "pP":
            return self._property(c, start)
        special = self._python_letter(c, start) if self.python else self._ecma_letter(c)
        if special is not None:
            return special
        if c.isascii() and c.isalpha():
            hint = _LETTER_HINTS.get(c, f"write {c!r} without the backslash for the letter")
            raise self.error(f"unknown escape \\{c}: {hint}", start)
        return ord(c)

    def _ecma_letter(self, c: str) -> int | None:
        if c == "c":
            letter = self.pattern[self.at : self.at + 1]
            if not (letter.isascii() and letter.isalpha()):
                raise self.error("\\c must be followed by a letter from A to Z", self.at - 2)
            self.at += 1
            return ord(letter) % 32
        return None

    def _python_letter(self, c: str, start: Int) -> int | None:
        if c == "a":
            return 0x07
        if c == "U":
            return self._hex(8, start)
        if c == "N":
            close = self.pattern.find("}", self.at)
            if not self.pattern.startswith("{", self.at) or close < 0:
                raise self.error("\\N must be followed by a character name in braces", start)
            name = self.pattern[self.at + 1 : close]
            try:
                found = unicodedata.lookup(name)
            except (KeyError, UnicodeEncodeError):
                found = ""
            if len(found) != 1:
                raise self.error(f"no character is named {name!r}: write its \\u escape", start)
            self.at = close + 1
            return ord(found)
        return None

    def _digits(self, c: str, start: Int, in_class: bool) -> int:
        end = self.at
        if self.python:
            # Octal: a leading 0, three octal digits, or anything inside a class.
            while end < start + 4 and self.pattern[end : end + 1] in tuple("01234567"):
                end += 1
            digits = self.pattern[start + 1 : end]
            if c == "0" or (c in "01234567" and (len(digits) == 3 or in_class)):
                self.at = min(end, start + 3) if c == "0" and len(digits) < 3 else end
                value = int(self.pattern[start + 1 : self.at], 8)
                if value > 0o377:
                    raise self.error("an octal escape is at most \\377: write a \\u escape", start)
                return value
        elif c == "0":
            if self.pattern[end : end + 1] in tuple("0123456789"):
                raise self.error("octal escapes are not part of ECMA-262: write a \\x escape", start)
            return 0
        if in_class:
            raise self.error(f"\\{c} means nothing in a character class: write a \\x escape", start)
        raise self.error("back-references are not regular: write the alternatives out", start)

    def _hex(self, count: Int, start: Int) -> int:
        digits = self.pattern[self.at : self.at + count]
        if len(digits) < count or not _HEX.issuperset(digits):
            what = self.pattern[start : start + 2]
            raise self.error(f"{what} must be followed by {count} hexadecimal digits", start)
        value = int(digits, 16)
        if value > MAX_CODE_POINT:
            raise self.error("there is no such code point: the last one is 10FFFF", start)
        self.at += count
        return value

    def _unicode_escape(self, start: Int) -> int:
        if not self.python and self.pattern.startswith("{", self.at):
            close = self.pattern.find("}", self.at)
            digits = self.pattern[self.at + 1 : max(close, 0)].lstrip("0") or "0"
            if close <= self.at + 1 or not _HEX.issuperset(digits):
                raise self.error("\\u{ must be followed by hexadecimal digits and '}'", start)
            if len(digits) > 6 or int(digits, 16) > MAX_CODE_POINT:
                raise self.error("there is no such code point: the last one is 10FFFF", start)
            self.at = close + 1
            return int(digits, 16)
        value = self._hex(4, start)
        low = self.pattern[self.at + 2 : self.at + 6]
        if (
            not self.python
            and 0xD800 <= value <= 0xDBFF
            and self.pattern.startswith("\\u", self.at)
            and len(low) == 4
            and _HEX.issuperset(low)
            and 0xDC00 <= int(low, 16) <= 0xDFFF
        ):
            self.at += 6
            return 0x10000 + (value - 0xD800 << 10) + int(low, 16) - 0xDC00
        return value

    def _property(self, c: str, start: Int) -> Ranges:
        close = self.pattern.find("}", self.at)
        if not self.pattern.startswith("{", self.at) or close < 0:
            raise self.error(f"\\{c} must be followed by a property in braces, such as \\{c}{{L}}", start)
        expression = self.pattern[self.at + 1 : close]
        # The package regex negates like this as well.
        negated = self.python and expression.startswith("^")
        expression = expression.removeprefix("^") if negated else expression
        ranges = unicode_sets.unicode_property(expression)
        if ranges is None:
            raise self.error(
                f"the property {expression!r} is unknown or not supported: "
                "use a general category such as Lu, or write the ranges out",
                start,
            )
        self.at = close + 1
        return self._others(ranges) if (c == "P") != negated else ranges

    def _others(self, ranges: Ranges) -> Ranges:
        """What is not in a set; in Python, not even where case is ignored."""
        if self.python and "i" in self.flags:
            ranges = unicode_sets.case_variants(ranges, self.case_rules())
        return complement_ranges(ranges)
