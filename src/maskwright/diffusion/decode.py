"""The decoding loop: model calls, proposals, and a canvas that decides on them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.base.arguments import generator, one_of
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.anchors import Anchors, checked_anchors, place_anchors, unwritten
from maskwright.diffusion.canvas import SEARCH_BUDGET, Canvas
from maskwright.diffusion.criteria import CRITERIA, LooseCanvas
from maskwright.diffusion.model import MaskedDiffusionModel, checked_logits, checked_model
from maskwright.diffusion.schedule import (
    Schedule,
    check_only,
    checked_schedule,
    log_probabilities,
    probabilities,
)
from maskwright.diffusion.sets import check_grammar
from maskwright.diffusion.slots import EMPTY, OPEN, Slots, read_canvas
from maskwright.diffusion.speculation import LookAhead, verified_steps
from maskwright.diffusion.steps import (
    LOOKED_AT,
    OTHER_TRIES,
    Run,
    Step,
    as_proposal,
    best_ids,
    canvas_logits,
    run_step,
)
from maskwright.errors import CanvasError, UnsatisfiableError
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.vocabulary.vocabulary import Vocabulary

UNIFORM_STEPS = 8


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
    one_of(criterion, CRITERIA, "criterion", CanvasError)
    check_grammar(grammar)
    schedule, rng = checked_schedule(schedule), generator(seed, CanvasError)
    started = time.perf_counter()
    filled: Canvas | LooseCanvas
    if criterion == "exact":
        filled = open_canvas(model, grammar, canvas, search_budget, limits)
    else:
        filled = LooseCanvas(grammar, _slots(model, grammar, canvas), _ends(model), criterion)
    impossible = impossible_ids(model, grammar.vocabulary)
    run = Run(model, filled, schedule, rng, filled.open, impossible)
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


def _check_schedule(run: Run, anchors: Anchors) -> None:
    """Say what of the schedule means nothing here, and share the steps; phrases take the first one."""
    schedule = run.schedule
    if run.model.kind == "uniform":
        # It is greedy, which may be said.
        why = "a model of kind uniform predicts all slots anew in every step, the likeliest token of each"
        check_only(
            replace(schedule, temperature=schedule.temperature or None), Schedule(steps=schedule.steps), why
        )
    elif run.generated:
        if anchors and schedule.steps is not None:
            if schedule.steps == 1:
                raise CanvasError("steps=1: anchors take a step of their own; at least steps=2 would do")
            run.schedule = replace(schedule, steps=schedule.steps - 1)
        run.blocks = run.schedule.blocks(len(run.canvas), run.generated)
    if schedule.verify and not run.model.has_causal_logits:
        raise CanvasError(
            "verify: the model has no causal_logits, those of the causal mode of a block-diffusion model; HuggingFaceDiffusionModel takes causal=..."
        )
    if schedule.verify and (run.model.kind != "absorbing" or not isinstance(run.canvas, Canvas)):
        raise CanvasError("verify: only with the criterion exact, and a model of kind absorbing")
    if schedule.ahead > 1 and not isinstance(run.canvas, Canvas):
        raise CanvasError("ahead: only with the criterion exact")


def _steps(run: Run, first: Step, anchors: Anchors) -> Iterator[Step]:
    yield first
    if not run.generated:
        return
    if anchors:
        yield _anchored(run, anchors)
        run.blocks = run.schedule.blocks(len(run.canvas), run.canvas.open)
    yield from _uniform(run) if run.model.kind == "uniform" else _absorbing(run, int(bool(anchors)))


_LEAST = -690.0
"""Logarithm of the least probability at which places for phrases are told apart."""


def _anchored(run: Run, anchors: Anchors) -> Step:
    """The first model call where phrases come first."""
    canvas, model = run.canvas, run.model
    assert isinstance(canvas, Canvas)
    logits, rows, seconds = canvas_logits(model, canvas)
    started = time.perf_counter()
    opened = {i: rows[i] for i in canvas.open}
    log_probs = np.maximum(log_probabilities(logits.astype(np.float64), 1.0), _LEAST)
    taken = place_anchors(canvas, anchors, log_probs, opened)
    # No later step takes them back or edits them.
    run.generated = [i for i in run.generated if i not in taken]
    return Step(1, canvas.tokens, taken, len(taken), 0, 1, seconds, time.perf_counter() - started)


# --- models with a mask


def _absorbing(run: Run, number: int) -> Iterator[Step]:
    """The steps behind so many."""
    if run.schedule.verify:
        yield from verified_steps(run, number)
        return
    ahead = LookAhead(run)
    while run.turn() is not None:
        number += 1
        started = time.perf_counter()
        logits, rows, calls, seconds = ahead.logits()
        step = run_step(run, logits, rows)
        step.number, step.calls, step.model_seconds = number, calls, seconds
        step.constraint_seconds = time.perf_counter() - started - seconds
        yield step


# --- models without a mask


def _uniform(run: Run) -> Iterator[Step]:
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
            best_other = (t for t in best_ids(view[k], LOOKED_AT) if canvas.may_follow(opened[k], t))
            if not any(canvas.try_commit(opened[k], t) for t in itertools.islice(best_other, OTHER_TRIES)):
                canvas.fill(opened[k])
    for i in canvas.open:
        canvas.fill(i)
