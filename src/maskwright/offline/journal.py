"""The output of a batch: lines are appended whole, so that whoever is killed loses the row under way and nothing else.

A line is a JSON object with the key of its row (``rows.Reader.key``): ``"row": KEY`` in plain rows, ``"id": "batch_req_KEY"`` in those of
OpenAI's format.  Opening the file again finds the keys; a last line that is the beginning of a row is cut off.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from maskwright.errors import MaskwrightError

OPENAI_PREFIX = "batch_req_"
_BEGINNING = b'{"id": '
"""Of every row."""
_KEY = re.compile(r"([1-9][0-9]{0,17})-([0-9a-f]{24})")
_SYNC_SECONDS = 5.0
"""Between writes to the disk itself: what a machine that loses its power may lose."""


class Journal:
    """The output file, locked for one writer.  ``done``: by the number of its line in the input, the digest of each row that is there.

    ``overwrite``: what it has is given up, but not before ``begin``.
    Raises ``OSError`` where the file cannot be written, and ``MaskwrightError`` for a file that is no output of a batch, or that another
    process writes; it stays as it was.
    """

    def __init__(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        self.path = Path(path)
        self.done: dict[int, str] = {}
        self._overwrite = overwrite
        if self.path.exists() and not self.path.is_file():
            raise OSError(errno.EINVAL, "the output is read again, so it must be a file", str(self.path))
        self.file: BinaryIO = open(self.path, "a+b")  # noqa: SIM115
        try:
            _lock(self.file, self.path)
            if not overwrite:
                self._read()
        except BaseException:
            self.file.close()
            raise
        self._synced = time.monotonic()

    def _read(self) -> None:
        self.file.seek(0)
        end, is_open = 0, False
        for number, line in enumerate(self.file, 1):
            found = _key_of(line)
            if found is None:
                if _is_torn(line):
                    break
                raise MaskwrightError(
                    f"{self.path}:{number}: this is no row of a batch's output: name another file, or begin anew with --overwrite"
                )
            place, digest = found
            if place in self.done:
                raise MaskwrightError(
                    f"{self.path}:{number}: row {place} is there twice: begin anew with --overwrite"
                )
            self.done[place] = digest
            end += len(line)
            is_open = not line.endswith(b"\n")
        self.file.truncate(end)
        if is_open:
            # Whole, but for the end of the line.
            self.file.write(b"\n")
            self.file.flush()

    def begin(self) -> None:
        """Whatever rows need is there: what is to be overwritten can go.  Raises ``OSError``."""
        if self._overwrite:
            self.file.truncate(0)

    def add(self, line: int, record: dict[str, Any]) -> None:
        """Append the row of a line of the input; as soon as this returns, a kill does not lose it.

        Raises ``MaskwrightError`` when the row is there already.
        """
        if line in self.done:
            raise MaskwrightError(f"row {line} was filled twice")
        data = encoded(record)
        self.file.write(data)
        self.file.flush()
        found = _key_of(data)
        assert found is not None, "records have keys"
        self.done[line] = found[1]
        if time.monotonic() - self._synced > _SYNC_SECONDS:
            self._sync()

    def sort(self) -> None:
        """Put the rows into the order of the input; the file is replaced as a whole.  Raises ``OSError``."""
        self.file.seek(0)
        places, start = [], 0
        for line in self.file:
            found = _key_of(line)
            assert found is not None, "lines were read, or written here"
            places.append((found[0], start, len(line)))
            start += len(line)
        if places == sorted(places):
            return
        # What a link leads to is the file.
        path = self.path.resolve()
        number, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(number, "wb") as new:
                for _, start, length in sorted(places):
                    self.file.seek(start)
                    new.write(self.file.read(length))
                new.flush()
                os.fsync(new.fileno())
            os.chmod(name, path.stat().st_mode & 0o7777)
            os.replace(name, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(name)
            raise

    def _sync(self) -> None:
        with suppress(OSError):  # A pipe, or a file system without it.
            os.fsync(self.file.fileno())
        self._synced = time.monotonic()

    def close(self) -> None:
        """Write all to the disk, and let others have the file."""
        if not self.file.closed:
            self._sync()
            self.file.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def encoded(record: dict[str, Any]) -> bytes:
    """A line of JSON; with escapes only where a text cannot do without."""
    try:
        return json.dumps(record, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(record, allow_nan=False).encode() + b"\n"


def _key_of(line: bytes) -> tuple[int, str] | None:
    """The number of the row's line in the input, and the row's digest; None for anything else than a whole line of an output."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    key, name = record.get("row"), record.get("id")
    if key is None and isinstance(name, str) and name.startswith(OPENAI_PREFIX):
        key = name.removeprefix(OPENAI_PREFIX)
    found = _KEY.fullmatch(key) if isinstance(key, str) else None
    return None if found is None else (int(found[1]), found[2])


def _is_torn(line: bytes) -> bool:
    """Whether of the row in this line, the last one, only a part was written."""
    if not line.startswith(_BEGINNING):
        return _BEGINNING.startswith(line)
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return not line.endswith(b"\n")
    return False


def _lock(file: BinaryIO, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise MaskwrightError(f"{path}: another process is writing this output") from None
    except OSError:
        return  # A file system without locks.
