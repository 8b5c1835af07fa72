"""Whether ignored text can be said by rules, where modes of a lexer ignore different things.

Reading ignored text leaves a parser where it is, with all that it waits for:

    start: "a" c? "b"       c[mode=other]: "c"      %ignore " "     (the other mode ignores nothing)

Behind "a" a blank may come, as the main mode waits there for "b".  So "a cb" is a text, though nothing is ignored before "c".  A
rule that reads the blank before "b" would leave "c" behind.  Where all that is waited for has the same ignored text before it, rules
say it, and that is what is found out here: for all states of the parser, as far as these are known without the stack (``Adjacency``).
"""

from __future__ import annotations

from collections.abc import Hashable

from maskwright.algebra.inexact import Inexact
from maskwright.base.deadline import check_time
from maskwright.ir.adjacency import Adjacency, Places
from maskwright.ir.grammar import (
    EMPTY,
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

_MANY = 16
"""Items from which on more of them make no difference to what is waited for."""


def ignored_set(expr: Expr, ignored: IgnoredSet) -> IgnoredSet | None:
    """The terminals of an expression that is a choice of ignored ones; None: it is something else."""
    items = expr.items if isinstance(expr, Choice) else (expr,)
    keys = [item.lexeme.key for item in items if isinstance(item, Term) and isinstance(item.lexeme, Lexeme)]
    return frozenset(keys) if keys and len(keys) == len(items) and ignored.issuperset(keys) else None


def check_alike(grammar: Grammar, ignored: IgnoredSet) -> None:
    """Raises ``Inexact`` where a parser may wait for two things before which different text is ignored (``Lexing.placed``)."""
    lexing = grammar.lexing
    assert lexing is not None
    made = _Places(grammar, ignored)
    places, count = made.places, len(lexing.terminals)
    for place, terms in enumerate(places.terms):
        if terms:
            places.ignored[place] = [count + made.number_of(made.before.get(place, frozenset()))]
    found = Adjacency(places, len(grammar.rules)).states()
    if found is None:
        raise Inexact("it is too large to tell whether its modes ignore the same text wherever they meet")
    for last, waits in found:
        if (waits >> count).bit_count() > 1:
            where = f"behind {lexing.names[last]}" if lexing.names and last >= 0 else "at some place"
            raise Inexact(
                f"what it ignores depends on the mode of its lexer, and {where} two modes wait together: let a mode begin and end with "
                "terminals of its own"
            )


class _Places:
    """The places of a grammar, and by place the ignored terminals that may come before what is waited for there."""

    def __init__(self, grammar: Grammar, ignored: IgnoredSet) -> None:
        self.places = Places()
        self.before: dict[int, IgnoredSet] = {}
        self._ignored = ignored
        assert grammar.lexing is not None
        self._terminals = {terminal.key: number for number, terminal in enumerate(grammar.lexing.terminals)}
        self._numbers: dict[IgnoredSet, int] = {}
        # The empty text is a rule, since nothing but a call leads on without a terminal.
        self._empty = len(grammar.rules) + 1
        for body in grammar.rules:
            check_time()
            self.places.starts.append(self._rule(body))
        start = self.places.add()
        self._between(Seq((Ref(grammar.start),)), start, end := self.places.add())
        self.places.terms[end].append((_END, self.places.add(final=True)))
        self.places.starts += [start, self.places.add(final=True)]

    def number_of(self, ignored: IgnoredSet) -> int:
        return self._numbers.setdefault(ignored, len(self._numbers))

    def _rule(self, body: Body | None) -> int:
        start = self.places.add()
        if isinstance(body, Repeated):
            low = min(body.min, _MANY)
            repeated = self.places.add_repeated(body.first, body.rest, low)
            assert repeated is not None
            return repeated
        end = self.places.add(final=True)
        if isinstance(body, (Term, Ref, Seq, Choice, Switch)):
            self._between(body, start, end)
        elif body is not None:
            assert not isinstance(body, Indented)
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
        else:
            # An import, or words, of which each leads to a case.
            self.places.terms[start].append((-1, behind := self.places.add()))
            for case in expr.cases if isinstance(expr, Switch) else (EMPTY,):
                self._between(case, behind, end)

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
