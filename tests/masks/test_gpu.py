"""Masks on a real GPU, whose work goes on while Python does: what is written to the memory of the host too early, and what waits."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="logits on a GPU are tensors")

import torch
import toys

import maskwright as mw
from maskwright.masks.bitmask import allowed_tokens

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")

WIDTH = 131_072
BUSY = 1_000_000_000
"""Cycles: about half a second."""


@contextmanager
def behind_other_work() -> Iterator[None]:
    """The stream is busy with something else when the body begins, and still is when it ends."""
    torch.cuda.synchronize()
    done = torch.cuda.Event()
    torch.cuda._sleep(BUSY)
    done.record()
    yield
    waited = done.query()
    torch.cuda.synchronize()
    assert not waited, "something waited for the device"


def some_masks(rows: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).integers(-(2**31), 2**31, (rows, WIDTH // 32), dtype=np.int64)
    return drawn.astype(np.int32)


def denied(logits: torch.Tensor) -> np.ndarray:
    return logits.isneginf().cpu().numpy()


def expected(masks: np.ndarray) -> np.ndarray:
    return ~allowed_tokens(masks, WIDTH)


KINDS = {
    "numpy": lambda masks: masks,
    "tensor": torch.from_numpy,
    "pinned": lambda masks: torch.from_numpy(masks).pin_memory(),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("indices", [None, [0, 5, 7]])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_masks_may_be_filled_again_at_once(kind: str, indices: Any, dtype: Any) -> None:
    """A server has one bitmask for all steps; the device may be far behind."""
    logits, masks = torch.zeros((8, WIDTH), dtype=dtype, device="cuda"), some_masks(8)
    given = KINDS[kind](masks.copy())
    mw.apply_token_bitmask_inplace(logits.clone(), given, indices)  # the kernel is compiled
    with behind_other_work():
        mw.apply_token_bitmask_inplace(logits, given, indices)
        given[:] = 0
    rows = range(8) if indices is None else indices
    assert np.array_equal(denied(logits)[list(rows)], expected(masks[list(rows)]))
    assert denied(logits).any(axis=1).sum() == len(rows)


def test_a_table_waits_for_nothing() -> None:
    vocabulary = toys.byte_vocabulary()
    table = mw.MaskTable(vocabulary.vocab_size, 64, "cuda")
    states = [mw.compile_regex(f"{letter}[0-9]", vocabulary).matcher() for letter in "abcdefgh"]
    logits = torch.zeros((8, vocabulary.vocab_size), device="cuda")
    table.apply(logits.clone(), table.rows(states))
    for state, letter in zip(states, "abcdefgh", strict=True):
        assert state.accept_bytes(letter.encode())
    with behind_other_work():
        # These have not been sent yet, all others have.
        table.apply(logits, table.rows([*states[:4], None, None, *states[6:]]))
    digits = np.isin(np.arange(vocabulary.vocab_size), [ord(digit) for digit in "0123456789"])
    for row, found in enumerate(denied(logits)):
        assert np.array_equal(found, ~digits if row not in (4, 5) else np.zeros_like(digits))


def test_a_table_in_a_cuda_graph() -> None:
    """A graph that was recorded once applies what the rows say at each replay, also masks that came later."""
    table = mw.MaskTable(WIDTH, 6, "cuda")
    masks, rng = some_masks(40), random.Random(0)
    source = torch.randn((3, WIDTH), device="cuda")
    logits, rows = source.clone(), torch.zeros(3, dtype=torch.int32, device="cuda")
    table.apply(logits, rows)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        logits.copy_(source)
        table.apply(logits, rows)
    for _ in range(60):
        chosen = [rng.choice([None, *range(40)]) for _ in range(3)]
        rows.copy_(table.rows([None if each is None else masks[each] for each in chosen]))
        graph.replay()
        for each, row, before in zip(chosen, logits, source, strict=True):
            allowed = allowed_tokens(masks[each] if each is not None else np.full_like(masks[0], -1), WIDTH)
            assert torch.equal(row, before.masked_fill(torch.from_numpy(~allowed).cuda(), float("-inf")))


def test_another_stream() -> None:
    """Work goes to the stream that is current."""
    logits, masks = torch.zeros((4, WIDTH), device="cuda"), some_masks(4)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with behind_other_work():
        with torch.cuda.stream(stream):
            mw.apply_token_bitmask_inplace(logits, masks)
            found = logits.isneginf()
        stream.synchronize()
    assert np.array_equal(found.cpu().numpy(), expected(masks))
