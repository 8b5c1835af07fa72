"""Regular-expression patterns as languages of code points.

The ECMA dialect is ECMA-262 in Unicode mode, the one that JSON Schema recommends; the Python
dialect is that of ``re`` for ``str``, with what the package ``regex`` adds and is regular: ``(?<name>``
and ``\\p{...}``.  Results are exact: a text is in the language exactly when
the pattern matches it, whatever the assertions (anchors, word boundaries, look-arounds).

Refused with a ``GrammarError`` that names the construct: back-references, recursion,
conditionals, atomic groups and possessive quantifiers, Unicode properties other than general
categories, look-behind inside look-around, and flags other than i, m, s (and a, u, x in Python).
"""

from __future__ import annotations

from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex.assertions import resolve
from maskwright.regex.lexing import Matches, lexer_matches
from maskwright.regex.parser import Dialect, parse
from maskwright.regular.expressions import Regular

__all__ = ["Dialect", "Matches", "lexer_matches", "parse_regex", "search_language"]


def parse_regex(
    pattern: str, dialect: Dialect = "ecma", limits: Limits = DEFAULT_LIMITS, flags: str = ""
) -> Regular:
    """The texts that the pattern matches as a whole (``re.fullmatch``); ``flags`` are letters.

    Raises ``GrammarError`` for a pattern that is malformed or not supported, its place being
    line:column, and ``LimitError`` for one that is too deep or too large.
    """
    return resolve(parse(pattern, dialect, limits, flags), limits, search=False)


def search_language(
    pattern: str, dialect: Dialect = "ecma", limits: Limits = DEFAULT_LIMITS, *, agreed: int = 0
) -> Regular:
    """The texts in which the pattern is found (``re.search``; ``pattern`` in JSON Schema).

    In the Python dialect, ``$`` also holds before a line feed that ends the text.  Engines do not agree on all texts: U+FEFF is
    white space in ECMA-262 and not in Python, U+0085 the other way round, and a carriage return ends a line in one and not
    in the other.  With ``agreed=1``, no text in which only some of ECMA-262, Python's ``re`` and Rust's ``regex`` find the pattern,
    for what these differ in: ``\\s``, ``\\S``, ``.``, ``$``; with ``agreed=-1``, all of them.  Raises as ``parse_regex`` does.
    """
    return resolve(parse(pattern, dialect, limits, agreed=agreed), limits, search=True)
