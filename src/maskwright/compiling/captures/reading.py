"""The one reading of a text that counts, and what it captures."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from maskwright.compiling.captures.chart import MARK, Chart, Item
from maskwright.compiling.captures.productions import Leaf, Symbol
from maskwright.ir.grammar import Capture
from maskwright.regular.dfa import matcher as text_matcher

Task: TypeAlias = tuple[str, Any, int, int, frozenset[int]]
"""What is to be walked through: kind, symbol, columns (of a leaf: places), and rules that it may not be alone."""
NONE: frozenset[int] = frozenset()


class Reading(Chart):
    """A chart, and the way through it that counts."""

    def captures(self, begun: bool) -> Iterator[tuple[Capture, bytes]]:
        """In the order in which they end."""
        start = self.rules.grammar.start
        size = len(self.data)
        at_end = [i for i, c in enumerate(self.columns) if size in (c.pos, c.blank_to)]
        wholes = [(root, i) for i in at_end for root in self.roots if (start, root) in self.columns[i].facts]
        if wholes:
            # A lexer has a column of its own for what it reads: between them, the first alternative counts as well.
            root, index = min(wholes, key=lambda whole: self.first_way(start, *whole))
            yield from self.events([("rule", start, root, index, NONE)])
            return
        for index in at_end:
            if index in self.roots and start in self.rules.empty:
                yield from self.events([("empty", start, 0, 0, NONE)])
                return
        open_items: list[tuple[Item, int]] = []
        for _, index, symbol in sorted(self.going_on, key=lambda each: each[:2]):
            if not begun and not (isinstance(symbol, Leaf) and symbol.kind == "import"):
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

    def first_way(self, rule: int, origin: int, index: int) -> int:
        """The first production of a rule that reads all between two columns."""
        productions, items = self.rules.productions, self.columns[index].items
        whole = (n for n in self.rules.by_left[rule] if (n, len(productions[n][1]), origin) in items)
        return next(whole, len(productions))

    def read_on(self, index: int) -> list[tuple[Item, int]]:
        """Items of a column that have read something and can go on, the innermost ones first."""
        productions = self.rules.productions
        return [
            (item, index) for item in self.columns[index].items if 0 < item[1] < len(productions[item[0]][1])
        ]

    def open_tasks(self, item: Item, index: int) -> list[Task]:
        """What is done around an unfinished item, last things first."""
        tasks: list[Task] = []
        caller: Item | None = item
        while caller is not None:
            left = self.rules.productions[caller[0]][0]
            # Inner ones stand behind, so they go below.
            tasks += reversed(self.children(caller, index) or [])
            index = caller[2]
            caller = self.columns[index].callers.get(left)
        return tasks

    def events(self, tasks: list[Task]) -> Iterator[tuple[Capture, bytes]]:
        """Walk through the parts of a reading; ``tasks`` is a stack."""
        grammar = self.rules.grammar
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
                tasks.append(("end", what, 0, 0, NONE))
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
        rules = self.rules
        if kind == "empty":
            return [("empty", symbol, 0, 0, NONE) for symbol in rules.productions[rules.empty[rule]][1]]
        for number in rules.by_left[rule]:
            right = rules.productions[number][1]
            item = (number, len(right), origin)
            if item in self.columns[index].items:
                found = self.children(item, index, around)
                if found is not None:
                    return found
        return []

    def alone(self, origin: int, index: int, around: frozenset[int]) -> set[int]:
        """The rules between two columns that have a reading with none of those ``around`` them alone: a fixed point."""
        rules, column = self.rules, self.columns[index]
        found: set[int] = set()
        changed = True
        while changed:
            changed = False
            for rule, began in column.facts:
                if began != origin or rule in found or rule in around:
                    continue
                wholes = ((n, len(rules.productions[n][1]), origin) for n in rules.by_left[rule])
                if any(
                    w in column.items and self.children(w, index, NONE, found) is not None for w in wholes
                ):
                    found.add(rule)
                    changed = True
        return found

    def children(
        self, item: Item, index: int, around: frozenset[int] = NONE, alone: set[int] | None = None
    ) -> list[Task] | None:
        """What an item has read, each part as long as it can be from the left; None when it would contain itself.

        ``alone``: the rules that it may consist of alone."""
        number, dot, origin = item
        left = self.rules.productions[number][0]
        # Columns from which the rest can be read, by how many symbols come before.
        inside = around | {left} if left in self.rules.cyclic else NONE
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
            if isinstance(symbol, Leaf):
                parts.append(("leaf", symbol, self.columns[at].blank_to, self.columns[end].pos, NONE))
            else:
                whole = at == origin and end == index
                parts.append(("rule" if end != at else "empty", symbol, at, end, inside if whole else NONE))
            at = end
        return parts
