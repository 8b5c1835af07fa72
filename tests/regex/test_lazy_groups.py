"""Lazy quantifiers beside groups, greedy quantifiers and look-aheads: the match that ``re`` and the package lark take."""

from __future__ import annotations

import random
import re
from itertools import product

import lark
import pytest
from byte_walks import accepts

import maskwright as mw
from maskwright import Vocabulary
from maskwright.errors import GrammarError, LimitError
from maskwright.limits import Limits
from maskwright.regex import lexer_matches
from maskwright.regular.dfa import matcher
from maskwright.regular.expressions import NOTHING

BYTES = Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
TEXTS = ["".join(letters) for n in range(1, 6) for letters in product("abc_", repeat=n)]
LAZY = re.compile(r"[*+?}]\?")


def texts_of(letters: str, most: int = 5) -> list[str]:
    return ["".join(text) for n in range(1, most + 1) for text in product(letters, repeat=n)]


def read(pattern: str) -> tuple[object, object]:
    found = lexer_matches(pattern)
    return matcher(found.language), None if found.refused == NOTHING else matcher(found.refused)


def longest(pattern: tuple, text: str) -> int | None:
    """The end of the match that a lexer finds at the start of a text; 0: it is refused."""
    match, refused = pattern
    found = None
    for end in range(1, len(text) + 1):
        if match(text[:end]):
            found = end
        elif refused is not None and refused(text[:end]):
            found = 0
    return found


def check(pattern: str, texts: list[str]) -> None:
    compiled, ours = re.compile(pattern), read(pattern)
    for text in texts:
        found = compiled.match(text)
        expected = found.end() if found is not None else None
        end = longest(ours, text)
        # Behind what a look-ahead refuses re goes back to a shorter match (docs/grammars.md).
        assert end == expected or (end == 0 and expected != len(text)), (pattern, text, expected, end)


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [
        # A look-ahead between what is lazy and what is greedy.
        *((r'"[^"]*?"(?!x)[a-z]*', '"ax'), (r"ab*?(?!_).?", "ab_"), (r'".*?"(?!x)[a-z]?', '"ax')),
        *((r"a.*?\b-*", "ab-"), (r"a.*?b(?!c)(?:b|c)*", "abc")),
        # Groups.
        *((r"x(?:a.*?b)?", "xab"), (r'"[^"]*?"(?:,"[^"]*?")*', '",a'), (r'".*?"(?:,".*?")*', '",a')),
        *((r"(?:c*?ba*){1}", "abc"), (r"(?:a.*?b)+", "abc"), (r"(?:a.*?b|c)+", "abc"), (r"(?:a??b)+", "ab")),
        *((r"(?:c*?ba*)(?:b)?", "abc"), (r"(?:c[^b]*?ca*a){1,2}", "abc"), (r"c[^b]*?ca*a", "abc")),
        *((r"(?:a.*?b){2}c", "abc"), (r"(?:a.*?b){1,2}?c", "abc"), (r"(?:a*?b*)*?c", "abc"), (r"(?:a|ab)*?c", "abc")),
        *((r"b(?:|a)*?c", "abc"), (r"b(?:a??)*c?", "abc"), (r"b(?:a??|c)+a?", "abc"), (r"a(?:b|bc).*?_", "abc_")),
        # What is greedy and must match behind what is lazy, or before it.
        *((r"a.*?b[ab]*/", "ab/"), (r"a.*?b[ab]+_", "ab_"), (r"a*.*?b", "ab_"), (r"(?:ab|a).*?b", "ab_")),
        # A look-ahead at the end.
        *((r"a.*?b\b", "ab_-"), (r"a.*?b(?!b)", "abc"), (r"a.+?(?!b)", "abc"), (r"a_{1,2}?\b", "a_-")),
        *((r"a.*?b(?!c)", "abc"), (r"a.*?b(?!ca)", "abc"), (r"(?!ab)[ab]+?c", "abc"), (r"a.*?(?<!c)(?:cc)*?b", "abc")),
    ],
)  # fmt: skip
def test_the_match_of_re(pattern: str, letters: str) -> None:
    check(pattern, texts_of(letters))


@pytest.mark.parametrize(
    ("grammar", "texts"),
    [
        (r'S: /"[^"]*?"(?!x)[a-z]*/', ['"a"x', '"a"y', '"a"', '"a""']),
        (r"S: /ab*?(?!_).?/", ["a_", "a", "ab", "abb"]),
        (r'S: /".*?"(?!x)[a-z]?/', ['"a"x', '"a"y', '"a"x"', '"a"x"b']),
        (r"S: /a.*?\b-*/", ["ab", "ab-", "a-", "a--", "a-b"]),
        (r"S: /x(?:a.*?b)?/", ["x", "xab", "xacb", "xabb"]),
        ('S: Q ("," Q)*\nQ: /".*?"/', ['"a"', '"a","b"', '"a","b","c"', '"a",']),
        (r"S: /(?:c*?ba*){1}/", ["b", "ba", "cbaa", "bb"]),
        ('S: (T "a")~1..2\nT: /c[^b]*?ca*/', ["cca", "ccaa", "ccacca", "ccaacca", "cc"]),
        ('S: T "a"\nT: /c[^b]*?ca*/', ["cca", "ccaa", "ccacca"]),
        (r"S: /a.*?b\b/", ["ab", "abb", "abbb", "abbc", "ab-b"]),
        (r"S: /a.*?b(?!b)/", ["ab", "abb", "acbb", "abc", "abcb"]),
        (r"S: /a.+?(?!b)/", ["ac", "acb", "ab", "acbb", "acc"]),
        (r"S: /a_{1,2}?\b/", ["a_", "a__", "a___"]),
        # Two terminals: what follows tells where the first one ends.
        ('S: A B\nA: /a.*?b/ \nB: "c"', ["abc", "abbc", "aabc", "ab"]),
        ('start: (S | C)+\nS: /a.*?b(?!b)/\nC: "c"', ["abc", "abbc", "abcabb", "cabbb", "abbca"]),
        ('start: (S | X)+\nS: /"[^"]*?"(?!x)[a-z]*/\nX: "x"', ['"a"x', '"a""x"', 'x"a"bx', '"a"b"x"x']),
    ],
)
def test_the_texts_of_lark(grammar: str, texts: list[str]) -> None:
    grammar = grammar if grammar.startswith("start") else "start: S\n" + grammar
    compiled = mw.compile_lark(grammar, BYTES)
    parser = lark.Lark(grammar, parser="lalr", lexer="contextual")
    for text in texts:
        try:
            parser.parse(text)
            expected = True
        except lark.exceptions.UnexpectedInput:
            expected = False
        assert accepts(compiled, text) == expected, text


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        # Whether `ab` is the match, or `abb`, is not known where both have ended.
        (r"a.*?b(?!bc)", "no further"),
        (r'""".*?"""(?!"")', "no further"),
        (r"a.*?b(?=c)", "behind"),
        (r"a.*?b(?=c|b)", "behind"),
        (r"a.*?\B", "behind"),
        (r"a[bc]??(?!b(?!c))", "further"),
    ],
)
def test_refused(pattern: str, says: str) -> None:
    with pytest.raises(GrammarError, match=says):
        lexer_matches(pattern)


def test_what_must_follow_may_be_part_of_the_match() -> None:
    check(r"a.*?(?=b)b", texts_of("abc"))


def test_alternatives_of_a_pattern_are_equal() -> None:
    match, _ = read(r"a.*?b|ab.*?c|(?:c|ca)b?")
    assert [text for text in ("ab", "abc", "abac", "acb", "c", "ca", "cab", "abb") if not match(text)] == [
        "abb"
    ]


def test_large_counts_meet_the_limit() -> None:
    with pytest.raises(LimitError, match="max_regex_states"):
        lexer_matches(r"(?:a.*?b){1000000}", limits=Limits(max_regex_states=1_000))


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    found = ""
    for _ in range(rng.randint(1, 2 if depth else 4)):
        if rng.random() < 0.1:
            found += rng.choice((r"(?!a)", r"(?!_)", r"\b"))
            continue
        if rng.random() < 0.6 or depth > 1:
            found += rng.choice(("a", "b", "_", ".", "[ab]", "[^a]"))
        else:
            inner = [random_pattern(rng, depth + 1) for _ in range(rng.choice((1, 1, 2)))]
            found += f"(?:{'|'.join(inner)})"
        found += rng.choice(("", "", "", "?", "*", "+", "??", "*?", "+?", "{1,2}?", "{1,2}", "{2}", "{1}"))
    return found


def compared(seed: int) -> bool:
    """Whether there was something to compare: the texts that a random pattern takes wholly, as ``re`` does."""
    rng = random.Random(seed)
    # The ends keep it from the empty text, and from a greedy part at the end, of which the longest match counts.
    pattern = rng.choice("abc") + random_pattern(rng) + rng.choice(("b", "c", "b(?!c)", r"c\b"))
    if not LAZY.search(pattern):
        return False
    try:
        ours = read(pattern)
    except (GrammarError, LimitError):
        # Trials in many different orders are many states.
        return False
    compiled = re.compile(pattern)
    for text in TEXTS:
        found = compiled.match(text)
        expected = found is not None and found.end() == len(text)
        assert (longest(ours, text) == len(text)) == expected, (pattern, text)
    return True


def test_random_patterns() -> None:
    assert sum(compared(seed) for seed in range(120)) > 50


@pytest.mark.slow
def test_many_random_patterns() -> None:
    assert sum(compared(seed) for seed in range(1_000, 4_000)) > 1_000
