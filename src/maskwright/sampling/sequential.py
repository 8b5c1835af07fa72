"""Sequential Monte Carlo over texts of a language model.

Token-by-token masking samples from the wrong distribution: it never pays for having walked into a
corner.  Here every particle carries the weight that pays for it, and particles with little weight give way to
copies of the others (Loula et al., "Syntactic and Semantic Control of Large Language Models via Sequential Monte
Carlo", ICLR 2025; Del Moral, Doucet and Jasra 2006 for the weights).

One round: every particle draws a token and a factor for its weight (``population.py``), then, when weights have
become uneven, each island is resampled and its weights become their mean.  Keeping the mean, and counting dead
particles, is what makes the evidence unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from maskwright.base.arguments import MOST_COUNTED, check_type, generator, whole
from maskwright.errors import LimitError, MaskwrightError
from maskwright.sampling.adaptive import check_options
from maskwright.sampling.constraints import Constraint, Everything
from maskwright.sampling.logspace import (
    Booleans,
    Integers,
    effective_sample_size,
    log_mean_exp,
    normalized,
)
from maskwright.sampling.lookahead import LookAhead
from maskwright.sampling.models import LanguageModel
from maskwright.sampling.population import FINISHED, Population, Problem
from maskwright.sampling.posterior import Posterior
from maskwright.sampling.rejuvenation import Paths, rejuvenate
from maskwright.sampling.resampling import check_particles, is_uneven, resample
from maskwright.sampling.target import Potential, Target

_AWRS_OPTIONS = {"max_accepts", "max_rejects", "method", "min_remaining", "probes"}
Block = str | int | Callable[[list[int]], bool]


def smc(
    model: LanguageModel,
    constraint: Constraint | None = None,
    n_particles: int = 16,
    ess_threshold: float = 0.5,
    reward: Potential | None = None,
    power: float = 1.0,
    resampling: str = "systematic",
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
    *,
    twist: Potential | None = None,
    ramp: int = 0,
    lookahead: int = 0,
    rollouts: int = 2,
    block: Block = "token",
    rejuvenation: int = 0,
    islands: int = 1,
    awrs_options: Mapping[str, Any] | None = None,
) -> Posterior:
    """Weighted samples of  target(y) ∝ p(y)^power · 1[constraint] · reward(y)  over texts within the budget.

    ``constraint``: exact ones take the exact step, others adaptive rejection behind their masks, and so do grammars, for
    tokens that would not leave room for an end; ``awrs_options`` are those of ``awrs``.  ``reward(ids)``: not negative, finite, of complete texts.
    ``power``: an exponent on the probability of the whole text, which is not a temperature of its tokens; tokens
    are proposed from p^power.  ``max_tokens`` counts EOS: at the last position only EOS remains, with the weight
    that it really has, so the target is p restricted to texts that end in time.  A grammar also knows the shortest completion
    (of fewest bytes) behind every prefix: a token behind which that does not fit is not taken, with the right weights, so no
    particle dies because the budget ran out.

    ``n_particles`` per island; ``islands`` independent runs share the model's batches.  Resampling takes place
    when the effective sample size falls below ``ess_threshold · n_particles`` (0: never, which is importance
    sampling), by ``"systematic"``, ``"stratified"``, ``"residual"`` or ``"multinomial"`` resampling, at the ends of
    blocks: ``"token"``, every n tokens, or where ``block(ids)`` is true (``SymbolEnds``: behind symbols of a
    grammar); finished texts wait.

    ``twist(ids)``: a positive guess at the expected reward behind a prefix (0 only where it is 0); it steers
    resampling and divides out.  ``lookahead``: with 1, twist by the mass that the masks leave to the next token;
    with k > 1, by ``rollouts`` runs of k tokens behind every prefix.  ``ramp``: let the exponent rise from 1 to
    ``power`` over so many tokens.  ``rejuvenation``: Metropolis-Hastings moves of each unfinished particle at the
    end of every block (not with a ``block`` function); each writes half a text anew on average.

    Equal seeds give equal results.  Raises ``LimitError`` when even the shortest text of a grammar exceeds ``max_tokens``, ``VocabularyError`` when constraint and model differ in ids,
    ``ModelError`` for scores that are no log-probabilities, ``ConstraintError`` for contradictory predicates,
    negative, infinite or NaN rewards, ``MaskwrightError`` for bad options.  When all particles die, the result says so
    (``Posterior.all_dead``).
    """
    constraint = constraint if constraint is not None else Everything()
    target = Target(reward, twist, power, ramp, max_tokens)
    _check_options(n_particles, islands, ess_threshold, resampling, lookahead, rollouts, rejuvenation)
    if rejuvenation and callable(block):
        raise MaskwrightError('rejuvenation needs particles in step: block="token" or a number of tokens')
    problem = make_problem(model, constraint, target, seed, awrs_options)
    run = _Run(problem, n_particles, islands, ess_threshold, resampling)
    run.look = LookAhead(lookahead, rollouts) if lookahead else None
    run.moves = rejuvenation
    return run.run(_block_length(block), block if callable(block) else None)


def make_problem(
    model: LanguageModel,
    constraint: Constraint,
    target: Target,
    seed: int | np.random.Generator | None,
    awrs_options: Mapping[str, Any] | None = None,
) -> Problem:
    """Check that everything fits together."""
    check_type(awrs_options, (Mapping, type(None)), "awrs_options", MaskwrightError)
    options = dict(awrs_options or {})
    unknown = set(options) - _AWRS_OPTIONS
    if unknown:
        raise MaskwrightError(f"awrs_options: expected {', '.join(sorted(_AWRS_OPTIONS))}, got {unknown}")
    check_options(**options)
    check_fit(model, constraint, target.max_tokens)
    check_length(constraint, target.max_tokens)
    return Problem(model, constraint, target, generator(seed), options)


def check_fit(model: Any, constraint: Any, max_tokens: int | None = None) -> None:
    """Raise unless these are a model and a constraint of the same ids, and the model has room for ``max_tokens`` (EOS included)."""
    if not isinstance(model, LanguageModel):
        raise MaskwrightError(
            f"a LanguageModel is needed (HuggingFaceModel, CallableModel), not {type(model).__name__}"
        )
    if not isinstance(constraint, Constraint):
        raise MaskwrightError(
            f"a Constraint is needed (GrammarConstraint, Predicate), not {type(constraint).__name__}"
        )
    constraint.bind(model.vocab_size, model.eos_ids)
    if max_tokens is not None and model.room is not None and max_tokens > model.room:
        raise MaskwrightError(
            f"max_tokens is {max_tokens}, but behind the prompt the model's context has room for {model.room}"
        )


def check_length(constraint: Constraint, max_tokens: int) -> None:
    """Raises ``LimitError`` where no text of the constraint is as short as ``max_tokens`` (EOS included)."""
    needed = constraint.needed(constraint.start()) + 1
    if needed > max_tokens:
        message = f"max_tokens is {max_tokens}, but the shortest text takes {needed} tokens, EOS included"
        raise LimitError("max_tokens", needed, max_tokens, message=message)


class _Run:
    look: LookAhead | None = None
    moves = 0

    def __init__(
        self, problem: Problem, n_particles: int, islands: int, ess_threshold: float, scheme: str
    ) -> None:
        self.problem = problem
        self.shape = (islands, n_particles)
        self.threshold = ess_threshold
        self.scheme = scheme
        self.ess_history: list[Any] = []
        self.genealogy: list[Integers] = []
        count = islands * n_particles
        self.paths = Paths(count)
        self.population = Population(problem, problem.rows([[]]), np.zeros(count, dtype=np.int64))
        if not problem.constraint.prefix([]):
            self.population.kill_all()

    def run(self, length: int, is_boundary: Callable[[list[int]], bool] | None) -> Posterior:
        """Blocks of ``length`` tokens, or up to where ``is_boundary`` is true."""
        population = self.population
        waiting = np.zeros(len(population), dtype=bool)
        steps = 0
        while population.is_live.any():
            moving = population.is_live & ~waiting
            change = population.step(moving)
            steps += 1
            if self.moves:
                self.paths.record(population, change)
            live = population.is_live
            if is_boundary is None:
                waiting[:] = steps % length == 0
            else:
                waiting = self._at_boundary(is_boundary, waiting, live & moving)
            if (waiting | ~live).all():
                self._synchronise()
                waiting = np.zeros(len(population), dtype=bool)
        return self._posterior()

    def _at_boundary(
        self, is_boundary: Callable[[list[int]], bool], waiting: Booleans, moved: Booleans
    ) -> Booleans:
        rows = self.population.row_of
        answers = {
            row: bool(is_boundary(self.population.rows.prefixes[row].ids()))
            for row in set(rows[moved].tolist())
        }
        waiting = waiting.copy()
        waiting[moved] = [answers[row] for row in rows[moved].tolist()]
        return waiting

    def _synchronise(self) -> None:
        population = self.population
        if self.look is not None and population.is_live.any():
            change = population.retwist(population.rows.log_twists + self.look(population))
            self.paths.total = self.paths.total + change
        log_weights = population.log_weights.reshape(self.shape)
        sizes, means = effective_sample_size(log_weights), log_mean_exp(log_weights)
        self.ess_history.append(float(sizes[0]) if len(sizes) == 1 else sizes)
        live = population.is_live.reshape(self.shape).any(axis=1)
        uneven = is_uneven(sizes, means, self.threshold, self.shape[1]) & live
        ancestors = np.arange(len(population)).reshape(self.shape)
        for island in np.flatnonzero(uneven):
            chosen = resample(normalized(log_weights[island]), self.scheme, self.problem.rng)
            ancestors[island] = ancestors[island, chosen]
        self.genealogy.append(ancestors.ravel())
        if uneven.any():
            population.gather(ancestors.ravel())
            population.log_weights = np.where(
                uneven[:, None], means[:, None], population.log_weights.reshape(self.shape)
            ).ravel()
            self.paths.gather(ancestors.ravel())
        for _ in range(self.moves):
            rejuvenate(population, self.paths, np.flatnonzero(population.is_live), self.look)

    def _posterior(self) -> Posterior:
        population = self.population
        texts = [population.prefix(i) for i in range(len(population))]
        ended = population.status == FINISHED
        ends = [
            [end] if done else [] for end, done in zip(population.end_logprobs.tolist(), ended, strict=True)
        ]
        return Posterior(
            [text.ids() for text in texts],
            population.log_weights,
            ended,
            self.shape[0],
            self.ess_history,
            self.genealogy,
            self.problem.counts,
            [text.logprobs() + end for text, end in zip(texts, ends, strict=True)],
        )


def _block_length(block: Block) -> int:
    if callable(block) or (isinstance(block, str) and block == "token"):
        return 1
    if isinstance(block, int) and not isinstance(block, bool) and block >= 1:
        return block
    raise MaskwrightError(f'block is "token", a number of tokens, or a function of ids, not {block!r}')


def _check_options(
    n_particles: int,
    islands: int,
    ess_threshold: float,
    scheme: str,
    lookahead: int,
    rollouts: int,
    rejuvenation: int,
) -> None:
    check_particles(n_particles, ess_threshold, scheme)
    whole(islands, "islands", low=1, high=MOST_COUNTED)
    whole(rollouts, "rollouts", low=1, high=MOST_COUNTED)
    whole(rejuvenation, "rejuvenation", low=0, high=MOST_COUNTED)
    # More than there are tokens is all of them.
    whole(lookahead, "lookahead", low=0)
    whole(int(islands) * int(n_particles), "islands of n_particles", high=MOST_COUNTED)
