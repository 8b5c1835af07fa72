"""Byte automata, spellings, and boolean operations, against brute force."""

from __future__ import annotations

import itertools
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nfa_simulation import nfa_alive, nfa_matches

from maskwright.automata import build_nfa
from maskwright.dfa import (
    complement,
    difference,
    intersect,
    is_empty,
    length_bounds,
    matcher,
    matches,
    with_length,
)
from maskwright.encoding import encode, quoted
from maskwright.errors import LimitError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import parse_regex
from maskwright.regular import (
    ANY_CHAR,
    EPSILON,
    NOTHING,
    ByteClass,
    Chars,
    Lit,
    Machine,
    Regular,
    alt,
    cat,
    char,
    chars,
    repeat,
    text,
)

WORDS = ["".join(letters) for length in range(6) for letters in itertools.product("ab", repeat=length)]


def accepts(node: Regular, value: str) -> bool:
    return nfa_matches(build_nfa([(encode(node, "utf8"), 0)], DEFAULT_LIMITS), value.encode()) is not None


def trees(counts: st.SearchStrategy[tuple[int, int | None]]) -> st.SearchStrategy[tuple[Regular, str]]:
    """Trees over a and b, each with the same pattern for ``re``."""

    def extend(inner: st.SearchStrategy[tuple[Regular, str]]) -> st.SearchStrategy[tuple[Regular, str]]:
        def concatenate(parts: list[tuple[Regular, str]]) -> tuple[Regular, str]:
            return cat(*(node for node, _ in parts)), "".join(f"(?:{p})" for _, p in parts)

        def choose(parts: list[tuple[Regular, str]]) -> tuple[Regular, str]:
            return alt(*(node for node, _ in parts)), "|".join(f"(?:{p})" for _, p in parts)

        def loop(item: tuple[Regular, str], count: tuple[int, int | None]) -> tuple[Regular, str]:
            low, high = count
            bounds = f"{{{low},{'' if high is None else high}}}"
            return repeat(item[0], low, high), f"(?:{item[1]}){bounds}"

        lists = st.lists(inner, min_size=1, max_size=3)
        return st.one_of(lists.map(concatenate), lists.map(choose), st.builds(loop, inner, counts))

    leaves = st.sampled_from(
        [(char("a"), "a"), (char("b"), "b"), (chars((97, 98)), "[ab]"), (EPSILON, "(?:)"), (NOTHING, "(?!)")]
    )
    return st.recursive(leaves, extend, max_leaves=8)


SMALL_COUNTS = st.sampled_from([(0, None), (1, None), (0, 1), (2, None), (0, 2), (2, 3), (3, 3)])
# Above what is unrolled because it is small, so that loops are counted.
LARGE_COUNTS = st.sampled_from([(0, 9), (2, 10), (9, None), (0, None), (1, 12)])


@settings(max_examples=200, deadline=None)
@given(trees(SMALL_COUNTS))
def test_nfa_agrees_with_re(tree: tuple[Regular, str]) -> None:
    node, pattern = tree
    nfa = build_nfa([(encode(node, "utf8"), 7)], DEFAULT_LIMITS)
    expected = re.compile(pattern)
    for word in WORDS:
        found = nfa_matches(nfa, word.encode())
        assert (found == 7) == (expected.fullmatch(word) is not None), (pattern, word)


@settings(max_examples=60, deadline=None)
@given(trees(LARGE_COUNTS))
def test_counted_loops_agree_with_re(tree: tuple[Regular, str]) -> None:
    node, pattern = tree
    try:
        nfa = build_nfa([(encode(node, "utf8"), 0)], Limits(max_regex_states=3000))
    except LimitError:
        return
    expected = re.compile(pattern)
    for word in [*WORDS[:30], *("a" * n for n in range(14)), *("ab" * n for n in range(14)), "b" * 25]:
        assert (nfa_matches(nfa, word.encode()) is not None) == bool(expected.fullmatch(word)), word


@settings(max_examples=200, deadline=None)
@given(trees(SMALL_COUNTS))
def test_every_reached_state_can_be_completed(tree: tuple[Regular, str]) -> None:
    node, _ = tree
    nfa = build_nfa([(encode(node, "utf8"), 0)], DEFAULT_LIMITS)
    for word in WORDS[:15]:
        if nfa_alive(nfa, word.encode()):
            prefix = cat(text(word), repeat(chars((97, 98)), 0, None))
            assert not is_empty(intersect([node, prefix]))


def test_tags_and_choice_of_the_smallest() -> None:
    nfa = build_nfa([(Lit(b"ab"), 3), (Lit(b"a"), 2), (Lit(b"ab"), 1)], DEFAULT_LIMITS)
    assert [nfa_matches(nfa, data) for data in (b"", b"a", b"ab", b"abc")] == [None, 2, 1, None]


def test_large_bounds_are_counted_and_small_ones_are_not() -> None:
    letter = ByteClass(1 << 97)
    assert build_nfa([(repeat(letter, 0, 3), 0)], DEFAULT_LIMITS).loops == []
    nfa = build_nfa([(repeat(letter, 2, 1000), 0)], DEFAULT_LIMITS)
    assert nfa.loops == [(2, 1000)]
    assert nfa.n_states < 10
    assert [nfa_matches(nfa, b"a" * n) for n in (1, 2, 1000, 1001)] == [None, 0, 0, None]
    assert build_nfa([(repeat(letter, 50, None), 0)], DEFAULT_LIMITS).loops == [(50, -1)]


def test_nested_counts_keep_the_cheaper_one_counted() -> None:
    inner = repeat(Lit(b"a"), 0, 10)
    nfa = build_nfa([(repeat(cat(inner, Lit(b"b")), 0, 500), 0)], DEFAULT_LIMITS)
    assert nfa.loops == [(0, 500)]
    assert nfa_matches(nfa, (b"a" * 10 + b"b") * 20) == 0
    assert nfa_matches(nfa, b"a" * 11 + b"b") is None


def test_states_that_lead_nowhere_are_removed() -> None:
    dead = cat(Lit(b"ab"), ByteClass(0))
    nfa = build_nfa([(alt(cat(Lit(b"x"), dead), Lit(b"y")), 0)], DEFAULT_LIMITS)
    assert not nfa_alive(nfa, b"x")
    empty = build_nfa([(dead, 0)], DEFAULT_LIMITS)
    assert (empty.n_states, empty.edges, empty.accepts) == (1, [], [])
    assert nfa_matches(build_nfa([(repeat(dead, 0, 500), 0)], DEFAULT_LIMITS), b"") == 0


def test_size_limit() -> None:
    node: Regular = ByteClass(2)
    for _ in range(3):
        node = repeat(cat(node, repeat(Lit(b"b"), 1, 500)), 1000, 1000)
    with pytest.raises(LimitError) as caught:
        build_nfa([(node, 0)], DEFAULT_LIMITS)
    assert caught.value.limit == "max_regex_states"
    with pytest.raises(LimitError):
        build_nfa([(repeat(Lit(b"a"), 2**31, None), 0)], DEFAULT_LIMITS)
    build_nfa([(repeat(Lit(b"a"), 0, 2**31), 0)], DEFAULT_LIMITS)


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


def test_code_points_must_be_encoded_first() -> None:
    with pytest.raises(ValueError, match="encode"):
        build_nfa([(char("a"), 0)], DEFAULT_LIMITS)
    with pytest.raises(ValueError, match="byte-level"):
        encode(ByteClass(2), "utf8")


EDGES = sorted(
    {
        code + d
        for code in (0, 0x20, 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000)
        for d in (-1, 0, 1)
    }
    | {0xCFFF, 0xD000, 0xFFFD, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000}
    | {0x10FFFE, 0x10FFFF}
)
SCALARS = [code for code in EDGES if code >= 0 and not 0xD800 <= code <= 0xDFFF]


@pytest.mark.parametrize("low", SCALARS[::3])
def test_utf8_is_exact_at_every_boundary(low: int) -> None:
    for high in (low, low + 1, 0x7FF, 0xFFFF, 0x10000, 0x10FFFF):
        if high < low:
            continue
        nfa = build_nfa([(encode(Chars(((low, high),)), "utf8"), 0)], DEFAULT_LIMITS)
        for code in SCALARS:
            assert (nfa_matches(nfa, chr(code).encode()) == 0) == (low <= code <= high), (low, high, code)


@pytest.mark.parametrize(
    "data",
    [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf",
     b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\x80", b"\xe2\x82", b"\xf0\x9f\x98"],
)  # fmt: skip
def test_utf8_has_no_overlong_or_surrogate_forms(data: bytes) -> None:
    nfa = build_nfa([(encode(Chars(((0, 0x10FFFF),)), "utf8"), 0)], DEFAULT_LIMITS)
    assert nfa_matches(nfa, data) is None


SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def spellings(c: str) -> list[str]:
    """Every way to write a character in a JSON string (two of the cases of hex digits)."""
    units = c.encode("utf-16-be")
    escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    out = [escaped, escaped.upper().replace("\\U", "\\u")]
    if c >= " " and c not in '"\\':
        out.append(c)
    if c in SHORT:
        out.append(SHORT[c])
    return out


def test_quoted_spellings_of_boundary_characters() -> None:
    for code in SCALARS:
        others = build_nfa([(quoted(difference(ANY_CHAR, char(chr(code)))), 0)], DEFAULT_LIMITS)
        own = build_nfa([(quoted(char(chr(code))), 0)], DEFAULT_LIMITS)
        for spelling in spellings(chr(code)):
            data = f'"{spelling}"'.encode()
            assert json.loads(data) == chr(code)
            assert nfa_matches(own, data) == 0
            assert nfa_matches(others, data) is None


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_quoted_strings_agree_with_json(data: st.DataObject) -> None:
    value = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
    spelled = '"' + "".join(data.draw(st.sampled_from(spellings(c))) for c in value) + '"'
    assert json.loads(spelled) == value
    anything = build_nfa([(quoted(repeat(ANY_CHAR, 0, None)), 0)], DEFAULT_LIMITS)
    exactly = build_nfa([(quoted(text(value)), 0)], DEFAULT_LIMITS)
    assert nfa_matches(anything, spelled.encode()) == 0
    assert nfa_matches(exactly, spelled.encode()) == 0


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*'"\\/bu0dD8cC9aé\n', "\\u", "\\ud83d", "\\ude00", "\\n"]), max_size=6))
def test_anything_in_quotes_is_a_json_string_or_refused(pieces: list[str]) -> None:
    spelled = f'"{"".join(pieces)}"'
    nfa = build_nfa([(quoted(repeat(ANY_CHAR, 0, None)), 0)], DEFAULT_LIMITS)
    try:
        value = json.loads(spelled)
        expected = isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
    except ValueError:
        expected = False
    assert (nfa_matches(nfa, spelled.encode()) == 0) == expected, spelled


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


@settings(max_examples=200, deadline=None)
@given(trees(SMALL_COUNTS), st.integers(0, 4), st.one_of(st.none(), st.integers(0, 5)))
def test_lengths_agree_with_re(tree: tuple[Regular, str], low: int, high: int | None) -> None:
    node, pattern = tree
    bounded = with_length(node, low, high)
    nfa = build_nfa([(encode(bounded, "utf8"), 0)], DEFAULT_LIMITS)
    expected = re.compile(pattern)
    language = {
        word for word in WORDS
        if expected.fullmatch(word) and low <= len(word) and (high is None or len(word) <= high)
    }  # fmt: skip
    prefixes = {word[:i] for word in language for i in range(len(word) + 1)}
    in_bounded = matcher(bounded)
    for word in WORDS:
        assert (nfa_matches(nfa, word.encode()) == 0) == in_bounded(word) == (word in language)
        if high is not None and high <= 5:
            assert nfa_alive(nfa, word.encode()) == (word in prefixes), (pattern, word)
    if high is not None:
        assert is_empty(bounded) == (not language)


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
    nfa = build_nfa([(encode(with_length(node, low, high), "utf8"), 0)], DEFAULT_LIMITS)
    words = ["ab" * 32, "aab" * 21, "a" * 62, "ba" * 31]
    finite = intersect([node, repeat(ANY_CHAR, low, high)])
    explicit = build_nfa([(encode(finite, "utf8"), 0)], DEFAULT_LIMITS)
    assert explicit.loops == []
    for word in words:
        for end in range(len(word)):
            data = word[:end].encode()
            assert nfa_matches(nfa, data) == nfa_matches(explicit, data), (pattern, data)
            assert nfa_alive(nfa, data) == nfa_alive(explicit, data), (pattern, data)


def test_large_lengths_stay_counters() -> None:
    node = parse_regex("[a-z]+(?:-[a-z]+)*")
    nfa = build_nfa([(encode(with_length(node, 5, 100_000), "utf8"), 0)], DEFAULT_LIMITS)
    assert nfa.n_states < 20
    assert with_length(parse_regex("a[b-z]*"), 0, 63) == parse_regex("a[b-z]{0,62}")
    assert with_length(parse_regex("ab"), 3, None) == NOTHING
    assert with_length(parse_regex("[ab]{2,3}"), 1, 5) == parse_regex("[ab]{2,3}")
    assert with_length(parse_regex("(?:aaa)*"), 4, 5) == NOTHING


def test_length_counts_code_points_not_bytes() -> None:
    nfa = build_nfa([(quoted(with_length(repeat(ANY_CHAR, 0, None), 2, 2)), 0)], DEFAULT_LIMITS)
    for spelled in ('"😀é"', '"\\ud83d\\ude00a"', '"\\n\\u0041"'):
        assert nfa_matches(nfa, spelled.encode()) == 0
    assert nfa_matches(nfa, '"😀"'.encode()) is None


def test_boolean_limits() -> None:
    blow_up = parse_regex("(?:a|b)*a(?:a|b){30}")
    with pytest.raises(LimitError):
        complement(blow_up, Limits(max_regex_states=2000))
    with pytest.raises(LimitError):
        with_length(parse_regex("(?:ab|bab)*"), 5000, 5001, Limits(max_regex_states=1000))


def test_surrogates_are_no_text() -> None:
    lone = Chars(((0xD800, 0xDFFF),))
    assert is_empty(lone)
    assert encode(lone, "utf8") == NOTHING
    assert encode(cat(lone, char("a")), "quoted") == NOTHING
    assert complement(repeat(ANY_CHAR, 0, None)) == NOTHING
    assert not matches(repeat(Chars(((0, 0x10FFFF),)), 0, None), "\ud800")


def test_simple_results_are_simple_trees() -> None:
    assert intersect([]) == repeat(ANY_CHAR, 0, None)
    assert intersect([parse_regex("a*"), parse_regex("b*")]) == EPSILON
    assert intersect([parse_regex("[a-z]*"), parse_regex("[a-f]*")]) == repeat(chars((97, 102)), 0, None)
    small = intersect([parse_regex("a|b"), parse_regex("b|c")])
    assert isinstance(small, Machine)
    assert small.n_states == 2
