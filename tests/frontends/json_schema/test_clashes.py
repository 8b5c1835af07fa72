"""Unsatisfiable schemas: which constraints exclude each other, and that these are as few as can be."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from schema_strategies import PATTERNS, documents, numbers, small, strings, types

import maskwright as mw
from maskwright.frontends.json_schema import SchemaOptions, to_grammar
from maskwright.frontends.json_schema.clashes import explained
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS, Limits

BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
LIMITS = Limits(max_schema_branches=300, max_regex_states=20_000, max_rules=20_000, max_seconds=5)
X = {"$ref": "#/$defs/x"}


def error_of(schema: Any, **options: Any) -> mw.UnsatisfiableError:
    with pytest.raises(mw.UnsatisfiableError) as caught:
        mw.compile_json_schema(schema, BYTES, **options)
    return caught.value


def is_empty(schema: Any) -> bool:
    try:
        prune(to_grammar(schema, limits=LIMITS))
    except mw.UnsatisfiableError:
        return True
    return False


def members(required: Any, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required}


ROOT = "#"
FEW: list[tuple[int, Any]] = [
    (2, {"type": "array", "maxItems": 0}),
    (2, {"type": "object", "maxProperties": 0}),
    (2, {"type": "object", "additionalProperties": False}),
    (2, {"const": [[]]}),
    (3, {"enum": [[1], {"a": {"b": 1}}, [1.0]]}),
    (4, {"type": "array", "items": {"const": {}}, "maxItems": 2}),
    (5, {"type": "array", "items": {"type": "boolean"}, "minItems": 2, "maxItems": 2}),
]
"""Items that are not so many."""
CLASHES: list[tuple[Any, list[tuple[str, str]]]] = [
    # numbers
    ({"type": "number", "minimum": 5, "maximum": 3}, [(ROOT, "minimum"), (ROOT, "maximum")]),
    ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, [(ROOT, "exclusiveMinimum"), (ROOT, "exclusiveMaximum")]),
    ({"type": "number", "multipleOf": 5, "minimum": 1, "maximum": 4}, [(ROOT, "multipleOf"), (ROOT, "minimum"), (ROOT, "maximum")]),
    ({"type": "number", "maximum": 4, "const": 5, "title": "a"}, [(ROOT, "maximum"), (ROOT, "const")]),
    ({"type": "integer", "format": "int32", "minimum": 3_000_000_000}, [(ROOT, "format"), (ROOT, "minimum")]),
    # strings
    ({"type": "string", "minLength": 3, "maxLength": 2, "pattern": "a"}, [(ROOT, "minLength"), (ROOT, "maxLength")]),
    ({"type": "string", "pattern": "^a+$", "minLength": 1, "enum": ["b", "c"]}, [(ROOT, "pattern"), (ROOT, "enum")]),
    ({"type": "string", "pattern": "^(ab|cd)$", "maxLength": 1}, [(ROOT, "pattern"), (ROOT, "maxLength")]),
    ({"type": "string", "format": "ipv4", "minLength": 16}, [(ROOT, "format"), (ROOT, "minLength")]),
    ({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, [("/allOf/0", "pattern"), ("/allOf/1", "pattern")]),
    # any type
    ({"type": "string", "enum": [1]}, [(ROOT, "type"), (ROOT, "enum")]),
    ({"enum": []}, [(ROOT, "enum")]),
    ({"const": 1, "enum": [2, 3]}, [(ROOT, "const"), (ROOT, "enum")]),
    ({"const": None, "not": {"type": "null"}}, [(ROOT, "const"), (ROOT, "not")]),
    ({"type": "string", "anyOf": [{"type": "null"}, {"type": "integer"}]}, [(ROOT, "type"), (ROOT, "anyOf")]),
    ({"oneOf": [{}, True]}, [(ROOT, "oneOf")]),
    ({"type": "string", "if": True, "then": {"type": "null"}}, [(ROOT, "type"), (ROOT, "then")]),
    # branches and references
    ({"type": "integer", "allOf": [{"title": "t"}, {"type": "string"}]}, [(ROOT, "type"), ("/allOf/1", "type")]),
    ({"type": "integer", "anyOf": [{"type": "string"}]}, [(ROOT, "type"), ("/anyOf/0", "type")]),
    ({"allOf": [{"minLength": 3}, {"allOf": [{"maxLength": 2}]}], "type": "string"}, [("/allOf/0", "minLength"), ("/allOf/1/allOf/0", "maxLength")]),
    ({**X, "type": "integer", "$defs": {"x": {"type": "string"}}}, [(ROOT, "type"), ("/$defs/x", "type")]),
    ({"allOf": [X, {"maximum": 1}], "$defs": {"x": {"type": "number", "minimum": 2}}}, [("/$defs/x", "minimum"), ("/allOf/1", "maximum")]),
    # objects
    (members(["a"], a=False), [(ROOT, "required"), (ROOT, "properties")]),
    (members(["a", "b"], c={}) | {"maxProperties": 1}, [(ROOT, "required"), (ROOT, "maxProperties")]),
    (members([], a={}) | {"additionalProperties": False, "minProperties": 2}, [(ROOT, "additionalProperties"), (ROOT, "minProperties")]),
    ({"type": "object", "required": ["b"], "unevaluatedProperties": False, "allOf": [{"properties": {"a": {}}}]}, [(ROOT, "required"), (ROOT, "unevaluatedProperties")]),
    ({"allOf": [members(["a"], a={}) | {"additionalProperties": False}, members(["b"], b={})]}, [("/allOf/0", "additionalProperties"), ("/allOf/1", "required")]),
    (members(["aa"]) | {"propertyNames": {"maxLength": 1}}, [(ROOT, "required"), (ROOT, "propertyNames")]),
    (members(["a"], b=False) | {"dependentRequired": {"a": ["b"]}}, [(ROOT, "required"), (ROOT, "dependentRequired"), (ROOT, "properties")]),
    # inside of members and items
    (members(["a"], a={"type": "integer", "minimum": 5, "maximum": 3}), [("/properties/a", "minimum"), ("/properties/a", "maximum")]),
    (members(["a"], a=members(["b"], b={"type": "null", "const": 1})), [("/properties/a/properties/b", "type"), ("/properties/a/properties/b", "const")]),
    (members(["a"], a=X) | {"$defs": {"x": {"type": "string", "const": 1}}}, [("/$defs/x", "type"), ("/$defs/x", "const")]),
    ({"allOf": [members(["a"], a={"type": "string"}), members([], a={"type": "null"})]}, [("/allOf/0/properties/a", "type"), ("/allOf/1/properties/a", "type")]),
    (members(["a"], a={"type": "string"}) | {"patternProperties": {"^a": {"type": "null"}}}, [("/properties/a", "type"), ("/patternProperties/^a", "type")]),
    # arrays
    ({"type": "array", "minItems": 1, "items": False}, [(ROOT, "minItems"), (ROOT, "items")]),
    ({"type": "array", "minItems": 2, "maxItems": 1}, [(ROOT, "minItems"), (ROOT, "maxItems")]),
    ({"type": "array", "contains": {"type": "null"}, "items": {"type": "string"}}, [("/contains", "type"), ("/items", "type")]),
    ({"type": "array", "contains": {}, "minContains": 3, "maxItems": 2}, [(ROOT, "contains"), (ROOT, "minContains"), (ROOT, "maxItems")]),
    ({"type": "array", "uniqueItems": True, "minItems": 3, "items": {"type": "boolean"}}, [(ROOT, "uniqueItems"), (ROOT, "minItems"), (ROOT, "items")]),
    ({"uniqueItems": True, "const": [1, 1]}, [(ROOT, "uniqueItems"), (ROOT, "const")]),
    ({"uniqueItems": True, "const": [[], []]}, [(ROOT, "uniqueItems"), (ROOT, "const")]),
    ({"uniqueItems": True, "const": [True, {"a": 1, "b": [2]}, [], {"b": [2.0], "a": 1.0}]}, [(ROOT, "uniqueItems"), (ROOT, "const")]),
    ({"type": "array", "uniqueItems": True, "minItems": 3, "prefixItems": [{"type": "string"}, {"const": ["a"]}, {"const": ["a"]}]}, [(ROOT, "uniqueItems"), (ROOT, "minItems"), (ROOT, "prefixItems"), (ROOT, "prefixItems")]),
    *[({"type": "array", "uniqueItems": True, "minItems": n, "items": items}, [(ROOT, "uniqueItems"), (ROOT, "minItems"), (ROOT, "items")]) for n, items in FEW],
    ({"type": "array", "prefixItems": [{}, {"enum": []}], "minItems": 2}, [("/prefixItems/1", "enum")]),
    # without end
    (members(["next"], next={"$ref": "#"}), [(ROOT, "required"), (ROOT, "properties")]),
    ({"$defs": {"x": {"type": "array", "items": X, "minItems": 1}}, **X}, [("/$defs/x", "items"), ("/$defs/x", "minItems")]),
]  # fmt: skip
ENDLESS = [schema for schema, _ in CLASHES[-2:]]


@pytest.mark.parametrize(("schema", "clash"), CLASHES, ids=lambda value: str(value)[:60])
def test_the_constraints_that_exclude_each_other(schema, clash):
    error = error_of(schema)
    found = [(c.pointer, c.keyword) for c in error.constraints]
    if sum(keyword != "type" for _, keyword in clash) >= 2:
        # What is not about a type excludes nothing until the others are gone.
        found = [(pointer, keyword) for pointer, keyword in found if keyword != "type"]
    assert sorted(found) == sorted(clash)
    assert error.place in {pointer for pointer, _ in clash}
    for _, keyword in clash:
        assert keyword in str(error)
    assert ("itself" in str(error)) == (schema in ENDLESS)
    (finding,) = [f for f in mw.check_json_schema(schema).findings if f.severity == "error"]
    assert (finding.code, finding.place, finding.constraints) == (
        "unsatisfiable",
        error.place,
        error.constraints,
    )
    assert finding.message in str(error)


@pytest.mark.parametrize(("count", "items"), FEW)
def test_items_that_are_just_as_many(count, items):
    schema = {"type": "array", "uniqueItems": True, "minItems": count - 1, "items": items}
    assert mw.check_json_schema(schema).findings == []
    mw.compile_json_schema(schema, BYTES)


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            members(["a"], a={"type": "integer", "minimum": 5, "maximum": 3.5}),
            '/properties/a: nothing satisfies this schema: minimum 5 and maximum 3.5 exclude each other '
            '(type "integer"); demanded by #: required ["a"]',
        ),
        (
            {"type": "string", "allOf": [{"enum": [1]}]},
            '#: nothing satisfies this schema: type "string" and /allOf/0: enum [1] exclude each other',
        ),
        (False, "#: nothing satisfies this schema: false allows nothing"),
        ({"allOf": [False]}, "/allOf/0: nothing satisfies this schema: false allows nothing"),
    ],
)  # fmt: skip
def test_messages(schema, message):
    assert str(error_of(schema)) == message


def test_dialects_and_options_count():
    clash = {"type": "string", "format": "date", "const": "today"}
    assert {c.keyword for c in error_of(clash).constraints} == {"format", "const", "type"} - {"type"}
    mw.compile_json_schema(clash, BYTES, formats="annotate")
    old = {"type": "integer", "minimum": 1, "exclusiveMinimum": True, "maximum": 1}
    found = {c.keyword for c in error_of(old, dialect="draft4").constraints}
    assert found == {"type", "minimum", "exclusiveMinimum", "maximum"}
    hidden = {
        "properties": {"a": {"$ref": "#/definitions/x", "enum": []}},
        "required": ["a"],
        "type": "object",
    }
    hidden["definitions"] = {"x": {"type": "string"}}
    mw.compile_json_schema(hidden, BYTES, dialect="draft7")
    registry = {"http://x/a": {"type": "string", "const": 1}}
    assert error_of({"$ref": "http://x/a"}, registry=registry).place == "http://x/a#"


def test_deep_clashes_are_explained():
    schema: Any = {"type": "integer", "minimum": 5, "maximum": 3}
    for _ in range(150):
        schema = members(["a"], a=schema)
    error = error_of(schema)
    assert error.place == "/properties/a" * 150
    assert "147 levels up" in str(error)


def test_long_cycles_are_explained():
    definitions = {f"n{i}": members(["next"], next={"$ref": f"#/$defs/n{(i + 1) % 50}"}) for i in range(50)}
    error = error_of({"$defs": definitions, "$ref": "#/$defs/n0"})
    assert "itself" in str(error)
    findings = mw.check_json_schema({"$defs": definitions, "$ref": "#/$defs/n0"}).findings
    assert [f.severity for f in findings] == ["error"]


_FLAT = {
    "type": types,
    "enum": st.lists(numbers | strings, min_size=1, max_size=2),
    "const": numbers | strings,
    "minimum": numbers,
    "exclusiveMaximum": numbers,
    "maximum": numbers,
    "multipleOf": st.sampled_from((2, 0.5, 7)),
    "minLength": small,
    "maxLength": small,
    "pattern": st.sampled_from(PATTERNS),
    "minItems": small,
    "maxItems": small,
    "items": st.booleans(),
    "required": st.lists(st.sampled_from("ab"), min_size=1, max_size=2, unique=True),
    "maxProperties": small,
    "not": st.fixed_dictionaries({"type": types}),
}


@given(st.lists(st.sampled_from(sorted(_FLAT)), min_size=2, max_size=7, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({name: _FLAT[name] for name in ["type", *names]})
))  # fmt: skip
def test_no_constraint_can_be_left_out(schema):
    assume(is_empty(schema))
    keywords = [c.keyword for c in error_of(schema).constraints]
    assert len(set(keywords)) == len(keywords)
    assert is_empty({k: schema[k] for k in keywords})
    for fewer in combinations(keywords, len(keywords) - 1):
        assert not is_empty({k: schema[k] for k in fewer})


@given(documents())
def test_every_clash_is_explained(schema):
    try:
        if not is_empty(schema):
            return
    except mw.MaskwrightError:
        return
    told = explained(mw.UnsatisfiableError("?"), schema, SchemaOptions(), LIMITS)
    assert told.constraints
    assert str(told) != "?"


def test_what_is_satisfiable_is_not_explained():
    error = mw.UnsatisfiableError("as it was")
    assert explained(error, {"type": "string"}, SchemaOptions(), DEFAULT_LIMITS) is error
