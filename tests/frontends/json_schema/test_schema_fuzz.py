"""Random schemas: the engine and the ``jsonschema`` package agree on every instance."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_strategies import conditional_documents, documents, objects, serialisations, values

import maskwright as mw
from maskwright.frontends import json_schema
from maskwright.limits import Limits

BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
# What is too large is refused; that is no disagreement, but it should be soon.
LIMITS = Limits(max_schema_branches=300, max_regex_states=20_000, max_rules=20_000, max_seconds=5)


def compiled_or_none(schema: Any, order: str = "schema") -> mw.CompiledGrammar | str:
    try:
        return mw.compile_json_schema(schema, BYTES, limits=LIMITS, property_order=order)
    except mw.UnsatisfiableError:
        return "unsatisfiable"
    except (mw.UnsupportedSchemaError, mw.LimitError):
        return "refused"
    except mw.GrammarError as error:
        assert "refers to itself" in str(error)
        return "refused"


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def walk(compiled: mw.CompiledGrammar, rng: random.Random, steps: int) -> bytes:
    """Random bytes through the masks, then the shortest way out."""
    matcher = compiled.matcher()
    mask = np.zeros(9, dtype=np.int32)
    out = bytearray()
    for _ in range(steps):
        matcher.fill_next_token_bitmask(mask)
        allowed = [i for i in range(257) if mask[i // 32] >> (i % 32) & 1]
        assert allowed, f"stuck behind {bytes(out)!r}"
        # White space and escapes would take all the steps.
        token = rng.choice([i for i in allowed if i < 128 and i not in b" \t\r\n\\"] or allowed)
        if token == 256:
            return bytes(out)
        assert matcher.accept_token(token)
        out.append(token)
    return bytes(out) + matcher.shortest_completion_bytes()


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; no key may come twice."""
    assert len(dict(pairs)) == len(pairs), f"a key comes twice among {[key for key, _ in pairs]}"
    return dict(pairs)


def number(text: str) -> int | float:
    """Exact where it is an integer; not judged is what has more digits than a double keeps, also when it is divided."""
    value = Decimal(text)
    whole = value == value.to_integral_value()
    rounded = float(text).is_integer() or len(value.normalize().as_tuple().digits) > 15
    # Of quotients above 2**52, which ``multipleOf`` looks at, all are whole.
    if value.adjusted() > 14 or (rounded and not whole):
        raise OverflowError
    return int(value) if whole else float(text)


def check(schema: dict[str, Any], instances: list[Any], seed: int, order: str) -> None:
    """Every instance gets the answer of ``jsonschema``, and what the masks lead to is valid."""
    compiled = compiled_or_none(schema, order)
    if compiled == "refused":
        return
    validator = jsonschema.Draft202012Validator(schema)
    for instance in instances:
        valid = validator.is_valid(instance)
        if compiled == "unsatisfiable":
            assert not valid, (schema, instance)
            continue
        read = [accepts(compiled, text) for text in serialisations(instance, 500)]
        assert any(read) == valid, (schema, instance, valid)
        assert order == "schema" or all(read) == valid, (schema, instance, valid)
    if compiled != "unsatisfiable":
        rng = random.Random(seed)
        for _ in range(3):
            text = walk(compiled, rng, rng.randrange(40))
            try:
                valid = validator.is_valid(
                    json.loads(text, object_pairs_hook=members, parse_float=number, parse_int=number)
                )
            except OverflowError:
                # jsonschema computes with doubles.
                continue
            assert valid, (schema, text)


orders = st.sampled_from(("schema", "any"))


@pytest.fixture(autouse=True, scope="module")
def small_schemas_share_what_they_repeat() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_schema, "_MANY", 0)
        yield


@given(documents(), st.lists(values, min_size=1, max_size=12), st.integers(0, 2**32), orders)
@settings(max_examples=300)
def test_the_engine_agrees_with_jsonschema(
    schema: dict[str, Any], instances: list[Any], seed: int, order: str
) -> None:
    check(schema, instances, seed, order)


@pytest.mark.slow
@given(documents(), st.lists(values, min_size=1, max_size=6), st.integers(0, 2**32), st.booleans())
@settings(max_examples=200)
def test_what_a_schema_repeats_is_read_in_each_place(
    part: dict[str, Any], instances: list[Any], seed: int, negated: bool
) -> None:
    definitions = {keyword: part.pop(keyword) for keyword in ("$defs", "definitions") if keyword in part}
    again = {**part, "description": "the same"}
    schema = {
        **definitions,
        "properties": {"p": part, "q": again, "r": {"items": again}},
        "oneOf": [
            {"properties": {"p": part}, "required": ["p"]},
            {"properties": {"q": {"not": part} if negated else part}},
        ],
    }
    pairs = [dict.fromkeys(names, value) for value in instances for names in ("p", "q", "pq", "pr")]
    mixed = [{"p": a, "q": b, "r": [b, a]} for a in instances for b in instances]
    check(schema, [*pairs, *mixed, {}], seed, "any")


@pytest.mark.slow
@given(conditional_documents(), st.lists(objects, min_size=4, max_size=16), st.integers(0, 2**32), orders)
@settings(max_examples=300)
def test_conditions_agree_with_jsonschema(
    schema: dict[str, Any], instances: list[Any], seed: int, order: str
) -> None:
    check(schema, instances, seed, order)


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"not": {"type": "string"}}, [1, None, {}, []], ["a"]),
        (
            {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
            [{"a": 1}, {"b": 1}, {"b": 1, "c": 2}],
            [{"a": 1, "b": 1}, {}, {"c": 1}],
        ),
        (
            {"oneOf": [{"properties": {"a": {"type": "string"}}}, {"properties": {"b": {"type": "string"}}}]},
            [{"a": "x", "b": 1}, {"a": 1, "b": "x"}, {"b": 1}, {"a": 1}],
            [{}, {"a": "x"}, {"a": "x", "b": "y"}, {"a": 1, "b": 2}],
        ),
        (
            {
                "patternProperties": {"^S_": {"type": "string"}, "^I_": {"type": "integer"}},
                "additionalProperties": False,
            },
            [{}, {"S_1": "x"}, {"I_0": 4}, {"S_2": "x", "I_1": 3}],
            [{"S_1": 3}, {"k": 1}, {"I_2": "x"}],
        ),
        (
            {"properties": {"a": {}, "b": {}, "c": {}}, "additionalProperties": False, "minProperties": 2},
            [{"a": 1, "b": 2}, {"b": 1, "c": 1}],
            [{"a": 1}, {"c": 1}],
        ),
        (
            {"minProperties": 2, "maxProperties": 3},
            [{"a": 1, "b": 2}],
            [{}, {"a": 1}, dict.fromkeys("abcd", 0)],
        ),
        (
            {
                "if": {"properties": {"k": {"const": "x"}}, "required": ["k"]},
                "then": {"required": ["a"]},
                "else": {"required": ["b"]},
            },
            [{"k": "x", "a": 1}, {"k": "y", "b": 1}, {"b": 2}],
            [{"k": "x"}, {"k": "x", "b": 1}, {"a": 1}],
        ),
        (
            {"dependencies": {"a": ["b"], "c": {"required": ["d"]}}},
            [{}, {"b": 1}, {"a": 1, "b": 1}, {"c": 1, "d": 2}],
            [{"a": 1}, {"c": 1}],
        ),
        (
            {"contains": {"type": "string"}, "maxContains": 2},
            [["a"], [1, "a", 2], ["a", "b"]],
            [[], [1], ["a", "b", "c"]],
        ),
        ({"items": {"enum": [1, 2, 3]}, "uniqueItems": True}, [[], [1], [3, 1, 2]], [[1, 1], [1, 2, 1]]),
        (
            {
                "anyOf": [
                    {"properties": {"a": {"const": 1}}, "required": ["a"]},
                    {"properties": {"b": True}},
                ],
                "unevaluatedProperties": False,
            },
            [{}, {"b": 1}, {"a": 1}, {"a": 1, "b": 2}],
            [{"c": 1}, {"a": 2}],
        ),
        (
            {"unevaluatedItems": False, "oneOf": [{"contains": {"type": "null"}, "maxContains": 0}]},
            [None, 1, {}],
            [[], [1], [None]],
        ),
        (
            {"not": {"enum": ["a", None, [1], {"x": 1}]}},
            ["b", 2, [2], [], [1, 1], {}, {"x": 2}, {"x": 1, "y": 1}],
            ["a", None, [1], {"x": 1}],
        ),
    ],
)
def test_keywords_that_need_complements(schema: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    compiled = mw.compile_json_schema(schema, BYTES)
    for instance in good:
        assert any(accepts(compiled, text) for text in serialisations(instance)), instance
    for instance in bad:
        assert not any(accepts(compiled, text) for text in serialisations(instance)), instance


def test_the_shortest_completion_of_a_very_long_text() -> None:
    compiled = mw.compile_json_schema({"type": "string", "not": {"maxLength": 30_000}}, BYTES)
    completion = compiled.matcher().shortest_completion_bytes()
    assert len(completion) == 30_003
    assert accepts(compiled, completion.decode())
