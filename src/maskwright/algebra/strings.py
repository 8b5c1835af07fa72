"""A grammar inside a JSON string: every lexeme as it is written there."""

from __future__ import annotations

from dataclasses import replace

from maskwright.algebra.lexers import has_no_text, is_apart, placed
from maskwright.algebra.rules import Rules
from maskwright.algebra.written import text_of, written
from maskwright.base.deadline import check_time
from maskwright.ir.grammar import (
    FAIL,
    AnyLexeme,
    Boundary,
    Choice,
    Expr,
    Grammar,
    Import,
    Indented,
    Keyset,
    Lexeme,
    Lexing,
    Ref,
    Seq,
    Spelling,
    Switch,
    Term,
    Tokens,
    Words,
)
from maskwright.limits import Limits
from maskwright.regular.automata import Columns
from maskwright.regular.columns import column_automaton
from maskwright.regular.expressions import Lit


def in_string(grammar: Grammar, spelling: Spelling, limits: Limits) -> Grammar:
    """The JSON strings that hold a text of a grammar, with their quotes.

    A terminal's longest match is the same one in its written form, since all that is written for a character is.
    Raises ``Inexact`` for what has no rules (tokens, undeclared members, different items), ``LimitError``.
    """
    return _Writing(grammar, spelling, limits).grammar()


class _Writing:
    def __init__(self, grammar: Grammar, spelling: Spelling, limits: Limits) -> None:
        self.given = placed(grammar)
        self.limits = limits
        self.rules = Rules(self.given, limits)
        self.spelling = spelling
        self.out = Grammar()
        self.numbers: dict[int, int] = {}
        self.work: list[int] = []
        self.lexemes: dict[object, Lexeme] = {}
        self.exprs: dict[int, Expr] = {}
        lexing = self.given.lexing
        self.terminals = {} if lexing is None else {each.key: each for each in lexing.terminals}

    def grammar(self) -> Grammar:
        text = self.rule(self.rules.start)
        while self.work:
            check_time()
            rule = self.work.pop()
            body = self.rules.bodies[rule]
            self.out.rules[self.numbers[rule]] = (
                Indented(self.rule(body.rule))
                if isinstance(body, Indented)
                else self.expr(self.rules.plain(rule))
            )
        lexing = self.given.lexing
        begins = lexing is not None and not is_apart(lexing)
        # Of a lexer it is a terminal: what is ignored inside is ignored behind no other one, so it is no other string's quote.
        quote = Lexeme("a lexer's quote" if begins else "quote", Lit('"'))
        self.out.start = self.out.add("string", Seq((Term(quote), Ref(text), Term(quote))))
        if lexing is not None:
            self.out.lexing = self.lexing(lexing)
            if begins:
                self.out.lexing = replace(
                    self.out.lexing,
                    terminals=(*self.out.lexing.terminals, quote),
                    names=(*lexing.names, "a quote") if lexing.names else (),
                    parts=(*lexing.parts, len(lexing.terminals)) if lexing.parts else (),
                    quote=len(lexing.terminals),
                )
        return self.out

    def lexing(self, given: Lexing) -> Lexing:
        """A lexer of what is written."""
        terminals = tuple([self.lexeme(each) for each in given.terminals])
        refused, forbidden = (
            tuple([(owner, written(each, self.spelling)) for owner, each in texts])
            for texts in (given.refused, given.forbidden)
        )
        lines = given.lines
        if given.newline is not None:
            known = lines or column_automaton(
                given.terminals[given.newline].regular, given.columns, self.limits
            )
            edges = [(state, written(label, self.spelling), target) for state, label, target in known.edges]
            lines = Columns(edges, known.accepts)
        parts, first = [], 0
        for part in given.of:
            behind = first + len(part.terminals)
            its = [
                tuple([(owner - first, each) for owner, each in texts if first <= owner < behind])
                for texts in (refused, forbidden)
            ]
            part_lines = None if part.newline is None else lines
            parts.append(
                replace(
                    part,
                    terminals=terminals[first:behind],
                    refused=its[0],
                    forbidden=its[1],
                    lines=part_lines,
                )
            )
            first = behind
        return replace(
            given, terminals=terminals, refused=refused, forbidden=forbidden, lines=lines, of=tuple(parts)
        )

    def rule(self, rule: int) -> int:
        if rule not in self.numbers:
            self.numbers[rule] = self.out.add(self.rules.names[rule], FAIL)
            if rule in self.rules.helpers:
                self.out.helpers.add(self.numbers[rule])
            self.work.append(rule)
        return self.numbers[rule]

    def expr(self, expr: Expr) -> Expr:
        # What is ignored is one object wherever it stands.
        found = self.exprs.get(id(expr))
        if found is None:
            found = self.exprs[id(expr)] = self.made(expr)
        return found

    def made(self, expr: Expr) -> Expr:
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
        lexeme = expr.lexeme
        return expr if isinstance(lexeme, Boundary) or has_no_text(lexeme) else Term(self.lexeme(lexeme))

    def lexeme(self, lexeme: AnyLexeme) -> Lexeme:
        """The lexeme as it is written inside the string."""
        key = lexeme if isinstance(lexeme, (Keyset, Tokens)) else lexeme.key
        found = self.lexemes.get(key)
        if found is None:
            language = written(text_of(lexeme), self.spelling)
            # A terminal stays apart from others with the same language.
            name = ("in a string", key) if key in self.terminals else "regular"
            found = self.lexemes[key] = Lexeme((name, language), language)
        return found
