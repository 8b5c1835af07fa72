"""Token bitmasks: int32 ``[batch, ceil(V / 32)]``, least significant bit first, 1 = allowed."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.errors import BitmaskError

if TYPE_CHECKING:
    from maskwright._core import Matcher


def allocate_token_bitmask(batch: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """A bitmask for ``batch`` rows that allows everything.

    Raises ``BitmaskError`` unless ``batch >= 0`` and ``vocab_size >= 1``.
    """
    batch, vocab_size = _integer(batch, "batch"), _integer(vocab_size, "vocab_size")
    if batch < 0 or vocab_size < 1:
        raise BitmaskError(f"a bitmask of {batch} row(s) for {vocab_size} token(s) cannot be made")
    return np.full((batch, (vocab_size + 31) // 32), -1, dtype=np.int32)


def fill_next_token_bitmasks(matchers: Sequence[Matcher], bitmask: Any) -> None:
    """Write the mask of ``matchers[i]`` into row i of ``bitmask`` (numpy or torch on the CPU).

    Raises ``BitmaskError`` when the number of rows differs, and as ``Matcher.fill_next_token_bitmask``.
    """
    shape = tuple(getattr(bitmask, "shape", ()))
    if len(shape) != 2 or shape[0] != len(matchers):
        raise BitmaskError(
            f"{len(matchers)} matchers need a bitmask [{len(matchers)}, words], not {list(shape)}"
        )
    from maskwright._core import fill_rows

    fill_rows(list(matchers), bitmask)


def apply_token_bitmask_inplace(logits: Any, bitmask: Any, indices: Iterable[int] | None = None) -> None:
    """Set the logits of disallowed tokens to minus infinity.

    ``logits``: floating point ``[batch, V]`` or ``[V]``, numpy or torch (any device).  ``bitmask``: int32
    ``[batch, words]`` or ``[words]``, numpy or torch, with ``words <= ceil(V / 32)``; logits beyond its
    bits are disallowed, as padding of the model's vocabulary is.  ``indices``: treat only these rows: row
    ``i`` of the logits by row ``i`` of the bitmask; without it both must have the same number of rows.

    Raises ``BitmaskError`` for other types, shapes or rows; nothing is written then.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(logits, torch.Tensor):
        floating = torch.is_floating_point(logits)
    elif isinstance(logits, np.ndarray):
        torch = None
        floating = np.issubdtype(logits.dtype, np.floating)
        if not logits.flags.writeable:
            raise BitmaskError("these logits are read-only")
    else:
        raise BitmaskError(f"logits must be a numpy array or a torch tensor, not {type(logits).__name__}")
    if not floating:
        raise BitmaskError(f"logits must be floating point numbers, not {logits.dtype}")
    masks = _as_table(bitmask, "a bitmask")
    if str(getattr(masks, "dtype", None)).removeprefix("torch.") != "int32":
        raise BitmaskError(f"a bitmask holds int32, not {getattr(masks, 'dtype', type(masks).__name__)}")
    table = _as_table(logits, "logits")
    if masks.shape[1] > (table.shape[1] + 31) // 32:
        raise BitmaskError(f"{masks.shape[1]} words speak about more than {table.shape[1]} logits")
    rows = _rows(indices, table.shape[0], masks.shape[0])
    if torch is not None:
        _apply_torch(torch, table, masks, rows)
    else:
        masks = _on_cpu(masks)
        for row in range(table.shape[0]) if rows is None else rows:
            table[row, _denied(masks[row : row + 1], table.shape[1])[0]] = -np.inf


def _as_table(array: Any, what: str) -> Any:
    """A two-dimensional view."""
    dimensions = len(getattr(array, "shape", ()))
    if dimensions not in (1, 2):
        raise BitmaskError(f"{what} must be an array of one or two dimensions, not {type(array).__name__}")
    return array if dimensions == 2 else array[None]


def _rows(indices: Iterable[int] | None, logit_rows: int, mask_rows: int) -> list[int] | None:
    if indices is None:
        if logit_rows != mask_rows:
            raise BitmaskError(f"{logit_rows} row(s) of logits, but {mask_rows} of the bitmask")
        return None
    rows = [_integer(i, "indices") for i in indices]
    if not all(0 <= row < min(logit_rows, mask_rows) for row in rows):
        raise BitmaskError(
            f"indices {rows}: there are {logit_rows} row(s) of logits, {mask_rows} of the bitmask"
        )
    return rows


def _integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise BitmaskError(f"{name}: expected an integer, not {type(value).__name__}") from None


def _on_cpu(masks: Any) -> npt.NDArray[np.int32]:
    return masks if isinstance(masks, np.ndarray) else np.asarray(masks.detach().cpu())


def _denied(masks: npt.NDArray[np.int32], width: int) -> npt.NDArray[np.bool_]:
    """``[rows, words]`` int32 -> ``[rows, width]``: which logits to cut."""
    words = np.ascontiguousarray(~masks, dtype="<i4").view(np.uint8)
    denied = np.ones((masks.shape[0], width), dtype=bool)
    bits = np.unpackbits(words, axis=1, count=min(width, 32 * masks.shape[1]), bitorder="little")
    denied[:, : bits.shape[1]] = bits
    return denied


def _apply_torch(torch: Any, table: Any, masks: Any, rows: list[int] | None) -> None:
    width = table.shape[1]
    if rows is not None:
        masks = masks[rows]
    if table.device.type == "cpu":
        denied = torch.from_numpy(_denied(_on_cpu(masks), width))
    else:
        # Words travel to the device, 32 times fewer bytes than the logits' worth of booleans.
        if not isinstance(masks, torch.Tensor):
            masks = torch.from_numpy(np.ascontiguousarray(masks))
        masks = masks.to(table.device)
        shifts = torch.arange(32, dtype=torch.int32, device=table.device)
        bits = ((masks.unsqueeze(-1) >> shifts) & 1).flatten(1)[:, :width]
        denied = torch.ones((masks.shape[0], width), dtype=torch.bool, device=table.device)
        denied[:, : bits.shape[1]] = bits == 0
    with torch.no_grad():
        if rows is None:
            table.masked_fill_(denied, float("-inf"))
        elif rows:
            at = torch.tensor(rows, device=table.device)
            table[at] = table[at].masked_fill(denied, float("-inf"))
