"""Masks that stay on the device: rows hold what the matchers say, whatever was replaced before."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="a table is a tensor")

import torch
import toys

import maskwright as mw
from maskwright.masks import bitmask, mask_table

VOCABULARY = toys.byte_vocabulary()
SIZE = VOCABULARY.vocab_size
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def matcher(pattern: str, text: bytes = b"") -> Any:
    made = mw.compile_regex(pattern, VOCABULARY).matcher()
    assert made.accept_bytes(text)
    return made


def words(each: Any) -> Any:
    row = mw.allocate_token_bitmask(1, SIZE)
    if each is not None:
        each.fill_next_token_bitmask(row)
    return row[0]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("capacity", [5, 9, 100])
def test_rows_hold_the_masks_of_matchers(device: str, capacity: int) -> None:
    table, rng = mw.MaskTable(SIZE, capacity, device), random.Random(capacity)
    address = table.masks.data_ptr()
    for _ in range(200):
        batch = [
            None
            if rng.random() < 0.2
            else matcher(f"a{{0,9}}{rng.choice('bcdefgh')}", b"a" * rng.randrange(9))
            for _ in range(rng.randrange(5))
        ]
        rows = table.rows(batch)
        assert rows.dtype == torch.int32 and rows.tolist() == [
            0 if each is None else row for each, row in zip(batch, rows.tolist(), strict=True)
        ]
        for each, row in zip(batch, rows.tolist(), strict=True):
            assert np.array_equal(table.masks[row].cpu().numpy(), words(each))
        if batch:
            logits, plain = torch.randn(len(batch), SIZE + 40), mw.allocate_token_bitmask(len(batch), SIZE)
            for i, each in enumerate(batch):
                plain[i] = words(each)
            expected, applied = logits.clone(), logits.to(device)
            mw.apply_token_bitmask_inplace(expected, plain)
            table.apply(applied, rows)
            assert torch.equal(applied.cpu(), expected)
    assert table.masks.data_ptr() == address and (table.masks[0] == -1).all()


def test_a_state_is_sent_once() -> None:
    table = mw.MaskTable(SIZE, 100, "cpu")
    one, other = matcher("ab|cd"), matcher("ab|cd")
    table.rows([one, other, one.fork()])
    assert table.sent == 1
    table.rows([matcher("cd|ab")])
    assert table.sent == 1, "equal masks of different grammars have one row"
    one.accept_bytes(b"a")
    rows = table.rows([one, other])
    assert table.sent == 2 and len(set(rows.tolist())) == 2
    given = np.zeros_like(words(None))
    assert table.rows([given, one]).tolist()[1] == rows[0] and table.sent == 3


def test_those_used_longest_ago_go() -> None:
    table = mw.MaskTable(SIZE, 4, "cpu")
    a, b, c, d = (matcher(letter) for letter in "abcd")
    rows = {each: table.rows([each]).item() for each in (a, b, c)}
    table.rows([a])
    assert table.rows([d]).item() == rows[b] and table.sent == 4
    assert table.rows([a, c]).tolist() == [rows[a], rows[c]] and table.sent == 4
    table.rows([b])
    assert table.sent == 5


def test_too_many_at_once_changes_nothing() -> None:
    table = mw.MaskTable(SIZE, 3, "cpu")
    a, b, c = (matcher(letter) for letter in "abc")
    rows = table.rows([a, None, b]).tolist()
    with pytest.raises(mw.BitmaskError, match="3 different masks at once, but the table has room for 2"):
        table.rows([a, b, c])
    assert table.rows([a, None, b]).tolist() == rows and table.sent == 2


def test_remembered_grammars_and_states_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mask_table, "_GRAMMARS_KEPT", 3)
    monkeypatch.setattr(mask_table, "_STATES_KEPT", 4)
    table = mw.MaskTable(SIZE, 100, "cpu")
    for letter in "abcdefgh":
        each = matcher(f"{letter}{{1,20}}")
        for _ in range(9):
            assert np.array_equal(table.masks[table.rows([each]).item()].numpy(), words(each))
            each.accept_bytes(letter.encode())
    assert len(table._grammars) == 3
    assert all(len(states) <= 4 for _, states in table._grammars.values())


@pytest.mark.parametrize(("size", "capacity"), [(0, 5), (5, 1), (-1, 5)])
def test_impossible_tables(size: int, capacity: int) -> None:
    with pytest.raises(mw.BitmaskError, match="expected an integer of at least"):
        mw.MaskTable(size, capacity, "cpu")


def test_bad_arguments() -> None:
    table, logits = mw.MaskTable(SIZE, 5, "cpu"), torch.zeros(2, SIZE)
    with pytest.raises(mw.BitmaskError, match="a mask of this table"):
        table.rows([np.zeros(3, dtype=np.int32)])
    other = mw.Vocabulary.from_bytes([b"a", None], eos_ids=1)
    with pytest.raises(mw.BitmaskError, match="a mask of this table"):
        table.rows([mw.compile_regex("a", other).matcher()])
    rows = torch.zeros(2, dtype=torch.int32)
    for wrong in (logits.int(), logits[0], np.zeros((2, SIZE))):
        with pytest.raises(mw.BitmaskError, match="logits"):
            table.apply(wrong, rows)
    with pytest.raises(mw.BitmaskError, match="more than 60"):
        table.apply(logits[:, :60], rows)
    for wrong in (rows.long(), rows[:1], rows[None]):
        with pytest.raises(mw.BitmaskError, match="rows must be"):
            table.apply(logits, wrong)
    with pytest.raises(mw.BitmaskError, match="the masks on cpu"):
        table.apply(logits.to("meta"), rows)
    assert (logits == 0).all()


def test_without_a_kernel_torch_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, with what a kernel that cannot be compiled does on a GPU."""
    monkeypatch.setattr(bitmask, "_kernel_failed", False)
    calls = []

    def broken(*given: Any) -> None:
        calls.append(given)
        raise RuntimeError("no compiler of C")

    class Cuda(torch.Tensor):
        is_cuda = True

    logits = torch.zeros(2, SIZE).as_subclass(Cuda)
    masks = torch.zeros((1, (SIZE + 31) // 32), dtype=torch.int32)
    monkeypatch.setattr(bitmask, "_imported_kernel", lambda: broken)
    at = torch.zeros(2, dtype=torch.int32)
    with pytest.warns(UserWarning, match="no compiler of C"):
        bitmask._deny_on_device(torch, logits, masks, None, at)
    bitmask._deny_on_device(torch, logits, masks, None, at)
    assert len(calls) == 1, "tried once"
    assert logits.isneginf().all()


@pytest.mark.parametrize("row", [-1, 8, 100])
def test_rows_that_the_table_does_not_have(row: int) -> None:
    table, logits = mask_table.MaskTable(257, 8, "cpu"), torch.zeros(2, 257)
    with pytest.raises(mw.errors.BitmaskError, match=f"rows are 0 to 7, not {row}"):
        table.apply(logits, torch.tensor([0, row], dtype=torch.int32))
    assert not logits.any()


@pytest.mark.parametrize("size", [(1 << 40, 1 << 40), (1 << 20, 1 << 31), (10**400, 1)])
def test_a_bitmask_that_no_memory_holds(size: tuple[int, int]) -> None:
    with pytest.raises(mw.errors.BitmaskError):
        bitmask.allocate_token_bitmask(*size)
