"""Terminals of a Lark grammar as regular languages."""

from __future__ import annotations

import re

from maskwright.dfa import length_bounds
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.lark.inline import MARK
from maskwright.frontends.lark.reader import TerminalText
from maskwright.limits import Limits
from maskwright.regex import Matches, lexer_matches
from maskwright.regular import NOTHING, Lit, Regular


def terminal_matches(terminal: TerminalText, limits: Limits, *, may_be_empty: bool = False) -> Matches:
    """What a terminal matches.  Raises ``GrammarError`` that names it, or ``LimitError``."""
    if MARK in terminal.pattern:
        raise GrammarError(f"terminal {terminal.name}: %regex must be all that a terminal is")
    if terminal.is_string and not terminal.flags:
        matches = Matches(Lit(terminal.pattern), NOTHING)
    else:
        pattern = re.escape(terminal.pattern) if terminal.is_string else terminal.pattern
        flags = terminal.flags.replace("u", "")
        try:
            matches = lexer_matches(pattern, "python", limits, flags)
        except GrammarError as error:
            raise GrammarError(f"terminal {terminal.name} (/{pattern}/): {error.message}") from None
        except LimitError as error:
            raise LimitError(error.limit, error.given, error.allowed, place=terminal.name) from None
    if not may_be_empty:
        check_some_text(terminal.name, matches.language)
    return matches


def check_some_text(name: str, language: Regular) -> None:
    """Raises ``GrammarError`` for a terminal that matches nothing or the empty text."""
    bounds = length_bounds(language)
    if bounds is None:
        raise GrammarError(f"terminal {name} matches nothing")
    if bounds[0] == 0:
        raise GrammarError(
            f"terminal {name} matches the empty text: let it match something, and make its uses optional"
        )
