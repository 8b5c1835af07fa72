"""Masks that stay on the device: a step sends which of them each row has, not the masks."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from maskwright.base.arguments import listed, whole
from maskwright.errors import BitmaskError
from maskwright.masks.bitmask import apply_mask_rows, to_device

if TYPE_CHECKING:
    from maskwright._core import Matcher

_GRAMMARS_KEPT = 64
"""Grammars whose states are remembered; they are held as long."""
_STATES_KEPT = 16384
"""States that are remembered of one grammar."""


class MaskTable:
    """A fixed number of masks on a device, for matchers of one vocabulary.

    ``masks``: int32 ``[capacity, ceil(vocab_size / 32)]`` on ``device``; it never moves, so that CUDA graphs may hold it.  Row 0 allows
    everything.  Others are filled as matchers need them, and those used longest ago are replaced, by a copy on the current
    stream.  Equal masks have one row.

    A mask belongs to the state of a matcher.  So a state that was seen before costs a look-up on the host, and four bytes to the device.
    One thread at a time may use it.  Raises ``BitmaskError`` unless ``vocab_size >= 1`` and ``capacity >= 2``.
    """

    def __init__(self, vocab_size: int, capacity: int = 1024, device: Any = "cuda") -> None:
        self.vocab_size = whole(vocab_size, "vocab_size", BitmaskError, 1)
        self.capacity = whole(capacity, "capacity", BitmaskError, 2)
        words = (self.vocab_size + 31) // 32
        if self.capacity * words >= 1 << 62:
            raise BitmaskError("capacity: a table of so many masks is larger than any memory")
        self.masks = torch.full((self.capacity, words), -1, dtype=torch.int32, device=device)
        self.sent = 0
        """Masks that were sent to the device so far."""
        self._row_of_mask: dict[bytes, int] = {}
        # By row, that used longest ago first.
        self._mask_of_row: OrderedDict[int, bytes] = OrderedDict()
        # The grammar is held, so that no other one gets its id.
        self._grammars: OrderedDict[int, tuple[Any, dict[int, bytes]]] = OrderedDict()

    def rows(self, matchers: Sequence[Matcher | npt.NDArray[np.int32] | None]) -> torch.Tensor:
        """int32 ``[len(matchers)]`` on the CPU: the row of ``masks`` with what may come next in each.

        Instead of a matcher, a mask ``[words]`` may be given, or None for row 0.  Raises ``BitmaskError`` when they need more masks at
        once than there is room for, or are of a vocabulary of another size; and as ``Matcher.next_token_bitmask``.  Nothing
        changes then.  What was given before holds until the next call, which may replace any mask that it does not ask for.
        """
        names: list[bytes | None] = []
        masks: dict[bytes, npt.NDArray[np.int32]] = {}
        for matcher in listed(matchers, "matchers", "matchers or masks", BitmaskError):
            names.append(None if matcher is None else self._name(matcher, masks))
        wanted = {name for name in names if name is not None}
        if len(wanted) > self.capacity - 1:
            raise BitmaskError(
                f"{len(wanted)} different masks at once, but the table has room for {self.capacity - 1}: make it with a larger capacity"
            )
        missing = [name for name in masks if name not in self._row_of_mask]
        for name in wanted & self._row_of_mask.keys():
            self._mask_of_row.move_to_end(self._row_of_mask[name])
        for name in missing:
            row = self._room()
            self._mask_of_row[row] = name
            self._row_of_mask[name] = row
        if missing:
            device = self.masks.device
            at = np.array([self._row_of_mask[name] for name in missing])
            new = np.stack([masks[name] for name in missing])
            self.masks.index_copy_(0, to_device(torch, at, device), to_device(torch, new, device))
            self.sent += len(missing)
        found = [0 if name is None else self._row_of_mask[name] for name in names]
        return torch.tensor(found, dtype=torch.int32)

    def apply(self, logits: torch.Tensor, rows: torch.Tensor) -> None:
        """Set the logits of disallowed tokens to minus infinity, in place.

        ``logits``: ``[n, V]`` on the device of the table; float16, bfloat16, float32 or float64; beyond ``vocab_size`` they are
        disallowed.  ``rows``: int32 ``[n]`` as ``rows`` gave them, here or on the device.  Nothing is waited for.  Raises
        ``BitmaskError`` for other types or shapes.
        """
        apply_mask_rows(logits, self.masks, rows)

    def _name(self, matcher: Any, masks: dict[bytes, npt.NDArray[np.int32]]) -> bytes:
        """The name of a mask; the mask goes into ``masks`` unless the table has it."""
        if not isinstance(matcher, np.ndarray) and not hasattr(matcher, "next_token_bitmask"):
            raise BitmaskError(f"matchers: expected a matcher or a mask, got {type(matcher).__name__}")
        states = None if isinstance(matcher, np.ndarray) else self._states(matcher.compiled)
        name = states.get(matcher.state_id) if states is not None else None
        if name is not None and name in self._row_of_mask:
            return name
        mask = np.asarray(matcher if states is None else matcher.next_token_bitmask())
        if mask.shape != self.masks.shape[1:] or mask.dtype != np.int32:
            raise BitmaskError(
                f"a mask of this table is int32 [{self.masks.shape[1]}], not {mask.dtype} {list(mask.shape)}"
            )
        name = hashlib.blake2b(mask.tobytes(), digest_size=16).digest()
        masks.setdefault(name, mask)
        if states is not None:
            if len(states) >= _STATES_KEPT:
                states.clear()
            states[matcher.state_id] = name
        return name

    def _states(self, grammar: Any) -> dict[int, bytes]:
        key = id(grammar)
        if key not in self._grammars:
            self._grammars[key] = grammar, {}
        self._grammars.move_to_end(key)
        while len(self._grammars) > _GRAMMARS_KEPT:
            self._grammars.popitem(last=False)
        return self._grammars[key][1]

    def _room(self) -> int:
        if len(self._mask_of_row) < self.capacity - 1:
            return len(self._mask_of_row) + 1
        row, name = self._mask_of_row.popitem(last=False)
        del self._row_of_mask[name]
        return row
