"""Templates of tool calls: transcripts of each family, random walks, and templates that are wrong."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import toys
from byte_walks import BYTES, accepts, finished_walk
from places import ROOT
from tool_transcripts import CALLS, TOOLS, TRANSCRIPTS, Transcript, tool

import maskwright as mw
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError, UnsupportedSchemaError
from maskwright.frontends.tools.texts import ToolCall

FOLDER = ROOT / "grammars" / "tags"
SCHEMA = json.loads((FOLDER.parent / "tags.schema.json").read_text())
FAMILIES = sorted(TRANSCRIPTS)
NAMED = {"type": "function", "function": {"name": "get_weather"}}
EXPECTED = [ToolCall(name, arguments) for name, arguments in CALLS]


def compiled(template: Any, choice: Any = "auto", **options: Any) -> mw.CompiledGrammar:
    return mw.compile(mw.StructuralTag.from_tools(TOOLS, choice, template=template, **options), BYTES)


def check(grammar: mw.CompiledGrammar, yes: list[str], no: list[str]) -> None:
    for text in yes:
        assert accepts(grammar, text), text
    for text in no:
        assert not accepts(grammar, text), text


def test_each_template_has_a_transcript() -> None:
    assert mw.StructuralTag.templates() == mw.ToolTemplate.names() == FAMILIES


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_files_follow_their_schema(path: Path) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    assert data["name"] == path.stem and data["models"] and data["source"].startswith("https://")
    for alias in data.get("aliases", []):
        assert mw.ToolTemplate.load(alias) is mw.ToolTemplate.load(path.stem)
    assert mw.ToolTemplate.load(path) == mw.ToolTemplate.load(data) == mw.ToolTemplate.load(path.stem)


def wrong(transcript: Transcript) -> list[str]:
    """The call with another name, with an argument that its schema excludes, and without its end."""
    one = transcript.one
    renamed, spoiled = one.replace("get_weather", "get_whether"), re.sub(r"\b2\b", "99", one)
    assert renamed != one != spoiled
    return [renamed, spoiled, one[:-1]]


@pytest.mark.parametrize("family", FAMILIES)
def test_calls(family: str) -> None:
    transcript = TRANSCRIPTS[family]
    one, two, text = transcript.one, transcript.two, transcript.text
    several = [two] if two else []
    for choice, yes, no in (
        ("auto", [one, *several, text], wrong(transcript)),
        ("none", [text], [one, *several]),
        ("required", [one, *several], [text, "", *wrong(transcript)]),
        (NAMED, [one], [*several, text, "", *wrong(transcript)]),
        ({"type": "function", "function": {"name": "get_time"}}, [], [one, text]),
    ):
        check(compiled(family, choice, thinking="off"), yes, no)
    for choice in ("auto", "required"):
        single = compiled(family, choice, thinking="off", parallel_tool_calls=False)
        check(single, [one], [one + one, *several])


@pytest.mark.parametrize("family", [f for f in FAMILIES if TRANSCRIPTS[f].thinking])
def test_thinking(family: str) -> None:
    transcript = TRANSCRIPTS[family]
    thought, one, text = transcript.thinking, transcript.one, transcript.text
    begins = mw.ToolTemplate.load(family).thinking
    assert begins is not None
    opener = begins.begin[0]
    assert thought.startswith(opener)
    inside = thought.removeprefix(opener)
    for choice, answer, other in (("auto", text, None), ("required", one, text), (NAMED, one, text)):
        others = [] if other is None else [other]
        told = [thought + each for each in others]
        check(
            compiled(family, choice, thinking="auto"),
            [thought + answer, answer],
            [thought, *others, *told][1:],
        )
        check(
            compiled(family, choice, thinking="required"),
            [thought + answer],
            [answer, inside + answer, *told],
        )
        check(compiled(family, choice, thinking="prompt"), [inside + answer], [thought + answer, *told])
        check(compiled(family, choice, thinking="off"), [answer], [thought + answer, inside + answer])
    for each in wrong(transcript):
        check(compiled(family, thinking="auto"), [], [thought + each])


@pytest.mark.parametrize("family", [f for f in FAMILIES if mw.ToolTemplate.load(f).tokens])
def test_marks_that_are_special_tokens(family: str) -> None:
    transcript = TRANSCRIPTS[family]
    marks = list(mw.ToolTemplate.load(family).tokens)
    ends = [mark for mark in marks if mark in ("<|return|>", "<|call|>")]
    names = [*(bytes([i]) for i in range(256)), *(mark.encode() for mark in marks), b"<eos>"]
    special = range(256, 256 + len(marks))
    vocabulary = mw.Vocabulary.from_bytes(
        names, eos_ids=[len(names) - 1, *(names.index(mark.encode()) for mark in ends)], special_ids=special
    )

    def ids(text: str) -> list[int]:
        parts = re.split("(" + "|".join(map(re.escape, sorted(marks, key=len, reverse=True))) + ")", text)
        return [i for p in parts for i in ([256 + marks.index(p)] if p in marks else p.encode())]

    def whole(grammar: mw.CompiledGrammar, tokens: list[int]) -> bool:
        matcher = grammar.matcher()
        read = matcher.accept_tokens(tokens)
        return read == len(tokens) and (matcher.is_accepting or matcher.is_terminated)

    for choice, yes, no in (
        ("auto", [transcript.one, transcript.two, transcript.text], wrong(transcript)[:2]),
        ("required", [transcript.one, transcript.two], [transcript.text, *wrong(transcript)[:2]]),
        ("none", [transcript.text], [transcript.one]),
        (NAMED, [transcript.one], [transcript.text, transcript.two or "x"]),
    ):
        source = mw.StructuralTag.from_tools(
            TOOLS, choice, template=family, thinking="off", vocabulary=vocabulary
        )
        grammar = mw.compile(source, vocabulary)
        for text in filter(None, yes):
            assert whole(grammar, ids(text)), text
            if any(mark in text for mark in marks):
                # The same text in ordinary tokens is no call.
                assert not whole(grammar, list(text.encode())), text
        for text in no:
            assert not whole(grammar, ids(text)), text
    if transcript.thinking:
        source = mw.StructuralTag.from_tools(
            TOOLS, template=family, thinking="required", vocabulary=vocabulary
        )
        grammar = mw.compile(source, vocabulary)
        assert whole(grammar, ids(transcript.thinking + transcript.one))
        assert not whole(grammar, ids(transcript.one))


@pytest.mark.parametrize("family", FAMILIES)
def test_calls_are_read_back(family: str) -> None:
    transcript, template = TRANSCRIPTS[family], mw.ToolTemplate.load(family)
    for tools in (TOOLS, None):
        assert template.parse(transcript.one, tools, thinking="off").calls == EXPECTED[:1]
        if transcript.two:
            read = template.parse(transcript.two, tools, thinking="off")
            assert read.calls == EXPECTED and read.thinking is None
        plain = template.parse(transcript.text, tools, thinking="off")
        assert (not plain.calls and "in Rome" in plain.content) or "[in Rome]" in plain.content
        assert "<|" not in plain.content
    for broken in (transcript.one[:-1], transcript.one.replace("get_weather", "get_whether")):
        if not broken.endswith(tuple("}")):
            assert not template.parse(broken, TOOLS, thinking="off").calls
    if transcript.thinking:
        assert template.thinking is not None
        inside = transcript.thinking.removeprefix(template.thinking.begin[0])
        for kind, text in (
            ("auto", transcript.thinking),
            ("prompt", inside),
            ("prompt", transcript.thinking),
        ):
            read = template.parse(text + transcript.one, TOOLS, thinking=kind)  # type: ignore[arg-type]
            assert read.calls == EXPECTED[:1]
            assert read.thinking is not None and "eather" in read.thinking and not read.content
            read = template.parse(text + transcript.text, TOOLS, thinking=kind)  # type: ignore[arg-type]
            assert "Rome" in read.content and "eather" not in read.content
        unfinished = template.parse(template.thinking.begin[0] + "We", TOOLS, thinking="auto")
        assert unfinished.thinking == "We" and not unfinished.content


MIXED = [
    tool(
        "find",
        text={"type": "string", "maxLength": 4},
        kind={"type": "string", "enum": ["null", "2", "true"]},
        limit={"type": ["integer", "string"], "minimum": 10},
        tags={"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2},
        near={"anyOf": [{"type": "null"}, {"type": "string", "pattern": "^[a-z-]{1,3}$"}]},
    ),
    tool("stop"),
]


@pytest.mark.parametrize("family", FAMILIES)
def test_what_masks_allow_is_read_as_it_was_meant(family: str) -> None:
    template = mw.ToolTemplate.load(family)
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in MIXED}
    pieces = [*(mark.encode() for mark in template.tokens), b"find", b"stop", b'"', b"</", b"null", b"11"]
    vocabulary = toys.piece_vocabulary(5, pieces)
    source = mw.StructuralTag.from_tools(MIXED, "required", template=template, thinking="off")
    grammar = mw.compile(source, vocabulary)
    calls = 0
    for seed in range(25):
        text = finished_walk(grammar, seed, 80).decode()
        read = template.parse(text, MIXED, thinking="off")
        assert read.calls, text
        calls += sum(call.name == "find" for call in read.calls)
        for call in read.calls:
            jsonschema.Draft202012Validator(schemas[call.name]).validate(call.arguments)
    assert calls


def test_no_string_holds_a_mark() -> None:
    grammar = compiled("hermes", "required")
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "%s", "days": 2}}\n</tool_call>'
    check(grammar, [call % "R</tool", call % "tool_call>"], [call % "</tool_call>", call % "<tool_call>"])
    coder = TRANSCRIPTS["qwen3_coder"].one
    check(
        compiled("qwen3_coder"),
        [coder.replace("Rome", 'a "b"\n\n{c} <p>')],
        [coder.replace("Rome", f"a{mark}") for mark in ("</parameter>", "<parameter=days>", "</function>")],
    )


def test_strict_and_arguments_without_a_schema() -> None:
    loose = copy.deepcopy(TOOLS)
    loose[0]["function"]["strict"] = False
    loose[1]["function"]["strict"] = True
    source = mw.StructuralTag.from_tools([*loose, {"function": {"name": "any"}}], "required")
    call = '<tool_call>\n{"name": "%s", "arguments": %s}\n</tool_call>'
    check(
        mw.compile(source, BYTES),
        [
            call % ("get_weather", '{"days": "x"}'),
            call % ("any", "{}"),
            call % ("get_time", '{"zone": "UTC"}'),
        ],
        [call % ("get_weather", "[]"), call % ("get_time", "{}"), call % ("any", "1")],
    )


@pytest.mark.parametrize("template", ["hermes", "qwen3_coder", "gemma3"])
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"type": "object", "properties": {"a": {"pattern": "("}}}, GrammarError, "/properties/a/pattern"),
        ({"type": "object", "properties": {"a": {"$ref": "http://x/y"}}}, GrammarError, "/properties/a/.ref"),
        ({"type": "object", "properties": 3}, GrammarError, "/properties"),
        (
            {"$schema": "http://json-schema.org/draft-03/schema#", "type": "object", "divisibleBy": 2,
             "properties": {"a": {"disallow": 5}}},
            UnsupportedSchemaError, "disallow",
        ),
        (
            {"type": "object", "properties": {"a": {"type": "string", "minLength": 3, "maxLength": 2}},
             "required": ["a"]},
            UnsatisfiableError, "minLength 3 and maxLength 2",
        ),
        ({"type": "string"}, GrammarError, "an object"),
        ([], GrammarError, "JSON Schema"),
    ],
)  # fmt: skip
def test_a_bad_schema_names_its_tool(template: str, parameters: Any, error: Any, message: str) -> None:
    bad = {"type": "function", "function": {"name": "broken", "parameters": parameters}}
    with pytest.raises(error, match=message) as caught:
        mw.compile(mw.StructuralTag.from_tools([*TOOLS, bad], template=template), BYTES)
    assert "tool 'broken'" in str(caught.value)


def test_what_a_style_cannot_say_is_refused_by_name() -> None:
    for properties, keyword in (
        ({"patternProperties": {"^a": {}}}, "patternProperties"),
        ({"minProperties": 2}, "minProperties"),
        ({"dependentRequired": {"a": ["b"]}, "properties": {"a": {}, "b": {}}}, "dependentRequired"),
    ):
        bad = {"function": {"name": "broken", "parameters": {"type": "object", **properties}}}
        with pytest.raises(UnsupportedSchemaError, match=keyword) as caught:
            mw.compile(mw.StructuralTag.from_tools([bad], template="glm4_7"), BYTES)
        assert "tool 'broken'" in str(caught.value)
    for name, template in (("get-weather", "gemma3"), ("a>b", "qwen3_coder")):
        with pytest.raises(GrammarError, match=name):
            mw.StructuralTag.from_tools([tool(name)], template=template)
    unwritable = tool("f", **{"with blank": {"type": "string"}})
    with pytest.raises(UnsupportedSchemaError, match="with blank"):
        mw.compile(mw.StructuralTag.from_tools([unwritable], template="gemma3"), BYTES)
    items = tool("f", a={"type": "array", "uniqueItems": True})
    with pytest.raises(UnsupportedSchemaError, match="uniqueItems"):
        mw.compile(mw.StructuralTag.from_tools([items], template="gemma3"), BYTES)


MINE = {
    "name": "mine",
    "tokens": ["<t>"],
    "thinking": {"begin": ["(", "(("], "end": ")"},
    "trigger": "@",
    "call": [{"begin": "@{name} ", "end": "."}],
    "arguments": {"open": "{key}: ", "close": ";", "between": " ", "excludes": [";", "."]},
}


def test_a_template_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(MINE))
    for source in (MINE, path, str(path), mw.ToolTemplate.load(MINE)):
        text = "(hm)so @get_weather city: Rome; days: 2;."
        check(compiled(source, thinking="auto"), [text, "so"], ["@get_weather city: Rome;.", "so @x ."])
        read = mw.ToolTemplate.load(source).parse(text, TOOLS)
        assert (read.thinking, read.content, read.calls) == ("hm", "so", EXPECTED[:1])


@pytest.mark.parametrize(
    ("change", "place", "message"),
    [
        ({"name": ""}, "/name", "not empty"),
        ({"nom": 1}, "/nom", "no field"),
        ({"tokens": [1]}, "/tokens", "list of texts"),
        ({"tokens": ["\ud800"]}, "/tokens", "list of texts"),
        ({"thinking": []}, "/thinking", "object"),
        ({"thinking": {"begin": "("}}, "/thinking/end", "text"),
        ({"thinking": {"begin": [], "end": ")"}}, "/thinking/begin", "begin"),
        ({"thinking": {"begin": "(", "end": ")", "default": "never"}}, "/thinking/default", "one of"),
        ({"thinking": {"begin": "(", "end": ")", "repeat": 1}}, "/thinking/repeat", "true or false"),
        ({"content": {"begin": "("}}, "/content/end", "text"),
        ({"content": {"begin": "(", "end": ")", "preamble": {"begin": "("}}}, "/content/preamble/end", "text"),
        ({"calls": {"separator": ","}}, "/calls/begin", "without a begin"),
        ({"calls": {"begin": "[", "place": "end"}}, "/calls/place", "anywhere or start"),
        ({"call": None}, "/call", "begin and an end"),
        ({"call": []}, "/call", "no way"),
        ({"call": {"begin": "@"}}, "/call/begin", "once"),
        ({"call": [{"begin": "@{name}{json_name}"}]}, "/call/0/begin", "once"),
        ({"call": {"begin": "@{name}", "end": "{name}"}}, "/call/end", "no name"),
        ({"trigger": "#"}, "/trigger", "does not begin"),
        ({"call": [{"begin": "@{name}"}, {"begin": "#{name}"}], "trigger": ""}, "/trigger", "different"),
        ({"arguments": "yaml"}, "/arguments", "unknown style"),
        ({"arguments": {"open": "{key}"}}, "/arguments/close", "not empty"),
        ({"arguments": {"open": "key", "close": ";"}}, "/arguments/open", "key"),
        ({"arguments": {"open": "{key}", "close": ";", "open_text": "x"}}, "/arguments/open_text", "key"),
        ({"arguments": {"open": "{key}", "close": ";", "excludes": [""]}}, "/arguments/excludes", "list"),
        ({"arguments": {"open": "{key}", "close": ";", "python": True}}, "/arguments", "object with"),
    ],
)  # fmt: skip
def test_wrong_templates(change: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        mw.ToolTemplate.load({**MINE, **change})
    assert caught.value.place == place
    if "arguments" not in change and "\ud800" not in change.get("tokens", ()):
        valid = jsonschema.Draft202012Validator(SCHEMA).is_valid({**MINE, **change})
        assert not valid or place in ("/trigger", "/calls/begin", "/call/begin", "/call/0/begin", "/call/end")


def test_wrong_files_names_and_options(tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text("{")
    (tmp_path / "binary.json").write_bytes(b"\xff")
    (tmp_path / "large.json").write_text(" " * 100_001)
    for source, message in (
        ("qwen99", "no template 'qwen99'"),
        (tmp_path / "none.json", "cannot be read"),
        (tmp_path / "bad.json", "bad.json"),
        (tmp_path / "binary.json", "UTF-8"),
        (3, "not int"),
    ):
        with pytest.raises(GrammarError, match=message):
            mw.ToolTemplate.load(source)  # type: ignore[arg-type]
    with pytest.raises(LimitError, match="100001 bytes"):
        mw.ToolTemplate.load(tmp_path / "large.json")
    with pytest.raises(GrammarError, match="thinking='maybe'"):
        compiled("qwen3", thinking="maybe")
    with pytest.raises(GrammarError, match="no thinking"):
        compiled("hermes", thinking="prompt")
    with pytest.raises(GrammarError, match="strict"):
        mw.StructuralTag.from_tools([{"function": {"name": "f", "strict": "yes"}}])


def test_reading_never_fails() -> None:
    """Calls that are no calls are text; deep values and broken marks too."""
    for family in FAMILIES:
        template, one = mw.ToolTemplate.load(family), TRANSCRIPTS[family].one
        for end in range(len(one)):
            template.parse(one[:end], TOOLS)
            template.parse(one[end:], None)
        template.parse(one.replace("Rome", "[" * 100_000), TOOLS)
        template.parse(one.replace("2", "[" * 100_000), None)


def test_parts_of_tools_do_not_depend_on_what_came_before() -> None:
    # Each in a vocabulary of its own: what readable values are is remembered for all of them.
    from maskwright.frontends.tools.arguments import _readable

    for first in ({}, {"type": ["string", "number"]}, {"type": ["string", "null"]}, {"type": "object"}):
        _readable.cache_clear()  # type: ignore[attr-defined]
        for schema in (first, {}, {"type": ["string", "null"]}):
            parameters = {"type": "object", "properties": {"a": schema}}
            function = {"type": "function", "function": {"name": "x", "parameters": parameters}}
            tag = mw.StructuralTag.from_tools([function], template="qwen3_coder")
            mw.compile(tag, toys.byte_vocabulary())
