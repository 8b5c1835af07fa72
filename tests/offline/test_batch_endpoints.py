"""``maskwright batch --endpoint`` against servers that answer, refuse, fall silent and die."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx2", reason="servers are asked through httpx2")
from batch_files import PERSON, check_filled, openai_rows, plain_rows, read_rows, write_rows
from openai_server import Server

import maskwright as mw
from maskwright.cli import main
from maskwright.offline import endpoints
from maskwright.offline.endpoints import Endpoints, NoEndpointError
from maskwright.offline.rows import Line, Reader, Row


@pytest.fixture
def schema(tmp_path: Path) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(PERSON))
    return str(path)


@pytest.fixture(autouse=True)
def _no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)


def batch(source: str, output: Path, schema: str, *servers: Server | str, more: tuple[str, ...] = ()) -> int:
    urls = [each if isinstance(each, str) else each.url for each in servers]
    given = [part for url in urls for part in ("--endpoint", url)]
    return main(["batch", source, str(output), "--schema", schema, *given, *more])


def rows(count: int) -> Iterator[Row]:
    reader = Reader(source=mw.JsonSchema(PERSON), options={"max_new_tokens": 50}, is_forwarded=True)
    for i, value in enumerate(plain_rows(count), 1):
        yield reader.row(Line(i, json.dumps(value).encode()))


def test_replicas_share_the_rows(tmp_path: Path, schema: str) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(60)), tmp_path / "out.jsonl"
    with Server(seconds=0.02) as one, Server(seconds=0.02) as two:
        code = batch(source, output, schema, one, two.url + "/v1/", two, more=("--concurrency", "3"))
        assert code == 0
        for server in (one, two):
            assert 10 < len(server.requests) < 50 and server.most <= 3
        assert len(one.requests) + len(two.requests) == 60
    found = check_filled(output, 60)
    assert found[0]["usage"]["completion_tokens"] == 5 and found[0]["model"] == "tiny"
    (first,) = (each for each in one.requests + two.requests if "number 1:" in each["messages"][0]["content"])
    assert first["model"] == "tiny" and first["max_tokens"] == 512
    assert sorted(first) == ["max_tokens", "messages", "model", "response_format", "temperature"]
    assert first["temperature"] == 0
    assert first["response_format"]["json_schema"] == {"name": "output", "schema": PERSON, "strict": True}


def test_bodies_travel_as_they_are(tmp_path: Path, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    given = openai_rows(3, n=2, model="named", frequency_penalty=0.5, max_completion_tokens=77)
    source, output = write_rows(tmp_path / "in.jsonl", given), tmp_path / "out.jsonl"
    with Server() as server:
        assert batch(source, output, schema, server, more=("--temperature", "0.25", "--seed", "4")) == 0
    check_filled(output, 3)
    for row in read_rows(output):
        assert len(row["response"]["body"]["choices"]) == 2 and row["response"]["request_id"] == "chatcmpl-1"
    seeds = set()
    for request, headers in zip(server.requests, server.headers, strict=True):
        assert headers["Authorization"] == "Bearer secret"
        assert "max_tokens" not in request and request["max_completion_tokens"] == 77
        assert (request["model"], request["frequency_penalty"], request["temperature"]) == (
            "named",
            0.5,
            0.25,
        )
        assert request["response_format"]["type"] == "json_schema" and "schema_in_prompt" not in request
        seeds.add(request["seed"])
    assert len(seeds) == 3


def test_grammars_and_instructions(tmp_path: Path) -> None:
    pattern = tmp_path / "p.regex"
    pattern.write_text("[a-c]{3}\n")
    source, output = write_rows(tmp_path / "in.jsonl", [{"prompt": "x"}]), tmp_path / "out.jsonl"
    with Server() as server:
        assert (
            batch(source, output, str(pattern), server, more=("--schema-in-prompt", "--model", "named")) == 0
        )
    (row,), (request,) = read_rows(output), server.requests
    assert row["value"] == "aaa" and request["structured_outputs"] == {"regex": "[a-c]{3}"}
    assert request["model"] == "named" and "[a-c]{3}" in request["messages"][0]["content"]


# --- failures


@pytest.mark.slow
def test_a_replica_that_dies_is_left_out(tmp_path: Path, schema: str) -> None:
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(80)), tmp_path / "out.jsonl"
    with Server(seconds=0.01) as good:

        def behave(request: dict[str, Any], number: int) -> Any:
            if number == 10:
                dying.die()
            return None

        dying = Server(behave, seconds=0.01)
        assert batch(source, output, schema, dying, good, "http://127.0.0.1:9") == 0
    check_filled(output, 80)
    assert len(good.requests) > 40


def test_a_replica_that_comes_back_is_used_again() -> None:
    """Out of order for a while, with one request at a time to find out; then as before."""

    def behave(request: dict[str, Any], number: int) -> Any:
        return "close" if 5 <= number < 12 else None

    with Server(behave, seconds=0.005) as server:
        found = list(
            Endpoints([server.url], model="m", concurrency=4, pause=0.001, retries=20).fill(rows(40))
        )
        assert server.most == 4
        assert len({row.id for row, _ in found}) == 40
        assert all(isinstance(result, dict) for _, result in found)


@pytest.mark.parametrize("answer", [429, 503, 408, (429, {"Retry-After": "0"}), "close", 500])
def test_passing_failures_lose_no_row(answer: Any) -> None:
    with Server(lambda request, number: answer if number % 3 == 1 else None) as server:
        found = list(Endpoints([server.url], concurrency=4, pause=0.001, retries=50).fill(rows(12)))
    assert sorted(row.line for row, _ in found) == list(range(1, 13))
    assert all(isinstance(result, dict) for _, result in found)


def test_a_row_that_a_server_cannot_do_is_left_out_alone() -> None:
    def behave(request: dict[str, Any], number: int) -> Any:
        return 500 if "number 4:" in request["messages"][0]["content"] else None

    with Server(behave) as server:
        found = {row.id: result for row, result in Endpoints([server.url], pause=0.001).fill(rows(12))}
    assert "5 requests failed, the last one" in str(found.pop("r4"))
    assert len(found) == 11 and all(isinstance(result, dict) for result in found.values())


def test_a_server_that_can_do_no_row_is_given_up() -> None:
    """Else every row of the input would be left out, because of the server."""
    with Server(lambda request, number: 500 if number > 3 else None) as server:
        found = []
        with pytest.raises(NoEndpointError, match=r"no endpoint answers any more: .* answers 500"):
            found += Endpoints([server.url], pause=0.001).fill(rows(1000))
        assert len(server.requests) < 100


def test_refusals_are_those_of_the_row(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def behave(request: dict[str, Any], number: int) -> Any:
        told = {
            "number 1:": 400,
            "number 2:": 422,
            "number 4:": "nonsense",
            "number 5:": "cut",
            "number 7:": "other",
            "number 8:": "spaced",
        }
        return next((what for name, what in told.items() if name in request["messages"][0]["content"]), None)

    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(9)), tmp_path / "out.jsonl"
    with Server(behave) as server:
        assert batch(source, output, schema, server) == 1
        assert len(server.requests) == 9, "none was asked twice"
    assert sorted(row["id"] for row in read_rows(output)) == ["r0", "r3", "r6", "r8"]
    told = capsys.readouterr().err
    for words in (
        f"r1: {server.url}/v1 answers 400: told to answer 400",
        "r2: ",
        "r4: /choices/0/message/content: the answer does not follow the schema: 'nonsense'",
        "it was cut off: raise max_tokens",
        "r7: the answer is no chat completion",
        "4 of 9 rows filled; 5 left out",
    ):
        assert words in told, words


def test_a_row_whose_own_model_there_is_not_is_left_out_alone(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def behave(request: dict[str, Any], number: int) -> Any:
        return (404, {}, f"there is no model {request['model']!r}") if request["model"] == "nope" else None

    lines = openai_rows(6)
    lines[2]["body"]["model"] = "nope"
    source, output = write_rows(tmp_path / "in.jsonl", lines), tmp_path / "out.jsonl"
    with Server(behave) as server:
        assert batch(source, output, schema, server) == 1
    assert len(read_rows(output)) == 5
    told = capsys.readouterr().err
    assert "there is no model 'nope'" in told and "no endpoint answers" not in told


@pytest.mark.parametrize("status", [200, 429])
def test_headers_need_not_be_ascii(status: int) -> None:
    headers = {"Content-Type": "application/json; x=\u00e9", "Retry-After": "\u00b2"}
    with Server(lambda request, number: (status, headers) if number == 1 else None) as server:
        ((_, result),) = Endpoints([server.url], pause=0.001).fill(rows(1))
    assert isinstance(result, dict)


def test_what_a_server_says_is_one_line_without_controls(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "\x1b]0;x\x07 a\nmaskwright: in.jsonl:1: all good"
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    with Server(lambda request, number: (400, {}, said)) as server:
        assert batch(source, tmp_path / "out.jsonl", schema, server) == 1
    told = capsys.readouterr().err
    assert "\x1b" not in told and "\nmaskwright: in.jsonl:1: all good" not in told and "all good" in told


@pytest.mark.slow
def test_when_no_replica_is_left_the_batch_can_go_on_later(
    tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endpoints, "GIVE_UP_AFTER", 1)
    source, output = write_rows(tmp_path / "in.jsonl", plain_rows(20)), tmp_path / "out.jsonl"
    with Server(lambda request, number: None if number < 8 else 401) as server:
        assert batch(source, output, schema, server, "http://127.0.0.1:9", more=("--concurrency", "2")) == 1
    told = capsys.readouterr().err
    assert "no endpoint answers any more" in told and "answers 401" in told and "ConnectError" in told
    assert 0 < len(read_rows(output)) < 20
    with Server() as server:
        assert batch(source, output, schema, server) == 0
        assert len(server.requests) < 20
    check_filled(output, 20)


def test_a_silent_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "GIVE_UP_AFTER", 1)
    began = time.monotonic()
    with Server(seconds=5.0) as silent, pytest.raises(NoEndpointError, match="ReadTimeout"):
        list(Endpoints([silent.url], model="m", timeout=0.1, pause=0.001).fill(rows(2)))
    assert time.monotonic() - began < 5


def test_answers_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoints, "MAX_ANSWER_BYTES", 100)
    with Server() as server:
        results = [result for _, result in Endpoints([server.url], model="m").fill(rows(2))]
    assert all("longer than 100 bytes" in str(result) for result in results)


@pytest.mark.parametrize(("models", "words"), [(("a", "b"), "the models a, b"), ((), "no list of models")])
def test_a_model_must_be_chosen_among_several(models: tuple[str, ...], words: str) -> None:
    with (
        Server(models=models) as server,
        pytest.raises(NoEndpointError, match=f"{words}: choose one with --model"),
    ):
        list(Endpoints([server.url]).fill(rows(2)))


def test_a_consumer_that_stops_ends_the_requests() -> None:
    with Server(seconds=0.05) as server:
        coming = Endpoints([server.url], concurrency=4).fill(rows(1000))
        next(coming)
        coming.close()  # type: ignore[attr-defined]
        asked = len(server.requests)
        time.sleep(0.2)
        assert len(server.requests) <= asked + 4 and asked < 20


@pytest.mark.parametrize(
    ("url", "base"),
    [
        ("http://a:1", "http://a:1/v1"),
        ("http://a:1/", "http://a:1/v1"),
        ("http://a:1/v1/", "http://a:1/v1"),
        ("https://a/openai/v1/chat/completions", "https://a/openai/v1"),
    ],
)
def test_urls(url: str, base: str) -> None:
    assert endpoints._base(url) == base


@pytest.mark.parametrize(
    "url",
    [
        "a:1",
        "",
        "ftp://a",
        "http://",
        "http://[::1",
        "http://a:port",
        "http://a:99999",
        "http://a:0",
        "http://a..b",
    ],
)
def test_no_urls(url: str, tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str]) -> None:
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    assert batch(source, tmp_path / "out.jsonl", schema, url) == 2
    assert f"--endpoint {url}: " in capsys.readouterr().err


@pytest.mark.parametrize("key", ["k\udcff", "ü", "a\n", "a b"])
def test_keys_that_no_header_can_have(
    key: str, tmp_path: Path, schema: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    source = write_rows(tmp_path / "in.jsonl", plain_rows(1))
    with Server() as server:
        assert batch(source, tmp_path / "out.jsonl", schema, server) == 2
    assert "OPENAI_API_KEY: expected ASCII" in capsys.readouterr().err and not server.requests


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("3", 3, 3),
        ("1e300", 1e300, 1e300),
        ("-1", 0, 0),
        (formatdate(time.time() + 9000, usegmt=True), 5000, 9001),
    ],
    ids=["seconds", "large", "negative", "date"],
)
def test_retry_after(text: str, low: float, high: float) -> None:
    response = endpoints.httpx.Response(429, headers={"Retry-After": text})
    found = endpoints._retry_after(response)
    assert found is not None and low <= found <= high
    for none in ({}, *({"Retry-After": text} for text in ("soon", "nan", "inf", "-inf"))):
        assert endpoints._retry_after(endpoints.httpx.Response(429, headers=none)) is None
