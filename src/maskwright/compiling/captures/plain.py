"""The grammar that captures are read with, as plain data (what JSON can hold) and back.

Only what ``Productions`` and ``Reading`` look at: rules of sequences and choices, terminals, and what is captured.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from maskwright.errors import GrammarError
from maskwright.ir.grammar import (
    Capture,
    Choice,
    Grammar,
    Import,
    Lexeme,
    Lexing,
    Ref,
    Repeated,
    Seq,
    Term,
    Tokens,
)
from maskwright.regular.expressions import Alt, Cat, Chars, Lit, Machine, Regular, Repeat, postorder


def to_plain(grammar: Grammar, number: Callable[[Hashable], int]) -> dict[str, Any]:
    """A grammar as plain data; ``number`` says which number an import has, by its key."""
    writer = _Writer(number)
    lexing = grammar.lexing
    refused = () if lexing is None else lexing.refused
    return {
        "terminals": None if lexing is None else [writer.lexeme(t) for t in lexing.terminals],
        "ignored": [] if lexing is None else list(lexing.ignored),
        "early": [] if lexing is None else list(lexing.early),
        "refused": [(owner, writer.regular(language)) for owner, language in refused],
        "rules": [None if body is None else writer.expression(body) for body in grammar.rules],
        "start": grammar.start,
        "blank": grammar.blank,
        "captures": [(rule, *writer.capture(c)) for rule, cs in grammar.captures.items() for c in cs],
        "lexemes": writer.lexemes,
        "nodes": writer.nodes,
    }


def from_plain(plain: dict[str, Any]) -> Grammar:
    """The grammar; the key of an import is its number.  What is no such data raises errors of any kind."""
    nodes = _nodes(plain["nodes"])
    lexemes = [Lexeme(("regular", nodes[at]), nodes[at]) for at in plain["lexemes"]]
    # Terminals with equal languages have different ranks.
    ranked = plain["terminals"]
    for rank, at in enumerate(ranked or ()):
        lexemes[at] = Lexeme(("terminal", rank), lexemes[at].regular)
    lexing = None
    if ranked is not None:
        lexing = Lexing(
            tuple(lexemes[at] for at in ranked),
            tuple(plain["ignored"]),
            tuple((owner, nodes[at]) for owner, at in plain["refused"]),
            early=tuple(plain["early"]),
        )
    count = len(plain["rules"])
    rules = [None if body is None else _expression(body, lexemes, count) for body in plain["rules"]]
    captures: dict[int, tuple[Capture, ...]] = {}
    for rule, name, append, parts, second in plain["captures"]:
        both = None if parts is None else (nodes[parts[0]], nodes[parts[1]])
        captures[rule] = (*captures.get(rule, ()), Capture(name, append, both, second))
    return Grammar(rules, [""] * count, plain["start"], lexing, captures, plain["blank"])


class _Writer:
    def __init__(self, number: Callable[[Hashable], int]) -> None:
        self.number = number
        self.nodes: list[list[Any]] = []
        self.node_at: dict[Regular, int] = {}
        self.lexemes: list[int] = []
        self.lexeme_at: dict[Hashable, int] = {}

    def expression(self, body: Any) -> list[Any]:
        if isinstance(body, Ref):
            return ["rule", body.rule]
        if isinstance(body, Seq):
            return ["all", *map(self.expression, body.items)]
        if isinstance(body, Choice):
            return ["one", *map(self.expression, body.items)]
        if isinstance(body, Repeated):
            return ["repeat", body.first, body.rest, body.min, body.max]
        if isinstance(body, Import):
            return ["import", self.number(body.key)]
        if isinstance(body, Term) and isinstance(body.lexeme, Tokens):
            return ["tokens", *plain_tokens(body.lexeme)]
        if isinstance(body, Term) and isinstance(body.lexeme, Lexeme):
            return ["lexeme", self.lexeme(body.lexeme)]
        raise GrammarError(f"captures are not supported next to {type(body).__name__}")

    def capture(self, capture: Capture) -> list[Any]:
        parts = None if capture.parts is None else [self.regular(part) for part in capture.parts]
        return [capture.name, capture.append, parts, capture.second]

    def lexeme(self, lexeme: Lexeme) -> int:
        found = self.lexeme_at.get(lexeme.key)
        if found is None:
            found = self.lexeme_at[lexeme.key] = len(self.lexemes)
            self.lexemes.append(self.regular(lexeme.regular))
        return found

    def regular(self, root: Regular) -> int:
        for node in postorder(root):
            if node not in self.node_at:
                self.nodes.append(_node(node, self.node_at))
                self.node_at[node] = len(self.nodes) - 1
        return self.node_at[root]


def _node(node: Regular, known: dict[Regular, int]) -> list[Any]:
    if isinstance(node, Chars):
        return ["chars", node.ranges]
    if isinstance(node, Lit):
        return ["text", str(node.text)]
    if isinstance(node, Repeat):
        return ["repeat", known[node.body], node.min, node.max]
    if isinstance(node, Machine):
        moves = [(source, known[label], target) for source, label, target in node.edges]
        return ["machine", node.n_states, node.start, moves, node.accepts, node.length]
    return ["cat" if isinstance(node, Cat) else "alt", *[known[part] for part in node.parts]]


def _nodes(plain: list[list[Any]]) -> list[Regular]:
    nodes: list[Regular] = []
    for kind, *content in plain:
        if kind == "chars":
            nodes.append(Chars(tuple((low, high) for low, high in content[0])))
        elif kind == "text":
            nodes.append(Lit(content[0]))
        elif kind == "repeat":
            nodes.append(Repeat(nodes[content[0]], content[1], content[2]))
        elif kind == "machine":
            states, start, moves, accepts, length = content
            edges = tuple((source, nodes[at], target) for source, at, target in moves)
            bounds = None if length is None else (length[0], length[1])
            nodes.append(Machine(states, start, edges, tuple(accepts), bounds))
        else:
            parts = tuple(nodes[at] for at in content)
            nodes.append(Cat(parts) if kind == "cat" else Alt(parts))
    return nodes


def _expression(plain: list[Any], lexemes: list[Lexeme], count: int) -> Any:
    kind, *content = plain
    if kind == "rule":
        (rule,) = content
        return Ref(_known(rule, count))
    if kind == "repeat":
        first, rest, least, most = content
        if least < 0 or (most is not None and most < least):
            raise ValueError("a number of repetitions is wrong")
        return Repeated(_known(first, count), _known(rest, count), least, most)
    if kind == "import":
        return Import(content[0], Grammar)
    if kind == "tokens":
        return Term(tokens_of(content))
    if kind == "lexeme":
        return Term(lexemes[content[0]])
    items = tuple(_expression(each, lexemes, count) for each in content)
    return Seq(items) if kind == "all" else Choice(items)


def _known(rule: int, count: int) -> int:
    if not 0 <= rule < count:
        raise ValueError("there is no such rule")
    return rule


def plain_tokens(tokens: Tokens) -> list[Any]:
    """Tokens that stand for themselves, by what they were called."""
    return [tokens.names, tokens.ids, tokens.excluded, tokens.place]


def tokens_of(plain: list[Any]) -> Tokens:
    """From ``plain_tokens``."""
    names, ids, excluded, place = plain
    return Tokens(tuple(names), tuple((low, high) for low, high in ids), excluded, place)
