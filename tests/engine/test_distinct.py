"""``uniqueItems`` of any items: exact masks, no dead ends, the equality of JSON Schema."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import jsonschema
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schema_strategies import serialisations

import maskwright as mw
from maskwright.ir.grammar import FAIL, Choice, Distinct, Grammar, Lexeme, Ref, Seq, Term
from maskwright.limits import Limits
from maskwright.regular.expressions import Lit, alt

# Tokens that end one item and begin, or end, the next one.
PIECES = [
    b'","', b'a","a', b'"a","', b"true,", b"false,true", b",1", b"1,2", b"],[", b"],[1", b"},{", b'"},{"a":', b'": true',
    b"1.0,", b"[1]", b"],", b"]]", b'"a"', b", ", b",\n ", b"[[", b'{"a":', b'{"a":true,"b":', b'"a": ', b"\xc3", b'\xc3\xa9"',
    b'b","b"', b'a","a"', b'b","b"]', b'a","ab', b'","a","a"', b'","b","', b'"},{"a":"', b'a"},{"a":"a"}', b'"],["a"],["', b'":"a"},{"',
]  # fmt: skip
VOCABULARY = mw.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), *PIECES, None], eos_ids=[256 + len(PIECES)]
)
EOS = VOCABULARY.vocab_size - 1
UNIQUE: dict[str, Any] = {"type": "array", "uniqueItems": True}
REPEATED = {"type": "array", "not": {"uniqueItems": True}}
BOOLEAN = {"type": "boolean"}
LETTERS = {"type": "string", "maxLength": 2}
LOOP = {"type": "array", "items": {"$ref": "#/$defs/loop"}, "minItems": 1}
TWO_BOOLEANS = {"type": "object", "properties": {"a": BOOLEAN, "b": BOOLEAN}}

SCHEMAS: list[dict[str, Any]] = [
    UNIQUE,
    {**UNIQUE, "items": BOOLEAN},
    {**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 3}, "minItems": 3},
    {**UNIQUE, "items": {**TWO_BOOLEANS, "required": ["a", "b"], "additionalProperties": False}},
    {**UNIQUE, "items": TWO_BOOLEANS},
    {**UNIQUE, "items": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 1}, "maxItems": 2}},
    {**UNIQUE, "prefixItems": [{"enum": [1, True]}, {"enum": [1, 2]}, {"enum": [2, True, "a"]}], "minItems": 3},
    {**UNIQUE, "prefixItems": [{"type": "string", "maxLength": 1}, {"const": "a"}], "minItems": 2},
    {**UNIQUE, "items": {**UNIQUE, "items": BOOLEAN}},
    {**UNIQUE, "items": {**UNIQUE, "items": {"type": ["boolean", "array"], **UNIQUE, "maxItems": 1}}, "maxItems": 2},
    {"anyOf": [{**UNIQUE, "items": BOOLEAN}, {"type": "array", "items": BOOLEAN, "minItems": 3}]},
    {"type": "array", "items": {"anyOf": [{**UNIQUE, "items": {"enum": [1, 2]}}, {"type": "string", "maxLength": 1}]}},
    {**UNIQUE, "items": {"type": ["number", "string"]}},
    {**UNIQUE, "items": {"type": "number"}, "minItems": 2},
    {**UNIQUE, "contains": {"const": 5}, "items": {"type": "integer"}, "maxContains": 1},
    {**UNIQUE, "contains": {"enum": [1, 2]}, "minContains": 2, "items": {"type": "integer"}, "maxItems": 3},
    {**UNIQUE, "items": {"enum": [0, False, None, "", [], {}, [0], [False], 1, 1.5, "a"]}, "minItems": 9},
    {**UNIQUE, "items": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2}},
    {**UNIQUE, "items": {**UNIQUE, "items": {"type": "string"}}, "minItems": 1},
    {**UNIQUE, "items": {"type": "string"}},
    {**UNIQUE, "items": {"enum": ["a", "b", "ab", "aab"]}},
    {**UNIQUE, "items": {"type": "string", "pattern": "^(a|b)*$"}},
    {**UNIQUE, "items": {"type": "object", "properties": {"a": {"type": "string"}}}},
    {**UNIQUE, "items": {"type": "object", "additionalProperties": {"enum": ["a", "b"]}}},
    {**UNIQUE, "items": {"type": "array", "items": {"type": "string"}}},
    {**UNIQUE, "items": {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 1}},
    REPEATED,
    {**REPEATED, "items": {"type": "integer", "minimum": 0, "maximum": 20}, "maxItems": 3},
    {**REPEATED, "items": {**REPEATED, "items": {"enum": [0, "a"]}}},
    {**REPEATED, "prefixItems": [{"enum": [1, "a"]}, {"enum": ["a", 2, []]}], "items": {"const": 2}, "maxItems": 3},
    {**UNIQUE, "items": {**REPEATED, "items": {"enum": [0, 1]}, "maxItems": 2}},
    {**REPEATED, "items": {**UNIQUE, "items": {"enum": [0, 1]}}, "maxItems": 2},
    {**REPEATED, "prefixItems": [{"const": True}]},
    {**REPEATED, "maxItems": 4},
    {**REPEATED, "prefixItems": [{"type": "string"}], "maxItems": 3},
    {**REPEATED, "prefixItems": [LETTERS, {"type": "number"}, {"type": "string"}], "maxItems": 3},
    {**REPEATED, "prefixItems": [BOOLEAN, BOOLEAN], "items": {"$ref": "#/$defs/loop"}, "$defs": {"loop": LOOP}},
    {**REPEATED, "contains": {"const": "a"}},
    {**REPEATED, "contains": {"type": "array", "items": BOOLEAN}, "minContains": 2, "maxItems": 3, "items": {"type": ["array", "boolean"]}},
    {**REPEATED, "items": {"type": "array", "items": {"type": "string"}, "minItems": 1}, "maxItems": 2},
    {**REPEATED, "items": {**REPEATED, "items": {"type": ["string", "boolean"]}, "maxItems": 3}, "maxItems": 2},
    {"oneOf": [UNIQUE, {"type": "array", "items": {"enum": [0, 1]}}]},
    {"oneOf": [{"maxItems": 1}, {"uniqueItems": True, "contains": True}]},
    # Kinds of items with many values: none can run out, however many items came before.
    {**UNIQUE, "contains": {"type": "object"}, "minContains": 2},
    {"oneOf": [True, {"unevaluatedItems": False, "uniqueItems": True}, {"enum": [[None]]}]},
]  # fmt: skip
OPTIONS: tuple[dict[str, Any], ...] = (
    {"whitespace": "compact"},
    {"whitespace": "flexible", "escapes": "any", "property_order": "any"},
    {"whitespace": "printed"},
    {"whitespace": 1},
)
SOME_OPTIONS = [
    *OPTIONS[:2],
    *(pytest.param(options, marks=[pytest.mark.slow, pytest.mark.sanitized]) for options in OPTIONS[2:]),
]


def accepts(schema: Any, text: str, **options: str) -> bool:
    matcher = mw.compile_json_schema(schema, VOCABULARY, escapes="any", **options).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def tokens(matcher: mw.Matcher) -> list[int]:
    mask = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    matcher.fill_next_token_bitmask(mask)
    return np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()


def reads(matcher: mw.Matcher, data: bytes) -> bool:
    matcher = matcher.fork()
    return all(matcher.accept_bytes(bytes([byte])) for byte in data)


def choose(rng: random.Random, allowed: list[int]) -> int:
    return rng.choice([i for i in allowed if i >= 256 or i in b'ab",:1023[]{}tf.e\\u\n '] or allowed)


def finished(matcher: mw.Matcher) -> bytes:
    """The text and the way out, which can be read."""
    text = VOCABULARY.decode(i for i in matcher.accepted_tokens if i >= 0)
    return text if matcher.is_terminated else text + matcher.shortest_completion_bytes()


@pytest.mark.parametrize("options", SOME_OPTIONS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_masks_are_what_can_be_read(schema: dict[str, Any], options: dict[str, Any]) -> None:
    rng = random.Random(1)
    compiled = mw.compile_json_schema(schema, VOCABULARY, **options)
    validator = jsonschema.Draft202012Validator(schema)
    for _ in range(6):
        matcher = compiled.matcher()
        for _ in range(rng.randrange(30)):
            allowed = tokens(matcher)
            assert allowed, f"stuck behind {finished(matcher)!r}"
            for token, data in enumerate(VOCABULARY.tokens[:-1]):
                assert reads(matcher, data) == (token in allowed), (matcher.accepted_tokens, data)
            token = choose(rng, allowed)
            if token == EOS:
                break
            assert matcher.accept_token(token)
        text = finished(matcher)
        assert reads(compiled.matcher(), text)
        assert validator.is_valid(json.loads(text)), text


@pytest.mark.parametrize("options", SOME_OPTIONS)
@pytest.mark.parametrize("schema", SCHEMAS)
def test_walks_never_get_stuck(schema: dict[str, Any], options: dict[str, Any]) -> None:
    rng = random.Random(2)
    compiled = mw.compile_json_schema(schema, VOCABULARY, **options)
    validator = jsonschema.Draft202012Validator(schema)
    for _ in range(20):
        matcher = compiled.matcher()
        for _ in range(60):
            allowed = tokens(matcher)
            assert allowed, f"stuck behind {finished(matcher)!r}"
            token = choose(rng, allowed)
            assert matcher.accept_token(token)
            if token == EOS:
                break
        text = finished(matcher)
        assert validator.is_valid(json.loads(text)), text


def equal(a: Any, b: Any) -> bool:
    """Equality of JSON values (JSON Schema 2020-12 core, section 4.2.2)."""
    if isinstance(a, bool) or isinstance(b, bool) or not isinstance(a, (int, float)):
        if type(a) is not type(b):
            return False
        if isinstance(a, list):
            return len(a) == len(b) and all(map(equal, a, b))
        if isinstance(a, dict):
            return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
        return bool(a == b)
    return isinstance(b, (int, float)) and a == b


def different(items: list[Any]) -> bool:
    return not any(equal(a, b) for a, b in itertools.combinations(items, 2))


small = st.recursive(
    st.sampled_from((None, False, True, 0, 1, -1, 0.5, 10, "", "a", "ab", "é")),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@pytest.mark.slow
@pytest.mark.sanitized
@given(st.lists(small, max_size=4))
@settings(max_examples=300)
def test_any_items(items: list[Any]) -> None:
    for text in serialisations(items, 8):
        assert accepts(UNIQUE, text) == different(items)
        assert accepts(REPEATED, text) != different(items)
        assert accepts({"anyOf": [UNIQUE, {"type": "array", "minItems": 3}]}, text) == (
            different(items) or len(items) >= 3
        )


@given(st.lists(small, max_size=3), st.data())
def test_items_inside_items(items: list[Any], data: Any) -> None:
    nested = {
        **UNIQUE,
        "items": {"anyOf": [{"type": ["array"], "uniqueItems": True}, {"not": {"type": "array"}}]},
    }
    inner = [data.draw(st.lists(small, max_size=3)) if isinstance(item, list) else item for item in items]
    good = different(inner) and all(different(item) for item in inner if isinstance(item, list))
    assert accepts(nested, json.dumps(inner)) == good


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("1", "1.0", True),
        ("1", "1e0", True),
        ("1", "10e-1", True),
        ("1", "0.1E+001", True),
        ("1", "10", False),
        ("0", "-0", True),
        ("0", "0e5", True),
        ("0", "-0.000", True),
        ("100", "1e2", True),
        ("100", "1e02", True),
        ("100", "1e-2", False),
        ("9007199254740992", "9007199254740993", False),
        ("0.1", "0.10000000000000000000001", False),
        ("1e098", "10e97", True),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "false", False),
        ('"1"', "1", False),
        ('"a"', '"\\u0061"', True),
        ('"\\ud83d\\ude00"', '"😀"', True),
        ('"\\/"', '"/"', True),
        ('"\\n"', '"\\u000A"', True),
        ('"a"', '"aa"', False),
        ("[1,2]", "[1.0, 2]", True),
        ("[1,2]", "[2,1]", False),
        ("[1]", "[1,1]", False),
        ("[]", "{}", False),
        ("[[]]", "[[[]]]", False),
        ('{"a":1,"b":[2]}', '{"b":[2.0],"\\u0061":1}', True),
        ('{"a":1}', '{"a":1,"b":1}', False),
        ('{"a":1}', '{"a":true}', False),
        ('{"a":{"b":{}}}', '{ "a" : {"b":{ }}}', True),
    ],
)
def test_equality(a: str, b: str, same: bool) -> None:
    for first, second in ((a, b), (b, a)):
        assert accepts(UNIQUE, f"[{first},{second}]") != same
        assert accepts(UNIQUE, f"[{first}, null, {second}]") != (same or "null" in (a, b))
        # One level down, and in an array that may repeat.
        assert accepts({**UNIQUE, "items": {}}, f"[[{first}],[{second}]]") != same
        assert accepts({"items": UNIQUE}, f"[[{first}],[{second}]]")


@pytest.mark.parametrize(
    "schema",
    [
        {**UNIQUE, "items": BOOLEAN, "minItems": 3},
        {**UNIQUE, "items": {"enum": [1, 1.0, 2]}, "minItems": 3},
        {**UNIQUE, "items": {**TWO_BOOLEANS, "required": ["a", "b"], "additionalProperties": False}, "minItems": 5},
        {**UNIQUE, "prefixItems": [{"enum": [1, 2]}, {"enum": [1, 2]}, {"enum": [2, 1]}], "minItems": 3},
        {**UNIQUE, "contains": {"const": 1}, "minContains": 2},
        {**UNIQUE, "minItems": 2, "items": {**UNIQUE, "items": BOOLEAN, "minItems": 3}},
        {"type": "object", "properties": {"a": {**UNIQUE, "items": BOOLEAN, "minItems": 3}}, "required": ["a"]},
        {**REPEATED, "uniqueItems": True},
        {**REPEATED, "maxItems": 1},
        {**REPEATED, "prefixItems": [{"const": 1}, {"const": 2}], "items": False},
        {**REPEATED, "prefixItems": [{"enum": [1, 2]}, {"enum": [3, "a"]}], "items": {"const": 4}, "maxItems": 3},
    ],
)  # fmt: skip
def test_arrays_that_cannot_be_filled(schema: dict[str, Any]) -> None:
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema(schema, VOCABULARY)


def test_numbers_that_are_not_written_do_not_count() -> None:
    schema = {**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 99}, "minItems": 10}
    matcher = mw.compile_json_schema(schema, VOCABULARY, max_number_digits=1).matcher()
    assert sorted(json.loads(matcher.shortest_completion_bytes())) == list(range(10))
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema({**schema, "minItems": 11}, VOCABULARY, max_number_digits=1)


def test_an_optional_array_that_cannot_be_filled() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {**UNIQUE, "items": BOOLEAN, "minItems": 3}, "b": BOOLEAN},
    }
    compiled = mw.compile_json_schema(schema, VOCABULARY, whitespace="compact")
    assert reads(compiled.matcher(), b'{"b":true}')
    assert not reads(compiled.matcher(), b'{"a":')


def test_all_values_are_used() -> None:
    compiled = mw.compile_json_schema(
        {**UNIQUE, "items": {"type": "integer", "minimum": 0, "maximum": 30}, "minItems": 31}, VOCABULARY
    )
    matcher = compiled.matcher()
    items = json.loads(matcher.shortest_completion_bytes())
    assert sorted(items) == list(range(31))
    assert matcher.accept_bytes(b"[" + b",".join(b"%d" % i for i in range(30)))
    assert matcher.forced_bytes() == b""
    assert not reads(matcher, b"]") and reads(matcher, b",30]") and not reads(matcher, b",29")


@pytest.mark.parametrize(
    ("source", "text"), [("either", b"[1,"), ("before", b"1[1,"), ("either", b"["), ("before", b"")]
)
def test_a_completion_completes_beside_another_reading(source: str, text: bytes) -> None:
    items = {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2]}}
    array = mw.JsonSchema(items, whitespace="compact")
    either = array | mw.Regex(r"\[1,1\]x") if source == "either" else mw.Regex(".*1") + array
    matcher = mw.compile(either, VOCABULARY).matcher()
    assert matcher.accept_bytes(text)
    assert matcher.accept_bytes(matcher.shortest_completion_bytes()) and matcher.is_accepting


def test_a_completion_gets_around_what_came_before() -> None:
    schema = {**UNIQUE, "items": {"type": "string", "pattern": "^a*b?$"}, "prefixItems": [{}], "minItems": 6}
    matcher = mw.compile_json_schema(schema, VOCABULARY, whitespace="compact").matcher()
    assert matcher.accept_bytes(b'["",')
    items = json.loads(b'["",' + matcher.shortest_completion_bytes())
    assert len(items) >= 6 and different(items)


def test_order_of_items_does_not_make_states() -> None:
    compiled = mw.compile_json_schema({**UNIQUE, "items": {"type": "integer"}}, VOCABULARY)
    a, b, c = (compiled.matcher() for _ in range(3))
    assert a.accept_bytes(b"[1,20,3,") and b.accept_bytes(b"[3.0, 1,2e1,") and c.accept_bytes(b"[3,1,2,")
    assert a.state_id != c.state_id
    a.accept_bytes(b" "), b.accept_bytes(b" ")
    assert a.state_id == b.state_id


def test_nothing_is_tracked_outside() -> None:
    schema = {"type": "object", "properties": {"a": {**UNIQUE, "items": {"type": "integer"}}, "b": {}}}
    compiled = mw.compile_json_schema(schema, VOCABULARY)
    a, b = compiled.matcher(), compiled.matcher()
    assert a.accept_bytes(b'{"a":[1,2],') and b.accept_bytes(b'{"a":[7],')
    assert a.state_id == b.state_id


def test_places_that_differ_anyway() -> None:
    # Each place would be counted for itself: with three hundred, for longer than a compile may take.
    items = [*range(300), "1", [1], [2], {"a": 1}, {"a": 2}, None, True, 0.5]
    schemas: list[dict[str, Any]] = [
        {"const": items},
        {"type": "array", "prefixItems": [{"const": item} for item in items], "items": False, "minItems": 3},
        {"enum": [items, [1, 1], [1, 2]]},
    ]
    for schema in schemas:
        assert accepts({"uniqueItems": True, **schema}, json.dumps(items))
        assert not accepts({"uniqueItems": True, **schema}, "[1,1]")
    few = {
        "prefixItems": [{"enum": [1, 2]}, {"enum": [3, 2.0]}, {"enum": [4]}],
        "items": False,
        "uniqueItems": True,
    }
    assert accepts(few, "[2,3,4]")
    assert not accepts(few, "[2,2.0,4]")
    assert not accepts(few, "[2,2,4]")


def test_forks_and_steps_back() -> None:
    matcher = mw.compile_json_schema({**UNIQUE, "items": {"type": "integer"}}, VOCABULARY).matcher()
    assert matcher.accept_bytes(b"[1,") and matcher.accept_bytes(b"2,")
    fork = matcher.fork()
    assert not fork.accept_bytes(b"1]") and fork.accept_bytes(b"3]")
    matcher.rollback(1)
    assert not matcher.accept_bytes(b"1,") and matcher.accept_bytes(b"2]")


def test_arrays_that_need_themselves() -> None:
    # [x, y] of such values: null is the only one that is finite, so there are no two.
    pair = {**UNIQUE, "items": {"$ref": "#"}, "minItems": 2, "maxItems": 2}
    matcher = mw.compile_json_schema({"anyOf": [{"type": "null"}, pair]}, VOCABULARY).matcher()
    assert matcher.forced_bytes() == b"null"
    matcher = mw.compile_json_schema({"anyOf": [{"type": "boolean"}, pair]}, VOCABULARY).matcher()
    assert reads(matcher, b"[true, [false,true]]") and not reads(matcher, b"[true,[false,false")


def test_a_search_has_a_limit() -> None:
    # However long the first string is, the other items are equal.
    one = {
        "type": "array",
        "items": {"type": "integer", "minimum": 1, "maximum": 1},
        "minItems": 1,
        "maxItems": 1,
    }
    schema = {
        **UNIQUE,
        "prefixItems": [{"type": "string"}, one, one],
        "minItems": 3,
    }
    with pytest.raises(mw.LimitError, match="max_search"):
        mw.compile_json_schema(schema, VOCABULARY, limits=Limits(max_search=1000))


def test_an_array_begins_with_a_term() -> None:
    grammar = Grammar()
    text = Term(Lexeme("a", alt(Lit("[1]"), Lit("[2]"))))
    inner = grammar.add("inner", text)
    grammar.start = grammar.add("start", Distinct(Choice((Ref(inner), Seq((text,))))))
    with pytest.raises(mw.GrammarError, match="begin with a term"):
        mw.compile_grammar(grammar, VOCABULARY)


def test_an_alternative_without_an_end_never_begins() -> None:
    grammar = Grammar()
    array, dead = Term(Lexeme("a", Lit("[1]"))), Seq((Term(Lexeme("b", Lit("<"))), FAIL))
    grammar.start = grammar.add("start", Distinct(Choice((Seq((array,)), dead)), 0))
    matcher = mw.compile_grammar(grammar, VOCABULARY).matcher()
    assert not matcher.accept_bytes(b"<")
    assert matcher.accept_bytes(b"[1]") and matcher.is_accepting
