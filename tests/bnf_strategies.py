"""Random grammars over characters, as trees: written as GBNF, and expanded naively for the oracle.

A tree is ("text", str), ("class", characters), ("rule", index), ("sequence", trees),
("choice", trees) or ("repeat", tree, least, most or None).
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from maskwright.ir.grammar import EMPTY, Choice, Expr, Grammar, Lexeme, Ref, Seq, Term
from maskwright.regular.expressions import Lit, one_of

TEXTS = ("a", "b", "ab", "", "aab", "(", '"', "\u00e9", "\U0001f600")
CLASSES = ("ab", "a", "bc1", "\u00e9a")
BOUNDS = ((0, None), (1, None), (0, 1), (2, 3), (0, 2), (2, None), (9, 10))


@st.composite
def trees(draw: Any, rules: int, depth: int = 3) -> tuple:
    kind = draw(st.integers(0, 9))
    if depth == 0 or kind < 4:
        which = draw(st.integers(0, 5))
        if which < 2:
            return "text", draw(st.sampled_from(TEXTS))
        if which < 3:
            return "class", draw(st.sampled_from(CLASSES))
        return "rule", draw(st.integers(0, rules - 1))
    if kind < 6:
        return "repeat", draw(trees(rules, depth - 1)), *draw(st.sampled_from(BOUNDS))
    parts = [draw(trees(rules, depth - 1)) for _ in range(draw(st.integers(1, 3)))]
    return "sequence" if kind < 8 else "choice", parts


@st.composite
def linear_trees(draw: Any, rules: int) -> tuple:
    """Alternatives that end in (or all begin with) at most one rule: often regular, also when recursive."""
    right = draw(st.booleans())
    ways = []
    for _ in range(draw(st.integers(1, 3))):
        plain: tuple = ("text", draw(st.sampled_from(TEXTS)))
        if draw(st.booleans()):
            plain = "repeat", plain, *draw(st.sampled_from(BOUNDS[:5]))
        rule = [("rule", draw(st.integers(0, rules - 1)))] if draw(st.integers(0, 2)) else []
        ways.append(("sequence", [plain, *rule] if right else [*rule, plain]))
    return "choice", ways


@st.composite
def grammars(draw: Any) -> list[tuple]:
    """The bodies of some rules; the text is a rule 0."""
    rules = draw(st.integers(1, 5))
    linear = draw(st.integers(0, 2))
    return [draw(linear_trees(rules) if linear == 0 else trees(rules)) for _ in range(rules)]


def gbnf(tree: tuple) -> str:
    kind, content, *bounds = tree
    if kind == "text":
        return '"' + content.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if kind == "class":
        return "[" + "".join(f"\\U{ord(c):08x}" for c in content) + "]"
    if kind == "rule":
        return name(content)
    if kind == "sequence":
        return "(" + " ".join(map(gbnf, content)) + ")"
    if kind == "choice":
        return "(" + "\n | ".join(map(gbnf, content)) + ")"
    low, high = bounds
    short = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    return gbnf(content) + short.get((low, high), f"{{{low},{'' if high is None else high}}}")


def name(rule: int) -> str:
    return "root" if rule == 0 else f"rule-{rule}"


def gbnf_text(bodies: list[tuple]) -> str:
    return "\n".join(f"{name(i)} ::= {gbnf(body)}" for i, body in enumerate(bodies))


def naive(bodies: list[tuple]) -> Grammar:
    """The same as rules over single characters, without any cleverness."""
    grammar = Grammar()
    for i in range(len(bodies)):
        grammar.reserve(name(i))

    def expr(tree: tuple) -> Expr:
        kind, content, *bounds = tree
        if kind == "text":
            return Seq(tuple(Term(Lexeme(c, Lit(c))) for c in content))
        if kind == "class":
            return Term(Lexeme(("one of", content), one_of(content)))
        if kind == "rule":
            return Ref(content)
        if kind == "sequence":
            return Seq(tuple(map(expr, content)))
        if kind == "choice":
            return Choice(tuple(map(expr, content)))
        low, high = bounds
        body = expr(content)
        once = Ref(grammar.add("once", body))
        if high is None:
            more = grammar.reserve("more")
            grammar.rules[more] = Choice((EMPTY, Seq((once, Ref(more)))))
            return Seq((*[once] * low, Ref(more)))
        rest: Expr = EMPTY
        for _ in range(high - low):
            rest = Choice((EMPTY, Seq((once, rest))))
        return Seq((*[once] * low, rest))

    for i, body in enumerate(bodies):
        grammar.rules[i] = expr(body)
    return grammar
