"""Rules of a Lark grammar -> the intermediate representation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.lark.attributes import Attributed, Attributes, take_attributes
from maskwright.frontends.lark.indentation import Indentation, find_indentation
from maskwright.frontends.lark.inline import Inlined, take_inline
from maskwright.frontends.lark.modes import MAIN, by_mode, mode_of, without_mode
from maskwright.frontends.lark.reader import LarkText, read
from maskwright.frontends.lark.terminals import TerminalLanguages
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Capture,
    Choice,
    Expr,
    Grammar,
    Import,
    Indented,
    Lexeme,
    Lexing,
    Ref,
    Seq,
    Term,
)
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import Matches
from maskwright.regular.expressions import NOTHING, Lit, alt

_LINE_BREAK = alt(Lit("\n"), Lit("\r\n"))

LexerKind: TypeAlias = Literal["contextual", "dynamic"]


def to_grammar(
    text: str,
    start: str,
    lexer: LexerKind,
    import_paths: Sequence[str],
    indentation: Indentation | None,
    schema_part: Callable[[Any], Import],
    limits: Limits = DEFAULT_LIMITS,
) -> Grammar:
    """The grammar of a Lark text; see ``maskwright.compile_lark``.  ``schema_part`` makes an inline schema one."""
    if not isinstance(text, str):
        raise GrammarError(f"a Lark grammar is a str, not {type(text).__name__}")
    taken = take_attributes(text)
    with _in_text(text, taken):
        inlined = take_inline(taken.text)
        whole = read(inlined.text, start, import_paths, limits)
    reading = Reading.of(text, taken, inlined, whole, start, limits)
    return reading.grammar(lexer, indentation, schema_part)


@dataclass(frozen=True, slots=True)
class Reading:
    """A text that was read: what its start leads to."""

    text: str
    taken: Attributed
    inlined: Inlined
    source: LarkText
    start: str
    languages: TerminalLanguages

    @classmethod
    def of(
        cls, text: str, taken: Attributed, inlined: Inlined, whole: LarkText, start: str, limits: Limits
    ) -> Reading:
        given = {name: each.mode for name, each in taken.attributes.items() if each.mode}
        modes = taken.modes.values()
        kept = {*taken.ends, *(name for mode in modes for name in (*mode.own.values(), *mode.ignored))}
        source = by_mode(taken.apart(whole).used(start, kept), start, taken.ends, taken.modes, given, limits)
        languages = TerminalLanguages(source, inlined, taken.attributes, limits)
        return cls(text, taken, inlined, source, start, languages)

    def grammar(
        self, lexer: LexerKind, indentation: Indentation | None, schema_part: Callable[[Any], Import]
    ) -> Grammar:
        """The intermediate representation."""
        inlined, attributes = self.inlined, self.taken.attributes
        with _in_text(self.text, self.taken):
            parts: dict[str, Import | Term] = {
                name: schema_part(schema) for name, schema in inlined.schemas.items()
            }
            parts |= {name: Term(tokens) for name, tokens in inlined.tokens.items()}
            builder = _Builder(self.source, parts, self.languages, attributes, lexer, indentation)
            return builder.grammar(self.start)


@contextmanager
def _in_text(text: str, taken: Attributed) -> Iterator[None]:
    """Errors are placed in the text that was given, not in the one without attributes."""
    try:
        yield
    except GrammarError as error:
        if error.place is None:
            raise
        raise GrammarError(error.message, place=taken.place(error.place), source=text) from None
    except LimitError as error:
        if error.place is None:
            raise
        place = taken.place(error.place)
        raise LimitError(
            error.limit, error.given, error.allowed, place=place, message=error.message
        ) from None


class _Builder:
    def __init__(
        self,
        source: LarkText,
        parts: dict[str, Import | Term],
        languages: TerminalLanguages,
        attributes: dict[str, Attributes],
        lexer: LexerKind,
        indentation: Indentation | None,
    ) -> None:
        self.source = source
        self.parts = parts
        self.attributes = attributes
        self.languages = languages
        self.dynamic = lexer == "dynamic"
        self.ranked = languages.ranked()
        self.matches = {terminal.name: languages.match(terminal) for terminal in self.ranked}
        # Equal patterns under two names are two terminals; where lexemes match in every way they are one.
        self.lexemes = {
            name: Lexeme(("regular" if self.dynamic else name, matches.language), matches.language)
            for name, matches in self.matches.items()
        }
        self.indentation = find_indentation(source, indentation)
        self.out = Grammar()
        self.indices: dict[tuple[str, bool], int] = {}
        """By rule, and whether line breaks mean nothing in it."""
        self.work: list[tuple[str, bool]] = []
        self.captured: dict[tuple[str, bool], int] = {}
        """The rules of terminals that are captured."""
        self.modes = source.ignored_in
        self.ignored = {
            mode: Choice(tuple([Term(self.lexemes[name]) for name in dict.fromkeys(names)]))
            for mode, names in self.modes.items()
        }
        self.skipped: int | None = None
        """The rule of what may come before any terminal: ignored ones; or line breaks between brackets."""

    def grammar(self, start: str) -> Grammar:
        out = self.out
        if self.dynamic:
            self.no_look_ahead(self.matches)
            if self.indentation is not None or self.modes:
                what = "indentation needs" if self.indentation is not None else "modes need"
                raise GrammarError(f"{what} the contextual lexer")
            if self.source.ignored:
                self.skipped = self.skip([Term(self.lexemes[name]) for name in self.source.ignored])
        elif self.ranked:
            # Without a terminal there is nothing to split: all are schemas or tokens, or there is the empty text only.
            self.lexer()
        out.start = self.rule(start, False)
        while self.work:
            name, inside = self.work.pop()
            choices = [self.expansion(self.ended(e), inside, mode_of(name)) for e in self.source.rules[name]]
            index = self.indices[name, inside]
            out.rules[index] = choices[0] if len(choices) == 1 else Choice(tuple(choices))
            self.capture(name, index)
        if self.dynamic and self.skipped is not None:
            out.start = out.add("text", Seq((Ref(out.start), Ref(self.skipped))))
        if self.modes:
            out.start = out.add("text", Seq((Ref(out.start), self.marked(EMPTY, MAIN))))
        out.blank = self.skipped
        if out.captures and (self.indentation is not None or self.modes):
            what = "modes" if self.modes else "blocks by indentation"
            raise GrammarError(f"captures are not supported in grammars with {what}")
        return out

    def lexer(self) -> None:
        names = [terminal.name for terminal in self.ranked]
        lexemes = [self.lexemes[name] for name in names]
        refused = [
            (rank, self.matches[name].refused)
            for rank, name in enumerate(names)
            if self.matches[name].refused != NOTHING
        ]
        newline = None
        if self.indentation is not None:
            newline = names.index(self.indentation.newline)
            line_break = Lexeme("line break between brackets", _LINE_BREAK)
            self.skipped = self.skip([self.marked(Term(line_break), MAIN)])
            lexemes.append(line_break)
            names.append("a line break")
        self.out.lexing = Lexing(
            tuple(lexemes),
            tuple(names.index(name) for name in dict.fromkeys(self.source.ignored)),
            tuple(refused),
            tuple(names),
            newline,
            None if newline is None else len(names) - 1,
            0 if self.indentation is None else self.indentation.columns,
            tuple(names.index(name) for name in names if self.languages.is_early(name)),
            bool(self.modes),
        )

    def skip(self, terms: Sequence[Expr]) -> int:
        index = self.out.reserve("__ignored")
        self.out.helpers.add(index)
        self.out.rules[index] = Choice((Seq((Choice(tuple(terms)), Ref(index))), EMPTY))
        return index

    def marked(self, read: Expr, mode: str) -> Expr:
        """What is read in a mode, and where there are modes, the ignored terminals that may come before it."""
        ignored = self.ignored.get(mode)
        return Choice((read, Seq((ignored, read)))) if ignored is not None and ignored.items else read

    def rule(self, name: str, inside: bool) -> int:
        index = self.indices.get((name, inside))
        if index is None:
            index = self.indices[name, inside] = self.out.reserve(name)
            if name.startswith("__"):
                # What the package made of a repetition.
                self.out.helpers.add(index)
            self.work.append((name, inside))
        return index

    def expansion(self, symbols: list[tuple[str, bool]], inside: bool, mode: str) -> Expr:
        if self.indentation is None or mode != MAIN:
            return Seq(tuple([self.symbol(name, is_term, False, mode) for name, is_term in symbols]))
        names = self.indentation
        depth = 1 if inside else 0
        lines: list[list[Expr]] = [[]]
        before = None
        for name, is_term in symbols:
            text = self.source.terminals[name].pattern if is_term and name in self.source.terminals else None
            if name == names.indent:
                if before != names.newline:
                    raise GrammarError(f"{names.indent} must stand directly behind {names.newline}")
                lines.append([])
            elif name == names.dedent:
                if len(lines) == 1:
                    raise GrammarError(f"{names.dedent} must stand in one rule with its {names.indent}")
                block = self.out.add("lines", Seq(tuple(lines.pop())))
                lines[-1].append(Ref(self.out.add("block", Indented(block))))
            else:
                lines[-1].append(self.symbol(name, is_term, depth > 0, mode))
                depth += (text in names.open) - (text in names.close)
                if depth < (1 if inside else 0):
                    raise GrammarError(f"a rule closes a bracket ({text}) that it did not open")
            before = name
        if len(lines) > 1 or depth > inside:
            what = names.indent if len(lines) > 1 else "a bracket"
            raise GrammarError(
                f"a rule opens {what} and does not close it: indentation needs both in one rule"
            )
        return Seq(tuple(lines[0]))

    def symbol(self, name: str, is_terminal: bool, inside: bool, mode: str) -> Expr:
        if not is_terminal:
            if self.indentation is not None and mode_of(name) != mode:
                # A mode has no lines, and what is in it stands between brackets, as it were.
                inside = mode_of(name) == MAIN
            return Ref(self.rule(name, inside))
        attributes = self.attributes.get(name)
        if attributes is not None and attributes.capture is not None:
            return Ref(self.captured_terminal(name, inside, mode))
        return self.terminal(name, inside, mode)

    def captured_terminal(self, name: str, inside: bool, mode: str) -> int:
        index = self.captured.get((name, inside))
        if index is None:
            index = self.captured[name, inside] = self.out.add(name, self.terminal(name, inside, mode))
            self.capture(name, index)
        return index

    def terminal(self, name: str, inside: bool, mode: str) -> Expr:
        if name in self.parts:
            part = self.inline(self.parts[name], mode)
            return Seq((Ref(self.skipped), part)) if inside and self.skipped is not None else part
        lexeme = self.lexemes.get(self.languages.named(name))
        if lexeme is None:
            raise GrammarError(
                f"terminal {name} is declared but has no pattern: only a lexer of your own could produce it"
            )
        term = self.marked(Term(lexeme), mode)
        if inside or (self.dynamic and self.skipped is not None):
            assert self.skipped is not None
            read: Expr = Seq((Ref(self.skipped), term))
        else:
            # A lexer drops what is ignored wherever it stands, so a rule never sees it.
            read = FAIL if not self.dynamic and name in self.source.ignored else term
        return Choice((read, EMPTY)) if self.languages.is_optional(name) else read

    def capture(self, name: str, index: int) -> None:
        """Note what is captured of a rule."""
        given = self.attributes.get(without_mode(name))
        if given is None:
            return
        parts = self.languages.parts_of(given) if given.end else None
        captures = []
        if given.capture is not None:
            captures.append(Capture(given.capture.name, given.capture.append, parts))
        if given.stop_capture is not None:
            captures.append(Capture(given.stop_capture.name, given.stop_capture.append, parts, True))
        if captures:
            self.out.captures[index] = tuple(captures)

    def ended(self, symbols: list[tuple[str, bool]]) -> list[tuple[str, bool]]:
        """An expansion without the stops that its rules read already."""
        kept: list[tuple[str, bool]] = []
        behind = iter(range(len(symbols)))
        for i in behind:
            kept.append(symbols[i])
            given = self.attributes.get(without_mode(symbols[i][0]))
            if given is not None and given.is_stop:
                following = symbols[i + 1][0] if i + 1 < len(symbols) else ""
                if not self.languages.is_same(following, given.end):
                    raise GrammarError(
                        f"behind {given.rule} its stop must stand: what was read cannot be taken back; or write "
                        "suffix= in place of stop=, and nothing behind it",
                        place=given.place,
                    )
                next(behind)
        return kept

    def inline(self, part: Import | Term, mode: str) -> Expr:
        if self.modes:
            return self.marked(part, mode)
        if self.dynamic and self.skipped is not None:
            return Seq((Ref(self.skipped), part))
        # Ignored text may come before it, but not inside.
        skipped = [Seq((Term(self.lexemes[ignored]), part)) for ignored in self.source.ignored[:1]]
        return Choice((part, *skipped)) if skipped else part

    def no_look_ahead(self, matches: dict[str, Matches]) -> None:
        for name, each in matches.items():
            if each.refused != NOTHING:
                raise GrammarError(f"terminal {name} looks ahead, which needs the contextual lexer")
