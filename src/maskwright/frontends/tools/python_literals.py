"""Values as literals of Python: ``{"a": [1, True, None], "b": 'x'}``."""

from __future__ import annotations

from maskwright.errors import Refusal
from maskwright.frontends.json_schema.algebra.groups import (
    ArrayGroup,
    BooleanGroup,
    Group,
    NullGroup,
    StringGroup,
)
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.algebra.strings import string_allows, written_language
from maskwright.frontends.json_schema.emit.emitter import Emitter
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.ir.grammar import FAIL, Expr, Lexeme, Term
from maskwright.limits import Limits
from maskwright.regular.expressions import (
    Alt,
    Cat,
    Chars,
    Lit,
    Machine,
    Regular,
    Repeat,
    alt,
    cat,
    complement_ranges,
    intersect_ranges,
    is_nothing,
    postorder,
    repeat,
)
from maskwright.regular.memo import remembered

_TRUE, _FALSE = Lexeme("True", Lit("True")), Lexeme("False", Lit("False"))
_BOOLEAN = Lexeme("True or False", alt(Lit("True"), Lit("False")))
_NONE = Lexeme("None", Lit("None"))
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_ESCAPED = {**{chr(c): f"\\x{c:02x}" for c in (*range(32), 127)}, **_SHORT}


class PythonEmitter(Emitter):
    """The values of a schema as Python writes them.  Keys of dictionaries are written as in JSON."""

    def __init__(self, normalizer: Normalizer, options: SchemaOptions, limits: Limits) -> None:
        super().__init__(normalizer, options, limits)
        self.imports_any = False

    def group(self, group: Group) -> Expr:
        if isinstance(group, StringGroup):
            language = _string(group, self.limits)
            return FAIL if is_nothing(language) else Term(Lexeme(("Python string", group), language))
        if isinstance(group, BooleanGroup):
            return Term(_BOOLEAN if len(group.values) == 2 else _TRUE if group.values[0] else _FALSE)
        if isinstance(group, NullGroup):
            return Term(_NONE)
        if isinstance(group, ArrayGroup) and (group.unique is not None or group.repeated is not None):
            place = group.unique if group.unique is not None else group.repeated
            return self.refuse(
                Refusal(place or "", "uniqueItems", "items are not compared in Python's literals")
            )
        return super().group(group)


@remembered(512)
def _string(group: StringGroup, limits: Limits) -> Regular:
    """The literals of a group's strings, in either kind of quotes."""
    if group.values is not None:
        language = alt(*(Lit(v) for v in group.values if string_allows(group, v, limits)))
    else:
        language = written_language(group, limits)
    if is_nothing(language):
        return language
    return alt(*(cat(Lit(quote), escaped(language, quote), Lit(quote)) for quote in "\"'"))


def escaped(language: Regular, quote: str) -> Regular:
    """The texts of a language as they stand between quotes: control characters, backslashes and the quote are escaped."""
    special = {**_ESCAPED, quote: f"\\{quote}"}
    ordinary = complement_ranges(tuple(sorted((ord(c), ord(c)) for c in special)))
    made: dict[int, Regular] = {}

    def one(node: Regular) -> Regular:
        if isinstance(node, Lit):
            return Lit("".join(special.get(c, c) for c in node.text))
        if isinstance(node, Chars):
            plain = intersect_ranges(node.ranges, ordinary)
            escapes = [Lit(e) for c, e in special.items() if any(a <= ord(c) <= b for a, b in node.ranges)]
            return alt(*([Chars(plain)] if plain else []), *escapes)
        if isinstance(node, Cat):
            return cat(*(made[id(part)] for part in node.parts))
        if isinstance(node, Alt):
            return alt(*(made[id(part)] for part in node.parts))
        if isinstance(node, Repeat):
            return repeat(made[id(node.body)], node.min, node.max)
        assert isinstance(node, Machine)
        edges = node.edges
        labels = {
            id(label): one(label) if id(label) not in made else made[id(label)] for _, label, _ in edges
        }
        moves = tuple((a, labels[id(label)], b) for a, label, b in edges)
        return Machine(node.n_states, node.start, moves, node.accepts, node.length)

    order = postorder(language)
    for node in order:
        made[id(node)] = one(node)
    return made[id(language)]
