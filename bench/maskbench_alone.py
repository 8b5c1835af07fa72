"""What one engine costs alone, in a process of its own: set-up time and peak memory.

MaskBench starts this file: ``maskbench_alone.py setup ENGINE TOKENIZER`` and ``maskbench_alone.py memory
ENGINE FOLDER``, where the folder holds the tokenizer and the cases (``Folder``).  Prints JSON.

Set-up is timed from a loaded tokenizer to an engine that can compile, imports apart.  Memory is the highest
resident size from there to the last case ("peak"), next to the size before, the highest one until it was set
up, and what is still held after the last case.  The cases are tokenized beforehand.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from maskbench_cases import Instances, run_case
from maskbench_engines import EngineError, make
from maskbench_tokenizers import TOKENIZERS, Tokenizer

import maskwright as mw

_IMPORTS = {
    "ours": ["maskwright.compiling.compiler", "maskwright.vocabulary.tokenizers.table"],
    "llguidance": ["llguidance.hf", "llguidance.numpy"],
    "xgrammar": ["torch", "xgrammar"],
    "outlines": ["numpy", "maskwright.vocabulary.vocabulary", "outlines_core"],
}
_FROM_VOCABULARY = {"ours", "outlines"}
"""These read token bytes; the others read the tokenizer as transformers has it."""


def measure_setup(engine: str, tokenizer: str) -> dict[str, dict[str, float]]:
    """Set-up without any cache on disk and, for ours, with it, in microseconds."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "MASKWRIGHT_CACHE_DIR": cache}
        found = {"cold": _run(["setup", engine, tokenizer], environment)}
        if engine == "ours":
            found["warm"] = _run(["setup", engine, tokenizer], environment)
    return found


def measure_memory(engine: str, folder: Path) -> dict[str, float]:
    """Resident sizes in MiB: before the engine is made, the highest ones, and the last."""
    return _run(["memory", engine, str(folder)], dict(os.environ))


class Folder:
    """Writes what ``measure_memory`` reads: the tokenizer, and case after case."""

    def __init__(self, path: Path, tokenizer: Tokenizer) -> None:
        self.path = path
        vocabulary = tokenizer.vocabulary()
        tokens = (list(vocabulary.tokens), vocabulary.eos_ids, vocabulary.special_ids)
        (path / "vocabulary.pickle").write_bytes(pickle.dumps(tokens))
        tokenizer.huggingface().save_pretrained(path / "huggingface")
        self.cases = (path / "cases.pickle").open("wb")

    def add(self, schema: Any, instances: Instances, not_for: set[str]) -> None:
        """One case; the engines of ``not_for`` skip it, because it takes them too long."""
        pickle.dump((schema, instances, not_for), self.cases)

    def close(self) -> None:
        self.cases.close()


def _run(arguments: list[str], environment: dict[str, str]) -> dict[str, float]:
    command = [sys.executable, __file__, *arguments]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise EngineError(f"{' '.join(arguments[:2])} ended with {done.returncode}")
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


# --- in the process of its own --------------------------------------------------------------


def _setup(engine: str, name: str) -> dict[str, float]:
    tokenizer = TOKENIZERS[name]()
    if engine not in _FROM_VOCABULARY:
        tokenizer.huggingface()
    begun = time.perf_counter()
    for module in _IMPORTS[engine]:
        importlib.import_module(module)
    imported = time.perf_counter()
    made = make(engine, tokenizer)
    ready = time.perf_counter()
    made.compile({"type": "object"} if engine != "outlines" else {"type": "boolean"})().mask()
    done = time.perf_counter()
    return {
        "import": 1e6 * (imported - begun),
        "vocabulary": 1e6 * (ready - imported),
        "first grammar": 1e6 * (done - ready),
    }


def _memory(engine: str, folder: Path) -> dict[str, float]:
    tokenizer = _load(folder)
    if engine not in _FROM_VOCABULARY:
        tokenizer.huggingface()
    for module in _IMPORTS[engine]:
        importlib.import_module(module)
    before = _reset_peak()
    made = make(engine, tokenizer)
    set_up = _peak()
    with (folder / "cases.pickle").open("rb") as file:
        while True:
            try:
                schema, instances, not_for = pickle.load(file)
            except EOFError:
                break
            if engine not in not_for:
                run_case(made, schema, instances)
    return {"before": before, "set up": set_up, "peak": _peak(), "held": _reset_peak()}


def _load(folder: Path) -> Tokenizer:
    made: list[Any] = []

    def vocabulary() -> mw.Vocabulary:
        tokens, eos_ids, special_ids = pickle.loads((folder / "vocabulary.pickle").read_bytes())
        return mw.Vocabulary.from_bytes(tokens, eos_ids, special_ids)

    def huggingface() -> Any:
        if not made:
            from transformers import PreTrainedTokenizerFast

            made.append(PreTrainedTokenizerFast.from_pretrained(folder / "huggingface"))
        return made[0]

    def encode(text: str) -> list[int]:
        raise NotImplementedError("the cases here have been tokenized")

    return Tokenizer("saved", encode, vocabulary, huggingface)


def _status(key: str) -> float | None:
    try:
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def _peak() -> float:
    # ru_maxrss starts at the peak of the process that started this one, so it is second choice.
    peak = _status("VmHWM")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 if peak is None else peak


def _reset_peak() -> float:
    """Forget the peak so far, which is of loading the tokenizer; the resident size now."""
    gc.collect()
    # What loading has freed goes back to the system; an engine that moves in there would look free of cost.
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _peak()
    return _status("VmRSS") or _peak()


if __name__ == "__main__":
    what, engine_name, where = sys.argv[1:]
    print(json.dumps(_setup(engine_name, where) if what == "setup" else _memory(engine_name, Path(where))))
