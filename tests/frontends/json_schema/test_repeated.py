"""What a schema says at several places is found out once (``Document.share``)."""

from __future__ import annotations

from typing import Any

import pytest

import maskwright as mw
from maskwright._core import repeated
from maskwright.compiling.symbols import Symbols
from maskwright.frontends import json_schema
from maskwright.frontends.json_schema import ANNOTATIONS, HOLDS
from maskwright.frontends.json_schema.read.nodes import Node

BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
ADDRESS = {
    "type": "object",
    "properties": {"street": {"type": "string"}, "zip": {"type": "integer"}},
    "required": ["zip"],
    "additionalProperties": False,
}


@pytest.fixture(autouse=True)
def small_schemas_share_what_they_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_schema, "_MANY", 0)


def accepts(schema: Any, text: str) -> bool:
    matcher = mw.compile_json_schema(schema, BYTES).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def groups_of(schema: Any) -> list[set[str]]:
    """The places that stand for each other, by the titles that they have."""
    found: dict[int, set[str]] = {}

    def look(value: Any) -> None:
        if isinstance(value, dict):
            if id(value) in known:
                found.setdefault(id(known[id(value)]), set()).add(value.get("title", "?"))
            value = list(value.values())
        for each in value if isinstance(value, list) else ():
            look(each)

    known = repeated(schema, 1000, HOLDS, ANNOTATIONS)
    look(schema)
    return sorted(found.values(), key=sorted)


def test_annotations_are_not_compared() -> None:
    schema = {
        "properties": {
            "a": {"title": "A", "type": "string", "default": "x", "examples": ["y"], "$comment": "z"},
            "b": {"title": "B", "description": "other", "type": "string"},
            "c": {"title": "C", "type": "integer"},
            "d": {"type": "string", "title": "D"},
        }
    }
    assert groups_of(schema) == [{"A", "B", "D"}]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"const": {"title": "x"}}, {"const": {"title": "y"}}),
        ({"enum": [{"default": 1}]}, {"enum": [{"default": 2}]}),
        ({"properties": {"title": {}}}, {"properties": {"title": {"type": "null"}}}),
        ({"properties": {"a": {}}}, {"properties": {"a": {}, "title": "no schema"}}),
        ({"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}}),
        ({"minimum": 1}, {"minimum": 1.0}),
        ({"minimum": 1}, {"minimum": True}),
    ],
)
def test_all_else_is_compared(one: Any, other: Any) -> None:
    found = repeated({"anyOf": [one, other]}, 1000, HOLDS, ANNOTATIONS)
    assert id(one) not in found
    assert id(other) not in found


def test_each_place_keeps_its_name() -> None:
    schema = {"type": "object", "properties": {"home": ADDRESS, "work": {**ADDRESS, "title": "Work"}}}
    names = Symbols(mw.compile_json_schema(schema, BYTES)).names
    assert {"/properties/home", "/properties/work"} <= set(names)


def test_what_is_refused_is_named_at_every_place() -> None:
    part = {"type": "array", "uniqueItems": True}
    tool = {
        "function": {
            "name": "f",
            "parameters": {"type": "object", "properties": {"p": part, "q": dict(part)}},
        }
    }
    with pytest.raises(mw.UnsupportedSchemaError) as caught:
        mw.compile(mw.StructuralTag.from_tools([tool], template="gemma3"), BYTES)
    assert "/properties/p" in str(caught.value)
    assert "/properties/q" in str(caught.value)


def test_references_are_relative_to_where_they_stand() -> None:
    """An identifier between the root and a place changes what its references lead to, also one of another dialect."""
    part = {"type": "object", "properties": {"v": {"$ref": "#/definitions/t"}}, "additionalProperties": False}
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "a": {"$id": "http://x/a", "definitions": {"t": {"type": "integer"}}, "allOf": [part]},
            "b": {"$id": "http://x/b", "definitions": {"t": {"type": "string"}}, "allOf": [dict(part)]},
        },
    }
    for text, valid in [('{"a": {"v": 1}}', True), ('{"b": {"v": 1}}', False), ('{"b": {"v": "s"}}', True)]:
        assert accepts(schema, text) == valid, text


def test_a_wrong_variant_takes_unequal_places_for_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = {"type": "object", "properties": {"a": {"const": "x"}, "b": {"const": "y"}}}

    def all_alike(source: Any, *rest: Any) -> dict[int, list[Node]]:
        places: list[Node] = []
        return {id(each): places for each in source["properties"].values()}

    assert accepts(schema, '{"a": "x", "b": "y"}')
    monkeypatch.setattr(json_schema, "repeated", all_alike)
    assert not accepts({**schema, "title": "again"}, '{"a": "x", "b": "y"}')
