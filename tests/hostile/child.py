"""A process that goes through cases and says what each took: ``python -m hostile.child SECONDS < names``.

One line of JSON for each case, when it is over, on standard output.  Before it, one with the name of each operation that
begins, so that whoever reads knows what a process died of, or hangs in.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import itertools
import json
import resource
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import maskwright as mw
from hostile import calls, json_meanings, json_shapes, json_texts, lark_texts, long_texts, other_texts, rows
from hostile.cases import Case
from hostile.operations import VOCABULARY, operations

MODULES = (json_shapes, json_meanings, json_texts, lark_texts, other_texts, rows, long_texts, calls)
ROOM = 8 << 30
"""Addresses for the process (bytes): what takes more ends here, and not the machine."""


def all_cases() -> dict[str, Case]:
    found: dict[str, Case] = {}
    for module in MODULES:
        for case in module.cases():
            if case.name in found:
                raise ValueError(f"two cases are called {case.name}")
            found[case.name] = case
    return found


def status(field: str) -> int:
    """A line of the process's status, in bytes."""
    with open("/proc/self/status") as lines:
        for line in lines:
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    raise LookupError(field)


def forget_peak() -> int:
    """Give back what is free, and count the peak anew; what the process holds now (bytes)."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return status("VmRSS")


_SLEEP = 0.002


class Probe(threading.Thread):
    """Another thread of the program: how long it waits for a turn when it has slept.

    That is wall time without the sleep; on a busy machine, where other processes have their turns, too, the processor time that
    this one used meanwhile is less."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.ask()
        self.begin()

    def begin(self) -> None:
        """What is waited for from now on counts."""
        self.longest, self.begun = 0.0, time.process_time()

    def ask(self, sleep: float = 0.0) -> None:
        """Something is wanted in so many seconds."""
        self.asked = time.perf_counter() + sleep, time.process_time()

    def waited(self) -> float:
        """The longest, with what is being waited for now: an operation may keep others waiting to its very end."""
        wanted, used = self.asked
        waited = min(time.perf_counter() - wanted, time.process_time() - max(used, self.begun))
        self.longest = max(self.longest, waited)
        return self.longest

    def run(self) -> None:
        while True:
            self.ask(_SLEEP)
            time.sleep(_SLEEP)
            self.waited()


class Neighbour(Probe):
    """Another request: how long it waits for a mask that was not asked for before, of a grammar of its own on the same vocabulary."""

    def run(self) -> None:
        grammar = mw.compile_json_schema({"items": {"type": "integer"}, "uniqueItems": True}, VOCABULARY)
        row = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
        for count in itertools.count():
            if count % 1000 == 0:
                matcher = grammar.matcher(max_rollback=0)
                matcher.accept_bytes(b"[0")
            self.ask(_SLEEP)
            time.sleep(_SLEEP)
            matcher.accept_bytes(b",%d" % (count + 1))
            matcher.fill_next_token_bitmask(row)
            self.waited()


def run(case: Case, seconds: float, probes: Sequence[Probe] = ()) -> dict[str, Any]:
    held = forget_peak()
    limits = mw.Limits(max_seconds=seconds)
    took: dict[str, tuple[float, float]] = {}
    waited: dict[str, dict[str, float]] = {}
    wrong: list[str] = []
    ended: dict[str, int] = {}
    steps: Iterator[Any] = operations(case, limits)
    while True:
        try:
            name, call = next(steps)
        except StopIteration:
            break
        except mw.MaskwrightError as error:
            # Some sources refuse to be made.
            ended[f"make: {type(error).__name__}"] = 1
            break
        print(name, flush=True)
        for probe in probes:
            probe.begin()
        begun, wall = time.process_time(), time.perf_counter()
        try:
            call()
            outcome = "done"
        except mw.MaskwrightError as error:
            outcome = getattr(error, "limit", type(error).__name__)
        except (TypeError, ValueError, IndexError, OverflowError) as error:
            outcome = type(error).__name__
            if name != "call":
                wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        except BaseException as error:
            outcome = type(error).__name__
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:200]}")
        used = time.process_time() - begun, time.perf_counter() - wall
        waits = waited.setdefault(name, {})
        for probe in probes:
            kind = type(probe).__name__
            waits[kind] = max(waits.get(kind, 0.0), probe.waited())
        took[name] = max(took.get(name, (0.0, 0.0)), used, key=min)
        ended[f"{name}: {outcome}"] = ended.get(f"{name}: {outcome}", 0) + 1
    steps = iter(())
    grown = status("VmHWM") - held
    return {
        "case": case.name,
        "took": took,
        "waited": waited,
        "bytes": grown,
        "wrong": wrong,
        "ended": ended,
        "alive": alive(),
    }


def alive() -> bool:
    """Whether the process still answers."""
    matcher = mw.compile_json_schema({"const": time.monotonic()}, VOCABULARY).matcher()
    return bool(matcher.shortest_completion()) and not matcher.accept_bytes(b"x")


def main() -> None:
    seconds = float(sys.argv[1])
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (ROOM, resource.RLIM_INFINITY))
    cases = all_cases()
    probes = [Probe(), Neighbour()]
    for probe in probes:
        probe.start()
    for line in sys.stdin:
        print(json.dumps(run(cases[line.strip()], seconds, probes)), flush=True)


if __name__ == "__main__":
    main()
