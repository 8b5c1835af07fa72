"""Regular expressions as sources: the whole output matches the pattern."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from maskwright.errors import GrammarError, UnsatisfiableError, no_recursion
from maskwright.frontends.lexical import regular_expr
from maskwright.ir.grammar import FAIL, Grammar
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex

Flavour: TypeAlias = Literal["python", "ecma"]

_FLAGS = {
    re.ASCII: "a",
    re.IGNORECASE: "i",
    re.MULTILINE: "m",
    re.DOTALL: "s",
    re.UNICODE: "u",
    re.VERBOSE: "x",
}


@no_recursion()
def to_grammar(
    pattern: str, flavour: Flavour = "python", flags: str | int = "", limits: Limits = DEFAULT_LIMITS
) -> Grammar:
    """The grammar of the texts that a pattern matches as a whole; see ``maskwright.compile_regex``."""
    if not isinstance(pattern, str):
        raise GrammarError(f"a pattern is a str, not {type(pattern).__name__}")
    letters = flags if isinstance(flags, str) else flag_letters(flags)
    language = parse_regex(pattern, flavour, limits, letters)
    grammar = Grammar()
    body = regular_expr(language, limits)
    if body == FAIL:
        raise UnsatisfiableError("no text matches this pattern", place="1:1")
    grammar.start = grammar.add("pattern", body)
    return grammar


def flag_letters(flags: int) -> str:
    """The letters of ``re`` flags (``re.I | re.M``).  Raises ``GrammarError`` for one without a letter here."""
    given = re.RegexFlag(flags)
    letters = "".join(letter for flag, letter in _FLAGS.items() if flag in given)
    rest = given & ~sum(_FLAGS)
    if rest:
        raise GrammarError(f"the flag {rest!r} is not supported: use re.A, I, M, S, U or X")
    return letters
