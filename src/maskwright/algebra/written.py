"""How the texts of a JSON string are written (RFC 8259, section 7), as a regular language of characters.

A lexeme that is spelled "quoted" or "printed" is a language of decoded texts.  Whoever asks what is written, such as an
intersection, needs the language of its spellings: each character is replaced by the ways to write it.
"""

from __future__ import annotations

from functools import lru_cache

from maskwright.algebra.inexact import Inexact
from maskwright.base.deadline import check_time
from maskwright.ir.grammar import AnyLexeme, Boundary, Keyset, Lexeme, Spelling, Words
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regular.determinize import minimal_dfa
from maskwright.regular.expressions import (
    ANY_CHAR,
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
    chars,
    intersect_ranges,
    postorder,
    repeat,
)
from maskwright.regular.memo import remembered

_UNESCAPED: Ranges = ((0x20, 0x21), (0x23, 0x5B), (0x5D, 0xD7FF), (0xE000, 0x10FFFF))
_SHORT = {0x22: '"', 0x5C: "\\", 0x08: "b", 0x0C: "f", 0x0A: "n", 0x0D: "r", 0x09: "t"}
_SLASH = 0x2F
# Of "printed": control characters without a short escape, &, <, >, and what is above ASCII.
_PRINTED_UNITS: Ranges = (
    (0x00, 0x07), (0x0B, 0x0B), (0x0E, 0x1F), (0x26, 0x26), (0x3C, 0x3C), (0x3E, 0x3E), (0x7F, 0x10FFFF),
)  # fmt: skip
_QUOTE = Lit('"')
_FEW = 4


def text_of(lexeme: AnyLexeme) -> Regular:
    """The language of what is written for a lexeme.  Raises ``Inexact`` for what has none (``textless``), and for words that are no UTF-8."""
    if isinstance(lexeme, Lexeme):
        return lexeme.regular if lexeme.spelling == "utf8" else quoted(lexeme.regular, lexeme.spelling)
    if isinstance(lexeme, Keyset):
        if lexeme.other is not None:
            # It has the names as well.
            return text_of(lexeme.other)
        return quoted(alt(*map(Lit, lexeme.names)), lexeme.spelling)
    if isinstance(lexeme, Words):
        return alt(*[Lit(word_text(word)) for word, _ in lexeme.items()])
    raise textless(lexeme)


def textless(lexeme: AnyLexeme) -> Inexact:
    """The error for tokens that stand for themselves, and for boundaries."""
    if isinstance(lexeme, Boundary):
        return Inexact(
            "it has a grammar with a lexer beside or before another part, and each reads its own text"
        )
    return Inexact(f"{lexeme} stands for itself, and has no text that another language could have")


def word_text(word: bytes) -> str:
    """Raises ``Inexact`` for bytes that are no UTF-8."""
    try:
        return word.decode()
    except UnicodeDecodeError:
        raise Inexact(f"{word!r} is no UTF-8 text, and languages are sets of texts") from None


def quoted(language: Regular, spelling: Spelling) -> Regular:
    """The strings that hold a text of ``language``, with their quotes."""
    return cat(_QUOTE, written(language, spelling), _QUOTE)


def written(language: Regular, spelling: Spelling) -> Regular:
    """What stands between the quotes."""
    made: dict[int, Regular] = {}
    for node in postorder(language):
        check_time()
        found: Regular = node
        if isinstance(node, Chars):
            found = _characters(node.ranges, spelling)
        elif isinstance(node, Lit):
            found = cat(*[_characters(((ord(c), ord(c)),), spelling) for c in node.text])
        elif isinstance(node, Cat):
            found = cat(*[made[id(part)] for part in node.parts])
        elif isinstance(node, Alt):
            found = alt(*[made[id(part)] for part in node.parts])
        elif isinstance(node, Repeat):
            found = repeat(made[id(node.body)], node.min, node.max)
        elif isinstance(node, Machine):
            edges = tuple([(a, made[id(label)], b) for a, label, b in node.edges])
            found = Machine(node.n_states, node.start, edges, node.accepts, node.length)
        made[id(node)] = found
    return made[id(language)]


@remembered(4096)
def _characters(ranges: Ranges, spelling: Spelling) -> Regular:
    """The ways to write one character out of a set."""
    ranges = intersect_ranges(ranges, ANY_CHAR.ranges)
    short = [letter for code, letter in _SHORT.items() if _has(ranges, code)]
    if spelling == "quoted" and _has(ranges, _SLASH):
        short.append("/")
    units = ranges if spelling == "quoted" else intersect_ranges(ranges, _PRINTED_UNITS)
    escapes = [chars(*[(ord(letter), ord(letter)) for letter in short])]
    escapes += [cat(Lit("u"), _hex(low, min(high, 0xFFFF), 4)) for low, high in units if low <= 0xFFFF]
    for low, high in units:
        if high > 0xFFFF:
            escapes.append(_pairs(max(low, 0x10000) - 0x10000, high - 0x10000))
    found = alt(chars(*intersect_ranges(ranges, _UNESCAPED)), cat(Lit("\\"), alt(*escapes)))
    # A class such as all letters has hundreds of ranges, whose digits mostly go on alike.
    return minimal_dfa(found, DEFAULT_LIMITS).to_regular() if len(units) > _FEW else found


def _has(ranges: Ranges, code: int) -> bool:
    return any(low <= code <= high for low, high in ranges)


def _pairs(low: int, high: int) -> Regular:
    """Surrogate pairs, of numbers of 20 bits: the upper ten and the lower ten each make one."""
    first, last = low >> 10, high >> 10
    parts = []
    if first == last:
        parts.append((first, last, low & 0x3FF, high & 0x3FF))
    else:
        parts.append((first, first, low & 0x3FF, 0x3FF))
        parts.append((first + 1, last - 1, 0, 0x3FF))
        parts.append((last, last, 0, high & 0x3FF))
    return alt(
        *[
            cat(Lit("u"), _hex(0xD800 + a, 0xD800 + b, 4), Lit("\\u"), _hex(0xDC00 + c, 0xDC00 + d, 4))
            for a, b, c, d in parts
            if a <= b
        ]
    )


def _hex(low: int, high: int, digits: int) -> Regular:
    """The numbers in a range, in so many hexadecimal digits of either case."""
    if digits == 0:
        return Lit("")
    size = 16 ** (digits - 1)
    first, last = low // size, high // size
    if first == last:
        return cat(_digits(first, first), _hex(low % size, high % size, digits - 1))
    parts = []
    if low % size:
        parts.append(cat(_digits(first, first), _hex(low % size, size - 1, digits - 1)))
        first += 1
    if (high + 1) % size:
        parts.append(cat(_digits(last, last), _hex(0, high % size, digits - 1)))
        last -= 1
    if first <= last:
        parts.append(cat(_digits(first, last), repeat(_digits(0, 15), digits - 1, digits - 1)))
    return alt(*parts)


@lru_cache(256)
def _digits(low: int, high: int) -> Regular:
    letters = "".join(f"{digit:x}{digit:X}" for digit in range(low, high + 1))
    return chars(*[(ord(letter), ord(letter)) for letter in letters])
