"""vLLM with maskwright and with its own back-ends: what each makes of real schemas, and tokens a second beside no constraint.

    make test-vllm       # once, for the environment
    build/vllm-env/bin/python bench/vllm_backends.py --out bench/results/TODAY-vllm.json

First, many schemas at once, each its own, are asked of each back-end.  An output *works* when it ended and is valid (judge: jsonschema)
or was cut off at the limit of tokens; it is *wrong* when it ended and is not valid; else the request was *refused* or failed.
A back-end whose engine dies, or is not done in ``--patience`` seconds, is out, as is one that did nothing of all that.

Then come runs over schemas that all of those left accept, others in each run; back-ends take turns.  Who accepts them was asked before, so
they are compiled already, and what counts is masks.  Each time, the same prompts follow without a constraint and with the same numbers of tokens,
in the same engine: the ratio of the two is what a back-end costs.  The engines stay up all the time, each in a process of its own: some 3 GB each.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import random
import selectors
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jsonschema

DATA = Path(os.environ.get("MASKWRIGHT_DATA", Path(__file__).parents[2] / "shared" / "data"))
BACKENDS = ("maskwright", "guidance", "xgrammar", "outlines", "lm-format-enforcer")
PROMPT = "A short example in JSON: "
Request = dict[str, Any]
Answer = dict[str, Any]


def real_schemas(seed: int) -> Iterator[Any]:
    """MaskBench's, in random order: those that are no longer than four thousand characters with their instances."""
    with gzip.open(DATA / "maskbench-dev.jsonl.gz", "rt", encoding="utf-8") as lines:
        short = [line for line in lines if len(line) < 4000]
    random.Random(seed).shuffle(short)
    for line in short:
        yield json.loads(line)["schema"]


def is_valid(schema: Any, text: str) -> bool:
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind(schema).validate(json.loads(text))
    except (ValueError, jsonschema.ValidationError):
        return False
    return True


# --- an engine in a process of its own: a line of requests in, a line of answers out


def work(backend: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "1")
    from vllm import LLM

    from maskwright.generation.default_model import default_model
    from maskwright.integrations import vllm as plugin

    if backend == plugin.NAME:
        plugin.register()
    llm = LLM(
        default_model(),
        dtype="float32",
        enforce_eager=True,
        max_model_len=512,
        disable_log_stats=True,
        structured_outputs_config={"backend": backend},
    )
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answered(llm.llm_engine, json.loads(line))), file=answers, flush=True)
    llm.llm_engine.engine_core.shutdown()


def answered(engine: Any, requests: list[Request]) -> dict[str, Any]:
    from vllm import SamplingParams
    from vllm.sampling_params import StructuredOutputsParams

    answers: list[Answer] = [{} for _ in requests]
    begin = time.perf_counter()
    for i, request in enumerate(requests):
        schema = request.pop("schema", None)
        structured = None if schema is None else StructuredOutputsParams(json=schema)
        params = SamplingParams(structured_outputs=structured, temperature=0.7, **request)
        try:
            engine.add_request(str(i), PROMPT, params)
        except Exception as error:
            answers[i] = {"refused": f"{type(error).__name__}: {error}"[:300]}
    while engine.has_unfinished_requests():
        for output in engine.step():
            if output.finished:
                (one,) = output.outputs
                answers[int(output.request_id.partition("-")[0])] = {
                    "text": one.text,
                    "tokens": len(one.token_ids),
                    "finish": one.finish_reason,
                }
    return {"seconds": time.perf_counter() - begin, "answers": answers}


class Engine:
    """One that can be asked, until it dies or is too slow."""

    def __init__(self, backend: str, patience: float) -> None:
        self.backend = backend
        self.patience = patience
        self.log = Path(f"vllm-{backend}.log")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, __file__, "--work", backend],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.read()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self.process.stdout, selectors.EVENT_READ)
            line = self.process.stdout.readline() if ready.select(self.patience) else ""
        if not line:
            self.close()
            raise OutError(f"no answer in {self.patience:.0f} s, or the engine died: see {self.log}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def ask(self, requests: list[Request]) -> tuple[float, list[Answer]]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(requests) + "\n")
        self.process.stdin.flush()
        found = self.read()
        return found["seconds"], found["answers"]

    def close(self) -> None:
        """End it; it ends the processes that it began, if it still can."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class OutError(Exception):
    """A back-end that is out."""


# --- what is asked


def judged(schema: Any, answer: Answer) -> str:
    if "refused" in answer:
        return "refused"
    if answer["finish"] == "length":
        return "cut off"
    if answer["finish"] != "stop":
        return "failed"
    return "valid" if is_valid(schema, answer["text"]) else "wrong"


def constrained(schemas: list[Any], tokens: int) -> list[Request]:
    return [{"schema": schema, "seed": i, "max_tokens": tokens} for i, schema in enumerate(schemas)]


def free(answers: list[Answer]) -> list[Request]:
    """As many tokens each, without a constraint."""
    return [
        {"seed": i, "max_tokens": answer["tokens"], "min_tokens": answer["tokens"], "ignore_eos": True}
        for i, answer in enumerate(answers)
    ]


def at_once(engines: dict[str, Engine], schemas: list[Any], tokens: int) -> dict[str, Any]:
    """One batch of different schemas for each back-end; those that are out are taken from the engines."""
    table: dict[str, Any] = {}
    print(f"{len(schemas)} schemas at once:")
    for backend in list(engines):
        try:
            seconds, answers = engines[backend].ask(constrained(schemas, tokens))
        except OutError as error:
            del engines[backend]
            table[backend] = {"out": str(error)}
            print(f"  {backend:20} out: {error}")
            continue
        kinds = [judged(schema, answer) for schema, answer in zip(schemas, answers, strict=True)]
        row: dict[str, Any] = {
            kind: kinds.count(kind) for kind in ("valid", "cut off", "wrong", "refused", "failed")
        }
        row["works"] = row["valid"] + row["cut off"]
        row["seconds"] = round(seconds, 1)
        row["messages"] = sorted({answer["refused"] for answer in answers if "refused" in answer})[:5]
        table[backend] = row
        print(f"  {backend:20} " + ", ".join(f"{name} {row[name]}" for name in row if name != "messages"))
    return table


def accepted_by_all(engines: dict[str, Engine], schemas: Iterator[Any], count: int) -> Iterator[list[Any]]:
    """Batches of schemas that no back-end refuses, of which it has written one token."""
    ready: list[Any] = []
    while True:
        some = [schema for schema, _ in zip(schemas, range(count), strict=False)]
        if not some:
            return
        good = set(range(len(some)))
        for engine in engines.values():
            _, answers = engine.ask(constrained(some, 1))
            good &= {i for i, answer in enumerate(answers) if answer.get("finish") in ("length", "stop")}
        ready += [some[i] for i in sorted(good)]
        while len(ready) >= count:
            yield ready[:count]
            del ready[:count]


def turns(engines: dict[str, Engine], batches: Iterator[list[Any]], runs: int, tokens: int) -> dict[str, Any]:
    ratios: dict[str, list[float]] = {backend: [] for backend in engines}
    speeds: dict[str, list[float]] = {backend: [] for backend in engines}
    for run in range(runs):
        schemas = next(batches)
        order = list(engines)
        for backend in order[run % len(order) :] + order[: run % len(order)]:
            seconds, answers = engines[backend].ask(constrained(schemas, tokens))
            alone, _ = engines[backend].ask(free(answers))
            written = sum(answer["tokens"] for answer in answers)
            ratios[backend].append(alone / seconds)
            speeds[backend].append(written / seconds)
            print(
                f"  run {run}: {backend:20} {written / seconds:7.1f} tokens/s, {alone / seconds:.3f} of those without a constraint",
                flush=True,
            )
    table = {
        backend: {
            "ratio": round(statistics.median(ratios[backend]), 3),
            "ratios": [round(ratio, 3) for ratio in ratios[backend]],
            "tokens_per_second": round(statistics.median(speeds[backend]), 1),
        }
        for backend in engines
    }
    for backend, row in table.items():
        print(f"  {backend:20} median: {row['tokens_per_second']} tokens/s, {row['ratio']} of no constraint")
    return table


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--work", help=argparse.SUPPRESS)
    parser.add_argument("--backends", nargs="+", default=list(BACKENDS), choices=BACKENDS)
    parser.add_argument("--schemas", type=int, default=64, help="in one batch")
    parser.add_argument("--tokens", type=int, default=200, help="of an output, at most")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--run-tokens", type=int, default=60, help="of an output in these, at most")
    parser.add_argument("--patience", type=float, default=300, help="seconds for one batch")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.work:
        work(args.work)
        return
    schemas = real_schemas(args.seed)
    engines = {backend: Engine(backend, args.patience) for backend in args.backends}
    found: dict[str, Any] = {"date": datetime.now(UTC).isoformat(timespec="seconds"), **vars(args), "out": ""}
    try:
        some = [next(schemas) for _ in range(args.schemas)]
        found["at once"] = at_once(engines, some, args.tokens)
        if args.runs:
            for backend, row in found["at once"].items():
                if backend in engines and not row["works"]:
                    engines.pop(backend).close()
            batches = accepted_by_all(engines, schemas, args.schemas)
            found["turns"] = turns(engines, batches, args.runs, args.run_tokens)
    finally:
        for engine in engines.values():
            engine.close()
    if args.out:
        args.out.write_text(json.dumps(found, indent=1, default=str) + "\n")


if __name__ == "__main__":
    main()
