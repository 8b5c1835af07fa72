"""What a slow source was lowered to, kept in a file, so that another process need not read it again.

Reading a large Lark grammar takes seconds, nearly all of them in patterns; what comes out is plain data
(``lowering.Lowered``) that depends on no vocabulary.  A file (``disk_cache``) has it as JSON, which can hold nothing else.  Its name
says what it was made from: the source with its options, and all code and grammars of packages that were read with it.  The files
used last are kept.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Hashable
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from maskwright import disk_cache
from maskwright.lowering import Lowered

FILES_KEPT = 64
_PREFIX = "grammar-"
_DIGEST_BYTES = 16
_EDGES = 3  # in the arguments for the lexer


def stored_name(key: Hashable) -> str:
    """The file for a source; ``key`` consists of plain data and data classes of such."""
    content = f"{key!r} {_code_digest()} {sys.version}"
    return f"{_PREFIX}{hashlib.blake2b(content.encode(), digest_size=_DIGEST_BYTES).hexdigest()}.bin"


def load(name: str) -> Lowered | None:
    """What was kept under a name, or None."""
    kept = disk_cache.read(name)
    if kept is None:
        return None
    plain, edges, final = kept
    lowered = Lowered(*json.loads(plain))
    lexer = *lowered.lexer[:_EDGES], edges, *lowered.lexer[_EDGES:]
    return lowered._replace(lexer=lexer, final=final)


def save(name: str, lowered: Lowered) -> None:
    """Keep it, if there is a directory for it."""
    if disk_cache.cache_directory() is None:
        return
    edges: bytes = lowered.lexer[_EDGES]
    lexer = *lowered.lexer[:_EDGES], *lowered.lexer[_EDGES + 1 :]
    plain = json.dumps((lexer, *lowered[1:3], None, *lowered[4:]), separators=(",", ":"))
    disk_cache.write(name, plain.encode(), edges, lowered.final)
    disk_cache.keep_latest(_PREFIX, FILES_KEPT)


@cache
def _code_digest() -> str:
    """Of all that reads a grammar, as it is run, and of the grammars that come with the package lark."""
    top = Path(__file__).parent
    folders = [top, top / "passes", top / "regex", top / "frontends", top / "frontends" / "lark"]
    # Importing the package would take as long as all the rest.
    found = find_spec("lark")
    if found is not None and found.origin is not None:
        package = Path(found.origin).parent
        folders += [package, package / "parsers", package / "grammars"]
    content = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for path in sorted(path for folder in folders for path in folder.iterdir()):
        if path.name.endswith((".py", ".lark", *EXTENSION_SUFFIXES)):
            content.update(hashlib.blake2b(path.read_bytes()).digest())
    return content.hexdigest()
