"""Likeliest fillings, exact samples and fill in the middle, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from diffusion_oracle import fillings
from test_diffusion_canvas import LETTERS, NAMES, compiled_by_name

import maskwright as mw
from maskwright.diffusion import Canvas
from maskwright.diffusion.between import complete_between
from maskwright.diffusion.lattice import Lattice, most_likely, sample_filling
from maskwright.errors import CanvasError, LimitError, UnsatisfiableError

SLOTS = 4
CANVASES = [[None] * SLOTS, [None, 0, None, None], [None, None, None, 9]]


def log_probs(seed: int) -> np.ndarray:
    logits = np.random.default_rng(seed).normal(size=(SLOTS, LETTERS.vocab_size)) * 2
    return logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))


def scored(name: str, slots: list[int | None], given: np.ndarray) -> dict[tuple[int, ...], float]:
    """Every filling and its logarithmic mass; slots behind the end count nothing."""
    compiled, oracle = compiled_by_name(name)
    tokens = Canvas(compiled, slots).tokens
    out = {}
    for filling in fillings(oracle, LETTERS, tokens, [False] * SLOTS, LETTERS.eos_ids):
        end = filling.index(9) if 9 in filling else SLOTS
        out[filling] = sum(given[i, filling[i]] for i in range(min(end + 1, SLOTS)) if tokens[i] < 0)
    return out


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("slots", CANVASES)
@pytest.mark.parametrize("seed", range(3))
def test_the_most_likely_filling(name: str, slots: list[int | None], seed: int) -> None:
    given = log_probs(seed)
    try:
        canvas = Canvas(compiled_by_name(name)[0], slots)
    except UnsatisfiableError:
        return
    scores = scored(name, slots, given)
    tokens, score = Lattice(canvas).most_likely(given)
    assert score == pytest.approx(max(scores.values()), abs=1e-9)
    assert scores[tuple(tokens)] == pytest.approx(score, abs=1e-9)
    assert most_likely(canvas, given) == tokens


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_samples_follow_the_posterior(name: str) -> None:
    given = log_probs(7)
    canvas = Canvas(compiled_by_name(name)[0], CANVASES[0])
    scores = scored(name, CANVASES[0], given)
    total = float(np.logaddexp.reduce(list(scores.values())))
    lattice, rng, draws = Lattice(canvas), np.random.default_rng(1), 4000
    counts = dict.fromkeys(scores, 0)
    for _ in range(draws):
        tokens, mass = lattice.sample_filling(given, rng)
        assert mass == pytest.approx(total, abs=1e-9)
        counts[tuple(tokens)] += 1
    # Cells are pooled until each is expected five times or more.
    expected = {filling: draws * np.exp(score - total) for filling, score in scores.items()}
    statistic, cells, seen, due = 0.0, 0, 0, 0.0
    for filling in sorted(expected, key=expected.__getitem__):
        seen, due = seen + counts[filling], due + expected[filling]
        if due >= 5:
            statistic, cells, seen, due = statistic + (seen - due) ** 2 / due, cells + 1, 0, 0.0
    # Five standard deviations of a chi-square variable above its mean.
    assert statistic < cells + 5 * np.sqrt(2 * cells)


def test_what_a_lattice_cannot_do_is_refused() -> None:
    bytes_ = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    with pytest.raises(CanvasError, match="undeclared keys"):
        Lattice(Canvas(mw.compile_json_schema({"type": "object"}, bytes_), [None] * 9))
    canvas = Canvas(compiled_by_name("nested")[0], CANVASES[0])
    lattice = Lattice(canvas)
    with pytest.raises(CanvasError, match="shape"):
        lattice.most_likely(np.zeros((2, 2)))
    with pytest.raises(CanvasError, match="NaN"):
        lattice.most_likely(np.full((SLOTS, LETTERS.vocab_size), np.nan))
    with pytest.raises(CanvasError, match="no filling"):
        sample_filling(canvas, np.full((SLOTS, LETTERS.vocab_size), -np.inf), np.random.default_rng(0))


def test_too_many_states_are_a_limit() -> None:
    few = mw.Limits(max_lattice_states=3)
    with pytest.raises(LimitError, match="max_lattice_states"):
        Lattice(Canvas(compiled_by_name("nested")[0], [None] * 6, limits=few))


# --- fill in the middle


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("prefix", "suffix"), [("", ""), ("(", ")"), ("a", "b"), ("aa", ""), ("((", ")a)"), ("", "b")]
)
@pytest.mark.parametrize("most", [0, 1, 3])
def test_middles_against_enumeration(name: str, prefix: str, suffix: str, most: int) -> None:
    compiled, oracle = compiled_by_name(name)
    texts = [i for i, data in enumerate(LETTERS.tokens) if data]
    middles = set()
    for count in range(most + 1):
        for ids in itertools.product(texts, repeat=count):
            column = oracle.read(prefix.encode() + LETTERS.decode(ids) + suffix.encode())
            if column is not None and column.complete:
                middles.add(ids)
    if not middles:
        with pytest.raises(UnsatisfiableError):
            complete_between(compiled, prefix, suffix, max_tokens=most)
        return
    middle = complete_between(compiled, prefix, suffix, max_tokens=most)

    def walk(done: tuple[int, ...]) -> None:
        expected = {ids[len(done)] for ids in middles if len(ids) > len(done) and ids[: len(done)] == done}
        if done in middles:
            expected.add(9)
        assert set(np.flatnonzero(middle.allowed()).tolist()) == expected
        assert middle.can_end == (done in middles)
        for token in texts:
            assert middle.accept_token(token) == (token in expected)
            if token in expected:
                walk((*done, token))
                middle.rollback(1)

    walk(())


def test_middles_of_an_object() -> None:
    bytes_ = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", "y"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    middle = complete_between(mw.compile_json_schema(schema, bytes_), '{"a": 1', 'x"}')
    for byte in b', "b": "':
        assert middle.accept_token(byte), byte
    assert middle.can_end and set(np.flatnonzero(middle.allowed())) == {256}


@pytest.mark.parametrize("limit", [-1, 1.5, True, 10**6])
def test_bad_limits_are_refused(limit: object) -> None:
    with pytest.raises(CanvasError, match="max_tokens"):
        complete_between(compiled_by_name("nested")[0], "", "", max_tokens=limit)  # type: ignore[arg-type]
    with pytest.raises(CanvasError, match="prefix"):
        complete_between(compiled_by_name("nested")[0], 7, "")  # type: ignore[arg-type]
