"""Rows that run together: one forward pass moves all of them; others join as some finish."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from maskwright._core import Matcher
from maskwright.errors import MaskwrightError
from maskwright.generation.row import Row
from maskwright.masks.bitmask import fill_next_token_bitmasks

_FREE_ON_CPU = 32
_FREE_ELSEWHERE = 512
"""Tokens of all rows together that one pass reads in about the time of one token each."""


class Batch:
    """A loop over rows.  ``key_values``: ``KeyValueRows`` or ``EncoderDecoderRows``; ``width``: rows at a time, at most."""

    def __init__(self, key_values: Any, width: int) -> None:
        self.key_values = key_values
        self.width = min(width, key_values.widest)
        self.waiting: deque[Row] = deque()
        self.running: list[Row] = []
        on_cpu = key_values.model.device.type == "cpu"
        self._free = _FREE_ON_CPU if on_cpu else _FREE_ELSEWHERE

    def submit(self, rows: Iterable[Row]) -> None:
        """Let rows join as soon as there is room."""
        self.waiting.extend(rows)

    @property
    def is_busy(self) -> bool:
        """Whether any row is not done."""
        return bool(self.waiting or self.running)

    def step(self) -> list[Row]:
        """One forward pass at most; the rows that changed.  Errors of one row end that row only (``Row.error``)."""
        changed = self._leave()
        room = self.width - len(self.running)
        if self.waiting and room > 0 and (self.key_values.flexible or not self.running):
            return changed + self._join([self.waiting.popleft() for _ in range(min(room, len(self.waiting)))])
        if self.running:
            changed += self._move()
        return changed

    def _join(self, rows: list[Row]) -> list[Row]:
        new = [row for row in rows if not row.cancelled and not row.finish_unread()]
        if new:
            starts = [row.next_tokens(self._free, draft=False) for row in new]
            _fill(new)
            logits = self.key_values.add([row.prompt for row in new], starts)
            kept = [0] * len(self.running)
            for row, start, found in zip(new, starts, logits, strict=True):
                kept.append(_read(row, found, start[: len(found) - 1]))
            self.running += new
            self.key_values.reject(kept)
            # Others may have been cancelled meanwhile, by another thread.
            return rows + [row for row in self._leave() if row not in rows]
        return rows

    def _move(self) -> list[Row]:
        rows = self.running
        alone = len(rows) == 1
        flexible = self.key_values.flexible
        most = max(1, self._free // len(rows)) if flexible or alone else 1
        draft = flexible or (alone and self.key_values.croppable)
        tokens = [row.next_tokens(most, draft) for row in rows]
        _fill(rows)
        logits = self.key_values.feed(tokens)
        rejected = [_read(*each) for each in zip(rows, logits, (given[1:] for given in tokens), strict=True)]
        self.key_values.reject(rejected)
        self._leave()
        return rows

    def _leave(self) -> list[Row]:
        """Drop the rows that are done or not wanted any more; those that are gone."""
        # Looked at once: another thread may cancel a row at any time.
        over = [row.done or row.cancelled for row in self.running]
        gone = [row for row, left in zip(self.running, over, strict=True) if left]
        if gone:
            self.key_values.keep([i for i, left in enumerate(over) if not left])
            self.running = [row for row, left in zip(self.running, over, strict=True) if not left]
        return gone


def _fill(rows: list[Row]) -> None:
    """The masks behind what is written, of all rows in one call.  Where that fails, each row meets its own error."""
    ready = [row for row in rows if row.needs_mask and isinstance(row.matcher, Matcher)]
    if len(ready) < 2:
        return
    started = time.perf_counter()
    words = np.empty((len(ready), (ready[0].vocabulary.vocab_size + 31) // 32), dtype=np.int32)
    try:
        fill_next_token_bitmasks([row.matcher for row in ready], words)
    except MaskwrightError:
        return
    share = (time.perf_counter() - started) / len(ready)
    for row, own in zip(ready, words, strict=True):
        row.take_mask(own, share)


def _read(row: Row, logits: Any, given: list[int]) -> int:
    try:
        return row.read(logits, given)
    except Exception as error:  # a matcher, a logits processor: it concerns this row only
        row.fail(error)
        return 0
