"""One engine per vocabulary, and its disk cache.

The token trie of a vocabulary is built once and kept in a file.  Its name says what it was built
from: the vocabulary, and the compiled engine itself.  A file that cannot be read is ignored and
replaced.

Directory: ``$MASKWRIGHT_CACHE_DIR``, else ``$XDG_CACHE_HOME/maskwright``, else
``~/.cache/maskwright``; an empty ``MASKWRIGHT_CACHE_DIR`` turns the disk cache off.
"""

from __future__ import annotations

import hashlib
import os
import struct
import tempfile
from functools import cache, partial
from pathlib import Path
from threading import Lock

from maskwright import _core
from maskwright._core import Engine
from maskwright.vocabulary import Vocabulary

_MAGIC = b"maskwright engine cache 3\n"
_building = Lock()


def engine_for(vocabulary: Vocabulary) -> Engine:
    """The engine of a vocabulary, built or loaded on first use."""
    with _building:
        engine: Engine | None = vocabulary._engine
        if engine is None:
            engine = _load_or_build(vocabulary)
            engine.mask_budget = vocabulary.mask_budget
            engine.special_tokens = dict(vocabulary.special_tokens)
            engine.special_ids = frozenset(vocabulary.special_ids)
            vocabulary._engine = engine
    return engine


def cache_directory() -> Path | None:
    configured = os.environ.get("MASKWRIGHT_CACHE_DIR")
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "maskwright"


def _load_or_build(vocabulary: Vocabulary) -> Engine:
    directory = cache_directory()
    tokens = list(vocabulary.tokens)
    build = partial(
        Engine,
        tokens,
        vocabulary.eos_ids,
        start_tokens=vocabulary.start_tokens,
        start_stays=vocabulary.start_stays,
    )
    if directory is None:
        return build()
    path = directory / f"{vocabulary.digest}-{build_digest(_core.__file__)}.bin"
    try:
        return build(_read(path))
    except (OSError, ValueError, struct.error):
        pass
    engine = build()
    _save(path, engine.dump_trie())
    return engine


@cache
def build_digest(extension: str) -> str:
    """What tells builds apart: tables of another one must never be taken over."""
    return hashlib.blake2b(Path(extension).read_bytes(), digest_size=8).hexdigest()


def _save(path: Path, blobs: tuple[bytes, bytes]) -> None:
    # Written aside and renamed, so that readers never see half a file; a full disk is no error.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_MAGIC)
            file.write(struct.pack("<2q", *map(len, blobs)))
            for blob in blobs:
                file.write(blob)
        os.replace(file.name, path)
    except OSError:
        return


def _read(path: Path) -> tuple[bytes, bytes]:
    data = path.read_bytes()
    if not data.startswith(_MAGIC):
        raise ValueError("not a cache file of this version")
    at = len(_MAGIC)
    first, second = struct.unpack_from("<2q", data, at)
    at += 16
    if min(first, second) < 0 or at + first + second != len(data):
        raise ValueError("the cache file is cut short")
    return data[at : at + first], data[at + first :]
