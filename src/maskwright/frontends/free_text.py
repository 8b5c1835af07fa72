"""Free text until a mark: the automaton of Aho and Corasick (1975) as regular languages.

A scanner reads text and notices the first place where some pattern ends.  Its states are the prefixes of patterns;
text is free as long as no pattern has been completed.  Reading never goes on behind a completed
pattern, so free text and text up to each mark are disjoint languages of one automaton.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from maskwright.base.deadline import check_time, in_time
from maskwright.ir.grammar import Lexeme
from maskwright.regular.expressions import (
    ANY_CHAR,
    Chars,
    Machine,
    Regular,
    complement_ranges,
    intersect_ranges,
    normalize_ranges,
)


class Scanner:
    """Looks for ``patterns``; texts with one of ``excluded`` are in none of its languages.  No text is empty."""

    def __init__(self, patterns: Iterable[str], excluded: Iterable[str] = ()) -> None:
        self.patterns = tuple(dict.fromkeys(patterns))
        self.excluded = tuple(dict.fromkeys(excluded))
        self._children: list[dict[str, int]] = [{}]
        self._found: list[set[str]] = [set()]
        for pattern in (*self.patterns, *self.excluded):
            state = 0
            for c in in_time(pattern):
                if c not in self._children[state]:
                    self._children[state][c] = len(self._children)
                    self._children.append({})
                    self._found.append(set())
                state = self._children[state][c]
            self._found[state].add(pattern)
        self._moves = self._follow()

    def _follow(self) -> list[dict[str, int]]:
        """Where each state goes by the characters that do not lead back to the start."""
        moves: list[dict[str, int]] = [dict(self._children[0]), *({} for _ in self._children[1:])]
        suffix = [0] * len(self._children)
        queue = list(self._children[0].values())
        for state in in_time(queue):
            # What the longest proper suffix has found was found here as well.
            self._found[state] |= self._found[suffix[state]]
            moves[state] = {**moves[suffix[state]], **self._children[state]}
            for c, child in self._children[state].items():
                suffix[child] = moves[suffix[state]].get(c, 0)
                queue.append(child)
        return moves

    @cached_property
    def marks(self) -> list[tuple[str, ...]]:
        """The sets of patterns that can be completed at once."""
        excluded = set(self.excluded)
        sets = {
            tuple(sorted(found)): None for found in in_time(self._found) if found and not found & excluded
        }
        return list(sets)

    def free(self) -> Machine:
        """The texts in which nothing is found, the empty one included."""
        return self._machine([state for state, found in enumerate(in_time(self._found)) if not found])

    def free_lexeme(self) -> Lexeme:
        """The same without the empty text."""
        machine = self.free()
        # A start of its own, to which nothing leads back.
        start = machine.n_states
        copies = tuple((start, label, b) for a, label, b in in_time(machine.edges) if a == machine.start)
        language = Machine(start + 1, start, machine.edges + copies, machine.accepts)
        return Lexeme(("free text", self.patterns, self.excluded), language)

    def mark_lexeme(self, mark: tuple[str, ...]) -> Lexeme:
        """The texts that end where for the first time something is found: exactly the patterns of ``mark``."""
        check_time()
        states = [
            state
            for state, found in enumerate(in_time(self._found))
            if found and tuple(sorted(found)) == mark
        ]
        return Lexeme(("text up to", mark, self.patterns, self.excluded), self._machine(states))

    def _machine(self, accepts: list[int]) -> Machine:
        return Machine(len(self._moves), 0, self._edges, tuple(accepts))

    @cached_property
    def _edges(self) -> tuple[tuple[int, Regular, int], ...]:
        """Those of all its languages."""
        excluded = set(self.excluded)
        edges: list[tuple[int, Regular, int]] = []
        for state, moves in enumerate(self._moves):
            check_time()
            if self._found[state]:
                continue
            by_target: dict[int, list[tuple[int, int]]] = {}
            for c, target in moves.items():
                by_target.setdefault(target, []).append((ord(c), ord(c)))
            for target, points in by_target.items():
                if not self._found[target] & excluded:
                    edges.append((state, Chars(normalize_ranges(points)), target))
            known = normalize_ranges([point for points in by_target.values() for point in points])
            edges.append((state, Chars(intersect_ranges(complement_ranges(known), ANY_CHAR.ranges)), 0))
        return tuple(edges)
