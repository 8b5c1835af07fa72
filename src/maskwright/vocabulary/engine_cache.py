"""One engine per vocabulary, and the file of its token trie.

The token trie of a vocabulary is built once and kept in a file (``disk_cache``).  Its name says what it was built from:
the vocabulary, and the compiled engine itself.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache, partial
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from threading import RLock

from maskwright import _core
from maskwright._core import Engine
from maskwright.base import disk_cache
from maskwright.vocabulary.vocabulary import Vocabulary

_building = RLock()


def engine_for(vocabulary: Vocabulary) -> Engine:
    """The engine of a vocabulary, built or loaded on first use."""
    with _building:
        engine: Engine | None = vocabulary._engine
        if engine is None:
            engine = _load_or_build(vocabulary)
            engine.mask_budget = vocabulary.mask_budget
            engine.state_budget = vocabulary.state_budget
            engine.special_tokens = dict(vocabulary.special_tokens)
            engine.special_ids = frozenset(vocabulary.special_ids)
            vocabulary._engine = engine
    return engine


def _renew_lock() -> None:
    # Nobody builds in a child that was just forked.
    global _building
    _building = RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


def _load_or_build(vocabulary: Vocabulary) -> Engine:
    build = partial(
        Engine,
        list(vocabulary.tokens),
        vocabulary.eos_ids,
        start_tokens=vocabulary.start_tokens,
        start_stays=vocabulary.start_stays,
    )
    if disk_cache.cache_directory() is None:
        return build()
    name = f"{vocabulary.digest}-{build_digest(_core.__file__)}.bin"
    kept = disk_cache.read(name)
    if kept is not None:
        nodes, ids = kept
        return build((nodes, ids))
    engine = build()
    disk_cache.write(name, *engine.dump_trie())
    return engine


@cache
def build_digest(extension: str) -> str:
    """What tells builds apart, by ``_core`` and the modules that it is made of: what another one wrote must never be taken over."""
    content = hashlib.blake2b(digest_size=8)
    modules = (Path(extension).parent / "_engine").glob("*")
    for path in (
        Path(extension),
        *sorted(path for path in modules if path.name.endswith(tuple(EXTENSION_SUFFIXES))),
    ):
        content.update(hashlib.blake2b(path.read_bytes()).digest())
    return content.hexdigest()
