"""A front-end against the oracle: masks along random walks, completions, and mutated texts."""

from __future__ import annotations

import random

import toys
from reference import Oracle

from maskwright._core import Matcher
from maskwright.errors import UnsatisfiableError
from maskwright.ir.grammar import Grammar
from maskwright.vocabulary.vocabulary import Vocabulary

BYTES = toys.byte_vocabulary()
PIECES = toys.piece_vocabulary(7)
MANY_STATES = 400


def check_equal(made: Grammar | None, naive: Grammar, seed: int, vocabulary: Vocabulary = PIECES) -> None:
    """``made`` (None: refused as unsatisfiable) has the language of ``naive``, as far as a walk sees."""
    oracle = Oracle(naive)
    try:
        core = None if made is None else toys.compile_ir(made, vocabulary)
    except UnsatisfiableError:
        core = None
    assert (core is None) == (not oracle.by_left.get(naive.start))
    if core is None:
        return
    rng = random.Random(seed)
    matcher = Matcher(core)
    ids: list[int] = []
    for _ in range(8):
        text = vocabulary.decode(ids)
        column = oracle.read(text)
        assert column is not None
        mask = toys.allowed(matcher)
        expected = toys.oracle_allowed(oracle, text, vocabulary)
        assert mask == expected, (text, [vocabulary.tokens[i] for i in mask ^ expected])
        assert matcher.is_accepting == column.complete
        shortest = matcher.shortest_completion_bytes()
        assert oracle.is_complete(text + shortest), (text, shortest)
        assert len(shortest) == oracle.shortest(column)
        texts = sorted(mask - set(vocabulary.eos_ids))
        if not texts or core.statistics["parser_states"] > MANY_STATES:
            return
        ids.append(rng.choice(texts))
        assert matcher.accept_token(ids[-1])


def accepts(compiled: object, text: str) -> bool:
    """Whether a compiled grammar holds exactly this text."""
    matcher = compiled.matcher()  # type: ignore[attr-defined]
    return (not text or matcher.accept_bytes(text.encode())) and matcher.is_accepting


def finished_walk(compiled: object, seed: int, steps: int = 60) -> bytes:
    """A text made by random tokens that the masks allow, and then the shortest completion; never stuck."""
    rng = random.Random(seed)
    matcher = compiled.matcher()  # type: ignore[attr-defined]
    vocabulary = compiled.vocabulary  # type: ignore[attr-defined]
    ids: list[int] = []
    for _ in range(steps):
        mask = toys.allowed(matcher)
        assert mask, f"stuck behind {vocabulary.decode(ids)!r}"
        texts = sorted(mask - set(vocabulary.eos_ids))
        if not texts or (len(texts) < len(mask) and rng.random() < 0.1):
            break
        ids.append(rng.choice(texts))
        assert matcher.accept_token(ids[-1])
    ids += matcher.shortest_completion()
    assert matcher.fork().accept_tokens(ids[len(matcher.accepted_tokens) :]) == len(ids) - len(
        matcher.accepted_tokens
    )
    return vocabulary.decode(ids)
