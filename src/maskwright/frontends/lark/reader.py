"""Grammar text -> terminals and rules, by Lark's own grammar loader."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, TypeVar

from maskwright.base.deadline import let_go
from maskwright.base.interruption import within_time
from maskwright.errors import GrammarError, MaskwrightError, line_column
from maskwright.frontends.lark.places import Places
from maskwright.limits import DEFAULT_LIMITS, Limits

Answer = TypeVar("Answer")
MODE_MARK = "@"
"""Between the name of a rule and that of its mode (``modes.py``), where this is not the main one."""
_NAMES = re.compile(r"'(\w+)'|(?:defined|for|with): (\w+)|\((\w+) in \w+\)")
_PART = re.compile(r"__(.+)_(?:star|plus|repeat\w*?|group)_\w+$")
_SIGNS = {
    "_COLON": "':'", "_DOT": "'.'", "_COMMA": "','", "_OR": "'|'", "_TO": "'->'", "_DOTDOT": "'..'", "TILDE": "'~'",
    "_LPAR": "'('", "_RPAR": "')'", "_LBRA": "'['", "_RBRA": "']'", "_LBRACE": "'{'", "_RBRACE": "'}'",
    "RULE": "the name of a rule", "TERMINAL": "the name of a terminal", "STRING": "a text", "REGEXP": "a pattern",
    "NUMBER": "a number", "_NL": "the end of the line",
}  # fmt: skip
"""The package's names of what grammars are written with."""
_POSITION = re.compile(r"at line (\d+),? column (\d+)")


@dataclass(frozen=True, slots=True)
class TerminalText:
    """A terminal as Lark has composed it."""

    name: str
    pattern: str
    """A regular expression in Python's syntax; of a string, the string."""
    is_string: bool
    flags: str
    rank: tuple[Any, ...]
    """Lower is better, among terminals that match the same text."""
    raw: str | None = None
    """As it is written in a rule, where it has no name there."""

    @property
    def shown(self) -> str:
        """What its author knows it by."""
        return self.raw if self.raw is not None and self.name.startswith("__ANON_") else self.name


@dataclass(frozen=True, slots=True)
class LarkText:
    """What a grammar text says: terminals by name, the expansions of each rule, ignored terminals."""

    terminals: dict[str, TerminalText]
    rules: dict[str, list[list[tuple[str, bool]]]]
    """By rule: its expansions, of symbols (name, whether it is a terminal)."""
    ignored: list[str]
    ignored_in: dict[str, list[str]] = field(default_factory=dict)
    """By mode (``modes.py``), the ignored terminals; without modes, nothing."""
    text: str = field(default="", repr=False, compare=False)
    """Where all this stands, but for what was imported."""

    def place_of(self, terminal: TerminalText) -> str | None:
        """Where a terminal is defined, or stands in a rule for the first time; None: elsewhere."""
        name = re.escape(terminal.name)
        defined = re.search(
            rf"^[ \t]*(?:%(?:override|extend)[ \t]+)?({name})\b[^\n:]*:", self.text, re.MULTILINE
        )
        at = defined.start(1) if defined is not None else self.text.find(terminal.raw) if terminal.raw else -1
        return line_column(self.text, at) if at >= 0 else None

    def used(self, start: str, keep: Collection[str] = ()) -> LarkText:
        """What ``start`` leads to; terminals that are ignored and those to ``keep`` are used as well."""
        reached = {start: self.rules[start]}
        work = [start]
        terminals = {*self.ignored, *keep}
        for rule in work:
            for name, is_terminal in (symbol for expansion in self.rules[rule] for symbol in expansion):
                if is_terminal:
                    terminals.add(name)
                elif name not in reached:
                    reached[name] = self.rules[name]
                    work.append(name)
        return LarkText(
            {name: terminal for name, terminal in self.terminals.items() if name in terminals},
            {name: expansions for name, expansions in self.rules.items() if name in reached},
            self.ignored,
            self.ignored_in,
            self.text,
        )


def read(
    text: str, start: str, import_paths: Sequence[str] = (), limits: Limits = DEFAULT_LIMITS
) -> LarkText:
    """Read a grammar with the package ``lark``: everything that it says, with a rule ``start`` among others.

    Raises ``GrammarError`` with the place as far as Lark says it; ``LimitError`` (max_expansion) for terminals and
    templates that would grow too large; ``MaskwrightError`` without the package.
    """

    def rules_of(load: Callable[..., Any]) -> Any:
        from maskwright.frontends.lark.loading import read_terminals

        loaded, starts = within_time(lambda: load(text, import_paths, limits))
        within_time(lambda: read_terminals(loaded))
        compiled = within_time(lambda: loaded.compile(starts, "*"))
        let_go(loaded.rule_defs)
        return compiled

    terminals, rules, ignored = _asked(text, rules_of)
    expansions: dict[str, list[list[tuple[str, bool]]]] = {}
    for rule in rules:
        symbols = [(str(symbol.name), bool(symbol.is_term)) for symbol in rule.expansion]
        expansions.setdefault(str(rule.origin.name), []).append(symbols)
    let_go(rules)
    if start not in expansions:
        close = get_close_matches(start, [name for name in expansions if not name.startswith("__")], 1)
        hint = f"did you mean {close[0]!r}?" if close else "name another one with start=..."
        raise GrammarError(f"the grammar has no rule {start!r}: {hint}")
    return LarkText(
        {str(t.name): _terminal(t) for t in terminals}, expansions, [str(name) for name in ignored], text=text
    )


def trees(
    text: str, import_paths: Sequence[str] = (), limits: Limits = DEFAULT_LIMITS
) -> list[tuple[str, Any]]:
    """The rules of a grammar by name, as the package's trees, in which repetitions and options are still what they are.

    Templates are rules for each list of arguments.  Raises what ``read`` raises.
    """
    loaded, _ = _asked(text, lambda load: within_time(lambda: load(text, import_paths, limits)))
    rules = ((str(name), tree) for name, _, tree, _ in loaded.rule_defs)
    return [(name, tree) for name, tree in rules if not name.startswith("__")]


def _asked(text: str, ask: Callable[[Callable[..., Any]], Answer]) -> Answer:
    """What ``ask`` is answered by the package's loader; its errors as ours."""
    try:
        from lark.exceptions import LarkError, VisitError

        from maskwright.frontends.lark.loading import load
    except ImportError:
        raise MaskwrightError(
            'Lark grammars are read with the package lark: pip install "maskwright[lark]"'
        ) from None
    try:
        return ask(load)
    except VisitError as error:
        raise _bad_part(text, error) from None
    except LarkError as error:
        raise _grammar_error(text, error) from None
    except MaskwrightError:
        raise
    except (AssertionError, TypeError, ValueError) as error:
        # The package asserts some of what it asks of a text, and reads numbers of thousands of digits; and for the wording of an
        # error, it compares texts that have one with the text that it was about, and may fail over that.
        before: list[BaseException] = [error]
        while (context := before[-1].__context__) is not None:
            before.append(context)
        for first in reversed(before):
            if isinstance(first, LarkError):
                raise _grammar_error(text, first) from None
        reason = f": {error}" if str(error) else ""
        raise GrammarError(f"the package lark cannot read this grammar{reason}") from error
    except RecursionError:
        raise GrammarError("the grammar is nested too deeply for the package lark") from None


def owner_of(rule: str) -> str:
    """The author's name for a rule that the package made of a part of one, or of a template."""
    while (part := _PART.match(rule)) is not None:
        rule = part[1]
    return rule.partition(MODE_MARK)[0].partition("{")[0]


def _terminal(terminal: Any) -> TerminalText:
    pattern = terminal.pattern
    is_string = pattern.type == "str"
    try:
        width = pattern.max_width
    except Exception:  # Lark measures with the module re, which does not know all that we read.
        width = 1 << 32
    # The package's names are tokens, a class of its own.
    name, value = str(terminal.name), str(pattern.value)
    rank = (-terminal.priority, not is_string, -width, -len(value), name)
    flags = "".join(sorted(pattern.flags))
    return TerminalText(name, value, is_string, flags, rank, pattern.raw and str(pattern.raw))


def _expected(names: str) -> str:
    """What may stand at a place, as an author writes it, for the package's list of names."""
    found = set(re.findall(r"\w+", names))
    signs = _SIGNS | ({"_DOT": "'.PRIORITY:'"} if "_COLON" in found else {})
    return " or ".join(sign for name, sign in signs.items() if name in found)


def _bad_part(text: str, error: Any) -> GrammarError:
    """What the package fails at, where its tokens say."""
    message = f"this {error.rule} makes no sense: {error.orig_exc}".rstrip(": ")
    if error.rule == "range":
        message = "a range has one character on each side"
    return GrammarError(
        message, place=Places(text).of_tokens(getattr(error.obj, "children", ()), ""), source=text
    )


def _grammar_error(text: str, error: Exception) -> GrammarError:
    """The package's message, with a place: its own, or where the name that it is about stands first."""
    if len(error.args) == 2 and isinstance(error.args[1], SyntaxError):
        literal, cause = error.args
        at = text.find(literal)
        return GrammarError(
            f"bad escape: {cause.msg}", place=None if at < 0 else line_column(text, at), source=text
        )
    message = str(error)
    position = _POSITION.search(message)
    if position is not None:
        line, column = (max(int(number), 1) for number in position.groups())
        lines = text.split("\n")
        line = min(line, len(lines))
        place = f"{line}:{min(column, len(lines[line - 1]) + 1)}"
        expected = _expected(message.partition("Expected")[2])
        said = "this cannot stand here" + (f"; expected {expected}" if expected else "")
        return GrammarError(said, place=place, source=text)
    named = next((name for match in _NAMES.finditer(message) for name in match.groups() if name), None)
    found = re.search(rf"(?<![\w%]){re.escape(named)}(?!\w)", text) if named else None
    first_line = " ".join(message.split())
    if found is None:
        return GrammarError(first_line)
    return GrammarError(first_line, place=line_column(text, found.start()), source=text)
