"""What JSON printers write is accepted by default: the printers themselves are asked, with 200 documents and more.

Go and Jackson are seldom installed: what they write for ``printers/documents.jsonl`` lies in ``printers/golden.jsonl``,
made by the programs beside it (Go 1.27, Jackson 2.20).
"""

from __future__ import annotations

import gzip
import itertools
import json
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from places import DATA

import maskwright as mw
from maskwright.errors import MaskwrightError

HERE = Path(__file__).parent
PRINTERS = HERE / "printers"
MASKBENCH = DATA / "maskbench-dev.jsonl.gz"
BYTES = mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [None], eos_ids=[256])
LEAST = 200

JAVASCRIPT = """
const values = require("fs").readFileSync(0, "utf8").trimEnd().split("\\n").map(JSON.parse);
console.log(JSON.stringify(values.map(
    v => [JSON.stringify(v), JSON.stringify(v, null, 2), JSON.stringify(v, null, 4), JSON.stringify(v, null, "\\t")])));
"""


def by_python(values: list[Any]) -> list[list[str]]:
    layouts: list[dict[str, Any]] = [
        {},
        {"separators": (",", ":")},
        {"indent": 2},
        {"indent": 4},
        {"indent": "\t"},
    ]
    return [
        [json.dumps(v, ensure_ascii=ascii, **layout) for layout in layouts for ascii in (True, False)]
        for v in values
    ]


def lines(values: list[Any]) -> bytes:
    return "".join(json.dumps(v) + "\n" for v in values).encode()


def by_node(values: list[Any]) -> list[list[str]]:
    done = subprocess.run(["node", "-e", JAVASCRIPT], input=lines(values), capture_output=True, check=True)
    texts: list[list[str]] = json.loads(done.stdout)
    return texts


def by_jq(values: list[Any]) -> list[list[str]]:
    """Each text begins with a record separator, as --seq reads and writes it."""
    given = b"".join(b"\x1e" + line + b"\n" for line in lines(values).splitlines())
    columns = []
    for options in (["."], ["-c", "."], ["--tab", "."], ["-a", "."]):
        done = subprocess.run(["jq", "--seq", *options], input=given, capture_output=True, check=True)
        columns.append([text.removesuffix("\n") for text in done.stdout.decode().split("\x1e")[1:]])
    return [list(texts) for texts in zip(*columns, strict=True)]


def printer(name: str, write: Callable[[list[Any]], list[list[str]]]) -> Any:
    missing = name != "python" and shutil.which(name) is None
    return pytest.param(write, id=name, marks=pytest.mark.skipif(missing, reason=f"{name} is not installed"))


PROGRAMS = [printer("python", by_python), printer("node", by_node), printer("jq", by_jq)]


def is_accepted(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def read(name: str) -> list[Any]:
    # Not splitlines: texts have line breaks of other kinds in them.
    with (PRINTERS / name).open(encoding="utf-8", newline="\n") as file:
        return [json.loads(line) for line in file]


@cache
def own_documents() -> list[Any]:
    return read("documents.jsonl")


@cache
def corpus() -> list[tuple[Any, Any]]:
    """Schemas of other tests, each with a value that it allows."""
    cases = [
        case for file in sorted((HERE / "corpus").glob("*.json")) for case in json.loads(file.read_text())
    ]
    return [(case["schema"], json.loads(text)) for case in cases for text in case["accept"]]


def maskbench() -> Iterator[tuple[Any, Any]]:
    with gzip.open(MASKBENCH, "rt") as file:
        for number, line in enumerate(file):
            if number % 16 == 0:
                case = json.loads(line)
                yield from [(case["schema"], test["data"]) for test in case["tests"] if test["valid"]][:1]


def same(value: Any, other: Any) -> bool:
    """Equal with the order of members, which JavaScript changes for some, and without rounding."""
    return json.dumps(value) == json.dumps(other)


def unwritten(value: Any) -> bool:
    """Whether a text in it is no Unicode: a lone surrogate."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


@pytest.mark.parametrize("write", PROGRAMS)
def test_any_json_that_a_printer_writes(write: Callable[[list[Any]], list[list[str]]]) -> None:
    values = [*own_documents(), *(value for _, value in corpus() if not unwritten(value))]
    assert len(values) >= LEAST
    compiled = mw.compile_json_schema(True, BYTES)
    written = write(values)
    assert len(written) == len(values)
    for text in itertools.chain.from_iterable(written):
        assert is_accepted(compiled, text), text


def check_schemas(cases: list[tuple[Any, Any]], write: Callable[[list[Any]], list[list[str]]]) -> int:
    """Where a schema takes a value in whatever spelling, it takes what the printer writes; returns how many were asked."""
    asked = 0
    for (schema, value), texts in zip(cases, write([value for _, value in cases]), strict=True):
        try:
            widest = mw.compile_json_schema(schema, BYTES, whitespace="flexible", escapes="any")
        except MaskwrightError:
            continue
        compiled = mw.compile_json_schema(schema, BYTES)
        for text in texts:
            if same(json.loads(text), value) and is_accepted(widest, json.dumps(value)):
                asked += 1
                assert is_accepted(compiled, text), (schema, text)
    return asked


@pytest.mark.parametrize("write", PROGRAMS)
def test_what_a_printer_writes_for_the_schemas_of_other_tests(
    write: Callable[[list[Any]], list[list[str]]],
) -> None:
    assert check_schemas([case for case in corpus() if not unwritten(case[1])], write) >= LEAST


@pytest.mark.slow
@pytest.mark.skipif(not MASKBENCH.is_file(), reason="the MaskBench data is not here")
@pytest.mark.parametrize("write", PROGRAMS)
def test_what_a_printer_writes_for_real_schemas(write: Callable[[list[Any]], list[list[str]]]) -> None:
    assert check_schemas([case for case in maskbench() if not unwritten(case[1])], write) >= LEAST


@cache
def golden() -> list[tuple[str, str]]:
    return [(entry["printer"], entry["text"]) for entry in read("golden.jsonl")]


@pytest.mark.parametrize("name", sorted({name for name, _ in golden()}))
def test_what_go_and_jackson_write(name: str) -> None:
    compiled = mw.compile_json_schema(True, BYTES)
    texts = [text for printer, text in golden() if printer == name]
    assert len(texts) == len(own_documents())
    for text, value in zip(texts, own_documents(), strict=True):
        assert json.loads(text) == value
        assert is_accepted(compiled, text), text


NOT_PRINTED = [
    ' {"a": 1}', '{"a": 1}\n', '{"a": 1 , "b": 2}', '{"a"  : 1}', '{"a":  1}', '{"a":\n1}', '{"a"\n: 1}', '{  "a": 1}',
    '{"a": 1,  "b": 2}', '{"a": 1\n, "b": 2}', '{\n\n"a": 1}', '{\n \t"a": 1}', '{\r"a": 1}', '{\t"a": 1}',
    '{"a": [1, 2  ]}', '{"a": [1,\t2]}', '[  ]', '{"\\u0061": 1}', '{"a": "\\u0041"}', '{"a": "\\/"}', '{"a/b\\/": 1}',
    '{"a": "\\u000a"}', '{"a": "\\u0022"}', '{"a": "\\u002F"}',
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_PRINTED)
def test_what_no_printer_writes(text: str) -> None:
    json.loads(text)
    assert not is_accepted(mw.compile_json_schema(True, BYTES), text)
    assert is_accepted(
        mw.compile_json_schema(True, BYTES, whitespace="flexible", escapes="any"), text.strip()
    )


def test_a_key_has_one_spelling() -> None:
    schema = {"type": "object", "properties": {"organizer": {"type": "null"}}, "required": ["organizer"]}
    matcher = mw.compile_json_schema(schema, BYTES, additional_properties=False).matcher()
    assert matcher.forced_bytes() == b"{"
    assert matcher.accept_bytes(b'{"')
    assert matcher.forced_bytes() == b'organizer"'
    for byte in b'organizer"':
        assert [b for b in range(256) if matcher.fork().accept_bytes(bytes([b]))] == [byte]
        assert matcher.accept_bytes(bytes([byte]))


@pytest.mark.parametrize("more", [{"minimum": 1, "maximum": 1e9}, {"multipleOf": 0.5}])
def test_what_java_writes_for_doubles_of_some_schemas(more: dict[str, Any]) -> None:
    # docs/json-schema.md says so.
    compiled = mw.compile_json_schema({"type": "number", **more}, BYTES)
    assert is_accepted(compiled, "25000000.0") and not is_accepted(compiled, "2.5E7")
    assert is_accepted(mw.compile_json_schema({"type": "number"}, BYTES), "2.5E7")
