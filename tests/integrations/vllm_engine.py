"""The real vLLM with a real model: five starts of its engine, by each of the ways to choose the back-end (``make test-vllm``).

Not collected by ``make test``.  Each start takes one to three minutes on two cores.
"""

from __future__ import annotations

import gzip
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest

os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")

pytest.importorskip("vllm")

import vllm_reasoning
from places import DATA, TESTS
from vllm import LLM, SamplingParams
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams

from maskwright.generation.default_model import default_model
from maskwright.integrations import vllm as plugin

SETTINGS = {"dtype": "float32", "enforce_eager": True, "max_model_len": 512, "disable_log_stats": True}
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 30},
        "age": {"type": "integer", "minimum": 0, "maximum": 120},
        "email": {"type": "string", "format": "email", "maxLength": 40},
    },
    "required": ["name", "age", "email"],
    "additionalProperties": False,
}
BAD = {"type": "object", "properties": {"a": {"$ref": "http://example.org/other"}}}
POINTER = r"/properties/a/\$ref"
PEOPLE = [
    f'Copy this person as JSON: {{"name": "{name}", "age": {age}, "email": "{name.split()[0].lower()}@example.org"}}\nAnswer: '
    for name, age in (("Ada Lovelace", 36), ("Alan Turing", 41), ("Grace Hopper", 85), ("Kurt Goedel", 71))
]
# `vllm serve`: its command asks for the version of the package vllm, which has another name as a build for the CPU.
COMMAND_LINE = """
import importlib.metadata as metadata
version = metadata.version
metadata.version = lambda name: version("vllm-cpu") + "+cpu" if name == "vllm" else version(name)
from vllm.entrypoints.cli.main import main
main()
"""
UNIQUE = {"type": "array", "uniqueItems": True, "items": {"enum": [1, 2, 3]}, "minItems": 3}


def params(max_tokens: int = 120, temperature: float = 0.0, **given: Any) -> SamplingParams:
    sampling = {name: given.pop(name) for name in ("n", "seed") if name in given}
    structured = StructuredOutputsParams(**given) if given else None
    return SamplingParams(
        max_tokens=max_tokens, temperature=temperature, structured_outputs=structured, **sampling
    )


@contextmanager
def engine(**settings: Any) -> Iterator[LLM]:
    llm = LLM(default_model(), **{**SETTINGS, **settings})
    try:
        yield llm
    finally:
        llm.llm_engine.engine_core.shutdown()


def schemas(count: int) -> list[dict[str, Any]]:
    """Real ones where they are at hand, else those of the tiny model; many keywords that others refuse."""
    path = DATA / "maskbench-dev.jsonl.gz"
    if not path.is_file():
        found = [
            json.loads(p.read_text("utf-8"))["schema"] for p in (TESTS / "models" / "requests").glob("*.json")
        ]
        return [{**schema, "title": f"{i}"} for i, schema in enumerate(found * (count // len(found) + 1))][
            :count
        ]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        found = [
            json.loads(line)["schema"] for i, line in enumerate(lines) if i % 50 == 0 and len(line) < 4000
        ]
    assert len(found) >= count
    return found[:count]


def check(schema: Any, text: str) -> None:
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    kind(schema).validate(json.loads(text))


@pytest.fixture(scope="module")
def named() -> Iterator[LLM]:
    """Chosen by its name, in Python."""
    plugin.register()
    with engine(structured_outputs_config={"backend": "maskwright"}) as llm:
        yield llm


PLAIN: list[Any] = []
"""Greedy outputs without speculation."""


def test_greedy_outputs(named: LLM) -> None:
    PLAIN.extend(o.outputs[0].token_ids for o in named.generate(PEOPLE, params(json=PERSON)))
    for tokens in PLAIN:
        assert tokens


def test_many_real_schemas_at_once(named: LLM) -> None:
    some = schemas(64)
    begin = time.perf_counter()
    outputs = named.generate(
        ["A short example in JSON: "] * 64,
        [params(json=schema, temperature=0.7, seed=i, max_tokens=250) for i, schema in enumerate(some)],
    )
    seconds = time.perf_counter() - begin
    finished = 0
    for schema, output in zip(some, outputs, strict=True):
        (answer,) = output.outputs
        assert answer.finish_reason in ("stop", "length")
        if answer.finish_reason == "stop":
            finished += 1
            check(schema, answer.text)
    tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
    print(
        f"\n64 schemas at once: {finished} finished, all valid; {tokens} tokens, {tokens / seconds:.0f} tokens/s"
    )
    assert finished >= 16


def test_each_kind_of_request_in_one_batch(named: LLM) -> None:
    tag = {
        "structures": [{"begin": "<age>", "schema": {"type": "integer", "maximum": 99}, "end": "</age>"}],
        "triggers": ["<age"],
    }
    call = {"type": "tag", "begin": "<age>", "content": {"type": "regex", "pattern": r"\d{1,2}"}, "end": "</age>"}  # fmt: skip
    new = json.dumps({"type": "structural_tag", "format": call})
    given: list[tuple[dict[str, Any], str]] = [
        ({"regex": r"\d{3}-\d{4}"}, r"\d{3}-\d{4}"),
        ({"choice": ["Paris", "London"]}, "Paris|London"),
        ({"grammar": 'start: "a" ("b" | "c")~3 "!"'}, "a[bc]{3}!"),
        ({"grammar": 'root ::= "a" ("b" | "c"){3} "!"'}, "a[bc]{3}!"),
        ({"structural_tag": json.dumps(tag)}, r"(?s)([^<]|<(?!age)|<age>-?\d{1,9}</age>)*"),
        ({"structural_tag": new}, r"<age>\d{1,2}</age>"),
        ({"json_object": True}, ""),
        ({}, ""),
        ({"choice": ["yes", "no"], "n": 3, "temperature": 1.0}, "yes|no"),
    ]
    outputs = named.generate(
        ["Say something: "] * len(given), [params(max_tokens=60, **sent) for sent, _ in given]
    )
    for (sent, pattern), output in zip(given, outputs, strict=True):
        assert len(output.outputs) == sent.get("n", 1)
        for answer in output.outputs:
            if sent and answer.finish_reason == "stop":
                assert (
                    re.fullmatch(pattern, answer.text)
                    if pattern
                    else isinstance(json.loads(answer.text), dict)
                )
            elif "json_object" not in sent and "structural_tag" not in sent:
                assert not sent, (sent, answer)


def test_a_bad_schema_fails_alone(named: LLM) -> None:
    with pytest.raises(VLLMValidationError, match=POINTER):
        named.generate(["x"], [params(json=BAD)])
    (output,) = named.generate(["x"], params(choice=["good"]))
    assert output.outputs[0].text == "good"


def test_speculation_changes_nothing_and_a_failure_ends_one_request(
    named: LLM, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chosen by the environment, which every process of the engine sees."""
    named.llm_engine.engine_core.shutdown()
    monkeypatch.setenv("MASKWRIGHT_VLLM", "1")
    monkeypatch.setenv("MASKWRIGHT_VLLM_LIMITS", '{"max_search": 1}')
    drafts = {"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4, "prompt_lookup_min": 1}
    with engine(speculative_config=drafts) as llm:
        outputs = llm.generate([*PEOPLE, "x"], [*[params(json=PERSON)] * 4, params(json=UNIQUE)])
        assert [output.outputs[0].token_ids for output in outputs[:4]] == PLAIN
        assert outputs[4].outputs[0].finish_reason == "error", "max_search is reached while it is written"
        (output,) = llm.generate(["x"], params(choice=["good"]))
        assert output.outputs[0].text == "good"


def draft_model(path: Path) -> Path:
    """The model's first ten layers: a draft that is often wrong."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(default_model())
    del model.model.layers[10:]
    model.config.num_hidden_layers = 10
    if getattr(model.config, "layer_types", None):
        model.config.layer_types = model.config.layer_types[:10]
    model.save_pretrained(path)
    AutoTokenizer.from_pretrained(default_model()).save_pretrained(path)
    return path


THOUGHTS = [
    f"A sentence about {name}, and then JSON. {name}"
    for name in ("Ada Lovelace", "Alan Turing", "Grace Hopper", "Kurt Goedel")
]
"""The word was is still to come, and what is constrained is behind it."""
THOUGHT = "It was so. "
"""Behind this, nothing is left to think."""
THINKING = {
    "reasoning_parser": vllm_reasoning.NAME,
    "reasoning_parser_plugin": vllm_reasoning.__file__,
}


def test_thinking_a_draft_model_and_preemption(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MASKWRIGHT_VLLM", "1")
    prompts = [*THOUGHTS, *(THOUGHT + prompt for prompt in PEOPLE)]
    plain: list[list[int]] = []
    texts: list[str] = []
    # Room for a few texts only: the others lose theirs, and are read again.
    with engine(
        structured_outputs_config=THINKING, num_gpu_blocks_override=24, disable_log_stats=False
    ) as llm:
        for output in llm.generate(prompts, params(json=PERSON, max_tokens=200)):
            plain.append(list(output.outputs[0].token_ids))
            texts.append(output.outputs[0].text)
        some = schemas(32)
        outputs = llm.generate(
            [f"{THOUGHT}A short example in JSON: "] * 32,
            [params(json=schema, max_tokens=300) for schema in some],
        )
        for schema, output in zip(some, outputs, strict=True):
            if output.outputs[0].finish_reason == "stop":
                check(schema, output.outputs[0].text)
        counts = {metric.name: getattr(metric, "value", None) for metric in llm.get_metrics()}
        assert counts["vllm:num_preemptions"] > 0
    for text in texts[: len(THOUGHTS)]:
        _, was, answer = text.partition(" was")
        assert was
        check(PERSON, answer)
    for text in texts[len(THOUGHTS) :]:
        check(PERSON, text)
    drafts = {"method": "draft_model", "model": str(draft_model(tmp_path)), "num_speculative_tokens": 3}
    with engine(
        structured_outputs_config=THINKING, speculative_config=drafts, disable_log_stats=False
    ) as llm:
        outputs = llm.generate(prompts, params(json=PERSON, max_tokens=200))
        assert [list(output.outputs[0].token_ids) for output in outputs] == plain
        counts = {metric.name: getattr(metric, "value", None) for metric in llm.get_metrics()}
        assert counts["vllm:spec_decode_num_accepted_tokens"] > 0


def test_the_server_answers_the_openai_client(tmp_path: Path) -> None:
    """Chosen by its name, on the command line."""
    openai = pytest.importorskip("openai")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable, "-c", COMMAND_LINE, "serve", default_model(), "--served-model-name", "m", "--port", str(port),
        "--dtype", "float32", "--enforce-eager", "--max-model-len", "512", "--structured-outputs-config.backend", "maskwright",
        "--enable-auto-tool-choice", "--tool-call-parser", "hermes",
    ]  # fmt: skip
    log = tmp_path / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, stdout=out, stderr=out, start_new_session=True)
    try:
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0)
        for _ in range(600):
            assert server.poll() is None, log.read_text("utf-8", "replace")[-3000:]
            try:
                client.models.list()
                break
            except openai.APIConnectionError:
                time.sleep(1)
        _ask(client, openai)
    finally:
        server.terminate()
        try:
            server.wait(60)
        except subprocess.TimeoutExpired:
            server.kill()


def _ask(client: Any, openai: Any) -> None:
    def chat(**given: Any) -> Any:
        messages = [{"role": "user", "content": "Ada Lovelace was 36."}]
        return client.chat.completions.create(
            model="m", messages=messages, temperature=0, max_tokens=100, **given
        )

    def schema(source: Any) -> Any:
        return {"type": "json_schema", "json_schema": {"name": "answer", "schema": source}}

    for _ in range(2):
        answer = chat(response_format=schema(PERSON)).choices[0]
        assert answer.finish_reason == "stop"
        check(PERSON, answer.message.content)
        with pytest.raises(openai.BadRequestError, match=POINTER) as caught:
            chat(response_format=schema(BAD))
        assert caught.value.status_code == 400
        print("\n", caught.value.body)
        with pytest.raises(openai.BadRequestError, match="1:2: this group is not closed"):
            chat(extra_body={"structured_outputs": {"regex": "a("}})
    assert re.fullmatch(
        r"\d\d", chat(extra_body={"structured_outputs": {"regex": r"\d\d"}}).choices[0].message.content
    )
    tool = {"type": "function", "function": {"name": "person", "parameters": PERSON, "strict": True}}
    call = chat(tools=[tool], tool_choice={"type": "function", "function": {"name": "person"}})
    check(PERSON, call.choices[0].message.tool_calls[0].function.arguments)
    chunks = chat(response_format=schema(PERSON), stream=True)
    check(PERSON, "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices))
