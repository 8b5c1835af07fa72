"""``maskwright serve`` under load: is every answer valid, and what do constraints cost those who wait?

    python bench/serve_load.py --minutes 5 --out bench/results/TODAY-serve.json

Starts the server, with the default model, and lets ``--clients`` ask it, each one question after another, each with a schema of MaskBench
(``MASKWRIGHT_DATA``; else those of the demo).  Beside them, ``--leaving`` clients go away in the middle of an answer, and ``--hostile`` ones send bodies
that are too large, schemas and patterns that take for ever, and what is malformed.  Answers are judged by jsonschema.  Then the same without constraints.

``constrained``: all of that; ``calm``: without the hostile clients; ``free``: calm, and no schemas.  The exit status is 1 when an answer is not valid, a good
request fails, or the server is not idle and healthy in the end.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import openai
import walks

import maskwright as mw
from maskwright.generation.outputs import Output

MODES = ("constrained", "calm", "free")
START_SECONDS = 180
COMPILE_SECONDS = 2.0
"""A schema that takes longer here is none of the good ones: on a busy server it may reach the limit."""


@dataclass
class Tally:
    """What came of one mode; times in seconds."""

    latencies: list[float] = field(default_factory=list)
    first: list[float] = field(default_factory=list)
    tokens: int = 0
    valid: int = 0
    invalid: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    left: int = 0
    hostile: Counter[str] = field(default_factory=Counter)

    def report(self, seconds: float) -> dict[str, Any]:
        """As JSON."""
        return {
            "answers": len(self.latencies),
            "valid": self.valid,
            "invalid": self.invalid[:20],
            "finish_reasons": dict(self.reasons),
            "errors": dict(self.errors),
            "went_away": self.left,
            "hostile": dict(self.hostile),
            "tokens_per_second": round(self.tokens / seconds, 1),
            "answers_per_second": round(len(self.latencies) / seconds, 2),
            **{f"latency_p{share}": percentile(self.latencies, share) for share in (50, 99)},
            **{f"first_token_p{share}": percentile(self.first, share) for share in (50, 99)},
        }


def percentile(values: list[float], share: int) -> float | None:
    """In seconds, or None of nothing."""
    return round(sorted(values)[min(len(values) * share // 100, len(values) - 1)], 3) if values else None


def good_schemas(count: int, seed: int, max_tokens: int) -> list[tuple[str, Any]]:
    """Real schemas that compile, and whose shortest output fits the budget; in random order."""
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    cases = list(walks.schemas(walks.DEFAULT_DATA))
    random.Random(seed).shuffle(cases)
    found = []
    for name, schema in cases:
        try:
            # As the server does: objects have no members that the schema does not mention.
            grammar = mw.compile(
                Output(schema).source, vocabulary, limits=mw.Limits(max_seconds=COMPILE_SECONDS)
            )
        except mw.MaskwrightError:
            continue
        if len(grammar.matcher().shortest_completion_bytes()) <= max_tokens:
            found.append((name, schema))
            if len(found) == count:
                break
    return found


@contextmanager
def server(args: argparse.Namespace) -> Iterator[str]:
    """The URL of ``--url``, or of a server that is started and ended."""
    if args.url:
        yield args.url.rstrip("/")
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [
        sys.executable,
        "-m",
        "maskwright",
        "serve",
        "--port",
        str(port),
        "--log-level",
        "warning",
        *args.server,
    ]
    if args.model:
        command += ["--model", args.model]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command) as process:
        try:
            end = time.monotonic() + START_SECONDS
            while True:
                with suppress(OSError), urllib.request.urlopen(f"{url}/health", timeout=5):
                    break
                if process.poll() is not None or time.monotonic() > end:
                    raise SystemExit("the server does not start")
                time.sleep(0.5)
            yield url
        finally:
            process.terminate()


def metrics(url: str) -> dict[str, float]:
    """The server's own counts, without histograms."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=60) as answer:
        lines = [line for line in answer.read().decode().splitlines() if line.startswith("maskwright_")]
    found = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}
    return {name: value for name, value in found.items() if "_bucket" not in name and "_created" not in name}


class Load:
    """One mode."""

    def __init__(
        self, args: argparse.Namespace, url: str, model: str, schemas: list[tuple[str, Any]], mode: str
    ) -> None:
        self.args = args
        self.model = model
        self.schemas = schemas
        self.mode = mode
        self.tally = Tally()
        # Whoever is turned away comes again, as usual clients do; the limit is long, because the queue may be.
        self.client = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, timeout=900)
        self.end = 0.0

    async def run(self) -> float:
        """Let all clients ask; how long it took (seconds)."""
        began = time.monotonic()
        self.end = began + 60 * self.args.minutes
        work = [self.asking(i) for i in range(self.args.clients)]
        work += [self.leaving(i) for i in range(self.args.leaving)]
        if self.mode == "constrained":
            work += [self.hostile(i) for i in range(self.args.hostile)]
        await asyncio.gather(*work)
        await self.client.close()
        return time.monotonic() - began

    async def asking(self, number: int) -> None:
        """One client, one question after another."""
        rng = random.Random(f"{self.args.seed} {number}")
        while time.monotonic() < self.end:
            name, schema = rng.choice(self.schemas)
            try:
                await self.ask(name, schema, rng.randrange(2**31))
            except openai.APIStatusError as error:
                self.tally.errors[f"{error.status_code} {error.code}: {name}"] += 1
                await asyncio.sleep(1 if error.status_code == 429 else 0)
            except (openai.APIError, OSError) as error:
                self.tally.errors[f"{type(error).__name__}: {error}"[:200]] += 1

    async def ask(self, name: str, schema: Any, seed: int) -> None:
        began = time.perf_counter()
        text, reason, first, tokens = "", None, None, 0
        async for part in await self.stream(name, schema, seed):
            if part.usage is not None:
                tokens = part.usage.completion_tokens
            if part.choices:
                more = part.choices[0].delta.content or ""
                if more and first is None:
                    first = time.perf_counter() - began
                text += more
                reason = part.choices[0].finish_reason or reason
        tally = self.tally
        tally.latencies.append(time.perf_counter() - began)
        tally.tokens += tokens
        tally.reasons[str(reason)] += 1
        if first is not None:
            tally.first.append(first)
        if self.mode != "free":
            problem = await asyncio.to_thread(judge, schema, text)
            tally.valid += problem is None
            if problem is not None:
                tally.invalid.append(f"{name}: {problem}: {text[:200]}")

    async def stream(self, name: str, schema: Any, seed: int) -> Any:
        title = schema.get("title") if isinstance(schema, dict) else None
        options: dict[str, Any] = {}
        if self.mode != "free":
            named = {"name": "answer", "schema": schema, "strict": True}
            options["response_format"] = {"type": "json_schema", "json_schema": named}
        question = f"Write a short JSON value for: {title if isinstance(title, str) and title else name}"
        return await self.client.chat.completions.create(
            model=self.model,
            messages=[{"role": "user", "content": question}],
            max_tokens=self.args.max_tokens,
            temperature=0.7,
            seed=seed,
            stream=True,
            stream_options={"include_usage": True},
            **options,
        )

    async def leaving(self, number: int) -> None:
        """A client that goes away: at once, or after some parts."""
        rng = random.Random(f"{self.args.seed} leaving {number}")
        while time.monotonic() < self.end:
            name, schema = rng.choice(self.schemas)
            try:
                async with asyncio.timeout(rng.choice([0.05, 1.0, 30.0])):
                    stream = await self.stream(name, schema, number)
                    async for _ in stream:
                        if rng.random() < 0.2:
                            break
                    await stream.close()
            except (TimeoutError, openai.APIError, OSError):
                pass
            self.tally.left += 1
            await asyncio.sleep(rng.random())

    async def hostile(self, number: int) -> None:
        """A client that sends what no server should take."""
        rng = random.Random(f"{self.args.seed} hostile {number}")
        while time.monotonic() < self.end:
            kind, body = hostile_body(rng)
            messages = [{"role": "user", "content": "x"}]
            given = {"model": self.model, "messages": messages, "max_tokens": 64, **body}
            try:
                await self.client.post("/chat/completions", body=given, cast_to=dict)  # type: ignore[call-overload, unused-ignore]
                self.tally.hostile[f"{kind}: 200"] += 1
            except openai.APIStatusError as error:
                self.tally.hostile[f"{kind}: {error.status_code} {error.code}"] += 1
            except (openai.APIError, OSError) as error:
                self.tally.hostile[f"{kind}: {type(error).__name__}"] += 1
            await asyncio.sleep(rng.random() * 2)


def hostile_body(rng: random.Random) -> tuple[str, dict[str, Any]]:
    """What it is, and parameters; each differs, so that no cache helps."""
    mark = rng.randrange(10**9)

    def schema(value: Any) -> dict[str, Any]:
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": value}}}

    deep: Any = {"const": mark}
    for _ in range(180):
        deep = {"type": "array", "items": deep}
    branches = [
        {"properties": {f"p{mark}{i}": {"type": "integer"}}, "required": [f"p{mark}{i}"]} for i in range(2000)
    ]
    pattern = f"(?=(a|b)*a(a|b){{17}}$)(?=(a|b)*b(a|b){{16}}$)(a|b)*a(a|b){{15}}({mark})?"
    return rng.choice(
        [
            ("oversized", {"messages": [{"role": "user", "content": "x" * 6_000_000}]}),
            ("endless pattern", {"response_format": {"type": "regex", "pattern": pattern}}),
            ("thousands of branches", schema({"oneOf": branches})),
            ("deep", schema(deep)),
            ("deep beyond limits", schema(json.loads('{"items":' * 400 + "{}" + "}" * 400))),
            ("unresolved", schema({"$ref": f"http://example.org/{mark}"})),
            ("malformed", schema({"type": f"odd{mark}"})),
            ("contradictory", schema({"type": "integer", "minimum": mark + 1, "maximum": mark})),
            ("unknown parameter", {f"p{mark}": 1}),
            (
                "bad grammar",
                {"response_format": {"type": "grammar", "syntax": "lark", "grammar": f"start: a{mark}"}},
            ),
            ("too many outputs", {"n": 10**6}),
        ]
    )


def judge(schema: Any, text: str) -> str | None:
    """What is wrong with an answer; None for nothing."""
    try:
        value = json.loads(text)
    except ValueError as error:
        return f"no JSON: {error}"
    error = next(walks.validator_for(schema).iter_errors(value), None)
    return None if error is None else f"{error.json_path}: {error.message}"[:200]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--leaving", type=int, default=4)
    parser.add_argument("--hostile", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=5.0, help="of each mode")
    parser.add_argument("--schemas", type=int, default=256)
    parser.add_argument("--max-tokens", type=int, default=96)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--modes", default="constrained,calm,free", help="(default: all, in that order)")
    parser.add_argument("--model", help="default: that of maskwright serve")
    parser.add_argument("--url", help="of a server that runs already")
    parser.add_argument("--out", type=Path)
    parser.add_argument("server", nargs="*", help="options of maskwright serve, behind --")
    args = parser.parse_args(arguments)
    modes = args.modes.split(",")
    if not set(modes) <= set(MODES):
        parser.error(f"--modes are {', '.join(MODES)}")
    schemas = good_schemas(args.schemas, args.seed, args.max_tokens)
    print(f"{len(schemas)} schemas, {args.clients} clients, {os.cpu_count()} cores")
    found: dict[str, Any] = {
        "schemas": len(schemas),
        "clients": args.clients,
        "minutes": args.minutes,
        "cores": os.cpu_count(),
    }
    good = True
    with server(args) as url:
        with urllib.request.urlopen(f"{url}/v1/models") as answer:
            model = json.load(answer)["data"][0]["id"]
        for mode in modes:
            before = metrics(url)
            load = Load(args, url, model, schemas, mode)
            seconds = asyncio.run(load.run())
            report = load.tally.report(seconds)
            report["server"] = {
                name: round(value - before.get(name, 0), 3)
                for name, value in metrics(url).items()
                if value != before.get(name)
            }
            found[mode] = report
            print(json.dumps({mode: report}, indent=1))
            good = good and not load.tally.errors and not load.tally.invalid
        good = is_idle(url) and good
    found["good"] = good
    if args.out:
        args.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0 if good else 1


def is_idle(url: str, seconds: float = 30.0) -> bool:
    """Whether the server is healthy, and nothing is left of those who went away."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        counts = metrics(url)
        if not counts["maskwright_rows_running"] and not counts["maskwright_rows_waiting"]:
            with urllib.request.urlopen(f"{url}/health", timeout=10) as answer:
                return bool(answer.status == 200)
        time.sleep(0.5)
    print("rows are left in the server")
    return False


if __name__ == "__main__":
    sys.exit(main())
