"""What tests of ``generate`` share: the tiny model, its tokenizer and its vocabulary.

A module may say ``MODEL``, a function of the tokenizer, for another model, and ``PADDING = "left"`` for batches that are padded there.
"""

from __future__ import annotations

import pytest
from devices import DEVICE
from tiny_model import TINY

import maskwright as mw


@pytest.fixture(scope="module")
def tokenizer(request):
    transformers = pytest.importorskip("transformers", reason="generate comes from transformers")
    if not hasattr(request.module, "PADDING"):
        return transformers.AutoTokenizer.from_pretrained(TINY)
    found = transformers.AutoTokenizer.from_pretrained(TINY, padding_side=request.module.PADDING)
    found.pad_token_id = 0
    return found


@pytest.fixture(scope="module")
def model(request, tokenizer):
    transformers = pytest.importorskip("transformers", reason="generate comes from transformers")
    if hasattr(request.module, "MODEL"):
        return request.module.MODEL(tokenizer)
    return transformers.AutoModelForCausalLM.from_pretrained(TINY).to(DEVICE).eval()


@pytest.fixture(scope="module")
def vocabulary(model, tokenizer):
    return mw.Vocabulary.from_huggingface(tokenizer, vocab_size=model.config.vocab_size)
