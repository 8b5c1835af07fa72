"""Mask and compile times on MaskBench, side by side with peers, interleaved case by case.

For every schema and engine: first mask (compile from the schema + first mask), then for every valid
or invalid instance one mask and one accept a token, called from Python on one thread.  Instances
are tokenized once; an engine stops at the first token that it refuses.

    python bench/maskbench.py --data ../shared/data/maskbench-dev.jsonl.gz --every 10 --engines ours,llguidance

Times are in microseconds.  Results are written as JSON with machine, versions and date (``--out``).
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import json
import os
import platform
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import maskwright as mw

DEFAULT_DATA = Path(__file__).parents[2] / "shared" / "data" / "maskbench-dev.jsonl.gz"
SHARES = (0.5, 0.9, 0.99, 0.999)


class Sequence(Protocol):
    """One sequence of one engine."""

    def mask(self) -> None: ...
    def accept(self, token: int) -> bool: ...
    def complete(self) -> bool: ...


@dataclass
class Engine:
    name: str
    start: Callable[[Any], Callable[[], Sequence]]
    """Compile a schema to a factory of sequences; raises for what the engine refuses."""
    first: list[float] = field(default_factory=list)
    masks: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)


def tekken() -> tuple[Any, mw.Vocabulary, Any]:
    """(mistral-common's tokenizer, its vocabulary, the same as a Hugging Face tokenizer)."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer
    from transformers import PreTrainedTokenizerFast
    from transformers.integrations.mistral import convert_tekken_tokenizer

    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    tokenizer = Tekkenizer.from_file(path)
    converted = convert_tekken_tokenizer(str(path))
    if not isinstance(converted, PreTrainedTokenizerFast):
        converted = PreTrainedTokenizerFast(tokenizer_object=converted)
    return tokenizer, mw.Vocabulary.from_mistral_common(tokenizer), converted


# --- engines --------------------------------------------------------------------------------


def ours(vocabulary: mw.Vocabulary, _: Any) -> Engine:
    bitmask = mw.allocate_token_bitmask(1, vocabulary.size)

    class Ours:
        def __init__(self, matcher: mw.Matcher) -> None:
            self.matcher = matcher
            self.accept = matcher.accept_token

        def mask(self) -> None:
            self.matcher.fill_next_token_bitmask(bitmask, 0)

        def complete(self) -> bool:
            return self.matcher.is_accepting

    def start(schema: Any) -> Callable[[], Sequence]:
        compiled = mw.compile_json_schema(schema, vocabulary)
        return lambda: Ours(compiled.matcher())

    return Engine("ours", start)


def llguidance(vocabulary: mw.Vocabulary, hf_tokenizer: Any) -> Engine:
    import llguidance.hf
    from llguidance import LLMatcher
    from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

    tokenizer = llguidance.hf.from_tokenizer(hf_tokenizer, n_vocab=vocabulary.size)
    bitmask = allocate_token_bitmask(1, vocabulary.size)

    class Theirs:
        def __init__(self, grammar: str) -> None:
            self.matcher = LLMatcher(tokenizer, grammar, log_level=0)
            if self.matcher.is_error():
                raise ValueError(self.matcher.get_error())
            self.accept = self.matcher.consume_token

        def mask(self) -> None:
            fill_next_token_bitmask(self.matcher, bitmask, 0)

        def complete(self) -> bool:
            return self.matcher.is_accepting()

    def start(schema: Any) -> Callable[[], Sequence]:
        grammar = LLMatcher.grammar_from_json_schema(schema)
        first = Theirs(grammar)
        waiting = [first]
        return lambda: waiting.pop() if waiting else Theirs(grammar)

    return Engine("llguidance", start)


def xgrammar(vocabulary: mw.Vocabulary, hf_tokenizer: Any) -> Engine:
    import torch
    import xgrammar as xgr

    info = xgr.TokenizerInfo.from_huggingface(hf_tokenizer, vocab_size=vocabulary.size)
    compiler = xgr.GrammarCompiler(info, max_threads=1)
    bitmask = xgr.allocate_token_bitmask(1, vocabulary.size)
    torch.set_num_threads(1)

    class Theirs:
        def __init__(self, compiled: Any) -> None:
            self.matcher = xgr.GrammarMatcher(compiled, terminate_without_stop_token=False)
            self.accept = self.matcher.accept_token

        def mask(self) -> None:
            self.matcher.fill_next_token_bitmask(bitmask, 0)

        def complete(self) -> bool:
            return self.matcher.is_completed()

    def start(schema: Any) -> Callable[[], Sequence]:
        compiled = compiler.compile_json_schema(json.dumps(schema), any_whitespace=True, strict_mode=False)
        return lambda: Theirs(compiled)

    return Engine("xgrammar", start)


ENGINES = {"ours": ours, "llguidance": llguidance, "xgrammar": xgrammar}


# --- running --------------------------------------------------------------------------------


def run_case(engine: Engine, schema: Any, instances: list[tuple[list[int], bool]]) -> None:
    before = time.perf_counter()
    try:
        start = engine.start(schema)
        start().mask()
    except Exception:  # peers raise what they like
        engine.outcomes["refused"] += 1
        return
    engine.first.append(time.perf_counter() - before)
    outcome = "pass"
    for tokens, valid in instances:
        accepted = run_instance(engine, start(), tokens)
        if accepted and not valid:
            outcome = "invalid accepted"
        elif valid and not accepted and outcome == "pass":
            outcome = "valid rejected"
    engine.outcomes[outcome] += 1


def run_instance(engine: Engine, sequence: Sequence, tokens: list[int]) -> bool:
    for token in tokens:
        begun = time.perf_counter()
        sequence.mask()
        masked = time.perf_counter()
        accepted = sequence.accept(token)
        done = time.perf_counter()
        engine.masks.append(masked - begun)
        engine.steps.append(done - begun)
        if not accepted:
            return False
    return sequence.complete()


def figures(values: list[float]) -> dict[str, float]:
    """Mean, percentiles and maximum, in microseconds."""
    micro = np.asarray(values) * 1e6
    if not len(micro):
        return {}
    found = {f"p{100 * share:g}": float(np.quantile(micro, share)) for share in SHARES}
    return {"avg": float(micro.mean()), **found, "max": float(micro.max()), "count": len(micro)}


def summary(engine: Engine) -> dict[str, Any]:
    return {
        "outcomes": dict(engine.outcomes),
        "first mask": figures(engine.first),
        "mask": figures(engine.masks),
        "mask+accept": figures(engine.steps),
    }


def versions(names: list[str]) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for name in ("maskwright", "numpy", *(n for n in names if n != "ours")):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA)
    parser.add_argument("--every", type=int, default=1, help="take every n-th case")
    parser.add_argument("--engines", default="ours,llguidance", help=f"of {', '.join(ENGINES)}")
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    args = parser.parse_args()
    names = args.engines.split(",")
    tokenizer, vocabulary, hf_tokenizer = tekken()
    engines = [ENGINES[name](vocabulary, hf_tokenizer) for name in names]
    for engine in engines:
        engine.start({"type": "object"})().mask()
    with gzip.open(args.data, "rt", encoding="utf-8") as lines:
        for index, line in enumerate(lines):
            if index % args.every:
                continue
            case = json.loads(line)
            instances = []
            for test in case["tests"]:
                text = json.dumps(test["data"], ensure_ascii=False)
                instances.append((tokenizer.encode(text, bos=False, eos=False), test["valid"]))
            for engine in engines:
                run_case(engine, case["schema"], instances)
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "versions": versions(names),
        "every": args.every,
        "engines": {engine.name: summary(engine) for engine in engines},
    }
    for engine in engines:
        print(engine.name, dict(engine.outcomes))
        for what in ("first mask", "mask", "mask+accept"):
            row = results["engines"][engine.name][what]
            print(f"  {what:12}", "  ".join(f"{key} {value:.1f}" for key, value in row.items()))
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
