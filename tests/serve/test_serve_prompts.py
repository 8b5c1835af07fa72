"""``maskwright serve``: prompts that are too long, too deep, or say nothing."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from serving import TEMPLATE, openai, serving
from tiny_model import TINY

from maskwright.generation.generator import Generator

PRINTING = "{% if tools %}{{ tools | tojson(indent=4) }}{% endif %}" + TEMPLATE


@pytest.fixture(scope="module")
def served() -> Any:
    """Its template prints tools, and calls of messages, as those of many models do."""
    generator = Generator.from_pretrained(str(TINY))
    generator.tokenizer.chat_template = PRINTING
    with serving(Generator(generator.model, generator.tokenizer)) as server:
        yield server


def nested(depth: int, width: int) -> Any:
    value: Any = [1] * width
    for _ in range(depth):
        value = [value]
    return value


def test_a_prompt_of_far_too_many_tokens_is_not_read_to_its_end(served: Any) -> None:
    seen: list[int] = []
    tokenizer = served.service.prompts.tokenizer

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(tokenizer, name)

        def __call__(self, text: str, **options: Any) -> Any:
            seen.append(len(text))
            return tokenizer(text, **options)

    served.service.prompts.tokenizer = Counting()
    try:
        for ask in (
            lambda: served.chat("0 " * 1_000_000),
            lambda: served.client.completions.create(model="tiny", prompt="0 " * 1_000_000),
        ):
            with pytest.raises(openai.BadRequestError) as caught:
                ask()
            assert caught.value.code == "context_length_exceeded"
    finally:
        served.service.prompts.tokenizer = tokenizer
    assert sum(seen) <= 4 * 65536


def test_tools_that_become_long_when_they_are_printed(served: Any) -> None:
    function = {"name": "f", "strict": False, "parameters": {"enum": nested(480, 10_000)}}
    started = time.monotonic()
    with pytest.raises(openai.BadRequestError, match="printed by level"):
        served.chat("x", tools=[{"type": "function", "function": function}])
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("text", ["[" * 700 + "]" * 700, "[" * 940 + "]" * 940, '{"a": NaN}', '{"a": 1e999}'])
def test_arguments_in_a_conversation_are_json_that_can_be_written(served: Any, text: str) -> None:
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": text}}
    messages = [{"role": "assistant", "content": None, "tool_calls": [call]}]
    with pytest.raises(openai.BadRequestError, match="arguments: no JSON"):
        served.client.chat.completions.create(model="tiny", messages=messages)


def test_a_tool_without_parameters_is_called_with_nothing(served: Any) -> None:
    tools = [{"type": "function", "function": {"name": "ping"}}]
    for seed in range(3):
        choice = served.chat("x", tools=tools, tool_choice="required", seed=seed, max_tokens=100).choices[0]
        assert {json.dumps(json.loads(each.function.arguments)) for each in choice.message.tool_calls} == {
            "{}"
        }


def test_an_empty_prompt_is_one_however_it_is_written(served: Any) -> None:
    told = set()
    for prompt in ("", [""]):
        try:
            answer = served.client.completions.create(model="tiny", prompt=prompt, max_tokens=2, seed=1)
            told.add(answer.choices[0].text)
        except openai.BadRequestError as error:
            told.add(error.message.partition(":")[2])
    assert len(told) == 1
    for empty in ({"prompt": []}, {"prompt": [[]]}):
        with pytest.raises(openai.BadRequestError):
            served.client.completions.create(model="tiny", **empty)
