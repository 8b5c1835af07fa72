"""Train the tiny model of tests: a small Llama that answers a request and a schema with JSON.

    PYTHONPATH=src python bench/train_tiny.py --seed 0 --minutes 20 --out tests/models/tiny

With ``--steps`` a run depends only on the options, the thread count and the library versions;
``--minutes`` stops by the clock, so that its step count differs from machine to machine.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import torch
from demo_data import COMPACT_SHARE, Example, draw
from tiny_eval import Rates, measure
from tiny_tokenizer import train_tokenizer
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from maskwright.demo import format_prompt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_model import REQUESTS

CONTEXT = 1024
VOCABULARY = 1536
TOKENIZER_TEXTS = 20_000
IGNORED = -100
# Whole batches are cut from a sorted pool, so that a batch holds texts of about one length.
POOL_BATCHES = 16


def build_model(tokenizer: PreTrainedTokenizerFast) -> LlamaForCausalLM:
    """A fresh model of about two million parameters."""
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=192,
        intermediate_size=512,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=6,
        max_position_embeddings=CONTEXT,
        rope_theta=10_000.0,
        rms_norm_eps=1e-5,
        initializer_range=0.03,
        tie_word_embeddings=True,
        use_cache=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    return LlamaForCausalLM(config)


def encode(
    tokenizer: PreTrainedTokenizerFast, examples: list[Example], rng: Random
) -> list[tuple[list[int], int]]:
    """Token ids of prompt, answer and end token, with the length of the prompt."""
    prompts = tokenizer([example.prompt for example in examples])["input_ids"]
    answers = tokenizer(
        [example.answer(compact=rng.random() < COMPACT_SHARE) for example in examples],
        add_special_tokens=False,
    )["input_ids"]
    end = [tokenizer.eos_token_id]
    return [(prompt + answer + end, len(prompt)) for prompt, answer in zip(prompts, answers, strict=True)]


def collate(rows: list[tuple[list[int], int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-padded ids and labels; the labels cover the answer only.

    Under a causal mask, padding on the right cannot reach the tokens before it: no attention mask.
    """
    width = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), width), pad)
    labels = torch.full((len(rows), width), IGNORED)
    for index, (row, prompt_length) in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
        labels[index, prompt_length : len(row)] = torch.tensor(row[prompt_length:])
    return ids, labels


def batches(
    tokenizer: PreTrainedTokenizerFast, rng: Random, size: int, excluded: frozenset[str]
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Endless fresh training batches."""
    while True:
        rows = encode(tokenizer, [draw(rng, excluded) for _ in range(size * POOL_BATCHES)], rng)
        rows = sorted((row for row in rows if len(row[0]) <= CONTEXT), key=lambda row: len(row[0]))
        chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
        rng.shuffle(chunks)
        for chunk in chunks:
            yield collate(chunk, tokenizer.pad_token_id)


def answer_loss(model: LlamaForCausalLM, ids: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of the answer tokens."""
    hidden = model.model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
    target = labels[:, 1:]
    wanted = target != IGNORED
    # Only the answer positions go through the vocabulary projection.
    return torch.nn.functional.cross_entropy(model.lm_head(hidden[wanted]), target[wanted])


def learning_rate(done: float, step: int, peak: float) -> float:
    """Linear warm-up over 100 steps, then a cosine down to a twentieth of ``peak``."""
    if step < 100:
        return peak * (step + 1) / 100
    return peak * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * min(done, 1.0))))


def train(
    model: LlamaForCausalLM,
    stream: Iterator[tuple[torch.Tensor, torch.Tensor]],
    peak: float,
    steps: int | None,
    minutes: float | None,
) -> tuple[int, float]:
    """Train for ``steps`` or for ``minutes``; returns the steps done and the minutes taken."""
    matrices = [one for one in model.parameters() if one.dim() > 1]
    vectors = [one for one in model.parameters() if one.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
        lr=peak,
        betas=(0.9, 0.98),
    )
    model.train()
    started, step, tokens, shown = time.monotonic(), 0, 0, 0.0
    while True:
        elapsed = (time.monotonic() - started) / 60
        done = step / steps if steps is not None else elapsed / (minutes or 1.0)
        if done >= 1:
            return step, elapsed
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(done, step, peak)
        ids, labels = next(stream)
        loss = answer_loss(model, ids, labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step, tokens = step + 1, tokens + ids.numel()
        shown = loss.item() if step == 1 else 0.95 * shown + 0.05 * loss.item()
        if step % 50 == 0:
            rate = tokens / 60 / max((time.monotonic() - started) / 60, 1e-9)
            print(f"step {step}  {elapsed:.1f} min  loss {shown:.4f}  {rate:.0f} tokens/s", flush=True)


@torch.inference_mode()
def validation_loss(
    model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, examples: list[Example]
) -> float:
    """Mean answer loss over ``examples``, by token."""
    total, count = 0.0, 0
    rows = encode(tokenizer, examples, Random(0))
    for start in range(0, len(rows), 32):
        ids, labels = collate(rows[start : start + 32], tokenizer.pad_token_id)
        wanted = int((labels[:, 1:] != IGNORED).sum())
        total += answer_loss(model, ids, labels).item() * wanted
        count += wanted
    return total / count


def save(model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast, out: Path) -> None:
    """Write the model with half-precision weights that load as float32."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(out)
    model.generation_config = GenerationConfig(
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        max_new_tokens=256,
    )
    model.half().save_pretrained(out)
    # The saved configuration names the stored type; half-precision arithmetic is slow on a CPU.
    config = LlamaConfig.from_pretrained(out)
    config.dtype = torch.float32
    config.save_pretrained(out)
    for path in out.iterdir():
        path.chmod(0o644)


README = """\
# Tiny model

A model for tests, not for real use.  It is there so that the tests of maskwright run without a
download, and it can do nothing else: it knows only the request forms it was trained on.

- Architecture: Llama, {parameters:,} parameters, {layers} layers, hidden size {hidden}, context
  {context}; byte-level BPE of {vocabulary} tokens trained on the same text.  Weights are stored in
  float16 and load as float32.
- Training data: synthetic "request, schema outline -> JSON" pairs drawn by `bench/demo_data.py`
  (people, orders, weather, events, folder trees, comment threads, tickets, recipes, accounts,
  payments, places).  All names and addresses are random; no outside data.  The schema files in
  `../requests` are not in the training data word for word.
- Training: seed {seed}, {steps} steps of {batch} examples, {minutes:.1f} minutes on {threads} CPU
  threads.  Command: `{command}`.
- Prompt: `maskwright.demo.format_prompt(request, schema)`.

Measured after training on {count} held-out examples, unconstrained greedy decoding:

| measure | value |
|---|---|
| validation loss (nats per answer token) | {loss:.4f} |
| answers that parse as JSON | {rates.parses:.1%} |
| answers that validate against the schema | {rates.validates:.1%} |
| answers with exactly the expected values | {rates.exact:.1%} |
"""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the tiny model of maskwright's tests.")
    parser.add_argument("--seed", type=int, default=0)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, help="stop after this many minutes of training")
    budget.add_argument("--steps", type=int, help="stop after this many steps")
    parser.add_argument("--out", type=Path, required=True, help="directory to write the model to")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--held-out",
        type=int,
        default=220,
        help="examples to measure on; they are kept out of training, so their number changes the data",
    )
    return parser.parse_args()


def _write_readme(
    options: argparse.Namespace,
    model: LlamaForCausalLM,
    steps: int,
    minutes: float,
    loss: float,
    rates: Rates,
) -> None:
    budget = f"--steps {options.steps}" if options.steps is not None else f"--minutes {options.minutes:g}"
    text = README.format(
        parameters=model.num_parameters(),
        layers=model.config.num_hidden_layers,
        hidden=model.config.hidden_size,
        context=CONTEXT,
        vocabulary=model.config.vocab_size,
        seed=options.seed,
        steps=steps,
        batch=options.batch_size,
        minutes=minutes,
        threads=options.threads,
        command=f"python bench/train_tiny.py --seed {options.seed} {budget} --out tests/models/tiny",
        count=rates.count,
        loss=loss,
        rates=rates,
    )
    (options.out / "README.md").write_text(text, "utf-8")


def main() -> None:
    """Train, save, reload, measure, and write the model's README."""
    options = _arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)

    excluded_prompts = {format_prompt(case["request"], case["schema"]) for case in REQUESTS.values()}
    held_out_rng = Random(f"held-out {options.seed}")
    held_out = [draw(held_out_rng, frozenset(excluded_prompts)) for _ in range(options.held_out)]
    excluded = frozenset(excluded_prompts | {example.prompt for example in held_out})

    rng = Random(f"train {options.seed}")
    sample = [draw(rng, excluded) for _ in range(TOKENIZER_TEXTS)]
    texts = [one.prompt + one.answer(compact=rng.random() < COMPACT_SHARE) for one in sample]
    tokenizer = train_tokenizer(texts, VOCABULARY, CONTEXT)

    model = build_model(tokenizer)
    print(f"{model.num_parameters():,} parameters, {len(tokenizer)} tokens", flush=True)
    stream = batches(tokenizer, rng, options.batch_size, excluded)
    steps, minutes = train(model, stream, options.learning_rate, options.steps, options.minutes)
    save(model, tokenizer, options.out)

    # Measured on what was saved, rounding of the weights included.
    model = LlamaForCausalLM.from_pretrained(options.out, dtype=torch.float32).eval()
    loss = validation_loss(model, tokenizer, held_out)
    rates, by_domain = measure(model, tokenizer, held_out)
    for domain, domain_rates in by_domain.items():
        print(f"  {domain}: {domain_rates}")
    print(f"{steps} steps in {minutes:.1f} minutes; validation loss {loss:.4f}; {rates}", flush=True)
    _write_readme(options, model, steps, minutes, loss, rates)


if __name__ == "__main__":
    main()
