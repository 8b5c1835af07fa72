"""Fewer model calls for the same text: the model is asked ahead, or its causal mode is asked about many slots at once.

``LookAhead``: the text of the schedule (SSD).  ``verified_steps``: the text of the model's causal mode (S2D2).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.model import checked_causal_logits, checked_logits_of
from maskwright.diffusion.schedule import perturbed
from maskwright.diffusion.slots import EMPTY, OPEN
from maskwright.diffusion.steps import (
    Run,
    Step,
    as_proposal,
    best_ids,
    canvas_logits,
    run_step,
    settle,
    shown_ids,
)
from maskwright.errors import LimitError

_FEW = 8
"""Tokens that are tried one by one before the mask of a slot is asked for."""


class LookAhead:
    """Logits of a run's canvas, from a call that was made for an earlier one where that saw it coming.

    Lossless self-speculation (SSD, Gao et al. 2025, arXiv 2510.04147): with the last logits in place of those to come,
    and the random numbers that will come, the loop is run ahead on a fork; the model is asked about the canvas at hand and
    those ``schedule.ahead - 1`` in one call.  The loop itself then goes as it always goes, and looks up what was guessed right.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: dict[tuple[int, ...], npt.NDArray[np.float32]] = {}
        self._last: dict[int, npt.NDArray[np.float32]] = {}
        """The latest row of each slot."""

    def logits(self) -> tuple[npt.NDArray[np.float32], dict[int, int], int, float]:
        """Logits [shown slots, V], the row of each slot, calls made, and the seconds they took."""
        run = self._run
        ids, rows = shown_ids(run.model, run.canvas)
        calls, seconds = 0, 0.0
        if tuple(ids) not in self._known:
            canvases = [ids, *self._guesses()]
            started = time.perf_counter()
            found = checked_logits_of(run.model, canvases, run.canvas.vocabulary.vocab_size)
            calls, seconds = 1, time.perf_counter() - started
            self._known = {tuple(canvas): logits for canvas, logits in zip(canvases, found, strict=True)}
        logits = self._known[tuple(ids)]
        self._last = {slot: logits[row] for slot, row in rows.items()}
        # The step writes into what it gets.
        return logits.copy(), rows, calls, seconds

    def _guesses(self) -> list[list[int]]:
        guesses: list[list[int]] = []
        if not self._last or self._run.schedule.ahead == 1:
            return guesses
        fork = self._run.fork()
        while len(guesses) < self._run.schedule.ahead - 1:
            rows = shown_ids(fork.model, fork.canvas)[1]
            if fork.turn() is None or not rows.keys() <= self._last.keys():
                break
            run_step(fork, np.stack([self._last[slot] for slot in rows]), rows)
            if fork.turn() is not None:
                guesses.append(shown_ids(fork.model, fork.canvas)[0])
        return guesses


# --- the causal mode decides


def verified_steps(run: Run, number: int) -> Iterator[Step]:
    """Rounds behind so many steps: the model proposes all slots of a block at once, and its causal mode decides on them in one call.

    Lossless speculative decoding with one model in two modes (S2D2, Han et al. 2026, arXiv 2603.25702): a model of block diffusion with
    blocks of one slot is autoregressive.  From left to right, a slot gets the token that the causal mode draws; the first one that was not
    proposed ends the round, as what the causal mode said behind it was said of another text.

    Both modes draw with the same noise for a slot (Gumbel-max: arg-max of logits + temperature · noise), so they agree
    often, and each text is the one that the causal mode alone writes with that noise (drafter-invariant: Daliri, Musco and Suresh 2024, arXiv
    2408.07978).  A token that does not fit is passed over for the next one in that order, which draws from what does fit.
    """
    noise = _Noise(run)
    while (turn := run.turn()) is not None:
        number += 1
        started = time.perf_counter()
        step = _round(run, turn[0], noise)
        step.number = number
        step.constraint_seconds = time.perf_counter() - started - step.model_seconds
        yield step


class _Noise:
    """The logits of a slot with the noise that is this slot's own, whatever they are and whenever it is asked for."""

    def __init__(self, run: Run) -> None:
        self._impossible = run.impossible
        self._temperature = run.schedule.temperature or 0.0
        first, size = int(run.rng.integers(2**63)), len(run.impossible)
        self._uniform = lru_cache(64)(lambda slot: np.random.default_rng((first, slot)).random(size))

    def __call__(self, slot: int, logits: npt.NDArray[np.float32]) -> npt.NDArray[np.floating]:
        """[V]; what the model may not write is minus infinity."""
        uniform = self._uniform(slot) if self._temperature > 0 else None
        return np.where(self._impossible, -np.inf, perturbed(logits, self._temperature, uniform))


def _round(run: Run, here: list[int], noise: _Noise) -> Step:
    """The open slots ``here`` are proposed, and filled up to the first one where the causal mode says otherwise."""
    canvas = run.canvas
    assert isinstance(canvas, Canvas)
    calls, seconds, proposed = 1, 0.0, canvas.tokens
    if len(here) > 1:
        proposed, seconds = _proposed(run, here, noise)
        canvas.suggest(proposed)
        calls = 2
    before = canvas.refused + canvas.undecided
    # All slots up to the last one; its own token decides nothing, and may be one that is left out.
    shown = [slot for slot in range(here[-1]) if proposed[slot] != EMPTY]
    mask = run.model.mask_id
    assert mask is not None
    started = time.perf_counter()
    logits = checked_causal_logits(
        run.model, [*(proposed[slot] for slot in shown), mask], canvas.vocabulary.vocab_size
    )
    seconds += time.perf_counter() - started
    row_of = dict(zip(here, np.searchsorted(shown, here).tolist(), strict=True))
    for slot in here:
        if canvas.tokens[slot] == OPEN:  # else an end token has filled it
            _decide(canvas, slot, noise(slot, logits[row_of[slot]]))
            if canvas.tokens[slot] != proposed[slot]:
                break
    taken = [slot for slot in here if canvas.tokens[slot] != OPEN]
    refused = canvas.refused + canvas.undecided - before
    return Step(0, canvas.tokens, taken, len(here), refused, calls, seconds)


def _proposed(run: Run, here: list[int], noise: _Noise) -> tuple[list[int], float]:
    """A canvas without open slots that has what the model proposes ``here``, as far as it fits; and the model's seconds."""
    canvas = run.canvas
    assert isinstance(canvas, Canvas)
    logits, rows, seconds = canvas_logits(run.model, canvas)
    views = {slot: noise(slot, logits[rows[slot]]) for slot in here}
    guess = canvas.tokens
    for slot in canvas.open:
        guess[slot] = int(views.get(slot, logits[rows[slot]]).argmax())
    draft = run.fork()
    assert isinstance(draft.canvas, Canvas)
    draft.canvas.suggest(guess)
    draft.canvas.commit_many([(slot, as_proposal(draft.canvas, slot, guess[slot])) for slot in here])
    for slot in here:
        if draft.canvas.tokens[slot] == OPEN:
            settle(draft, slot, views[slot])
    return draft.canvas.witness(), seconds


def _decide(canvas: Canvas, slot: int, row: npt.NDArray[np.floating]) -> None:
    """Fill a slot with the first token that fits, in the order of ``row`` [V]; minus infinity is none."""
    if _put_first(canvas, slot, best_ids(row, _FEW)):
        return
    try:
        fits = canvas.allowed(slot)
        fits[list(canvas.ends)] = True  # at an optional slot they leave it out
        row = np.where(fits, row, -np.inf)
    except LimitError:
        pass  # then all are tried
    if not _put_first(canvas, slot, best_ids(row, len(row))):
        # The model has nothing that fits.
        canvas.fill(slot)


def _put_first(canvas: Canvas, slot: int, tokens: Sequence[int]) -> bool:
    for token in tokens:
        text = as_proposal(canvas, slot, token)
        if canvas.may_follow(slot, text) and canvas.try_commit(slot, text):
            return True
    return False
