"""``maskwright serve``: bodies that are large for what they ask, and what they cost."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from serving import MODEL, Served, openai, serving, tool

from maskwright.serve.conversation import response_messages
from maskwright.serve.errors import RequestError
from maskwright.serve.protocol import ChatRequest, CompletionRequest

MANY = 500_000


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(max_rows=2, max_queued=0, max_outputs=4) as found:
        yield found


@pytest.mark.parametrize(
    ("kind", "body", "param"),
    [
        (CompletionRequest, {"prompt": [{}] * MANY}, "prompt[0]"),
        (CompletionRequest, {"prompt": [[1], *[["x"]] * MANY]}, "prompt[1][0]"),
        (CompletionRequest, {"prompt": [[1, *["x"] * MANY]]}, "prompt[0][1]"),
        (CompletionRequest, {"prompt": "x", "logit_bias": {str(i): {} for i in range(MANY)}}, "logit_bias"),
        (CompletionRequest, {"prompt": "x", "odd": 1, **{f"odd{i}": 1 for i in range(MANY)}}, "odd"),
        (
            CompletionRequest,
            {"prompt": "x", "stream": True, "stream_options": {f"{i}": 1 for i in range(MANY)}},
            "stream_options.0",
        ),
        (ChatRequest, {"messages": [{}], "stop": ["a", *[1] * MANY]}, "stop[1]"),
        (ChatRequest, {"messages": [1] * MANY}, "messages[0]"),
    ],
    ids=["prompt", "prompts", "tokens", "biases", "members", "options", "stops", "messages"],
)
def test_what_is_wrong_many_times_is_told_once(kind: Any, body: dict[str, Any], param: str) -> None:
    """Each error that is made takes time, which all others wait for, and memory."""
    began = time.process_time()
    with pytest.raises(RequestError) as found:
        kind.read({"model": MODEL, **body}).sampling(MANY)
    assert found.value.param == param and time.process_time() - began < 1


@pytest.mark.parametrize("bias", [True, "1", None, [1], 101, float("1e300")])
def test_biases_that_are_none(bias: Any) -> None:
    request = CompletionRequest.read({"model": MODEL, "prompt": "x", "logit_bias": {"1": bias}})
    with pytest.raises(RequestError, match="for token 1 is no number from -100 to 100"):
        request.sampling(10)


@pytest.mark.slow
def test_prompts_are_counted_before_they_are_read(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(served.service.prompts, "text", lambda *given: read.append(given[0]))
    with pytest.raises(openai.BadRequestError, match="n: 50000 outputs are more than max_outputs"):
        served.client.completions.create(model=MODEL, prompt=["x"] * 50_000)
    assert not read


def test_more_outputs_than_there_will_ever_be_room_for(served: Served) -> None:
    with pytest.raises(openai.BadRequestError, match="max_rows and max_queued together, which is 2"):
        served.chat(n=3)
    assert len(served.chat(n=2, max_tokens=2).choices) == 2


def test_an_answer_that_is_sent_back_is_one_turn() -> None:
    """Text and calls, as chats have them: templates may want roles to take turns."""
    messages = response_messages(
        [
            {"type": None, "role": "user", "content": "Hi"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call", "call_id": "d", "name": "g", "arguments": "{}"},
            {"type": "message", "role": "assistant", "content": " And wait."},
            {"type": "function_call_output", "call_id": "c", "output": "1"},
        ],
        None,
    )
    assert [each["role"] for each in messages] == ["user", "assistant", "tool"]
    assert messages[1]["content"] == "I look. And wait." and len(messages[1]["tool_calls"]) == 2


def test_a_member_that_is_null_is_left_out(served: Served) -> None:
    text: Any = {"verbosity": None, "format": None}
    assert served.client.responses.create(model=MODEL, input="a", max_output_tokens=16, text=text).output_text


@pytest.mark.parametrize("levels", [400, 600, 950, 958, 5_000])
def test_deep_metadata_is_repeated_or_refused(levels: int, served: Served) -> None:
    body = b'{"model":"tiny","input":"a","max_output_tokens":16,"metadata":{"a":%s}}' % (
        b"[" * levels + b"]" * levels
    )
    request = urllib.request.Request(f"{served.url}/v1/responses", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            status, read = answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        status, read = error.code, json.load(error)
    assert (
        (status == 200 and read["metadata"]["a"])
        if levels < 500
        else (status == 400 and "nested" in read["error"]["message"])
    )


def test_a_tool_whose_schema_is_not_looked_at_is_not_blamed(served: Served) -> None:
    loose = tool("loose", {"type": "object", "properties": {"x": {"$ref": "#/nope"}}})
    loose["function"]["strict"] = False
    wrong = tool("wrong", {"type": "object", "properties": {"x": {"pattern": "("}}})
    with pytest.raises(openai.BadRequestError, match="tool 'wrong'"):
        served.chat(tools=[loose, wrong], tool_choice="required")
