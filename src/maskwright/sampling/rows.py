"""Distinct prefixes: what particles with equal texts share.

A particle is a number, its *row*; a row is a prefix with everything known behind it: the model's
log-probabilities, the constraint's state, the twist.  Particles that agree share a row, so the model sees each
prefix once, resampling is a gather of numbers, and a prefix that no particle keeps is never evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maskwright.masks.bitmask import allowed_tokens
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers
from maskwright.sampling.models import STAY, LanguageModel, ModelState, one_end
from maskwright.sampling.order import Table
from maskwright.sampling.verdicts import masks_of


class Prefix:
    """A text as its last token and what came before it; ``ids()`` is without EOS."""

    __slots__ = ("before", "length", "logprob", "token")

    def __init__(self, before: Prefix | None = None, token: int = STAY, logprob: float = math.nan) -> None:
        self.before = before
        self.token = token
        self.logprob = logprob
        """log p(token | before); NaN for a prefix that was read anew."""
        self.length: int = before.length + 1 if before is not None else 0

    def ids(self) -> list[int]:
        return [node.token for node in self._path()]

    def logprobs(self) -> list[float]:
        return [node.logprob for node in self._path()]

    def _path(self) -> list[Prefix]:
        found = []
        node: Prefix | None = self
        while node is not None and node.before is not None:
            found.append(node)
            node = node.before
        return found[::-1]


EMPTY = Prefix()


@dataclass(eq=False)
class Rows:
    """R distinct prefixes.  The model is asked when ``logprobs`` is first needed, for the rows left by then."""

    prefixes: list[Prefix]
    states: list[Any]
    lengths: Integers
    cumulative: Floats
    """log p(prefix), [R]."""
    log_twists: Floats
    """The logarithm of the twist that is part of the particles' weights now, [R]."""
    source: ModelState
    parents: Integers
    tokens: Integers | None
    """What extends ``source``; None: these rows are its rows ``parents``."""

    def __len__(self) -> int:
        return len(self.prefixes)

    def select(self, kept: Integers) -> Rows:
        """These rows in this order; nothing is evaluated or copied."""
        return replace(
            self,
            prefixes=[self.prefixes[i] for i in kept],
            states=[self.states[i] for i in kept],
            lengths=self.lengths[kept],
            cumulative=self.cumulative[kept],
            log_twists=self.log_twists[kept],
            parents=self.parents[kept],
            tokens=None if self.tokens is None else self.tokens[kept],
        )

    def evaluate(self) -> None:
        """Ask the model."""
        if self.tokens is not None:
            self.source = self.source.extend(self.parents, self.tokens)
            self.parents, self.tokens = np.arange(len(self)), None

    def children(self, parents: Integers, tokens: Integers, constraint: Constraint) -> Rows:
        """Rows behind ``tokens`` (or ``STAY``; never EOS); their twists are the parents' still."""
        self.evaluate()
        logprobs = self.source.logprobs[self.parents[parents], tokens].astype(np.float64)
        logprobs[tokens == STAY] = 0.0
        triples = list(zip(parents.tolist(), tokens.tolist(), logprobs.tolist(), strict=True))
        prefixes = [self.prefixes[r] if t == STAY else Prefix(self.prefixes[r], t, p) for r, t, p in triples]
        return Rows(
            prefixes,
            [self.states[r] if t == STAY else constraint.advance(self.states[r], t) for r, t, _ in triples],
            np.array([prefix.length for prefix in prefixes], dtype=np.int64),
            self.cumulative[parents] + logprobs,
            self.log_twists[parents],
            self.source,
            self.parents[parents],
            tokens,
        )


def rows_behind(model: LanguageModel, constraint: Constraint, texts: Sequence[Sequence[int]]) -> Rows:
    """Rows behind texts of equal length that the constraint allows; twists are one, scores unknown."""
    prefixes, states = [], []
    for ids in texts:
        prefix, state = EMPTY, constraint.start()
        for token in ids:
            prefix, state = Prefix(prefix, token), constraint.advance(state, token)
        prefixes.append(prefix)
        states.append(state)
    count = len(prefixes)
    return Rows(
        prefixes,
        states,
        np.array([prefix.length for prefix in prefixes], dtype=np.int64),
        np.zeros(count),
        np.zeros(count),
        model.state(texts),
        np.arange(count),
        None,
    )


@dataclass
class Scores:
    """The next token's distribution behind R rows, EOS ids merged into the first one.

    ``logprobs`` [R, V]: log p(v).  ``table``: power · log p(v) where the masks allow v, else minus infinity; the row
    of the table that each row has is in ``places`` [R].
    """

    logprobs: Floats
    table: Table
    places: Integers

    @property
    def log_mass(self) -> Floats:
        """The logarithm of the tempered mass, [R]."""
        mass: Floats = self.table.log_mass[self.places]
        return mass

    def select(self, kept: Integers) -> Scores:
        """Those of some rows; the table is shared."""
        return Scores(self.logprobs[kept], self.table, self.places[kept])

    def sample(self, rows: Integers, rng: np.random.Generator) -> Integers:
        """One token for each of ``rows``; -1 where there is none."""
        tokens = np.full(len(rows), -1)
        some = np.flatnonzero(self.log_mass[rows] > MINUS_INFINITY)
        tokens[some] = self.table.sample(self.places[rows[some]], rng)
        return tokens


def score(
    rows: Rows, constraint: Constraint, eos_ids: Sequence[int], powers: Floats, room: Integers
) -> Scores:
    """Distributions behind ``rows``: raised to ``powers`` [R], cut by the masks, and by ``room`` [R], the number of
    tokens that fit before EOS: to EOS where there is none, to what goes the shortest way where no other one fits.

    Raises ``ModelError`` for NaN among what the masks allow.
    """
    rows.evaluate()
    logprobs = rows.source.logprobs
    if len(logprobs) != len(rows) or (rows.parents != np.arange(len(rows))).any():
        logprobs = logprobs[rows.parents]
    logprobs = one_end(logprobs, eos_ids)
    masks = masks_of(constraint, rows.states, logprobs.shape[1])
    tempered = logprobs * powers[:, None] if (powers != 1.0).any() else logprobs
    if masks is not None:
        tempered = np.where(allowed_tokens(masks, logprobs.shape[1]), tempered, MINUS_INFINITY)
    tight = _tight(rows, constraint, room)
    if tight:
        tempered = tempered.copy()
    for row in tight:
        going = np.flatnonzero(tempered[row] > MINUS_INFINITY)
        going = going[going != eos_ids[0]]
        if room[row] > 0:
            state = rows.states[row]
            late = [not in_time(constraint, state, token, room[row]) for token in going.tolist()]
            going = going[late]
        tempered[row, going] = MINUS_INFINITY
    return Scores(logprobs, Table(tempered), np.arange(len(rows)))


def in_time(constraint: Constraint, state: Any, token: int, room: int) -> bool:
    """Whether, behind a token (not EOS) that the masks allow, what is needed still fits; ``room`` counts the token."""
    return constraint.needed_behind(state, token) < room


def _tight(rows: Rows, constraint: Constraint, room: Integers) -> list[int]:
    # The rows in which only the shortest ways to an end fit.
    needed = [constraint.needed(state) for state in rows.states] if constraint.measured else 0
    found: list[int] = np.flatnonzero(room <= needed).tolist()
    return found
