"""Regular expressions as sources: whole matches, flags, and both flavours."""

from __future__ import annotations

import itertools
import re

import pytest
import regex
from byte_walks import BYTES, PIECES, accepts, finished_walk
from hypothesis import given, settings
from hypothesis import strategies as st
from regular_strategies import patterns

import maskwright as mw
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError
from maskwright.limits import Limits
from maskwright.regex.parser import parse

TEXTS = ["".join(letters) for length in range(4) for letters in itertools.product("aB\n ", repeat=length)]
FLAGS = st.sets(st.sampled_from("aimsx")).map("".join)


def compiled_or_none(pattern: str, flags: str) -> mw.CompiledGrammar | None:
    try:
        return mw.compile_regex(pattern, BYTES, flags=flags)
    except UnsatisfiableError:
        return None


def check(pattern: str, flags: str) -> None:
    expected = re.compile(pattern, sum((getattr(re, letter.upper()) for letter in flags), re.RegexFlag(0)))
    try:
        compiled = compiled_or_none(pattern, flags)
    except GrammarError as error:
        # Refused by name: '^' with the flag m, or another look-behind, inside a look-around.
        assert "not supported" in error.message or "only '^' is supported" in error.message
        return
    for text in TEXTS:
        if not text and "\\B" in pattern:
            continue  # ``re`` before Python 3.14 does not find \B in an empty text.
        answer = compiled is not None and accepts(compiled, text)
        assert answer == (expected.fullmatch(text) is not None), (pattern, flags, text)


@settings(max_examples=150, deadline=None)
@given(patterns(["^", "$", "\\A", "\\Z", "\\b", " ", "\\ ", "#\n", "[ #]", "B"], ["?=", "?!"]), FLAGS)
def test_whole_matches_agree_with_re(pattern: str, flags: str) -> None:
    check(pattern, flags)


@pytest.mark.parametrize(
    "pattern",
    ["(?x) a b # comment\n B?", "(?x)\n  # first\n (?i) a +  b", "(?x: a b) B", "a(?-x: )B", "(?xi)[ a#]+ \\#?",
     "(?P<one>a)(?P<two>B)?", "(?s:.)(?m:^|$)B", "a{,2}B{1,}", "a??B+?", "(?#note)a"],
)  # fmt: skip
def test_syntax_agrees_with_re(pattern: str) -> None:
    for flags in ("", "x", "i", "ims"):
        check(pattern, flags)


@pytest.mark.parametrize(
    "pattern",
    ["\\p{Lu}+", "\\P{L}", "\\p{^Lu}", "[\\p{Nd}_]+", "(?<name>a)B", "\\p{Letter}{2}", "\\w\\p{P}?"],
)
def test_additions_agree_with_the_package_regex(pattern: str) -> None:
    expected = regex.compile(pattern)
    compiled = mw.compile_regex(pattern, BYTES)
    for text in ("a", "A", "aB", "AB", "\u00c9", "\u0663", "_", "1_", "\n", "b.", "\u4e2d\u6587", ""):
        assert accepts(compiled, text) == (expected.fullmatch(text) is not None), (pattern, text)


def test_flags_of_re_are_flags() -> None:
    assert accepts(mw.compile_regex("a.b", BYTES, flags=re.I | re.S), "A\nB")
    assert accepts(mw.compile(mw.Regex("\\w", flags=re.ASCII), BYTES), "a")
    assert not accepts(mw.compile_regex("\\w", BYTES, flags=re.A), "\u00e9")
    assert accepts(mw.compile_regex("\\w", BYTES), "\u00e9")
    with pytest.raises(GrammarError, match="LOCALE"):
        mw.compile_regex("a", BYTES, flags=re.L)
    with pytest.raises(GrammarError, match="flag 'q'"):
        mw.compile_regex("a", BYTES, flags="q")


def test_flavours_differ() -> None:
    ecma = mw.compile_regex("\\d\\u{1F600}$", BYTES, flavour="ecma")
    assert accepts(ecma, "1\U0001f600")
    assert not accepts(ecma, "\u0661\U0001f600")
    assert accepts(mw.compile_regex("\\d", BYTES), "\u0661")
    assert accepts(mw.compile_regex("a$\n?", BYTES), "a\n")
    assert accepts(mw.compile_regex("A", BYTES, flavour="ecma", flags="iu"), "a")
    with pytest.raises(GrammarError, match="'x'"):
        mw.compile_regex("a", BYTES, flavour="ecma", flags="x")
    with pytest.raises(GrammarError, match="perl"):
        mw.compile_regex("a", BYTES, flavour="perl")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "place", "message"),
    [("(a)\\1", "1:4", "back-reference"), ("(?P<n>a)(?P=n)", "1:9", "back-reference"), ("a++", "1:3", "possessive"),
     ("(?>a)", "1:1", "atomic"), ("(a)?(?(1)b|c)", "1:5", "conditional"), ("\\((?R)?\\)", "1:3", "recursive"),
     ("(a(?1)?)", "1:3", "recursive"), ("(?|a|b)", "1:1", "branch reset"), ("a\n(", "2:1", "not closed"),
     ("\\p{Script=Greek}", "1:1", "general category")],
)  # fmt: skip
def test_refusals_have_a_caret(pattern: str, place: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        mw.compile_regex(pattern, BYTES)
    assert caught.value.place == place
    line = pattern.split("\n")[int(place[0]) - 1]
    assert caught.value.snippet == f"  {line}\n  {' ' * (int(place.partition(':')[2]) - 1)}^"


def test_nothing_matches() -> None:
    for pattern in ("a\\bb", "(?!)", "[^\\s\\S]", "a(?=b)"):
        with pytest.raises(UnsatisfiableError):
            mw.compile_regex(pattern, BYTES)


def test_limits_and_wrong_types() -> None:
    with pytest.raises(LimitError, match="max_regex_states"):
        mw.compile_regex("((a{1000}b){1000}c){1000}", BYTES)
    with pytest.raises(LimitError, match="max_depth"):
        mw.compile_regex("(" * 300 + ")" * 300, BYTES)
    with pytest.raises(GrammarError, match="bytes"):
        mw.compile_regex(b"a", BYTES)  # type: ignore[arg-type]
    # Exponential as a deterministic automaton; states are made when they are met.
    blow_up = mw.compile_regex("(?:a|b)*a(?:a|b){200}", BYTES, limits=Limits(max_seconds=5))
    assert accepts(blow_up, "a" * 201)


def test_walks_end_in_matches() -> None:
    for pattern in (
        "\\d{3}-\\d{4}",
        "(?i)yes|no|maybe( not)?",
        "[^\\n]{1,20}\\n",
        "(?=.*1)[a-c1]{2,9}",
        "a*",
        "(ab?)*c",
    ):
        compiled = mw.compile_regex(pattern, PIECES)
        for seed in range(8):
            text = finished_walk(compiled, seed).decode()
            assert re.fullmatch(pattern, text), (pattern, text)


def test_equal_patterns_are_compiled_once() -> None:
    assert mw.compile_regex("a+", BYTES) is mw.compile(mw.Regex("a+"), BYTES)
    assert mw.compile_regex("a+", BYTES, flags="i") is not mw.compile_regex("a+", BYTES)


def test_parse_keeps_flags_of_groups() -> None:
    assert parse("(?x) a b", "python", Limits()) == parse("ab", "python", Limits())
    assert parse("(?x:a b)c d", "python", Limits()) == parse("abc d", "python", Limits())
