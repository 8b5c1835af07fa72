"""The two passes over the input.

The first one checks every row, so that bad ones are known before hours of work, and compares what is there of the output; the second
one hands the rows that are left to a back-end, and appends what comes back.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from maskwright.errors import LimitError, MaskwrightError
from maskwright.offline.answers import record
from maskwright.offline.journal import OPENAI_PREFIX, Journal, encoded
from maskwright.offline.rows import Line, Reader, Row, RowError, lines

Fill = Callable[[Iterable[Row]], Iterator[tuple[Row, "dict[str, Any] | Exception"]]]


class Progress(Protocol):
    """A progress bar, as ``tqdm`` has it."""

    def update(self, n: int) -> Any: ...


@dataclass(frozen=True)
class BadRow:
    """A row that was left out: where it is, and why."""

    line: int
    id: str | int | None
    shape: str
    place: str
    message: str

    def shown(self, path: str) -> str:
        """For people: ``file:line: id: place: message``."""
        name = "" if self.id in (None, self.line) else f"{self.id}: "
        place = f"{self.place}: " if self.place else ""
        return f"{path}:{self.line}: {name}{place}{self.message}"

    def record(self) -> dict[str, Any]:
        """For programs, as OpenAI's error files have it."""
        error = {
            "message": self.message,
            "type": "invalid_request_error",
            "param": self.place or None,
            "code": "bad_row",
        }
        if self.shape == "openai":
            return {
                "id": f"{OPENAI_PREFIX}{self.line}",
                "custom_id": self.id,
                "line": self.line,
                "response": None,
                "error": error,
            }
        return {"id": self.id, "line": self.line, "error": error}


@dataclass
class Summary:
    """What became of the rows: ``total`` in the input, ``before`` filled by an earlier run, ``filled`` by this one, ``bad`` left out."""

    total: int = 0
    before: int = 0
    filled: int = 0
    bad: int = 0


@dataclass
class _Survey:
    """What the first pass found: lines that need no second look."""

    summary: Summary = field(default_factory=Summary)
    skipped: set[int] = field(default_factory=set)


def run(
    source: Path,
    reader: Reader,
    journal: Journal,
    make: Callable[[], Fill],
    *,
    report: Callable[[BadRow], None],
    progress: Callable[[Summary], Progress],
) -> Summary:
    """Fill what is not filled yet.

    ``make`` makes the back-end, once it is known that there is something to fill.  ``report`` is told of each row
    that is left out; ``progress`` makes a bar.
    Raises ``OSError`` for an input that cannot be read, ``MaskwrightError`` when the output belongs to another input or to other
    settings, and what the back-end raises.
    """
    survey = _survey(source, reader, journal, report)
    summary = survey.summary
    if summary.total == summary.before + summary.bad:
        journal.begin()
        return summary
    back_end = make()
    journal.begin()
    bar = progress(summary)
    waited: dict[int, Row] = {}

    def rows() -> Iterator[Row]:
        for line in _lines(source, reader):
            if line.number in survey.skipped:
                continue
            row = reader.row(line)
            waited[row.line] = row
            yield row

    for row, result in back_end(rows()):
        del waited[row.line]
        if not isinstance(result, Exception):
            try:
                journal.add(row.line, record(row, result))
            except RowError as error:
                result = error
        if isinstance(result, Exception):
            summary.bad += 1
            report(_bad(row, result))
        else:
            summary.filled += 1
        bar.update(1)
    if waited:
        raise MaskwrightError(
            f"{len(waited)} rows did not come back, the first of them line {min(waited)}: run the same command again"
        )
    return summary


def _survey(source: Path, reader: Reader, journal: Journal, report: Callable[[BadRow], None]) -> _Survey:
    found = _Survey()
    summary = found.summary
    ids: dict[str | int, int] = {}
    known = 0
    for line in _lines(source, reader):
        summary.total += 1
        if line.number in journal.done:
            if reader.key(line) != f"{line.number}-{journal.done[line.number]}":
                raise MaskwrightError(
                    f"{journal.path}: row {line.number} was filled from another line or with other settings (schema, model, options): "
                    "name another output, or begin anew with --overwrite"
                )
            known += 1
        try:
            row = reader.row(line)
            first = ids.setdefault(row.id, line.number)
            if first != line.number:
                error = RowError(
                    f"the id {row.id!r} is that of line {first} already"[:300],
                    "/custom_id" if row.shape == "openai" else "/id",
                )
                error.id, error.shape = row.id, row.shape
                raise error
        except RowError as error:
            if line.number in journal.done:
                raise MaskwrightError(
                    f"{journal.path}: row {line.number} was filled, and cannot be left out now: {error.message}"
                ) from None
            summary.bad += 1
            found.skipped.add(line.number)
            report(BadRow(line.number, error.id, error.shape, error.place, error.message))
            continue
        if line.number in journal.done:
            summary.before += 1
            found.skipped.add(line.number)
    if known < len(journal.done):
        lost = len(journal.done) - known
        raise MaskwrightError(
            f"{journal.path}: {lost} of its rows belong to lines that {source} does not have: name another output, or begin anew with "
            "--overwrite"
        )
    return found


def open_input(source: Path) -> io.BufferedReader:
    """Open a file of rows.  Raises ``OSError``, and ``MaskwrightError`` where it cannot be read twice."""
    # Not opened before: whoever opens a pipe waits for its writer.
    if not stat.S_ISREG(os.stat(source).st_mode):
        raise MaskwrightError(f"{source}: the input is read twice, so it must be a file")
    return open(source, "rb")


def _lines(source: Path, reader: Reader) -> Iterator[Line]:
    with open_input(source) as file:
        yield from lines(file, reader.max_line_bytes)


def _bad(row: Row, error: Exception) -> BadRow:
    """What a back-end says about a row; errors of its schema have the schema's place in front."""
    place = getattr(error, "place", None) or ""
    message = getattr(error, "message", None) or str(error) or type(error).__name__
    if isinstance(error, LimitError) and not place:
        message = str(error)
    if not isinstance(error, MaskwrightError):
        message = f"{type(error).__name__}: {message}"
    return BadRow(row.line, row.id, row.shape, place, message)


def write_record(file: Any, bad: BadRow) -> None:
    """Append a bad row to a file of errors."""
    file.write(encoded(bad.record()))
    file.flush()
