"""``contains`` where items must be different: what is known without a search, and that nothing is a dead end."""

from __future__ import annotations

import itertools
import json
import random
from contextlib import suppress
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_schema_fuzz import BYTES, number, walk

import maskwright as mw
from maskwright.frontends.json_schema import to_grammar
from maskwright.grammar import Distinct
from maskwright.passes.prune import prune

UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
BOOLEAN = {"type": "boolean"}
VALUES = (None, True, "a", "b")


def contains_from(start: int, kind: Any) -> dict[str, Any]:
    """An item from an index on is of a kind."""
    return {"not": {"prefixItems": [True] * start, "items": {"not": kind}}}


def free(schema: Any) -> int | None:
    (body,) = (body for body in prune(to_grammar(schema)).rules if isinstance(body, Distinct))
    return body.free


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # What does not match may be objects with some member, and nobody knows how many there are.
        ({**UNIQUE, "contains": {"additionalProperties": False}, "minItems": 2}, 0),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2}, 0),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2, "maxItems": 2}, 0),
        ({**UNIQUE, "contains": BOOLEAN, "maxContains": 1, "minItems": 3}, 0),
        # The first item may be the only one that matches, or one of two; it may be one of those that do not.
        ({**UNIQUE, **contains_from(1, {"const": 1})}, None),
        ({**UNIQUE, **contains_from(1, BOOLEAN)}, 0),
        ({**UNIQUE, **contains_from(2, BOOLEAN)}, None),
        # Several: each item that is needed is unlike the others.
        ({**UNIQUE, "contains": {"const": 1}, "allOf": [{"contains": BOOLEAN}]}, 0),
        ({**UNIQUE, "contains": {"const": 1}, "allOf": [{"contains": BOOLEAN, "minContains": 2}]}, 0),
        # [1, 2] needs a 3, [3, 1] needs a 2, and of each there is one.
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2, "allOf": [{"contains": {"enum": [2, 3]}, "minContains": 2}]}, None),
        # Arrays can be told from each other by their length, or by an item.
        ({**UNIQUE, "contains": {"type": "array"}, "minContains": 2, "maxItems": 3}, 0),
        ({**UNIQUE, "contains": {"type": "array", "maxItems": 1}, "minContains": 2, "maxItems": 3}, 0),
        ({**UNIQUE, "items": {"type": "array", "prefixItems": [False]}, "minItems": 2}, 2),
        ({**UNIQUE, "items": {"type": "array", "prefixItems": [BOOLEAN], "maxItems": 1}, "minItems": 3}, 3),
        # The values of one kind, or of any, are enough; or one kind may be used up.
        ({**UNIQUE, "contains": {"const": 1}, "items": {"enum": [1, 2, 3, 4]}, "minItems": 3}, 0),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "items": {"enum": [1, 2, 3]}, "minItems": 3}, 3),
        # Behind two items there are others; the first one may be the only value of the second place.
        ({**UNIQUE, "contains": {"type": "string"}, "prefixItems": [{}, {"const": 1}], "minItems": 3}, 2),
    ],
)  # fmt: skip
def test_what_is_known(schema: dict[str, Any], expected: int | None) -> None:
    assert free(schema) == expected


kinds = st.lists(st.sampled_from(VALUES), min_size=1, max_size=3, unique=True).map(lambda v: {"enum": v})
constraints = st.one_of(
    st.builds(
        lambda kind, low, high: {"contains": kind, "minContains": low, "maxContains": high},
        kinds,
        st.integers(0, 2),
        st.integers(1, 4),
    ),
    st.builds(lambda kind, low: {"contains": kind, "minContains": low}, kinds, st.integers(1, 3)),
    st.builds(contains_from, st.integers(1, 2), kinds),
)
arrays = st.fixed_dictionaries(
    {"items": st.just({"enum": list(VALUES)}), "allOf": st.lists(constraints, min_size=1, max_size=2)},
    optional={
        "prefixItems": st.lists(kinds, min_size=1, max_size=2),
        "minItems": st.integers(1, 4),
        "maxItems": st.integers(2, 4),
    },
).map(lambda schema: {**UNIQUE, **schema})


def beginnings(texts: set[str]) -> set[str]:
    return {text[:i] for text in texts for i in range(len(text) + 1)}


def completable(schema: dict[str, Any], arrays: list[tuple[Any, ...]]) -> set[str]:
    """The beginnings, item by item, of the arrays that are valid."""
    validator = jsonschema.Draft202012Validator(schema)
    return {
        json.dumps(items[:i])
        for items in arrays
        if validator.is_valid(list(items))
        for i in range(len(items) + 1)
    }


@given(arrays)
def test_what_is_promised_is_true(schema: dict[str, Any]) -> None:
    # Those of five items tell nearly always what could be completed if items might repeat.
    several = [items for n in range(1, 6) for items in itertools.product(VALUES, repeat=n)]
    different = [items for items in several if len(set(map(repr, items))) == len(items)]
    try:
        promised = free(schema)
    except mw.UnsatisfiableError:
        return
    if promised is None:
        return
    alike = completable({**schema, "uniqueItems": False}, several)
    unlike = completable(schema, different)
    for items in different:
        if len(items) >= promised and json.dumps(items) in alike:
            assert json.dumps(items) in unlike, (schema, items)


@given(arrays, st.integers(0, 2**32))
def test_what_is_read_are_the_beginnings_of_valid_arrays(schema: dict[str, Any], seed: int) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    items = [p for n in range(len(VALUES) + 1) for p in itertools.permutations(VALUES, n)]
    valid = {json.dumps(p, separators=(",", ":")) for p in items if validator.is_valid(list(p))}
    try:
        compiled = mw.compile_json_schema(schema, BYTES, whitespace="compact")
    except mw.UnsatisfiableError:
        assert not valid
        return
    begun = beginnings(valid)
    for text in beginnings({json.dumps(p, separators=(",", ":")) for p in items}):
        assert compiled.matcher().accept_bytes(text.encode()) == (text in begun), (schema, text)
    rng = random.Random(seed)
    for _ in range(3):
        assert validator.is_valid(json.loads(walk(compiled, rng, rng.randrange(20))))


@pytest.mark.parametrize(
    "schema",
    [
        {"contains": {"additionalProperties": False}, "oneOf": [{"contains": False}, {"uniqueItems": True, "minItems": 2}]},
        {**UNIQUE, "contains": {"additionalProperties": False}, "minContains": 3, "minItems": 5},
        {**UNIQUE, "contains": {"required": ["a"], "type": "object"}, "minContains": 2, "minItems": 3},
        {**UNIQUE, "contains": {"type": "integer"}, "allOf": [{"contains": {"type": "object"}, "minContains": 2}]},
        {**UNIQUE, "contains": {"type": "array"}, "minContains": 2, "maxItems": 3},
        {**UNIQUE, "items": {"type": "array", "items": BOOLEAN, "maxItems": 1}, "minItems": 3},
        {**UNIQUE, **contains_from(2, {"type": "number"}), "contains": {"type": "string"}, "minContains": 2},
    ],
)  # fmt: skip
def test_walks_end_in_valid_arrays(schema: dict[str, Any]) -> None:
    compiled = mw.compile_json_schema(schema, BYTES)
    validator = jsonschema.Draft202012Validator(schema)
    rng = random.Random(1)
    for _ in range(30):
        text = walk(compiled, rng, rng.randrange(60))
        with suppress(OverflowError):
            assert validator.is_valid(json.loads(text, parse_float=number, parse_int=number)), text
