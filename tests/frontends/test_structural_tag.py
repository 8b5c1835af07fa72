"""Structural tags: against the definition on all short texts, against the oracle, and with real schemas."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import jsonschema
import pytest
import toys
from byte_walks import BYTES, PIECES, accepts, check_equal, finished_walk
from hypothesis import example, given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.base.deadline import deadline
from maskwright.errors import GrammarError, UnsatisfiableError, UnsupportedSchemaError
from maskwright.frontends.structural_tag import to_grammar

TEXTS = ["".join(letters) for length in range(7) for letters in itertools.product("ab<", repeat=length)]
MARKS = ("<", "<a", "a<", "b<", "ab", "bb", "<<")
CONTENT = ("", "a", "b", "[ab]?", "a*")


# --- the definition, by trial


def first_found(text: str, patterns: list[str]) -> tuple[int, list[str]]:
    for end in range(1, len(text) + 1):
        found = [p for p in patterns if text[:end].endswith(p)]
        if found:
            return end, found
    return -1, []


def tails(text: str, begin: str, content: str, end: str) -> list[str]:
    """What may be left of a text behind a tag."""
    if not text.startswith(begin):
        return []
    rest = text[len(begin) :]
    return [
        rest[i + len(end) :]
        for i in range(len(rest) + 1)
        if re.fullmatch(content, rest[:i]) and rest.startswith(end, i)
    ]


def holds(spec: dict[str, Any], text: str, closing: str | None = None) -> bool:
    """Whether ``triggered_tags`` has a text; with ``closing``, the text up to the end of the enclosing tag."""
    once = spec["stop_after_first"]

    def final(text: str) -> bool:
        return text == "" if closing is None else text == closing

    def behind(tail: str) -> bool:
        return final(tail) if once else free(tail)

    def free(text: str) -> bool:
        marks = [*spec["triggers"], *([closing] if closing else [])]
        at, found = first_found(text, marks)
        if closing in found and at == len(text):
            # What is excluded is excluded from the text before the end, and may be in it.
            if first_found(text[: at - len(closing)], spec["excludes"])[0] < 0:
                return True
        at, found = first_found(text, [*marks, *spec["excludes"]])
        if at < 0:
            return closing is None
        if any(p in spec["excludes"] for p in found):
            return False
        if closing in found and at == len(text):
            return True
        return any(
            behind(tail)
            for tag in spec["tags"]
            for trigger in found
            if trigger != closing and tag["begin"].startswith(trigger)
            for tail in tails(text[at - len(trigger) :], tag["begin"], tag["content"]["pattern"], tag["end"])
        )

    if not spec["at_least_one"]:
        return free(text)
    return any(
        behind(tail)
        for tag in spec["tags"]
        for tail in tails(text, tag["begin"], tag["content"]["pattern"], tag["end"])
    )


@pytest.mark.parametrize("excluded", ["</", "/t", "<", ">", "t>", "</t>", "i<", "hi</t"])
def test_what_is_excluded_may_be_in_the_end(excluded: str) -> None:
    tag = {"type": "tag", "begin": "<u>", "content": {"type": "const_string", "value": "x"}, "end": "</u>"}
    content = {"type": "triggered_tags", "triggers": ["<u"], "tags": [tag], "excludes": [excluded]}
    compiled = mw.compile_structural_tag(
        {"type": "tag", "begin": "<t>", "content": content, "end": "</t>"}, BYTES
    )
    assert accepts(compiled, "<t>hi</t>") and accepts(compiled, "<t></t>")
    assert not accepts(compiled, f"<t>q{excluded} </t>") and not accepts(compiled, f"<t>{excluded}q</t>")
    assert compiled.matcher().shortest_completion_bytes() == b"<t></t>"


@st.composite
def triggered(draw: Any) -> dict[str, Any]:
    triggers = draw(st.lists(st.sampled_from(MARKS), min_size=1, max_size=2, unique=True))
    if len(triggers) == 2 and (triggers[0].startswith(triggers[1]) or triggers[1].startswith(triggers[0])):
        triggers = triggers[:1]
    tags = [
        {
            "type": "tag",
            "begin": draw(st.sampled_from(triggers)) + draw(st.sampled_from(("", "a", "b", "ba"))),
            "content": {"type": "regex", "pattern": draw(st.sampled_from(CONTENT))},
            "end": draw(st.sampled_from(("<", "b", "a<", ""))),
        }
        for _ in range(draw(st.integers(1, 3)))
    ]
    excludes = draw(st.lists(st.sampled_from(("aa", "bb", "ba<", "b<", "<")), max_size=1))
    flags = {name: draw(st.booleans()) for name in ("at_least_one", "stop_after_first")}
    excludes = [text for text in excludes if text not in triggers]
    return {"type": "triggered_tags", "triggers": triggers, "tags": tags, "excludes": excludes, **flags}


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=120, deadline=None)
@example(
    {
        "type": "triggered_tags",
        "triggers": ["<"],
        "tags": [{"type": "tag", "begin": "<", "content": {"type": "regex", "pattern": ""}, "end": "<"}],
        "excludes": ["b<"],
        "at_least_one": False,
        "stop_after_first": False,
    },
    "b<",
)
@given(triggered(), st.sampled_from((None, None, "b<", "<<b")))
def test_triggered_tags_are_what_they_are_defined_to_be(spec: dict[str, Any], closing: str | None) -> None:
    if closing in spec["triggers"] or any(closing and t.startswith(closing) for t in spec["triggers"]):
        closing = None
    tag = spec if closing is None else {"type": "tag", "begin": "", "content": spec, "end": closing}
    try:
        compiled = mw.compile_structural_tag(tag, BYTES)
    except UnsatisfiableError:
        compiled = None
    for text in TEXTS:
        expected = holds(spec, text, closing)
        assert (compiled is not None and accepts(compiled, text)) == expected, (tag, text)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(triggered(), st.sampled_from((None, "b<")), st.integers(0, 99))
def test_masks_agree_with_the_oracle(spec: dict[str, Any], closing: str | None, seed: int) -> None:
    tag = spec if closing is None else {"type": "tag", "begin": "(", "content": spec, "end": closing}
    grammar = to_grammar(tag)
    check_equal(grammar, toys.flatten(grammar), seed)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(MARKS), max_size=3), st.lists(st.sampled_from(MARKS), min_size=1, max_size=2))
def test_free_text_up_to_an_end(excludes: list[str], ends: list[str]) -> None:
    tag = {"type": "tag", "begin": "(", "content": {"type": "any_text", "excludes": excludes}, "end": ends}
    compiled = mw.compile_structural_tag(tag, BYTES)
    free = mw.compile_structural_tag(tag["content"], BYTES)
    for text in TEXTS:
        assert accepts(free, text) == (first_found(text, excludes)[0] < 0)
        before = [text.removesuffix(end) for end in ends if text.endswith(end)]
        if excludes:
            expected = any(first_found(part, [*excludes, *ends])[0] < 0 for part in before)
        else:
            expected = bool(before) and first_found(text, ends)[0] == len(text)
        assert accepts(compiled, "(" + text) == expected, (tag, text)


def word(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


def simple(begin: str, content: dict[str, Any], end: str | list[str]) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


ONE, TWO = (
    simple("<1>", word("x"), "</1>"),
    simple("<2>", {"type": "regex", "pattern": "[0-9]+"}, ["</2>", ";"]),
)


@pytest.mark.parametrize(
    ("tag", "yes", "no"),
    [
        (word("abc"), ["abc"], ["ab", "abcd", ""]),
        ({"type": "sequence", "elements": [word("a"), word(""), word("b")]}, ["ab"], ["a", "ba"]),
        ({"type": "or", "elements": [word("a"), ONE]}, ["a", "<1>x</1>"], ["", "<1>x"]),
        ({"type": "optional", "content": word("a")}, ["", "a"], ["aa"]),
        ({"type": "star", "content": ONE}, ["", "<1>x</1>" * 3], ["<1>"]),
        ({"type": "plus", "content": word("a")}, ["a", "aaa"], ["", "b"]),
        ({"type": "repeat", "min": 2, "max": 3, "content": word("a")}, ["aa", "aaa"], ["a", "aaaa"]),
        ({"type": "repeat", "min": 2, "content": word("a")}, ["aa", "a" * 9], ["a"]),
        ({"type": "any_text", "max_chars": 2}, ["", "\u00e9\n"], ["abc"]),
        ({"type": "any_text", "excludes": ["ab"], "max_chars": 3}, ["ba", "aab"[:2]], ["ab", "xab"]),
        (simple("<t>", {"type": "any_text", "max_chars": 3}, "</t>"), ["<t>abc</t>", "<t></t>"], ["<t>abcd</t>"]),
        (simple("<t>", {"type": "any_text", "max_chars": 0}, "</t>"), ["<t></t>"], ["<t>a</t>"]),
        ({"type": "grammar", "grammar": 'root ::= "(" root? ")"'}, ["(())"], ["(()"]),
        ({"type": "json_schema", "json_schema": {"type": "integer"}}, ["12"], ["1.5", "a"]),
        (
            {"type": "json_schema", "any_order": True, "json_schema": {
                "properties": {"a": {"const": 1}, "b": {"const": 2}}, "required": ["a", "b"], "type": "object"}},
            ['{"b": 2, "a": 1}'], ['{"a": 1}'],
        ),
        (
            {"type": "tags_with_separator", "tags": [ONE, TWO], "separator": ","},
            ["", "<1>x</1>", "<1>x</1>,<2>12;,<1>x</1>"], ["<1>x</1>,", "<1>x</1><1>x</1>", "text"],
        ),
        (
            {"type": "tags_with_separator", "tags": [ONE], "separator": "", "at_least_one": True},
            ["<1>x</1>", "<1>x</1>" * 2], [""],
        ),
        (
            {"type": "tags_with_separator", "tags": [ONE], "separator": ",", "stop_after_first": True},
            ["", "<1>x</1>"], ["<1>x</1>,<1>x</1>"],
        ),
        (
            {"type": "dispatch", "rules": [["<a>", word("x")], ["<b>", word("y")]], "excludes": ["no"]},
            ["", "t <a>x t <b>y", "<a"], ["<a>y", "no", "<a>xno"],
        ),
        (
            {"type": "dispatch", "rules": [["<a>", word("x")]], "loop": False},
            ["t", "t<a>x"], ["t<a>xt", "<a>x<a>x"],
        ),
        (
            {"triggers": ["<1"], "structures": [{"begin": "<1>", "schema": {"const": 1}, "end": "</1>"}]},
            ["a<1>1</1>b", ""], ["<1>2</1>", "<1"],
        ),
        (
            simple("<think>", {"type": "any_text"}, "</think>"), ["<think>a</thin b</think>"],
            ["<think></think></think>", "<think>a"],
        ),
        (
            {"type": "sequence", "elements": [simple("<think>", {"type": "any_text"}, "</think>"), {
                "type": "triggered_tags", "triggers": ["<1"], "tags": [ONE], "excludes": ["<think>"]}]},
            ["<think>hm <1></think>so <1>x</1>.", "<think></think>"], ["<think></think><think>", "<1>x</1>"],
        ),
        # The end of the enclosing tag ends free text in the middle as well.
        (
            simple("(", {"type": "sequence", "elements": [{"type": "any_text"}, word("!")]}, ")"),
            ["(a!!)", "(!)"], ["(a)!)", "(a)"],
        ),
        (
            simple("(", {"type": "dispatch", "rules": [["<a>", {"type": "any_text", "max_chars": 9}]]}, ")"),
            ["(a)", "(b<a>c)"], ["(a)b)", "(<a>b)c)"],
        ),
        (
            simple("(", {"type": "tags_with_separator", "tags": [simple("<", {"type": "any_text"}, "")], "separator": ","}, ")"),
            ["(<a)", "(<a,<b)"], ["(<a)b)"],
        ),
        (
            simple("(", {"type": "triggered_tags", "triggers": ["<"], "tags": [simple("<", {"type": "any_text"}, [])]}, ")"),
            ["(a)", "(a<b<c)"], ["(<a)b)", "(a<b)c)"],
        ),
    ],
)  # fmt: skip
def test_formats(tag: dict[str, Any], yes: list[str], no: list[str]) -> None:
    for source in (tag, {"type": "structural_tag", "format": tag}, json.dumps(tag)):
        if source is not tag and "structures" in tag and isinstance(source, dict):
            continue
        compiled = mw.compile(mw.StructuralTag(source), BYTES)
        for text in (*yes, *no):
            assert accepts(compiled, text) == (text in yes), text


@pytest.mark.parametrize(
    ("tag", "place", "message"),
    [
        (5, "#", "object"),
        ("{", "1:2", "JSON"),
        ({"type": "nonsense"}, "#", "unknown type"),
        ({}, "#", "type"),
        ({"type": "const_string"}, "/value", "text"),
        ({"type": "const_string", "value": "a", "x": 1}, "/x", "no field"),
        ({"type": "const_string", "value": "\ud800"}, "/value", "surrogate"),
        ({"type": "sequence"}, "/elements", "list"),
        ({"type": "or", "elements": []}, "/elements", "no elements"),
        ({"type": "sequence", "elements": [{"type": "regex", "pattern": "("}]}, "/elements/0: 1:1", "not closed"),
        ({"type": "grammar", "grammar": "root ::= x"}, ": 1:10", "no rule"),
        ({"type": "repeat", "min": 2, "max": 1, "content": word("a")}, "#", "counts"),
        ({"type": "any_text", "max_chars": -1}, "/max_chars", "number"),
        ({"type": "any_text", "excludes": [""]}, "/excludes", "not empty"),
        (simple("a", word("b"), ["", "x"]), "/end", "empty"),
        ({"type": "tag", "begin": "a", "end": ""}, "#", "content"),
        ({"type": "triggered_tags", "triggers": [], "tags": [ONE]}, "/triggers", "no triggers"),
        ({"type": "triggered_tags", "triggers": ["<"], "tags": []}, "/tags", "no tags"),
        ({"type": "triggered_tags", "triggers": ["<x"], "tags": [ONE]}, "/tags/0/begin", "no trigger"),
        ({"type": "triggered_tags", "triggers": ["<", "<1"], "tags": [ONE]}, "/tags/0/begin", "several"),
        ({"type": "triggered_tags", "triggers": ["<"], "tags": [word("a")]}, "/tags/0", "tag is expected"),
        ({"type": "triggered_tags", "triggers": ["<"], "tags": [ONE], "at_least_one": 1}, "/at_least_one", "true"),
        ({"type": "dispatch", "rules": [["", word("a")]]}, "/rules/0", "pair"),
        ({"type": "dispatch", "rules": [["<f", word("a")], ["a", ONE], ["<", word("b")]]}, "/rules", "'<f' is never"),
        ({"type": "structural_tag", "format": {"type": "json_schema"}}, "/format", "missing"),
        ({"triggers": ["<"], "structures": [{}]}, "/structures/0", "begin"),
    ],
)  # fmt: skip
def test_malformed_tags(tag: Any, place: str | None, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        mw.compile_structural_tag(tag, BYTES)
    assert caught.value.place == place


def test_what_is_refused_is_named_all_at_once() -> None:
    tag = {
        "type": "sequence",
        "elements": [
            {"type": "any_text", "max_tokens": 5},
            {"type": "json_schema", "json_schema": {}, "style": "cohere_xml"},
            {"type": "json_schema", "json_schema": {}, "style": "glm_xml", "any_order": True},
            {
                "type": "json_schema",
                "json_schema": {},
                "excludes": [],
                "style": "json",
                "max_whitespace_cnt": None,
            },
            simple("<", {"type": "json_schema", "json_schema": {}, "style": "minimax_m3_xml"}, ">"),
        ],
    }
    with pytest.raises(UnsupportedSchemaError) as caught:
        mw.compile_structural_tag(tag, BYTES)
    assert [(r.pointer, r.keyword) for r in caught.value.refusals] == [
        ("/elements/0", "max_tokens"),
        ("/elements/1", "style"),
        ("/elements/2", "any_order"),
        ("/elements/4/content", "style"),
    ]
    refused = {"$schema": "http://json-schema.org/draft-03/schema#", "divisibleBy": 2}
    with pytest.raises(UnsupportedSchemaError) as caught:
        mw.compile_structural_tag(
            {"type": "star", "content": {"type": "json_schema", "json_schema": refused}}, BYTES
        )
    assert caught.value.refusals[0].pointer.startswith("/content: ")


def test_deep_tags_reach_a_limit() -> None:
    tag: dict[str, Any] = word("a")
    for _ in range(3000):
        tag = {"type": "optional", "content": tag}
    with pytest.raises(mw.LimitError):
        mw.compile_structural_tag(tag, BYTES)


# --- tools


def tool(name: str, **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {**parameters, "additionalProperties": False}},
    }


TOOLS = [
    tool(
        "get_weather",
        city={"type": "string", "maxLength": 5},
        days={"type": "integer", "minimum": 1, "maximum": 14},
    ),
    tool("get_weather_map", zoom={"enum": [1, 2]}),
    tool("stop"),
]
CALLS = {
    "hermes": r'<tool_call>\n?\{"name": "(.*?)", "arguments": (.*?)\}\n?</tool_call>',
    "llama": r'\{"name": "(.*?)", "parameters": (.*?)\}(?=[^}]|$)',
    "function": r"<function=(.*?)>(.*?)</function>",
}


@pytest.mark.parametrize("style", ["hermes", "function"])
@pytest.mark.parametrize(
    "choice", ["auto", "required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_calls_are_always_legal(style: str, choice: Any) -> None:
    schemas = {t["function"]["name"]: t["function"]["parameters"] for t in TOOLS}
    source = mw.StructuralTag.from_tools(TOOLS, choice, template=style)
    begin = {"hermes": '<tool_call>\n{"name": "get_weather', "function": "<function=get_weather"}[
        style
    ].encode()
    vocabulary = toys.piece_vocabulary(
        9, [begin, b'", "arguments": {"city": "', b'">{"zoom":1}', b"</function>"]
    )
    compiled = mw.compile(source, vocabulary)
    calls = 0
    for seed in range(40):
        text = finished_walk(compiled, seed).decode()
        found = re.findall(CALLS[style], text, re.DOTALL)
        calls += len(found)
        for name, arguments in found:
            jsonschema.validate(json.loads(arguments), schemas[name])
        if choice == "required":
            assert found
        elif choice != "auto":
            assert [name for name, _ in found] == ["get_weather"]
            assert re.fullmatch(CALLS[style], text, re.DOTALL)
    assert calls or choice == "auto"
    opened = compiled.matcher()
    assert opened.accept_bytes(begin)
    following = toys.allowed(opened)
    continuing = {vocabulary.tokens[i][:1] for i in following if vocabulary.tokens[i]}
    assert continuing <= {b"_", b'"', b">"}


def test_tool_choices() -> None:
    call = '<tool_call>\n{"name": "stop", "arguments": {}}\n</tool_call>'
    cases = [
        ("auto", True, ["", "hi", call, f"a{call}b{call}", "<tool_cal"], ["<tool_call>"]),
        ("none", True, ["", "hi"], [call, "<tool_call>"]),
        ("required", True, [call, call + "hi"], ["", "hi", "hi" + call]),
        ("required", False, [call], [call + call, ""]),
        ({"type": "function", "function": {"name": "stop"}}, True, [call], [call + call, ""]),
        ({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOLS[2]]}}, True, ["", call], []),
        (
            {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "get_weather_map"}]},
            True, [], [call, ""],
        ),
    ]  # fmt: skip
    for choice, parallel, yes, no in cases:
        compiled = mw.compile(mw.StructuralTag.from_tools(TOOLS, choice, parallel_tool_calls=parallel), BYTES)
        for text in (*yes, *no):
            assert accepts(compiled, text) == (text in yes), (choice, text)
    assert accepts(mw.compile(mw.StructuralTag.from_tools([]), BYTES), "hi")
    llama = mw.compile(mw.StructuralTag.from_tools(TOOLS, template="llama3_json"), BYTES)
    assert accepts(llama, '{"name": "stop", "parameters": {}}') and accepts(llama, "Yes: {}")
    assert not accepts(llama, '{"name": "no", "parameters": {}}')


@pytest.mark.parametrize(
    ("tools", "choice", "message"),
    [
        ("x", "auto", "list"),
        ([{}], "auto", "function"),
        ([{"function": {"name": ""}}], "auto", "name"),
        ([TOOLS[0], TOOLS[0]], "auto", "two tools"),
        (TOOLS, "sometimes", "tool_choice"),
        (TOOLS, {"type": "function", "function": {"name": "nope"}}, "no tool 'nope'"),
        (TOOLS, {"type": "function"}, "name"),
        (TOOLS, {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}}, "list of tools"),
        ([], "required", "no tools"),
    ],
)
def test_wrong_tools(tools: Any, choice: Any, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        mw.StructuralTag.from_tools(tools, choice)
    with pytest.raises(GrammarError, match="no template"):
        mw.StructuralTag.from_tools(TOOLS, template="martian")


def test_response_formats() -> None:
    schema = {"type": "integer"}
    named = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}
    for value, yes, no in (
        ({"type": "text"}, "any <text>", None),
        ({"type": "json_object"}, '{"a": 1}', "[]"),
        (named, "3", "x"),
        ({"type": "structural_tag", "format": word("a")}, "a", "b"),
    ):
        compiled = mw.compile(mw.response_format(value), BYTES)
        assert accepts(compiled, yes)
        assert no is None or not accepts(compiled, no)
    for wrong in ({"type": "json_schema"}, {"type": "xml"}, {}, 3):
        with pytest.raises(GrammarError):
            mw.response_format(wrong)  # type: ignore[arg-type]


def test_schemas_of_tools_are_lowered_once() -> None:
    vocabulary = toys.byte_vocabulary()
    first = mw.compile(mw.StructuralTag.from_tools(TOOLS[:2]), vocabulary)
    parts = {key: tables for key, (tables, _) in vocabulary._tables._kept.items()}
    second = mw.compile(mw.StructuralTag.from_tools(TOOLS), vocabulary)
    assert second is not first
    assert parts and all(vocabulary._tables.get(key) is tables for key, tables in parts.items())
    assert mw.compile(mw.StructuralTag.from_tools(TOOLS), vocabulary) is second
    assert PIECES.vocab_size  # the walk's vocabulary is another one


def test_formats_that_python_shares_are_counted_at_each_place() -> None:
    shared: dict[str, Any] = {"type": "const_string", "value": "a"}
    for _ in range(25):
        shared = {"type": "sequence", "elements": [shared, shared]}
    endless: dict[str, Any] = {"type": "sequence", "elements": []}
    endless["elements"].append(endless)
    for tag in (shared, endless):
        with pytest.raises(mw.LimitError) as raised:
            mw.compile_structural_tag({"type": "structural_tag", "format": tag}, BYTES)
        assert raised.value.limit == "max_schema_values"


def test_building_a_tag_looks_at_the_deadline() -> None:
    shared: dict[str, Any] = {"type": "const_string", "value": "a"}
    for _ in range(14):
        shared = {"type": "sequence", "elements": [shared, shared]}
    with pytest.raises(mw.LimitError) as raised, deadline(1e-9):
        to_grammar({"type": "structural_tag", "format": shared})
    assert raised.value.limit == "max_seconds"


def test_types_that_the_place_tells() -> None:
    # As SGLang and others write them: a tag in a list of tags, and what is around all.
    schema = {"type": "json_schema", "json_schema": {"type": "object"}}
    tag = {"begin": "<f=x>", "content": schema, "end": "</f>"}
    for outer in ({}, {"type": "structural_tag"}):
        for inner in ({}, {"type": "tag"}):
            several = {"type": "triggered_tags", "triggers": ["<f="], "tags": [{**inner, **tag}]}
            assert accepts(mw.compile_structural_tag({**outer, "format": several}, BYTES), "a <f=x>{}</f> b")
            listed = {"type": "tags_with_separator", "tags": [{**inner, **tag}], "separator": ","}
            found = mw.compile_structural_tag({**outer, "format": listed}, BYTES)
            assert accepts(found, "<f=x>{}</f>,<f=x>{}</f>")
    for wrong in ({**tag}, {"type": "sequence", "elements": [tag]}, {"type": "other", "format": several}):
        with pytest.raises(GrammarError, match="type"):
            mw.compile_structural_tag({"format": wrong} if "format" not in wrong else wrong, BYTES)


@pytest.mark.parametrize("style", ["json", "qwen_xml", "python"])
def test_options_of_schemas(style: str) -> None:
    """They hold for all JSON in a tag: in styles of arguments, that is what is nested."""
    inner = {"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}
    schema = {"type": "object", "properties": {"a": inner}, "required": ["a"]}
    tag = {"format": {"type": "json_schema", "json_schema": schema, "style": style}}
    around = {"json": ('{"a":', "}"), "qwen_xml": ("<parameter=a>\n", "\n</parameter>"), "python": ("a=", "")}
    begin, end = around[style]
    texts = {"plain": '{"b":1}', "blank": '{"b": 1}', "other": '{"b":1,"zzz":2}'}
    for options, refused in (
        (mw.SchemaOptions(), set()),
        (mw.SchemaOptions(whitespace="compact"), {"blank"}),
        (mw.SchemaOptions(additional_properties=False), {"other"}),
    ):
        for compiled in (
            mw.compile(mw.StructuralTag(tag, options), BYTES),
            mw.compile_structural_tag(json.dumps(tag), BYTES, options=options),
        ):
            taken = {name for name, text in texts.items() if accepts(compiled, begin + text + end)}
            assert taken == texts.keys() - refused


def test_options_are_options() -> None:
    with pytest.raises(GrammarError, match="options"):
        mw.compile(mw.StructuralTag({"type": "any_text"}, {"whitespace": "compact"}), BYTES)  # type: ignore[arg-type]


def test_registries_of_tags_are_looked_up_each_time() -> None:
    documents: dict[str, Any] = {}
    for excludes in ([], ["zz"]):
        form = {"type": "json_schema", "json_schema": {"$ref": "urn:x"}, "excludes": excludes}
        for registry in (documents, documents.get):
            tag = mw.StructuralTag({"format": form}, mw.SchemaOptions(registry=registry))
            for kind, text in (("integer", "5"), ("string", '"a"')):
                documents["urn:x"] = {"type": kind}
                assert accepts(mw.compile(tag, BYTES), text)


def test_what_holds_for_all_schemas_is_not_chosen_for_each() -> None:
    tag = {"format": {"type": "json_schema", "json_schema": {"minProperties": 2}}}
    with pytest.raises(GrammarError, match="additional_properties is True or False"):
        mw.compile_structural_tag(tag, BYTES, options=mw.SchemaOptions(additional_properties="needed"))
