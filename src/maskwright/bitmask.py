"""Token bitmasks: int32 ``[batch, ceil(V / 32)]``, least significant bit first, 1 = allowed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.errors import BitmaskError

if TYPE_CHECKING:
    from maskwright._core import Matcher


def allocate_token_bitmask(batch: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """A bitmask for ``batch`` rows that allows everything.  Raises ``BitmaskError`` for negative sizes."""
    if batch < 0 or vocab_size < 1:
        raise BitmaskError(f"a bitmask of {batch} rows for {vocab_size} tokens cannot be made")
    return np.full((batch, (vocab_size + 31) // 32), -1, dtype=np.int32)


def fill_next_token_bitmasks(matchers: Sequence[Matcher], bitmask: Any) -> None:
    """Write the mask of ``matchers[i]`` into row i.

    Raises ``BitmaskError`` when the number of rows differs, or as ``Matcher.fill_next_token_bitmask``.
    """
    rows = bitmask.shape[0] if getattr(bitmask, "ndim", 0) == 2 else -1
    if rows != len(matchers):
        raise BitmaskError(
            f"{len(matchers)} matchers need a bitmask [{len(matchers)}, words], not {rows} row(s)"
        )
    for row, matcher in enumerate(matchers):
        matcher.fill_next_token_bitmask(bitmask, row)


def apply_token_bitmask_inplace(logits: Any, bitmask: Any, indices: Sequence[int] | None = None) -> None:
    """Set the logits of disallowed tokens to minus infinity.

    ``logits``: float ``[batch, V]`` or ``[V]``, numpy or torch (any device); ``bitmask``: int32 with as many rows;
    ``indices``: treat only these rows of both.  Logits beyond the bitmask's bits are disallowed.
    Raises ``BitmaskError`` for other types or shapes.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(logits, torch.Tensor):
        _check(logits.shape, bitmask, torch.is_floating_point(logits))
        _apply_torch(torch, logits, bitmask, indices)
    elif isinstance(logits, np.ndarray):
        _check(logits.shape, bitmask, np.issubdtype(logits.dtype, np.floating))
        _apply_numpy(logits, np.asarray(bitmask), indices)
    else:
        raise BitmaskError(f"logits must be a numpy array or a torch tensor, not {type(logits).__name__}")


def _check(shape: Sequence[int], bitmask: Any, floating: bool) -> None:
    if not floating:
        raise BitmaskError("logits must be floating point numbers")
    mask_shape = tuple(getattr(bitmask, "shape", ()))
    if str(getattr(bitmask, "dtype", "")).removeprefix("torch.") != "int32":
        raise BitmaskError("a bitmask holds int32")
    if len(shape) not in (1, 2) or len(mask_shape) not in (1, 2):
        raise BitmaskError(f"logits {tuple(shape)} and bitmask {mask_shape} must have one or two dimensions")
    rows = shape[0] if len(shape) == 2 else 1
    mask_rows = mask_shape[0] if len(mask_shape) == 2 else 1
    if rows != mask_rows:
        raise BitmaskError(f"{rows} row(s) of logits, but {mask_rows} of the bitmask")
    if mask_shape[-1] > (shape[-1] + 31) // 32:
        raise BitmaskError(f"{mask_shape[-1]} words speak about more than {shape[-1]} logits")


def _rows(indices: Sequence[int] | None, count: int) -> list[int]:
    rows = list(range(count)) if indices is None else [int(i) for i in indices]
    if any(not 0 <= row < count for row in rows):
        raise BitmaskError(f"indices {rows} are not all within {count} row(s)")
    return rows


def _apply_numpy(
    logits: npt.NDArray[Any], bitmask: npt.NDArray[np.int32], indices: Sequence[int] | None
) -> None:
    table = logits.reshape(-1, logits.shape[-1])
    masks = bitmask.reshape(-1, bitmask.shape[-1])
    for row in _rows(indices, table.shape[0]):
        words = np.ascontiguousarray(masks[row])
        bits = np.unpackbits(words.view(np.uint8), bitorder="little").view(bool)[: table.shape[1]]
        table[row, : len(bits)][~bits] = -np.inf
        table[row, len(bits) :] = -np.inf
    if not np.shares_memory(table, logits):
        logits[...] = table.reshape(logits.shape)


def _apply_torch(torch: Any, logits: Any, bitmask: Any, indices: Sequence[int] | None) -> None:
    table = logits if logits.dim() == 2 else logits.unsqueeze(0)
    masks = bitmask if isinstance(bitmask, torch.Tensor) else torch.from_numpy(np.ascontiguousarray(bitmask))
    masks = masks.reshape(-1, masks.shape[-1]).to(logits.device, non_blocking=True)
    width = table.shape[1]
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    rows = None if indices is None else torch.tensor(_rows(indices, table.shape[0]), device=logits.device)
    words = masks if rows is None else masks[rows]
    bits = ((words.unsqueeze(-1) >> shifts) & 1).to(torch.bool).flatten(1)[:, :width]
    denied = torch.ones((words.shape[0], width), dtype=torch.bool, device=logits.device)
    denied[:, : bits.shape[1]] = ~bits
    if rows is None:
        table.masked_fill_(denied, float("-inf"))
    else:
        table[rows] = table[rows].masked_fill(denied, float("-inf"))
