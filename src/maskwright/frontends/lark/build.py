"""Rules of a Lark grammar -> the intermediate representation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from maskwright.errors import GrammarError
from maskwright.frontends.lark.indentation import Indentation, find_indentation
from maskwright.frontends.lark.inline import take_inline
from maskwright.frontends.lark.reader import LarkText, read
from maskwright.frontends.lark.terminals import terminal_matches
from maskwright.grammar import (
    EMPTY,
    FAIL,
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
from maskwright.regular import NOTHING, Lit, alt

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
    if lexer not in get_args(LexerKind):
        raise GrammarError(f"unknown lexer {lexer!r}: use one of {', '.join(get_args(LexerKind))}")
    if not isinstance(text, str):
        raise GrammarError(f"a Lark grammar is a str, not {type(text).__name__}")
    plain, schemas = take_inline(text)
    parts = {name: schema_part(schema) for name, schema in schemas.items()}
    return _Builder(read(plain, start, import_paths), parts, lexer, indentation, limits).grammar(start)


class _Builder:
    def __init__(
        self,
        source: LarkText,
        parts: dict[str, Import],
        lexer: LexerKind,
        indentation: Indentation | None,
        limits: Limits,
    ) -> None:
        self.source = source
        self.parts = parts
        self.dynamic = lexer == "dynamic"
        self.ranked = sorted(source.terminals.values(), key=lambda terminal: terminal.rank)
        self.matches = {terminal.name: terminal_matches(terminal, limits) for terminal in self.ranked}
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
        self.skipped: int | None = None
        """The rule of what may come before any terminal: ignored ones; or line breaks between brackets."""

    def grammar(self, start: str) -> Grammar:
        out = self.out
        if self.dynamic:
            self.no_look_ahead(self.matches)
            if self.indentation is not None:
                raise GrammarError("indentation needs the contextual lexer")
            if self.source.ignored:
                self.skipped = self.skip([Term(self.lexemes[name]) for name in self.source.ignored])
        else:
            self.lexer()
        out.start = self.rule(start, False)
        while self.work:
            name, inside = self.work.pop()
            choices = [self.expansion(e, inside) for e in self.source.rules[name]]
            out.rules[self.indices[name, inside]] = (
                choices[0] if len(choices) == 1 else Choice(tuple(choices))
            )
        if self.dynamic and self.skipped is not None:
            out.start = out.add("text", Seq((Ref(out.start), Ref(self.skipped))))
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
            self.skipped = self.skip([Term(line_break)])
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
        )

    def skip(self, terms: list[Term]) -> int:
        index = self.out.reserve("ignored")
        self.out.rules[index] = Choice((Seq((Choice(tuple(terms)), Ref(index))), EMPTY))
        return index

    def rule(self, name: str, inside: bool) -> int:
        index = self.indices.get((name, inside))
        if index is None:
            index = self.indices[name, inside] = self.out.reserve(name)
            self.work.append((name, inside))
        return index

    def expansion(self, symbols: list[tuple[str, bool]], inside: bool) -> Expr:
        if self.indentation is None:
            return Seq(tuple(self.symbol(name, is_term, False) for name, is_term in symbols))
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
                lines[-1].append(self.symbol(name, is_term, depth > 0))
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

    def symbol(self, name: str, is_terminal: bool, inside: bool) -> Expr:
        if not is_terminal:
            return Ref(self.rule(name, inside))
        if name in self.parts:
            return self.inline(self.parts[name])
        lexeme = self.lexemes.get(name)
        if lexeme is None:
            raise GrammarError(
                f"terminal {name} is declared but has no pattern: only a lexer of your own could produce it"
            )
        if inside or (self.dynamic and self.skipped is not None):
            assert self.skipped is not None
            return Seq((Ref(self.skipped), Term(lexeme)))
        # A lexer drops what is ignored wherever it stands, so a rule never sees it.
        return FAIL if not self.dynamic and name in self.source.ignored else Term(lexeme)

    def inline(self, part: Import) -> Expr:
        if self.dynamic and self.skipped is not None:
            return Seq((Ref(self.skipped), part))
        # Ignored text may come before it, but not inside.
        skipped = [Seq((Term(self.lexemes[ignored]), part)) for ignored in self.source.ignored[:1]]
        return Choice((part, *skipped)) if skipped else part

    def no_look_ahead(self, matches: dict[str, Matches]) -> None:
        for name, each in matches.items():
            if each.refused != NOTHING:
                raise GrammarError(f"terminal {name} looks ahead, which needs the contextual lexer")
