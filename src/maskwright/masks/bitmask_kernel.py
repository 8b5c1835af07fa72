"""The fused kernel that applies masks on a GPU; imported when Triton is there.

It reads the packed words, and writes the logits of disallowed tokens.  Logits are not read, and those of allowed tokens not touched,
so what moves is a bit for each token, and the logits that change.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

_BLOCK = 1024
"""Logits that one program writes; a multiple of 32."""


# Triton reads the types of arguments as values, so that there are none.
@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _deny(  # type: ignore[no-untyped-def]
    logits,
    masks,
    logit_rows,
    mask_rows,
    width,
    words,
    logit_stride,
    mask_stride,
    HAS_LOGIT_ROWS: tl.constexpr,
    HAS_MASK_ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    i = tl.program_id(0)
    row = i
    if HAS_LOGIT_ROWS:
        row = tl.load(logit_rows + i)
    mask_row = i
    if HAS_MASK_ROWS:
        mask_row = tl.load(mask_rows + i)
    at = tl.program_id(1) * (BLOCK // 32) + tl.arange(0, BLOCK // 32)
    packed = tl.load(masks + mask_row.to(tl.int64) * mask_stride + at, mask=at < words, other=0)
    bits = tl.arange(0, 32)[None, :]
    tokens = at[:, None] * 32 + bits
    denied = ((packed[:, None] >> bits) & 1) == 0
    tl.store(logits + row.to(tl.int64) * logit_stride + tokens, -float("inf"), mask=(tokens < width) & denied)


def deny(
    logits: torch.Tensor,
    masks: torch.Tensor,
    logit_rows: torch.Tensor | None = None,
    mask_rows: torch.Tensor | None = None,
) -> None:
    """Minus infinity where a mask has no bit, in place; logits beyond the words are disallowed.

    ``logits`` [rows, V], ``masks`` int32 [rows, words], both with adjacent columns; ``logit_rows``, ``mask_rows``: int32 [n], which of them go
    together, default: all in order.  All on one device, and nothing is checked.
    """
    given = logit_rows if logit_rows is not None else mask_rows
    count = len(logits) if given is None else len(given)
    width = logits.shape[1]
    if not count or not width:
        return
    with _on_device(logits):
        _deny[count, triton.cdiv(width, _BLOCK)](
            logits,
            masks,
            logit_rows,
            mask_rows,
            width,
            masks.shape[1],
            logits.stride(0),
            masks.stride(0),
            HAS_LOGIT_ROWS=logit_rows is not None,
            HAS_MASK_ROWS=mask_rows is not None,
            BLOCK=_BLOCK,
            # What was fastest on an H100.
            num_warps=8 if logits.element_size() == 2 else 4,
        )


def _on_device(logits: torch.Tensor) -> Any:
    # Triton launches on the current device.
    return torch.cuda.device(logits.device if logits.is_cuda else -1)
