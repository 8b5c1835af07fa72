"""All readings of one text, by Earley's algorithm."""

from __future__ import annotations

from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import TypeAlias

from maskwright._core import Matcher
from maskwright.base.deadline import check_time
from maskwright.compiling.captures.productions import Leaf, Productions, Symbol

MARK = b"\xff"
"""Stands for a token without bytes: no byte of UTF-8."""
Item: TypeAlias = tuple[int, int, int]
"""Production, how many of its symbols were read, column in which it began."""


Kernel: TypeAlias = "dict[Item, list[tuple[int, Symbol]]]"
"""Items, with the ways that led to them: the column before the last symbol, and that symbol."""


@dataclass(slots=True)
class Column:
    """A place of one reading: an Earley set."""

    pos: int
    limit: int
    """Where the text ends as far as the lexer sees it: at a token that stands for itself."""
    items: Kernel = field(default_factory=dict)
    waiting: dict[Symbol, list[Item]] = field(default_factory=dict)
    callers: dict[int, Item | None] = field(default_factory=dict)
    """By rule: the item for which it was first looked for here."""
    facts: set[tuple[int, int]] = field(default_factory=set)
    """Rules that end here, and the columns in which they began."""
    blank_to: int = 0
    """Where ignored text behind it ends."""


class Chart:
    """All readings of one text."""

    def __init__(self, rules: Productions, data: bytes, units: dict[int, tuple[int, int]]) -> None:
        self.rules = rules
        self.data = data
        self.units = units
        self.columns: list[Column] = []
        self.roots: set[int] = set()
        """Where nothing was read: a column for each way to go on."""
        self.known: dict[object, int] = {}
        self.queue: list[tuple[int, int]] = []
        self.going_on: list[tuple[int, int, Symbol | None]] = []
        """(where it began, column, what): lexemes that could be longer than the text."""
        self.matched: dict[tuple[Leaf, int, int], tuple[list[int], bool]] = {}
        self.lexing = lexing = rules.grammar.lexing
        self.ignored = None if lexing is None else frozenset(lexing.ignored)
        in_sets = frozenset().union(*rules.tokens)
        self.cuts = [at for at, (token, _) in units.items() if token in in_sets and data[at : at + 1] != MARK]
        self.reach(0, {}, None)
        while self.queue:
            check_time()
            self.scan(heappop(self.queue)[1])

    def reach(self, pos: int, kernel: Kernel, limit: int | None) -> None:
        """A column for a place; where nothing was begun (``limit`` None), one for each token that may end it."""
        if self.ignored is None:
            self.put(pos, pos, kernel, len(self.data))
            return
        limits = [limit] if limit is not None else [*(c for c in self.cuts if c > pos), len(self.data)]
        if limit is None and pos in self.cuts:
            limits.insert(0, pos)
        for each in limits:
            # Readings that were split in different ways stay apart: what may follow decides how the text goes on.
            self.put((pos, each, frozenset(kernel)), pos, kernel, each)

    def put(self, key: object, pos: int, kernel: Kernel, limit: int) -> None:
        index = self.known.get(key)
        if index is None:
            index = self.known[key] = len(self.columns)
            self.columns.append(Column(pos, limit, blank_to=pos))
            heappush(self.queue, (pos, index))
        items = self.columns[index].items
        for item, ways in kernel.items():
            known = items.setdefault(item, [])
            known += [way for way in ways if way not in known]

    # --- Earley's algorithm

    def close(self, index: int) -> None:
        rules, column = self.rules, self.columns[index]
        start = rules.grammar.start
        if not column.items:
            self.roots.add(index)
            column.callers[start] = None
            column.items |= {(n, 0, index): [] for n in rules.by_left.get(start, ())}
        order = list(column.items)

        def add(item: Item, before: int, symbol: Symbol) -> None:
            ways = column.items.get(item)
            if ways is None:
                column.items[item] = [(before, symbol)]
                order.append(item)
            elif (before, symbol) not in ways:
                ways.append((before, symbol))

        for item in order:
            number, dot, origin = item
            left, right = rules.productions[number]
            if dot == len(right):
                if origin == index:
                    continue  # an empty text: see below
                column.facts.add((left, origin))
                for n, d, o in self.columns[origin].waiting.get(left, ()):
                    add((n, d + 1, o), origin, left)
                continue
            symbol = right[dot]
            column.waiting.setdefault(symbol, []).append(item)
            if isinstance(symbol, int):
                if symbol not in column.callers:
                    column.callers[symbol] = item
                for n in rules.by_left.get(symbol, ()):
                    if (n, 0, index) not in column.items:
                        column.items[n, 0, index] = []
                        order.append((n, 0, index))
                if symbol in rules.empty:
                    add((number, dot + 1, origin), index, symbol)

    def scan(self, index: int) -> None:
        self.close(index)
        column = self.columns[index]
        leaves = [symbol for symbol in column.waiting if isinstance(symbol, Leaf)]
        at = column.pos
        while True:
            for leaf in leaves:
                if leaf.kind == "token":
                    self.scan_token(index, leaf, at)
                elif at < column.limit and (leaf.kind == "import" or self.ignored is None):
                    ends, more = self.ends(leaf, at, column.limit)
                    for end in ends:
                        self.advance(index, leaf, end, column.limit)
                    if more:
                        self.going_on.append((at, index, leaf))
            if self.ignored is None or at >= column.limit:
                return
            behind = self.scan_terminal(index, leaves, at)
            if behind is None:
                return
            at = column.blank_to = behind

    def scan_token(self, index: int, leaf: Leaf, at: int) -> None:
        token, end = self.units.get(at, (-1, at))
        column = self.columns[index]
        marked = self.data[at : at + 1] == MARK
        if token in self.rules.tokens[leaf.number] and (self.ignored is None or marked or at == column.limit):
            self.advance(index, leaf, end, None if not marked else column.limit)

    def scan_terminal(self, index: int, leaves: list[Leaf], at: int) -> int | None:
        """Read the longest match; where ignored text ends, if that is what it is."""
        assert self.ignored is not None
        column = self.columns[index]
        allowed = {leaf.number for leaf in leaves if leaf.kind == "terminal"} | self.ignored
        candidates = [(rank, Leaf("terminal", rank)) for rank in sorted(allowed)]
        none = len(self.rules.ranks)
        best, winner = at, none
        early = set(self.lexing.early) if self.lexing is not None else ()
        first = min(
            ((self.ends(leaf, at, column.limit)[0][:1], rank) for rank, leaf in candidates if rank in early),
            key=lambda each: (each[0] or [len(self.data) + 1], each[1]),
            default=None,
        )
        if first is not None and first[0]:
            self.advance(index, Leaf("terminal", first[1]), first[0][0], column.limit)
            return None
        for rank, leaf in candidates:
            ends, more = self.ends(leaf, at, column.limit)
            if ends and ends[-1] > best:
                best, winner = ends[-1], rank
            if more:
                self.going_on.append((at, index, leaf if leaf in column.waiting else None))
        for owner, leaf in self.rules.refused:
            if owner in allowed and self.refused_to(owner, leaf, allowed, at, column.limit) > best:
                return None
        if winner == none:
            return None
        if winner in self.ignored:
            return best
        self.advance(index, Leaf("terminal", winner), best, column.limit)
        return None

    def refused_to(self, owner: int, leaf: Leaf, allowed: set[int], at: int, limit: int) -> int:
        """Where the longest text ends that a terminal refuses, -1 without any; see ``maskwright.regular.refusals``."""
        matches = self.ends(Leaf("terminal", owner), at, limit)[0]
        others = [
            (end, rank)
            for rank in allowed
            if rank != owner
            for end in self.ends(Leaf("terminal", rank), at, limit)[0]
        ]
        for refused in reversed(self.ends(leaf, at, limit)[0]):
            last = max((end for end in matches if end < refused), default=refused)
            if not any(last < end < refused or (end == last and rank < owner) for end, rank in others):
                return refused
        return -1

    def ends(self, leaf: Leaf, at: int, limit: int) -> tuple[list[int], bool]:
        """Where matches of a lexeme or an import end, and whether the text could be the beginning of another one."""
        known = self.matched.get((leaf, at, limit))
        if known is None:
            if leaf.kind != "import":
                ends, more = self.rules.automaton(leaf).ends(self.data, at, limit)
            else:
                ends, more = [], True
                inner = Matcher(self.rules.core(leaf.number))
                for i in range(at, limit):
                    if not inner.accept_bytes(self.data[i : i + 1]):
                        more = False
                        break
                    if inner.is_accepting:
                        ends.append(i + 1)
                # What could not be longer is done.
                more = more and any(inner.longest_prefix(bytes([byte])) for byte in range(256))
            known = self.matched[leaf, at, limit] = ends, more and limit == len(self.data)
        return known

    def advance(self, index: int, leaf: Leaf, end: int, limit: int | None) -> None:
        items = self.columns[index].waiting[leaf]
        self.reach(end, {(n, d + 1, o): [(index, leaf)] for n, d, o in items}, limit)
