"""Answers of a real model, engines side by side on the same prompts.

    python bench/quality.py --records quality.jsonl --out bench/results/DATE-quality.json
    python bench/quality.py --records quality.jsonl --report    # of what is there so far

Every answer is one line of ``--records``, written at once; a run with the same options goes on where the last one ended.
Tasks have known answers made from a seed (``quality_tasks.py``, ``quality_programs.py``), engines are those of
``quality_engines.py``.  Columns of the table:

valid       the answer validates (jsonschema, with formats), or SQLite runs the query
fields      mean share of the expected leaves that are equal; for queries, of the rows
objects     share of answers that are right as a whole
runs, cost  of calls and queries: the share that can be executed, and the tokens spent for each right result
removed     mean over steps of the probability that the mask took from the model
tokens      of an answer, without EOS; tokens*: on the tasks that every constrained engine finished
calls, s    forward passes and seconds for one answer, prompt and compiling included
refused     tasks whose language the engine does not take, or on which it failed
escaped     characters that have an escape and need none; "blank,": blanks before commas
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import platform
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import quality_programs  # registers its kinds
import torch
from quality_engines import NAMES, PACKAGES, Engine, EngineError, Setup, make
from quality_judges import spelling
from quality_report import render, summary
from quality_tasks import KINDS, Task, make_tasks

assert quality_programs.__name__ == "quality_programs"
MODES = {"no": ["no"], "yes": ["yes"], "both": ["no", "yes"]}


def main() -> int:
    arguments = parse()
    header = {"options": comparable(arguments), "machine": machine()}
    records = read(arguments.records, header)
    engines = arguments.engines
    if not arguments.report:
        engines = run(arguments, header, records)
    done = {each["engine"] for each in records}
    engines = [name for name in engines if name in done]
    if not engines:
        print("there are no answers to report", file=sys.stderr)
        return 1
    result = summary(records, engines, arguments.base)
    print(render(result, arguments.base))
    if arguments.out:
        whole = {"date": datetime.now(UTC).date().isoformat(), **header, "base": arguments.base, **result}
        arguments.out.write_text(json.dumps(whole, indent=1) + "\n")
    return 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Answers of a real model, engines side by side.")
    parser.add_argument("--model", default=None, help="name or path; default: SmolLM2-135M-Instruct")
    parser.add_argument("--kinds", type=listed(KINDS), default=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("--engines", type=listed(NAMES), default=list(NAMES), help=", ".join(NAMES))
    parser.add_argument("--tasks-per-kind", type=int, default=6)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-tokens", type=int, default=160)
    parser.add_argument("--schema-in-prompt", choices=list(MODES), default="both")
    parser.add_argument("--threads", type=int, default=1, help="of the model")
    parser.add_argument("--records", type=Path, default=Path("quality.jsonl"))
    parser.add_argument("--report", action="store_true", help="only report what --records has")
    parser.add_argument("--base", choices=NAMES, default="maskwright", help="what differences are taken to")
    parser.add_argument("--out", type=Path, help="file for the figures (JSON)")
    return parser.parse_args()


def listed(known: Any) -> Any:
    """A parser of comma-separated names."""

    def parse(text: str) -> list[str]:
        names = [each.strip() for each in text.split(",")]
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
        return names

    return parse


def comparable(arguments: argparse.Namespace) -> dict[str, Any]:
    """The options that all records of a file share."""
    return {key: getattr(arguments, key) for key in ("model", "seed", "max_tokens")}


def machine() -> dict[str, Any]:
    packages = ["maskwright", "torch", "transformers", "jsonschema", "pydantic", *PACKAGES.values()]
    versions = {}
    for name in packages:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "cores": os.cpu_count(),
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "versions": versions,
    }


def read(path: Path, header: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a file, after its first line, the header.  A last line that is cut is left out."""
    if not path.exists():
        path.write_text(json.dumps(header) + "\n")
        return []
    first, *lines = path.read_text().splitlines()
    if json.loads(first)["options"] != header["options"]:
        raise SystemExit(f"{path} has answers for other options: {json.loads(first)['options']}")
    records = []
    for line in lines:
        try:
            records.append(json.loads(line))
        except ValueError:
            break
    path.write_text("".join(json.dumps(each) + "\n" for each in [json.loads(first), *records]))
    return records


def run(arguments: argparse.Namespace, header: dict[str, Any], records: list[dict[str, Any]]) -> list[str]:
    """Answer what has not been answered yet; the engines that took part."""
    torch.set_num_threads(arguments.threads)
    setup = load(arguments.model, arguments.max_tokens)
    engines: dict[str, Engine] = {}
    for name in arguments.engines:
        try:
            engines[name] = make(name, setup)
        except EngineError as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
    done = {(each["engine"], each["mode"], each["task"]) for each in records}
    started = time.perf_counter()
    with arguments.records.open("a") as file:
        for task, mode, name in work(arguments, list(engines)):
            if (name, mode, task.name) in done:
                continue
            record = answered(task, mode, name, engines[name])
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(
                f"{time.perf_counter() - started:6.0f} s {mode:3} {task.name:14} {name:26} "
                f"{record['fields']:.2f} {record['text'][:90]!r}",
                file=sys.stderr,
            )
    return list(engines)


def work(arguments: argparse.Namespace, engines: list[str]) -> Iterator[tuple[Task, str, str]]:
    """Task by task, so that a run that is ended has compared all engines on what it did."""
    for task in make_tasks(arguments.kinds, arguments.tasks_per_kind, arguments.seed):
        for mode in MODES[arguments.schema_in_prompt]:
            for name in engines:
                yield task, mode, name


def load(name: str | None, max_tokens: int) -> Setup:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    if name is None:
        from maskwright.generation.default_model import default_model

        name = default_model()
    model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32).eval()
    return Setup(model, AutoTokenizer.from_pretrained(name), max_tokens)


def answered(task: Task, mode: str, name: str, engine: Engine) -> dict[str, Any]:
    """One answer with what the judge says of it."""
    answer = engine.answer(task, task.messages(mode == "yes"))
    free = name == "free"
    score = task.judge(answer.text if answer.refused is None else "", free)
    spelled = spelling(answer.text) if task.language.schema is not None and not free else spelling("")
    return {
        "task": task.name,
        "kind": task.kind,
        "mode": mode,
        "engine": name,
        **answer.as_dict(),
        **{key: getattr(score, key) for key in ("valid", "fields", "whole", "executes")},
        "escaped": spelled.escaped,
        "blanks": spelled.blanks,
        "expected": task.expected,
    }


if __name__ == "__main__":
    raise SystemExit(main())
