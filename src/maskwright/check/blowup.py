"""Terminals whose automata blow up: repetitions that multiply, and counts that many readings keep at once.

A repetition with bounds is a counter.  It costs nothing while a text is in one count at a time; where a text may be in
many ("counting ambiguity": Turoňová et al., *Regex matching with counting-set automata*, OOPSLA 2020), a lexer
state is a set of counts, and there may be exponentially many.  One counter does not hold another, so inner ones are
copied.  Both are measured on the automaton itself, and never cost more than a bounded look at it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Literal

from maskwright.errors import LimitError
from maskwright.limits import Limits
from maskwright.regular.automata import Nfa, build_nfa
from maskwright.regular.determinize import alphabet_of
from maskwright.regular.expressions import Machine, Regular, Repeat, postorder
from maskwright.regular.thompson import ENTER, PLAIN

BLOWUP_CODE = "exponential"
Blowup = Literal["copies", "counts", "states"]

MANY_COPIES = 5_000
"""States of the automaton of one terminal."""
MANY_COUNTS = 200
"""Places of the automaton (with their counts) in which one text may be."""
MANY_SETS = 1_500
"""Sets of places that texts lead to, those counted once that differ by a shift of counts only; of large automata, those
are many that are some times their states."""
_LEAST_BOUND = 8
_WORK = 200_000

_MESSAGES = {
    "copies": "repetitions inside each other multiply: the automaton has {} states; one bound in place of the inner "
    "ones, or none, keeps it small",
    "counts": "a text may be in {} counts of its repetitions at once, which makes masks slow; it helps when the parts of a "
    "repetition cannot be split in several ways, or have no upper bounds",
    "states": "what was read may be counted from many places at once: more than {} lexer states, and twice as many with "
    "each further repetition; a bounded repetition behind a loop over the same characters does this",
}


def blowup(language: Regular, limits: Limits) -> str | None:
    """What is exponential about a terminal, as a message; None when nothing was found."""
    if not any(_is_counted(part) for part in postorder(language)):
        return None
    try:
        nfa = build_nfa([(language, 0)], limits)
    except LimitError:
        return None  # It is reported as an error.
    found: tuple[Blowup, int] | None
    found = ("copies", nfa.n_states) if nfa.n_states > MANY_COPIES else _grows(nfa)
    return None if found is None else _MESSAGES[found[0]].format(found[1])


def _is_counted(part: Regular) -> bool:
    if isinstance(part, Repeat):
        return max(part.min, part.max or 0) >= _LEAST_BOUND
    return isinstance(part, Machine) and part.length is not None


def _grows(nfa: Nfa) -> tuple[Blowup, int] | None:
    """Breadth first over the sets of places, each shape once; None also where there was too little time to say."""
    step = _Steps(nfa)
    draw = random.Random(0)
    first = step.closed({(nfa.start, 0)})
    seen = {_shape(first)}
    many = max(MANY_SETS, 4 * nfa.n_states)
    queue = [first]
    for at in queue:
        if step.work > _WORK:
            return None
        targets = step.targets(at)
        # The order decides what is met first; a fixed one would see one corner only.
        draw.shuffle(targets)
        for target in targets:
            if len(target) > MANY_COUNTS:
                return "counts", len(target)
            shape = _shape(target)
            if shape not in seen:
                seen.add(shape)
                if len(seen) > many:
                    return "states", many
                queue.append(target)
    return None


_Places = set[tuple[int, int]]


def _shape(places: _Places) -> frozenset[tuple[int, int]]:
    """The same for sets that differ by a shift of all counts."""
    least = min((count for _, count in places if count), default=0)
    return frozenset((state, count - least if count else -1) for state, count in places)


class _Steps:
    """Subset construction with counts, over one character of each minterm."""

    def __init__(self, nfa: Nfa) -> None:
        self.nfa = nfa
        self.work = 0
        alphabet = alphabet_of(nfa.sets)
        members = [alphabet.members(ranges) for ranges in nfa.sets]
        self.after: dict[int, list[tuple[tuple[int, ...], int]]] = {}
        for source, label, target in nfa.edges:
            self.after.setdefault(source, []).append((members[label], target))
        self.free: dict[int, list[tuple[int, int, int]]] = {}
        for source, target, op, loop in nfa.epsilons:
            self.free.setdefault(source, []).append((target, op, loop))

    def closed(self, places: Iterable[tuple[int, int]]) -> _Places:
        found, work = set(places), list(places)
        while work and len(found) <= 2 * MANY_COUNTS:
            state, count = work.pop()
            for target, op, loop in self.free.get(state, ()):
                self.work += 1
                after = count
                if op != PLAIN:
                    low, high = self.nfa.loops[loop]
                    if op == ENTER:
                        if 0 <= high <= count:
                            continue
                        after = min(count + 1, low) if high < 0 else count + 1
                    elif count < low:
                        continue
                    else:
                        after = 0
                if (target, after) not in found:
                    found.add((target, after))
                    work.append((target, after))
        return found

    def targets(self, places: _Places) -> list[_Places]:
        by_minterm: dict[int, _Places] = {}
        for state, count in places:
            for minterms, target in self.after.get(state, ()):
                self.work += len(minterms)
                for minterm in minterms:
                    by_minterm.setdefault(minterm, set()).add((target, count))
        return [self.closed(each) for each in dict.fromkeys(map(frozenset, by_minterm.values()))]
