"""A compiled grammar, and how it gets to another process: as bytes, and pickled with its vocabulary and its matchers."""

from __future__ import annotations

import copyreg
import hashlib
import json
import sys
from collections.abc import Hashable
from dataclasses import fields
from typing import Any
from weakref import ref

from maskwright._core import (
    CompiledCore,
    Matcher,
    StateSets,
    automata_bytes,
    history_of,
    replay_history,
    tables_bytes,
)
from maskwright.base.arguments import check_type
from maskwright.base.collection import rare_collection
from maskwright.base.deadline import deadline
from maskwright.base.sealed import seal, unseal
from maskwright.compiling.lowering import link
from maskwright.compiling.packed_tables import pack, unpack
from maskwright.errors import GrammarError, MaskwrightError, VocabularyError
from maskwright.limits import LIMIT_NAMES, Limits
from maskwright.vocabulary.engine_cache import engine_for
from maskwright.vocabulary.vocabulary import Vocabulary

_KIND = b"maskwright grammar "
_LAYOUT = 3
"""To be raised whenever tables mean something else, or are packed in another way."""
# Of all grammars that are kept together: a state takes about a kilobyte; the bytes of their automata.
_STATES_KEPT = 1_000_000
_AUTOMATA_KEPT = 128 << 20
_BYTES_EVERY = 16
_LARGE = 4 << 20
"""Bytes of a grammar that weigh as much as another one."""
_LINE = _KIND + f"{_LAYOUT} {sys.byteorder}\n".encode()


class CompiledGrammar:
    """A language bound to a vocabulary: immutable, and shared by any number of matchers.

    It can be pickled: what arrives is bound to a vocabulary equal to its own, which all that is received shares.
    """

    def __init__(self, core: CompiledCore, vocabulary: Vocabulary) -> None:
        self._core = core
        self._state_sets: StateSets | None = None
        self.vocabulary = vocabulary
        core.vocabulary = vocabulary
        core.grammar = ref(self)

    def matcher(self, max_rollback: int | None = None) -> Matcher:
        """A new matcher at the start of the text.

        max_rollback: how many tokens it can take back, counted from the most that were ever accepted.  A long text takes no
        more memory than so many tokens do then, and ``accepted_tokens`` has only those.  None: all, which are kept.
        """
        return Matcher(self._core, max_rollback)

    def with_limits(self, limits: Limits) -> CompiledGrammar:
        """The same language, for matchers that keep to other limits: a server may give a mask less time than a compile.

        Tables are shared, states are not.
        """
        check_type(limits, Limits, "limits", MaskwrightError)
        return CompiledGrammar(link(self._core.first_tables, limits), self.vocabulary)

    def to_bytes(self) -> bytes:
        """The grammar with its limits as bytes, for ``from_bytes``; equal for equal ones.

        They depend on no vocabulary, process or version of Python, but on the byte order of the machine and on the version of their
        layout.  A digest finds damage.
        """
        return grammar_bytes(self, "")

    @classmethod
    def from_bytes(cls, data: bytes, vocabulary: Vocabulary) -> CompiledGrammar:
        """The grammar that ``to_bytes`` has written, for any vocabulary; the same one for equal bytes, while it is kept.

        Nothing in the bytes is run, and damage is found.  But a digest is no signature: tables that somebody has made by hand, to do harm,
        can make the engine fail.  Take bytes from those only whom you trust to write to your cache; from others, take sources.
        Raises ``GrammarError`` for what is damaged, cut off, no compiled grammar, or written on a machine of another byte order or
        by a version with another layout, and where the vocabulary has no token that the grammar names; ``LimitError``.
        """
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise GrammarError(f"a compiled grammar is read from bytes, not {type(data).__name__}")
        check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
        content = bytes(data)
        key = ("received", hashlib.blake2b(content, digest_size=16).digest())
        found: CompiledGrammar | None = vocabulary._compiled.get(key)
        if found is None:
            found = grammar_from_bytes(content, vocabulary, "")
            keep_grammar(key, found, vocabulary)
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return CompiledGrammar.from_bytes, (self.to_bytes(), self.vocabulary)

    def __copy__(self) -> CompiledGrammar:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledGrammar:
        return self

    @property
    def statistics(self) -> dict[str, int]:
        """Counts of interned states, and bytes of cached masks."""
        return self._core.statistics

    def __repr__(self) -> str:
        return f"CompiledGrammar({self.vocabulary!r})"


def grammar_bytes(grammar: CompiledGrammar, name: str) -> bytes:
    """The grammar as bytes that are good under this name only."""
    limits = grammar._core.limits
    head = json.dumps({each: getattr(limits, each) for each in LIMIT_NAMES}).encode()
    with rare_collection():
        return seal(_LINE, name, [head, *pack(grammar._core.first_tables)])


def grammar_from_bytes(data: bytes, vocabulary: Vocabulary, name: str) -> CompiledGrammar:
    """The grammar that was written under this name; raises the errors of ``CompiledGrammar.from_bytes``."""
    parts = unseal(_LINE, name, data)
    if parts is None or not parts:
        raise GrammarError(_what_is_wrong(data))
    limits = _limits(parts[0])
    with rare_collection(), deadline(limits.max_seconds):
        tables = unpack(parts[1:], engine_for(vocabulary), limits)
        return CompiledGrammar(link(tables, limits), vocabulary)


def grammar_size(grammar: CompiledGrammar) -> int:
    """About what a grammar takes, without what it shares with others (bytes)."""
    core = grammar._core
    return core.state_bytes + sum(tables_bytes(each) for each in core.first_tables.all_tables())


def keep_grammar(key: Hashable, compiled: CompiledGrammar, vocabulary: Vocabulary) -> None:
    """Have it found under a key, and let go of others that were not used lately."""
    kept = vocabulary._compiled
    tables = compiled._core.first_tables.all_tables()
    made_of = sum([tables_bytes(each) + automata_bytes(each, False) for each in tables])
    kept.put(key, compiled, 1 + made_of // _LARGE)
    kept.shed(_states_of, _STATES_KEPT)
    kept.shed(_automata_of, _AUTOMATA_KEPT, grown=engine_for(vocabulary).grown_bytes)
    if kept.most_bytes is not None:
        # Of many, one more matters less than looking at all of them takes.
        held = kept.shed(grammar_size, kept.most_bytes, max(len(kept) // _BYTES_EVERY, 1))
        kept.held_bytes = kept.held_bytes if held is None else held


def _automata_of(compiled: CompiledGrammar) -> int:
    return sum([automata_bytes(each) for each in compiled._core.first_tables.all_tables()])


def _states_of(compiled: CompiledGrammar) -> int:
    sets = compiled._state_sets
    return compiled._core.state_count + (sets.state_count if sets is not None else 0)


def _limits(head: bytes) -> Limits:
    try:
        given = json.loads(head)
        return Limits(**{each.name: given[each.name] for each in fields(Limits) if each.init})
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise GrammarError(f"the limits of a compiled grammar are not well formed: {error}") from None


def _what_is_wrong(data: bytes) -> str:
    line, _, _ = data[:100].partition(b"\n")
    again = "compile the source here, or have it written again"
    words = line[len(_KIND) :].split()
    if not line.startswith(_KIND) or len(words) != 2 or not words[0].isdigit():
        return f"these bytes are no compiled grammar (CompiledGrammar.to_bytes), or damaged: {again}"
    if words[0] != str(_LAYOUT).encode():
        return f"a compiled grammar of layout {words[0].decode()}, and this version of maskwright reads layout {_LAYOUT}: {again}"
    if words[1] != sys.byteorder.encode():
        return f"a compiled grammar of a machine with another byte order than {sys.byteorder}-endian: {again}"
    return f"a compiled grammar that is damaged or cut off ({len(data)} bytes): {again}"


def _sent(matcher: Matcher) -> tuple[Any, ...]:
    core = matcher.compiled
    if core.vocabulary is None:
        raise MaskwrightError("this matcher cannot be sent: it belongs to no CompiledGrammar")
    grammar = core.grammar()
    if grammar is None:
        grammar = CompiledGrammar(core, core.vocabulary)
    return _received, (grammar, *history_of(matcher))


def _received(grammar: CompiledGrammar, read: list[int | bytes], window: int | None, reached: int) -> Matcher:
    """A matcher that has read what the one that was sent had."""
    matcher = grammar.matcher(window)
    if not replay_history(matcher, read, reached):
        raise MaskwrightError("a matcher that was sent does not fit its grammar: send it again")
    return matcher


# The engine knows no vocabularies, which a matcher cannot do without elsewhere.
copyreg.pickle(Matcher, _sent)
