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
    """State of the owner's language, or -1."""
    others: tuple[tuple[int, int], ...]
    """The other terminals that can go on, each with its state."""
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
