"""String groups -> lexemes: pattern, format and length as one regular language."""

from __future__ import annotations

from maskwright.dfa import intersect, matches, with_length
from maskwright.encoding import quoted
from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.formats import PATTERNS
from maskwright.frontends.json_schema.groups import StringGroup
from maskwright.grammar import FAIL, Choice, Keyset, Lexeme, Term
from maskwright.limits import Limits
from maskwright.regex import parse_regex, search_language
from maskwright.regular import ANY_CHAR, NOTHING, Regular, repeat


def string_term(group: StringGroup, limits: Limits) -> Term | Choice:
    """The lexeme of a group; ``FAIL`` when no string is left.

    Raises ``GrammarError`` for a pattern that is malformed or not regular, ``LimitError``.
    """
    languages = [_pattern(p, limits) for p in group.patterns]
    languages += [parse_regex(PATTERNS[f], "ecma", limits) for f in group.formats]
    if group.values is not None:
        kept = tuple(v for v in group.values if _fits(v, group, languages))
        return Term(Keyset(kept)) if kept else FAIL
    language = _language(languages, group, limits)
    if language == NOTHING:
        return FAIL
    key = ("string", group.patterns, group.formats, group.min_length, group.max_length)
    return Term(Lexeme(key, quoted(language)))


def _pattern(pattern: str, limits: Limits) -> Regular:
    try:
        return search_language(pattern, "ecma", limits)
    except GrammarError as error:
        raise GrammarError(f"pattern {pattern!r}: {error.message}", place=error.place) from None


def _language(languages: list[Regular], group: StringGroup, limits: Limits) -> Regular:
    if not languages:
        return repeat(ANY_CHAR, group.min_length, group.max_length)
    language = languages[0] if len(languages) == 1 else intersect(languages, limits)
    if group.min_length > 0 or group.max_length is not None:
        language = with_length(language, group.min_length, group.max_length, limits)
    return language


def _fits(value: str, group: StringGroup, languages: list[Regular]) -> bool:
    if any("\ud800" <= c <= "\udfff" for c in value):
        return False
    if len(value) < group.min_length or (group.max_length is not None and len(value) > group.max_length):
        return False
    return all(matches(language, value) for language in languages)
