"""Adapters, with tiny random models of transformers and with copies of other loops."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import Canvas, Schedule, infill
from maskwright.errors import CanvasError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from devices import DEVICE  # noqa: E402

from maskwright.diffusion.adapters import (  # noqa: E402
    DiffusionLogitsProcessor,
    HuggingFaceDiffusionModel,
    dream_hooks,
    forced_logits,
)

CHARACTERS = [bytes([i]) for i in range(32, 127)]
SIZE = len(CHARACTERS) + 3
MASK, END = len(CHARACTERS), len(CHARACTERS) + 1
VOCABULARY = mw.Vocabulary.from_bytes([*CHARACTERS, None, None, None], eos_ids=[END], special_ids=[MASK])
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}
GRAMMAR = mw.compile_json_schema(SCHEMA, VOCABULARY, whitespace="compact")
SLOTS = 24


def check(ids: list[int]) -> None:
    text = ids[: ids.index(END)] if END in ids else ids
    assert set(ids[len(text) :]) <= {END}
    value = json.loads(VOCABULARY.decode(text))
    assert value["a"] == int(value["a"]) and value["b"] in ("x", "yy")


def tiny_bert() -> Any:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=SIZE,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=64,
        pad_token_id=SIZE - 1,
    )
    return transformers.BertForMaskedLM(config).to(DEVICE).eval()


def test_the_causal_mode() -> None:
    """Shifted as the other logits are; what is judged by it is the text that it writes alone."""
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=SIZE, n_embd=16, n_layer=1, n_head=2, n_positions=64)
    causal = transformers.GPT2LMHeadModel(config).to(DEVICE).eval()
    prompt, canvas = [3, 4, 5], [MASK] * SLOTS
    model = HuggingFaceDiffusionModel(
        causal,
        prompt=prompt,
        mask_id=MASK,
        eos_ids=[END],
        shift=1,
        causal=lambda module, ids: module(input_ids=ids).logits,
    )
    with torch.inference_mode():
        ids = torch.tensor([prompt + canvas], device=DEVICE)
        expected = causal(input_ids=ids).logits[0, len(prompt) - 1 : -1].cpu().numpy()
    np.testing.assert_array_equal(model.causal_logits(canvas), expected)
    texts = [
        infill(model, GRAMMAR, canvas, schedule=Schedule(block=block, verify=True, temperature=1.0), seed=0)
        for block in (1, None)
    ]
    check(texts[0])
    assert texts[0] == texts[1]
    unknown = HuggingFaceDiffusionModel(
        causal, mask_id=MASK, eos_ids=[END], call=lambda *_: pytest.fail("it is said before the first call")
    )
    with pytest.raises(CanvasError, match="takes causal="):
        infill(unknown, GRAMMAR, canvas, schedule=Schedule(verify=True))
    with pytest.raises(CanvasError, match="pass causal="):
        unknown.causal_logits(canvas)


@pytest.mark.parametrize("prompt", [[], [3, 4, 5]])
def test_masked_language_models(prompt: list[int]) -> None:
    model = HuggingFaceDiffusionModel(tiny_bert(), prompt=prompt, mask_id=MASK, eos_ids=[END])
    canvas = [MASK] * SLOTS
    with torch.inference_mode():
        ids = torch.tensor([prompt + canvas], device=DEVICE)
        expected = model.model(input_ids=ids).logits[0, len(prompt) :].cpu().numpy()
    np.testing.assert_array_equal(model.logits(canvas), expected)
    check(infill(model, GRAMMAR, canvas, schedule=Schedule(steps=6)))


def test_shifted_logits() -> None:
    def call(model: Any, ids: Any) -> Any:
        return torch.nn.functional.one_hot(ids, SIZE).float()

    model = HuggingFaceDiffusionModel(
        SimpleNamespace(), prompt=[7, 8], mask_id=MASK, eos_ids=[END], shift=1, call=call
    )
    # Logits of a slot come from the position before it.
    assert model.logits([1, 2, 3]).argmax(axis=-1).tolist() == [8, 1, 2]
    dream = SimpleNamespace(config=SimpleNamespace(model_type="Dream", mask_token_id=MASK, eos_token_id=END))
    assert HuggingFaceDiffusionModel(dream).shift == 1


def test_ids_come_from_tokenizer_and_configuration() -> None:
    config = SimpleNamespace(model_type="llada", mask_token_id=5, eos_token_id=[1, 2])
    model = HuggingFaceDiffusionModel(SimpleNamespace(config=config))
    assert (model.mask_id, model.eos_ids, model.shift) == (5, [1, 2], 0)
    tokenizer = SimpleNamespace(mask_token_id=6, eos_token_id=3)
    assert HuggingFaceDiffusionModel(SimpleNamespace(config=config), tokenizer).mask_id == 6
    with pytest.raises(CanvasError, match="mask token"):
        HuggingFaceDiffusionModel(SimpleNamespace(config=SimpleNamespace(eos_token_id=1)))
    with pytest.raises(CanvasError, match="end token"):
        HuggingFaceDiffusionModel(SimpleNamespace(config=SimpleNamespace(mask_token_id=1)))
    with pytest.raises(CanvasError, match="tokenizer"):
        model.encode("text")


def dream_generate(
    logits_of: Any, x: Any, steps: int, temperature: float, tokens_hook: Any, logits_hook: Any
) -> Any:
    """Dream's loop in short: linear time steps, confidence order, both hooks."""
    generator = torch.Generator().manual_seed(0)
    times = torch.linspace(1, 1e-3, steps + 1)
    x = tokens_hook(None, x, None)
    for step in range(steps):
        masked = x == MASK
        logits = logits_hook(step, x, logits_of(x))[masked]
        if temperature:
            probs = torch.softmax(logits / temperature, dim=-1)
            tokens = torch.multinomial(probs.cpu(), 1, generator=generator)[:, 0].to(DEVICE)
        else:
            probs = torch.softmax(logits, dim=-1)
            tokens = probs.argmax(dim=-1)
        confidence = probs.gather(1, tokens[:, None])[:, 0]
        count = len(tokens) if step == steps - 1 else int(len(tokens) * (1 - times[step + 1] / times[step]))
        chosen = confidence.topk(count).indices
        filled = torch.full_like(tokens, MASK)
        filled[chosen] = tokens[chosen]
        x[masked] = filled
        x = tokens_hook(step, x, logits)
    return x


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_the_hooks_of_dream(temperature: float, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)

    def logits_of(x: Any) -> Any:
        logits = torch.randn((*x.shape, SIZE), generator=generator) * 3
        logits[..., MASK] = 9
        return logits.to(DEVICE)

    canvas = Canvas(GRAMMAR, [MASK] * SLOTS, mask_id=MASK)
    hooks = dream_hooks(canvas, 2, MASK, certain=temperature > 0)
    out = dream_generate(
        logits_of, torch.tensor([[1, 2, *[MASK] * SLOTS]], device=DEVICE), 7, temperature, *hooks
    )
    assert out[0, :2].tolist() == [1, 2]
    check(out[0, 2:].tolist())


def test_what_is_likeliest_already_keeps_its_logits() -> None:
    canvas = Canvas(GRAMMAR, [MASK] * SLOTS, mask_id=MASK)
    witness = canvas.witness()
    logits = np.random.default_rng(0).normal(size=(SLOTS, SIZE)).astype(np.float32)
    logits[np.arange(SLOTS), witness] += 20
    np.testing.assert_array_equal(forced_logits(canvas, logits, range(SLOTS)), logits)
    assert canvas.open == list(range(SLOTS))
    logits[3] = -np.inf
    logits[5] = np.nan
    assert forced_logits(canvas, logits, range(SLOTS)).argmax(axis=-1).tolist() == witness


def tiny_diffusion_gemma() -> Any:
    text = {
        "vocab_size": SIZE, "hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "head_dim": 16, "num_experts": 4, "top_k_experts": 2,
        "moe_intermediate_size": 16, "sliding_window": 64, "layer_types": ["sliding_attention", "full_attention"],
        "pad_token_id": END, "bos_token_id": 0, "eos_token_id": END,
    }  # fmt: skip
    config = transformers.DiffusionGemmaConfig(text_config=text, canvas_length=16)
    torch.manual_seed(0)
    return transformers.DiffusionGemmaForBlockDiffusion(config).to(DEVICE).eval()


@pytest.mark.slow
def test_diffusion_gemma() -> None:
    """The real loop of transformers over several canvases, with random weights."""
    if not hasattr(transformers, "DiffusionGemmaForBlockDiffusion"):
        pytest.skip("this version of transformers has no DiffusionGemma")
    try:
        model = tiny_diffusion_gemma()
    except (TypeError, ValueError, AttributeError) as error:
        pytest.skip(f"its configuration has changed: {error}")
    prompt = torch.tensor([[1, 2, 3], [4, 5, 6]], device=DEVICE)
    out = model.generate(
        prompt,
        logits_processor=transformers.LogitsProcessorList([DiffusionLogitsProcessor(GRAMMAR, 3, 32)]),
        max_new_tokens=32,
        max_denoising_steps=3,
    )
    sequences = out if isinstance(out, torch.Tensor) else out.sequences
    for row in sequences[:, 3:].tolist():
        check(row)


def test_canvases_that_follow_each_other() -> None:
    """The text goes on in the next canvas, and ends in time."""
    generator = torch.Generator().manual_seed(1)
    processor = DiffusionLogitsProcessor(GRAMMAR, 2, 24)
    ids = torch.tensor([[1, 2], [3, 4]], device=DEVICE)
    for _ in range(3):
        for _ in range(2):
            scores = torch.randn((2, 8, SIZE), generator=generator).to(DEVICE)
            canvas = processor(ids, scores, cur_step=torch.tensor(1)).argmax(dim=-1)
        ids = torch.cat([ids, canvas], dim=1)
    for row in ids[:, 2:].tolist():
        check(row)


AB = mw.Vocabulary.from_bytes([b"a", b"b", b"", b""], eos_ids=[2])


def test_a_canvas_that_is_shorter_than_the_text_may_be() -> None:
    scores = torch.zeros((1, 2, 4))
    scores[..., 0] = 5
    processor = DiffusionLogitsProcessor(mw.compile_regex("(aaa)?", AB), 0, 4)
    done = torch.zeros((1, 0), dtype=torch.int64)
    assert processor(done, scores).argmax(dim=-1).tolist() == [[0, 0]]


def test_forced_logits_leave_the_canvas_as_it_is() -> None:
    canvas = Canvas(mw.compile_regex("a*", AB), [None] * 4)
    for likeliest, found in ((2, [2, 2]), (0, [0, 0])):
        logits = np.zeros((2, 4), dtype=np.float32)
        logits[:, likeliest] = 5
        assert forced_logits(canvas, logits, [0, 1]).argmax(axis=-1).tolist() == found
        assert canvas.open == [0, 1, 2, 3]
        assert canvas.witness()[:2] == found
