"""A regular language as the states of its automaton, and lexemes that are read from one state to another."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

from maskwright._subsets import Alphabet, reduce
from maskwright.algebra.written import text_of, word_text
from maskwright.base.deadline import check_time
from maskwright.errors import LimitError
from maskwright.ir.grammar import Keyset, Lexeme, Lexing, Words
from maskwright.limits import Limits
from maskwright.regular.determinize import Dfa, alphabet_of, leaf_sets, minimal_dfa, subset_automaton
from maskwright.regular.dfa import least_length
from maskwright.regular.expressions import (
    ANY_CHAR,
    Regular,
    cat,
    chars,
    complement_ranges,
    intersect_ranges,
    normalize_ranges,
)


class _Read(NamedTuple):
    """A lexeme that is read from a state: both automata side by side."""

    alphabet: Alphabet
    rows: list[dict[int, int]]
    ends: dict[int, list[bool]]
    """By state behind it, where in ``rows`` the lexeme is over."""
    whole: bool
    """Whether the automaton goes on with all that the lexeme says."""


class Moves(ABC):
    """What a product asks of an automaton: its states, from 0 on, and how lexemes lead from one to another."""

    count: int
    accepting: frozenset[int]
    settled: frozenset[int]
    """States that are never left."""

    @abstractmethod
    def exits(self, lexeme: Lexeme | Keyset, state: int) -> list[int]:
        """The states that some text of a lexeme leads to."""

    @abstractmethod
    def between(self, lexeme: Lexeme | Keyset, state: int, target: int) -> Lexeme | Keyset:
        """The texts of a lexeme that lead from one state to another; the lexeme itself where all do."""

    @abstractmethod
    def words(self, words: Words, state: int) -> dict[int, Words]:
        """By state that they lead to, some of many words; their tags are kept."""


class States(Moves):
    """The minimal automaton of a language; state 0 is the start, and every state leads to an accepting one.

    With a ``lexing`` there is one more state, where it is needed, for the texts that begin no text of the language; and behind a
    terminal, states are one that differ only in characters with which the terminal would be longer: by the longest match,
    none of these comes.  No state: the language is empty.
    """

    def __init__(self, language: Regular, limits: Limits, lexing: Lexing | None = None) -> None:
        self.limits = limits
        self.longest: set[object] = set()
        if lexing is not None:
            early = {lexing.terminals[position].key for position in lexing.early}
            self.longest = {terminal.key for terminal in lexing.terminals} - early
        dfa = minimal_dfa(language, limits)
        self.count = len(dfa)
        self.accepting = frozenset(dfa.accepts())
        self.leaving = [[(label.ranges, target) for label, target in edges] for edges in dfa.leaving()]
        if lexing is not None and self.count:
            self._complete()
        self.labels = list(dict.fromkeys(label for edges in self.leaving for label, _ in edges))
        self.settled = frozenset(
            state for state, edges in enumerate(self.leaving) if edges == [(ANY_CHAR.ranges, state)]
        )
        # From one on every text is accepted, and from the one more none.
        self._read: dict[tuple[object, int], _Read] = {}
        self._between: dict[tuple[object, int, int], Lexeme | Keyset] = {}
        self._words: dict[tuple[object, int], dict[int, Words]] = {}
        self._steps: dict[tuple[int, str], int] = {}

    def _complete(self) -> None:
        missing = [
            intersect_ranges(
                ANY_CHAR.ranges,
                complement_ranges(normalize_ranges([r for ranges, _ in edges for r in ranges])),
            )
            for edges in self.leaving
        ]
        if any(missing):
            for edges, ranges in zip(self.leaving, missing, strict=True):
                if ranges:
                    edges.append((ranges, self.count))
            self.leaving.append([(ANY_CHAR.ranges, self.count)])
            self.count += 1

    # --- lexemes of characters

    def exits(self, lexeme: Lexeme | Keyset, state: int) -> list[int]:
        return list(self._reading(lexeme, state).ends)

    def between(self, lexeme: Lexeme | Keyset, state: int, target: int) -> Lexeme | Keyset:
        key = (lexeme if isinstance(lexeme, Keyset) else lexeme.key, state, target)
        found = self._between.get(key)
        if found is None:
            read = self._reading(lexeme, state)
            if read.whole and len(read.ends) == 1:
                found = lexeme
            else:
                language = Dfa(reduce(read.alphabet, read.rows, read.ends[target])).to_regular()
                found = Lexeme(("regular", language), language)
            self._between[key] = found
        return found

    def _reading(self, lexeme: Lexeme | Keyset, state: int) -> _Read:
        key = (lexeme if isinstance(lexeme, Keyset) else lexeme.key, state)
        found = self._read.get(key)
        if found is None:
            found = self._side_by_side(text_of(lexeme), state)
            if not isinstance(lexeme, Keyset) and lexeme.key in self.longest:
                found = self._merged(found, lexeme.regular)
            self._read[key] = found
        return found

    def _merged(self, read: _Read, language: Regular) -> _Read:
        """With fewer states behind a terminal."""
        ends: dict[int, list[bool]] = {}
        for end, places in read.ends.items():
            texts = Dfa(reduce(read.alphabet, read.rows, places)).to_regular()
            target = next(
                (other for other in range(end) if self._stands_for(other, end, texts, language)), end
            )
            known = ends.get(target, places)
            ends[target] = [a or b for a, b in zip(known, places, strict=True)]
        return read._replace(ends=ends)

    def _stands_for(self, other: int, end: int, texts: Regular, language: Regular) -> bool:
        """Whether another state tells the same behind texts of a terminal as the one that they lead to."""
        if (other in self.accepting) != (end in self.accepting) or end in self.settled:
            return False
        telling = [
            both
            for a, to in self.leaving[end]
            for b, target in self.leaving[other]
            if to != target and (both := intersect_ranges(a, b))
        ]
        if not telling:
            return True
        longer = cat(texts, chars(*[r for ranges in telling for r in ranges]))
        return least_length([longer], [language], self.limits) is None

    def _side_by_side(self, language: Regular, start: int) -> _Read:
        alphabet = alphabet_of([*leaf_sets(language), *self.labels])
        moves: list[dict[int, int]] = [{} for _ in range(self.count)]
        for source, edges in enumerate(self.leaving):
            for ranges, target in edges:
                moves[source].update(dict.fromkeys(alphabet.members(ranges), target))
        lexeme = subset_automaton(language, alphabet, self.limits)
        ids = {(0, start): 0}
        order = [(0, start)]
        rows: list[dict[int, int]] = []
        whole = True
        for at, state in order:
            check_time()
            row: dict[int, int] = {}
            beside = moves[state]
            for minterm, target in lexeme.row(at).items():
                other = beside.get(minterm, -1)
                if other < 0:
                    whole = False
                    continue
                place = (target, other)
                if place not in ids:
                    ids[place] = len(order)
                    order.append(place)
                    if len(order) > self.limits.max_regex_states:
                        raise LimitError("max_regex_states", len(order), self.limits.max_regex_states)
                row[minterm] = ids[place]
            rows.append(row)
        ends: dict[int, list[bool]] = {}
        for number, (at, state) in enumerate(order):
            if lexeme.accepting(at):
                ends.setdefault(state, [False] * len(order))[number] = True
        return _Read(alphabet, rows, ends, whole)

    # --- words

    def words(self, words: Words, state: int) -> dict[int, Words]:
        found = self._words.get((words.key, state))
        if found is None:
            texts: dict[int, dict[bytes, int]] = {}
            for word, tag in words.items():
                check_time()
                target = self._run(word_text(word), state)
                if target >= 0:
                    texts.setdefault(target, {})[word] = tag
            found = {target: Words.tagged(tags) for target, tags in texts.items()}
            self._words[words.key, state] = found
        return found

    def _run(self, text: str, state: int) -> int:
        for c in text:
            step = self._steps.get((state, c))
            if step is None:
                step = self._steps[state, c] = self._step(state, ord(c))
            if step < 0:
                return -1
            state = step
        return state

    def _step(self, state: int, code: int) -> int:
        for ranges, target in self.leaving[state]:
            if any(low <= code <= high for low, high in ranges):
                return target
        return -1
