"""Rules whose groups multiply, split into rules that do not.

The package writes ``(a | b) (c | d)`` as four expansions, and forty optional parts as 2**40.  Where a body would
become large, its groups become rules of their own before the package sees it; the language is the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from lark.grammar import NonTerminal
from lark.load_grammar import REPEAT_BREAK_THRESHOLD
from lark.tree import SlottedTree, Tree

from maskwright.errors import LimitError
from maskwright.frontends.lark.places import Places
from maskwright.frontends.lark.templates import Rule
from maskwright.limits import Limits

_MOST_SYMBOLS = 2048
"""Symbols in all expansions of one group, beyond which its parts become rules (unless the text has that many)."""
_MOST_DIGITS = 1_000
"""Of a number of repetitions, which is above any limit then."""


class _Part(NamedTuple):
    """Part of a body, and what the package would write for it."""

    tree: Any
    expansions: int
    symbols: int
    """In all expansions, an empty one counted as one."""
    leaves: int
    """Symbols as they stand in the text."""


def split_rules(rules: list[Rule], places: Places, limits: Limits) -> list[Rule]:
    """The rules, and those that their groups became.

    Raises ``GrammarError`` for ranges of repetitions that are none, and ``LimitError`` for too many repetitions.
    """
    out: list[Rule] = []
    for name, parameters, body, options in rules:
        splitter = _Splitter(str(name), places, limits)
        out.append((name, parameters, splitter.body(body), options))
        out += [(made, [], group, None) for group, made in splitter.names.items()]
    return out


class _Splitter:
    """Of one rule."""

    def __init__(self, rule: str, places: Places, limits: Limits) -> None:
        self.rule = rule
        self.places = places
        self.limits = limits
        self.names: dict[Any, str] = {}
        """Of the rules made, by their bodies."""

    def body(self, tree: Any) -> Any:
        parts: dict[int, _Part] = {}
        for node in tree.iter_subtrees():
            below = [parts[id(child)] for child in node.children if isinstance(child, Tree)]
            parts[id(node)] = self.part(node, below)
        return parts[id(tree)].tree

    def part(self, node: Any, parts: list[_Part]) -> _Part:
        match node.data:
            case "expansions":
                return _part(node, parts, sum(p.expansions for p in parts), sum(p.symbols for p in parts))
            case "expansion":
                return self.sequence(node, parts)
            case "alias":
                return _part(node, parts, parts[0].expansions, parts[0].symbols)
            case "maybe":
                return _part(node, parts, parts[0].expansions + 1, parts[0].symbols + 1)
            case "expr":
                return self.repeated(node, parts[0])
            case _:
                return _Part(node, 1, 1, 1)

    def sequence(self, node: Any, parts: list[_Part]) -> _Part:
        expansions, symbols = 1, 0
        for part in parts:
            symbols = symbols * part.expansions + part.symbols * expansions
            expansions *= part.expansions
        if symbols > max(_MOST_SYMBOLS, 2 * sum(part.leaves for part in parts)):
            split = [self.rule_of(part) if part.expansions > 1 else part for part in parts]
            expansions, symbols, parts = 1, sum(part.symbols for part in split), split
        return _part(node, parts, expansions, max(symbols, 1))

    def repeated(self, node: Any, part: _Part) -> _Part:
        match str(node.children[1]):
            case "?":
                return _part(node, [part], part.expansions + 1, part.symbols + 1)
            case "+":  # The package makes a rule of it.
                return _part(node, [part], 1, 1)
            case "*":
                return _part(node, [part], 2, 2)
        low, high = self.bounds(node)
        if high >= REPEAT_BREAK_THRESHOLD:
            # The package makes rules of a few repetitions each; below that, it writes them one by one.
            if part.expansions > 1 or part.symbols > REPEAT_BREAK_THRESHOLD:
                part = self.rule_of(part)
            return _part(node, [part], 1, 2)
        counts = [n for n in range(low, high + 1) if n > 0]
        expansions = sum(part.expansions**n for n in counts) + (low <= 0)
        symbols = sum(n * part.symbols * part.expansions ** (n - 1) for n in counts) + (low <= 0)
        if symbols > _MOST_SYMBOLS and part.symbols > 1:
            return self.repeated(node, self.rule_of(part))
        return _part(node, [part], expansions, symbols)

    def bounds(self, node: Any) -> tuple[int, int]:
        """The least and greatest number of repetitions."""
        low, *rest = (int(str(number)[:_MOST_DIGITS]) for number in node.children[2:])
        high = rest[0] if rest else low
        place = self.places.of_tokens(node.children[1:], self.rule)
        if high > self.limits.max_count:
            raise LimitError("max_count", high, self.limits.max_count, place=place)
        if rest and not 0 <= low <= high:
            raise self.places.error(f"~{low}..{high} repeats nothing: the least number comes first", place)
        return low, high

    def rule_of(self, part: _Part) -> _Part:
        """A rule in place of a part."""
        body = part.tree
        if body.data != "expansions":
            body = SlottedTree("expansions", [SlottedTree("expansion", [body])])
        name = self.names.setdefault(body, f"__{self.rule}_group_{len(self.names)}")
        return _Part(SlottedTree("value", [NonTerminal(name)]), 1, 1, 1)


def _part(node: Any, parts: list[_Part], expansions: int, symbols: int) -> _Part:
    """The node with what its parts have become."""
    trees = iter(part.tree for part in parts)
    children = [next(trees) if isinstance(child, Tree) else child for child in node.children]
    return _Part(SlottedTree(node.data, children), expansions, symbols, sum(part.leaves for part in parts))
