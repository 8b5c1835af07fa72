"""The search for a witness: what it costs, where keys of objects are free and canvases long."""

from __future__ import annotations

import json
import random

import pytest

import maskwright as mw
from maskwright.diffusion import Canvas

END = 256
PIECES = [b'{"', b'": ', b'", "', b'"}', b"}}", b"]}", b", ", b"ab", b"12", b'":']
VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None, *PIECES], eos_ids=[END])


def encode(text: str) -> list[int]:
    """Longest pieces first."""
    data, out = text.encode(), []
    while data:
        token = max(
            (i for i, piece in enumerate(VOCABULARY.tokens) if piece and data.startswith(piece)),
            key=lambda i: len(VOCABULARY.tokens[i]),
        )
        out.append(token)
        data = data[len(VOCABULARY.tokens[token]) :]
    return out


def free_text(rng: random.Random, depth: int) -> object:
    if depth == 0:
        return rng.choice([12, "ab", True, "abab", []])
    return {f"{rng.choice('abcd')}{i}": free_text(rng, depth - 1) for i in range(3)}


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.4, 0.8])
def test_true_tokens_of_free_objects_are_accepted(share: float) -> None:
    """Long canvases of objects with undeclared keys: a first filling within few steps, hardly a true token undecided."""
    rng = random.Random(7)
    grammar = mw.compile_json_schema({"type": "object"}, VOCABULARY)
    ids = encode(json.dumps(free_text(rng, 3)))
    masked = [i for i in range(len(ids)) if rng.random() < share]
    slots = [None if i in set(masked) else token for i, token in enumerate(ids)]
    canvas = Canvas(grammar, [*slots, END], limits=mw.Limits(max_canvas_steps=200_000))
    rng.shuffle(masked)
    lost = [position for position in masked if not canvas.try_commit(position, ids[position])]
    assert canvas.refused == 0
    assert len(lost) == canvas.undecided <= len(masked) // 50, (lost, len(masked))


def test_another_letter_in_a_free_key_needs_no_search() -> None:
    """Which undeclared key it is changes what may follow; that the old witness goes on from there is seen by reading it."""
    grammar = mw.compile_json_schema({"type": "object"}, VOCABULARY)
    text = list(b'{"x":1,"y":[{"z":2}]}')
    slots = [None if byte in b"xyz" else byte for byte in text]
    canvas = Canvas(grammar, [*slots, END], search_budget=1)
    for position, byte in enumerate(text):
        if slots[position] is None:
            assert canvas.try_commit(position, byte), position
    assert canvas.undecided == 0


def test_equal_keys_are_refused_though_the_old_witness_goes_on() -> None:
    grammar = mw.compile_json_schema({"type": "object"}, VOCABULARY)
    canvas = Canvas(grammar, [*b'{"a":1,"', None, *b'":2}', END])
    assert not canvas.try_commit(8, ord("a"))
    assert canvas.try_commit(8, ord("c"))


def test_completions_of_the_fewest_bytes_may_take_too_many_tokens() -> None:
    """Room for a text whose cheapest spelling in bytes has more tokens than another text."""
    grammar = mw.compile_json_schema({"enum": ["xyzwv", "abababab"]}, VOCABULARY)
    fewest = len(encode('"abababab"'))
    assert fewest < len(encode('"xyzwv"'))
    canvas = Canvas(grammar, [None] * fewest)
    assert VOCABULARY.decode(canvas.witness()) == b'"abababab"'
    with pytest.raises(mw.UnsatisfiableError):
        Canvas(grammar, [None] * (fewest - 1))


def test_tokens_behind_the_end_of_the_old_witness_are_no_part_of_it() -> None:
    """Two at once: one that fits the witness, and one behind its end token."""
    grammar = mw.compile_json_schema({"type": "string"}, VOCABULARY)
    canvas = Canvas(grammar, [None] * 12)
    assert canvas.suggest([*b'"x"', *[END] * 9])
    canvas.commit_many([(1, ord("y")), (9, ord("z"))])
    ids = canvas.witness()
    end = ids.index(END) if END in ids else len(ids)
    assert set(ids[end:]) <= {END}
    matcher = grammar.matcher()
    assert matcher.accept_tokens(ids[:end]) == end and matcher.is_accepting
