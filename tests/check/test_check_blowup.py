"""Findings about terminals whose automata blow up, and none about those that do not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from regular_strategies import LARGE_COUNTS, trees

from maskwright import GBNF, Lark, Regex, check_grammar
from maskwright.check.blowup import blowup
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regex import parse_regex
from maskwright.regular.dfa import is_empty, some_text

GROWING = [
    "((a{1,100}){1,100}){1,100}",
    "(a{1,50}){1,50}",
    "(a|aa|aaa){1,300}",
    r"(\w+\s?){1,100000}",
    "[ab]*a[ab]{20}",
    "[ab]*a[ab]{500}",
    "((ab{1,300}c){1,40}d){1,40}",
]
HARMLESS = [
    "(a*)*",
    "((a+)+)+b",
    ".{1,100000}",
    "(a{10}){10}",
    "[ab]*a[ab]{5}",
    r"([0-9]{1,3}\.){3}[0-9]{1,3}",
    r"[a-z]{1,64}@[a-z]{1,255}(\.[a-z]{2,63}){1,8}",
    r"(\d{1,20} ){1,20}",
]


@pytest.mark.parametrize("pattern", GROWING)
def test_what_grows_is_found(pattern):
    (finding,) = check_grammar(Regex(pattern)).findings
    assert (finding.severity, finding.code, finding.place) == ("warning", "exponential", "1:1")


@pytest.mark.parametrize("pattern", HARMLESS)
def test_what_does_not_grow_is_not(pattern):
    assert check_grammar(Regex(pattern)).findings == []


def test_the_words_fit_the_reason():
    def message(pattern):
        return blowup(parse_regex(pattern, "python", DEFAULT_LIMITS, ""), DEFAULT_LIMITS) or ""

    assert "multiply" in message("((ab{1,300}c){1,40}d){1,40}")
    assert "counts of its repetitions at once" in message("(a{1,50}){1,50}")
    assert "twice as many" in message("[ab]*a[ab]{20}")


def test_it_is_reported_beside_errors_of_the_compiler():
    report = check_grammar(Lark("start: A A B\nA: /x+/\nB: /[ab]*a[ab]{12}/\n"))
    assert [finding.code for finding in report.findings] == ["exponential", "unsatisfiable"]


def test_places_in_grammars():
    (finding,) = check_grammar(Lark("start: A B\nA: /x/\nB: /[ab]*a[ab]{12}/\n")).findings
    assert (finding.code, finding.place) == ("exponential", "3:1") and finding.message.startswith("B: ")
    (finding,) = check_grammar(GBNF('root ::= b "!"\nb ::= ("x" c){1,90}\nc ::= [xy]{0,90}\n')).findings
    assert (finding.code, finding.place) == ("exponential", "1:1") and "rule root" in finding.message


@given(trees(LARGE_COUNTS))
def test_some_text_is_a_text_of_the_language(tree):
    node, pattern = tree
    text = some_text(node)
    assert (text is None) == is_empty(node)
    assert text is None or re.fullmatch(pattern, text)


def test_some_text_where_there_is_none():
    def text(pattern):
        return some_text(parse_regex(pattern, "python", DEFAULT_LIMITS, ""))

    assert text(r"[^\s\S]") is None and text(r"a[^\s\S]|b") == "b"
    assert text("a{2000}") is None and text("(?!ab)[ab]{2}") in ("aa", "ba", "bb")
