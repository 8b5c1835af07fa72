"""Fewer states for a lexer: those from which the same is accepted, as far as a look at their edges tells.

What stands behind the first character of ``[a-z_][a-z0-9_]*`` and behind the others is the same; so are the ends of
keywords.  A determinised state is a set of states, and sets that mean the same should be the same: the lexer's masks share
what they say about a loop, and a name should be in its loop after one letter.
"""

from __future__ import annotations

from maskwright._subsets import Edges
from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.regular.automata import Nfa

_WIDE = 64


def merge_states(nfa: Nfa, starts: list[int], apart: int) -> tuple[Nfa, list[int]]:
    """Merge states with equal edges, epsilons and tags until there are none; ``starts`` are renumbered.

    States that accept with the tag ``apart`` or above stay apart: it belongs to several terminals.
    """
    edges: list[list[tuple[int, int]]] = [[] for _ in range(nfa.n_states)]
    epsilons: list[list[tuple[int, int, int]]] = [[] for _ in range(nfa.n_states)]
    before: list[list[int]] = [[] for _ in range(nfa.n_states)]
    for source, label, target in in_time(nfa.edges):
        edges[source].append((label, target))
        before[target].append(source)
    for source, target, op, loop in nfa.epsilons:
        epsilons[source].append((target, op, loop))
        before[target].append(source)
    tags = dict(nfa.accepts)
    same = list(range(nfa.n_states))

    def found(state: int) -> int:
        while same[state] != state:
            same[state] = same[same[state]]
            state = same[state]
        return state

    known: dict[object, int] = {}
    work = list(range(nfa.n_states))
    wide: set[int] = set()
    while work or wide:
        check_time()
        state = work.pop() if work else wide.pop()
        if same[state] != state:
            continue
        if work and len(edges[state]) + len(epsilons[state]) > _WIDE:
            # Looking at it takes long: once the others are done.
            wide.add(state)
            continue
        tag = tags.get(state, -1)
        content = (
            tag if tag < apart else -2 - state,
            frozenset([(label, found(target)) for label, target in edges[state]]),
            frozenset([(found(target), op, loop) for target, op, loop in epsilons[state]]),
        )
        other = found(known.setdefault(content, state))
        if other == state:
            continue
        if len(before[state]) > len(before[other]):
            # What leads to fewer edges is looked at again.
            known[content] = state
            state, other = other, state
        same[state] = other
        before[other] += before[state]
        work += before[state]
    number = {state: index for index, state in enumerate(q for q in range(nfa.n_states) if same[q] == q)}
    new = [number[found(state)] for state in in_time(range(nfa.n_states))]
    merged = Nfa(
        len(number),
        new[nfa.start],
        nfa.sets,
        Edges(dict.fromkeys(nfa.edges.renumbered(new))),
        list(dict.fromkeys((new[a], new[b], op, loop) for a, b, op, loop in nfa.epsilons)),
        nfa.loops,
        list(dict.fromkeys((new[state], tag) for state, tag in nfa.accepts)),
    )
    let_go(known, edges, epsilons, before)
    return merged, [new[state] for state in starts]
