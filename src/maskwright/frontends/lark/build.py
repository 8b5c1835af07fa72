"""Rules of a Lark grammar -> the intermediate representation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, get_args

from maskwright.errors import GrammarError
from maskwright.frontends.lark.inline import take_inline
from maskwright.frontends.lark.reader import LarkText, read
from maskwright.frontends.lark.terminals import terminal_matches
from maskwright.grammar import EMPTY, FAIL, Choice, Expr, Grammar, Import, Lexeme, Lexing, Ref, Seq, Term
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import Matches
from maskwright.regular import NOTHING

LexerKind: TypeAlias = Literal["contextual", "dynamic"]


def to_grammar(
    text: str,
    start: str,
    lexer: LexerKind,
    import_paths: Sequence[str],
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
    return _Builder(read(plain, start, import_paths), parts, lexer, limits).grammar(start)


class _Builder:
    def __init__(self, source: LarkText, parts: dict[str, Import], lexer: LexerKind, limits: Limits) -> None:
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

    def grammar(self, start: str) -> Grammar:
        out = Grammar()
        indices = {name: out.reserve(name) for name in self.source.rules}
        ignore = out.reserve("ignored") if self.dynamic and self.source.ignored else None
        for name, expansions in self.source.rules.items():
            choices = [
                Seq(tuple(self.symbol(s, is_term, indices, ignore) for s, is_term in e)) for e in expansions
            ]
            out.rules[indices[name]] = choices[0] if len(choices) == 1 else Choice(tuple(choices))
        out.start = indices[start]
        if self.dynamic:
            self.no_look_ahead(self.matches)
            if ignore is not None:
                some = Choice(tuple(Term(self.lexemes[name]) for name in self.source.ignored))
                out.rules[ignore] = Choice((Seq((some, Ref(ignore))), EMPTY))
                out.start = out.add("text", Seq((Ref(out.start), Ref(ignore))))
        else:
            names = [terminal.name for terminal in self.ranked]
            out.lexing = Lexing(
                tuple(self.lexemes[name] for name in names),
                tuple(names.index(name) for name in dict.fromkeys(self.source.ignored)),
                tuple(
                    (rank, self.matches[name].refused)
                    for rank, name in enumerate(names)
                    if self.matches[name].refused != NOTHING
                ),
                tuple(names),
            )
        return out

    def symbol(self, name: str, is_terminal: bool, rules: dict[str, int], ignore: int | None) -> Expr:
        if not is_terminal:
            return Ref(rules[name])
        if name in self.parts:
            return self.inline(self.parts[name], ignore)
        lexeme = self.lexemes.get(name)
        if lexeme is None:
            raise GrammarError(
                f"terminal {name} is declared but has no pattern: only a lexer of your own could produce it"
            )
        if ignore is not None:
            return Seq((Ref(ignore), Term(lexeme)))
        # A lexer drops what is ignored wherever it stands, so a rule never sees it.
        return FAIL if not self.dynamic and name in self.source.ignored else Term(lexeme)

    def inline(self, part: Import, ignore: int | None) -> Expr:
        if ignore is not None:
            return Seq((Ref(ignore), part))
        # Ignored text may come before it, but not inside.
        skipped = [Seq((Term(self.lexemes[ignored]), part)) for ignored in self.source.ignored[:1]]
        return Choice((part, *skipped)) if skipped else part

    def no_look_ahead(self, matches: dict[str, Matches]) -> None:
        for name, each in matches.items():
            if each.refused != NOTHING:
                raise GrammarError(f"terminal {name} looks ahead, which needs the contextual lexer")
