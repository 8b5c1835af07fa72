"""How long does applying a mask to logits take, next to torch's masked_fill with the mask at hand?  (On a GPU: bench/gpu.py.)

python bench/micro/apply_bitmask.py
"""

from __future__ import annotations

import numpy as np
import torch
from _common import best, example, show, warm_states

import maskwright as mw

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
