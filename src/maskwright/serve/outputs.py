"""The outputs of one request, seen from the event loop."""

from __future__ import annotations

import asyncio
import codecs
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

from maskwright.generation.row import Row


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an output is: its bytes, for how many tokens probabilities are known, and whether that is all."""

    text: bytes
    judged: int
    done: bool


class Outputs:
    """``rows``: the outputs, in their order.  ``stream``: whether anybody wants to know before they are done.

    ``names``: whether special tokens are shown by name: they may be marks around calls.
    """

    def __init__(self, rows: list[Row], stream: bool, *, names: bool = False) -> None:
        self.rows = rows
        self._names = names
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._left = len(rows)
        self._news: dict[int, Progress] = {}
        self._changed = asyncio.Event()
        self._error: Exception | None = None

    def watcher(self, index: int) -> Callable[[Row], None]:
        """What the engine's thread calls for the row at a place."""

        def moved(row: Row) -> None:
            if row.done or self._stream:
                progress = Progress(row.shown(self._names), len(row.logprobs), row.done)
                self._loop.call_soon_threadsafe(self._deliver, index, progress)

        return moved

    def _deliver(self, index: int, progress: Progress) -> None:
        # Of several that came since somebody looked, the last one says all.
        self._news[index] = progress
        if progress.done:
            self._left -= 1
            self._error = self._error or self.rows[index].error
        self._changed.set()

    def last(self, index: int) -> Progress:
        """A finished output."""
        row = self.rows[index]
        return Progress(row.shown(self._names), len(row.logprobs), True)

    async def finished(self) -> None:
        """Wait for all.  Raises the first error of any."""
        async for _ in self.changes():
            pass

    async def changes(self) -> AsyncIterator[tuple[int, Progress]]:
        """The rows that grew, until all are done.  Raises the first error of any."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._error is not None:
                raise self._error
            news, self._news = self._news, {}
            left = self._left
            for index in sorted(news):
                yield index, news[index]
            if not left:
                return

    def cancel(self) -> None:
        """Nobody wants them any more."""
        for row in self.rows:
            row.cancelled = True


class GrowingText:
    """The text of an output from bytes that grow: characters are shown once they are whole."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._read = 0

    def more(self, data: bytes, *, final: bool = False) -> str:
        """What is new, given all bytes so far."""
        new = data[self._read :]
        self._read = max(self._read, len(data))
        return self._decoder.decode(new, final)
