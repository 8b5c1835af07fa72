"""The recipe of ``bench/diffusion_adapt.py``: what is trained is what is run later, and its measure is right; with the weights, where they were made."""

from __future__ import annotations

import copy
import json
import math
from random import Random
from types import SimpleNamespace
from typing import Any

import jsonschema
import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import Gap, MaskedDiffusionModel, Schedule, infill

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("safetensors")

import diffusion_adapt as adapt  # noqa: E402
from diffusion_texts import Text, held_out_texts  # noqa: E402

from maskwright.diffusion.adapters import HuggingFaceDiffusionModel  # noqa: E402

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None, None], eos_ids=[256])
END, MASK, SIZE = 256, 257, 258
BEFORE, CANVAS = [1, 7, 8, 9], [10, 11, 12, 13, 14, END, END]
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "yy"]}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


def tiny() -> Any:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=SIZE,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        tie_word_embeddings=True,
        initializer_range=0.2,
    )
    return transformers.LlamaForCausalLM(config).eval()


def trained() -> tuple[Any, dict[str, Any], Any]:
    """A model with updates that do something, these, and the plain model with them added."""
    module = tiny()
    plain = copy.deepcopy(module)
    updates = adapt.with_updates(module)
    with torch.no_grad():
        for name, one in updates.items():
            if not name.endswith("down"):
                one.normal_(std=0.3)
    return (
        module,
        updates,
        adapt.add_updates(plain, {name: one.detach() for name, one in updates.items()}, MASK),
    )


def model_of(module: Any, before: list[int]) -> HuggingFaceDiffusionModel:
    return HuggingFaceDiffusionModel(
        module, prompt=before, mask_id=MASK, eos_ids=[END], shift=1, call=adapt.Call(len(before))
    )


def test_what_is_trained_is_what_is_run() -> None:
    """The loss of noised copies packed in one row is that of the logits which the adapter gives for each of them alone."""
    module, updates, merged = trained()
    pack = adapt.Packed(MASK)
    pack.add(Random(0), [1, 20, 21], [22, 23, 24])
    first = len(pack.answers)
    start = len(pack.ids) + len(BEFORE) - 1
    pack.add(Random(1), BEFORE, CANVAS)
    width = len(CANVAS) + 1
    losses = []
    model = model_of(merged, BEFORE)
    for copy_number in range(adapt.COPIES):
        at = start + copy_number * width
        shown = pack.ids[at + 1 : at + width]
        assert MASK in shown
        rows = torch.log_softmax(torch.as_tensor(model.logits(shown)), dim=-1)
        losses += [-rows[i, CANVAS[i]].item() for i in range(len(CANVAS)) if shown[i] == MASK]
    assert len(losses) == len(pack.answers) - first
    alone = adapt.Packed(MASK)
    alone.add(Random(1), BEFORE, CANVAS)
    # The logits of the mask itself differ: it is trained as an embedding only.
    packed = adapt.masked_loss(module, updates["mask"], alone).item()
    assert packed == pytest.approx(np.mean(losses), abs=2e-2)
    both = adapt.masked_loss(module, updates["mask"], pack).item() * len(pack.answers)
    other = adapt.Packed(MASK)
    other.add(Random(0), [1, 20, 21], [22, 23, 24])
    other_loss = adapt.masked_loss(module, updates["mask"], other).item()
    assert both == pytest.approx(packed * len(losses) + other_loss * first, rel=1e-5)


def test_attention_goes_both_ways_in_the_canvas_only() -> None:
    model = model_of(trained()[2], BEFORE)
    shown = [10, MASK, 12, MASK, 14, END, END]
    base = torch.as_tensor(model.logits(shown))
    changed = list(shown)
    changed[6] = 99
    assert (torch.as_tensor(model.logits(changed))[0] - base[0]).abs().max() > 1e-4
    # Several canvases at once are each what they are alone.
    both = model.logits_of([shown, changed])
    assert np.allclose(both[0], base, atol=1e-5) and not np.allclose(both[1], base, atol=1e-5)


def test_a_canvas_read_from_left_to_right_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mask of the model that it was made from, left on."""
    call = adapt.Call
    monkeypatch.setattr(adapt, "Call", lambda length: call(length, causal=True))
    with pytest.raises(AssertionError):
        test_attention_goes_both_ways_in_the_canvas_only()


def test_masked_slots_are_spread_over_all_shares() -> None:
    rng = Random(0)
    for copy_number in range(4):
        for _ in range(50):
            masked = adapt.noised(rng, 20, copy_number, 4)
            assert len(set(masked)) == len(masked) and set(masked) <= set(range(20))
            assert max(1, 5 * copy_number) <= len(masked) <= 5 * (copy_number + 1)


class Given(MaskedDiffusionModel):
    """Logits that do not depend on the canvas."""

    mask_id, eos_ids = MASK, [END]

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def logits(self, canvas: list[int]) -> Any:
        return self.rows[: len(canvas)]


def test_the_bound_is_exact_where_slots_are_independent() -> None:
    ids = [3, 5, 3, 8]
    even = Given(np.zeros((4, SIZE), dtype=np.float32))
    assert adapt.bound(even, ids, 8, Random(0)) == pytest.approx(4 * math.log(SIZE), rel=1e-5)
    rows = np.random.default_rng(0).normal(size=(4, SIZE)).astype(np.float32)
    exact = -sum(
        torch.log_softmax(torch.as_tensor(rows[i]), dim=0)[token].item() for i, token in enumerate(ids)
    )
    assert adapt.bound(Given(rows), ids, 4000, Random(0)) == pytest.approx(exact, rel=0.02)


def test_a_tiny_model_learns_a_text() -> None:
    module = tiny()
    updates = adapt.with_updates(module)
    optimizer = torch.optim.Adam(updates.values(), lr=5e-2)
    losses = []
    for step in range(40):
        pack = adapt.Packed(MASK)
        pack.add(Random(step), BEFORE, CANVAS)
        loss = adapt.masked_loss(module, updates["mask"], pack)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert np.mean(losses[-5:]) < 0.5 * losses[0]


def test_texts_that_are_too_long_are_left_out() -> None:
    tokenizer = SimpleNamespace(
        bos_token_id=1, eos_token_id=END, encode=lambda text, **_: list(text.encode())
    )
    before, canvas = adapt.encoded(tokenizer, Text("requests", "ab", "{}", True), Random(0))
    assert before == [1, 97, 98] and canvas[:2] == [123, 125] and set(canvas[2:]) == {END}
    assert adapt.encoded(tokenizer, Text("requests", "", "x" * 90, True), Random(0)) is None
    assert (
        len(adapt.encoded(tokenizer, Text("sources", "", "x" * 200, False), Random(0))[1]) == adapt.MOST_SLOTS
    )


@pytest.mark.parametrize("schedule", [Schedule(), Schedule(steps=4), Schedule(ahead=3)])
def test_a_canvas_behind_a_prompt(schedule: Schedule) -> None:
    grammar = mw.compile_json_schema(SCHEMA, VOCABULARY)
    model = model_of(trained()[2], BEFORE)
    canvas = [b'{"a": ', Gap(1, 3), b', "b": ', *[None] * 5, b"}"]
    ids = infill(model, grammar, canvas, schedule=schedule)
    jsonschema.validate(json.loads(VOCABULARY.decode(ids)), SCHEMA)
    if schedule.steps is None:  # Asking ahead changes no text, with keys and values kept either.
        assert ids == infill(model, grammar, canvas)


@pytest.mark.slow
@pytest.mark.skipif(
    not adapt.weights_path().exists(), reason="the weights of bench/diffusion_adapt.py have not been made"
)
def test_the_adapted_model_knows_more_than_its_start() -> None:
    """On held-out documents and requests: fewer nats than a uniform guess among the printable tokens, and than the model that was not adapted."""
    module, tokenizer = adapt.load(adapt.weights_path())
    plain = transformers.AutoModelForCausalLM.from_pretrained(adapt.default_model(), dtype=torch.float32)
    nats = {"adapted": 0.0, "plain": 0.0}
    for text in [text for text in held_out_texts(2) if text.whole]:
        ids = tokenizer.encode(text.text, add_special_tokens=False)
        for name, one in (("adapted", module), ("plain", plain)):
            nats[name] += adapt.bound(adapt.infilling_model(one, tokenizer, text.before), ids, 2, Random(0))
    assert nats["adapted"] < 0.6 * nats["plain"]
