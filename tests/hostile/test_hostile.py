"""What strangers may send ends in a result or a typed error, in time and within bounded memory, in a process that stays alive.

The cases are those of ``tests/hostile``.  A small sample of each kind runs always; `make test-all` gives each of them a second, and
``make test-hostile`` the usual deadline, within which they take five times as long and more memory.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import pytest

import maskwright as mw
from hostile.child import all_cases
from hostile.driver import gone_through

NAMES = list(all_cases())
KINDS = {kind: list(names) for kind, names in groupby(sorted(NAMES), key=lambda name: name.partition("/")[0])}
EVERY = 96
"""Of the cases of a kind, one in so many belongs to the sample."""
BYTES = 2 << 30
SAMPLE, SHORT, USUAL = 0.2, 1.0, mw.Limits().max_seconds
SLACK = 1.0
"""Time that an operation may take above its deadline (seconds): for the usual one, it ends within 6 s.  On a quiet machine it is a
quarter of that."""

WAITS = {"Probe": 0.1, "Neighbour": 2.0}
"""How long another thread may wait (seconds): for a turn of the interpreter, or for a mask of another grammar.  On a quiet machine that is
0.02 s, but for what happens now and then; on a busy one, or in a full process, it is more.  A mask of one hostile lexeme, which nobody has a turn
in, may take most of a second; what keeps the lock to the end takes all of its time."""


def late(found: dict[str, Any], seconds: float) -> list[str]:
    """Operations that took too much above their deadline, which is one of wall time.  On a busy machine the processor time is less; it is
    more where the probes run beside them."""
    return [
        f"{name} took {min(used):.2f} s"
        for name, used in found["took"].items()
        if min(used) > seconds + SLACK
    ]


def rude(found: dict[str, Any]) -> list[str]:
    """Operations during which another thread waited long for its turn."""
    return [
        f"{name} made the {probe} wait {used:.2f} s"
        for name, waits in found["waited"].items()
        for probe, used in waits.items()
        if used > WAITS[probe]
    ]


def wrong(found: dict[str, Any], seconds: float) -> list[str]:
    if "died" in found:
        return [f"the process ended with {found['died']} in {found['in'] or 'its beginning'}"]
    heavy = [f"{found['bytes'] >> 20} MiB"] if found["bytes"] > BYTES else []
    return [
        *found["wrong"],
        *late(found, seconds),
        *rude(found),
        *heavy,
        *([] if found["alive"] else ["no answer any more"]),
    ]


def problems_of(names: list[str], seconds: float) -> dict[str, list[str]]:
    return {found["case"]: told for found in gone_through(names, seconds) if (told := wrong(found, seconds))}


def check(names: list[str], seconds: float, processes: int = 1) -> None:
    problems: dict[str, list[str]] = {}
    # On a busy machine, something may be late once: what is wrong is wrong each time.
    for _ in range(3):
        with ThreadPoolExecutor(processes) as pool:
            parts = pool.map(
                problems_of, (names[i::processes] for i in range(processes)), [seconds] * processes
            )
            problems = {name: told for part in parts for name, told in part.items()}
        names = list(problems)
    assert problems == {}


def test_there_are_many_cases() -> None:
    assert len(NAMES) >= 500 and min(map(len, KINDS.values())) >= 5


@pytest.mark.parametrize("kind", KINDS)
def test_a_sample(kind: str) -> None:
    check(KINDS[kind][::EVERY], SAMPLE)


@pytest.mark.slow
@pytest.mark.hostile
@pytest.mark.parametrize("seconds", [SHORT, USUAL], ids=["short", "usual"])
def test_all(seconds: float) -> None:
    check(NAMES, seconds, processes=2)
