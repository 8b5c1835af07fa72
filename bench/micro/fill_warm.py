"""How long does a mask of a known state take, into a numpy and into a torch row?

python bench/micro/fill_warm.py
"""

from __future__ import annotations

import torch
from _common import best, example, show, warm_states

import maskwright as mw

compiled, ids = example()
matchers = warm_states(compiled, ids)
row = mw.allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
tensor = torch.from_numpy(row.copy())


def fill_numpy() -> None:
    for matcher in matchers:
        matcher.fill_next_token_bitmask(row, 0)


def fill_torch() -> None:
    for matcher in matchers:
        matcher.fill_next_token_bitmask(tensor, 0)


show("fill, numpy row", best(fill_numpy, calls=20) / len(matchers))
show("fill, torch row", best(fill_torch, calls=20) / len(matchers))
