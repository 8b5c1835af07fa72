"""No key comes twice, and no string of a ``uniqueItems`` array; members in any order."""

from __future__ import annotations

import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest

import maskwright as mw

# Tokens that end a key and begin, or end, the next one.
PIECES = [
    b'":1,"', b'a":1,"a', b'a":1,"a"', b'a":1,"b":', b'":1,"a":1', b'"a":1,"\\u0061":', b'","', b'a","a', b'","a"',
    b'"a","', b'a","b"', b'b","\\u0062"', b'{"a"', b'["a"', b'"b":1}', "é".encode(), b'a","\xc3', b'":1,"\xc3', b'": 1,\n "a"',
]  # fmt: skip
VOCABULARY = mw.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), *PIECES, None], eos_ids=[256 + len(PIECES)]
)
INTEGERS = {"type": "object", "additionalProperties": {"const": 1}}

SCHEMAS: list[tuple[dict[str, Any], dict[str, str]]] = [
    (INTEGERS, {}),
    ({**INTEGERS, "minProperties": 2, "maxProperties": 3}, {}),
    ({**INTEGERS, "properties": {"a": {"const": 1}, "b": {"const": 1}}}, {}),
    (
        {**INTEGERS, "properties": {"a": {"const": 1}, "b": {"const": 1}}, "required": ["b"]},
        {"property_order": "any"},
    ),
    (
        {"type": "object", "patternProperties": {"^[ab]{1,2}$": {"const": 1}}, "additionalProperties": False},
        {},
    ),
    ({**INTEGERS, "propertyNames": {"pattern": "^[aé]{0,2}$"}, "minProperties": 3}, {}),
    (
        {**INTEGERS, "propertyNames": {"enum": ["a", "b", "ab"]}, "minProperties": 2},
        {"property_order": "any"},
    ),
    ({"type": "array", "items": {"type": "string"}, "uniqueItems": True}, {}),
    (
        {
            "type": "array",
            "items": {"type": "string", "pattern": "^[abé]{0,2}$"},
            "uniqueItems": True,
            "minItems": 4,
        },
        {},
    ),
    ({"type": "array", "items": {"enum": [*"abcdefghijklm"]}, "uniqueItems": True, "minItems": 12}, {}),
]


def compiled(schema: dict[str, Any], options: dict[str, str], escapes: Any = "any") -> mw.CompiledGrammar:
    return mw.compile_json_schema(schema, VOCABULARY, whitespace="compact", escapes=escapes, **options)


def accepts(schema: dict[str, Any], text: str, **options: str) -> bool:
    matcher = mw.compile_json_schema(schema, VOCABULARY, escapes="any", **options).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def different(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), f"a key comes twice: {pairs}"
    return dict(pairs)


@pytest.mark.parametrize("escapes", ["printed", "any"])
@pytest.mark.parametrize(("schema", "options"), SCHEMAS)
def test_masks_are_what_can_be_read(schema: dict[str, Any], options: dict[str, str], escapes: str) -> None:
    rng = random.Random(1)
    mask = np.zeros((VOCABULARY.vocab_size + 31) // 32, dtype=np.int32)
    for _ in range(12):
        matcher = compiled(schema, options, escapes).matcher()
        for _ in range(rng.randrange(40)):
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(VOCABULARY.vocab_size) if mask[i // 32] >> (i % 32) & 1]
            for token, data in enumerate(VOCABULARY.tokens[:-1]):
                # A token is its bytes, read one by one.
                assert matcher.fork().accept_bytes(data) == (token in allowed), data
            assert allowed
            pieces = [
                i for i in allowed if 256 <= i < VOCABULARY.vocab_size - 1 or (i < 256 and i in b'ab",:1}]')
            ]
            token = rng.choice(pieces or allowed)
            if token == VOCABULARY.vocab_size - 1:
                break
            assert matcher.accept_token(token)
        ids = matcher.accepted_tokens
        text = VOCABULARY.decode(i for i in ids if i >= 0) + matcher.shortest_completion_bytes()
        value = json.loads(text, object_pairs_hook=different)
        if isinstance(value, list):
            assert len(set(value)) == len(value)
        assert len(value) >= schema.get("minProperties", schema.get("minItems", 0))


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("{}", True),
        ('{"a":1,"b":1,"aa":1,"":1}', True),
        ('{"a":1,"a":1}', False),
        ('{"a":1,"\\u0061":1}', False),
        ('{"a":1,"b":1,"a":1}', False),
        ('{"\\u00e9":1,"é":1}', False),
        ('{"\\ud83d\\ude00":1,"😀":1}', False),
        ('{"\\/":1,"/":1}', False),
        ('{"":1,"":1}', False),
    ],
)
def test_keys(text: str, good: bool) -> None:
    assert accepts(INTEGERS, text) == good


@pytest.mark.parametrize(
    ("pattern", "begun", "good"),
    [
        # Many keys are left, but only one begins like this.
        ("^(x|[^p-\x7f].*)$", '{"\\u007', True),
        ("^(x|[^p-\x7f].*)$", '{"x":1,"\\u007', False),
        ("^(x|[^p-\x7f].*)$", '{"x":1,"\\u006', True),
        ("^[ab]{1,2}$", '{"a":1,"b":1,"aa":1,"ab":1,"ba":1,"', True),
        ("^[ab]{1,2}$", '{"a":1,"b":1,"aa":1,"ab":1,"ba":1,"a', False),
        ("^[ab]{1,2}$", '{"a":1,"b":1,"aa":1,"ab":1,"ba":1,"bb":1,', False),
        ("^[ab]{1,4000}$", '{"a":1,"b":1,"aa":1,"ab":1,"ba":1,"bb":1,"a', True),
        ("^(a|b+)$", '{"a":1,"b":1,"bb":1,"', True),
    ],
)
def test_whether_a_key_is_left(pattern: str, begun: str, good: bool) -> None:
    schema = {"type": "object", "patternProperties": {pattern: True}, "additionalProperties": False}
    matcher = compiled(schema, {}).matcher()
    assert matcher.accept_bytes(begun.encode()) == good
    if good:
        assert jsonschema.Draft202012Validator(schema).is_valid(
            json.loads(begun.encode() + matcher.shortest_completion_bytes())
        )


def test_few_strings_are_looked_for_where_a_language_has_a_long_period() -> None:
    periods = "|".join(f"(?:{'a' * period})*" for period in (2, 3, 5, 7, 11, 13, 17, 19))
    items = {"type": "string", "pattern": f"^(?:{periods})$"}
    schema = {"type": "array", "items": items, "uniqueItems": True}
    matcher = mw.compile_json_schema(schema, VOCABULARY, whitespace="compact").matcher()
    assert matcher.accept_bytes(b'["","aa","aaa","')
    assert matcher.shortest_completion_bytes() == b'aaaa"]'


def test_equal_keys_of_different_objects() -> None:
    schema = {"type": "object", "additionalProperties": {"$ref": "#"}}
    assert accepts(schema, '{"a":{"a":{},"b":{}},"b":{"a":{}}}')
    assert not accepts(schema, '{"a":{"a":{},"a":{}}}')
    assert not accepts(schema, '{"a":{"b":{}},"a":{}}')


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ('{"b":1,"a":1}', True),
        ('{"z":1,"b":1,"y":1,"a":1}', True),
        ('{"a":1}', False),
        ('{"b":1,"b":1}', False),
        ('{"a":1,"b":1,"a":1}', False),
        ('{"z":1,"b":1,"z":1}', False),
    ],
)
def test_members_in_any_order(text: str, good: bool) -> None:
    schema = {**INTEGERS, "properties": {"a": {"const": 1}, "b": {"const": 1}}, "required": ["b"]}
    assert accepts(schema, text, property_order="any") == good


@pytest.mark.parametrize("text", ["[[4,", '[["a",4', "[[4]", "[null,[{},56", "[[1,2],[3,", "[[true,-"])
def test_different_items_inside_equal_ones(text: str) -> None:
    """A number that repeats one of an array of different items is nothing to look for."""
    schema = {"not": {"uniqueItems": True}, "items": {"uniqueItems": True}}
    matcher = mw.compile_json_schema(schema, VOCABULARY).matcher()
    assert matcher.accept_bytes(text.encode())
    completed = text.encode() + matcher.shortest_completion_bytes()
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(completed))


@pytest.mark.parametrize("length", [1, 3, 6])
@pytest.mark.parametrize(
    "text",
    [
        "[",
        '["',
        '["a',
        '["abcdefghi","',
        '["abcdefghi","x',
        '["abcdefghi","abcd',
        '["\\ud83d',
        '["abcdefghi",{"',
    ],
)
def test_equal_items_that_are_far_away(text: str, length: int) -> None:
    """The first of two equal items is one of very many."""
    schema = {"type": "array", "items": {"minLength": length}, "not": {"uniqueItems": True}}
    matcher = mw.compile_json_schema(schema, VOCABULARY).matcher()
    assert matcher.accept_bytes(text.encode())
    completed = text.encode() + matcher.shortest_completion_bytes()
    assert jsonschema.Draft202012Validator(schema).is_valid(json.loads(completed))
    assert len(completed) < 60


def test_an_array_that_cannot_be_filled() -> None:
    with pytest.raises(mw.UnsatisfiableError):
        compiled(
            {"type": "array", "items": {"enum": [*"abcdefghijkl"]}, "uniqueItems": True, "minItems": 13}, {}
        )
