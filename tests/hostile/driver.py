"""Goes through cases in a process of its own, which should never end before they do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

PATIENCE = 40
"""Seconds of one operation after which a process is taken to hang (they end after 5, on a machine that may be busy)."""


def gone_through(
    names: Iterable[str], seconds: float, patience: float = PATIENCE
) -> Iterator[dict[str, Any]]:
    """What each case took (see ``child.run``), as soon as it is over; of one that the process did not survive, ``died`` says
    how it ended, and the others are left to another process."""
    left = list(names)
    while left:
        for found in _one_process(left, seconds, patience):
            left = left[1:]
            yield found


def _one_process(names: list[str], seconds: float, patience: float) -> Iterator[dict[str, Any]]:
    path = os.pathsep.join([str(Path(__file__).resolve().parents[1]), os.environ.get("PYTHONPATH", "")])
    child = subprocess.Popen(
        [sys.executable, "-m", "hostile.child", str(seconds)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert child.stdin is not None and child.stdout is not None
    try:
        for name in names:
            child.stdin.write(name + "\n")
            child.stdin.flush()
            operation = line = ""
            while not line.startswith("{"):
                operation = line.strip()
                watch = threading.Timer(patience, child.kill)
                watch.start()
                line = child.stdout.readline()
                watch.cancel()
                if not line:
                    yield {"case": name, "died": child.wait(), "in": operation}
                    return
            yield json.loads(line)
    finally:
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
