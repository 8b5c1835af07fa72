"""Schemas that are large in one way: they compile fast, or a limit says what is too much, in bounded time and memory."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

import maskwright as mw

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
ALLOWED = 1.5  # of the deadline: tests may run on busy machines


def accepts(compiled: mw.CompiledGrammar, value: Any) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting


def test_one_of_thousands_of_values() -> None:
    # Each is compared with those that list the same, not with all others.
    values: list[Any] = [*range(2500), *(f"text {i}" for i in range(2500))]
    compiled = mw.compile_json_schema(
        {"oneOf": [*({"const": v} for v in values), {"enum": [7, "text 8", 2500]}]}, VOCABULARY
    )
    assert accepts(compiled, 2499) and accepts(compiled, "text 9") and accepts(compiled, 2500)
    assert not any(accepts(compiled, value) for value in (7, "text 8", 2501, None))


def test_one_of_values_and_types() -> None:
    schema = {
        "oneOf": [
            {"const": 1},
            {"const": "a"},
            {"type": "string"},
            {"minimum": 5, "type": "number"},
            {"const": 6},
            {"const": True},
        ]
    }
    compiled = mw.compile_json_schema(schema, VOCABULARY)
    assert all(accepts(compiled, value) for value in (1, "b", 5, True))
    assert not any(accepts(compiled, value) for value in ("a", 6, 2, False, None))


def test_one_of_thousands_of_objects_ends_in_time() -> None:
    schema = {
        "oneOf": [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(5000)]
    }
    begun = time.perf_counter()
    with pytest.raises(mw.LimitError):
        mw.compile_json_schema(schema, VOCABULARY, limits=mw.Limits(max_seconds=1))
    assert time.perf_counter() - begun < ALLOWED + 0.5


def test_patterns_whose_product_is_large_end_in_time() -> None:
    schema = {"oneOf": [{"type": "string", "pattern": f"^(a|b)*a(a|b){{{i}}}$"} for i in range(18)]}
    begun = time.perf_counter()
    with pytest.raises(mw.LimitError):
        mw.compile_json_schema(schema, VOCABULARY, limits=mw.Limits(max_seconds=1))
    assert time.perf_counter() - begun < ALLOWED + 0.5


def test_many_things_that_an_array_contains() -> None:
    def containing(count: int) -> dict[str, Any]:
        return {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(count)]}

    compiled = mw.compile_json_schema(containing(8), VOCABULARY)
    assert accepts(compiled, [7, 6, 5, 4, None, 3, 2, 1, 0]) and not accepts(compiled, [7, 6, 5, 4, 3, 2, 1])
    # Two to the power of 17 sets of what came, each with 18 items that may come next.
    with pytest.raises(mw.LimitError, match="max_rules"):
        mw.compile_json_schema(containing(17), VOCABULARY, limits=mw.Limits(max_rules=50_000))


def test_a_registry_without_end() -> None:
    def document(uri: str) -> dict[str, Any]:
        return {"properties": {"a": {"$ref": uri + "a"}, "b": {"$ref": uri + "b"}}}

    with pytest.raises(mw.LimitError, match="max_schema_values"):
        mw.compile_json_schema({"$ref": "http://x/"}, VOCABULARY, registry=document)


def test_documents_that_hold_themselves() -> None:
    document: dict[str, Any] = {"type": "object"}
    document["properties"] = {"a": document, "b": document}
    for schema, registry in ((document, None), ({"$ref": "http://x/"}, {"http://x/": document})):
        with pytest.raises(mw.LimitError, match="max_schema_values"):
            mw.compile_json_schema(schema, VOCABULARY, registry=registry)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_many_members_that_are_not_declared(order: str) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "minProperties": 300,
        "additionalProperties": {"enum": [1, 22]},
    }
    schema["not"] = {"additionalProperties": {"const": 1}}
    compiled = mw.compile_json_schema(schema, VOCABULARY, property_order=order)
    text = bytes(compiled.matcher().shortest_completion())
    found = json.loads(text)
    assert len(found) == 300 and 22 in found.values()
    # One of them is 22: all others are shorter, and keys are as short as there are such.
    assert list(found.values()).count(22) == 1


def test_the_default_deadline() -> None:
    assert mw.Limits().max_seconds == 5
