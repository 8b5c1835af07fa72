"""The floor of a mask: how long does copying one row of 131 072 bits take?

A row is 16 KiB; the second number is what of it numpy takes to begin.

    python bench/micro/copy_row.py
"""

from __future__ import annotations

import numpy as np
from _common import best, show

row = np.full(131_072 // 32, -1, dtype=np.int32)
target = np.zeros_like(row)
show("copy of one row", best(lambda: np.copyto(target, row)))
word, place = row[:1], target[:1]
show("copy of one word", best(lambda: np.copyto(place, word)))
