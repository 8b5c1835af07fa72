"""Automata over code points and boolean operations, against brute force."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nfa_simulation import nfa_alive, nfa_matches
from regular_strategies import LARGE_COUNTS, trees

from maskwright.errors import LimitError
from maskwright.ir.grammar import EMPTY, Choice, Expr, Ref, Seq
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex, search_language
from maskwright.regular import determinize
from maskwright.regular.automata import build_nfa
from maskwright.regular.determinize import product, shortest_length
from maskwright.regular.dfa import (
    complement,
    count_texts,
    difference,
    finite_texts,
    intersect,
    is_empty,
    least_length,
    length_bounds,
    listed_texts,
    matcher,
    matches,
    only_in,
    partition,
    some_text,
    with_length,
)
from maskwright.regular.expressions import (
    ANY_CHAR,
    EPSILON,
    NOTHING,
    Alt,
    Cat,
    Chars,
    Lit,
    Machine,
    Regular,
    Repeat,
    alt,
    cat,
    char,
    chars,
    repeat,
)

WORDS = ["".join(letters) for length in range(6) for letters in itertools.product("ab", repeat=length)]


def accepts(node: Regular, value: str) -> bool:
    return nfa_matches(build_nfa([(node, 0)], DEFAULT_LIMITS), value) is not None


def test_listed_texts_are_few_and_short() -> None:
    assert listed_texts(search_language("^(?:a|b)c?[de]$"), 8) == (
        "ad",
        "ae",
        "acd",
        "ace",
        "bd",
        "be",
        "bcd",
        "bce",
    )
    for pattern in ("^(?:a|b)c?[de]f?$", "^a*$", "a", "^" + "[ab]" * 3 + "c" * 40_000 + "$", "^.$"):
        assert listed_texts(search_language(pattern), 8) is None


def test_no_text_has_a_surrogate() -> None:
    for text in ("\ud800", "a\udfff", "\ud83d\ude00"):
        node = Lit(text)
        nfa = build_nfa([(alt(node, char("b")), 0)], DEFAULT_LIMITS)
        assert nfa_matches(nfa, "b") == 0
        assert nfa.n_states == 2
        assert is_empty(node) and length_bounds(node) is None and some_text(node) is None
        assert length_bounds(alt(node, EPSILON)) == (0, 0)
        assert is_empty(cat(node, char("a"))) and not is_empty(repeat(node, 0, 3))


@settings(max_examples=200, deadline=None)
@given(st.deferred(lambda: trees(SMALL_COUNTS)), st.integers(0, 20))
def test_finite_texts_are_all_texts(tree: tuple[Regular, str], most: int) -> None:
    node, pattern = tree
    found = finite_texts(node, most)
    assert count_texts(node, most) == (None if found is None else len(found))
    machine = product([node], (), DEFAULT_LIMITS).to_regular()
    assert finite_texts(alt(machine, node), most) == found
    assert count_texts(cat(machine, node), most) == count_texts(
        product([cat(node, node)], (), DEFAULT_LIMITS).to_regular(), most
    )
    bounds = length_bounds(node)
    if bounds is None:
        assert found == ()
        return
    if bounds[1] is None:
        assert found is None
        return
    texts: set[str] = {""}
    for _ in range(bounds[1]):
        # Beginnings of texts, and texts: enough of them tell that there are too many.
        texts |= {text + letter for text in texts for letter in "ab"} if len(texts) < 4096 else set()
    matching = tuple(sorted(text for text in texts if re.compile(pattern).fullmatch(text)))
    if len(texts) < 4096:
        assert found == (matching if len(matching) <= most else None), pattern
    else:
        assert found is None or len(found) <= most


SMALL_COUNTS = st.sampled_from([(0, None), (1, None), (0, 1), (2, None), (0, 2), (2, 3), (3, 3)])


@settings(max_examples=200, deadline=None)
@given(trees(SMALL_COUNTS))
def test_nfa_agrees_with_re(tree: tuple[Regular, str]) -> None:
    node, pattern = tree
    nfa = build_nfa([(node, 7)], DEFAULT_LIMITS)
    expected = re.compile(pattern)
    for word in WORDS:
        found = nfa_matches(nfa, word)
        assert (found == 7) == (expected.fullmatch(word) is not None), (pattern, word)


# The same patterns each time: of some, backtracking in ``re`` never ends.
@settings(max_examples=60, deadline=None, derandomize=True)
@given(trees(LARGE_COUNTS))
def test_counted_loops_agree_with_re(tree: tuple[Regular, str]) -> None:
    node, pattern = tree
    try:
        nfa = build_nfa([(node, 0)], Limits(max_regex_states=3000))
    except LimitError:
        return
    expected = re.compile(pattern)
    for word in [*WORDS[:30], *("a" * n for n in range(14)), *("ab" * n for n in range(14)), "b" * 25]:
        assert (nfa_matches(nfa, word) is not None) == bool(expected.fullmatch(word)), word


@settings(max_examples=200, deadline=None)
@given(trees(SMALL_COUNTS))
def test_every_reached_state_can_be_completed(tree: tuple[Regular, str]) -> None:
    node, _ = tree
    nfa = build_nfa([(node, 0)], DEFAULT_LIMITS)
    for word in WORDS[:15]:
        if nfa_alive(nfa, word):
            prefix = cat(Lit(word), repeat(chars((97, 98)), 0, None))
            assert not is_empty(intersect([node, prefix]))


def test_tags_and_choice_of_the_smallest() -> None:
    nfa = build_nfa([(Lit("ab"), 3), (Lit("a"), 2), (Lit("ab"), 1)], DEFAULT_LIMITS)
    assert [nfa_matches(nfa, data) for data in ("", "a", "ab", "abc")] == [None, 2, 1, None]


def test_large_bounds_are_counted_and_small_ones_are_not() -> None:
    letter = char("a")
    assert build_nfa([(repeat(letter, 0, 3), 0)], DEFAULT_LIMITS).loops == []
    nfa = build_nfa([(repeat(letter, 2, 1000), 0)], DEFAULT_LIMITS)
    assert nfa.loops == [(2, 1000)]
    assert nfa.n_states < 10
    assert [nfa_matches(nfa, "a" * n) for n in (1, 2, 1000, 1001)] == [None, 0, 0, None]
    assert build_nfa([(repeat(letter, 50, None), 0)], DEFAULT_LIMITS).loops == [(50, -1)]


def test_nested_counts_keep_the_cheaper_one_counted() -> None:
    inner = repeat(Lit("a"), 0, 10)
    nfa = build_nfa([(repeat(cat(inner, Lit("b")), 0, 500), 0)], DEFAULT_LIMITS)
    assert nfa.loops == [(0, 500)]
    assert nfa_matches(nfa, ("a" * 10 + "b") * 20) == 0
    assert nfa_matches(nfa, "a" * 11 + "b") is None


def test_states_that_lead_nowhere_are_removed() -> None:
    dead = cat(Lit("ab"), NOTHING)
    nfa = build_nfa([(alt(cat(Lit("x"), dead), Lit("y")), 0)], DEFAULT_LIMITS)
    assert not nfa_alive(nfa, "x")
    empty = build_nfa([(dead, 0)], DEFAULT_LIMITS)
    assert (empty.n_states, list(empty.edges), empty.accepts) == (1, [], [])
    assert nfa_matches(build_nfa([(repeat(dead, 0, 500), 0)], DEFAULT_LIMITS), "") == 0


def test_size_limit() -> None:
    node: Regular = char("a")
    for _ in range(3):
        node = repeat(cat(node, repeat(Lit("b"), 1, 500)), 1000, 1000)
    with pytest.raises(LimitError) as caught:
        build_nfa([(node, 0)], DEFAULT_LIMITS)
    assert caught.value.limit == "max_regex_states"
    with pytest.raises(LimitError):
        build_nfa([(repeat(Lit("a"), 2**31, None), 0)], DEFAULT_LIMITS)
    build_nfa([(repeat(Lit("a"), 0, 2**31), 0)], DEFAULT_LIMITS)


def test_deep_trees_need_no_recursion() -> None:
    node = char("a")
    for _ in range(5000):
        node = repeat(alt(cat(node, char("b")), char("c")), 0, 1)
    again = char("a")
    for _ in range(5000):
        again = repeat(alt(cat(again, char("b")), char("c")), 0, 1)
    assert node == again
    assert hash(node) == hash(again)
    assert accepts(node, "cbbb")


@pytest.mark.slow
def test_deep_trees_are_freed_without_recursion() -> None:
    for wrap in (lambda t: Repeat(t, 1, 3), lambda t: Cat((t, Lit("a"))), lambda t: Alt((Lit("b"), t))):
        tree: Regular = Lit("x")
        for _ in range(500_000):
            tree = wrap(tree)
        hash(tree)
        del tree
    expression: Expr = Ref(0)
    for level in range(500_000):
        expression = Choice((expression, EMPTY)) if level % 2 else Seq((expression,))
    del expression


@settings(max_examples=150, deadline=None)
@given(trees(SMALL_COUNTS), trees(SMALL_COUNTS))
def test_boolean_operations_agree_with_re(a: tuple[Regular, str], b: tuple[Regular, str]) -> None:
    both, without, other = intersect([a[0], b[0]]), difference(a[0], b[0]), complement(a[0])
    in_a, in_b = re.compile(a[1]), re.compile(b[1])
    language = set()
    in_both, in_rest, in_other = matcher(both), matcher(without), matcher(other)
    for word in WORDS:
        one, two = in_a.fullmatch(word) is not None, in_b.fullmatch(word) is not None
        assert in_both(word) == (one and two)
        assert in_rest(word) == (one and not two)
        assert in_other(word) == (not one)
        if one:
            language.add(word)
    if is_empty(a[0]):
        assert not language
    bounds = length_bounds(a[0])
    if language:
        assert bounds is not None
        assert bounds[0] == min(map(len, language))


@settings(max_examples=150, deadline=None)
@given(trees(SMALL_COUNTS), trees(SMALL_COUNTS), trees(SMALL_COUNTS))
def test_the_least_length_is_that_of_the_automaton(
    a: tuple[Regular, str], b: tuple[Regular, str], c: tuple[Regular, str]
) -> None:
    for inside, outside in ([a, b], []), ([a], [b, c]), ([], [a]), ([a, b], [c]):
        nodes, others = [node for node, _ in inside], [node for node, _ in outside]
        bounds = length_bounds(only_in(nodes, others))
        assert least_length(nodes, others) == (None if bounds is None else bounds[0])


@settings(max_examples=150, deadline=None)
@given(st.lists(trees(SMALL_COUNTS), min_size=1, max_size=3))
def test_a_partition_tells_all_texts_apart(items: list[tuple[Regular, str]]) -> None:
    classes = partition([node for node, _ in items])
    assert len(dict(classes)) == len(classes)
    assert not any(is_empty(language) for _, language in classes)
    for text in (*WORDS, "c", "ca"):
        flags = bytes(re.compile(pattern).fullmatch(text) is not None for _, pattern in items)
        assert [found for found, language in classes if matches(language, text)] == [flags]


def test_ambiguous_languages_are_made_minimal_before_they_multiply() -> None:
    nodes = [
        parse_regex(f"(.*{letter}.{{{n}}}.*|.{{0,{n}}}|[^{letter}]*)")
        for letter, n in (("a", 7), ("b", 6), ("c", 6))
    ]
    assert len(partition(nodes)) == 8


def test_a_class_that_was_given_stays_counted() -> None:
    long, short = repeat(char("a"), 20, 30), parse_regex("b+")
    flags = dict(partition([long, short, alt(char("b"), char("c"))]))
    assert flags[bytes([1, 0, 0])] is long
    assert bytes([0, 1, 1]) in flags and bytes([1, 1, 0]) not in flags


@settings(max_examples=150, deadline=None)
@given(trees(SMALL_COUNTS), trees(SMALL_COUNTS))
def test_equal_languages_are_equal_trees(a: tuple[Regular, str], b: tuple[Regular, str]) -> None:
    one, other = complement(alt(a[0], b[0])), only_in([complement(b[0])], [a[0]])
    assert one == other and hash(one) == hash(other)
    more = complement(alt(a[0], b[0], Lit("abc")))
    assert (more == one) == matches(alt(a[0], b[0]), "abc")


@settings(max_examples=150, deadline=None)
@given(trees(SMALL_COUNTS), trees(SMALL_COUNTS))
def test_automata_are_minimal(a: tuple[Regular, str], b: tuple[Regular, str]) -> None:
    dfa = product([a[0]], [b[0]], DEFAULT_LIMITS)
    rows, accepting = dfa.rows, dfa.accepting
    assert len(dfa) == len(rows) == len(accepting)
    reached = {0} if rows else set()
    for state in (work := list(reached)):
        new = set(rows[state].values()) - reached
        reached |= new
        work += new
    assert len(reached) == len(rows)
    # States are told apart by the lengths and symbols of what follows (Moore, 1956); none is left that goes nowhere.
    classes: list[object] = [0] * len(rows)
    for _ in rows:
        names = [
            (flag, *sorted((s, classes[t]) for s, t in row.items()))
            for flag, row in zip(accepting, rows, strict=True)
        ]
        classes = [names.index(name) for name in names]
    assert len(set(classes)) == len(rows)
    alive = {state for state, flag in enumerate(accepting) if flag}
    for _ in rows:
        alive |= {state for state, row in enumerate(rows) if not alive.isdisjoint(row.values())}
    assert len(alive) == len(rows)


@settings(max_examples=200, deadline=None)
@given(trees(SMALL_COUNTS), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 5)))
def test_lengths_agree_with_re(tree: tuple[Regular, str], low: int, high: int | None) -> None:
    node, pattern = tree
    bounded = with_length(node, low, high)
    nfa = build_nfa([(bounded, 0)], DEFAULT_LIMITS)
    expected = re.compile(pattern)
    language = {
        word for word in WORDS
        if expected.fullmatch(word) and low <= len(word) and (high is None or len(word) <= high)
    }  # fmt: skip
    prefixes = {word[:i] for word in language for i in range(len(word) + 1)}
    in_bounded = matcher(bounded)
    for word in WORDS:
        assert (nfa_matches(nfa, word) == 0) == in_bounded(word) == (word in language)
        if high is not None and high <= 5:
            assert nfa_alive(nfa, word) == (word in prefixes), (pattern, word)
    if high is not None:
        assert is_empty(bounded) == (not language)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "low", "high"),
    [
        ("(?:ab)+", 0, 41),
        ("(?:ab|a)+b", 15, 60),
        ("a+(?:ba+)*", 20, 60),
        ("(?:aab)*b?", 31, 50),
        (".*a.*b.*", 9, 24),
    ],
)
def test_counted_lengths_never_lead_to_a_dead_end(pattern: str, low: int, high: int) -> None:
    node = parse_regex(pattern)
    nfa = build_nfa([(with_length(node, low, high), 0)], DEFAULT_LIMITS)
    words = ["ab" * 32, "aab" * 21, "a" * 62, "ba" * 31]
    finite = intersect([node, repeat(ANY_CHAR, low, high)])
    explicit = build_nfa([(finite, 0)], DEFAULT_LIMITS)
    assert explicit.loops == []
    for word in words:
        for end in range(len(word)):
            data = word[:end]
            assert nfa_matches(nfa, data) == nfa_matches(explicit, data), (pattern, data)
            assert nfa_alive(nfa, data) == nfa_alive(explicit, data), (pattern, data)


def test_large_lengths_stay_counters() -> None:
    node = parse_regex("[a-z]+(?:-[a-z]+)*")
    nfa = build_nfa([(with_length(node, 5, 100_000), 0)], DEFAULT_LIMITS)
    assert nfa.n_states < 20
    assert with_length(parse_regex("a[b-z]*"), 0, 63) == parse_regex("a[b-z]{0,62}")
    assert with_length(parse_regex("ab"), 3, None) == NOTHING
    assert with_length(parse_regex("[ab]{2,3}"), 1, 5) == parse_regex("[ab]{2,3}")
    assert with_length(parse_regex("(?:aaa)*"), 4, 5) == NOTHING


def test_boolean_limits() -> None:
    blow_up = parse_regex("(?:a|b)*a(?:a|b){30}")
    with pytest.raises(LimitError):
        complement(blow_up, Limits(max_regex_states=2000))
    with pytest.raises(LimitError):
        with_length(parse_regex("(?:ab|bab)*"), 5000, 5001, Limits(max_regex_states=1000))


def test_surrogates_are_no_text() -> None:
    lone = Chars(((0xD800, 0xDFFF),))
    assert is_empty(lone)
    assert list(build_nfa([(cat(lone, char("a")), 0)], DEFAULT_LIMITS).edges) == []
    assert complement(repeat(ANY_CHAR, 0, None)) == NOTHING
    assert not matches(repeat(Chars(((0, 0x10FFFF),)), 0, None), "\ud800")


def test_simple_results_are_simple_trees() -> None:
    assert intersect([]) == repeat(ANY_CHAR, 0, None)
    assert intersect([parse_regex("a*"), parse_regex("b*")]) == EPSILON
    assert intersect([parse_regex("[a-z]*"), parse_regex("[a-f]*")]) == repeat(chars((97, 102)), 0, None)
    small = intersect([parse_regex("a|b"), parse_regex("b|c")])
    assert isinstance(small, Machine)
    assert small.n_states == 2


@pytest.mark.parametrize(
    "large",
    [
        # Many more states than its minimal automaton has, and than are kept.
        r"[ab]{1,64}|[ab](?:\.?[ab]){0,31}|[ab](?:\.?[ab]){0,15}[ab]{0,33}|[ab]{1,34}(?:\.?[ab]){0,15}",
        # No smaller automaton can be kept.
        "(?:a|b)*a(?:a|b){11}",
    ],
)
def test_a_large_automaton_that_comes_again_is_another_one_of_the_same_language(large: str) -> None:
    node = parse_regex(large)
    others = [parse_regex(pattern) for pattern in ("[^b]*", "(?:aa|b.)*", ".{3,20}", "[^.]+", "a.*")]
    determinize._shared.forget()
    again = [product([node, other], (), DEFAULT_LIMITS) for other in (*others, *others)]
    for other, found in zip((*others, *others), again, strict=True):
        determinize._shared.forget()
        assert found == product([node, other], (), DEFAULT_LIMITS)
        assert found == product([other, node], (), DEFAULT_LIMITS)


def test_limits_do_not_depend_on_what_was_asked_before() -> None:
    local = r"[ab]{1,64}|[ab](?:\.?[ab]){0,31}|[ab](?:\.?[ab]){0,15}[ab]{0,33}|[ab]{1,34}(?:\.?[ab]){0,15}"
    large, other = parse_regex(local), parse_regex(".*a.{3}")
    limits = Limits(max_regex_states=11_500)
    determinize._shared.forget()
    determinize._minimal_dfa.cache_clear()
    first = product([large, other], (), limits)
    determinize._shared.forget()
    with pytest.raises(LimitError):
        # As they are given, they do not fit.
        determinize._side_by_side([large, other], (), (), limits).combine()
    for pattern in ("(?:aa|b.)*", ".{3,20}", "[^.]+"):
        product([large, parse_regex(pattern)], (), limits)
    assert product([large, other], (), limits) == first
    assert shortest_length([large, other], (), limits) == 4
    with pytest.raises(LimitError):
        product([large, other], (), Limits(max_regex_states=1_000))
