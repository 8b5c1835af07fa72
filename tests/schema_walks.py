"""JSON Schemas and random walks for the tests of threads, eviction and limits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import toys

import maskwright as mw
from maskwright._core import Engine
from maskwright.compiling.lowering import lower
from maskwright.frontends.json_schema import to_grammar
from maskwright.ir.grammar import Grammar, Record
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.vocabulary.engine_cache import engine_for

SCHEMAS: dict[str, Any] = {
    "strings": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "string", "pattern": "^[^1]*1"}},
        "required": ["a"],
        "additionalProperties": False,
    },
    "counted strings": {"type": "array", "items": {"type": "string", "minLength": 2, "maxLength": 30}},
    "other bounds": {"type": "array", "items": {"type": "string", "minLength": 1, "maxLength": 12}},
    "other keys": {
        "type": "object",
        "properties": {"a": {"const": 1}, "ab": {"type": "integer"}, 'a"': False},
        "additionalProperties": {"type": "string", "maxLength": 5},
    },
    "recursive": {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/node"}},
                "additionalProperties": {"type": "string"},
            }
        },
    },
}
TEXTS = (b'{"a": "abab", "b": "1"}', b'["aaaa", "bbbb"]', b'{"ab": 12, "c": "a\\u00e9"}', b'{"b":{"a":"1"}}')
USUAL = frozenset(b'ab1"\\u06{}[]:, \xc3\xa9')
"""Bytes that walks prefer, so that they leave strings and get past blanks."""


def vocabulary(seed: int = 1, size: int = 600, self_loop_least: int = 0) -> mw.Vocabulary:
    """A new vocabulary whose engine uses slices wherever they are sound (``self_loop_least``: see ``Engine``)."""
    made = toys.piece_vocabulary(seed, TEXTS, size)
    engine = Engine(list(made.tokens), made.eos_ids, self_loop_least=self_loop_least)
    engine.mask_budget = made.mask_budget
    made._engine = engine
    return made


def source(name: str) -> Grammar:
    """What a schema means, for the oracle: a context-free grammar, in which keys may repeat."""
    made = to_grammar(SCHEMAS[name])
    made.rules = [replace(body, unique=False) if isinstance(body, Record) else body for body in made.rules]
    return made


def compiled(name: str, vocabulary: mw.Vocabulary, limits: Limits = DEFAULT_LIMITS) -> mw.CompiledGrammar:
    return hurried(source(name), vocabulary, limits)


def hurried(
    source: Grammar | dict[str, Any], vocabulary: mw.Vocabulary, limits: Limits
) -> mw.CompiledGrammar:
    """A grammar or a schema, compiled without haste: the limits are for what the engine does later."""
    grammar = to_grammar(source) if isinstance(source, dict) else source
    return mw.CompiledGrammar(lower(prune(grammar), engine_for(vocabulary), limits), vocabulary)


def ids(row: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist()


def choose(rng: random.Random, allowed: list[int], vocabulary: mw.Vocabulary) -> int | None:
    """One of the allowed tokens, EOS seldom; None when there is nothing but EOS."""
    texts = [i for i in allowed if i not in vocabulary.eos_ids]
    if len(texts) < len(allowed) and rng.random() < 0.1:
        return next(i for i in allowed if i in vocabulary.eos_ids)
    if not texts:
        return None
    usual = [i for i in texts if USUAL.issuperset(vocabulary.tokens[i])] or texts
    return rng.choice([*rng.choices(usual, k=5), rng.choice(texts)])


def walk(compiled: mw.CompiledGrammar, seed: int, steps: int = 40) -> Iterator[tuple[Any, ...]]:
    """What a matcher answers along a random walk with forks and steps back."""
    rng = random.Random(seed)
    vocabulary = compiled.vocabulary
    matcher = compiled.matcher()
    mask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    for _ in range(steps):
        matcher.fill_next_token_bitmask(mask)
        view = bytes(matcher.next_token_bitmask())
        some = rng.randrange(vocabulary.vocab_size)
        answer = matcher.fork().accept_token(some)
        rest = matcher.shortest_completion_bytes() if rng.random() < 0.2 else None
        yield matcher.accepted_tokens, mask.tobytes(), view, some, answer, rest
        token = choose(rng, ids(mask[0]), vocabulary)
        if token is None or matcher.is_terminated:
            matcher.reset()
            continue
        assert matcher.accept_token(token)
        if rng.random() < 0.15:
            matcher = matcher.fork()
            matcher.rollback(rng.randint(1, len(matcher.accepted_tokens)))
