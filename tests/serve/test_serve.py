"""``maskwright serve``: what it answers, to the official client."""

from __future__ import annotations

import json
import re
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from types import SimpleNamespace
from typing import Any, Literal

import jsonschema
import pytest
from places import ROOT
from pydantic import BaseModel, Field
from serving import MODEL, PERSON, Served, json_schema, serving, tiny, tool

import maskwright as mw
from maskwright.generation.metrics import Rates
from maskwright.serve.logprobs import TokenList
from maskwright.serve.settings import Settings


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(max_rows=8) as found:
        yield found


class Person(BaseModel):
    name: str = Field(max_length=12)
    age: int = Field(ge=0, le=150)


CITY = tool(
    "find_city",
    {
        "type": "object",
        "properties": {"city": {"enum": ["Paris", "Rome"]}},
        "required": ["city"],
        "additionalProperties": False,
    },
)
SUM = tool(
    "sum",
    {
        "type": "object",
        "properties": {
            "of": {"type": "array", "items": {"type": "integer", "maximum": 99, "minimum": 0}, "maxItems": 3}
        },
        "required": ["of"],
        "additionalProperties": False,
    },
)


# --- formats


@pytest.mark.parametrize("stream", [False, True])
def test_json_schema(served: Served, stream: bool) -> None:
    answer = served.chat(response_format=json_schema(PERSON), stream=stream, temperature=1.0, seed=3)
    text = (
        "".join(part.choices[0].delta.content or "" for part in answer)
        if stream
        else answer.choices[0].message.content
    )
    jsonschema.validate(json.loads(text), PERSON)


def test_what_was_asked_comes_with_its_mass(served: Served) -> None:
    choice = served.chat(response_format=json_schema(PERSON), temperature=0).choices[0]
    assert choice.finish_reason == "stop"
    assert 0 <= choice.maskwright["removed_mass"] <= 1
    assert choice.maskwright["forced_tokens"] > 0


def test_types_of_the_client(served: Served) -> None:
    messages: Any = [{"role": "user", "content": "Who is it?"}]
    answer = served.client.chat.completions.parse(
        model=MODEL, messages=messages, response_format=Person, max_tokens=200
    )
    parsed = answer.choices[0].message.parsed
    assert isinstance(parsed, Person) and 0 <= parsed.age <= 150


@pytest.mark.parametrize(
    ("response_format", "pattern"),
    [
        ({"type": "regex", "pattern": "[a-c]{3}-[0-9]{2}"}, "[a-c]{3}-[0-9]{2}"),
        ({"type": "grammar", "syntax": "lark", "grammar": 'start: "yes" | "no" "!"'}, "yes|no!"),
        ({"type": "grammar", "syntax": "gbnf", "grammar": 'root ::= "a" [0-9]'}, "a[0-9]"),
        ({"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["p", "q"]}}}, '"p"|"q"'),
        ({"type": "structural_tag", "format": {"type": "const_string", "value": "fixed"}}, "fixed"),
    ],
)
def test_formats(served: Served, response_format: Any, pattern: str) -> None:
    answer = served.chat(extra_body={"response_format": response_format})
    assert re.fullmatch(pattern, answer.choices[0].message.content)


def test_json_object_and_text(served: Served) -> None:
    answer = served.chat(response_format={"type": "json_object"}, max_tokens=30)
    assert isinstance(json.loads(answer.choices[0].message.content), dict)
    free = served.chat(response_format={"type": "text"}, max_tokens=7)
    assert free.usage.completion_tokens <= 7
    assert "tool_calls" not in free.choices[0].message.model_fields_set


def test_a_budget_that_runs_short_closes_the_json(served: Served) -> None:
    schema = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    choice = served.chat(response_format=json_schema(schema), max_tokens=12, temperature=1.5, seed=1).choices[
        0
    ]
    jsonschema.validate(json.loads(choice.message.content), schema)
    assert choice.finish_reason in ("length", "stop")


# --- sampling


def test_seeds_and_several_outputs(served: Served) -> None:
    options: dict[str, Any] = {"temperature": 1.0, "n": 3, "max_tokens": 8}
    first, again, other = (
        [choice.message.content for choice in served.chat(seed=seed, **options).choices] for seed in (5, 5, 6)
    )
    assert first == again != other
    assert len(set(first)) > 1
    greedy = served.chat(temperature=0, n=2, max_tokens=5)
    assert greedy.choices[0].message.content == greedy.choices[1].message.content
    assert greedy.usage.total_tokens == greedy.usage.prompt_tokens + greedy.usage.completion_tokens


def test_stop_texts(served: Served) -> None:
    whole = served.chat(temperature=0, max_tokens=20).choices[0].message.content
    middle = whole[len(whole) // 2 :][:3]
    for stream in (False, True):
        answer = served.chat(temperature=0, max_tokens=20, stop=[middle, "§"], stream=stream)
        if stream:
            text = "".join(part.choices[0].delta.content or "" for part in answer)
        else:
            text = answer.choices[0].message.content
            assert answer.choices[0].finish_reason == "stop"
        assert text == whole[: whole.index(middle)]


def test_probabilities(served: Served) -> None:
    options: dict[str, Any] = {"temperature": 0, "max_tokens": 6, "logprobs": True, "top_logprobs": 3}
    choice = served.chat(**options).choices[0]
    tokens = choice.logprobs.content
    assert b"".join(bytes(each.bytes) for each in tokens).decode() == choice.message.content
    # The likeliest token was taken, unless it is one that no text has.
    assert all(
        len(each.top_logprobs) == 3 and each.logprob <= each.top_logprobs[0].logprob + 1e-6 for each in tokens
    )
    streamed = [
        each
        for part in served.chat(stream=True, **options)
        if part.choices[0].logprobs
        for each in part.choices[0].logprobs.content
    ]
    assert [each.logprob for each in streamed] == pytest.approx([each.logprob for each in tokens], abs=1e-3)


def test_biases_and_penalties(served: Served) -> None:
    text = served.chat(temperature=0, max_tokens=1).choices[0].message.content
    tokens = served.service.vocabulary.tokens
    other = next(i for i, token in enumerate(tokens) if token.isalpha() and token.decode() not in text)
    biased = served.chat(temperature=0, max_tokens=3, logit_bias={str(other): 100})
    assert biased.choices[0].message.content == tokens[other].decode() * 3
    penalised = served.chat(
        temperature=0, max_tokens=3, logit_bias={str(other): 100}, presence_penalty=2, frequency_penalty=2
    )
    assert penalised.choices[0].message.content.startswith(tokens[other].decode())


# --- tools


def test_tools_required_and_named(served: Served) -> None:
    message = (
        served.chat(tools=[CITY, SUM], tool_choice="required", max_tokens=120, seed=2).choices[0].message
    )
    assert message.tool_calls and message.content is None
    for call in message.tool_calls:
        arguments = json.loads(call.function.arguments)
        jsonschema.validate(
            arguments, {"find_city": CITY, "sum": SUM}[call.function.name]["function"]["parameters"]
        )
    named = {"type": "function", "function": {"name": "sum"}}
    choice = served.chat(tools=[CITY, SUM], tool_choice=named, max_tokens=120).choices[0]
    assert [call.function.name for call in choice.message.tool_calls] == ["sum"]
    assert choice.finish_reason == "tool_calls"


def test_tool_calls_in_a_stream(served: Served) -> None:
    options: dict[str, Any] = {
        "tools": [CITY, SUM],
        "tool_choice": "required",
        "temperature": 1.0,
        "seed": 4,
        "max_tokens": 150,
    }
    whole = served.chat(**options).choices[0].message.tool_calls
    calls: dict[int, dict[str, str]] = {}
    reason = None
    pieces = 0
    for part in served.chat(stream=True, **options):
        choice = part.choices[0]
        reason = choice.finish_reason or reason
        assert not choice.delta.content
        for call in choice.delta.tool_calls or ():
            found = calls.setdefault(call.index, {"id": call.id, "name": call.function.name, "arguments": ""})
            found["arguments"] += call.function.arguments
            pieces += 1
    assert [(call["name"], call["arguments"]) for call in calls.values()] == [
        (call.function.name, call.function.arguments) for call in whole
    ]
    assert reason in ("tool_calls", "length") and pieces > len(calls)
    assert len({call["id"] for call in calls.values()}) == len(calls)


def test_one_call_where_they_may_not_be_parallel(served: Served) -> None:
    for seed in range(4):
        answer = served.chat(
            tools=[CITY], tool_choice="required", parallel_tool_calls=False, temperature=1.0, seed=seed
        )
        assert len(answer.choices[0].message.tool_calls) == 1


def commas() -> dict[str, int]:
    """A bias for tokens that begin another member, and against those of calls."""
    tokens = enumerate(tiny().vocabulary.tokens)
    return {str(i): 40 for i, token in tokens if token and token.startswith((b",", b"{"))}


def test_tools_that_need_not_be_called(served: Served) -> None:
    none = served.chat(tools=[CITY], tool_choice="none", max_tokens=10)
    assert none.choices[0].message.tool_calls is None
    auto = served.chat(tools=[CITY], max_tokens=10)
    assert auto.choices[0].message.content or auto.choices[0].message.tool_calls
    # A schema for the answer holds where no tool is called.
    both = (
        served.chat(
            tools=[CITY], response_format=json_schema(PERSON), temperature=1.0, seed=1, max_tokens=100
        )
        .choices[0]
        .message
    )
    if both.tool_calls is None:
        jsonschema.validate(json.loads(both.content), PERSON)
    # It means what it means without tools: no members beside those that it mentions.
    open_one = json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
    likely = {"response_format": open_one, "logit_bias": commas(), "temperature": 0, "max_tokens": 60}
    for more in ({}, {"tools": [CITY]}):
        assert set(json.loads(served.chat(**likely, **more).choices[0].message.content)) == {"a"}
    only = (
        served.chat(tools=[CITY], tool_choice="none", response_format=json_schema(PERSON)).choices[0].message
    )
    jsonschema.validate(json.loads(only.content), PERSON)


def test_a_conversation_with_calls(served: Served) -> None:
    messages: Any = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "Where"}, {"type": "text", "text": " is it?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "find_city", "arguments": '{"city": "Rome"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "41.9 N"},
    ]
    answer = served.client.chat.completions.create(model=MODEL, messages=messages, tools=[CITY], max_tokens=3)  # type: ignore[arg-type, list-item, unused-ignore]
    shown = served.service.tokenizer.decode(served.service.prompts.chat(
        [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where is it?"},
         {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find_city", "arguments": {"city": "Rome"}}}]},
         {"role": "tool", "content": "41.9 N", "tool_call_id": "c1"}], [CITY], None, "messages"))  # fmt: skip
    assert '<tool_call>\n{"name": "find_city", "arguments": {"city": "Rome"}}\n</tool_call>' in shown
    assert "41.9 N" in shown and "calls find_city" in shown
    assert answer.usage.prompt_tokens == len(
        served.service.tokenizer(shown, add_special_tokens=False)["input_ids"]
    )


def test_what_clients_send_back(served: Served) -> None:
    """Answers as they are, whatever members they have, and members that are null."""
    parsed = served.client.chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": "Who?"}], response_format=Person, max_tokens=200
    )
    called = served.chat(tools=[CITY], tool_choice="required", parallel_tool_calls=False, max_tokens=120)
    messages: Any = [
        {"role": "user", "name": "ada", "content": "Who?"},
        parsed.choices[0].message,
        {"role": "user", "content": "Where?", "name": None},
        {**called.choices[0].message.model_dump(), "annotations": [], "reasoning_content": "Hm."},
        {"role": "tool", "tool_call_id": called.choices[0].message.tool_calls[0].id, "content": "x"},
    ]
    plain: Any = {**CITY, "strict": None}
    assert served.client.chat.completions.create(
        model=MODEL, messages=messages, tools=[plain], max_tokens=2
    ).choices
    said = served.client.responses.create(model=MODEL, input="Who?", max_output_tokens=3).output
    assert served.client.responses.create(model=MODEL, input=[*said, *said], max_output_tokens=2).output  # type: ignore[list-item, unused-ignore]


# --- completions, responses, the rest


def test_completions(served: Served) -> None:
    create = served.client.completions.create
    answer = create(model=MODEL, prompt=["Once", "Twice"], n=2, max_tokens=5, seed=1, logprobs=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
    for choice in answer.choices:
        assert "".join(choice.logprobs.tokens) == choice.text
    form: Any = {"response_format": json_schema(PERSON)}
    text = create(model=MODEL, prompt=[5, 6, 7], max_tokens=100, extra_body=form).choices[0].text
    jsonschema.validate(json.loads(text), PERSON)
    parts = list(
        create(
            model=MODEL,
            prompt="Once",
            max_tokens=5,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert parts[-1].usage.completion_tokens <= 5 and not parts[-1].choices
    assert parts[-2].choices[0].finish_reason and parts[-2].choices[0].maskwright
    whole = create(model=MODEL, prompt="Once", max_tokens=5, temperature=0).choices[0].text
    assert "".join(part.choices[0].text for part in parts[:-1]) == whole


def test_probabilities_of_tokens_that_are_no_whole_text(served: Served) -> None:
    text = "é😀日本"
    form: Any = {"response_format": {"type": "regex", "pattern": text}}
    options: dict[str, Any] = {
        "model": MODEL,
        "prompt": "x",
        "max_tokens": 30,
        "logprobs": 2,
        "extra_body": form,
    }
    found = served.client.completions.create(**options).choices[0].logprobs
    names = [name.encode() for name in found.tokens]
    assert any(name.startswith(b"bytes:") for name in names)
    parts = [
        bytes.fromhex(name[6:].replace(b"\\x", b"").decode()) if name.startswith(b"bytes:") else name
        for name in names
    ]
    assert b"".join(parts).decode() == text
    # A token within a character begins where that does.
    before = [b"".join(parts[:at]) for at in range(len(parts))]
    assert found.text_offset == [len(data.decode("utf-8", "ignore")) for data in before]
    streamed = [part.choices[0].logprobs for part in served.client.completions.create(stream=True, **options)]
    assert [name for part in streamed if part for name in part.tokens] == found.tokens
    assert [at for part in streamed if part for at in part.text_offset] == found.text_offset


def test_likely_tokens_that_are_no_whole_text_are_told_apart() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    top = {0xF0: -1.0, 0x9F: -2.0, 0x61: -3.0}
    row: Any = SimpleNamespace(ids=[0x61], logprobs=[-3.0], top=3, top_logprobs=[top], vocabulary=vocabulary)
    shown = TokenList(row, vocabulary).completion([(0, 0)])
    assert shown["top_logprobs"] == [{"bytes:\\xf0": -1.0, "bytes:\\x9f": -2.0, "a": -3.0}]


def test_responses(served: Served) -> None:
    class Choice(BaseModel):
        answer: Literal["yes", "no"]

    answer = served.client.responses.parse(
        model=MODEL, input="Is it?", text_format=Choice, max_output_tokens=60
    )
    assert answer.output_parsed.answer in ("yes", "no")
    assert answer.status == "completed" and answer.usage.output_tokens > 0
    details = type(answer.usage.input_tokens_details)
    assert answer.usage.input_tokens_details.model_fields_set >= {
        name for name, field in details.model_fields.items() if field.is_required()
    }
    flat: Any = {"type": "function", **CITY["function"], "strict": True}
    called = served.client.responses.create(
        model=MODEL,
        instructions="Call.",
        input="Where?",
        tools=[flat],
        tool_choice="required",
        parallel_tool_calls=False,
    )
    (call,) = called.output
    assert call.type == "function_call" and json.loads(call.arguments)["city"] in ("Paris", "Rome")
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "Where?"}]},
        call.model_dump(),
        {"type": "function_call_output", "call_id": call.call_id, "output": "there"},
    ]
    free = served.client.responses.create(model=MODEL, input=items, max_output_tokens=4)
    assert free.status in ("completed", "incomplete")


def test_items_of_a_response_that_is_incomplete(served: Served) -> None:
    options: dict[str, Any] = {"model": MODEL, "input": "Who?", "temperature": 0}
    answer = served.client.responses.create(max_output_tokens=3, **options)
    assert answer.status == "incomplete" and [item.status for item in answer.output] == ["incomplete"]
    with served.client.responses.stream(max_output_tokens=3, **options) as stream:
        events = list(stream)
    (done,) = [event.item for event in events if event.type == "response.output_item.done"]
    assert (
        done.status == "incomplete" == events[-1].response.output[0].status
        and events[-1].type == "response.incomplete"
    )
    fixed: Any = {"format": {"type": "regex", "pattern": "abc"}}
    (item,) = served.client.responses.create(text=fixed, **options).output
    assert item.status == "completed"
    (call,) = served.client.responses.create(
        tools=[{"type": "function", **SUM["function"]}],
        tool_choice="required",
        parallel_tool_calls=False,
        **options,
    ).output
    assert call.status == "completed"


def test_a_format_of_null_is_text(served: Served) -> None:
    nothing: Any = {"format": None}
    answer = served.client.responses.create(model=MODEL, input="x", text=nothing, max_output_tokens=2)
    assert answer.text.format.type == "text"


def test_events_of_responses(served: Served) -> None:
    with served.client.responses.stream(
        model=MODEL, input="Who?", text_format=Person, max_output_tokens=200
    ) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [event.sequence_number for event in events if hasattr(event, "sequence_number")] == list(
        range(len(events))
    )
    assert isinstance(final.output_parsed, Person)
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    assert Person.model_validate_json(text) == final.output_parsed
    flat: Any = {"type": "function", **SUM["function"]}
    with served.client.responses.stream(
        model=MODEL, input="Sum?", tools=[flat], tool_choice="required", parallel_tool_calls=False
    ) as stream:
        kinds = [event.type for event in stream]
        (call,) = stream.get_final_response().output
    assert kinds[-1] == "response.completed" and "response.function_call_arguments.delta" in kinds
    jsonschema.validate(json.loads(call.arguments), SUM["function"]["parameters"])


def test_models_health_and_metrics(served: Served) -> None:
    assert [model.id for model in served.client.models.list()] == [MODEL]
    assert served.client.models.retrieve(MODEL).id == MODEL
    served.chat(response_format=json_schema(PERSON))
    with urllib.request.urlopen(f"{served.url}/health") as answer:
        assert json.load(answer) == {"status": "ok", "model": MODEL}
    hits = served.metric("maskwright_grammar_cache_hits_total")
    served.chat(response_format=json_schema(PERSON))
    assert served.metric("maskwright_grammar_cache_hits_total") == hits + 1
    served.wait_until_idle()
    with urllib.request.urlopen(f"{served.url}/metrics") as answer:
        assert answer.headers["content-type"].startswith("text/plain")
        text = answer.read().decode()
    for name in (
        'requests_total{endpoint="chat",outcome="ok"}', "compiles_total", "compile_seconds_total", "grammar_cache_bytes",
        "mask_seconds_total", "generated_tokens_total", "removed_probability_mass_count", "rows_running", "rows_waiting",
    ):  # fmt: skip
        line = next(line for line in text.splitlines() if line.startswith(f"maskwright_{name} "))
        assert float(line.rpartition(" ")[2]) >= (0 if "rows" in name else 1e-9), line


@pytest.mark.parametrize("path", ["/health", "/v1/models", f"/v1/models/{MODEL}", "/metrics"])
def test_heads_of_what_can_be_read(served: Served, path: str) -> None:
    """And /docs lists each once."""
    with urllib.request.urlopen(urllib.request.Request(served.url + path, method="HEAD")) as answer:
        assert answer.status == 200 and int(answer.headers["Content-Length"]) > 0 and answer.read() == b""
    with urllib.request.urlopen(f"{served.url}/openapi.json") as answer:
        listed = json.load(answer)["paths"]
    assert set(listed[path.replace(MODEL, "{name}")]) == {"get"}


def test_many_at_once_share_the_batch(served: Served) -> None:
    schemas = [
        {
            "type": "object",
            "properties": {f"k{i}": {"type": "integer", "maximum": 10 * i, "minimum": 0}},
            "required": [f"k{i}"],
            "additionalProperties": False,
        }
        for i in range(24)
    ]

    def ask(i: int) -> Any:
        if i % 4 == 3:
            return served.chat(f"number {i}", max_tokens=10).choices[0].message.content
        return json.loads(
            served.chat(f"number {i}", response_format=json_schema(schemas[i])).choices[0].message.content
        )

    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(ask, range(24)))
    for i, answer in enumerate(answers):
        if i % 4 == 3:
            assert isinstance(answer, str)
        else:
            jsonschema.validate(answer, schemas[i])


def test_a_server_shows_the_schema_where_it_is_told_to() -> None:
    with serving(schema_in_prompt=True) as shown, serving() as hidden:
        options: dict[str, Any] = {"response_format": json_schema(PERSON), "temperature": 0}
        more = shown.chat(**options).usage.prompt_tokens - hidden.chat(**options).usage.prompt_tokens
    assert more > 20


def test_grammars_with_other_limits_are_the_same_language() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    grammar = mw.compile_json_schema(PERSON, vocabulary)
    other = grammar.with_limits(mw.Limits(max_seconds=0.5))
    one, two = mw.allocate_token_bitmask(2, 257)
    for text in (b"", b'{"name', b'{"name": "a", "age": 1'):
        here, there = grammar.matcher(), other.matcher()
        assert here.accept_bytes(text) and there.accept_bytes(text)
        here.fill_next_token_bitmask(one)
        there.fill_next_token_bitmask(two)
        assert (one == two).all()
    with pytest.raises(mw.MaskwrightError):
        grammar.with_limits(3)  # type: ignore[arg-type]


def test_time_passes_while_nobody_asks(served: Served) -> None:
    served.wait_until_idle()
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.3, "an idle server takes time"


def test_rates_have_the_names_that_they_have_elsewhere(served: Served) -> None:
    served.chat(response_format=json_schema(PERSON))
    served.wait_until_idle()
    families = {
        family.name.removeprefix("maskwright_") for family in served.service.metrics.registry.collect()
    }
    # Nobody tells a server what became of a call.
    told = {"executable_calls", "argument_exactness", "cost_per_success"}
    assert {each.name for each in fields(Rates)} - told <= families
    assert not told & families


def test_the_page_names_every_setting_and_metric(served: Served) -> None:
    page = (ROOT / "docs" / "server.md").read_text("utf-8")
    for each in fields(Settings):
        assert each.name in page or "--" + each.name.replace("_", "-") in page, each.name
    for family in served.service.metrics.registry.collect():
        name = family.name.removeprefix("maskwright_")
        assert name in page, name
