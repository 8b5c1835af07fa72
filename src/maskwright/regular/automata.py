"""Nondeterministic automata over code points: how terminals reach the engine.

Thompson's construction (``thompson.py``), and then states from which no
accepting state can be reached are removed, so that every state that the engine meets can
still be completed.

A run of the automaton is a pair (state, count), from (start, 0).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from maskwright._subsets import Edges, useful_states
from maskwright.limits import Limits
from maskwright.regular.expressions import ANY_CHAR, Ranges, Regular, intersect_ranges
from maskwright.regular.memo import remembered
from maskwright.regular.refusals import Refusal
from maskwright.regular.thompson import PLAIN, Thompson

_SURROGATES = 0xD800


@dataclass
class Nfa:
    """A nondeterministic automaton over code points with counted loops.

    ``edges`` are (source, set, target): a code point of ``sets[set]``, which holds no surrogates.
    ``epsilons`` are (source, target, op, loop).  PLAIN is free.  ENTER needs count < max and adds
    one to the count (which saturates at min when max is unbounded).  LEAVE needs count >= min
    and sets the count to 0.
    ``loops`` are (min, max), max -1 being unbounded.  ``accepts`` are (state, tag).
    """

    n_states: int
    start: int
    sets: list[Ranges]
    edges: Edges
    epsilons: list[tuple[int, int, int, int]]
    loops: list[tuple[int, int]]
    accepts: list[tuple[int, int]]


def build_nfa(alternatives: Sequence[tuple[Regular, int]], limits: Limits) -> Nfa:
    """The automaton that accepts each language with its tag.

    States are those on some path from the start to an accepting state; with no text at all
    there is the start only.  A maximum above 2**31 - 1 is taken as unbounded.  Raises
    ``LimitError`` above ``limits.max_regex_states`` states, or for a minimum above ``limits.max_count``.
    """
    builder = _SetThompson(limits)
    start = builder.new_state()
    return _build(builder, [(node, start, tag) for node, tag in alternatives], [start])[0]


@dataclass
class Columns:
    """A deterministic automaton that starts in state 0 and accepts with a column, from 0 on."""

    edges: list[tuple[int, Regular, int]]
    accepts: list[tuple[int, int | None]]
    """(state, column); None: a match of no terminal."""


def build_lexer(
    terminals: Sequence[Regular],
    refused: Sequence[Refusal],
    lines: tuple[int, Columns] | None,
    limits: Limits,
) -> tuple[Nfa, list[int]]:
    """One automaton of several languages, each with a start of its own; it accepts with the position as tag.

    ``refused``: their tag is the number of terminals.  Those that are always refused begin where their terminal does; each other
    one has a start of its own, behind those of the terminals.  ``lines``: what stands for the language of one terminal; its tag is that of the terminal in column 0, and the
    number of terminals and the column elsewhere (without a column: the number).  See ``build_nfa``; the automaton's own start is of no use.
    """
    builder = _SetThompson(limits)
    starts = [builder.new_state() for _ in terminals]
    parts = [(node, start, tag) for tag, (node, start) in enumerate(zip(terminals, starts, strict=True))]
    for refusal in refused:
        if refusal.unless:
            starts.append(builder.new_state())
        at = starts[-1] if refusal.unless else starts[refusal.owner]
        parts.append((refusal.language, at, len(terminals)))
    accepts = []
    if lines is not None:
        position, columns = lines
        del parts[position]
        first = builder.n_states
        for _ in range(1 + max((target for _, _, target in columns.edges), default=0)):
            builder.new_state()
        builder.epsilons.append((starts[position], first, PLAIN, 0))
        for source, label, target in columns.edges:
            builder.place(label, first + source, first + target)
        none = len(terminals)
        for state, column in columns.accepts:
            accepts.append((first + state, position if column == 0 else none + (column or 0)))
    return _build(builder, parts, starts, accepts)


def _build(
    builder: _SetThompson,
    parts: Sequence[tuple[Regular, int, int]],
    starts: list[int],
    accepts: Sequence[tuple[int, int]] = (),
) -> tuple[Nfa, list[int]]:
    """Place trees at their starts, and trim: (tree, start, tag)."""
    accepts = list(accepts)
    for node, start, tag in parts:
        accept = builder.new_state()
        builder.place(node, start, accept)
        accepts.append((accept, tag))
    sets = list(builder.sets)
    full = Nfa(builder.n_states, starts[0], sets, builder.edges, builder.epsilons, builder.loops, accepts)
    return _trim(full, starts)


class _SetThompson(Thompson):
    """Sets are kept as they are, without surrogates."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits, counting=True)

    def key_of(self, ranges: Ranges) -> Ranges:
        return _scalar_values(ranges) if ranges and ranges[-1][1] >= _SURROGATES else ranges


@remembered(4096)
def _scalar_values(ranges: Ranges) -> Ranges:
    """Without surrogates, which no text holds."""
    return intersect_ranges(ranges, ANY_CHAR.ranges)


def _trim(nfa: Nfa, starts: list[int]) -> tuple[Nfa, list[int]]:
    """Only the starts and the states that lie on a path from one to an accepting state, renumbered."""
    kept = useful_states(nfa.n_states, nfa.edges, nfa.epsilons, starts, [state for state, _ in nfa.accepts])
    if len(kept) == nfa.n_states:
        return nfa, starts
    new = [-1] * nfa.n_states
    for index, state in enumerate(kept):
        new[state] = index
    trimmed = Nfa(
        len(kept),
        new[nfa.start],
        nfa.sets,
        nfa.edges.renumbered(new),
        [(new[a], new[b], op, loop) for a, b, op, loop in nfa.epsilons if new[a] >= 0 and new[b] >= 0],
        nfa.loops,
        [(new[state], tag) for state, tag in nfa.accepts if new[state] >= 0],
    )
    return trimmed, [new[state] for state in starts]
