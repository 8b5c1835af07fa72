"""What the tables of a grammar say about terminals next to each other.

A lexer that takes the longest match may read two terminals in a row as something else.  Which may follow
which is a question for the grammar, and so is whether it can always go on without a row that clashes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from types import MappingProxyType

from maskwright._subsets import Alphabet, Edges, SubsetAutomaton
from maskwright.base.deadline import check_time
from maskwright.errors import LimitError

MANY_ITEMS = 16
# Of the shipped grammars that stay below it, Python has 2 184, HTML 1 396.  Those that do not would pay a second for nothing.
_MANY_STATES = 5_000
# What the automaton counts as states is work for them as well, which their number and the deadline bound here.
_MUCH_WORK = 1_000 * _MANY_STATES
# Places of a rule that is told apart by its calls, and of all of them then.  HTML, which gains most, has 40 rules of up to 12, and 7 213 places.
_SMALL, _MANY_PLACES = 12, 10_000

BOUNDARY = -(1 << 40)
"""Numbers up to this one are boundaries (``grammar.Boundary``)."""


@dataclass(slots=True)
class Places:
    """The places in the rules of a grammar: what leads from each one to which others.

    Terminals of the lexer are numbers from 0; any negative number is a lexeme that is none.  -1 stands for a row of any such lexemes: of an
    import, say, which is a rule with no more than that.  Boundaries have numbers of their own, and each is told apart.
    """

    terms: list[list[tuple[int, int]]] = field(default_factory=list)  # (terminal, next place)
    calls: list[list[tuple[int, int]]] = field(default_factory=list)  # (rule, next place)
    final: list[bool] = field(default_factory=list)
    ignored: list[list[int]] = field(
        default_factory=list
    )  # ignored terminals that are waited for (Lexing.placed)
    starts: list[int] = field(default_factory=list)  # by rule

    def add(self, final: bool = False) -> int:
        self.terms.append([])
        self.calls.append([])
        self.ignored.append([])
        self.final.append(final)
        return len(self.final) - 1

    def awaited(self, place: int) -> int:
        """The terminals that are waited for at a place, ignored ones included: a bit for each."""
        bits = 0
        for terminal, _ in self.terms[place]:
            bits |= 1 << terminal if terminal >= 0 else 0
        for terminal in self.ignored[place]:
            bits |= 1 << terminal
        return bits

    def add_repeated(self, first: int, rest: int, low: int) -> int | None:
        """The start of a repetition (bounds above do not matter here); None for one that asks for many items."""
        if low > MANY_ITEMS:
            return None
        start = self.add(low == 0)
        at, rule = start, first
        for count in range(1, max(low, 1) + 1):
            behind = self.add(count >= low)
            self.calls[at].append((rule, behind))
            at, rule = behind, rest
        self.calls[at].append((rest, at))
        return start


class Adjacency:
    """Which terminals may come last before every place.  Sets are integers, a bit for each terminal or class of terminals."""

    def __init__(self, places: Places, start_rule: int) -> None:
        self.places = places
        self.start_rule = start_rule

    def follow(self, terminals: int) -> list[int]:
        """By terminal, the set of those that may come behind it; then those that may come first, those behind
        lexemes that are no terminals, and those behind each boundary."""
        boundaries = sorted(
            {each for terms in self.places.terms for each, _ in terms if each <= BOUNDARY}, reverse=True
        )
        behind = [0] * (terminals + 2 + len(boundaries))
        bounded = {each: terminals + 2 + number for number, each in enumerate(boundaries)}
        before = self._before(list(range(terminals)), terminals + 1, terminals, bounded)
        for place, lasts in enumerate(before):
            added = self.places.awaited(place)
            for last in members(lasts) if added else ():
                behind[last] |= added
        return behind

    def opens(self, terminals: int) -> list[int]:
        """The terminals behind which a lexeme that is none of them may come."""
        before = self._before(list(range(terminals)), terminals)
        found = 0
        for place, lasts in enumerate(before):
            if any(BOUNDARY < terminal < 0 for terminal, _ in self.places.terms[place]):
                found |= lasts
        return members(found & ~(1 << terminals))

    def contexts(self, terminals: int) -> list[tuple[int, int]]:
        """Sets of terminals, each behind the one behind which it may be waited for (-1: the start, or a lexeme that is none).

        Whatever a parser waits for behind a terminal is part of one of them.  Ignored terminals that are waited for are
        among them (``Lexing.placed``).  They are those of the automaton that the rules become where their ends lead to
        all their callers, those of small rules to one caller (``_flat``), made deterministic (``_MANY_STATES`` at most; else those of ``follow``).
        """
        found = self._sets(_flat(self.places))
        if found is None:
            follow = self.follow(terminals)
            return [(i if i < terminals else -1, each) for i, each in enumerate(follow) if each]
        return found

    def states(self) -> list[tuple[int, int]] | None:
        """As ``contexts``, where lexemes that are no terminals are told apart; None: they are too many."""
        return self._sets(_flat(self.places), lexemes=True)

    def _sets(self, places: Places, lexemes: bool = False) -> list[tuple[int, int]] | None:
        """``lexemes``: those that are no terminals are told apart."""
        try:
            automaton, read, waits = _determinized(places, places.starts[self.start_rule], lexemes)
        except LimitError:
            return None
        found: dict[tuple[int, int], None] = {}
        seen = {(-1, 0)}
        for last, state in (work := [(-1, 0)]):
            check_time()
            try:
                row = automaton.row(state)
            except LimitError:
                return None
            awaited = 0
            for minterm, target in row.items():
                awaited |= waits[minterm]
                if minterm in read and (pair := (read[minterm], target)) not in seen:
                    seen.add(pair)
                    work.append(pair)
            found[last, awaited] = None
            if len(work) > _MANY_STATES:
                return None
        return [(last, awaited) for last, awaited in found if awaited]

    def beside(self, terminals: int) -> list[list[int]]:
        """By terminal, the ignored ones that are waited for wherever it is (``Lexing.placed``), sorted."""
        found: list[int | None] = [None] * terminals
        before = self._before([0] * terminals, 0)
        for place, lasts in enumerate(before):
            here = 0
            for ignored in self.places.ignored[place]:
                here |= 1 << ignored
            for terminal, _ in self.places.terms[place] if lasts else ():
                if terminal >= 0:
                    known = found[terminal]
                    found[terminal] = here if known is None else known & here
        return [members(each or 0) for each in found]

    def avoidable(self, clashes: Iterable[tuple[int, int]], terminals: int) -> bool:
        """Whether every place that is reached can be left, to the end of its rule, without a row that clashes, whatever came
        before it.  Then every beginning of a sentence goes on to one without any more of them.

        A place is reached behind a terminal or a call.  Where a rule begins there may be other ways, by what calls it.
        """
        refused: dict[int, set[int]] = {}
        never: set[int] = set()
        for last, terminal in clashes:
            if terminal < 0:
                # Another one may always come in its place.
                never.add(last)
            else:
                # Their number stands for a lexeme that is none of them.
                refused.setdefault(last, set()).add(terminal if terminal < terminals else -1)
        waited = reduce(or_, map(self.places.awaited, range(len(self.places.final))), 0)
        if any(not waited >> terminal & 1 for terminal in never):
            # What nobody waits for says that nothing is sure (algebra/lexers.py).
            return False
        # One class for each terminal that clashes with something behind it; the last one for all others.
        others = len(refused)
        classes = [others] * terminals
        bad = [each | never for each in (*refused.values(), set[int]())]
        for number, last in enumerate(refused):
            classes[last] = number
        exits = self._exits(classes, bad)
        before = self._before(classes, others)
        places = self.places
        reached = {places.starts[self.start_rule]}
        for ways in (*places.terms, *places.calls):
            reached |= {behind for _, behind in ways}
        return all(exits[place][last] for place in reached for last in members(before[place]))

    def _exits(self, classes: list[int], bad: list[set[int]]) -> list[list[int]]:
        """By place and class that came last before it: what may come last in its rule, without clashing rows."""
        places = self.places
        exits = [[1 << c if final else 0 for c in range(len(bad))] for final in places.final]

        def look(place: int) -> bool:
            changed = False
            for last, found in enumerate(exits[place]):
                for terminal, behind in places.terms[place]:
                    if terminal <= BOUNDARY or max(terminal, -1) not in bad[last]:
                        found |= exits[behind][classes[terminal] if terminal >= 0 else -1]
                for rule, behind in places.calls[place]:
                    for between in members(exits[places.starts[rule]][last]):
                        found |= exits[behind][between]
                changed = changed or found != exits[place][last]
                exits[place][last] = found
            return changed

        self._until_nothing_changes(look)
        return exits

    def _before(
        self,
        classes: list[int],
        others: int,
        nothing: int | None = None,
        bounded: Mapping[int, int] = MappingProxyType({}),
    ) -> list[int]:
        """By place: the classes that may come last before it; ``nothing``: that of the start, if it is one of its own;
        ``bounded``: those of boundaries."""
        places = self.places
        # Behind a place, to the end of its rule: what may come last, and whether nothing needs to.
        lasts, empty = [0] * len(places.final), list(places.final)
        before = [0] * len(places.final)
        before[places.starts[self.start_rule]] = 1 << (others if nothing is None else nothing)

        def look(place: int) -> bool:
            found, ends = lasts[place], empty[place]
            for terminal, behind in places.terms[place]:
                found |= lasts[behind] | (_bit(classes, terminal, others, bounded) if empty[behind] else 0)
            for rule, behind in places.calls[place]:
                start = places.starts[rule]
                found |= lasts[behind] | (lasts[start] if empty[behind] else 0)
                ends = ends or (empty[start] and empty[behind])
            changed = found != lasts[place] or ends != empty[place]
            lasts[place], empty[place] = found, ends
            return changed

        self._until_nothing_changes(look)
        # The earliest first: what reaches a place by several ways of one length comes together.
        waiting, work = [False] * len(before), deque([places.starts[self.start_rule]])
        while work:
            check_time()
            place = work.popleft()
            waiting[place] = False
            here = before[place]
            moves = [
                (behind, _bit(classes, terminal, others, bounded)) for terminal, behind in places.terms[place]
            ]
            for rule, behind in places.calls[place]:
                start = places.starts[rule]
                moves += [(start, here), (behind, lasts[start] | (here if empty[start] else 0))]
            for behind, added in moves:
                if added & ~before[behind]:
                    before[behind] |= added
                    if not waiting[behind]:
                        waiting[behind] = True
                        work.append(behind)
        return before

    def _until_nothing_changes(self, look: Callable[[int], bool]) -> None:
        """Look at each place, which says whether what is known of it has changed, and again when it has of one behind it."""
        places = self.places
        users: list[list[int]] = [[] for _ in places.final]
        for place, terms in enumerate(places.terms):
            for _, behind in terms:
                users[behind].append(place)
            for rule, behind in places.calls[place]:
                users[behind].append(place)
                users[places.starts[rule]].append(place)
        work = dict.fromkeys(range(len(places.final)))
        while work:
            check_time()
            place, _ = work.popitem()
            if look(place):
                work.update(dict.fromkeys(users[place]))


def _flat(places: Places) -> Places:
    """Places that call no rule: what calls one leads to its start, and the rule's end to what is behind each of its calls.

    Such steps without a terminal are written as calls: (0, place).  A place that several rules have is one in each.  Rows of lexemes may be of
    any length.  A small rule is there once for each call, so that its end leads behind that one only: else what may come behind an attribute of one
    tag, say, may come behind those of all tags.
    """
    flat = Places()
    small = _small_rules(places)
    numbers: dict[tuple[int, int, int], int] = {}
    work: list[tuple[int, int, int]] = []

    def number(rule: int, at: int, copy: int) -> int:
        """``copy``: of a small rule, where the call's return leads to; 0 for others."""
        key = (rule, at, copy)
        if key not in numbers:
            numbers[key] = flat.add()
            work.append(key)
        return numbers[key]

    flat.starts = [number(rule, start, 0) for rule, start in enumerate(places.starts)]
    ends: dict[tuple[int, int], list[int]] = {}
    behind: dict[tuple[int, int], list[int]] = {}
    for rule, at, copy in work:  # It grows.
        check_time()
        place = numbers[rule, at, copy]
        flat.terms[place] = [(terminal, number(rule, target, copy)) for terminal, target in places.terms[at]]
        flat.ignored[place] = places.ignored[at]
        if places.final[at]:
            ends.setdefault((rule, copy), []).append(place)
        for callee, back in places.calls[at]:
            start, target = places.starts[callee], number(rule, back, copy)
            if any(terminal == -1 for terminal, _ in places.terms[start]):
                # A row of lexemes, of this call alone.
                row = flat.add()
                flat.terms[place].append((-1, row))
                flat.terms[row].append((-1, row))
                flat.calls[row].append((0, target))
                flat.calls[place] += [(0, target)] if places.final[start] else []
                continue
            one = target if callee in small else 0
            flat.calls[place].append((0, number(callee, start, one)))
            behind.setdefault((callee, one), []).append(target)
    for call, found in ends.items():
        for place in found:
            flat.calls[place] += [(0, each) for each in dict.fromkeys(behind.get(call, []))]
    return flat


def _small_rules(places: Places) -> set[int]:
    """Rules of a few places, those of the rules that they call included; none where copies of them would be too many."""
    sizes: list[int] = []
    for start in places.starts:
        check_time()
        sizes.append(_size(places, start))
    small = {rule for rule, size in enumerate(sizes) if size <= _SMALL}
    calls = (callee for ways in places.calls for callee, _ in ways)
    copied = sum(sizes[callee] for callee in calls if callee in small)
    return small if len(places.final) + copied <= _MANY_PLACES else set()


def _size(places: Places, start: int) -> int:
    """Places of a rule, those of the rules that it calls once for each call; more than ``_SMALL`` stands for any such number."""
    size, work = 0, [(start, {start})]
    while work:
        at, seen = work.pop()
        size += 1
        if size > _SMALL:
            break
        for target in (target for ways in (places.terms[at], places.calls[at]) for _, target in ways):
            if target not in seen:
                seen.add(target)
                work.append((target, seen))
        # A rule that calls itself has no end.
        work += [(places.starts[callee], {places.starts[callee]}) for callee, _ in places.calls[at]]
    return size


def _determinized(
    flat: Places, start: int, lexemes: bool
) -> tuple[SubsetAutomaton, dict[int, int], dict[int, int]]:
    """The automaton of flat places; by its symbols, the terminal that is read (-1: a lexeme that is none), and what is waited for,
    a bit for each terminal.

    A symbol is a terminal, a lexeme that is none, any other such one, or that an ignored terminal is waited for, which leads nowhere.
    """
    terminals = sorted({each for terms in flat.terms for each, _ in terms} | {-1})
    ignored = sorted({each for some in flat.ignored for each in some})
    symbols: list[tuple[int, bool]] = [(each, True) for each in terminals] + [
        (each, False) for each in ignored
    ]
    numbers = {symbol: number for number, symbol in enumerate(symbols)}
    alphabet = Alphabet(((0, len(symbols) - 1),), [((number, number),) for number in range(len(symbols))])
    minterms = [alphabet.members(((number, number),)) for number in range(len(symbols))]
    sets = list(minterms)
    if lexemes:
        # Any lexeme that is no terminal may be one of these.
        sets[numbers[-1, True]] = tuple(
            sorted(
                each
                for number, (terminal, _) in enumerate(symbols)
                if BOUNDARY < terminal < 0
                for each in minterms[number]
            )
        )
    nowhere = len(flat.terms)
    edges = Edges(
        [
            (place, numbers[terminal if lexemes or terminal <= BOUNDARY else max(terminal, -1), True], target)
            for place, terms in enumerate(flat.terms)
            for terminal, target in terms
        ]
        + [(place, numbers[each, False], nowhere) for place, some in enumerate(flat.ignored) for each in some]
    )
    epsilons = [(place, target) for place, calls in enumerate(flat.calls) for _, target in calls]
    automaton = SubsetAutomaton(alphabet, nowhere + 1, start, nowhere, sets, edges, epsilons, _MUCH_WORK)
    read: dict[int, int] = {}
    waits: dict[int, int] = {}
    for number, (terminal, is_read) in enumerate(symbols):
        [minterm] = minterms[number]
        if is_read:
            read[minterm] = max(terminal, -1)
        waits[minterm] = 1 << terminal if terminal >= 0 else 0
    return automaton, read, waits


def _bit(classes: list[int], terminal: int, others: int, bounded: Mapping[int, int]) -> int:
    return 1 << (classes[terminal] if terminal >= 0 else bounded.get(terminal, others))


def members(bits: int) -> list[int]:
    """The numbers in a set of bits, ascending."""
    check_time()
    if bits.bit_count() > bits.bit_length() >> 6:
        # Of many, all are looked at: taking the lowest one away copies the number.
        return [at for at, digit in enumerate(bin(bits)[:1:-1]) if digit == "1"]
    found = []
    while bits:
        low = bits & -bits
        found.append(low.bit_length() - 1)
        bits ^= low
    return found
