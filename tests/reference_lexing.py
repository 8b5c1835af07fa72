"""What a contextual lexer with maximal munch means, straight from its definition (``grammar.Lexing``).

At every position the terminals that the grammar accepts are known, so the next terminal is determined: a text
falls into terminals in one way at most.  Nothing is incremental: whether a text can go on is found by
reading longer ones.
"""

from __future__ import annotations

from itertools import product

from reference_lexemes import lexeme_language

from maskwright.ir.grammar import Choice, Expr, Grammar, Lexeme, Ref, Repeated, Seq
from maskwright.ir.prune import prune


class LexingOracle:
    """The texts of a grammar with a lexer.  All its lexemes are terminals."""

    def __init__(self, grammar: Grammar) -> None:
        grammar = prune(grammar)
        assert grammar.lexing is not None
        self.terminals = grammar.lexing.terminals
        self.ignored = set(grammar.lexing.ignored)
        self.placed = grammar.lexing.placed
        self.early = set(grammar.lexing.early)
        self.ranks = {lexeme.key: rank for rank, lexeme in enumerate(self.terminals)}
        self.languages = [lexeme_language(lexeme) for lexeme in self.terminals]
        # A match of no terminal, where a terminal is accepted: it ranks behind them all.
        self.owners = [owner for owner, _ in grammar.lexing.refused]
        self.languages += [lexeme_language(Lexeme(("refused", r), r)) for _, r in grammar.lexing.refused]
        self.start = grammar.start
        self.productions: dict[object, list[tuple]] = {}
        for index, body in enumerate(grammar.rules):
            if isinstance(body, Repeated):
                most = body.min + 1 if body.max is None else body.max
                for count in range(body.min, most + 1):
                    items = [Ref(body.rest if i else body.first) for i in range(count)]
                    self.add(index, self.expression(Seq(tuple(items))))
                if body.max is None:
                    again = ("again", index)
                    self.add(again)
                    self.add(again, body.rest, again)
                    items = [Ref(body.rest if i else body.first) for i in range(max(body.min, 1))]
                    self.add(index, self.expression(Seq(tuple(items))), again)
            elif body is not None:
                self.add(index, self.expression(body))
        self.matches: dict[tuple[bytes, int], dict[int, int]] = {}

    def add(self, left: object, *right: object) -> None:
        self.productions.setdefault(left, []).append(right)

    def expression(self, expr: Expr) -> object:
        if isinstance(expr, Ref):
            return expr.rule
        if isinstance(expr, (Seq, Choice)):
            left = ("expression", len(self.productions))
            self.productions[left] = []
            items = [self.expression(item) for item in expr.items]
            if isinstance(expr, Seq):
                self.add(left, *items)
            for item in items if isinstance(expr, Choice) else ():
                self.add(left, item)
            return left
        assert isinstance(expr.lexeme, Lexeme)
        return ("terminal", self.ranks[expr.lexeme.key])

    # --- the grammar over terminals (Earley's algorithm, to a fixed point)

    def close(self, path: list[set], items: set) -> set:
        here = len(path)
        while True:
            new = set()
            for left, right, dot, origin in items:
                if dot == len(right):
                    for caller, body, at, begun in items if origin == here else path[origin]:
                        if at < len(body) and body[at] == left:
                            new.add((caller, body, at + 1, begun))
                elif right[dot] in self.productions:
                    new |= {(right[dot], r, 0, here) for r in self.productions[right[dot]]}
            if new <= items:
                return items
            items = items | new

    def step(self, path: list[set], terminal: int) -> list[set]:
        kernel = {
            (left, right, dot + 1, origin)
            for left, right, dot, origin in path[-1]
            if dot < len(right) and right[dot] == ("terminal", terminal)
        }
        return [*path, self.close(path, kernel)]

    def accepted(self, path: list[set]) -> set[int]:
        found = {right[dot] for _, right, dot, _ in path[-1] if dot < len(right)}
        return {s[1] for s in found if isinstance(s, tuple) and s[0] == "terminal"}

    def is_complete(self, path: list[set]) -> bool:
        return any(
            left == self.start and dot == len(right) and origin == 0 for left, right, dot, origin in path[-1]
        )

    # --- the lexer

    def longest(self, text: bytes, at: int) -> dict[int, int]:
        """By terminal: the end of its longest match at a position (absent: it does not match)."""
        known = self.matches.get((text, at))
        if known is None:
            known = self.matches[text, at] = {}
            for rank, language in enumerate(self.languages):
                state: object = language.start
                for end in range(at, len(text)):
                    state = language.step(state, text[end])
                    if state is None:
                        break
                    if language.accepts(state):
                        known[rank] = end + 1
        return known

    def firsts(self, text: bytes, at: int) -> dict[int, int]:
        """The same of terminals that end the others: their only match."""
        return {t: end for t, end in self.longest(text, at).items() if t in self.early}

    def refused(self, text: bytes, at: int, allowed: set[int]) -> dict[int, int]:
        """By what is refused: where the longest such text ends.  It is one only if the terminal's last match before is the
        best one that there is of the text."""
        count, found = len(self.terminals), {}
        for i, owner in enumerate(self.owners):
            for refused in self.ends(text, at, count + i) if owner in allowed else ():
                last = max((end for end in self.ends(text, at, owner) if end < refused), default=0)
                if not any(
                    last < end < refused or (end == last and t < owner)
                    for t in allowed - {owner}
                    for end in self.ends(text, at, t)
                ):
                    found[count + i] = refused
        return found

    def ends(self, text: bytes, at: int, rank: int) -> list[int]:
        """Where matches of a language that begin at a position end."""
        language = self.languages[rank]
        state: object = language.start
        found = []
        for end in range(at, len(text)):
            state = language.step(state, text[end])
            if state is None:
                break
            if language.accepts(state):
                found.append(end + 1)
        return found

    def tokens(self, text: bytes) -> list[tuple[int, int]] | None:
        """The terminals of a text of the language, each with its end; None for other texts."""
        path = [self.close([], {(self.start, right, 0, 0) for right in self.productions[self.start]})]
        at, found = 0, []
        while at < len(text):
            accepted = self.accepted(path)
            allowed = accepted if self.placed else accepted | self.ignored
            count = len(self.terminals)
            ends = {t: end for t, end in self.longest(text, at).items() if t in allowed}
            ends |= self.refused(text, at, allowed)
            if not ends:
                return None
            firsts = {t: first for t, first in self.firsts(text, at).items() if t in allowed}
            if firsts:
                ends = firsts
                at = min(ends.values())
            else:
                at = max(ends.values())
            terminal = min(t for t, end in ends.items() if end == at)
            if terminal >= count:
                return None
            found.append((terminal, at))
            if terminal not in self.ignored:
                path = self.step(path, terminal)
        return found if self.is_complete(path) else None

    def accepts(self, text: bytes) -> bool:
        return self.tokens(text) is not None

    def texts(self, alphabet: bytes, most: int) -> list[bytes]:
        """All texts of the language over an alphabet, up to a length."""
        return [
            text
            for length in range(most + 1)
            for text in (bytes(letters) for letters in product(alphabet, repeat=length))
            if self.accepts(text)
        ]
