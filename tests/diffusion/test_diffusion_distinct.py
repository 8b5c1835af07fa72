"""Canvases under arrays whose items must differ: which items came is forgotten in states of many texts, never in results."""

from __future__ import annotations

import itertools
import json
import random

import pytest

import maskwright as mw
from maskwright.diffusion import Canvas
from maskwright.errors import UnsatisfiableError

TOKENS = [b"[", b"]", b",", b"1", b"2", b"3", b"[1", b",2", b"2]", b"1,", b"3]", b"null"]
END = len(TOKENS)
VOCABULARY = mw.Vocabulary.from_bytes([*TOKENS, None], eos_ids=[END])
SCHEMAS = {
    "different": {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 2},
    "equal": {"type": "array", "items": {"enum": [1, 2, 3]}, "not": {"uniqueItems": True}},
    "nested": {
        "type": "array",
        "items": {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
        "uniqueItems": True,
    },
}


def texts(name: str, slots: int) -> set[tuple[int, ...]]:
    """All fillings, by trying every row of tokens."""
    compiled = mw.compile_json_schema(SCHEMAS[name], VOCABULARY)
    found = set()

    def walk(done: tuple[int, ...]) -> None:
        matcher = compiled.matcher()
        assert matcher.accept_tokens(list(done)) == len(done)
        if matcher.is_accepting:
            found.add(done + (END,) * (slots - len(done)))
        if len(done) < slots:
            for token in range(END):
                if matcher.fork().accept_token(token):
                    walk((*done, token))

    walk(())
    return found


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("slots", [3, 5, 6])
def test_commits_lead_to_valid_texts_only(name: str, slots: int) -> None:
    """What is refused has no filling, or the search gave up; what is taken has one, and so has every witness."""
    compiled = mw.compile_json_schema(SCHEMAS[name], VOCABULARY)
    found = texts(name, slots)
    if not found:
        with pytest.raises((UnsatisfiableError, mw.LimitError)):
            Canvas(compiled, [None] * slots)
        return
    lost = tried = 0
    for seed in range(12):
        rng = random.Random(seed)
        canvas = Canvas(compiled, [None] * slots)
        assert not canvas.exact
        alive = found
        while canvas.open:
            position, token = rng.choice(canvas.open), rng.randrange(END + 1)
            fitting = {filling for filling in alive if filling[position] == token}
            tried += 1
            if canvas.try_commit(position, token):
                assert fitting
                # An end token fills what is behind it.
                alive = fitting
            else:
                lost += bool(fitting)
            assert tuple(canvas.witness()) in alive
            allowed = set(canvas.allowed(position).nonzero()[0].tolist()) if canvas.open else set()
            assert not canvas.open or {filling[position] for filling in alive} <= allowed
            if rng.random() < 0.3 and canvas.open:
                canvas.fill(canvas.open[0])
                alive = {f for f in alive if all(t in (-1, f[i]) for i, t in enumerate(canvas.tokens))}
        assert tuple(canvas.tokens) in found
    assert lost <= tried // 20, (lost, tried)


def test_the_array_of_all_values_is_found() -> None:
    """Three different values of three, and the first one is the last possible."""
    schema = {**SCHEMAS["different"], "minItems": 3}
    compiled = mw.compile_json_schema(schema, VOCABULARY)
    canvas = Canvas(compiled, [TOKENS.index(b"["), TOKENS.index(b"3"), *[None] * 5])
    for order in itertools.permutations(canvas.open):
        again = Canvas(compiled, canvas.tokens, mask_id=-1)
        for position in order:
            again.fill(position)
        text = VOCABULARY.decode([t for t in again.tokens if t != END])
        assert sorted(json.loads(text)) == [1, 2, 3]


def test_the_first_filling_has_a_time_limit() -> None:
    slots = [*[None] * 12, *b'"a"}]}', *[None] * 12]
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    with pytest.raises(mw.LimitError, match="max_seconds"):
        Canvas(mw.compile_json_schema({}, vocabulary), slots, limits=mw.Limits(max_seconds=1e-9))
