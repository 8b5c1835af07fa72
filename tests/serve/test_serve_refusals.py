"""``maskwright serve``: what strangers may send, and that it serves on."""

from __future__ import annotations

import http.client
import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jsonschema
import pytest
from serving import MODEL, PERSON, Served, json_schema, openai, serving, tiny, tool
from tiny_model import TINY

import maskwright as mw
from maskwright.cli import main
from maskwright.generation.generator import Generator
from maskwright.serve.settings import Settings

LONG = {"pattern": "^[ab]{300}$", "type": "string"}
"""What takes the tiny model some time to write."""


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(
        max_rows=2, max_queued=2, max_tools=3, max_outputs=4, max_tokens=500, default_max_tokens=400, max_body_bytes=150_000, max_prompt_tokens=200,
        max_stops=2, compile_seconds=1.0, body_seconds=0.5, retry_after=7,
    ) as found:  # fmt: skip
        yield found


@pytest.fixture(autouse=True)
def _serves_on(served: Served) -> Iterator[None]:
    yield
    served.wait_until_idle()
    answer = served.chat(response_format=json_schema({"type": "boolean"}))
    assert answer.choices[0].message.content in ("true", "false")


def refusal(served: Served, path: str = "chat/completions", **body: Any) -> dict[str, Any]:
    """The error of a request: its status too."""
    given: dict[str, Any] = {
        "model": MODEL,
        **({"messages": [{"role": "user", "content": "x"}]} if path.startswith("chat") else {}),
        **body,
    }
    return refusal_of(served, path, json.dumps(given).encode())


def refusal_of(served: Served, path: str, body: bytes) -> dict[str, Any]:
    request = urllib.request.Request(f"{served.url}/v1/{path}", body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as found:
        urllib.request.urlopen(request, timeout=60)
    error: dict[str, Any] = json.load(found.value)["error"]
    assert set(error) >= {"message", "type", "param", "code"}
    return {**error, "status": found.value.code, "headers": found.value.headers}


UNRESOLVED = {"properties": {"a": {"$ref": "http://example.org/other"}}}


@pytest.mark.parametrize(
    ("body", "param", "message"),
    [
        ({"response_format": json_schema(UNRESOLVED)}, "response_format", "/properties/a/$ref"),
        ({"response_format": json_schema({"type": "strin"})}, "response_format", "/type: type must be one of"),
        ({"response_format": json_schema({"type": "integer", "minimum": 3, "maximum": 2})}, "response_format", "m"),
        ({"response_format": json_schema({"pattern": "(a"})}, "response_format", "/pattern"),
        ({"response_format": json_schema([1])}, "response_format.json_schema.schema", "a JSON Schema"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema", "a JSON Schema"),
        ({"response_format": {"type": "xml"}}, "response_format.type", "one of text"),
        ({"response_format": {"type": "json_schema", "schema": {}}}, "response_format", 'put it into json_schema: {"name", "schema"}'),
        ({"guided_json": {}}, "guided_json", "this parameter is not known; use response_format"),
        ({"response_format": {"type": "regex", "pattern": "(a"}}, "response_format", "1:1: this group is not closed"),
        ({"response_format": {"type": "regex"}}, "response_format.pattern", "a text is needed"),
        ({"response_format": {"type": "regex", "pattern": "a", "flags": "i"}}, "response_format", "no such member"),
        ({"response_format": {"type": "grammar", "syntax": "lark", "grammar": "start: a"}}, "response_format", "1:8"),
        ({"response_format": {"type": "grammar", "syntax": "abnf", "grammar": ""}}, "response_format.syntax", "lark or gbnf"),
        ({"response_format": {"type": "grammar", "syntax": "gbnf", "grammar": "root ::= a"}}, "response_format", "a"),
        ({"response_format": {"type": "structural_tag", "format": {"type": "odd"}}}, "response_format", "/format"),
        ({"tools": [tool("good", {}), tool("bad", UNRESOLVED)]}, "tools", "tool 'bad': /properties/a/$ref"),
        ({"tools": [tool("a", {}), tool("a", {})]}, "tools[1].function", "two tools are named 'a'"),
        ({"tools": [tool("a b", {})]}, "tools[0].function", "letters, digits"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0]", "tools are functions"),
        ({"tools": [{**tool("a", {}), "zzz": 1}]}, "tools[0]", "tools[0].zzz: this member is not known"),
        ({"tools": [{**tool("a", {}), "strict": True}]}, "tools[0]", "tools[0].strict: this member is not known; put it into function"),
        ({"tools": [tool("a", {})] * 4}, "tools", "max_tools, which is 3"),
        ({"tools": [tool("a", {})], "tool_choice": "b"}, "tool_choice", "not 'b'"),
        ({"tools": [tool("a", {})], "tool_choice": {"type": "function", "function": {"name": "b"}}}, "tool_choice", "'b'"),
        ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
        *(
            ({"tools": [tool("a", {})], "tool_choice": odd}, "tool_choice", message)
            for odd, message in (
                ("", "tool_choice is"), ({}, "tool_choice is"), ({"type": "auto"}, "tool_choice is"),
                ({"type": "function"}, "has a name"), ({"type": "function", "function": 5}, "has a name"),
                ({"type": "allowed_tools"}, "allowed_tools has"), ({"type": "allowed_tools", "allowed_tools": 5}, "allowed_tools has"),
                ({"type": "allowed_tools", "allowed_tools": {"mode": "auto"}}, "allowed_tools has"),
                ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [5]}}, "has a name"),
                ({"type": "allowed_tools", "allowed_tools": {"tools": [{"type": "function", "function": {"name": ["x"]}}]}}, "has a name"),
            )
        ),
        ({"response_format": {"type": "text", "\ud800": 1}}, "response_format", "lone surrogate"),
        ({"tools": [tool("a", {"description": "\ud800"})]}, "tools[0].function.parameters.description", "lone surrogate"),
        ({"stop": "\ud800"}, "stop", "lone surrogate"),
        (
            {"messages": [{"role": "assistant", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '"\\ud800"'}}]}]},
            "messages[0].tool_calls[0].function.arguments", "no JSON",
        ),
        ({"n": 5}, "n", "max_outputs, which is 4"),
        ({"n": 0}, "n", "greater than or equal to 1"),
        ({"max_tokens": 501}, "max_tokens", "max_tokens, which is 500"),
        ({"max_completion_tokens": 501}, "max_completion_tokens", "500"),
        ({"max_tokens": 3, "response_format": json_schema(PERSON)}, "max_tokens", "the shortest output takes"),
        ({"max_tokens": "3"}, "max_tokens", "valid integer"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"top_p": 0}, "top_p", "greater than 0"),
        ({"stop": ["a", "b", "c"]}, "stop", "max_stops, which is 2"),
        ({"stop": ""}, "stop", "from 1 to"),
        ({"stop": ["x"], "response_format": json_schema(PERSON)}, "stop", "would cut JSON"),
        ({"stop": "c", "response_format": {"type": "regex", "pattern": "[ab]c"}}, "stop", "not complete, behind"),
        ({"stop": "b", "response_format": {"type": "regex", "pattern": "ab|abc"}}, "stop", "not complete, behind"),
        ({"stop": ["a", 5]}, "stop[1]", "a valid string, got 5"),
        ({"stop": {}}, "stop", "a valid string or a valid list, got {}"),
        ({"logit_bias": {"99999999": 1}}, "logit_bias", "is no token id below"),
        ({"logit_bias": {"1": 101}}, "logit_bias", "-100 to 100"),
        ({"top_logprobs": 3}, "top_logprobs", "only with logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "max_top_logprobs"),
        ({"stream_options": {"include_usage": True}}, "stream_options", "only for stream"),
        ({"reasoning_effort": "high"}, "reasoning_effort", "no such setting"),
        ({"functions": []}, "functions", "replaced by tools"),
        ({"audio": {}}, "audio", "writes text"),
        ({"temprature": 1}, "temprature", "not known; there are"),
        ({"messages": []}, "messages", "at least 1"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "messages[0].role", "one of system"),
        ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0]", "reads text"),
        ({"messages": [{"role": "user"}]}, "messages[0].content", "a text, or a list"),
        ({"messages": [{"role": "user", "content": "x", "foo": 1}]}, "messages[0]", "messages[0].foo: messages of the role user"),
        ({"messages": [{"role": "user", "content": "x", "name": 5}]}, "messages[0].name", "a text is needed"),
        ({"messages": [{"role": "assistant", "content": "x", "audio": {"id": "a"}}]}, "messages[0]", "messages[0].audio"),
        ({"messages": [{"role": "assistant", "content": "x", "function_call": {"name": "f", "arguments": "{}"}}]}, "messages[0]", "messages[0].function_call"),
        ({"messages": [{"role": "user", "content": "\ud800"}]}, "messages[0].content", "lone surrogate"),
        ({"messages": [{"role": "user", "content": "word " * 900}]}, "messages", "at most 200 are read"),
        ({"messages": "hello"}, "messages", "valid list"),
        ({"messages": [{"role": "user", "content": "x"}, "hello"]}, "messages[1]", "valid dictionary"),
    ],
)  # fmt: skip
def test_refused(served: Served, body: dict[str, Any], param: str, message: str) -> None:
    error = refusal(served, **body)
    assert error["status"] == 400
    assert error["param"] == param and message in error["message"], error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("path", "body", "param", "message"),
    [
        ("completions", {"prompt": "x", "suffix": "y"}, "suffix", "suffix"),
        ("completions", {"prompt": "x", "echo": True}, "echo", "echo"),
        ("completions", {"prompt": [10**9]}, "prompt", "prompt"),
        ("completions", {"prompt": []}, "prompt", "prompt"),
        ("completions", {"prompt": ["a", "b", "c"], "n": 2}, "n", "n"),
        ("completions", {}, "prompt", "prompt"),
        ("responses", {"input": "x", "previous_response_id": "resp_1"}, "previous_response_id", "previous_response_id"),
        ("responses", {"input": "x", "reasoning": {"effort": "low"}}, "reasoning", "reasoning"),
        ("responses", {"input": [{"type": "reasoning"}]}, "input[0]", "input[0]"),
        ("responses", {"input": "x", "text": {"format": {"type": "json_schema", "name": "a", "schema": UNRESOLVED}}}, "text.format", "/properties/a/$ref"),
        ("responses", {"input": "x", "text": {"verbosity": "low"}}, "text", "text"),
        ("responses", {"input": "x", "tools": [{"type": "web_search"}]}, "tools[0]", "tools[0]"),
        ("responses", {"input": "x", "tools": [{"type": "function", "name": "f"}], "tool_choice": {"type": "web_search"}}, "tool_choice", "tool_choice"),
        ("responses", {"input": "x", "metadata": {"a": "\ud800"}, "stream": True}, "metadata.a", "metadata.a"),
        ("completions", {"prompt": [5] * 300}, "prompt", "at most 200 are read"),
        ("completions", {"prompt": [1, "a"]}, "prompt[1]", "a valid integer, got 'a'"),
        ("completions", {"prompt": [[1], "a"]}, "prompt[1]", "a valid list, got 'a'"),
        ("completions", {"prompt": [[1, "a"]]}, "prompt[0][1]", "a valid integer, got 'a'"),
        ("completions", {"prompt": 5}, "prompt", "a valid string or a valid list, got 5"),
        ("completions", {"prompt": "x", "logprobs": 21}, "logprobs", "logprobs: 21 is above max_top_logprobs"),
        ("responses", {"input": [{"role": "user", "content": "x", "foo": 1}]}, "input[0]", "input[0].foo"),
        ("responses", {"input": "word " * 900}, "input", "at most 200 are read"),
        ("responses", {"input": "x", "text": {"format": {"type": "json_schema"}}}, "text.format.schema", "text.format.schema: a JSON Schema"),
        ("responses", {"input": "x", "text": {"format": {"type": "json_schema", "schema": {}, "odd": 1}}}, "text.format", "text.format.odd"),
        ("responses", {"input": "x", "tools": [{"type": "function", "name": "a b"}]}, "tools[0]", "tools[0].name: letters"),
        ("responses", {"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]}, "input[0].arguments", "no JSON"),
    ],
)  # fmt: skip
def test_refused_elsewhere(served: Served, path: str, body: dict[str, Any], param: str, message: str) -> None:
    error = refusal(served, path, **body)
    assert error["status"] == 400 and error["param"] == param, error["message"]
    assert message in error["message"]


def test_keywords_that_cannot_be_enforced_are_listed(served: Served) -> None:
    schema = {
        "properties": {
            "a": {"type": "string", "pattern": "(a)\\1"},
            "b": {"type": "array", "contentSchema": {}},
        }
    }
    error = refusal(served, response_format=json_schema(schema))
    assert error["status"] == 400 and "/properties/a" in error["message"]
    for found in error.get("refusals", ()):
        assert set(found) == {"pointer", "keyword", "reason"}


def test_wrong_model_and_path(served: Served) -> None:
    error = refusal(served, model="gpt-9")
    assert error["status"] == 404 and error["code"] == "model_not_found" and error["param"] == "model"
    assert refusal_of(served, "models/gpt-9", None)["status"] == 404  # type: ignore[arg-type]
    assert refusal_of(served, "embeddings", b"{}")["status"] == 404
    with pytest.raises(openai.NotFoundError):
        served.client.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "x"}])


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("POST", "/health", {"GET", "HEAD"}),
        ("DELETE", "/v1/models", {"GET", "HEAD"}),
        ("GET", "/v1/responses", {"POST"}),
    ],
)
def test_methods_that_a_path_does_not_have(served: Served, method: str, path: str, allowed: set[str]) -> None:
    request = urllib.request.Request(served.url + path, method=method)
    with pytest.raises(urllib.error.HTTPError) as found:
        urllib.request.urlopen(request, timeout=60)
    assert found.value.code == 405 and set(found.value.headers["Allow"].split(", ")) == allowed
    assert json.load(found.value)["error"]["message"].startswith(f"{method} {path}: ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b'{"temperature": NaN}',
        b'{"repetition_penalty": 1e400}',
        b"[" * 50_000,
        b'{"n": ' + b"9" * 5000 + b"}",
    ],
)
def test_bodies_that_are_no_request(served: Served, body: bytes) -> None:
    error = refusal_of(served, "chat/completions", body)
    assert error["status"] == 400


def test_bodies_that_are_too_large_or_too_slow(served: Served) -> None:
    error = refusal(served, messages=[{"role": "user", "content": "x" * 200_000}])
    assert error["status"] == 413 and error["code"] == "limit_max_body_bytes"
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.putrequest("POST", "/v1/chat/completions")
    connection.putheader("Content-Length", "1000")
    connection.endheaders(b"{")
    answer = connection.getresponse()
    assert answer.status == 408 and json.load(answer)["error"]["code"] == "body_timeout"
    connection.close()


def test_a_source_that_takes_too_long(served: Served) -> None:
    hard = {
        "oneOf": [{"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]} for i in range(1500)]
    }
    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(refusal, served, response_format=json_schema(hard))
        time.sleep(0.1)
        fast = served.chat(response_format=json_schema(PERSON))
    assert fast.choices[0].finish_reason in ("stop", "length")
    error = slow.result()
    assert error["status"] == 400 and error["code"].startswith("limit_"), error["message"]


@pytest.mark.slow
def test_too_many_wait(served: Served) -> None:
    def ask(_: int) -> int | str:
        try:
            served.chat(extra_body={"response_format": json_schema(LONG)}, max_tokens=400)
        except openai.RateLimitError as error:
            assert error.response.headers["retry-after"] == "7" and error.code == "queue_full"
            return 429
        return 200

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(ask, range(10)))
    assert 429 in found and found.count(200) >= 4
    assert served.metric('maskwright_requests_total{endpoint="chat",outcome="overloaded"}') >= found.count(
        429
    )


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_frees_its_row(served: Served, stream: bool) -> None:
    outcome = 'maskwright_requests_total{endpoint="chat",outcome="disconnected"}'
    before = served.metric(outcome)
    served.chat(extra_body={"response_format": {"type": "regex", "pattern": "[ab]{3}"}})
    served.wait_until_idle(10)
    outputs, validity = served.metric("maskwright_outputs_total"), served.metric("maskwright_schema_validity")
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x"}], "stream": stream, "max_tokens": 500,
                       "response_format": {"type": "regex", "pattern": "[ab]{450,}"}}).encode()  # fmt: skip
    with socket.create_connection(("127.0.0.1", served.port)) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall(head.encode() + body)
        if stream:
            assert b"data:" in connection.recv(4096) + connection.recv(4096)
        else:
            served.wait_until_running()
    generated = served.metric("maskwright_generated_tokens_total")
    served.wait_until_idle(10)
    assert served.metric("maskwright_generated_tokens_total") < generated + 450
    end = time.monotonic() + 10
    while served.metric(outcome) == before:  # counted behind the freeing of the row
        assert time.monotonic() < end
        time.sleep(0.01)
    # It is none that failed.
    assert served.metric("maskwright_outputs_total") == outputs + 1
    assert served.metric("maskwright_schema_validity") == validity


def test_a_client_that_goes_away_while_its_schema_is_compiled(served: Served) -> None:
    hard = {
        "oneOf": [{"properties": {f"q{i}": {"type": "integer"}}, "required": [f"q{i}"]} for i in range(1500)]
    }
    cancelled = served.metric("maskwright_compiles_cancelled_total")
    client = openai.OpenAI(base_url=f"{served.url}/v1", api_key="x", max_retries=0, timeout=0.3)
    with pytest.raises(openai.APITimeoutError):
        client.chat.completions.create(
            model=MODEL, messages=[{"role": "user", "content": "x"}], response_format=json_schema(hard)
        )  # type: ignore[call-overload, unused-ignore]
    end = time.monotonic() + 10
    while served.metric("maskwright_compiles_in_progress"):
        assert time.monotonic() < end
    assert served.metric("maskwright_compiles_cancelled_total") == cancelled + 1


def test_a_device_that_torch_was_not_built_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def to(self: Any, device: str) -> None:
        raise AssertionError("Torch not compiled with CUDA enabled")

    monkeypatch.setattr(type(tiny().model), "to", to)
    assert main(["serve", "--model", str(TINY), "--port", "0", "--device", "cuda"]) == 2
    assert "--device cuda: Torch not compiled with CUDA enabled" in capsys.readouterr().err


@pytest.mark.slow
def test_bad_requests_beside_good_ones(served: Served) -> None:
    def good(i: int) -> None:
        for attempt in range(20):
            try:
                answer = served.chat(f"q{i}", response_format=json_schema(PERSON), temperature=1.0)
            except openai.RateLimitError:
                time.sleep(0.1 * attempt)
                continue
            jsonschema.validate(json.loads(answer.choices[0].message.content), PERSON)
            return
        raise AssertionError("always turned away")

    def bad(i: int) -> None:
        bodies: list[dict[str, Any]] = [
            {"response_format": json_schema({"oneOf": [{"required": [f"{i}r{k}"]} for k in range(900)]})},
            {"response_format": {"type": "regex", "pattern": f"(a{{1000}}){{1000}}{i}"}},
            {"response_format": json_schema(json.loads('{"items":' * 150 + "{}" + "}" * 150))},
            {"messages": [{"role": "user", "content": "x" * 200_000}]},
        ]
        try:
            body = {
                "model": MODEL,
                "messages": [{"role": "user", "content": "x"}],
                "max_tokens": 400,
                **bodies[i % 4],
            }
            request = urllib.request.Request(f"{served.url}/v1/chat/completions", json.dumps(body).encode())
            urllib.request.urlopen(request, timeout=60)
        except urllib.error.HTTPError as error:
            assert error.code in (400, 413, 429), error.read()

    with ThreadPoolExecutor(12) as pool:
        for done in [pool.submit(bad if i % 2 else good, i) for i in range(16)]:
            done.result()


# --- limits of time


@pytest.mark.slow
def test_requests_and_masks_that_take_too_long() -> None:
    form: Any = {"response_format": {"type": "regex", "pattern": "[ab]{400,}"}}
    with serving(request_seconds=0.1) as served:
        with pytest.raises(openai.InternalServerError) as late:
            served.chat(extra_body=form, max_tokens=500)
        assert late.value.status_code == 504 and late.value.code == "timeout"
        with pytest.raises(openai.APIError, match="request_seconds"):
            list(served.chat(extra_body=form, max_tokens=500, stream=True))
        events = served.client.responses.create(
            model=MODEL, input="x", stream=True, text={"format": form["response_format"]}
        )
        *before, error = list(events)
        assert error.type == "error" and error.code == "timeout" and "request_seconds" in error.message
        assert error.sequence_number == len(before)
        served.wait_until_idle(5)
    with (
        serving(mask_seconds=1e-6) as served,
        pytest.raises(openai.BadRequestError, match="mask_seconds") as found,
    ):
        served.chat(extra_body=form, max_tokens=500)
    assert found.value.code == "limit_mask_seconds"


def test_the_model_failing_is_a_500_for_those_in_the_batch() -> None:
    with serving(tiny()) as served:
        vocabulary, model = served.service.vocabulary, tiny().model
        head = model.lm_head.weight.data.clone()
        try:
            model.lm_head.weight.data[:] = float("nan")
            with pytest.raises(openai.InternalServerError) as found:
                served.chat(max_tokens=3)
        finally:
            model.lm_head.weight.data[:] = head
        assert found.value.code == "model_error" and len(vocabulary) > 0
        assert served.chat(max_tokens=3).usage.completion_tokens <= 3


def test_models_without_a_template() -> None:
    with serving(Generator.from_pretrained(str(TINY))) as served:
        with pytest.raises(openai.BadRequestError, match="no chat template"):
            served.chat()
        assert served.client.completions.create(model=MODEL, prompt="Once", max_tokens=3).choices[0].text


@pytest.mark.parametrize(
    "given",
    [
        {"max_rows": 0},
        {"max_rows": 1.5},
        {"compile_seconds": 0},
        {"shutdown_seconds": 1e300},
        {"tool_template": "odd"},
        {"thinking": "odd"},
        {"schema_in_prompt": 1},
        {"default_max_tokens": 9999},
    ],
)
def test_settings_out_of_range(given: dict[str, Any]) -> None:
    with pytest.raises(mw.MaskwrightError):
        Settings(**given)


def test_the_command(capsys: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    assert main(["serve", "--model", str(tmp_path), "--port", "0"]) == 2
    assert "cannot be loaded" in capsys.readouterr().err
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        for arguments, words in (
            (["--max-rows", "0"], "max_rows"),
            (["--dtype", "zzz"], "--dtype zzz: "),
            (["--device", "zzz", "--port", "0"], "--device zzz: "),
            (["--port", "99999"], "--port 99999: "),
            (["--port", port], f"--port {port}: Address already in use"),
            (["--host", "256.1.1.1", "--port", "0"], "--host 256.1.1.1"),
        ):
            assert main(["serve", "--model", str(TINY), *arguments]) == 2
            assert words in capsys.readouterr().err
