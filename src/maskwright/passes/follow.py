"""Which terminals of a grammar's lexer may come directly behind which others."""

from __future__ import annotations

from maskwright.grammar import Body, Choice, Expr, Grammar, Lexeme, Ref, Repeated, Seq, Term


def follow_pairs(grammar: Grammar) -> list[list[int]]:
    """By terminal (its rank), the terminals behind it in some sentence, sorted; ignored terminals do not count.

    The grammar is pruned and has a ``lexing``.
    """
    assert grammar.lexing is not None
    follow = _Follow(grammar)
    follow.settle()
    return [sorted(follow.behind.get(rank, ())) for rank in range(len(grammar.lexing.terminals))]


class _Follow:
    """First and last terminals of every rule, and the pairs, to a fixed point."""

    def __init__(self, grammar: Grammar) -> None:
        assert grammar.lexing is not None
        self.rules = grammar.rules
        self.ranks = {terminal.key: rank for rank, terminal in enumerate(grammar.lexing.terminals)}
        self.ends = [_Ends(False, frozenset(), frozenset()) for _ in grammar.rules]
        self.behind: dict[int, set[int]] = {}

    def settle(self) -> None:
        changed = True
        while changed:
            changed = False
            for index in range(len(self.rules) - 1, -1, -1):
                body = self.rules[index]
                ends = self.body(body) if body is not None else self.ends[index]
                if ends != self.ends[index]:
                    self.ends[index] = ends
                    changed = True

    def body(self, body: Body) -> _Ends:
        if isinstance(body, Repeated):
            first, rest = self.ends[body.first], self.ends[body.rest]
            self.pair(first.last | rest.last, rest.first)
            more = rest if first.nullable else _Ends(True, frozenset(), rest.last)
            nullable = body.min == 0 or (first.nullable and rest.nullable)
            return _Ends(nullable, first.first | more.first, first.last | rest.last)
        if isinstance(body, (Term, Ref, Seq, Choice)):
            return self.expression(body)
        # Records have lexemes of their own, which match in every possible way.
        return _Ends(False, frozenset(), frozenset())

    def expression(self, expr: Expr) -> _Ends:
        if isinstance(expr, Term):
            rank = self.ranks.get(expr.lexeme.key) if isinstance(expr.lexeme, Lexeme) else None
            alone = frozenset(() if rank is None else (rank,))
            return _Ends(False, alone, alone)
        if isinstance(expr, Ref):
            return self.ends[expr.rule]
        parts = [self.expression(item) for item in expr.items]
        if isinstance(expr, Choice):
            return _Ends(
                any(part.nullable for part in parts),
                frozenset().union(*(part.first for part in parts)),
                frozenset().union(*(part.last for part in parts)),
            )
        whole = _Ends(True, frozenset(), frozenset())
        for part in parts:
            self.pair(whole.last, part.first)
            whole = _Ends(
                whole.nullable and part.nullable,
                whole.first | part.first if whole.nullable else whole.first,
                part.last | whole.last if part.nullable else part.last,
            )
        return whole

    def pair(self, before: frozenset[int], behind: frozenset[int]) -> None:
        for rank in before if behind else ():
            self.behind.setdefault(rank, set()).update(behind)


class _Ends:
    __slots__ = ("first", "last", "nullable")

    def __init__(self, nullable: bool, first: frozenset[int], last: frozenset[int]) -> None:
        self.nullable = nullable
        self.first = first
        self.last = last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Ends) and (
            (self.nullable, self.first, self.last) == (other.nullable, other.first, other.last)
        )
