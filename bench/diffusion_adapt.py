"""A masked-diffusion model made of SmolLM2-135M-Instruct, in an hour on one core.

    OMP_NUM_THREADS=1 PYTHONPATH=src python bench/diffusion_adapt.py train --minutes 60
    OMP_NUM_THREADS=1 PYTHONPATH=src torchrun --nproc-per-node 2 bench/diffusion_adapt.py train --minutes 30   # on two cores
    PYTHONPATH=src python bench/diffusion_adapt.py compare --out bench/results/DATE-diffusion-real.json

As DiffuLLaMA (arXiv 2410.17891) and Dream (arXiv 2508.15487) do it: the weights of an autoregressive model, attention in both directions,
logits that stay shifted by one, and masked slots as the only targets.  Unlike there, what comes before the canvas is read from left to right as
before, as in block diffusion (arXiv 2503.09573): so it is read once for all steps of a canvas, and once for several noised copies of it in training.
Trained are low-rank updates of all matrices in the layers (LoRA, arXiv 2106.09685) and the embedding of the mask token, which is one of the
tokens that the model has no other use for.  Only these are written, as half floats: about 20 MB.

``compare`` gives nats per byte on held-out texts, so that models with other tokenizers compare: of masked-diffusion models the bound on
-log p(text) of LLaDA (arXiv 2502.09992, equation 14), of SmolLM2 itself the exact value.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch
import torch.distributed
from diffusion_texts import Text, held_out_texts, training_texts
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache

from maskwright.base.disk_cache import cache_directory
from maskwright.diffusion.adapters import HuggingFaceDiffusionModel
from maskwright.generation.default_model import default_model
from maskwright.generation.model_cache import cache_parameter

MASK_TOKEN = "<empty_output>"
RANK = 32
SCALE = 2.0
MOST_SLOTS = 96
MOST_BEFORE = 200
SPARE_SLOTS = 16
TOKENS_A_STEP = 512
COPIES = 4
"""Noised copies of a canvas that share what is before it."""


def weights_path() -> Path:
    return (cache_directory() or Path("build")) / "diffusion-smollm2-135m.safetensors"


# --- the model


class LowRank(torch.nn.Module):
    """A frozen linear layer and a trained update of rank ``RANK``."""

    def __init__(self, base: torch.nn.Linear, rank: int = RANK) -> None:
        super().__init__()
        self.base = base
        self.down = torch.nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.up = torch.nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base(x) + SCALE * torch.nn.functional.linear(
            torch.nn.functional.linear(x, self.down), self.up
        )


def targets(module: Any) -> dict[str, torch.nn.Linear]:
    """The matrices of the layers, by name."""
    return {
        name: part for name, part in module.model.layers.named_modules() if isinstance(part, torch.nn.Linear)
    }


def with_updates(module: Any) -> dict[str, torch.nn.Parameter]:
    """Put a ``LowRank`` in place of each matrix; what is trained, by name."""
    module.requires_grad_(False)
    trained = {}
    for name, base in targets(module).items():
        parent, _, leaf = name.rpartition(".")
        layer = LowRank(base)
        setattr(module.model.layers.get_submodule(parent), leaf, layer)
        trained[f"{name}.down"], trained[f"{name}.up"] = layer.down, layer.up
    embeddings = module.get_input_embeddings().weight
    trained["mask"] = torch.nn.Parameter(embeddings.mean(dim=0).clone())
    return trained


@torch.no_grad()
def add_updates(module: Any, updates: dict[str, torch.Tensor], mask_id: int) -> Any:
    """Add trained updates to the weights of a plain model."""
    for name, base in targets(module).items():
        base.weight += SCALE * updates[f"{name}.up"].float() @ updates[f"{name}.down"].float()
    module.get_input_embeddings().weight[mask_id] = updates["mask"].float()
    return module.eval()


def load(path: Path) -> tuple[Any, Any]:
    """The model with the updates of ``path``, and its tokenizer with the mask token."""
    tokenizer = AutoTokenizer.from_pretrained(default_model())
    tokenizer.mask_token = MASK_TOKEN
    module = AutoModelForCausalLM.from_pretrained(default_model(), dtype=torch.float32)
    return add_updates(module, load_file(path), tokenizer.mask_token_id), tokenizer


def infilling_model(module: Any, tokenizer: Any, before: str) -> HuggingFaceDiffusionModel:
    """A model for canvases behind a text."""
    prompt = prompt_ids(tokenizer, before)
    return HuggingFaceDiffusionModel(
        module,
        tokenizer,
        prompt=prompt,
        shift=1,
        call=Call(len(prompt)),
        causal=Call(len(prompt), causal=True),
    )


def prompt_ids(tokenizer: Any, before: str) -> list[int]:
    return [tokenizer.bos_token_id, *tokenizer.encode(before, add_special_tokens=False)[-MOST_BEFORE:]]


class Call:
    """Logits [batch, length, V] of prompts and canvases; the prompt's are left out (0), and its keys and values kept.

    ``causal``: canvases are read from left to right as well.  The last token of the prompt belongs to the canvas: its logits are those of the first slot.
    """

    def __init__(self, prompt_length: int, causal: bool = False) -> None:
        self.before = prompt_length - 1
        self.causal = causal
        self._kept: list[tuple[torch.Tensor, torch.Tensor]] | None = None

    def __call__(self, model: Any, ids: torch.Tensor) -> torch.Tensor:
        batch, length = ids.shape
        takes = cache_parameter(model) or "past_key_values"
        if self._kept is None:
            cache = DynamicCache()
            if self.before:
                model.model(input_ids=ids[:1, : self.before], **{takes: cache})
            self._kept = [(layer.keys, layer.values) for layer in cache.layers]
        past = DynamicCache()
        for index, (keys, values) in enumerate(self._kept):
            past.update(keys.expand(batch, -1, -1, -1), values.expand(batch, -1, -1, -1), index)
        logits = model(
            input_ids=ids[:, self.before :],
            attention_mask=None if self.causal else torch.zeros(batch, 1, length - self.before, length),
            position_ids=torch.arange(self.before, length)[None],
            **{takes: past},
        ).logits
        return torch.cat(
            [logits.new_zeros(1, 1, 1).expand(batch, self.before, logits.shape[-1]), logits], dim=1
        )


# --- training


def noised(rng: Random, slots: int, copy: int, copies: int) -> list[int]:
    """The slots that are masked in one of several copies: shares spread evenly, now and then in one run."""
    count = max(1, round(slots * (copy + rng.random()) / copies))
    if rng.random() < 0.25:
        start = rng.randint(0, slots - count)
        return list(range(start, start + count))
    return rng.sample(range(slots), count)


class Packed:
    """Several texts in one row: what is before each of them, and noised copies of the canvas behind it."""

    def __init__(self, mask_id: int) -> None:
        self.mask_id = mask_id
        self.ids: list[int] = []
        self.positions: list[int] = []
        self.text: list[int] = []
        self.copy: list[int] = []
        """-1: before the canvas."""
        self.places: list[int] = []
        """From which a masked slot is predicted."""
        self.answers: list[int] = []
        self.texts = 0

    def add(self, rng: Random, before: list[int], canvas: list[int]) -> None:
        kept = before[:-1]
        self._row(kept, list(range(len(kept))), -1)
        for copy in range(COPIES):
            masked = noised(rng, len(canvas), copy, COPIES)
            shown = list(canvas)
            for slot in masked:
                # The shift: the place before a slot, and the copy has one token more in front.
                self.places.append(len(self.ids) + slot)
                self.answers.append(canvas[slot])
                shown[slot] = self.mask_id
            row = [before[-1], *shown]
            self._row(row, list(range(len(kept), len(kept) + len(row))), copy)
        self.texts += 1

    def _row(self, ids: list[int], positions: list[int], copy: int) -> None:
        self.ids += ids
        self.positions += positions
        self.text += [self.texts] * len(ids)
        self.copy += [copy] * len(ids)

    def seen(self) -> torch.Tensor:
        """What each place attends to: bool [1, 1, length, length]."""
        text, copy, position = (torch.tensor(x) for x in (self.text, self.copy, self.positions))
        before = (copy[None] < 0) & (position[None] <= position[:, None])
        same = (copy[None] == copy[:, None]) & (copy[None] >= 0)
        return ((text[None] == text[:, None]) & (before | same))[None, None]


def encoded(tokenizer: Any, text: Text, rng: Random) -> tuple[list[int], list[int]] | None:
    """What is before a canvas, and its tokens, end tokens included; None when there is too much of it."""
    before, canvas = prompt_ids(tokenizer, text.before), tokenizer.encode(text.text, add_special_tokens=False)
    if text.whole:
        if len(canvas) > MOST_SLOTS - SPARE_SLOTS:
            return None
        canvas += [tokenizer.eos_token_id] * rng.randint(1, SPARE_SLOTS)
    return (before, canvas[:MOST_SLOTS]) if canvas else None


def packs(tokenizer: Any, texts: Iterator[Text], rng: Random, size: int) -> Iterator[Packed]:
    """Endless rows of about ``size`` tokens."""
    pack = Packed(tokenizer.mask_token_id)
    for text in texts:
        found = encoded(tokenizer, text, rng)
        if found is None:
            continue
        more = len(found[0]) + COPIES * (len(found[1]) + 1)
        if pack.ids and len(pack.ids) + more > size * 1.25:
            yield pack
            pack = Packed(tokenizer.mask_token_id)
        pack.add(rng, *found)


def masked_loss(module: Any, mask: torch.Tensor, pack: Packed) -> torch.Tensor:
    """The cross-entropy of masked slots, in nats a slot."""
    ids = torch.tensor([pack.ids])
    embedded = torch.where((ids == pack.mask_id)[..., None], mask, module.get_input_embeddings()(ids))
    hidden = module.model(
        inputs_embeds=embedded,
        attention_mask=torch.where(pack.seen(), 0.0, torch.finfo(torch.float32).min),
        position_ids=torch.tensor([pack.positions]),
        use_cache=False,
    ).last_hidden_state
    logits = module.lm_head(hidden[0, pack.places])
    return torch.nn.functional.cross_entropy(logits, torch.tensor(pack.answers))


def train(options: argparse.Namespace) -> None:
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        torch.distributed.init_process_group("gloo")
    rank = torch.distributed.get_rank() if world > 1 else 0
    torch.manual_seed(options.seed)
    tokenizer = AutoTokenizer.from_pretrained(default_model())
    tokenizer.mask_token = MASK_TOKEN
    module = AutoModelForCausalLM.from_pretrained(default_model(), dtype=torch.float32)
    trained = with_updates(module)
    curve: list[dict[str, Any]] = []
    if options.resume is not None:
        curve = read_curve(options.resume)
        with torch.no_grad():
            for name, one in load_file(options.resume).items():
                trained[name].copy_(one)
    print(f"{sum(one.numel() for one in trained.values()):,} trained parameters", flush=True)
    optimizer = torch.optim.AdamW(
        trained.values(), lr=options.learning_rate, betas=(0.9, 0.98), weight_decay=0.01
    )
    seed = f"{options.seed}/{rank}"
    stream = packs(tokenizer, training_texts(Random(f"train {seed}")), Random(seed), TOKENS_A_STEP)
    held = list(held_out_packs(tokenizer, 8)) if rank == 0 else []
    started, step, tokens, shown, saved = time.monotonic(), 0, 0, 0.0, 0.0
    while True:
        minutes = (time.monotonic() - started) / 60
        done = from_first(minutes / options.minutes if options.steps is None else step / options.steps, world)
        if rank == 0 and (done >= 1 or minutes - saved >= options.check_minutes or step == 0):
            saved = minutes
            losses = held_out_losses(module, trained["mask"], held)
            cpu = round(world * time.process_time() / 60, 1)
            curve.append(
                {"minutes": round(minutes, 1), "cpu minutes": cpu, "steps": step, "tokens": tokens, **losses}
            )
            print(json.dumps(curve[-1]), flush=True)
            write(trained, curve, options.weights)
        if done >= 1:
            return
        rate = (
            options.learning_rate
            * min(1.0, (step + 1) / 30)
            * max(0.03, 0.5 * (1 + math.cos(math.pi * done)))
        )
        for group in optimizer.param_groups:
            group["lr"] = rate
        pack = next(stream)
        loss = masked_loss(module, trained["mask"], pack)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        average_gradients(list(trained.values()), world)
        torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimizer.step()
        step, tokens = step + 1, tokens + world * len(pack.ids)
        shown = loss.item() if step == 1 else 0.95 * shown + 0.05 * loss.item()
        if rank == 0 and step % 20 == 0:
            print(f"step {step}  {minutes:.1f} min  {tokens} tokens  loss {shown:.4f}", flush=True)


def from_first(value: float, world: int) -> float:
    """What the first process says, so that all of them end at the same step."""
    held = torch.tensor(value)
    if world > 1:
        torch.distributed.broadcast(held, 0)
    return float(held)


def average_gradients(trained: list[torch.nn.Parameter], world: int) -> None:
    """Over all processes, in place."""
    if world > 1:
        flat = torch.cat([one.grad.flatten() for one in trained if one.grad is not None]) / world
        torch.distributed.all_reduce(flat)
        for one, part in zip(trained, flat.split([one.numel() for one in trained]), strict=True):
            one.grad = part.view_as(one)


def write(trained: dict[str, torch.nn.Parameter], curve: list[dict[str, Any]], path: Path) -> None:
    """In one step, so that a run that is ended leaves a whole file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(".new")
    save_file(
        {name: one.detach().half().contiguous() for name, one in trained.items()},
        aside,
        metadata={"curve": json.dumps(curve)},
    )
    aside.replace(path)


def read_curve(path: Path) -> list[dict[str, Any]]:
    """The looks at held-out texts while the updates of a file were trained; of each run that they went through."""
    with safe_open(path, "pt") as file:
        return list(json.loads(file.metadata()["curve"]))


def held_out_packs(tokenizer: Any, count: int) -> Iterator[tuple[str, Packed]]:
    """The same rows each time, those of one kind after another."""
    texts, rng = held_out_texts(2 * count), Random(1)
    for kind in dict.fromkeys(text.kind for text in texts):
        found = [pair for text in texts if text.kind == kind and (pair := encoded(tokenizer, text, rng))]
        for pair in found[:count]:
            pack = Packed(tokenizer.mask_token_id)
            pack.add(rng, *pair)
            yield kind, pack


@torch.no_grad()
def held_out_losses(module: Any, mask: torch.Tensor, packs: list[tuple[str, Packed]]) -> dict[str, float]:
    """Nats a masked slot, by kind of text."""
    sums: dict[str, list[float]] = {}
    for kind, pack in packs:
        sums.setdefault(kind, []).append(masked_loss(module, mask, pack).item())
    return {kind: round(sum(losses) / len(losses), 3) for kind, losses in sums.items()}


# --- comparison


def bound(model: Any, ids: list[int], samples: int, rng: Random) -> float:
    """Nats: an estimate of the bound on -log p(text), over numbers of masked slots spread evenly."""
    total = 0.0
    for sample in range(samples):
        count = max(1, math.ceil(len(ids) * (sample + rng.random()) / samples))
        masked = rng.sample(range(len(ids)), count)
        shown = [model.mask_id if slot in set(masked) else token for slot, token in enumerate(ids)]
        logits = torch.as_tensor(model.logits(shown))[masked]
        answers = torch.tensor([ids[slot] for slot in masked])
        total += len(ids) * torch.nn.functional.cross_entropy(logits, answers).item() / samples
    return total


@torch.no_grad()
def exact_nats(module: Any, before: list[int], ids: list[int]) -> float:
    """-log p of an autoregressive model."""
    logits = module(input_ids=torch.tensor([before + ids])).logits[0, len(before) - 1 : -1]
    return torch.nn.functional.cross_entropy(logits, torch.tensor(ids), reduction="sum").item()


def compare(options: argparse.Namespace) -> dict[str, Any]:
    """Nats per byte of held-out texts, the end token counted with a text that ends."""
    from transformers import AutoModelForMaskedLM

    from maskwright.demo import demo_diffusion_path
    from maskwright.demo.prompts import ANSWER_TOKEN

    adapted, tokenizer = load(options.weights)
    causal = AutoModelForCausalLM.from_pretrained(default_model(), dtype=torch.float32).eval()
    demo_tokenizer = AutoTokenizer.from_pretrained(demo_diffusion_path())
    demo = AutoModelForMaskedLM.from_pretrained(demo_diffusion_path()).eval()
    sums: dict[str, dict[str, float]] = {}
    for text in held_out_texts(options.texts):
        size = len(text.text.encode())
        of = sums.setdefault(text.kind, {"texts": 0, "bytes": 0, "demo": 0, "adapted": 0, "smollm2": 0})
        ids = tokenizer.encode(text.text, add_special_tokens=False) + [tokenizer.eos_token_id] * text.whole
        before = prompt_ids(tokenizer, text.before)
        asked = text.before.removesuffix("JSON:\n") + ANSWER_TOKEN if text.whole else text.before
        small = demo_tokenizer(text.text, add_special_tokens=False)["input_ids"]
        small += [demo_tokenizer.eos_token_id] * text.whole
        demo_model = HuggingFaceDiffusionModel(
            demo, demo_tokenizer, prompt=demo_tokenizer(asked)["input_ids"][-MOST_BEFORE:]
        )
        of["texts"] += 1
        of["bytes"] += size
        of["demo"] += bound(demo_model, small, options.samples, Random(0))
        of["adapted"] += bound(
            infilling_model(adapted, tokenizer, text.before), ids, options.samples, Random(0)
        )
        of["smollm2"] += exact_nats(causal, before, ids)
    for of in sums.values():
        for name in ("demo", "adapted", "smollm2"):
            of[name] = round(of[name] / of["bytes"], 3)
    return {"nats per byte": sums, "training": read_curve(options.weights)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    training = commands.add_parser("train")
    training.add_argument("--minutes", type=float, default=60)
    training.add_argument("--steps", type=int, help="instead of minutes")
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--resume", type=Path, help="updates to go on from")
    training.add_argument("--learning-rate", type=float, default=1.5e-3)
    training.add_argument(
        "--check-minutes", type=float, default=8, help="between two looks at held-out texts"
    )
    comparing = commands.add_parser("compare")
    comparing.add_argument("--texts", type=int, default=40, help="of each kind")
    comparing.add_argument("--samples", type=int, default=8, help="noised copies of a text")
    comparing.add_argument("--out", type=Path)
    for command in (training, comparing):
        command.add_argument("--weights", type=Path, default=weights_path())
        command.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.command == "train":
        train(options)
        return
    result = compare(options)
    print(json.dumps(result, indent=1))
    if options.out is not None:
        known = json.loads(options.out.read_text()) if options.out.exists() else {}
        options.out.write_text(json.dumps({**known, "compare": result}, indent=1) + "\n")


if __name__ == "__main__":
    main()
