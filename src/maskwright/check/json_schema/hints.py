"""Practical hints: what is right as it stands, but costs tokens or is often meant otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from maskwright.base.deadline import check_time
from maskwright.check.report import Finding
from maskwright.errors import UnsupportedSchemaError
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.algebra.typed import ABOUT, type_names
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import held, is_hidden
from maskwright.frontends.json_schema.read.nodes import Node, escape, path_of
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.limits import Limits

# Subschemas below these mostly leave it to the one around what type is meant.
_IN_PLACE = frozenset(
    (
        "allOf",
        "anyOf",
        "dependencies",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "propertyNames",
        "then",
    )
)
_COMPLETE = frozenset(
    ("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "const", "enum", "oneOf", "type")
)
"""With one of these, a subschema says of what type its values are, or leaves it to others."""
_BOUNDS_STRINGS = frozenset(("maxLength", "format", "pattern", "enum", "const"))
_BOUNDS_ARRAYS = frozenset(("maxItems", "enum", "const"))
_CLOSES = ("additionalProperties", "unevaluatedProperties")
_MAX_BRANCHES = 12


def hints(
    document: Document, nodes: list[Node], options: SchemaOptions, limits: Limits, is_large: bool
) -> list[Finding]:
    """All hints about the subschemas that count; branches are not compared when the schema ``is_large``."""
    found: list[Finding] = []
    for node in nodes:
        check_time()
        if not isinstance(node.value, dict) or is_hidden(node):
            continue
        place = node.pointer or "#"
        steps = path_of(document.root.value, node.pointer)
        in_place = bool(steps) and steps[-1][0] in _IN_PLACE
        for code, message in _of(node, in_place):
            found.append(Finding("note", code, place, message))
        if not is_large and 1 < len(node.value.get("oneOf", ())) <= _MAX_BRANCHES:
            found.extend(_one_of(document, node, options, limits))
    found.extend(_unused(document, {node.pointer for node in nodes}))
    return found


def _of(node: Node, in_place: bool) -> Iterator[tuple[str, str]]:
    schema = node.value
    if not in_place:
        yield from _missing_type(schema)
    types = type_names(node) if "type" in schema else ()
    if "string" in types and _BOUNDS_STRINGS.isdisjoint(schema) and not in_place:
        yield "unbounded-string", "strings of any length; maxLength, pattern, format or enum would end them"
    if "array" in types and _BOUNDS_ARRAYS.isdisjoint(schema) and not in_place and not _ends(schema):
        yield "unbounded-array", "arrays of any length; maxItems would end them"
    if (
        "object" in types
        and "properties" in schema
        and not in_place
        and not any(k in schema for k in _CLOSES)
    ):
        if "patternProperties" not in schema and "maxProperties" not in schema:
            yield (
                "open-object",
                "members that are not declared may follow; additionalProperties: false forbids them",
            )
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and not _is_anchored(pattern):
        yield (
            "unanchored-pattern",
            f"pattern {pattern!r} may be found anywhere: any text may stand "
            + ("around" if not pattern.startswith("^") and not _ends_at_end(pattern) else "on one side of")
            + " what it matches; ^ and $ would exclude that",
        )


def _missing_type(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if not _COMPLETE.isdisjoint(schema):
        return
    for name in ("object", "array", "string", "number"):
        about = [keyword for keyword in schema if keyword in ABOUT[name]]
        if about:
            yield (
                "missing-type",
                f"{about[0]} without type {name!r}: values of all other types are allowed too",
            )
            return


def _ends(schema: dict[str, Any]) -> bool:
    """Whether an array has no more items than a list of schemas says."""
    return any(schema.get(k) is False for k in ("items", "additionalItems", "unevaluatedItems"))


def _is_anchored(pattern: str) -> bool:
    return pattern.startswith("^") and _ends_at_end(pattern)


def _ends_at_end(pattern: str) -> bool:
    stripped = pattern.removesuffix("$")
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped != pattern and backslashes % 2 == 0


def _one_of(document: Document, node: Node, options: SchemaOptions, limits: Limits) -> Iterator[Finding]:
    branches = held(node, "oneOf")
    trivially_empty = Normalizer(document, options, limits).trivially_empty
    for i, first in enumerate(branches):
        for second in branches[:i]:
            try:
                disjoint = trivially_empty.conjunction((second, first))
            except UnsupportedSchemaError:
                return
            if not disjoint:
                message = (
                    f"{second.pointer} and {first.pointer} may hold at once, and what satisfies both is refused; "
                    "a member with a different const in each branch would tell them apart, or anyOf allow both"
                )
                yield Finding("note", "overlapping-branches", node.pointer or "#", message)
                return
    message = "no value satisfies two branches of oneOf, so anyOf says the same and is cheaper"
    yield Finding("note", "exclusive-branches", node.pointer or "#", message)


def _unused(document: Document, reached: set[str]) -> Iterator[Finding]:
    root = document.root.value
    if not isinstance(root, dict):
        return
    used = {ancestor for pointer in reached for ancestor in _ancestors(pointer)}
    for keyword in ("$defs", "definitions"):
        definitions = root.get(keyword)
        for name in definitions if isinstance(definitions, dict) else ():
            place = f"/{keyword}/{escape(name)}"
            if place not in used:
                yield Finding("note", "unused-definition", place, "no reference leads here")


def _ancestors(pointer: str) -> Iterator[str]:
    """The definition at the top of the document that a place is in, or is."""
    parts = pointer.split("/", 3)
    if len(parts) > 2 and parts[1] in ("$defs", "definitions"):
        yield "/".join(parts[:3])
