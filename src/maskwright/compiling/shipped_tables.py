"""What the grammars that come with the package were lowered to, so that nobody who uses them waits for that.

Building the package makes a file for each of them (``build_tables``).  It holds tables like the files of ``table_cache``, for any
vocabulary, and is named by the source with its options.  A digest of all Python code that reads grammars is sealed with them: where
that has changed since, a file is as good as not there.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Hashable
from dataclasses import replace
from pathlib import Path

from maskwright.base.sealed import seal, unseal
from maskwright.compiling.table_cache import sources_digest
from maskwright.limits import DEFAULT_LIMITS, Limits

FOLDER = Path(__file__).with_name("tables")
_MAGIC = f"maskwright tables 1 {sys.byteorder} {sys.version_info.major}.{sys.version_info.minor}\n".encode()
_DIGEST_BYTES = 16
_OF_OPERATIONS = ("max_seconds", "max_search", "max_canvas_steps", "max_set_bytes", "max_lattice_states")
"""Limits on which no tables depend."""


def load(key: Hashable) -> list[bytes] | None:
    """The tables of the part with this key (``packed_tables.pack``), or None where it is no shipped grammar."""
    name = file_name(key)
    if name is None or not (FOLDER / name).exists():
        return None
    try:
        # Few need it, and not every Python has it.
        import lzma
    except ImportError:
        return None
    try:
        return unseal(_MAGIC, name + sources_digest(), lzma.decompress((FOLDER / name).read_bytes()))
    except (OSError, lzma.LZMAError):
        return None


def sealed(name: str, parts: list[bytes]) -> bytes:
    """What ``load`` reads."""
    import lzma

    return lzma.compress(seal(_MAGIC, name + sources_digest(), parts), preset=9 | lzma.PRESET_EXTREME)


def file_name(key: Hashable) -> str | None:
    """The file for a part; None where its limits are not those with which the files were made."""
    *source, limits = key if isinstance(key, tuple) else (None,)
    if not isinstance(limits, Limits):
        return None
    if limits != DEFAULT_LIMITS:
        usual = {limit: getattr(DEFAULT_LIMITS, limit) for limit in _OF_OPERATIONS}
        if replace(limits, **usual) != DEFAULT_LIMITS:
            return None
    return f"{hashlib.blake2b(repr(source).encode(), digest_size=_DIGEST_BYTES).hexdigest()}.bin"
