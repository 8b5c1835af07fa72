"""The oracle's spelling of code points as bytes: from ``Chars`` leaves to trees of ``ByteClass``.

A set of code points becomes one small deterministic automaton that splits the set digit by
digit (hexadecimal digits of an escape, 6-bit groups of UTF-8) and shares equal suffixes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from maskwright.ir.grammar import Lexeme, Spelling
from maskwright.regular.expressions import (
    ANY_CHAR,
    NOTHING,
    Alt,
    Cat,
    Chars,
    Lit,
    Machine,
    Ranges,
    Regular,
    Repeat,
    alt,
    cat,
    intersect_ranges,
    normalize_ranges,
    postorder,
    repeat,
)


@dataclass(frozen=True)
class ByteClass:
    """One byte out of a 256-bit set (bit b set: byte b)."""

    mask: int


_QUOTE, _BACKSLASH = 0x22, 0x5C
_SLASH = 0x2F
# RFC 8259, section 7: what may stand unescaped, and the two-character escapes.
_UNESCAPED: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
_SHORT_ESCAPES = {
    0x22: b'"', 0x5C: b"\\", 0x2F: b"/", 0x08: b"b", 0x0C: b"f", 0x0A: b"n", 0x0D: b"r", 0x09: b"t",
}  # fmt: skip
# What JSON printers write as \uXXXX: control characters without a short form; & < > (Go), U+007F (Python) and what is
# above ASCII, which others write raw.
_PRINTED_UNITS: Ranges = (
    (0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F), (0x26, 0x26), (0x3C, 0x3C), (0x3E, 0x3E), (0x7F, 0x10FFFF),
)  # fmt: skip
_HEX_MASKS = tuple(sum(1 << b for b in {*f"{d:x}{d:X}".encode()}) for d in range(16))
_CONTINUATION_MASKS = tuple(1 << (0x80 | d) for d in range(64))
_START, _FINAL = 0, 1
# Numbers in low..high lead to a state.
_Pieces: TypeAlias = tuple[tuple[int, int, int], ...]


def encode(node: Regular, spelling: Spelling) -> Regular:
    """The byte-level tree of a tree of code points.

    "utf8" is plain UTF-8.  "quoted" is the inside of a JSON string (RFC 8259, section 7): every
    code point raw where that is allowed, as its short escape, or as ``\\uXXXX`` (a surrogate
    pair above U+FFFF) with either case of digits.  "printed" is what JSON printers write of that.
    Surrogate code points have no spelling, so they match nothing.
    """
    encode_set = {"utf8": _encode_utf8, "quoted": _encode_quoted, "printed": _encode_printed}[spelling]
    done: dict[int, Regular] = {}
    result: Regular
    for part in postorder(node):
        if isinstance(part, Chars):
            result = encode_set(part.ranges)
        elif isinstance(part, Cat):
            result = cat(*[done[id(p)] for p in part.parts])
        elif isinstance(part, Alt):
            result = alt(*[done[id(p)] for p in part.parts])
        elif isinstance(part, Repeat):
            result = repeat(done[id(part.body)], part.min, part.max)
        elif isinstance(part, Machine):
            edges = [(a, done[id(label)], b) for a, label, b in part.edges]
            edges = [edge for edge in edges if edge[1] != NOTHING]
            result = Machine(part.n_states, part.start, tuple(edges), part.accepts, part.length)
        else:
            assert isinstance(part, Lit)
            result = cat(*[encode_set(((ord(c), ord(c)),)) for c in part.text])
        done[id(part)] = result
    return done[id(node)]


def spelled(lexeme: Lexeme) -> Regular:
    """The bytes of a lexeme, as a byte-level tree; of a string, with its quotes."""
    inside = encode(lexeme.regular, lexeme.spelling)
    if lexeme.spelling == "utf8":
        return inside
    quote = ByteClass(1 << _QUOTE)
    return cat(quote, inside, quote)  # type: ignore[arg-type]


class _SetAutomaton:
    """An automaton for the spellings of one set, states 0 (start) and 1 (accepting) given."""

    def __init__(self) -> None:
        self.n_states = 2
        self.edges: dict[tuple[int, int], int] = {}  # (source, target): byte mask
        self._numbers: dict[tuple[_Pieces, int, bool], int] = {}

    def new_state(self) -> int:
        self.n_states += 1
        return self.n_states - 1

    def edge(self, source: int, mask: int, target: int) -> None:
        self.edges[source, target] = self.edges.get((source, target), 0) | mask

    def numbers(self, pieces: _Pieces, length: int, hexadecimal: bool) -> int:
        """The state that reads ``length`` digits of a number and goes where ``pieces`` say."""
        if length == 0:
            return pieces[0][2]
        key = (pieces, length, hexadecimal)
        state = self._numbers.get(key)
        if state is None:
            state = self._numbers[key] = self.new_state()
            masks, bits = (_HEX_MASKS, 4) if hexadecimal else (_CONTINUATION_MASKS, 6)
            self.digit(state, pieces, masks, bits * (length - 1), length - 1, hexadecimal)
        return state

    def digit(
        self,
        source: int,
        pieces: _Pieces,
        masks: tuple[int, ...],
        shift: int,
        rest: int,
        hexadecimal: bool,
    ) -> None:
        """From ``source``, read the leading digit (spelled by ``masks``), then the ``rest``."""
        unit = (1 << shift) - 1
        behind: dict[int, list[tuple[int, int, int]]] = {}
        for low, high, target in pieces:
            for digit in range(low >> shift, (high >> shift) + 1):
                base = digit << shift
                behind.setdefault(digit, []).append(
                    (max(low, base) - base, min(high, base + unit) - base, target)
                )
        # Most digits have the same numbers behind them: one edge for all.
        together: dict[_Pieces, int] = {}
        for digit, inside in behind.items():
            key = tuple(inside)
            together[key] = together.get(key, 0) | masks[digit]
        for key, mask in together.items():
            self.edge(source, mask, self.numbers(key, rest, hexadecimal))

    def utf8(self, ranges: Ranges) -> None:
        for low, high, lead, rest in (
            (0x00, 0x7F, 0x00, 0),
            (0x80, 0x7FF, 0xC0, 1),
            (0x800, 0xFFFF, 0xE0, 2),
            (0x10000, 0x10FFFF, 0xF0, 3),
        ):
            inside = intersect_ranges(ranges, ((low, high),))
            if not inside:
                continue
            if rest == 0:
                mask = sum((2 << hi) - (1 << lo) for lo, hi in inside)
                self.edge(_START, mask, _FINAL)
            else:
                pieces = tuple((lo, hi, _FINAL) for lo, hi in inside)
                leads = tuple(1 << (lead | digit) for digit in range(min(32, 256 - lead)))
                self.digit(_START, pieces, leads, 6 * rest, rest, False)

    def escapes(self, ranges: Ranges, by_unit: Ranges, slash: bool) -> None:
        """Short escapes of the characters in ``ranges`` (that of the slash if asked for), ``\\uXXXX`` of those that are
        in ``by_unit`` too."""
        backslash = self.new_state()
        self.edge(_START, 1 << _BACKSLASH, backslash)
        for code, letter in _SHORT_ESCAPES.items():
            if any(lo <= code <= hi for lo, hi in ranges) and (slash or code != _SLASH):
                self.edge(backslash, 1 << letter[0], _FINAL)
        ranges = intersect_ranges(ranges, by_unit)
        units = [(lo, hi, _FINAL) for lo, hi in intersect_ranges(ranges, ((0, 0xFFFF),))]
        # UTF-16: equal sets of low surrogates share the state behind the high surrogate.
        for lows, highs in _surrogates(intersect_ranges(ranges, ((0x10000, 0x10FFFF),))).items():
            second, letter_u = self.new_state(), self.new_state()
            self.edge(second, 1 << _BACKSLASH, letter_u)
            low_units = tuple((lo, hi, _FINAL) for lo, hi in lows)
            self.edge(letter_u, 1 << ord("u"), self.numbers(low_units, 4, True))
            units += [(lo, hi, second) for lo, hi in highs]
        if units:
            self.edge(backslash, 1 << ord("u"), self.numbers(tuple(sorted(units)), 4, True))

    def regular(self) -> Regular:
        if self.n_states == 2:
            return ByteClass(self.edges[_START, _FINAL])
        edges = tuple((a, ByteClass(mask), b) for (a, b), mask in self.edges.items())
        return Machine(self.n_states, _START, edges, (_FINAL,))


def _surrogates(astral: Ranges) -> dict[Ranges, list[tuple[int, int]]]:
    """Ranges of high surrogates by the low surrogates that may follow them."""
    every_low = (0xDC00, 0xDFFF)
    partial: dict[int, list[tuple[int, int]]] = {}
    by_lows: dict[Ranges, list[tuple[int, int]]] = {}
    for low, high in astral:
        first, last = (low - 0x10000) >> 10, (high - 0x10000) >> 10
        from_low, to_low = 0xDC00 + (low & 0x3FF), 0xDC00 + (high & 0x3FF)
        if first == last:
            partial.setdefault(first, []).append((from_low, to_low))
            continue
        if from_low > every_low[0]:
            partial.setdefault(first, []).append((from_low, every_low[1]))
            first += 1
        if to_low < every_low[1]:
            partial.setdefault(last, []).append((every_low[0], to_low))
            last -= 1
        if first <= last:
            by_lows.setdefault((every_low,), []).append((0xD800 + first, 0xD800 + last))
    for unit, lows in partial.items():
        by_lows.setdefault(tuple(lows), []).append((0xD800 + unit, 0xD800 + unit))
    return {lows: list(normalize_ranges(highs)) for lows, highs in by_lows.items()}


@lru_cache(4096)
def _encode_utf8(ranges: Ranges) -> Regular:
    ranges = intersect_ranges(ranges, ANY_CHAR.ranges)
    if not ranges:
        return NOTHING
    automaton = _SetAutomaton()
    automaton.utf8(ranges)
    return automaton.regular()


@lru_cache(4096)
def _encode_quoted(ranges: Ranges) -> Regular:
    ranges = intersect_ranges(ranges, ANY_CHAR.ranges)
    if not ranges:
        return NOTHING
    automaton = _SetAutomaton()
    automaton.utf8(intersect_ranges(ranges, _UNESCAPED))
    automaton.escapes(ranges, ANY_CHAR.ranges, slash=True)
    return automaton.regular()


@lru_cache(4096)
def _encode_printed(ranges: Ranges) -> Regular:
    ranges = intersect_ranges(ranges, ANY_CHAR.ranges)
    if not ranges:
        return NOTHING
    automaton = _SetAutomaton()
    automaton.utf8(intersect_ranges(ranges, _UNESCAPED))
    automaton.escapes(ranges, _PRINTED_UNITS, slash=False)
    return automaton.regular()
