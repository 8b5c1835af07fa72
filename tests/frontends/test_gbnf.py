"""GBNF: random grammars against the oracle, tables of what is read and refused, real grammars."""

from __future__ import annotations

import json

import bnf_strategies
import numpy as np
import pytest
from byte_walks import BYTES, PIECES, accepts, check_equal, finished_walk
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.compiling.symbols import Symbols
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError
from maskwright.frontends.gbnf import to_grammar
from maskwright.ir.grammar import Grammar, Repeated, Term
from maskwright.limits import Limits

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= ([ \t\n] ws)?
"""
ARITHMETIC = r"""
root  ::= (expr "=" ws num "\n")+
expr  ::= expr [-+*/] ws term | term
term  ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num   ::= [0-9]+ ws
ws    ::= [ \t]*
"""


def made(text: str) -> Grammar | None:
    try:
        return to_grammar(text)
    except UnsatisfiableError:
        return None


def accepted(text: str, *values: str) -> list[bool]:
    compiled = mw.compile_gbnf(text, BYTES)
    return [accepts(compiled, value) for value in values]


@settings(max_examples=150, deadline=None)
@given(bnf_strategies.grammars(), st.integers(0, 99))
def test_masks_agree_with_the_oracle(bodies: list[tuple], seed: int) -> None:
    check_equal(made(bnf_strategies.gbnf_text(bodies)), bnf_strategies.naive(bodies), seed)


@pytest.mark.parametrize(
    "bodies",
    [
        [("choice", [("sequence", [("text", "a"), ("rule", 0)]), ("text", "b")])],
        [("choice", [("sequence", [("rule", 0), ("text", "a")]), ("text", "b")])],
        [("sequence", [("rule", 0), ("text", "a")])],
        [("rule", 0)],
        [("choice", [("rule", 1), ("text", "")]), ("sequence", [("text", "a"), ("rule", 0)])],
        [
            ("choice", [("sequence", [("text", "a"), ("rule", 1)]), ("text", "b")]),
            (
                "choice",
                [("sequence", [("text", "c"), ("rule", 0)]), ("sequence", [("text", "d"), ("rule", 1)])],
            ),
        ],
        [
            ("choice", [("sequence", [("rule", 1), ("text", "a")]), ("text", "b")]),
            ("choice", [("sequence", [("rule", 0), ("text", "c")]), ("rule", 1), ("text", "")]),
        ],
        [("choice", [("sequence", [("text", "a"), ("rule", 0), ("text", "b")]), ("text", "")])],
        [("repeat", ("repeat", ("choice", [("rule", 1), ("text", "a")]), 0, None), 2, 3), ("rule", 0)],
    ],
)
def test_recursions_agree_with_the_oracle(bodies: list[tuple]) -> None:
    for seed in range(6):
        check_equal(made(bnf_strategies.gbnf_text(bodies)), bnf_strategies.naive(bodies), seed)


def test_regular_rules_become_lexemes() -> None:
    assert isinstance(to_grammar("root ::= [a-z]+ ws\nws ::= ([ \\t] ws)?").rules[0], Term)
    even = 'root ::= "a" odd | "" "b"\nodd ::= "a" root | "c" odd'
    assert isinstance(to_grammar(even).rules[0], Term)
    grammar = to_grammar(JSON)
    assert sum(isinstance(body, Repeated) for body in grammar.rules) == 2
    assert len(grammar.rules) < 10


def test_large_rules_are_shared_and_not_copied() -> None:
    words = " | ".join(f'"w{i}x"' for i in range(400))
    grammar = to_grammar(f"root ::= word root word | word\nword ::= {words}")
    terms = [body for body in grammar.rules if isinstance(body, Term)]
    assert len(terms) == 1
    # Doubling twenty times would be a million states.
    doubled = "\n".join(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(20))
    compiled = mw.compile_gbnf(f'root ::= r0\n{doubled}\nr20 ::= "ab"', BYTES)
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"ab" * 1000)
    assert not matcher.is_accepting


def test_grammars_of_llama_cpp() -> None:
    compiled = mw.compile_gbnf(JSON, PIECES)
    for value in ({}, {"a": 1}, {"a": [1.5, -2e10, {"b": None}], "": "\n\u00e9"}):
        assert accepts(compiled, json.dumps(value))
        assert accepts(compiled, json.dumps(value, indent=1, ensure_ascii=False))
    for text in ("[]", '{"a": 1,}', '{"a": 01}', '{"a": "\n"}', "{", ""):
        assert not accepts(compiled, text)
    for seed in range(10):
        json.loads(finished_walk(compiled, seed))
    compiled = mw.compile_gbnf(ARITHMETIC, PIECES)
    assert accepts(compiled, "(a+1)*2 =3\n")
    assert accepts(compiled, "1=1\nx - y - z=0\n")
    assert not accepts(compiled, "1=1")
    assert not accepts(compiled, "(1=1\n")


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        (r'root ::= "a\"b\\c\n\t\x41\u00e9\U0001F600\[\]"', ['a"b\\c\n\tA\u00e9\U0001f600[]'], ["a"]),
        (r"root ::= [^a-c\]\-] [-x] [a-]", ["dx-", "d-a", "\nx-", "\u00e9-a"], ["ax-", "]x-", "-x-", "dya"]),
        (r"root ::= [\x41-\x43é\t]{2,}", ["AC", "é\tB"], ["A", "D" * 2, ""]),
        ("root ::= . [^]", ["\n\n", "\U0001f600a"], ["a", "aaa"]),
        ('root ::= "a"{2} "b"{,2} "c"{0}', ["aa", "aabb"], ["a", "aabbb", "aac"]),
        ('root ::= "a"{ 1 , 2 }', ["a", "aa"], ["", "aaa"]),
        ('root ::= "ab"* ("c" | "d")+ ?', ["", "ababcd"], ["aba"]),
        ('root ::= "a" *', ["", "aa"], ["b"]),
        ('root ::=\n  | "a" # one\n  # two\n  | "b"\n\nother ::= "c"', ["", "a", "b"], ["c"]),
        ('root ::= a.b\na ::= "x"\nb ::= "y"', ["x.y", "xzy"], ["xy"]),
        ('root ::= a.b\na.b ::= "x"', ["x"], ["y"]),
        ('root ::= a\r\na ::= "x" b # to the end\r\nb ::= "y"', ["xy"], ["x"]),
        ('root ::= b a\nb ::= ""\na ::= "" | "x"', ["", "x"], ["xx"]),
        ('a_1 ::= "x"\nroot ::= a_1 2nd\n2nd ::= a_1', ["xx"], ["x"]),
    ],
)
def test_syntax(text: str, yes: list[str], no: list[str]) -> None:
    assert accepted(text, *yes) == [True] * len(yes)
    assert accepted(text, *no) == [False] * len(no)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", "1:1", "no rules"),
        ("# only a comment", "1:17", "no rules"),
        ('start ::= "a"', "1:1", "no rule 'root'"),
        ('root ::= "a" foo\nfo ::= "b"', "1:14", "did you mean 'fo'"),
        ("root ::= xyz", "1:10", "add xyz ::="),
        ('root ::= "a"\nroot ::= "b"', "2:1", "defined twice \\(first at 1:1\\)"),
        ('root = "a"', "1:5", "::="),
        ('"a"', "1:1", "begin with its name"),
        ('root ::= ("a"', "1:10", "not closed"),
        ('root ::= ("a"\nb ::= "c")', "1:10", "not closed"),
        ('root ::= "a")', "1:13", "closes no group"),
        ('root ::= "a', "1:10", "not closed"),
        ("root ::= [a", "1:10", "not closed"),
        ("root ::= []", "1:10", "needs characters"),
        ("root ::= [b-a]", "1:11", "reversed"),
        ("root ::= [a-\n", "1:10", "not closed: add ']'"),
        ("root ::= *", "1:10", "repeats nothing"),
        ('root ::= "a" | + "b"', "1:16", "repeats nothing"),
        ('root ::= "a"{2,1}', "1:13", "reversed"),
        ('root ::= "a"{}', "1:13", "repetition"),
        ('root ::= "a"{x}', "1:13", "repetition"),
        ('root ::= "a"{9999999999}', "1:13", "digits"),
        (r'root ::= "\q"', "1:11", "unknown escape"),
        (r'root ::= "\x4"', "1:11", "hexadecimal"),
        (r'root ::= "\U00110000"', "1:11", "code point"),
        (r'root ::= "\uD83D"', "1:11", "surrogate"),
        ("root ::= 'a'", "1:10", "double quotes"),
        ("root ::= <think>", "1:10", "not supported"),
        ("root ::= !<[12]>", "1:10", "not supported"),
        ('root ::= "a" (= "b")', "1:14", "look-ahead"),
        ('root[max_tokens=3] ::= "a"', "1:5", "attributes"),
        ('root ::= TagDispatch(("a", b))', "1:10", "TagDispatch"),
        ("root ::= a, b", "1:11", "','"),
    ],
)
def test_errors_say_where_and_what(text: str, place: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        mw.compile_gbnf(text, BYTES)
    assert caught.value.place == place
    assert caught.value.snippet is not None and caught.value.snippet.endswith("^")


def test_the_snippet_shows_the_line() -> None:
    with pytest.raises(GrammarError) as caught:
        mw.compile_gbnf('root ::= "a"\nb ::= nope', BYTES)
    assert caught.value.snippet == "  b ::= nope\n        ^"
    assert str(caught.value).startswith("2:7: there is no rule 'nope'")


def test_the_caret_stands_below_its_place_behind_tabs() -> None:
    with pytest.raises(GrammarError) as caught:
        mw.compile_gbnf('root ::=\t\t"a" foo\n', BYTES)
    assert caught.value.snippet == '  root ::=\t\t"a" foo\n          \t\t    ^'


def test_unsatisfiable_grammars() -> None:
    for text in ("root ::= root", 'root ::= "a" b\nb ::= b "c"', "root ::= [\\uD800-\\uDFFF]"):
        with pytest.raises(UnsatisfiableError):
            mw.compile_gbnf(text, BYTES)


def test_limits() -> None:
    deep = "root ::= " + "(" * 150 + '"a" root? ' + ")" * 150
    assert accepted(deep, "a", "aa") == [True, True]
    with pytest.raises(LimitError, match="max_depth"):
        mw.compile_gbnf("root ::= " + "(" * 300 + '"a"' + ")" * 300, BYTES)
    raised = Limits(max_depth=20_000)
    text = "root ::= " + "(" * 10_000 + '"a" root? ' + ")?" * 10_000
    assert accepts(mw.compile_gbnf(text, BYTES, limits=raised), "aa")
    with pytest.raises(LimitError):
        mw.compile_gbnf('root ::= (("a"{1000} "b"){1000} "c"){1000}', BYTES)


@settings(max_examples=300, deadline=None)
@given(st.text(st.sampled_from('root ::= "a|b()[]{}*+?.^-\\x41,0\n#<!'), max_size=30))
def test_any_text_compiles_or_is_refused(text: str) -> None:
    for whole in (text, "root ::= " + text):
        try:
            mw.compile_gbnf(whole, BYTES, limits=Limits(max_regex_states=2000))
        except (GrammarError, UnsatisfiableError, LimitError):
            continue


def test_equal_texts_are_compiled_once() -> None:
    assert mw.compile_gbnf('root ::= "a"', BYTES) is mw.compile(mw.GBNF('root ::= "a"'), BYTES)
    assert mw.compile(mw.GBNF('r ::= "b"', root="r"), BYTES) is not mw.compile_gbnf(
        'r ::= "b"\nroot ::= r', BYTES
    )
    with pytest.raises(GrammarError, match="str"):
        mw.compile_gbnf(3, BYTES)  # type: ignore[arg-type]


def test_a_completion_that_nobody_can_write() -> None:
    rules = ["root ::= r0", *(f"r{i} ::= r{i + 1} r{i + 1}" for i in range(58)), 'r58 ::= "a"']
    matcher = mw.compile_gbnf("\n".join(rules), BYTES).matcher()
    assert matcher.accept_bytes(b"aaa")
    with pytest.raises(mw.MaskwrightError, match="longer than"):
        matcher.shortest_completion()
    assert matcher.accept_bytes(b"a")


def test_a_rule_without_a_text_has_its_place() -> None:
    with pytest.raises(mw.UnsatisfiableError, match="no text can be derived from the rule 'root'") as caught:
        mw.compile_gbnf('x ::= "b"\nroot ::= "a" root', BYTES)
    assert caught.value.place == "2:1"


NAMED = [
    (
        'root ::= "get " col " of " table\ncol ::= [a-z]+\ntable ::= "t" [0-9]+',
        ["table", "col"],
        b"get ab of t1",
    ),
    ('root ::= a\na ::= "x" a | b\nb ::= [0-9]? "y"', ["b", "a"], b"xx3y"),
    ('root ::= w (" " w)*\nw ::= [a-z]*', ["w"], b"ab  c"),
]


@pytest.mark.parametrize(("text", "names", "example"), NAMED)
def test_rules_that_are_named_are_symbols_and_change_no_mask(
    text: str, names: list[str], example: bytes
) -> None:
    plain, named = mw.compile_gbnf(text, BYTES), mw.compile(mw.GBNF(text, symbols=names), BYTES)
    assert set(Symbols(named, names).names) == set(names) < {*Symbols(named).names, "root"}
    found = Symbols(named, names).start.read(example).occurrences_at_end()
    assert found is not None and {each.symbol for each in found} == set(names)
    rng = np.random.default_rng(0)
    for _ in range(30):
        a, b = plain.matcher(), named.matcher()
        for _ in range(12):
            allowed = np.array(a.next_token_bitmask())
            assert (allowed == np.array(b.next_token_bitmask())).all()
            ids = np.flatnonzero(np.unpackbits(allowed.view(np.uint8), bitorder="little"))
            if not len(ids):
                break
            token = int(rng.choice(ids))
            assert a.accept_token(token) == b.accept_token(token)


def test_names_that_are_no_rules() -> None:
    with pytest.raises(GrammarError, match="there is no rule 'b'"):
        mw.compile_gbnf('root ::= "a"', BYTES, symbols=["b"])
    for wrong in ("root", 5, [5]):
        with pytest.raises(GrammarError, match="symbols: expected names of rules"):
            mw.compile_gbnf('root ::= "a"', BYTES, symbols=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("length", [4095, 4096, 4097, 10_000])
def test_long_texts(length: int) -> None:
    text = "ab" * length
    grammar = mw.compile_gbnf(f'root ::= "{text}\\n\\"{text}" "c"', BYTES)
    matcher = grammar.matcher()
    assert matcher.accept_bytes(f'{text}\n"{text}c'.encode()) and matcher.is_accepting
    with pytest.raises(GrammarError, match="not closed"):
        mw.compile_gbnf(f'root ::= "{text}', BYTES)
    with pytest.raises(GrammarError, match="surrogate"):
        mw.compile_gbnf(f'root ::= "{text}\ud800{text}"', BYTES)


@pytest.mark.parametrize("source", ['"' + "\\n" * 300_000 + '"', "[" + "a" * 300_000 + "]"])
def test_long_terminals_meet_the_deadline(source: str) -> None:
    with pytest.raises(LimitError) as caught:
        mw.compile_gbnf(f"root ::= {source}", BYTES, limits=Limits(max_seconds=0.01))
    assert caught.value.limit == "max_seconds"
