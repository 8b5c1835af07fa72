"""Lines of a batch's input, and its output file: what is read, what is refused and where, what is found again."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import maskwright as mw
from maskwright.offline import journal as journals
from maskwright.offline.answers import record
from maskwright.offline.journal import Journal
from maskwright.offline.rows import Line, Reader, RowError, lines

SCHEMA = {"type": "integer"}
READER = Reader(source=mw.JsonSchema(SCHEMA), options={"max_new_tokens": 50}, settings=b"1")


def line(value: Any, number: int = 1) -> Line:
    return Line(number, value if isinstance(value, bytes) else json.dumps(value).encode())


def chat(**body: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "x"}]
    return {
        "custom_id": "a",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"messages": messages, **body},
    }


# --- rows


def test_plain_rows() -> None:
    row = READER.row(line({"id": 7, "prompt": "x", "metadata": {"k": 1}}))
    assert (row.id, row.prompt, row.source, row.options, row.shape) == (
        7,
        "x",
        READER.source,
        READER.options,
        "plain",
    )
    row = READER.row(line({"messages": [{"role": "user", "content": "x"}], "schema": True}, 9))
    assert row.id == 9 and row.source == mw.JsonSchema(True)
    told = replace(READER, system="Be short.", schema_options={"whitespace": "compact"})
    row = told.row(line({"prompt": "x", "schema": {"const": 1}}))
    assert row.prompt == [{"role": "system", "content": "Be short."}, {"role": "user", "content": "x"}]
    assert row.source == mw.JsonSchema({"const": 1}, whitespace="compact")


@pytest.mark.parametrize(
    ("body", "source"),
    [
        ({}, mw.JsonSchema(SCHEMA)),
        ({"response_format": {"type": "json_object"}}, mw.JsonSchema({"type": "object"})),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "n", "schema": {"const": 0.1}},
                }
            },
            mw.JsonSchema({"const": 0.1}),
        ),
        ({"structured_outputs": {"json": "true", "regex": None}}, mw.JsonSchema("true")),
        ({"structured_outputs": {"json_object": True}}, mw.JsonSchema({"type": "object"})),
        ({"structured_outputs": {"regex": "a+"}}, mw.Regex("a+")),
        ({"structured_outputs": {"choice": ["a", "b"]}}, mw.Choice(["a", "b"])),
        ({"structured_outputs": {"grammar": 'root ::= "a"'}}, mw.GBNF('root ::= "a"')),
        ({"structured_outputs": {"grammar": 'start: "a"'}}, mw.Lark('start: "a"')),
    ],
)
def test_constraints_of_openai_rows(body: dict[str, Any], source: Any) -> None:
    row = READER.row(line(chat(**body)))
    assert row.source == source and row.id == "a" and row.shape == "openai"


def test_options_of_openai_rows() -> None:
    given = {"max_tokens": 9, "temperature": 0.5, "top_p": 1, "n": 2, "seed": 3, "stop": ["a"], "top_k": 4}
    row = READER.row(
        line(chat(**given, model="m", user="u", stream=False, frequency_penalty=0, logit_bias={}, tools=[]))
    )
    expected = {
        "max_new_tokens": 9,
        "temperature": 0.5,
        "top_p": None,
        "n": 2,
        "seed": 3,
        "stop": ["a"],
        "top_k": 4,
    }
    assert row.options == expected
    greedy = READER.row(line(chat(temperature=0, top_p=0.5)))
    assert greedy.options["temperature"] == 0 and greedy.options["top_p"] is None
    for body in (
        {"max_tokens": 40, "max_completion_tokens": 9},
        {"max_completion_tokens": 9, "max_tokens": 40},
    ):
        assert READER.row(line(chat(**body))).options["max_new_tokens"] == 9
    # A server knows more than we do.
    assert (
        replace(READER, is_forwarded=True).row(line(chat(frequency_penalty=1))).body["frequency_penalty"] == 1
    )  # type: ignore[index]


def test_each_row_has_a_seed_of_its_own() -> None:
    seeded = replace(READER, options={"seed": 5})
    seeds = [seeded.row(line({"prompt": "x"}, number)).options["seed"] for number in (1, 2, 1)]
    assert seeds[0] == seeds[2] != seeds[1]
    assert seeded.row(line(chat(seed=8))).options["seed"] == 8


@pytest.mark.parametrize(
    ("value", "place", "words"),
    [
        (b"", "", "malformed JSON"),
        (b'{"prompt": "x",}', "", "at column 16"),
        (b'{"prompt": "x", "prompt": "y"}', "", "comes twice"),
        (b"\xff", "", "not UTF-8 text .byte 0"),
        (b'{"prompt": NaN}', "", "NaN"),
        (b'{"prompt": "x", "metadata": {"x": 1e400}}', "", "the number 1e400 is larger than a double holds"),
        (b'{"prompt": "x", "schema": {"const": -7e4000}}', "", "the number -7e4000 is larger"),
        (b"[" * 100_000, "", "nested too deeply"),
        ([], "", "a JSON object, not a list"),
        ({}, "", "needs a prompt, or messages"),
        ({"prompt": None}, "", "needs a prompt"),
        ({"prompt": "x", "messages": [{}]}, "", "either a prompt or messages"),
        ({"prompt": 1}, "/prompt", "expected a text, got a number"),
        ({"promt": "x"}, "/promt", "did you mean 'prompt'"),
        ({"prompt": "x", "a/b~": 1}, "/a~1b~0", "metadata"),
        ({"prompt": "x", "schema": "{}"}, "/schema", "not a text"),
        ({"prompt": "x", "id": True}, "/id", "got a boolean"),
        ({"prompt": "x", "id": "i" * 513}, "/id", "at most 512 characters"),
        ({"prompt": "x", "id": "\ud800"}, "/id", "lone surrogate"),
        ({"messages": []}, "/messages", "an empty one"),
        ({"messages": ["x"]}, "/messages/0", "not a text"),
        ({"messages": [{"content": "x"}]}, "/messages/0/role", "got nothing"),
        ({"custom_id": "a"}, "/body", "got nothing"),
        ({**chat(), "custom_id": 1}, "/custom_id", "got a number"),
        ({**chat(), "method": "GET"}, "/method", "POST"),
        ({**chat(), "url": "/v1/embeddings"}, "/url", "only /v1/chat/completions"),
        ({**chat(), "id": "b"}, "/id", "did you mean|there are"),
        (chat(messages="x"), "/body/messages", "got a text"),
        (chat(stream=True), "/body/stream", "answered whole"),
        (chat(tools=[{}]), "/body/tools", "by a schema"),
        (chat(xx=[]), "/body/xx", "not supported"),
        (chat(tool_choice=[]), "/body/tool_choice", "not supported"),
        (chat(max_tokens=0.5), "/body/max_tokens", "expected a whole number, got a number"),
        (chat(frequency_penalty=1), "/body/frequency_penalty", "not supported"),
        (chat(temperature="hot"), "/body/temperature", "a number"),
        (chat(n=0), "/body/n", "from 1 to 128"),
        (chat(n=129), "/body/n", "from 1 to 128"),
        (chat(stop=1), "/body/stop", "list of texts"),
        (chat(max_tokens=True), "/body/max_tokens", "got a boolean"),
        (chat(response_format={"type": "text"}), "/body/response_format/type", "nothing to fill"),
        (chat(response_format={"type": "xml"}), "/body/response_format/type", "json_schema"),
        (chat(response_format=1), "/body/response_format/type", "json_schema"),
        (chat(response_format={"type": "json_schema"}), "/body/response_format/json_schema/schema", "missing"),
        (chat(structured_outputs={}), "/body/structured_outputs", "expected one of"),
        (chat(structured_outputs={"regex": "a", "json": {}}), "/body/structured_outputs", "expected one of"),
        (chat(structured_outputs={"regex": 1}), "/body/structured_outputs/regex", "not what regex"),
        (chat(structured_outputs={"regex": "a"}, response_format={"type": "json_object"}), "/body", "leave one out"),
    ],
)  # fmt: skip
def test_bad_rows_say_where(value: Any, place: str, words: str) -> None:
    with pytest.raises(RowError, match=words) as caught:
        READER.row(line(value))
    assert caught.value.place == place


def test_bad_rows_keep_their_ids() -> None:
    with pytest.raises(RowError) as caught:
        READER.row(line(chat(n=0)))
    assert (caught.value.id, caught.value.shape) == ("a", "openai")


def test_a_row_needs_a_schema_from_somewhere() -> None:
    with pytest.raises(RowError, match="--schema gives none"):
        Reader().row(line({"prompt": "x"}))


def test_keys_tell_rows_settings_and_places_apart() -> None:
    row = line({"prompt": "x"})
    keys = {
        READER.key(row),
        READER.key(line({"prompt": "y"})),
        READER.key(line({"prompt": "x"}, 2)),
        replace(READER, settings=b"2").key(row),
    }
    assert len(keys) == 4 and READER.key(row) == READER.key(line({"prompt": "x"}))


# --- lines


def test_lines() -> None:
    data = b'\xef\xbb\xbf{"a": 1}\r\n\n  \n{"b": 2}'
    assert list(lines(io.BytesIO(data), 100)) == [Line(1, b'{"a": 1}'), Line(4, b'{"b": 2}')]


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
@pytest.mark.parametrize(
    ("length", "is_long"), [(9, False), (10, False), (11, True), (12, True), (13, True), (5000, True)]
)
def test_long_lines_are_not_held(length: int, is_long: bool, end: bytes) -> None:
    first, second = lines(io.BytesIO(b"x" * length + (end or b"\n") + b"short" + end), 10)
    assert first.is_long == is_long and len(first.data) <= 12 and second == Line(2, b"short")


def test_a_long_line_that_looks_short() -> None:
    (only,) = lines(io.BytesIO(b"x" * 5 + b" " * 50 + b"y\n"), 10)
    assert only.is_long
    with pytest.raises(RowError, match="longer than 10 bytes"):
        replace(READER, max_line_bytes=10).row(only)


# --- the output


def filled(number: int, prompt: str = "x") -> dict[str, Any]:
    row = READER.row(line({"prompt": prompt}, number))
    choice = {"index": 0, "message": {"role": "assistant", "content": "1"}, "finish_reason": "stop"}
    return record(row, {"id": "c", "model": "m", "choices": [choice], "usage": {"total_tokens": 2}})


def test_records() -> None:
    assert filled(3) == {
        "id": 3, "value": 1, "text": "1", "finish_reason": "stop", "usage": {"total_tokens": 2}, "model": "m",
        "row": READER.key(line({"prompt": "x"}, 3)),
    }  # fmt: skip
    row = READER.row(line(chat()))
    told = record(row, {"id": "c", "choices": []})
    assert told["custom_id"] == "a" and told["id"] == f"batch_req_{row.key}" and told["error"] is None
    assert told["response"] == {"status_code": 200, "request_id": "c", "body": {"id": "c", "choices": []}}


@pytest.mark.parametrize("text", ["[1e400]", "9" * 5000, "[" * 100_000 + "]" * 100_000])
def test_outputs_that_are_no_value(text: str) -> None:
    with pytest.raises(RowError, match="the output cannot be read: "):
        record(READER.row(line({"prompt": "x"})), {"choices": [{"message": {"content": text}}]})
    with pytest.raises(ValueError, match="not JSON compliant"):
        journals.encoded({"value": float("inf")})


def test_what_is_there_is_found(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    row = READER.row(line(chat(), 5))
    with Journal(path) as out:
        out.add(2, filled(2))
        out.add(5, record(row, {"id": "c", "choices": []}))
        with pytest.raises(mw.MaskwrightError, match="twice"):
            out.add(2, filled(2))
    with Journal(path) as out:
        assert {number: f"{number}-{digest}" for number, digest in out.done.items()} == {
            2: READER.key(line({"prompt": "x"}, 2)),
            5: row.key,
        }


def test_a_torn_line_is_cut_off_at_every_byte(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    first, second = (journals.encoded(filled(number, "ü")) for number in (1, 2))
    for length in range(len(second)):
        path.write_bytes(first + second[:length])
        with Journal(path) as out:
            whole = length == len(second) - 1  # All but the end of the line.
            assert sorted(out.done) == ([1, 2] if whole else [1])
            out.add(3, filled(3))
        expected = first + (second if whole else b"") + journals.encoded(filled(3))
        assert path.read_bytes() == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"a": 1}\n', ":1: this is no row"),
        (b"text\n", ":1: this is no row"),
        (b'{"id": "batch_req_1", "row": null}\n', "no row"),
        (b'{"row": "0-' + b"a" * 24 + b'"}\n', "no row"),
        (journals.encoded(filled(1)) * 2, ":2: row 1 is there twice"),
        (
            journals.encoded(filled(1)) + b"\0" * 10 + b"\n" + journals.encoded(filled(2)),
            ":2: this is no row",
        ),
    ],
)
def test_other_files_stay_as_they_are(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "out.jsonl"
    path.write_bytes(content)
    with pytest.raises(mw.MaskwrightError, match=words):
        Journal(path)
    assert path.read_bytes() == content
    with Journal(path, overwrite=True) as out:
        assert not out.done
        assert path.read_bytes() == content, "nothing is there yet to put in its place"
        out.begin()
    assert path.read_bytes() == b""


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="no locks of files here")
    path = tmp_path / "out.jsonl"
    code = "import sys; from maskwright.offline.journal import Journal; Journal(sys.argv[1])"
    with Journal(path):
        run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        assert "another process is writing this output" in run.stderr
    Journal(path).close()


def test_sorting(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    with Journal(path) as out:
        for number in (10, 2, 9, 1):
            out.add(number, filled(number, "ü" * number))
        out.sort()
    os.chmod(path, 0o640)
    assert path.read_bytes() == b"".join(journals.encoded(filled(n, "ü" * n)) for n in (1, 2, 9, 10))
    with Journal(path) as out:
        before = path.stat().st_ino
        out.sort()
        assert path.stat().st_ino == before, "what is sorted stays"
        out.add(3, filled(3))
        out.sort()
    assert path.stat().st_mode & 0o777 == 0o640
    assert [json.loads(each)["id"] for each in path.read_bytes().splitlines()] == [1, 2, 3, 9, 10]
    assert list(tmp_path.iterdir()) == [path]


def test_lone_surrogates_are_written_with_escapes() -> None:
    assert journals.encoded({"a": "ü"}) == '{"a": "ü"}\n'.encode()
    assert journals.encoded({"a": "\ud800"}) == b'{"a": "\\ud800"}\n'


def test_what_a_link_leads_to_is_sorted(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path, link = tmp_path / "elsewhere" / "out.jsonl", tmp_path / "link.jsonl"
    path.write_bytes(journals.encoded(filled(2)) + journals.encoded(filled(1)))
    link.symlink_to(path)
    with Journal(link) as out:
        out.sort()
    assert link.is_symlink()
    assert path.read_bytes() == journals.encoded(filled(1)) + journals.encoded(filled(2))
