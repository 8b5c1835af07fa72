"""Allocating, applying and batch-filling bitmasks, for numpy and torch."""

from __future__ import annotations

import numpy as np
import pytest

import maskwright as mw

torch = pytest.importorskip("torch", reason="half of these tests are about torch tensors")
VOCAB = 70


def masks(rows: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Random bits [rows, VOCAB] and the same as a bitmask."""
    bits = np.random.default_rng(seed).random((rows, VOCAB)) < 0.5
    padded = np.zeros((rows, 96), dtype=bool)
    padded[:, :VOCAB] = bits
    return bits, np.packbits(padded, axis=1, bitorder="little").view(np.int32)


def test_a_new_bitmask_allows_everything():
    mask = mw.allocate_token_bitmask(3, VOCAB)
    assert mask.shape == (3, 3)
    assert mask.dtype == np.int32
    assert (mask == -1).all()


@pytest.mark.parametrize("sizes", [(-1, 5), (1, 0)])
def test_impossible_sizes(sizes):
    with pytest.raises(mw.BitmaskError):
        mw.allocate_token_bitmask(*sizes)


@pytest.mark.parametrize("kind", ["numpy", "torch", "torch logits, numpy mask", "torch half"])
@pytest.mark.parametrize("indices", [None, [0, 2], []])
def test_apply(kind, indices):
    bits, mask = masks(3)
    before = np.arange(3 * VOCAB, dtype=np.float32).reshape(3, VOCAB) / 7
    expected = before.copy()
    for row in range(3) if indices is None else indices:
        expected[row, ~bits[row]] = -np.inf
    if kind == "numpy":
        logits = before.copy()
        mw.apply_token_bitmask_inplace(logits, mask, indices)
        np.testing.assert_array_equal(logits, expected)
        return
    dtype = torch.float16 if kind == "torch half" else torch.float32
    tensor = torch.tensor(before, dtype=dtype)
    mw.apply_token_bitmask_inplace(tensor, mask if "numpy" in kind else torch.tensor(mask), indices)
    assert torch.equal(tensor, torch.tensor(expected, dtype=dtype))


@pytest.mark.parametrize("make", [np.zeros, torch.zeros])
def test_one_row_and_logits_beyond_the_mask(make):
    bits, mask = masks(1)
    logits = make(200)
    mw.apply_token_bitmask_inplace(logits, mask[0])
    allowed = np.asarray(logits) == 0
    assert (allowed[:VOCAB] == bits[0]).all()
    assert not allowed[VOCAB:].any()


def test_rows_of_a_strided_array_are_changed_in_place():
    bits, mask = masks(2)
    storage = np.zeros((4, VOCAB), dtype=np.float32)
    mw.apply_token_bitmask_inplace(storage[::2], mask)
    assert (np.isneginf(storage[::2]) == ~bits).all()
    assert (storage[1::2] == 0).all()


@pytest.mark.parametrize(
    ("logits", "mask", "words"),
    [
        ([1.0], np.zeros((1, 3), np.int32), "not list"),
        (np.zeros((1, VOCAB), np.int64), np.zeros((1, 3), np.int32), "floating"),
        (np.zeros((1, VOCAB)), np.zeros((1, 3), np.int64), "int32"),
        (np.zeros((2, VOCAB)), np.zeros((1, 3), np.int32), "row"),
        (np.zeros((1, 60)), np.zeros((1, 3), np.int32), "more than 60"),
        (np.zeros((1, 1, VOCAB)), np.zeros((1, 3), np.int32), "dimensions"),
        (torch.zeros((1, VOCAB), dtype=torch.int32), torch.zeros((1, 3), dtype=torch.int32), "floating"),
    ],
)
def test_bad_arguments(logits, mask, words):
    with pytest.raises(mw.BitmaskError, match=words):
        mw.apply_token_bitmask_inplace(logits, mask)


def test_indices_outside():
    with pytest.raises(mw.BitmaskError, match="indices"):
        mw.apply_token_bitmask_inplace(np.zeros((1, VOCAB)), np.zeros((1, 3), np.int32), [1])


def test_fill_several_matchers():
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    matchers = [mw.compile_json_schema({"const": c}, vocabulary).matcher() for c in ("a", 1, None)]
    mask = mw.allocate_token_bitmask(3, vocabulary.vocab_size)
    mw.fill_next_token_bitmasks(matchers, mask)
    for row, first in enumerate((b'"', b"1", b"n")):
        allowed = np.flatnonzero(np.unpackbits(mask[row].view(np.uint8), bitorder="little"))
        assert list(allowed) == list(first)
    with pytest.raises(mw.BitmaskError, match="2 matchers"):
        mw.fill_next_token_bitmasks(matchers[:2], mask)
