"""Lexemes -> the engine's automata, which all grammars of an engine share by content."""

from __future__ import annotations

from json.encoder import encode_basestring

from maskwright._core import AutomatonHandle, Engine
from maskwright.ir.grammar import Lexeme, Name, Words
from maskwright.limits import Limits
from maskwright.regular.automata import build_nfa
from maskwright.regular.expressions import OBJECT_BYTES, weight
from maskwright.regular.memo import ROOM

_MANY = 256
"""States of an automaton whose key may be large as well: mostly it is the language's tree."""


def lexeme_automaton(engine: Engine, lexeme: Lexeme, limits: Limits) -> AutomatonHandle:
    """The engine's automaton for a lexeme, built when its content is new to the engine."""
    known: AutomatonHandle | None = engine.get_automaton(lexeme.key)
    return tagged_automaton(engine, (lexeme,), limits) if known is None else known


def tagged_automaton(engine: Engine, lexemes: tuple[Lexeme | None, ...], limits: Limits) -> AutomatonHandle:
    """The automaton of several lexemes of one spelling; it accepts with the index as tag."""
    keys = [None if lexeme is None else lexeme.key for lexeme in lexemes]
    key = keys[0] if len(keys) == 1 else ("tagged", *keys)
    handle = engine.get_automaton(key)
    if handle is None:
        parts = [(lexeme.regular, tag) for tag, lexeme in enumerate(lexemes) if lexeme is not None]
        nfa = build_nfa(parts, limits)
        handle = engine.add_automaton(
            key,
            nfa.n_states,
            nfa.start,
            nfa.sets,
            nfa.edges.tobytes(),
            nfa.epsilons,
            nfa.loops,
            nfa.accepts,
            next(lexeme.spelling for lexeme in lexemes if lexeme is not None),
            OBJECT_BYTES * weight(key, ROOM) if nfa.n_states > _MANY else 0,
        )
    return handle


def words_automaton(engine: Engine, words: Words) -> AutomatonHandle:
    """The engine's automaton for many texts, made when their content is new to the engine."""
    handle = engine.get_automaton(words.key)
    if handle is None:
        starts, tags = words.starts.tobytes(), words.tags.tobytes()
        handle = engine.add_words(words.key, words.data, starts, tags if tags.strip(b"\0") else b"")
    return handle


def canonical_spelling(name: Name) -> bytes:
    """A key between its quotes: raw UTF-8, escapes only where RFC 8259 requires them."""
    text: str = str(name)
    for character in text:
        if character < " " or character == '"' or character == "\\":
            text = encode_basestring(text)[1:-1]
            break
    return text.encode()
