"""Brute force: every filling of a canvas, by trying all tokens in all open slots; and random canvases that are compared with it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
from reference import Column, Oracle

from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.slots import EMPTY, OPEN, Slots
from maskwright.vocabulary.vocabulary import Vocabulary

SLOTS = 4


def fillings(
    oracle: Oracle,
    vocabulary: Vocabulary,
    tokens: list[int],
    optional: list[bool],
    ends: tuple[int, ...],
    forbidden: tuple[int, ...] = (),
) -> Iterator[tuple[int, ...]]:
    """All ways to fill a canvas; ids by slot, EMPTY for what is left out; open slots get no ``forbidden`` ids."""
    texts = [i for i, data in enumerate(vocabulary.tokens) if data and i not in forbidden]

    def extend(i: int, column: Column | None, ended: bool, start: bool) -> Iterator[tuple[int, ...]]:
        if i == len(tokens):
            if ended or (column is not None and column.complete):
                yield ()
            return
        held = tokens[i]
        if held == EMPTY or (held == OPEN and optional[i]):
            for rest in extend(i + 1, column, ended, start):
                yield (EMPTY, *rest)
            if held == EMPTY:
                return
        choices = [*texts, *ends] if held == OPEN else [held]
        for token in choices:
            if token in ends:
                if ended or (column is not None and column.complete):
                    for rest in extend(i + 1, column, True, False):
                        yield (token, *rest)
            elif not ended:
                data = vocabulary.tokens[token]
                data = vocabulary.start_tokens.get(token, data) if start else data
                after = oracle.read(data, column)
                if after is not None:
                    for rest in extend(i + 1, after, False, start and not data and vocabulary.start_stays):
                        yield (token, *rest)

    yield from extend(0, oracle.empty, False, True)


def allowed_by_slot(found: list[tuple[int, ...]], slots: int) -> list[set[int]]:
    return [{filling[i] for filling in found if filling[i] != EMPTY} for i in range(slots)]


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


def random_canvas(rng: random.Random, vocabulary: Vocabulary, found: list[tuple[int, ...]]) -> Slots:
    """Mostly open; tokens from a filling where there is one, now and then any."""
    tokens = [OPEN] * SLOTS
    filling = rng.choice(found) if found else None
    for i in range(SLOTS):
        if rng.random() < 0.4:
            held = (
                filling[i]
                if filling is not None and rng.random() < 0.8
                else rng.randrange(vocabulary.vocab_size - 3)
            )
            tokens[i] = held
    return Slots(tokens, [token in (OPEN, EMPTY) and rng.random() < 0.2 for token in tokens])


def checked(
    canvas: Canvas, oracle: Oracle, ends: tuple[int, ...], forbidden: tuple[int, ...] = ()
) -> list[tuple[int, ...]]:
    """Compare a canvas with brute force; all its fillings."""
    tokens = canvas.tokens
    optional = [canvas.is_optional(i) for i in range(len(tokens))]
    found = list(fillings(oracle, canvas.vocabulary, tokens, optional, ends, forbidden))
    assert tuple(canvas.witness()) in found
    if canvas.exact:
        expected = allowed_by_slot(found, len(tokens))
        for i, token in enumerate(tokens):
            if token == OPEN:
                assert set(np.flatnonzero(canvas.allowed(i)).tolist()) == expected[i], (i, tokens)
    return found
