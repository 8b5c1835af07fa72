"""The thread that moves all rows.  Rows of all requests run in one batch; others join as some finish."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from maskwright.errors import LimitError
from maskwright.generation.batch import Batch
from maskwright.generation.row import Row
from maskwright.serve.errors import RequestError
from maskwright.serve.metrics import Metrics
from maskwright.serve.settings import Settings

_log = logging.getLogger("maskwright.serve")


@dataclass
class Entry:
    """A row, who is told whenever it grew (on the engine's thread), and whether it has a constraint."""

    row: Row
    watcher: Callable[[Row], object]
    constrained: bool
    queued: float = field(default_factory=time.perf_counter)
    begun: bool = False


class Engine:
    """``make_batch``: an empty batch over the model; it is made anew when the model failed."""

    def __init__(self, make_batch: Callable[[], Batch], settings: Settings, metrics: Metrics) -> None:
        self._make_batch = make_batch
        self._settings = settings
        self._metrics = metrics
        self._changed = threading.Condition()
        self._waiting: deque[Entry] = deque()
        self._running: dict[int, Entry] = {}
        self._refusing = False
        self._closed = False
        self._failure: RequestError | None = None
        self._thread = threading.Thread(target=self._work, name="maskwright-model", daemon=True)
        self._thread.start()

    def submit(self, entries: Sequence[Entry]) -> None:
        """Let rows join as soon as there is room.  Raises ``RequestError``: 429 when too many wait, 503 at the end.

        Setting ``cancelled`` of a row takes it out before the next pass.
        """
        most = self._settings.max_queued
        with self._changed:
            if self._refusing:
                raise self._ending()
            self._waiting = deque(entry for entry in self._waiting if not entry.row.cancelled)
            free = max(self._settings.max_rows - len(self._running), 0)
            if len(self._waiting) + len(entries) > most + free:
                raise RequestError(
                    429,
                    f"{len(self._waiting)} outputs are waiting, and max_queued is {most}: come again later",
                    code="queue_full",
                    kind="rate_limit_error",
                    retry_after=self._settings.retry_after,
                )
            self._waiting.extend(entries)
            self._count()
            self._changed.notify()

    @property
    def is_alive(self) -> bool:
        """Whether the thread runs; without it, nothing is answered."""
        return self._thread.is_alive()

    @property
    def is_refusing(self) -> bool:
        """Whether nothing new is taken."""
        return self._refusing

    def refuse(self) -> None:
        """Take nothing new; what is here goes on."""
        self._refusing = True

    def fail(self) -> None:
        """End all rows with an error, before the next pass."""
        with self._changed:
            self._refusing = True
            self._failure = self._ending()
            self._changed.notify()

    def close(self) -> None:
        """End all rows, and the thread."""
        if self._closed:
            return
        self.fail()
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(timeout=self._settings.step_seconds + 5)

    def _ending(self) -> RequestError:
        return RequestError(
            503, "the server is shutting down", code="shutting_down", retry_after=self._settings.retry_after
        )

    def _work(self) -> None:
        batch: Batch | None = None
        joined = False
        while True:
            with self._changed:
                while not (self._waiting or self._running or self._closed):
                    self._changed.wait()
                if self._failure is not None:
                    batch, joined = None, False
                    self._end_all(self._failure)
                    self._failure = None
                if not (self._waiting or self._running):
                    if self._closed:
                        return
                    continue
                # Those that run get a token in between, however many wait.
                new = [] if joined else self._admit()
            joined = bool(new)
            try:
                batch = batch or self._make_batch()
                batch.submit([entry.row for entry in new])
                changed = batch.step()
            except Exception as error:  # the model's own: everybody in this batch is told
                _log.exception("the model failed")
                batch = None
                changed = [entry.row for entry in self._running.values()]
                for row in changed:
                    row.fail(error)
            for row in changed:
                self._tell(row)
            self._count()

    def _admit(self) -> list[Entry]:
        """Those that join now: as many as there is room for, with prompts that one pass may read."""
        new: list[Entry] = []
        longest = 0
        while self._waiting and len(self._running) < self._settings.max_rows:
            entry = self._waiting[0]
            longest = max(longest, len(entry.row.prompt))
            if new and longest * (len(new) + 1) > self._settings.prefill_tokens:
                break
            self._waiting.popleft()
            if not entry.row.cancelled:
                new.append(entry)
                self._running[id(entry.row)] = entry
        return new

    def _tell(self, row: Row) -> None:
        entry = self._running.get(id(row))
        if entry is None:  # it ended here, and the batch has noticed now
            return
        spent = row.usage.mask_seconds
        if spent > self._settings.mask_seconds and not row.done:
            message = f"the masks of this output took {spent:.1f} s, and mask_seconds is {self._settings.mask_seconds}"
            row.fail(LimitError("mask_seconds", spent, self._settings.mask_seconds, message=message))
        if not entry.begun and (row.ids or row.done):
            entry.begun = True
            self._metrics.first_token(time.perf_counter() - entry.queued)
        if row.done or row.cancelled:
            del self._running[id(row)]
            self._metrics.output(row, entry.constrained)
        self._notify(entry)

    def _notify(self, entry: Entry) -> None:
        try:
            entry.watcher(entry.row)
        except RuntimeError:  # its event loop is closed
            entry.row.cancelled = True
        except Exception:  # whoever it is for, others go on
            _log.exception("an output cannot be shown")
            entry.row.cancelled = True

    def _end_all(self, error: RequestError) -> None:
        entries = [*self._running.values(), *self._waiting]
        self._running.clear()
        self._waiting.clear()
        self._count()
        for entry in entries:
            entry.row.fail(error)
            self._notify(entry)

    def _count(self) -> None:
        self._metrics.running.set(len(self._running))
        self._metrics.waiting.set(len(self._waiting))
