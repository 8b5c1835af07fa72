"""Token bitmasks: int32 ``[batch, ceil(V / 32)]``, least significant bit first, 1 = allowed."""

from __future__ import annotations

import operator
import sys
import warnings
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import each_of, listed
from maskwright.errors import BitmaskError

if TYPE_CHECKING:
    from maskwright._core import Matcher


def allocate_token_bitmask(batch: int, vocab_size: int) -> npt.NDArray[np.int32]:
    """A bitmask for ``batch`` rows that allows everything.

    Raises ``BitmaskError`` unless ``batch >= 0`` and ``vocab_size >= 1``, and for more than there is memory.
    """
    batch, vocab_size = _integer(batch, "batch"), _integer(vocab_size, "vocab_size")
    if batch < 0 or vocab_size < 1:
        raise BitmaskError(f"a bitmask of {batch} row(s) for {vocab_size} token(s) cannot be made")
    try:
        return np.full((batch, (vocab_size + 31) // 32), -1, dtype=np.int32)
    except (MemoryError, ValueError, OverflowError):
        raise BitmaskError(
            f"there is no room for a bitmask of {batch} row(s) for {vocab_size} token(s)"
        ) from None


def allowed_tokens(bitmask: npt.NDArray[np.int32], vocab_size: int) -> npt.NDArray[np.bool_]:
    """A bitmask int32 [..., ceil(V / 32)] as booleans [..., V]."""
    octets = np.ascontiguousarray(bitmask).view(np.uint8)
    return np.unpackbits(octets, axis=-1, count=vocab_size, bitorder="little").view(np.bool_)


def fill_next_token_bitmasks(matchers: Sequence[Matcher], bitmask: Any) -> None:
    """Write the mask of ``matchers[i]`` into row i of ``bitmask`` (numpy or torch on the CPU).

    Raises ``BitmaskError`` when the number of rows differs, and as ``Matcher.fill_next_token_bitmask``.
    """
    from maskwright._core import fill_rows

    fill_rows(listed(matchers, "matchers", "a list of matchers", BitmaskError), bitmask)


def apply_token_bitmask_inplace(logits: Any, bitmask: Any, indices: Iterable[int] | None = None) -> None:
    """Set the logits of disallowed tokens to minus infinity.

    ``logits``: float16, bfloat16, float32 or float64 ``[batch, V]`` or ``[V]``, numpy or torch (any
    device).  ``bitmask``: int32 ``[batch, words]`` or ``[words]``, numpy, torch or a view from
    ``Matcher.next_token_bitmask``, with ``words <= ceil(V / 32)``; logits beyond its bits are
    disallowed, as padding of the model's vocabulary is.  ``indices``: treat only these rows: row ``i``
    of the logits by row ``i`` of the bitmask; without it both must have the same number of rows.

    Raises ``BitmaskError`` for other types, shapes or rows; nothing is written then.
    """
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(logits, torch.Tensor):
        on_cpu = logits.is_cpu and not logits.requires_grad
    elif isinstance(logits, np.ndarray):
        on_cpu = True
        logits = np.asarray(logits)  # without what a subclass says of itself
        if not (logits.flags.writeable and logits.flags.aligned and logits.dtype.isnative):
            raise BitmaskError("these logits are read-only, unaligned or of foreign byte order")
    else:
        raise BitmaskError(f"logits must be a numpy array or a torch tensor, not {type(logits).__name__}")
    lowest = _LOWEST.get(_type_name(logits.dtype))
    if lowest is None:
        raise BitmaskError(f"logits must be 16, 32 or 64 bit floating point numbers, not {logits.dtype}")
    if isinstance(bitmask, (memoryview, np.ndarray)):
        bitmask = np.asarray(bitmask)
    elif torch is None or not isinstance(bitmask, torch.Tensor):
        raise BitmaskError(f"a bitmask must be a numpy array or a torch tensor, not {type(bitmask).__name__}")
    elif bitmask.is_meta or bitmask.is_sparse:
        raise BitmaskError("a bitmask must be a dense tensor with data")
    masks = _as_table(bitmask, "a bitmask")
    if _type_name(masks.dtype) != "int32":
        raise BitmaskError(f"a bitmask holds int32, not {masks.dtype}")
    table = _as_table(logits, "logits")
    if masks.shape[1] > (table.shape[1] + 31) // 32:
        raise BitmaskError(f"{masks.shape[1]} words speak about more than {table.shape[1]} logits")
    rows = _rows(indices, table.shape[0], masks.shape[0])
    if on_cpu:
        _apply_on_cpu(torch, table, masks, rows, lowest)
    else:
        _apply_on_device(torch, table, masks, rows)


# The bits of minus infinity.
_LOWEST = {
    "float16": 0xFC00,
    "bfloat16": 0xFF80,
    "float32": 0xFF800000,
    "float64": 0xFFF0000000000000,
}


@cache
def _type_name(dtype: Any) -> str:
    # Kept, because numpy spells a name in many steps, which takes longer than all else behind a forward pass.
    return str(dtype).removeprefix("torch.")


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
    rows = []
    for i in each_of(indices, "indices", "numbers of rows", BitmaskError):
        row = _integer(i, "indices")
        if not 0 <= row < min(logit_rows, mask_rows):
            raise BitmaskError(
                f"indices: row {row}, but there are {logit_rows} row(s) of logits, {mask_rows} of the bitmask"
            )
        rows.append(row)
    return rows


def _integer(value: Any, name: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise BitmaskError(f"{name}: expected an integer, not {type(value).__name__}") from None


def _apply_on_cpu(torch: Any, table: Any, masks: Any, rows: list[int] | None, lowest: int) -> None:
    from maskwright._core import cut_rows

    if not isinstance(masks, np.ndarray):
        masks = masks.detach().cpu().numpy()
    if masks.strides[1] != 4:
        masks = np.ascontiguousarray(masks, dtype=np.int32)
    if not isinstance(table, np.ndarray):
        # numpy knows the memory of a tensor, but no bfloat16.
        try:
            table = (table.view(torch.int16) if table.dtype == torch.bfloat16 else table).numpy()
        except (RuntimeError, TypeError) as error:
            raise BitmaskError(f"these logits cannot be written from the CPU: {error}") from None
    cut_rows(table, masks, lowest, rows)


def _apply_on_device(torch: Any, table: Any, masks: Any, rows: list[int] | None) -> None:
    # Words travel to the device, 32 times fewer bytes than the logits' worth of booleans.
    at = None
    if rows is not None:
        masks = masks[rows]
        at = to_device(torch, np.array(rows, dtype=np.int32), table.device)
    _deny_on_device(torch, table, to_device(torch, masks, table.device), at, None)


def to_device(torch: Any, numbers: Any, device: Any) -> Any:
    """A numpy array or tensor as a tensor on a device; it may be written again at once.

    CUDA waits for all work before it copies from ordinary memory, and reads pinned memory later, whoever writes it meanwhile.  So
    numbers go through pinned memory of torch's own, which is not used again before it was read, and nothing is waited for.
    """
    if isinstance(numbers, torch.Tensor) and not numbers.is_cpu:
        return numbers.to(device, non_blocking=True)
    staging = torch.device(device).type == "cuda"
    staged = torch.empty(numbers.shape, dtype=getattr(torch, _type_name(numbers.dtype)), pin_memory=staging)
    if isinstance(numbers, torch.Tensor):
        staged.copy_(numbers)
    else:
        staged.numpy()[:] = numbers
    return staged.to(device, non_blocking=staging)


def apply_mask_rows(logits: Any, masks: Any, mask_rows: Any) -> None:
    """Row i of the logits by row ``mask_rows[i]`` of the masks, where both are on one device, without waiting for it.

    ``logits``: torch ``[n, V]``, 16, 32 or 64 bit floating point.  ``masks``: torch int32 ``[rows, words]``, ``words <= ceil(V / 32)``;
    logits beyond its bits are disallowed.  ``mask_rows``: torch int32 ``[n]``; values on a device are not checked, as that would wait.
    Raises ``BitmaskError`` for other types and shapes; nothing is written then.
    """
    import torch

    if not isinstance(logits, torch.Tensor) or _type_name(logits.dtype) not in _LOWEST or logits.dim() != 2:
        raise BitmaskError("logits must be a torch tensor [n, V] of floating point numbers")
    if not isinstance(mask_rows, torch.Tensor):
        raise BitmaskError(f"rows must be a torch tensor, not {type(mask_rows).__name__}")
    if logits.device != masks.device:
        raise BitmaskError(f"the logits are on {logits.device}, the masks on {masks.device}")
    if masks.shape[1] > (logits.shape[1] + 31) // 32:
        raise BitmaskError(f"{masks.shape[1]} words speak about more than {logits.shape[1]} logits")
    if tuple(mask_rows.shape) != (len(logits),) or mask_rows.dtype != torch.int32:
        raise BitmaskError(
            f"rows must be int32 [{len(logits)}], not {mask_rows.dtype} {list(mask_rows.shape)}"
        )
    if mask_rows.is_cpu and len(mask_rows):
        least, most = (int(each) for each in mask_rows.aminmax())
        if least < 0 or most >= len(masks):
            raise BitmaskError(f"rows are 0 to {len(masks) - 1}, not {least if least < 0 else most}")
    if logits.is_cpu and not logits.requires_grad:
        _apply_on_cpu(torch, logits, masks[mask_rows], None, _LOWEST[_type_name(logits.dtype)])
    else:
        _deny_on_device(torch, logits, masks, None, to_device(torch, mask_rows, logits.device))


def _deny_on_device(torch: Any, table: Any, masks: Any, at: Any, mask_rows: Any) -> None:
    """Rows ``at`` of the table (None: all) by rows ``mask_rows`` of the masks (None: in order)."""
    if table.is_cuda and not table.requires_grad and table.stride(1) == masks.stride(1) == 1:
        kernel = _kernel()
        if kernel is not None:
            try:
                kernel(table, masks, at, mask_rows)
                return
            except Exception as error:
                # Triton compiles at its first call, which needs a compiler of C.
                _without_kernel(error)
    if mask_rows is not None:
        masks = masks[mask_rows]
    powers = torch.ones((), dtype=torch.int32, device=table.device) << torch.arange(
        32, dtype=torch.int32, device=table.device
    )
    width = table.shape[1]
    covered = min(width, 32 * masks.shape[1])
    denied = ((masks.unsqueeze(-1) & powers) == 0).flatten(1)[:, :covered]
    with torch.no_grad():
        if at is None:
            table[:, :covered].masked_fill_(denied, float("-inf"))
            table[:, covered:] = float("-inf")
        elif len(at):
            part = table[at]
            part[:, :covered].masked_fill_(denied, float("-inf"))
            part[:, covered:] = float("-inf")
            table[at] = part


_kernel_failed = False


def _kernel() -> Any:
    """The fused kernel, or None where there is none."""
    return None if _kernel_failed else _imported_kernel()


@cache
def _imported_kernel() -> Any:
    try:
        from maskwright.masks.bitmask_kernel import deny
    except ImportError:
        return None
    return deny


def _without_kernel(error: Exception) -> None:
    global _kernel_failed
    _kernel_failed = True
    warnings.warn(
        f"masks are applied by torch's own operations, because the kernel cannot be used: {error}",
        stacklevel=4,
    )
