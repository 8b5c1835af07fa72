"""One step of decoding: what becomes of a canvas by logits of the model.

A ``Run`` is a model, a canvas and a schedule, and how far they are.
"""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from maskwright.diffusion.anchors import middles
from maskwright.diffusion.canvas import Canvas
from maskwright.diffusion.criteria import LooseCanvas
from maskwright.diffusion.model import MaskedDiffusionModel, checked_logits
from maskwright.diffusion.schedule import Schedule, probabilities, sample, scores
from maskwright.diffusion.slots import EMPTY, OPEN

OTHER_TRIES = 8
"""Tokens proposed for a slot whose best one was refused, of the best ``LOOKED_AT``."""
LOOKED_AT = 64


@dataclass
class Step:
    """One step and what became of it."""

    number: int
    tokens: list[int]
    """By slot: an id, ``OPEN`` or ``EMPTY``."""
    taken: list[int]
    """The slots filled in this step."""
    proposed: int = 0
    refused: int = 0
    calls: int = 1
    """Of the model; 0 where an earlier call was asked ahead, 2 where its causal mode judged what it proposed."""
    model_seconds: float = 0.0
    constraint_seconds: float = 0.0


@dataclass
class Run:
    model: MaskedDiffusionModel
    canvas: Canvas | LooseCanvas
    schedule: Schedule
    rng: np.random.Generator
    generated: list[int]
    impossible: npt.NDArray[np.bool_]
    probability: dict[int, float] = field(default_factory=dict)
    """Of what was put down, by slot."""
    blocks: list[tuple[range, list[int]]] = field(default_factory=list)
    """Blocks that are not full, and what the steps there fill; of the first one, the steps to come."""

    def turn(self) -> tuple[list[int], int] | None:
        """The open slots of the block at hand, and how many of them to fill; None: all are full."""
        while self.blocks:
            block, counts = self.blocks[0]
            here = [i for i in self.canvas.open if i in block]
            if here:
                # What was opened again comes on top, so the last step fills all.
                return here, max(1, *counts[:1], len(here) - sum(counts[1:]))
            del self.blocks[0]
        return None

    def fork(self) -> Run:
        """A run that goes its own way from here, with the same random numbers."""
        assert isinstance(self.canvas, Canvas)
        rng, blocks = copy.deepcopy(self.rng), [(block, list(counts)) for block, counts in self.blocks]
        return replace(
            self, canvas=self.canvas.fork(), rng=rng, probability=dict(self.probability), blocks=blocks
        )


def run_step(run: Run, logits: npt.NDArray[np.float32], rows: dict[int, int]) -> Step:
    """What follows from logits: slots of the block at hand are filled.  ``logits`` [shown slots, V] is overwritten."""
    turn = run.turn()
    assert turn is not None
    here, count = turn
    block, counts = run.blocks[0]
    step = _one_step(run, logits, rows, here, count)
    if run.schedule.remask and len(counts) - 1 > run.schedule.remask:
        _remask(run, block)
        step.tokens = run.canvas.tokens
    del counts[:1]
    return step


def _one_step(
    run: Run, logits: npt.NDArray[np.float32], rows: dict[int, int], here: list[int], count: int
) -> Step:
    """``count`` of the slots ``here`` filled."""
    canvas, schedule = run.canvas, run.schedule
    opened = canvas.open
    view = logits[[rows[i] for i in opened]]
    view[:, run.impossible] = -np.inf
    # Drawn for all slots: what a slot gets does not depend on the others.
    temperature = schedule.temperature or 0.0
    uniform = run.rng.random(logits.shape)[[rows[i] for i in opened]] if temperature > 0 else None
    chosen = sample(view, temperature, uniform)
    probs = probabilities(view)
    row_of = {position: k for k, position in enumerate(opened)}
    if schedule.score == "middle":
        ranked = middles(here)
        count = len(ranked)
    else:
        order = scores(probs, chosen, schedule.score, run.rng)
        ranked = sorted(here, key=lambda i: -order[row_of[i]])
    if schedule.threshold is not None and schedule.score != "middle":
        sure = sum(probs[row_of[i], chosen[row_of[i]]] >= schedule.threshold for i in here)
        count = max(count, int(sure))
    guess = canvas.tokens
    for position, k in row_of.items():
        guess[position] = chosen[k]
    canvas.suggest(guess)
    proposals = [(i, as_proposal(canvas, i, chosen[row_of[i]])) for i in ranked[:count]]
    before = canvas.refused + canvas.undecided
    taken = canvas.commit_many(proposals)
    for position, _ in proposals:
        if canvas.tokens[position] == OPEN:
            settle(run, position, view[row_of[position]])
            taken.append(position)
    if run.model.kind == "editing":
        _edit(run, logits, rows)
    for i in taken:
        if i in row_of and canvas.tokens[i] >= 0:
            run.probability[i] = float(probs[row_of[i], canvas.tokens[i]])
    refused = canvas.refused + canvas.undecided - before
    return Step(0, canvas.tokens, taken, len(proposals), refused)


def canvas_logits(
    model: MaskedDiffusionModel, canvas: Canvas | LooseCanvas
) -> tuple[npt.NDArray[np.float32], dict[int, int], float]:
    """Logits, the row of each slot, and the seconds it took."""
    ids, rows = shown_ids(model, canvas)
    started = time.perf_counter()
    logits = checked_logits(model, ids, canvas.vocabulary.vocab_size)
    return logits, rows, time.perf_counter() - started


def shown_ids(model: MaskedDiffusionModel, canvas: Canvas | LooseCanvas) -> tuple[list[int], dict[int, int]]:
    """The ids that the model sees, and the place of each slot among them."""
    tokens = canvas.tokens
    shown = [i for i, token in enumerate(tokens) if token != EMPTY]
    mask = model.mask_id
    ids = [mask if tokens[i] == OPEN and mask is not None else tokens[i] for i in shown]
    return ids, {i: row for row, i in enumerate(shown)}


def as_proposal(canvas: Canvas | LooseCanvas, position: int, token: int) -> int:
    """An end token where the text goes on leaves an optional slot out."""
    if token in canvas.ends and canvas.is_optional(position):
        return EMPTY
    return token


def settle(run: Run, position: int, row: npt.NDArray[np.float32]) -> None:
    """Fill a slot whose best token was refused: the next best ones, then what the witness has."""
    canvas = run.canvas
    tries = OTHER_TRIES
    for token in best_ids(row, LOOKED_AT):
        if canvas.may_follow(position, token):
            if tries == 0 or canvas.try_commit(position, token):
                break
            tries -= 1
    if canvas.tokens[position] == OPEN:
        canvas.fill(position)


def best_ids(row: npt.NDArray[np.float32], count: int) -> list[int]:
    """The possible tokens of largest logits, best first."""
    top = np.argpartition(-row, min(count, len(row) - 1))[:count]
    top = top[np.lexsort((top, -row[top]))]
    return [int(token) for token in top if row[token] > -np.inf]


def _remask(run: Run, block: range) -> None:
    """Open the slots of lowest probability again."""
    tokens = run.canvas.tokens
    held = [i for i in run.generated if i in block and tokens[i] >= 0 and i in run.probability]
    held.sort(key=lambda i: run.probability[i])
    for position in held[: run.schedule.remask]:
        if len(run.canvas.open) < len(run.generated) - 1:
            run.canvas.uncommit([position])
            del run.probability[position]


def _edit(run: Run, logits: npt.NDArray[np.float32], rows: dict[int, int]) -> None:
    """Replace tokens that the model is now sure are others (LLaDA 2.1)."""
    tokens = run.canvas.tokens
    held = [i for i in run.generated if tokens[i] >= 0 and i in rows]
    if not held:
        return
    view = logits[[rows[i] for i in held]]
    view[:, run.impossible] = -np.inf
    probs = probabilities(view)
    best = probs.argmax(axis=-1)
    for k, position in enumerate(held):
        if best[k] != tokens[position] and probs[k, best[k]] >= run.schedule.edit_threshold:
            run.canvas.replace(position, int(best[k]))
