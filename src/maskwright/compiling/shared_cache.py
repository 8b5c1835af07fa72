"""Compiled grammars that many processes share: any mapping from names to bytes, looked into before a source is compiled.

A name says what was compiled: the source, its options and limits, and the code that reads it.  What is there under it is taken
as what ``CompiledGrammar.to_bytes`` writes, or as nothing: where it is damaged, or the mapping cannot be asked, the source is
compiled.  Nothing in it is run.  Whoever can write to it decides what outputs are allowed, so it belongs to those who may.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from maskwright.base import disk_cache
from maskwright.base.arguments import check_type
from maskwright.compiling.compiled import CompiledGrammar, grammar_bytes, grammar_from_bytes
from maskwright.errors import MaskwrightError
from maskwright.vocabulary.vocabulary import Vocabulary

_PREFIX = "maskwright-"


class _Store(Protocol):
    """Such as a client of Redis."""

    def get(self, name: str, /) -> Any: ...
    def set(self, name: str, data: bytes, /) -> Any: ...


SharedCache: TypeAlias = "_Store | dict[str, bytes]"


class DirectoryCache:
    """A directory as a shared cache (``Compiler(shared=...)``): on a disk of this machine, or one that many machines see.

    Files are whole or not there, whoever is killed while it writes.  Nothing is ever deleted: ``keep`` the files used last by
    what tidies such directories.  Raises ``OSError`` where it cannot be read or written.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        check_type(path, (str, os.PathLike), "path", MaskwrightError)
        self.path = Path(path)

    def get(self, name: str) -> bytes | None:
        """What was kept under a name, or None."""
        try:
            return (self.path / _file_name(name)).read_bytes()
        except FileNotFoundError:
            return None

    def set(self, name: str, data: bytes) -> None:
        """Keep bytes under a name."""
        disk_cache.place(self.path, _file_name(name), data)


def _file_name(name: str) -> str:
    if not isinstance(name, str) or not re.fullmatch(r"[\w-][\w.-]{,199}", name, re.ASCII):
        raise MaskwrightError(f"{name!r} is no name of a file"[:300])
    return f"{name}.bin"


def check_shared(shared: object) -> None:
    """Raises ``MaskwrightError`` for what cannot be a shared cache."""
    if shared is not None and not (
        callable(getattr(shared, "get", None)) and (hasattr(shared, "set") or hasattr(shared, "__setitem__"))
    ):
        raise MaskwrightError(
            f"shared: expected a dict, or an object with get(name) and set(name, bytes), not {type(shared).__name__}"
        )


def fetch(shared: SharedCache | None, name: str, vocabulary: Vocabulary) -> CompiledGrammar | None:
    """The grammar that is kept under a name, if there is one."""
    try:
        data = shared.get(_PREFIX + name) if shared is not None else None
    except Exception:
        # Whatever is wrong with it, such as a server that is gone, costs the time to compile and nothing else.
        return None
    if not isinstance(data, (bytes, bytearray, memoryview)):
        return None
    try:
        return grammar_from_bytes(bytes(data), vocabulary, name)
    except MaskwrightError:
        # The source says what is wrong, if it is not the data.
        return None


def store(shared: SharedCache | None, name: str, grammar: CompiledGrammar) -> None:
    """Keep a grammar under a name, where that is possible."""
    data = grammar_bytes(grammar, name)
    try:
        put: Any = getattr(shared, "set", None) or getattr(shared, "__setitem__", None)
        if put is not None:
            put(_PREFIX + name, data)
    except Exception:
        return
