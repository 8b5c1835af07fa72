"""The distribution to sample from, and its weights step by step.

    target(y) ∝ p(y)^power · 1[y is good] · reward(y)      over texts y that end within ``max_tokens``

Where a constraint knows how many tokens a text still needs, prefixes that need more than are left are out of the target at once.

Prefixes of length t have the intermediate target p(x)^power_t · 1[x may be completed] · twist(x), where power_t
rises to ``power`` over the first ``ramp`` tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright.base.arguments import check_function, real, whole
from maskwright.errors import ConstraintError, MaskwrightError
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers

Potential = Callable[[list[int]], float]

_MOST = (1 << 63) - 1


class InLogarithms:
    """A reward or twist that answers with its logarithm, since no double may hold the number itself."""

    def __init__(self, function: Potential) -> None:
        self._function = function

    def __call__(self, ids: list[int]) -> float:
        return self._function(ids)


@dataclass(frozen=True)
class Target:
    """See the module; ``reward`` and ``twist`` are functions of ids to numbers that are not negative, or ``InLogarithms``."""

    reward: Potential | None
    twist: Potential | None
    power: float
    ramp: int
    max_tokens: int

    def __post_init__(self) -> None:
        if isinstance(self.max_tokens, bool) or not isinstance(self.max_tokens, int) or self.max_tokens < 1:
            raise MaskwrightError(f"max_tokens is at least 1 (it counts EOS), not {self.max_tokens!r}")
        # Numbers of arrays have an end.
        for name, value in (("max_tokens", self.max_tokens), ("ramp", whole(self.ramp, "ramp", low=0))):
            if value > _MOST:
                raise MaskwrightError(f"{name} is at most {_MOST}, not {value}")
        power = real(self.power, "power")
        if not 0 < power < math.inf:
            raise MaskwrightError(f"power is positive and finite, not {self.power}")
        object.__setattr__(self, "power", power)
        check_function(self.reward, "reward", optional=True)
        check_function(self.twist, "twist", optional=True)

    def powers(self, lengths: Integers) -> Floats:
        """The exponent of the step that follows ``lengths`` tokens (exponent bridging of Power-SMC,
        arXiv 2602.10273: linear in the number of tokens)."""
        if not self.ramp:
            return np.full(len(lengths), self.power)
        return 1 + (self.power - 1) * np.minimum((lengths + 1) / self.ramp, 1.0)

    def powers_before(self, lengths: Integers) -> Floats:
        """The exponent that the first ``lengths`` tokens have so far."""
        if not self.ramp:
            return np.full(len(lengths), self.power)
        return 1 + (self.power - 1) * np.minimum(lengths / self.ramp, 1.0)

    def room(self, lengths: Integers) -> Integers:
        """How many tokens may follow ``lengths`` tokens before EOS has to."""
        return self.max_tokens - 1 - lengths

    def log_reward(self, ids: list[int]) -> float:
        return _logarithm(self.reward, "reward", ids)

    def log_twist(self, ids: list[int]) -> float:
        return _logarithm(self.twist, "twist", ids)


def _logarithm(potential: Potential | None, name: str, ids: list[int]) -> float:
    if potential is None:
        return 0.0
    value = potential(ids)
    return value if isinstance(potential, InLogarithms) else log_potential(value, name, ids)


def log_potential(value: Any, name: str, ids: list[int]) -> float:
    """The logarithm of a reward or twist; ``ConstraintError`` unless it is finite and not negative."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    except OverflowError:
        value = number = math.inf
    if not (math.isfinite(number) and number >= 0):
        raise ConstraintError(
            f"{name}({ids}) is {value!r}; it must be a finite number that is not negative (a weight, no logarithm)"
        )
    return math.log(number) if number > 0 else MINUS_INFINITY
