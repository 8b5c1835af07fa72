"""Occurrences of symbols, against listing all derivations, and against Lark's trees."""

from __future__ import annotations

from typing import Any

import lark
import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.compiling.compiler import compile_grammar, compile_lark
from maskwright.compiling.shipped import examples, shipped_grammar
from maskwright.compiling.symbols import Occurrence, Symbols
from maskwright.ir.grammar import Choice, Expr, Grammar, Lexeme, Ref, Repeated, Seq, Term
from maskwright.regular.expressions import Lit

BYTES = toys.byte_vocabulary()
Spans = frozenset[tuple[str, int, int]]


# --- random grammars, all of whose derivations can be listed

TEXTS = ("a", "b", "ab", "aa", "")


@st.composite
def expressions(draw: Any, first: int, rules: int, depth: int = 2) -> Expr:
    """Over rules from ``first`` on, so that there is no recursion."""
    kind = draw(st.integers(0, 5 if depth else 2))
    if kind < 3:
        if first < rules and draw(st.booleans()):
            return Ref(draw(st.integers(first, rules - 1)))
        text = draw(st.sampled_from(TEXTS))
        return Term(Lexeme(text, Lit(text))) if text else Seq(())
    parts = tuple(draw(expressions(first, rules, depth - 1)) for _ in range(draw(st.integers(1, 3))))
    return Seq(parts) if kind < 5 else Choice(parts)


@st.composite
def finite_grammars(draw: Any) -> Grammar:
    count = draw(st.integers(1, 4))
    grammar = Grammar()
    for i in range(count):
        grammar.reserve(f"r{i}")
    for i in range(count):
        body: Any = draw(expressions(i + 1, count))
        if i + 1 < count and draw(st.integers(0, 4)) == 0:
            body = Repeated(draw(st.integers(i + 1, count - 1)), draw(st.integers(i + 1, count - 1)), 0, 2)
        grammar.rules[i] = body
    return grammar


def derivations(grammar: Grammar, rule: int) -> set[tuple[str, Spans]]:
    """All (text, occurrences) of a rule."""
    body = grammar.rules[rule]
    if isinstance(body, Repeated):
        first, rest = derivations(grammar, body.first), derivations(grammar, body.rest)
        found: set[tuple[str, Spans]] = {("", frozenset())}
        for count in range(body.min, (body.max or 0) + 1):
            if count:
                found |= joined([first] + [rest] * (count - 1))
    else:
        assert isinstance(body, (Term, Ref, Seq, Choice))
        found = expanded(grammar, body)
    name = grammar.names[rule]
    return {(text, spans | {(name, 0, len(text))} if text else spans) for text, spans in found}


def expanded(grammar: Grammar, expr: Any) -> set[tuple[str, Spans]]:
    if isinstance(expr, Term):
        return {(str(expr.lexeme.key), frozenset())}
    if isinstance(expr, Ref):
        return derivations(grammar, expr.rule)
    parts = [expanded(grammar, item) for item in expr.items]
    return set().union(*parts) if isinstance(expr, Choice) else joined(parts)


def joined(parts: list[set[tuple[str, Spans]]]) -> set[tuple[str, Spans]]:
    found: set[tuple[str, Spans]] = {("", frozenset())}
    for part in parts:
        found = {
            (text + more, spans | {(name, len(text) + a, len(text) + b) for name, a, b in inner})
            for text, spans in found
            for more, inner in part
        }
    return found


@pytest.mark.slow
@given(finite_grammars())
@settings(max_examples=300, deadline=None)
def test_certain_occurrences_are_those_of_all_derivations(grammar: Grammar) -> None:
    every = derivations(grammar, 0)
    texts = {text for text, _ in every}
    if len(every) > 2000 or texts <= {""}:
        return
    start = Symbols(compile_grammar(grammar, BYTES)).start
    assert start.occurrences() == []
    for prefix in {text[:i] for text in texts for i in range(1, len(text) + 1)}:
        reading = start.read(prefix.encode())
        possible = [spans for text, spans in every if text.startswith(prefix)]
        shared = frozenset.intersection(*possible)
        assert set(reading.occurrences()) == {each for each in shared if each[2] <= len(prefix)}, prefix
        whole = [spans for text, spans in every if text == prefix]
        at_end = reading.occurrences_at_end()
        assert (at_end is None) == (not whole)
        if at_end is not None:
            assert set(at_end) == frozenset.intersection(*whole), prefix


def test_places_that_call_a_rule_and_go_on_alike() -> None:
    """Behind ``aaaa``, what comes before ``c`` is ``b b`` in one way and ``"aa" b`` in the other."""
    grammar = compile_lark('start: d c | "aa" b c\nd: b~0..2\nb: "aa"\nc: "a"', BYTES, lexer="dynamic")
    found = Symbols(grammar).start.read(b"aaaa").occurrences()
    assert [tuple(each) for each in found] == [("b", 2, 4)]


# --- recursion, where only short texts are listed

RECURSIVE = {
    "left": [Choice((Seq((Ref(0), Term(Lexeme("b", Lit("b"))), Ref(1))), Ref(1))), Term(Lexeme("a", Lit("a")))],
    "right": [Choice((Seq((Ref(1), Ref(0))), Ref(1))), Term(Lexeme("ab", Lit("ab")))],
    "hidden left": [
        Choice((Seq((Ref(1), Ref(0), Term(Lexeme("b", Lit("b"))))), Term(Lexeme("a", Lit("a"))))),
        Choice((Seq(()), Term(Lexeme("b", Lit("b"))))),
    ],
    "cyclic": [Choice((Ref(1), Seq((Ref(0), Ref(0))))), Choice((Ref(0), Term(Lexeme("a", Lit("a")))))],
    "middle": [Choice((Seq((Term(Lexeme("a", Lit("a"))), Ref(0), Ref(1))), Ref(1))), Term(Lexeme("b", Lit("b")))],
}  # fmt: skip


def bounded(bodies: list[Any], length: int) -> set[tuple[str, Spans]]:
    """Derivations of short texts, grown from below until there are no new ones."""
    known: list[set[tuple[str, Spans]]] = [set() for _ in bodies]

    def grow(expr: Any) -> set[tuple[str, Spans]]:
        if isinstance(expr, Term):
            return {(str(expr.lexeme.key), frozenset())}
        if isinstance(expr, Ref):
            return known[expr.rule]
        parts = [grow(item) for item in expr.items]
        if isinstance(expr, Choice):
            return set().union(*parts)
        found: set[tuple[str, Spans]] = {("", frozenset())}
        for part in parts:
            found = {each for each in joined([found, part]) if len(each[0]) <= length}
        return found

    while True:
        before = sum(map(len, known))
        for i, body in enumerate(bodies):
            known[i] |= {(t, s | {(f"r{i}", 0, len(t))} if t else s) for t, s in grow(body)}
        if sum(map(len, known)) == before:
            return known[0]


@pytest.mark.parametrize("name", RECURSIVE)
def test_recursion(name: str) -> None:
    bodies = RECURSIVE[name]
    grammar = Grammar(list(bodies), [f"r{i}" for i in range(len(bodies))])
    longest = 4 if name == "cyclic" else 8
    every = bounded(bodies, longest)
    start = Symbols(compile_grammar(grammar, BYTES)).start
    texts = sorted({text for text, _ in every if 0 < len(text) <= longest - 2})
    assert len(texts) >= 2
    for text in texts:
        at_end = start.read(text.encode()).occurrences_at_end()
        assert at_end is not None
        assert set(at_end) == frozenset.intersection(*(spans for other, spans in every if other == text))
        for i in range(1, len(text)):
            found = set(start.read(text[:i].encode()).occurrences())
            shared = frozenset.intersection(*(spans for other, spans in every if other.startswith(text[:i])))
            assert found == {each for each in shared if each[2] <= i}, text[:i]


# --- grammars with a lexer: what Lark's own parser says

CALCULATOR = """
    start: statement+
    statement: NAME "=" sum ";"
    sum: sum "+" product | product
    product: product "*" atom | atom
    atom: NAME | NUMBER | "(" sum ")" | call
    call: NAME "(" [sum ("," sum)*] ")"
    NAME: /[a-z_]+/
    NUMBER: /[0-9]+(\\.[0-9]+)?/
    %ignore /\\s+/
    %ignore /#[^\\n]*/
"""


def tree_spans(tree: lark.Tree[lark.Token]) -> set[tuple[str, int, int]]:
    found = {
        (node.data, node.meta.start_pos, node.meta.end_pos)
        for node in tree.iter_subtrees()
        if not node.meta.empty
    }
    tokens = tree.scan_values(lambda value: isinstance(value, lark.Token))
    return found | {(token.type, token.start_pos, token.end_pos) for token in tokens}


def lark_spans(parser: lark.Lark, text: str) -> set[tuple[str, int, int]]:
    return {(str(name), a, b) for name, a, b in tree_spans(parser.parse(text))}  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["x = 1;", "ab = a + b * (c + 2.5) ; # note\n c=f(1,g(), h(x)*2);", "a=b;c=d;e=f*g+h;"]
)
def test_lark_trees(text: str) -> None:
    parser = lark.Lark(CALCULATOR, parser="lalr", propagate_positions=True, keep_all_tokens=True)
    symbols = Symbols(mw.compile_lark(CALCULATOR, BYTES))
    found = symbols.start.read(text.encode()).occurrences_at_end()
    assert found is not None
    assert {tuple(each) for each in found} == lark_spans(parser, text)


@pytest.mark.parametrize("name", ["json", "arithmetic", "pddl"])
def test_shipped_grammars_against_lark(name: str) -> None:
    source = shipped_grammar(name)
    parser = lark.Lark(
        source.text, parser="earley", start=source.start, propagate_positions=True, keep_all_tokens=True
    )
    symbols = Symbols(mw.compile(source, BYTES))
    texts = [text for text in examples(name)["accept"] if text.isascii() and len(text) < 200]
    assert texts
    for text in texts:
        found = symbols.start.read(text.encode()).occurrences_at_end()
        assert found is not None
        # Lark's trees leave out rules that are marked so, and what an alias renames.
        mine, theirs = {tuple(each) for each in found}, lark_spans(parser, text)
        known = {each for each in theirs if each[0] in symbols.names}
        assert known and known <= mine, text


def test_what_is_certain_grows() -> None:
    """Nothing certain is ever taken back, and the end adds to it."""
    start = Symbols(mw.compile(shipped_grammar("sql"), BYTES), ["expr", "column", "statement", "name"]).start
    text = (
        b"select a.b, count(*) from t where x in (select 'y' || z from u) or not q between 1 and 2 order by 1"
    )
    reading, before = start, set[Occurrence]()
    for i in range(len(text)):
        reading = reading.read(text[i : i + 1])
        now = set(reading.occurrences())
        assert before <= now and all(each.end <= i + 1 for each in now)
        before = now
    assert reading.occurrences() == start.read(text).occurrences()
    at_end = reading.occurrences_at_end()
    assert at_end is not None and before < set(at_end)
    columns = [text[each.start : each.end] for each in at_end if each.symbol == "column"]
    assert columns == [b"a.b", b"x", b"z", b"q"]


def test_json_values() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
            "b": {"type": "string"},
        },
        "required": ["a"],
    }
    symbols = Symbols(
        mw.compile_json_schema(schema, BYTES), ["/properties/a/items", "/properties/b", "any value"]
    )
    text = b'{"a": [1, 22, 3], "b": "x\\"y", "c": [true], "d": null}'
    found = symbols.start.read(text).occurrences_at_end()
    assert found is not None
    values = [(each.symbol, text[each.start : each.end]) for each in found]
    assert [value for symbol, value in values if symbol == "/properties/a/items"] == [b"1", b"22", b"3"]
    assert [value for symbol, value in values if symbol == "/properties/b"] == [b'"x\\"y"']
    assert [value for symbol, value in values if symbol == "any value"] == [b"true", b"[true]", b"null"]


def test_blocks_by_indentation() -> None:
    text = b"def f(x):\n    y = 1\n    if y:\n        return y\nz = 3\n"
    python = mw.compile(shipped_grammar("python"), BYTES, limits=mw.Limits(max_seconds=60))
    symbols = Symbols(python, "statement")
    found = symbols.start.read(text).occurrences_at_end()
    assert found is not None
    assert [text[each.start : each.end].strip() for each in found] == [
        b"y = 1",
        b"return y",
        b"if y:\n        return y",
        b"def f(x):\n    y = 1\n    if y:\n        return y",
        b"z = 3",
    ]


def test_reading_changes_nothing() -> None:
    start = Symbols(mw.compile_lark(CALCULATOR, BYTES), "NAME").start
    there = start.read(b"ab = ")
    other = there.read(b"c;")
    assert there.read(b"x;").occurrences() == other.occurrences()
    assert [tuple(each) for each in there.occurrences()] == [("NAME", 0, 2)]
    assert (start.length, there.length, other.length) == (0, 5, 7)


PAIRS = mw.Lark('start: pair ("," pair)*\npair: NAME "=" NUM\nNAME: /[a-z]+/\nNUM: /[0-9]+/\n%ignore " "')
LINES = mw.Lark(
    'start: (NAME _NEWLINE | "i" _NEWLINE _INDENT start _DEDENT)+\nNAME: "f"\n_NEWLINE: /(\\n *)+/\n'
    '%declare _INDENT _DEDENT\n%ignore " "'
)


@pytest.mark.parametrize(
    ("source", "text", "found"),
    [
        (mw.Regex("x:") + PAIRS, "x:a=1, b=2", ["a=1", "b=2"]),
        (PAIRS + mw.Regex(",?"), "a=1, b=2,", ["a=1", "b=2"]),
        (PAIRS * (2, 3), "a=1,b=2c=3 d=4", ["a=1", "b=2", "c=3", "d=4"]),
        (mw.Optional(PAIRS) | mw.Regex("a=") + PAIRS, "a=b=1", ["b=1"]),
        (mw.Regex("x") + LINES + mw.Regex("-"), "xi\n f\n  -", ["f"]),
        (mw.JsonString(LINES), '"i\\n f\\n  "', ["f"]),
    ],
)
def test_symbols_of_parts_of_expressions(source: mw.Source, text: str, found: list[str]) -> None:
    reading = Symbols(mw.compile(source, BYTES)).start.read(text.encode())
    spans = [each for each in reading.occurrences_at_end() or () if each.symbol in ("pair", "NAME")]
    wanted = [each for each in spans if each.symbol == ("NAME" if "f" in found else "pair")]
    assert [text[each.start : each.end] for each in wanted] == found


def test_bad_input() -> None:
    grammar = mw.compile_lark(CALCULATOR, BYTES)
    with pytest.raises(mw.GrammarError, match="no symbol 'nosuch'; it has start, statement"):
        Symbols(grammar, ["sum", "nosuch"])
    with pytest.raises(mw.MaskwrightError, match="CompiledGrammar"):
        Symbols("sum")  # type: ignore[arg-type]
    start = Symbols(grammar, ["sum"]).start
    with pytest.raises(mw.MaskwrightError, match="at or before byte 4"):
        start.read(b"a =;")
    assert [start.read(b"a=b+c;").occurrences()[i][1:] for i in range(2)] == [(2, 3), (2, 5)]


def test_numbers_that_were_never_given_out() -> None:
    from maskwright._core import Tracer

    tracer = Tracer(mw.compile_lark(CALCULATOR, BYTES)._core)
    for call in (
        lambda: tracer.step(7, 0), lambda: tracer.thread(-1), lambda: tracer.event(0), lambda: tracer.waits(0, 9),
        lambda: tracer.place(10**6), lambda: tracer.rule(10**6), lambda: tracer.advance(0, 0), lambda: tracer.line(-1, 0, 0),
        lambda: tracer.boundaries(7), lambda: tracer.ends_lines(-1),
    ):  # fmt: skip
        with pytest.raises(IndexError, match="there is no"):
            call()


def test_parts_of_rules_are_no_symbols() -> None:
    """Groups and repetitions of GBNF are rules of the grammar, which no one has written."""
    text = 'root ::= ("(" root ")" ","){0,3} "a" ' + "(" * 20 + 'root "b"' + ")" * 20 + "?"
    grammar = mw.compile_gbnf(text, BYTES)
    assert any(name.endswith(")") for name in grammar._core.rule_names)
    assert Symbols(grammar).names == ("root",)
    with pytest.raises(mw.GrammarError, match=r"no symbol 'column'; it has root$"):
        Symbols(grammar, ["column"])
    schema = {"type": "object", "properties": {"a (item)": {"type": "array", "items": {"type": "integer"}}}}
    assert "/properties/a (item)" in Symbols(mw.compile_json_schema(schema, BYTES)).names
