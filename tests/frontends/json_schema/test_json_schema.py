"""JSON Schemas with texts that they allow and texts that they do not (corpus/*.json)."""

from __future__ import annotations

import gc
import itertools
import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import maskwright as mw
from maskwright.frontends.json_schema import to_grammar
from maskwright.frontends.json_schema.read.nodes import Node, Resource

CASES = [
    pytest.param(case, id=f"{file.stem}: {case['description']}")
    for file in sorted((Path(__file__).parent / "corpus").glob("*.json"))
    for case in json.loads(file.read_text(encoding="utf-8"))
]


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [None], eos_ids=[256])


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    data = text.encode()
    return matcher.accept_tokens(data) == len(data) and matcher.is_accepting


def read(text: str) -> object:
    """The value of a JSON text; integers are exact and integers in every draft, however they are written."""

    def number(written: str) -> int | float:
        value = Decimal(written)
        whole = value.adjusted() < 400 and value == int(value)
        return int(value) if whole else float(value)

    return json.loads(text, parse_float=number)


@pytest.mark.parametrize("case", CASES)
def test_corpus(case, vocabulary):
    # The texts are spelled in every way that JSON has.
    compiled = mw.compile_json_schema(case["schema"], vocabulary, whitespace="flexible", escapes="any")
    wrong = [f"refused {t}" for t in case["accept"] if not accepts(compiled, t)]
    wrong += [f"accepted {t}" for t in case["reject"] if accepts(compiled, t)]
    assert not wrong


@pytest.mark.parametrize("case", CASES)
def test_corpus_agrees_with_an_independent_validator(case):
    for text in case["accept"]:
        jsonschema.validate(read(text), case["schema"])


@pytest.mark.parametrize("case", CASES)
def test_random_walks_end_in_valid_text(case, vocabulary):
    compiled = mw.compile_json_schema(case["schema"], vocabulary)
    mask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    for seed in range(5):
        rng = random.Random(seed)
        matcher = compiled.matcher()
        text = bytearray()
        for _ in range(60):
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(257) if mask[0, i >> 5] >> (i & 31) & 1]
            assert allowed
            # Prefer what moves on over more white space.
            token = rng.choice([i for i in allowed if i not in (32, 9, 13, 10)] or allowed)
            assert matcher.accept_token(token)
            if matcher.is_terminated:
                break
            text.append(token)
        if not matcher.is_terminated:
            completion = matcher.shortest_completion()
            assert matcher.accept_tokens(completion) == len(completion)
            assert matcher.is_accepting
            text += bytes(completion)
        jsonschema.validate(read(text.decode()), case["schema"])


def test_schema_text_and_dict_compile_alike(vocabulary):
    schema = {"type": "array", "items": {"type": "number", "minimum": 0.1}}
    for source in (schema, json.dumps(schema), json.dumps(schema).encode()):
        assert accepts(mw.compile_json_schema(source, vocabulary), "[0.1, 5]")
        assert not accepts(mw.compile_json_schema(source, vocabulary), "[0.09]")


def test_a_required_name_that_cannot_be_written_rules_its_branch_out(vocabulary):
    branch = {"type": "object", "required": ["\ud800"]}
    compiled = mw.compile_json_schema({"anyOf": [{"type": "integer"}, branch]}, vocabulary)
    assert accepts(compiled, "3")
    assert not accepts(compiled, "{}")


def test_compact_whitespace(vocabulary):
    compiled = mw.compile_json_schema({"type": "array"}, vocabulary, whitespace="compact")
    assert accepts(compiled, '[1,{"a":[]}]')
    assert not accepts(compiled, "[1, 2]")


def test_formats_as_annotations(vocabulary):
    schema = {"type": "string", "format": "date"}
    assert accepts(mw.compile_json_schema(schema, vocabulary, formats="annotate"), '"soon"')


def test_white_space_is_bounded(vocabulary):
    compiled = mw.compile_json_schema({"type": "array"}, vocabulary)
    assert accepts(compiled, "[\n" + " " * 64 + "1]")
    assert not accepts(compiled, "[" + "\n" * 9 + "1]")


class TestErrors:
    def test_every_refusal_is_listed_with_its_pointer(self, vocabulary):
        schema = {
            "properties": {"a": {"extends": {}}, "b": {"items": {"disallow": "string"}}},
            "divisibleBy": 2,
            "disallow": [],
        }
        with pytest.raises(mw.UnsupportedSchemaError) as caught:
            mw.compile_json_schema(schema, vocabulary)
        refused = {(r.pointer, r.keyword) for r in caught.value.refusals}
        assert refused == {
            ("", "divisibleBy"),
            ("/properties/a", "extends"),
            ("/properties/b/items", "disallow"),
        }

    @pytest.mark.parametrize(
        ("schema", "place", "words"),
        [
            ('{"type": }', "1:10", "malformed JSON"),
            ("schema.json", "1:1", "Expecting value; the text begins with 'schema.json'"),
            ('{"a": NaN}', None, "NaN"),
            ("[1]", "#", "an object or a boolean"),
            (3, "#", "an object or a boolean"),
            ({"type": "strnig"}, "/type", "one of"),
            ({"properties": {"a": 3}}, "/properties", "object of schemas"),
            ({"items": {"minItems": -1}}, "/items/minItems", "non-negative"),
            ({"required": "a"}, "/required", "list of member names"),
            ({"$ref": "#/$defs/missing"}, "/$ref", "missing"),
            ({"$ref": "http://example.com/x.json"}, "/$ref", "never fetched"),
            ({"not": {"$ref": "#"}}, "#", "refers to itself"),
            ({"$ref": "#", "unevaluatedItems": False}, "#", "refers to itself"),
            ({"type": "string", "pattern": "("}, "/pattern", "in the regular expression at 1:"),
            ({"enum": [float("nan")]}, None, "not a JSON value"),
        ],
    )
    def test_malformed_schemas(self, schema, place, words, vocabulary):
        with pytest.raises(mw.GrammarError) as caught:
            mw.compile_json_schema(schema, vocabulary)
        assert words in str(caught.value)
        if place is not None:
            assert caught.value.place == place

    @pytest.mark.parametrize(
        ("schema", "words"),
        [
            (False, "false"),
            ({"$ref": "#"}, "refers to itself without a member"),
            ({"type": "string", "minLength": 3, "maxLength": 2}, "minLength 3 and maxLength 2"),
            ({"type": "integer", "allOf": [{"type": "string"}]}, "string"),
            ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "exclusiveMaximum 2"),
            ({"enum": []}, ""),
            ({"type": "array", "minItems": 1, "items": False}, ""),
            (
                {
                    "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "minItems": 1}},
                    "$ref": "#/$defs/a",
                },
                "itself",
            ),
            ({"type": "object", "required": ["a"], "properties": {"a": False}}, ""),
        ],
    )
    def test_unsatisfiable_schemas(self, schema, words, vocabulary):
        with pytest.raises(mw.UnsatisfiableError) as caught:
            mw.compile_json_schema(schema, vocabulary)
        assert words in str(caught.value)

    def test_deep_nesting_is_a_limit_not_a_crash(self, vocabulary):
        schema: object = {}
        for _ in range(5000):
            schema = {"items": schema}
        with pytest.raises(mw.LimitError, match="max_depth"):
            mw.compile_json_schema(schema, vocabulary)
        with pytest.raises(mw.MaskwrightError):
            mw.compile_json_schema("[" * 100_000, vocabulary)

    def test_deep_chains_of_references_are_a_limit(self, vocabulary):
        defs = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(1000)}
        defs["d1000"] = {}
        with pytest.raises(mw.LimitError, match="max_depth"):
            mw.compile_json_schema({"$defs": defs, "$ref": "#/$defs/d0"}, vocabulary)

    def test_branches_multiplied_out_are_a_limit(self, vocabulary):
        pair = [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]
        schema = {
            "type": "object",
            "allOf": [
                {"anyOf": [{"properties": {f"p{i}": {"const": v}}} for v in range(2)]} for i in range(20)
            ],
            "anyOf": pair,
        }
        with pytest.raises(mw.LimitError, match="max_schema_branches"):
            mw.compile_json_schema(schema, vocabulary)

    def test_unknown_options(self, vocabulary):
        with pytest.raises(mw.GrammarError, match="whitespace"):
            mw.compile_json_schema({}, vocabulary, whitespace="lots")


class TestReport:
    def test_a_good_schema(self):
        assert mw.check_json_schema({"type": "integer"}).ok

    def test_findings_have_codes_and_places(self):
        report = mw.check_json_schema(
            {
                "properties": {
                    "a": {"extends": {}},
                    "b": {"type": "string", "format": "starship", "requierd": []},
                }
            }
        )
        assert not report.ok
        found = {(f.severity, f.code, f.place) for f in report.findings}
        assert found == {
            ("error", "unsupported", "/properties/a"),
            ("note", "format-annotation", "/properties/b"),
            ("note", "unknown-keyword", "/properties/b"),
        }

    @pytest.mark.parametrize(
        ("schema", "code"),
        [("{", "malformed"), ({"type": "x"}, "malformed"), ({"enum": []}, "unsatisfiable")],
    )
    def test_errors(self, schema, code):
        (finding,) = mw.check_json_schema(schema).findings
        assert (finding.severity, finding.code) == ("error", code)


SELF_REFERRING = {
    "root": {"anyOf": [{"type": "string"}, {"allOf": [{"$ref": "#/$defs/t"}, {"maximum": 5}]}]},
    "t": {
        "oneOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/t"}}],
        "anyOf": [{}, {"$ref": "#/$defs/root"}],
    },
    "u": {"anyOf": [{"const": 1}, {"$ref": "#/$defs/w"}]},
    "v": {"anyOf": [{"const": 2}, {"$ref": "#/$defs/u"}]},
    "w": {"anyOf": [{"const": 3}, {"$ref": "#/$defs/v"}]},
    "x": {"allOf": [{"type": "object"}, {"$ref": "#/$defs/x"}]},
    "y": {
        "properties": {
            "a": {"$ref": "#/$defs/y"},
            "b": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/x"}]},
        }
    },
}


@pytest.mark.parametrize(
    ("root", "good", "bad"),
    [
        ("root", ["a", 5, [7, [8]]], [6, None, [None]]),
        ("t", [6, [7, []]], ["a", None, ["a"]]),
        *((name, [1, 2, 3], [0, 4, None]) for name in "uvw"),
        ("y", [{}, {"a": {"a": {"b": None}}}, {"b": None}], [{"b": {}}, {"a": {"b": 1}}]),
    ],
)
def test_a_subschema_contributes_nothing_to_itself(root, good, bad, vocabulary):
    # Each of these is what a validator says that gets to an end, and stops at the first branch that holds.
    compiled = mw.compile_json_schema({"$ref": f"#/$defs/{root}", "$defs": SELF_REFERRING}, vocabulary)
    for value in good:
        assert accepts(compiled, json.dumps(value)), value
    for value in bad:
        assert not accepts(compiled, json.dumps(value)), value


def test_mutual_references_without_end_are_refused_soon(vocabulary):
    names = [f"s{i}" for i in range(40)]
    anything = {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in names]}
    schema = {
        "$ref": "#/$defs/s0",
        "$defs": {name: {**anything, "minItems": i} for i, name in enumerate(names)},
    }
    with pytest.raises(mw.GrammarError, match="refers to itself"):
        mw.compile_json_schema(schema, vocabulary)
    with pytest.raises(mw.UnsatisfiableError, match="refers to itself"):
        mw.compile_json_schema({"$ref": "#/$defs/s0", "$defs": dict.fromkeys(names, anything)}, vocabulary)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_members_that_reach_several_goals(most, vocabulary):
    # Eight kinds of members, told apart by three letters; each letter must be in some name.
    schema = {
        "allOf": [{"not": {"patternProperties": {letter: False}}} for letter in "cdf"],
        "patternProperties": {"^.{1,3}$": False, "x": {"type": "null"}},
        "maxProperties": most,
        "type": "object",
    }
    compiled = mw.compile_json_schema(schema, vocabulary)
    validator = jsonschema.Draft202012Validator(schema)
    names = ["cdf.", "cd..", "df..", "c...", "f..x", "....", "fcdx"]
    for chosen in itertools.product([*names, None], repeat=3):
        value = {name: None for name in chosen if name is not None}
        assert accepts(compiled, json.dumps(value)) is validator.is_valid(value), value


def test_exclusive_alternatives_with_one_member_each_are_no_goals(vocabulary):
    names = [f"k{i}" for i in range(40)]
    branches = [{"properties": {name: {"required": ["path"]}}, "required": [name]} for name in names]
    schema = {
        "type": "object",
        "properties": dict.fromkeys(names, True),
        "additionalProperties": False,
        "oneOf": branches,
    }
    compiled = mw.compile_json_schema(schema, vocabulary)
    assert accepts(compiled, '{"k7": {"path": 1}}')
    assert accepts(compiled, '{"k7": {"path": 1}, "k9": {}}')
    assert accepts(compiled, '{"k1": {}, "k7": {"path": 1}, "k9": {}}')
    assert not accepts(compiled, '{"k7": {"path": 1}, "k9": {"path": 1}}')
    assert not accepts(compiled, '{"k7": {}}')
    # An object without a path is what only a string would be, and strings satisfy `required`.
    assert not accepts(compiled, '{"k7": {"path": 1}, "k9": ""}')


@pytest.mark.parametrize(
    "schema",
    [
        {"patternProperties": {"^[ab]$": True}, "additionalProperties": False},
        {"propertyNames": {"enum": ["b", "a"]}},
    ],
)
def test_undeclared_members_come_in_any_order(vocabulary: mw.Vocabulary, schema: dict[str, object]) -> None:
    compiled = mw.compile_json_schema({"type": "object", **schema}, vocabulary)
    for text, good in (
        ('{"a":1,"b":2}', True),
        ('{"b":1,"a":2}', True),
        ('{"b":1}', True),
        ('{"b":1,"b":2}', False),
        ('{"b":1,"c":2}', False),
    ):
        assert accepts(compiled, text) == good, text


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": False, "c": False}, "propertyNames": {"enum": ["a", "c"]}},
        {"properties": {"a": False}, "patternProperties": {"^a$": True}, "propertyNames": {"pattern": "^a$"}},
    ],
)
def test_declared_names_may_be_all_names(vocabulary: mw.Vocabulary, schema: dict[str, object]) -> None:
    # No key is left for members that are not declared.
    compiled = mw.compile_json_schema({"type": "object", **schema}, vocabulary)
    assert compiled.matcher().shortest_completion_bytes() == b"{}"
    assert accepts(compiled, "{ }") and not accepts(compiled, '{"a":1}')
    with pytest.raises(mw.UnsatisfiableError):
        mw.compile_json_schema({"type": "object", "minProperties": 1, **schema}, vocabulary)


def test_keys_that_no_value_may_follow_never_begin(vocabulary: mw.Vocabulary) -> None:
    """Every rule of this schema has a text, but no value is left for undeclared members."""
    schema = {
        "type": "object",
        "propertyNames": {"pattern": "^a"},
        "unevaluatedProperties": {"const": 1},
        "oneOf": [
            {"patternProperties": {"^a": True}, "required": ["a"]},
            {"not": {"additionalProperties": True, "patternProperties": {"^a": {"const": "a"}}}},
            {"not": {"required": ["a"], "maxProperties": 0}},
        ],
    }
    compiled = mw.compile_json_schema(schema, vocabulary)
    assert compiled.matcher().accept_bytes(b"{}")
    assert not compiled.matcher().accept_bytes(b'{"a')


@pytest.mark.parametrize(
    "schema",
    [
        {"$defs": {"node": {"properties": {"next": {"$ref": "#/$defs/node"}}}}, "$ref": "#/$defs/node"},
        {"$defs": {"in": {"$id": "http://a.b/c", "type": "null"}}, "$ref": "http://a.b/c"},
    ],
)
def test_nothing_waits_for_the_collector(schema: Any) -> None:
    """Places refer to their document, and the document to where its references lead."""

    def places() -> int:
        return sum(isinstance(each, (Node, Resource)) for each in gc.get_objects())

    to_grammar(schema)
    gc.collect()
    gc.disable()
    try:
        before = places()
        to_grammar(schema)
        assert places() == before
    finally:
        gc.enable()
