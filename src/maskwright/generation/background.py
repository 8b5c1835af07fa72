"""Rows of callers that wait asynchronously: one thread moves them all, and new ones join while others run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

from maskwright.generation.batch import Batch
from maskwright.generation.jobs import step_of
from maskwright.generation.results import Step
from maskwright.generation.row import Row


class Background:
    """Runs a batch in a thread as long as it has rows.  ``make_batch``: the batch; ``lock``: held during each pass."""

    def __init__(self, make_batch: Callable[[], Batch], lock: Any) -> None:
        self._make_batch = make_batch
        self._model_lock = lock
        self._lock = threading.Lock()
        self._new: list[Row] = []
        self._waited: dict[int, tuple[Row, Callable[[Row], object]]] = {}
        self._thread: threading.Thread | None = None

    async def run(self, row: Row, on_step: Callable[[Step], None] | None = None) -> None:
        """Let a row run to its end; ``on_step`` is called in the event loop with each step of it.

        When the waiting task is cancelled the row leaves the batch, and nothing else changes.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def deliver(step: Step | None, error: Exception | None, is_over: bool) -> None:
            if done.done():
                return
            if on_step is not None and step is not None:
                on_step(step)
            if error is not None:
                done.set_exception(error)
            elif is_over:
                done.set_result(None)

        def tell(moved: Row) -> None:
            # Here, between passes: in the event loop the row would move while it is looked at.
            step = None if on_step is None else step_of(moved)
            loop.call_soon_threadsafe(deliver, step, moved.error, moved.done)

        self._submit(row, tell)
        try:
            await done
        finally:
            row.cancelled = True

    def _submit(self, row: Row, watcher: Callable[[Row], object]) -> None:
        with self._lock:
            self._new.append(row)
            self._waited[id(row)] = row, watcher
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="maskwright-generation", daemon=True)
                self._thread.start()

    def _work(self) -> None:
        batch: Batch | None = None
        while True:
            with self._lock:
                new, self._new = self._new, []
                if not new and (batch is None or not batch.is_busy):
                    self._thread = None
                    return
            try:
                batch = batch or self._make_batch()
                batch.submit(new)
                with self._model_lock:
                    changed = batch.step()
            except Exception as error:  # the model's own: everybody who waits for this batch is told
                batch = None
                with self._lock:
                    later = {id(row) for row in self._new}
                    changed = [row for row, _ in self._waited.values() if id(row) not in later]
                for row in changed:
                    row.fail(error)
            for row in changed:
                self._tell(row)

    def _tell(self, row: Row) -> None:
        with self._lock:
            over = row.done or row.cancelled
            found = self._waited.pop(id(row), None) if over else self._waited.get(id(row))
        if found is None:
            return
        try:
            found[1](row)
        except RuntimeError:  # the caller's event loop is closed
            row.cancelled = True
