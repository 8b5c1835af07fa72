"""Cases in a process of their own: what an engine does there, hang, crash or take all memory, is an outcome."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from maskwright.conformance.cases import Case, load_cases
from maskwright.conformance.engines import factory_of
from maskwright.conformance.judge import Judge, Judgement
from maskwright.conformance.protocol import ConformanceError

SECONDS = 20.0
"""For a case; an engine that takes longer has an outcome of ``crash``."""
MEMORY = 4 << 30
"""Bytes of data that an engine's process may take (where the system has such limits)."""
_START_SECONDS = 120.0
_LAST_WORDS = 300


@dataclass(frozen=True)
class Result:
    """What came of one case.  ``problems``: what was wrong, at most four, each with its kind."""

    case: Case
    outcome: str
    problems: tuple[str, ...]
    seconds: float


def run(
    engine: str, cases: Iterable[Case] | None = None, *, seconds: float = SECONDS, memory: int = MEMORY
) -> Iterator[Result]:
    """The results of an engine, one after another.

    engine: one of ``ENGINES``, or ``module:factory``, which is looked up from the current directory as well.
    cases: default all of this package.  seconds, memory: limits of one case (bytes).
    Raises ``ConformanceError`` before the first result when the engine is not there.
    """
    process = _Process(engine, seconds, memory)
    try:
        for case in load_cases() if cases is None else cases:
            begun = time.perf_counter()
            judged = process.judge(case)
            yield Result(case, judged.outcome, tuple(judged.problems), time.perf_counter() - begun)
    finally:
        process.close()


class _Process:
    def __init__(self, engine: str, seconds: float, memory: int) -> None:
        self.engine, self.seconds, self.memory = engine, seconds, memory
        self.context = multiprocessing.get_context("spawn")
        self.words: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        self.start()

    def start(self) -> None:
        self.words.seek(0)
        self.words.truncate()
        self.pipe, theirs = self.context.Pipe()
        # What an engine prints is no output of ours; the end of it may say why its process died.
        with _written_to(self.words):
            self.process = self.context.Process(
                target=_serve, args=(self.engine, self.memory, theirs), daemon=True
            )
            self.process.start()
        theirs.close()
        problem = self.answer(_START_SECONDS)
        if problem is not None:
            said = problem.problems[0].partition(": ")[2] if isinstance(problem, Judgement) else problem
            self.close()
            raise ConformanceError(f"{self.engine} cannot be set up: {said}")

    def judge(self, case: Case) -> Judgement:
        if not self.process.is_alive():
            self.start()
        self.pipe.send(case)
        found: Judgement = self.answer(self.seconds)
        return found

    def answer(self, seconds: float) -> Any:
        """What the process says, or that it does not."""
        try:
            if self.pipe.poll(seconds):
                return self.pipe.recv()
            found = Judgement()
            found.note("crash", f"no answer within {seconds:g} seconds")
        except (EOFError, OSError):
            self.process.join(_START_SECONDS)
            found = Judgement()
            found.note("crash", f"the process ended with code {self.process.exitcode}{self.last_words()}")
        self.end()
        return found

    def last_words(self) -> str:
        self.words.seek(0)
        said = " ".join(self.words.read().decode("utf-8", "replace").split())
        return f": {said[-_LAST_WORDS:]}" if said else ""

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()

    def close(self) -> None:
        self.end()
        self.words.close()


@contextlib.contextmanager
def _written_to(file: BinaryIO) -> Iterator[None]:
    """What this process and those that it starts meanwhile print goes to a file."""
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
        yield
    finally:
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def _serve(engine: str, memory: int, pipe: Any) -> None:
    try:
        _limit(memory)
        judge = Judge(factory_of(engine))
    except Exception as error:
        pipe.send(str(error) or type(error).__name__)
        return
    pipe.send(None)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(judge.judge(case))


def _limit(memory: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if hard == resource.RLIM_INFINITY or memory <= hard:
        resource.setrlimit(resource.RLIMIT_DATA, (memory, hard))
