"""The lexemes of JSON text (RFC 8259), as shared constants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from maskwright.frontends.json_schema.multiples import any_integer
from maskwright.frontends.json_schema.number_texts import MINUS, any_magnitude
from maskwright.frontends.json_schema.options import SchemaOptions
from maskwright.grammar import Lexeme, Term
from maskwright.regular import EPSILON, EVERY_TEXT, Lit, Regular, alt, cat, one_of, repeat

_BLANK = one_of(" \t")
_BREAK = one_of("\r\n")

_BLANKS_IN_A_LINE = 8

STRING = Lexeme("string", EVERY_TEXT, "quoted")
TRUE = Lexeme("true", Lit("true"))
FALSE = Lexeme("false", Lit("false"))
BOOLEAN = Lexeme("boolean", alt(Lit("true"), Lit("false")))
NULL = Lexeme("null", Lit("null"))


@lru_cache(maxsize=64)
def number_lexeme(digits: int, integer: bool) -> Lexeme:
    """Any number, or any integer, of so many digits before the point and behind it."""
    language = any_integer(digits, zero=True) if integer else any_magnitude(digits)
    return Lexeme(("integer" if integer else "number", digits), cat(repeat(MINUS, 0, 1), language))


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


def flexible(most: int) -> Regular:
    """White space as people write it: a few blanks, then perhaps line breaks and an indentation of at most so
    many blanks.  Bounded, so that a model cannot write white space for ever."""
    return cat(
        repeat(_BLANK, 0, min(most, _BLANKS_IN_A_LINE)),
        repeat(cat(repeat(_BREAK, 1, 2), repeat(_BLANK, 0, most)), 0, 1),
    )


@lru_cache(maxsize=64)
def _spaced(most: int | None) -> Punctuation:
    return (
        _punctuation("compact", EPSILON) if most is None else _punctuation(f"flexible {most}", flexible(most))
    )


def punctuation(options: SchemaOptions) -> Punctuation:
    """The marks of a way to write white space; an indentation begins as "compact" (see ``indentation``)."""
    return _spaced(options.max_whitespace if options.whitespace == "flexible" else None)
