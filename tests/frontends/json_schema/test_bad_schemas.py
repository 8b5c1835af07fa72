"""Schemas that are wrong, endless or enormous: a typed error with its place, or a grammar, in bounded time.

Everything runs with few seconds in ``Limits``; the tests assert how it ends, not how soon.  What once overflowed a
stack or never ended runs in a process of its own.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from collections.abc import Callable
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import pytest
from places import ROOT
from toys import byte_vocabulary

import maskwright as mw
from maskwright.limits import LIMIT_NAMES, Limits

BYTES = byte_vocabulary()
SOURCES = ROOT / "src"
HURRIED = Limits(max_seconds=0.5)
PATIENT = Limits(max_seconds=20)
"""For what takes milliseconds, also on a busy machine."""
WORK = {
    "max_seconds",
    "max_schema_branches",
    "max_regex_states",
    "max_rules",
    "max_object_obligations",
    "max_member_ways",
}
"""Limits of which any may be the first that a large schema reaches."""


def outcome(schema: Any, limits: Limits = PATIENT, **options: Any) -> mw.MaskwrightError | None:
    """The error of compiling; checking agrees about its kind where both do the same work."""
    try:
        mw.compile_json_schema(schema, BYTES, limits=limits, **options)
        error = None
    except mw.MaskwrightError as caught:
        error = caught
    report = mw.check_json_schema(schema, limits=limits)
    if not isinstance(error, mw.LimitError):
        assert report.ok == (error is None) or report.findings[0].code == "limit"
    return error


def assert_bounded(schema: Any) -> None:
    error = outcome(schema, HURRIED)
    assert error is None or (isinstance(error, mw.LimitError) and error.limit in WORK), error


def assert_limit(schema: Any, limit: str, place: str | None = None) -> None:
    error = outcome(schema)
    assert isinstance(error, mw.LimitError), error
    assert error.limit == limit and limit in LIMIT_NAMES
    if place is not None:
        assert error.place == place


def assert_malformed(schema: Any, place: str | None, message: str) -> None:
    error = outcome(schema)
    assert isinstance(error, mw.GrammarError), error
    assert error.place == place and message in str(error)


def tree(keywords: list[str], depth: int, width: int, names: Any = None) -> dict[str, Any]:
    """Applicators inside each other, with different objects as leaves."""
    names = itertools.count() if names is None else names
    if depth == 0:
        return {"properties": {f"p{next(names)}": {"type": "integer"}}, "required": [f"p{next(names)}"]}
    keyword = keywords[depth % len(keywords)]
    if keyword == "not":
        return {"not": tree(keywords, depth - 1, width, names)}
    return {keyword: [tree(keywords, depth - 1, width, names) for _ in range(width)]}


class TestExponential:
    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("keywords", "depth", "width"),
        [
            (["allOf", "anyOf"], 8, 3),
            (["anyOf", "oneOf"], 6, 4),
            (["oneOf"], 4, 5),
            (["not", "anyOf"], 12, 3),
            (["not", "oneOf"], 10, 3),
            (["not", "allOf", "anyOf"], 9, 3),
            (["not", "allOf", "oneOf"], 6, 4),
        ],
    )
    def test_nests(self, keywords: list[str], depth: int, width: int) -> None:
        assert_bounded(tree(keywords, depth, width))
        assert_bounded({"items": {"not": tree(keywords, depth, width)}})

    @pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
    def test_products(self, keyword: str) -> None:
        def choice(i: int) -> dict[str, Any]:
            return {
                keyword: [
                    {"properties": {f"a{i}{j}": {"const": j}}, "required": [f"a{i}{j}"]} for j in range(3)
                ]
            }

        assert_bounded({"allOf": [choice(i) for i in range(20)]})
        assert_bounded({"properties": {"a": {"allOf": [choice(i) for i in range(20)]}}})

    def test_conditions(self) -> None:
        conditions = [
            {"if": {"properties": {f"a{i}": {"const": 1}}}, "then": {"required": [f"b{i}"]}}
            for i in range(40)
        ]
        assert_bounded({"allOf": conditions})
        assert_bounded({"dependentSchemas": {f"a{i}": {"required": [f"b{i}"]} for i in range(40)}})

    def test_unevaluated(self) -> None:
        branches = [{"properties": {f"a{i}": {"const": 1}}} for i in range(30)]
        assert_bounded({"anyOf": branches, "unevaluatedProperties": False})
        assert_bounded({"not": {"anyOf": branches, "unevaluatedProperties": False}})

    def test_patterns_of_members(self) -> None:
        assert_bounded({"patternProperties": {f"a.*{i}.*b": {"minimum": i} for i in range(30)}})

    @pytest.mark.slow
    def test_contained(self) -> None:
        assert_bounded({"contains": {"const": 1}, "minContains": 10**6})
        assert_bounded({"contains": {"const": 1}, "maxContains": 10**6})
        assert_bounded({"allOf": [{"contains": {"minimum": i, "maximum": i + 5}} for i in range(30)]})


class TestEndlessReferences:
    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({"$ref": "#"}, "#"),
            (
                {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
                "/$defs/a",
            ),
            ({"allOf": [{"$ref": "#"}]}, "#"),
            ({"oneOf": [{"$ref": "#"}]}, "#"),
            ({"$dynamicRef": "#a", "$dynamicAnchor": "a"}, "#"),
        ],
    )
    def test_in_place(self, schema: Any, place: str) -> None:
        error = outcome(schema)
        assert isinstance(error, mw.UnsatisfiableError), error
        assert error.place == place and "refers to itself" in str(error)

    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({"not": {"$ref": "#"}}, "#"),
            ({"if": {"$ref": "#"}, "then": {"type": "integer"}}, "#"),
            ({"anyOf": [{"$ref": "#"}], "unevaluatedProperties": False}, "#"),
            ({"not": {"allOf": [{"$ref": "#"}], "unevaluatedItems": False}}, "/not"),
        ],
    )
    def test_without_a_meaning(self, schema: Any, place: str) -> None:
        assert_malformed(schema, place, "refers to itself")

    def test_that_others_end(self) -> None:
        assert outcome({"anyOf": [{"$ref": "#"}, True]}) is None
        assert outcome({"dependentSchemas": {"a": {"$ref": "#"}}}) is None

    def test_through_items(self) -> None:
        error = outcome({"type": "array", "items": {"$ref": "#"}, "minItems": 1})
        assert isinstance(error, mw.UnsatisfiableError) and error.place == "#"
        assert outcome({"type": "array", "items": {"$ref": "#"}}) is None

    @pytest.mark.slow
    def test_long_chains(self) -> None:
        chain: dict[str, Any] = {f"a{i}": {"$ref": f"#/$defs/a{i + 1}"} for i in range(5000)}
        assert_limit({"$ref": "#/$defs/a0", "$defs": {**chain, "a5000": {}}}, "max_depth", "/$defs/a199")

    def test_registries(self) -> None:
        def endless(uri: str) -> Any:
            return {"$ref": f"{uri}x"}

        error = outcome({"$ref": "http://x/"}, registry=endless)
        assert isinstance(error, mw.LimitError) and error.limit in {"max_schema_values", "max_depth"}
        cyclic: dict[str, Any] = {"allOf": []}
        cyclic["allOf"].append(cyclic)
        error = outcome({"$ref": "http://x/"}, registry={"http://x/": cyclic})
        assert isinstance(error, mw.LimitError) and error.limit == "max_depth"


class TestEnormous:
    """About five megabytes each, made when their test runs: longer than text may be."""

    SCHEMAS: ClassVar[dict[str, Callable[[], Any]]] = {
        "properties": lambda: {
            "type": "object",
            "properties": {f"property number {i}": {"minLength": 1} for i in range(80_000)},
        },
        "required": lambda: {
            "type": "object",
            "required": [f"the required name {i}" for i in range(200_000)],
        },
        "enum of texts": lambda: {"enum": [f"value number {i:020}" for i in range(150_000)]},
        "enum of numbers": lambda: {"enum": [i * 7919 for i in range(400_000)]},
        "enum of objects": lambda: {"enum": [{"a": i} for i in range(100_000)]},
        "not": lambda: {"not": {"enum": [{"a": i} for i in range(100_000)]}},
        "anyOf": lambda: {"anyOf": [{"const": {"a": i}} for i in range(100_000)]},
        "oneOf": lambda: {
            "oneOf": [{"properties": {"k": {"const": f"k{i}"}}, "required": ["k"]} for i in range(60_000)]
        },
        "references": lambda: {
            "$ref": "#/$defs/d0",
            "$defs": {f"d{i}": {"items": {"$ref": f"#/$defs/d{(i + 1) % 90_000}"}} for i in range(90_000)},
        },
        "const": lambda: {"const": "x" * 5_000_000},
        "a name": lambda: {"properties": {"x" * 5_000_000: {}}, "required": ["x" * 5_000_000]},
        "pattern": lambda: {"pattern": "x" * 5_000_000},
        "looks ahead": lambda: {"pattern": "(?=a)" * 1_000_000},
        "alternatives": lambda: {"pattern": "[a-z]{2}|" * 500_000},
        "patternProperties": lambda: {"patternProperties": {"x" * 5_000_000: {}}},
        "annotations": lambda: {"title": "x" * 5_000_000, "$comment": ["x"] * 400_000},
    }

    @pytest.mark.slow
    @pytest.mark.parametrize("name", SCHEMAS)
    def test_schemas(self, name: str) -> None:
        schema = self.SCHEMAS[name]()
        assert_bounded(schema)
        text = json.dumps(schema)
        if len(text) > mw.Limits().max_source_chars:
            assert_limit(text, "max_source_chars")
        else:
            assert_bounded(text)

    def test_more_values_than_the_limit(self) -> None:
        assert_limit({"enum": list(range(500_001))}, "max_schema_values")


class TestPatterns:
    @pytest.mark.parametrize(
        "schema",
        [
            {"pattern": "^((a{1,1000}){1,1000}){1,1000}$"},
            {"pattern": "^((a{1,1000}){1,1000}){1,1000}$", "maxLength": 10},
            {"allOf": [{"pattern": "(a|b)*a(a|b){25}"}, {"pattern": "(a|b)*b(a|b){24}c"}]},
            {"not": {"pattern": "^(a|b)*a(a|b){25}$"}},
            {"pattern": "^" + "".join(f"(?=.*{chr(97 + i)}.{{{i + 1}}})" for i in range(20)) + ".*$"},
            {"patternProperties": {"(a|b)*a(a|b){25}": {}}},
        ],
    )
    def test_that_blow_up(self, schema: Any) -> None:
        assert_limit(schema, "max_regex_states")

    @pytest.mark.parametrize(
        "schema",
        [
            {"pattern": "^(a|a)*b(a|a)*$", "not": {"pattern": "^(a|aa)+$"}},
            {"pattern": "^((a*)*)*$"},
            {"patternProperties": {"(a|b)*a(a|b){25}": {}}, "additionalProperties": False},
            {"pattern": "((a{1,1000}){1,1000}){1,1000}", "maxLength": 10},
            {"pattern": "^(" + "|".join(f"[{chr(i)}-{chr(i + 3000)}]" for i in range(0x4E00, 0x5E00)) + ")*$",
             "not": {"pattern": "[a-z]{3}$"}},
            {"allOf": [{"pattern": f"[{chr(97 + i)}]"} for i in range(12)]},
        ],
    )  # fmt: skip
    def test_that_do_not(self, schema: Any) -> None:
        assert_bounded(schema)

    def test_that_are_wrong(self) -> None:
        assert_malformed({"pattern": r"(a)\1"}, "/pattern", "back-references")
        assert_malformed({"properties": {"a": {"pattern": "("}}}, "/properties/a/pattern", "not closed")
        assert_malformed({"patternProperties": {"a/(": {}}}, "/patternProperties/a~1(", "not closed")
        assert_limit({"pattern": "(?=" * 30 + "a" + ")" * 30}, "max_nested_looks", "/pattern")
        assert_limit({"pattern": "(" * 300 + ")" * 300}, "max_depth", "/pattern")
        assert_limit({"items": {"pattern": "a{4294967296}"}}, "max_count", "/items/pattern")


DEEP = 100_000


def nested(keyword: str, depth: int) -> Any:
    schema: Any = {}
    for _ in range(depth):
        schema = {
            keyword: [schema]
            if keyword.endswith("Of")
            else {"a": schema}
            if keyword == "properties"
            else schema
        }
    return schema


class TestNesting:
    @pytest.mark.parametrize(
        ("opened", "closed"),
        [("[", "]"), ('{"a":', "}"), ('{"allOf":[', "]}"), ('{"items":', "}"), ('{"not":', "}")],
    )
    def test_of_text(self, opened: str, closed: str) -> None:
        text = opened * DEEP + "{}" + closed * DEEP
        assert_malformed(text, None, "nested too deeply")
        assert_malformed('{"const":' + text + "}", None, "nested too deeply")

    @pytest.mark.parametrize(
        "keyword", ["items", "properties", "allOf", "anyOf", "oneOf", "not", "if", "default"]
    )
    def test_of_objects(self, keyword: str) -> None:
        schema = nested(keyword, DEEP)
        assert_limit(schema, "max_depth")
        # Python itself frees such objects level by level only.
        while schema:
            (schema,) = schema.values() if isinstance(schema, dict) else schema

    @pytest.mark.parametrize("keyword", ["items", "properties", "allOf", "anyOf", "oneOf", "not"])
    def test_below_the_limit(self, keyword: str) -> None:
        assert outcome(nested(keyword, 180)) is None or keyword == "not"

    def test_beyond_what_python_can_do(self) -> None:
        with pytest.raises(mw.GrammarError, match="setrecursionlimit"):
            mw.compile_json_schema(nested("allOf", 5000), BYTES, limits=Limits(max_depth=20_000))

    def test_of_constants(self) -> None:
        value: Any = 1
        for _ in range(1000):
            value = [value]
        assert_limit({"const": value}, "max_depth")

    def test_endless_objects(self) -> None:
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        schema["properties"]["a"] = schema
        assert_limit(schema, "max_depth")
        values: list[Any] = []
        values += [values, values]
        assert_limit({"const": values}, "max_schema_values")
        assert_limit({"default": {"a": [schema]}}, "max_depth")

    def test_no_stack_overflows(self) -> None:
        """In a process of its own: an overflow would end this one."""
        code = f"""
import maskwright as mw
bytes_ = mw.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), None], eos_ids=256)
for keyword in ("items", "allOf", "not", "const"):
    schema = {{}}
    for _ in range({DEEP}):
        schema = {{keyword: [schema] if keyword == "allOf" else schema}}
    for source in (schema, '{{"%s":' % keyword * {DEEP} + "{{}}" + "}}" * {DEEP}):
        for call in (lambda s: mw.compile_json_schema(s, bytes_), lambda s: mw.compile(mw.JsonSchema(s), bytes_)):
            try:
                call(source)
            except mw.MaskwrightError as error:
                print(type(error).__name__)
        assert not mw.check_json_schema(source).ok
import os
os._exit(0)  # without freeing the deep objects
"""
        done = subprocess.run(
            [sys.executable, "-c", code.replace("os._exit(0)", "import sys; sys.stdout.flush(); os._exit(0)")],
            capture_output=True, text=True, timeout=120, env={"PYTHONPATH": str(SOURCES)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["LimitError", "LimitError", "GrammarError", "GrammarError"] * 4

    @pytest.mark.slow
    def test_no_stack_overflows_above_the_default(self) -> None:
        """Compiled functions recurse without Python's knowledge, here on the small stack of a thread."""
        code = """
import threading, sys
import maskwright as mw
bytes_ = mw.Vocabulary.from_bytes([*(bytes([b]) for b in range(256)), None], eos_ids=256)
def wrapped(keyword, schema):
    if keyword in ("allOf", "anyOf", "oneOf"):
        return {keyword: [schema, {"type": "null"}][: 1 if keyword == "allOf" else 2]}
    if keyword == "properties":
        return {"properties": {"a": schema}, "required": ["a"]}
    if keyword == "if":
        return {"if": {"required": ["a"]}, "then": schema}
    return {keyword: schema}
def run():
    for keyword in ("allOf", "anyOf", "oneOf", "not", "if", "properties", "items", "contains"):
        for levels in (900, 5000):
            schema = {"type": "string"}
            for _ in range(levels):
                schema = wrapped(keyword, schema)
            try:
                mw.compile_json_schema(schema, bytes_, limits=mw.Limits(max_depth=20_000, max_seconds=5))
            except mw.MaskwrightError:
                pass
            while isinstance(schema, dict):
                schema = schema[keyword] if keyword in schema else schema.get("then")
                schema = schema["a"] if keyword == "properties" and "a" in (schema or ()) else schema
                schema = schema[0] if isinstance(schema, list) else schema
    print("done", flush=True)
threading.stack_size(2**21)
thread = threading.Thread(target=run)
thread.start()
thread.join()
import os
os._exit(0)
"""
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True, text=True, timeout=300, env={"PYTHONPATH": str(SOURCES)},
        )  # fmt: skip
        assert done.stdout.split() == ["done"], done.stderr


class TestValues:
    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({"minimum": float("nan")}, "/minimum"),
            ({"const": [float("inf")]}, "/const/0"),
            ({"default": {"a/b": -float("inf")}}, "/default/a~1b"),
            ({"minimum": Decimal("NaN")}, "/minimum"),
            ({"const": Decimal("sNaN")}, "/const"),
            ({"enum": (1, 2)}, "/enum"),
            ({"enum": [{1}]}, "/enum/0"),
            ({"const": b"x"}, "/const"),
            ({"items": {"title": object()}}, "/items/title"),
            ({"properties": {"a": {1: float("nan")}}}, "/properties/a/1"),
        ],
    )
    def test_that_json_does_not_have(self, schema: Any, place: str) -> None:
        assert_malformed(schema, place, "is not a JSON value")

    @pytest.mark.parametrize(
        ("text", "place"),
        [('{"minimum":NaN}', "1:12"), ('{"const":-Infinity}', "1:10"), ('{"const":[Infinity]}', "1:11")],
    )
    def test_that_json_text_does_not_have(self, text: str, place: str) -> None:
        assert_malformed(text, place, "is not a JSON value")

    @pytest.mark.parametrize(
        ("schema", "place"),
        [
            ({1: 2}, "#"),
            ({"properties": {None: {}}}, "/properties"),
            ({"a": [{"b": 1, 10**5000: 2}]}, "/a/0"),
            ({"a": {1: {1: True}}}, "/a"),
        ],
    )
    def test_names_that_are_no_strings(self, schema: Any, place: str) -> None:
        assert_malformed(schema, place, "a member name must be a string")

    @pytest.mark.parametrize("schema", [None, [], 5, 1.5, "null", "[]", "5", '"a"', MappingProxyType({})])
    def test_no_schemas(self, schema: Any) -> None:
        assert_malformed(schema, "#", "a schema is an object or a boolean")

    @pytest.mark.parametrize(
        ("text", "place"), [("", "1:1"), ("{", "1:2"), ('{"a":1,}', "1:8"), ("\ufeff{}", "1:1")]
    )
    def test_no_json(self, text: str, place: str) -> None:
        assert_malformed(text, place, "malformed JSON")

    def test_no_text(self) -> None:
        assert_malformed(b"\xff{}", None, "not UTF-8")


WRONG: dict[str, list[Any]] = {
    **{key: [5, None, ["#"], {}] for key in ["$ref"]},
    "type": ["int", 5, [], ["string", "x"], None, {}],
    "enum": [1, "a", {}, None],
    **{key: [[], {}, 1, [1], [None], "a"] for key in ["allOf", "anyOf", "oneOf"]},
    **{key: [[], {}, 1, [1]] for key in ["prefixItems"]},
    **{key: [1, [], "a", None] for key in ["not", "if", "additionalProperties", "unevaluatedProperties", "unevaluatedItems", "propertyNames", "contains"]},
    **{key: [[], 1, {"a": 1}, {"a": None}, "a"] for key in ["properties", "patternProperties", "dependentSchemas"]},
    "dependentRequired": [[], {"a": 1}, {"a": [1]}, {"a": "b"}],
    "dependencies": [[], {"a": 1}, {"a": [1]}],
    "required": [1, "a", [1], {}, None],
    **{key: [-1, 1.5, "1", True, None, [], Decimal("0.5"), Decimal("1e400") + Decimal("0.1")] for key in ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains"]},
    **{key: ["1", True, None, []] for key in ["minimum", "maximum"]},
    **{key: ["1", None, []] for key in ["exclusiveMinimum", "exclusiveMaximum"]},
    "multipleOf": [0, -1, "1", True, Decimal(0), 0.0],
    "uniqueItems": [1, "true", None],
    **{key: [1, None, [], True] for key in ["pattern", "format"]},
    "items": [1, "a", None, [1]],
}  # fmt: skip


@pytest.mark.parametrize(("keyword", "value"), [(k, v) for k, values in WRONG.items() for v in values])
def test_values_that_a_keyword_does_not_have(keyword: str, value: Any) -> None:
    if keyword.startswith(("min", "max")) and value == Decimal("1e400"):
        pytest.skip("decimal arithmetic rounds this to an integer")
    dialect = {"items": "draft7", "dependencies": "draft7"}.get(keyword, "auto")
    for schema, place in (
        ({keyword: value}, ""),
        ({"properties": {"a/b": {keyword: value}}}, "/properties/a~1b"),
    ):
        error = outcome(schema, dialect=dialect)
        assert isinstance(error, mw.GrammarError), error
        assert error.place == f"{place}/{keyword}" and keyword in str(error)


class TestSurrogates:
    """A lone surrogate is a string of JSON, but no text in UTF-8: nobody can write it raw."""

    def test_where_they_must_be_written(self) -> None:
        for schema in (
            {"const": "\ud800"},
            '{"const":"\\ud800"}',
            {"required": ["\udfff"], "type": "object"},
        ):
            assert isinstance(outcome(schema), mw.UnsatisfiableError)

    @pytest.mark.parametrize(
        "schema",
        [
            {"enum": ["\ud800", "a"]},
            {"properties": {"\ud800": {}}},
            {"pattern": "^[^\ud800]*$"},
            {"title": "\ud800", "$comment": "\udfff", "\ud800": 1},
            {"not": {"const": "\ud800"}},
            {"not": {"enum": [{"\ud800": 1}]}},
        ],
    )
    def test_where_they_need_not(self, schema: Any) -> None:
        assert outcome(schema) is None

    def test_in_references(self) -> None:
        assert_malformed({"$ref": "#/\ud800"}, "/$ref", "missing")


HUGE = 10**5000


class TestHugeNumbers:
    @pytest.mark.parametrize(
        "keyword", ["const", "minimum", "maximum", "exclusiveMaximum", "multipleOf", "minLength"]
    )
    def test_of_many_digits(self, keyword: str) -> None:
        place = f"/{keyword}"
        for number in (HUGE, Decimal("1e5000"), Decimal(HUGE)):
            assert_limit({keyword: number}, "max_constant_digits", place)
        assert_limit(f'{{"{keyword}":1e5000}}', "max_constant_digits", place)
        assert_limit(f'{{"{keyword}":1e99999999}}', "max_constant_digits", place)

    def test_of_many_decimals(self) -> None:
        for number in ("0." + "1" * 5000, "1e-5000", "1e-99999999"):
            assert_limit(f'{{"const":[1,{number}]}}', "max_constant_digits", "/const")
            assert_limit(f'{{"multipleOf":{number}}}', "max_constant_digits", "/multipleOf")
        assert outcome('{"multipleOf":0.' + "1" * 900 + "}") is None
        divisors = [{"multipleOf": 10**900 + odd} for odd in (1, 3)]
        assert_limit({"allOf": divisors}, "max_constant_digits")

    @pytest.mark.parametrize("number", [f"{HUGE // 10**1000}" + "0" * 1000, "1e99999999999999999999"])
    def test_that_python_does_not_read(self, number: str) -> None:
        assert_malformed(f'{{"default":{number}}}', "1:12", "more digits than can be read")

    def test_beyond_doubles(self) -> None:
        for schema in (
            '{"const":1e400}',
            '{"minimum":1e400}',
            '{"maximum":-1e400}',
            '{"maximum":1e-400,"minimum":0}',
        ):
            assert outcome(schema) is None
        assert outcome({"default": HUGE, "examples": [Decimal("1e5000")]}) is None

    def test_in_messages(self) -> None:
        for schema, place in (
            ({"type": HUGE}, "/type"), ({"properties": {"a": HUGE}}, "/properties"), ({"allOf": [HUGE]}, "/allOf"),
        ):  # fmt: skip
            error = outcome(schema)
            assert isinstance(error, mw.GrammarError) and error.place == place

    def test_counts(self) -> None:
        for keyword in ("minLength", "minItems", "minProperties", "minContains", "maxContains"):
            assert_limit({keyword: 10**10}, "max_count", f"/{keyword}")
            assert_limit(f'{{"{keyword}":1e400}}', "max_count", f"/{keyword}")
        # Nobody writes so much.
        for keyword in ("maxLength", "maxItems", "maxProperties"):
            for most in (2**31 - 1, 2**31, 2**63, 10**400):
                assert outcome({keyword: most}) is None
                # Through the automaton of a pattern.
                assert outcome({keyword: most, "pattern": "^(ab|c)*$"}) is None

    def test_of_numpy(self) -> None:
        # A float64 is a float that prints itself in another way; an int64 is no int.
        for schema in (
            {"minimum": 2.5},
            {"multipleOf": 0.1},
            {"enum": [1e30, {"a": -0.0}]},
            {"maxItems": 2.0},
        ):
            assert outcome(_with_numpy_floats(schema)) is None
        text = mw.compile_json_schema({"const": np.float64(0.1)}, BYTES).matcher().shortest_completion_bytes()
        assert text == b"0.1"
        assert_malformed({"minimum": np.int64(2)}, "/minimum", "not a JSON value")


def _with_numpy_floats(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_numpy_floats(held) for name, held in value.items()}
    if isinstance(value, list):
        return [_with_numpy_floats(held) for held in value]
    return np.float64(value)
