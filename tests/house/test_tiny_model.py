"""The tiny model of tests and its requests: present, small, loadable, and well formed."""

from __future__ import annotations

import json
import sys
from random import Random

import pytest
from places import ROOT
from tiny_model import REQUESTS, TINY

from maskwright.demo import ANSWER_TOKEN, format_prompt, schema_outline

BENCH = ROOT / "bench"
MODEL_FILES = {
    "README.md",
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}
KEYWORDS = {
    "type",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "prefixItems",
    "enum",
    "const",
    "anyOf",
    "allOf",
    "$ref",
    "$defs",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minItems",
    "maxItems",
}


def _subschemas(schema):
    yield schema
    for key in ("properties", "$defs"):
        for part in schema.get(key, {}).values():
            yield from _subschemas(part)
    for key in ("anyOf", "allOf", "prefixItems"):
        for part in schema.get(key, []):
            yield from _subschemas(part)
    if "items" in schema:
        yield from _subschemas(schema["items"])


@pytest.fixture(scope="module")
def transformers():
    pytest.importorskip("torch", reason="the tiny model runs on torch")
    return pytest.importorskip("transformers", reason="the tiny model is loaded by transformers")


@pytest.fixture(scope="module")
def tokenizer(transformers):
    return transformers.AutoTokenizer.from_pretrained(TINY)


@pytest.fixture(scope="module")
def model(transformers):
    return transformers.AutoModelForCausalLM.from_pretrained(TINY).eval()


def test_model_directory_is_complete_and_small():
    sizes = {path.name: path.stat().st_size for path in TINY.iterdir()}
    assert set(sizes) == MODEL_FILES
    assert sum(sizes.values()) <= 6_000_000


def test_readme_says_what_the_model_is():
    text = (TINY / "README.md").read_text("utf-8").lower()
    for part in ("tiny model", "not for real use", "seed", "minutes", "validation loss"):
        assert part in text


def test_model_loads_as_float32_and_agrees_with_its_tokenizer(model, tokenizer):
    import torch

    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert model.config.vocab_size == len(tokenizer)
    assert model.generation_config.eos_token_id == tokenizer.eos_token_id == model.config.eos_token_id
    assert tokenizer.convert_ids_to_tokens(tokenizer.eos_token_id) == "<|eos|>"
    assert tokenizer.pad_token_id not in (None, tokenizer.eos_token_id)


def test_tokenizer_has_a_token_for_every_byte(tokenizer):
    tokens_lib = pytest.importorskip("tokenizers", reason="the byte alphabet comes from tokenizers")
    alphabet = tokens_lib.pre_tokenizers.ByteLevel.alphabet()
    assert len(alphabet) == 256
    assert set(alphabet) <= set(tokenizer.get_vocab())


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, -2.5e3, null], "b": {"c": "d"}}',
        "  leading, trailing  \n\t",
        "Zoë Müller, 東京, 🙂, e\u0301, \u200d",
        "".join(chr(code) for code in range(1, 256)),
        "\U0010ffff\ud7ff\ufffd",
    ],
)
def test_tokenizer_round_trips_text(tokenizer, text):
    ids = tokenizer.encode(text, add_special_tokens=False)
    assert tokenizer.decode(ids, clean_up_tokenization_spaces=False) == text


def test_prompts_start_with_bos_and_end_with_the_answer_token(tokenizer):
    for case in REQUESTS.values():
        ids = tokenizer(format_prompt(case["request"], case["schema"]))["input_ids"]
        assert ids[0] == tokenizer.bos_token_id
        assert ids[-1] == tokenizer.convert_tokens_to_ids(ANSWER_TOKEN)
        assert ids.count(ids[-1]) == 1


@pytest.mark.slow
def test_unconstrained_answers_to_its_prompts_mostly_parse(model, tokenizer):
    import torch

    parsed = 0
    prompts = [format_prompt(case["request"], case["schema"]) for case in REQUESTS.values()]
    batch = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
    with torch.inference_mode():
        output = model.generate(**batch, do_sample=False)
    for ids in output[:, batch["input_ids"].shape[1] :]:
        try:
            json.loads(tokenizer.decode(ids, skip_special_tokens=True))
            parsed += 1
        except ValueError:
            pass
    assert parsed >= len(prompts) / 2


def test_there_are_enough_cases_and_they_cover_the_keywords():
    assert len(REQUESTS) >= 6
    used = {key for case in REQUESTS.values() for part in _subschemas(case["schema"]) for key in part}
    assert used <= KEYWORDS
    for key in ("enum", "const", "pattern", "format", "anyOf", "allOf", "$ref", "prefixItems", "minimum"):
        assert key in used, key


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_case_is_well_formed(name):
    jsonschema = pytest.importorskip("jsonschema", reason="the meta-schema check needs jsonschema")
    case = REQUESTS[name]
    assert set(case) == {"title", "request", "schema"}
    assert case["title"].strip()
    jsonschema.Draft202012Validator.check_schema(case["schema"])
    assert case["request"].endswith(".")
    request, outline, marker = format_prompt(case["request"], case["schema"]).split("\n")
    assert request == case["request"]
    assert outline == f"Schema: {schema_outline(case['schema'])}"
    assert marker == ANSWER_TOKEN


def test_training_examples_follow_their_schemas(monkeypatch):
    jsonschema = pytest.importorskip("jsonschema", reason="the examples are checked with jsonschema")
    if not BENCH.is_dir():
        pytest.skip("the training data code is only in the source tree")
    monkeypatch.syspath_prepend(str(BENCH))
    monkeypatch.delitem(sys.modules, "demo_data", raising=False)
    import demo_data

    rng = Random(5)
    for make in demo_data.DOMAINS:
        for _ in range(25):
            example = make(rng)
            validator = jsonschema.Draft202012Validator(
                example.schema, format_checker=jsonschema.FormatChecker()
            )
            validator.validate(example.value)
            for compact in (False, True):
                assert json.loads(example.answer(compact=compact)) == example.value
    first, again = (
        [demo_data.draw(random) for _ in range(20)] for random in (Random("same"), Random("same"))
    )
    assert first == again
    excluded = frozenset({first[0].prompt})
    assert demo_data.draw(Random("same"), excluded).prompt != first[0].prompt
