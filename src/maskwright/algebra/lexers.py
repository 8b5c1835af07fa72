"""Grammars with a lexer, as parts of larger ones and of products."""

from __future__ import annotations

from dataclasses import replace

from maskwright.algebra.inexact import Inexact
from maskwright.ir.grammar import (
    EMPTY,
    Body,
    Choice,
    Expr,
    Grammar,
    Indented,
    Keyset,
    Lexeme,
    Lexing,
    Ref,
    Seq,
    Switch,
    Term,
    Tokens,
    Words,
)
from maskwright.regular.expressions import Chars, Lit

_NO_TEXT = Lexeme("no text", Chars(((0xD800, 0xD800),)))
NO_TEXT = Term(_NO_TEXT)
"""What has no text, though it does not look so: a surrogate, which is no character.  What leads to it is not pruned.

Whatever is made of such a grammar keeps it as it is: without it, terminals that lead there would not compete any more."""

CLOSING_QUOTE = Term(Lexeme("closing quote", Lit('"')))
"""Behind a grammar whose terminals have no quote: no longest match reads on."""


def has_no_text(lexeme: Lexeme | Keyset | Words | Tokens) -> bool:
    """Whether it is the one of ``NO_TEXT``."""
    return isinstance(lexeme, Lexeme) and lexeme.key == _NO_TEXT.key


def closes(grammar: Grammar) -> bool:
    """Whether no longest match looks into what follows a text of the grammar."""
    body = grammar.rules[grammar.start]
    return isinstance(body, Seq) and body.items[-1:] == (CLOSING_QUOTE,)


def explicit(grammar: Grammar) -> Grammar:
    """The same language with rules for ignored text: before each terminal, and at the end.

    Raises ``Inexact`` for blocks by indentation, and for modes.
    """
    lexing = grammar.lexing
    if lexing is None or (not lexing.ignored and lexing.newline is None):
        return grammar
    if lexing.newline is not None:
        raise Inexact("its blocks are told apart by the column in which their lines begin")
    if lexing.placed:
        raise Inexact("what it ignores depends on the mode of its lexer")
    terminals = {terminal.key for terminal in lexing.terminals}
    ignored = {lexing.terminals[position].key for position in lexing.ignored}
    out = replace(
        grammar,
        rules=list(grammar.rules),
        names=list(grammar.names),
        lexing=replace(lexing, ignored=()),
        helpers=set(grammar.helpers),
    )
    skipped = out.reserve("ignored text")
    out.helpers.add(skipped)
    skip = Ref(skipped)
    texts = tuple([Term(lexing.terminals[position]) for position in lexing.ignored])
    out.rules[skipped] = Choice((Seq((Choice(texts), skip)), EMPTY))

    def with_skips(expr: Expr) -> Expr:
        if isinstance(expr, Term) and isinstance(expr.lexeme, Lexeme) and expr.lexeme.key in terminals:
            return skip if expr.lexeme.key in ignored else Seq((skip, expr))
        if isinstance(expr, Seq):
            return Seq(tuple([with_skips(item) for item in expr.items]))
        if isinstance(expr, Choice):
            return Choice(tuple([with_skips(item) for item in expr.items]))
        if isinstance(expr, Switch):
            return Switch(expr.lexemes, tuple([with_skips(case) for case in expr.cases]))
        return expr

    made: dict[int, Body] = {}
    for index, body in enumerate(grammar.rules):
        if isinstance(body, (Term, Ref, Seq, Choice, Switch)):
            out.rules[index] = made.setdefault(id(body), with_skips(body))
        elif isinstance(body, Indented):
            raise Inexact("its blocks are told apart by the column in which their lines begin")
    out.start = out.add("text", Seq((Ref(grammar.start), skip)))
    return out


class Variants:
    """The terminals of a lexer, and parts of their languages as terminals of the same rank."""

    def __init__(self, lexing: Lexing) -> None:
        self._lexing = lexing
        self._parts: list[dict[object, Lexeme]] = [{} for _ in lexing.terminals]
        self._ranks = {terminal.key: rank for rank, terminal in enumerate(lexing.terminals)}

    def is_terminal(self, lexeme: Lexeme | Keyset | Words | Tokens) -> bool:
        """Whether the lexer reads it."""
        return isinstance(lexeme, Lexeme) and lexeme.key in self._ranks

    def terminal(
        self, whole: Lexeme | Keyset | Words | Tokens, part: Lexeme | Keyset | Words | Tokens
    ) -> Lexeme | Keyset | Words | Tokens:
        """The terminal for a part of one; what is no terminal stays as it is."""
        if not isinstance(whole, Lexeme) or not isinstance(part, Lexeme) or whole.key not in self._ranks:
            return part
        if part is whole:
            return whole
        parts = self._parts[self._ranks[whole.key]]
        return parts.setdefault(part.key, Lexeme((whole.key, part.key), part.regular))

    def lexing(self) -> Lexing:
        """The lexer with all parts that were made: one that says of no thread that it can surely be completed.

        For that, its last terminal is one that nobody waits for: another one always comes before it.
        """
        given = self._lexing
        ranked = [
            (rank, terminal)
            for rank, whole in enumerate(given.terminals)
            for terminal in (*self._parts[rank].values(), whole)
        ]
        last = given.terminals[-1]
        terminals = [terminal for _, terminal in ranked]
        return replace(
            given,
            terminals=(*terminals, Lexeme(("never", last.key), last.regular)),
            ignored=(),
            refused=tuple(
                [
                    (position, language)
                    for position, (rank, _) in enumerate(ranked)
                    for of, language in given.refused
                    if of == rank
                ]
            ),
            names=(*[given.names[rank] for rank, _ in ranked], given.names[-1]) if given.names else (),
            early=tuple([position for position, (rank, _) in enumerate(ranked) if rank in given.early]),
        )
