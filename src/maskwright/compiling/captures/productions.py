"""A grammar as productions, and what its leaves are matched with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from maskwright._core import AutomatonHandle, CompiledCore
from maskwright.errors import GrammarError
from maskwright.ir.grammar import Body, Choice, Grammar, Import, Lexeme, Ref, Repeated, Seq, Term, Tokens

MAX_REPETITIONS = 1000
"""Of a part with captures: each number of them has a production."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A terminal of the lexer (its rank), another lexeme, a token or an import."""

    kind: str
    number: int


Symbol: TypeAlias = "int | Leaf"


class Productions:
    """The rules of a grammar.

    ``automaton`` makes that of a lexeme; ``part`` what an import is compiled to; ``token_ids`` says which ids tokens are;
    ``is_nullable`` whether the empty text is one of an import's.
    """

    def __init__(
        self,
        grammar: Grammar,
        automaton: Callable[[Lexeme], AutomatonHandle],
        part: Callable[[Import], CompiledCore],
        token_ids: Callable[[Tokens], list[int]],
        is_nullable: Callable[[Import], bool],
    ) -> None:
        self.grammar = grammar
        self.make_automaton = automaton
        self.make_part = part
        self.token_ids = token_ids
        self.is_nullable = is_nullable
        self.optional: dict[Leaf, int] = {}
        self.productions: list[tuple[int, tuple[Symbol, ...]]] = []
        self.lexemes: list[Lexeme] = []
        self.automata: dict[Leaf, AutomatonHandle] = {}
        self.tokens: list[frozenset[int]] = []
        self.parts: list[Import] = []
        self.cores: dict[int, CompiledCore] = {}
        self.leaves: dict[object, Leaf] = {}
        lexing = grammar.lexing
        self.ranks = {} if lexing is None else {t.key: rank for rank, t in enumerate(lexing.terminals)}
        self.count = len(grammar.rules)
        for index, body in enumerate(grammar.rules):
            self.add_rule(index, body)
        self.by_left: dict[int, list[int]] = {}
        for number, (left, _) in enumerate(self.productions):
            self.by_left.setdefault(left, []).append(number)
        self.empty = self.empty_ways()
        self.cyclic = self.rules_alone()
        for number in range(len(self.productions) - 1, -1, -1):
            left, right = self.productions[number]
            if left not in self.cyclic and all(symbol in self.empty for symbol in right):
                self.empty[left] = number
        # What a terminal refuses is a match where it may come, of no terminal.
        self.refused: list[tuple[int, Leaf]] = []
        if lexing is not None:
            for owner, language in lexing.refused:
                lexeme = Lexeme(("refused", language), language)
                self.refused.append(
                    (owner, self.leaf("lexeme", ("refused", lexeme.key), self.lexemes, lexeme))
                )

    def add_rule(self, left: int, body: Body | None) -> None:
        items = body.items if isinstance(body, Choice) else () if body is None else (body,)
        for item in items:
            parts = item.items if isinstance(item, Seq) else (item,)
            self.productions.append((left, tuple(self.symbol(part) for part in parts)))

    def symbol(self, expr: Body) -> Symbol:
        if isinstance(expr, Ref):
            return expr.rule
        if isinstance(expr, Import):
            leaf = self.leaf("import", ("import", expr.key), self.parts, expr)
            return self.or_nothing(leaf) if self.is_nullable(expr) else leaf
        if isinstance(expr, Term):
            return self.term(expr)
        if isinstance(expr, Repeated):
            return self.repeated(expr)
        if not isinstance(expr, (Seq, Choice)):
            raise GrammarError(f"captures are not supported next to {type(expr).__name__}")
        left = self.new_rule()
        self.add_rule(left, expr)
        return left

    def or_nothing(self, leaf: Leaf) -> int:
        """A rule for a part that may be empty: a leaf reads something."""
        if leaf not in self.optional:
            self.optional[leaf] = rule = self.new_rule()
            self.productions += [(rule, (leaf,)), (rule, ())]
        return self.optional[leaf]

    def new_rule(self) -> int:
        self.count += 1
        return self.count - 1

    def repeated(self, body: Repeated) -> int:
        """What derives so many items: one rule for each number that must come, or may, and one for any number more."""
        last = max(body.min, 1) if body.max is None else body.max
        if last > MAX_REPETITIONS:
            raise GrammarError(f"captures are read in at most {MAX_REPETITIONS} repetitions, not in {last}")
        behind = self.new_rule()
        self.productions.append((behind, ()))
        if body.max is None:
            self.productions.append((behind, (body.rest, behind)))
        for number in range(last - 1, -1, -1):
            left = self.new_rule()
            if number >= body.min:
                self.productions.append((left, ()))
            self.productions.append((left, (body.rest if number else body.first, behind)))
            behind = left
        return behind

    def term(self, term: Term) -> Leaf:
        lexeme = term.lexeme
        if isinstance(lexeme, Tokens):
            return self.leaf("token", lexeme, self.tokens, frozenset(self.token_ids(lexeme)))
        if not isinstance(lexeme, Lexeme):
            raise GrammarError(f"captures are not supported next to {type(lexeme).__name__}")
        rank = self.ranks.get(lexeme.key)
        if rank is not None:
            return Leaf("terminal", rank)
        return self.leaf("lexeme", ("lexeme", lexeme.key), self.lexemes, lexeme)

    def leaf(self, kind: str, key: object, table: list[Any], content: object) -> Leaf:
        if key not in self.leaves:
            self.leaves[key] = Leaf(kind, len(table))
            table.append(content)
        return self.leaves[key]

    def empty_ways(self) -> dict[int, int]:
        """By rule that may be empty: a production by which it is, whose rules were known to be before."""
        found: dict[int, int] = {}
        changed = True
        while changed:
            changed = False
            for number, (left, right) in enumerate(self.productions):
                if left not in found and all(isinstance(s, int) and s in found for s in right):
                    found[left] = number
                    changed = True
        return found

    def rules_alone(self) -> frozenset[int]:
        """The rules that derive themselves alone."""
        after: dict[int, set[int]] = {}
        for left, right in self.productions:
            solid = [symbol for symbol in right if symbol not in self.empty]
            for symbol in right:
                if isinstance(symbol, int) and solid in ([], [symbol]):
                    after.setdefault(left, set()).add(symbol)
        found = set()
        for rule in after:
            reached, work = set(), [rule]
            while work:
                for target in after.get(work.pop(), ()):
                    if target not in reached:
                        reached.add(target)
                        work.append(target)
            if rule in reached:
                found.add(rule)
        return frozenset(found)

    def automaton(self, leaf: Leaf) -> AutomatonHandle:
        if leaf not in self.automata:
            lexing = self.grammar.lexing
            terminals = () if lexing is None else lexing.terminals
            lexeme = (terminals if leaf.kind == "terminal" else self.lexemes)[leaf.number]
            # Its own key: as a terminal of a lexer it is known under another one.
            self.automata[leaf] = self.make_automaton(Lexeme(("regular", lexeme.regular), lexeme.regular))
        return self.automata[leaf]

    def core(self, number: int) -> CompiledCore:
        if number not in self.cores:
            self.cores[number] = self.make_part(self.parts[number])
        return self.cores[number]
