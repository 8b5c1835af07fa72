"""The lexemes of JSON text (RFC 8259), as shared constants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from maskwright.frontends.json_schema.numbers.multiples import any_integer
from maskwright.frontends.json_schema.numbers.texts import MINUS, any_magnitude
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.ir.grammar import Lexeme, Spelling, Term
from maskwright.regular.expressions import EPSILON, EVERY_TEXT, Lit, Regular, alt, cat, one_of, repeat

_BLANK = one_of(" \t")
_BREAK = one_of("\r\n")
_ONE_BLANK = repeat(Lit(" "), 0, 1)

_BLANKS_IN_A_LINE = 8
_BLANKS_OF_A_TAB = 4

_STRINGS: dict[Spelling, Lexeme] = {
    "quoted": Lexeme("string", EVERY_TEXT, "quoted"),
    "printed": Lexeme("printed string", EVERY_TEXT, "printed"),
}
TRUE = Lexeme("true", Lit("true"))
FALSE = Lexeme("false", Lit("false"))
BOOLEAN = Lexeme("boolean", alt(Lit("true"), Lit("false")))
NULL = Lexeme("null", Lit("null"))


def string_spelling(options: SchemaOptions) -> Spelling:
    """How strings and keys are spelled with these options."""
    return "printed" if options.escapes == "printed" else "quoted"


def string_lexeme(language: Regular, spelling: Spelling) -> Lexeme:
    """The strings, or keys, of a language."""
    if language == EVERY_TEXT:
        return _STRINGS[spelling]
    return Lexeme(("texts", spelling, language), language, spelling)


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


def _punctuation(
    name: str, space: Regular, before_comma: Regular | None = None, around_colon: Regular | None = None
) -> Punctuation:
    # Space follows an opening character and surrounds the others, so that no two lexemes with
    # optional space meet.
    before_comma = space if before_comma is None else before_comma
    around_colon = space if around_colon is None else around_colon

    def term(key: str, before: Regular, character: str, after: Regular) -> Term:
        return Term(Lexeme(f"{name} {key}", cat(before, Lit(character), after)))

    return Punctuation(
        open_object=term("{", EPSILON, "{", space),
        open_array=term("[", EPSILON, "[", space),
        colon=term(":", around_colon, ":", around_colon),
        comma=term(",", before_comma, ",", space),
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


def printed(most: int) -> Regular:
    """White space as JSON printers write it: none, one blank, or a line break and an indentation of at most so many
    blanks, or of tabs, which count as four."""
    indentation = alt(repeat(Lit(" "), 0, most), repeat(Lit("\t"), 1, max(1, most // _BLANKS_OF_A_TAB)))
    return alt(_ONE_BLANK, cat(alt(Lit("\n"), Lit("\r\n")), indentation))


@lru_cache(maxsize=64)
def _spaced(whitespace: str | int, most: int) -> Punctuation:
    if whitespace == "printed":
        return _punctuation(f"printed {most}", printed(most), EPSILON, _ONE_BLANK)
    if whitespace == "flexible":
        return _punctuation(f"flexible {most}", flexible(most))
    return _punctuation("compact", EPSILON)


def punctuation(options: SchemaOptions) -> Punctuation:
    """The marks of a way to write white space; an indentation begins as "compact" (see ``indentation``)."""
    return _spaced(options.whitespace, options.max_whitespace)
