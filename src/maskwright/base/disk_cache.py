"""Files that only save time: whole and meant for this program, or as good as not there.

A file begins with the version of this layout and the byte order of the machine, and with a digest of its name and of all that
follows, so that no damaged, foreign or renamed file is ever taken over: it is made again.  A directory that is missing, full,
unreadable or read-only costs the time that a file would have saved, and nothing else.  Whoever can write to the directory is
trusted, as with Python's own compiled files: the digest finds damage, it is no signature.

Directory: ``$MASKWRIGHT_CACHE_DIR``, else ``$XDG_CACHE_HOME/maskwright``, else ``~/.cache/maskwright``; an empty
``MASKWRIGHT_CACHE_DIR`` turns the cache off.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from maskwright.base.sealed import seal, unseal

_MAGIC = f"maskwright cache 1 {sys.byteorder}\n".encode()
_ASIDE = ".unfinished-"
_ABANDONED_SECONDS = 3600.0


def cache_directory() -> Path | None:
    """Where files are kept; None: nowhere."""
    configured = os.environ.get("MASKWRIGHT_CACHE_DIR")
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get("XDG_CACHE_HOME")
    try:
        return (Path(base) if base else Path.home() / ".cache") / "maskwright"
    except RuntimeError:  # There is no home directory.
        return None


def read(name: str) -> list[bytes] | None:
    """The parts that were written under a name; None where that cannot be had."""
    directory = cache_directory()
    if directory is None:
        return None
    path = directory / name
    try:
        data = path.read_bytes()
    except OSError:
        return None
    parts = unseal(_MAGIC, name, data)
    if parts is not None:
        with suppress(OSError):
            os.utime(path)  # for `keep_latest`
    return parts


def write(name: str, *parts: bytes) -> None:
    """Keep the parts under a name, where that is possible."""
    directory = cache_directory()
    if directory is not None:
        with suppress(OSError):
            place(directory, name, seal(_MAGIC, name, parts))


def place(directory: Path, name: str, data: bytes) -> None:
    """Make a file of a directory, which is made where it is not there: readers see all of it or nothing.  Raises ``OSError``."""
    directory.mkdir(parents=True, exist_ok=True)
    _drop_abandoned(directory)
    handle, aside = tempfile.mkstemp(dir=directory, prefix=_ASIDE)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.replace(aside, directory / name)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


def keep_latest(prefix: str, count: int) -> None:
    """Delete all files whose names begin so but those used last."""
    directory = cache_directory()
    if directory is None:
        return
    with suppress(OSError):
        files = sorted(directory.glob(f"{prefix}*"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-count]:
            path.unlink(missing_ok=True)


def _drop_abandoned(directory: Path) -> None:
    # What a process that was killed has left.  None takes so long to write a file, on whatever machine it runs.
    for path in directory.glob(f"{_ASIDE}*"):
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _ABANDONED_SECONDS:
                path.unlink()
