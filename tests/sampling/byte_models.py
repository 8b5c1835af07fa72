"""Enumerable models of tokens that spell the same texts in many ways, and what their texts of bytes are, by listing."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import numpy as np

import maskwright as mw
from maskwright.sampling import CallableModel

LONGEST = 5
"""Tokens of a text, at most."""
# Two ids of equal bytes, a special token, one beyond the tokenizer's, and two ends.
TOKENS = [b"a", b"b", b"ab", b"ba", b"aba", b"", b"ab", b"", b"", b"\xff"]
END_IDS = (7, 8)
SPECIAL = 5
OTHER_TOKENS = [b"ab", b"a", b"bb", b"b", b"", b"abb"]
OTHER_END = 4


def vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_bytes(TOKENS, eos_ids=END_IDS, special_ids=[SPECIAL])


def other_vocabulary() -> mw.Vocabulary:
    return mw.Vocabulary.from_bytes(OTHER_TOKENS, eos_ids=OTHER_END)


def distribution(ids: Sequence[int], width: int, ends: Sequence[int], seed: int) -> np.ndarray:
    """p(next token), which depends on everything before; after ``LONGEST`` tokens only the ends are left."""
    rng = np.random.default_rng([seed, len(ids), *ids])
    found = rng.dirichlet(np.full(width, 0.5))
    if len(ids) >= LONGEST:
        found[[i for i in range(width) if i not in ends]] = 0.0
    return found / found.sum()


def model(seed: int = 1) -> CallableModel:
    width = len(TOKENS)
    return CallableModel(
        lambda prefixes: _log([distribution(ids, width, END_IDS, seed) for ids in prefixes]), width, END_IDS
    )


def other_model(seed: int = 2) -> CallableModel:
    width = len(OTHER_TOKENS)
    return CallableModel(
        lambda prefixes: _log([distribution(ids, width, [OTHER_END], seed) for ids in prefixes]),
        width,
        OTHER_END,
    )


def _log(rows: Sequence[np.ndarray]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(rows)


Sequences = dict[tuple[int, ...], float]
Texts = dict[bytes, float]


def all_sequences(
    step: Callable[[Sequence[int]], np.ndarray], tokens: Sequence[bytes], ends: Sequence[int]
) -> Sequences:
    """Every sequence of tokens that have bytes, with its probability when the others are masked in every step."""
    found: Sequences = {}
    work: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    text = [i for i, data in enumerate(tokens) if data and i not in ends]
    while work:
        ids, p = work.pop()
        q = step(ids)
        total = q[text].sum() + q[list(ends)].sum()
        found[ids] = p * float(q[list(ends)].sum() / total)
        work += [((*ids, i), p * float(q[i] / total)) for i in text if q[i] > 0]
    return found


def texts_of(sequences: Sequences, tokens: Sequence[bytes]) -> Texts:
    found: Texts = defaultdict(float)
    for ids, p in sequences.items():
        found[b"".join(tokens[i] for i in ids)] += p
    return dict(found)


def model_texts(seed: int = 1) -> Texts:
    width = len(TOKENS)
    return texts_of(
        all_sequences(lambda ids: distribution(ids, width, END_IDS, seed), TOKENS, END_IDS), TOKENS
    )


def other_texts(seed: int = 2) -> Texts:
    width = len(OTHER_TOKENS)
    sequences = all_sequences(
        lambda ids: distribution(ids, width, [OTHER_END], seed), OTHER_TOKENS, [OTHER_END]
    )
    return texts_of(sequences, OTHER_TOKENS)


def prefix_masses(texts: Mapping[bytes, float]) -> Texts:
    """p(text begins with it), for every prefix of a text."""
    found: Texts = defaultdict(float)
    for text, p in texts.items():
        for length in range(len(text) + 1):
            found[text[:length]] += p
    return dict(found)


def next_bytes(texts: Mapping[bytes, float], prefix: bytes, masses: Texts) -> np.ndarray:
    """p(next byte | prefix), the end last, by sums over all texts."""
    found = np.array(
        [masses.get(prefix + bytes((byte,)), 0.0) for byte in range(256)] + [texts.get(prefix, 0.0)]
    )
    return found / found.sum()


def divergence(p: Mapping[bytes, float], q: Mapping[bytes, float]) -> float:
    """KL(p ‖ q) in nats."""
    return math.fsum(a * math.log(a / q[text]) if q.get(text) else math.inf for text, a in p.items() if a > 0)
