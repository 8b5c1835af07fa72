"""What was captured of a text: the texts of rules that have a name (``grammar.Capture``).

Captures are no part of a state, so masks know nothing of them: a text is read again when somebody asks.  This is
Earley's algorithm over the rules, with the engine's automata for lexemes.  Of several readings, one counts:

- of a complete text, one that ends with it; else one that goes on: a lexeme that can still be longer is not done, and a
  rule is done when nothing can be added to it, or when something behind it was read;
- of alternatives, the one written first; in it, the first part is as long as it can be, then the second, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, TypeAlias

from maskwright._core import AutomatonHandle, CompiledCore, Matcher
from maskwright.deadline import check_time, deadline
from maskwright.dfa import matcher as text_matcher
from maskwright.errors import GrammarError
from maskwright.grammar import (
    Body,
    Capture,
    Choice,
    Grammar,
    Import,
    Lexeme,
    Ref,
    Seq,
    Term,
    Tokens,
)

MARK = b"\xff"
"""Stands for a token without bytes: no byte of UTF-8."""


@dataclass(frozen=True, slots=True)
class _Leaf:
    """A terminal of the lexer (its rank), another lexeme, a token or an import."""

    kind: str
    number: int


Symbol: TypeAlias = "int | _Leaf"
Item: TypeAlias = tuple[int, int, int]
"""Production, how many of its symbols were read, column in which it began."""


Task: TypeAlias = tuple[str, Any, int, int, frozenset[int]]
"""What is to be walked through: kind, symbol, columns (of a leaf: places), and rules that it may not be alone."""
_NONE: frozenset[int] = frozenset()


Kernel: TypeAlias = "dict[Item, list[tuple[int, Symbol]]]"
"""Items, with the ways that led to them: the column before the last symbol, and that symbol."""


@dataclass(slots=True)
class _Column:
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


class CaptureReader:
    """Reads texts of one grammar again.

    ``automaton`` makes that of a lexeme; ``part`` what an import is compiled to; ``token_ids`` says which ids tokens are.
    """

    def __init__(
        self,
        grammar: Grammar,
        automaton: Callable[[Lexeme], AutomatonHandle],
        part: Callable[[Import], CompiledCore],
        token_ids: Callable[[Tokens], list[int]],
        max_seconds: float = 0,
    ) -> None:
        self.grammar = grammar
        self.make_automaton = automaton
        self.make_part = part
        self.token_ids = token_ids
        self.max_seconds = max_seconds
        self.productions: list[tuple[int, tuple[Symbol, ...]]] = []
        self.lexemes: list[Lexeme] = []
        self.automata: dict[_Leaf, AutomatonHandle] = {}
        self.tokens: list[frozenset[int]] = []
        self.parts: list[Import] = []
        self.cores: dict[int, CompiledCore] = {}
        self.leaves: dict[object, _Leaf] = {}
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
        self.lists = {c.name for each in grammar.captures.values() for c in each if c.append}
        # What a terminal refuses is a match where it may come, of no terminal.
        self.refused: list[tuple[int, _Leaf]] = []
        if lexing is not None:
            for owner, language in lexing.refused:
                lexeme = Lexeme(("refused", language), language)
                self.refused.append(
                    (owner, self.leaf("lexeme", ("refused", lexeme.key), self.lexemes, lexeme))
                )

    # --- the grammar as productions

    def add_rule(self, left: int, body: Body | None) -> None:
        items = body.items if isinstance(body, Choice) else () if body is None else (body,)
        for item in items:
            parts = item.items if isinstance(item, Seq) else (item,)
            self.productions.append((left, tuple(self.symbol(part) for part in parts)))

    def symbol(self, expr: Body) -> Symbol:
        if isinstance(expr, Ref):
            return expr.rule
        if isinstance(expr, Import):
            return self.leaf("import", ("import", expr.key), self.parts, expr)
        if isinstance(expr, Term):
            return self.term(expr)
        if not isinstance(expr, (Seq, Choice)):
            raise GrammarError(f"captures are not supported next to {type(expr).__name__}")
        self.count += 1
        left = self.count - 1
        self.add_rule(left, expr)
        return left

    def term(self, term: Term) -> _Leaf:
        lexeme = term.lexeme
        if isinstance(lexeme, Tokens):
            return self.leaf("token", lexeme, self.tokens, frozenset(self.token_ids(lexeme)))
        if not isinstance(lexeme, Lexeme):
            raise GrammarError(f"captures are not supported next to {type(lexeme).__name__}")
        rank = self.ranks.get(lexeme.key)
        if rank is not None:
            return _Leaf("terminal", rank)
        return self.leaf("lexeme", ("lexeme", lexeme.key), self.lexemes, lexeme)

    def leaf(self, kind: str, key: object, table: list[Any], content: object) -> _Leaf:
        if key not in self.leaves:
            self.leaves[key] = _Leaf(kind, len(table))
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

    # --- captures

    def read(
        self, pieces: Sequence[int | bytes], token_bytes: Callable[[int], bytes], begun: bool
    ) -> dict[str, bytes | list[bytes]]:
        """The captures of accepted tokens (ids, or bytes that were given as such).

        ``begun``: whether a lexeme may be under way.  Raises ``LimitError`` after ``max_seconds``.
        """
        data = bytearray()
        units: dict[int, tuple[int, int]] = {}
        for piece in pieces:
            text = piece if isinstance(piece, bytes) else token_bytes(piece)
            if not isinstance(piece, bytes):
                units[len(data)] = piece, len(data) + max(len(text), 1)
                text = text or MARK
            data += text
        found: dict[str, bytes | list[bytes]] = {}
        with deadline(self.max_seconds):
            for capture, text in _Chart(self, bytes(data), units).captures(begun):
                known = found.setdefault(capture.name, [])
                if isinstance(known, list) and capture.name in self.lists:
                    known.append(text)
                else:
                    found[capture.name] = text
        return found

    def automaton(self, leaf: _Leaf) -> AutomatonHandle:
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


class _Chart:
    """All readings of one text."""

    def __init__(self, reader: CaptureReader, data: bytes, units: dict[int, tuple[int, int]]) -> None:
        self.reader = reader
        self.data = data
        self.units = units
        self.columns: list[_Column] = []
        self.roots: set[int] = set()
        """Where nothing was read: a column for each way to go on."""
        self.known: dict[object, int] = {}
        self.queue: list[tuple[int, int]] = []
        self.going_on: list[tuple[int, int, Symbol | None]] = []
        """(where it began, column, what): lexemes that could be longer than the text."""
        self.matched: dict[tuple[_Leaf, int, int], tuple[list[int], bool]] = {}
        self.lexing = lexing = reader.grammar.lexing
        self.ignored = None if lexing is None else frozenset(lexing.ignored)
        in_sets = frozenset().union(*reader.tokens)
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
            self.columns.append(_Column(pos, limit, blank_to=pos))
            heappush(self.queue, (pos, index))
        items = self.columns[index].items
        for item, ways in kernel.items():
            known = items.setdefault(item, [])
            known += [way for way in ways if way not in known]

    # --- Earley's algorithm

    def close(self, index: int) -> None:
        reader, column = self.reader, self.columns[index]
        start = reader.grammar.start
        if not column.items:
            self.roots.add(index)
            column.callers[start] = None
            column.items |= {(n, 0, index): [] for n in reader.by_left.get(start, ())}
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
            left, right = reader.productions[number]
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
                for n in reader.by_left.get(symbol, ()):
                    if (n, 0, index) not in column.items:
                        column.items[n, 0, index] = []
                        order.append((n, 0, index))
                if symbol in reader.empty:
                    add((number, dot + 1, origin), index, symbol)

    def scan(self, index: int) -> None:
        self.close(index)
        column = self.columns[index]
        leaves = [symbol for symbol in column.waiting if isinstance(symbol, _Leaf)]
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

    def scan_token(self, index: int, leaf: _Leaf, at: int) -> None:
        token, end = self.units.get(at, (-1, at))
        column = self.columns[index]
        marked = self.data[at : at + 1] == MARK
        if token in self.reader.tokens[leaf.number] and (
            self.ignored is None or marked or at == column.limit
        ):
            self.advance(index, leaf, end, None if not marked else column.limit)

    def scan_terminal(self, index: int, leaves: list[_Leaf], at: int) -> int | None:
        """Read the longest match; where ignored text ends, if that is what it is."""
        assert self.ignored is not None
        column = self.columns[index]
        allowed = {leaf.number for leaf in leaves if leaf.kind == "terminal"} | self.ignored
        candidates = [(rank, _Leaf("terminal", rank)) for rank in sorted(allowed)]
        none = len(self.reader.ranks)
        candidates += [(none, leaf) for owner, leaf in self.reader.refused if owner in allowed]
        best, winner = at, none
        early = set(self.lexing.early) if self.lexing is not None else ()
        first = min(
            ((self.ends(leaf, at, column.limit)[0][:1], rank) for rank, leaf in candidates if rank in early),
            key=lambda each: (each[0] or [len(self.data) + 1], each[1]),
            default=None,
        )
        if first is not None and first[0]:
            self.advance(index, _Leaf("terminal", first[1]), first[0][0], column.limit)
            return None
        for rank, leaf in candidates:
            ends, more = self.ends(leaf, at, column.limit)
            if ends and ends[-1] > best:
                best, winner = ends[-1], rank
            if more and rank < none:
                self.going_on.append((at, index, leaf if leaf in column.waiting else None))
        if winner == none:
            return None
        if winner in self.ignored:
            return best
        self.advance(index, _Leaf("terminal", winner), best, column.limit)
        return None

    def ends(self, leaf: _Leaf, at: int, limit: int) -> tuple[list[int], bool]:
        """Where matches of a lexeme or an import end, and whether the text could be the beginning of another one."""
        known = self.matched.get((leaf, at, limit))
        if known is None:
            if leaf.kind != "import":
                ends, more = self.reader.automaton(leaf).ends(self.data, at, limit)
            else:
                ends, more = [], True
                inner = Matcher(self.reader.core(leaf.number))
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

    def advance(self, index: int, leaf: _Leaf, end: int, limit: int | None) -> None:
        items = self.columns[index].waiting[leaf]
        self.reach(end, {(n, d + 1, o): [(index, leaf)] for n, d, o in items}, limit)

    # --- the reading that counts

    def captures(self, begun: bool) -> Iterator[tuple[Capture, bytes]]:
        """In the order in which they end."""
        start = self.reader.grammar.start
        size = len(self.data)
        at_end = [i for i, c in enumerate(self.columns) if size in (c.pos, c.blank_to)]
        for index in at_end:
            for root in self.roots:
                if (start, root) in self.columns[index].facts:
                    yield from self.events([("rule", start, root, index, _NONE)])
                    return
            if index in self.roots and start in self.reader.empty:
                yield from self.events([("empty", start, 0, 0, _NONE)])
                return
        open_items: list[tuple[Item, int]] = []
        for _, index, symbol in sorted(self.going_on, key=lambda each: each[:2]):
            if not begun and not (isinstance(symbol, _Leaf) and symbol.kind == "import"):
                continue
            items = self.columns[index].waiting.get(symbol, ()) if symbol is not None else ()
            open_items = [(item, index) for item in items] or self.read_on(index)
            break
        for index in at_end if not open_items else ():
            open_items = self.read_on(index)
            if open_items:
                break
        if open_items:
            yield from self.events(self.open_tasks(*open_items[0]))

    def read_on(self, index: int) -> list[tuple[Item, int]]:
        """Items of a column that have read something and can go on, the innermost ones first."""
        productions = self.reader.productions
        return [
            (item, index) for item in self.columns[index].items if 0 < item[1] < len(productions[item[0]][1])
        ]

    def open_tasks(self, item: Item, index: int) -> list[Task]:
        """What is done around an unfinished item, last things first."""
        tasks: list[Task] = []
        caller: Item | None = item
        while caller is not None:
            left = self.reader.productions[caller[0]][0]
            # Inner ones stand behind, so they go below.
            tasks += reversed(self.children(caller, index) or [])
            index = caller[2]
            caller = self.columns[index].callers.get(left)
        return tasks

    def events(self, tasks: list[Task]) -> Iterator[tuple[Capture, bytes]]:
        """Walk through the parts of a reading; ``tasks`` is a stack."""
        grammar = self.reader.grammar
        frames: list[list[int]] = [[-1, -1, 0]]  # rule, first and last place of what is not blank
        blank = 0
        while tasks:
            task = tasks.pop()
            kind, what, first, last, around = task
            if kind == "leaf":
                if not blank:
                    frames[-1][1] = first if frames[-1][1] < 0 else frames[-1][1]
                    frames[-1][2] = last
            elif kind == "end":
                rule, first, last = frames.pop()
                blank -= rule == grammar.blank
                if first >= 0:
                    frames[-1][1] = first if frames[-1][1] < 0 else frames[-1][1]
                    frames[-1][2] = last
                for capture in grammar.captures.get(rule, ()):
                    yield capture, self.text(capture, first, last)
            else:
                frames.append([what, -1, 0])
                blank += what == grammar.blank
                tasks.append(("end", what, 0, 0, _NONE))
                tasks += reversed(self.parts(kind, what, first, last, around))

    def text(self, capture: Capture, first: int, last: int) -> bytes:
        data = self.data[first:last] if first >= 0 else b""
        if capture.parts is not None:
            # The first part is as short as it can be.
            text = data.decode()
            is_first, is_second = map(text_matcher, capture.parts)
            cut = next(i for i in range(len(text) + 1) if is_first(text[:i]) and is_second(text[i:]))
            data = (text[cut:] if capture.second else text[:cut]).encode()
        return data.replace(MARK, b"")

    def parts(self, kind: str, rule: int, origin: int, index: int, around: frozenset[int]) -> list[Task]:
        """The parts of a rule between two columns; ``around``: those that consist of it alone."""
        reader = self.reader
        if kind == "empty":
            return [("empty", symbol, 0, 0, _NONE) for symbol in reader.productions[reader.empty[rule]][1]]
        for number in reader.by_left[rule]:
            right = reader.productions[number][1]
            item = (number, len(right), origin)
            if item in self.columns[index].items:
                found = self.children(item, index, around)
                if found is not None:
                    return found
        return []

    def alone(self, origin: int, index: int, around: frozenset[int]) -> set[int]:
        """The rules between two columns that have a reading with none of those ``around`` them alone: a fixed point."""
        reader, column = self.reader, self.columns[index]
        found: set[int] = set()
        changed = True
        while changed:
            changed = False
            for rule, began in column.facts:
                if began != origin or rule in found or rule in around:
                    continue
                wholes = ((n, len(reader.productions[n][1]), origin) for n in reader.by_left[rule])
                if any(
                    w in column.items and self.children(w, index, _NONE, found) is not None for w in wholes
                ):
                    found.add(rule)
                    changed = True
        return found

    def children(
        self, item: Item, index: int, around: frozenset[int] = _NONE, alone: set[int] | None = None
    ) -> list[Task] | None:
        """What an item has read, each part as long as it can be from the left; None when it would contain itself.

        ``alone``: the rules that it may consist of alone."""
        number, dot, origin = item
        left = self.reader.productions[number][0]
        # Columns from which the rest can be read, by how many symbols come before.
        inside = around | {left} if left in self.reader.cyclic else _NONE
        if inside and alone is None:
            alone = self.alone(origin, index, inside)
        layers: list[dict[int, list[tuple[int, Symbol]]]] = []
        ends = {index}
        for d in range(dot, 0, -1):
            layer: dict[int, list[tuple[int, Symbol]]] = {}
            for end in ends:
                for before, symbol in self.columns[end].items.get((number, d, origin), ()):
                    if inside and before == origin and end == index and symbol not in (alone or ()):
                        if isinstance(symbol, int):
                            continue
                    layer.setdefault(before, []).append((end, symbol))
            layers.append(layer)
            ends = set(layer)
        if origin not in ends:
            return None
        at = origin
        parts: list[Task] = []
        for layer in reversed(layers):
            end, symbol = max(layer[at], key=lambda way: self.columns[way[0]].pos)
            if isinstance(symbol, _Leaf):
                parts.append(("leaf", symbol, self.columns[at].blank_to, self.columns[end].pos, _NONE))
            else:
                whole = at == origin and end == index
                parts.append(("rule" if end != at else "empty", symbol, at, end, inside if whole else _NONE))
            at = end
        return parts
