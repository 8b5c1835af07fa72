"""Train the demo masked-diffusion model: it fills the answer's open slots, given a request and a schema.

    PYTHONPATH=src python bench/train_demo_diffusion.py --seed 0 --minutes 25 --out src/maskwright/demo/diffusion

Data and tokenizer are those of the tests' tiny model (``bench/train_tiny.py``).  The loss is LLaDA's (arXiv 2502.09992,
equation 3): a share t of the answer's slots is masked, t uniform, and the cross-entropy of masked slots
is weighted by 1 / t.
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
from demo_data import Example, draw
from transformers import AutoTokenizer, ModernBertConfig, ModernBertForMaskedLM, PreTrainedTokenizerFast

from maskwright.demo import format_prompt

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_model import REQUESTS, TINY

MASK_TOKEN = "<|mask|>"
LONGEST = 112
POOL_BATCHES = 16
SPARE_SLOTS = 16


def build_model(tokenizer: PreTrainedTokenizerFast) -> ModernBertForMaskedLM:
    """A fresh model of about 1.4 million parameters."""
    config = ModernBertConfig(
        vocab_size=len(tokenizer),
        hidden_size=160,
        intermediate_size=256,
        num_hidden_layers=5,
        num_attention_heads=5,
        max_position_embeddings=512,
        global_attn_every_n_layers=1,
        embedding_dropout=0.0,
        attention_dropout=0.0,
        mlp_dropout=0.0,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        cls_token_id=tokenizer.bos_token_id,
        sep_token_id=tokenizer.eos_token_id,
        mask_token_id=tokenizer.mask_token_id,
        tie_word_embeddings=True,
        decoder_bias=True,
    )
    return ModernBertForMaskedLM(config)


def encode(
    tokenizer: PreTrainedTokenizerFast, examples: list[Example], rng: Random
) -> list[tuple[list[int], int]]:
    """Prompt, answer and end tokens up to a random number of spare slots; and the length of the prompt."""
    prompts = tokenizer([example.prompt for example in examples])["input_ids"]
    answers = tokenizer([example.answer() for example in examples], add_special_tokens=False)["input_ids"]
    end = tokenizer.eos_token_id
    return [
        (prompt + answer + [end] * rng.randint(1, SPARE_SLOTS), len(prompt))
        for prompt, answer in zip(prompts, answers, strict=True)
        if len(answer) < LONGEST
    ]


def batches(
    tokenizer: PreTrainedTokenizerFast, rng: Random, size: int, excluded: frozenset[str]
) -> Iterator[list[tuple[list[int], int]]]:
    """Endless fresh batches of about one length each."""
    while True:
        rows = encode(tokenizer, [draw(rng, excluded) for _ in range(size * POOL_BATCHES)], rng)
        rows.sort(key=lambda row: len(row[0]))
        chunks = [rows[start : start + size] for start in range(0, len(rows), size)]
        rng.shuffle(chunks)
        yield from chunks


def masked_loss(
    model: ModernBertForMaskedLM,
    rows: list[tuple[list[int], int]],
    tokenizer: PreTrainedTokenizerFast,
    generator: torch.Generator,
) -> torch.Tensor:
    """LLaDA's loss of one batch, per answer slot."""
    width = max(len(ids) for ids, _ in rows)
    ids = torch.full((len(rows), width), tokenizer.pad_token_id)
    answer = torch.zeros((len(rows), width), dtype=torch.bool)
    for index, (row, prompt) in enumerate(rows):
        ids[index, : len(row)] = torch.tensor(row)
        answer[index, prompt : len(row)] = True
    # Stratified over the batch: a more even mix of easy and hard cases.
    share = (torch.rand(1, generator=generator) + torch.arange(len(rows)) / len(rows)) % 1
    share = (0.02 + 0.98 * share)[:, None]
    masked = answer & (torch.rand(ids.shape, generator=generator) < share)
    seen = (torch.arange(width)[None] < torch.tensor([len(row) for row, _ in rows])[:, None]).long()
    hidden = model.model(
        input_ids=torch.where(masked, tokenizer.mask_token_id, ids), attention_mask=seen
    ).last_hidden_state
    logits = model.decoder(model.head(hidden[masked]))
    loss = torch.nn.functional.cross_entropy(logits, ids[masked], reduction="none")
    weights = (1 / share).expand(ids.shape)[masked] / answer.sum(dim=1, keepdim=True).expand(ids.shape)[
        masked
    ]
    return (loss * weights).sum() / len(rows)


def train(
    model: ModernBertForMaskedLM,
    stream: Iterator[list[tuple[list[int], int]]],
    tokenizer: PreTrainedTokenizerFast,
    options: argparse.Namespace,
) -> tuple[int, float]:
    generator = torch.Generator().manual_seed(options.seed)
    matrices = [one for one in model.parameters() if one.dim() > 1]
    vectors = [one for one in model.parameters() if one.dim() <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.05}, {"params": vectors, "weight_decay": 0.0}],
        lr=options.learning_rate,
        betas=(0.9, 0.98),
    )
    model.train()
    started, step, shown, busy = time.monotonic(), 0, 0.0, time.process_time()
    while True:
        elapsed = (time.process_time() - busy) / 60 if options.cpu_time else (time.monotonic() - started) / 60
        done = step / options.steps if options.steps is not None else elapsed / options.minutes
        if done >= 1:
            return step, elapsed
        rate = options.learning_rate * min(1.0, (step + 1) / 100)
        for group in optimizer.param_groups:
            group["lr"] = rate * (0.05 + 0.95 * 0.5 * (1 + math.cos(math.pi * done)))
        loss = masked_loss(model, next(stream), tokenizer, generator)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        step += 1
        shown = loss.item() if step == 1 else 0.98 * shown + 0.02 * loss.item()
        if step % 50 == 0:
            print(f"step {step}  {elapsed:.1f} min  loss {shown:.4f}", flush=True)


README = """\
# Demo masked-diffusion model

A demo model, not for real use: it is there so that `maskwright infill`, the examples and the tests run without a
download, and knows only the request forms it was trained on.

- Architecture: ModernBERT (masked language model, full attention), {parameters:,} parameters; weights in float16.
- Tokenizer and synthetic training data: those of the tests' tiny model (`bench/train_tiny.py`, `bench/demo_data.py`), and one mask token.
- Training: LLaDA's loss, seed {seed}, {steps} steps of {batch} examples, {minutes:.1f} minutes on {threads}
  thread(s), by `bench/train_demo_diffusion.py`.
- Loss: {loss}.  See `bench/diffusion.py` for what it does.
"""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train the maskwright demo masked-diffusion model.")
    parser.add_argument("--seed", type=int, default=0)
    budget = parser.add_mutually_exclusive_group(required=True)
    budget.add_argument("--minutes", type=float, help="stop after this many minutes of training")
    budget.add_argument("--steps", type=int, help="stop after this many steps")
    parser.add_argument("--cpu-time", action="store_true", help="count minutes of processor time")
    parser.add_argument("--out", type=Path, required=True, help="directory to write the model to")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--learning-rate", type=float, default=3e-3)
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def main() -> None:
    """Train, measure the loss on held-out examples, save."""
    options = _arguments()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(TINY)
    tokenizer.add_special_tokens({"mask_token": MASK_TOKEN})
    prompts = {format_prompt(case["request"], case["schema"]) for case in REQUESTS.values()}
    held_rng = Random(f"held-out {options.seed}")
    held = [draw(held_rng, frozenset(prompts)) for _ in range(220)]
    excluded = frozenset(prompts | {example.prompt for example in held})
    model = build_model(tokenizer)
    print(f"{model.num_parameters():,} parameters, {len(tokenizer)} tokens", flush=True)
    stream = batches(tokenizer, Random(f"train {options.seed}"), options.batch_size, excluded)
    steps, minutes = train(model, stream, tokenizer, options)
    model.eval()
    generator = torch.Generator().manual_seed(1)
    rows = encode(tokenizer, held, Random(0))
    with torch.inference_mode():
        losses = [
            masked_loss(model, rows[i : i + 32], tokenizer, generator).item() for i in range(0, len(rows), 32)
        ]
    loss = f"{sum(losses) / len(losses):.4f} nats per answer slot on held-out examples"
    print(f"{steps} steps in {minutes:.1f} minutes; {loss}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(options.out)
    tokenizer.backend_tokenizer.save(str(options.out / "tokenizer.json"), pretty=False)
    model.half().save_pretrained(options.out)
    config = ModernBertConfig.from_pretrained(options.out)
    config.dtype = torch.float32
    config.save_pretrained(options.out)
    text = README.format(
        parameters=model.num_parameters(),
        seed=options.seed,
        steps=steps,
        batch=options.batch_size,
        minutes=minutes,
        threads=options.threads,
        loss=loss,
    )
    (options.out / "README.md").write_text(text, "utf-8")
    for path in options.out.iterdir():
        path.chmod(0o644)


if __name__ == "__main__":
    main()
