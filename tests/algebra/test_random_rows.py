"""Random expressions of grammars with a lexer, beside each other and in rows, against judges of each part and all cuts of a text."""

from __future__ import annotations

import functools
import itertools
import random

import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion.between import complete_between
from maskwright.errors import UnsatisfiableError
from tests.algebra.test_algebra import VOCABULARY, accepts
from tests.algebra.test_several_lexers import (
    BLOCKS,
    BRACKETS,
    EMPTY,
    LIST,
    MODES,
    NAMES,
    SIGNS,
    Judge,
    either,
    in_rows,
    of,
)

OPERANDS = (
    NAMES,
    LIST,
    SIGNS,
    EMPTY,
    MODES,
    BLOCKS,
    BRACKETS,
    mw.Regex("f+"),
    mw.Regex("[ i]?"),
    mw.Regex("=|,"),
)
LETTERS = ("i", "f", " ", ",", "+", "=", "(", ")", "x", "\n")
SPELLED = (*LETTERS, "if", " i", "if,", "f=", ")=", "=if", "f+", "i\n", "\n ", ", if", "(x)", "x)f", "f f")
TOKENS = mw.Vocabulary.from_bytes([*(each.encode() for each in SPELLED), b""], eos_ids=[len(SPELLED)])
END = len(SPELLED)


def expression(rng: random.Random, depth: int) -> tuple[mw.Source, Judge]:
    """A random one, and what judges a text by its parts."""
    if depth == 0:
        source = rng.choice(OPERANDS)
        return source, of(source)
    way = rng.choice(["or", "or", "and then", "and then", "and then", "again", "or not"])
    one, first = expression(rng, depth - 1)
    if way in ("or", "and then"):
        two, second = expression(rng, depth - 1)
        return (one | two, either(first, second)) if way == "or" else (one + two, in_rows(first, second))
    if way == "or not":
        return mw.Optional(one), either(first, lambda t: not t)
    low = rng.randrange(3)
    high = low + rng.randrange(3)
    return one * (low, high), lambda t: any(
        in_rows(*[first] * n)(t) if n else not t for n in range(low, high + 1)
    )


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions_have_the_texts_of_their_parts(seed: int) -> None:
    rng = random.Random(seed)
    source, judge = expression(rng, rng.choice([1, 2, 2]))
    known = functools.cache(judge)
    compiled = mw.compile(source, VOCABULARY)
    texts = {""}
    for _ in range(4):
        texts = {
            t + part
            for t in texts
            if compiled.matcher().accept_bytes(t.encode())
            for part in (*LETTERS, "if")
        }
        texts = set(rng.sample(sorted(texts), min(len(texts), 300)))
        for text in texts:
            assert accepts(compiled, text) == known(text), text
    there_and_back = mw.CompiledGrammar.from_bytes(mw.compile(source, TOKENS).to_bytes(), TOKENS)
    walk(there_and_back, known, rng)
    fill(there_and_back, known, rng)


def walk(compiled: mw.CompiledGrammar, judge: Judge, rng: random.Random) -> None:
    """Masks allow what bytes allow, and an end where there is one; what is begun has an end."""
    mask = mw.allocate_token_bitmask(1, TOKENS.vocab_size)
    for _ in range(6):
        matcher, written = compiled.matcher(), ""
        for _ in range(6):
            matcher.fill_next_token_bitmask(mask)
            allowed = {i for i in range(TOKENS.vocab_size) if mask[0, i >> 5] >> (i & 31) & 1}
            alive = {i for i in range(END) if matcher.fork().accept_bytes(SPELLED[i].encode())}
            assert allowed - {END} == alive, written
            assert (END in allowed) == judge(written), written
            if not alive:
                break
            token = rng.choice(sorted(alive))
            assert matcher.accept_token(token)
            written += SPELLED[token]
        assert judge(
            written + "".join(SPELLED[each] for each in matcher.shortest_completion() if each != END)
        )


def fill(compiled: mw.CompiledGrammar, judge: Judge, rng: random.Random) -> None:
    """What may stand between two texts, in two tokens at most."""
    matcher, whole = compiled.matcher(), ""
    for _ in range(rng.randrange(5)):
        alive = [i for i in range(END) if matcher.fork().accept_bytes(SPELLED[i].encode())]
        if not alive:
            break
        token = rng.choice(alive)
        whole += SPELLED[token]
        matcher.accept_token(token)
    whole += "".join(SPELLED[each] for each in matcher.shortest_completion() if each != END)
    first, last = sorted([rng.randrange(len(whole) + 1) for _ in range(2)])
    before, behind = whole[:first], whole[last:]
    middles = [m for n in range(3) for m in itertools.product(range(END), repeat=n)]
    wanted = [m for m in middles if judge(before + "".join(SPELLED[i] for i in m) + behind)]
    try:
        middle = complete_between(compiled, before, behind, max_tokens=2)
    except UnsatisfiableError:
        assert not wanted
        return
    assert set(np.flatnonzero(middle.allowed()[:END])) == {m[0] for m in wanted if m}, (before, behind)
    assert middle.can_end == (() in wanted)
