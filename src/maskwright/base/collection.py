"""Python's cyclic garbage collection, while something is compiled.

Compiling makes many objects and no cycles.  At the usual thresholds they would be taken for long-lived ones while they are needed, and
a full collection, which looks at every object of the process, would follow: that can take longer than compiling many schemas.
"""

from __future__ import annotations

import gc
import os

RARE = 2_503
"""New objects between two collections of them.  A number that nobody else would choose: who finds it knows where it is from."""
MIDDLE = 4
"""Such collections until one looks at what several of them left: a collection stops all threads, and this one takes some milliseconds."""
FULL = 800
"""Those until one looks at everything, which takes a tenth of a second for each million objects: one for 8 million new objects."""
PUT_OFF = 20
"""Compiles in a row that may put off a full collection which is due because of their own objects."""
FROZEN = 1_000
"""After so many times that a full collection could have been put off, one looks again whether something is frozen: that counts it all."""
_usual: tuple[int, ...] = ()
_full_before, _times = 0, 0
_looks_after = 0
"""So many times nobody looks: something was frozen."""


class rare_collection:
    """Collections are rarer, and never off: a process that always compiles must get rid of its cycles, too.

    Of several at a time, the one that made them rare makes them usual again, and whatever others set meanwhile stays.
    """

    def __enter__(self) -> None:
        global _usual
        self._before = before = gc.get_threshold()
        if 0 < before[0] < RARE:
            _usual = before
            gc.set_threshold(RARE, MIDDLE, max(FULL, before[2]))

    def __exit__(self, *_: object) -> None:
        before = self._before
        if 0 < before[0] < RARE and gc.get_threshold()[0] == RARE:
            if gc.get_count()[2] > before[2]:
                _put_off()
            gc.set_threshold(*before)


_young = 0


def collect_young() -> None:
    """To be called every few milliseconds of what takes long: few objects can be so large that looking at ``RARE`` of them takes longer than
    other threads should wait."""
    global _young
    if gc.get_threshold()[0] == RARE and gc.isenabled():
        _young = (_young + 1) % MIDDLE
        gc.collect(0 if _young else 1)


def _put_off() -> None:
    """A full collection may come next.  Begin to count anew: what was counted is mostly objects of the compile, which are freed or
    about to be.

    Only so often: in a process that always compiles, full collections must come as well.
    """
    global _full_before, _times, _looks_after
    if _looks_after:
        _looks_after -= 1
        return
    done = gc.get_stats()[2]["collections"]
    if done != _full_before:
        _full_before, _times = done, 0
    _times += 1
    if _times > PUT_OFF:
        return
    if gc.get_freeze_count():
        # Who has frozen objects wants them to stay so.
        _looks_after = FROZEN
        return
    gc.freeze()
    gc.unfreeze()


def _in_child() -> None:
    # Threads that would make collections usual again are not there.
    if gc.get_threshold()[0] == RARE:
        gc.set_threshold(*_usual)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
