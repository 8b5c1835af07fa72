"""A grammar inside a JSON string: every lexeme as it is written there."""

from __future__ import annotations

from dataclasses import replace

from maskwright.algebra.lexers import CLOSING_QUOTE, explicit, has_no_text
from maskwright.algebra.rules import Rules
from maskwright.algebra.written import text_of, written
from maskwright.base.deadline import check_time
from maskwright.ir.grammar import (
    FAIL,
    Choice,
    Expr,
    Grammar,
    Import,
    Keyset,
    Lexeme,
    Ref,
    Seq,
    Spelling,
    Switch,
    Term,
    Tokens,
    Words,
)
from maskwright.limits import Limits
from maskwright.regular.expressions import Lit


def in_string(grammar: Grammar, spelling: Spelling, limits: Limits) -> Grammar:
    """The JSON strings that hold a text of a grammar, with their quotes.

    A terminal's longest match is the same one in its written form, since all that is written for a character is.
    Raises ``Inexact`` for what has no rules (tokens, undeclared members, different items), ``LimitError``.
    """
    return _Writing(grammar, spelling, limits).grammar()


class _Writing:
    def __init__(self, grammar: Grammar, spelling: Spelling, limits: Limits) -> None:
        self.given = explicit(grammar)
        self.rules = Rules(self.given, limits)
        self.spelling = spelling
        self.out = Grammar()
        self.numbers: dict[int, int] = {}
        self.work: list[int] = []
        self.lexemes: dict[object, Lexeme] = {}
        lexing = self.given.lexing
        self.terminals = {} if lexing is None else {each.key: each for each in lexing.terminals}

    def grammar(self) -> Grammar:
        text = self.rule(self.rules.start)
        while self.work:
            check_time()
            rule = self.work.pop()
            self.out.rules[self.numbers[rule]] = self.expr(self.rules.plain(rule))
        quote = Term(Lexeme("opening quote", Lit('"')))
        self.out.start = self.out.add("string", Seq((quote, Ref(text), CLOSING_QUOTE)))
        lexing = self.given.lexing
        if lexing is not None:
            self.out.lexing = replace(
                lexing,
                terminals=tuple([self.lexeme(each) for each in lexing.terminals]),
                refused=tuple([(at, written(each, self.spelling)) for at, each in lexing.refused]),
            )
        return self.out

    def rule(self, rule: int) -> int:
        if rule not in self.numbers:
            self.numbers[rule] = self.out.add(self.rules.names[rule], FAIL)
            if rule in self.rules.helpers:
                self.out.helpers.add(self.numbers[rule])
            self.work.append(rule)
        return self.numbers[rule]

    def expr(self, expr: Expr) -> Expr:
        if isinstance(expr, Ref):
            return Ref(self.rule(expr.rule))
        if isinstance(expr, Import):
            return Ref(self.rule(self.rules.imported(expr)))
        if isinstance(expr, Seq):
            return Seq(tuple([self.expr(item) for item in expr.items]))
        if isinstance(expr, Choice):
            return Choice(tuple([self.expr(item) for item in expr.items]))
        if isinstance(expr, Switch):
            cases = [self.expr(case) for case in expr.cases]
            if isinstance(expr.lexemes, Words):
                by_tag = [expr.lexemes.where(tag.__eq__) for tag in range(len(cases))]
                return Choice(
                    tuple(
                        [
                            Seq((Term(self.lexeme(w)), case))
                            for w, case in zip(by_tag, cases, strict=True)
                            if len(w)
                        ]
                    )
                )
            return Switch(tuple([self.lexeme(each) for each in expr.lexemes]), tuple(cases))
        return expr if has_no_text(expr.lexeme) else Term(self.lexeme(expr.lexeme))

    def lexeme(self, lexeme: Lexeme | Keyset | Words | Tokens) -> Lexeme:
        """The lexeme as it is written inside the string."""
        key = lexeme if isinstance(lexeme, (Keyset, Tokens)) else lexeme.key
        found = self.lexemes.get(key)
        if found is None:
            language = written(text_of(lexeme), self.spelling)
            # A terminal stays apart from others with the same language.
            name = ("in a string", key) if key in self.terminals else "regular"
            found = self.lexemes[key] = Lexeme((name, language), language)
        return found
