"""Arrays of different items with counted ones: what is known without a search, and that nothing is a dead end."""

from __future__ import annotations

import itertools
import json
import random
from contextlib import suppress
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_schema_fuzz import BYTES, number, walk

import maskwright as mw
from maskwright.frontends.json_schema import to_grammar
from maskwright.ir.grammar import Distinct, Grammar
from maskwright.ir.prune import prune
from maskwright.limits import Limits

UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
TWINS: dict[str, Any] = {"type": "array", "not": {"uniqueItems": True}}
LETTERS = {"enum": ["a", "b"]}
EACH_UNIQUE = {"items": {"uniqueItems": True}}
BOOLEAN = {"type": "boolean"}
VALUES = (None, True, "a", "b")


def contains_from(start: int, kind: Any) -> dict[str, Any]:
    """An item from an index on is of a kind."""
    return {"not": {"prefixItems": [True] * start, "items": {"not": kind}}}


def grammar_of(schema: Any) -> tuple[Grammar, list[Distinct]]:
    """The grammar, and the arrays in it whose items must be different."""
    grammar = prune(to_grammar(schema))
    return grammar, [body for body in grammar.rules if isinstance(body, Distinct)]


def free(schema: Any) -> int | None:
    _, (body,) = grammar_of(schema)
    return body.free


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        # What does not match may be objects with some member, and nobody knows how many there are.
        ({**UNIQUE, "contains": {"additionalProperties": False}, "minItems": 2}, 0),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2}, 0),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2, "maxItems": 2}, 0),
        ({**UNIQUE, "contains": BOOLEAN, "maxContains": 1, "minItems": 3}, 0),
        # Before the start, so few may match that one is left; of arrays of objects nobody knows how many there are.
        ({**UNIQUE, **contains_from(1, {"const": 1})}, 0),
        ({**UNIQUE, **contains_from(1, BOOLEAN)}, 0),
        ({**UNIQUE, **contains_from(2, BOOLEAN)}, 0),
        ({**UNIQUE, **contains_from(1, {"type": "array", "items": {"type": "object"}})}, None),
        # Several: each item that is needed is unlike the others.
        ({**UNIQUE, "contains": {"const": 1}, "allOf": [{"contains": BOOLEAN}]}, 0),
        ({**UNIQUE, "contains": {"const": 1}, "allOf": [{"contains": BOOLEAN, "minContains": 2}]}, 0),
        # [1, 3] needs a 2, and [2] a 1 and a 3: of each there is one, but with those that do for both there are two.
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2, "allOf": [{"contains": {"enum": [2, 3]}, "minContains": 2}]}, 0),
        # Arrays can be told from each other by their length, or by an item.
        ({**UNIQUE, "contains": {"type": "array"}, "minContains": 2, "maxItems": 3}, 0),
        ({**UNIQUE, "contains": {"type": "array", "maxItems": 1}, "minContains": 2, "maxItems": 3}, 0),
        ({**UNIQUE, "items": {"type": "array", "prefixItems": [False]}, "minItems": 2}, 2),
        ({**UNIQUE, "items": {"type": "array", "prefixItems": [BOOLEAN], "maxItems": 1}, "minItems": 3}, 3),
        # One kind may be used up, but not all.
        ({**UNIQUE, "contains": {"const": 1}, "items": {"enum": [1, 2, 3, 4]}, "minItems": 3}, 0),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "items": {"enum": [1, 2, 3]}, "minItems": 3}, 0),
        # The first item is not the only value of the second place, if that is needed.
        ({**UNIQUE, "contains": {"type": "string"}, "prefixItems": [{}, {"const": 1}], "minItems": 3}, 0),
        ({**UNIQUE, "prefixItems": [{}, {}, {"const": 1}], **contains_from(3, {"not": {"type": "object"}})}, 0),
        # So it is without "contains", and where few values must follow the prefix.
        ({**UNIQUE, "prefixItems": [{}, {"type": "null"}], "minItems": 2}, 0),
        ({**UNIQUE, "prefixItems": [{}, {}, {"const": 1}], "minItems": 3}, 0),
        ({**UNIQUE, "prefixItems": [{}], "items": {"enum": [1, 2]}, "minItems": 3}, 0),
        ({**UNIQUE, "prefixItems": [{}, {}], "items": {"enum": [1, 2, 3]}, "minItems": 4}, 0),
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
    {"items": st.just({"enum": list(VALUES)})},
    optional={
        "allOf": st.lists(constraints, min_size=1, max_size=2),
        "prefixItems": st.lists(kinds, min_size=1, max_size=3),
        "minItems": st.integers(1, 4),
        "maxItems": st.integers(2, 4),
    },
).map(lambda schema: {**UNIQUE, **schema})


def beginnings(texts: set[str]) -> set[str]:
    return {text[:i] for text in texts for i in range(len(text) + 1)}


def text_of(items: tuple[Any, ...]) -> str:
    return json.dumps(items, separators=(",", ":"))


def valid_arrays(schema: dict[str, Any]) -> list[tuple[Any, ...]]:
    validator = jsonschema.Draft202012Validator(schema)
    items = (p for n in range(len(VALUES) + 1) for p in itertools.permutations(VALUES, n))
    return [p for p in items if validator.is_valid(list(p))]


def arrays_with_repetitions(schema: dict[str, Any]) -> list[tuple[Any, ...]]:
    validator = jsonschema.Draft202012Validator({**schema, "uniqueItems": False})
    items = (p for n in range(schema["maxItems"] + 1) for p in itertools.product(VALUES, repeat=n))
    return [p for p in items if validator.is_valid(list(p))]


@given(arrays)
def test_what_is_promised_is_true(schema: dict[str, Any]) -> None:
    try:
        grammar, bodies = grammar_of(schema)
    except mw.UnsatisfiableError:
        return
    if not bodies:
        # Items of different places have no value in common.
        assert all(len(set(p)) == len(p) for p in arrays_with_repetitions(schema))
        return
    (body,) = bodies
    if body.free is None:
        return
    # What the rules allow where items may repeat.
    grammar.rules[grammar.rules.index(body)] = body.array
    repeating = mw.compile_grammar(grammar, BYTES)
    completable = {text_of(p[:n]) for p in valid_arrays(schema) for n in range(len(p) + 1)}
    for n in range(max(body.free, 1), len(VALUES) + 1):
        for items in itertools.permutations(VALUES, n):
            text = text_of(items)
            if repeating.matcher().accept_bytes(text[:-1].encode()):
                assert text in completable, (schema, items)


def compiled_unless_empty(schema: dict[str, Any], valid: set[str]) -> mw.CompiledGrammar | None:
    """None where the schema is refused as unsatisfiable, which it must be only without a valid text."""
    try:
        return mw.compile_json_schema(schema, BYTES, whitespace="compact")
    except mw.UnsatisfiableError:
        assert not valid
        return None


twins = st.fixed_dictionaries(
    {"items": kinds, "maxItems": st.integers(2, 4)},
    optional={
        "allOf": st.lists(constraints, min_size=1, max_size=2),
        "prefixItems": st.lists(kinds, min_size=1, max_size=3),
        "minItems": st.integers(1, 4),
    },
).map(lambda schema: {**TWINS, **schema})


@pytest.mark.slow
@pytest.mark.sanitized
@given(twins)
def test_two_items_that_are_equal(schema: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(schema)
    arrays = [p for n in range(schema["maxItems"] + 2) for p in itertools.product(VALUES, repeat=n)]
    valid = {text_of(p) for p in arrays if validator.is_valid(list(p))}
    compiled = compiled_unless_empty(schema, valid)
    if compiled is None:
        return
    begun = beginnings(valid)
    for text in beginnings(set(map(text_of, arrays))):
        matcher = compiled.matcher()
        assert matcher.accept_bytes(text.encode()) == (text in begun), (schema, text)
        assert matcher.is_accepting == (text in valid)


@pytest.mark.slow
@given(arrays, st.integers(0, 2**32))
def test_what_is_read_are_the_beginnings_of_valid_arrays(schema: dict[str, Any], seed: int) -> None:
    valid = {text_of(p) for p in valid_arrays(schema)}
    compiled = compiled_unless_empty(schema, valid)
    if compiled is None:
        return
    begun = beginnings(valid)
    for text in beginnings({text_of(p) for n in range(5) for p in itertools.permutations(VALUES, n)}):
        assert compiled.matcher().accept_bytes(text.encode()) == (text in begun), (schema, text)
    rng = random.Random(seed)
    validator = jsonschema.Draft202012Validator(schema)
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
        {**UNIQUE, **contains_from(1, {"const": None})},
        {**UNIQUE, "prefixItems": [{}, {}, {"enum": [1, True]}], **contains_from(3, {"type": "null"})},
        {**UNIQUE, **contains_from(3, {"enum": [None, True, "a"]}), "contains": BOOLEAN},
        {**UNIQUE, "items": {"type": "array", "items": BOOLEAN, "maxItems": 1}, "minItems": 3},
        {**UNIQUE, **contains_from(2, {"type": "number"}), "contains": {"type": "string"}, "minContains": 2},
        # Two items that are equal match the same.
        {**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 2},
        {**TWINS, "prefixItems": [{"type": "number"}, {"type": ["integer", "string"]}], "maxItems": 2},
        {"oneOf": [{}, {"uniqueItems": True}, {"unevaluatedItems": {"type": "integer"}}], "maxItems": 2, "type": "array"},
        # At which places they are is decided before any of them is written.
        {**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 3},
        {**TWINS, "contains": {"type": "string", "minLength": 2}, "items": {"type": ["string", "integer"]}, "maxItems": 3},
        {**TWINS, "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": ["string", "number"]}], "items": False},
        {**TWINS, **contains_from(2, {"type": "object"}), "contains": {"type": "array", "not": {"uniqueItems": True}}, "maxItems": 4},
        {"oneOf": [True, {"uniqueItems": True}, {"prefixItems": [BOOLEAN]}], "type": "array", "maxItems": 3},
        {**TWINS, "items": {"type": "array", "uniqueItems": True}, "contains": {"contains": {"type": "number"}}, "maxItems": 4},
        {**TWINS, "contains": {"type": "array", "maxItems": 2}, "minContains": 0, "maxContains": 2},
        pytest.param({"uniqueItems": True, "items": {**TWINS, "contains": {"type": "string"}, "maxItems": 3}, "minItems": 2},
                     marks=pytest.mark.slow),
        pytest.param({**TWINS, "items": {**TWINS, "contains": {"type": "string"}, "maxItems": 3}, "contains": {"minItems": 3}, "maxItems": 3},
                     marks=pytest.mark.slow),
        {**UNIQUE, "prefixItems": [True, {"type": "array"}], "items": {"type": "number"}, "not": EACH_UNIQUE},
        {"uniqueItems": True, "contains": {"uniqueItems": True}, "minItems": 4},
    ],
)  # fmt: skip
def test_walks_end_in_valid_arrays(schema: dict[str, Any]) -> None:
    compiled = mw.compile_json_schema(schema, BYTES)
    validator = jsonschema.Draft202012Validator(schema)
    # Another seed may lead into a search beyond `max_search`, which is a limit of nested arrays with equal items.
    rng = random.Random(3)
    for _ in range(30):
        text = walk(compiled, rng, rng.randrange(60))
        with suppress(OverflowError):
            assert validator.is_valid(json.loads(text, parse_float=number, parse_int=number)), text


@pytest.mark.parametrize(
    ("schema", "begun", "most"),
    [
        # Other items can always come, but only one value helps.
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2}, "", 5),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2}, "[1", 3),
        ({**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2}, "[1.0, 1.5, [2], {", 6),
        ({**UNIQUE, "contains": {"enum": [1, "a" * 50]}, "minContains": 2}, "[1,", 60),
        ({**UNIQUE, "contains": {"enum": [1, "a", 2]}, "minContains": 3, "items": {"type": ["number", "string"]}}, '["a", 2,', 2),
        # An array with two equal items is one that does not match: it need not come.
        ({"uniqueItems": True, "contains": {"uniqueItems": True}, "minItems": 4}, "[true,[88228", 9),
        ({"uniqueItems": True, "contains": {"uniqueItems": True}, "minItems": 4}, "[[1,1],[2,2],0", 4),
        ({"uniqueItems": True, "contains": {"uniqueItems": True}, "minItems": 4}, "[[1,1],[2,2],", 4),
        # Nor must others come, where what is missing is like an item that came.
        ({**UNIQUE, "items": {"anyOf": [TWINS, LETTERS]}, "contains": LETTERS, "minContains": 2}, '["a",[1,1],[2', 8),
        ({**UNIQUE, "items": {"anyOf": [TWINS, LETTERS]}, "contains": TWINS, "minContains": 2, "minItems": 4}, '["a",[0,0],', 14),
        # Nobody has to look for the second item: of arrays with two equal items there are many.
        ({**UNIQUE, "prefixItems": [True, {"type": "array"}], "items": {"type": "number"}, "not": EACH_UNIQUE}, "[[449,{", 9),
        # Which item comes again is known.
        ({**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 3}, "[1,2", 7),
        ({**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 3}, "[1.0,[],", 2),
        # One search leads around all items.
        ({**UNIQUE, "items": {"type": "string"}, "contains": {"const": "a"}, "minItems": 150}, "", 2000),
        ({**UNIQUE, "items": {"enum": [f"a{i}" for i in range(60)]}, "contains": {"const": "a7"}, "minItems": 60}, "", 400),
    ],
)  # fmt: skip
def test_completions_end(schema: dict[str, Any], begun: str, most: int) -> None:
    matcher = mw.compile_json_schema(
        schema, BYTES, whitespace="compact" if not begun else "flexible"
    ).matcher()
    assert matcher.accept_bytes(begun.encode())
    rest = matcher.shortest_completion_bytes()
    assert len(rest) <= most
    assert matcher.accept_bytes(rest) and matcher.is_accepting
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(begun.encode() + rest))


@pytest.mark.parametrize(
    "schema",
    [
        {**TWINS, "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": BOOLEAN, "maxItems": 3},
        {**TWINS, "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": "object"}], "items": False},
        {**TWINS, "prefixItems": [{"type": "integer"}, {"type": "string"}, False]},
        {**TWINS, "contains": {"type": "integer"}, "maxContains": 1, "items": {"type": ["integer", "string"]}, "maxItems": 2},
    ],
)  # fmt: skip
def test_places_that_have_nothing_in_common(schema: dict[str, Any]) -> None:
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema, BYTES)


@pytest.mark.parametrize(
    ("schema", "begun", "allowed"),
    [
        # Once another item has come, no integer is left but those that came.
        ({**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 3}, "[12,3", b".0123456789Ee"),
        ({**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 3}, "[12,null,", b"1n"),
        ({**TWINS, "contains": {"not": {"type": "integer"}}, "maxItems": 3}, '["ab",1,"a', b"b"),
        ({**TWINS, "prefixItems": [{"type": "integer"}, {"type": "string"}, {"type": ["string", "number"]}], "items": False}, '[7,"ab",', b'"7'),
    ],
)  # fmt: skip
def test_what_may_come(schema: dict[str, Any], begun: str, allowed: bytes) -> None:
    matcher = mw.compile_json_schema(schema, BYTES, whitespace="compact").matcher()
    assert matcher.accept_bytes(begun.encode())
    mask = mw.allocate_token_bitmask(1, 257)
    matcher.fill_next_token_bitmask(mask)
    assert bytes(i for i in range(33, 127) if mask[0, i // 32] >> (i % 32) & 1) == allowed


@pytest.mark.parametrize("most", [{"maxItems": 2}, {"maxItems": 3}, {}])
@pytest.mark.parametrize("number", ["1e-97", "1.5e20", "-2.5E+30", "1e-7", "0.5", "12"])
def test_equal_numbers_may_have_exponents(most: dict[str, int], number: str) -> None:
    matcher = mw.compile_json_schema({**TWINS, "items": {"type": "number"}, **most}, BYTES).matcher()
    for byte in f"[{number}, {number}]".encode():
        mask = np.zeros(9, dtype=np.int32)
        matcher.fill_next_token_bitmask(mask)
        assert mask[byte // 32] >> (byte % 32) & 1
        assert matcher.accept_token(byte)
    assert matcher.is_accepting


def test_many_demanded_items_are_refused_before_they_are_counted() -> None:
    limits = Limits(max_rules=2000, max_seconds=20)
    item: dict[str, Any] = {"type": "integer", "maximum": 10**6}
    for schema in (
        {"type": "array", "contains": item, "minContains": 3000},
        {"type": "array", "prefixItems": [{}, {}], "contains": item, "minContains": 2500},
    ):
        with pytest.raises(mw.LimitError) as caught:
            mw.compile_json_schema(schema, BYTES, limits=limits)
        assert caught.value.limit == "max_rules" and caught.value.given > 2000
    mw.compile_json_schema({"type": "array", "contains": item, "minContains": 300}, BYTES, limits=limits)
    nothing = {"type": "array", "items": {"type": "string"}, "contains": item, "minContains": 3000}
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(nothing, BYTES, limits=limits)
