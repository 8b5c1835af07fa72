"""Expressions of several grammars with a lexer, and of grammars with modes and blocks inside JSON strings."""

from __future__ import annotations

import ast
import functools
import itertools
import json
import random
import re
import sqlite3
from collections.abc import Callable

import pytest

import maskwright as mw
from maskwright.algebra import joins
from maskwright.compiling import lexer_automaton
from maskwright.errors import GrammarError
from maskwright.regular.refusals import refusals
from tests.algebra.test_algebra import SEVERAL, VOCABULARY, Case, accepts, has

NAMES = mw.Lark('start: NAME+ "if"\nNAME: /[if]+/\n%ignore " "')
LIST = mw.Lark('start: "if" ("," "if")*\nCOMMENT: /f+/\n%ignore COMMENT')
SIGNS = mw.Lark('start: ("+" | "=" | "+=")+\n%ignore "i"')
MODES = mw.Lark(
    'start: "(" text ")"\ntext[mode=inside]: CHAR*\n%ignore " "\n%mode inside\nCHAR: /[fi ]/\n%ignore "="'
)
BLOCKS = mw.Lark(
    'start: (NAME _NEWLINE | "i" _NEWLINE _INDENT start _DEDENT)+\nNAME: "f"\n_NEWLINE: /(\\n *)+/\n'
    '%declare _INDENT _DEDENT\n%ignore " "'
)
BRACKETS = mw.Lark('start: "(" start ")" | "x"', lexer="dynamic")
EMPTY = mw.Lark('start: NAME*\nNAME: /[if]+/\n%ignore " "')
CLOSED = mw.Lark('start: "x" ")"', lexer="dynamic")
Judge = Callable[[str], bool]


def held(source: object, text: str) -> bool:
    """Whether a text is a JSON string, as printers write it, that holds one of a source."""
    if not (text.startswith('"') and text.endswith('"')):
        return False  # at once: cuts of texts into parts ask for millions
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, str) and text == json.dumps(value) and has(source, value)


def behind(prefix: str, judge: Judge, end: str = "") -> Judge:
    return lambda t: (
        t.startswith(prefix)
        and t.endswith(end)
        and len(t) >= len(prefix + end)
        and judge(t[len(prefix) : len(t) - len(end)])
    )


def in_rows(*judges: Judge) -> Judge:
    """Texts that can be cut into one for each judge."""

    def judge(text: str) -> bool:
        ends = {0}
        for each in judges:
            ends = {j for i in ends for j in range(i, len(text) + 1) if each(text[i:j])}
        return len(text) in ends

    return judge


def of(source: object) -> Judge:
    return lambda t: has(source, t)


def string(source: object) -> Judge:
    return functools.lru_cache(maxsize=10_000)(lambda t: held(source, t))


def either(*judges: Judge) -> Judge:
    return lambda t: any(judge(t) for judge in judges)


R, J = mw.Regex, mw.JsonString
CASES = {
    "behind texts of their own": Case(
        R("a") + NAMES | R("b") + LIST | R("i"),
        lambda t: behind("a", of(NAMES))(t) or behind("b", of(LIST))(t) or t == "i",
        "abif ,",
        6,
    ),
    "behind texts that begin alike": Case(
        R("i") + NAMES | R("if") + LIST,
        lambda t: behind("i", of(NAMES))(t) or behind("if", of(LIST))(t),
        "if, ",
        7,
    ),
    "behind items of one list": Case(
        R("a") + BRACKETS + J(NAMES) | R("b") + BRACKETS + J(LIST),
        lambda t: in_rows(lambda s: s == "a", of(BRACKETS), string(NAMES))(t)
        or in_rows(lambda s: s == "b", of(BRACKETS), string(LIST))(t),
        ("a", "b", "(", "x", ")", '"', "if", " ", ","),
        7,
    ),
    "in a row": Case(
        J(NAMES) + R(",") + J(SIGNS) + R(";") + LIST,
        in_rows(string(NAMES), lambda t: t == ",", string(SIGNS), lambda t: t == ";", of(LIST)),
        ('"', "if", "f", " ", ",", "+", ";"),
        11,
    ),
    "one of them twice": Case(
        R("a") + J(NAMES) | R("b") + J(SIGNS) | R("c") + J(NAMES) + R("c"),
        lambda t: behind("a", string(NAMES))(t) or behind("b", string(SIGNS))(t) or behind("c", string(NAMES), "c")(t),
        ("a", "b", "c", '"', "i", "f", " ", "+="),
        6,
    ),
    "again and again": Case(
        (R("a") + J(NAMES) | R("b") + J(SIGNS)) * (1, 2),
        lambda t: (
            (one := lambda s: behind("a", string(NAMES))(s) or behind("b", string(SIGNS))(s))(t) or in_rows(one, one)(t)
        ),
        ("a", "b", '"', "if", " ", "+="),
        8,
    ),
    "inside one string": Case(
        J(R("a") + J(NAMES) | R("b") + J(SIGNS)),
        lambda t: held_by(t, lambda s: behind("a", string(NAMES))(s) or behind("b", string(SIGNS))(s)),
        ('"', '\\"', "a", "b", "if", " ", "+"),
        7,
    ),
    "beside another string in a string": Case(
        J(J(NAMES) | J(BRACKETS)),
        lambda t: held_by(t, lambda s: string(NAMES)(s) or string(BRACKETS)(s)),
        ('"', '\\"', "if", " ", "(", "x", ")"),
        7,
    ),
    "modes in a string": Case(J(MODES), string(MODES), ('"', "(", ")", "f", "i", " ", "="), 7),
    "modes and others": Case(
        J(MODES) + R(",") + J(SIGNS) | J(SIGNS) * 0,
        lambda t: in_rows(string(MODES), lambda s: s == ",", string(SIGNS))(t) or t == "",
        ('"', "(", ")", "f", "=", ",", "+"),
        8,
    ),
    "at one place": Case(NAMES | LIST, either(of(NAMES), of(LIST)), "if, ", 7),
    "three at one place": Case(
        NAMES | LIST | SIGNS | R("f*"),
        either(of(NAMES), of(LIST), of(SIGNS), lambda t: not t.strip("f")),
        ("i", "if", "f", ",", " ", "+", "="),
        5,
    ),
    "behind one text": Case(
        R("a") + NAMES | R("a") + LIST, either(behind("a", of(NAMES)), behind("a", of(LIST))), "aif, ", 7
    ),
    "behind one of several texts": Case(
        (R("a") | NAMES * 0) + NAMES | LIST,
        either(behind("a", of(NAMES)), of(NAMES), of(LIST)), "aif, ", 6
    ),
    "in strings at one place": Case(
        J(NAMES) | J(LIST), either(string(NAMES), string(LIST)), ('"', "i", "f", "if", ",", " "), 6
    ),
    "behind an item of a list": Case(
        (BRACKETS + J(NAMES)) | (BRACKETS + J(LIST)),
        either(in_rows(of(BRACKETS), string(NAMES)), in_rows(of(BRACKETS), string(LIST))),
        ("(", "x", ")", '"', "if", " ", ","),
        7,
    ),
    "in front of a text": Case(NAMES + R("f"), in_rows(of(NAMES), lambda t: t == "f"), "if ", 8),
    "in front of a text that it ignores": Case(
        NAMES + R(" i"), in_rows(of(NAMES), lambda t: t == " i"), "if ", 8
    ),
    "in front of what may be empty": Case(
        NAMES + R("[ f]*") + R("=?"),
        in_rows(of(NAMES), lambda t: not t.strip(" f"), lambda t: t in ("", "=")), "if =", 7
    ),
    "in front of another": Case(NAMES + LIST, in_rows(of(NAMES), of(LIST)), "if, ", 8),
    "in front of itself": Case(LIST + LIST, in_rows(of(LIST), of(LIST)), "if, ", 8),
    "in front of brackets": Case(SIGNS + BRACKETS, in_rows(of(SIGNS), of(BRACKETS)), "+=i(x)", 6),
    "in a row of itself": Case(SIGNS * (2, 3), either(in_rows(*[of(SIGNS)] * 2), in_rows(*[of(SIGNS)] * 3)), "+=i", 6),
    "often in a row": Case(
        (LIST + R(",")) * (1, None), lambda t: in_rows(*[lambda s: behind("", of(LIST), ",")(s)] * 1)(t)
        or any(in_rows(*[behind("", of(LIST), ",")] * n)(t) for n in (2, 3)), "if,", 9
    ),
    "either, and then either": Case(
        (NAMES | SIGNS) + R("[f+]") + (SIGNS | LIST),
        in_rows(either(of(NAMES), of(SIGNS)), lambda t: t in ("f", "+"), either(of(SIGNS), of(LIST))),
        ("if", "f", "+", "+=", " "), 6
    ),
    "either or both": Case(
        mw.Optional(NAMES) + mw.Optional(SIGNS),
        in_rows(either(of(NAMES), lambda t: not t), either(of(SIGNS), lambda t: not t)), "if +=", 6
    ),
    "one that may be empty in a row": Case(
        EMPTY * (2, 3) + R("i"), in_rows(*[of(EMPTY)] * 3, lambda t: t == "i"), "if ", 6
    ),
    "a sequence in a string": Case(
        J(NAMES + R("\n") + LIST),
        lambda t: held_by(t, in_rows(of(NAMES), lambda s: s == "\n", of(LIST))),
        ('"', "i", "f", "if", "\\n", " ", ","), 7
    ),
    "what has no lexer, around": Case(
        BRACKETS + NAMES + BRACKETS | R("f"),
        either(in_rows(of(BRACKETS), of(NAMES), of(BRACKETS)), lambda t: t == "f"),
        ("(", "x", ")", "if", "f", " "), 6
    ),
    "what is cut out": Case(
        (R("i") + NAMES + R("[f ]")) & R("i?i.*f.?"),
        lambda t: re.fullmatch("i?i.*f.?", t) is not None
        and in_rows(lambda s: s == "i", of(NAMES), lambda s: s in ("f", " "))(t),
        "if ", 8
    ),
    "what is left out": Case(
        (NAMES | R("[fi]+") | NAMES + R("=")) - mw.Contains(["fi"]) - mw.Contains(["if="]),
        lambda t: "fi" not in t and "if=" not in t
        and either(of(NAMES), lambda s: s != "" and not s.strip("if"), in_rows(of(NAMES), lambda s: s == "="))(t),
        "if =", 7
    ),
    "what is left of a row": Case(
        (LIST * (1, 3)) & R(".*ff.*"),
        lambda t: "ff" in t and any(in_rows(*[of(LIST)] * n)(t) for n in (1, 2, 3)), "if,", 8
    ),
    "modes": Case(R("f") + MODES + R("[)f]"), in_rows(lambda t: t == "f", of(MODES), lambda t: t in (")", "f")), "()fi =", 7),
    "blocks": Case(R("i") + BLOCKS + R("="), in_rows(lambda t: t == "i", of(BLOCKS), lambda t: t == "="), "fi\n =", 8),
    "blocks or others": Case(
        BLOCKS + R("-") | NAMES + R("-") | R(" -"),
        either(in_rows(of(BLOCKS), lambda t: t == "-"), in_rows(of(NAMES), lambda t: t == "-"), lambda t: t == " -"),
        ("f", "i", "if", "\n", " ", "-"), 7
    ),
    "blocks in a row": Case(BLOCKS * 2, in_rows(of(BLOCKS), of(BLOCKS)), "fi\n ", 7),
    "blocks in front of blanks": Case(
        BLOCKS + R(" +|\n-"), in_rows(of(BLOCKS), lambda t: t == "\n-" or (bool(t) and not t.strip(" "))), "fi\n -", 7
    ),
    "blocks in a string": Case(J(BLOCKS), string(BLOCKS), ('"', "f", "i", "\\n", " "), 9),
    "blocks in a string in a string": Case(
        J(J(BLOCKS)), lambda t: held_by(t, string(BLOCKS)), ('"', '\\"', "f", "i", "\\\\n", " "), 9
    ),
    "blocks and others": Case(
        R("a") + J(BLOCKS) + R(";") | R("b") + J(NAMES),
        lambda t: behind("a", string(BLOCKS), ";")(t) or behind("b", string(NAMES))(t),
        ("a", "b", ";", '"', "f", "i", "\\n", " "),
        8,
    ),
}  # fmt: skip


def held_by(text: str, judge: Judge) -> bool:
    try:
        value = json.loads(text)
    except ValueError:
        return False
    return isinstance(value, str) and text == json.dumps(value) and judge(value)


def texts_of(case: Case) -> list[str]:
    found = {
        "".join(parts) for n in range(case.most + 1) for parts in itertools.product(case.alphabet, repeat=n)
    }
    return sorted(found)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "in a row" else name for name in CASES]
)
def test_every_text_is_accepted_exactly_if_the_expression_has_it(name: str) -> None:
    case = CASES[name]
    assert_same(mw.compile(case.source, VOCABULARY), case)


def assert_same(compiled: mw.CompiledGrammar, case: Case) -> None:
    """Texts that no beginning of a text of the expression leads to are not gone through one by one."""
    texts = {""}
    found, wanted = 0, 0
    for _ in range(case.most):
        texts = {
            text + part
            for text in texts
            if compiled.matcher().accept_bytes(text.encode())
            for part in case.alphabet
        }
        for text in texts:
            assert accepts(compiled, text) == case.oracle(text), text
            found += case.oracle(text)
    for text in random.Random(case.most).choices(texts_of(smaller(case)), k=3_000):
        assert accepts(compiled, text) == case.oracle(text), text
        wanted += case.oracle(text)
    assert found


def smaller(case: Case) -> Case:
    return Case(case.source, case.oracle, case.alphabet, min(case.most, 5))


@pytest.mark.parametrize("name", CASES)
def test_masks_lead_to_texts_of_the_expression(name: str) -> None:
    case, rng = CASES[name], random.Random(name)
    compiled = mw.compile(case.source, SEVERAL)
    mask = mw.allocate_token_bitmask(1, SEVERAL.vocab_size)
    for _ in range(20):
        matcher, written = compiled.matcher(), b""
        for _ in range(16):
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(SEVERAL.vocab_size) if mask[0, i >> 5] >> (i & 31) & 1]
            assert (256 in allowed) == judged(case, written)
            more = [token for token in allowed if token != 256]
            for token in rng.sample(more, min(len(more), 6)):
                fork = matcher.fork()
                assert fork.accept_token(token)
                rest = b"".join(SEVERAL.tokens[each] for each in fork.shortest_completion())
                assert case.oracle((written + SEVERAL.tokens[token] + rest).decode())
            if not more:
                break
            token = rng.choice(more)
            assert matcher.accept_token(token)
            written += SEVERAL.tokens[token]


def judged(case: Case, written: bytes) -> bool:
    try:
        return case.oracle(written.decode())
    except UnicodeDecodeError:
        return False


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (J(MODES) & mw.Contains(["if"]), "depends on the mode of its lexer, and behind LPAR.*; for sampling"),
        (R("a") + J(BLOCKS) | R("b") + J(mw.Lark(BLOCKS.text.replace('"f"', '"g"'))), "both have blocks"),
        ((R("a") + NAMES | R("b") + LIST) & mw.Contains(["f"]), "different lexers"),
        (R("b") + LIST | mw.Lark('start: a\na[capture="q"]: /[a-z]+/'), "captures are not read"),
    ],
)
def test_what_has_no_exact_meaning_says_why(source: mw.Source, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        mw.compile(source, VOCABULARY)


PAIR = 'start: key "," value\nkey[capture]: /[a-z]+/\nvalue[capture]: /[0-9]+/\n%ignore " "'


@pytest.mark.parametrize("source", [mw.Lark(PAIR), mw.Lark(PAIR, lexer="dynamic")])
@pytest.mark.parametrize(
    "begin", [R("!"), mw.Choice(["!", "?"]), R("!") | mw.Choice(["?"]), mw.Optional(R("!!") | R("!"))]
)
def test_operands_capture_as_they_do_alone(source: mw.Source, begin: mw.Source) -> None:
    for whole in (begin + source, mw.Choice(["x"]) | begin + source, mw.Optional(begin + source)):
        matcher = mw.compile(whole, VOCABULARY).matcher()
        assert matcher.accept_bytes(b"!ab , 12 ")
        assert matcher.is_accepting
        assert matcher.captures() == {"key": b"ab", "value": b"12"}


def test_what_looks_ahead_is_not_told_apart_by_other_grammars(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their terminals never come beside it: with those that they ignore, Python and JavaScript took more than a minute."""
    asked = []

    def told(terminals: object, refused: object, together: list[int], *rest: object) -> object:
        asked.append(together)
        return refusals(terminals, refused, together, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(lexer_automaton, "refusals", told)
    ahead = mw.Lark('start: (A | B)*\nA: /i(?!f)/\nB: /if+/\n%ignore "="')
    mw.compile(R("a") + J(ahead) + R(";") | R("b") + J(NAMES), VOCABULARY)
    assert asked
    assert all(some < 1 << 4 or not some & 0b111 for together in asked for some in together)


def test_wrong_variants_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    # Without boundaries, terminals compete.
    case = Case(NAMES | SIGNS, lambda t: has(NAMES, t) or has(SIGNS, t), "if +=", 5)
    assert_same(mw.compile(case.source, VOCABULARY), case)
    with monkeypatch.context() as patch:
        patch.setattr(joins, "_bounded", lambda parts, *_: [False] * len(parts))
        with pytest.raises(AssertionError):
            assert_same(mw.compile(mw.Choice(["q"]) | NAMES | SIGNS, VOCABULARY), case)
    # Without one at the end, the longest match looks into what comes behind.
    case = Case(NAMES + R("f"), in_rows(of(NAMES), lambda t: t == "f"), "if ", 6)
    assert_same(mw.compile(case.source, VOCABULARY), case)
    with monkeypatch.context() as patch:
        patch.setattr(joins, "closes", lambda grammar: True)
        with pytest.raises(AssertionError):
            assert_same(mw.compile(NAMES + R("f") | mw.Choice(["q"]), VOCABULARY), case)


@pytest.mark.parametrize(
    "text",
    ["", "x = 1\n", "x = 1\n    ", " x = 1\n", "if a:\n  b\n    ", "if a:\n  b\n c\n", "#c", "\n\n  \nx\n", "x\n  # hi\ny\n",
     "def f(x):\n\treturn 1\n", "x = 'é\\n\"'\n", "(a,\n b\n    )\n    ", "x", "x\n\x0cy\n", 'f"{a + {1: 2}[1]:>{w}} \\n"\n',
     "if x:\n    if y:\n        z\n    \n    w\n   ", "if x:\n    if y:\n        z\n      w\n"],
)  # fmt: skip
@pytest.mark.parametrize("ascii_only", [True, False])
def test_python_in_a_string_is_python(text: str, ascii_only: bool) -> None:
    source = mw.shipped_grammar("python")
    compiled = mw.compile(
        R('[{]"code": ') + J(source) + R("[}]"), VOCABULARY, limits=mw.Limits(max_seconds=60)
    )
    written = json.dumps({"code": text}, ensure_ascii=ascii_only)
    assert accepts(compiled, written) == has(source, text)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::SyntaxWarning")
def test_random_code_between_fences_is_read_by_ast_and_sqlite() -> None:
    sql, python = mw.shipped_grammar("sql"), mw.shipped_grammar("python")
    source = R("```sql\n") + sql + R("\n?```") | R("```python\n") + python + R("\n?```") | sql | python
    compiled = mw.compile(source, VOCABULARY, limits=mw.Limits(max_seconds=60))
    mask = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    read = {"sql": 0, "python": 0, "": 0}
    for seed in range(150):
        rng, matcher = random.Random(seed), compiled.matcher()
        written = b"```python\n" if seed % 3 == 0 else b"```sql\n" if seed % 3 == 1 else b""
        assert matcher.accept_bytes(written)
        for _ in range(100):
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(256) if mask[0, i >> 5] >> (i & 31) & 1]
            if not allowed:
                break
            usual = [i for i in allowed if i in b"\n abif:=(*,`"]
            token = rng.choice(usual if usual and rng.random() < 0.3 else allowed)
            assert matcher.accept_token(token)
            written += bytes([token])
        text = (
            written + b"".join(VOCABULARY.tokens[token] for token in matcher.shortest_completion())
        ).decode()
        fenced = re.fullmatch(r"(?s)```(sql|python)\n(.*?)\n?```", text)
        language, code = (fenced[1], fenced[2]) if fenced else ("", text)
        read[language] += 1
        # A line end before the fence may be the last one of the code.
        assert any(
            reads(each)
            for each in (code, code + "\n")
            for reads in (
                (is_sql,) if language == "sql" else (is_python,) if language else (is_sql, is_python)
            )
        ), text
    assert min(read.values()) >= 10


def is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


def is_sql(text: str) -> bool:
    """Whether SQLite reads it; which tables there are is no question of syntax."""
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("EXPLAIN " + text)
    except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
        return not re.search("syntax error|unrecognized token|incomplete input", str(error))
    finally:
        connection.close()
    return True


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_random_python_in_a_string_is_read_by_ast() -> None:
    sql, python = mw.shipped_grammar("sql"), mw.shipped_grammar("python")
    source = R('[{]"sql": ') + J(sql) + R("[}]") | R('[{]"code": ') + J(python) + R("[}]")
    compiled = mw.compile(source, VOCABULARY, limits=mw.Limits(max_seconds=60))
    mask = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    for seed in range(100):
        rng, matcher, written = random.Random(seed), compiled.matcher(), b'{"code": "'
        assert matcher.accept_bytes(written)
        for _ in range(100):
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(256) if mask[0, i >> 5] >> (i & 31) & 1]
            if not allowed:
                break
            usual = [i for i in allowed if i in b"\\n abif:=("]
            token = rng.choice(usual if usual and rng.random() < 0.3 else allowed)
            assert matcher.accept_token(token)
            written += bytes([token])
        written += b"".join(VOCABULARY.tokens[token] for token in matcher.shortest_completion())
        ast.parse(json.loads(written)["code"])
