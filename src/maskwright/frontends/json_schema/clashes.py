"""Which constraints of an unsatisfiable schema exclude each other.

A *part* is one keyword of one subschema, or one entry of a keyword that has many (a member of
``properties``, a name in ``required``).  Schemas are taken apart through ``allOf`` and references, and
only where a part's absence never makes a schema stricter.  A smallest set of parts that nothing
satisfies is then found by QuickXplain (Junker, "QUICKXPLAIN: preferred explanations and relaxations
for over-constrained problems", AAAI 2004); the compiler itself decides what nothing satisfies.  Where
one of these parts is a subschema that is empty by itself, the clash is explained inside of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from maskwright.errors import Constraint, UnsatisfiableError
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import CHECKS, held, is_hidden
from maskwright.frontends.json_schema.read.nodes import Node, escape
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.json_schema.surveyor import Surveyor
from maskwright.limits import Limits

_MAX_TRIALS = 3000
"""Reduced schemas that are tried to explain one clash; most need about ten."""
_MAX_SHOWN = 60
_MAX_DEMANDS = 3

_MEMBERS = frozenset(("properties", "patternProperties"))
_DEPENDENT = frozenset(("dependencies", "dependentRequired", "dependentSchemas"))
_SUBSCHEMA = frozenset(
    (
        "additionalItems", "additionalProperties", "items", "propertyNames", "unevaluatedItems",
        "unevaluatedProperties",
    )
)  # fmt: skip
"""Keywords that demand nothing when their value is true."""
_UNEVALUATED = ("unevaluatedItems", "unevaluatedProperties")
_EVALUATING = frozenset(
    (
        "$dynamicRef", "$recursiveRef", "$ref", "allOf", "anyOf", "contains", "dependencies", "dependentSchemas", "else",
        "if", "not", "oneOf", "then",
    )
)  # fmt: skip
"""Without these, ``unevaluated...`` would be about more members and items."""
_LOOKED_INTO = _SUBSCHEMA | _MEMBERS | {"prefixItems", "contains"}


@dataclass(frozen=True, slots=True)
class Clash:
    """``constraints`` exclude each other.  With ``inner``, they demand values of subschemas that nothing
    satisfies, for these reasons; with ``loop``, a value inside of itself, over these places."""

    constraints: tuple[Constraint, ...]
    inner: tuple[Clash, ...] = ()
    loop: frozenset[str] = frozenset()

    @property
    def core(self) -> Clash:
        """The clash at the bottom."""
        return self.inner[0].core if self.inner else self

    @property
    def identity(self) -> object:
        """Equal for clashes that are the same but for the place from which they were come upon."""
        return self.loop or frozenset(self.constraints)

    @property
    def place(self) -> str:
        """The pointer of what is named first."""
        return _shown_first(self.core)[0].pointer

    def __str__(self) -> str:
        return self.text()

    def text(self, place: str | None = None) -> str:
        """One sentence; the place given is taken as read."""
        demands = self._demands()
        what = _sentence(self.core, place)
        if not demands:
            return what
        shown = _listed(demands[:_MAX_DEMANDS], place)
        more = len(demands) - _MAX_DEMANDS
        return f"{what}; demanded by {shown}" + (f", and so on {more} levels up" if more > 0 else "")

    def _demands(self) -> list[Constraint]:
        """What the clash at the bottom cannot be avoided for, from the inside out."""
        if not self.inner:
            return []
        own = [c for c in self.constraints if c.keyword != "type" and c.keyword not in _LOOKED_INTO]
        return self.inner[0]._demands() + own


def _shown_first(clash: Clash) -> list[Constraint]:
    """The constraints, without types where others clash by themselves for values of these types."""
    telling = [c for c in clash.constraints if c.keyword != "type"]
    return telling if len(telling) > 1 else list(clash.constraints)


def _sentence(clash: Clash, place: str | None) -> str:
    telling = _shown_first(clash)
    types = [c for c in clash.constraints if c not in telling]
    what = _listed(telling, place)
    given = f" ({_listed(types, telling[0].pointer)})" if types else ""
    if clash.loop:
        return (
            f"{what} demand{'s' if len(telling) == 1 else ''} a value that contains itself without end{given}"
        )
    if len(telling) == 1:
        return f"{what} allows nothing{given}"
    return f"{what} exclude each other{given}"


def _listed(constraints: list[Constraint], place: str | None) -> str:
    shown = []
    for constraint in constraints:
        shown.append(
            constraint.text if constraint.pointer == place else f"{constraint.pointer}: {constraint.text}"
        )
        place = constraint.pointer
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


@dataclass(frozen=True, slots=True)
class _Part:
    piece: int
    keyword: str | None
    """None: the whole subschema, which is no schema object."""
    key: str | int | None = None


_Subschemas: TypeAlias = list[tuple[Any, Node]]
_Level: TypeAlias = tuple[tuple[Constraint, ...], _Subschemas, list[str]]
"""The constraints that exclude each other, the subschemas among them, and where they are."""


class _TooManyTrials(Exception):
    pass


class Explainer:
    """Explains clashes of one document."""

    def __init__(self, surveyor: Surveyor) -> None:
        self.surveyor = surveyor
        self._trials = 0
        self._known: dict[tuple[Node, ...], _Level | None] = {}

    def explain(self, conjunction: tuple[Node, ...]) -> Clash | None:
        """Why nothing satisfies all of these; None when something does, or too much would have to be tried."""
        self._trials = _MAX_TRIALS
        try:
            return self._explain(conjunction, ())
        except _TooManyTrials:
            return None

    def is_empty(self, conjunction: tuple[Node, ...]) -> bool:
        """Whether nothing satisfies all of these; False where the compiler cannot tell."""
        if self._trials == 0:
            raise _TooManyTrials
        self._trials -= 1
        return self.surveyor.is_empty(conjunction)

    def _explain(self, conjunction: tuple[Node, ...], around: tuple[str, ...]) -> Clash | None:
        """``around``: the places from which this was come upon, with the outermost first."""
        if conjunction not in self._known:
            self._known[conjunction] = self._one_level(conjunction)
        known = self._known[conjunction]
        if known is None:
            return None
        constraints, subschemas, pointers = known
        return Clash(constraints, *self._inside(subschemas, (*around, *pointers)))

    def _one_level(self, conjunction: tuple[Node, ...]) -> _Level | None:
        for opaque in (False, True):
            pieces = _Pieces(self.surveyor.document, conjunction, opaque)
            if self.is_empty(pieces.reduced(pieces.parts)):
                kept = self._smallest(pieces) or pieces.parts
                return tuple(pieces.constraints(kept)), pieces.subschemas(kept), pieces.pointers(kept)
        return None

    def _inside(
        self, subschemas: _Subschemas, around: tuple[str, ...]
    ) -> tuple[tuple[Clash, ...], frozenset[str]]:
        """Why the subschemas among the constraints are empty, if they are; or over which places they
        lead back to where they are."""
        candidates: list[tuple[Node, ...]] = [(node,) for _, node in subschemas]
        if len(candidates) > 1 and len({about for about, _ in subschemas if about is not None}) < 2:
            candidates.append(tuple(node for _, node in subschemas))
        found: list[Clash] = []
        for conjunction in candidates:
            if (found and len(conjunction) > 1) or not self.is_empty(conjunction):
                continue
            for node in _Pieces(self.surveyor.document, conjunction, True).nodes:
                if node.pointer in around:
                    return (), frozenset(p or "#" for p in around[around.index(node.pointer) :])
            clash = self._explain(conjunction, around)
            if clash is not None:
                found.append(clash)
        return tuple(found), frozenset()

    def _smallest(self, pieces: _Pieces) -> list[_Part]:
        def empty(parts: list[_Part]) -> bool:
            return self.is_empty(pieces.reduced(parts))

        def search(background: list[_Part], grown: bool, parts: list[_Part]) -> list[_Part]:
            if grown and empty(background):
                return []
            if len(parts) == 1:
                return parts
            half = len(parts) // 2
            first, second = parts[:half], parts[half:]
            of_second = search(background + first, True, second)
            of_first = search(background + of_second, bool(of_second), first)
            return of_first + of_second

        return [] if not pieces.parts or empty([]) else search([], False, pieces.parts)


class _Pieces:
    """Subschemas that must all hold, taken apart.

    With ``opaque``, a schema object with ``unevaluated...`` is kept whole where its keywords say what
    is evaluated; without, these keywords are left out.
    """

    def __init__(self, document: Document, conjunction: tuple[Node, ...], opaque: bool) -> None:
        self.document = document
        self.opaque = opaque
        self.nodes: list[Node] = []
        self.parts: list[_Part] = []
        seen: set[Node] = set()
        work = list(reversed(conjunction))
        while work:
            node = work.pop()
            if node in seen:
                continue
            seen.add(node)
            below = self._take(node)
            below.reverse()
            work += below

    def _take(self, node: Node) -> list[Node]:
        """Adds a subschema; returns those which it applies in place."""
        index = len(self.nodes)
        if node.is_value or node.negated or not isinstance(node.value, dict):
            self.nodes.append(node)
            if node.value is not True or node.negated or node.is_value:
                self.parts.append(_Part(index, None))
            return []
        schema = node.value
        if is_hidden(node):
            schema = {"$ref": schema["$ref"]}
        whole = self.opaque and any(schema.get(k, True) is not True for k in _UNEVALUATED)
        below: list[Node] = []
        if not whole:
            schema = {k: v for k, v in schema.items() if self.opaque or k not in _UNEVALUATED}
            for keyword in node.base.dialect.references:
                if schema.pop(keyword, None) is not None:
                    below.append(self.document.resolve(node, keyword))
            for keyword in ("allOf", "anyOf", "oneOf"):
                if keyword in schema and (keyword == "allOf" or len(schema[keyword]) == 1):
                    below += held(node, keyword)
                    del schema[keyword]
        self.nodes.append(node if schema == node.value else _Reduced(node, schema))
        for keyword, key in _taken_apart(schema):
            if not (whole and keyword in _EVALUATING):
                self.parts.append(_Part(index, keyword, key))
        return below

    def pointers(self, parts: list[_Part]) -> list[str]:
        return list(dict.fromkeys(self.nodes[part.piece].pointer for part in parts))

    def reduced(self, parts: list[_Part]) -> tuple[Node, ...]:
        """The conjunction of these parts, and of what is never taken away."""
        kept: dict[int, set[tuple[str | None, str | int | None]]] = {}
        for part in parts:
            kept.setdefault(part.piece, set()).add((part.keyword, part.key))
        own: dict[int, list[_Part]] = {}
        for part in self.parts:
            own.setdefault(part.piece, []).append(part)
        found = []
        for index, node in enumerate(self.nodes):
            some = kept.get(index, set())
            lost = [(p.keyword, p.key) for p in own.get(index, ()) if (p.keyword, p.key) not in some]
            if (None, None) in lost:
                continue
            found.append(_Reduced(node, _without(node.value, lost)) if lost else node)
        return tuple(found)

    def constraints(self, parts: list[_Part]) -> Iterator[Constraint]:
        names: dict[int, list[str]] = {}
        for part in parts:
            if part.keyword == "required":
                names.setdefault(part.piece, []).append(str(part.key))
        for part in parts:
            node = self.nodes[part.piece]
            pointer = node.pointer or "#"
            if part.keyword is None:
                yield _whole(node)
            elif part.keyword == "required":
                shown = names.pop(part.piece, None)
                if shown:
                    yield Constraint(pointer, "required", f"required {_shown(shown)}")
            else:
                yield Constraint(pointer, part.keyword, _text(part, node.value[part.keyword]))

    def subschemas(self, parts: list[_Part]) -> _Subschemas:
        """The subschemas of members and items among some parts, with what they are about: None for
        whatever others are about."""
        found: list[tuple[Any, Node]] = []
        for part in parts:
            node = self.nodes[part.piece]
            if part.keyword not in _LOOKED_INTO:
                continue
            path = (part.keyword,) if part.key is None else (part.keyword, part.key)
            child = node.at(*path)
            if isinstance(child.value, dict):
                about = part.key if part.keyword in ("properties", "prefixItems", "items") else None
                found.append((about, child))
        return found


class _Reduced(Node):
    """A subschema without some of its parts: equal to no other, though at the same place."""

    __slots__ = ()

    def __init__(self, node: Node, value: dict[str, Any]) -> None:
        super().__init__(node.pointer, value, node.base, False, False, node.scope)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def subschema(self, pointer: str, value: Any) -> Node:
        found = super().subschema(pointer, value)
        # True may stand for a subschema that was taken away.
        return Node(found.pointer + " (anything)", True) if found.value is True else found


def _taken_apart(schema: dict[str, Any]) -> Iterator[tuple[str, str | int | None]]:
    """The parts of a schema object, as keywords with keys."""
    for keyword, value in schema.items():
        if keyword not in CHECKS and keyword != "const":
            continue
        if keyword in _MEMBERS:
            yield from ((keyword, name) for name, member in value.items() if member is not True)
        elif keyword in _DEPENDENT:
            yield from ((keyword, name) for name in value)
        elif keyword == "prefixItems" or (keyword == "items" and isinstance(value, list)):
            yield from ((keyword, i) for i, item in enumerate(value) if item is not True)
        elif keyword == "required":
            yield from ((keyword, name) for name in value) if isinstance(value, list) else ()
        elif keyword == "minContains":
            # One is what is demanded without it.
            if value > 1:
                yield keyword, None
        elif keyword != "if":
            yield keyword, None


def _without(schema: Any, lost: list[tuple[str | None, str | int | None]]) -> Any:
    found = dict(schema)
    for keyword in {keyword for keyword, _ in lost if keyword is not None}:
        keys = {key for lost_keyword, key in lost if lost_keyword == keyword}
        value = found[keyword]
        if keyword in _MEMBERS:
            found[keyword] = {name: True if name in keys else member for name, member in value.items()}
        elif keyword in _DEPENDENT:
            found[keyword] = {name: demand for name, demand in value.items() if name not in keys}
        elif keyword == "required":
            found[keyword] = [name for name in value if name not in keys]
        elif None not in keys:
            found[keyword] = [True if i in keys else item for i, item in enumerate(value)]
        elif keyword in _SUBSCHEMA:
            found[keyword] = True
        else:
            del found[keyword]
    return found


def _whole(node: Node) -> Constraint:
    """A subschema that is no schema object: a value, or false, or what the front-end put in its place."""
    pointer, _, made = node.pointer.partition(" (")
    parent, _, last = pointer.rpartition("/")
    if node.is_value:
        if last.isdecimal():
            parent, _, last = parent.rpartition("/")
        return Constraint(parent or "#", last, f"value {_shown(node.value)}")
    if made:
        return Constraint(parent or "#", last, last)
    if last in _SUBSCHEMA:
        return Constraint(parent or "#", last, f"{last} false")
    return Constraint(pointer or "#", "false", "false")


def _text(part: _Part, value: Any) -> str:
    keyword = str(part.keyword)
    if part.key is not None:
        entry = value[part.key]
        shown = f"{keyword}/{escape(str(part.key))}"
        return f"{shown} false" if entry is False else shown
    if isinstance(value, dict) and keyword != "const":
        return keyword
    if isinstance(value, list) and keyword in ("anyOf", "oneOf"):
        return keyword
    return f"{keyword} {_shown(value)}"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=_plain)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "..."


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() and abs(value) < 10**15 else float(value)
    return str(value)


def explained(
    error: UnsatisfiableError, schema: Any, options: SchemaOptions, limits: Limits
) -> UnsatisfiableError:
    """The error of a schema that nothing satisfies, with the constraints that exclude each other."""
    document = Document(schema, limits, options.dialect, options.registry)
    surveyor = Surveyor(document, options, limits)
    try:
        clash = Explainer(surveyor).explain((document.root,))
    finally:
        surveyor.release()
        document.release()
    if clash is None:
        return error
    message = f"nothing satisfies this schema: {clash.text(clash.place)}"
    return UnsatisfiableError(message, place=clash.place, constraints=clash.core.constraints)
