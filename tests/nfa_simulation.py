"""A slow and obvious simulator of ``Nfa``: the oracle for everything that runs one."""

from __future__ import annotations

from maskwright.automata import ENTER, LEAVE, PLAIN, Nfa


def nfa_matches(nfa: Nfa, data: bytes) -> int | None:
    """The smallest tag of the accepting states that ``data`` leads to; None without any."""
    items = _close(nfa, {(nfa.start, 0)})
    for byte in data:
        moved = {
            (target, count)
            for state, count in items
            for source, low, high, target in nfa.edges
            if source == state and low <= byte <= high
        }
        items = _close(nfa, moved)
    reached = {state for state, _ in items}
    return min((tag for state, tag in nfa.accepts if state in reached), default=None)


def nfa_alive(nfa: Nfa, data: bytes) -> bool:
    """Whether any item is left after ``data``: by construction, whether it can be completed."""
    items = _close(nfa, {(nfa.start, 0)})
    for byte in data:
        moved = {(b, c) for s, c in items for a, low, high, b in nfa.edges if a == s and low <= byte <= high}
        items = _close(nfa, moved)
    has_edge = {source for source, _, _, _ in nfa.edges} | {state for state, _ in nfa.accepts}
    return any(state in has_edge for state, _ in items)


def _close(nfa: Nfa, items: set[tuple[int, int]]) -> set[tuple[int, int]]:
    work = list(items)
    while work:
        state, count = work.pop()
        for source, target, op, loop in nfa.epsilons:
            if source != state:
                continue
            after = count
            if op != PLAIN:
                low, high = nfa.loops[loop]
                if op == ENTER:
                    if high >= 0 and count >= high:
                        continue
                    after = count + 1 if high >= 0 else min(count + 1, low)
                elif op == LEAVE:
                    if count < low:
                        continue
                    after = 0
            if (target, after) not in items:
                items.add((target, after))
                work.append((target, after))
    return items
