"""The places in the rules of a grammar, before lowering: which terminals may stand next to each other, and wait together."""

from __future__ import annotations

from collections.abc import Hashable
from functools import reduce
from operator import or_

from maskwright.base.deadline import check_time
from maskwright.ir.adjacency import MANY_ITEMS, Adjacency, Places
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Body,
    Choice,
    Expr,
    Grammar,
    Indented,
    Lexeme,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
)

IgnoredSet = frozenset[Hashable]
"""Ignored terminals, by their keys."""

_END = -2
_GAP = -3
"""Before the end of a text with modes, where ignored text may come as well."""
SCHEMAS = -4
"""The number of the first inline schema, where they are told apart; the others are below."""


def ignored_set(expr: Expr, ignored: IgnoredSet) -> IgnoredSet | None:
    """The terminals of an expression that is a choice of ignored ones; None: it is something else."""
    items = [item for item in (expr.items if isinstance(expr, Choice) else (expr,)) if item != FAIL]
    keys = [item.lexeme.key for item in items if isinstance(item, Term) and isinstance(item.lexeme, Lexeme)]
    return frozenset(keys) if keys and len(keys) == len(items) and ignored.issuperset(keys) else None


def neighbours(grammar: Grammar) -> list[int]:
    """By terminal of its lexer, those that may stand directly behind it, a bit for each, as far as is known without a stack.

    Ignored ones may stand beside any, and so may lexemes that are no terminals, which are not in it.
    """
    lexing = grammar.lexing
    assert lexing is not None
    count = len(lexing.terminals)
    made = RulePlaces(grammar)
    anywhere = reduce(or_, [1 << ignored for ignored in lexing.ignored], 0)
    behind = Adjacency(made.places, made.start).follow(count)[:count]
    return [
        (1 << count) - 1 if anywhere >> terminal & 1 else found | anywhere
        for terminal, found in enumerate(behind)
    ]


class RulePlaces:
    """The places of a grammar with a lexer; ``start`` is a rule for whole texts, with what tells their end.

    ``before``: by place, those of ``ignored`` that may come before what is waited for there, which are left out of the places.
    ``schemas`` is given the number of each inline schema, by its key; without it, all of them are one lexeme.
    """

    def __init__(
        self,
        grammar: Grammar,
        ignored: IgnoredSet = frozenset(),
        schemas: dict[Hashable, int] | None = None,
    ) -> None:
        self.places = Places()
        self.start = len(grammar.rules)
        self.before: dict[int, IgnoredSet] = {}
        self._ignored = ignored
        self._schemas = schemas
        assert grammar.lexing is not None
        self._terminals = {terminal.key: number for number, terminal in enumerate(grammar.lexing.terminals)}
        # The empty text is a rule, since nothing but a call leads on without a terminal.
        self._empty = self.start + 1
        for body in grammar.rules:
            check_time()
            self.places.starts.append(self._rule(body))
        start, end, behind = (self.places.add(final) for final in (False, False, True))
        self.places.calls[start].append((grammar.start, end))
        self.places.terms[end].append((_END, behind))
        self.places.starts += [start, behind]

    def _rule(self, body: Body | None) -> int:
        start = self.places.add()
        if isinstance(body, Repeated):
            # More items make no difference to what is waited for.
            repeated = self.places.add_repeated(body.first, body.rest, min(body.min, MANY_ITEMS))
            assert repeated is not None
            return repeated
        end = self.places.add(final=True)
        if isinstance(body, Indented):
            self.places.calls[start].append((body.rule, end))
        elif isinstance(body, (Term, Ref, Seq, Choice, Switch)):
            self._between(body, start, end)
        elif body is not None:
            # No terminal of a lexer is in the others.
            self.places.terms[start].append((-1, end))
        return start

    def _between(self, expr: Expr, start: int, end: int) -> None:
        """Lead from one place to another."""
        check_time()
        if isinstance(expr, Term):
            key = expr.lexeme.key if isinstance(expr.lexeme, Lexeme) else None
            self.places.terms[start].append((self._terminals.get(key, -1), end))
        elif isinstance(expr, Ref):
            self.places.calls[start].append((expr.rule, end))
        elif isinstance(expr, Choice):
            self._choice(expr, start, end)
        elif isinstance(expr, Seq):
            self._row(expr, start, end)
        elif isinstance(expr, Switch):
            self.places.terms[start].append((-1, behind := self.places.add()))
            for case in expr.cases:
                self._between(case, behind, end)
        else:
            # An inline schema, which may have the empty text.
            number = -1
            if self._schemas is not None:
                number = self._schemas.setdefault(expr.key, SCHEMAS - len(self._schemas))
            self.places.terms[start].append((number, end))
            self.places.calls[start].append((self._empty, end))

    def _row(self, row: Seq, start: int, end: int) -> None:
        for item in row.items[:-1]:
            behind = self.places.add()
            self._between(item, start, behind)
            start = behind
        if row.items:
            self._between(row.items[-1], start, end)
        else:
            self.places.calls[start].append((self._empty, end))

    def _choice(self, choice: Choice, start: int, end: int) -> None:
        items, ignored = list(choice.items), None
        for item in choice.items:
            first = item.items[0] if isinstance(item, Seq) and item.items else None
            if first is not None and (found := ignored_set(first, self._ignored)) is not None:
                ignored = found
                items.remove(item)
        if ignored is not None:
            # What is written beside it has other text before it, or none.
            self.places.calls[start].append((self._empty, start := self.places.add()))
            self.before[start] = ignored
        for item in items:
            if ignored is not None and item == EMPTY:
                self.places.terms[start].append((_GAP, end))
            else:
                self._between(item, start, end)
