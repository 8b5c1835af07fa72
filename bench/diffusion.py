"""What does exact infilling cost, and what does it buy?  Three questions, one command each.

    PYTHONPATH=src python bench/diffusion.py quality --out bench/results/DATE-diffusion.json --plot bench/results/DATE-diffusion.png
    PYTHONPATH=src python bench/diffusion.py validity --runs 10000
    PYTHONPATH=src python bench/diffusion.py recall --cases 200

``quality``: the demo masked-diffusion model on held-out requests, without a constraint, under the criteria of IG-CD ("gaps")
and LAVE ("prefix"), and exactly: validity, fields right, texts exactly right, model calls, time of the constraint a step.
``validity``: random and adversarial logits, all schedules, dev schemas, the shipped grammars of SQL and SMILES, budget 0
included, canvases from the fewest possible slots on: anything invalid is a bug.  ``recall``: valid dev instances with slots masked; the true tokens are proposed in random order, and every
refusal is a false one; wrong tokens that are accepted are completed and validated, so a false accept would show.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from walks import DEFAULT_DATA, tekken_vocabulary, validator_for

import maskwright as mw
from maskwright.demo import demo_diffusion_path
from maskwright.diffusion import Canvas, MaskedDiffusionModel, Schedule, infill, infill_steps
from maskwright.diffusion.sets import state_sets
from maskwright.errors import LimitError, MaskwrightError, UnsatisfiableError

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_model import REQUESTS

CRITERIA = ("none", "gaps", "prefix", "exact")
TROUBLES = ("random", "end", "spaces", "flat", "peaked", "nan", "hash")
SCHEDULES = [
    Schedule(steps=1),
    Schedule(steps=4),
    Schedule(steps=64, block=8),
    Schedule(steps=32, block=16, temperature=1.0),
    Schedule(steps=6, score="random", temperature=0.5),
    Schedule(steps=12, score="entropy"),
    Schedule(steps=12, score="margin", remask=1),
    Schedule(score="left_to_right", threshold=0.05),
]


def demo_vocabulary() -> tuple[Any, mw.Vocabulary]:
    """The demo tokenizer with its mask token."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(demo_diffusion_path())
    return tokenizer, mw.Vocabulary.from_huggingface(tokenizer, vocab_size=len(tokenizer))


def percentiles(seconds: list[float]) -> dict[str, float]:
    """In microseconds."""
    values = np.percentile(seconds, [50, 90, 99]) if seconds else [0, 0, 0]
    return {name: round(1e6 * float(v), 1) for name, v in zip(("p50", "p90", "p99"), values, strict=True)}


# --- quality --------------------------------------------------------------------------------


def fields_right(expected: Any, given: Any) -> tuple[int, int]:
    """Members of the expected object with the right value, and all of them."""
    right = sum(
        isinstance(given, dict) and key in given and given[key] == value for key, value in expected.items()
    )
    return right, len(expected)


def run_quality(args: argparse.Namespace) -> dict[str, Any]:
    import torch
    from demo_data import draw
    from transformers import AutoModelForMaskedLM

    from maskwright.diffusion.adapters import HuggingFaceDiffusionModel

    torch.set_num_threads(1)
    tokenizer, vocabulary = demo_vocabulary()
    module = AutoModelForMaskedLM.from_pretrained(demo_diffusion_path()).eval()
    rng = random.Random("held-out 0")
    examples = [draw(rng, frozenset()) for _ in range(args.examples)]
    result: dict[str, Any] = {}
    cases = []
    for example in examples:
        answer = tokenizer(example.answer(), add_special_tokens=False)["input_ids"]
        slots = 8 * (len(answer) // 8 + 1)
        if slots <= 112:
            compiled = mw.compile_json_schema(example.schema, vocabulary)
            cases.append((example, slots, compiled, tokenizer(example.prompt)["input_ids"]))
    for criterion in CRITERIA:
        valid = exact = right = fields = calls = refused = proposed = 0
        constraint: list[float] = []
        first: list[float] = []
        forward: list[float] = []
        for example, slots, compiled, prompt in cases:
            model = HuggingFaceDiffusionModel(module, tokenizer, prompt=prompt)
            schedule = Schedule(steps=max(1, slots // args.slots_a_step), block=args.block)
            for step in infill_steps(
                model, compiled, [None] * slots, schedule=schedule, criterion=criterion, seed=0
            ):
                if step.number == 0:
                    first.append(step.constraint_seconds)
                    continue
                calls += 1
                refused += step.refused
                proposed += step.proposed
                constraint.append(step.constraint_seconds)
                forward.append(step.model_seconds)
            ids = [token for token in step.tokens if token >= 0]
            end = next((i for i, token in enumerate(ids) if token in model.eos_ids), len(ids))
            text = vocabulary.decode(ids[:end])
            fields += len(example.value)
            try:
                value = json.loads(text)
                validator_for(example.schema).validate(value)
            except (ValueError, jsonschema.ValidationError):
                continue
            valid += 1
            exact += value == example.value
            right += fields_right(example.value, value)[0]
        result[criterion] = {
            "texts": len(cases),
            "valid": valid / len(cases),
            "exact": exact / len(cases),
            "fields_right": right / fields,
            "model_calls": calls / len(cases),
            "refused_a_proposal": refused / max(1, proposed),
            "constraint_us": percentiles(constraint),
            "constraint_us_mean": round(1e6 * float(np.mean(constraint)), 1),
            "first_us": percentiles(first),
            "forward_us": percentiles(forward),
            "constraint_share_of_forward": float(np.sum(constraint) / np.sum(forward)),
            "constraint_share_of_forward_median": float(np.median(constraint) / np.median(forward)),
        }
        print(criterion, json.dumps(result[criterion]), flush=True)
    return result


# --- validity -------------------------------------------------------------------------------


class Adversary(MaskedDiffusionModel):
    """Logits that follow no rule, or a bad one."""

    def __init__(self, vocabulary: mw.Vocabulary, mask_id: int, trouble: str, seed: int) -> None:
        self.mask_id = mask_id
        self.eos_ids = list(vocabulary.eos_ids)
        self.trouble = trouble
        self.rng = np.random.default_rng(seed)
        self.size = vocabulary.vocab_size
        self.spaces = [i for i, data in enumerate(vocabulary.tokens) if data.isspace()]

    def logits(self, canvas: list[int]) -> Any:
        rng = self.rng
        if self.trouble == "hash":
            rng = np.random.default_rng(abs(hash(tuple(canvas))))
        out = rng.standard_normal((len(canvas), self.size), dtype=np.float32)
        if self.trouble == "end":
            out[:, self.eos_ids] = 20
        elif self.trouble == "spaces":
            out[:, self.spaces] = 20
        elif self.trouble == "flat":
            out[:] = 0
        elif self.trouble == "peaked":
            out *= 1e6
        elif self.trouble == "nan":
            out[::2] = np.nan
            out[1::2] = -np.inf
        return out


def dev_cases(rng: random.Random, path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path) as file:
        lines = list(file)
    rng.shuffle(lines)
    yield from map(json.loads, lines)


SHIPPED = ("smiles", "sql")
MOST_SLOTS = 48


@dataclass
class Case:
    """A grammar, what judges its texts, and the fewest slots that hold one."""

    name: str
    judge: Callable[[str], str]
    """"valid" or "invalid"; "disputed": the engine says valid, byte for byte, and another implementation invalid."""
    grammar: mw.CompiledGrammar
    fewest: int = 0


BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def accepts(grammar: mw.CompiledGrammar, text: str) -> bool:
    """By the engine, byte for byte."""
    matcher = grammar.matcher()
    data = list(text.encode())
    return matcher.accept_tokens(data) == len(data) and matcher.is_accepting


def judge_json(schema: Any) -> Callable[[str], str]:
    """By the package jsonschema, whose patterns are Python's."""
    validator = validator_for(schema)

    def judge(text: str) -> str:
        try:
            value = json.loads(text)
        except ValueError:
            return "invalid"
        try:
            if validator.is_valid(value):
                return "valid"
            return "disputed" if accepts(mw.compile_json_schema(schema, BYTES), text) else "invalid"
        except Exception as error:
            print(f"  not judged: {type(error).__name__}", flush=True)
            return "valid"

    return judge


def judge_lark(source: mw.Lark) -> Callable[[str], str]:
    """By the engine byte for byte (longest match), and by the package lark (Earley)."""
    import lark

    parser = lark.Lark(source.text, parser="earley")
    by_bytes = mw.compile(source, BYTES)

    def judge(text: str) -> str:
        if not accepts(by_bytes, text):
            return "invalid"
        try:
            parser.parse(text)
        except lark.exceptions.LarkError:
            return "disputed"
        return "valid"

    return judge


def fewest_slots(grammar: mw.CompiledGrammar) -> int:
    """The length of the shortest canvas that can be filled; 0 when it is longer than ``MOST_SLOTS``."""
    text = state_sets(grammar).shortest_completion(state_sets(grammar).start)
    if text is None or len(text) > MOST_SLOTS:
        return 0
    fewest = max(1, len(text))
    while fewest > 1:
        try:
            Canvas(grammar, [None] * (fewest - 1))
        except UnsatisfiableError:
            break
        fewest -= 1
    return fewest


def grammars(args: argparse.Namespace, vocabulary: mw.Vocabulary) -> list[Case]:
    """Demo schemas, dev schemas and shipped grammars that have a text for a canvas of ``MOST_SLOTS`` slots."""
    found = [(name, case["schema"]) for name, case in REQUESTS.items()]
    if args.data.exists():
        rng = random.Random(args.seed)
        found += [
            (case["id"], case["schema"])
            for case, _ in zip(dev_cases(rng, args.data), range(args.schemas), strict=False)
        ]
    out = []
    for name, schema in found:
        with contextlib.suppress(MaskwrightError):
            out.append(Case(name, judge_json(schema), mw.compile_json_schema(schema, vocabulary)))
    for name in SHIPPED:
        source = mw.shipped_grammar(name)
        # As often as fifty schemas.
        out += [Case(name, judge_lark(source), mw.compile(source, vocabulary))] * 50
    return out


def run_validity(args: argparse.Namespace) -> dict[str, Any]:
    """Each run has its own seed; ``--log`` keeps one line a run, from which an interrupted bench goes on."""
    _, vocabulary = demo_vocabulary()
    mask_id = max(vocabulary.special_ids)
    cases = grammars(args, vocabulary)
    rows = []
    if args.log is not None and args.log.exists():
        rows = [json.loads(line) for line in args.log.read_text().splitlines()]
    started = time.perf_counter()
    while len(rows) < args.runs and time.perf_counter() - started < 60 * args.minutes:
        rng = random.Random(f"{args.seed} {len(rows)}")
        row = one_run(rng, rng.choice(cases), vocabulary, mask_id)
        rows.append(row)
        if row["outcome"] in ("invalid", "disputed"):
            print(row["outcome"].upper(), len(rows) - 1, json.dumps(row), flush=True)
        if args.log is not None:
            with args.log.open("a") as file:
                file.write(json.dumps(row) + "\n")
        if len(rows) % 500 == 0:
            print(f"{len(rows)} runs, {time.perf_counter() - started:.0f} s", flush=True)
    done = [row for row in rows if row["outcome"] in ("valid", "invalid", "disputed")]
    return {
        "runs": len(done),
        "invalid": [row for row in done if row["outcome"] == "invalid"],
        "disputed": [row for row in done if row["outcome"] == "disputed"],
        "longer_than_the_canvas": sum(row["outcome"] == "none" for row in rows),
        "limits": sum(row["outcome"] == "limit" for row in rows),
        "minimal_canvases": sum(row["spare"] == 0 for row in done),
        "grammars": len({row["name"] for row in done}),
        "shipped": {name: sum(row["name"] == name for row in done) for name in SHIPPED},
        "budget_0": sum(row["budget"] == 0 for row in done),
    }


def one_run(rng: random.Random, case: Case, vocabulary: mw.Vocabulary, mask_id: int) -> dict[str, Any]:
    """Fill one canvas and judge it; a canvas with one slot fewer than the fewest must be refused."""
    schedule = replace(
        rng.choice(SCHEDULES),
        temperature=rng.choice((0.0, 0.0, 0.3, 1.0, 2.0)),
        block=rng.choice((None, None, 1, 4, 8, 16)),
    )
    model = Adversary(vocabulary, mask_id, rng.choice(TROUBLES), rng.randrange(2**32))
    budget = rng.choice((0, 200, 4_000))
    spare = rng.choice((0, 0, 1, 2, 4, 8, 16, 24))
    seed = rng.randrange(2**32)
    row = {"name": case.name, "trouble": model.trouble, "budget": budget, "spare": spare, "outcome": "valid"}
    try:
        if case.fewest == 0:
            case.fewest = fewest_slots(case.grammar) or -1
        if case.fewest < 0:
            return {**row, "outcome": "none"}
        slots = case.fewest + spare
        ids = infill(model, case.grammar, [None] * slots, schedule=schedule, search_budget=budget, seed=seed)
    except LimitError as error:
        # Before the first model call: the limits of the grammar.
        return {**row, "outcome": "limit", "why": str(error)}
    if spare == 0 and slots > 1:
        with contextlib.suppress(UnsatisfiableError):
            infill(model, case.grammar, [None] * (slots - 1), schedule=schedule, search_budget=budget)
            return {**row, "outcome": "invalid", "why": "one slot fewer was filled"}
    end = next((i for i, token in enumerate(ids) if token in model.eos_ids), len(ids))
    text = vocabulary.decode(ids[:end]).decode("utf-8", "replace")
    outcome = case.judge(text)
    if len(ids) != slots or any(token not in model.eos_ids for token in ids[end:]):
        outcome = "invalid"
    return row if outcome == "valid" else {**row, "outcome": outcome, "text": text, "schedule": str(schedule)}


# --- recall ---------------------------------------------------------------------------------


def run_recall(args: argparse.Namespace) -> dict[str, Any]:
    if args.tokenizer == "tekken":
        import mistral_common
        from mistral_common.tokens.tokenizers.tekken import Tekkenizer

        vocabulary = tekken_vocabulary()
        path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
        tekken = Tekkenizer.from_file(path)
        encode = lambda text: tekken.encode(text, bos=False, eos=False)  # noqa: E731
    else:
        tokenizer, vocabulary = demo_vocabulary()
        encode = lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]  # noqa: E731
    rng = random.Random(args.seed)
    texts_ids = [i for i, data in enumerate(vocabulary.tokens) if data]
    counts = {"cases": 0, "proposals": 0, "false_refusals": 0, "undecided": 0}
    counts |= {"canvases_lost": 0, "slots_lost": 0}
    wrong = {"proposals": 0, "accepted": 0, "false_accepts": 0}
    first: list[float] = []
    each: list[float] = []
    for case in dev_cases(rng, args.data):
        if counts["cases"] >= args.cases:
            break
        texts = [test["data"] for test in case["tests"] if test["valid"]]
        if not texts:
            continue
        ids = encode(json.dumps(rng.choice(texts), ensure_ascii=False))
        if not 5 <= len(ids) <= args.longest:
            continue
        try:
            compiled = mw.compile_json_schema(case["schema"], vocabulary)
        except MaskwrightError:
            continue
        matcher = compiled.matcher()
        if matcher.accept_tokens(ids) < len(ids) or not matcher.is_accepting:
            continue
        counts["cases"] += 1
        share = rng.choice((0.1, 0.3, 0.5, 0.8))
        masked = [i for i in range(len(ids)) if rng.random() < share] or [0]
        slots = [None if i in set(masked) else token for i, token in enumerate(ids)]
        rng.shuffle(masked)
        started = time.perf_counter()
        try:
            canvas = Canvas(compiled, [*slots, vocabulary.eos_ids[0]])
        except MaskwrightError as error:
            counts["canvases_lost"] += 1
            counts["slots_lost"] += len(masked)
            print(f"  {case['id']}: {type(error).__name__}: {error}", flush=True)
            continue
        first.append(time.perf_counter() - started)
        counts["proposals"] += len(masked)
        for position in masked:
            # A wrong token first: accepted only when the rest can be completed.
            guess = rng.choice(texts_ids)
            if guess != ids[position]:
                wrong["proposals"] += 1
                if canvas.try_commit(position, guess):
                    wrong["accepted"] += 1
                    witness = [token for token in canvas.witness() if token not in vocabulary.eos_ids]
                    again = compiled.matcher()
                    good = again.accept_tokens(witness) == len(witness) and again.is_accepting
                    wrong["false_accepts"] += not good
                    canvas.uncommit([position])
            undecided = canvas.undecided
            started = time.perf_counter()
            if not canvas.try_commit(position, ids[position]):
                counts["false_refusals"] += 1
                counts["undecided"] += canvas.undecided - undecided
            each.append(time.perf_counter() - started)
        if counts["cases"] % 10 == 0:
            print(counts, wrong, percentiles(first), percentiles(each), flush=True)
    return {
        **counts,
        "false_refusal_rate": counts["false_refusals"] / max(1, counts["proposals"]),
        "wrong": wrong,
        "first_us": percentiles(first),
        "proposal_us": percentiles(each),
        "tokenizer": args.tokenizer,
    }


# --- output ---------------------------------------------------------------------------------


def plot(result: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = {
        "none": "no constraint",
        "gaps": "IG-CD criterion",
        "prefix": "LAVE criterion",
        "exact": "exact (ours)",
    }
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    width = 0.27
    for k, measure in enumerate(("valid", "fields_right", "exact")):
        left.bar(
            np.arange(len(CRITERIA)) + (k - 1) * width,
            [100 * result[c][measure] for c in CRITERIA],
            width,
            label=measure.replace("_", " "),
        )
    left.set_xticks(range(len(CRITERIA)), [names[c] for c in CRITERIA])
    left.set_ylabel("share (%)")
    left.legend()
    right.bar(range(len(CRITERIA)), [result[c]["constraint_us"]["p50"] for c in CRITERIA], color="tab:green")
    right.set_xticks(range(len(CRITERIA)), [names[c] for c in CRITERIA])
    right.set_ylabel("constraint a step, median (µs)")
    right.set_yscale("log")
    right.axhline(
        result["exact"]["forward_us"]["p50"],
        color="gray",
        linestyle="--",
        label="one forward pass of the model",
    )
    right.legend()
    figure.suptitle("Infilling with the demo masked-diffusion model, held-out requests")
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    quality = commands.add_parser("quality")
    quality.add_argument("--examples", type=int, default=100)
    quality.add_argument("--slots-a-step", type=int, default=2)
    quality.add_argument("--block", type=int, default=None)
    quality.add_argument("--plot", type=Path)
    validity = commands.add_parser("validity")
    validity.add_argument("--runs", type=int, default=10_000)
    validity.add_argument("--minutes", type=float, default=600, help="stop after so many")
    validity.add_argument("--log", type=Path, help="a line a run; go on from there")
    validity.add_argument("--schemas", type=int, default=300, help="dev schemas")
    recall = commands.add_parser("recall")
    recall.add_argument("--cases", type=int, default=200)
    recall.add_argument("--longest", type=int, default=300, help="tokens of an instance")
    recall.add_argument("--tokenizer", choices=("demo", "tekken"), default="demo")
    for command in (quality, validity, recall):
        command.add_argument("--out", type=Path)
        command.add_argument("--seed", type=int, default=0)
        command.add_argument("--data", type=Path, default=DEFAULT_DATA)
    args = parser.parse_args()
    result = {"quality": run_quality, "validity": run_validity, "recall": run_recall}[args.command](args)
    print(json.dumps(result, indent=1))
    if args.out is not None:
        known = json.loads(args.out.read_text()) if args.out.exists() else {}
        args.out.write_text(json.dumps({**known, args.command: result}, indent=1) + "\n")
    if args.command == "quality" and args.plot is not None:
        plot(result, args.plot)
    return 1 if result.get("invalid") else 0


if __name__ == "__main__":
    sys.exit(main())
