"""What patterns mean to a lexer, against the matches that ``re`` finds in texts."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maskwright.errors import GrammarError
from maskwright.regex import lexer_matches
from maskwright.regular.dfa import is_empty, matcher

TEXTS = ["".join(letters) for n in range(7) for letters in product("ab/", repeat=n)]


def matches_alone(pattern: str) -> set[str]:
    """The texts that ``re`` matches as a whole when it looks for a match at their start."""
    compiled = re.compile(pattern)
    return {
        text for text in TEXTS if (found := compiled.match(text)) is not None and found.end() == len(text)
    }


def language(pattern: str) -> set[str]:
    return set(filter(matcher(lexer_matches(pattern).language), TEXTS))


@st.composite
def lazy_patterns(draw: Any) -> str:
    """A head, one lazy quantifier, what ends it, and perhaps a greedy tail."""
    head = draw(st.sampled_from(("", "a", "/", "a?", "b*/", "(?:a|b)")))
    body = draw(st.sampled_from(("a", "[ab]", "[ab/]", "(?:ab)", "(?:a|b)", "(?:/a|[ab])", "(?:aa|a|b)")))
    lazy = body + draw(st.sampled_from(("*?", "+?", "??", "{2,3}?", "{1,}?")))
    end = draw(st.sampled_from(("/", "a", "ab", "//", "b/", "[b/]")))
    tail = draw(st.sampled_from(("", "", "a*", "[ab]*", "b?", "a+", "b{1,2}a*")))
    return head + lazy + end + tail


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=300, deadline=None)
@given(lazy_patterns())
def test_lazy_patterns(pattern: str) -> None:
    assert language(pattern) == matches_alone(pattern)


def test_where_a_lazy_quantifier_chooses_nothing_alternatives_are_equal() -> None:
    assert language("(?:a|ab){2}?/") == {"aa/", "aab/", "aba/", "abab/"} & {*TEXTS}


@pytest.mark.parametrize(
    "pattern",
    [r"/.*?/", r"/[ab]*?/b*", r"a??b", r"/(?!/)(?:/a|[^/])*?/", r"(?:/.*?/|a.*?a)", r"((?:a|b)+?/)", r"a+?", r"/.*?(?<!a)(aa)*?/"],
)  # fmt: skip
def test_usual_patterns(pattern: str) -> None:
    assert language(pattern) <= matches_alone(pattern)
    assert language(pattern)


@pytest.mark.parametrize(
    ("pattern", "text", "counts"),
    [
        (r"a(?!b)", "ab", False),
        (r"a(?!b)", "aa", True),
        (r"[ab]+(?!/)", "ab/", False),
        (r"a\b", "ab", False),
        (r"a\b", "a/", True),
        (r"a|b(?!a)", "ab", True),
        (r"a|b(?!a)", "ba", False),
        (r"a(?!aa)a?", "aaa", False),
        # What a shorter match refuses does not matter behind a longer one.
        (r"a+(?!ab)", "aab", True),
        (r"[ab]+(?!a/)", "ba/", True),
        (r"[ab]+(?!//)", "ba//", False),
        (r"a(?!bb)|ab+(?!/)", "abb/", False),
        (r"a(?!bb)|abb", "abb/", True),
        # Nor where another alternative matches as much.
        (r"a(?!b)|a", "ab", True),
        (r"(?:a|b)\b", "ab", False),
    ],
)
def test_look_ahead_refuses_matches(pattern: str, text: str, counts: bool) -> None:
    refused = lexer_matches(pattern).refused
    assert counts == (is_empty(refused) or not matcher(refused)(text))


def test_greedy_patterns_are_their_language() -> None:
    for pattern in (r"a|ab", r"a*b?", r"(?:a|b)*/"):
        found = lexer_matches(pattern)
        assert set(filter(matcher(found.language), TEXTS)) == {t for t in TEXTS if re.fullmatch(pattern, t)}
        assert is_empty(found.refused)


@pytest.mark.parametrize(
    "pattern",
    [
        *(r"^a", r"a$", r"(?<=b)a", r"\ba", r"a(?=b)", r"\Aa", r"a\Z"),
        # Some of what they match is no match where no word follows.
        *(r"a /*\b", r"a/?\b", r"(?:a|/)\b"),
        # What is refused by `ab` behind it is not refused by `abb`.
        *(r"a(?!ab(?!b))", r"a(?!ab\b)", r"b|a(?!b(?=a))"),
    ],
)
def test_refused(pattern: str) -> None:
    with pytest.raises(GrammarError):
        lexer_matches(pattern)
