"""The lexemes of JSON text (RFC 8259), as shared constants."""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.encoding import quoted
from maskwright.grammar import Lexeme, Term
from maskwright.regular import ANY_CHAR, EPSILON, ByteClass, Lit, Regular, alt, cat, repeat

MAX_BLANKS = 8
MAX_INDENT = 64
MAX_INTEGER_DIGITS = 40
MAX_FRACTION_DIGITS = 40
MAX_EXPONENT_DIGITS = 3


def byte_class(characters: bytes) -> ByteClass:
    mask = 0
    for byte in characters:
        mask |= 1 << byte
    return ByteClass(mask)


DIGIT = byte_class(b"0123456789")
NONZERO = byte_class(b"123456789")
_BLANK = byte_class(b" \t")
_BREAK = byte_class(b"\r\n")

# A few blanks, then perhaps a line break and an indentation: bounded, so that a model cannot
# write white space for ever.
_FLEXIBLE = cat(
    repeat(_BLANK, 0, MAX_BLANKS),
    repeat(cat(repeat(_BREAK, 1, 2), repeat(_BLANK, 0, MAX_INDENT)), 0, 1),
)

FRACTION = cat(Lit(b"."), repeat(DIGIT, 1, MAX_FRACTION_DIGITS))
EXPONENT = cat(byte_class(b"eE"), repeat(byte_class(b"+-"), 0, 1), repeat(DIGIT, 1, MAX_EXPONENT_DIGITS))
MINUS = Lit(b"-")
NATURAL = alt(Lit(b"0"), cat(NONZERO, repeat(DIGIT, 0, MAX_INTEGER_DIGITS - 1)))

STRING = Lexeme("string", quoted(repeat(ANY_CHAR, 0, None)))
INTEGER = Lexeme("integer", cat(repeat(MINUS, 0, 1), NATURAL))
NUMBER = Lexeme("number", cat(repeat(MINUS, 0, 1), NATURAL, repeat(FRACTION, 0, 1), repeat(EXPONENT, 0, 1)))
TRUE = Lexeme("true", Lit(b"true"))
FALSE = Lexeme("false", Lit(b"false"))
BOOLEAN = Lexeme("boolean", alt(Lit(b"true"), Lit(b"false")))
NULL = Lexeme("null", Lit(b"null"))


@dataclass(frozen=True, slots=True)
class Punctuation:
    """Structural characters with the white space that may surround them."""

    open_object: Term
    open_array: Term
    colon: Term
    comma: Term
    close_object: Term
    close_array: Term
    close_empty_object: Term
    close_empty_array: Term


def _punctuation(name: str, space: Regular) -> Punctuation:
    # Space follows an opening character and surrounds the others, so that no two lexemes with
    # optional space meet.
    def term(key: str, before: Regular, character: bytes, after: Regular) -> Term:
        return Term(Lexeme(f"{name} {key}", cat(before, Lit(character), after)))

    return Punctuation(
        open_object=term("{", EPSILON, b"{", space),
        open_array=term("[", EPSILON, b"[", space),
        colon=term(":", space, b":", space),
        comma=term(",", space, b",", space),
        close_object=term("}", space, b"}", EPSILON),
        close_array=term("]", space, b"]", EPSILON),
        close_empty_object=term("empty }", EPSILON, b"}", EPSILON),
        close_empty_array=term("empty ]", EPSILON, b"]", EPSILON),
    )


PUNCTUATION = {"flexible": _punctuation("flexible", _FLEXIBLE), "compact": _punctuation("compact", EPSILON)}

_flexible = PUNCTUATION["flexible"]
COMMON_LEXEMES: tuple[Lexeme, ...] = (
    STRING,
    NUMBER,
    INTEGER,
    BOOLEAN,
    TRUE,
    FALSE,
    NULL,
    *(
        getattr(_flexible, name).lexeme
        for name in ("open_object", "open_array", "colon", "comma", "close_object", "close_array")
    ),
)
"""Worth precomputing for every vocabulary: nearly every schema uses them."""
