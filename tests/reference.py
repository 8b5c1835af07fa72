"""The slow, obvious meaning of a grammar: the oracle that the engine is compared with.

The intermediate representation is expanded to a plain context-free grammar whose terminals are
byte languages, and read by an Earley recogniser, one byte at a time.  Nothing is shared with the
engine except the classes that describe grammars.
"""

from __future__ import annotations

from collections.abc import Callable

from reference_lexemes import (
    INFINITY,
    Language,
    lexeme_language,
    name_language,
    other_language,
    word_language,
)

from maskwright.ir.grammar import (
    Body,
    Choice,
    Expr,
    Grammar,
    Keyset,
    Record,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Words,
)


class Column:
    """An Earley set: what the text before this position can be the beginning of."""

    def __init__(self, before: list[Column]) -> None:
        self.path = [*before, self]
        self.items: set[tuple] = set()  # (production, dot, origin, state within the lexeme at dot)
        self.waiting: dict[int, list[tuple]] = {}
        self.scanning: list[tuple] = []
        self.complete = False
        self.after: dict[int, Column | None] = {}


class Oracle:
    """Viable prefixes, complete sentences and shortest completions of a grammar."""

    def __init__(self, grammar: Grammar) -> None:
        self.productions: list[tuple[int, tuple]] = []
        self.count = len(grammar.rules)
        self.start = grammar.start
        self.languages: set[Language] = set()
        for index, body in enumerate(grammar.rules):
            self.expand(index, body)
        self.remove_unproductive()
        self.costs = self.shortest_symbols()
        self.nullable = {s for s, cost in self.costs.items() if cost == 0}
        self.by_left: dict[int, list[int]] = {}
        for number, (left, _) in enumerate(self.productions):
            self.by_left.setdefault(left, []).append(number)
        self.empty = self.column([], [(p, 0, 0, None) for p in self.by_left.get(self.start, ())])

    # --- expansion

    def symbol(self) -> int:
        self.count += 1
        return self.count - 1

    def add(self, left: int, *right: object) -> None:
        self.productions.append((left, right))

    def language(self, kind: Callable[..., Language], *content: object) -> Language:
        language = kind(*content)
        self.languages.add(language)
        return language

    def expand(self, left: int, body: Body | None) -> None:
        if isinstance(body, Repeated):
            self.expand_repeated(left, body)
        elif isinstance(body, Record):
            self.expand_record(left, body)
        elif body is not None:
            self.add(left, self.expression(body))

    def expression(self, expr: Expr) -> object:
        if isinstance(expr, Ref):
            return expr.rule
        left = self.symbol()
        if isinstance(expr, Seq):
            self.add(left, *(self.expression(item) for item in expr.items))
        elif isinstance(expr, Choice):
            for item in expr.items:
                self.add(left, self.expression(item))
        elif isinstance(expr, Switch):
            cases = [self.expression(case) for case in expr.cases]
            if isinstance(expr.lexemes, Words):
                for word, tag in expr.lexemes.items():
                    self.add(left, self.language(word_language, word), cases[tag])
            else:
                for lexeme, case in zip(expr.lexemes, cases, strict=True):
                    self.add(left, self.language(lexeme_language, lexeme), case)
        elif isinstance(expr.lexeme, Words):
            for word, _ in expr.lexeme.items():
                self.add(left, self.language(word_language, word))
        elif isinstance(expr.lexeme, Keyset):
            for name in expr.lexeme.names:
                self.add(left, self.language(name_language, name, expr.lexeme.spelling))
            if expr.lexeme.other is not None:
                self.add(left, self.language(other_language, expr.lexeme.other, expr.lexeme.names))
        else:
            assert isinstance(expr, Term)
            return self.language(lexeme_language, expr.lexeme)
        return left

    def expand_repeated(self, left: int, body: Repeated) -> None:
        symbol = left
        for count in range(body.min if body.max is None else body.max):
            if count >= body.min:
                self.add(symbol)
            behind = self.symbol()
            self.add(symbol, body.rest if count else body.first, behind)
            symbol = behind
        if body.max is None:
            if body.min == 0:
                self.add(symbol)
                behind = self.symbol()
                self.add(symbol, body.first, behind)
                symbol = behind
            self.add(symbol, body.rest, symbol)
        if body.max is None or body.min <= body.max:
            self.add(symbol)

    def expand_record(self, left: int, body: Record) -> None:
        """One symbol for each place, number of members, and set of obligations that are missing."""
        opening, colon, comma, close = map(self.expression, (body.open, body.colon, body.comma, body.close))
        names = tuple(m.name for m in body.members)
        symbols: dict = {}
        work: list = []

        def symbol(*place: object) -> int:
            if place not in symbols:
                symbols[place] = self.symbol()
                work.append(place)
            return symbols[place]

        self.add(left, opening, symbol(0, 0, (1 << body.obligations) - 1))
        while work:
            i, count, missing = place = work.pop()
            here = symbols[place]
            taken: list = []
            if i < len(names):
                member = body.members[i]
                if not member.required:
                    self.add(here, symbol(i + 1, count, missing & ~member.absent))
                key = self.language(name_language, member.name, body.spelling)
                taken = [((key, colon), value, i + 1) for value in member.values]
            else:
                if missing == 0 and body.min <= count:
                    self.add(here, close if count else self.expression(body.close_empty))
                for other in body.others:
                    before_value = (
                        ()
                        if other.keys is None
                        else (self.language(other_language, other.keys, names), colon)
                    )
                    taken += [(before_value, value, i) for value in other.values]
            for before_value, (rule, obligations), after in taken:
                if body.max is None:
                    more = min(count + 1, max(body.min, 1))
                elif count < body.max:
                    more = count + 1
                else:
                    continue
                before = [comma] if count else []
                self.add(here, *before, *before_value, rule, symbol(after, more, missing & ~obligations))

    # --- properties of symbols

    def remove_unproductive(self) -> None:
        costs = self.shortest_symbols()
        self.productions = [p for p in self.productions if self.cost(p[1], costs) < INFINITY]

    def cost(self, right: tuple, costs: dict) -> float:
        return sum(costs.get(symbol, INFINITY) for symbol in right)

    def shortest_symbols(self) -> dict:
        """The length of the shortest text of every symbol that has one."""
        costs: dict = {x: x.shortest_from(x.start) for x in self.languages}
        changed = True
        while changed:
            changed = False
            for left, right in self.productions:
                cost = self.cost(right, costs)
                if cost < costs.get(left, INFINITY):
                    costs[left] = cost
                    changed = True
        return costs

    # --- recognition

    def column(self, before: list[Column], work: list[tuple]) -> Column:
        column = Column(before)
        here = len(before)
        while work:
            item = work.pop()
            if item in column.items:
                continue
            column.items.add(item)
            number, dot, origin, _ = item
            left, right = self.productions[number]
            if dot == len(right):
                column.complete = column.complete or (left == self.start and origin == 0)
                if origin < here:  # an empty text needs nobody to be told: see nullable below
                    work += [(n, d + 1, o, None) for n, d, o, _ in before[origin].waiting.get(left, ())]
            elif isinstance(right[dot], Language):
                column.scanning.append(item)
            else:
                column.waiting.setdefault(right[dot], []).append(item)
                work += [(n, 0, here, None) for n in self.by_left.get(right[dot], ())]
                if right[dot] in self.nullable:
                    work.append((number, dot + 1, origin, None))
        return column

    def step(self, column: Column, byte: int) -> Column | None:
        if byte not in column.after:
            kernel = []
            for number, dot, origin, state in column.scanning:
                language = self.productions[number][1][dot]
                after = language.step(language.start if state is None else state, byte)
                if after is not None:
                    kernel.append((number, dot, origin, after))
                    if language.accepts(after):
                        kernel.append((number, dot + 1, origin, None))
            column.after[byte] = self.column(column.path, kernel) if kernel else None
        return column.after[byte]

    def read(self, data: bytes, column: Column | None = None) -> Column | None:
        """Where ``data`` leads; None when no sentence begins with it."""
        column = column or self.empty
        for byte in data:
            column = self.step(column, byte) if column is not None else None
        return column

    def is_complete(self, data: bytes) -> bool:
        column = self.read(data)
        return column is not None and column.complete

    def shortest(self, column: Column) -> float:
        """The fewest bytes that make the text before ``column`` a sentence."""
        behind: dict[tuple[int, int], float] = {(0, self.start): 0}  # after a symbol begun at a column

        def rest(item: tuple) -> float:
            number, dot, origin, _ = item
            left, right = self.productions[number]
            return self.cost(right[dot + 1 :], self.costs) + behind.get((origin, left), INFINITY)

        changed = True
        while changed:
            changed = False
            for index, passed in enumerate(column.path):
                for symbol, items in passed.waiting.items():
                    best = min(map(rest, items))
                    if best < behind.get((index, symbol), INFINITY):
                        behind[index, symbol] = best
                        changed = True
        best = 0.0 if column.complete else INFINITY
        for item in column.scanning:
            language = self.productions[item[0]][1][item[1]]
            state = language.start if item[3] is None else item[3]
            best = min(best, language.shortest_from(state) + rest(item))
        return best

    def viable_bytes(self, column: Column) -> list[int]:
        return [byte for byte in range(256) if self.step(column, byte) is not None]
