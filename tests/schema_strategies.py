"""Random schemas and instances that are about the same few names, strings and numbers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

NAMES = ("a", "b", "ab", "c")
PATTERNS = ("^a", "b$", "^[ab]+$", "c")
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
