"""What each dialect makes of its keywords, and what their values may be."""

from __future__ import annotations

import pytest
from schema_evaluator import BYTES, DRAFT_4, DRAFT_7, STRING, V2019, V2020, accepts, document, error, target

import maskwright as mw
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_schema.read.dialects import DIALECTS
from maskwright.frontends.json_schema.read.keywords import CHECKS, HOLDERS, survey


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return BYTES


class TestDialects:
    @pytest.mark.parametrize(
        ("uri", "name"),
        [
            ("http://json-schema.org/draft-03/schema#", "draft3"),
            (DRAFT_4, "draft4"),
            ("http://json-schema.org/draft-06/schema", "draft6"),
            (DRAFT_7, "draft7"),
            ("https://json-schema.org/draft-07/schema", "draft7"),
            (V2019, "2019-09"),
            (V2020, "2020-12"),
            ("https://spec.openapis.org/oas/3.1/dialect/base", "openapi-3.1"),
            ("http://example.com/my-draft-04/schema", "draft4"),
            ("http://example.com/unknown", "2020-12"),
            ("http://json-schema.org/schema#", "2020-12"),
            (None, "2020-12"),
            (7, "2020-12"),
        ],
    )
    def test_declared(self, uri, name):
        assert document({"$schema": uri} if uri is not None else {}).root.base.dialect.name == name

    def test_draft_3_requires_members_in_their_own_schemas(self):
        jsonschema = pytest.importorskip("jsonschema")
        member = {"type": "string", "required": True}
        schema = {
            "type": "object",
            "properties": {"a": member, "b": {"type": "integer"}, "c": {"required": False}},
        }
        nested = {**schema, "properties": {"o": {**schema, "required": True}, **schema["properties"]}}
        for each in (schema, nested):
            each = {"$schema": "http://json-schema.org/draft-03/schema#", **each}
            judge, grammar = (
                jsonschema.Draft3Validator(each),
                mw.compile_json_schema(each, BYTES, property_order="any"),
            )
            for value in (
                {},
                {"a": "x"},
                {"b": 1},
                {"b": 1, "a": ""},
                {"c": None},
                {"a": "", "c": 1},
                {"o": {}, "a": ""},
                {"o": {"a": ""}, "a": ""},
            ):
                assert accepts(grammar, value) is judge.is_valid(value), (each, value)
        # Elsewhere it says nothing, as validators have it.
        assert accepts(
            mw.compile_json_schema({"$schema": DRAFT_7, "properties": {"a": {"required": True}}}, BYTES), {}
        )

    def test_chosen(self):
        for name in DIALECTS:
            assert document({"$schema": V2020}, dialect=name).root.base.dialect.name == name
        with pytest.raises(mw.GrammarError, match="dialect='draft5' is not one of"):
            SchemaOptions(dialect="draft5")

    def test_embedded_resources_have_their_own(self):
        schema = {
            "$schema": V2020,
            "$defs": {
                "old": {"$schema": DRAFT_7, "$id": "old.json", "items": {"$ref": "#", "maxItems": 2}},
                "older": {"$schema": DRAFT_4, "id": "older.json", "items": {}},
                # without an identifier it is no resource
                "same": {"$schema": DRAFT_7, "items": {}},
            },
        }
        root = document(schema).root
        names = [root.at("$defs", name).at("items").base.dialect.name for name in ("old", "older", "same")]
        assert names == ["draft7", "draft4", "2020-12"]

    def test_siblings_of_references(self, vocabulary):
        schema = {"$ref": "#/definitions/a", "maxItems": 2, "definitions": {"a": {"type": "array"}}}
        for dialect in DIALECTS:
            compiled = mw.compile_json_schema(schema, vocabulary, dialect=dialect)
            hides = dialect in ("draft3", "draft4", "draft6", "draft7", "openapi-3.0")
            assert accepts(compiled, [1, 2, 3]) is hides

    def test_nullable(self, vocabulary):
        for dialect, nullable in (("openapi-3.0", True), ("openapi-3.1", False), ("auto", False)):
            compiled = mw.compile_json_schema(
                {"type": "string", "nullable": True}, vocabulary, dialect=dialect
            )
            assert accepts(compiled, None) is nullable
        schema = {"allOf": [STRING], "nullable": True}
        assert not accepts(mw.compile_json_schema(schema, vocabulary, dialect="openapi-3.0"), None)

    def test_keywords_that_a_declared_dialect_does_not_have(self, vocabulary):
        newer = {"prefixItems": [STRING], "dependentRequired": {"a": ["b"]}}
        assert accepts(
            mw.compile_json_schema({"$schema": V2019, **newer, "dependentRequired": {}}, vocabulary), [1]
        )
        assert not accepts(mw.compile_json_schema(newer | {"dependentRequired": {}}, vocabulary), [1])
        compiled = mw.compile_json_schema({"$schema": DRAFT_7, **newer}, vocabulary)
        assert accepts(compiled, {"a": 1})
        notes = mw.check_json_schema({"$schema": DRAFT_7, "items": {"allOf": [newer]}}).findings
        assert [(n.code, n.place, n.message) for n in notes] == [
            (
                "unknown-keyword",
                "/items/allOf/0",
                f"'{keyword}' is no keyword of draft7; it is ignored",
            )
            for keyword in newer
        ]

    @pytest.mark.parametrize(
        ("schema", "bad", "since"),
        [
            ({"const": 1}, 2, "draft6"),
            ({"contains": STRING}, [], "draft6"),
            ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "draft6"),
            ({"if": STRING, "then": False}, "a", "draft7"),
            ({"if": STRING, "else": False}, 1, "draft7"),
            ({"contains": STRING, "minContains": 2}, ["a"], "2019-09"),
            ({"contains": STRING, "maxContains": 1}, ["a", "a"], "2019-09"),
            ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "2019-09"),
            ({"dependentSchemas": {"a": False}}, {"a": 1}, "2019-09"),
            ({"unevaluatedProperties": False}, {"a": 1}, "2019-09"),
            ({"unevaluatedItems": False}, [1], "2019-09"),
            ({"prefixItems": [STRING]}, [1], "2020-12"),
        ],
    )
    def test_keywords_mean_nothing_before_their_dialect(self, vocabulary, schema, bad, since):
        dialects = ["draft4", "draft6", "draft7", "2019-09", "2020-12"]
        for i, dialect in enumerate(dialects):
            compiled = mw.compile_json_schema(schema, vocabulary, dialect=dialect)
            assert accepts(compiled, bad) is (i < dialects.index(since)), dialect
        # Schemas that do not say which dialect they speak have them all.
        assert not accepts(mw.compile_json_schema(schema, vocabulary), bad)

    def test_values_and_members_keep_names_of_ignored_keywords(self, vocabulary):
        value = {"prefixItems": 1, "a": {"prefixItems": {}}}
        schema = {
            "$schema": V2019,
            "properties": {
                "prefixItems": {"const": value},
                "b": {"enum": [value]},
                "c": {"prefixItems": [False]},
            },
        }
        compiled = mw.compile_json_schema(schema, vocabulary)
        assert accepts(compiled, {"prefixItems": value, "b": value, "c": [1]})
        assert not accepts(compiled, {"prefixItems": {"a": {}}})
        assert not accepts(compiled, {"b": {"a": {"prefixItems": {}}}})
        # The text of the document stays what pointers lead through.
        assert target({**schema, "$ref": "#/properties/c/prefixItems/0"}).value is False

    def test_references_of_other_dialects_mean_nothing(self):
        for schema, keyword in (({"$schema": V2019}, "$dynamicRef"), ({}, "$recursiveRef"), ({}, "$ref")):
            read = document({**schema, "items": {keyword: "#/nowhere"}})
            if keyword == "$ref":
                with pytest.raises(mw.GrammarError):
                    survey(read, SchemaOptions())
            else:
                assert not survey(read, SchemaOptions())
        (note,) = mw.check_json_schema({"$recursiveRef": "#"}).findings
        assert note.code == "unknown-keyword"

    def test_custom_metaschemas(self, vocabulary):
        vocab = "https://json-schema.org/draft/2020-12/vocab/"
        metaschema = {"$schema": V2020, "$vocabulary": {vocab + "core": True, vocab + "applicator": True}}
        schema = {
            "$schema": "http://x/meta",
            "properties": {"no": False, "minimum": {"minimum": 10, "type": "string"}},
        }
        compiled = mw.compile_json_schema(schema, vocabulary, registry={"http://x/meta": metaschema})
        assert accepts(compiled, {"minimum": 1}) and not accepts(compiled, {"no": 1})
        metaschema["$vocabulary"]["http://x/own"] = False
        assert document(schema, registry={"http://x/meta#": metaschema}).root.base.ignored
        metaschema["$vocabulary"]["http://x/own"] = True
        with pytest.raises(mw.GrammarError, match="requires the vocabulary 'http://x/own'") as caught:
            document(schema, registry={"http://x/meta": metaschema})
        assert caught.value.place == "/$schema"
        cyclic = {
            "http://x/meta": {"$schema": "http://x/other"},
            "http://x/other": {"$schema": "http://x/meta"},
        }
        assert document(schema, registry=cyclic).root.base.dialect.name == "2020-12"


class TestKeywords:
    @pytest.mark.parametrize(
        ("keyword", "value"),
        [
            ("not", []),
            ("oneOf", []),
            ("oneOf", {}),
            ("if", 1),
            ("then", "x"),
            ("else", None),
            ("patternProperties", {"a": 1}),
            ("patternProperties", []),
            ("unevaluatedProperties", 1),
            ("unevaluatedItems", []),
            ("propertyNames", "a"),
            ("minProperties", -1),
            ("maxProperties", 1.5),
            ("minContains", "1"),
            ("maxContains", True),
            ("dependencies", {"a": 1}),
            ("dependencies", {"a": [1]}),
            ("dependentRequired", {"a": "b"}),
            ("dependentRequired", ["a"]),
            ("dependentSchemas", {"a": ["b"]}),
            ("contains", []),
            ("uniqueItems", "true"),
            ("multipleOf", 0),
            ("multipleOf", -1),
            ("multipleOf", "1"),
            ("divisibleBy", 0),
            ("$dynamicRef", 1),
        ],
    )
    def test_malformed_values(self, keyword, value):
        found = error({"items": {keyword: value}})
        assert found.place == f"/items/{keyword}"
        assert CHECKS[keyword][1] in found.message

    def test_good_values(self):
        schema = {
            "multipleOf": 0.01,
            "uniqueItems": True,
            "minContains": 0,
            "maxProperties": 2.0,
            "dependencies": {"a": ["b"], "c": {}, "d": False, "e": "f"},
            "dependentRequired": {"a": []},
            "contentSchema": "an annotation",
        }
        survey(document(schema), SchemaOptions())

    def test_every_keyword_that_holds_subschemas_is_followed(self):
        bad = {"type": "x"}
        places = {
            **{k: ((k,), bad) for k in ("not", "if", "contains", "propertyNames", "items")},
            **{k: ((k,), bad) for k in ("additionalProperties", "unevaluatedItems", "unevaluatedProperties")},
            **{k: ((k, 0), [bad]) for k in ("allOf", "anyOf", "oneOf", "prefixItems")},
            **{
                k: ((k, "a"), {"a": bad})
                for k in ("properties", "patternProperties", "dependencies", "dependentSchemas")
            },
        }
        for keyword, (path, value) in places.items():
            assert error({keyword: value}).place == "/" + "/".join(map(str, path)) + "/type"
        assert error({"items": [bad]}).place == "/items/0/type"
        assert error({"items": [], "additionalItems": bad}).place == "/additionalItems/type"
        for keyword in ("then", "else"):
            assert error({"if": True, keyword: bad}).place == f"/{keyword}/type"
        followed = {*places, "additionalItems", "then", "else"}
        assert followed == HOLDERS - {"$defs", "definitions", "contentSchema", "disallow", "extends"}

    @pytest.mark.parametrize(
        "schema",
        [
            {"additionalItems": {"type": "x"}},
            {"items": {}, "additionalItems": {"type": "x"}},
            {"then": {"type": "x"}, "else": {"type": "x"}},
            {"contentSchema": {"type": "x"}},
            {"$defs": {"a": {"type": "x"}, "b": {"$ref": "#/nowhere"}}},
        ],
    )
    def test_what_has_no_say_is_not_followed(self, schema):
        survey(document(schema), SchemaOptions())


def test_a_metaschema_may_make_formats_assertions(vocabulary):
    start = "https://json-schema.org/draft/2020-12/vocab/"
    registry = {
        "http://example.com/meta": {
            "$schema": V2020,
            "$vocabulary": {start + "core": True, start + "format-assertion": False},
        }
    }
    for uri, asserted in (("http://example.com/meta", True), (V2020, False)):
        schema = {"$schema": uri, "format": "ipv4"}
        compiled = mw.compile_json_schema(schema, vocabulary, formats="annotate", registry=registry)
        assert accepts(compiled, "x") is not asserted
        options = SchemaOptions(formats="annotate", registry=registry)
        (use,) = [u for u in mw.check_json_schema(schema, options).keywords if u.keyword == "format"]
        assert use.status == ("enforced" if asserted else "annotation")
