"""One engine per vocabulary, and its disk cache.

The trie of a vocabulary and the context-independent masks of lexemes that most grammars use are
computed once and kept in a file.  Its name says what it was computed from: the vocabulary, the
automata, and the compiled engine itself.  A file that cannot be read is ignored and replaced.

Directory: ``$MASKWRIGHT_CACHE_DIR``, else ``$XDG_CACHE_HOME/maskwright``, else
``~/.cache/maskwright``; an empty ``MASKWRIGHT_CACHE_DIR`` turns the disk cache off.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import struct
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from maskwright import _core
from maskwright._core import Engine
from maskwright.automata import Nfa
from maskwright.grammar import Lexeme
from maskwright.limits import DEFAULT_LIMITS
from maskwright.lowering import add_nfa, lexeme_nfa
from maskwright.vocabulary import Vocabulary

_MAGIC = b"maskwright engine cache 2\n"
_EXPLORE_LIMIT = 256
"""Only small automata are precomputed (determinised states)."""


def engine_for(vocabulary: Vocabulary, common: Iterable[Lexeme] = ()) -> Engine:
    """The engine of a vocabulary, built or loaded on first use.

    ``common`` are the lexemes whose masks are precomputed and cached.
    """
    engine: Engine | None = vocabulary._engine
    if engine is None:
        engine = vocabulary._engine = _load_or_build(vocabulary, list(common))
    return engine


def cache_directory() -> Path | None:
    configured = os.environ.get("MASKWRIGHT_CACHE_DIR")
    if configured is not None:
        return Path(configured) if configured else None
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "maskwright"


def _load_or_build(vocabulary: Vocabulary, common: list[Lexeme]) -> Engine:
    automata = [(lexeme, lexeme_nfa(lexeme, DEFAULT_LIMITS)) for lexeme in common]
    directory = cache_directory()
    path = None
    if directory is not None:
        path = directory / f"{vocabulary.digest}-{_content_digest(automata)}.bin"
        try:
            return _load(path, vocabulary, automata)
        except (OSError, ValueError, struct.error):
            pass
    engine = Engine(list(vocabulary.tokens), vocabulary.eos_ids)
    blobs = [*engine.dump_trie()]
    for lexeme, nfa in automata:
        handle = add_nfa(engine, lexeme, nfa)
        if handle.explore(_EXPLORE_LIMIT) <= _EXPLORE_LIMIT:
            for state in engine.dump_masks(handle):
                blobs.extend(state)
    if path is not None:
        _save(path, blobs)
    return engine


def _content_digest(automata: list[tuple[Lexeme, Nfa]]) -> str:
    # Masks of another build must never be taken over: the extension itself is part of the name.
    digest = hashlib.blake2b(digest_size=8)
    digest.update(Path(_core.__file__).read_bytes())
    digest.update(repr([(lexeme.key, nfa) for lexeme, nfa in automata]).encode())
    return digest.hexdigest()


def _save(path: Path, blobs: list[bytes]) -> None:
    # Written aside and renamed, so that readers never see half a file; a full disk is no error.
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_MAGIC)
            file.write(struct.pack("<q", len(blobs)))
            file.write(struct.pack(f"<{len(blobs)}q", *map(len, blobs)))
            for blob in blobs:
                file.write(blob)
        os.replace(file.name, path)
    except OSError:
        return


def _load(path: Path, vocabulary: Vocabulary, automata: list[tuple[Lexeme, Nfa]]) -> Engine:
    blobs = _read_blobs(path.read_bytes())
    nodes, token_ids = itertools.islice(blobs, 2)
    engine = Engine(list(vocabulary.tokens), vocabulary.eos_ids, (nodes, token_ids))
    for lexeme, nfa in automata:
        handle = add_nfa(engine, lexeme, nfa)
        states = handle.explore(_EXPLORE_LIMIT)
        if states <= _EXPLORE_LIMIT:
            masks = list(itertools.islice(blobs, 3 * states))
            if len(masks) != 3 * states:
                raise ValueError("the cache file holds less than expected")
            engine.load_masks(handle, list(zip(masks[0::3], masks[1::3], masks[2::3], strict=True)))
    if next(blobs, None) is not None:
        raise ValueError("the cache file holds more than expected")
    return engine


def _read_blobs(data: bytes) -> Iterator[bytes]:
    if not data.startswith(_MAGIC):
        raise ValueError("not a cache file of this version")
    at = len(_MAGIC)
    (count,) = struct.unpack_from("<q", data, at)
    lengths = struct.unpack_from(f"<{count}q", data, at + 8)
    at += 8 + 8 * count
    if at + sum(lengths) != len(data):
        raise ValueError("the cache file is cut short")
    for length in lengths:
        yield data[at : at + length]
        at += length
