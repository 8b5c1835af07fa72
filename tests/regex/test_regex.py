"""Patterns against ``re``, and what ECMA-262 does differently in tables."""

from __future__ import annotations

import itertools
import random
import re
import string
import unicodedata
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nfa_simulation import nfa_matches
from regular_strategies import patterns

from maskwright.errors import GrammarError, LimitError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regex import Dialect, parse_regex, search_language
from maskwright.regex.unicode_sets import _all_categories, _case_classes
from maskwright.regular.automata import build_nfa
from maskwright.regular.dfa import is_empty, matcher, matches
from maskwright.regular.expressions import ANY_CHAR, NOTHING, chars, repeat

TEXTS = ["".join(letters) for length in range(5) for letters in itertools.product("ab\n", repeat=length)]


def found(pattern: str, value: str, dialect: Dialect = "ecma") -> bool:
    return matches(search_language(pattern, dialect), value)


def check(pattern: str) -> None:
    expected = re.compile(pattern)
    anywhere, whole = search_language(pattern, "python"), parse_regex(pattern, "python")
    is_found, is_match = matcher(anywhere), matcher(whole)
    nfa = build_nfa([(anywhere, 0)], DEFAULT_LIMITS)
    for value in TEXTS:
        if not value and "\\B" in pattern:
            continue  # ``re`` before Python 3.14 does not find \B in an empty text.
        answer = expected.search(value) is not None
        assert is_found(value) == answer, (pattern, value)
        if len(value) < 3:
            assert (nfa_matches(nfa, value) == 0) == answer, (pattern, value)
        assert is_match(value) == (expected.fullmatch(value) is not None), (pattern, value)


@settings(max_examples=150, deadline=None)
@given(patterns([], []))
def test_plain_patterns_agree_with_re(pattern: str) -> None:
    check(pattern)


@settings(max_examples=250, deadline=None)
@given(patterns(["^", "$", "\\A", "\\Z"], []))
def test_anchors_agree_with_re(pattern: str) -> None:
    check(pattern)


@pytest.mark.slow
@settings(max_examples=250, deadline=None)
@given(patterns(["^", "$", "\\Z", "\\b", "\\B"], ["?=", "?!"]))
def test_look_ahead_agrees_with_re(pattern: str) -> None:
    check(pattern)


@settings(max_examples=100, deadline=None)
@given(
    patterns(["^", "$", "\\b"], []),
    st.sampled_from(["a", "ab", "[ab]b", "^a", "^", "\\n", "a|b"]),
    st.booleans(),
)
def test_look_behind_agrees_with_re(pattern: str, behind: str, negative: bool) -> None:
    check(f"{pattern}(?<{'!' if negative else '='}{behind})(?:{pattern})")


@given(
    patterns(["^", "$", "\\b"], []),
    st.sampled_from(["a", "ab", "(?:ab)*b", "$", "a$", "^a", "\\b", "b|c", ".*b"]),
    st.booleans(),
)
def test_look_ahead_in_front_agrees_with_re(pattern: str, ahead: str, negative: bool) -> None:
    check(f"^(?{'!' if negative else '='}{ahead})(?:{pattern})")


def test_look_aheads_in_front_are_no_dearer_than_elsewhere() -> None:
    # Without the look, what follows has very many texts, or a very large automaton.
    short = search_language("^(?=.{1,3}$)(?:(?=.{20}b|a)[ab])*$")
    assert [text for text in ("", "a", "aa", "aaa", "aaaa", "b", "ab") if matches(short, text)] == [
        "a",
        "aa",
        "aaa",
    ]
    undecided = search_language("^(?=a)[ab]*a[ab]{12}$")
    assert build_nfa([(undecided, 0)], DEFAULT_LIMITS).n_states < 50
    assert matches(undecided, "a" + "b" * 12) and not matches(undecided, "b" + "a" * 13)


@settings(max_examples=60, deadline=None)
@given(patterns(["^", "$", "\\Z"], []))
def test_flags_agree_with_re(pattern: str) -> None:
    check("(?ms)" + pattern)
    check("(?i)" + pattern.replace("a", "A"))


@pytest.mark.parametrize(
    "pattern", [r"(?u:\w)", r"(?u:\s)", r"(?ui:k)", r"(?u:[\S])", r"(?u:(?a:\w)\w)", r"\w(?u:\W)"]
)
def test_unicode_inside_of_ascii(pattern: str) -> None:
    language = parse_regex(pattern, "python", flags="a")
    for text in ("a", "ß", "\u2003", "\u212a", "\x1c", " ", "aß", "ßa", "a\u2003"):
        assert matches(language, text) == bool(re.fullmatch(pattern, text, re.ASCII)), text
    with pytest.raises(GrammarError, match="exclude each other"):
        parse_regex("(?au:a)", "python")


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^a|b$", ["a", "ax", "xb"], ["xa", "bx", ""]),
        ("(^a|b$)", ["ax", "xb"], ["xa", "bx"]),
        ("^(?:^a)$", ["a"], ["aa", "a\n"]),
        ("a^b", [], ["ab", "a^b", "b"]),
        ("a$b|c", ["c", "xcx"], ["ab", "a$b"]),
        ("(?:a$)?b", ["b", "ab"], ["a"]),
        ("x*^a", ["a", "ab"], ["xa"]),
        ("^$", [""], ["\n", "a"]),
        ("", ["", "x"], []),
        ("^(?!foo)", ["", "fo", "xfoo"], ["foo", "foobar"]),
        ("^(?!.*--)[a-z-]+$", ["a-b", "a"], ["a--b", ""]),
        ("^(?=.b)(?!a)^\\w+$", ["bb", "cbx"], ["ab", "b", "", "xb y"]),
        ("^(?!\\bno$)", ["yes", "no ", "xno"], ["no"]),
        ("^(?!(a|b)*a(a|b){14})[ab]?x*$", ["", "xx", "ax"], ["a" * 15, "y", "aax"]),
        ("^((?!no).)*$", ["yes", "n", "on"], ["no", "yes no"]),
        ("(?=.*\\d)(?=.*[a-z])^.{3,}$", ["a1x", "1aa"], ["abc", "123", "a1"]),
        ("^(?!a$|b$).*$", ["ab", "", "c"], ["a", "b"]),
        ("(?<!\\d)\\d{2}(?!\\d)", ["12", "a12b", "1 23"], ["123", "1"]),
        ("\\bcat\\b", ["cat", "a cat.", "(cat)"], ["cats", "concat"]),
        ("\\Bcat", ["concat"], ["cat", "a cat"]),
        ("^(?=(?!b)\\w)\\w+$", ["ab", "a"], ["ba", ""]),
        # The sets of ECMA-262 are not those of ``re``.
        ("^\\d$", ["5"], ["٣", "a"]),
        ("^\\w$", ["a", "_", "9"], ["é", "٣"]),
        ("^\\s$", [" ", "\t", "\ufeff", "\u2028", "\xa0"], ["\x85", "\x1c", "\u180e"]),
        ("^.$", ["a", "\x85", "😀"], ["\n", "\r", "\u2028", "\u2029"]),
        ("^[^]$", ["\n", "a"], ["", "ab"]),
        ("[]", [], ["", "[]"]),
        ("^[^\\S\\n]$", [" "], ["\n", "a"]),
        ("^\\u0041\\x42\\u{43}\\cJ\\0$", ["ABC\n\0"], ["ABC"]),
        ("^\\ud83d\\ude00$", ["😀"], ["\ud83d"]),
        ("^[\\ud83d\\ude00-\\u{1f602}]$", ["😁"], ["😃"]),
        ("^\\p{L}\\P{L}$", ["é1", "字 "], ["1é"]),
        ("^\\p{Lu}\\p{Letter}\\p{General_Category=Decimal_Number}\\p{digit}$", ["Éa3٣"], ["éa33"]),
        ("^[\\p{Lu}\\d]+$", ["A1"], ["a"]),
        ("^(?<year>\\d{4})(?:-(\\d\\d))??$", ["2024", "2024-01"], ["2024-1"]),
        ("^(?i:straße)X$", ["STRAßEX", "straẞeX"], ["straßex", "STRASSEX"]),
        ("^(?i:k)$", ["K", "\u212a"], ["x"]),
        # Annex B.
        ("^\\-\\_\\/\\@\\:\\#\\é$", ["-_/@:#é"], ["\\-"]),
        ("^]}{$", ["]}{"], [""]),
        ("^a{,5}$", ["a{,5}"], ["aaa"]),
        ("^{a}b{1,2$", ["{a}b{1,2"], ["bb"]),
        ("^[\\w-.]$", ["-", ".", "a"], [",", "/"]),
        ("^[a-]$", ["a", "-"], ["b"]),
        ("^[\\b]$", ["\b"], ["b"]),
        ("^a{0}$", [""], ["a"]),
        ("^(a|b|[c-d]|ef)+$", ["abcdef"], ["e"]),
    ],
)
def test_ecma_patterns(pattern: str, yes: list[str], no: list[str]) -> None:
    language = search_language(pattern)
    assert [value for value in yes if not matches(language, value)] == []
    assert [value for value in no if matches(language, value)] == []


@pytest.mark.parametrize(
    "pattern",
    ["\\d\\D", "^[\\w.]+$", "\\s", "[]a]", "[^]a]", "a{,2}$", "\\x41\\u0042\\U00000043", "\\101\\07\\0",
     "[\\1\\b]", "(?P<n>a)(?#note)b", "(?a)\\w", "(?i)ß|ſ|İ", "(?i)[k-s]", "(?ai)[k-s]", "\\N{DIGIT ONE}",
     "\\a\\f\\v", "^a$", "(?s).", "(?m)^b$", "(?i:A)b", "(?-i:A)b", "(?s-i:.)", "[\\d-]", "(?i)[^k]"],
)  # fmt: skip
def test_python_patterns(pattern: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(pattern)
    language = search_language(pattern, "python")
    values = ["", *"aAkK\u212asSſßẞiIıİ9٣é_-]^ \n\x85\x1c\u2028\x07\x0b\x0c\x01\b🄰", "ABC", "A\x07\0", "ab",
              "a1", "a\n", "x\nb\ny", "aa", "aaa", "Ab", "5x", "a\n\n"]  # fmt: skip
    for value in values:
        assert matches(language, value) == (expected.search(value) is not None), (pattern, value)


def test_python_shorthands_and_case_variants_agree_with_re() -> None:
    for shorthand in ("\\d", "\\w", "\\s"):
        expected = re.compile(shorthand)
        language = parse_regex(shorthand, "python")
        every = "".join(map(chr, range(0xD800))) + "".join(map(chr, range(0xE000, 0x110000)))
        spans = [(ord(m[0][0]), ord(m[0][-1])) for m in re.finditer(f"(?:{expected.pattern})+", every)]
        # A run of matches may cross the surrogates; no shorthand holds both neighbours.
        assert language == chars(*spans)
    classes = _case_classes("python")
    for code, equal in classes.items():
        ignoring = re.compile(re.escape(chr(code)), re.IGNORECASE)
        assert all(ignoring.fullmatch(chr(other)) for other in equal), hex(code)
    for code in range(0x20000):
        c = chr(code)
        for other in {c.lower(), c.upper()}:
            if len(other) == 1 and other != c and re.fullmatch(re.escape(c), other, re.IGNORECASE):
                assert ord(other) in classes[code], hex(code)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?a:\B)Σ|a\b",
        r"a\b(?a:\b)é",
        r"é(?a:\b)a\b",
        r"(?=.*(?a:\b)é).*\b",
        r"(?:.(?a:\b)|.\B)+",
        r"(?!(?a:\b).\b).*",
        r"(?:(?a:\B)é|\ba|\b | )*",
        r"\b(?:(?=(?a:\b)).)*",
        r"(?=(?a:\b)a?\b)[aé]*(?<=a)(?a:\b)",
    ],
)
def test_boundaries_of_different_words_in_one_pattern(pattern: str) -> None:
    whole, anywhere = matcher(parse_regex(pattern, "python")), matcher(search_language(pattern, "python"))
    expected = re.compile(pattern)
    for length in range(1, 5):
        for text in map("".join, itertools.product("aéΣ ", repeat=length)):
            assert whole(text) == (expected.fullmatch(text) is not None), text
            assert anywhere(text) == (expected.search(text) is not None), text


@pytest.mark.parametrize("pattern", [r"\W", r"\D", r"\S", r"[\W_]"])
def test_what_is_negated_is_so_where_case_is_ignored(pattern: str) -> None:
    expected = re.compile(pattern, re.IGNORECASE)
    accepts = matcher(parse_regex(f"(?i){pattern}", "python"))
    # U+0345 has a letter as a case variant, and is none.
    for code in {*range(0x2000)} - {0x345}:
        assert accepts(chr(code)) == (expected.fullmatch(chr(code)) is not None), hex(code)


@pytest.mark.parametrize("pattern", [r"\P{Ll}", r"\P{Lu}", r"[\P{Lu}_]"])
def test_negated_properties_where_case_is_ignored(pattern: str) -> None:
    """In the package ``regex``, these are properties of letters of both cases."""
    accepts = matcher(parse_regex(f"(?i){pattern}", "python"))
    assert [c for c in map(chr, range(128)) if not accepts(c)] == [
        *string.ascii_uppercase,
        *string.ascii_lowercase,
    ]


def test_categories_are_those_of_unicodedata() -> None:
    categories = {
        code: name
        for name, ranges in _all_categories().items()
        for low, high in ranges
        for code in range(low, high + 1)
    }
    assert len(categories) == 0x110000
    assert all(unicodedata.category(chr(code)) == name for code, name in categories.items())


@pytest.mark.parametrize(
    ("pattern", "place", "message"),
    [
        ("a(b", "1:2", "not closed"),
        ("ab)", "1:3", "closes no group"),
        ("a[bc", "1:2", "not closed"),
        ("[z-a]", "1:2", "reversed"),
        ("a{3,2}", "1:2", "reversed"),
        ("*a", "1:1", "repeats nothing"),
        ("a**", "1:3", "repeats nothing"),
        ("^*", "1:2", "repeats nothing"),
        ("(?=a)*", "1:6", "repeats nothing"),
        ("a\\", "1:2", "backslash"),
        ("(a)\\1", "1:4", "back-references"),
        ("(?<n>a)\\k<n>", "1:8", "back-references"),
        ("\n\\A", "2:1", "'\\^'"),
        ("a\\Z", "1:2", "'\\$'"),
        ("\\a", "1:1", "unknown escape"),
        ("\\xg1", "1:1", "hexadecimal"),
        ("\\u12", "1:1", "hexadecimal"),
        ("\\u{110000}", "1:1", "code point"),
        ("\\u{}", "1:1", "hexadecimal"),
        ("\\c1", "1:1", "letter"),
        ("\\01", "1:1", "octal"),
        ("[\\1]", "1:2", "character class"),
        ("\\p{Script=Greek}", "1:1", "general category"),
        ("\\pL", "1:1", "braces"),
        ("(?i)a", "1:1", "ECMA-262"),
        ("(?>a)", "1:1", "atomic"),
        ("(?P<n>a)", "1:1", "unknown kind"),
        ("(?", "1:1", "unknown kind"),
        ("(?<1>a)", "1:4", "identifier"),
        ("(?x:a)", "1:3", "flag"),
        ("(?=(?<=a)b)", "1:4", "look-behind"),
        ("(?<=a$)", "1:1", "look-behind"),
    ],
)
def test_errors_say_where_and_what(pattern: str, place: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        search_language(pattern)
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("pattern", "message"),
    [("(?P=n)", "back-references"), ("a++", "possessive"), ("a(?i)b", "start"),
     ("(?(1)a|b)", "conditional"), ("\\p{Nope}", "unknown or not"), ("(?P<n>a)(?R)", "recursive"), ("\\N{NO SUCH}", "named"),
     ("(?#", "not closed"), ("[\\d-z]", "escape the '-'"), ("\\U00110000", "code point"), ("\\777", "octal")],
)  # fmt: skip
def test_python_errors(pattern: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        parse_regex(pattern, "python")


@settings(max_examples=500, deadline=None)
@given(st.text(st.sampled_from("ab()[]{}^$|*+?.\\-,:=!<>01dwPpuxcki\n\ud83d"), max_size=14))
def test_any_text_parses_or_is_refused(pattern: str) -> None:
    for dialect in ("ecma", "python"):
        try:
            language = search_language(pattern, dialect, Limits(max_regex_states=2000))
        except (GrammarError, LimitError):
            continue
        build_nfa([(language, 0)], DEFAULT_LIMITS)


@pytest.mark.parametrize(
    ("pattern", "place", "limit"),
    [
        ("a{99999999999}", "1:2", "max_count"),
        ("a{1,1" + "0" * 9999 + "}", "1:2", "max_count"),
        ("(?=" * 12 + "a" + ")" * 12, "1:31", "max_nested_looks"),
    ],
)
def test_limits_say_where(pattern: str, place: str, limit: str) -> None:
    with pytest.raises(LimitError) as caught:
        search_language(pattern)
    assert (caught.value.place, caught.value.limit) == (place, limit)
    assert parse_regex("a{0000000000000000000002}") == parse_regex("a{2}")
    assert search_language("(?=" * 12 + "a" + ")" * 12, limits=Limits(max_nested_looks=12))


def test_depth_limit_and_no_recursion_below_it() -> None:
    with pytest.raises(LimitError) as caught:
        parse_regex("(" * 300 + ")" * 300)
    assert (caught.value.limit, caught.value.place) == ("max_depth", "1:201")
    deep = "(a|b" * 5000 + ")*" * 5000
    language = search_language(deep, limits=Limits(max_depth=10_000))
    assert not is_empty(language)
    assert language == search_language(deep, limits=Limits(max_depth=10_000))
    look = search_language("(?!" + "(a|b" * 1000 + ")" * 1000 + ")c", limits=Limits(max_depth=10_000))
    assert not is_empty(look)


def test_nested_counts_reach_the_limit() -> None:
    pattern = "(((a{1000}){1000}){1000})"
    for make in (parse_regex, search_language):
        language = make(pattern)
        with pytest.raises(LimitError):
            build_nfa([(language, 0)], DEFAULT_LIMITS)
    with pytest.raises(LimitError):
        search_language(f"(?!{pattern}b)")


def test_trivial_languages_are_recognised() -> None:
    everything = repeat(ANY_CHAR, 0, None)
    assert search_language(".*") == search_language("") == search_language("[a-z]*|x") == everything
    assert search_language("a$b") == NOTHING
    assert search_language("x+") == search_language("x")


def test_dialect_is_checked() -> None:
    with pytest.raises(GrammarError, match="dialect"):
        parse_regex("a", "perl")  # type: ignore[arg-type]


def test_found_is_unanchored() -> None:
    assert found("b", "abc")
    assert not found("^b", "abc")
    assert found("c$", "abc\n", "python")
    assert not found("c$", "abc\n")


def test_a_pattern_has_no_more_atoms_than_states_and_ten_times_as_many_characters() -> None:
    limits = Limits(max_regex_states=100)
    for pattern in ("a" * 99, "[ab]" * 99, "(?x)a" + " " * 990, "[" + "a" * 990 + "]", "(?:ab|cd)" * 20):
        assert parse_regex(pattern, "python", limits)
    for pattern, needed in (("a" * 102, 101), ("(?x)a" + " " * 1_010, 101), ("[" + "a" * 1_010 + "]", 101)):
        with pytest.raises(LimitError, match=f"max_regex_states is 100, {needed} needed"):
            parse_regex(pattern, "python", limits)


def test_a_class_of_many_ranges_is_put_in_order_piece_by_piece() -> None:
    points = list(range(0x4E00, 0x9FFF, 2))
    random.Random(3).shuffle(points)
    tree = parse_regex("[" + "".join(map(chr, points)) + "]", "python", DEFAULT_LIMITS)
    assert tree == chars(*[(point, point) for point in points])
