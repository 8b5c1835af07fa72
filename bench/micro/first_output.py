"""What the first output of a new schema costs behind a real model, whose forward passes leave the caches cold.

Greedy decoding of the demo's cases, each schema compiled anew, one mask a token: microseconds to compile, to fill a mask
(with accepting the token before it) and to apply it, and their share of the time.

python bench/micro/first_output.py [--model NAME]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

import maskwright as mw
from maskwright.demo import demo_cases
from maskwright.generation.default_model import default_model

MOST_TOKENS = 100

parser = argparse.ArgumentParser()
parser.add_argument("--model", default=None)
name = parser.parse_args().model or default_model()
torch.set_num_threads(1)
model = AutoModelForCausalLM.from_pretrained(name).eval()
tokenizer = AutoTokenizer.from_pretrained(name)
width = model.config.vocab_size
vocabulary = mw.Vocabulary.from_huggingface(
    tokenizer, vocab_size=width, eos_ids=model.generation_config.eos_token_id
)
mw.compile_json_schema({"type": "null"}, vocabulary)  # the engine of the vocabulary is no part of a schema
bitmask = mw.allocate_token_bitmask(1, width)
compiling, filling, applying, whole = [], [], [], 0.0
for case in demo_cases().values():
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": f"As JSON: {case['request']}"}],
        tokenize=False,
        add_generation_prompt=True,
    )
    ids = tokenizer(prompt, return_tensors="pt", add_special_tokens=False)["input_ids"]
    cache = DynamicCache(config=model.config)
    begun = time.perf_counter()
    matcher = mw.compile_json_schema(case["schema"], vocabulary).matcher()
    compiling.append(time.perf_counter() - begun)
    token = None
    for _ in range(MOST_TOKENS):
        with torch.inference_mode():
            logits = model(input_ids=ids, past_key_values=cache, logits_to_keep=1).logits[:, -1]
        first = time.perf_counter()
        if token is not None:
            matcher.accept_token(token)
        matcher.fill_next_token_bitmask(bitmask)
        second = time.perf_counter()
        mw.apply_token_bitmask_inplace(logits, bitmask)
        applying.append(time.perf_counter() - second)
        filling.append(second - first)
        token = int(logits.argmax())
        if token in vocabulary.eos_ids:
            break
        ids = torch.tensor([[token]])
    whole += time.perf_counter() - begun
spent = sum(compiling) + sum(filling) + sum(applying)
print(f"{len(compiling)} schemas, {len(filling)} tokens, {width} ids, {whole:.1f} s")
for what, times in (("compile", compiling), ("fill and accept", filling), ("apply", applying)):
    values = 1e6 * np.array(times)
    print(
        f"{what}: {values.mean():.1f} µs on average, {np.median(values):.1f} median, {values.max():.0f} at most"
    )
print(f"share of the time: {100 * spent / whole:.2f} %")
