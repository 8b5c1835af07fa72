"""A model seen byte by byte on real text: what pruning loses and costs, prompts that end within words, and models with other tokenizers.

    python bench/bytewise.py [--texts 40] [--out FILE]

The model is SmolLM2-135M-Instruct; the second one a bigram model of tekken tokens (131 072), counted on the pages of docs/ that the texts are not
from.  Texts are sentences of README.md, ARCHITECTURE.md and CONTRIBUTING.md.  Counts of model rows and calls are exact, seconds are those of this machine.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusion_adapt import exact_nats
from mistral_common.tokens.tokenizers.mistral import MistralTokenizer
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import maskwright as mw
from maskwright.sampling import (
    ByteModel,
    CallableModel,
    HuggingFaceModel,
    LanguageModel,
    anchored,
    mixture,
    product,
    smc,
)

ROOT = Path(__file__).resolve().parent.parent
BUDGETS = (4.0, 16.0, 64.0)
"""Nats for a text, where a model may copy."""
COOL = 0.4
"""At temperature 1, this model hardly repeats what it is told to."""
RUN = 12
"""So many characters in a row count as copied."""
CONTEXT = "A page about software for language models.\n\n"


def sentences(text: str) -> list[str]:
    """Plain prose of a page."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "")
    lines = " ".join(line for line in text.splitlines() if line and line[0] not in "|#-> ")
    return [each for each in re.split(r"(?<=[.:]) ", lines) if 50 <= len(each) <= 120]


def bigram_model(tokenizer: Tekkenizer, vocabulary: mw.Vocabulary, pages: list[str]) -> CallableModel:
    """Counts of pairs of tokens, with counts of tokens and a uniform share behind them."""
    single: Counter[int] = Counter()
    pairs: dict[int, Counter[int]] = defaultdict(Counter)
    end = vocabulary.eos_ids[0]
    for page in pages:
        for sentence in sentences(page):
            ids = [*tokenizer.encode(sentence, bos=False, eos=False), end]
            single.update(ids)
            for before, after in zip([-1, *ids], ids, strict=False):
                pairs[before][after] += 1
    size = vocabulary.vocab_size
    text = np.array([bool(data) for data in vocabulary.tokens])
    text[end] = True
    base = 0.1 * text / text.sum()
    for token, count in single.items():
        base[token] += 0.9 * count / single.total()

    def step(ids: list[int]) -> np.ndarray:
        behind = pairs.get(ids[-1] if ids else -1)
        row = base
        if behind:
            row = 0.4 * base
            for token, count in behind.items():
                row[token] += 0.6 * count / behind.total()
        return row

    def rows(prefixes: list[list[int]]) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.log([step(ids) for ids in prefixes])

    return CallableModel(rows, size, end)


def bits(model: Any, text: bytes) -> float:
    """Bits for each byte of a text."""
    state = model.state([[]])
    total = 0.0
    for byte in text:
        total += float(state.logprobs[0][byte])
        state = state.extend(np.zeros(1, dtype=np.int64), np.array([byte]))
    return -total / len(text) / np.log(2)


def pruning(tokens: HuggingFaceModel, texts: list[str]) -> dict[str, Any]:
    """Each threshold on the same texts, beside the usual spelling alone."""
    found = []
    usual = []
    for text in texts:
        ids = tokens.tokenizer(text)["input_ids"]
        state, total = tokens.state([[]]), 0.0
        for i in ids:
            total += float(state.logprobs[0][i])
            state = state.extend(np.zeros(1, dtype=np.int64), np.array([i]))
        usual.append((total, len(ids)))
    size = sum(len(text.encode()) for text in texts)
    alone = -sum(p for p, _ in usual) / size / math.log(2)
    rows = sum(n for _, n in usual) / size
    print(f"usual spelling alone: {alone:.4f} bits and {rows:.3f} tokens a byte")
    for prune in (0.01, 0.001):
        model = ByteModel(tokens, tokens.vocabulary, prune=prune)
        started = time.perf_counter()
        bounds = [model.bounds(text.encode()) for text in texts]
        row = {
            "prune": prune,
            "bits_per_byte": -sum(low for low, _ in bounds) / size / math.log(2),
            "bits_per_byte_at_least": -sum(high for _, high in bounds) / size / math.log(2),
            "rows_per_byte": model.rows / size,
            "calls_per_byte": model.calls / size,
            "ms_per_byte": (time.perf_counter() - started) / size * 1e3,
        }
        found.append(row)
        print(row)
    return {"usual_spelling": {"bits_per_byte": alone, "rows_per_byte": rows}, "pruned": found}


def healing(tokens: HuggingFaceModel, texts: list[str], seed: int = 1) -> dict[str, Any]:
    """Prompts cut anywhere: how often, and with what probability, the next byte is the right one."""
    rng = np.random.default_rng(seed)
    hits = {"healed": [0, 0.0], "as tokens": [0, 0.0]}
    places = [text.encode() for text in texts]
    for data in places:
        cut = int(rng.integers(20, len(data) - 1))
        ids = tokens.tokenizer(CONTEXT + data[:cut].decode("utf-8", "ignore"))["input_ids"]
        given, back = ids[:-3], tokens.vocabulary.decode(ids[-3:], start=False)
        for name, prompt, rest in (("healed", given, back), ("as tokens", ids, b"")):
            model = ByteModel(
                HuggingFaceModel(tokens.model, tokens.tokenizer, prompt),
                tokens.vocabulary,
                prompt=rest,
                prune=1e-3,
                start=False,
            )
            logprobs = model.next_byte_logprobs(b"")
            hits[name][0] += int(logprobs.argmax() == data[cut])
            hits[name][1] += float(logprobs[data[cut]])
    found = {}
    for name, (right, total) in hits.items():
        found[name] = {"right": right / len(places), "nats": -total / len(places)}
        print(name, found[name])
    return found


def together(first: LanguageModel, second: LanguageModel, texts: list[str]) -> dict[str, float]:
    """Bits for each byte of two models and of what is made of them."""
    made = {
        "SmolLM2": first,
        "bigrams of tekken": second,
        "mixture": mixture([first, second], weights=[0.9, 0.1]),
        "product": product([first, second], weights=[0.8, 0.2]),
    }
    found = {}
    for name, model in made.items():
        found[name] = float(np.mean([bits(model, text.encode()) for text in texts]))
        print(f"{name}: {found[name]:.3f} bits a byte")
    return found


def anchoring(strong: LanguageModel, safe: LanguageModel, length: int = 24) -> list[dict[str, Any]]:
    """Budgets: what written texts spent, and what each model thinks of them."""
    ways = {str(budget): anchored(strong, safe, budget, steps=length) for budget in (2.0, 8.0, 32.0)}
    found = []
    for budget, model in {"safe itself": safe, **ways, "strong itself": strong}.items():
        rng = np.random.default_rng(3)
        spent, by = [], []
        for _ in range(4):
            state: Any = model.state([[]])
            judges = [each.state([[]]) for each in (strong, safe)]
            logs = np.zeros(2)
            for _ in range(length):
                row = state.logprobs[0].copy()
                row[256] = -np.inf
                byte = int((row - np.log(rng.standard_exponential(257))).argmax())
                logs += [float(each.logprobs[0][byte]) for each in judges]
                step = np.zeros(1, dtype=np.int64), np.array([byte])
                state, *judges = [each.extend(*step) for each in (state, *judges)]
            if budget in ways:
                spent.append(float(state.spent[0]))
            by.append(logs / length)
        row = {
            "budget": budget,
            "spent_most": max(spent, default=None),
            "strong_nats_per_byte": -float(np.mean(by, axis=0)[0]),
            "safe_nats_per_byte": -float(np.mean(by, axis=0)[1]),
        }
        found.append(row)
        print(row)
    return found


def copied(text: str, source: str) -> float:
    """Share of the source's characters in runs of ``RUN`` and more that the text has too."""
    runs = [source[at : at + RUN] in text for at in range(len(source) - RUN + 1)]
    return sum(any(runs[max(0, at - RUN + 1) : at + 1]) for at in range(len(source))) / len(source)


def nats(model: HuggingFaceModel, ids: list[int]) -> float:
    """-log p of a token, on average."""
    with torch.no_grad():
        return exact_nats(model.model, model.prompt_ids, ids) / len(ids) if ids else 0.0


def copying(generator: mw.Generator, texts: list[str], length: int = 40) -> list[dict[str, Any]]:
    """In token form: a strong model that knows a text, as its prompt has it, near one that does not; how much is written again."""

    def asked(question: str) -> HuggingFaceModel:
        messages = [{"role": "user", "content": question}]
        prompt = generator.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        return HuggingFaceModel(generator.model, generator.tokenizer, prompt, temperature=COOL)

    rows: dict[str, list[list[float]]] = defaultdict(list)
    for number, text in enumerate(texts):
        begun = " ".join(text.split()[:3])
        strong = asked(f'A manual says: "{text}" Write the sentence that begins with "{begun}" again.')
        safe = asked(f'Write a sentence of a manual that begins with "{begun}".')
        ways = {f"{budget:g}": anchored(strong, safe, budget, steps=length) for budget in BUDGETS}
        for name, model in {"safe itself": safe, **ways, "strong itself": strong}.items():
            post = smc(model, None, 4, ess_threshold=0, max_tokens=length, seed=number)
            for ids in post.sequences:
                rows[name].append([copied(safe.decode(ids), text), nats(strong, ids), nats(safe, ids)])
    found = []
    for name, some in rows.items():
        share, by_strong, by_safe = np.mean(some, axis=0).tolist()
        found.append(
            {
                "budget": name,
                "copied": share,
                "strong_nats_per_token": by_strong,
                "safe_nats_per_token": by_safe,
            }
        )
        print(found[-1], flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    generator = mw.Generator.from_pretrained()
    tokens = HuggingFaceModel(generator.model, generator.tokenizer, CONTEXT)
    pages = [(ROOT / name).read_text("utf-8") for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")]
    texts = [each for page in pages for each in sentences(page)][: args.texts]
    tokenizer = MistralTokenizer.v3(is_tekken=True).instruct_tokenizer.tokenizer
    vocabulary = mw.Vocabulary.from_mistral_common(tokenizer)
    others = [path.read_text("utf-8") for path in sorted((ROOT / "docs").rglob("*.md"))]
    second = ByteModel(bigram_model(tokenizer, vocabulary, others), vocabulary, prune=1e-3)
    first = ByteModel(tokens, tokens.vocabulary, prune=1e-3)
    few = texts[: max(1, len(texts) // 4)]
    print(f"{len(texts)} texts, {sum(len(text.encode()) for text in texts)} bytes")
    found = {
        "texts": len(texts),
        "pruning": pruning(tokens, few),
        "healing": healing(tokens, texts),
        "together": together(first, second, few),
        "anchored": anchoring(first, second),
        "copying": copying(generator, texts),
    }
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
