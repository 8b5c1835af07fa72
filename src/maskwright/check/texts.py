"""Where a text leaves a grammar, what was expected there, and in which rules.

A matcher says which readings of the text so far there are: the parser state in which a lexeme began, and whether
it has begun.  Where it began is the last place of the text at which the same parser state was waiting.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright._core import Matcher
from maskwright.base.collection import rare_collection
from maskwright.base.deadline import check_time, check_time_again, deadline
from maskwright.check.report import Finding
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import LimitError, caret_snippet
from maskwright.frontends.lark.reader import owner_of
from maskwright.ir.grammar import Grammar
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.masks import bitmask
from maskwright.regular.dfa import beginnings, matcher
from maskwright.regular.expressions import Lit

_SHOWN = 12
_MANY_RULES = 6
_MANY_GROUPS = 4


@dataclass(frozen=True, slots=True)
class Expectation:
    """What may come at a place of a text."""

    groups: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
    """Names of terminals, and the rules that wait for them: the innermost one first, then those around it."""
    characters: str
    """The first characters that may come, where a grammar has no terminals."""

    def __str__(self) -> str:
        if not self.groups and not self.characters:
            return "the end of the text was expected"
        groups = self.groups if any(names for names, _ in self.groups) else self.groups[:1]
        parts = [
            _listed(names or (self.characters,), _SHOWN) + (f" in {' < '.join(rules)}" if rules else "")
            for names, rules in groups[:_MANY_GROUPS]
        ]
        more = f", or others in {len(groups) - _MANY_GROUPS} more rules" if len(groups) > _MANY_GROUPS else ""
        return f"expected {', or '.join(parts or [self.characters])}{more}"


class Explainer:
    """Explains places of texts; ``compiled`` is over single bytes, with ids equal to their values."""

    def __init__(
        self,
        grammar: Grammar,
        compiled: CompiledGrammar,
        *,
        is_schema: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.grammar = grammar
        self.compiled = compiled
        self.is_schema = is_schema
        self.limits = limits
        with rare_collection():
            self.places = compiled._core.rule_places()
        self.begins: dict[int, Callable[[str], bool] | None] = {}

    def check(self, text: str) -> list[Finding]:
        """Where a text leaves the language, or how an unfinished one could end.

        White space at the end of JSON is no part of the text; nor are line feeds there, where a grammar has none.
        Raises ``LimitError`` when it takes longer than ``limits.max_seconds``.
        """
        with rare_collection(), deadline(self.limits.max_seconds):
            return self._check(text)

    def _check(self, text: str) -> list[Finding]:
        stripped = text.rstrip(" \t\r\n" if self.is_schema else "\r\n")
        data = (stripped if self.is_schema else text).encode()
        for given in dict.fromkeys((data, stripped.encode())):
            found = self.compiled.matcher()
            if (not given or found.accept_bytes(given)) and found.is_accepting:
                return []
        found = self.compiled.matcher()
        read = found.longest_prefix(data)
        found.accept_bytes(data[:read])
        before = data[:read].decode("utf-8", "ignore")
        place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
        expected = self.expected(data[:read])
        end = found.shortest_completion_bytes().decode("utf-8", "replace")
        if read < len(stripped.encode()) or (read < len(data) and not end):
            what = "schema" if self.is_schema else "grammar"
            instead = f"it could go on with {end!r}" if end else "it could end"
            message = f"the text leaves the {what} here; {instead}; {expected}\n{caret_snippet(text, place)}"
            return [Finding("error", "not-in-language", place, message)]
        return [
            Finding(
                "error", "incomplete", place, f"the text is unfinished; shortest end: {end!r}; {expected}"
            )
        ]

    def expected(self, data: bytes) -> Expectation:
        """What may come behind ``data``, which must begin some text of the language."""
        # Numbers of parser states stay what they are, as there is no bound on states (``byte_vocabulary``).
        matcher_ = self.compiled.matcher()
        waiting: dict[int, int] = {}
        for i in range(len(data) + 1):
            check_time()
            for parser, inside in matcher_.threads():
                if not inside:
                    waiting[parser] = i
            if i < len(data):
                matcher_.accept_bytes(data[i : i + 1])
        found: dict[tuple[str, ...], dict[str, None]] = {}
        for parser, inside in sorted(matcher_.threads()):
            begun = data[waiting.get(parser, 0) :].decode("utf-8", "ignore") if inside else ""
            for kind, index, node, _, terminals in matcher_.waits(parser):
                fitting = [t for t in terminals if not begun or self.begins_with(t, begun)]
                if fitting or not terminals:
                    names = found.setdefault(self.stack(matcher_, kind, index, node), {})
                    behind = f" (behind {begun!r})" if begun else ""
                    names.update((self.label(terminal) + behind, None) for terminal in fitting)
        groups = tuple((tuple(names), rules) for rules, names in found.items())
        return Expectation(groups, _characters(self.compiled, matcher_))

    def label(self, terminal: int) -> str:
        lexing = self.grammar.lexing
        assert lexing is not None
        language = lexing.terminals[terminal].regular
        name = lexing.names[terminal] if terminal < len(lexing.names) else "a terminal"
        return f'"{language.text}"' if isinstance(language, Lit) else name

    def begins_with(self, terminal: int, begun: str) -> bool:
        """Whether a terminal may begin with a text; True where that takes too many states to say."""
        if terminal not in self.begins:
            lexing = self.grammar.lexing
            assert lexing is not None
            try:
                self.begins[terminal] = matcher(beginnings(lexing.terminals[terminal].regular))
            except LimitError as error:
                check_time_again(error)
                self.begins[terminal] = None
        test = self.begins[terminal]
        try:
            return test is None or test(begun)
        except LimitError as error:
            check_time_again(error)
            return True

    def stack(self, matcher_: Matcher, kind: int, index: int, node: int) -> tuple[str, ...]:
        """The rules around a place, the innermost one first: the shortest way to the start."""
        first = (kind, index, node)
        before: dict[tuple[int, int, int], tuple[int, int, int] | None] = {first: None}
        last = first
        nodes: set[int] = set()
        for place in (work := [first]):
            check_time()
            # Other places return to the same ones.
            if place[2] in nodes:
                continue
            nodes.add(place[2])
            callers = matcher_.callers(place[2])
            if None in callers:
                last = place
                break
            for caller in callers:
                if caller is not None and caller not in before:
                    before[caller] = place
                    work.append(caller)
        way: list[str] = []
        at: tuple[int, int, int] | None = last
        while at is not None:
            name = self.rule_name(at[0], at[1])
            if name is not None and (not way or way[-1] != name):
                way.append(name)
            at = before[at]
        start = self.grammar.names[self.grammar.start]
        if not self.is_schema and len(self.grammar.names) > 1 and way[:1] != [start]:
            # A rule that ends with another one is not returned to.
            way.insert(0, start)
        return tuple(reversed(way[-_MANY_RULES:]))

    def rule_name(self, kind: int, index: int) -> str | None:
        """The author's name of the rule that a place is in; None where that says nothing."""
        rule = self.places.get((kind, index))
        if rule is None or rule >= len(self.grammar.names) or len(self.grammar.names) == 1:
            return None
        name = self.grammar.names[rule]
        if self.is_schema:
            return name if name.startswith(("/", "#")) else None
        return owner_of(name).partition(" (")[0]


def allowed_tokens(compiled: CompiledGrammar, matcher: Any) -> list[bytes]:
    """The tokens with a text that may come next, by id."""
    vocabulary = compiled.vocabulary
    row = bitmask.allocate_token_bitmask(1, vocabulary.vocab_size)
    matcher.fill_next_token_bitmask(row)
    ids = np.flatnonzero(bitmask.allowed_tokens(row[0], vocabulary.vocab_size))
    start = vocabulary.at_start(matcher.accepted_tokens)
    return [token for i in ids if (token := vocabulary.decode([i], start=start))]


def _characters(compiled: CompiledGrammar, at: Matcher) -> str:
    mask = bitmask.allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
    at.fill_next_token_bitmask(mask)
    allowed = [i for i in range(256) if mask[0, i >> 5] >> (i & 31) & 1]
    parts: list[str] = []
    i = 0
    while i < len(allowed):
        j = i
        while j + 1 < len(allowed) and allowed[j + 1] == allowed[j] + 1:
            j += 1
        if j - i >= 3:
            parts.append(f"{_byte(allowed[i])}..{_byte(allowed[j])}")
        else:
            parts += [_byte(each) for each in allowed[i : j + 1]]
        i = j + 1
    for name, i in compiled.vocabulary.special_tokens.items():
        if i < compiled.vocabulary.vocab_size and mask[0, i >> 5] >> (i & 31) & 1:
            parts.append(name)
    return _listed(tuple(parts), _SHOWN)


def _byte(value: int) -> str:
    return repr(chr(value)) if value < 0x80 else f"0x{value:02X}"


def _listed(parts: tuple[str, ...], most: int) -> str:
    shown = list(parts[:most])
    if len(parts) > most:
        return f"{', '.join(shown)} or {len(parts) - most} more"
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)
