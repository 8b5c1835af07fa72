"""Weighted particles and the step that extends each of them by one token."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from maskwright.sampling.adaptive import awrs_table
from maskwright.sampling.constraints import END, Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Booleans, Floats, Integers
from maskwright.sampling.models import STAY, LanguageModel
from maskwright.sampling.rows import Prefix, Rows, Scores, in_time, rows_behind, score
from maskwright.sampling.target import Target
from maskwright.sampling.verdicts import checked

LIVE, FINISHED, DEAD = 0, 1, 2


@dataclass
class Counts:
    """What a run cost."""

    model_rows: int = 0
    """Distinct prefixes that the model evaluated."""
    model_calls: int = 0
    """Forward passes."""
    constraint_calls: int = 0
    """Single tokens that were checked."""
    checked_draws: int = 0
    """Tokens that were drawn with such checks."""


@dataclass(frozen=True)
class Problem:
    """Everything that does not change during a run."""

    model: LanguageModel
    constraint: Constraint
    target: Target
    rng: np.random.Generator
    awrs_options: dict[str, Any] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)

    def rows(self, texts: list[list[int]]) -> Rows:
        self.counts.model_calls += 1
        self.counts.model_rows += len(texts)
        return rows_behind(self.model, self.constraint, texts)


class Population:
    """P particles.  ``log_weights`` [P] are those of properly weighted samples of the intermediate target."""

    def __init__(self, problem: Problem, rows: Rows, row_of: Integers) -> None:
        self.problem = problem
        self.rows = rows
        self.row_of = row_of
        self.status = np.full(len(row_of), LIVE)
        self.log_weights = np.zeros(len(row_of))
        self.ended: list[Prefix | None] = [None] * len(row_of)
        self.end_logprobs = np.full(len(row_of), np.nan)
        """log p(EOS) behind finished texts, [P]; NaN for the others."""
        self._scores: Scores | None = None

    def __len__(self) -> int:
        return len(self.row_of)

    @property
    def is_live(self) -> Booleans:
        live: Booleans = self.status == LIVE
        return live

    def prefix(self, particle: int) -> Prefix:
        """The text of a particle, finished or not."""
        ended = self.ended[particle]
        return ended if ended is not None else self.rows.prefixes[self.row_of[particle]]

    def scores(self) -> Scores:
        """The next token's distributions behind the rows."""
        if self._scores is None:
            counts, target = self.problem.counts, self.problem.target
            if self.rows.tokens is not None:
                counts.model_calls += 1
                counts.model_rows += int((self.rows.tokens != STAY).sum())
            lengths = self.rows.lengths
            self._scores = score(
                self.rows,
                self.problem.constraint,
                self.problem.model.eos_ids,
                target.powers(lengths),
                target.room(lengths),
            )
        return self._scores

    def step(self, moving: Booleans | None = None) -> Floats:
        """Extend live particles (those ``moving``) by one token; the change of all log-weights [P].

        The weight of token v behind x is, with the proposal proportional to p(v|x)^a c(v) and a_ the exponent
        before,  (mass of the proposal) · p(x)^(a - a_) · twist(xv) / twist(x);  at EOS the twist of xv is the
        reward, and a ramp that has not ended is completed by p(x v)^(power - a).
        """
        live = np.flatnonzero(self.is_live if moving is None else moving)
        rows, scores = self.row_of[live], self.scores()
        tokens, change = self._draw(live, rows, scores)
        target, lengths = self.problem.target, self.rows.lengths
        change = change - self.rows.log_twists[rows]
        if target.ramp:
            before = target.powers(lengths) - target.powers_before(lengths)
            change = change + (before * self.rows.cumulative)[rows]
        dead = ~np.isfinite(change) | (tokens < 0)
        change[dead] = MINUS_INFINITY
        self._bury(live[dead])
        end = self.problem.model.eos_ids[0]
        ending = ~dead & (tokens == end)
        change[ending] += self._finish(live[ending], rows[ending], scores.logprobs[:, end])
        going = ~dead & ~ending
        change[going] += self._move(live[going], rows[going], tokens[going], scores)
        self._bury(live[change == MINUS_INFINITY])
        self._forget_unused()
        full = np.zeros(len(self))
        full[live] = change
        self.log_weights = self.log_weights + full
        return full

    def _draw(self, live: Integers, rows: Integers, scores: Scores) -> tuple[Integers, Floats]:
        constraint, rng = self.problem.constraint, self.problem.rng
        if constraint.exact and not constraint.measured:
            return scores.sample(rows, rng), scores.log_mass[rows]
        known: dict[tuple[int, int], bool] = {}
        end = self.problem.model.eos_ids[0]
        room = self.problem.target.room(self.rows.lengths)

        def accept(at: Integers, tokens: Integers) -> Booleans:
            pairs = list(zip(at.tolist(), tokens.tolist(), strict=True))
            new = list(dict.fromkeys(pair for pair in pairs if pair not in known))
            if new:
                known.update(zip(new, self._check(new, room, end), strict=True))
            return np.array([known[pair] for pair in pairs], dtype=bool)

        draws = awrs_table(
            scores.table,
            scores.places[rows],
            lambda at, drawn: accept(rows[at], drawn),
            rng,
            **self.problem.awrs_options,
        )
        if not constraint.exact:
            self.problem.counts.constraint_calls += len(known)
            self.problem.counts.checked_draws += len(live)
        return draws.tokens, draws.log_weights

    def _check(self, pairs: list[tuple[int, int]], room: Integers, end: int) -> list[bool]:
        # Whether tokens behind rows are good, and what is needed behind them fits.
        constraint, states = self.problem.constraint, self.rows.states
        tokens = [END if token == end else token for _, token in pairs]
        good: list[bool] = checked(constraint, [states[row] for row, _ in pairs], tokens).tolist()
        if constraint.measured:
            for i, (row, token) in enumerate(pairs):
                good[i] = good[i] and (token == end or in_time(constraint, states[row], token, room[row]))
        return good

    def _finish(self, particles: Integers, rows: Integers, end_scores: Floats) -> Floats:
        target = self.problem.target
        rewards = {}
        for row in dict.fromkeys(rows.tolist()):
            reward = target.log_reward(self.rows.prefixes[row].ids())
            if target.ramp and reward > MINUS_INFINITY:
                rest = target.power - target.powers(self.rows.lengths[row : row + 1])[0]
                reward += rest * (self.rows.cumulative[row] + end_scores[row])
            rewards[row] = reward
        for particle, row in zip(particles.tolist(), rows.tolist(), strict=True):
            self.ended[particle] = self.rows.prefixes[row]
        self.status[particles] = FINISHED
        self.end_logprobs[particles] = end_scores[rows]
        return np.array([rewards[row] for row in rows.tolist()])

    def _move(self, particles: Integers, rows: Integers, tokens: Integers, scores: Scores) -> Floats:
        # Others that are alive stay where they are; they need rows as well.
        waiting = np.setdiff1d(np.flatnonzero(self.is_live), particles)
        all_rows = np.concatenate([rows, self.row_of[waiting]])
        all_tokens = np.concatenate([tokens, np.full(len(waiting), STAY)])
        width = scores.logprobs.shape[1] + 1
        keys, back = np.unique(all_rows * width + all_tokens + 1, return_inverse=True)
        parents, chosen = keys // width, keys % width - 1
        children = self.rows.children(parents, chosen, self.problem.constraint)
        moved = np.flatnonzero(chosen != STAY)
        target = self.problem.target
        children.log_twists = children.log_twists.copy()
        if target.twist is None:
            children.log_twists[moved] = 0.0
        else:
            children.log_twists[moved] = [target.log_twist(children.prefixes[i].ids()) for i in moved]
        self.rows, self._scores = children, None
        self.row_of = np.zeros(len(self), dtype=np.int64)
        self.row_of[particles] = back[: len(particles)]
        self.row_of[waiting] = back[len(particles) :]
        return children.log_twists[back[: len(particles)]]

    def gather(self, ancestors: Integers) -> None:
        """Particle i becomes a copy of particle ``ancestors[i]``, weight included."""
        self.row_of = self.row_of[ancestors]
        self.status = self.status[ancestors]
        self.log_weights = self.log_weights[ancestors]
        self.ended = [self.ended[i] for i in ancestors]
        self.end_logprobs = self.end_logprobs[ancestors]
        self._forget_unused()

    def retwist(self, log_twists: Floats) -> Floats:
        """Replace the rows' twists [R]; the change of all log-weights [P]."""
        change = np.zeros(len(self))
        live = self.is_live
        difference = log_twists - self.rows.log_twists
        change[live] = difference[self.row_of[live]]
        self.rows.log_twists = log_twists
        self._bury(np.flatnonzero(change == MINUS_INFINITY))
        self.log_weights = self.log_weights + change
        return change

    def rewrite(self, texts: dict[int, list[int]], log_twists: dict[int, float], scores: Floats) -> None:
        """Give the live particles other texts of equal length; ``scores`` [P] are their log-probabilities.

        The model reads them anew.
        """
        keys = {i: (tuple(ids), float(log_twists[i])) for i, ids in texts.items()}
        distinct = {key: index for index, key in enumerate(dict.fromkeys(keys.values()))}
        self.row_of = np.zeros(len(self), dtype=np.int64)
        for particle, key in keys.items():
            self.row_of[particle] = distinct[key]
        self.rows = self.problem.rows([list(ids) for ids, _ in distinct])
        self.rows.log_twists = np.array([twist for _, twist in distinct])
        live = np.array(list(keys))
        self.rows.cumulative[self.row_of[live]] = scores[live]
        self._scores = None

    def kill_all(self) -> None:
        """No text is good."""
        self.log_weights[:] = MINUS_INFINITY
        self._bury(np.arange(len(self)))

    def _bury(self, particles: Integers) -> None:
        # What they wrote is kept; their rows may go.
        for particle in particles.tolist():
            if self.status[particle] != DEAD:
                self.ended[particle] = self.prefix(particle)
        self.status[particles] = DEAD

    def _forget_unused(self) -> None:
        live = self.is_live
        used, back = np.unique(self.row_of[live], return_inverse=True)
        if len(used) < len(self.rows):
            self.rows = self.rows.select(used)
            if self._scores is not None:
                self._scores = self._scores.select(used)
            self.row_of = np.zeros(len(self), dtype=np.int64)
            self.row_of[live] = back
