"""Boolean operations on regular languages of code points, and bounds on their lengths.

Results are minimal deterministic automata, as ``Machine`` trees, so that they can be
embedded like any other tree.  The universe is all texts of Unicode scalar values.
All operations raise ``LimitError`` above ``limits.max_regex_states`` states.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

from maskwright._subsets import reduce
from maskwright.base.deadline import check_time, in_time, let_go
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regular.determinize import (
    Dfa,
    alphabet_of,
    automaton_of,
    check_states,
    divided,
    leaf_sets,
    minimal_dfa,
    product,
    shortest_length,
    subset_automaton,
)
from maskwright.regular.expressions import (
    ANY_CHAR,
    EPSILON,
    EVERY_TEXT,
    NOTHING,
    Alt,
    Cat,
    Chars,
    Lit,
    Machine,
    Regular,
    Repeat,
    cat,
    has_scalar,
    has_surrogate,
    intersect_ranges,
    made_of,
    postorder,
    repeat,
)
from maskwright.regular.memo import remembered
from maskwright.regular.thompson import without_empty_string

_Place = TypeVar("_Place", bound=Hashable)
# Characters of each text that is listed (on average), and parts that follow each other.
_LISTED_LENGTH = 100
_SURROGATES = 0x800


def intersect(nodes: Iterable[Regular], limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts of all the languages; of no language, every text."""
    kept = [node for node in nodes if node != EVERY_TEXT]
    if len(kept) <= 1:
        return kept[0] if kept else EVERY_TEXT
    return product(kept, (), limits).to_regular()


def only_in(nodes: Sequence[Regular], others: Sequence[Regular], limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts of all of the ``nodes`` that are texts of none of the ``others``."""
    if not others:
        return intersect(nodes, limits)
    return product(list(nodes) or [EVERY_TEXT], others, limits).to_regular()


def difference(a: Regular, b: Regular, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts of ``a`` that are not texts of ``b``."""
    return only_in([a], [b], limits)


def complement(node: Regular, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """All texts but those of ``node``."""
    return difference(EVERY_TEXT, node, limits)


def partition(nodes: Sequence[Regular], limits: Limits = DEFAULT_LIMITS) -> list[tuple[bytes, Regular]]:
    """All texts, told apart by which of the languages they are in (a byte for each, 1 or 0); those of the first language come first.

    A class without a text is left out; one that is one of the languages stays as it was given.
    """
    classes = divided(nodes, limits)
    given: dict[bytes, Regular] = {}
    for i, node in enumerate(in_time(nodes)):
        inside = [flags for flags in classes if flags[i]]
        if len(inside) == 1:
            given.setdefault(inside[0], node)
    return [
        (flags, given[flags] if flags in given else classes[flags].to_regular())
        for flags in in_time(sorted(classes, reverse=True))
    ]


def without_empty(node: Regular, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """All texts of ``node`` but the empty one; counted repetitions stay counted where they can."""
    bounds = length_bounds(node)
    if bounds is None or bounds[1] == 0:
        return NOTHING
    if bounds[0] > 0:
        return node
    stripped = without_empty_string(node, limits)
    return difference(node, EPSILON, limits) if stripped is None else stripped


def first_matches(node: Regular, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts of ``node`` of which no beginning is a text of ``node``."""
    dfa = minimal_dfa(node, limits)
    rows = [{} if accepting else row for row, accepting in zip(dfa.rows, dfa.accepting, strict=True)]
    return Dfa(reduce(dfa.alphabet, rows, dfa.accepting)).to_regular()


def first_matches_since(node: Regular, other: Regular, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts of ``node`` that begin with no other text of it, or with a text of ``other`` behind that one."""
    alphabet = alphabet_of(leaf_sets(node, other))
    this, that = (subset_automaton(each, alphabet, limits) for each in (node, other))

    def moves(place: tuple[int, int, bool]) -> dict[int, tuple[int, int, bool]]:
        state, beside, seen = place
        seen = this.accepting(state) or (seen and not (beside >= 0 and that.accepting(beside)))
        below = that.row(beside) if beside >= 0 else {}
        return {m: (target, below.get(m, -1), seen) for m, target in this.row(state).items()}

    places, rows = explored((0, 0, False), moves, limits)
    accepting = [this.accepting(state) and not seen for state, _, seen in places]
    return Dfa(reduce(alphabet, rows, accepting)).to_regular()


def explored(
    start: _Place, moves: Callable[[_Place], dict[int, _Place]], limits: Limits
) -> tuple[list[_Place], list[dict[int, int]]]:
    """The places that are reached, the start first, and the rows of the automaton that they make."""
    ids = {start: 0}
    order = [start]
    rows: list[dict[int, int]] = []
    for place in order:
        row: dict[int, int] = {}
        for minterm, after in moves(place).items():
            if after not in ids:
                ids[after] = len(order)
                order.append(after)
                check_states(len(order), limits)
            row[minterm] = ids[after]
        rows.append(row)
    return order, rows


def beginnings(node: Regular, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts that texts of ``node`` begin with, but the empty one."""
    dfa = minimal_dfa(node, limits)
    return without_empty(Dfa(reduce(dfa.alphabet, dfa.rows, [True] * len(dfa))).to_regular(), limits)


def matcher(node: Regular, limits: Limits = DEFAULT_LIMITS) -> Callable[[str], bool]:
    """A function that says whether a text is in the language.

    A text with a lone surrogate is in none.  The function determinises lazily, so it may raise
    ``LimitError`` as well, and it must not be shared by threads.
    """
    alphabet, automaton = automaton_of(node, limits)

    def matches_node(text: str) -> bool:
        return automaton.matches(alphabet, text)

    return matches_node


def matches(node: Regular, text: str, limits: Limits = DEFAULT_LIMITS) -> bool:
    """Whether the text is in the language; see ``matcher`` for many texts."""
    return matcher(node, limits)(text)


def is_empty(node: Regular) -> bool:
    """Whether no text is in the language."""
    alive: dict[int, bool] = {}
    for part in postorder(node, into_automata=False):
        if isinstance(part, Chars):
            result = has_scalar(part.ranges)
        elif isinstance(part, Lit):
            result = not has_surrogate(part.text)
        elif isinstance(part, Cat):
            result = all(alive[id(p)] for p in part.parts)
        elif isinstance(part, Alt):
            result = any(alive[id(p)] for p in part.parts)
        elif isinstance(part, Repeat):
            fits = part.max is None or part.min <= part.max
            result = fits and (part.min == 0 or alive[id(part.body)])
        elif isinstance(part, Machine):
            least = _least_length(part, alive)
            result = least is not None
            if least is not None and part.length is not None:
                low, high = part.length
                result = high is None or max(least, low) <= high
        else:
            result = True
        alive[id(part)] = result
    return not alive[id(node)]


def least_length(
    nodes: Sequence[Regular], others: Sequence[Regular], limits: Limits = DEFAULT_LIMITS
) -> int | None:
    """The length of a shortest text of all of the ``nodes`` that is one of none of the ``others``; None: there is none.

    The automaton of these texts is looked through as far as that text, and not made.
    """
    if len(nodes) == 1 and not others:
        bounds = length_bounds(nodes[0])
        return None if bounds is None else bounds[0]
    return shortest_length(list(nodes) or [EVERY_TEXT], others, limits)


def some_text(node: Regular, most: int = 1_000) -> str | None:
    """A text of the language, mostly a short one; None for an empty language, and where none of at most ``most``
    characters was found."""
    found: dict[int, str | None] = {}
    for part in postorder(node):
        text: str | None = None
        if isinstance(part, Lit):
            text = None if has_surrogate(part.text) else part.text
        elif isinstance(part, Chars):
            ranges = intersect_ranges(part.ranges, ANY_CHAR.ranges)
            text = chr(ranges[0][0]) if ranges else None
        elif isinstance(part, Cat):
            texts = [found[id(p)] for p in part.parts]
            text = None if None in texts else "".join(t for t in texts if t is not None)
        elif isinstance(part, Alt):
            text = min((t for p in part.parts if (t := found[id(p)]) is not None), key=len, default=None)
        elif isinstance(part, Repeat):
            inner = found[id(part.body)]
            if part.max is not None and part.max < part.min:
                text = None
            elif part.min == 0:
                text = ""
            elif inner is not None and len(inner) * part.min <= most:
                text = inner * part.min
        elif isinstance(part, Machine) and (part.length is None or part.length[0] == 0):
            text = _text_of_machine(part, {id(label): found[id(label)] for _, label, _ in part.edges})
        found[id(part)] = None if text is None or len(text) > most else text
    return found[id(node)]


def _text_of_machine(machine: Machine, labels: dict[int, str | None]) -> str | None:
    """A text with the fewest edges."""
    after: dict[int, list[tuple[str, int]]] = {}
    for a, label, b in machine.edges:
        text = labels[id(label)]
        if text is not None:
            after.setdefault(a, []).append((text, b))
    most = None if machine.length is None else machine.length[1]
    seen = {machine.start}
    level = [(machine.start, "")]
    edges = 0
    while level and (most is None or edges <= most):
        for state, text in level:
            if state in machine.accepts:
                return text
        below: list[tuple[int, str]] = []
        for state, text in level:
            for added, target in after.get(state, ()):
                if target not in seen:
                    seen.add(target)
                    below.append((target, text + added))
        level, edges = below, edges + 1
    return None


def _least_length(machine: Machine, alive: Mapping[int, object]) -> int | None:
    """Of a text of an automaton, whatever its bounds; ``alive``: by label, what is false for one without a text."""
    dfa = made_of(machine)
    if dfa is not None:
        least: int | None = dfa.table.least_length()
        return least
    after: dict[int, list[int]] = {}
    for a, label, b in machine.edges:
        if alive[id(label)]:
            after.setdefault(a, []).append(b)
    length = {machine.start: 0}
    queue = [machine.start]
    for state in queue:
        if state in machine.accepts:
            return length[state]
        for target in after.get(state, ()):
            if target not in length:
                length[target] = length[state] + 1
                queue.append(target)
    return None


@remembered(1024)
def finite_texts(node: Regular, most: int, limits: Limits = DEFAULT_LIMITS) -> tuple[str, ...] | None:
    """All texts in order, when there are at most ``most``; else None."""
    if _surely_more(node, most):
        return None
    listed = listed_texts(node, most)
    if listed is not None:
        return tuple(sorted(listed))
    dfa = minimal_dfa(node, limits)
    if _count(dfa, most) is None:
        return None
    accepts, leaving = set(dfa.accepts()), dfa.leaving()
    found: list[str] = []
    work = [(0, "")] if len(dfa) else []
    while work:
        state, text = work.pop()
        if state in accepts:
            found.append(text)
        for label, target in leaving[state]:
            for low, high in label.ranges:
                work.extend((target, text + chr(code)) for code in range(low, high + 1))
    return tuple(sorted(found))


def listed_texts(node: Regular, most: int) -> tuple[str, ...] | None:
    """The texts of a tree of literals and small sets, in its order; None for other trees, and beyond ``most`` texts."""
    found: dict[int, list[str]] = {}
    try:
        return _listed(node, most, found)
    finally:
        let_go(found)


def _listed(node: Regular, most: int, found: dict[int, list[str]]) -> tuple[str, ...] | None:
    """The same; ``found``: those of its parts."""
    for part in postorder(node, into_automata=False):
        check_time()
        texts: list[str] = []
        if isinstance(part, Lit):
            texts.append(part.text)
        elif isinstance(part, Alt):
            for p in part.parts:
                texts += found[id(p)]
                if len(texts) > most:
                    return None
        elif isinstance(part, Cat) and len(part.parts) <= _LISTED_LENGTH:
            texts.append("")
            for p in part.parts:
                if len(texts) * len(found[id(p)]) > most:
                    return None
                texts = [text + more for text in texts for more in found[id(p)]]
        elif isinstance(part, Chars):
            for low, high in part.ranges:
                if high - low >= most:
                    return None
                texts += [chr(code) for code in range(low, high + 1)]
        elif isinstance(part, Repeat) and (part.min, part.max) == (0, 1):
            texts += ["", *found[id(part.body)]]
        else:
            return None
        if len(texts) > most or sum([len(text) for text in texts]) > most * _LISTED_LENGTH:
            return None
        found[id(part)] = texts
    return tuple(dict.fromkeys([text for text in found[id(node)] if not has_surrogate(text)]))


def _surely_more(node: Regular, most: int) -> bool:
    """Whether there are more than ``most`` texts, as far as is seen without an automaton."""
    found: dict[int, tuple[int, bool]] = {}  # at least so many texts; whether one is known not to be empty
    for part in postorder(node, into_automata=False):
        count, longer = 0, False
        if isinstance(part, Chars) and has_scalar(part.ranges):
            count, longer = max(1, sum([high - low + 1 for low, high in part.ranges]) - _SURROGATES), True
        elif isinstance(part, Lit) and not has_surrogate(part.text):
            count, longer = 1, bool(part.text)
        elif isinstance(part, (Cat, Alt)):
            parts = [found[id(p)] for p in part.parts]
            if isinstance(part, Alt) or all(inner[0] for inner in parts):
                # With one text at all places but one, or of one alternative.
                count = max([inner[0] for inner in parts], default=int(isinstance(part, Cat)))
                longer = any(inner[1] for inner in parts)
        elif isinstance(part, Repeat) and (part.max is None or part.max >= part.min):
            count, longer = found[id(part.body)]
            if part.max == 0 or count == 0:
                count, longer = int(part.min == 0), False
            elif part.max is None and longer:
                count = most + 1
        elif made_of(part) is not None:
            count = int(len(made_of(part)) > 0)
        found[id(part)] = count, longer
    return found[id(node)][0] > most


def count_texts(node: Regular, most: int, limits: Limits = DEFAULT_LIMITS) -> int | None:
    """How many texts there are, when there are at most ``most``; else None."""
    if _surely_more(node, most):
        return None
    listed = listed_texts(node, most)
    if listed is not None:
        return len(listed)
    return _count(minimal_dfa(node, limits), most)


def _count(dfa: Dfa, most: int) -> int | None:
    counts: dict[int, int] = {}
    under_way: set[int] = set()
    accepts, leaving = set(dfa.accepts()), dfa.leaving()
    work = [0] if len(dfa) else []
    while work:
        state = work[-1]
        if state in counts:
            work.pop()
            continue
        if state not in under_way:
            under_way.add(state)
            below = [target for _, target in leaving[state] if target not in counts]
            if not under_way.isdisjoint(below):
                # A loop, in a trimmed automaton: every state leads to a text.
                return None
            work += below
            continue
        counts[state] = int(state in accepts)
        for label, target in leaving[state]:
            counts[state] += counts[target] * sum(high - low + 1 for low, high in label.ranges)
        if counts[state] > most:
            return None
        under_way.discard(state)
        work.pop()
    return counts.get(0, 0)


def with_length(node: Regular, low: int, high: int | None, limits: Limits = DEFAULT_LIMITS) -> Regular:
    """The texts of ``low`` to ``high`` code points (None: unbounded).

    The bound stays a counter where it can, so a large ``high`` costs nothing.
    """
    bounds = length_bounds(node)
    if bounds is None:
        return NOTHING
    least, most = bounds
    if (high is not None and max(low, least) > high) or (most is not None and most < low):
        return NOTHING
    if least >= low and (high is None or (most is not None and most <= high)):
        return node
    narrowed = _narrow_repeat(node, low, high)
    if narrowed is not None:
        return narrowed
    if most is not None and high is not None and most <= high:
        high = None
    dfa = minimal_dfa(node, limits)
    if not len(dfa):
        return NOTHING
    if low > least and not _any_length_from_least(dfa):
        # The bound as a part of the automaton.
        dfa = product([node, repeat(ANY_CHAR, low, None)], (), limits)
        low = 0
        if not len(dfa):
            return NOTHING
    low = 0 if low <= least else low
    if low == 0 and high is None:
        return dfa.to_regular()
    result = dfa.machine((low, high))
    return NOTHING if is_empty(result) else result


def length_bounds(node: Regular) -> tuple[int, int | None] | None:
    """The least and the greatest length of a text, in code points (None: no greatest).

    None when the language is empty.  The least is exact; the greatest is exact but for a
    ``Machine``, where None may stand for a bound.
    """
    found: dict[int, tuple[int, int | None] | None] = {}
    for part in postorder(node, into_automata=False):
        check_time()
        result: tuple[int, int | None] | None = (0, 0)
        if isinstance(part, Chars):
            result = (1, 1) if has_scalar(part.ranges) else None
        elif isinstance(part, Lit):
            result = None if has_surrogate(part.text) else (len(part.text), len(part.text))
        elif isinstance(part, Cat):
            low, high = 0, 0
            unbounded = False
            for p in in_time(part.parts):
                inner = found[id(p)]
                if inner is None:
                    result = None
                    break
                low += inner[0]
                unbounded = unbounded or inner[1] is None
                high += inner[1] or 0
            else:
                result = (low, None if unbounded else high)
        elif isinstance(part, Alt):
            inners = [found[id(p)] for p in in_time(part.parts)]
            some = [inner for inner in in_time(inners) if inner is not None]
            highs = [inner[1] for inner in in_time(some)]
            result = None
            if some:
                most = None if None in highs else max(h for h in highs if h is not None)
                result = (min(inner[0] for inner in some), most)
        elif isinstance(part, Repeat):
            inner = found[id(part.body)]
            if part.max is not None and part.min > part.max:
                result = None
            elif inner is None:
                result = (0, 0) if part.min == 0 else None
            elif inner[1] == 0:
                result = (0, 0)
            elif part.max is None or (inner[1] is None and part.max > 0):
                result = (inner[0] * part.min, None)
            else:
                result = (inner[0] * part.min, (inner[1] or 0) * part.max)
        elif isinstance(part, Machine):
            least = _least_length(part, found)
            result = None
            if least is not None:
                low, high_ = part.length or (0, None)
                least = max(least, low)
                result = None if high_ is not None and least > high_ else (least, high_)
        found[id(part)] = result
    return found[id(node)]


def _narrow_repeat(node: Regular, low: int, high: int | None) -> Regular | None:
    """Length bounds moved into the only repetition whose length varies; None: not so simple."""
    parts = node.parts if isinstance(node, Cat) else (node,)
    fixed, varying = 0, -1
    for i, part in enumerate(parts):
        bounds = length_bounds(part)
        if bounds is None:
            return None
        if bounds[0] == bounds[1]:
            fixed += bounds[0]
        elif varying >= 0:
            return None
        else:
            varying = i
    loop = parts[varying]
    if varying < 0 or not isinstance(loop, Repeat):
        return None
    inner = length_bounds(loop.body)
    if inner is None or inner[0] != inner[1]:
        return None
    width = inner[0]
    least = max(loop.min, -(-max(low - fixed, 0) // width))
    most = loop.max
    if high is not None:
        fits = (high - fixed) // width
        most = fits if most is None else min(most, fits)
    if most is not None and least > most:
        return NOTHING
    return cat(*parts[:varying], repeat(loop.body, least, most), *parts[varying + 1 :])


def _any_length_from_least(dfa: Dfa) -> bool:
    """Whether every state accepts some text of each length from its least one on.

    Sufficient, not necessary: a shortest accepted continuation meets a state with a loop.
    """
    loops = [False] * len(dfa)
    before: list[list[int]] = [[] for _ in loops]
    for source, _, target in dfa.edges():
        before[target].append(source)
        if source == target:
            loops[source] = True
    # Backwards from acceptance: the least length of a path, and of one that meets a loop.
    queue = [(i, loops[i]) for i in dfa.accepts()]
    level = dict.fromkeys(queue, 0)
    for state, met in queue:
        for source in before[state]:
            found = (source, met or loops[source])
            if found not in level:
                level[found] = level[state, met] + 1
                queue.append(found)
    return all(
        (i, True) in level and level[i, True] <= level.get((i, False), level[i, True])
        for i in range(len(loops))
    )
