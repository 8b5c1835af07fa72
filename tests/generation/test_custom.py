"""Logits processors beside ``forced_decoding``: each row has its own, and those that need every token are refused."""

from __future__ import annotations

import threading

import pytest

torch = pytest.importorskip("torch", reason="the generator runs transformers models")
transformers = pytest.importorskip("transformers", reason="the generator runs transformers models")

from devices import DEVICE  # noqa: E402
from test_generation import llama  # noqa: E402
from transformers.generation.logits_process import PrefixConstrainedLogitsProcessor  # noqa: E402

import maskwright as mw  # noqa: E402
from maskwright.hf import forced_decoding  # noqa: E402

MODEL = llama
PADDING = "left"

PROMPTS = ["Ada", "The city of Rome", "x"]


@pytest.fixture(scope="module")
def write(model, tokenizer):
    grammar = mw.Generator(model, tokenizer).compile(mw.Regex("[a-h]{6,20}"))

    def go(prompts, *processors, **options):
        batch = tokenizer(prompts, return_tensors="pt", padding=True, return_token_type_ids=False).to(DEVICE)
        decode = forced_decoding(grammar, tokenizer)
        output = model.generate(
            **batch, custom_generate=decode, logits_processor=list(processors), max_new_tokens=24, pad_token_id=0, **options
        )  # fmt: skip
        return tokenizer.batch_decode(output[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)

    return go


class Seldom(transformers.LogitsProcessor):
    """Remembers how often it was asked, and favours another token each time."""

    def __init__(self, model):
        self.model = model
        self.asked = []

    def __call__(self, input_ids, scores):
        scores = scores.clone()
        self.asked.append(len(self.asked))
        scores[:, [ord("a") + 3 + len(self.asked) % 8]] += 4.0
        return scores


class Locked(Seldom):
    def __init__(self, model):
        super().__init__(model)
        self.lock = threading.Lock()


def test_each_row_has_a_processor_of_its_own(write, model):
    together = write(PROMPTS, Seldom(model))
    assert together == [write([prompt], Seldom(model))[0] for prompt in PROMPTS]
    single = Seldom(model)
    write(PROMPTS[:1], single)
    assert single.asked  # whoever writes one text may look at what it saw
    with pytest.raises(mw.MaskwrightError, match="Locked cannot be copied"):
        write(PROMPTS, Locked(model))
    assert write(PROMPTS[:1], Locked(model)) == together[:1]


@pytest.mark.parametrize("returned", [1, 2])
def test_rows_know_their_prompts(returned, write, tokenizer):
    letters = [tokenizer.convert_tokens_to_ids(letter) for letter in "abc"]
    found = write(
        PROMPTS,
        PrefixConstrainedLogitsProcessor(lambda place, ids: [letters[place], 2], returned),
        num_return_sequences=returned,
        do_sample=True,
    )
    assert [set(text) for text in found] == [{letter} for letter in "abc" for _ in range(returned)]


def test_processors_that_need_every_token(write):
    with pytest.raises(mw.MaskwrightError, match=r"UnbatchedClassifierFreeGuidance.* pass LogitsProcessor"):
        write(PROMPTS, guidance_scale=1.5)
    watermark = transformers.generation.SynthIDTextWatermarkingConfig(keys=[1, 2, 3], ngram_len=5)
    with pytest.raises(mw.MaskwrightError, match="SynthID"):
        write(PROMPTS[:1], watermarking_config=watermark, do_sample=True)
    with pytest.raises(mw.MaskwrightError, match="EncoderNoRepeatNGram"):
        write(PROMPTS, encoder_no_repeat_ngram_size=3)
    assert write(PROMPTS[:1], encoder_no_repeat_ngram_size=3)
