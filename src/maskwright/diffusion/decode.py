"""The decoding loop: model calls, proposals, and a canvas that decides on them."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import generator
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.anchors import Anchors, checked_anchors, middles, place_anchors, unwritten
from maskwright.diffusion.canvas import SEARCH_BUDGET, Canvas
from maskwright.diffusion.criteria import CRITERIA, LooseCanvas
from maskwright.diffusion.model import MaskedDiffusionModel, checked_logits, checked_logits_of, checked_model
from maskwright.diffusion.schedule import (
    Schedule,
    checked_schedule,
    probabilities,
    sample,
    scores,
)
from maskwright.diffusion.sets import check_grammar
from maskwright.diffusion.slots import EMPTY, OPEN, Slots, read_canvas
from maskwright.errors import CanvasError, UnsatisfiableError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.vocabulary.vocabulary import Vocabulary

_OTHER_TRIES = 8
"""Tokens proposed for a slot whose best one was refused, of the best ``_LOOKED_AT``."""
_LOOKED_AT = 64
UNIFORM_STEPS = 8


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
    """Of the model; 0 where an earlier call was asked ahead."""
    model_seconds: float = 0.0
    constraint_seconds: float = 0.0


@dataclass
class _Run:
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

    def fork(self) -> _Run:
        """A run that goes its own way from here, with the same random numbers."""
        assert isinstance(self.canvas, Canvas)
        rng, blocks = copy.deepcopy(self.rng), [(block, list(counts)) for block, counts in self.blocks]
        return replace(
            self, canvas=self.canvas.fork(), rng=rng, probability=dict(self.probability), blocks=blocks
        )


def infill(
    model: MaskedDiffusionModel,
    grammar: CompiledGrammar,
    canvas: Sequence[Any],
    *,
    schedule: Schedule | None = None,
    criterion: str = "exact",
    search_budget: float = SEARCH_BUDGET,
    seed: int | None = None,
    anchors: Sequence[str] = (),
    on_step: Callable[[Step], None] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[int]:
    """Fill a canvas; its token ids, one a slot, end tokens included.

    ``canvas``: token ids, ``model.mask_id`` or None for an open slot, ``str`` or ``bytes`` for fixed text, ``Gap(min, max)``
    for a variable number of tokens (slots of it that stay empty are left out of the result).
    ``anchors``: phrases that are put down first, after one model call, where the model likes them best; those that fixed text has
    already are left out, and others may go on from it, or share slots.  With ``Schedule(score="middle")`` the rest follows from coarse to
    fine (POINTER).  A grammar that demands them (``mw.Contains``) does so without anchors too.  ``on_step`` sees every ``Step``.  ``search_budget``: steps of search that one proposal may take; whatever it is, the
    result is in the language.  ``criterion`` "exact" gives that; the others are baselines (``criteria``).  ``limits``: what the first
    filling may take (``Canvas``); the grammar has limits of its own.

    Raises, before the first model call: ``UnsatisfiableError`` when nothing of the language fits, ``CanvasError`` for
    a malformed canvas or model, ``LimitError`` when this takes more than the limits.  Later: ``CanvasError`` for logits of a wrong shape,
    ``ModelError`` for logits with NaN or plus infinity, or without a finite one at some slot; ``UnsatisfiableError`` when no filling has the
    anchors, ``LimitError`` when a search does not tell.
    """
    tokens: list[int] = []
    for step in infill_steps(
        model,
        grammar,
        canvas,
        schedule=schedule,
        criterion=criterion,
        search_budget=search_budget,
        seed=seed,
        anchors=anchors,
        limits=limits,
    ):
        tokens = step.tokens
        if on_step is not None and step.number:
            on_step(step)
    return [token for token in tokens if token != EMPTY]


def infill_steps(
    model: MaskedDiffusionModel,
    grammar: CompiledGrammar,
    canvas: Sequence[Any],
    *,
    schedule: Schedule | None = None,
    criterion: str = "exact",
    search_budget: float = SEARCH_BUDGET,
    seed: int | None = None,
    anchors: Sequence[str] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Step]:
    """The same step by step; step 0 comes before the first model call."""
    if criterion not in CRITERIA:
        raise CanvasError(f"criterion: expected one of {', '.join(CRITERIA)}, got {criterion!r}")
    check_grammar(grammar)
    schedule, rng = checked_schedule(schedule), generator(seed, CanvasError)
    started = time.perf_counter()
    filled: Canvas | LooseCanvas
    if criterion == "exact":
        filled = open_canvas(model, grammar, canvas, search_budget, limits)
    else:
        filled = LooseCanvas(grammar, _slots(model, grammar, canvas), _ends(model), criterion)
    impossible = impossible_ids(model, grammar.vocabulary)
    run = _Run(model, filled, schedule, rng, filled.open, impossible)
    encode, segment = _encode(model), grammar._core.engine.segment
    phrases = checked_anchors(
        anchors,
        lambda text: list(encode(text)) if encode else segment(text.encode(), False),
        grammar.vocabulary,
    )
    if phrases and (model.kind == "uniform" or not isinstance(filled, Canvas)):
        raise CanvasError("anchors need a model with a mask, and the exact criterion")
    if isinstance(filled, Canvas):
        phrases = {phrase: phrases[phrase] for phrase in unwritten(phrases, filled)}
    if phrases and not run.generated:
        raise UnsatisfiableError(
            f"anchors: no slot is open, and the fixed text has no {next(iter(phrases))!r}: leave slots for it, or leave it out"
        )
    _check_schedule(run, phrases)
    first = Step(0, filled.tokens, [], constraint_seconds=time.perf_counter() - started)
    return _steps(run, first, phrases)


def open_canvas(
    model: MaskedDiffusionModel,
    grammar: CompiledGrammar,
    canvas: Sequence[Any],
    search_budget: float,
    limits: Limits = DEFAULT_LIMITS,
) -> Canvas:
    """A canvas for a model; raises as ``infill`` does before the first model call."""
    slots = _slots(model, grammar, canvas)
    return Canvas(
        grammar,
        slots,
        eos_ids=model.eos_ids,
        forbidden_ids=_forbidden(model),
        search_budget=search_budget,
        limits=limits,
    )


def _slots(model: MaskedDiffusionModel, grammar: CompiledGrammar, canvas: Sequence[Any]) -> Slots:
    checked_model(model, grammar.vocabulary.vocab_size)
    return read_canvas(
        canvas,
        grammar.vocabulary,
        model.mask_id,
        _ends(model),
        _encode(model),
        grammar._core.engine.segment,
    )


def _encode(model: MaskedDiffusionModel) -> Callable[[str], list[int]] | None:
    """The model's own way to spell a text, if it has one."""
    return model.encode if type(model).encode is not MaskedDiffusionModel.encode else None


def _forbidden(model: MaskedDiffusionModel) -> list[int]:
    """Ids that open slots never get."""
    return [*model.forbidden_ids, *([] if model.mask_id is None else [model.mask_id])]


def _ends(model: MaskedDiffusionModel) -> list[int]:
    return [end for end in model.eos_ids if end not in model.forbidden_ids]


def impossible_ids(model: MaskedDiffusionModel, vocabulary: Vocabulary) -> npt.NDArray[np.bool_]:
    """Ids that are neither text nor an end, or that the model must not put down (bool [vocabulary size])."""
    impossible = np.array([not data for data in vocabulary.tokens])
    impossible[list(model.eos_ids)] = False
    impossible[_forbidden(model)] = True
    return impossible


def _check_schedule(run: _Run, anchors: Anchors) -> None:
    """Say what of the schedule means nothing here, and share the steps; phrases take the first one."""
    schedule = run.schedule
    if run.model.kind == "uniform":
        # It is greedy, which may be said.
        meant = vars(replace(schedule, temperature=schedule.temperature or None))
        for name, value in vars(Schedule(steps=schedule.steps)).items():
            if meant[name] != value:
                raise CanvasError(
                    f"{name}: a model of kind uniform predicts all slots anew in every step, the likeliest token of each"
                )
    elif run.generated:
        if anchors and schedule.steps is not None:
            if schedule.steps == 1:
                raise CanvasError("steps=1: anchors take a step of their own; at least steps=2 would do")
            run.schedule = replace(schedule, steps=schedule.steps - 1)
        run.blocks = run.schedule.blocks(len(run.canvas), run.generated)
    if schedule.ahead > 1 and not isinstance(run.canvas, Canvas):
        raise CanvasError("ahead: only with the criterion exact")


def _steps(run: _Run, first: Step, anchors: Anchors) -> Iterator[Step]:
    yield first
    if not run.generated:
        return
    if anchors:
        yield _anchored(run, anchors)
        run.blocks = run.schedule.blocks(len(run.canvas), run.canvas.open)
    yield from _uniform(run) if run.model.kind == "uniform" else _absorbing(run, int(bool(anchors)))


def _anchored(run: _Run, anchors: Anchors) -> Step:
    """The first model call where phrases come first."""
    canvas, model = run.canvas, run.model
    assert isinstance(canvas, Canvas)
    logits, rows, seconds = canvas_logits(model, canvas)
    started = time.perf_counter()
    opened = {i: rows[i] for i in canvas.open}
    log_probs = np.log(np.maximum(probabilities(logits).astype(np.float64), 1e-300))
    taken = place_anchors(canvas, anchors, log_probs, opened)
    # No later step takes them back or edits them.
    run.generated = [i for i in run.generated if i not in taken]
    return Step(1, canvas.tokens, taken, len(taken), 0, 1, seconds, time.perf_counter() - started)


# --- models with a mask


def _absorbing(run: _Run, number: int) -> Iterator[Step]:
    """The steps behind so many."""
    ahead = _LookAhead(run)
    while run.turn() is not None:
        number += 1
        started = time.perf_counter()
        logits, rows, calls, seconds = ahead.logits()
        step = _run_step(run, logits, rows)
        step.number, step.calls, step.model_seconds = number, calls, seconds
        step.constraint_seconds = time.perf_counter() - started - seconds
        yield step


class _LookAhead:
    """Logits of a run's canvas, from a call that was made for an earlier one where that saw it coming.

    Lossless self-speculation (SSD, Gao et al. 2025, arXiv 2510.04147): with the last logits in place of those to come,
    and the random numbers that will come, the loop is run ahead on a fork; the model is asked about the canvas at hand and
    those ``schedule.ahead - 1`` in one call.  The loop itself then goes as it always goes, and looks up what was guessed right.
    """

    def __init__(self, run: _Run) -> None:
        self._run = run
        self._known: dict[tuple[int, ...], npt.NDArray[np.float32]] = {}
        self._last: dict[int, npt.NDArray[np.float32]] = {}
        """The latest row of each slot."""

    def logits(self) -> tuple[npt.NDArray[np.float32], dict[int, int], int, float]:
        """Logits [shown slots, V], the row of each slot, calls made, and the seconds they took."""
        run = self._run
        ids, rows = _shown(run.model, run.canvas)
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
            rows = _shown(fork.model, fork.canvas)[1]
            if fork.turn() is None or not rows.keys() <= self._last.keys():
                break
            _run_step(fork, np.stack([self._last[slot] for slot in rows]), rows)
            if fork.turn() is not None:
                guesses.append(_shown(fork.model, fork.canvas)[0])
        return guesses


def _run_step(run: _Run, logits: npt.NDArray[np.float32], rows: dict[int, int]) -> Step:
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
    run: _Run, logits: npt.NDArray[np.float32], rows: dict[int, int], here: list[int], count: int
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
            _settle(run, position, view[row_of[position]])
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
    ids, rows = _shown(model, canvas)
    started = time.perf_counter()
    logits = checked_logits(model, ids, canvas.vocabulary.vocab_size)
    return logits, rows, time.perf_counter() - started


def _shown(model: MaskedDiffusionModel, canvas: Canvas | LooseCanvas) -> tuple[list[int], dict[int, int]]:
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


def _settle(run: _Run, position: int, row: npt.NDArray[np.float32]) -> None:
    """Fill a slot whose best token was refused: the next best ones, then what the witness has."""
    canvas = run.canvas
    tries = _OTHER_TRIES
    for token in _best(row, _LOOKED_AT):
        if canvas.may_follow(position, token):
            if tries == 0 or canvas.try_commit(position, token):
                break
            tries -= 1
    if canvas.tokens[position] == OPEN:
        canvas.fill(position)


def _best(row: npt.NDArray[np.float32], count: int) -> list[int]:
    """The possible tokens of largest logits, best first."""
    top = np.argpartition(-row, min(count, len(row) - 1))[:count]
    top = top[np.lexsort((top, -row[top]))]
    return [int(token) for token in top if row[token] > -np.inf]


def _remask(run: _Run, block: range) -> None:
    """Open the slots of lowest probability again."""
    tokens = run.canvas.tokens
    held = [i for i in run.generated if i in block and tokens[i] >= 0 and i in run.probability]
    held.sort(key=lambda i: run.probability[i])
    for position in held[: run.schedule.remask]:
        if len(run.canvas.open) < len(run.generated) - 1:
            run.canvas.uncommit([position])
            del run.probability[position]


def _edit(run: _Run, logits: npt.NDArray[np.float32], rows: dict[int, int]) -> None:
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


# --- models without a mask


def _uniform(run: _Run) -> Iterator[Step]:
    """Every step predicts all slots anew from the canvas of the step before; the first one is noise."""
    canvas = run.canvas
    candidates = np.flatnonzero(~run.impossible)
    noise = {i: int(run.rng.choice(candidates)) for i in run.generated}
    shown = [noise.get(i, token) for i, token in enumerate(canvas.tokens)]
    for number in range(1, (run.schedule.steps or UNIFORM_STEPS) + 1):
        started = time.perf_counter()
        logits = checked_logits(run.model, [t for t in shown if t != EMPTY], canvas.vocabulary.vocab_size)
        seconds = time.perf_counter() - started
        rows = {i: row for row, i in enumerate(i for i, t in enumerate(shown) if t != EMPTY)}
        started = time.perf_counter()
        fill_from(canvas, logits, rows, run.generated, run.impossible)
        shown = canvas.tokens
        yield Step(
            number,
            shown,
            list(run.generated),
            len(run.generated),
            0,
            1,
            seconds,
            time.perf_counter() - started,
        )


def fill_from(
    canvas: Canvas | LooseCanvas,
    logits: npt.NDArray[np.float32],
    rows: dict[int, int],
    positions: Sequence[int],
    impossible: npt.NDArray[np.bool_],
) -> None:
    """Fill ``positions`` anew, the surest first, with the likeliest tokens that fit together; then whatever else is open.

    A position without a row is one that was left out, and is again where that fits.
    """
    canvas.uncommit(i for i in positions if canvas.tokens[i] != OPEN)
    opened = [i for i in positions if i in rows]
    view = logits[[rows[i] for i in opened]]
    view[:, impossible] = -np.inf
    probs = probabilities(view)
    best = probs.argmax(axis=-1)
    guess = [
        EMPTY if token == OPEN and canvas.is_optional(i) else token for i, token in enumerate(canvas.tokens)
    ]
    for k, i in enumerate(opened):
        guess[i] = int(best[k])
    canvas.suggest(guess)
    ranked = np.argsort(-probs[np.arange(len(opened)), best], kind="stable").tolist()
    canvas.commit_many([(opened[k], as_proposal(canvas, opened[k], int(best[k]))) for k in ranked])
    for k in ranked:
        if canvas.tokens[opened[k]] == OPEN:
            best_other = (t for t in _best(view[k], _LOOKED_AT) if canvas.may_follow(opened[k], t))
            if not any(canvas.try_commit(opened[k], t) for t in itertools.islice(best_other, _OTHER_TRIES)):
                canvas.fill(opened[k])
    for i in canvas.open:
        canvas.fill(i)
