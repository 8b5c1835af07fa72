"""What each keyword is: enforced, an annotation, or refused by name; and what its value may be.

``survey`` walks every subschema that the output can depend on, before anything is compiled:
it reports malformed keyword values at once and gathers all refusals.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import cython

from maskwright.base.deadline import check_time, in_time
from maskwright.errors import GrammarError, LimitError, Refusal
from maskwright.frontends.json_schema.numbers.bounds import written_digits
from maskwright.frontends.json_schema.read.dialects import HOLDERS, MAPS
from maskwright.frontends.json_schema.read.document import Document, json_type, shown
from maskwright.frontends.json_schema.read.nodes import Node, escape
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.limits import Limits

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

REFUSED: dict[str, str] = dict.fromkeys(
    ("extends", "disallow", "divisibleBy"), "it is draft 3, and this version does not enforce it"
)
"""Assertions of some draft that are not enforced.  Anything in no table is an annotation."""

_HARMLESS: dict[str, Callable[[Any], bool]] = {"disallow": lambda value: value == []}
"""Values with which a refused keyword demands nothing."""


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and (
        (isinstance(value, int) and value >= 0)
        or (isinstance(value, float) and value >= 0 and value.is_integer())
        or (isinstance(value, Decimal) and value >= 0 and value == value.to_integral_value())
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(v, str) and v in (*TYPES, "any") for v in value)
    return isinstance(value, str) and value in (*TYPES, "any")


def _schema_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_schema(v) for v in value)


def _is_string(value: Any) -> bool:
    return isinstance(value, str)


def _is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def _is_positive(value: Any) -> bool:
    return _is_number(value) and value > 0


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _is_dependency(value: Any) -> bool:
    # draft 3 allows a single name
    return _is_schema(value) or _strings(value) or isinstance(value, str)


def _members(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(map(check, value.values()))


def _are_schemas(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    members: dict[str, Any] = value
    for member in members.values():  # noqa: SIM110
        if not isinstance(member, (dict, bool)):
            return False
    return True


_SCHEMA = (_is_schema, "a schema")
_SCHEMAS = (_are_schemas, "an object of schemas")
_SCHEMA_LIST = (_schema_list, "a non-empty list of schemas")
_COUNT = (_is_count, "a non-negative integer")
_NUMBER = (_is_number, "a number")
_POSITIVE = (_is_positive, "a number greater than 0")
_STRING = (_is_string, "a string")
_EXCLUSIVE = (lambda v: isinstance(v, bool) or _is_number(v), "a number (or, in draft 4, a boolean)")

# keyword: (check, what its value must be)
CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "$ref": _STRING,
    "$dynamicRef": _STRING,
    "$recursiveRef": _STRING,
    "type": (_is_type, f"one of {', '.join(TYPES)}, or a non-empty list of these"),
    "enum": (lambda v: isinstance(v, list), "a list of values"),
    "allOf": _SCHEMA_LIST,
    "anyOf": _SCHEMA_LIST,
    "oneOf": _SCHEMA_LIST,
    "not": _SCHEMA,
    "if": _SCHEMA,
    "then": _SCHEMA,
    "else": _SCHEMA,
    "properties": _SCHEMAS,
    "patternProperties": _SCHEMAS,
    "additionalProperties": _SCHEMA,
    "unevaluatedProperties": _SCHEMA,
    "propertyNames": _SCHEMA,
    "required": (
        # draft 3 has a boolean here, which speaks of the object around
        lambda v: isinstance(v, bool) or _strings(v),
        "a list of member names",
    ),
    "minProperties": _COUNT,
    "maxProperties": _COUNT,
    "dependencies": (_members(_is_dependency), "an object of schemas or lists of member names"),
    "dependentRequired": (_members(_strings), "an object of lists of member names"),
    "dependentSchemas": _SCHEMAS,
    "items": (lambda v: _is_schema(v) or (isinstance(v, list) and all(map(_is_schema, v))), "a schema"),
    "prefixItems": _SCHEMA_LIST,
    "additionalItems": _SCHEMA,
    "unevaluatedItems": _SCHEMA,
    "contains": _SCHEMA,
    "minContains": _COUNT,
    "maxContains": _COUNT,
    "minItems": _COUNT,
    "maxItems": _COUNT,
    "uniqueItems": (_is_boolean, "true or false"),
    "minLength": _COUNT,
    "maxLength": _COUNT,
    "pattern": _STRING,
    "format": _STRING,
    "minimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMinimum": _EXCLUSIVE,
    "exclusiveMaximum": _EXCLUSIVE,
    "multipleOf": _POSITIVE,
    "divisibleBy": _POSITIVE,
}


def survey(document: Document, options: SchemaOptions) -> list[Refusal]:
    """All refusals among the subschemas reachable from the root.

    Raises ``GrammarError`` for a value that its keyword does not have, or an unresolvable reference.
    """
    refusals: list[Refusal] = []
    seen: set[str] = set()
    for node in _reached(document)[1]:
        # One place may be reached in several dynamic scopes.
        if is_hidden(node) or node.pointer in seen:
            continue
        seen.add(node.pointer)
        for keyword in node.value:
            harmless = _HARMLESS.get(keyword)
            if keyword in REFUSED and (harmless is None or not harmless(node.value[keyword])):
                refusals.append(Refusal(node.pointer, keyword, REFUSED[keyword]))
    return refusals


def is_hidden(node: Node) -> bool:
    """Whether all keywords but ``$ref`` are ignored."""
    return "$ref" in node.value and node.base.dialect.ref_hides_siblings


def reachable(document: Document) -> list[Node]:
    """Every subschema that the root leads to, once, its keyword values checked; errors as ``survey``."""
    return _reached(document)[0]


def _reached(document: Document) -> tuple[list[Node], list[Node]]:
    """All that are reachable, and those that have a keyword which is refused."""
    found: list[Node] = []
    telling: list[Node] = []
    seen: set[object] = set()
    limits = document.limits
    work: list[Node] = [document.root]
    while work:
        if len(found) & 15 == 0:
            check_time()
        node: Node = work.pop()
        place: object = (node.pointer, node.scope) if node.scope else node.pointer
        if place in seen:
            continue
        seen.add(place)
        found.append(node)
        if isinstance(node.value, bool):
            continue
        if not isinstance(node.value, dict):
            raise GrammarError(
                f"a schema is an object or a boolean, not {json_type(node.value)}", place=node.pointer or "#"
            )
        schema: dict[str, Any] = node.value
        if "$ref" in schema and is_hidden(node):
            schema = {"$ref": schema["$ref"]}
        below: list[Node] = []
        tells = False
        for keyword, value in schema.items():
            kind = _KINDS.get(keyword)
            if kind is None:
                continue
            what = kind
            if what & _TYPE and type(value) is str and value in _TYPE_NAMES:
                continue
            if what & _TELLING:
                tells = True
            if what & _NUMBERS:
                _check_digits(node, keyword, value, limits)
            if what & _CHECKED:
                if not CHECKS[keyword][0](value) or (what & _TYPE and _is_of_draft_3(node)):
                    raise _malformed(node, keyword)
            if what & _DEMANDED and value > limits.max_count:
                raise LimitError("max_count", value, limits.max_count, place=f"{node.pointer}/{keyword}")
            if what & _HOLDER:
                below += held(node, keyword)
            elif what & _REFERENCE and keyword in node.base.dialect.references:
                below.append(document.resolve(node, keyword))
        if tells:
            telling.append(node)
        if below:
            below.reverse()
            work += below
    return found, telling


def _is_of_draft_3(node: Node) -> bool:
    """Whether a type is "any", in a later dialect: there it is a misspelling like any other."""
    given = node.value["type"]
    return (given == "any" or (type(given) is list and "any" in given)) and node.base.dialect.name != "draft3"


@cython.cfunc
def _check_digits(node: Node, keyword: str, given: object, limits: Limits) -> None:
    """Raises ``LimitError`` for numbers of very many digits: what is exact takes its time with these."""
    work: list[Any] = [given]
    while work:
        check_time()
        value = work.pop()
        if type(value) is str:
            continue
        if isinstance(value, list):
            work += value
        elif isinstance(value, dict):
            work += value.values()
        elif isinstance(value, (int, float, Decimal)):
            digits = written_digits(value)
            if digits > limits.max_constant_digits:
                most = limits.max_constant_digits
                raise LimitError("max_constant_digits", digits, most, place=f"{node.pointer}/{keyword}")


def _malformed(node: Node, keyword: str) -> GrammarError:
    message = f"{keyword} must be {CHECKS[keyword][1]}, not {shown(node.value[keyword])}"
    return GrammarError(message, place=f"{node.pointer}/{keyword}")


SUBSCHEMAS = HOLDERS - {"$defs", "definitions", "contentSchema", "disallow", "extends"}
"""Keywords whose subschemas have a say in what is valid."""

_TYPE, _NUMBERS, _CHECKED, _DEMANDED, _HOLDER, _REFERENCE, _TELLING = 1, 2, 4, 8, 16, 32, 64
_TYPE_NAMES = frozenset(TYPES)


def _kind(keyword: str) -> int:
    kind = _TYPE if keyword == "type" else 0
    if keyword in CHECKS:
        kind |= _CHECKED
    if keyword in REFUSED:
        kind |= _TELLING
    numbers = (_COUNT, _NUMBER, _POSITIVE, _EXCLUSIVE)
    if keyword in ("enum", "const") or CHECKS.get(keyword) in numbers:
        kind |= _NUMBERS
    # Counts that must be reached, or are counted up to; greater ones in other keywords are never reached.
    if keyword in ("minLength", "minItems", "minProperties", "minContains", "maxContains"):
        kind |= _DEMANDED
    if keyword in SUBSCHEMAS:
        kind |= _HOLDER
    if keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
        kind |= _REFERENCE
    return kind


_KINDS: dict[str, int] = {keyword: _kind(keyword) for keyword in (*CHECKS, *REFUSED, "const")}
"""What ``_reached`` has to do with each keyword that is no annotation."""


def held(node: Node, keyword: str) -> list[Node]:
    """The subschemas that a keyword applies: the same objects each time, in a list that is not to be changed."""
    if node.held is None:
        node.held = {}
    known = node.held
    found = known.get(keyword)
    if found is None:
        found = known[keyword] = _held(node, keyword)
    return found


@cython.cfunc
def _held(node: Node, keyword: str) -> list[Node]:
    schema: dict[str, Any] = node.value
    value = schema[keyword]
    place = f"{node.pointer}/{keyword}"
    if isinstance(value, list):
        return [node.subschema(f"{place}/{i}", v) for i, v in enumerate(in_time(value))]
    if keyword in MAPS:
        place += "/"
        below: list[Node] = []
        members: dict[str, Any] = value
        for name, v in members.items():
            if len(below) & 31 == 31:
                check_time()
            # A member of `dependencies` may be a list of names.
            if isinstance(v, (dict, bool)):
                below.append(node.subschema(place + escape(name), v))
        return below
    if keyword == "additionalItems" and not isinstance(schema.get("items"), list):
        return []
    if (keyword == "then" or keyword == "else") and "if" not in schema:
        return []
    return [node.subschema(place, value)]


def dependent_schemas(node: Node) -> list[tuple[str, Node]]:
    """Member names, and what must hold when they are present."""
    schema = node.value
    found = [(name, node.at("dependentSchemas", name)) for name in schema.get("dependentSchemas", ())]
    for name, value in schema.get("dependencies", {}).items():
        if isinstance(value, (dict, bool)):
            found.append((name, node.at("dependencies", name)))
    return found
