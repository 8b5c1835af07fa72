"""What an output with tools may be, and that readers find in it what the constraint lets a model write."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import numpy as np
import pytest
from serving import json_schema, tool

import maskwright as mw
from maskwright.frontends.tools.templates import ToolTemplate
from maskwright.serve.constraints import Writing, format_constraint, tool_constraint
from maskwright.serve.errors import RequestError
from maskwright.serve.tool_calls import CallBegins, Said, Thought, reader_for

CLOSED = {"type": "object", "additionalProperties": False}
TOOLS = [
    tool("find", {**CLOSED, "properties": {"a": {"enum": ["x"]}}, "required": ["a"]}),
    tool("go", CLOSED),
]
ANSWER = json_schema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": TOOLS[:1]}}
LIKE_JSON = {"gemma3", "llama3_json", "llama_pythonic", "mistral_v3", "mistral_v11", "mistral_v13"}
"""Templates whose calls cannot be told from JSON."""
TEXTS = 8
"""Of each constraint."""


def writings(name: str) -> list[Writing]:
    """All ways of thinking, with marks that are text and marks that are tokens."""
    template = ToolTemplate.load(name)
    marks = [mark.encode() for mark in template.tokens]
    names = [*(bytes([i]) for i in range(256)), None, *marks]
    tokens = mw.Vocabulary.from_bytes(names, eos_ids=256, special_ids=range(257, len(names)))
    ways: Any = (None, "auto", "required", "prompt", "off") if template.thinking is not None else (None,)
    texts = mw.Vocabulary.from_bytes(names[:257], eos_ids=256)
    return [Writing(template, way, vocabulary) for way in ways for vocabulary in (texts, tokens)]


def written(grammar: mw.CompiledGrammar, vocabulary: mw.Vocabulary, random: Random) -> str:
    """A text that begins by chance, where marks are likely, and ends as soon as it can."""
    matcher = grammar.matcher()
    bitmask = mw.allocate_token_bitmask(1, len(vocabulary))
    ids: list[int] = []
    for _ in range(random.choice([0, 1, 3, 8, 20, 60])):
        matcher.fill_next_token_bitmask(bitmask)
        allowed = np.flatnonzero(np.unpackbits(bitmask.view(np.uint8)[0], bitorder="little"))
        free = [int(i) for i in allowed if 32 <= i < 127 or 256 < i < len(vocabulary)]
        if not free:
            break
        likely = [i for i in free if i > 256 or chr(i) in '<{"t'] if random.random() < 0.5 else []
        ids.append(random.choice(likely or free))
        assert matcher.accept_token(ids[-1])
    ids += matcher.shortest_completion()
    marks = {token: name for name, token in vocabulary.special_tokens.items()}
    return b"".join(vocabulary.tokens[i] or marks.get(i, "").encode() for i in ids).decode()


def read(constraint: Any, pieces: Any) -> tuple[str, str, list[str]]:
    """What is thought and said, and the names of the tools that are called."""
    reader = constraint.reader()
    events = [*(event for piece in pieces for event in reader.feed(piece)), *reader.finish()]
    thought, said = (
        "".join(event.text for event in events if isinstance(event, kind)) for kind in (Thought, Said)
    )
    return thought, said, [event.name for event in events if isinstance(event, CallBegins)]


@pytest.mark.parametrize(
    "choice", ["auto", ALLOWED, "required", TOOLS[1]], ids=["auto", "allowed", "required", "one"]
)
@pytest.mark.parametrize("name", ToolTemplate.names())
def test_what_may_be_written_is_read(name: str, choice: Any) -> None:
    """Calls and nothing else, or with ``auto`` the JSON that was asked for; thinking comes first."""
    is_free = choice in ("auto", ALLOWED)
    answer = format_constraint(ANSWER if is_free else None, "response_format")
    for writing in writings(name):
        if is_free and name in LIKE_JSON:
            with pytest.raises(RequestError, match="cannot be told apart"):
                tool_constraint(TOOLS, choice, answer, writing=writing, parallel=True, most=2)
            continue
        constraint = tool_constraint(TOOLS, choice, answer, writing=writing, parallel=True, most=2)
        grammar = mw.compile(constraint.source, writing.vocabulary)
        for seed in range(TEXTS):
            text = written(grammar, writing.vocabulary, Random(seed))
            thought, said, called = read(constraint, text if seed % 2 else [text])
            if called:
                assert not said.strip() and set(called) <= set(constraint.tools), text
                assert len(called) == 1 or choice != TOOLS[1], text
            else:
                assert is_free and set(json.loads(said)) == {"a"}, text
            assert not thought or writing.template.thinking is not None
            assert (thought, said, called) == read(constraint, [text[:7], text[7:]]), text


def test_json_and_calls_behind_thinking_that_the_prompt_begins() -> None:
    (writing,) = writings("qwen3_5")[:1]
    answer = format_constraint(ANSWER, "response_format")
    constraint = tool_constraint(TOOLS, None, answer, writing=writing, parallel=True, most=2)
    grammar = mw.compile(constraint.source, writing.vocabulary)
    call = "<tool_call>\n<function=go>\n</function>\n</tool_call>"
    for text, said, called in ((call, "", ["go"]), ('{"a": 1}', '{"a": 1}', [])):
        for thought in ("the user", "The user", '{"a": 1}', "1", ""):
            whole = f"{thought}</think>\n\n{text}"
            matcher = grammar.matcher()
            assert matcher.accept_bytes(whole.encode()) and matcher.is_accepting
            for pieces in (whole, [whole]):
                assert read(constraint, pieces) == (thought, said, called)
    assert not grammar.matcher().accept_bytes(b'{"a": 1}</think>{"a": 1}x')


def test_several_calls_are_a_line_each_and_have_no_text_between_them() -> None:
    call = '<tool_call>\n{"name": "go", "arguments": {}}\n</tool_call>'
    for name, before in (("hermes", ""), ("qwen3", "<think>\n\n</think>\n\n")):
        for writing in writings(name)[:1]:
            constraint = tool_constraint(
                TOOLS, "required", format_constraint(None, ""), writing=writing, parallel=True, most=2
            )
            grammar = mw.compile(constraint.source, writing.vocabulary)
            assert grammar.matcher().accept_bytes(f"{before}{call}\n{call}".encode())
            for text in (f"{before}Well. {call}", f"{before}{call} and {call}"):
                assert not grammar.matcher().accept_bytes(text.encode()), text


@pytest.mark.parametrize("name", ["hermes", "qwen3"])
def test_blanks_between_texts_around_a_call(name: str) -> None:
    """As ``ToolTemplate.parse`` has them, in whatever pieces the text comes; without a call, text is as it is."""
    template = ToolTemplate.load(name)
    call = '<tool_call>\n{"name": "go", "arguments": {}}\n</tool_call>'
    for text in (
        f"I look.\n{call}Done.",
        f"\n{call}Done.",
        f"I look. \n{call}\n",
        "Hello \n",
        f"a {call} \n b {call}\n\nc",
    ):
        for size in (1, 5, len(text)):
            reader = reader_for(template, TOOLS, None, or_json=False)
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            events = [*(event for piece in pieces for event in reader.feed(piece)), *reader.finish()]
            said = "".join(event.text for event in events if isinstance(event, Said))
            assert said == template.parse(text, TOOLS).content, (text, size)
