"""What the terminals of a lexer refuse, and beside which other terminals that does not matter.

A terminal that looks ahead has texts at which a match of it does not count: the match, and what must not stand behind
it.  Such a text is a match of no terminal, and ends every other reading.  But where another terminal has a longer match
within the text, or one as long that ranks higher, the refused match is not what would have been read: then nothing is
refused.  Which terminals these are is told by the text, so the texts are told apart by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from maskwright._subsets import Alphabet, SubsetAutomaton, reduce
from maskwright.base.deadline import check_time
from maskwright.limits import Limits
from maskwright.regular.determinize import Dfa, alphabet_of, leaf_sets, subset_automaton
from maskwright.regular.dfa import explored
from maskwright.regular.expressions import Regular

_NONE: frozenset[int] = frozenset()
_REFUSED = -2


class Refusal(NamedTuple):
    """Texts that a terminal (a position) refuses where it may come and none of the terminals ``unless`` may."""

    owner: int
    language: Regular
    unless: tuple[int, ...] = ()


class _Match(NamedTuple):
    """Behind a beginning of a text."""

    own: int
    """State of the language, or -1; so for the next two."""
    counted: int
    before: tuple[int, ...]
    behind: tuple[int | None, ...]
    """Of what must not stand behind the longest match: -1, it does not; ``_REFUSED``; None, that match is none of this part."""


class _Place(NamedTuple):
    refused: int
    own: int
    """State of the language of which the owner's is a part, or -1."""
    reading: int
    """The terminals that can go on (``_SideBySide``)."""
    better: frozenset[int] | None
    """Those that match more than the owner's last match, or as much and rank higher; None: it has not matched yet."""
    unless: frozenset[int] | None
    """Of a text that is refused: beside which terminals it is not."""


def refused_texts(
    language: Regular, parts: Sequence[tuple[Regular, Regular]], plain: Regular, limits: Limits
) -> Regular:
    """The texts that show that the longest match in them does not count.

    ``language`` has all matches, ``plain`` those that count in any case, each of ``parts`` some of them and what must not stand behind
    those.  Behind a longer match, what a shorter one refuses does not matter.  Raises ``LimitError`` (max_regex_states).
    """
    alphabet = alphabet_of(leaf_sets(language, plain, *(node for part in parts for node in part)))
    whole, counted, *others = (
        subset_automaton(each, alphabet, limits)
        for each in (language, plain, *(node for part in parts for node in part))
    )
    befores, bodies = others[::2], others[1::2]

    def begun(part: int, state: int) -> int | None:
        if state < 0 or not befores[part].accepting(state):
            return None
        return _REFUSED if bodies[part].accepting(0) else 0

    def moves(place: _Match) -> dict[int, _Match]:
        running = [(bodies[part], state) for part, state in enumerate(place.behind) if state is not None]
        rows = [automaton.row(state) for automaton, state in [(whole, place.own), *running] if state >= 0]
        found = {}
        for minterm in dict.fromkeys(minterm for row in rows for minterm in row):
            own, free = _next(whole, place.own, minterm), _next(counted, place.counted, minterm)
            before = tuple(
                _next(automaton, state, minterm)
                for automaton, state in zip(befores, place.before, strict=True)
            )
            if own >= 0 and whole.accepting(own):
                counts = free >= 0 and counted.accepting(free)
                behind = tuple(None if counts else begun(part, state) for part, state in enumerate(before))
            else:
                behind = tuple(
                    state if state is None or state < 0 else _further(bodies[part], state, minterm)
                    for part, state in enumerate(place.behind)
                )
            found[minterm] = _Match(own, free, before, behind)
        return found

    start = _Match(0, 0, (0,) * len(parts), (None,) * len(parts))
    places, rows = explored(start, moves, limits)
    accepting = [set(place.behind) - {None} == {_REFUSED} for place in places]
    return Dfa(reduce(alphabet, rows, accepting)).to_regular()


def _next(automaton: SubsetAutomaton, state: int, minterm: int) -> int:
    return automaton.row(state).get(minterm, -1) if state >= 0 else -1


def _further(body: SubsetAutomaton, state: int, minterm: int) -> int:
    state = _next(body, state, minterm)
    return _REFUSED if state >= 0 and body.accepting(state) else state


def refusals(
    terminals: Sequence[Regular],
    refused: Sequence[tuple[int, Regular]],
    together: Sequence[int] | None,
    limits: Limits,
    parts: Sequence[int] = (),
) -> list[Refusal]:
    """What terminals, those of higher rank first, refuse: (position, texts), told apart by where they do.

    ``together``: by place, the set of those that may come there, a bit for each; None: any may come with any.  ``parts``: by
    terminal, the one that it is a part of; none: each is whole.  The parts of one that refuse are told by its matches.
    Raises ``LimitError`` above ``limits.max_regex_states`` states.
    """
    if not refused:
        return []
    alphabet = alphabet_of(leaf_sets(*terminals, *(language for _, language in refused)))
    automata = [subset_automaton(each, alphabet, limits) for each in terminals]
    all_of_them = _SideBySide(automata)
    wholes = list(parts) or list(range(len(terminals)))
    found = []
    for owner, language in refused:
        beside = (1 << len(terminals)) - 1 if together is None else 1 << owner
        for some in together or ():
            beside |= some if some >> owner & 1 else 0
        start = all_of_them.number(tuple([(each, 0) for each in range(len(terminals)) if beside >> each & 1]))
        found += _told_apart(all_of_them, owner, wholes, language, start, alphabet, limits)
    return found


class _SideBySide:
    """Sets of terminals that read one text, each with its state, as numbers; moves from one to the next are worked out once.

    Most terminals cannot go on behind a character or two, so those that many others are read beside come to the same sets.
    """

    def __init__(self, automata: list[SubsetAutomaton]) -> None:
        self.automata = automata
        self._sets: list[tuple[tuple[int, int], ...]] = []
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}
        self._rows: dict[int, dict[int, tuple[int, frozenset[int]]]] = {}
        self.none = self.number(())

    def number(self, terminals: tuple[tuple[int, int], ...]) -> int:
        """Of terminals, ascending, and their states."""
        number = self._numbers.setdefault(terminals, len(self._sets))
        if number == len(self._sets):
            self._sets.append(terminals)
        return number

    def row(self, number: int) -> dict[int, tuple[int, frozenset[int]]]:
        """By minterm, the terminals that can go on behind it, and which of them match there; none behind any other one."""
        row = self._rows.get(number)
        if row is None:
            check_time()
            after: dict[int, list[tuple[int, int]]] = {}
            for each, state in self._sets[number]:
                for minterm, target in self.automata[each].row(state).items():
                    after.setdefault(minterm, []).append((each, target))
            row = self._rows[number] = {
                minterm: (
                    self.number(tuple(terminals)),
                    frozenset([each for each, target in terminals if self.automata[each].accepting(target)]),
                )
                for minterm, terminals in after.items()
            }
        return row


def _told_apart(
    all_of_them: _SideBySide,
    owner: int,
    wholes: list[int],
    language: Regular,
    start: int,
    alphabet: Alphabet,
    limits: Limits,
) -> list[Refusal]:
    """``start``: the terminals that may come where the owner may, which is one of them."""
    refusing = subset_automaton(language, alphabet, limits)
    own_automaton = all_of_them.automata[wholes[owner]]
    own_parts = frozenset([each for each, whole in enumerate(wholes) if whole == wholes[owner]])
    nothing = (all_of_them.none, _NONE)

    def moves(place: _Place) -> dict[int, _Place]:
        own_row = own_automaton.row(place.own) if place.own >= 0 else {}
        reading_row = all_of_them.row(place.reading)
        found = {}
        for minterm, state in refusing.row(place.refused).items():
            own = own_row.get(minterm, -1)
            reading, ended = reading_row.get(minterm, nothing)
            better = place.better
            if own >= 0 and own_automaton.accepting(own):
                better = frozenset([each for each in ended - own_parts if each < owner])
            elif better is not None and ended:
                better = better.union(ended)
            # What matches all of the text is read in any case.
            unless = (place.better or _NONE) if refusing.accepting(state) else None
            found[minterm] = _Place(state, own, reading, better, unless)
        return found

    places, rows = explored(_Place(0, 0, start, None, None), moves, limits)
    sets = dict.fromkeys(place.unless for place in places if place.unless is not None)
    if not any(sets):
        return [Refusal(owner, language)]
    return [
        Refusal(
            owner,
            Dfa(reduce(alphabet, rows, [place.unless == unless for place in places])).to_regular(),
            tuple(sorted(unless)),
        )
        for unless in sets
    ]
