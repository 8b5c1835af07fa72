"""Random schemas and instances that are about the same few names, strings and numbers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "ab", "c")
PATTERNS = ("^a", "b$", "^[ab]+$", "c", "^(?:ab|[abé])$", "^(?!ab)")
STRINGS = ("", "a", "b", "ab", "abc", "c", "é")
NUMBERS = (0, 1, 2, 3, -1, 1.5, 2.5, 10)

names = st.sampled_from(NAMES)
strings = st.sampled_from(STRINGS)
numbers = st.sampled_from(NUMBERS)
scalars = st.none() | st.booleans() | numbers | strings
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
small = st.integers(0, 3)
types = st.sampled_from(("null", "boolean", "integer", "number", "string", "array", "object"))


def _keywords(schema: st.SearchStrategy[Any]) -> dict[str, st.SearchStrategy[Any]]:
    branches = st.lists(schema, min_size=1, max_size=3)
    return {
        "type": types | st.lists(types, min_size=1, max_size=3, unique=True),
        "enum": st.lists(values, min_size=1, max_size=4),
        "const": values,
        "minimum": numbers,
        "exclusiveMaximum": numbers,
        "multipleOf": st.sampled_from((1, 2, 0.5, 1.5)),
        "minLength": small,
        "maxLength": small,
        "pattern": st.sampled_from(PATTERNS),
        "items": schema,
        "prefixItems": branches,
        "contains": schema,
        "minContains": small,
        "maxContains": small,
        "minItems": small,
        "maxItems": small,
        "uniqueItems": st.booleans(),
        "properties": st.dictionaries(names, schema, max_size=3),
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), schema, max_size=2),
        "additionalProperties": schema,
        "propertyNames": schema,
        "required": st.lists(names, max_size=2, unique=True),
        "minProperties": small,
        "maxProperties": small,
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(names, schema, max_size=2),
        "not": schema,
        "allOf": branches,
        "anyOf": branches,
        "oneOf": branches,
        "if": schema,
        "then": schema,
        "else": schema,
        "unevaluatedProperties": schema,
        "unevaluatedItems": schema,
        "$ref": st.just("#/$defs/x"),
    }


@st.composite
def _objects(draw: Any, schema: st.SearchStrategy[Any]) -> dict[str, Any]:
    keywords = _keywords(schema)
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=3, unique=True))
    return {keyword: draw(keywords[keyword]) for keyword in chosen}


_leaves = st.booleans() | st.fixed_dictionaries({"type": types}) | st.fixed_dictionaries({"const": scalars})
schemas = st.recursive(_leaves, _objects, max_leaves=6)


@st.composite
def documents(draw: Any) -> dict[str, Any]:
    """A schema with one definition to refer to."""
    schema = draw(_objects(schemas))
    return {**schema, "$defs": {"x": draw(_leaves)}}


member_schemas = st.sampled_from(
    (
        True,
        False,
        {"const": 1},
        {"const": "a"},
        {"enum": [1, "a", None]},
        {"const": [1]},
        {"enum": [{"a": 1}, {"b": "a"}, [1, "a"]]},
        {"type": "string"},
        {"type": "integer"},
        {"not": {"const": 1}},
        {"not": {"not": {"type": ["integer", "null"]}}},
        {"type": "object", "required": ["a"]},
        {"contains": {"const": 1}, "maxContains": 1},
        {"contains": {"type": "integer"}, "minContains": 0, "maxContains": 1, "minItems": 1},
        {"$ref": "#/$defs/x"},
        {"$ref": "#/$defs/x", "maxProperties": 1},
    )
)
_required = st.lists(names, min_size=1, max_size=2, unique=True)
_about_members = {
    "properties": st.dictionaries(names, member_schemas, min_size=1, max_size=3),
    "required": _required,
    "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), member_schemas, min_size=1, max_size=2),
    "additionalProperties": member_schemas,
    "propertyNames": st.sampled_from(
        ({"pattern": "^a"}, {"maxLength": 1}, {"enum": ["a", "c"]}, {"not": {"const": "b"}})
    ),
    "minProperties": small,
    "maxProperties": small,
    "dependentRequired": st.dictionaries(names, _required, min_size=1, max_size=2),
}


def _some(keywords: dict[str, st.SearchStrategy[Any]], most: int) -> st.SearchStrategy[dict[str, Any]]:
    return st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=most, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({keyword: keywords[keyword] for keyword in chosen})
    )


_branches = _some(_about_members, 2)
_nested = (
    _branches
    | st.fixed_dictionaries({"not": _branches})
    | st.fixed_dictionaries({"$ref": st.just("#/$defs/x")})
)
_conditions = st.fixed_dictionaries({"if": _nested}, optional={"then": _nested, "else": _nested})
_several = st.lists(_nested, min_size=2, max_size=4)
_deciding = {
    **_about_members,
    "allOf": st.lists(_conditions, min_size=1, max_size=4),
    "anyOf": _several,
    "oneOf": _several,
    "not": _nested | st.fixed_dictionaries({"allOf": _several}) | st.fixed_dictionaries({"oneOf": _several}),
    "if": _nested,
    "then": _nested,
    "else": _nested,
    "dependentSchemas": st.dictionaries(names, _nested, min_size=1, max_size=2),
    "unevaluatedProperties": member_schemas,
    "$ref": st.just("#/$defs/x"),
}


@st.composite
def conditional_documents(draw: Any) -> dict[str, Any]:
    """Schemas of objects whose branches and conditions are about the same few members."""
    schema = draw(_some(_deciding, 4))
    if draw(st.booleans()):
        schema = {"type": "object", **schema}
    # The definition must not refer to itself.
    inner = draw(_some({k: v for k, v in _about_members.items() if k in ("required", "maxProperties")}, 2))
    return {**schema, "$defs": {"x": {**inner, "propertyNames": {"not": {"const": "b"}}}}}


member_values = st.sampled_from(
    (1, 2, "a", "b", None, [1], [1, 1], [1, "a"], [], {}, {"a": 1}, {"b": "a"}, {"a": 1, "c": 2})
)
objects = st.dictionaries(names, member_values, max_size=4)


def serialisations(value: Any, most: int = 24) -> list[str]:
    """The JSON texts of a value with the members of its objects in several orders."""
    return [json.dumps(v, ensure_ascii=False) for v in itertools.islice(_orders(value), most)]


def _orders(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for order in itertools.permutations(value):
            for members in itertools.product(*(list(_orders(value[name])) for name in order)):
                yield dict(zip(order, members, strict=True))
    elif isinstance(value, list):
        for items in itertools.product(*(list(_orders(v)) for v in value)):
            yield list(items)
    else:
        yield value
