"""On a GPU: how long masks take to apply, and what a grammar costs in ``generate`` and in continuous batching, beside other engines.

    python bench/gpu.py masks [--out FILE]
    python bench/gpu.py generate [--model NAME] [--device cuda] [--dtype bfloat16] [--out FILE]

``masks``: 131 072 logits a row, random masks that allow few, half or most of the tokens.  "alone" is the kernel, with the masks on the
device: the median of what the device takes.  "from the host" begins with the masks in ordinary memory (peers: pinned) and ends when
the logits are there; "until it returns" is how long Python is kept, while the device is busy with something else.  ``generate``: texts
of ``--tokens`` tokens in batches, with and without a schema that does not let them end before; milliseconds a step.  Engines take
turns, and what is shown is the median of ``--rounds``.  Peers are left out where they are not installed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import maskwright as mw

WIDTH = 131_072
ROWS = (1, 16, 128, 512)
SHARES = {"few": 0.0005, "half": 0.5, "most": 0.97}
DTYPES = (torch.float32, torch.bfloat16)
SCHEMA = {
    "type": "array",
    "minItems": 50,
    "items": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 3, "maxLength": 20},
            "age": {"type": "integer", "minimum": 0, "maximum": 120},
            "tags": {"type": "array", "items": {"type": "string", "maxLength": 12}, "maxItems": 3},
        },
        "required": ["name", "age", "tags"],
        "additionalProperties": False,
    },
}
PROMPT = "A list of people, as JSON: "


def appliers() -> dict[str, Callable[[Any, Any], None]]:
    """By engine: logits and int32 masks, both on the device."""
    found: dict[str, Callable[[Any, Any], None]] = {"maskwright": mw.apply_token_bitmask_inplace}
    try:
        import xgrammar
    except ImportError:
        pass
    else:
        found["xgrammar"] = xgrammar.apply_token_bitmask_inplace
    try:
        import llguidance.torch
    except ImportError:
        pass
    else:
        found["llguidance"] = llguidance.torch.apply_token_bitmask_inplace
    return found


def masks_bench() -> list[dict[str, Any]]:
    engines, found = appliers(), []
    drawn = np.random.default_rng(0)
    for rows, (allowed, share), dtype in itertools.product(ROWS, SHARES.items(), DTYPES):
        bits = drawn.random((rows, WIDTH)) < share
        host = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
        logits = torch.randn((rows, WIDTH), device="cuda").to(dtype)
        for name, apply in engines.items():
            taken = _applied(apply, logits, host, name == "maskwright")
            found.append({"rows": rows, "allowed": allowed, "dtype": str(dtype), "engine": name, **taken})
            shown = ", ".join(f"{what} {value:9.1f}" for what, value in taken.items())
            print(f"{rows:4} row(s), {allowed:6} allowed, {dtype!s:15} {name:11} {shown} µs")
    return found


def _applied(apply: Any, logits: torch.Tensor, masks: np.ndarray, takes_host: bool) -> dict[str, float]:
    from triton.testing import do_bench

    # As their users hand masks over: others want them on the device, from pinned memory.
    pinned = torch.from_numpy(masks).pin_memory()
    on_device = pinned.cuda()

    def from_host() -> None:
        apply(logits, masks if takes_host else pinned.to("cuda", non_blocking=True))

    def with_wait() -> None:
        from_host()
        torch.cuda.synchronize()

    apply(logits, on_device)
    from_host()
    alone = do_bench(lambda: apply(logits, on_device), warmup=5, rep=20, return_mode="median")
    return {
        "alone": 1e3 * alone,
        "from the host": _microseconds(with_wait),
        "until it returns": _kept(from_host),
    }


def _microseconds(call: Callable[[], object], times: int = 30) -> float:
    taken = []
    for _ in range(times):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    return 1e6 * statistics.median(taken)


def _kept(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(5):
        torch.cuda.synchronize()
        torch.cuda._sleep(20_000_000)  # some 10 ms
        begun = time.perf_counter()
        call()
        taken.append(time.perf_counter() - begun)
    torch.cuda.synchronize()
    return 1e6 * statistics.median(taken)


class Run:
    """One model, and what each engine needs once."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        options = {"dtype": getattr(torch, arguments.dtype)}
        generator = mw.Generator.from_pretrained(arguments.model, **options)
        self.tokenizer, self.device, self.tokens = generator.tokenizer, arguments.device, arguments.tokens
        self.model = generator.model.to(arguments.device)
        self.vocabulary = generator.vocabulary
        self.grammar = mw.compile_json_schema(SCHEMA, self.vocabulary)
        self.prompt = self.tokenizer.encode(PROMPT)

    def processors(self) -> dict[str, Callable[[], list[Any]]]:
        from maskwright.hf import LogitsProcessor

        found: dict[str, Callable[[], list[Any]]] = {
            "none": list,
            "maskwright": lambda: [LogitsProcessor(self.grammar)],
        }
        try:
            import xgrammar
            import xgrammar.contrib.hf
        except ImportError:
            return found
        width = self.model.config.vocab_size
        info = xgrammar.TokenizerInfo.from_huggingface(self.tokenizer, vocab_size=width)
        compiled = xgrammar.GrammarCompiler(info).compile_json_schema(json.dumps(SCHEMA))
        found["xgrammar"] = lambda: [xgrammar.contrib.hf.LogitsProcessor(compiled)]
        return found

    def step(self, rows: int, processors: list[Any], is_ours: bool) -> float:
        """Milliseconds; what we wrote is checked."""
        ids = torch.tensor([self.prompt] * rows, device=self.device)
        self._wait()
        begun = time.perf_counter()
        out = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            top_k=0,
            min_new_tokens=None if processors else self.tokens,
            max_new_tokens=self.tokens,
            logits_processor=processors,
            pad_token_id=self.tokenizer.eos_token_id,
        )
        self._wait()
        taken = time.perf_counter() - begun
        assert out.shape[1] == len(self.prompt) + self.tokens, out.shape
        if is_ours:
            for row in out[:, len(self.prompt) :].tolist():
                assert self.grammar.matcher().accept_tokens(row) == self.tokens, self.tokenizer.decode(row)
        return 1e3 * taken / self.tokens

    def batching(self, requests: int, grammar: Any) -> float:
        """Continuous batching: milliseconds for a token of each request."""
        from transformers import ContinuousBatchingConfig, GenerationConfig

        from maskwright.integrations.transformers_batching import add_grammars

        manager = self.model.init_continuous_batching(
            generation_config=GenerationConfig(
                do_sample=True,
                max_new_tokens=self.tokens,
                eos_token_id=-1 if grammar is None else self.tokenizer.eos_token_id,
                pad_token_id=0,
            ),
            continuous_batching_config=ContinuousBatchingConfig(use_async_batching=False),
        )
        if grammar is not None:
            add_grammars(manager, self.vocabulary)
        manager.start()
        try:
            self._serve(manager, 2, grammar)  # graphs are recorded, and kernels compiled
            begun = time.perf_counter()
            outputs = self._serve(manager, requests, grammar)
            taken = time.perf_counter() - begun
        finally:
            manager.stop(block=True)
        for output in outputs:
            assert len(output) == self.tokens
            assert grammar is None or grammar.matcher().accept_tokens(output) == self.tokens
        return 1e3 * taken / self.tokens

    def _serve(self, manager: Any, requests: int, grammar: Any) -> list[list[int]]:
        for _ in range(requests):
            manager.add_request(self.prompt, **({} if grammar is None else {"grammar": grammar}))
        outputs: list[list[int]] = []
        while len(outputs) < requests:
            result = manager.get_result(timeout=60)
            assert result is not None and result.error is None, result
            if result.is_finished():
                outputs.append(result.generated_tokens)
        return outputs

    def _wait(self) -> None:
        if self.device != "cpu":
            torch.cuda.synchronize()


def generate_bench(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    run, found = Run(arguments), []
    engines = run.processors()
    for rows in arguments.rows:
        taken: dict[str, list[float]] = {name: [] for name in engines}
        for _ in range(arguments.rounds + 1):
            for name, processors in engines.items():
                taken[name].append(run.step(rows, processors(), name == "maskwright"))
        for name, times in taken.items():
            found.append(
                {"rows": rows, "way": "generate", "engine": name, "first": times[0], "times": times[1:]}
            )
            print(
                f"generate, {rows} row(s), {name}: first {times[0]:.2f}, then {statistics.median(times[1:]):.2f} ms a step"
            )
    for requests in arguments.requests:
        for name, grammar in (("none", None), ("maskwright", run.grammar)):
            times = [run.batching(requests, grammar) for _ in range(arguments.rounds)]
            found.append({"rows": requests, "way": "continuous batching", "engine": name, "times": times})
            print(
                f"continuous batching, {requests} request(s), {name}: {statistics.median(times):.2f} ms a step"
            )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("masks", "generate"))
    parser.add_argument("--model", help="default: SmolLM2-135M-Instruct")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 16, 64])
    parser.add_argument("--requests", type=int, nargs="*", default=[64])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    found = masks_bench() if arguments.what == "masks" else generate_bench(arguments)
    if arguments.out is not None:
        device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
        arguments.out.write_text(
            json.dumps({"device": device, "torch": torch.__version__, "found": found}, indent=1)
        )


if __name__ == "__main__":
    main()
