"""Mask and compile times on MaskBench, side by side with peers, interleaved case by case.

For every schema and engine: first mask (compile from the schema + first mask), second (the same again from
an equal schema, at once), then for every valid or invalid instance one mask and one accept a token, called
from Python on one thread.  Instances are tokenized once; an engine stops at the first token that it refuses.
Also: set-up time of each engine (ours without and with its disk cache) and, with ``--memory``, peak memory,
each measured in a process of its own.

Python's garbage collector is on for every engine.  With ``--gc default`` whoever allocates Python objects
pays now and then for a walk through all modules that the peers have imported; ``--gc freeze`` takes what was
there before the first case out of these walks, for every engine.

    python bench/maskbench.py --data ../shared/data/maskbench-dev.jsonl.gz --every 10 --engines ours,llguidance

Times are in microseconds, memory in MiB.  Results are written as JSON with machine, versions, options and
date (``--out``) and drawn (``--plot``).  "common" holds the same figures over the cases that every engine
passes; without that, an engine that refuses hard schemas looks faster than it is.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import gzip
import importlib.metadata
import json
import os
import platform
import sys
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from maskbench_alone import Folder, measure_memory, measure_setup
from maskbench_cases import OUTCOMES, CaseResult, Instances, Isolated, Local
from maskbench_engines import ENGINES, ISOLATED, PACKAGES, EngineError, check_installed, make
from maskbench_tokenizers import TOKENIZERS, Tokenizer

import maskwright as mw

DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
SHARES = (0.5, 0.9, 0.99, 0.999)
FIGURES = {"first mask": "first", "second": "second", "mask": "masks", "mask+accept": "steps"}


@dataclass
class Case:
    schema: Any
    instances: Instances


@dataclass
class Run:
    """The cases of one engine, one after another."""

    name: str
    runner: Local | Isolated
    results: list[CaseResult] = field(default_factory=list)

    def times(self, figure: str, chosen: Sequence[int] | None = None) -> np.ndarray:
        """All times of one figure, in microseconds; ``chosen``: of these cases only."""
        gathered = array("d")
        results = self.results if chosen is None else [self.results[i] for i in chosen]
        for result in results:
            gathered.extend(getattr(result, FIGURES[figure]))
        return 1e6 * np.asarray(gathered)


class Cases:
    """Every n-th case of a file, tokenized; counts the instances that no token ids spell."""

    def __init__(self, args: argparse.Namespace, tokenizer: Tokenizer) -> None:
        self.args, self.tokenizer, self.unspelled = args, tokenizer, 0
        self.vocabulary = tokenizer.vocabulary()

    def __iter__(self) -> Iterator[Case]:
        with gzip.open(self.args.data, "rt", encoding="utf-8") as lines:
            for index, line in enumerate(lines):
                if index % self.args.every == self.args.offset % self.args.every:
                    case = json.loads(line)
                    yield Case(case["schema"], list(self._instances(case["tests"])))

    def _instances(self, tests: list[dict[str, Any]]) -> Iterator[tuple[list[int], bool]]:
        for test in tests:
            ids = self.tokenizer.spell(self.vocabulary, test["data"])
            if ids is None:
                self.unspelled += 1
            else:
                yield ids, test["valid"]


# --- running --------------------------------------------------------------------------------


def start(name: str, tokenizer: Tokenizer, args: argparse.Namespace) -> Run:
    if name in ISOLATED:
        return Run(name, Isolated(name, tokenizer.name, args.time_limit))
    engine = make(name, tokenizer)
    engine.compile({"type": "object"})().mask()
    return Run(name, Local(engine))


def run_all(runs: list[Run], cases: Cases, folder: Folder | None) -> None:
    for case in cases:
        for run in runs:
            run.results.append(run.runner.run(case.schema, case.instances))
        if folder is not None:
            too_long = {run.name for run in runs if run.results[-1].outcome == "timed out"}
            folder.add(case.schema, case.instances, too_long)


def passed_by_all(runs: list[Run]) -> list[int]:
    """The places of the cases that every engine passes."""
    outcomes = zip(*([result.outcome for result in run.results] for run in runs), strict=True)
    return [i for i, each in enumerate(outcomes) if set(each) == {"pass"}]


# --- results --------------------------------------------------------------------------------


def figures(micro: np.ndarray) -> dict[str, float]:
    """Mean, percentiles and maximum."""
    if not len(micro):
        return {}
    found = {f"p{100 * share:g}": float(np.quantile(micro, share)) for share in SHARES}
    return {"avg": float(micro.mean()), **found, "max": float(micro.max()), "count": len(micro)}


def summary(run: Run) -> dict[str, Any]:
    counted = Counter(result.outcome for result in run.results)
    return {
        "outcomes": {outcome: counted[outcome] for outcome in OUTCOMES},
        **{name: figures(run.times(name)) for name in FIGURES},
    }


def machine() -> dict[str, Any]:
    processor = platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                processor = line.split(":", 1)[1].strip()
                break
    return {"processor": processor, "cores": os.cpu_count()}


def versions(names: list[str]) -> dict[str, str]:
    found = {"python": platform.python_version(), "maskwright": mw.__version__}
    for package in ("numpy", *(PACKAGES[name] for name in names if name != "ours")):
        found[package] = importlib.metadata.version(package)
    return found


def results_of(runs: list[Run], cases: Cases, args: argparse.Namespace) -> dict[str, Any]:
    common = passed_by_all(runs)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions([run.name for run in runs]),
        "options": {
            "data": args.data.name,
            "every": args.every,
            "offset": args.offset,
            "tokenizer": args.tokenizer,
            "time limit": args.time_limit,
            "gc": args.gc,
        },
        "cases": len(runs[0].results),
        "unspelled instances": cases.unspelled,
        "engines": {run.name: summary(run) for run in runs},
        "common": {
            "cases": len(common),
            "engines": {
                run.name: {name: figures(run.times(name, common)) for name in FIGURES} for run in runs
            },
        },
    }


def show(results: dict[str, Any]) -> None:
    engines = results["engines"]
    outcomes = [o for o in OUTCOMES if any(engine["outcomes"][o] for engine in engines.values())]
    print(f"{'cases':12}", *(f"{outcome:>16}" for outcome in outcomes))
    for name, engine in engines.items():
        print(f"{name:12}", *(f"{engine['outcomes'][outcome]:16}" for outcome in outcomes))
    show_times("all cases", engines)
    if len(engines) > 1:
        show_times(f"the {results['common']['cases']} cases that all pass", results["common"]["engines"])
    for name, engine in engines.items():
        for kind, parts in engine.get("setup", {}).items():
            print(f"set-up {name}, {kind}:", ", ".join(f"{part} {us:.0f} µs" for part, us in parts.items()))
        if "memory" in engine:
            parts = engine["memory"].items()
            print(f"memory {name}:", ", ".join(f"{part} {size:.1f} MiB" for part, size in parts))


def show_times(title: str, engines: dict[str, Any]) -> None:
    print(f"\n{title}, µs")
    for figure in FIGURES:
        for name, engine in engines.items():
            row = engine[figure]
            shown = "  ".join(f"{key} {value:.1f}" for key, value in row.items() if key != "count")
            print(f"  {figure:12} {name:12} {shown or '-'}" + (f"  of {row['count']}" if row else ""))


def draw(runs: list[Run], results: dict[str, Any], path: Path) -> None:
    from plots import plot_tails

    title = f"MaskBench, {results['cases']} cases, {results['options']['tokenizer']} tokenizer"
    shown = {name: {run.name: run.times(name) for run in runs} for name in ("first mask", "mask+accept")}
    plot_tails(shown, title, path)


# --- command line ---------------------------------------------------------------------------


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="MaskBench cases, .jsonl.gz")
    parser.add_argument("--every", type=int, default=1, help="take every n-th case")
    parser.add_argument("--offset", type=int, default=0, help="begin with this case")
    parser.add_argument("--engines", default="ours,llguidance", help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--tokenizer", choices=list(TOKENIZERS), default="tekken")
    parser.add_argument("--time-limit", type=float, default=20, help="seconds a case, for outlines")
    parser.add_argument(
        "--setup", action=argparse.BooleanOptionalAction, default=True, help="measure set-up too"
    )
    parser.add_argument("--gc", choices=["default", "freeze"], default="default", help="see above")
    parser.add_argument("--memory", action="store_true", help="measure the peak memory of each engine too")
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    parser.add_argument("--plot", type=Path, help="draw first mask and mask+accept here, PNG")
    args = parser.parse_args()
    if args.every < 1 or not 0 <= args.offset < args.every:
        parser.error("--every is 1 or more, and --offset from 0 to below that")
    if not args.data.is_file():
        parser.error(f"no data at {args.data}")
    return args


def main() -> int:
    args = arguments()
    names = list(dict.fromkeys(args.engines.split(",")))
    with contextlib.ExitStack() as stack:
        try:
            for name in names:
                check_installed(name)
            setups = {name: measure_setup(name, args.tokenizer) for name in names if args.setup}
            tokenizer = TOKENIZERS[args.tokenizer]()
            runs = []
            for name in names:
                runs.append(start(name, tokenizer, args))
                stack.callback(runs[-1].runner.close)
            folder = None
            if args.memory:
                path = Path(stack.enter_context(tempfile.TemporaryDirectory()))
                folder = Folder(path, tokenizer)
            cases = Cases(args, tokenizer)
            if args.gc == "freeze":
                gc.collect()
                gc.freeze()
            run_all(runs, cases, folder)
            results = results_of(runs, cases, args)
            for name, setup in setups.items():
                results["engines"][name]["setup"] = setup
            if folder is not None:
                folder.close()
                for name in names:
                    results["engines"][name]["memory"] = measure_memory(name, folder.path)
        except EngineError as error:
            print(f"maskbench: {error}", file=sys.stderr)
            return 2
    show(results)
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=2) + "\n")
    if args.plot is not None:
        draw(runs, results, args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
