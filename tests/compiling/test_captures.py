"""Captures: against all derivations of small grammars, against trees of the package lark, and by example."""

from __future__ import annotations

import json
from typing import Any

import lark
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toys import term

import maskwright
from maskwright import Vocabulary
from maskwright.compiling.compiler import CompiledGrammar, compile_grammar
from maskwright.errors import UnsatisfiableError
from maskwright.ir.grammar import EMPTY, Capture, Choice, Expr, Grammar, Ref, Seq, Term
from maskwright.ir.prune import prune

SPECIAL = [b"<|tool|>", b"<think>", b"</think>"]
VOCABULARY = Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), b"</s>", *SPECIAL, b"ab", b"aa"],
    eos_ids=[256],
    special_ids=[257, 258, 259],
)
TOOL, THINK, END, AB = 257, 258, 259, 260


def ids_of(*parts: str | int) -> list[int]:
    return [i for part in parts for i in ([part] if isinstance(part, int) else part.encode())]


def captured(compiled: CompiledGrammar, *parts: str | int) -> Any:
    matcher = compiled.matcher()
    ids = ids_of(*parts)
    assert matcher.accept_tokens(ids) == len(ids)
    return matcher.captures()


# --- every derivation of small grammars


class Trees:
    """The derivation that counts, by trying alternatives in order and longer parts first; None for no text."""

    def __init__(self, grammar: Grammar, text: str) -> None:
        self.grammar = grammar
        self.text = text
        self.found: list[tuple[int, str]] = []
        self.can: set[tuple[Any, int, int]] = set()
        self.settle()

    def settle(self) -> None:
        """Which rules derive which parts of the text: a least fixed point."""
        size = len(self.text)
        before = -1
        while len(self.can) != before:
            before = len(self.can)
            for i in range(size + 1):
                for j in range(i, size + 1):
                    for rule, body in enumerate(self.grammar.rules):
                        if self.derives(body, i, j):
                            self.can.add((rule, i, j))

    def derives(self, node: Any, i: int, j: int) -> bool:
        if isinstance(node, Ref):
            return (node.rule, i, j) in self.can
        if isinstance(node, Term):
            return self.text[i:j] == node.lexeme.key
        if isinstance(node, Choice):
            return any(self.derives(item, i, j) for item in node.items)
        if not node.items:
            return i == j
        rest = Seq(node.items[1:])
        return any(self.derives(node.items[0], i, k) and self.derives(rest, k, j) for k in range(i, j + 1))

    def walk(self, node: Any, i: int, j: int) -> None:
        if isinstance(node, Ref):
            self.walk(self.grammar.rules[node.rule], i, j)
            self.found.append((node.rule, self.text[i:j]))
        elif isinstance(node, Choice):
            self.walk(next(item for item in node.items if self.derives(item, i, j)), i, j)
        elif isinstance(node, Seq) and node.items:
            rest = Seq(node.items[1:])
            ends = range(j, i - 1, -1)
            k = next(k for k in ends if self.derives(node.items[0], i, k) and self.derives(rest, k, j))
            self.walk(node.items[0], i, k)
            self.walk(rest, k, j)


LEAVES = tuple(map(term, ("a", "b", "ab", "aa")))


def _expression(draw: Any, index: int, rules: int, depth: int) -> Expr:
    """Rules refer to later ones, or to themselves behind something: then none derives itself alone."""
    kind = draw(st.integers(0, 5))
    if depth == 0 or kind < 2:
        if index + 1 < rules and draw(st.booleans()):
            return Ref(draw(st.integers(index + 1, rules - 1)))
        return draw(st.sampled_from(LEAVES))
    items = tuple(_expression(draw, index, rules, depth - 1) for _ in range(draw(st.integers(1, 3))))
    if kind == 2:
        again = (draw(st.sampled_from(LEAVES)), Ref(index))
        return Choice((*items, Seq(again if draw(st.booleans()) else again[::-1])))
    if kind == 3:
        return Choice((EMPTY, *items) if draw(st.booleans()) else (*items, EMPTY))
    return Seq(items)


@st.composite
def grammars(draw: Any) -> Grammar:
    rules = draw(st.integers(1, 4))
    made = Grammar(
        [_expression(draw, i, rules, 2) for i in range(rules)], [f"rule {i}" for i in range(rules)], 0
    )
    made.captures = {i: (Capture(str(i), append=True),) for i in range(rules)}
    return made


@pytest.mark.slow
@given(grammars())
@settings(max_examples=150, deadline=None)
def test_the_documented_derivation_counts(grammar: Grammar) -> None:
    try:
        compiled = compile_grammar(grammar, VOCABULARY)
    except UnsatisfiableError:
        return
    texts = [""]
    for _ in range(4):
        texts += [text + letter for text in texts[-(2 ** (len(texts[-1]))) :] for letter in "ab"]
    for text in dict.fromkeys(texts):
        matcher = compiled.matcher()
        if matcher.accept_tokens(list(text.encode())) < len(text) or not matcher.is_accepting:
            continue
        trees = Trees(prune(grammar), text)
        trees.walk(Ref(0), 0, len(text))
        expected: dict[str, list[bytes]] = {}
        for rule, part in trees.found:
            expected.setdefault(str(rule), []).append(part.encode())
        assert matcher.captures() == expected, text


def test_a_rule_that_derives_itself_is_read_once() -> None:
    # In every order of alternatives; the empty text among them.
    for bodies in (
        (Ref(0), term("a")),
        (term("a"), Ref(0)),
        (Ref(0), EMPTY, Seq((Ref(0), Ref(0))), term("a")),
    ):
        grammar = Grammar([Choice(bodies)], ["e"], 0, captures={0: (Capture("e", append=True),)})
        compiled = compile_grammar(grammar, VOCABULARY)
        assert captured(compiled, "a")["e"][-1] == b"a"


# --- trees of the package lark

CALC = r"""
start: (line ";")*
line: NAME "=" sum
sum: product | sum "+" product
product: atom | product "*" atom
atom: NUMBER | NAME | "(" sum ")"
NAME: /[a-z]+/
NUMBER: /[0-9]+/
%ignore /[ \n]+/
%ignore /#[^\n]*/
"""
TEXTS = ("", "a=1;", " x = (1 + yy)*3 ; # note\n z=x*x+2;\n", "a=((1));b=a+a+a;")


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
@pytest.mark.parametrize("text", TEXTS)
def test_trees_of_lark(text: str, lexer: Any) -> None:
    names = ("line", "sum", "product", "atom", "NAME", "NUMBER")
    given_ = CALC
    for name in names:
        given_ = given_.replace(f"\n{name}:", f'\n{name}[capture="__LIST_APPEND:{name}"]:')
    compiled = maskwright.compile_lark(given_, VOCABULARY, lexer=lexer)
    tree = lark.Lark(CALC, parser="lalr", propagate_positions=True, keep_all_tokens=True).parse(text)
    expected: dict[str, list[bytes]] = {}

    def walk(node: Any) -> None:
        for child in getattr(node, "children", ()):
            walk(child)
        name, at = (node.data, node.meta) if isinstance(node, lark.Tree) else (node.type, node)
        if name in names:
            expected.setdefault(name, []).append(text[at.start_pos : at.end_pos].encode())

    walk(tree)
    matcher = compiled.matcher()
    seen: dict[str, Any] = {}
    for byte in text.encode():
        assert matcher.accept_bytes(bytes([byte]))
        # What was captured stays: the grammar has one reading of each text.
        now = matcher.captures()
        assert all(now[name][: len(before)] == before for name, before in seen.items()), (seen, now)
        seen = now
    assert matcher.is_accepting and seen == expected


# --- by example


def test_the_last_text_or_a_list() -> None:
    compiled = maskwright.compile_lark(
        'start: (key ":" value ";")+\nkey[capture]: /[a-z]+/\nvalue[capture="__LIST_APPEND:values"]: /[0-9]+/',
        VOCABULARY,
    )
    assert captured(compiled, "a:1;bc:23;") == {"key": b"bc", "values": [b"1", b"23"]}
    assert captured(compiled, "a:1;b") == {"key": b"a", "values": [b"1"]}  # b could be longer
    assert captured(compiled) == {}


def test_rollback_and_fork() -> None:
    compiled = maskwright.compile_lark('start: a+\na[capture="__LIST_APPEND:a"]: "a" | "b" "b"', VOCABULARY)
    matcher = compiled.matcher()
    assert matcher.accept_tokens(ids_of("ab")) == 2 and matcher.captures() == {"a": [b"a"]}
    fork = matcher.fork()
    assert fork.accept_bytes(b"ba") and fork.captures() == {"a": [b"a", b"bb", b"a"]}
    assert matcher.captures() == {"a": [b"a"]}
    fork.rollback(2)
    assert fork.captures() == {"a": [b"a"]}
    fork.rollback(1)
    assert fork.accept_token(AB - 259 + ord("a") - 1) and fork.captures() == {"a": [b"a"]}
    assert matcher.accept_token(ord("b")) and matcher.accept_token(256)
    assert matcher.is_terminated and matcher.captures() == {"a": [b"a", b"bb"]}
    matcher.reset()
    assert matcher.captures() == {}


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
def test_ends_of_rules(lexer: Any) -> None:
    """The examples of llguidance's manual."""
    text = "foo<end>"
    for grammar, expected in (
        ('start[capture]: x "<end>"\nx[capture, stop="<end>"]: /.*/', {"x": b"foo", "start": b"foo<end>"}),
        ('start[capture]: x\nx[capture, suffix="<end>"]: /.*/', {"x": b"foo", "start": b"foo<end>"}),
        ("start[capture]: x\nx[capture, lazy]: /.*<end>/", {"x": b"foo<end>", "start": b"foo<end>"}),
        ('start: x\nx[suffix=/<[a-z]+>/, stop_capture="s"]: /.*/', {"s": b"<end>"}),
    ):
        compiled = maskwright.compile_lark(grammar, VOCABULARY, lexer=lexer)
        assert captured(compiled, text) == expected
        matcher = compiled.matcher()
        assert matcher.accept_bytes(text.encode()) and not matcher.accept_bytes(b"bar<end>")


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
def test_inline_schemas_and_ignored_text(lexer: Any) -> None:
    compiled = maskwright.compile_lark(
        'start: call (";" call)*\ncall[capture="__LIST_APPEND:calls"]: NAME "(" arguments ")"\n'
        'arguments[capture]: %json {"type": "object"}\nNAME: /[a-z]+/\n%ignore " "',
        VOCABULARY,
        lexer=lexer,
    )
    found = captured(compiled, ' f ( {"x": [1]} ) ; g( {} )  ')
    assert found == {"calls": [b'f ( {"x": [1]} )', b"g( {} )"], "arguments": b"{}"}
    assert json.loads(captured(compiled, 'f({"x": 1}')["arguments"]) == {"x": 1}
    assert "arguments" not in captured(compiled, 'f({"x": 1')


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
def test_tokens(lexer: Any) -> None:
    compiled = maskwright.compile_lark(
        "start: <think> thought </think> answer?\nthought[capture]: /(.|\\n)+/\nanswer[capture]: <|tool|> /[a-z]+/ <[260]>",
        VOCABULARY,
        lexer=lexer,
    )
    assert captured(compiled, THINK, "hm\n") == {}
    assert captured(compiled, THINK, "hm\n", END) == {"thought": b"hm\n"}
    found = captured(compiled, THINK, "hm", END, TOOL, "ab", AB)
    assert found == {"thought": b"hm", "answer": b"abab"}


def test_a_token_of_text_that_stands_for_itself() -> None:
    # The longest match would take both; the token that stands for itself ends it.
    compiled = maskwright.compile_lark(
        'start: many <[261]> rest?\nmany[capture]: /a+/\nrest[capture]: "a"', VOCABULARY
    )
    assert captured(compiled, 261, 261) == {"many": b"aa"}
    assert captured(compiled, 261, 261, "a") == {"many": b"aa", "rest": b"a"}


def test_long_texts_need_no_deep_stack() -> None:
    compiled = maskwright.compile_lark(
        'start: list\nlist: item list | item\nitem[capture="__LIST_APPEND:i"]: "a" | "b"', VOCABULARY
    )
    assert captured(compiled, "ab" * 300) == {"i": [b"a", b"b"] * 300}


def test_what_captures_are_not_made_for() -> None:
    with pytest.raises(maskwright.GrammarError, match="indentation"):
        maskwright.compile_lark(
            'start: block\nblock[capture]: "a" _NEWLINE (_INDENT block _DEDENT)?\n_NEWLINE: /\\n */\n%declare _INDENT _DEDENT',
            VOCABULARY,
        )


def test_captures_of_operands() -> None:
    digits = "start: b\nb[capture]: /[0-9]+/"
    dynamic, lexed = maskwright.Lark(digits, lexer="dynamic"), maskwright.Lark(digits)
    semicolon = maskwright.Regex(";")
    for source, text, expected in (
        (maskwright.Regex("x") + dynamic, b"x12", b"12"),
        (dynamic | maskwright.Regex("x"), b"12", b"12"),
        (maskwright.Optional(dynamic), b"12", b"12"),
        (maskwright.Optional(lexed), b"12", b"12"),
        ((dynamic + semicolon) * (1, 2), b"12;3;", b"3"),
        ((dynamic + semicolon) * (2, None), b"12;3;4;", b"4"),
        ((dynamic + semicolon) * (1, 2) & maskwright.Contains(["1"]), b"12;", b"12"),
        (maskwright.Lark(digits + '\n%ignore " "', lexer="dynamic") + semicolon, b" 12 ;", b"12"),
        # The first alternative counts.
        (lexed | maskwright.Regex("[0-9]+"), b"12", b"12"),
        (lexed | maskwright.StructuralTag({"type": "any_text"}), b"12", b"12"),
        # Beside parts that are empty.
        (maskwright.Regex("x*") + dynamic, b"12", b"12"),
        (maskwright.Regex("x*") + dynamic, b"xx12", b"12"),
        (maskwright.Optional(maskwright.Regex("x")) + dynamic, b"12", b"12"),
        (
            maskwright.Choice(["x"]) * (0, 1) + dynamic + maskwright.Regex(";?") + maskwright.Regex("y"),
            b"12y",
            b"12",
        ),
    ):
        matcher = maskwright.compile(source, VOCABULARY).matcher()
        assert matcher.accept_bytes(text) and matcher.is_accepting
        assert matcher.captures() == {"b": expected}, source
    assert maskwright.compile((dynamic + semicolon) * (0, 3), VOCABULARY).matcher().captures() == {}
    for source in (
        maskwright.Regex("[0-9]+") | lexed,
        maskwright.StructuralTag({"type": "any_text"}) | lexed,
    ):
        matcher = maskwright.compile(source, VOCABULARY).matcher()
        assert matcher.accept_bytes(b"12") and matcher.captures() == {}
    with pytest.raises(maskwright.GrammarError, match="beside a grammar with a lexer"):
        maskwright.compile(dynamic + lexed, VOCABULARY)
    with pytest.raises(maskwright.GrammarError, match="at most 1000 repetitions"):
        maskwright.compile((dynamic + semicolon) * 1001, VOCABULARY)
