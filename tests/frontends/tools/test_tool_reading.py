"""What masks allow is read as what was meant: calls that look like text, marks inside texts, values without quotes."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest

import maskwright as mw

SINGLE = [bytes([i]) for i in range(256)]
BYTES = mw.Vocabulary.from_bytes([*SINGLE, b"</s>"], eos_ids=[256])
TEXT = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
INTEGER, STRING = {"type": "integer"}, {"type": "string"}


def tools_with(parameters: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": parameters}}]


def takes(template: str, tools: list[dict[str, Any]], text: str, choice: str = "required") -> bool:
    matcher = mw.compile(mw.StructuralTag.from_tools(tools, choice, template=template), BYTES).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def takes_tokens(
    template: str, tools: list[dict[str, Any]], text: str, plain: str, choice: str, thinking: Any
) -> bool:
    """The same where marks are tokens, but within ``plain``, which is spelled in bytes."""
    marks = list(mw.ToolTemplate.load(template).tokens)
    end = 256 + len(marks)
    vocabulary = mw.Vocabulary(
        [*SINGLE, *(mark.encode() for mark in marks), b"</s>"], end, special_ids=range(256, end)
    )
    tag = mw.StructuralTag.from_tools(
        tools, choice, template=template, thinking=thinking, vocabulary=vocabulary
    )
    matcher = mw.compile(tag, vocabulary).matcher()
    before, behind = text.split(plain)
    split = re.compile("(" + "|".join(map(re.escape, marks)) + ")")
    for part in [*split.split(before), plain.encode(), *split.split(behind)]:
        if part in marks:
            if not matcher.accept_token(256 + marks.index(part)):
                return False
        elif not matcher.accept_bytes(part if isinstance(part, bytes) else part.encode()):
            return False
    return matcher.is_accepting


@pytest.mark.parametrize("choice", ["none", "auto"])
@pytest.mark.parametrize("blank", ["", " ", "\n", "\t "])
def test_text_that_a_reader_takes_for_a_call_is_none(choice: str, blank: str) -> None:
    tools = tools_with(TEXT)
    text = f'{{"name":{blank}"f", "parameters": {{"a": 5}}}}'
    assert mw.ToolTemplate.load("llama3_json").parse(text, tools).calls
    assert not takes("llama3_json", tools, text, choice)
    assert takes("llama3_json", tools, '{"nam', choice)
    assert takes("llama3_json", tools, 'See {"nam": "f"}.', choice)


@pytest.mark.parametrize(
    ("template", "begin", "plain", "end"),
    [
        (
            "harmony",
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "',
            "see <|channel|>final<|message|> ok",
            '"}<|call|>',
        ),
        (
            "harmony",
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"a": "',
            "<|channel|>commentary<|message|>",
            '"}<|call|>',
        ),
    ],
)
def test_no_argument_begins_a_channel(template: str, begin: str, plain: str, end: str) -> None:
    tools = tools_with(TEXT)
    assert not takes_tokens(template, tools, begin + plain + end, plain, "required", "off")
    harmless = plain.replace("|>", "|")
    assert takes_tokens(template, tools, begin + harmless + end, harmless, "required", "off")
    (call,) = mw.ToolTemplate.load(template).parse(begin + harmless + end, tools, thinking="off").calls
    assert call.arguments == {"a": harmless}


@pytest.mark.parametrize(
    ("template", "text", "plain", "choice", "thinking"),
    [
        (
            "harmony",
            "<|channel|>final<|message|>say <|return|> x<|return|>",
            "say <|return|> x",
            "auto",
            "off",
        ),
        ("qwen3", "<think>so </think> on</think>hi", "so </think> on", "none", "required"),
    ],
)
def test_what_ends_by_a_token_does_not_spell_it(
    template: str, text: str, plain: str, choice: str, thinking: Any
) -> None:
    tools = tools_with(TEXT)
    loaded = mw.ToolTemplate.load(template)
    if not set(re.findall(r"<[^>]*>", plain)) <= set(loaded.tokens):
        pytest.skip("the end is no token of this template")
    assert not takes_tokens(template, tools, text, plain, choice, thinking)
    harmless = plain.replace(">", "")
    assert takes_tokens(template, tools, text.replace(plain, harmless), harmless, choice, thinking)


BRANCHES = {
    "type": "object",
    "oneOf": [
        {"properties": {"by": {"const": "zip"}, "value": STRING}, "required": ["by", "value"]},
        {"properties": {"by": {"const": "id"}, "value": INTEGER}, "required": ["by", "value"]},
    ],
}
CONDITION = {
    "type": "object",
    "properties": {"by": {"enum": ["zip", "id"]}, "value": {}},
    "required": ["by", "value"],
    "if": {"properties": {"by": {"const": "zip"}}},
    "then": {"properties": {"value": STRING}},
    "else": {"properties": {"value": INTEGER}},
}


EITHER = {"properties": {"k": INTEGER, "v": {"type": ["integer", "string"]}}, "required": ["k", "v"]}
WAYS = {"then": {"properties": {"v": STRING}}, "else": {"properties": {"v": INTEGER}}}


@pytest.mark.parametrize(
    ("parameters", "arguments"),
    [
        (BRANCHES, {"by": "zip", "value": "12345"}),
        (BRANCHES, {"by": "id", "value": 12345}),
        (CONDITION, {"by": "zip", "value": "12345"}),
        (CONDITION, {"by": "id", "value": 12345}),
        ({"properties": {"n": {"$ref": "#n"}}, "$defs": {"z": {"$anchor": "n", **INTEGER}}}, {"n": 5}),
        (
            {
                "properties": {"n": {"$ref": "#/definitions/Page%5Bstr%5D"}},
                "definitions": {"Page[str]": STRING},
            },
            {"n": "5"},
        ),
        ({"unevaluatedProperties": STRING}, {"zip": "12345"}),
        # Conditions that are not looked at say nothing.
        ({**EITHER, "if": {"properties": {"k": {"minimum": 10}}}, **WAYS}, {"k": 1, "v": 5}),
        ({**EITHER, "if": {"not": {"required": ["k"]}}, **WAYS}, {"k": 1, "v": 5}),
        ({**EITHER, "if": {"anyOf": [{"required": ["z"]}]}, **WAYS}, {"k": 1, "v": 5}),
        ({**EITHER, "if": {"required": ["z"]}, **WAYS}, {"k": 1, "v": 5}),
        ({**EITHER, "if": {"required": ["k"]}, **WAYS}, {"k": 1, "v": "5"}),
        (
            {
                "properties": {"k": STRING},
                "dependentSchemas": {"k": {"properties": {"v": INTEGER}, "required": ["v"]}},
                "unevaluatedProperties": STRING,
            },
            {"k": "x", "v": 5},
        ),
        (
            {
                "$defs": {"A": {"const": "a"}},
                "anyOf": [
                    {"properties": {"k": {"$ref": "#/$defs/A"}, "v": STRING}},
                    {"properties": {"k": {"const": "b"}, "v": INTEGER}},
                ],
            },
            {"k": "a", "v": "5"},
        ),
        (
            {
                "x": {"const": {"$anchor": "v"}},
                "$defs": {"a": {"$anchor": "v", **INTEGER}},
                "properties": {"n": {"$ref": "#v"}},
            },
            {"n": 5},
        ),
        ({"allOf": [{"properties": {"n": INTEGER}}], "unevaluatedProperties": STRING}, {"n": 5}),
        (
            {
                "anyOf": [
                    {"type": "object", "properties": {"zip": STRING}, "required": ["zip"]},
                    {"type": "object", "properties": {"n": INTEGER}, "required": ["n"]},
                ]
            },
            {"zip": "12345"},
        ),
    ],
)
@pytest.mark.parametrize("template", ["qwen3_coder", "seed_oss", "glm4_5", "minimax_m2"])
def test_values_without_quotes_have_the_type_of_their_schema(
    template: str, parameters: Any, arguments: dict[str, Any]
) -> None:
    loaded, tools = mw.ToolTemplate.load(template), tools_with(parameters)
    style = loaded.arguments
    assert style is not None
    form = loaded.forms[0]
    text = form.begin.replace("{name}", "f")
    text += style.between.join(
        style.open.replace("{key}", key) + str(value) + style.close for key, value in arguments.items()
    )
    text = loaded.calls.begin[0] + text + form.end + loaded.calls.end
    jsonschema.Draft202012Validator(parameters).validate(arguments)
    (call,) = loaded.parse(text, tools, thinking="off").calls
    assert call.arguments == arguments, text


def test_names_that_python_normalises_are_refused() -> None:
    for name in ("\u00b5", "\ufb01", "class"):
        with pytest.raises(mw.UnsupportedSchemaError, match="cannot be written"):
            takes("gemma3", tools_with({"type": "object", "properties": {name: INTEGER}}), "")
        with pytest.raises(mw.GrammarError, match="no name in Python"):
            mw.StructuralTag.from_tools(
                [{"type": "function", "function": {"name": name}}], "required", template="gemma3"
            )
    assert takes("gemma3", tools_with({"type": "object", "properties": {"\u03bc": INTEGER}}), "[f(\u03bc=1)]")


def test_keys_in_python_may_be_escaped_as_in_json() -> None:
    face = "\U0001f600"
    inner = {"type": "object", "properties": {face: INTEGER}, "required": [face]}
    tools = tools_with({"type": "object", "properties": {"a": inner}, "required": ["a"]})
    text = r'[f(a={"\ud83d\ude00": 1})]'
    assert takes("gemma3", tools, text)
    (call,) = mw.ToolTemplate.load("gemma3").parse(text, tools).calls
    assert call.arguments == {"a": {face: 1}}


@pytest.mark.parametrize("tools", [[{}], [1], "x", [{"function": None}], [{"function": {"name": 5}}], 3])
def test_wrong_tools_are_refused_by_readers(tools: Any) -> None:
    with pytest.raises(mw.GrammarError, match="tool"):
        mw.ToolTemplate.load("hermes").parse("hi", tools)


def test_another_kind_of_thinking_is_refused_by_readers() -> None:
    with pytest.raises(mw.GrammarError, match="is not one of auto, required, prompt, off"):
        mw.ToolTemplate.load("qwen3").parse("<think>x</think>hi", thinking="nonsense")  # type: ignore[arg-type]


def test_schemas_that_refer_to_themselves_are_read_in_time() -> None:
    parameters = {"anyOf": [{"$ref": "#"}] * 6, "allOf": [{"$ref": "#"}] * 3, "properties": {"n": INTEGER}}
    text = "<tool_call>\n<function=f>\n<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>"
    (call,) = mw.ToolTemplate.load("qwen3_coder").parse(text, tools_with(parameters)).calls
    assert call.arguments == {"n": 5}


@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        # No alternative fits: what all of them say.
        ({"anyOf": [{"properties": {"k": STRING, "v": STRING}, "required": ["k", "v"]}]}, "5"),
        (
            {"properties": {"v": STRING}, "anyOf": [{"properties": {f"w{i}": STRING}} for i in range(4900)]},
            "5",
        ),
        # What is no schema says nothing, and raises nothing.
        ({"anyOf": [{"required": [["x"]], "properties": {"v": STRING}}]}, "5"),
        ({"properties": {"v": {"type": [["x"], "integer"]}}}, 5),
        ({"properties": {"v": {"$ref": "#/allOf/\u00b2"}}, "allOf": []}, 5),
    ],
)
def test_texts_and_schemas_without_masks(parameters: Any, value: Any) -> None:
    text = "<tool_call>\n<function=f>\n<parameter=v>\n5\n</parameter>\n</function>\n</tool_call>"
    (call,) = mw.ToolTemplate.load("qwen3_coder").parse(text, tools_with(parameters)).calls
    assert call.arguments == {"v": value}


def test_a_trigger_of_blanks_and_a_name_leaves_text() -> None:
    data = {
        "name": "x",
        "trigger": "\n{name}(",
        "calls": {"place": "start"},
        "call": {"begin": "\n{name}(", "end": ")"},
    }
    tag = mw.StructuralTag.from_tools(tools_with(TEXT), "none", template=data)
    matcher = mw.compile(tag, BYTES).matcher()
    assert matcher.accept_bytes(b"hello") and matcher.is_accepting
