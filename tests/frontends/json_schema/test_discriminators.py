"""Chains of conditions on the value of one member: what is accepted is what an independent validator accepts."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
import toys

import maskwright as mw
from maskwright.frontends.json_schema import to_grammar
from maskwright.ir.grammar import Record

BYTES = toys.byte_vocabulary()
MANY = 24
"""Above the number of groups from which on discriminators are looked at."""


def chain(values: list[Any], required: bool = True, **more: Any) -> dict[str, Any]:
    """If ``kind`` is this value, then ``x`` is its index, and ``y`` must come with every third one."""
    conditions = [
        {
            "if": {"properties": {"kind": {"const": value}}},
            "then": {"properties": {"x": {"const": i}}, **({"required": ["y"]} if i % 3 == 0 else {})},
        }
        for i, value in enumerate(values)
    ]
    schema = {"type": "object", "allOf": conditions, **more}
    return {**schema, "required": ["kind"]} if required else schema


def conditions_with_enums() -> dict[str, Any]:
    """Conditions that overlap, of which some hold for several values."""
    conditions = [
        {
            "if": {"properties": {"kind": {"enum": [f"v{i}", f"v{i + 1}"]}}, "required": ["kind"]},
            "then": {"properties": {"x": {"minimum": i}}},
            "else": {"properties": {"y": {"maximum": 100 - i}}},
        }
        for i in range(MANY)
    ]
    return {"allOf": conditions, "required": ["kind"], "properties": {"kind": {"enum": ["v3", "v4", "v20"]}}}


NAMES = [f"k{i}" for i in range(MANY)]
SCHEMAS = {
    "strings": chain(NAMES),
    "numbers": chain(list(range(MANY))),
    "mixed": chain([*range(8), *map(str, range(8)), True, False, None, 1.5, -1, "", [], {}]),
    "optional": chain(NAMES, required=False),
    "closed": chain(NAMES, properties=dict.fromkeys(("kind", "x", "y"), True), additionalProperties=False),
    "listed": chain(NAMES, properties={"kind": {"enum": NAMES[::2]}}),
    "not listed": chain(NAMES, properties={"kind": {"type": "string", "maxLength": 2}}),
    "nested": {"type": "array", "items": chain(NAMES, properties={"y": {"enum": [1, 2]}}), "minItems": 1},
    "enums": conditions_with_enums(),
}
KINDS = [*NAMES[:4], NAMES[-1], "v3", "v4", "v20", "other", 0, 1, 7, "1", "7", 1.5, True, None, [], {}, "k"]


def instances(nested: bool) -> list[Any]:
    found: list[Any] = []
    for kind in KINDS:
        for x in (0, 1, 3, MANY - 1, "a", None):
            for y in (1, 99, None):
                value = {"kind": kind, "x": x, "y": y}
                found.append(
                    {name: each for name, each in value.items() if each is not None or name == "kind"}
                )
    found += [{}, {"x": 1}, {"y": 1}, {"x": 0, "y": 2}, 1, "k0"]
    return [[each] for each in found] if nested else found


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_validator_agrees(name: str) -> None:
    schema = SCHEMAS[name]
    grammar = mw.compile_json_schema(schema, BYTES, property_order="any")
    validator = jsonschema.Draft202012Validator(schema)
    answers = set()
    for value in instances(name == "nested"):
        matcher = grammar.matcher()
        accepted = matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting
        assert accepted == validator.is_valid(value), value
        answers.add(accepted)
    assert answers == {False, True}


def test_equal_objects_are_one_record() -> None:
    point = {"type": "object", "properties": {"x": {"type": "number"}}}
    schema = {
        "$defs": {"point": point},
        "properties": {
            "a": {"$ref": "#/$defs/point"},
            "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/point"}]},
            "c": {"anyOf": [{"$ref": "#/$defs/point"}, {"type": "string"}]},
        },
        "type": "object",
    }
    records = [rule for rule in to_grammar(schema).rules if isinstance(rule, Record)]
    assert len(records) == 2
