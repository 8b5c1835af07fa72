"""What is written, others read: a sample of ``bench/written_read.py``, and what makes it say so.

JavaScript is asked where node is and ``python bench/written_read.py --fetch`` installed ajv.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import readers
import written_read
from byte_walks import BYTES, finished_walk

import maskwright as mw
from maskwright.frontends.json_schema.texts.formats import PATTERNS

CASES = Path(mw.__file__).parent / "demo" / "cases"
ALL_READ: list[Any] = [
    *(json.loads(file.read_text(encoding="utf-8"))["schema"] for file in sorted(CASES.glob("*.json"))),
    *({"type": "string", "format": name} for name in sorted(PATTERNS)),
    {},
    {"type": "object", "propertyNames": {"maxLength": 2}, "minProperties": 3},
    {"type": "array", "items": {"type": "number"}, "uniqueItems": True, "minItems": 2},
    {"type": "number", "exclusiveMinimum": 0, "maximum": 1e-5},
    {"type": "string", "minLength": 3, "maxLength": 3},
    {"type": "string", "pattern": r"^\s+$"},
    {"type": "integer", "multipleOf": 7},
    {"type": "number", "not": {"type": "integer"}},
    {"type": "string", "pattern": r"^\w+\d[^a]\D$"},
    {"oneOf": [{"type": "integer", "maximum": 99}, {"type": "string", "maxLength": 2}, {"type": "null"}]},
]  # fmt: skip
SOME_REFUSE: list[tuple[Any, set[str]]] = [
    ({"type": "string", "format": "byte"}, {"ajv: format"}),
    ({"type": "string", "pattern": r"^\W+$"}, {"jsonschema: pattern"}),
    ({"type": "number", "multipleOf": 0.1}, {"ajv: multipleOf", "jsonschema: multipleOf"}),
    ({"type": "integer", "minimum": 10**20}, set()),
    (
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "properties": {"a": {"$ref": "#/definitions/d", "type": "null"}},
            "required": ["a"],
            "definitions": {"d": {"type": "boolean"}},
        },
        {"ajv: type"},
    ),
]
"""Schemas, and who refuses valid texts of them: docs/readers.md says why."""
ROUNDED = "an integer that doubles round (JavaScript)"


def said(schema: Any, javascript: readers.JavaScript | None, count: int) -> dict[str, bytes]:
    """The classes of what is written, each with a text."""
    compiled = mw.compile_json_schema(schema, BYTES)
    texts = [finished_walk(compiled, seed) for seed in range(count)]
    readings = readers.Readers(schema, javascript).read(texts)
    return {
        name: text
        for text, reading in zip(texts, readings, strict=True)
        for name, _ in written_read.classes(reading)
    }


@pytest.fixture(scope="module")
def javascript() -> Iterator[readers.JavaScript]:
    folder = readers.node_folder()
    if folder is None:
        pytest.skip("node or ajv is not here: python bench/written_read.py --fetch installs ajv")
    process = readers.JavaScript(folder)
    yield process
    process.close()


@pytest.mark.parametrize("schema", ALL_READ, ids=lambda schema: json.dumps(schema)[:60])
def test_all_in_python_read_it(schema: Any) -> None:
    assert said(schema, None, 25).keys() <= {ROUNDED}


@pytest.mark.parametrize("schema", ALL_READ, ids=lambda schema: json.dumps(schema)[:60])
def test_javascript_reads_it(schema: Any, javascript: readers.JavaScript) -> None:
    assert said(schema, javascript, 25).keys() <= {ROUNDED}


@pytest.mark.parametrize(
    ("schema", "classes"), SOME_REFUSE, ids=lambda given: json.dumps(given)[:60] if isinstance(given, dict) else ""
)  # fmt: skip
def test_who_refuses_what(schema: Any, classes: set[str], javascript: readers.JavaScript) -> None:
    assert said(schema, javascript, 60).keys() - {ROUNDED} <= classes


def test_a_reader_that_refuses_is_seen(javascript: readers.JavaScript) -> None:
    """Texts that no grammar writes."""
    integers = readers.Readers({"type": "integer"}, javascript)
    fine, wrong, torn, huge, exact = integers.read([b"1.0", b'"a"', b"[1", b"1e999", b"9007199254740993"])
    assert not fine.refused and len(set(fine.values.values())) == 1 and not list(written_read.classes(fine))
    assert list(wrong.refused) == ["jsonschema", "jsonschema-rs", "ajv"]
    assert [name for name, _ in written_read.classes(wrong)] == ["OURS: invalid: type"]
    assert {"json", "orjson", "JavaScript"} <= torn.refused.keys()
    assert "OURS: orjson does not parse" in dict(written_read.classes(huge))
    assert [name for name, _ in written_read.classes(exact)] == [ROUNDED]
    (twice,) = readers.Readers({}, javascript).read([b'{"a":1,"a":2}'])
    assert len(set(twice.values.values())) == 1
    twice.values["orjson"] = readers.spelled({"a": 1})
    assert [name for name, _ in written_read.classes(twice)] == ["OURS: parsers find different values"]


def test_a_reader_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch, javascript: readers.JavaScript
) -> None:
    monkeypatch.setattr(readers, "SECONDS", 1)
    catastrophe = readers.Readers({"pattern": "^(a|a)*$"}, javascript)
    (reading,) = catastrophe.read([b'"' + b"a" * 60 + b'b"'])
    assert {reading.refused[name][0] for name in ("jsonschema", "JavaScript")} == {readers.NO_ANSWER}
    assert "ajv" not in reading.refused
    # The next question is answered by a new process.
    monkeypatch.undo()
    (reading,) = readers.Readers({"type": "null"}, javascript).read([b"null"])
    assert not reading.refused


def test_spelled_values() -> None:
    assert (
        readers.spelled([1, 1.0, -0.0, 0])
        == "[" + ",".join(["n3ff0000000000000"] * 2 + ["n0000000000000000"] * 2) + "]"
    )
    assert readers.spelled({"b": None, "a": "é"}) == readers.spelled({"a": "é", "b": None})
    assert readers.spelled("1") != readers.spelled(1)
    assert readers.rounds({"a": [2**53 + 1]}) and not readers.rounds([2**53, 1.5, True])
