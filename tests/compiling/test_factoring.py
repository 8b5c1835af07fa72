"""Rule bodies made deterministic, with helper rules in place: the same texts, and equal states for equal places."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.compiling.factoring import PlainState, factor

TERMS, LONGEST = 2, 4
Texts = frozenset[tuple[int, ...]]


def texts(plain: list[PlainState], starts: dict[int, int]) -> dict[int, Texts]:
    """The texts of each rule up to ``LONGEST`` terms: the least solution of the equations that states are."""
    found: list[Texts] = [frozenset() for _ in plain]
    changed = True
    while changed:
        changed = False
        for at, state in enumerate(plain):
            now = {()} if state.final else set()
            for term, target, _ in state.terms:
                now |= {(term, *text) for text in found[target]}
            for rule, back in state.calls:
                now |= {a + b for a, b in itertools.product(found[starts[rule]], found[back])}
            kept = frozenset(text for text in now if len(text) <= LONGEST)
            changed = changed or kept != found[at]
            found[at] = kept
    return {rule: found[start] for rule, start in starts.items()}


@st.composite
def bodies(draw: st.DrawFn) -> tuple[list[PlainState], dict[int, int], set[int]]:
    """A few rules: their states lead forward and to a shared end, as those of expressions do."""
    plain = [PlainState(final=True)]
    starts = {}
    count = draw(st.integers(1, 4))
    for rule in range(count):
        own = [0]
        for _ in range(draw(st.integers(1, 3))):
            targets = st.sampled_from(own)
            terms = draw(st.lists(st.tuples(st.integers(0, TERMS - 1), targets, st.just(-1)), max_size=2))
            calls = draw(st.lists(st.tuples(st.integers(0, count - 1), targets), max_size=2))
            plain.append(PlainState(terms, calls, draw(st.booleans())))
            own.append(len(plain) - 1)
        starts[rule] = own[-1]
    return plain, starts, draw(st.sets(st.integers(0, count - 1)))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(bodies())
def test_the_texts_stay_the_same(given_bodies: tuple[list[PlainState], dict[int, int], set[int]]) -> None:
    plain, starts, helpers = given_bodies
    made, first = factor(plain, starts, helpers)
    assert texts(made, first) == texts(plain, starts)
    for state in made if made is not plain else []:
        assert len({(term, tag) for term, _, tag in state.terms}) == len(state.terms)
        assert len({rule for rule, _ in state.calls}) == len(state.calls)


def test_a_repetition_is_a_loop() -> None:
    # 0: "(" [0 (1 0)*] ")", where the helper 1 is `"," 0 | 1 "," 0`.
    plain = [PlainState(final=True)]

    def state(*terms: tuple[int, int], calls: tuple[tuple[int, int], ...] = ()) -> int:
        plain.append(PlainState([(term, target, -1) for term, target in terms], list(calls)))
        return len(plain) - 1

    item = state(calls=((0, 0),))
    comma = state((2, item))
    star = state((2, item), calls=((1, comma),))
    close = state((1, 0))
    more = state((1, 0), calls=((1, close),))
    array = state((0, state((1, 0), calls=((0, more),))))
    made, first = factor(plain, {0: array, 1: star}, {1})
    reached, work = set(), [first[0]]
    while work:
        at = work.pop()
        if at not in reached:
            reached.add(at)
            assert all(rule == 0 for rule, _ in made[at].calls)
            work += [target for _, target, _ in made[at].terms] + [back for _, back in made[at].calls]
    # Before the bracket, behind it, behind an item, behind a comma, at the end.
    assert len(reached) == 5
    assert texts(made, first) == texts(plain, {0: array, 1: star})


def test_what_grows_too_much_is_left_as_it_is() -> None:
    # The n-th term from the end is a 0.
    count = 12
    plain = [PlainState(final=True)]
    for _ in range(count):
        plain.append(PlainState([(0, len(plain) - 1, -1), (1, len(plain) - 1, -1)]))
    start = len(plain)
    plain.append(PlainState([(0, start, -1), (1, start, -1), (0, start - 1, -1)]))
    assert factor(plain, {0: start}, ()) == (plain, {0: start})


VOCABULARY = mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [b"</s>"], eos_ids=256)
JSON = r"""
start: value
value: "[" [value ("," value)*] "]" | "{" [member ("," member)*] "}" | NUMBER
member: NAME ":" value
NUMBER: /[0-9]+/
NAME: /[a-z]+/
%ignore / +/
"""
KEYWORDS = r"""
start: (NAME ";" | IF NAME ";")+
IF: /if(?![a-z])/
NAME: /(?!(if|else)(?![a-z]))[a-z]+/
%ignore / +/
"""


@pytest.mark.parametrize(
    ("grammar", "first", "second"),
    [
        (JSON, b"[1,", b"[1,2,"),
        (JSON, b"[[1]", b"[[1],[1]"),
        (JSON, b"{a:1", b"{a:1,b:[],c:2"),
        (JSON, b"[{a:", b"[{a:1,b:2},{c:"),
        # A name of which no keyword can become is one, whether it begins like one or not.
        (KEYWORDS, b"abc", b"ifx"),
        (KEYWORDS, b"a", b"elsewhere"),
        (KEYWORDS, b"a;b;if ", b"if "),
    ],
)
def test_places_that_mean_the_same_are_one_state(grammar: str, first: bytes, second: bytes) -> None:
    compiled = mw.compile_lark(grammar, VOCABULARY)
    one = compiled.matcher()
    other = compiled.matcher()
    assert one.accept_bytes(first) and other.accept_bytes(second)
    assert one.state_id == other.state_id
