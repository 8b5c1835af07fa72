"""How long do the masks of many sequences take in one call, by rows, and what does a quota of one CPU change?

python bench/micro/batch_fill.py              known and new states of as many schemas as rows
python bench/micro/batch_fill.py --one-core   the same bound to one CPU, and in a control group with a quota of one CPU, with
                                              the threads that are the default and with those that the quota leaves
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from _common import SCHEMA, tekken

import maskwright as mw
from maskwright.base.cpus import available_cpus

ROWS = (1, 100, 1000)
FRESH = 5
"""Times that states are made anew."""
SECONDS = 1.0
"""Of calls for known states."""


def matchers(vocabulary: mw.Vocabulary, rows: int, name: str) -> list[mw.Matcher]:
    """As many sequences, each of a schema of its own, inside the value of a member."""
    found = []
    for row in range(rows):
        members = {f"{key}_{name}_{row}": value for key, value in SCHEMA["properties"].items()}
        schema = {**SCHEMA, "properties": members, "required": list(members)[:2]}
        matcher = mw.compile_json_schema(schema, vocabulary).matcher()
        text = '{"' + next(iter(members)) + '": "Ada Lovelace", "'
        if not matcher.accept_bytes(text.encode()):
            raise SystemExit(f"{text} is not accepted")
        found.append(matcher)
    return found


def times(call: Callable[[], object], seconds: float) -> list[float]:
    """Seconds of each call, for so long, and 20 times at least."""
    found: list[float] = []
    end = time.perf_counter() + seconds
    while len(found) < 20 or time.perf_counter() < end:
        begun = time.perf_counter()
        call()
        found.append(time.perf_counter() - begun)
    return found


def measure(label: str) -> None:
    vocabulary = mw.Vocabulary.from_mistral_common(tekken())
    for rows in ROWS:
        bitmask = mw.allocate_token_bitmask(rows, vocabulary.vocab_size)
        copies = bitmask.copy()
        new = []
        for fresh in range(FRESH):
            made = matchers(vocabulary, rows, f"{label}{fresh}".replace(" ", "_"))
            begun = time.perf_counter()
            mw.fill_next_token_bitmasks(made, bitmask)
            new.append(time.perf_counter() - begun)
        known = times(lambda made=made, bitmask=bitmask: mw.fill_next_token_bitmasks(made, bitmask), SECONDS)
        copied = times(lambda bitmask=bitmask, copies=copies: np.copyto(bitmask, copies), SECONDS / 4)
        shown = ", ".join(
            f"{name} {1e6 * min(found) / rows:.2f} best {1e6 * sum(found) / len(found) / rows:.2f} mean"
            for name, found in (("known", known), ("new", new), ("numpy.copyto", copied))
        )
        print(f"{label}: {rows} rows, µs a row: {shown}", flush=True)


@contextmanager
def quota_of_one() -> Iterator[Path | None]:
    """A control group with a quota of one CPU, in either version; None where none can be made."""
    for parent, files in (
        (Path("/sys/fs/cgroup/cpu"), {"cpu.cfs_period_us": "100000", "cpu.cfs_quota_us": "100000"}),
        (Path("/sys/fs/cgroup"), {"cpu.max": "100000 100000"}),
    ):
        folder = parent / f"maskwright-bench-{os.getpid()}"
        try:
            folder.mkdir()
            for name, text in files.items():
                (folder / name).write_text(text)
        except OSError:
            if folder.exists():
                folder.rmdir()
            continue
        try:
            yield folder
        finally:
            folder.rmdir()
        return
    yield None


def again(label: str, *, affinity: bool = False, group: Path | None = None, threads: str) -> None:
    """This program in a process of its own, within limits."""

    def enter() -> None:
        if affinity:
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        if group is not None:
            (group / "cgroup.procs").write_text(str(os.getpid()))

    command = [sys.executable, __file__, "--label", label, "--threads", threads]
    subprocess.run(command, check=True, preexec_fn=enter)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one-core", action="store_true")
    parser.add_argument(
        "--threads", default="default", help='a number, "default", or "available" (with quotas)'
    )
    parser.add_argument("--label", default="")
    args = parser.parse_args()
    if args.one_core:
        again("bound to one CPU", affinity=True, threads="default")
        with quota_of_one() as group:
            if group is None:
                raise SystemExit(
                    "no control group can be made here: run in a container, or with systemd-run -p CPUQuota=100%"
                )
            again("quota of one, default threads", group=group, threads="default")
            again("quota of one, available_cpus()", group=group, threads="available")
            again("quota of one, 64 threads", group=group, threads="64")
        return
    if args.threads != "default":
        mw.set_threads(available_cpus() if args.threads == "available" else int(args.threads))
    measure(args.label or f"{len(os.sched_getaffinity(0))} CPUs, {args.threads} threads")


if __name__ == "__main__":
    main()
