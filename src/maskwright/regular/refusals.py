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
from maskwright.limits import Limits
from maskwright.regular.determinize import Dfa, alphabet_of, leaf_sets, subset_automaton
from maskwright.regular.dfa import explored
from maskwright.regular.expressions import Regular

_NONE: frozenset[int] = frozenset()


class Refusal(NamedTuple):
    """Texts that a terminal (a position) refuses where it may come and none of the terminals ``unless`` may."""

    owner: int
    language: Regular
    unless: tuple[int, ...] = ()


class _Place(NamedTuple):
    refused: int
    own: int
    """State of the owner's language, or -1."""
    others: tuple[tuple[int, int], ...]
    """The other terminals that can go on, each with its state."""
    better: frozenset[int] | None
    """Those that match more than the owner's last match, or as much and rank higher; None: it has not matched yet."""
    unless: frozenset[int] | None
    """Of a text that is refused: beside which terminals it is not."""


def refusals(
    terminals: Sequence[Regular],
    refused: Sequence[tuple[int, Regular]],
    together: Sequence[int] | None,
    limits: Limits,
) -> list[Refusal]:
    """What terminals, those of higher rank first, refuse: (position, texts), told apart by where they do.

    ``together``: by place, the set of those that may come there, a bit for each; None: any may come with any.
    Raises ``LimitError`` above ``limits.max_regex_states`` states.
    """
    if not refused:
        return []
    alphabet = alphabet_of(leaf_sets(*terminals, *(language for _, language in refused)))
    automata = [subset_automaton(each, alphabet, limits) for each in terminals]
    found = []
    for owner, language in refused:
        beside = (1 << len(terminals)) - 1 if together is None else 0
        for some in together or ():
            beside |= some if some >> owner & 1 else 0
        others = [each for each in range(len(terminals)) if beside >> each & 1 and each != owner]
        found += _told_apart(automata, owner, language, others, alphabet, limits)
    return found


def _told_apart(
    automata: list[SubsetAutomaton],
    owner: int,
    language: Regular,
    beside: list[int],
    alphabet: Alphabet,
    limits: Limits,
) -> list[Refusal]:
    refusing = subset_automaton(language, alphabet, limits)

    def moves(place: _Place) -> dict[int, _Place]:
        own_row = automata[owner].row(place.own) if place.own >= 0 else {}
        rows = [(each, automata[each].row(state)) for each, state in place.others]
        found = {}
        for minterm, state in refusing.row(place.refused).items():
            own = own_row.get(minterm, -1)
            others = tuple([(each, row[minterm]) for each, row in rows if minterm in row])
            ended = [each for each, at in others if automata[each].accepting(at)]
            better = place.better
            if own >= 0 and automata[owner].accepting(own):
                better = frozenset([each for each in ended if each < owner])
            elif better is not None and ended:
                better = better.union(ended)
            # What matches all of the text is read in any case.
            unless = (place.better or _NONE) if refusing.accepting(state) else None
            found[minterm] = _Place(state, own, others, better, unless)
        return found

    others = tuple([(each, 0) for each in beside])
    places, rows = explored(_Place(0, 0, others, None, None), moves, limits)
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
