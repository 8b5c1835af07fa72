"""The back-end of vLLM against vLLM's own classes, without a model; ``vllm_engine.py`` has one (``make test-vllm``)."""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from places import ROOT

pytest.importorskip(
    "vllm", reason="vLLM is not installed: make test-vllm has it in an environment of its own"
)

import torch
import vllm
from vllm.config import StructuredOutputsConfig
from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionToolsParam
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import SamplingParams, StructuredOutputsParams
from vllm.utils.argparse_utils import FlexibleArgumentParser
from vllm_requests import END_THINK, EOS, THINK, TOKENIZER, WIDTH, Engine, allowed, grammar_of, vocabulary

import maskwright as mw
from maskwright.integrations import vllm as plugin
from maskwright.integrations import vllm_backend

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
TAG = {
    "structures": [{"begin": "<f>", "schema": {"type": "integer", "maximum": 99}, "end": "</f>"}],
    "triggers": ["<f"],
}
FORMAT = {
    "type": "structural_tag",
    "format": {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": {"type": "boolean"}}, "end": "</f>"},
}  # fmt: skip
GBNF = 'root ::= "a" ("b" | "cd")* "!"'
LARK = 'start: "a" ("b" | "cd")* "!"'
CASES: dict[str, tuple[dict[str, Any], Any]] = {
    "schema": ({"json": SCHEMA}, mw.JsonSchema(json.dumps(SCHEMA))),
    "schema as text": ({"json": json.dumps(SCHEMA)}, mw.JsonSchema(SCHEMA)),
    "object": ({"json_object": True}, mw.JsonSchema({"type": "object"})),
    "regex": ({"regex": r"[a-c]{2,5}\d+x"}, mw.Regex(r"[a-c]{2,5}\d+x")),
    "choice": ({"choice": ["Paris", 'Lon"don\n', "Parma"]}, mw.Choice(["Paris", 'Lon"don\n', "Parma"])),
    "gbnf": ({"grammar": GBNF}, mw.GBNF(GBNF)),
    "lark": ({"grammar": LARK}, mw.Lark(LARK)),
    "older tag": ({"structural_tag": json.dumps(TAG)}, mw.StructuralTag(TAG)),
    "tag": ({"structural_tag": json.dumps(FORMAT)}, mw.StructuralTag(FORMAT)),
}


def mask_of(matcher: Any) -> Any:
    return allowed(np.asarray(matcher.next_token_bitmask())[None])[0]


def pick(mask: Any, rng: random.Random, ending: bool) -> int:
    """One of the allowed tokens; EOS if one may and should."""
    return EOS if ending and mask[EOS] else rng.choice(np.flatnonzero(mask).tolist())


# --- as the engine uses it


@pytest.mark.parametrize("case", CASES)
def test_walks_are_those_of_a_matcher(case: str) -> None:
    given, source = CASES[case]
    engine, plain = Engine(), mw.compile(source, vocabulary()).matcher()
    rng = random.Random(case)
    for walk in range(5):
        request, matcher = engine.add(given), plain.fork()
        for step in range(200):
            (row,) = engine.masks(request)
            assert len(row) == WIDTH and (row == mask_of(matcher)).all()
            assert not row[len(TOKENIZER) :].any()
            token = pick(row, rng, ending=step > 10 * walk)
            assert engine.accept(request, [token]) and matcher.accept_token(token)
            assert grammar_of(request).is_terminated() == matcher.is_terminated
            if matcher.is_terminated:
                break


@pytest.mark.parametrize("case", CASES)
def test_drafts_are_checked_and_taken_back(case: str) -> None:
    given, source = CASES[case]
    engine, matcher = Engine(drafted=4), mw.compile(source, vocabulary()).matcher()
    request, rng = engine.add(given), random.Random(case)
    while not matcher.is_terminated:
        draft, ahead = [], matcher.fork()
        for _ in range(rng.randrange(5)):
            row = mask_of(ahead)
            token = pick(row, rng, rng.random() < 0.3) if rng.random() < 0.8 else rng.randrange(WIDTH)
            draft.append(token)
            if not ahead.accept_token(token):
                break
        legal = draft[: matcher.validate_tokens(draft)]
        assert engine.manager.validate_tokens(request, draft) == legal
        # What was rejected is filled up, as vLLM does with drafts of a fixed length.
        drafts = {request.request_id: legal + [-1] * (4 - len(legal))}
        rows = engine.masks(request, drafts=drafts)
        assert len(rows) == 5
        ahead = matcher.fork()
        for row, token in zip(rows, [*legal, None], strict=False):
            if not ahead.is_terminated:
                assert (row == mask_of(ahead)).all()
            if token is not None:
                assert ahead.accept_token(token)
        # The model takes some of it, and adds one token of its own.
        taken = legal[: rng.randrange(len(legal) + 1)]
        ahead = matcher.fork()
        ahead.accept_tokens(taken)
        tokens = list(taken)
        if not ahead.is_terminated:
            tokens.append(pick(rows[len(taken)], rng, len(request.output_token_ids) > 20))
        if tokens:
            assert engine.accept(request, tokens)
            assert matcher.accept_tokens(tokens) == len(tokens)
    assert grammar_of(request).is_terminated()


@pytest.mark.parametrize("at", range(4))
def test_a_constraint_begins_within_a_draft(at: int) -> None:
    engine = Engine(drafted=4, reasoning_parser="deepseek_r1")
    request = engine.add({"json": SCHEMA}, prompt=(1, THINK))
    (free,) = engine.masks(request)
    assert free.all()
    text = TOKENIZER.encode("so", add_special_tokens=False)[:1]
    (brace,) = TOKENIZER.encode("{", add_special_tokens=False)[:1]
    draft = [*text * at, END_THINK, brace, brace, brace][:4]
    legal = [*text * at, END_THINK, brace][:4]
    assert engine.manager.validate_tokens(request, list(draft)) == legal
    rows = engine.masks(request, drafts={request.request_id: legal + [-1] * (4 - len(legal))})
    matcher = mw.compile(mw.JsonSchema(SCHEMA), vocabulary()).matcher()
    assert rows[: at + 1].all()
    assert (rows[at + 1] == mask_of(matcher)).all()
    assert engine.accept(request, legal)
    assert request.structured_output_request.reasoning_ended
    matcher.accept_tokens(legal[at + 1 :])
    (row,) = engine.masks(request)
    assert (row == mask_of(matcher)).all()


def test_rows_without_a_grammar_and_many_rows_on_threads() -> None:
    engine = Engine(sequences=300)
    requests = [engine.add({"regex": f"{i}x+"}) for i in range(200)]
    engine.add(None)
    rows = engine.masks(*requests)
    for i, row in enumerate(rows):
        matcher = mw.compile(mw.Regex(f"{i}x+"), vocabulary()).matcher()
        assert (row == mask_of(matcher)).all()


def test_sequences_of_one_request_share_a_grammar_and_no_state() -> None:
    engine = Engine()
    params = engine.checked({"choice": ["yes", "no"]}, n=2, temperature=1.0)
    first, second = engine.add(params.clone()), engine.add(params.clone())
    token = TOKENIZER.encode("yes", add_special_tokens=False)[0]
    assert engine.accept(first, [token])
    rows = engine.masks(first, second)
    assert rows[1][token] and not (rows[0] == rows[1]).all()


def test_a_rejected_token_moves_nothing() -> None:
    engine = Engine(drafted=3)
    grammar = grammar_of(engine.add({"regex": "ab*"}))
    a, b, c = (TOKENIZER.encode(text, add_special_tokens=False)[0] for text in "abc")
    before = fill(grammar)
    for tokens in ([b], [a, c], [a, b, b, c], [a, -1], [WIDTH + 5], [a, EOS + 1]):
        assert not grammar.accept_tokens("r", tokens)
        assert (fill(grammar) == before).all()
    assert grammar.accept_tokens("r", [a, b, EOS])
    assert grammar.is_terminated() and grammar.validate_tokens([b]) == []
    assert grammar.accept_tokens("r", [c]), "what follows an end is free (ignore_eos)"
    grammar.rollback(1)
    assert not grammar.is_terminated() and grammar.validate_tokens([b, EOS, b, -1]) == [b, EOS]
    grammar.reset()
    assert (fill(grammar) == before).all()


def fill(grammar: Any, width: int = WIDTH) -> Any:
    bitmask = torch.full((3, (width + 31) // 32), -1, dtype=torch.int32)
    grammar.fill_bitmask(bitmask, 1)
    assert (bitmask[0] == -1).all() and (bitmask[2] == -1).all()
    return allowed(bitmask.numpy())[1]


def test_padding_is_never_allowed() -> None:
    grammar = grammar_of(Engine(width=1543).add({"regex": ".*"}))
    row = fill(grammar, 1543)
    assert len(row) == 1568 and row[EOS] and not row[len(TOKENIZER) :].any()
    wide = fill(grammar, 1700)
    assert (wide[:1568] == row).all() and not wide[1568:].any()


def test_each_request_has_its_own_ends() -> None:
    x, y = (TOKENIZER.encode(text, add_special_tokens=False)[0] for text in "xy")
    engine = Engine()
    usual = grammar_of(engine.add({"regex": "a+x?"}))
    own = grammar_of(engine.add({"regex": "a+x?"}, stop_token_ids=[x, y]))
    a = TOKENIZER.encode("a", add_special_tokens=False)[0]
    assert not fill(own)[[EOS, x, y]].any(), "nothing ends before the text is complete"
    for grammar in (usual, own):
        assert grammar.accept_tokens("r", [a])
    assert fill(usual)[[EOS, x]].all() and not fill(usual)[y]
    assert fill(own)[[EOS, x, y]].all()
    assert own.validate_tokens([y, y]) == [y]
    assert own.accept_tokens("r", [x]) and own.is_terminated()
    assert usual.accept_tokens("r", [x]) and not usual.is_terminated()


def test_ends_of_the_generation_config() -> None:
    engine = Engine(generation_config={"eos_token_id": [EOS, 3]})
    grammar = grammar_of(engine.add({"regex": "a?"}))
    assert fill(grammar)[[EOS, 3]].all()
    assert not grammar._exchanged
    other = vllm_backend.MaskwrightGrammar(grammar_compiled(engine, "a?"), {3}, 1)
    assert fill(other)[3] and not fill(other)[EOS] and not other.accept_tokens("r", [EOS])


def grammar_compiled(engine: Engine, pattern: str) -> Any:
    return engine.manager.backend._compiler.compile(vllm_backend.StructuredOutputOptions.REGEX, pattern)


def test_memory_of_a_long_text_is_bounded() -> None:
    grammar = grammar_of(Engine(drafted=3).add({"regex": "a*"}))
    a = TOKENIZER.encode("a", add_special_tokens=False)[0]
    for _ in range(300):
        assert grammar.accept_tokens("r", [a] * 4)
        grammar.rollback(3)
    assert len(grammar._matcher.accepted_tokens) <= 64


class Broken:
    """A matcher that reached a limit."""

    is_terminated = False
    is_accepting = False

    def __getattr__(self, name: str) -> Any:
        def fail(*arguments: Any) -> Any:
            raise mw.LimitError("max_search", 2, 1)

        return fail


def test_a_failure_ends_its_request_alone() -> None:
    engine = Engine(drafted=2)
    broken, healthy = engine.add({"regex": "a+"}), engine.add({"regex": "a+"})
    (before,) = engine.masks(healthy)
    grammar_of(broken)._matcher = Broken()
    rows = engine.masks(broken, healthy)
    assert np.flatnonzero(rows[0]).tolist() == [EOS], "only the end is left"
    assert (rows[1] == before).all()
    assert engine.manager.validate_tokens(broken, [5, 6]) == []
    grammar_of(broken).rollback(1)
    assert not engine.accept(broken, [EOS]), "vLLM finishes a request with an error when this is false"


def test_compile_errors_of_the_engine_stay_in_the_request(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    params = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a("), max_tokens=5)
    params.structured_outputs._backend = plugin.NAME  # as if the front-end had let it pass
    engine.checked({"regex": "a"})
    monkeypatch.setattr(engine, "checked", lambda given: given)
    bad = engine.add(params)
    assert isinstance(bad.structured_output_request.grammar, mw.GrammarError)
    monkeypatch.undo()
    assert fill(grammar_of(engine.add({"regex": "a"}))).any()


# --- what the front-end refuses


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"json": {"type": "object", "properties": {"a": {"type": "strin"}}}}, "/properties/a/type"),
        ({"json": {"properties": {"a": {"$ref": "http://x/y"}}}}, r"/properties/a/\$ref"),
        ({"json": {"type": "number", "minimum": 5, "maximum": 3}}, "minimum 5 and maximum 3"),
        ({"json": "{"}, "1:2"),
        ({"json": ""}, "JSON"),
        ({"json": "[" * 100_000}, "nest"),
        ({"json": {"const": float("nan")}}, "NaN"),
        ({"json_object": False}, "json_object"),
        ({"regex": "a("}, "1:2"),
        ({"regex": r"(a)\1"}, "back-reference"),
        ({"choice": []}, "choice"),
        ({"grammar": "start: nothing"}, "read as Lark"),
        ({"grammar": "root ::= nothing"}, "read as GBNF"),
        ({"grammar": " "}, "Lark"),
        ({"structural_tag": "{}"}, "type"),
        ({"structural_tag": ""}, "JSON"),
        (
            {"structural_tag": json.dumps({"type": "structural_tag", "format": {"type": "no_such"}})},
            "/format",
        ),
        ({"regex": "a", "whitespace_pattern": " ?"}, "cannot be set by a request"),
    ],
    ids=str,
)
def test_refusals_of_the_front_end(given: dict[str, Any], message: str) -> None:
    engine = Engine()
    with pytest.raises(VLLMValidationError, match=message) as caught:
        engine.checked(given)
    assert "structured_outputs." in str(caught.value)


def test_limits_are_refusals(monkeypatch: pytest.MonkeyPatch) -> None:
    deep: dict[str, Any] = {}
    for _ in range(300):
        deep = {"properties": {"a": deep}}
    with pytest.raises(VLLMValidationError, match="max_depth"):
        Engine().checked({"json": deep})
    monkeypatch.setenv("MASKWRIGHT_VLLM_LIMITS", '{"max_schema_values": 5}')
    with pytest.raises(VLLMValidationError, match="max_schema_values"):
        Engine(disable_any_whitespace=True).checked({"json": SCHEMA})
    for wrong in ("{", '{"max_dept": 1}', "[1]", '{"max_depth": 0}'):
        monkeypatch.setenv("MASKWRIGHT_VLLM_LIMITS", wrong)
        with pytest.raises(mw.MaskwrightError, match="MASKWRIGHT_VLLM_LIMITS"):
            vllm_backend.limits_of_environment("MASKWRIGHT_VLLM_LIMITS")


def test_a_tokenizer_without_bytes_is_refused() -> None:
    engine = Engine(tokenizer=SimpleNamespace(eos_token_id=0))
    for _ in range(2):
        with pytest.raises(VLLMValidationError, match="SimpleNamespace"):
            engine.checked({"regex": "a"})


def test_what_is_no_matter_of_the_back_end_is_refused_by_vllm() -> None:
    engine = Engine()
    engine.model_config.is_diffusion = True
    with pytest.raises(VLLMValidationError, match="diffusion"):
        engine.checked({"regex": "a"})
    params = SamplingParams(structured_outputs=StructuredOutputsParams(regex="a"))
    params.structured_outputs._backend = "xgrammar"
    with pytest.raises(VLLMValidationError, match="Request-level"):
        Engine().checked(params)


def test_options_for_json() -> None:
    blank, brace = (TOKENIZER.encode(text, add_special_tokens=False)[0] for text in (" ", "{"))
    for options, free in (({}, True), ({"disable_any_whitespace": True}, False)):
        grammar = grammar_of(Engine(**options).add({"json": {"properties": {"a": True}}}))
        assert grammar.accept_tokens("r", [brace])
        assert fill(grammar)[blank] == free
    closed = Engine(disable_additional_properties=True).add({"json": {"properties": {"a": {"const": 1}}}})
    other = TOKENIZER.encode('{"b', add_special_tokens=False)
    assert grammar_of(closed).validate_tokens(other) != other


def test_options_for_json_in_structural_tags() -> None:
    """Calls of tools arrive so; in a style of arguments, what is nested is JSON."""
    schema = {"properties": {"a": {"properties": {"b": {"const": 1}}, "type": "object"}}, "required": ["a"]}
    begin = {"json": '{"a":', "qwen_xml": "<parameter=a>\n"}
    for style, text in begin.items():
        legacy = {"structures": [{"begin": "<f>", "schema": schema, "end": "</f>"}], "triggers": ["<f>"]}
        plain = {"format": {"type": "json_schema", "json_schema": schema, "style": style}}
        for tag, before in ((legacy, "<f>"), (plain, "")) if style == "json" else ((plain, ""),):
            for options, is_free in (({}, True), ({"disable_any_whitespace": True}, False)):
                request = Engine(**options).add({"structural_tag": json.dumps(tag)})
                tokens = TOKENIZER.encode(before + text + '{ "b"', add_special_tokens=False)
                assert (grammar_of(request).validate_tokens(tokens) == tokens) == is_free
            for options, is_free in (({}, True), ({"disable_additional_properties": True}, False)):
                request = Engine(**options).add({"structural_tag": json.dumps(tag)})
                tokens = TOKENIZER.encode(before + text + '{"c"', add_special_tokens=False)
                assert (grammar_of(request).validate_tokens(tokens) == tokens) == is_free


# --- how it is chosen


def test_auto_is_ours_where_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(backend="auto")
    given = {"json": {"not": {"type": "object"}}}
    monkeypatch.setenv("MASKWRIGHT_VLLM", "1")
    request = engine.add(given)
    assert isinstance(engine.manager.backend, vllm_backend.MaskwrightBackend)
    assert isinstance(engine.manager.backend, plugin.MaskwrightBackend)
    assert isinstance(grammar_of(request), plugin.MaskwrightGrammar)
    engine.checked(request.sampling_params)  # Parameters may be used again.
    monkeypatch.setenv("MASKWRIGHT_VLLM", "0")
    assert engine.checked({"regex": "a"}).structured_outputs._backend == "xgrammar"


@pytest.mark.parametrize("backend", ["xgrammar", "guidance"])
def test_other_back_ends_stay_what_they_are(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASKWRIGHT_VLLM", "1")
    engine = Engine(backend=backend)
    request = engine.add({"regex": "ab"})
    assert type(engine.manager.backend).__name__.lower() == f"{backend}backend"
    assert not isinstance(grammar_of(request), vllm_backend.MaskwrightGrammar)


def test_the_name_is_accepted_in_the_configuration_and_no_other_one() -> None:
    for _ in range(2):
        plugin.register()
        assert StructuredOutputsConfig(backend="maskwright").backend == "maskwright"
        assert StructuredOutputsConfig().backend == "auto"
    with pytest.raises(ValueError, match="'maskwright'"):
        StructuredOutputsConfig(backend="maskwrite")
    with pytest.raises(ValueError, match="only supported for"):
        StructuredOutputsConfig(backend="outlines", disable_any_whitespace=True)


def test_the_command_line_takes_the_name() -> None:
    parser = AsyncEngineArgs.add_cli_args(FlexibleArgumentParser())
    arguments = parser.parse_args(["--model", "m", "--structured-outputs-config.backend", "maskwright"])
    assert isinstance(arguments, argparse.Namespace)
    assert arguments.structured_outputs_config.backend == "maskwright"


def test_other_releases_are_refused_when_we_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vllm, "__version__", "0.30.1")
    plugin.register()
    assert StructuredOutputsConfig(backend="xgrammar").backend == "xgrammar"
    with pytest.raises(ValueError, match=r"0\.31 and 0\.32, and this is 0\.30\.1"):
        StructuredOutputsConfig(backend="maskwright")
    monkeypatch.setenv("MASKWRIGHT_VLLM", "1")
    with pytest.raises(mw.MaskwrightError, match=r"this is 0\.30\.1"):
        plugin.register()
    for version in ("0.31.0", "0.32.0", "0.32.1.dev3+g1234", "0.32.0+cpu"):
        monkeypatch.setattr(vllm, "__version__", version)
        plugin.register()


def test_the_entry_point_leads_to_register() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(
        r'"vllm.general_plugins"\]\nmaskwright = "maskwright.integrations.vllm:register"\n', text
    )


def test_importing_the_plugin_imports_nothing_heavy() -> None:
    code = "import sys, maskwright.integrations.vllm; print(sorted({'vllm', 'torch', 'numpy'} & set(sys.modules)))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


@pytest.mark.parametrize("name", ["tekken_240911.json", "tokenizer.model.v1"])
def test_tokenizers_of_mistral(name: str, tmp_path: Path) -> None:
    mistral = pytest.importorskip("vllm.tokenizers.mistral")
    data = Path(pytest.importorskip("mistral_common").__file__).parent / "data"
    shutil.copy(data / name, tmp_path / name.replace("_240911", ""))
    tokenizer = mistral.MistralTokenizer.from_pretrained(str(tmp_path))
    engine = Engine(tokenizer=tokenizer, width=tokenizer.vocab_size)
    request = engine.add({"regex": "(ab|cd) x"})
    (row,) = engine.masks(request)
    pieces = tokenizer.instruct.tokenizer
    assert {pieces.id_to_piece(i) for i in np.flatnonzero(row).tolist()} >= {"ab", "cd", "a", "c"}
    assert not row[tokenizer.eos_token_id]


@pytest.mark.parametrize("choice", ["auto", "required"])
@pytest.mark.parametrize("model", ["deepseek_v3_1", "hermes", "llama", "qwen_3"])
def test_tags_of_tool_parsers(model: str, choice: Any) -> None:
    """vLLM writes them with all defaults of XGrammar's classes."""
    registry = pytest.importorskip("vllm.tool_parsers.structural_tag_registry")
    function = {"name": "person", "strict": True, "parameters": SCHEMA}
    tool = ChatCompletionToolsParam(type="function", function=function)
    tag = registry.get_model_structural_tag(model=model, tools=[tool], tool_choice=choice, reasoning=False)
    request = Engine().add({"structural_tag": json.dumps(tag.model_dump())})
    assert fill(grammar_of(request)).any()


@pytest.mark.parametrize(
    ("model", "call"),
    [
        ("qwen_3_coder", "<tool_call>\n<function=person>\n{arguments}\n</function>\n</tool_call>"),
        ("qwen_3_5", "<tool_call>\n<function=person>\n{arguments}\n</function>\n</tool_call>"),
        ("glm_4_7", "<tool_call>person{arguments}</tool_call>"),
        (
            "deepseek_v3_2",
            '\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name="person">\n{arguments}</｜DSML｜invoke>\n'
            "</｜DSML｜function_calls>",
        ),
    ],
)
def test_tags_with_xml_follow_the_schema(model: str, call: str) -> None:
    registry = pytest.importorskip("vllm.tool_parsers.structural_tag_registry")
    parameters = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "maximum": 99}},
        "required": ["name", "age"],
    }
    function = {"name": "person", "strict": True, "parameters": parameters}
    tool = ChatCompletionToolsParam(type="function", function=function)
    tag = registry.get_model_structural_tag(
        model=model, tools=[tool], tool_choice="required", reasoning=False
    ).model_dump()
    grammar = mw.compile_structural_tag(
        tag, mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_ids=[256])
    )
    member = {
        "qwen": "<parameter={key}>\n{value}\n</parameter>",
        "glm_": "<arg_key>{key}</arg_key><arg_value>{value}</arg_value>",
        "deep": '<｜DSML｜parameter name="{key}" string="{text}">{value}</｜DSML｜parameter>\n',
    }[model[:4]]
    for age, legal in (("36", True), ("100", False), ('"36"', False)):
        values = (("name", 'Ada "L."', "true"), ("age", age, "false"))
        separator = "\n" if model.startswith("qwen") else ""
        arguments = separator.join(member.format(key=k, value=v, text=t) for k, v, t in values)
        matcher = grammar.matcher()
        read = matcher.accept_bytes(call.replace("{arguments}", arguments).encode())
        assert (read and matcher.is_accepting) == legal
    request = Engine().add({"structural_tag": json.dumps(tag)})
    assert fill(grammar_of(request)).any()


def test_tags_with_other_xml_are_refused() -> None:
    schema = {"type": "json_schema", "json_schema": SCHEMA, "style": "cohere_xml"}
    with pytest.raises(VLLMValidationError, match="style: cohere_xml"):
        Engine().checked({"structural_tag": json.dumps({"type": "structural_tag", "format": schema})})
