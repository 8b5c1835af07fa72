"""One MaskBench case with one engine: the outcome and the times, here or in a process of its own."""

from __future__ import annotations

import copy
import multiprocessing
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from maskbench_engines import Engine, EngineError, Sequence, make
from maskbench_tokenizers import TOKENIZERS

Instances = list[tuple[list[int], bool]]
"""Token ids, and whether the schema allows what they spell."""

OUTCOMES = ("pass", "refused", "valid rejected", "invalid accepted", "failed", "timed out")
"""``refused``: at compiling.  ``failed``: an error after that.  A case with both wrong answers is one of
``invalid accepted``."""


@dataclass
class CaseResult:
    """Times in seconds, one a token in ``masks`` and ``steps`` (mask and accept)."""

    outcome: str
    first: array[float] = field(default_factory=lambda: array("d"))
    second: array[float] = field(default_factory=lambda: array("d"))
    masks: array[float] = field(default_factory=lambda: array("d"))
    steps: array[float] = field(default_factory=lambda: array("d"))


def run_case(engine: Engine, schema: Any, instances: Instances) -> CaseResult:
    """The first request, the same again, and then every instance token by token."""
    result = CaseResult("refused")
    equal = copy.deepcopy(schema)
    begun = time.perf_counter()
    try:
        start = engine.compile(schema)
        start().mask()
    except Exception:  # peers raise what they like
        return result
    result.first.append(time.perf_counter() - begun)
    result.outcome = "failed"
    try:
        if result.first[0] <= engine.repeat_limit:
            begun = time.perf_counter()
            engine.compile(equal)().mask()
            result.second.append(time.perf_counter() - begun)
        result.outcome = _judge(start, instances, result)
    except Exception:
        pass
    return result


def _judge(start: Callable[[], Sequence], instances: Instances, result: CaseResult) -> str:
    outcome = "pass"
    for tokens, valid in instances:
        accepted = _run_instance(start(), tokens, result)
        if accepted and not valid:
            outcome = "invalid accepted"
        elif valid and not accepted and outcome == "pass":
            outcome = "valid rejected"
    return outcome


def _run_instance(sequence: Sequence, tokens: list[int], result: CaseResult) -> bool:
    for token in tokens:
        begun = time.perf_counter()
        sequence.mask()
        masked = time.perf_counter()
        accepted = sequence.accept(token)
        done = time.perf_counter()
        result.masks.append(masked - begun)
        result.steps.append(done - begun)
        if not accepted:
            return False
    return sequence.complete()


class Local:
    """Runs the cases of one engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def run(self, schema: Any, instances: Instances) -> CaseResult:
        return run_case(self.engine, schema, instances)

    def close(self) -> None:
        pass


class Isolated:
    """Runs them in a process of its own, which is ended when a case takes too long and then made again.

    The process is a fresh one, not a fork: after a fork the memory of both sides is copied page by page when
    written to, and the other engines would pay for that.
    """

    def __init__(self, engine: str, tokenizer: str, limit: float) -> None:
        self.engine, self.tokenizer, self.limit = engine, tokenizer, limit
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(self.engine, self.tokenizer, theirs), daemon=True)
        self.process.start()
        theirs.close()
        error = self.pipe.recv()
        if error is not None:
            raise EngineError(error)

    def run(self, schema: Any, instances: Instances) -> CaseResult:
        if not self.process.is_alive():
            self._start()
        self.pipe.send((schema, instances))
        outcome = "timed out"
        if self.pipe.poll(self.limit):
            try:
                result: CaseResult = self.pipe.recv()
                return result
            except (EOFError, OSError):  # out of memory, for example
                outcome = "failed"
        self.close()
        return CaseResult(outcome)

    def close(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(name: str, tokenizer: str, pipe: Any) -> None:
    try:
        engine = make(name, TOKENIZERS[tokenizer]())
        engine.compile({"type": "boolean"})().mask()
    except Exception as error:
        pipe.send(str(error))
        return
    pipe.send(None)
    while True:
        try:
            schema, instances = pipe.recv()
        except EOFError:
            return
        pipe.send(run_case(engine, schema, instances))
