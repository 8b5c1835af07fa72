"""Compiled grammars by content, so that a schema seen before costs a look-up.

Each vocabulary keeps the grammars that were used last, and the tables of more of them, from which others that have them
as parts are linked.  A key is the serialised source (``_core.content_key``) together
with all options, so equal content is found whoever built it, and changing a schema that
was compiled does no harm.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import RLock
from typing import Any

from maskwright.base.deadline import in_time

_KEPT = 64
_GROWN = 16 << 20
"""So many bytes more are worth a look at all."""
_SELDOM = 8
"""Sizes are looked at again when as many things were added as are kept, or up to so many times as many where there is room."""

_lock = RLock()
"""Of all caches: it is held for a moment, and by whoever forks, so that no child finds a cache half changed.  Nothing is freed
under it, which may take long."""


class CompileCache:
    """The things used last, by key, of at most some weight together.  Safe for threads."""

    def __init__(self, most: int = _KEPT) -> None:
        self._most = most
        self._weight = 0
        self._calls: dict[object, tuple[int, int]] = {}
        self.most_bytes: int | None = None
        """What grammars may take together; with it, they may be any number.  For whoever puts them."""
        self.held_bytes = 0
        """What they took when somebody looked last."""
        self._kept: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()

    def get(self, key: Hashable) -> Any:
        with _lock:
            found = self._kept.get(key)
            if found is None:
                return None
            self._kept.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, compiled: Any, weight: int = 1) -> None:
        """The last one is kept whatever it weighs."""
        dropped = []
        with _lock:
            dropped.append(self._kept.pop(key, (None, 0)))
            self._weight += weight - dropped[0][1]
            self._kept[key] = compiled, weight
            while self.most_bytes is None and self._weight > self._most and len(self._kept) > 1:
                dropped.append(self._kept.popitem(last=False)[1])
                self._weight -= dropped[-1][1]

    def shed(
        self, size: Callable[[Any], int], most: int, every: int | None = None, *, grown: int = 0
    ) -> int | None:
        """Drop what was used longest ago while sizes, which may have grown, are more than ``most`` together.

        All are looked at once in ``every`` calls; None: when there would be too much if what is added took as much (see
        ``_SELDOM``).  Before that, they are when ``grown``, what all sizes together have ever grown by, is much more than the last
        time.  What is left, if it was looked at; the last one is kept whatever its size.
        """
        with _lock:
            left, before = self._calls.get(size, (0, 0))
            if left > 0 and grown - before < _GROWN:
                self._calls[size] = left - 1, before
                return None
            kept = [(key, held) for key, (held, _) in self._kept.items()]
        # Asking may take long, so nobody else waits for it.
        sizes = [size(held) for _, held in in_time(kept)]
        total = sum(sizes)
        dropped = []
        with _lock:
            for (key, held), each in zip(kept[:-1], sizes[:-1], strict=True):
                if total <= most:
                    break
                if self._kept.get(key, (None, 0))[0] is held:
                    dropped.append(self._kept.pop(key))
                    self._weight -= dropped[-1][1]
                total -= each
            if every is None:
                # Looking at all of them takes longer than compiling a small schema.
                room = max(most // max(total, 1) - 1, 1)
                every = min(room, _SELDOM) * len(self._kept)
            self._calls[size] = every - 1, grown
        return total

    def __len__(self) -> int:
        return len(self._kept)


def _renew_lock() -> None:
    global _lock
    _lock = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=lambda: _lock.acquire(), after_in_parent=lambda: _lock.release(), after_in_child=_renew_lock
    )
