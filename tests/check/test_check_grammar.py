"""What the validator says about grammars: each finding, its place, and against naive oracles."""

from __future__ import annotations

import itertools
import re

import lark.load_grammar
import numpy as np
import pytest
from bnf_strategies import gbnf, grammars
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.check.sentences import sentences
from maskwright.check.texts import Explainer
from maskwright.frontends.lark.reader import read
from maskwright.limits import Limits


def found(source, **options):
    report = mw.check_grammar(source, **options)
    return [(f.severity, f.code, f.place) for f in (*report.findings, *report.hints)]


def only(source, code):
    report = mw.check_grammar(source)
    (finding,) = (f for f in (*report.findings, *report.hints) if f.code == code)
    return finding


# --- names and rules ------------------------------------------------------------------------


def test_every_undefined_name_of_lark():
    text = 'start: ites "x" | WORT item\nitem: other{"a"}\nitems: "q"\nWORD: "w"\nother{p}: p nix\n%ignore BLANK\n'
    report = mw.check_grammar(mw.Lark(text))
    errors = {(f.code, f.place): f.message for f in report.findings if f.severity == "error"}
    assert set(errors) == {
        ("undefined-rule", "1:8"), ("undefined-terminal", "1:19"), ("undefined-rule", "5:13"),
        ("undefined-terminal", "6:9"),
    }  # fmt: skip
    assert errors["undefined-rule", "1:8"].splitlines() == [
        "there is no rule 'ites': did you mean 'items'?",
        '  start: ites "x" | WORT item',
        "         ^",
    ]
    assert "did you mean 'WORD'?" in errors["undefined-terminal", "1:19"]
    assert "add nix: ..." in errors["undefined-rule", "5:13"]
    # What can be said besides is said.
    assert {(f.code, f.place) for f in report.findings if f.severity == "warning"} == {
        ("unreachable-rule", "3:1"),
        ("unused-terminal", "4:1"),
    }


def test_every_undefined_name_of_gbnf():
    assert found(mw.GBNF('root ::= a "x" b\nc ::= d "y"\n')) == [
        ("error", "undefined-rule", "1:10"),
        ("error", "undefined-rule", "1:16"),
        ("error", "undefined-rule", "2:7"),
        ("warning", "unreachable-rule", "2:1"),
    ]
    assert found(mw.GBNF('rot ::= "a"')) == [("error", "malformed", "1:1")]
    assert "did you mean 'rot'" in mw.check_grammar(mw.GBNF('rot ::= "a"')).findings[0].message


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (mw.Lark('start: "a'), "1:8"),
        (mw.Lark('start: "a"\n)'), "2:1"),
        (mw.GBNF('root ::= "a" [b'), "1:14"),
        (mw.Regex("ab(c"), "1:3"),
        (mw.Lark('start: %json {"a": }'), "1:8"),
    ],
)
def test_syntax_errors_have_a_caret(source, place):
    (finding,) = mw.check_grammar(source).findings
    assert (finding.severity, finding.place) == ("error", place)
    assert re.search(r"\n +\^$", finding.message)


def test_what_is_unreachable_or_unused():
    text = (
        'start: a\na: "x" B\nb: c\nc: a b?\nB: "b"\nC: "c"\n'
        "%import common (INT, WS)\n%import common.CNAME -> NAME\n%ignore WS\n"
    )
    warnings = {(f.code, f.place) for f in mw.check_grammar(mw.Lark(text)).findings}
    assert warnings == {
        ("unreachable-rule", "3:1"), ("unreachable-rule", "4:1"), ("unused-terminal", "6:1"),
        ("unused-terminal", "7:17"), ("unused-terminal", "8:25"),
    }  # fmt: skip


def test_aliases_strings_and_comments_are_no_names():
    text = 'start: "b" -> b\n     | /c/ -> c // b\n# b\n'
    assert found(mw.Lark(text)) == []
    assert found(mw.Lark(text + 'b: "x"\n')) == [("warning", "unreachable-rule", "4:1")]


def test_what_derives_nothing():
    assert found(mw.Lark('start: "x" | a\na: "(" a ")"\n')) == [("warning", "unproductive-rule", "2:1")]
    assert ("error", "unproductive-rule", "1:1") in found(mw.Lark('start: a\na: "(" a ")"\n'))
    assert ("error", "unproductive-rule", "1:1") in found(mw.GBNF('root ::= "(" root ")"'))
    assert found(mw.Lark('start: "x" | WS\nWS: " "\n%ignore WS')) == [("warning", "ignored-in-rule", "1:1")]


def test_cycles_and_empty_repetitions():
    assert ("warning", "cycle", "1:1") in found(mw.Lark("start: a\na: b | /x/\nb: start\n"))
    assert "start -> a -> b -> start" in only(mw.Lark("start: a\na: b | /x/\nb: start\n"), "cycle").message
    assert ("warning", "nullable-loop", "2:1") in found(mw.Lark('start: "y" a\na: (b)*\nb: "x"?\n'))
    assert ("warning", "nullable-loop", "1:1") in found(mw.GBNF('root ::= a*\na ::= ("(" a ")")?'))
    assert not any("loop" in code or code == "cycle" for _, code, _ in found(mw.Lark('start: ("a" "b"?)*')))


def test_left_recursion():
    direct = "start: start /x/ | /y/"
    hidden = 'start: a start /x/ | /y/\na: "z"?\n'
    assert found(mw.Lark(direct)) == []
    assert only(mw.Lark(hidden), "hidden-left-recursion").place == "1:1"
    # llama.cpp takes none of them.
    assert only(mw.GBNF('root ::= root "x" | "y"'), "left-recursion").severity == "note"
    assert only(mw.GBNF('root ::= a root "x" | "y"\na ::= "z"?'), "hidden-left-recursion").severity == "note"
    assert found(mw.GBNF('root ::= "x" root | "y"')) == []


def test_blanks_without_a_bound():
    for source in (
        mw.Lark('start: "a"\n%ignore /[ \\t]+/'),
        mw.GBNF('root ::= "a" [ \\n]* "b"'),
        mw.GBNF('root ::= "a" ws\nws ::= [ ] ws | ""'),
        mw.Regex(r"a\s*"),
    ):
        assert only(source, "unbounded-blanks").severity == "note"
    for source in (
        mw.Lark('start: "a"\n%ignore /[ \\t]{1,9}/'),
        mw.GBNF('root ::= "a" [ \\n]{0,3} "b"'),
        mw.GBNF('root ::= "a" ws\nws ::= [ ] | ""'),
        mw.Regex(r"a\s?[\sx]*"),
    ):
        assert found(source) == []


@pytest.mark.slow
@given(grammars())
@settings(max_examples=60, deadline=None)
def test_productive_rules_are_those_that_compile(trees):
    text = "\n".join(f"{name(i)} ::= {gbnf(tree)}" for i, tree in enumerate(trees))
    report = mw.check_grammar(mw.GBNF(text))
    said = {f.message.split("\n")[0] for f in report.findings if f.code == "unproductive-rule"}
    lost = {f.message.split("\n")[0] for f in report.findings if f.code == "unreachable-rule"}
    for i in range(len(trees)):
        reachable = not any(message.endswith(f"the rule {name(i)}") for message in lost)
        try:
            compile_for_bytes(mw.GBNF(text, root=name(i)))
        except mw.UnsatisfiableError:
            compiles = False
        else:
            compiles = True
        dead = any(message.startswith(f"the rule {name(i)} derives no text") for message in said)
        assert dead == (reachable and not compiles)


def name(i):
    return "root" if i == 0 else f"rule-{i}"


# --- terminals ------------------------------------------------------------------------------


def test_keywords_and_identifiers():
    text = 'start: (IF NAME)+\nIF: "if"\nNAME: /[a-z]+/\n%ignore " "\n'
    assert found(mw.Lark(text)) == []  # they never compete
    text = text.replace("IF NAME", "IF | NAME")
    assert only(mw.Lark(text), "reserved-words").message.startswith("NAME is never IF")
    shadowed = only(mw.Lark(text.replace("NAME:", "NAME.2:")), "shadowed-terminal")
    assert (shadowed.severity, shadowed.place) == ("warning", "2:1")
    assert "one of NAME as well, which ranks higher (a higher priority)" in shadowed.message
    # Behind "to" a name may come, elsewhere it may not.
    text = 'start: "to" (IF | NAME) | "go" IF\nIF: "if"\nNAME.2: /[a-z]+/\n%ignore " "\n'
    assert only(mw.Lark(text), "shadowed-keyword").place == "2:1"


def test_patterns_that_shadow_or_overlap():
    text = "start: (A | B | C)+\nA: /[a-z]/\nB: /[0-9]/\nC.-1: /[a-f0-9]/\n"
    assert "one of A, B as well" in only(mw.Lark(text), "shadowed-terminal").message
    text = "start: (A | B)+\nA: /[a-z][0-9]+/\nB: /[a-f]+[0-9]/\n"
    assert only(mw.Lark(text), "overlapping-terminals").severity == "note"
    assert found(mw.Lark(text.replace("a-f", "A-F"))) == []
    assert found(mw.Lark(text).__class__(text, lexer="dynamic")) == []


@pytest.mark.parametrize(
    "text", ['start: %json {"type": "object"}', "start: <[5]>", "start: ", "start: ()", 'start: T~0\nT: "a"']
)
def test_no_terminals(text: str) -> None:
    assert mw.check_grammar(mw.Lark(text)).ok


def test_terminals_that_run_together():
    text = 'start: A "a" | "b"\nA: /a+/\n'
    assert "A directly before" in only(mw.Lark(text), "terminal-clash").message
    assert found(mw.Lark('start: A "a"\nA: /a+/\n')) == [("error", "unsatisfiable", "1:1")]


def test_bad_terminals_are_all_named():
    places = [
        place for _, code, place in found(mw.Lark("start: A B\nA: /(/\nB: /x*/\n")) if code == "bad-terminal"
    ]
    assert sorted(places) == ["2:1", "3:1"]


def test_attributes_may_stand_before_a_priority():
    text = 'start: a b\na[suffix="."].2: /[a-z]+/\nb: /[0-9]+/\n'
    assert mw.check_grammar(mw.Lark(text)).ok


def test_bad_terminals_without_a_name_have_their_place():
    for text, place in (
        ('start: "a"\n     | "b" /(/\n', "2:12"),
        ('start: "a"\n\n  | /a*/\n', "3:5"),
        ('start: "a"\n%ignore /(/\n', "2:9"),
        ("start: a\na[lazy]: /.*/\n", "2:1"),
    ):
        one = only(mw.Lark(text), "bad-terminal")
        assert one.place == place and place not in one.message and "^" in one.message


PATTERNS = ("a", "b", "ab", "a+", "[ab]", "[ab]+", "a?b", "(ab)+", "b+a", "(a|b)(a|b)", "aab")
TEXTS = ["".join(letters) for n in range(1, 6) for letters in itertools.product("ab", repeat=n)]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(PATTERNS), st.integers(-1, 1)), min_size=2, max_size=4))
@settings(max_examples=80, deadline=None)
def test_shadowed_terminals_against_enumeration(terminals):
    names = [f"T{i}" for i in range(len(terminals))]
    text = f"start: ({' | '.join(names)})+\n" + "".join(
        f"{n}.{priority}: /{pattern}/\n" if priority else f"{n}: /{pattern}/\n"
        for n, (pattern, priority) in zip(names, terminals, strict=True)
    )
    ranked = sorted(read(text, "start", ()).terminals.values(), key=lambda terminal: terminal.rank)
    expected = set()
    for i, terminal in enumerate(ranked):
        own = [t for t in TEXTS if re.fullmatch(terminal.pattern, t)]
        if all(any(re.fullmatch(above.pattern, t) for above in ranked[:i]) for t in own):
            expected.add(terminal.name)
    report = mw.check_grammar(mw.Lark(text))
    said = {f.message.split(" ")[0] for f in report.findings if f.code == "shadowed-terminal"}
    assert said == expected


def test_a_grammar_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = []
    builder = lark.load_grammar.GrammarBuilder
    load = builder.load_grammar
    monkeypatch.setattr(
        builder, "load_grammar", lambda self, text, *more: texts.append(text) or load(self, text, *more)
    )
    assert found(mw.Lark('start: A b\nA: /a+/\nb: "b" | %json {"type": "null"}\n')) == []
    assert len(texts) == 1


# --- other sources --------------------------------------------------------------------------


def test_other_sources():
    assert found(mw.Choice(["a", "b", "a"])) == [("warning", "duplicate-choice", "/2")]
    assert found(mw.Choice(iter(["a", "b"]))) == []
    assert found(mw.Choice([[1, 2], [1, 2]])) == [("warning", "duplicate-choice", "/1")]
    assert found(mw.Choice(np.array([[1, 2], [3, -1]]))) == []
    assert found(mw.Choice([])) == [("error", "unsatisfiable", "1:1")]
    assert found(mw.Choice([1])) == [("error", "malformed", "/0")]
    assert found(mw.Regex("[^\\s\\S]")) == [("error", "unsatisfiable", "1:1")]
    assert ("error", "malformed", "/type") in found(mw.JsonSchema({"type": "strin"}))
    assert found(mw.StructuralTag({"type": "odd"}))[0][:2] == ("error", "malformed")
    for bad in (3, "start: A", {"type": "string"}, mw.Choice("abc"), mw.Choice(3)):
        with pytest.raises(mw.GrammarError):
            mw.check_grammar(bad)
    assert (
        found(mw.Lark(3)) == found(mw.Regex(None)) == found(mw.GBNF(b"")) == [("error", "malformed", "1:1")]
    )


def test_limits_and_depth_are_findings():
    assert [code for _, code, _ in found(mw.Regex("a" * 200), limits=Limits(max_regex_states=100))] == [
        "limit"
    ]
    deep = "root ::= r" + "+" * 5000 + '\nr ::= "a" r "b" | ""'
    assert [code for _, code, _ in found(mw.GBNF(deep))] == ["malformed"]
    nested = mw.check_grammar(mw.GBNF("root ::= " + "(" * 500 + '"a"' + ")" * 500)).findings
    assert [(f.code, f.place) for f in nested] == [("limit", "1:210")]
    assert nested[0].message.startswith("max_depth")


# --- texts ----------------------------------------------------------------------------------

CALC = r"""
start: stmt+
stmt: "let" NAME "=" sum ";"
sum: (sum ("+" | "-"))? atom
atom: NAME | NUMBER | "(" sum ")" | STRING
STRING: /"[^"]*"/
%import common.CNAME -> NAME
%import common.NUMBER
%import common.WS
%ignore WS
"""


@pytest.mark.parametrize(
    ("text", "code", "place", "words"),
    [
        ("let x 5;", "not-in-language", "1:7", "go on with '=A;'; expected \"=\" in stmt < start\n"),
        ("let x = (1 + 2;", "not-in-language", "1:15", '")" in atom < stmt < start, or "+" or "-" in sum <'),
        ("let x =\n  +", "not-in-language", "2:3", 'expected NAME, NUMBER, "(" or STRING in atom'),
        ("let é = 1", "not-in-language", "1:5", "expected NAME in stmt"),
        ('let x = "ab', "incomplete", "1:12", "expected STRING (behind '\"ab') in atom"),
        ("", "incomplete", "1:1", 'expected "let" in stmt'),
        ("let x = 1; \n", None, None, None),
        ("let x = 1;", None, None, None),
    ],
)
def test_where_a_text_leaves_a_grammar(text, code, place, words):
    explainer = Explainer(*compile_for_bytes(mw.Lark(CALC)))
    findings = explainer.check(text)
    assert [(f.code, f.place) for f in findings] == ([(code, place)] if code else [])
    assert all(words in f.message for f in findings)


def test_line_feeds_at_the_end_of_a_text():
    explainer = Explainer(*compile_for_bytes(mw.GBNF('root ::= line+\nline ::= [a-z] "\\n"')))
    assert explainer.check("a\nb\n") == []
    assert [f.code for f in explainer.check("a\nb")] == ["incomplete"]
    explainer = Explainer(*compile_for_bytes(mw.GBNF('root ::= "a"')))
    assert explainer.check("a\n") == []
    assert [(f.code, f.place) for f in explainer.check("a b")] == [("not-in-language", "1:2")]
    assert "it could end; the end of the text was expected" in explainer.check("a b")[0].message


RULES = ("start", "p", "q", "r")


@st.composite
def letter_grammars(draw):
    """Lark grammars whose terminals are single letters."""
    symbols = st.sampled_from([*RULES, *"abcd", *"abcd"])
    out = []
    for rule, last in zip(RULES, "WXYZ", strict=True):
        ways = draw(st.lists(st.lists(symbols, min_size=1, max_size=3), min_size=1, max_size=3))
        shown = {" ".join(s if s in RULES else f'"{s}"' for s in way) for way in ways}
        out.append(f"{rule}: {' | '.join([*sorted(shown), chr(34) + last + chr(34)])}")
    return "\n".join(out)


@given(letter_grammars(), st.integers(0, 1000))
@settings(max_examples=25, deadline=None)
def test_what_is_expected_is_what_the_mask_allows(text, seed):
    grammar, compiled = compile_for_bytes(mw.Lark(text, lexer="contextual"))
    explainer = Explainer(grammar, compiled)
    (sentence,) = sentences(compiled, 1, seed=seed, most=12)
    for at in range(len(sentence) + 1):
        matcher = compiled.matcher()
        assert matcher.accept_bytes(sentence[:at].encode())
        mask = mw.allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
        matcher.fill_next_token_bitmask(mask)
        allowed = {chr(i) for i in range(256) if mask[0, i >> 5] >> (i & 31) & 1}
        expected = explainer.expected(sentence[:at].encode())
        names = [name for group, _ in expected.groups for name in group]
        firsts = set()
        for each in names:
            literal, _, behind = each.partition(" (behind ")
            begun = behind[1:-2] if behind else ""
            assert literal.strip('"').startswith(begun)
            firsts.add(literal.strip('"')[len(begun) : len(begun) + 1])
        assert allowed == firsts
        for _, rules in expected.groups:
            assert len(grammar.names) == 1 or len(rules) == 6 or rules[-1] == "start"
            assert set(rules) <= set(RULES)


# --- sentences ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        mw.Lark(CALC),
        mw.GBNF('root ::= "[" (root ("," root)*)? "]"'),
        mw.Regex("[a-z]{3,8}é|x\\s+y"),
        mw.Choice(["yes", "no", ""]),
        mw.JsonSchema({"type": "array", "items": {"type": "integer"}}),
    ],
)
def test_sentences_are_of_the_language(source):
    _, compiled = compile_for_bytes(source)
    drawn = list(sentences(compiled, 20, seed=7))
    assert len(drawn) == 20 and len(set(drawn)) > 1
    for text in drawn:
        matcher = compiled.matcher()
        assert (not text or matcher.accept_bytes(text.encode())) and matcher.is_accepting
    assert drawn == list(sentences(compiled, 20, seed=7))
    assert drawn != list(sentences(compiled, 20, seed=8))
