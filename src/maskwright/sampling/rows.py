"""Distinct prefixes: what particles with equal texts share.

A particle is a number, its *row*; a row is a prefix with everything known behind it: the model's
log-probabilities, the constraint's state, the twist.  Particles that agree share a row, so the model sees each
prefix once, resampling is a gather of numbers, and a prefix that no particle keeps is never evaluated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Booleans, Floats, Integers, log_sum_exp
from maskwright.sampling.models import STAY, LanguageModel, ModelState
from maskwright.sampling.order import Table


class Prefix:
    """A text as its last token and what came before it; ``ids()`` is without EOS."""

    __slots__ = ("before", "length", "token")

    def __init__(self, before: Prefix | None = None, token: int = STAY) -> None:
        self.before = before
        self.token = token
        self.length: int = before.length + 1 if before is not None else 0

    def ids(self) -> list[int]:
        found = []
        node: Prefix | None = self
        while node is not None and node.before is not None:
            found.append(node.token)
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
        """Rows behind ``tokens`` (or ``STAY``); their cumulative scores and twists are the parents' still."""
        self.evaluate()
        pairs = list(zip(parents.tolist(), tokens.tolist(), strict=True))
        prefixes = [self.prefixes[r] if t == STAY else Prefix(self.prefixes[r], t) for r, t in pairs]
        return Rows(
            prefixes,
            [self.states[r] if t == STAY else constraint.advance(self.states[r], t) for r, t in pairs],
            np.array([prefix.length for prefix in prefixes], dtype=np.int64),
            self.cumulative[parents],
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
    rows: Rows, constraint: Constraint, eos_ids: Sequence[int], powers: Floats, forced: Booleans
) -> Scores:
    """Distributions behind ``rows``: raised to ``powers`` [R], cut by the masks, to EOS where ``forced``.

    Raises ``ModelError`` for NaN among what the masks allow.
    """
    rows.evaluate()
    logprobs = rows.source.logprobs
    end, *others = eos_ids
    if others or len(logprobs) != len(rows) or (rows.parents != np.arange(len(rows))).any():
        logprobs = logprobs[rows.parents]
    logprobs = np.asarray(logprobs, dtype=np.float64)
    if others:
        logprobs[:, end] = log_sum_exp(logprobs[:, list(eos_ids)])
        logprobs[:, others] = MINUS_INFINITY
    masks = constraint.masks(rows.states)
    tempered = logprobs * powers[:, None] if (powers != 1.0).any() else logprobs
    if masks is not None:
        bits = np.unpackbits(masks.view(np.uint8), axis=1, count=logprobs.shape[1], bitorder="little")
        tempered = np.where(bits.view(bool), tempered, MINUS_INFINITY)
    if forced.any():
        tempered = tempered.copy()
        kept = tempered[forced, end]
        tempered[forced] = MINUS_INFINITY
        tempered[forced, end] = kept
    return Scores(logprobs, Table(tempered), np.arange(len(rows)))
