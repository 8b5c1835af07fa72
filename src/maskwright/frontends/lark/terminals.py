"""Terminals of a Lark grammar as regular languages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.lark.attributes import Attributes
from maskwright.frontends.lark.inline import MARK, Inlined
from maskwright.frontends.lark.reader import LarkText, TerminalText
from maskwright.limits import Limits
from maskwright.regex import Matches, lexer_matches
from maskwright.regular.dfa import first_matches, length_bounds
from maskwright.regular.expressions import EPSILON, NOTHING, Lit, Regular, alt, cat


class TerminalLanguages:
    """What the terminals of a grammar match.

    An inline language stands in the text as a string (``inline.py``); the terminal of a rule that ends as early as it
    can, and its end, have names of their own (``attributes.py``).
    """

    def __init__(
        self, source: LarkText, inlined: Inlined, attributes: Mapping[str, Attributes], limits: Limits
    ) -> None:
        self.source = source
        self.inlined = inlined.languages
        self.early = {each.lexeme: each for each in attributes.values() if each.lexeme}
        self.limits = limits
        self._known: dict[str, Matches] = {}
        # Two rules that end alike are one terminal: either is what was read.
        first: dict[object, str] = {}
        self.same = {name: first.setdefault(self._content(each), name) for name, each in self.early.items()}

    def _content(self, given: Attributes) -> object:
        return self._written(given.lexeme), self._written(given.end)

    def _written(self, name: str) -> object:
        text = self.source.terminals.get(name)
        return None if text is None else (text.pattern, text.is_string, text.flags)

    def is_same(self, name: str, other: str) -> bool:
        """Whether one terminal stands for another: it is that, or is written as that."""
        return name == other or (
            self._written(name) is not None and self._written(name) == self._written(other)
        )

    def named(self, name: str) -> str:
        """The terminal that stands for one."""
        return self.same.get(name, name)

    def rule_of(self, name: str) -> str | None:
        """The rule of which it is made, if it ends as early as it can."""
        return self.early[name].rule if name in self.early else None

    def is_early(self, name: str) -> bool:
        """Whether it ends as early as it can."""
        return name in self.early

    def ranked(self) -> list[TerminalText]:
        """The terminals that are used, better ones first."""
        used = {name for expansions in self.source.rules.values() for e in expansions for name, _ in e}
        used = {self.named(name) for name in used.union(self.source.ignored)}
        texts = [
            self._as_pattern(terminal) for name, terminal in self.source.terminals.items() if name in used
        ]
        return sorted(texts, key=lambda terminal: terminal.rank)

    def is_optional(self, name: str) -> bool:
        """Whether it stands for an inline language, which has the empty text too."""
        return name not in self.early and self.source.terminals[name].pattern in self.inlined

    def match(self, terminal: TerminalText) -> Matches:
        """What a terminal matches, never the empty text.  Raises ``GrammarError`` that names it, or ``LimitError``."""
        found = self._known.get(terminal.name)
        if found is None:
            try:
                found = self._known[terminal.name] = self._match(terminal)
            except GrammarError as error:
                if error.place is not None:
                    raise
                raise GrammarError(error.message, place=self.source.place_of(terminal)) from None
        return found

    def _match(self, terminal: TerminalText) -> Matches:
        given = self.early.get(terminal.name)
        if given is None:
            matches = self._plain(terminal)
            check_some_text(terminal.shown, matches.language)
            return matches
        body, end = self.parts_of(given) if given.end else (self._body(given), EPSILON)
        language = first_matches(cat(body, end), self.limits)
        check_some_text(f"of the rule {given.rule}", language)
        return Matches(language, NOTHING)

    def parts_of(self, given: Attributes) -> tuple[Regular, Regular]:
        """What a rule that has an end consists of."""
        end = self._plain(self.source.terminals[given.end])
        if end.refused != NOTHING:
            raise GrammarError(f"the end of {given.rule} cannot look ahead", place=given.place)
        check_some_text(f"that ends the rule {given.rule}", end.language)
        return self._body(given), end.language

    def _body(self, given: Attributes) -> Regular:
        # It ends where the end that follows is found first, whether its quantifiers are lazy or not.
        body = self._plain(self.source.terminals[given.lexeme], lazy=False)
        if body.refused != NOTHING:
            message = f"{given.rule} looks ahead and ends as early as it can: it can only do one of both"
            raise GrammarError(message, place=given.place)
        inlined = self.source.terminals[given.lexeme].pattern in self.inlined
        return alt(body.language, EPSILON) if inlined else body.language

    def _plain(self, terminal: TerminalText, lazy: bool = True) -> Matches:
        language = self.inlined.get(terminal.pattern)
        if language is not None:
            return Matches(language, NOTHING)
        return terminal_matches(terminal, self.limits, lazy)

    def _as_pattern(self, terminal: TerminalText) -> TerminalText:
        """An inline language ranks as patterns do."""
        language = self.inlined.get(terminal.pattern)
        if language is None:
            return terminal
        bounds = length_bounds(language)
        width = 1 << 32 if bounds is None or bounds[1] is None else bounds[1]
        return replace(terminal, is_string=False, rank=(terminal.rank[0], True, -width, 0, terminal.name))


def terminal_matches(terminal: TerminalText, limits: Limits, lazy: bool = True) -> Matches:
    """What a terminal matches by its pattern (``lazy``: as for ``lexer_matches``).  Raises ``GrammarError`` that names it, or ``LimitError``."""
    if MARK in terminal.pattern:
        raise GrammarError(f"terminal {terminal.name}: %regex must be all that a terminal is")
    if terminal.is_string and not terminal.flags:
        matches = Matches(Lit(terminal.pattern), NOTHING)
    else:
        pattern = re.escape(terminal.pattern) if terminal.is_string else terminal.pattern
        flags = terminal.flags.replace("u", "")
        try:
            matches = lexer_matches(pattern, "python", limits, flags, lazy=lazy)
        except GrammarError as error:
            named = "" if terminal.shown != terminal.name else f" {terminal.name}"
            raise GrammarError(f"terminal{named} (/{pattern}/): {error.message}") from None
        except LimitError as error:
            raise LimitError(error.limit, error.given, error.allowed, place=terminal.name) from None
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
