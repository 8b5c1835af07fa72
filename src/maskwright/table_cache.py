"""What a slow source was lowered to, kept in a file, so that another process need not read it again.

Reading a large Lark grammar takes seconds, nearly all of them in patterns; what comes out is plain data
(``lowering.Lowered``) that depends on no vocabulary.  A file's name says what it was made from: the source
with its options, and the code and the packages that read it.  One that cannot be read is ignored and
replaced.  The directory is that of ``engine_cache``; the files used last are kept.
"""

from __future__ import annotations

import hashlib
import marshal
import os
import sys
import tempfile
from collections.abc import Hashable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from maskwright import _core
from maskwright.engine_cache import build_digest, cache_directory
from maskwright.lowering import Lowered

FILES_KEPT = 64
_MAGIC = b"maskwright grammar cache 1\n"
_DIGEST_BYTES = 16


def stored_name(key: Hashable) -> str:
    """The file for a source; ``key`` consists of plain data and data classes of such."""
    content = f"{key!r} {_code_digest()} {build_digest(_core.__file__)} {sys.version} {_lark_version()}"
    return f"grammar-{hashlib.blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()}.bin"


def load(name: str) -> Lowered | None:
    """What was kept under a name, or None."""
    directory = cache_directory()
    if directory is None:
        return None
    path = directory / name
    try:
        data = path.read_bytes()
        start = len(_MAGIC) + _DIGEST_BYTES
        if data[:start] != _MAGIC + _digest(data[start:]):
            return None
        os.utime(path)
        return Lowered(*marshal.loads(data[start:]))
    except (OSError, ValueError, EOFError, TypeError):
        return None


def save(name: str, lowered: Lowered) -> None:
    """Keep it, if there is a directory for it."""
    directory = cache_directory()
    if directory is None:
        return
    # Written aside and renamed, so that readers never see half a file.  A full disk is no error, nor is what
    # cannot be written: it is read again.
    try:
        data = marshal.dumps(tuple(lowered))
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as file:
            file.write(_MAGIC + _digest(data) + data)
        os.replace(file.name, directory / name)
        files = sorted(directory.glob("grammar-*.bin"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-FILES_KEPT]:
            path.unlink()
    except (OSError, ValueError):
        return


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()


@cache
def _code_digest() -> str:
    found = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    top = Path(__file__).parent
    for folder in (top, top / "passes", top / "regex", top / "frontends", top / "frontends" / "lark"):
        for path in sorted(folder.glob("*.py")):
            found.update(path.read_bytes())
    return found.hexdigest()


@cache
def _lark_version() -> str:
    # Neither importing the package nor reading its metadata is needed, which would take as long as all the rest.
    found = find_spec("lark")
    if found is None or found.origin is None:
        return ""
    return hashlib.blake2b(Path(found.origin).read_bytes(), digest_size=_DIGEST_BYTES).hexdigest()
