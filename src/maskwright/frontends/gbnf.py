"""GBNF, the grammars of llama.cpp, and the EBNF of XGrammar, which is nearly the same.

    rule ::= "text" | [a-z] [^"\\] . | other-rule ("a" | "b")* {2,3}   # a comment

A rule ends where the next one begins (``name ::=``), so alternatives may go on over lines.  Escapes
stand for code points: ``\\n \\t \\r \\a \\b \\e \\f \\v \\0``, ``\\xHH``, ``\\uHHHH``, ``\\UHHHHHHHH``, and
punctuation for itself.  ``.`` and ``[^]`` are any character, line feeds included.

Refused by name: tokens (``<name>``, ``<[id]>``, ``!<...>``), look-ahead ``(= ...)``, rule attributes and the macros
of XGrammar.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError, line_column
from maskwright.frontends.characters import Node, items, loop, to_lexemes, ways
from maskwright.frontends.size import check_length
from maskwright.ir.grammar import FAIL, Grammar, Ref
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.regular.expressions import (
    ANY_CHAR,
    EPSILON,
    ROOM,
    Chars,
    Lit,
    Regular,
    complement_ranges,
    normalize_ranges,
    put_in_order,
)

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_DOTTED_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_DEFINITION = re.compile(r"[ \t]*(?:\[[^\]\n]*\][ \t]*)?::=")
_DEFINED = re.compile(r"[ \t]*([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*::=")
_BLANK = re.compile(r"[ \t\r\n]*(?:#[^\n]*)?")
_PLAIN = re.compile(r'[^"\\\ud800-\udfff]{1,4096}')
_BOUNDS = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_ESCAPES = {"n": 10, "t": 9, "r": 13, "a": 7, "b": 8, "e": 27, "f": 12, "v": 11, "0": 0}
_HEX = {"x": 2, "u": 4, "U": 8}
_MACROS = {
    "Regex",
    "Substring",
    "TagDispatch",
    "Token",
    "ExcludeToken",
    "TokenTagDispatch",
}
_MAX_BOUND_DIGITS = 9
# Groups nested deeper than this become rules, so that nothing recurses far.
_INLINE_DEPTH = 16


def to_grammar(
    text: str, root: str = "root", limits: Limits = DEFAULT_LIMITS, symbols: Iterable[str] = ()
) -> Grammar:
    """The grammar of the texts that ``root`` derives; see ``maskwright.compile_gbnf``."""
    source = read(text, limits)
    for message, at in source.undefined():
        raise GrammarError(message, place=line_column(text, at), source=text)
    kept = frozenset(source.start(name) for name in symbols)
    grammar = to_lexemes(source.rules, source.names, source.start(root), limits, kept)
    if grammar.rules[grammar.start] == FAIL:
        place = line_column(text, source.defined_at[root])
        raise UnsatisfiableError(f"no text can be derived from the rule {root!r}", place=place)
    return grammar


@dataclass(frozen=True, slots=True)
class GbnfText:
    """What a grammar text says: the bodies of its rules by number, and where names are defined and first used.

    Groups nested deeply are rules as well, under the name ``NAME (group)``.
    """

    text: str
    rules: list[Node]
    names: list[str]
    defined_at: dict[str, int]
    used_at: dict[str, int]

    def undefined(self) -> list[tuple[str, int]]:
        """A message for each name without a rule, and where it is used."""
        return [
            (f"there is no rule {name!r}{self.suggestion(name)}", at)
            for name, at in self.used_at.items()
            if name not in self.defined_at
        ]

    def suggestion(self, name: str) -> str:
        close = get_close_matches(name, self.defined_at, 1)
        return f": did you mean {close[0]!r}?" if close else f": add {name} ::= ..."

    def start(self, root: str) -> int:
        """The number of a rule by its name.  Raises ``GrammarError``."""
        if root not in self.defined_at:
            message = f"there is no rule {root!r}{self.suggestion(root)}"
            raise GrammarError(message, place="1:1", source=self.text)
        return self.names.index(root)


def read(text: str, limits: Limits = DEFAULT_LIMITS) -> GbnfText:
    """Read a grammar text; names may be undefined.  Raises ``GrammarError`` or ``LimitError``."""
    if not isinstance(text, str):
        raise GrammarError(f"a grammar is a str, not {type(text).__name__}")
    check_length(text, limits)
    return _Parser(text, limits).parse()


def _defined(text: str) -> Iterator[str]:
    """The names that lines begin with, as those of rules."""
    at = 0
    while (found := text.find("::=", at)) >= 0:
        check_time()
        name = _DEFINED.match(text, text.rfind("\n", at, found) + 1 or at)
        if name is not None:
            yield name[1]
        if (at := text.find("\n", found)) < 0:
            return


class _Group:
    """An open group, or the body of a rule: what is read so far of it."""

    def __init__(self, opened_at: int) -> None:
        self.opened_at = opened_at
        self.alternatives: list[Node] = []
        self.items: list[Node] = []

    def node(self) -> Node:
        return ways([*self.alternatives, items(self.items)])


class _Parser:
    """One grammar text; ``parse`` may be called once."""

    def __init__(self, text: str, limits: Limits) -> None:
        self.text = text
        self.limits = limits
        self.at = 0
        self.names: list[str] = []
        self.bodies: list[Node | None] = []
        self.index: dict[str, int] = {}
        self.defined_at: dict[str, int] = {}
        self.used_at: dict[str, int] = {}
        # A dot is part of a name only where a rule is defined under it; else it is any character.
        self.dotted = {name for name in _defined(text) if "." in name} if "." in text else set()

    def error(self, message: str, at: int | None = None) -> GrammarError:
        place = line_column(self.text, self.at if at is None else at)
        return GrammarError(message, place=place, source=self.text)

    def parse(self) -> GbnfText:
        self.blank()
        if self.at == len(self.text):
            raise self.error("the grammar has no rules: write root ::= ...")
        while self.at < len(self.text):
            self.rule()
        rules = [EPSILON if body is None else body for body in self.bodies]
        return GbnfText(self.text, rules, self.names, self.defined_at, self.used_at)

    def blank(self) -> None:
        end = -1
        while end != self.at:
            check_time()
            end = self.at
            self.at += len(_BLANK.match(self.text, end)[0])  # type: ignore[index]

    def name(self) -> str:
        """The rule name here, or the empty text."""
        dotted = _DOTTED_NAME.match(self.text, self.at) if self.dotted else None
        if dotted is not None and dotted[0] in self.dotted:
            return dotted[0]
        found = _NAME.match(self.text, self.at)
        return found[0] if found is not None else ""

    def number(self, name: str) -> int:
        if name not in self.index:
            self.index[name] = len(self.names)
            self.names.append(name)
            self.bodies.append(None)
        return self.index[name]

    def rule(self) -> None:
        check_time()
        start = self.at
        name = self.name()
        if not name:
            raise self.error("a rule must begin with its name, as in root ::= ...")
        self.at += len(name)
        found = _DEFINITION.match(self.text, self.at)
        if found is None:
            raise self.error(f"the name {name!r} must be followed by ::=")
        if "[" in found[0]:
            raise self.error("rule attributes [...] are not supported: remove them")
        if name in self.defined_at:
            first = line_column(self.text, self.defined_at[name])
            raise self.error(
                f"the rule {name!r} is defined twice (first at {first}): join the bodies with |", start
            )
        self.defined_at[name] = start
        self.at = found.end()
        index = self.number(name)
        self.bodies[index] = self.body(name)

    def body(self, rule: str) -> Node:
        """Alternatives up to the next rule."""
        groups = [_Group(self.at)]
        while True:
            self.blank()
            group = groups[-1]
            c = self.text[self.at : self.at + 1]
            name = self.name()
            if not c or (name and _DEFINITION.match(self.text, self.at + len(name))):
                break
            if name:
                group.items.append(self.reference(name))
            elif c == "|":
                self.at += 1
                group.alternatives.append(items(group.items))
                group.items = []
            elif c == "(":
                if self.text.startswith("(=", self.at):
                    raise self.error(
                        "look-ahead (= ...) is not supported: remove it, the engine needs no hint"
                    )
                if len(groups) > self.limits.max_depth:
                    place = line_column(self.text, self.at)
                    raise LimitError("max_depth", len(groups), self.limits.max_depth, place=place)
                groups.append(_Group(self.at))
                self.at += 1
            elif c == ")":
                if len(groups) == 1:
                    raise self.error("this ')' closes no group: remove it")
                self.at += 1
                groups.pop()
                groups[-1].items.append(self.closed(group.node(), rule, len(groups)))
            elif c in "*+?{":
                self.quantifier(group)
            else:
                group.items.append(self.terminal(c))
        if len(groups) > 1:
            raise self.error("this group is not closed: add ')'", groups[-1].opened_at)
        return groups[0].node()

    def closed(self, node: Node, rule: str, depth: int) -> Node:
        if depth <= _INLINE_DEPTH or isinstance(node, Ref):
            return node
        self.names.append(f"{rule} (group)")
        self.bodies.append(node)
        return Ref(len(self.names) - 1)

    def reference(self, name: str) -> Ref:
        if name in _MACROS and self.text.startswith("(", self.at + len(name)):
            raise self.error(f"the macro {name}(...) is not supported: write the language as rules")
        self.used_at.setdefault(name, self.at)
        self.at += len(name)
        return Ref(self.number(name))

    def quantifier(self, group: _Group) -> None:
        c = self.text[self.at]
        if not group.items:
            raise self.error(f"{c!r} repeats nothing: put it behind a text, a class, a name or a group")
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(c) or self.bounds()
        if c != "{":
            self.at += 1
        group.items[-1] = loop(group.items[-1], low, high)

    def bounds(self) -> tuple[int, int | None]:
        found = _BOUNDS.match(self.text, self.at)
        if found is None or not (found[1] or found[3]) or (found[3] and not found[2]):
            raise self.error("a repetition is {n}, {n,} or {n,m}")
        if max(len(found[1]), len(found[3])) > _MAX_BOUND_DIGITS:
            raise self.error(f"a bound has more than {_MAX_BOUND_DIGITS} digits: lower it")
        low = int(found[1] or 0)
        high = (int(found[3]) if found[3] else None) if found[2] else low
        if high is not None and low > high:
            raise self.error("the bounds are reversed: write the lower one first")
        self.at = found.end()
        return low, high

    # --- characters

    def terminal(self, c: str) -> Regular:
        check_time()
        if c == '"':
            return self.literal()
        if c == "[":
            return self.character_class()
        if c == ".":
            self.at += 1
            return ANY_CHAR
        if c in "<!":
            raise self.error("tokens such as <name>, <[id]> and !<...> are not supported: write their text")
        if c == "'":
            raise self.error("texts stand in double quotes")
        raise self.error(f"{c!r} means nothing here: write texts in double quotes")

    def literal(self) -> Regular:
        start = self.at
        self.at += 1
        out: list[str] = []
        while True:
            check_time()
            plain = _PLAIN.match(self.text, self.at)
            if plain:
                out.append(plain[0])
                self.at = plain.end()
            c = self.text[self.at : self.at + 1]
            if not c:
                raise self.error("this text is not closed: add '\"'", start)
            if c == '"':
                self.at += 1
                return Lit("".join(out))
            place = self.at
            code = self.character()
            if 0xD800 <= code <= 0xDFFF:
                raise self.error("a surrogate is no character: write \\U0001F600 and the like", place)
            out.append(chr(code))

    def character_class(self) -> Regular:
        start = self.at
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        ranges: list[tuple[int, int]] = []
        room = ROOM
        while not self.text.startswith("]", self.at):
            check_time()
            place = self.at
            low = high = self.class_character(start)
            if self.text.startswith("-", self.at) and not self.text.startswith("-]", self.at):
                self.at += 1
                if self.text[self.at : self.at + 1] in ("\n", "\r") and low > ord("\r"):
                    raise self.not_closed(start)
                high = self.class_character(start)
                if low > high:
                    raise self.error("this range is reversed: write the lower character first", place)
            ranges.append((low, high))
            if len(ranges) > room:
                room = put_in_order(ranges)
        self.at += 1
        if not ranges and not negated:
            raise self.error("a class needs characters: [a-z], or [^] for any", start)
        merged = normalize_ranges(ranges)
        return Chars(complement_ranges(merged) if negated else merged)

    def class_character(self, start: int) -> int:
        if self.at >= len(self.text):
            raise self.not_closed(start)
        return self.character()

    def not_closed(self, start: int) -> GrammarError:
        return self.error("this character class is not closed: add ']'", start)

    def character(self) -> int:
        """The code point here, which may be escaped."""
        start = self.at
        c = self.text[start]
        self.at += 1
        if c != "\\":
            return ord(c)
        letter = self.text[self.at : self.at + 1]
        self.at += 1
        if letter in _HEX:
            digits = self.text[self.at : self.at + _HEX[letter]]
            self.at += len(digits)
            if len(digits) < _HEX[letter] or not all(d in "0123456789abcdefABCDEF" for d in digits):
                raise self.error(f"\\{letter} must be followed by {_HEX[letter]} hexadecimal digits", start)
            if int(digits, 16) > 0x10FFFF:
                raise self.error("there is no such code point: the last one is 10FFFF", start)
            return int(digits, 16)
        if letter in _ESCAPES:
            return _ESCAPES[letter]
        if not letter or letter.isalnum() or not letter.isascii() or letter.isspace():
            raise self.error(f"unknown escape \\{letter}: write '\\\\' for a backslash", start)
        return ord(letter)
