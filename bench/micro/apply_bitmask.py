"""How long does applying a mask to logits take, next to torch's masked_fill with the mask at hand?

On a GPU also: batches by the fused kernel, by torch's operations, and by a table of masks that stay there.

python bench/micro/apply_bitmask.py
"""

from __future__ import annotations

import numpy as np
import torch
from _common import best, example, show, warm_states

import maskwright as mw
from maskwright.masks import bitmask as operations

torch.set_num_threads(1)
compiled, ids = example()
size = compiled.vocabulary.vocab_size
bitmask = torch.from_numpy(mw.allocate_token_bitmask(1, size))
# Inside a string: most tokens are allowed.
warm_states(compiled, ids[:4])[-1].fill_next_token_bitmask(bitmask, 0)
logits = torch.zeros((1, size))
denied = torch.from_numpy(np.unpackbits(~bitmask.numpy().view(np.uint8), axis=1, bitorder="little") == 1)
infinity = float("-inf")
show("apply_token_bitmask_inplace", best(lambda: mw.apply_token_bitmask_inplace(logits, bitmask), calls=50))
show("masked_fill_ alone", best(lambda: logits.masked_fill_(denied, infinity), calls=50))

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def batches(states: list[mw.Matcher], rows: int, dtype: torch.dtype) -> None:
    matchers = [states[i % len(states)] for i in range(rows)]
    masks = mw.allocate_token_bitmask(rows, size)
    table = mw.MaskTable(size, device=DEVICE)
    logits = torch.zeros((rows, size), dtype=dtype, device=DEVICE)

    def wait() -> None:
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    def filled() -> None:
        mw.fill_next_token_bitmasks(matchers, masks)
        mw.apply_token_bitmask_inplace(logits, masks)
        wait()

    def looked_up() -> None:
        table.apply(logits, table.rows(matchers))
        wait()

    name = f"{DEVICE}, {rows} row(s), {dtype}"
    show(f"{name}: fill and apply", best(filled, calls=20, rounds=5))
    show(f"{name}: look up and apply (MaskTable)", best(looked_up, calls=20, rounds=5))
    if DEVICE == "cuda":
        operations._kernel_failed = True
        show(f"{name}: fill and apply, torch's operations", best(filled, calls=20, rounds=5))
        operations._kernel_failed = False


known = warm_states(compiled, ids)
for count in (1, 64):
    for kind in (torch.float32, torch.bfloat16):
        batches(known, count, kind)
