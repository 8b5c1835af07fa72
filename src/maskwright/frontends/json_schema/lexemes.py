"""The lexemes of JSON text (RFC 8259), as shared constants."""

from __future__ import annotations

from dataclasses import dataclass

from maskwright.frontends.json_schema.multiples import ANY_INTEGER
from maskwright.frontends.json_schema.number_texts import ANY_MAGNITUDE, MINUS
from maskwright.grammar import Lexeme, Term
from maskwright.regular import ANY_CHAR, EPSILON, Lit, Regular, alt, cat, one_of, repeat

MAX_BLANKS = 8
MAX_INDENT = 64

_BLANK = one_of(" \t")
_BREAK = one_of("\r\n")

# A few blanks, then perhaps a line break and an indentation: bounded, so that a model cannot
# write white space for ever.
_FLEXIBLE = cat(
    repeat(_BLANK, 0, MAX_BLANKS),
    repeat(cat(repeat(_BREAK, 1, 2), repeat(_BLANK, 0, MAX_INDENT)), 0, 1),
)

STRING = Lexeme("string", repeat(ANY_CHAR, 0, None), "quoted")
INTEGER = Lexeme("integer", cat(repeat(MINUS, 0, 1), ANY_INTEGER))
NUMBER = Lexeme("number", cat(repeat(MINUS, 0, 1), ANY_MAGNITUDE))
TRUE = Lexeme("true", Lit("true"))
FALSE = Lexeme("false", Lit("false"))
BOOLEAN = Lexeme("boolean", alt(Lit("true"), Lit("false")))
NULL = Lexeme("null", Lit("null"))


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
    def term(key: str, before: Regular, character: str, after: Regular) -> Term:
        return Term(Lexeme(f"{name} {key}", cat(before, Lit(character), after)))

    return Punctuation(
        open_object=term("{", EPSILON, "{", space),
        open_array=term("[", EPSILON, "[", space),
        colon=term(":", space, ":", space),
        comma=term(",", space, ",", space),
        close_object=term("}", space, "}", EPSILON),
        close_array=term("]", space, "]", EPSILON),
        close_empty_object=term("empty }", EPSILON, "}", EPSILON),
        close_empty_array=term("empty ]", EPSILON, "]", EPSILON),
    )


PUNCTUATION = {"flexible": _punctuation("flexible", _FLEXIBLE), "compact": _punctuation("compact", EPSILON)}
