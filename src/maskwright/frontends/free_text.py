"""Free text until a mark: the automaton of Aho and Corasick (1975) as regular languages.

A scanner reads text and notices the first place where some pattern ends.  Its states are the prefixes of patterns;
text is free as long as no pattern has been completed.  Reading never goes on behind a completed
pattern, so free text and text up to each mark are disjoint languages of one automaton.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.errors import LimitError
from maskwright.ir.grammar import Lexeme
from maskwright.limits import Limits
from maskwright.regular.dfa import is_empty, only_in
from maskwright.regular.expressions import (
    ANY_CHAR,
    Chars,
    Lit,
    Machine,
    Ranges,
    Regular,
    cat,
    complement_ranges,
    intersect_ranges,
    normalize_ranges,
)


class _Sought(tuple[tuple[str, ...], ...]):
    """Hashed once: in the keys of as many lexemes as there are patterns are all of these."""

    _hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = super().__hash__()
        return self._hash


class Scanner:
    """Looks for ``patterns``; texts with one of ``excluded`` are in none of its languages.  No text is empty.

    Raises ``LimitError`` where it has more states than ``limits.max_regex_states``, as each of its languages would.
    """

    def __init__(self, patterns: Iterable[str], excluded: Iterable[str] = (), *, limits: Limits) -> None:
        self.patterns = tuple(dict.fromkeys(patterns))
        self.excluded = tuple(dict.fromkeys(excluded))
        self._limits = limits
        self._sought = _Sought((self.patterns, self.excluded))
        self._children: list[dict[str, int]] = [{}]
        self._found: list[tuple[str, ...]] = [()]
        for pattern in (*self.patterns, *self.excluded):
            state = 0
            for c in in_time(pattern):
                if c not in self._children[state]:
                    self._children[state][c] = len(self._children)
                    self._children.append({})
                    self._found.append(())
                state = self._children[state][c]
            self._found[state] = (pattern,)
            if len(self._children) > limits.max_regex_states:
                raise LimitError("max_regex_states", len(self._children), limits.max_regex_states)
        self._moves = self._follow()

    def _follow(self) -> list[dict[str, int]]:
        """Where each state goes by the characters that do not lead back to the start."""
        moves: list[dict[str, int]] = [dict(self._children[0]), *({} for _ in self._children[1:])]
        suffix = [0] * len(self._children)
        queue = list(self._children[0].values())
        for state in in_time(queue):
            # What the longest proper suffix has found was found here as well.
            if self._found[suffix[state]]:
                self._found[state] += self._found[suffix[state]]
            moves[state] = {**moves[suffix[state]], **self._children[state]}
            for c, child in self._children[state].items():
                suffix[child] = moves[suffix[state]].get(c, 0)
                queue.append(child)
        return moves

    def release(self) -> None:
        """Let go of the automaton, of which its languages need nothing."""
        let_go(self._children, self._found, self._moves)

    @cached_property
    def marks(self) -> list[tuple[str, ...]]:
        """The sets of patterns that can be completed at once."""
        sets = {
            tuple(sorted(found)): None
            for found in in_time(self._found)
            if found and not self._barred.intersection(found)
        }
        return list(sets)

    @cached_property
    def _barred(self) -> frozenset[str]:
        return frozenset(self.excluded)

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
        return Lexeme(("free text", self._sought), language)

    def mark_lexeme(self, mark: tuple[str, ...]) -> Lexeme | None:
        """The texts that end where for the first time something is found: exactly the patterns of ``mark``.

        None: there are none, since something else is always found before.
        """
        check_time()
        states = [
            state
            for state, found in enumerate(in_time(self._found))
            if state in self._reached and found and tuple(sorted(found)) == mark
        ]
        return Lexeme(("text up to", mark, self._sought), self._machine(states)) if states else None

    def late_end_lexeme(self, mark: tuple[str, ...], end: str, excluded: Scanner) -> Lexeme | None:
        """Those with nothing of ``excluded`` before ``end``, one of ``mark``, but with something of it that ends in there."""
        up_to = self.mark_lexeme(mark)
        others = excluded.mark_lexeme(mark)
        if up_to is None:
            return None
        before = cat(excluded._without_excluded, Lit(end))
        refused = [] if others is None else [others.regular]
        language = only_in([up_to.regular, before], refused, self._limits)
        return None if is_empty(language) else Lexeme(("text up to", mark, end, excluded._sought), language)

    @cached_property
    def _without_excluded(self) -> Machine:
        return Scanner(self.excluded, limits=self._limits).free()

    @cached_property
    def _reached(self) -> set[int]:
        reached = {0}
        targets: dict[int, list[int]] = {}
        for a, _, b in in_time(self._edges):
            targets.setdefault(a, []).append(b)
        for state in in_time(work := [0]):
            new = [b for b in targets.get(state, ()) if b not in reached]
            reached.update(new)
            work += new
        return reached

    def _machine(self, accepts: list[int]) -> Machine:
        return Machine(len(self._moves), 0, self._edges, tuple(accepts))

    @cached_property
    def _edges(self) -> tuple[tuple[int, Regular, int], ...]:
        """Those of all its languages."""
        # Few sets of characters label most of the edges.
        labels: dict[str, Chars] = {}
        others: dict[tuple[str, ...], Chars] = {}
        edges: list[tuple[int, Regular, int]] = []
        for state, moves in enumerate(self._moves):
            check_time()
            if self._found[state]:
                continue
            for c, target in moves.items():
                if not self._barred.intersection(self._found[target]):
                    if c not in labels:
                        labels[c] = Chars(_ranges(c))
                    edges.append((state, labels[c], target))
            known = tuple(moves)
            if known not in others:
                others[known] = Chars(intersect_ranges(complement_ranges(_ranges(known)), ANY_CHAR.ranges))
            edges.append((state, others[known], 0))
        return tuple(edges)


def ends_inside(text: str, mark: str) -> bool:
    """Whether a text may end in a mark: as a part of it, or with what stands before it."""
    beginnings = (mark[: i + 1] for i in range(len(mark)))
    return any(each.endswith(text) or text.endswith(each) for each in beginnings)


def _ranges(characters: Iterable[str]) -> Ranges:
    return normalize_ranges([(ord(c), ord(c)) for c in characters])
