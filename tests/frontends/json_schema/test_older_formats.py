"""Formats of later drafts under ``not``, ``oneOf`` and ``if``: what is written, validators of both kinds take."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from byte_walks import BYTES, accepts, finished_walk

import maskwright as mw

VALIDATORS: dict[str, tuple[Any, Any]] = {
    "draft4": (jsonschema.Draft4Validator, jsonschema_rs.Draft4Validator),
    "draft6": (jsonschema.Draft6Validator, jsonschema_rs.Draft6Validator),
    "draft7": (jsonschema.Draft7Validator, jsonschema_rs.Draft7Validator),
}
SHORT = {"type": "string", "maxLength": 3}
OTHERS = ("duration", "idn-hostname", "iri", "json-pointer", "relative-json-pointer", "uri-template", "uuid")


@pytest.mark.parametrize("dialect", VALIDATORS)
@pytest.mark.parametrize("name", OTHERS)
def test_what_is_written_is_valid(dialect: str, name: str) -> None:
    python, rust = VALIDATORS[dialect]
    a_format = {"type": "string", "format": name}
    for schema in (
        {"oneOf": [a_format, {"type": ["string", "null"], "minLength": 2, "maxLength": 3}]},
        {"not": a_format, "type": ["string", "boolean"]},
        {"anyOf": [{"not": a_format, "type": "string"}, {"type": "integer"}]},
    ):
        compiled = mw.compile_json_schema(schema, BYTES, dialect=dialect)
        for seed in range(5):
            value = json.loads(finished_walk(compiled, seed))
            python(schema, format_checker=python.FORMAT_CHECKER).validate(value)
            rust(schema, validate_formats=True).validate(value)


def test_where_a_format_is_asked_for_it_is_kept() -> None:
    schema = {"oneOf": [{"type": "string", "format": "uuid"}, SHORT]}
    newer, older = (mw.compile_json_schema(schema, BYTES, dialect=name) for name in ("2020-12", "draft7"))
    assert accepts(newer, '"abc"') and not accepts(older, '"abc"')
    for compiled in (newer, older):
        assert accepts(compiled, '"01234567-89ab-cdef-0123-456789abcdef"') and not accepts(compiled, '"abcd"')


def test_what_a_wider_format_has_too_is_not_alone() -> None:
    """An address without a dot is not written, but validators take it for one."""
    for other in ({"const": "a@b"}, SHORT):
        schema = {"oneOf": [{"type": "string", "format": "email"}, other]}
        compiled = mw.compile_json_schema(schema, BYTES)
        assert not accepts(compiled, '"a@b"') and accepts(compiled, '"a@b.org"')
