"""Arrays of which some item must match: the engine counts items and notes what matched, so no rules are needed for counts."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import pytest
from schema_evaluator import accepts
from test_schema_fuzz import BYTES, walk

import maskwright as mw
from maskwright.frontends.json_schema import to_grammar
from maskwright.ir.grammar import Record

ONE, TEXT, NO_NUMBER = {"const": 1}, {"type": "string"}, {"not": {"type": "number"}}
VALUES = (1, 2, "a", None, [1])


def some(*kinds: Any, **more: Any) -> dict[str, Any]:
    return {"type": "array", "allOf": [{"contains": kind} for kind in kinds], **more}


SCHEMAS = [
    some(ONE),
    some(ONE, maxItems=1),
    some(ONE, minItems=3),
    some(ONE, minItems=2, maxItems=3),
    some(ONE, TEXT),
    some(ONE, TEXT, maxItems=2),
    some(ONE, TEXT, NO_NUMBER, maxItems=2),
    some(ONE, {"type": "number"}, minItems=1, maxItems=3, items={"type": ["number", "null"]}),
    # Items of one kind only, or not of it: what is left of alternatives.
    {"type": "array", "not": {"items": TEXT}, "maxItems": 3},
    {"type": "array", "not": {"anyOf": [{"items": TEXT}, {"items": ONE}]}, "maxItems": 3},
    {"oneOf": [{"type": "array", "items": TEXT}, {"type": "array", "minItems": 2}]},
    {"oneOf": [{"type": "array", "items": {"type": "array", "items": ONE}}, {"items": {"contains": ONE}, "type": "array"}]},
    # Beside what is counted by rules.
    {"type": "array", "prefixItems": [TEXT], "contains": ONE, "maxItems": 3},
    {"type": "array", "contains": ONE, "minContains": 2, "maxContains": 2, "maxItems": 3},
    {"type": "array", "contains": ONE, "uniqueItems": True, "maxItems": 3},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_all_short_arrays(schema: Any) -> None:
    compiled = mw.compile_json_schema(schema, BYTES)
    judge = jsonschema.Draft202012Validator(schema)
    for count in range(5):
        for items in itertools.product(VALUES, repeat=count):
            value = list(items)
            assert accepts(compiled, value) == judge.is_valid(value), value


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
@pytest.mark.parametrize("whitespace", ["printed", 2])
def test_nothing_is_a_dead_end(schema: Any, whitespace: Any) -> None:
    compiled = mw.compile_json_schema(schema, BYTES, whitespace=whitespace)
    judge = jsonschema.Draft202012Validator(schema)
    rng = random.Random(json.dumps(schema))
    for _ in range(15):
        judge.validate(json.loads(walk(compiled, rng, rng.randrange(40))))


@pytest.mark.parametrize(
    ("kinds", "bounds", "shortest"),
    [
        ((ONE,), {}, b"[1]"),
        ((ONE,), {"minItems": 3}, b"[0,0,1]"),
        ((ONE, TEXT), {"maxItems": 2}, b'["",1]'),
        ((ONE, {"type": "number"}), {"maxItems": 1}, b"[1]"),
        ((ONE, TEXT, NO_NUMBER), {"maxItems": 2}, b'["",1]'),
    ],
)
def test_the_shortest_one(kinds: tuple[Any, ...], bounds: dict[str, int], shortest: bytes) -> None:
    compiled = mw.compile_json_schema(some(*kinds, **bounds), BYTES)
    found = compiled.matcher().shortest_completion_bytes()
    assert len(found) == len(shortest)
    jsonschema.validate(json.loads(found), some(*kinds, **bounds))


@pytest.mark.parametrize("bound", ["minItems", "maxItems"])
def test_as_many_rules_whatever_the_bound(bound: str) -> None:
    sizes = {len(to_grammar(some(ONE, TEXT, **{bound: count})).rules) for count in (4, 1_000, 1_000_000)}
    assert len(sizes) == 1


def test_the_last_item_has_to_match() -> None:
    compiled = mw.compile_json_schema(some(ONE, maxItems=50_000), BYTES)
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"[" + b"0," * 49_999)
    assert [matcher.fork().accept_bytes(text) for text in (b"1]", b"0", b"2", b"12", b'"', b"1,")] == [
        True, False, False, False, False, False,
    ]  # fmt: skip


def test_more_kinds_than_an_array_notes_are_counted_by_rules() -> None:
    kinds = [{"const": i} for i in range(4)]
    few = mw.Limits(max_object_obligations=3)
    for limits, keyless in ((mw.Limits(), True), (few, False)):
        grammar = to_grammar(some(*kinds), limits=limits)
        assert any(isinstance(body, Record) and body.keyless for body in grammar.rules) == keyless
        assert accepts(mw.compile_json_schema(some(*kinds), BYTES, limits=limits), [3, 2, 1, 0])
