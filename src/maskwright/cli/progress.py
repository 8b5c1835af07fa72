"""How far something is: on standard error, where that is a terminal, once it has taken a second."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_SECONDS = 1.0
"""Before anything is shown."""
_TURN_SECONDS = 0.2


@contextmanager
def progress(
    what: str, total: int | None = None, unit: str = "", *, done: int = 0, leave: bool = False
) -> Iterator[Any]:
    """A bar of tqdm, of which ``done`` of ``total`` is over (None: it only counts); ``update(n)`` moves it.

    Its clock goes on while nothing moves.  It is gone at the end unless ``leave``.  Bars have no colours.
    """
    from tqdm import tqdm

    shape = (
        None
        if total is not None
        else "{desc}{postfix} {elapsed}"
        if not unit
        else "{desc} {n_fmt}{unit} {elapsed}"
    )
    # disable=None: not where standard error is no terminal.
    bar = tqdm(
        desc=what, total=total, initial=done, unit=f" {unit}", bar_format=shape, disable=None, leave=leave, file=sys.stderr,
        delay=_SECONDS, miniters=0,
    )  # fmt: skip
    over = threading.Event()

    def tick() -> None:
        if not over.wait(_SECONDS):
            while not over.wait(_TURN_SECONDS):
                bar.update(0)

    clock = threading.Thread(target=tick, daemon=True)
    if not bar.disable:
        clock.start()
    try:
        yield bar
    finally:
        over.set()
        if clock.is_alive():
            clock.join()
        bar.close()
