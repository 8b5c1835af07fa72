"""``oneOf`` whose branches an optional member tells apart: the cost grows with the number of branches, not with its power."""

from __future__ import annotations

import json
from typing import Any

import pytest

import maskwright as mw
from maskwright.frontends.json_schema import to_grammar

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def union(branches: int, nested: bool = True) -> dict[str, Any]:
    """Like the targets of Angular's workspaces: closed objects, a builder that is no requirement, options of its own."""
    found = []
    for i in range(branches):
        options = {"type": "object", "properties": {f"p{j}": {"type": "integer"} for j in range(i, i + 5)}}
        options["additionalProperties"] = False
        properties = {
            "builder": {"const": f"b{i}"},
            "options": options,
            "more": {"additionalProperties": options},
        }
        if not nested:
            properties = {"builder": {"const": f"b{i}"}, f"p{i}": {"type": "integer"}}
        found.append({"type": "object", "additionalProperties": False, "properties": properties})
    return {"oneOf": found}


def accepts(compiled: mw.CompiledGrammar, value: Any) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting


@pytest.mark.slow
@pytest.mark.parametrize("branches", [20, 60])
def test_many_branches(branches: int) -> None:
    compiled = mw.compile_json_schema(union(branches), VOCABULARY, limits=mw.Limits(max_seconds=20))
    for i in (0, branches // 2, branches - 1):
        assert accepts(
            compiled, {"builder": f"b{i}", "options": {f"p{i}": 1}, "more": {"x": {f"p{i + 4}": 2}}}
        )
        assert not accepts(compiled, {"builder": f"b{i}", "options": {f"p{i + 5}": 1}})
        assert accepts(compiled, {"builder": f"b{i}"})
    # All branches, and none.
    assert not accepts(compiled, {}) and not accepts(compiled, {"builder": "b"})


@pytest.mark.slow
def test_rules_grow_with_the_branches() -> None:
    few, many = (len(to_grammar(union(branches)).rules) for branches in (10, 40))
    assert many < 5 * few


def test_few_branches_are_told_apart_without_it() -> None:
    compiled = mw.compile_json_schema(union(4), VOCABULARY)
    assert accepts(compiled, {"options": {"p0": 1}}) and not accepts(compiled, {"options": {"p3": 1}})
    assert not accepts(compiled, {})


def test_no_such_member() -> None:
    # Nothing tells the branches apart by itself: a limit, as before.
    branches = union(20)
    for branch in branches["oneOf"]:
        del branch["properties"]["builder"]
    with pytest.raises(mw.LimitError):
        mw.compile_json_schema(branches, VOCABULARY)


def test_a_member_that_is_forbidden_tells_nothing() -> None:
    schema = union(8, nested=False) | {"not": {"required": ["builder"]}}
    compiled = mw.compile_json_schema(schema, VOCABULARY)
    assert (
        accepts(compiled, {"p3": 1})
        and not accepts(compiled, {"builder": "b3", "p3": 1})
        and not accepts(compiled, {})
    )
