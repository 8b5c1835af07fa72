"""Are the distributions right, what do they cost, and how fast are particles?

    python bench/sampling.py --out bench/results/DATE-sampling.json --plot bench/results/DATE-sampling.png

Parts (``--parts``): ``distances`` to the exact posterior at equal numbers of model calls; ``calls`` of a black-box
constraint for each token; ``throughput`` of particles against plain ``generate``; ``genlm``, with
``--genlm PYTHON`` naming an interpreter that has genlm-control, the same task side by side; ``variance`` of the weights of single
draws, and their evaluations, by estimator (the table in docs/sampling.md; not by default: some minutes).
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sampling_cases import Masked, binary_strings, bracket_transformer, enumerate_target, shared_masses, tasks

import maskwright as mw
from maskwright.demo import format_prompt
from maskwright.hf import LogitsProcessor
from maskwright.sampling import (
    Asap,
    CallableModel,
    Constraint,
    GrammarConstraint,
    HuggingFaceModel,
    Posterior,
    locally_constrained,
    sample_verify,
    smc,
)
from maskwright.sampling import population as population_module
from maskwright.sampling.adaptive import awrs_table
from maskwright.sampling.order import Table

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_model import REQUESTS, TINY

SIZES = (8, 32, 128, 512, 2048)
REPEATS = 20


def distance(
    found: dict[tuple[int, ...], float], target: dict[tuple[int, ...], float]
) -> tuple[float, float]:
    """(total variation, KL(found || target)) of distributions."""
    mass = sum(target.values())
    variation = 0.5 * sum(abs(found.get(ids, 0.0) - p / mass) for ids, p in target.items())
    divergence = sum(q * math.log(q * mass / target[ids]) for ids, q in found.items())
    return variation, max(divergence, 0.0)


def samplers(
    model: CallableModel, make: Callable[[], Constraint], budget: int
) -> dict[str, Callable[[int, int], Posterior]]:
    """name -> sampler(number of texts, seed)."""
    masked = Masked(make(), model.vocab_size, model.eos_ids[0])
    return {
        "LCD": lambda n, seed: locally_constrained(model, masked, n, budget, seed),
        "sample-verify": lambda n, seed: sample_verify(model, make(), n, budget, seed),
        "ASAp": lambda n, seed: Asap(model, masked, budget, seed).sample(n),
        "exact-mask SMC": lambda n, seed: smc(model, masked, n, max_tokens=budget, seed=seed),
        "AWRS-SMC": lambda n, seed: smc(model, make(), n, max_tokens=budget, seed=seed),
    }


def measure(
    sampler: Callable[[int, int], Posterior], size: int, target: dict[tuple[int, ...], float]
) -> dict[str, float]:
    """Means over runs that get ``size`` texts."""
    found = []
    for seed in range(REPEATS):
        started = time.perf_counter()
        run = sampler(size, seed)
        seconds = time.perf_counter() - started
        model_calls = sum(len(ids) + 1 for ids in run.sequences)
        pair = (1.0, math.nan) if run.all_dead else distance(run.probabilities(), target)
        found.append((model_calls, seconds, *pair))
    names = ("model_calls", "seconds", "total_variation", "kl")
    return {"texts": size, **dict(zip(names, np.nanmean(found, axis=0).tolist(), strict=True))}


def distances() -> dict[str, Any]:
    """Every method gets as many texts; a text costs every method one model call a token."""
    results: dict[str, Any] = {}
    for name, make in {"binary": binary_strings, "brackets": bracket_transformer}.items():
        model, constraint, budget = make()
        target = enumerate_target(model, constraint(), budget)
        series = {}
        for method, sampler in samplers(model, constraint, budget).items():
            series[method] = [measure(sampler, size, target) for size in SIZES]
            print(name, method, json.dumps(series[method]))
        results[name] = {"texts": len(target), "mass": sum(target.values()), "methods": series}
    return results


def calls() -> dict[str, Any]:
    """Constraint evaluations a token: AWRS counts them, masks need one a token of the vocabulary."""
    backend = tiny_backend()
    results: dict[str, Any] = {}
    for name, (model, constraint, budget) in tasks(backend).items():
        counted: list[int] = []

        def counting(*args: Any, counted: list[int] = counted, **options: Any) -> Any:
            draws = awrs_table(*args, **options)
            counted.extend(draws.calls.tolist())
            return draws

        original = population_module.awrs_table
        population_module.awrs_table = counting
        try:
            started = time.perf_counter()
            found = smc(model, constraint, 64, max_tokens=budget, seed=1)
            seconds = time.perf_counter() - started
        finally:
            population_module.awrs_table = original
        plain = sample_verify(model, constraint, 200, budget, 1)
        share = float(np.exp(plain.log_evidence))
        results[name] = {
            "median": float(np.median(counted)),
            "mean": float(np.mean(counted)),
            "p99": float(np.percentile(counted, 99)),
            "shared_mean": found.counts.constraint_calls / max(1, found.counts.checked_draws),
            "full_mask": model.vocab_size,
            "evidence": math.exp(found.log_evidence),
            "finished": int(found.is_complete.sum()),
            "rejection_texts_per_good_one": 1 / share if share else None,
            "seconds": seconds,
        }
        print(name, results[name])
    return results


def variance(draws: int = 4000) -> dict[str, Any]:
    """Relative variance of the weight of one draw, and evaluations, by estimator; printed as a table in Markdown."""
    results: dict[str, Any] = {}
    methods = ("recursive", "geometric", "auto")
    print("| probabilities | recursive | geometric | default |\n|---|---|---|---|")
    for name, (p, good) in shared_masses().items():
        results[name] = {}
        count = min(draws, 200_000_000 // len(p))  # the geometric estimator takes memory for each
        for method in methods:
            found = awrs_table(
                Table(np.log(p)[None]),
                np.zeros(count, dtype=np.int64),
                lambda at, tokens, good=good: good[tokens],
                np.random.default_rng(7),
                method=method,
            )
            weights = np.exp(found.log_weights) / p[good].sum()
            results[name][method] = {
                "variance": float(weights.var()),
                "evaluations": float(found.calls.mean()),
            }
        cells = [
            f"{results[name][method]['variance']:.2g} / {results[name][method]['evaluations']:.3g}"
            for method in methods
        ]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)
    return results


def tiny_backend() -> HuggingFaceModel:
    case = REQUESTS["person"]
    return HuggingFaceModel(TINY, prompt=format_prompt(case["request"], case["schema"]))


def throughput(repeats: int = 7) -> dict[str, Any]:
    """Tokens a second of 64 particles under a grammar and of ``generate`` with 64 sequences, in turns.

    Every token of a text counts, EOS included.  ``generate`` runs with the same grammar's logits processor, and
    without any constraint.  The figure is the best of several turns, since other work only takes time.
    """
    backend = tiny_backend()
    schema = REQUESTS["person"]["schema"]
    grammar = mw.compile_json_schema(schema, backend.vocabulary)
    prompt = torch.tensor([backend.prompt_ids] * 64)

    def particles(threshold: float) -> Callable[[int], int]:
        def run(seed: int) -> int:
            found = smc(backend, GrammarConstraint(grammar), 64, threshold, max_tokens=200, seed=seed)
            return sum(len(ids) + 1 for ids in found.sequences)

        return run

    def generate(processors: Callable[[], list[Any]]) -> Callable[[int], int]:
        def run(seed: int) -> int:
            torch.manual_seed(seed)
            output = backend.model.generate(
                prompt,
                attention_mask=torch.ones_like(prompt),
                do_sample=True,
                top_k=0,
                top_p=1.0,
                max_new_tokens=200,
                logits_processor=processors(),
            )[:, prompt.shape[1] :]
            ends = (output == backend.eos_ids[0]).int()
            lengths = torch.where(ends.any(1), ends.argmax(1) + 1, output.shape[1])
            return int(lengths.sum())

        return run

    ways = {
        "smc, 64 particles": particles(0.5),
        "smc, never resampled": particles(0.0),
        "generate, 64 sequences": generate(list),
        "generate, with the grammar": generate(lambda: [LogitsProcessor(grammar)]),
    }
    best = dict.fromkeys(ways, 0.0)
    for seed in range(repeats):
        for name, way in ways.items():
            started = time.perf_counter()
            tokens = way(seed)
            if seed:  # the first turn warms up
                best[name] = max(best[name], tokens / (time.perf_counter() - started))
    ratio = best["smc, 64 particles"] / best["generate, 64 sequences"]
    print(best, f"ratio {ratio:.2f}")
    return {"tokens_per_second": best, "ratio": ratio, "repeats": repeats - 1}


def genlm(python: str | None) -> dict[str, Any]:
    """Black-box JSON constraint on the tiny model, 16 particles, multinomial resampling, with both libraries."""
    script = Path(__file__).with_name("sampling_genlm.py")
    results = {}
    for name, interpreter in {"maskwright": sys.executable, "genlm-control": python}.items():
        if interpreter is None:
            results[name] = None
            continue
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        if name == "genlm-control":
            environment["PYTHONPATH"] = str(Path(mw.__file__).parent.parent)
        output = subprocess.run(
            [interpreter, str(script), name], capture_output=True, text=True, env=environment, check=False
        )
        if output.returncode:
            print(output.stderr[-2000:])
            results[name] = {"error": output.stderr.strip().splitlines()[-1]}
            continue
        results[name] = json.loads(output.stdout.strip().splitlines()[-1])
        print(name, results[name])
    return results


def plot(results: dict[str, Any], path: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3, figsize=(16, 9), layout="constrained")
    for row, (name, part) in zip(axes, results["distances"].items(), strict=False):
        for method, points in part["methods"].items():
            model_calls = [point["model_calls"] for point in points]
            for axis, measure in zip(row[:2], ("total_variation", "kl"), strict=True):
                axis.loglog(model_calls, [point[measure] for point in points], "o-", label=method)
                axis.set(
                    xlabel="model calls",
                    ylabel=measure.replace("_", " "),
                    title=f"{name}: {part['texts']} texts",
                )
            row[2].loglog(
                [point["seconds"] for point in points], [point["total_variation"] for point in points], "o-"
            )
        row[2].set(xlabel="seconds", ylabel="total variation", title=f"{name}: wall time")
        row[0].legend()
    for axis in axes.flat:
        axis.grid(True, which="major", alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", default="distances,calls,throughput,genlm")
    parser.add_argument("--genlm", help="a Python interpreter that has genlm-control")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    ways: dict[str, Callable[[], dict[str, Any]]] = {
        "distances": distances,
        "calls": calls,
        "throughput": throughput,
        "genlm": lambda: genlm(options.genlm),
        "variance": variance,
    }
    results: dict[str, Any] = {
        "machine": {"python": platform.python_version(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    }
    for part in options.parts.split(","):
        results[part] = ways[part]()
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(results, indent=1) + "\n")
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
