"""The generator with odd arguments, short contexts, broken models, and models of other shapes."""

from __future__ import annotations

import ipaddress
import json
from typing import Annotated

import jsonschema
import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")
pydantic = pytest.importorskip("pydantic", reason="Python types are read through pydantic")

from devices import DEVICE  # noqa: E402
from tiny_model import TINY  # noqa: E402

import maskwright as mw  # noqa: E402

STRINGS = {"type": "array", "items": {"type": "string"}, "minItems": 3}


def random_model(tokenizer, **options):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 1}
    config = transformers.LlamaConfig(vocab_size=len(tokenizer), eos_token_id=2, **sizes, **options)
    return transformers.LlamaForCausalLM(config).to(DEVICE).eval()


@pytest.fixture(scope="module")
def generator(tokenizer):
    return mw.Generator(random_model(tokenizer), tokenizer)


@pytest.mark.parametrize("seed", range(5))
def test_a_random_model_writes_valid_output_in_any_budget(seed, generator):
    (result,) = generator.generate(["x"], STRINGS, max_new_tokens=20 + seed, temperature=3.0, seed=seed)
    jsonschema.validate(result.value, STRINGS)
    assert len(result.token_ids) < 20 + seed
    matcher = generator.compile(STRINGS).matcher()
    assert matcher.accept_tokens(result.token_ids) == len(result.token_ids)
    assert matcher.is_accepting


def test_rows_of_a_batch_end_on_their_own(generator):
    schema = {"enum": [10**n for n in range(30)]}
    prompts = ["a " * n for n in range(8)]
    results = generator.generate(prompts, schema, max_new_tokens=40, temperature=2.0, seed=1)
    assert len({len(result.token_ids) for result in results}) > 1
    for result in results:
        assert json.loads(result.text) == result.value
        jsonschema.validate(result.value, schema)


def test_the_context_bounds_the_budget(tokenizer):
    generator = mw.Generator(random_model(tokenizer, max_position_embeddings=40), tokenizer)
    prompt = "x" * 20
    length = len(tokenizer(prompt)["input_ids"])
    (result,) = generator.generate([prompt], STRINGS, max_new_tokens=500, temperature=2.0, seed=0)
    jsonschema.validate(result.value, STRINGS)
    assert len(result.token_ids) + 1 + length <= 40
    with pytest.raises(mw.LimitError, match=r"the model's context less a prompt of \d+ tokens"):
        generator("x" * 36, STRINGS)
    with pytest.raises(
        mw.LimitError, match=r"the prompt has \d+ tokens, more than the model's context of 40"
    ):
        generator("x" * 200, STRINGS)


def test_a_model_with_learned_positions(tokenizer):
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=len(tokenizer), n_positions=48, n_embd=16, n_layer=1, n_head=1, eos_token_id=2
    )
    generator = mw.Generator(transformers.GPT2LMHeadModel(config).eval(), tokenizer)
    for value in generator.batch(["x", "a longer prompt"], STRINGS, temperature=1.0, seed=0):
        jsonschema.validate(value, STRINGS)


def test_a_model_without_position_ids(tokenizer):
    torch.manual_seed(0)
    config = transformers.BloomConfig(
        vocab_size=len(tokenizer), hidden_size=16, n_layer=1, n_head=2, eos_token_id=2
    )
    generator = mw.Generator(transformers.BloomForCausalLM(config).eval(), tokenizer)
    assert isinstance(generator("x", {"type": "integer"}, max_new_tokens=9), int)


RECURRENT = {
    "Mamba": {"hidden_size": 32, "num_hidden_layers": 2},
    "FalconMamba": {"hidden_size": 32, "num_hidden_layers": 2},
    "Jamba": {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "num_key_value_heads": 1, "use_mamba_kernels": False, "num_experts": 2, "attn_layer_period": 2,
        "attn_layer_offset": 1, "mamba_d_state": 4,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", RECURRENT)
def test_forced_text_behind_a_recurrent_state(name, tokenizer):
    """Such states go on by one token at a time, whatever is forced."""
    torch.manual_seed(5)
    config = getattr(transformers, f"{name}Config")(
        vocab_size=len(tokenizer), eos_token_id=2, **RECURRENT[name]
    )
    model = getattr(transformers, f"{name}ForCausalLM")(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(3.0 if parameter.dim() > 1 else 1.0)
    generator = mw.Generator(model, tokenizer)
    result = generator.generate(["Ada is 36"], mw.Regex("(Paris|London): [a-z]{1,4}"), logprobs=True)[0]
    ids = tokenizer("Ada is 36")["input_ids"]
    assert result.usage.prompt_tokens == len(ids) and result.usage.forced_tokens
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids + result.token_ids]), use_cache=False).logits[0].float()
    expected = logits.log_softmax(-1)[torch.arange(len(result.token_ids)) + len(ids) - 1, result.token_ids]
    assert result.logprobs == pytest.approx(expected.tolist(), abs=1e-3)


def test_a_model_that_keeps_no_cache(tokenizer):
    config = transformers.RecurrentGemmaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
        lru_width=32, block_types=["recurrent", "attention"], attention_window_size=8, eos_token_id=2,
    )  # fmt: skip
    generator = mw.Generator(transformers.RecurrentGemmaForCausalLM(config).eval(), tokenizer)
    with pytest.raises(mw.ModelError, match="keeps no cache"):
        generator("Ada", mw.Regex("[a-z]{3}"))


@pytest.mark.parametrize("temperature", [None, 1.0])
def test_scores_that_are_no_numbers(tokenizer, temperature):
    model = random_model(tokenizer)
    with torch.no_grad():
        model.lm_head.weight.fill_(float("nan"))
    with pytest.raises(mw.MaskwrightError, match="no finite score"):
        mw.Generator(model, tokenizer)("x", {"type": "string"}, temperature=temperature)


@pytest.mark.parametrize("temperature", [1e-300, 1e-45, 1e30, 0, 0.0])
def test_extreme_temperatures(temperature, generator):
    assert isinstance(generator("x", {"type": "boolean"}, temperature=temperature, max_new_tokens=20), bool)


@pytest.mark.parametrize(
    ("prompts", "options", "words"),
    [
        (["x"], {"temperature": float("inf")}, "temperature"),
        (["x"], {"temperature": float("nan")}, "temperature"),
        (["x"], {"max_new_tokens": None}, "max_new_tokens"),
        (["x"], {"max_new_tokens": -1}, "max_new_tokens: expected an integer of at least 0"),
        (["x"], {"max_new_tokens": 1}, "max_new_tokens is 1, but the shortest output takes"),
        ([5], {}, "prompts"),
    ],
)
def test_bad_arguments(prompts, options, words, generator):
    with pytest.raises(mw.MaskwrightError, match=words):
        generator.generate(prompts, {"type": "integer"}, **options)


def test_a_prompt_without_tokens(tokenizer):
    plain = transformers.AutoTokenizer.from_pretrained(TINY)
    plain.chat_template = "{{ messages[0].content }}"  # which adds no special tokens
    with pytest.raises(mw.MaskwrightError, match="no tokens"):
        mw.Generator(random_model(plain), plain)("", {"type": "integer"})


def test_options_of_a_json_schema_are_kept(generator):
    compact = mw.JsonSchema(STRINGS, whitespace="compact")
    (result,) = generator.generate(["x"], compact, max_new_tokens=60, temperature=3.0, seed=0)
    jsonschema.validate(result.value, STRINGS)
    assert json.dumps(result.value, separators=(",", ":"), ensure_ascii=False).count(
        " "
    ) == result.text.count(" ")
    assert generator.compile(compact) is generator.compile(mw.JsonSchema(STRINGS, whitespace="compact"))
    assert generator.compile(compact) is not generator.compile(STRINGS)


def test_chat_templates_are_used(tokenizer):
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    tokenizer.chat_template = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %} ->"
    generator = mw.Generator(random_model(tokenizer), tokenizer)
    assert generator._prompter.text("hello", None, dict) == "[user] hello ->"
    assert isinstance(generator("hello", {"type": "integer"}, max_new_tokens=9), int)


@pytest.mark.slow
def test_python_types_load(generator):
    for seed in range(8):
        options = {"temperature": 5.0, "seed": seed, "max_new_tokens": 40}
        assert isinstance(generator("x", int, **options), int)
        assert all(isinstance(item, int) for item in generator("x", list[int], **options))
        assert all(isinstance(key, int) for key in generator("x", dict[int, str], **options))


def test_an_output_that_its_type_refuses(generator):
    def refuse(value):
        raise ValueError("never good")

    picky = Annotated[int, pydantic.AfterValidator(refuse)]
    with pytest.raises(mw.OutputError, match="never good") as caught:
        generator("x", picky, max_new_tokens=20)
    assert int(caught.value.text) is not None
    with pytest.raises(mw.OutputError):
        list(generator.stream("x", picky, max_new_tokens=20))


def test_prompts_show_the_schema_of_the_type(tokenizer):
    shown = []
    generator = mw.Generator(
        random_model(tokenizer),
        tokenizer,
        format_prompt=lambda prompt, schema: shown.append(schema) or prompt,
    )
    generator("x", dict[int, ipaddress.IPv4Network], max_new_tokens=200)
    assert shown == [pydantic.TypeAdapter(dict[int, ipaddress.IPv4Network]).json_schema()]


def counting_columns(tokenizer):
    ends = {"vocab_size": len(tokenizer), "eos_token_id": 2, "bos_token_id": 1, "pad_token_id": 0}
    return {
        "window": transformers.GPTNeoConfig(
            hidden_size=32, num_layers=2, num_heads=2, attention_types=[[["global", "local"], 1]], window_size=8,
            max_position_embeddings=400, **ends,
        ),
        "distances": transformers.MptConfig(d_model=32, n_heads=2, n_layers=2, max_seq_len=400, **ends),
        "positions": transformers.BartConfig(
            d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=2, decoder_attention_heads=2,
            encoder_ffn_dim=32, decoder_ffn_dim=32, is_decoder=True, is_encoder_decoder=False, **ends,
        ),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["window", "distances", "positions"])
def test_models_that_count_columns_which_their_cache_does_not_know(name, tokenizer):
    """Masked columns would move what lies behind them, or push it out of a window."""
    torch.manual_seed(3)
    model = transformers.AutoModelForCausalLM.from_config(counting_columns(tokenizer)[name]).eval()
    for parameter in model.parameters():
        parameter.data.mul_(3.0 if parameter.dim() > 1 else 1.0)
    prompts = ["Ada is 36", "The city of Rome is old and great and everybody knows about it"]
    schema = {"type": "array", "items": {"enum": ["alpha", "beta", "gamma"]}, "minItems": 2, "maxItems": 5}
    gen = mw.Generator(model, tokenizer)
    assert gen._batch().width == (1 if name == "positions" else gen.batch_size)
    for prompt, found in zip(prompts, gen.generate(prompts, schema, logprobs=True), strict=True):
        ids = tokenizer(prompt)["input_ids"]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids + found.token_ids]), use_cache=False).logits[0]
        expected = logits.log_softmax(-1)[torch.arange(len(found.token_ids)) + len(ids) - 1, found.token_ids]
        assert found.logprobs == pytest.approx(expected.tolist(), abs=1e-3)
