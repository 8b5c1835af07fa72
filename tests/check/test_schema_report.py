"""The report on a schema: what becomes of keywords, what is dead, hints, profiles."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import TESTS
from schema_evaluator import DRAFT_7, V2019, is_valid
from schema_evaluator import document as read
from schema_strategies import documents, values
from toys import byte_vocabulary

import maskwright as mw
from maskwright.check.json_schema.profiles import PROFILES
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_schema.algebra.normalize import _BEYOND_TYPES
from maskwright.frontends.json_schema.algebra.typed import _BEYOND_TYPE
from maskwright.frontends.json_schema.read.keywords import CHECKS, REFUSED
from maskwright.limits import Limits

VOCABULARY = byte_vocabulary()
LIMITS = Limits(max_schema_branches=300, max_regex_states=20_000, max_rules=20_000, max_seconds=5)
CORPUS = sorted((TESTS / "frontends" / "json_schema" / "corpus").glob("*.json"))


def statuses(schema: Any, **options: Any) -> dict[tuple[str, str], str]:
    report = mw.check_json_schema(schema, SchemaOptions(**options))
    return {(use.pointer, use.keyword): use.status for use in report.keywords}


def warnings(schema: Any) -> list[tuple[str, str]]:
    return [(f.code, f.place) for f in mw.check_json_schema(schema).findings if f.severity == "warning"]


def hints(schema: Any) -> list[tuple[str, str]]:
    return [(f.code, f.place) for f in mw.check_json_schema(schema).hints]


class TestKeywords:
    def test_each_keyword_of_each_subschema(self):
        schema = {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "t",
            "properties": {"a": {"type": "string", "contentEncoding": "base64", "fromat": "x"}},
            "$defs": {"x": {"type": "null"}, "unused": {"type": "null"}},
            "anyOf": [{"$ref": "#/$defs/x"}, True],
        }
        assert statuses(schema) == {
            ("#", "$schema"): "annotation",
            ("#", "title"): "annotation",
            ("#", "properties"): "enforced",
            ("#", "$defs"): "annotation",
            ("#", "anyOf"): "enforced",
            ("/properties/a", "type"): "enforced",
            ("/properties/a", "contentEncoding"): "annotation",
            ("/properties/a", "fromat"): "annotation",
            ("/anyOf/0", "$ref"): "enforced",
            ("/$defs/x", "type"): "enforced",
        }

    def test_every_keyword_with_a_meaning_is_enforced(self):
        for keyword in {*CHECKS, "const"} - REFUSED.keys():
            values = (1, "a", [], {}, True, {"a": ["b"]}, ["a"], "null", [{}], "#/$defs/x", {"a": {}}, "date")
            with_it = [{keyword: value, "$defs": {"x": {}}} for value in values]
            reports = [mw.check_json_schema(schema | _COMPANIONS.get(keyword, {})) for schema in with_it]
            found = {use.status for r in reports for use in r.keywords if use.keyword == keyword}
            assert ("enforced" in found) == (keyword != "$recursiveRef"), keyword

    def test_every_keyword_with_a_meaning_is_looked_at(self):
        # What is checked and read by nobody would be called enforced, and ignored.
        beside_another = {"then", "else", "minContains", "maxContains"}
        assert {*CHECKS, "const"} - REFUSED.keys() <= _BEYOND_TYPE | {"type"} | _BEYOND_TYPES | beside_another

    @pytest.mark.parametrize(
        ("schema", "keyword", "reason"),
        [
            ({"format": "odd"}, "format", "unknown format"),
            ({"then": {}}, "then", "without if"),
            ({"minContains": 1}, "minContains", "without contains"),
            ({"additionalItems": False}, "additionalItems", "without a list"),
            ({"$recursiveRef": "#"}, "$recursiveRef", "2020-12 does not have it"),
            ({"$schema": DRAFT_7, "dependentRequired": {}}, "dependentRequired", "draft7 does not have it"),
            ({"$schema": V2019, "$dynamicRef": "#"}, "$dynamicRef", "2019-09 does not have it"),
            ({"$schema": DRAFT_7, "$ref": "#/definitions/a", "type": "null", "definitions": {"a": {}}}, "type", "beside $ref"),
            ({"$schema": "http://json-schema.org/draft-04/schema#", "exclusiveMinimum": True}, "exclusiveMinimum", "without minimum"),
            ({"required": True}, "required", "draft 3"),
            ({"disallow": []}, "disallow", "demands nothing"),
            ({"requierd": ["a"]}, "requierd", "no keyword"),
        ],
    )  # fmt: skip
    def test_annotations_say_why(self, schema, keyword, reason):
        (use,) = [use for use in mw.check_json_schema(schema).keywords if use.keyword == keyword]
        assert use.status == "annotation"
        assert reason in use.reason

    def test_formats(self):
        assert statuses({"format": "date"})["#", "format"] == "enforced"
        assert statuses({"format": "date"}, formats="annotate")["#", "format"] == "annotation"
        assert statuses({"format": "byte"})["#", "format"] == "annotation"
        assert statuses({"format": "byte"}, dialect="openapi-3.0")["#", "format"] == "enforced"
        assert statuses({"type": "integer", "format": "int32"})["#", "format"] == "enforced"

    def test_refusals_say_why(self):
        schema = {"items": {"type": "array", "uniqueItems": True, "items": {"type": "object"}}, "extends": {}}
        report = mw.check_json_schema(schema)
        refused = [use for use in report.keywords if use.status == "refused"]
        assert [(u.pointer, u.keyword) for u in refused] == [("#", "extends")]
        assert "draft 3" in refused[0].reason
        assert not report.ok and not report.compiles

    def test_misspelled_keywords(self):
        (note,) = mw.check_json_schema({"requierd": ["a"]}).findings
        assert "did you mean 'required'?" in note.message
        (note,) = mw.check_json_schema({"x-required": ["a"]}).findings
        assert "did you mean" not in note.message

    @pytest.mark.parametrize(
        ("kind", "write"), [("string", 'type ["string", "null"]'), (None, 'anyOf with {"type": "null"}')]
    )
    def test_nullable_outside_of_openapi(self, kind, write):
        schema = {"nullable": True} if kind is None else {"type": kind, "nullable": True}
        (finding,) = mw.check_json_schema(schema).findings
        said = f"'nullable' is no keyword of 2020-12; it is ignored (write {write}, or dialect openapi-3.0)"
        assert (finding.severity, finding.code, finding.message) == ("note", "unknown-keyword", said)
        assert not mw.check_json_schema({**schema, "nullable": False}).findings
        found = mw.check_json_schema(schema, mw.SchemaOptions(dialect="openapi-3.0")).findings
        assert all(finding.code != "unknown-keyword" for finding in found)

    def test_misspelled_formats(self):
        (finding,) = mw.check_json_schema({"format": "uuidd"}).findings
        assert finding.message == "format 'uuidd' is not enforced (did you mean 'uuid'?)"
        (finding,) = mw.check_json_schema({"format": "starship"}).findings
        assert finding.message == "format 'starship' is not enforced"

    def test_keywords_about_other_types(self):
        schema = {"type": ["string", "null"], "minimum": 3, "maxLength": 3, "items": {}}
        notes = [(f.code, f.message.partition(" ")[0]) for f in mw.check_json_schema(schema).findings]
        assert notes == [("other-type", "minimum"), ("other-type", "items")]
        for fine in (
            {"type": "integer", "minimum": 3},
            {"type": "integer", "format": "int32"},
            {"minimum": 3},
        ):
            assert not mw.check_json_schema(fine).findings


_COMPANIONS: dict[str, dict[str, Any]] = {
    "then": {"if": {}},
    "else": {"if": {}},
    "minContains": {"contains": {}},
    "maxContains": {"contains": {}},
    "additionalItems": {"items": [{}], "$schema": V2019},
    "uniqueItems": {"items": {"type": "string"}},
}
CLASH = {"type": "integer", "minimum": 5, "maximum": 3}


class TestDeadParts:
    @pytest.mark.parametrize(
        ("schema", "code", "place", "words"),
        [
            ({"properties": {"a": CLASH}}, "unsatisfiable", "/properties/a", "minimum 5 and maximum 3 exclude each other"),
            ({"properties": {"a": CLASH}}, "unsatisfiable", "/properties/a", "the member 'a' can never appear"),
            ({"properties": {"a": {"required": ["b"], "type": "object", "properties": {"b": CLASH}}}}, "unsatisfiable", "/properties/a/properties/b", "the member 'a' can never appear (/properties/a)"),
            ({"items": {"$ref": "#/$defs/x"}, "$defs": {"x": CLASH}}, "unsatisfiable", "/$defs/x", "there are no such items (/items)"),
            ({"anyOf": [CLASH, {}]}, "unsatisfiable", "/anyOf/0", "branch 0 is never taken"),
            ({"not": CLASH}, "unsatisfiable", "/not", "it excludes nothing"),
            ({"if": CLASH, "then": False}, "unsatisfiable", "/if", "the condition never holds"),
            ({"additionalProperties": {"enum": []}}, "unsatisfiable", "/additionalProperties", "no other member"),
            ({"propertyNames": {"type": "null"}}, None, None, ""),
            ({"type": "string", "anyOf": [{"type": "null"}, {"minLength": 1}]}, "excluded", "/anyOf/0", '#: type "string" and /anyOf/0: type "null" exclude each other'),
            ({"type": "string", "oneOf": [{"type": "null"}, {"minLength": 1}]}, "excluded", "/oneOf/0", "this branch is never taken"),
            ({"oneOf": [{"type": "integer"}, {"type": "number"}]}, "excluded", "/oneOf/0", "satisfies /oneOf/1 as well"),
            ({"type": "string", "enum": ["a", 1]}, "excluded", "/enum/1", "this value is never allowed"),
            ({"maxLength": 1, "enum": ["a", "ab"]}, "excluded", "/enum/1", "maxLength 1"),
            ({"allOf": [{"properties": {"a": {}}, "additionalProperties": False}, {"properties": {"b": {"type": "null"}}}]}, "excluded", "/allOf/1/properties/b", "/allOf/0: additionalProperties false forbids it"),
            ({"allOf": [{"properties": {"a": {"type": "null"}}}, {"properties": {"a": {"type": "array"}}}]}, "excluded", "/allOf/0/properties/a", "/allOf/1/properties/a: type \"array\""),
            ({"type": "object", "propertyNames": {"maxLength": 1}, "properties": {"aa": {"type": "null"}}}, "excluded", "/properties/aa", "propertyNames"),
            ({"allOf": [{"items": [{}, {"type": "null"}]}], "items": [{}], "additionalItems": {"type": "array"}, "$schema": V2019}, "excluded", None, "no such items"),
        ],
    )  # fmt: skip
    def test_warnings(self, schema, code, place, words):
        report = mw.check_json_schema(schema)
        found = [f for f in report.findings if f.severity == "warning"]
        assert report.ok
        if code is None:
            assert not found
            return
        (warning,) = found
        assert warning.code == code
        assert warning.place == place or (place is None and warning.place)
        assert words in warning.message

    @pytest.mark.parametrize(
        "schema",
        [
            {"properties": {"a": False}, "additionalProperties": False, "items": False},
            {"patternProperties": {"^x": {"not": {}, "description": "none"}}},
            {"anyOf": [{"required": ["a"]}, {"required": ["b"]}], "properties": {"a": {"type": "null"}}},
            {"if": {"required": ["a"]}, "then": {"properties": {"b": False}}},
            {"properties": {"k": {"enum": [1, 2]}}, "oneOf": [{"properties": {"k": {"const": i}}, "required": ["k"]} for i in (1, 2)]},
            {"type": "object", "properties": {"next": {"$ref": "#"}}},
            {"oneOf": [{"minimum": 1}, {"maximum": 2}]},
            {"enum": ["a", 1]},
        ],
    )  # fmt: skip
    def test_no_warnings(self, schema):
        assert not warnings(schema)

    def test_one_reason_is_told_once(self):
        schema = {
            "$defs": {"x": CLASH},
            "properties": {name: {"$ref": "#/$defs/x"} for name in "abcde"},
        }
        (warning,) = mw.check_json_schema(schema).findings
        assert warning.message.count("can never appear") == 3
        assert "2 more" in warning.message

    def test_an_unsatisfiable_root_is_an_error_and_others_are_warnings(self):
        schema = {"type": "object", "properties": {"a": CLASH, "b": {"enum": []}}, "required": ["a"]}
        found = [(f.severity, f.place) for f in mw.check_json_schema(schema).findings]
        assert found == [("error", "/properties/a"), ("warning", "/properties/b")]

    @given(documents(), st.lists(values, min_size=1, max_size=8))
    def test_what_is_dead_may_as_well_be_false(self, schema, instances):
        """An independent evaluator sees no difference."""
        report = mw.check_json_schema(schema, limits=LIMITS)
        # A branch of oneOf within another one is never taken, but excludes.
        found = [f for f in report.findings if "as well" not in f.message]
        places = [f.place for f in found if f.severity == "warning"]
        places += re.findall(r"\((/[^ ()]*)\)", " ".join(f.message for f in found))
        for place in places:
            without = copy.deepcopy(schema)
            if not _put_false(without, place):
                continue
            for instance in instances:
                assert is_valid(read(schema), instance) == is_valid(read(without), instance), place

    @given(documents())
    def test_errors_are_those_of_the_compiler(self, schema):
        report = mw.check_json_schema(schema, limits=LIMITS, profile="openai-strict")
        assert {f.code for f in report.findings if f.severity == "error"} - {"openai-strict"} == _outcome(
            schema
        )
        assert report.compiles == (not _outcome(schema))

    @pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
    def test_errors_are_those_of_the_compiler_on_the_corpus(self, file):
        for case in json.loads(file.read_text(encoding="utf-8")):
            report = mw.check_json_schema(case["schema"], limits=LIMITS)
            assert {f.code for f in report.findings if f.severity == "error"} == _outcome(case["schema"])


def _outcome(schema: Any) -> set[str]:
    try:
        mw.compile_json_schema(schema, VOCABULARY, limits=LIMITS)
    except mw.UnsupportedSchemaError:
        return {"unsupported"}
    except mw.UnsatisfiableError:
        return {"unsatisfiable"}
    except mw.LimitError:
        return {"limit"}
    except mw.GrammarError:
        return {"malformed"}
    return set()


def _put_false(schema: Any, place: str) -> bool:
    """Replaces the subschema at a place by false; a value of ``enum`` by one that comes before it."""
    *path, last = place.split("/")[1:]
    for part in path:
        schema = schema[int(part) if isinstance(schema, list) else part]
    if path and path[-1] == "enum" and isinstance(schema, list):
        schema[int(last)] = schema[int(last) - 1 if int(last) else 1]
    elif isinstance(schema, list):
        schema[int(last)] = False
    elif last in schema and isinstance(schema[last], (dict, bool)):
        schema[last] = False
    else:
        return False
    return True


@pytest.mark.parametrize(
    ("items", "enough"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 2}, 3),
        ({"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5}, 3),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}, "additionalProperties": False}, 3),
        ({"type": "array", "items": {"const": 1}, "maxItems": 2}, 3),
    ],
)
def test_whether_there_are_enough_different_items(items, enough):
    for needed in (enough, enough + 1):
        schema = {"type": "array", "uniqueItems": True, "minItems": needed, "items": items}
        for whole in (schema, {"required": ["a"], "properties": {"a": schema}, "type": "object"}):
            report = mw.check_json_schema(whole)
            assert report.compiles == (needed == enough)
            assert {f.code for f in report.findings if f.severity == "error"} == _outcome(whole)


def test_branches_beyond_a_limit_are_left_alone(monkeypatch):
    schema = {
        "allOf": [{"anyOf": [{"properties": {f"p{i}": {"const": v}}} for v in range(2)]} for i in range(10)],
        "oneOf": [{"type": "null"}, {"type": "object"}],
    }
    for looks in ("dead._Look", "hints.Normalizer"):
        monkeypatch.setattr(f"maskwright.check.json_schema.{looks}", None)
    report = mw.check_json_schema(schema, limits=Limits(max_schema_branches=10))
    assert [f.code for f in report.findings if f.severity == "error"] == ["limit"]


class TestHints:
    @pytest.mark.parametrize(
        ("schema", "code", "place"),
        [
            ({"properties": {"a": {"enum": [1]}}}, "missing-type", "#"),
            ({"minLength": 1}, "missing-type", "#"),
            ({"type": "string", "minLength": 1}, "unbounded-string", "#"),
            ({"type": ["array", "null"], "items": {"type": "null"}}, "unbounded-array", "#"),
            ({"type": "object", "properties": {"a": {"type": "null"}}}, "open-object", "#"),
            ({"type": "string", "pattern": "a$"}, "unanchored-pattern", "#"),
            ({"type": "string", "pattern": "^a\\$"}, "unanchored-pattern", "#"),
            ({"oneOf": [{"type": "null"}, {"type": "boolean"}]}, "exclusive-branches", "#"),
            ({"oneOf": [{"enum": [1, 2]}, {"enum": [2, 3]}]}, "overlapping-branches", "#"),
            ({"type": "null", "$defs": {"a/b": {}}}, "unused-definition", "/$defs/a~1b"),
        ],
    )
    def test_hints(self, schema, code, place):
        assert hints(schema) == [(code, place)]

    @pytest.mark.parametrize(
        "schema",
        [
            {"type": "string", "pattern": "^a$"},
            {"type": "string", "enum": ["a"]},
            {"type": "array", "maxItems": 3},
            {"type": "array", "prefixItems": [{"type": "null"}], "items": False},
            {"type": "object", "properties": {}, "additionalProperties": False},
            {"type": "object"},
            {"type": "object", "propertyNames": {"maxLength": 3}},
            {"type": "object", "additionalProperties": False, "properties": {}, "allOf": [{"required": ["a"]}]},
            {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/a"}}}},
            {"type": "null", "oneOf": [{}]},
            True,
        ],
    )  # fmt: skip
    def test_no_hints(self, schema):
        assert hints(schema) == []

    def test_hints_are_no_findings(self):
        assert mw.check_json_schema({"type": "string"}).findings == []


STRICT = {
    "type": "object",
    "properties": {
        "a": {"type": ["string", "null"], "pattern": "^a", "description": "d"},
        "b": {"type": "array", "items": {"$ref": "#/$defs/x"}, "maxItems": 3},
        "c": {"anyOf": [{"type": "number", "minimum": 0}, {"const": "none"}]},
    },
    "required": ["a", "b", "c"],
    "additionalProperties": False,
    "$defs": {
        "x": {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/x"}},
            "required": ["x"],
            "additionalProperties": False,
        }
    },
}
STRICT["$defs"]["x"]["properties"]["x"] = {"anyOf": [{"$ref": "#/$defs/x"}, {"type": "null"}]}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {
            "type": "object",
            "properties": {"a": schema},
            "required": ["a"],
            "additionalProperties": False,
        }
    return schema


def one_of_strings(count: int, length: int) -> dict[str, Any]:
    return _strict(enum=[f"{i:0{length}d}" for i in range(count)], type="string")


def _strict(**schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}


class TestProfiles:
    @pytest.mark.parametrize(
        "schema", [STRICT, nested(10), one_of_strings(250, 100), one_of_strings(300, 50)]
    )
    def test_within(self, schema):
        report = mw.check_json_schema(schema, profile="openai-strict")
        assert report.findings == [] and report.ok

    @pytest.mark.parametrize(
        ("schema", "severity", "place", "words"),
        [
            ({"type": "array", "items": {"type": "null"}}, "error", "#", "the root must have type 'object'"),
            (True, "error", "#", "the root must have type 'object'"),
            ({**STRICT, "anyOf": [{**STRICT, "description": "the same"}]}, "error", "#", "must not be an anyOf"),
            ({**STRICT, "required": ["a", "b"]}, "error", "#", "every property must be required: list 'c'"),
            ({**STRICT, "additionalProperties": {"type": "null"}}, "error", "#", "additionalProperties: false"),
            (_strict(type="object"), "error", "/properties/a", "additionalProperties: false"),
            (_strict(type="null", allOf=[{"type": "null"}]), "error", "/properties/a", "allOf is not supported"),
            (_strict(type="string", maxLength=3), "warning", "/properties/a", "maxLength is not documented"),
            (_strict(type="string", format="uri"), "warning", "/properties/a", "format 'uri' is not documented"),
            (_strict(description="anything"), "warning", "/properties/a", "no type"),
            (_strict(type="array", items=True), "warning", "/properties/a/items", "boolean schema"),
            (nested(11), "error", "#", "more than 10 levels of objects"),
            (one_of_strings(1001, 3), "error", "#", "more than 1000 enum values"),
            (one_of_strings(300, 51), "error", "/properties/a", "15300 characters"),
            (_strict(const="x" * 120_000), "error", "#", "more than 120000 characters"),
        ],
    )  # fmt: skip
    def test_outside(self, schema, severity, place, words):
        report = mw.check_json_schema(schema, profile="openai-strict")
        (finding,) = report.findings
        assert (finding.severity, finding.code, finding.place) == (severity, "openai-strict", place)
        assert words in finding.message
        assert report.compiles and report.ok == (severity == "warning")
        assert mw.check_json_schema(schema).findings == []

    def test_too_many_properties(self):
        names = [f"p{i}" for i in range(5001)]
        schema = {**_strict(), "properties": {name: {"type": "null"} for name in names}, "required": names}
        (finding,) = mw.check_json_schema(schema, profile="openai-strict").findings
        assert "more than 5000 properties" in finding.message

    def test_unknown_profiles(self):
        with pytest.raises(mw.GrammarError, match="'openai-strict'"):
            mw.check_json_schema({}, profile="openai")

    def test_profiles_name_their_source(self):
        for profile in PROFILES.values():
            assert profile.source
            assert not profile.supported & profile.unsupported
            assert (profile.supported | profile.unsupported) - {"definitions"} <= {
                *CHECKS, "const", "$comment", "$defs", "$id", "$schema", "description", "title",
            }  # fmt: skip
