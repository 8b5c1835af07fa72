"""String groups -> lexemes: patterns, formats, lengths and exclusions as one regular language."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from maskwright.frontends.json_schema.algebra.groups import StringGroup
from maskwright.frontends.json_schema.texts.formats import (
    LATER_PATTERNS,
    OLDER_PATTERNS,
    OPENAPI_PATTERNS,
    PATTERNS,
    WIDER,
)
from maskwright.frontends.json_schema.texts.lexemes import string_lexeme
from maskwright.ir.grammar import FAIL, Choice, Keyset, Lexeme, Spelling, Term
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex, search_language
from maskwright.regular.dfa import (
    is_empty,
    least_length,
    listed_texts,
    matcher,
    only_in,
    with_length,
)
from maskwright.regular.expressions import ANY_CHAR, EVERY_TEXT, Lit, Regular, alt, is_nothing, repeat
from maskwright.regular.memo import remembered

_ANY_STRING = StringGroup()
# A pattern of so few texts is a list of values.
_FEW_TEXTS = 64


def string_term(group: StringGroup, limits: Limits, spelling: Spelling) -> Term | Choice:
    """The lexeme of a group; ``FAIL`` when no string is left.

    Raises as ``pattern_language``.
    """
    if group.values is not None:
        kept = tuple([v for v in group.values if string_allows(group, v, limits)])
        return Term(Keyset(kept, spelling=spelling)) if kept else FAIL
    if group == _ANY_STRING:
        return Term(string_lexeme(EVERY_TEXT, spelling))
    language = written_language(group, limits)
    if is_nothing(language):
        return FAIL
    return Term(Lexeme(("string", spelling, group), language, spelling))


@remembered(1024)
def written_language(group: StringGroup, limits: Limits) -> Regular:
    """The texts of a group that are written: those that validators agree on; all texts, where there are no such."""
    if _is_disputed(group, 1):
        language = agreed_language(group, limits, 1)
        if not is_empty(language):
            return language
    return string_language(group, limits)


def _avoided(group: StringGroup, agreed: int) -> tuple[str, ...]:
    """The patterns that a text must not match."""
    return (*group.not_patterns, *group.avoided) if agreed > 0 else group.not_patterns


def _is_disputed(group: StringGroup, agreed: int) -> bool:
    return any(is_disputed(p, agreed) for p in group.patterns) or any(
        is_disputed(p, -agreed) for p in _avoided(group, agreed)
    )


@remembered(1024)
def agreed_language(group: StringGroup, limits: Limits, agreed: int) -> Regular:
    """With ``agreed=1`` the texts that are in a group for all validators, with -1 for any of them.

    Validators read patterns with the engine of their language (``search_language``)."""
    if not _is_disputed(group, agreed):
        return string_language(group, limits)
    inside = [agreed_pattern(p, limits, agreed) for p in group.patterns]
    outside = [agreed_pattern(p, limits, -agreed) for p in _avoided(group, agreed)]
    others = replace(group, patterns=(), not_patterns=())
    more_inside, more_outside = _languages(others, limits)
    return _within(group, [*inside, *more_inside], [*outside, *more_outside], limits)


# Where engines differ: white space; and what a pattern that must not match says of the ends of lines.
_DISPUTED = re.compile(r"\\[sS]|\(\?<?!.*[.$]", re.DOTALL)
_DISPUTED_OUTSIDE = re.compile(r"\\[sS]|[.$]")


def is_disputed(pattern: str, agreed: int) -> bool:
    """Whether engines may differ in the texts in which a pattern is found: in what is found by all of them (1), or by any (-1)."""
    return (_DISPUTED if agreed > 0 else _DISPUTED_OUTSIDE).search(pattern) is not None


@remembered(1024)
def agreed_pattern(pattern: str, limits: Limits, agreed: int) -> Regular:
    """The texts in which all engines find a pattern, or any of them."""
    if not is_disputed(pattern, agreed):
        return pattern_language(pattern, limits)
    return search_language(pattern, "ecma", limits, agreed=agreed)


@remembered(1024)
def string_language(group: StringGroup, limits: Limits) -> Regular:
    """The texts of a group; NOTHING when there are none."""
    return _within(group, *_languages(group, limits), limits)


def _within(group: StringGroup, inside: list[Regular], outside: list[Regular], limits: Limits) -> Regular:
    """The texts in some languages and not in others, as long as the group says."""
    if not inside and not outside:
        return repeat(ANY_CHAR, group.min_length, group.max_length)
    language = only_in(inside, outside, limits)
    if group.min_length > 0 or group.max_length is not None:
        language = with_length(language, group.min_length, group.max_length, limits)
    return language


def _languages(group: StringGroup, limits: Limits) -> tuple[list[Regular], list[Regular]]:
    """The languages that the texts of a group are in, and those that they are not in; lengths aside."""
    inside = [pattern_language(p, limits) for p in group.patterns]
    inside += [_format(name) for name in group.formats]
    if group.values is not None:
        inside.append(alt(*(Lit(v) for v in group.values if is_text(v))))
    outside = [pattern_language(p, limits) for p in group.not_patterns]
    outside += [_wider(name) for name in group.not_formats]
    excluded = [Lit(v) for v in group.excluded if is_text(v)]
    if excluded:
        outside.append(alt(*excluded))
    return inside, outside


def string_language_is_empty(group: StringGroup, limits: Limits) -> bool:
    """Whether no text is in the group."""
    if group.values is not None:
        return not any(string_allows(group, v, limits) for v in group.values)
    parts = len(group.patterns) + len(group.formats) + len(group.not_patterns) + len(group.not_formats)
    if parts == 0:
        return False
    least = least_length(*_languages(group, limits), limits)
    if least is None or (group.max_length is not None and least > group.max_length):
        return True
    return least < group.min_length and is_empty(string_language(group, limits))


@lru_cache(maxsize=256)
def _format(name: str, limits: Limits = DEFAULT_LIMITS) -> Regular:
    known = PATTERNS | OPENAPI_PATTERNS | OLDER_PATTERNS | LATER_PATTERNS
    return parse_regex(known[name], "ecma", limits)


@lru_cache(maxsize=256)
def _wider(name: str, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The format's language or a superset of it."""
    return parse_regex(WIDER[name], "ecma", limits) if name in WIDER else _format(name)


def widened(group: StringGroup) -> StringGroup:
    """The texts that are in a group for some validator: those of supersets of its formats."""
    wide = [name for name in group.formats if name in WIDER]
    if not wide:
        return group
    return replace(
        group,
        formats=tuple([name for name in group.formats if name not in WIDER]),
        patterns=(*group.patterns, *[f"^(?:{WIDER[name]})$" for name in wide]),
    )


@remembered(1024)
def pattern_language(pattern: str, limits: Limits) -> Regular:
    """The texts in which a ``pattern`` is found (ECMA-262).  Raises ``GrammarError``, ``LimitError``."""
    return search_language(pattern, "ecma", limits)


@remembered(1024)
def pattern_texts(pattern: str, limits: Limits) -> tuple[str, ...] | None:
    """The texts in which a ``pattern`` is found, where these are seen to be few, and undisputed.

    Raises as ``pattern_language``."""
    if is_disputed(pattern, 1):
        return None
    return listed_texts(pattern_language(pattern, limits), _FEW_TEXTS)


@remembered(65536)
def pattern_found(pattern: str, text: str, limits: Limits) -> bool:
    """Whether a ``pattern`` is found in a text."""
    return _reader(pattern_language, pattern, limits)(text)


class _Readers(threading.local):
    """Matchers by language, name and limits.  Each thread has its own: they determinise while they read."""

    def __init__(self) -> None:
        self.known: dict[tuple[object, str, Limits], Callable[[str], bool]] = {}


_readers = _Readers()
_MAX_READERS = 256


def _reader(language: Callable[[str, Limits], Regular], name: str, limits: Limits) -> Callable[[str], bool]:
    """The ``matcher`` of a pattern or format."""
    known, key = _readers.known, (language, name, limits)
    found = known.get(key)
    if found is None:
        if len(known) >= _MAX_READERS:
            known.clear()
        found = known[key] = matcher(language(name, limits), limits)
    return found


def is_text(value: str) -> bool:
    """Whether a string can be written in UTF-8: a lone surrogate cannot."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def string_allows(group: StringGroup, value: str, limits: Limits) -> bool:
    """Whether a text is in the group (``values`` aside)."""
    if (
        not is_text(value)
        or len(value) < group.min_length
        or (group.max_length is not None and len(value) > group.max_length)
        or value in group.excluded
    ):
        return False
    if not (group.patterns or group.not_patterns or group.formats or group.not_formats):
        return True
    return (
        all(pattern_found(p, value, limits) for p in group.patterns)
        and not any(pattern_found(p, value, limits) for p in group.not_patterns)
        and all(_reader(_format, name, DEFAULT_LIMITS)(value) for name in group.formats)
        and not any(_reader(_wider, name, DEFAULT_LIMITS)(value) for name in group.not_formats)
    )
