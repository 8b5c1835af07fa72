"""The generator on the tiny model: always complete, always valid, within the budget."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from dataclasses import dataclass
from enum import Enum
from typing import Literal

import jsonschema
import pytest

transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
torch = pytest.importorskip("torch", reason="the generator runs transformers models")
pydantic = pytest.importorskip("pydantic", reason="Python types are read through pydantic")
from devices import DEVICE  # noqa: E402
from tiny_model import REQUESTS, TINY  # noqa: E402
from typing_extensions import TypedDict  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.demo import format_prompt  # noqa: E402
from maskwright.generation.partial import NOTHING, partial_value  # noqa: E402


@pytest.fixture(scope="module")
def generator() -> mw.Generator:
    model = transformers.AutoModelForCausalLM.from_pretrained(TINY).to(DEVICE).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    return mw.Generator(model, tokenizer, format_prompt=format_prompt)


class Person(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=20)
    age: int = pydantic.Field(ge=0, le=150)


@dataclass
class Point:
    x: float
    y: float


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Movie(TypedDict):
    title: str
    year: int


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_outputs_validate(name, generator):
    case = REQUESTS[name]
    (result,) = generator.generate([case["request"]], case["schema"], max_new_tokens=200)
    jsonschema.validate(result.value, case["schema"])
    assert json.loads(result.text) == result.value
    assert len(result.token_ids) < 200
    assert 0 < result.usage.mask_seconds < result.usage.seconds


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_samples_validate(seed, generator):
    case = REQUESTS["order"]
    for result in generator.generate(
        [case["request"]] * 4, case["schema"], max_new_tokens=120, temperature=1.0, seed=seed
    ):
        jsonschema.validate(result.value, case["schema"])
        assert len(result.token_ids) < 120


@pytest.mark.parametrize(
    "output_type", [Person, Point, Colour, Movie, int, Literal["a", "b"], list[Colour], dict[str, int]]
)
def test_python_types(output_type, generator):
    value = generator("Ada, 36", output_type, max_new_tokens=60, temperature=1.0, seed=0)
    adapter = pydantic.TypeAdapter(output_type)
    assert adapter.validate_python(adapter.dump_python(value)) == value


@pytest.mark.slow
def test_a_tight_budget_is_kept_and_told(generator):
    schema = REQUESTS["order"]["schema"]
    least = len(generator.compile(schema).matcher().shortest_completion()) + 1
    for budget in (least, least + 1, least + 5, least + 20):
        (result,) = generator.generate(["x"], schema, max_new_tokens=budget, temperature=1.5, seed=budget)
        jsonschema.validate(result.value, schema)
        assert len(result.token_ids) + 1 <= budget
    assert generator.generate(["x"], schema, max_new_tokens=least)[0].finish_reason == "budget"


def test_a_budget_that_cannot_suffice(generator):
    with pytest.raises(mw.LimitError, match="max_new_tokens is 2"):
        generator("x", REQUESTS["order"]["schema"], max_new_tokens=2)


@pytest.mark.slow
def test_batches_equal_single_runs(generator):
    schema = REQUESTS["weather"]["schema"]
    prompts = [REQUESTS["weather"]["request"], "Report the weather in Rome, sunny."]
    together = generator.batch(prompts, schema, max_new_tokens=120)
    assert together == [generator(prompt, schema, max_new_tokens=120) for prompt in prompts]


def test_streamed_objects_grow_into_the_value(generator):
    case = REQUESTS["person"]
    partials = list(generator.stream(case["request"], case["schema"], max_new_tokens=150))
    assert partials[-1] == generator(case["request"], case["schema"], max_new_tokens=150)
    assert partials[0] == {}
    assert len(partials) > 5
    for before, after in itertools.pairwise(partials):
        assert list(after)[: len(before)] == list(before)
    assert isinstance(list(generator.stream("x", Person, max_new_tokens=60))[-1], Person)
    colour = mw.JsonSchema({"enum": ["red"]})
    assert list(generator.stream("x", colour, max_new_tokens=20))[-1] == "red"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 12', {}),
        ('{"a": 12,', {"a": 12}),
        ('{"a": "x1', {"a": "x1"}),
        ('{"a": "x\\"1', {"a": 'x"1'}),
        ("[1, -2.5", [1]),
        ("[true, fal", [True]),
        ("[1, true", [1, True]),
        ('{"a": false', {"a": False}),
        ("[false, 1e", [False]),
        ('[{"b": []}, {"c', [{"b": []}, {}]),
    ],
)
def test_partial_values(text, value):
    assert partial_value(text) == value


@pytest.mark.parametrize("text", ["", "12", "-"])
def test_no_partial_value_yet(text):
    assert partial_value(text) is NOTHING


def test_seeds_reproduce(generator):
    options = {"max_new_tokens": 60, "temperature": 1.0, "seed": 3}
    assert generator("x", Person, **options) == generator("x", Person, **options)


@pytest.mark.parametrize(
    ("prompts", "options", "words"),
    [([], {}, "non-empty"), ("x", {}, "non-empty"), (["x"], {"temperature": -1}, "temperature")],
)
def test_bad_arguments(prompts, options, words, generator):
    with pytest.raises(mw.MaskwrightError, match=words):
        generator.generate(prompts, int, **options)


def test_a_type_that_is_none(generator):
    with pytest.raises(mw.GrammarError, match="no type"):
        generator("x", object())


def test_a_tokenizer_of_another_model(generator):
    from transformers import LlamaConfig, LlamaForCausalLM

    small = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=100, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1
        )
    )
    with pytest.raises(mw.VocabularyError, match="do not belong together"):
        mw.Generator(small, generator.tokenizer)


def test_every_output_is_counted_once(generator):
    """Whoever asks for it, however many candidates it has; judging adds to what is known."""
    generator.metrics = mw.Metrics()

    def birthday(name: str, age: int) -> int:
        return age + 1

    async def both():
        _ = [part async for part in generator.astream("x", Colour)]
        return await generator.acall("x", Colour, n=2, temperature=1.0)

    call = generator.generate(["x"], birthday, max_new_tokens=60)[0]
    generator.metrics.judge(call, expected=call.value.keywords)
    generator("x", Colour)
    generator("x", Colour, num_beams=3)
    generator("x", Colour, particles=4, seed=0)
    assert list(generator.stream("x", Colour))
    assert len(dict(generator.as_completed([("x", Colour, {}), ("x", Colour, {})]))) == 2
    asyncio.run(both())
    rates = generator.metrics.rates()
    assert rates.outputs == 10 and rates.schema_validity == rates.argument_exactness == 1.0
    assert rates.cost_per_success == call.usage.generated_tokens
    assert 0 < rates.tokens_per_output < 60 and 0 < rates.latency_p50_seconds <= rates.latency_p95_seconds


def test_an_output_without_an_end_is_not_valid(generator, monkeypatch):
    monkeypatch.setattr(generator, "metrics", mw.Metrics())
    generator("x", Person, max_new_tokens=60)
    for part in generator.steps("x", Person, max_new_tokens=60):  # left before its end: not known
        assert part.tokens
        break
    monkeypatch.setattr("maskwright.generation.row.Row._choose", failing)
    with pytest.raises(mw.ModelError):
        generator("x", Person, max_new_tokens=60)
    rates = generator.metrics.rates()
    assert rates.outputs == 2 and rates.schema_validity == 0.5


def failing(*_):
    raise mw.ModelError("no finite score")


@pytest.mark.parametrize("options", [{"particles": 6, "seed": 0}, {"num_beams": 6}])
def test_seconds_are_those_of_the_search_as_well(options, generator):
    started = time.perf_counter()
    result = generator.generate(["x"], Person, max_new_tokens=40, **options)[0]
    assert 0.5 * (time.perf_counter() - started) < result.usage.seconds
