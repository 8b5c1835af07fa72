"""References: where each one leads, and what cannot be resolved."""

from __future__ import annotations

from typing import Any

import pytest
from schema_evaluator import (
    BYTES,
    DRAFT_4,
    DRAFT_7,
    INTEGER,
    STRING,
    V2019,
    V2020,
    accepts,
    document,
    error,
    is_valid,
    target,
)

import maskwright as mw
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_schema.read.keywords import reachable, survey
from maskwright.frontends.json_schema.read.references import join_uri


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return BYTES


class TestUris:
    # RFC 3986, section 5.4; base http://a/b/c/d;p?q
    @pytest.mark.parametrize(
        ("reference", "expected"),
        [
            ("g:h", "g:h"),
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("#s", "http://a/b/c/d;p?q"),
            ("g#s", "http://a/b/c/g"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("..g", "http://a/b/c/..g"),
            ("./../g", "http://a/b/g"),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g?y/./x", "http://a/b/c/g?y/./x"),
        ],
    )
    def test_rfc_examples(self, reference, expected):
        assert join_uri("http://a/b/c/d;p?q", reference) == expected

    @pytest.mark.parametrize(
        ("base", "reference", "expected"),
        [
            ("", "a.json#/b", "a.json"),
            ("", "http://x/a/../b", "http://x/b"),
            ("schemas/a.json", "../b.json", "b.json"),
            ("schemas/a.json", "b.json", "schemas/b.json"),
            ("http://x", "a", "http://x/a"),
            ("file:///c:/a/b.json", "c.json", "file:///c:/a/c.json"),
            ("custom://host/a/b", "c", "custom://host/a/c"),
            ("urn:uuid:deadbeef", "#x", "urn:uuid:deadbeef"),
            ("http://x/[", "//[", "//["[:0] + "http://["),
        ],
    )
    def test_other_bases(self, base, reference, expected):
        assert join_uri(base, reference) == expected


class TestPointers:
    @pytest.mark.parametrize(
        ("reference", "place"),
        [
            ("#", ""),
            ("", ""),
            ("#/$defs/a", "/$defs/a"),
            ("#/$defs/tilde~0x", "/$defs/tilde~0x"),
            ("#/$defs/slash~1x", "/$defs/slash~1x"),
            ("#/$defs/~01", "/$defs/~01"),
            ("#/$defs/percent%25x", "/$defs/percent%x"),
            ("#/%24defs/%C3%A4", "/$defs/ä"),
            ("#/$defs/quote%22x", '/$defs/quote"x'),
            ("#/$defs//$defs/", "/$defs//$defs/"),
            ("#/$defs/list/anyOf/1", "/$defs/list/anyOf/1"),
            ("#/unknown/deep/0", "/unknown/deep/0"),
            ("#/examples/0", "/examples/0"),
        ],
    )
    def test_places(self, reference, place):
        names = ("a", "tilde~x", "slash/x", "~1", "percent%x", "ä", 'quote"x')
        schema = {
            "$ref": reference,
            "$defs": {
                **dict.fromkeys(names, INTEGER),
                "": {"$defs": {"": INTEGER}},
                "list": {"anyOf": [True, STRING]},
            },
            "unknown": {"deep": [INTEGER]},
            "examples": [STRING],
        }
        assert target(schema).pointer == place

    @pytest.mark.parametrize(
        ("reference", "words"),
        [
            ("#/$defs/b", "'b' is missing in /$defs"),
            ("#/$defs/a/type/0", "'0' is missing"),
            ("#/anyOf/2", "'2' is missing in /anyOf"),
            ("#/anyOf/-1", "'-1' is missing"),
            ("#/anyOf/01", "'01' is missing"),
            ("#/anyOf/" + "9" * 5000, "is missing"),
            ("#nowhere", "no subschema of this document has the anchor 'nowhere'"),
            ("#$defs/a", "no subschema of this document has the anchor '$defs/a'"),
            ("other.json", "remote schemas are never fetched: give it in the registry"),
            ("http://[", "nothing here has the identifier 'http://['"),
        ],
    )
    def test_what_is_not_there(self, reference, words):
        found = error({"anyOf": [{"$ref": reference}, True], "$defs": {"a": INTEGER}})
        assert found.place == "/anyOf/0/$ref"
        assert words in found.message

    def test_a_target_that_is_no_schema(self):
        assert error({"$ref": "#/title", "title": "x"}).place == "/title"

    def test_names_of_members_are_no_keywords(self):
        schema = {
            "$id": "http://x/a.json",
            "properties": {"$ref": {"$ref": "#/$defs/i"}, "$id": STRING, "id": STRING, "$anchor": STRING},
            "$defs": {"i": INTEGER, "$id": {"$id": "b.json"}},
        }
        read = document(schema)
        assert not survey(read, SchemaOptions())
        assert read.resolve(read.root.at("properties", "$ref")).pointer == "/$defs/i"
        assert read.root.at("properties", "$id").base is read.root.base
        assert target({**schema, "$ref": "b.json"}).pointer == "/$defs/$id"

    def test_a_reference_is_resolved_once(self):
        read = document(
            {"properties": {"a": {"$ref": "#/$defs/i"}, "b": {"$ref": "#/$defs/i"}}, "$defs": {"i": {}}}
        )
        first, second = (read.resolve(read.root.at("properties", name)) for name in "ab")
        assert first is second


class TestIdentifiers:
    def test_bases_change_at_any_depth(self):
        schema = {
            "$id": "http://x/root.json",
            "$defs": {
                "a": {"$id": "folder/", "items": {"$defs": {"b": {"$id": "b.json", "$defs": {"c": STRING}}}}},
            },
            "$ref": "http://x/folder/b.json#/$defs/c",
        }
        found = target(schema)
        assert found.pointer == "/$defs/a/items/$defs/b/$defs/c"
        assert found.base.uri == "http://x/folder/b.json"

    def test_pointers_are_relative_to_the_nearest_resource(self):
        inner = {"$id": "inner.json", "$ref": "#/$defs/i", "$defs": {"i": INTEGER}}
        schema = {"$id": "http://x/a.json", "items": inner, "$defs": {"i": STRING}}
        read = document(schema)
        assert read.resolve(read.root.at("items")).pointer == "/items/$defs/i"
        # Many identifiers were written without that in mind: the document is tried, too.
        del inner["$defs"]
        read = document(schema)
        assert read.resolve(read.root.at("items")).pointer == "/$defs/i"

    def test_pointers_across_resources(self):
        schema = {
            "$ref": "#/$defs/a/$defs/b",
            "$defs": {"a": {"$id": "http://x/a", "$defs": {"b": {"$ref": "b"}}}},
        }
        assert target(schema).base.uri == "http://x/a"

    @pytest.mark.parametrize(
        "uri",
        [
            "urn:uuid:deadbeef-1234-ffff-ffff-4321feebdaed",
            "urn:example:a?+b:c=d",
            "tag:x,2026:a",
            "file:///a.json",
        ],
    )
    def test_other_schemes(self, uri):
        schema = {"$id": uri, "$defs": {"i": {"$anchor": "i"}}, "properties": {}}
        for reference, place in (
            (uri, ""),
            (uri + "#i", "/$defs/i"),
            ("#i", "/$defs/i"),
            (uri + "#/$defs/i", "/$defs/i"),
        ):
            assert target({**schema, "$ref": reference}).pointer == place

    def test_anchors_belong_to_their_resource(self):
        schema = {
            "$id": "http://x/a",
            "$defs": {
                "A": {"$id": "child1", "allOf": [{"$id": "child2", "$anchor": "m"}, {"$anchor": "m"}]},
            },
        }
        assert target({**schema, "$ref": "child1#m"}).pointer == "/$defs/A/allOf/1"
        assert target({**schema, "$ref": "child2#m"}).pointer == "/$defs/A/allOf/0"
        assert "no subschema of http://x/a has the anchor 'm'" in str(error({**schema, "$ref": "#m"}))

    @pytest.mark.parametrize(("dialect", "keyword"), [(DRAFT_4, "id"), (DRAFT_7, "$id")])
    def test_plain_names_of_old_drafts(self, dialect, keyword):
        schema = {
            "$schema": dialect,
            keyword: "http://x/root",
            "definitions": {
                "A": {keyword: "#foo", "type": "integer"},
                "B": {keyword: "nested.json", "definitions": {"C": {keyword: "#foo"}}},
                "D": {keyword: "d.json#bar"},
                # as generators wrote them: no change of base
                "E": {keyword: "#/definitions/E", "items": {"$ref": "#foo"}},
                "F": {keyword: "http://x/root#/definitions/F", "items": {"$ref": "#foo"}},
            },
        }
        for reference, place in (
            ("#foo", "/definitions/A"),
            ("http://x/root#foo", "/definitions/A"),
            ("nested.json#foo", "/definitions/B/definitions/C"),
            ("d.json#bar", "/definitions/D"),
            ("#/definitions/E", "/definitions/E"),
        ):
            assert target({**schema, "allOf": [{"$ref": reference}]}, "allOf", 0).pointer == place
        for name in "EF":
            assert target(schema, "definitions", name, "items").pointer == "/definitions/A"

    def test_a_reference_hides_the_identifier_beside_it(self):
        schema = {
            "$id": "http://x/base/",
            "definitions": {"a": {"$id": "http://x/foo.json"}, "b": {"$id": "foo.json"}},
            "allOf": [{"$id": "http://x/", "$ref": "foo.json"}],
        }
        assert target({"$schema": DRAFT_7, **schema}, "allOf", 0).pointer == "/definitions/b"
        assert target({"$schema": V2020, **schema}, "allOf", 0).pointer == "/definitions/a"

    @pytest.mark.parametrize("holder", ["const", "enum", "unknown", "default", "examples"])
    def test_what_is_no_subschema_has_no_identifier(self, holder):
        false = {"$id": "http://x/it", "$anchor": "it", "type": "null"}
        schema = {
            "$id": "http://x/a",
            "not": {holder: [false] if holder in ("enum", "examples") else false},
            "$defs": {"real": {"$id": "http://x/it", "$anchor": "it"}},
        }
        for reference in ("it", "http://x/it#it"):
            assert target({**schema, "$ref": reference}).pointer == "/$defs/real"
        del schema["$defs"]
        assert "cannot be resolved" in str(error({**schema, "$ref": "it"}))

    def test_ambiguous_identifiers_are_errors_when_used(self):
        twice = {"a": {"$id": "http://x/a", "$anchor": "n"}, "b": {"$id": "http://x/a"}}
        schema: dict[str, Any] = {"$defs": {**twice, "c": {"$anchor": "m"}, "d": {"$anchor": "m"}}}
        assert not survey(document(schema), SchemaOptions())
        assert "identifies /$defs/a and /$defs/b" in str(error({**schema, "$ref": "http://x/a"}))
        found = error({**schema, "$ref": "#m"})
        assert found.place == "/$ref" and "ambiguous" in found.message
        assert "identifies # and /$defs/a" in str(error({**schema, "$id": "http://x/a", "$ref": "a"}))

    def test_the_identifier_keyword_of_another_dialect_is_tried_last(self):
        schema = {
            "id": "http://x/a.json",
            "properties": {"p": {"$ref": "b.json"}, "q": {"$ref": "b.json#n"}},
            "definitions": {"b": {"id": "b.json", "items": {"$id": "http://y/", "id": "#n"}}},
        }
        assert target(schema, "properties", "p").pointer == "/definitions/b"
        found = target(schema, "properties", "q")
        assert found.pointer == "/definitions/b/items" and found.base.uri == "http://y/"
        assert "cannot be resolved" in str(error({**schema, "$ref": "c.json"}))

    def test_deep_and_cyclic_identifiers(self):
        schema: dict[str, Any] = {"$id": "x", "$ref": "0.json"}
        inner = schema
        for i in range(150):
            inner["items"] = {"$id": f"{i}.json", "$ref": f"{i + 1}.json"}
            inner = inner["items"]
        inner["$ref"] = "0.json"
        assert len(list(reachable(document(schema)))) == 151

    def test_chains_of_references_are_a_limit(self, vocabulary):
        defs = {f"d{i}": {"$id": f"{i}.json", "$ref": f"{i + 1}.json"} for i in range(1000)}
        with pytest.raises(mw.LimitError, match="max_depth"):
            mw.compile_json_schema(
                {"$defs": {**defs, "z": {"$id": "1000.json"}}, "$ref": "0.json"}, vocabulary
            )


TREE = {
    "$id": "http://x/tree",
    "$dynamicAnchor": "node",
    "properties": {"kids": {"items": {"$dynamicRef": "#node"}}},
}


class TestDynamicScope:
    def test_one_candidate_is_not_kept_track_of(self):
        schema = {
            "$ref": "list",
            "$defs": {
                "list": {
                    "$id": "list",
                    "items": {"$dynamicRef": "#i"},
                    "$defs": {"i": {"$dynamicAnchor": "i"}},
                }
            },
        }
        read = document({"$id": "http://x/", **schema})
        assert all(not node.scope for node in reachable(read))
        assert len(list(reachable(read))) == 4

    def test_the_outermost_resource_wins(self):
        strict = {
            "$id": "http://x/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
        }
        for read in (
            document({**strict, "$defs": {"tree": TREE}}),
            document(strict, registry={"http://x/tree": TREE}),
        ):
            assert is_valid(read, {"kids": [{"kids": []}]})
            assert not is_valid(read, {"kids": [{"kid": 1}]})
            assert len(list(reachable(read))) == 5
        assert is_valid(document(TREE), {"kids": [{"kid": 1}]})

    def test_one_place_in_two_scopes(self, vocabulary):
        lists = {
            f"{name}s": {
                "$id": f"http://x/{name}s",
                "$ref": "list",
                "$defs": {"i": {"$dynamicAnchor": "i", "type": name}},
            }
            for name in ("integer", "string")
        }
        items = {
            "$id": "http://x/list",
            "type": "array",
            "items": {"$dynamicRef": "#i"},
            "$defs": {"i": {"$dynamicAnchor": "i"}},
        }
        schema = {
            "$id": "http://x/main",
            "properties": {"a": {"$ref": "integers"}, "b": {"$ref": "strings"}, "c": {"$ref": "list"}},
            "$defs": {**lists, "list": items},
        }
        compiled = mw.compile_json_schema(schema, vocabulary)
        assert accepts(compiled, {"a": [1], "b": ["x"], "c": [1, "x"]})
        assert not accepts(compiled, {"a": ["x"]}) and not accepts(compiled, {"b": [1]})
        read = document(schema)
        places = [read.resolve(read.resolve(read.root.at("properties", name))) for name in "ab"]
        assert places[0].pointer == places[1].pointer and places[0] != places[1]
        assert len({places[0], places[1], *places}) == 2

    def test_scopes_stay_few_in_recursion(self):
        read = document(
            {
                "$id": "http://x/a",
                "$dynamicAnchor": "n",
                "properties": {"b": {"$ref": "b"}, "c": {"$dynamicRef": "#n"}},
                "$defs": {
                    "b": {
                        "$id": "b",
                        "$dynamicAnchor": "n",
                        "items": {"$dynamicRef": "#n"},
                        "not": {"$ref": "a"},
                    }
                },
            }
        )
        assert len(list(reachable(read))) == 6

    def test_recursive_anchors(self):
        inner = {"$id": "inner", "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}
        schema = {"$schema": V2019, "$id": "http://x/a", "$defs": {"i": inner}, "$ref": "inner"}
        for anchor, place in ((True, ""), (False, "/$defs/i")):
            read = document({**schema, "$recursiveAnchor": anchor})
            items = read.resolve(read.root).at("items")
            assert read.resolve(items, "$recursiveRef").pointer == place

    def test_chains_elsewhere_are_found_before_they_are_needed(self):
        # The document has one candidate; which others there are shows on the way.
        registry = {
            "http://x/b": {
                "$id": "http://x/b",
                "$ref": "c",
                "$defs": {"i": {"$dynamicAnchor": "i", "type": "integer"}},
            },
            "http://x/c": {
                "$id": "http://x/c",
                "items": {"$dynamicRef": "#i"},
                "$defs": {"i": {"$dynamicAnchor": "i"}},
            },
        }
        read = document({"$ref": "http://x/b"}, registry=registry)
        assert is_valid(read, [1]) and not is_valid(read, ["a"])
        own = {"$defs": {"i": {"$dynamicAnchor": "i", "type": "string"}}, "$ref": "http://x/b"}
        assert is_valid(document(own, registry=registry), ["a"])


class TestNodes:
    def test_negation(self):
        node = document({"not": {"items": {}}}).root.at("not")
        negated = node.negation()
        assert negated.negated and not node.negated
        assert negated != node and hash(negated) != hash(node) and negated.negation() == node
        assert not negated.at("items").negated

    def test_values(self):
        node = document({"const": {"a": [1]}, "enum": [{}], "properties": {"const": {}, "enum": {}}}).root
        assert (
            node.at("const").is_value and node.at("const").at("a", 0).is_value and node.at("enum", 0).is_value
        )
        assert not node.at("properties", "const").is_value and not node.at("properties", "enum").is_value
