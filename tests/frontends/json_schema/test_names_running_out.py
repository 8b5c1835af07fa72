"""Objects whose possible names are many and finite: whether there are enough of them is decided, never found out too late."""

from __future__ import annotations

import json
from typing import Any

import pytest

import maskwright as mw

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
NAMES = [*(a + b for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"), "z"]
PATTERN = "^([a-p][a-p]|z)$"  # 257 names


def object_of(**keywords: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "propertyNames": {"pattern": PATTERN},
        "additionalProperties": {"const": 1},
        **keywords,
    }


def written(names: list[str]) -> bytes:
    return b"{" + b",".join(b'"%s":1' % name.encode() for name in names) + b"}"


def shortest(compiled: mw.CompiledGrammar) -> dict[str, Any]:
    text = bytes(compiled.matcher().shortest_completion())
    assert read(compiled, text)
    return json.loads(text)  # type: ignore[no-any-return]


def read(compiled: mw.CompiledGrammar, text: bytes) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting


@pytest.mark.parametrize("order", ["schema", "any"])
def test_one_more_member_than_there_are_names(order: str) -> None:
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(object_of(minProperties=258), VOCABULARY, property_order=order)


@pytest.mark.parametrize("order", ["schema", "any"])
def test_every_name_is_needed(order: str) -> None:
    compiled = mw.compile_json_schema(object_of(minProperties=257), VOCABULARY, property_order=order)
    assert read(compiled, written(sorted(NAMES)))
    assert not read(compiled, written(sorted(NAMES)[1:]))
    assert len(shortest(compiled)) == 257


def test_a_declared_member_must_come_when_the_others_do_not_suffice() -> None:
    schema = object_of(
        propertyNames={"anyOf": [{"pattern": PATTERN}, {"const": "other"}]},
        properties={"other": {"const": 1}},
    )
    compiled = mw.compile_json_schema(schema | {"minProperties": 258}, VOCABULARY)
    assert len(shortest(compiled)) == 258
    # Without it, no text ends: the first key can be no other one.
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b'{"other":1,"')
    assert not compiled.matcher().accept_bytes(b'{"aa"')
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema | {"minProperties": 259}, VOCABULARY)


def test_declared_names_are_no_names_of_a_pattern_as_well() -> None:
    # "aa" matches the pattern: there are 257 names, not 258.
    schema = object_of(properties={"aa": {"const": 1}})
    assert len(shortest(mw.compile_json_schema(schema | {"minProperties": 257}, VOCABULARY))) == 257
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema | {"minProperties": 258}, VOCABULARY)


def test_names_of_several_patterns_count_once() -> None:
    # 20 * 20 names of two letters; the second pattern has 16 * 16 of the same.
    schema = {
        "type": "object",
        "patternProperties": {"^[a-t][a-t]$": {"const": 1}, "^[a-p][a-p]$": {"type": "integer"}},
        "additionalProperties": False,
    }
    names = [a + b for a in "abcdefghijklmnopqrst" for b in "abcdefghijklmnopqrst"]
    compiled = mw.compile_json_schema(schema | {"minProperties": 400}, VOCABULARY, property_order="any")
    assert read(compiled, written(names)) and not read(compiled, written(names[1:]))
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema | {"minProperties": 401}, VOCABULARY)


def test_counts_are_exact_at_any_size() -> None:
    schema = {"type": "object", "patternProperties": {"^[0-9]{6}$": True}, "additionalProperties": False}
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema | {"minProperties": 10**6 + 1}, VOCABULARY)
    # A declared member would have to be remembered for a million others.
    declared = schema | {"properties": {"other": True}, "minProperties": 10**6 + 1}
    with pytest.raises(mw.LimitError, match="max_listed_names"):
        mw.compile_json_schema(declared, VOCABULARY)


def test_names_are_left_for_a_goal() -> None:
    # At least one value must not be 1: it cannot be put off until all names are used.
    schema = {
        "type": "object",
        "propertyNames": {"pattern": PATTERN},
        "additionalProperties": {"enum": [1, 2]},
        "not": {"additionalProperties": {"const": 1}},
    }
    compiled = mw.compile_json_schema(schema, VOCABULARY)
    names = sorted(NAMES)
    matcher = compiled.matcher()
    assert matcher.accept_bytes(written(names[:-1])[:-1] + b',"' + names[-1].encode() + b'":')
    assert not matcher.fork().accept_bytes(b"1")
    assert matcher.accept_bytes(b"2}") and matcher.is_accepting
    assert read(compiled, b'{"aa":2}') and not read(compiled, b'{"aa":1}')


def test_different_strings_are_counted_alike() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^[0-9]{4}$"}}
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema | {"minItems": 10_001}, VOCABULARY)
