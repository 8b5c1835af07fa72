"""A canvas against brute force: whether it can be filled, what each slot may hold, and its operations."""

from __future__ import annotations

import random

import numpy as np
from diffusion_oracle import allowed_by_slot, fillings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import Oracle
from toys import PIECES, compile_ir, grammars

from maskwright.compiler import CompiledGrammar
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import EMPTY, OPEN, Slots
from maskwright.errors import UnsatisfiableError
from maskwright.grammar import Grammar
from maskwright.vocabulary import Vocabulary

SLOTS = 4


def sentences(oracle: Oracle, rng: random.Random, count: int) -> list[bytes]:
    """Short texts of the language, walked at random."""
    found = []
    alphabet = list(b'abc120-{}[],:()"\\ \n/+')
    for _ in range(count):
        text, column = b"", oracle.empty
        for _ in range(8):
            if column.complete and rng.random() < 0.4:
                break
            rng.shuffle(alphabet)
            step = next((b for b in alphabet if oracle.read(bytes([b]), column) is not None), None)
            if step is None:
                break
            column = oracle.read(bytes([step]), column)
            text += bytes([step])
        if text:
            found.append(text)
    return found


def small_vocabulary(texts: list[bytes], rng: random.Random, size: int) -> Vocabulary:
    """A few tokens cut from sentences (and from nowhere), two of them alike; one or two ends, a special id."""
    tokens = []
    for _ in range(size):
        if texts and rng.random() < 0.85:
            text = rng.choice(texts)
            first = rng.randrange(len(text))
            tokens.append(text[first : first + rng.choice((1, 1, 2, 3, 8))])
        else:
            tokens.append(rng.choice(PIECES))
    tokens.append(rng.choice(tokens))
    rng.shuffle(tokens)
    return Vocabulary.from_bytes([*tokens, None, b"</s>", b"<end>"], eos_ids=[size + 2, size + 3])


def random_canvas(rng: random.Random, vocabulary: Vocabulary, found: list[tuple[int, ...]]) -> Slots:
    """Mostly open; tokens from a filling where there is one, now and then any."""
    tokens = [OPEN] * SLOTS
    filling = rng.choice(found) if found else None
    for i in range(SLOTS):
        if rng.random() < 0.4:
            held = (
                filling[i]
                if filling is not None and rng.random() < 0.8
                else rng.randrange(vocabulary.size - 3)
            )
            tokens[i] = held
    return Slots(tokens, [token in (OPEN, EMPTY) and rng.random() < 0.2 for token in tokens])


def checked(canvas: Canvas, oracle: Oracle, ends: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Compare a canvas with brute force; all its fillings."""
    tokens = canvas.tokens
    optional = [canvas.is_optional(i) for i in range(len(tokens))]
    found = list(fillings(oracle, canvas.vocabulary, tokens, optional, ends))
    assert tuple(canvas.witness()) in found
    if canvas.exact:
        expected = allowed_by_slot(found, len(tokens))
        for i, token in enumerate(tokens):
            if token == OPEN:
                assert set(np.flatnonzero(canvas.allowed(i)).tolist()) == expected[i], (i, tokens)
    return found


@given(grammars(), st.integers(0, 2**32))
@settings(
    max_examples=int(__import__("os").environ.get("N", "120")),
    phases=[__import__("hypothesis").Phase.generate],
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_random_grammars_against_brute_force(made: Grammar, seed: int) -> None:
    rng = random.Random(seed)
    oracle = Oracle(made)
    texts = sentences(oracle, rng, 8)
    vocabulary = small_vocabulary(texts, rng, 6)
    try:
        compiled = CompiledGrammar(compile_ir(made, vocabulary), vocabulary)
    except UnsatisfiableError:
        return
    ends = vocabulary.eos_ids if rng.random() < 0.8 else ()
    everything = list(fillings(oracle, vocabulary, [OPEN] * SLOTS, [False] * SLOTS, ends))
    slots = random_canvas(rng, vocabulary, everything)
    found = list(fillings(oracle, vocabulary, slots.tokens, slots.optional, ends))
    try:
        canvas = Canvas(compiled, slots, eos_ids=ends)
    except UnsatisfiableError:
        assert not found
        return
    assert found
    checked(canvas, oracle, ends)
    while canvas.open:
        # Propose anything; what is refused has no filling.
        position = rng.choice(canvas.open)
        proposals = [
            (position, rng.choice([i for i in range(vocabulary.size) if vocabulary.tokens[i] or i in ends]))
            for position in rng.sample(canvas.open, min(len(canvas.open), rng.choice((1, 1, 2, 3))))
        ]
        before = canvas.tokens
        taken = canvas.commit_many(proposals)
        kept = list(before)
        for position, token in proposals:
            trial = list(kept)
            if trial[position] == OPEN:
                trial[position] = token
                if any(True for _ in fillings(oracle, vocabulary, trial, slots.optional, ends)):
                    kept = trial
                    for i in range(position, SLOTS) if token in ends else ():
                        if kept[i] == OPEN:
                            kept[i] = EMPTY if slots.optional[i] else token
            assert (position in taken) == (kept[position] == token)
        assert kept == canvas.tokens
        found = checked(canvas, oracle, ends)
        if not taken:
            position = rng.choice(canvas.open)
            assert canvas.try_commit(position, canvas.witness()[position])
    assert found
