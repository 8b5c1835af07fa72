"""Weighted samples of a constrained canvas: sequential Monte Carlo over the steps of a masked-diffusion model.

Filling slot after slot with the best token that fits samples from the wrong distribution: it never pays for
having walked into a corner.  Here every particle is a canvas with a weight.  A slot's token is drawn by adaptive
weighted rejection (``sampling.adaptive``) from the model's probabilities restricted to what fits the canvas, the
factor of the weight estimates the mass of what fits, and canvases with little weight give way to copies of the others
(Del Moral, Doucet and Jasra 2006).  So

    E[weight · f(canvas)] = sum over trajectories of q(trajectory) · 1[in the language] · reward · f(canvas)

where q is the unconstrained loop of the same schedule: it fills slots in the order of the schedule, each from the
softmax of the logits of its step.  An end token fills what is open behind it at no cost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maskwright.base.arguments import generator
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.canvas import SEARCH_BUDGET, Canvas
from maskwright.diffusion.decode import impossible_ids, open_canvas
from maskwright.diffusion.model import MaskedDiffusionModel, checked_model
from maskwright.diffusion.schedule import Schedule, checked_schedule, log_probabilities, scores
from maskwright.diffusion.sets import check_grammar
from maskwright.diffusion.slots import OPEN
from maskwright.diffusion.steps import as_proposal, canvas_logits
from maskwright.errors import CanvasError
from maskwright.sampling.adaptive import awrs
from maskwright.sampling.logspace import (
    MINUS_INFINITY,
    Floats,
    Integers,
    effective_sample_size,
    log_mean_exp,
    normalized,
)
from maskwright.sampling.population import Counts
from maskwright.sampling.posterior import Posterior
from maskwright.sampling.resampling import check_particles, is_uneven, resample
from maskwright.sampling.target import Potential, log_potential


def infill_smc(
    model: MaskedDiffusionModel,
    grammar: CompiledGrammar,
    canvas: Sequence[Any],
    n_particles: int = 16,
    *,
    schedule: Schedule | None = None,
    reward: Potential | None = None,
    ess_threshold: float = 0.5,
    resampling: str = "systematic",
    search_budget: float = SEARCH_BUDGET,
    seed: int | np.random.Generator | None = None,
) -> Posterior:
    """Properly weighted fillings of a canvas (see the module); ``canvas`` as for ``infill``.

    ``schedule``: its steps, blocks, scores and threshold, which choose slots by what the canvas holds; its
    temperature divides the logits.  ``reward(ids)``: finite and not negative, of the text without end
    tokens.  Particles are resampled when their effective number falls below ``ess_threshold · n_particles``.

    The result's ``sequences`` are texts without end tokens, and ``exp(log_evidence)`` estimates without bias how much
    of the model's own samples the language (times the reward) has.  Equal canvases share a model call.  Equal seeds give equal results.

    Raises ``UnsatisfiableError`` before the first model call when nothing fits; ``CanvasError`` for a malformed canvas or
    model, a schedule that opens slots again or is greedy, models that are not of kind ``"absorbing"``, and later when
    ``search_budget`` does not decide on a token, since weights would be wrong; ``ModelError`` for logits as in ``infill``;
    ``ConstraintError`` for bad rewards, ``MaskwrightError`` for bad options.
    """
    check_grammar(grammar)
    checked_model(model, grammar.vocabulary.vocab_size)
    schedule, rng = checked_schedule(schedule), generator(seed, CanvasError)
    if model.kind != "absorbing" or schedule.remask:
        raise CanvasError("weights need a model of kind absorbing, and a schedule without remask")
    if schedule.score == "middle":
        raise CanvasError('score="middle" is a schedule of infill: particles need another score')
    if schedule.ahead > 1:
        raise CanvasError("ahead: particles share calls already where their canvases are equal")
    if schedule.verify:
        raise CanvasError("verify: particles are drawn from the model itself; smc draws from a causal one")
    if schedule.temperature == 0:
        raise CanvasError("particles are drawn: the temperature of their schedule is above 0")
    check_particles(n_particles, ess_threshold, resampling)
    first = open_canvas(model, grammar, canvas, search_budget)
    run = _Run(model, schedule, impossible_ids(model, grammar.vocabulary), rng)
    run.canvases = [first] * n_particles
    run.log_weights = np.zeros(n_particles)
    run.fill(first.open, ess_threshold, resampling)
    texts = [_text(each, model.eos_ids) for each in run.canvases]
    run.log_weights = run.log_weights + _log_rewards(reward, texts, run.log_weights)
    return Posterior(
        texts,
        run.log_weights,
        np.isfinite(run.log_weights),
        ess_history=run.ess_history,
        genealogy=run.genealogy,
        counts=run.counts,
    )


@dataclass
class _Run:
    model: MaskedDiffusionModel
    schedule: Schedule
    impossible: Any
    rng: np.random.Generator
    canvases: list[Canvas] = field(default_factory=list)
    """By particle; equal ones may be one object, which is never changed."""
    log_weights: Floats = field(default_factory=lambda: np.zeros(0))
    ess_history: list[Any] = field(default_factory=list)
    genealogy: list[Integers] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)

    def fill(self, generated: list[int], ess_threshold: float, scheme: str) -> None:
        """Blocks of slots from left to right, each in steps."""
        for block, counts in self.schedule.blocks(len(self.canvases[0]), generated):
            done = 0
            while self._step(block, counts[done] if done < len(counts) else None):
                done += 1
                self._resample(ess_threshold, scheme)

    def _step(self, block: range, count: int | None) -> bool:
        """Fill ``count`` slots (None: all) of the block in every particle; False when nothing is open there."""
        rows: dict[tuple[int, ...], list[int]] = {}
        for i, canvas in enumerate(self.canvases):
            if self.log_weights[i] > MINUS_INFINITY and any(p in block for p in canvas.open):
                rows.setdefault(tuple(canvas.tokens), []).append(i)
        for particles in rows.values():
            self._step_row(particles, block, count)
        return bool(rows)

    def _step_row(self, particles: list[int], block: range, count: int | None) -> None:
        """The same for particles with equal canvases."""
        canvas = self.canvases[particles[0]]
        logits, row_of, _ = canvas_logits(self.model, canvas)
        self.counts.model_calls += 1
        self.counts.model_rows += 1
        opened = [p for p in canvas.open if p in block]
        view = logits[[row_of[p] for p in opened]].astype(np.float64)
        view[:, self.impossible] = MINUS_INFINITY
        log_probs = log_probabilities(view, self.schedule.temperature or 1.0)
        probs = np.exp(log_probs).astype(np.float32)
        chosen = [int(token) for token in view.argmax(axis=-1)]
        if self.schedule.threshold is not None:
            count = max(count or 0, int((probs.max(axis=-1) >= self.schedule.threshold).sum()))
        # Here the model gives everything to tokens that no text has: its own samples are none of the language.
        log_probs[np.isneginf(view).all(axis=-1)] = MINUS_INFINITY
        # What was tried in the first slot, by position, holds for all of them.
        tried: dict[int, dict[int, Canvas | None]] = {}
        for particle in particles:
            order = np.argsort(-scores(probs, chosen, self.schedule.score, self.rng), kind="stable")
            for place, k in enumerate(order[:count].tolist()):
                known = tried.setdefault(opened[k], {}) if place == 0 else {}
                self._draw(particle, opened[k], log_probs[k], known)

    def _draw(self, particle: int, position: int, log_probs: Floats, known: dict[int, Canvas | None]) -> None:
        """Fill one slot; ``known``: what became of tokens that were tried there before."""
        canvas = self.canvases[particle]
        if self.log_weights[particle] == MINUS_INFINITY or canvas.tokens[position] != OPEN:
            # It died in this step, or an end token has filled the slot.
            return
        if log_probs.max() == MINUS_INFINITY:
            self.log_weights[particle] = MINUS_INFINITY
            return
        asked = 0

        def accept(token: int) -> bool:
            nonlocal asked
            if token not in known:
                asked += 1
                known[token] = _with_token(canvas, position, as_proposal(canvas, position, token))
            return known[token] is not None

        draw = awrs(log_probs, accept, self.rng)
        self.counts.constraint_calls += asked
        self.counts.checked_draws += 1
        self.log_weights[particle] += draw.log_weight
        filled = known[draw.token]
        if filled is None:
            self.log_weights[particle] = MINUS_INFINITY
        else:
            self.canvases[particle] = filled

    def _resample(self, ess_threshold: float, scheme: str) -> None:
        size, mean = effective_sample_size(self.log_weights), log_mean_exp(self.log_weights)
        self.ess_history.append(float(size))
        ancestors = np.arange(len(self.canvases))
        if is_uneven(size, mean, ess_threshold, len(self.canvases)):
            ancestors = resample(normalized(self.log_weights), scheme, self.rng)
            self.canvases = [self.canvases[i] for i in ancestors.tolist()]
            self.log_weights = np.full(len(self.canvases), mean)
        self.genealogy.append(ancestors)


def _with_token(canvas: Canvas, position: int, token: int) -> Canvas | None:
    """A copy with one more token, or None when it does not fit."""
    if not canvas.may_follow(position, token):
        return None
    filled = canvas.fork()
    if filled.try_commit(position, token):
        return filled
    if filled.undecided > canvas.undecided:
        raise CanvasError(
            f"whether token {token} fits slot {position} is not known within search_budget={canvas.search_budget:g}, "
            "and weights would be wrong: raise it"
        )
    return None


def _text(canvas: Canvas, eos_ids: Sequence[int]) -> list[int]:
    return [token for token in canvas.tokens if token >= 0 and token not in eos_ids]


def _log_rewards(reward: Potential | None, texts: list[list[int]], log_weights: Floats) -> Floats:
    found = np.zeros(len(texts))
    known: dict[tuple[int, ...], float] = {}
    for i, ids in enumerate(texts):
        if reward is not None and log_weights[i] > MINUS_INFINITY:
            if tuple(ids) not in known:
                known[tuple(ids)] = log_potential(reward(list(ids)), "reward", ids)
            found[i] = known[tuple(ids)]
    return found
