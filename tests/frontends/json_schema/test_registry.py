"""Documents elsewhere: registries, metaschemas, and what is kept of them."""

from __future__ import annotations

import sys
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
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import reachable, survey
from maskwright.limits import Limits


@pytest.fixture(scope="module")
def vocabulary() -> mw.Vocabulary:
    return BYTES


class TestRegistry:
    SCHEMAS = {  # noqa: RUF012
        "http://x/a.json": {"properties": {"b": {"$ref": "b.json#/$defs/i"}}, "$defs": {"i": STRING}},
        "http://x/b.json": {"$id": "http://y/real.json", "$defs": {"i": {"$ref": "c.json"}}},
        "http://y/c.json": {"$ref": "#/$defs/i", "$defs": {"i": INTEGER}},
    }

    @pytest.mark.parametrize("as_function", [False, True])
    def test_documents_elsewhere(self, as_function, vocabulary):
        asked: list[str] = []

        def load(uri: str) -> Any:
            asked.append(uri)
            return self.SCHEMAS[uri]

        registry = load if as_function else self.SCHEMAS
        compiled = mw.compile_json_schema({"$ref": "http://x/a.json"}, vocabulary, registry=registry)
        assert accepts(compiled, {"b": 1}) and not accepts(compiled, {"b": "1"})
        assert asked == (["http://x/a.json", "http://x/b.json", "http://y/c.json"] if as_function else [])

    def test_places_elsewhere_say_where(self):
        registry = {"http://x/a.json": {"items": {"$ref": "#/$defs/nothing"}}, "http://x/b": {"type": "x"}}
        assert error({"$ref": "http://x/a.json"}, registry=registry).place == "http://x/a.json#/items/$ref"
        assert error({"$ref": "http://x/b"}, registry=registry).place == "http://x/b#/type"
        (finding,) = mw.check_json_schema({"$ref": "http://x/b"}, SchemaOptions(registry=registry)).findings
        assert finding.place == "http://x/b#/type"

    def test_relative_names_and_text(self):
        registry = {
            "a.json": '{"$ref": "folder/b.json"}',
            "folder/b.json": b'{"$ref": "../c.json"}',
            "c.json": {},
        }
        read = document({"$ref": "a.json"}, registry=registry)
        places = [node.pointer for node in reachable(read)]
        assert places == ["", "a.json#", "folder/b.json#", "c.json#"]

    def test_documents_without_a_dialect_speak_that_of_the_reference(self):
        registry = {"http://x/a": {"id": "http://x/b", "items": {"$ref": "b#"}}}
        found = target({"$schema": DRAFT_4, "allOf": [{"$ref": "http://x/a"}]}, "allOf", 0, registry=registry)
        assert found.base.dialect.name == "draft4" and found.base.uri == "http://x/b"

    @pytest.mark.parametrize(
        ("found", "words"),
        [
            (None, "the registry has no such URI"),
            ([1], "what the registry has for 'http://x/z': a schema is an object or a boolean"),
            ("{", "what the registry has for 'http://x/z': 1:2: malformed JSON"),
            ({"const": object()}, "is not a JSON value"),
        ],
    )
    def test_what_a_registry_does_not_have(self, found, words):
        result = error({"items": {"$ref": "http://x/z"}}, registry=lambda uri: found)
        assert result.place == "/items/$ref"
        assert words in result.message

    def test_errors_of_a_loader_are_not_hidden(self):
        def load(uri: str) -> Any:
            raise OSError(uri)

        with pytest.raises(OSError, match="http://x/z"):
            survey(document({"$ref": "http://x/z"}, registry=load), SchemaOptions())

    def test_endless_registries_are_a_limit(self):
        limits = Limits(max_schema_values=1000)
        read = Document({"$ref": "0"}, limits, registry=lambda uri: {"$ref": str(int(uri) + 1)})
        with pytest.raises(mw.LimitError, match="max_schema_values"):
            survey(read, SchemaOptions())

    def test_what_is_in_the_document_comes_first(self):
        schema = {"$ref": "http://x/a", "$defs": {"a": {"$id": "http://x/a"}}}
        assert target(schema, registry={"http://x/a": False}).pointer == "/$defs/a"

    @pytest.mark.parametrize(
        "uri", [DRAFT_4, DRAFT_7, V2019, V2020, "https://json-schema.org/draft-07/schema#"]
    )
    def test_metaschemas(self, uri):
        pytest.importorskip("jsonschema_specifications")
        read = document({"$ref": uri})
        assert is_valid(read, {"minLength": 1, "properties": {"a": {"type": "integer"}}})
        assert not is_valid(read, {"minLength": -1})
        assert not is_valid(read, {"properties": {"a": {"type": 5}}})

    def test_metaschemas_need_a_package(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "jsonschema_specifications", None)
        assert "install jsonschema-specifications" in str(error({"$ref": V2020}))
        assert "jsonschema-specifications" not in str(error({"$ref": "http://x/a"}))

    def test_grammars_are_kept_by_the_content_of_plain_registries(self, vocabulary):
        def compiled(registry: Any) -> mw.CompiledGrammar:
            return mw.compile_json_schema({"$ref": "http://kept/a"}, vocabulary, registry=registry)

        registry: dict[str, Any] = {"http://kept/a": {"const": 1}}
        first = compiled(registry)
        assert compiled({"http://kept/a": {"const": 1}}) is first
        registry["http://kept/a"]["const"] = True
        assert compiled(registry) is not first
        assert accepts(compiled(registry), True) and not accepts(compiled(registry), 1)
        assert compiled(registry.get) is not compiled(registry.get)
        assert accepts(compiled(registry.get), True)

    def test_options_with_a_registry_can_be_compared_and_hashed(self):
        a, b = SchemaOptions(registry={"a": {}}), SchemaOptions(registry={"a": {}})
        assert a == b and hash(a) == hash(b)
        assert a != SchemaOptions()

    def test_sources_with_a_registry(self, vocabulary):
        source = mw.JsonSchema({"$ref": "i"}, registry={"i": INTEGER}, dialect="draft7")
        assert accepts(mw.compile(source, vocabulary), 1)


def test_a_document_that_declares_no_dialect_speaks_that_of_the_main_one() -> None:
    """Whoever refers to it first."""
    old, new = "http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"
    registry = {
        "http://h/a": {"$schema": old, "$ref": "http://h/c"},
        "http://h/b": {"$schema": new, "$ref": "http://h/c"},
        "http://h/c": {"type": "array", "prefixItems": [{"type": "integer"}], "maxItems": 1},
    }
    for order in ("ab", "ba"):
        for main, refused in ((new, True), (old, False)):
            schema = {"$schema": main, "allOf": [{"$ref": f"http://h/{name}"} for name in order]}
            matcher = mw.compile_json_schema(schema, BYTES, registry=registry).matcher()
            assert (matcher.accept_bytes(b'["x"]') and matcher.is_accepting) != refused, (order, main)
