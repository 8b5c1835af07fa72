"""String groups -> lexemes: pattern, format and length as one regular language."""

from __future__ import annotations

from functools import lru_cache

from maskwright.dfa import intersect, matches, with_length
from maskwright.frontends.json_schema.formats import PATTERNS
from maskwright.frontends.json_schema.groups import StringGroup
from maskwright.grammar import FAIL, Choice, Keyset, Lexeme, Term
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex, search_language
from maskwright.regular import ANY_CHAR, Regular, is_nothing, repeat


def string_term(group: StringGroup, limits: Limits) -> Term | Choice:
    """The lexeme of a group; ``FAIL`` when no string is left.

    Raises as ``pattern_language``.
    """
    if group.values is not None:
        languages = [pattern_language(p, limits) for p in group.patterns]
        languages += [_format(name) for name in group.formats]
        kept = tuple(v for v in group.values if _fits(v, group, languages))
        return Term(Keyset(kept)) if kept else FAIL
    lexeme = _lexeme(group, limits)
    return FAIL if lexeme is None else Term(lexeme)


@lru_cache(maxsize=1024)
def _lexeme(group: StringGroup, limits: Limits) -> Lexeme | None:
    languages = [pattern_language(p, limits) for p in group.patterns]
    languages += [_format(name) for name in group.formats]
    language = _language(languages, group, limits)
    if is_nothing(language):
        return None
    key = ("string", group.patterns, group.formats, group.min_length, group.max_length)
    return Lexeme(key, language, "quoted")


@lru_cache(maxsize=256)
def _format(name: str) -> Regular:
    return parse_regex(PATTERNS[name], "ecma", DEFAULT_LIMITS)


@lru_cache(maxsize=1024)
def pattern_language(pattern: str, limits: Limits) -> Regular:
    """The texts in which a ``pattern`` is found (ECMA-262).  Raises ``GrammarError``, ``LimitError``."""
    return search_language(pattern, "ecma", limits)


def _language(languages: list[Regular], group: StringGroup, limits: Limits) -> Regular:
    if not languages:
        return repeat(ANY_CHAR, group.min_length, group.max_length)
    language = languages[0] if len(languages) == 1 else intersect(languages, limits)
    if group.min_length > 0 or group.max_length is not None:
        language = with_length(language, group.min_length, group.max_length, limits)
    return language


def is_text(value: str) -> bool:
    """Whether a string can be written in UTF-8: a lone surrogate cannot."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _fits(value: str, group: StringGroup, languages: list[Regular]) -> bool:
    if (
        not is_text(value)
        or len(value) < group.min_length
        or (group.max_length is not None and len(value) > group.max_length)
    ):
        return False
    return all(matches(language, value) for language in languages)
