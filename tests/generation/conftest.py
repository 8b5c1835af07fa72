"""What tests of ``generate`` share: the tiny model, and the vocabulary of the module's ``tokenizer``."""

from __future__ import annotations

import pytest
from devices import DEVICE
from tiny_model import TINY

import maskwright as mw


@pytest.fixture(scope="module")
def model():
    transformers = pytest.importorskip("transformers", reason="generate comes from transformers")
    return transformers.AutoModelForCausalLM.from_pretrained(TINY).to(DEVICE).eval()


@pytest.fixture(scope="module")
def vocabulary(model, tokenizer):
    return mw.Vocabulary.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
