"""What a slow source was lowered to, kept in a file, so that another process need not read it again.

Reading a large Lark grammar takes seconds, nearly all of them in patterns; what comes out is plain data
(``packed_tables``) that depends on no vocabulary.  A file (``disk_cache``) has it.  Its name
says what it was made from: the source with its options, and all code and grammars of packages that were read with it.  The files
used last are kept.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Hashable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from maskwright._core import Tables
from maskwright.base import disk_cache
from maskwright.compiling.packed_tables import pack

FILES_KEPT = 64
_PREFIX = "grammar-"
_DIGEST_BYTES = 16


def stored_name(key: Hashable) -> str:
    """The file for a source; ``key`` consists of plain data and data classes of such."""
    return f"{_PREFIX}{source_digest(key)}.bin"


def source_digest(key: Hashable) -> str:
    """What tells a source apart, with all the code that reads it (hexadecimal); ``key`` as for ``stored_name``."""
    content = f"{key!r} {_code_digest()} {sys.version}"
    return hashlib.blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def load(name: str) -> list[bytes] | None:
    """What was kept under a name (``packed_tables.pack``), or None."""
    return disk_cache.read(name)


def save(name: str, tables: Tables) -> None:
    """Keep them, if there is a directory for it."""
    if disk_cache.cache_directory() is None:
        return
    disk_cache.write(name, *pack(tables))
    disk_cache.keep_latest(_PREFIX, FILES_KEPT)


@cache
def _code_digest() -> str:
    """Of all that reads a source, as it is run, and of the grammars that come with the package lark."""
    folders = _folders()
    # Importing the package would take as long as all the rest.
    found = find_spec("lark")
    if found is not None and found.origin is not None:
        package = Path(found.origin).parent
        folders += [package, package / "parsers", package / "grammars"]
    return _digest(folders, (".py", ".lark", *EXTENSION_SUFFIXES))


@cache
def sources_digest() -> str:
    """Of our Python code that reads a source, compiled or not: equal wherever it was installed."""
    return _digest(_folders(), (".py",))


def _folders() -> list[Path]:
    top = Path(__file__).parents[1]
    parts = [
        top / part
        for part in ("_engine", "algebra", "base", "compiling", "frontends", "ir", "regex", "regular")
    ]
    return [top, *parts, *(path for part in parts for path in part.rglob("*") if path.is_dir())]


def _digest(folders: list[Path], endings: tuple[str, ...]) -> str:
    content = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for path in sorted(path for folder in folders for path in folder.iterdir()):
        if path.name.endswith(endings):
            content.update(hashlib.blake2b(path.read_bytes()).digest())
    return content.hexdigest()
