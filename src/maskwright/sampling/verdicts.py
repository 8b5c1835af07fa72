"""What constraints and checkers answer, as it must be: whatever else numpy takes for true and false is no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from maskwright.errors import ConstraintError
from maskwright.sampling.logspace import Booleans

if TYPE_CHECKING:
    from maskwright.sampling.constraints import Bitmask, Constraint


def booleans(answers: Any, count: int, what: str) -> Booleans:
    """So many answers, or a ``ConstraintError``."""
    found = np.asarray(answers)
    if found.dtype != np.bool_ or found.shape != (count,):
        given = f"{found.dtype} {list(found.shape)}"
        raise ConstraintError(f"{what} answered {given}; it must answer booleans [{count}]")
    return found


def checked(constraint: Constraint, states: Sequence[Any], tokens: Sequence[int]) -> Booleans:
    """``constraint.check``; raises ``ConstraintError`` for what are no verdicts of these tokens."""
    return booleans(constraint.check(states, tokens), len(tokens), f"{type(constraint).__name__}.check")


def masks_of(constraint: Constraint, states: Sequence[Any], vocab_size: int) -> Bitmask | None:
    """``constraint.masks``; raises ``ConstraintError`` for what are no bitmasks of these states."""
    found = constraint.masks(states)
    shape = len(states), (vocab_size + 31) // 32
    if found is not None and not (
        isinstance(found, np.ndarray) and found.dtype == np.int32 and found.shape == shape
    ):
        given = (
            f"{found.dtype} {list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        )
        raise ConstraintError(
            f"{type(constraint).__name__}.masks answered {given}; it must answer int32 {list(shape)}, or None"
        )
    return found
