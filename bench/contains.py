"""Texts that must contain phrases: fluency, success and rounds, against plain masking.

    python bench/contains.py --parts sentences --out bench/results/DATE-contains.json
    python bench/contains.py --parts canvases --model adapted --slots 40 --examples 143 --out bench/results/DATE-canvases-adapted.json

Parts (``--parts``): ``sentences``: the default model writes a sentence with some phrases, by greedy masking, by sampling under masks, by
``smc`` and by ``phrase_smc``; fluency is the logarithm of the text's probability under the model (temperature 1), its end included; where the
first and the last phrase end is a share of the text's characters.
``canvases``: a diffusion model (``--model``) fills held-out requests, a word of whose answer is demanded: slot by slot, in few steps, and from the
phrase outwards; fluency is the pseudo-log-likelihood of a token, each slot masked by itself, and the log-probability of a token under SmolLM2 from
left to right.  Texts are valid by the package jsonschema.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from diffusion import fields_right
from diffusion_adapt import weights_path
from diffusion_real import Models, fill, is_json_of
from diffusion_texts import held_out_requests

import maskwright as mw
from maskwright.diffusion import Schedule
from maskwright.sampling import (
    GrammarConstraint,
    HuggingFaceModel,
    Posterior,
    locally_constrained,
    phrase_smc,
    smc,
)

TASKS = [
    ("Write one sentence about a night at sea.", ["storm", "harbour"]),
    ("Write one sentence about a day at school.", ["teacher", "window"]),
    ("Write one sentence about food.", ["bread", "knife"]),
    ("Write one sentence about a journey.", ["train", "mountain"]),
    ("Write one sentence about a garden.", ["roses", "rain"]),
    ("Write one sentence about music.", ["violin", "crowd"]),
]
BATCH = 8
"""Canvases that a model is asked about in one call, where they are only measured."""
SENTENCE = mw.Regex(r"[A-Z][A-Za-z ,']*\.")


def log_probability(model: HuggingFaceModel, ids: list[int]) -> float:
    """Of a text and its end, in nats."""
    prompt = model.prompt_ids
    with torch.no_grad():
        logits = model.model(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 :]
    rows = torch.log_softmax(logits.double(), dim=-1)
    found = sum(float(rows[at, token]) for at, token in enumerate(ids))
    return found + float(torch.logsumexp(rows[len(ids), list(model.eos_ids)], dim=0))


def greedy(model: HuggingFaceModel, grammar: mw.CompiledGrammar, max_tokens: int) -> list[int]:
    """The likeliest token that the mask allows, and that leaves room for an end."""
    constraint = GrammarConstraint(grammar)
    constraint.bind(model.vocab_size, model.eos_ids)
    state, ids = model.state([[]]), []
    matcher = grammar.matcher()
    while True:
        mask = mw.allocate_token_bitmask(1, model.vocab_size)
        matcher.fill_next_token_bitmask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[: model.vocab_size].astype(bool)
        row = np.where(bits, state.logprobs[0], -np.inf)
        for token in np.argsort(-row).tolist():
            if token in model.eos_ids:
                return ids
            fork = matcher.fork()
            fork.accept_token(token)
            if len(ids) + 2 + len(fork.shortest_completion()) <= max_tokens:
                break
        matcher.accept_token(token)
        ids.append(token)
        state = state.extend(np.array([0]), np.array([token]))


def particles(
    name: str, model: HuggingFaceModel, vocabulary: mw.Vocabulary, phrases: list[str], args: Any, seed: int
) -> Posterior:
    """One run of a method with particles."""
    constraint = GrammarConstraint(mw.compile(SENTENCE & mw.Contains(phrases), vocabulary))
    if name == "sampling under masks":
        return locally_constrained(model, constraint, args.particles, args.tokens, seed)
    if name == "smc":
        return smc(model, constraint, args.particles, max_tokens=args.tokens, seed=seed)
    return phrase_smc(
        model,
        constraint,
        phrases,
        vocabulary,
        args.particles,
        boost=args.boost,
        pull=args.pull,
        max_tokens=args.tokens,
        seed=seed,
    )


def measured(
    model: HuggingFaceModel, texts: list[tuple[str, list[int], float]], phrases: list[str]
) -> dict[str, Any]:
    """Of texts (with ids, and weights that sum to one, or none)."""
    good = [(log_probability(model, ids), weight, text) for text, ids, weight in texts]
    if not good:
        return {"success": 0.0}
    ends = [[(text.index(each) + len(each)) / len(text) for each in phrases] for _, _, text in good]
    best = max(good)
    return {
        "success": sum(weight for _, weight, text in good if all(phrase in text for phrase in phrases)),
        "mean_log_probability": sum(score * weight for score, weight, _ in good),
        "best_log_probability": best[0],
        "first_phrase_ends_at": sum(min(at) * weight for at, (_, weight, _) in zip(ends, good, strict=True)),
        "last_phrase_ends_at": sum(max(at) * weight for at, (_, weight, _) in zip(ends, good, strict=True)),
        "best": best[2],
    }


def sentences(args: argparse.Namespace) -> dict[str, Any]:
    """Mean over tasks (and seeds, where there is chance)."""
    gen = mw.Generator.from_pretrained()
    vocabulary = gen.vocabulary
    rows: dict[str, list[dict[str, Any]]] = {}
    for request, phrases in TASKS[: args.tasks]:
        prompt = gen.tokenizer.apply_chat_template(
            [{"role": "user", "content": request}], add_generation_prompt=True, tokenize=False
        )
        ids = gen.tokenizer(prompt, add_special_tokens=False)["input_ids"]
        model = HuggingFaceModel(
            gen.model, gen.tokenizer, ids, eos_ids=vocabulary.eos_ids, temperature=args.temperature
        )
        grammar = mw.compile(SENTENCE & mw.Contains(phrases), vocabulary)
        started = time.perf_counter()
        found = greedy(model, grammar, args.tokens)
        seconds = time.perf_counter() - started
        row = measured(model, [(vocabulary.decode(found).decode(), found, 1.0)], phrases)
        rows.setdefault("greedy masking", []).append({**row, "seconds": seconds})
        for seed in range(args.seeds):
            for name in ("sampling under masks", "smc", "phrase_smc"):
                started = time.perf_counter()
                post = particles(name, model, vocabulary, phrases, args, seed)
                seconds = time.perf_counter() - started
                # Under masks alone every text counts the same.
                weights = post.is_complete * 1.0 if name == "sampling under masks" else post.weights
                total = max(float(weights.sum()), 1e-300)
                texts = [
                    (vocabulary.decode(ids).decode(), ids, float(weight) / total)
                    for ids, weight in zip(post.sequences, weights, strict=True)
                    if weight > 0
                ]
                row = measured(model, texts, phrases)
                rows.setdefault(name, []).append(
                    {**row, "seconds": seconds, "log_evidence": post.log_evidence}
                )
        print(request, json.dumps({name: each[-1].get("best") for name, each in rows.items()}), flush=True)
    return {"runs": rows, "means": {name: means(each) for name, each in rows.items()}}


def means(rows: list[dict[str, Any]]) -> dict[str, float]:
    """By name, the mean of the rows that have it."""
    names = dict.fromkeys(name for row in rows for name in row if not isinstance(row[name], str))
    return {name: float(np.mean([row[name] for row in rows if name in row])) for name in names}


def canvases(args: argparse.Namespace) -> dict[str, Any]:
    """Held-out requests, a word of whose answer is demanded; mean over them, and mean difference to the first way with its standard error."""
    torch.set_num_threads(1)
    models = Models(args.model, args.weights)
    rows: dict[str, list[dict[str, Any]]] = {}
    for request in held_out_requests(args.examples):
        value = json.loads(request.text)
        words = re.findall(r"\b[A-Za-z]{4,}\b", json.dumps([v for v in value.values() if isinstance(v, str)]))
        slots = 8 * (len(models.encode(request.text)) // 8 + 1)
        if not words or slots > args.slots:
            continue
        word = words[0]
        try:
            grammar = mw.compile(mw.JsonSchema(request.schema) & mw.Contains([word]), models.vocabulary)
        except mw.UnsatisfiableError:
            # The word stands in a field that has a form, such as an address, or is one of a list without it.
            continue
        model = models.model(request.before)
        for name, (schedule, anchors) in ways(slots, word).items():
            try:
                ids, calls = fill(model, grammar, [None] * slots, schedule, "exact", anchors)
            except (mw.UnsatisfiableError, mw.LimitError) as error:
                rows.setdefault(name, []).append(
                    {"success": 0.0, "error": f"{type(error).__name__}: {error}"}
                )
                continue
            text = models.text(ids)
            end = next((i for i, token in enumerate(ids) if token in model.eos_ids), len(ids))
            nats, tokens = models.nats(request.before, text)
            good = is_json_of(request.schema, text)
            right, members = fields_right(value, json.loads(text) if good else None)
            rows.setdefault(name, []).append(
                {
                    "success": float(good and word in text),
                    "rounds": calls,
                    "slots": slots,
                    "pseudo_log_likelihood_a_token": pseudo_log_likelihood(model, ids, end),
                    "judge_log_probability_a_token": -nats / tokens,
                    "fields_right": right / members,
                    "word": word,
                    "text": text,
                }
            )
        print(
            f"{slots} slots, {word}:",
            *(each[-1].get("text") for each in rows.values()),
            sep="\n  ",
            flush=True,
        )
    return {
        "requests": len(next(iter(rows.values()))),
        "means": {name: means(each) for name, each in rows.items()},
        "differences": {name: differences(each, rows["slot by slot"]) for name, each in rows.items()},
        "runs": rows,
    }


def ways(slots: int, word: str) -> dict[str, tuple[Schedule, list[str]]]:
    """Schedules and anchors: all but the first take as many model calls as it takes to halve every gap, and one."""
    few = math.ceil(math.log2(slots + 1)) + 1
    return {
        "slot by slot": (Schedule(steps=slots), []),
        "as few steps": (Schedule(steps=few), []),
        "phrase first, coarse to fine": (Schedule(score="middle"), [word]),
        "phrase first, then by confidence": (Schedule(steps=few), [word]),
    }


def differences(rows: list[dict[str, Any]], base: list[dict[str, Any]]) -> dict[str, list[float]]:
    """By measure, how much more it is than in ``base`` for the same text: the mean, and its standard error; of two texts and more."""
    found = {}
    for name in ("pseudo_log_likelihood_a_token", "judge_log_probability_a_token"):
        more = [
            row[name] - other[name]
            for row, other in zip(rows, base, strict=True)
            if name in row and name in other
        ]
        if len(more) > 1:
            found[name] = [float(np.mean(more)), float(np.std(more, ddof=1) / math.sqrt(len(more)))]
    return found


def pseudo_log_likelihood(model: Any, ids: list[int], end: int) -> float:
    """The mean over tokens of the text: its log-probability where only its slot is masked."""
    total = 0.0
    for first in range(0, end, BATCH):
        places = range(first, min(end, first + BATCH))
        found = model.logits_of([[*ids[:at], model.mask_id, *ids[at + 1 :]] for at in places])
        for at, logits in zip(places, found, strict=True):
            row = np.asarray(logits, dtype=np.float64)[at]
            total += row[ids[at]] - np.logaddexp.reduce(row)
    return total / max(1, end)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", default=["sentences", "canvases"])
    parser.add_argument("--particles", type=int, default=16)
    parser.add_argument("--tasks", type=int, default=len(TASKS))
    parser.add_argument(
        "--temperature", type=float, default=0.4, help="of the model that particles sample from"
    )
    parser.add_argument("--boost", type=float)
    parser.add_argument("--pull", type=float)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=40)
    parser.add_argument("--examples", type=int, default=60, help="held-out requests that are looked at")
    parser.add_argument("--slots", type=int, default=80, help="the most of one canvas")
    parser.add_argument(
        "--model",
        choices=("demo", "adapted"),
        default="demo",
        help="of canvases; adapted: that of diffusion_adapt.py",
    )
    parser.add_argument("--weights", type=Path, default=weights_path(), help="of the adapted model")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    result = {name: {"sentences": sentences, "canvases": canvases}[name](args) for name in args.parts}
    print(json.dumps({name: part["means"] for name, part in result.items()}, indent=1))
    result["arguments"] = {
        name: value for name, value in vars(args).items() if name not in ("out", "weights")
    }
    if args.out is not None:
        args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
