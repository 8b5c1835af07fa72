"""What a mask says over all stacks with one top is what it says over each: a held grammar, asked along many nested texts."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import maskwright as mw

CLOSES = {"(": ")", "[": "]", "{": "}"}
TERMS = """
start: sum
sum: product | sum "+" product
product: factor | product "*" factor
factor: NAME | "(" sum ")" | "[" sum "]" | "{" sum "}"
NAME: /[a-z]+/
"""
BLANKS = TERMS + '%ignore " "\n'


State = tuple[str, str]
"""The brackets that are open, and the last character: "." behind a name that is over, "+" at the beginning."""


def read(state: State | None, text: str, blanks: bool) -> State | None:
    """The state behind a text; none where no text of the grammar goes on so."""
    if state is None:
        return None
    closing, before = state
    for c in text:
        waits = before in "+*([{"
        if c == " ":
            if not blanks:
                return None
            before = before if waits or before in ")]}" else "."
        elif c in CLOSES:
            if not waits:
                return None
            closing += CLOSES[c]
            before = c
        elif c in "+*":
            if waits:
                return None
            before = c
        elif c in ")]}":
            if waits or not closing.endswith(c):
                return None
            closing, before = closing[:-1], c
        else:
            if not waits and before != "a":
                return None
            before = "a"
    return closing, before


@pytest.mark.parametrize("blanks", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_masks_of_nested_texts(blanks: bool, seed: int) -> None:
    draw = random.Random(seed)
    letters = "ab+*()[]{}" + " " * blanks
    texts = ["".join(each) for n in (1, 2) for each in itertools.product(letters, repeat=n)]
    texts += ["".join(draw.choices("ab" + "+*" + "()[]{}" * 3, k=draw.randint(3, 6))) for _ in range(1_500)]
    # Some of what closes many brackets at once.
    texts += [
        "".join(draw.choices(")]}", k=draw.randint(3, 7))) + draw.choice(["", "+a", "*(", "+"])
        for _ in range(600)
    ]
    tokens = [*dict.fromkeys(texts)]
    vocabulary = mw.Vocabulary.from_bytes([*(text.encode() for text in tokens), None], eos_ids=[len(tokens)])
    held = mw.compile_lark(BLANKS if blanks else TERMS, vocabulary)
    for _ in range(25):
        matcher, text = held.matcher(), ""
        state: State | None = ("", "+")
        for step in range(30):
            row = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
            matcher.fill_next_token_bitmask(row)
            bits = np.unpackbits(row.view(np.uint8), bitorder="little")
            allowed = [i for i, token in enumerate(tokens) if read(state, token, blanks)]
            assert np.flatnonzero(bits[: len(tokens)]).tolist() == allowed, text
            # First deeper, then back.
            deep = [i for i in allowed if sum(map(tokens[i].count, "([{")) > 0]
            token = draw.choice(deep if deep and step < 12 else allowed)
            assert matcher.accept_token(token)
            text, state = text + tokens[token], read(state, tokens[token], blanks)
