"""The general case of assertions: automata that carry what is still owed.

A run of a pattern with assertions is a thread: a position in the pattern, what is known of the
text before it, and obligations on the text behind it.  An obligation is a state of the
deterministic automaton of the texts that satisfy a look-ahead (``$`` and word boundaries are
look-aheads too), and steps along with the thread; the thread may end where all obligations
accept.  Look-behinds are automata that have read the whole text so far.  There are finitely many
threads, so they are the states of an ordinary automaton, and the result is exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from maskwright.base.deadline import check_time_again, in_time, let_go
from maskwright.errors import GrammarError, LimitError
from maskwright.limits import Limits
from maskwright.regex.anchors import anchored_language, asserting_nodes
from maskwright.regex.syntax import ASSERTIONS, Assertion, Look, TextEnd, TextStart, WordBoundary
from maskwright.regular.determinize import (
    Alphabet,
    alphabet_of,
    check_states,
    leaf_sets,
    minimal_dfa,
    subset_automaton,
)
from maskwright.regular.dfa import complement, only_in
from maskwright.regular.expressions import (
    EPSILON,
    EVERY_TEXT,
    NOTHING,
    Cat,
    Chars,
    Machine,
    Ranges,
    Regular,
    alt,
    cat,
    char,
    complement_ranges,
    postorder,
)
from maskwright.regular.thompson import Sizes, Thompson

Before: TypeAlias = frozenset[Ranges] | None
"""What stands before a position: a character that is in these sets of word characters, or nothing."""
START: Before = None

# The deterministic automaton is kept when it is no larger than this times the other one (of languages that are cut with
# each other: the product of their sizes).
_DETERMINISTIC_GROWTH = 4
# Of each part, where a pattern is put together from languages.
_FEW_STATES = 5_000
# Transitions that may be computed for each state allowed.
_WORK_PER_STATE = 4

Obligations: TypeAlias = frozenset[tuple[int, int]]


def resolve(
    tree: Regular, limits: Limits, *, search: bool, before: Before = START, depth: int = 0
) -> Regular:
    """The language of a tree with ``Assertion`` leaves, as a tree without any.

    With ``search``, the texts in which a match of the tree occurs; else those that it matches.
    ``before`` says what stands before the text, ``depth`` how many look-arounds enclose it.
    Raises ``GrammarError`` for look-arounds that are not supported (look-behind inside
    look-ahead, anything but ``^`` inside look-behind), and ``LimitError`` above
    ``limits.max_regex_states`` states or ``limits.max_nested_looks`` levels.
    """
    order = postorder(tree)
    asserting = asserting_nodes(order)
    if not asserting and not search:
        return tree
    if not asserting or before == START:
        simple = anchored_language(tree, asserting, search)
        if simple is not None:
            return simple
    if depth == 0:  # deeper, what is tried in vain would be tried twice at each level
        leading = _after_leading_looks(tree, limits, search, before)
        if leading is not None:
            return leading
    if search:
        tree = cat(EVERY_TEXT, tree, EVERY_TEXT)
    return _Resolver(tree, limits, before, depth).language()


def _after_leading_looks(tree: Regular, limits: Limits, search: bool, before: Before) -> Regular | None:
    """The language of a tree that begins with look-aheads: what comes after them, cut with their languages.

    None where it begins otherwise, or that needs many states.
    """
    parts = tree.parts if isinstance(tree, Cat) else (tree,)
    starts: list[Regular] = []
    looks: list[Look] = []
    for part in parts:
        if isinstance(part, TextStart) and before == START:
            starts.append(part)
        elif isinstance(part, Look) and not part.behind and (starts or not search):
            looks.append(part)
        else:
            break
    if not looks:
        return None
    rest = cat(*starts, *parts[len(starts) + len(looks) :])
    # Without the looks, the rest may have many more texts.
    few = replace(limits, max_regex_states=min(limits.max_regex_states, _FEW_STATES))
    try:
        languages = [resolve(rest, few, search=search, before=before)]
        others: list[Regular] = []
        for look in looks:
            (others if look.negative else languages).append(_ahead_language(look, few, before, 0))
        sizes = Sizes(limits, counting=False)
        most = _DETERMINISTIC_GROWTH
        for language in (*languages, *others):
            most *= 2 + sizes(language)
        most = min(limits.max_regex_states, max(most, _FEW_STATES))
        return only_in(languages, others, replace(limits, max_regex_states=most))
    except LimitError as error:
        check_time_again(error)
        return None


def _ahead_language(look: Look, limits: Limits, before: Before, depth: int) -> Regular:
    """The texts that may stand behind a look-ahead, were it positive."""
    _check_nesting(look, limits, depth)
    return resolve(cat(look.body, EVERY_TEXT), limits, search=False, before=before, depth=depth + 1)


def _check_nesting(look: Look, limits: Limits, depth: int) -> None:
    most = limits.max_nested_looks
    if depth >= most:
        raise LimitError("max_nested_looks", depth + 1, most, place=look.place)


@dataclass(frozen=True, slots=True)
class Context:
    """What a thread knows of the text before it: the neighbour, and look-behind states."""

    before: Before
    behinds: tuple[int, ...]


_Thread: TypeAlias = tuple[int, Context, Obligations]


class _AssertionThompson(Thompson):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits, counting=False)
        self.assertions: list[tuple[int, Assertion, int]] = []

    def other_leaf(self, node: object, source: int, target: int) -> None:
        if not isinstance(node, ASSERTIONS):
            raise ValueError(f"no leaf of a pattern: {node!r}")
        self.assertions.append((source, node, target))


class _Automaton:
    """A minimal automaton, stepped over the minterms of the whole pattern."""

    def __init__(self, language: Regular, alphabet: Alphabet, limits: Limits) -> None:
        self._subsets = subset_automaton(language, alphabet, limits)
        self._size = len(alphabet)
        self.step = self._subsets.row
        self.accepting = self._subsets.accepting

    def accepts_all(self, state: int) -> bool:
        """Whether every text is accepted from here (in a minimal automaton: a loop)."""
        row = self.step(state)
        return self.accepting(state) and len(row) == self._size and set(row.values()) == {state}


class Owing:
    """What runs of a pattern know of the text before them and owe to the text behind them, for its assertions."""

    def __init__(
        self, given: Iterable[Assertion], sets: Iterable[Ranges], limits: Limits, before: Before, depth: int
    ) -> None:
        """``sets``: what the pattern tells apart besides."""
        self.limits = limits
        self.depth = depth
        assertions = list(dict.fromkeys(given))
        words = _word_sets(assertions)
        self.before = before if before is None else before.intersection(words)
        # Neighbours are told apart only where it matters, which keeps the threads few.
        self.tells_start = any(isinstance(a, (TextStart, WordBoundary)) or _looks_back(a) for a in assertions)
        behinds = [a for a in assertions if isinstance(a, Look) and a.behind]
        behind_languages = [self._behind(look) for look in behinds]
        contexts: list[Before] = [START, *_neighbours(words)] if self.tells_start else [self.before]
        ahead_languages: dict[tuple[Assertion, Before], Regular] = {}
        for assertion in assertions:
            if not isinstance(assertion, TextStart) and not (
                isinstance(assertion, Look) and assertion.behind
            ):
                for context in contexts:
                    ahead_languages[assertion, context] = self._ahead(assertion, context)
        languages = [*behind_languages, *ahead_languages.values()]
        self.alphabet = alphabet_of([*sets, *leaf_sets(*languages), *words])
        self.neighbour_of = _neighbours_of(self.alphabet, words)
        self.behinds = [_Automaton(language, self.alphabet, limits) for language in behind_languages]
        self.behind_index = {look: i for i, look in enumerate(behinds)}
        self.aheads: list[_Automaton | None] = []
        self.ahead_index: dict[tuple[Assertion, Before], int] = {}
        shared: dict[Regular, int] = {}
        for key, language in ahead_languages.items():
            if language not in shared:
                shared[language] = len(self.aheads)
                empty = language == NOTHING
                self.aheads.append(None if empty else _Automaton(language, self.alphabet, limits))
            self.ahead_index[key] = shared[language]
        self.start_context = Context(self.before, (0,) * len(self.behinds))

    def _ahead(self, assertion: Assertion, before: Before) -> Regular:
        """The texts that may stand behind the assertion, as a minimal automaton."""
        if isinstance(assertion, TextEnd):
            return alt(EPSILON, char("\n")) if assertion.newline else EPSILON
        if isinstance(assertion, WordBoundary):
            word = assertion.word
            ends_word = (before is not None and word in before) != assertion.negative
            behind = cat(Chars(complement_ranges(word) if ends_word else word), EVERY_TEXT)
            return minimal_dfa(alt(EPSILON, behind) if ends_word else behind, self.limits).to_regular()
        assert isinstance(assertion, Look)
        body = _ahead_language(assertion, self.limits, before, self.depth)
        if assertion.negative:
            return complement(body, self.limits)
        return minimal_dfa(body, self.limits).to_regular()

    def _behind(self, look: Look) -> Regular:
        """The texts that may stand before the look-behind, were it positive."""
        _check_nesting(look, self.limits, self.depth)
        if self.depth:
            raise GrammarError(
                "look-behind (or '^' with the flag m) inside a look-around is not supported", place=look.place
            )
        for node in postorder(look.body):
            if isinstance(node, ASSERTIONS) and not isinstance(node, TextStart):
                message = "only '^' is supported among the assertions inside look-behind"
                raise GrammarError(message, place=look.place)
        return resolve(cat(EVERY_TEXT, look.body), self.limits, search=False, depth=self.depth + 1)

    def owed(self, assertion: Assertion, context: Context, obligations: Obligations) -> Obligations | None:
        """The obligations with those of the assertion; None when it cannot hold."""
        if isinstance(assertion, TextStart):
            return obligations if context.before == START else None
        if isinstance(assertion, Look) and assertion.behind:
            index = self.behind_index[assertion]
            state = context.behinds[index]
            holds = state >= 0 and self.behinds[index].accepting(state)
            return obligations if holds != assertion.negative else None
        index = self.ahead_index[assertion, context.before]
        automaton = self.aheads[index]
        if automaton is None:
            return None
        return obligations if automaton.accepts_all(0) else obligations | {(index, 0)}

    def _automaton(self, index: int) -> _Automaton:
        automaton = self.aheads[index]
        assert automaton is not None
        return automaton

    def paid(self, obligations: Iterable[tuple[int, int]]) -> bool:
        return all(self._automaton(index).accepting(state) for index, state in obligations)

    def step_context(self, context: Context, minterm: int) -> Context:
        behinds = tuple(
            automaton.step(state).get(minterm, -1) if state >= 0 else -1
            for automaton, state in zip(self.behinds, context.behinds, strict=True)
        )
        return Context(self.neighbour_of[minterm] if self.tells_start else self.before, behinds)

    def step_owed(self, obligations: Obligations, minterm: int) -> Obligations | None:
        owed = set()
        for index, state in obligations:
            automaton = self._automaton(index)
            target = automaton.step(state).get(minterm)
            if target is None:
                return None
            if not automaton.accepts_all(target):
                owed.add((index, target))
        return frozenset(owed)


class _Resolver(Owing):
    def __init__(self, tree: Regular, limits: Limits, before: Before, depth: int) -> None:
        builder = _AssertionThompson(limits)
        self.start, self.accept = builder.new_state(), builder.new_state()
        builder.place(tree, self.start, self.accept)
        super().__init__(
            [assertion for _, assertion, _ in builder.assertions], builder.sets, limits, before, depth
        )
        self.edges: list[list[tuple[tuple[int, ...], int]]] = [[] for _ in range(builder.n_states)]
        members = [self.alphabet.members(ranges) for ranges in builder.sets]
        for a, index, b in builder.edges:
            self.edges[a].append((members[index], b))
        self.epsilons: list[list[tuple[Assertion | None, int]]] = [[] for _ in range(builder.n_states)]
        for a, b, _, _ in builder.epsilons:
            self.epsilons[a].append((None, b))
        for a, assertion, b in builder.assertions:
            self.epsilons[a].append((assertion, b))

    def language(self) -> Regular:
        nowhere: Obligations = frozenset()
        start = (self.start, self.start_context, nowhere)
        ids = {start: 0}
        order = [start]
        edges: dict[tuple[int, int], set[int]] = {}
        accepts = []
        work = 0
        try:
            for index, thread in enumerate(order):
                accepting, moves = self._moves(self._close(thread))
                if accepting:
                    accepts.append(index)
                for target, minterms in moves.items():
                    found = ids.get(target)
                    if found is None:
                        found = ids[target] = len(order)
                        order.append(target)
                    edges.setdefault((index, found), set()).update(minterms)
                    work += len(minterms)
                    check_states(max(len(order), work // _WORK_PER_STATE), self.limits)
        except BaseException:
            let_go(edges, ids, order)
            raise
        labelled = [
            (a, Chars(self.alphabet.union(minterms)), b) for (a, b), minterms in in_time(edges.items())
        ]
        machines = [Machine(len(order), 0, tuple(labelled), tuple(accepts))]
        growth = min(self.limits.max_regex_states, _DETERMINISTIC_GROWTH * len(order))
        let_go(edges, ids, order, labelled)
        try:
            smallest = minimal_dfa(machines[0], replace(self.limits, max_regex_states=growth)).to_regular()
        except LimitError as error:
            check_time_again(error)
            return machines[0]
        let_go(machines)
        return smallest

    def _close(self, thread: _Thread) -> list[_Thread]:
        """All threads that are reached without reading, in an order that no hash has a part in."""
        seen = {thread: None}
        work = [thread]
        while work:
            position, context, obligations = work.pop()
            for assertion, target in self.epsilons[position]:
                owed: Obligations | None = obligations
                if assertion is not None:
                    owed = self.owed(assertion, context, obligations)
                if owed is not None and (target, context, owed) not in seen:
                    seen[target, context, owed] = None
                    work.append((target, context, owed))
        check_states(len(seen), self.limits)
        return list(seen)

    def _moves(self, threads: list[_Thread]) -> tuple[bool, dict[_Thread, list[int]]]:
        """Whether some thread may end here, and the threads behind one character."""
        accepting = False
        moves: dict[_Thread, list[int]] = {}
        behind_cache: dict[tuple[Context, int], Context] = {}
        owed_cache: dict[tuple[Obligations, int], Obligations | None] = {}
        for position, context, obligations in threads:
            if position == self.accept and self.paid(obligations):
                accepting = True
            for members, target in self.edges[position]:
                for minterm in members:
                    if (context, minterm) not in behind_cache:
                        behind_cache[context, minterm] = self.step_context(context, minterm)
                    if (obligations, minterm) not in owed_cache:
                        owed_cache[obligations, minterm] = self.step_owed(obligations, minterm)
                    owed = owed_cache[obligations, minterm]
                    if owed is not None:
                        after = (target, behind_cache[context, minterm], owed)
                        moves.setdefault(after, []).append(minterm)
        return accepting, moves


def _looks_back(assertion: Assertion) -> bool:
    """Whether it is a look-ahead whose meaning may depend on what stands before."""
    return (
        isinstance(assertion, Look)
        and not assertion.behind
        and any(isinstance(node, (TextStart, WordBoundary)) for node in _looks(assertion))
    )


def _looks(look: Look) -> list[object]:
    """All nodes of a look-around and of those nested in it."""
    nodes: list[object] = []
    work = [look.body]
    while work:
        below: list[object] = [*postorder(work.pop())]
        nodes += below
        work += [node.body for node in below if isinstance(node, Look)]
    return nodes


def _word_sets(assertions: Iterable[object]) -> list[Ranges]:
    """The word characters of the boundaries, nested ones included: more than one set with flags inside of the pattern."""
    found: dict[Ranges, None] = {}
    for assertion in assertions:
        nested = _looks(assertion) if isinstance(assertion, Look) else []
        for node in (assertion, *nested):
            if isinstance(node, WordBoundary):
                found[node.word] = None
    return list(found)


def _neighbours_of(alphabet: Alphabet, words: list[Ranges]) -> list[frozenset[Ranges]]:
    """By minterm, the sets of word characters that it is in."""
    inside = [frozenset(alphabet.members(word)) for word in words]
    made: dict[frozenset[Ranges], frozenset[Ranges]] = {}
    found = []
    for minterm in range(len(alphabet)):
        sets = frozenset([word for word, members in zip(words, inside, strict=True) if minterm in members])
        found.append(made.setdefault(sets, sets))
    return found


def _neighbours(words: list[Ranges]) -> list[frozenset[Ranges]]:
    """All that a character can be."""
    return list(dict.fromkeys(_neighbours_of(alphabet_of(words), words)))


def neighbours(assertions: Iterable[object]) -> list[frozenset[Ranges]]:
    """What characters before a pattern can be, as far as its assertions tell them apart."""
    return _neighbours(_word_sets(assertions))
