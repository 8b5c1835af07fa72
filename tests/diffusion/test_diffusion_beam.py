"""Canvases under shipped grammars with a lexer and a real vocabulary: spans of several tokens, of which a beam search finds a filling."""

from __future__ import annotations

import ast
import functools
import random
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import Canvas, MaskedDiffusionModel, infill
from maskwright.diffusion.beam import beam_filling, likely_tokens
from maskwright.diffusion.slots import OPEN

QUERY = (
    "SELECT name, max(price) FROM products WHERE price > 10 AND stock IS NOT NULL GROUP BY name ORDER BY name"
)
PROGRAM = (
    "def area(width, height):\n    if width < 0:\n        return [0, width]\n    return width * height\n"
)


@functools.cache
def tokenizer() -> Any:
    pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    from maskbench_tokenizers import tekken

    return tekken()


@functools.cache
def grammar(name: str) -> mw.CompiledGrammar:
    return mw.compile(mw.shipped_grammar(name), tokenizer().vocabulary())


class Random(MaskedDiffusionModel):
    """Likes the tokens of one text, and knows nothing else."""

    def __init__(self, liked: list[int]) -> None:
        vocabulary = tokenizer().vocabulary()
        self.mask_id, self.eos_ids = vocabulary.special_ids[-1], vocabulary.eos_ids
        self.size, self.liked = vocabulary.vocab_size, liked
        self.rng = np.random.default_rng(0)

    def logits(self, canvas: list[int]) -> Any:
        logits = self.rng.normal(size=(len(canvas), self.size)).astype(np.float32)
        logits[np.arange(len(canvas)), self.liked] += 5
        return logits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "text", "first", "count"),
    [
        *(("sql", QUERY, first, count) for first, count in [(2, 4), (7, 6), (12, 5), (4, 10)]),
        ("python", PROGRAM, 12, 4),
        ("python", PROGRAM, 13, 6),
    ],
)
def test_a_span_of_several_tokens(name: str, text: str, first: int, count: int) -> None:
    """The set of all texts that such a span may hold takes more than the limits allow."""
    from diffusion_real import is_sql

    vocabulary, ids = tokenizer().vocabulary(), tokenizer().encode(text)
    slots = [None if first <= i < first + count else token for i, token in enumerate(ids)]
    found = infill(Random(ids), grammar(name), slots)
    assert all(slot in (None, token) for slot, token in zip(slots, found, strict=True))
    written = vocabulary.decode(found).decode()
    if name == "sql":
        assert is_sql(written), written
    else:
        ast.parse(written)


@pytest.mark.slow
def test_open_slots_apart() -> None:
    ids = tokenizer().encode(QUERY)
    for seed in range(4):
        some = random.Random(seed).sample(range(len(ids)), 8)
        slots = [None if i in some else token for i, token in enumerate(ids)]
        matcher = grammar("sql").matcher()
        for token in Canvas(grammar("sql"), slots).witness():
            assert matcher.accept_token(token)
        assert matcher.is_terminated or matcher.is_accepting


def test_a_canvas_without_a_filling_is_not_one_that_was_not_found() -> None:
    """That the search finds nothing says nothing: the exact reading decides."""
    ids = tokenizer().encode("SELECT a FROM t )")
    with pytest.raises(mw.UnsatisfiableError):
        Canvas(grammar("sql"), [None if i == 1 else token for i, token in enumerate(ids)])


def test_what_is_found_is_a_filling() -> None:
    """Of any beam, and with what is known of another text: each token is read, and the text ends."""
    ids = tokenizer().encode(QUERY)
    canvas = Canvas(grammar("sql"), [None if i in (3, 5, 6) else token for i, token in enumerate(ids)])
    reading = canvas.reading
    found = beam_filling(
        reading,
        likely_tokens(reading.sets, grammar("sql")._core.engine.segment),
        reading.sets.start,
        0,
        lambda state, i: None,
        lambda state, i: [] if reading.sets.is_accepting(state) else None,
        wide=False,
    )
    assert found is not None and len(found) == len(ids)
    assert all(slot in (OPEN, token) for slot, token in zip(reading.tokens, found, strict=True))
    state = reading.sets.start
    for token in found:
        state = reading.sets.next(state, token)
    assert reading.sets.is_accepting(state)
