"""Terminals whose automata have exponentially many states: nothing makes more of them than it needs, and limits hold."""

from __future__ import annotations

import heapq
import random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from toys import byte_vocabulary

import maskwright as mw
from maskwright.regex import parse_regex
from maskwright.regular.determinize import Dfa, minimal_dfa
from maskwright.regular.dfa import intersect, is_empty
from maskwright.regular.expressions import ANY_CHAR, repeat

BYTES = byte_vocabulary()
# The 21st character from the end is an a: a deterministic automaton has two million states.
SPLIT = "[ab]*a[ab]{20}"
FEW = mw.Limits(max_lexer_states=20_000)


GROWING = f"start: (A _S)+\nA: /{SPLIT}/\n_S: /;/\n"


def test_a_lexeme_has_no_more_states_than_its_limit_in_one_operation() -> None:
    limits = mw.Limits(max_lexer_states=1000)
    matcher = mw.compile_lark(GROWING, byte_vocabulary(), lexer="dynamic", limits=limits).matcher()
    draw = random.Random(1)
    with pytest.raises(mw.LimitError) as info:
        matcher.accept_bytes(bytes(draw.choices(b"ab", k=3000)))
    assert info.value.limit == "max_lexer_states" and 1000 < info.value.given < 1300
    assert matcher.accepted_tokens == []
    for _ in range(3000):
        assert matcher.accept_bytes(draw.choice([b"a", b"b"]))


def test_a_lexer_has_no_more_states_than_its_limit() -> None:
    limits = mw.Limits(max_lexer_states=1000)
    matcher = mw.compile_lark(GROWING, byte_vocabulary(), limits=limits).matcher()
    text = bytes(random.Random(1).choices(b"ab", k=3000))
    for _ in range(2):
        with pytest.raises(mw.LimitError) as info:
            matcher.accept_bytes(text)
        assert info.value.limit == "max_lexer_states"
        # It ends where the limit is passed, not behind all that the operation would have made.
        assert 1000 < info.value.given < 1300
        assert not matcher.accepted_tokens
    # The limit is one of an operation: what smaller ones reach is let go of in time.
    for byte in text:
        assert matcher.accept_bytes(bytes([byte]))


@pytest.mark.parametrize(
    "source",
    [
        mw.Lark(f"start: A\nA: /{SPLIT}/\n"),
        mw.Lark(f'start: (A ";")+\nA: /{SPLIT}/\n%ignore " "\n'),
        mw.Lark(f"start: A\nA: /{SPLIT}/\n", lexer="dynamic"),
        mw.Regex(SPLIT),
        mw.Regex(f"({SPLIT}c|d)e"),
        mw.GBNF("root ::= [ab]* [a] [ab]{20}"),
        mw.JsonSchema({"type": "string", "pattern": f"^{SPLIT}$"}),
    ],
    ids=str,
)
def test_what_is_looked_for_is_found_without_all_states(source: object) -> None:
    matcher = mw.compile(source, byte_vocabulary(), limits=FEW).matcher()
    assert matcher.accept_bytes(matcher.shortest_completion_bytes())
    assert matcher.is_accepting


_PARTS = ("a*", "é*", "b", "(?:ab)+", "(?:é|bb)*", "(?:aab|b)*", "(?:éb*|cc)", "[ab]{0,3}", "(?:[a-c]+-)*")


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@example("é*ba*", 60, None)
@example("a*(?:éb*|cc)a*", 300, None)
@given(
    st.lists(st.sampled_from(_PARTS), min_size=1, max_size=4).map("".join),
    st.integers(20, 150),
    st.one_of(st.none(), st.integers(0, 40)),
)
def test_shortest_completions_of_counted_texts_are_the_shortest(
    pattern: str, low: int, more: int | None
) -> None:
    language = intersect([parse_regex(pattern), repeat(ANY_CHAR, low, None if more is None else low + more)])
    schema = {"type": "string", "pattern": f"^{pattern}$", "minLength": low}
    if more is not None:
        schema["maxLength"] = low + more
    if is_empty(language):
        with pytest.raises(mw.UnsatisfiableError):
            mw.compile_json_schema(schema, BYTES)
        return
    matcher = mw.compile_json_schema(schema, BYTES).matcher()
    shortest = matcher.shortest_completion_bytes()
    assert len(shortest) == 2 + _least_bytes(minimal_dfa(language, mw.Limits()))
    assert matcher.accept_bytes(shortest) and matcher.is_accepting


def _least_bytes(dfa: Dfa) -> int:
    """Of a text in UTF-8, by Dijkstra's algorithm."""
    queue, done = [(0, 0)], set()
    leaving, accepts = dfa.leaving(), dfa.accepts()
    while True:
        length, state = heapq.heappop(queue)
        if state in accepts:
            return length
        if state not in done:
            done.add(state)
            for label, target in leaving[state]:
                heapq.heappush(queue, (length + len(chr(label.ranges[0][0]).encode()), target))


@pytest.mark.parametrize(
    "source",
    [
        # Keys are told apart, and texts that are refused, by complements: these need all states.
        mw.JsonSchema({"type": "object", "patternProperties": {f"^{SPLIT}$": True}}),
        mw.Regex(f"(?!{SPLIT}$)[abc]*"),
    ],
    ids=str,
)
def test_what_needs_all_states_has_too_many(source: object) -> None:
    with pytest.raises(mw.LimitError, match="max_regex_states"):
        mw.compile(source, byte_vocabulary())


def test_shortest_texts_of_many_states() -> None:
    matcher = mw.compile_regex(SPLIT, BYTES, limits=FEW).matcher()
    assert len(matcher.shortest_completion_bytes()) == 21
    draw = random.Random(0)
    text = ""
    for _ in range(60):
        text += draw.choice("ab")
        assert matcher.accept_bytes(text[-1:].encode())
        # The last 20 characters, and none: the first a among them is the one that is counted from.
        last = text[-21:]
        wanted = 21 if "a" not in last else (last.index("a") + 21 - len(last))
        assert len(matcher.shortest_completion_bytes()) == wanted, text


Sized = tuple[str, int]
"""A pattern, and the bytes of its shortest text."""


def _repeated(inner: st.SearchStrategy[Sized]) -> st.SearchStrategy[Sized]:
    bounds = st.tuples(st.integers(0, 30), st.integers(0, 30) | st.none())
    return st.builds(
        lambda one, bounds: (
            f"(?:{one[0]}){{{bounds[0]},{'' if bounds[1] is None else sum(bounds)}}}",
            one[1] * bounds[0],
        ),
        inner,
        bounds,
    )


_PATTERNS = st.recursive(
    st.sampled_from(
        [("a", 1), ("b", 1), ("[ab]", 1), ("[bé]", 1), ("é", 2), ("[é€]", 2), ("€c", 4), ("", 0)]
    ),
    lambda inner: (
        st.lists(inner, min_size=2, max_size=3).map(
            lambda parts: (
                "".join(f"(?:{part})" for part, _ in parts),
                sum(size for _, size in parts),
            )
        )
        | st.lists(inner, min_size=2, max_size=3).map(
            lambda parts: ("|".join(f"(?:{part})" for part, _ in parts), min(size for _, size in parts))
        )
        | _repeated(inner)
    ),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(_PATTERNS, st.text("abcé", max_size=16), st.booleans())
def test_no_text_is_shorter(pattern: Sized, text: str, quoted: bool) -> None:
    """In front of each pattern stands one whose states are many, so that they are not looked through."""
    whole = f"(?:[ab]*a[ab]{{9}})(?:{pattern[0]})"
    source: object = (
        mw.JsonSchema({"type": "string", "pattern": f"^(?:{whole})$"}) if quoted else mw.Regex(whole)
    )
    matcher = mw.compile(source, BYTES, limits=mw.Limits(max_count=10_000)).matcher()
    assert len(matcher.shortest_completion_bytes()) == 10 + pattern[1] + 2 * quoted
    matcher.accept_bytes(b'"' * quoted)
    for byte in text.encode():
        matcher.accept_bytes(bytes([byte]))
        if matcher.is_accepting or matcher.is_terminated:
            continue
        rest = matcher.shortest_completion_bytes()
        # One byte further, nothing is left by more than one byte, and along the completion by one.
        for next_byte in b'abc"\xc3\xa9\xe2\x82\xac':
            if matcher.accept_bytes(bytes([next_byte])):
                left = 0 if matcher.is_accepting else len(matcher.shortest_completion_bytes())
                assert left >= len(rest) - 1
                assert next_byte != rest[0] or left == len(rest) - 1
                matcher.rollback(1)
