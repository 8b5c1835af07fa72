"""Python's cyclic garbage collection, while something is compiled.

Compiling makes many objects and no cycles.  At the usual thresholds they would be taken for long-lived ones while they are needed, and
a full collection, which looks at every object of the process, would follow: that can take longer than compiling many schemas.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

RARE = 10_007
"""New objects between two collections of them.  A number that nobody else would choose: who finds it knows where it is from."""
_usual: tuple[int, ...] = ()


@contextmanager
def rare_collection() -> Iterator[None]:
    """Collections are rarer, and never off: a process that always compiles must get rid of its cycles, too.

    Of several at a time, the one that made them rare makes them usual again, and whatever others set meanwhile stays.
    """
    global _usual
    before = gc.get_threshold()
    if not 0 < before[0] < RARE:
        yield
        return
    _usual = before
    gc.set_threshold(RARE, *before[1:])
    try:
        yield
    finally:
        if gc.get_threshold()[0] == RARE:
            gc.set_threshold(*before)


def _in_child() -> None:
    # Threads that would make collections usual again are not there.
    if gc.get_threshold()[0] == RARE:
        gc.set_threshold(*_usual)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
