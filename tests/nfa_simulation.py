"""A slow and obvious simulator of ``Nfa``: the oracle for everything that runs one."""

from __future__ import annotations

from maskwright.regular.automata import Nfa
from maskwright.regular.thompson import ENTER, LEAVE, PLAIN


def nfa_matches(nfa: Nfa, text: str) -> int | None:
    """The smallest tag of the accepting states that ``text`` leads to; None without any."""
    reached = {state for state, _ in _run(nfa, text)}
    return min((tag for state, tag in nfa.accepts if state in reached), default=None)


def nfa_tags(nfa: Nfa, text: str, start: int) -> set[int]:
    """The tags of all accepting states that ``text`` leads to from one of several starts."""
    reached = {state for state, _ in _run(nfa, text, start)}
    return {tag for state, tag in nfa.accepts if state in reached}


def nfa_alive(nfa: Nfa, text: str) -> bool:
    """Whether any item is left after ``text``: by construction, whether it can be completed."""
    lively = {source for source, _, _ in nfa.edges} | {state for state, _ in nfa.accepts}
    return any(state in lively for state, _ in _run(nfa, text))


def _run(nfa: Nfa, text: str, start: int | None = None) -> set[tuple[int, int]]:
    items = close(nfa, {(nfa.start if start is None else start, 0)})
    for c in text:
        counts: dict[int, list[int]] = {}
        for state, count in items:
            counts.setdefault(state, []).append(count)
        moved = {
            (target, count)
            for source, label, target in nfa.edges
            if any(low <= ord(c) <= high for low, high in nfa.sets[label])
            for count in counts.get(source, ())
        }
        items = close(nfa, moved)
    return items


def close(nfa: Nfa, items: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """The items with all that they lead to without a character."""
    leaving: dict[int, list[tuple[int, int, int]]] = {}
    for source, target, op, loop in nfa.epsilons:
        leaving.setdefault(source, []).append((target, op, loop))
    work = list(items)
    while work:
        state, count = work.pop()
        for target, op, loop in leaving.get(state, ()):
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
