"""Which slots to fill in a step, and with what: scores, schedules, sampling.

As in LLaDA (arXiv 2502.09992, Algorithm 5), Dream (entropy, margin), Fast-dLLM (arXiv 2505.22618: a threshold) and
block diffusion (blocks from left to right).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import check_type, one_of, real, whole
from maskwright.errors import CanvasError
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, tempered_rows

Score = Literal["confidence", "entropy", "margin", "random", "left_to_right", "middle"]
SCORES = ("confidence", "entropy", "margin", "random", "left_to_right", "middle")


@dataclass(frozen=True)
class Schedule:
    """How open slots are filled.

    ``steps``: the most steps, which share the open slots evenly (None: one slot a step); ``block``: slots filled before
    later ones (None: all at once; each block takes a step at least); ``score``: the order of slots, or ``"middle"``: each step fills the middle of
    every run of open slots, so n of them take about log2 n steps, whatever ``steps`` says (``infill`` only); ``threshold``: a step also
    takes every slot whose token has at least this probability; ``temperature``: of the model's distribution at a slot, 0 is
    greedy (None: 0 for ``infill``, and 1 for ``infill_smc``, whose particles are drawn);
    ``remask``: slots of lowest probability opened again after each step but the last ones; ``edit_threshold``: the
    probability from which an editing model replaces a token.  ``ahead``: canvases that one model call is asked about: the one at
    hand, and those that come next if the model sticks to what it said (lossless).  A step is a model call, or
    less with ``ahead``.
    """

    steps: int | None = None
    block: int | None = None
    score: Score = "confidence"
    threshold: float | None = None
    temperature: float | None = None
    remask: int = 0
    edit_threshold: float = 0.9
    ahead: int = 1
    verify: bool = False

    def __post_init__(self) -> None:
        one_of(self.score, SCORES, "score", CanvasError)
        for name in ("steps", "block"):
            if getattr(self, name) is not None:
                whole(getattr(self, name), name, CanvasError, 1)
        whole(self.remask, "remask", CanvasError, 0)
        whole(self.ahead, "ahead", CanvasError, 1)
        check_type(self.verify, bool, "verify", CanvasError)
        for name in ("threshold", "temperature", "edit_threshold"):
            if name == "edit_threshold" or getattr(self, name) is not None:
                value = real(getattr(self, name), name, CanvasError)
                if name == "temperature" and value == np.inf:
                    raise CanvasError("temperature is finite")
        if self.verify:
            why = "with verify, the causal mode fills slots from left to right, in as many steps as it takes"
            check_only(
                replace(self, verify=False), Schedule(block=self.block, temperature=self.temperature), why
            )

    def blocks(self, slots: int, generated: Sequence[int]) -> list[tuple[range, list[int]]]:
        """The blocks of a canvas that have generated slots, from left to right, and how many slots each step fills there.

        Raises ``CanvasError`` when there are more blocks than steps.
        """
        size = self.block or slots
        numbers = sorted({slot // size for slot in generated})
        sizes = [sum(slot // size == number for slot in generated) for number in numbers]
        if self.steps is not None and len(numbers) > self.steps:
            raise CanvasError(
                f"steps={self.steps}: there are {len(numbers)} blocks of {size} slots to fill one after another, and each takes a "
                f"step; at least steps={len(numbers)} or block={-(-slots // self.steps)} would do"
            )
        steps = sizes if self.steps is None else shared_steps(sizes, self.steps)
        return [
            (range(number * size, (number + 1) * size), transfer_counts(count, some))
            for number, count, some in zip(numbers, sizes, steps, strict=True)
        ]


def shared_steps(sizes: list[int], steps: int) -> list[int]:
    """Steps for blocks of such numbers of slots: one for each, the others in proportion to what is left of it."""
    left = sum(sizes) - len(sizes)
    more, seen = min(steps - len(sizes), left), 0
    found = []
    for size in sizes:
        extra = (more * (seen + size - 1) // left - more * seen // left) if left else 0
        found.append(1 + extra)
        seen += size - 1
    return found


def check_only(schedule: Schedule, meant: Schedule, why: str) -> None:
    """Raise ``CanvasError`` for the first option that is not as in ``meant``."""
    for name, value in vars(meant).items():
        if getattr(schedule, name) != value:
            raise CanvasError(f"{name}: {why}")


def checked_schedule(schedule: Schedule | None) -> Schedule:
    """A schedule, by default one slot a step.  Raises ``CanvasError``."""
    check_type(schedule, (Schedule, type(None)), "schedule", CanvasError)
    return schedule or Schedule()


def transfer_counts(slots: int, steps: int) -> list[int]:
    """How many slots each of ``steps`` steps fills: evenly, the remainder first."""
    base, more = divmod(slots, steps)
    return [base + (i < more) for i in range(steps)]


def sample(
    logits: npt.NDArray[np.float32], temperature: float, uniform: npt.NDArray[np.float64] | None
) -> list[int]:
    """A token a row: the arg-max of logits with Gumbel noise, as LLaDA samples; ``uniform``: numbers to make it from."""
    return list(map(int, perturbed(logits, temperature, uniform).argmax(axis=-1)))


def perturbed(
    logits: npt.NDArray[np.float32], temperature: float, uniform: npt.NDArray[np.float64] | None
) -> npt.NDArray[np.floating]:
    """Logits with Gumbel noise made from ``uniform``: the token of the largest one is drawn from softmax(logits / temperature)."""
    if temperature == 0 or uniform is None:
        return logits
    # exp(logits) / (-log(u)) ** temperature, without leaving the range of numbers.
    with np.errstate(divide="ignore"):
        noise = np.log(-np.log(uniform))
    found: npt.NDArray[np.float64] = logits.astype(np.float64) - temperature * noise
    return found


def probabilities(logits: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Softmax by row; a row without any possible token is uniform."""
    top = logits.max(axis=-1, keepdims=True)
    finite = np.isfinite(top)
    shifted = np.where(finite, logits - np.where(finite, top, 0), 0)
    out: npt.NDArray[np.float32] = np.exp(shifted, dtype=np.float32)
    out /= out.sum(axis=-1, keepdims=True)
    return out


def log_probabilities(logits: Floats, temperature: float) -> Floats:
    """Logarithms of the softmax by row, however small: ``probabilities`` ends at e^-103.  A row without any possible token is uniform."""
    found = tempered_rows(logits, temperature)
    found[(found == MINUS_INFINITY).all(axis=-1)] = -np.log(logits.shape[-1])
    return found


def scores(
    probs: npt.NDArray[np.float32],
    chosen: list[int],
    score: Score,
    rng: np.random.Generator,
) -> npt.NDArray[np.float64]:
    """How soon each row's slot should be filled: higher is sooner."""
    rows = np.arange(len(chosen))
    if score == "random":
        return np.asarray(rng.random(len(chosen)), dtype=np.float64)
    if score == "left_to_right":
        return -rows.astype(np.float64)
    if score == "entropy":
        return np.asarray((probs * np.log(np.maximum(probs, 1e-30))).sum(axis=-1), dtype=np.float64)
    if score == "margin":
        top = np.partition(probs, -2, axis=-1)[:, -2:] if probs.shape[-1] > 1 else np.zeros((len(rows), 2))
        return np.asarray(top[:, 1] - top[:, 0], dtype=np.float64)
    return np.asarray(probs[rows, chosen], dtype=np.float64)
