"""What each keyword is: enforced, an annotation, or refused by name; and what its value may be.

``survey`` walks every subschema that the output can depend on, before anything is compiled:
it reports malformed keyword values at once and gathers all refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from maskwright.errors import GrammarError, Refusal
from maskwright.frontends.json_schema.document import Document, Node, json_type
from maskwright.frontends.json_schema.formats import KNOWN_UNENFORCED
from maskwright.frontends.json_schema.options import SchemaOptions

TYPES = ("null", "boolean", "integer", "number", "string", "array", "object")

_NOT_YET = "this version does not enforce it"
REFUSED: dict[str, str] = dict.fromkeys(
    (
        "not",
        "oneOf",
        "if",
        "dependencies",
        "dependentRequired",
        "dependentSchemas",
        "propertyNames",
        "patternProperties",
        "unevaluatedProperties",
        "unevaluatedItems",
        "minProperties",
        "maxProperties",
        "contains",
        "uniqueItems",
        "multipleOf",
        "$dynamicRef",
        "$recursiveRef",
        "extends",
        "disallow",
        "divisibleBy",
    ),
    _NOT_YET,
)
"""Assertions of some draft that cannot be enforced yet.  Anything in no table is an annotation."""

_HARMLESS: dict[str, Callable[[Any], bool]] = {
    "uniqueItems": lambda value: value is False,
    "minProperties": lambda value: value == 0,
    "unevaluatedProperties": lambda value: value is True or value == {},
    "unevaluatedItems": lambda value: value is True or value == {},
    "propertyNames": lambda value: value is True or value == {},
    "patternProperties": lambda value: value == {},
    "dependencies": lambda value: value == {},
    "dependentRequired": lambda value: value == {},
    "dependentSchemas": lambda value: value == {},
    "disallow": lambda value: value == [],
}
"""Values with which a refused keyword demands nothing."""


def _is_count(value: Any) -> bool:
    return not isinstance(value, bool) and (
        (isinstance(value, int) and value >= 0)
        or (isinstance(value, (float, Decimal)) and value >= 0 and value % 1 == 0)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _is_schema(value: Any) -> bool:
    return isinstance(value, (dict, bool))


def _is_type(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and all(isinstance(v, str) and v in (*TYPES, "any") for v in value)
    return isinstance(value, str) and value in (*TYPES, "any")


def _all_schemas(value: Any) -> bool:
    return isinstance(value, dict) and all(_is_schema(v) for v in value.values())


def _schema_list(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_schema(v) for v in value)


# keyword: (check, what its value must be)
CHECKS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, f"one of {', '.join(TYPES)}, or a non-empty list of these"),
    "properties": (_all_schemas, "an object of schemas"),
    "required": (
        # draft 3 has a boolean here, which says something about the parent and nothing here
        lambda v: isinstance(v, bool) or (isinstance(v, list) and all(isinstance(x, str) for x in v)),
        "a list of member names",
    ),
    "additionalProperties": (_is_schema, "a schema"),
    "items": (lambda v: _is_schema(v) or (isinstance(v, list) and all(map(_is_schema, v))), "a schema"),
    "prefixItems": (_schema_list, "a non-empty list of schemas"),
    "additionalItems": (_is_schema, "a schema"),
    "enum": (lambda v: isinstance(v, list), "a list of values"),
    "anyOf": (_schema_list, "a non-empty list of schemas"),
    "allOf": (_schema_list, "a non-empty list of schemas"),
    "$ref": (lambda v: isinstance(v, str), "a string"),
    "minLength": (_is_count, "a non-negative integer"),
    "maxLength": (_is_count, "a non-negative integer"),
    "minItems": (_is_count, "a non-negative integer"),
    "maxItems": (_is_count, "a non-negative integer"),
    "minimum": (_is_number, "a number"),
    "maximum": (_is_number, "a number"),
    "exclusiveMinimum": (
        lambda v: isinstance(v, bool) or _is_number(v),
        "a number (or, in draft 4, a boolean)",
    ),
    "exclusiveMaximum": (
        lambda v: isinstance(v, bool) or _is_number(v),
        "a number (or, in draft 4, a boolean)",
    ),
    "pattern": (lambda v: isinstance(v, str), "a string"),
    "format": (lambda v: isinstance(v, str), "a string"),
}


def survey(document: Document, options: SchemaOptions) -> list[Refusal]:
    """All refusals among the subschemas reachable from the root.

    Raises ``GrammarError`` for a value that its keyword does not have, or an unresolvable ``$ref``.
    """
    refusals: list[Refusal] = []
    for node in reachable(document):
        if not isinstance(node.value, dict) or ("$ref" in node.value and document.ref_hides_siblings):
            continue
        for keyword in node.value:
            refusal = _refusal(node, keyword, options)
            if refusal is not None:
                refusals.append(refusal)
    return refusals


def reachable(document: Document) -> Iterator[Node]:
    """Every subschema that the root leads to, once, its keyword values checked; errors as ``survey``."""
    seen: set[str] = set()
    work = [document.root]
    while work:
        node = work.pop()
        if node.pointer in seen:
            continue
        seen.add(node.pointer)
        if not isinstance(node.value, (dict, bool)):
            raise GrammarError(
                f"a schema is an object or a boolean, not {json_type(node.value)}", place=node.pointer or "#"
            )
        if isinstance(node.value, dict):
            hidden = "$ref" in node.value and document.ref_hides_siblings
            for keyword in ("$ref",) if hidden else node.value:
                if keyword in CHECKS:
                    _check(node, keyword)
            if "$ref" in node.value:
                work.append(document.resolve(node))
            if not hidden:
                work.extend(reversed(subschemas(node)))
        yield node


def _check(node: Node, keyword: str) -> None:
    check, expected = CHECKS[keyword]
    value = node.value[keyword]
    if not check(value):
        shown = repr(value) if len(repr(value)) <= 60 else repr(value)[:57] + "..."
        raise GrammarError(f"{keyword} must be {expected}, not {shown}", place=f"{node.pointer}/{keyword}")


def _refusal(node: Node, keyword: str, options: SchemaOptions) -> Refusal | None:
    value = node.value[keyword]
    if keyword in REFUSED:
        harmless = _HARMLESS.get(keyword)
        if harmless is None or not harmless(value):
            return Refusal(node.pointer, keyword, REFUSED[keyword])
    if keyword == "format" and options.formats == "assert" and value in KNOWN_UNENFORCED:
        reason = f"the format {value!r} cannot be enforced; formats='annotate' ignores formats"
        return Refusal(node.pointer, keyword, reason)
    return None


def subschemas(node: Node) -> list[Node]:
    """The subschemas directly below, by the keywords that are enforced."""
    schema = node.value
    found: list[Node] = []
    if "properties" in schema:
        found.extend(node.at("properties", name) for name in schema["properties"])
    for keyword in ("anyOf", "allOf", "prefixItems"):
        if keyword in schema:
            found.extend(node.at(keyword, i) for i in range(len(schema[keyword])))
    if isinstance(schema.get("items"), list):
        found.extend(node.at("items", i) for i in range(len(schema["items"])))
    elif "items" in schema:
        found.append(node.at("items"))
    for keyword in ("additionalProperties", "additionalItems"):
        if keyword in schema:
            found.append(node.at(keyword))
    return found
