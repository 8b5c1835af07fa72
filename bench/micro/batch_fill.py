"""How long do the masks of 256 mixed sequences take, next to copying as many rows?

python bench/micro/batch_fill.py
"""

from __future__ import annotations

import numpy as np
from _common import best, example, show, warm_states

import maskwright as mw

ROWS = 256

compiled, ids = example()
states = warm_states(compiled, ids)
matchers = [states[i * 7 % len(states)].fork() for i in range(ROWS)]
bitmask = mw.allocate_token_bitmask(ROWS, compiled.vocabulary.vocab_size)
rows = bitmask.copy()


def copy() -> None:
    for target, source in zip(bitmask, rows, strict=True):
        np.copyto(target, source)


show(
    f"{ROWS} masks, fill_next_token_bitmasks",
    best(lambda: mw.fill_next_token_bitmasks(matchers, bitmask), calls=5),
)
show(f"{ROWS} rows copied, numpy.copyto", best(copy, calls=5))
