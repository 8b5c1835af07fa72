"""Draws without replacement from large distributions, at the price of what is drawn.

A distribution over V tokens is kept as its logarithms and the masses, relative to the largest one, of blocks of about
the square root of V tokens (``Table``).  A draw chooses a block by its sum and a token in it by its
mass, both by inverting cumulative sums, and adds up the block anew without the token: O(sqrt V) (``Order``).  Several
orders share a row of a table, so equal particles exponentiate once.

Nothing is subtracted, so that what is left is exact however little that is.  Where it is less than double precision holds beside
the largest mass, and behind so many draws, an order takes all that is left at once: exponential races in logarithms
(Gumbel's trick: Efraimidis and Spirakis 2006; Vieira 2014), which have the same law.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from maskwright.errors import ModelError
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, log

_SORT_AFTER = 24
"""Draws of a row after which all that is left is ordered at once."""
_PORTION = 1 << 16
"""Masses that are computed at once: what fits into caches."""
_LEAST = 1e-250
"""What is left, relative to the largest mass, below which that happens as well."""


class Table:
    """R distributions over V tokens, not necessarily normalised."""

    def __init__(self, logs: Floats) -> None:
        """``logs`` [R, V]: minus infinity for tokens without mass.  Raises ``ModelError`` for NaN and plus infinity."""
        self.logs = logs
        tops = logs.max(axis=1)
        if np.isnan(tops).any() or (tops == np.inf).any():
            raise ModelError("the log-probabilities contain NaN or plus infinity")
        self.tops: Floats = np.where(np.isfinite(tops), tops, 0.0)
        count, size = logs.shape
        self.width = max(1, int(np.sqrt(size)))
        starts = np.arange(0, size, self.width)
        self.sums = np.empty((count, len(starts)))
        """Of the masses in blocks of ``width`` tokens, [R, blocks]."""
        self.counts = np.empty(count, dtype=np.int64)
        """How many tokens have mass, [R]."""
        portion = max(1, _PORTION // size)
        buffer = np.empty((min(portion, count), size))
        for first in range(0, count, portion):
            part = slice(first, first + portion)
            masses = buffer[: len(logs[part])]
            np.subtract(logs[part], self.tops[part, None], out=masses)
            np.exp(masses, out=masses)
            np.add.reduceat(masses, starts, axis=1, out=self.sums[part])
            self.counts[part] = np.count_nonzero(logs[part] > MINUS_INFINITY, axis=1)
        self.log_mass: Floats = log(self.sums.sum(axis=1)) + self.tops

    def block(self, rows: Integers, block: Integers) -> Floats:
        """The masses in one block of each of ``rows``, [n, width]."""
        tokens = (block * self.width)[:, None] + np.arange(self.width)
        size = self.logs.shape[1]
        logs = self.logs[rows[:, None], np.minimum(tokens, size - 1)]
        masses: Floats = np.exp(logs - self.tops[rows, None])
        masses[tokens >= size] = 0.0
        return masses

    def sample(self, rows: Integers, rng: np.random.Generator) -> Integers:
        """One token for each of ``rows``, all of which have mass."""
        return Order(self, rows, rng).draw(np.arange(len(rows)))


class _Sorted(NamedTuple):
    tokens: Integers
    """The last one to be drawn comes first."""
    log_masses: Floats
    """``log_masses[i]``: of ``tokens[: i + 1]``."""


class Order:
    """An order of draws for each of B rows of a table.

    ``left`` [B]: how many tokens with mass were not drawn.  ``without``: tokens [B, n] that are not drawn at all
    (-1: none); they must have mass.
    """

    def __init__(
        self, table: Table, rows: Integers, rng: np.random.Generator, without: Integers | None = None
    ) -> None:
        self._table = table
        self._rows = rows
        self._rng = rng
        self._sums = table.sums[rows]
        self._columns: list[Integers] = []
        """What was drawn or left out, [B] each: a token, or -1."""
        self._draws = np.zeros(len(rows), dtype=np.int64)
        self._sorted: dict[int, _Sorted] = {}
        self.left: Integers = table.counts[rows]
        for column in without.T if without is not None else ():
            at = np.flatnonzero(column >= 0)
            self.left[at] -= 1
            block, place = np.divmod(column[at], table.width)
            self._take(at, column[at], block, place, self._block(at, block))

    def draw(self, at: Integers) -> Integers:
        """The next token of each of ``at`` (positions in B), all of which have one left."""
        tokens = np.empty(len(at), dtype=np.int64)
        sums = np.cumsum(self._sums[at], axis=1)
        if (
            self._sorted
            or self._draws[at].max(initial=0) >= _SORT_AFTER
            or sums[:, -1].min(initial=1.0) < _LEAST
        ):
            late = (self._draws[at] >= _SORT_AFTER) | (sums[:, -1] < _LEAST)
            late |= np.isin(at, list(self._sorted))
            for i in np.flatnonzero(late).tolist():
                tokens[i] = self._draw_sorted(int(at[i]))
            early = np.flatnonzero(~late)
            tokens[early] = self._draw_early(at[early], sums[early])
        else:
            tokens = self._draw_early(at, sums)
        self._draws[at] += 1
        self.left[at] -= 1
        return tokens

    def log_rest(self, at: Integers) -> Floats:
        """Logarithm of the mass of all tokens of ``at`` that were not drawn."""
        found: Floats = log(self._sums[at].sum(axis=1)) + self._table.tops[self._rows[at]]
        small = self._sums[at].sum(axis=1) < _LEAST
        for i, order in enumerate(at.tolist()):
            if not self.left[order]:
                found[i] = MINUS_INFINITY
            elif order in self._sorted or small[i]:
                found[i] = self._sort(order).log_masses[self.left[order] - 1]
        return found

    def _draw_early(self, at: Integers, sums: Floats) -> Integers:
        if not len(at):
            return np.empty(0, dtype=np.int64)
        points = self._rng.random((2, len(at)))
        block = (sums <= (points[0] * sums[:, -1])[:, None]).sum(axis=1)
        masses = self._block(at, block)
        inside = np.cumsum(masses, axis=1)
        place = (inside <= (points[1] * inside[:, -1])[:, None]).sum(axis=1)
        tokens: Integers = block * masses.shape[1] + place
        self._take(at, tokens, block, place, masses)
        return tokens

    def _block(self, at: Integers, block: Integers) -> Floats:
        """The masses of one block of each order, without what was drawn."""
        masses = self._table.block(self._rows[at], block)
        for column in self._columns:
            home, place = np.divmod(column[at], masses.shape[1])
            here = np.flatnonzero(home == block)
            masses[here, place[here]] = 0.0
        return masses

    def _take(self, at: Integers, tokens: Integers, block: Integers, place: Integers, masses: Floats) -> None:
        masses[np.arange(len(at)), place] = 0.0
        self._sums[at, block] = masses.sum(axis=1)
        column = np.full(len(self._rows), -1)
        column[at] = tokens
        self._columns.append(column)

    def _draw_sorted(self, order: int) -> int:
        return int(self._sort(order).tokens[self.left[order] - 1])

    def _sort(self, order: int) -> _Sorted:
        if order not in self._sorted:
            logs = self._table.logs[self._rows[order]]
            kept = logs > MINUS_INFINITY
            kept[[column[order] for column in self._columns if column[order] >= 0]] = False
            tokens = np.flatnonzero(kept)
            races = logs[tokens] - np.log(self._rng.standard_exponential(len(tokens)))
            tokens = tokens[np.argsort(races)]
            self._sorted[order] = _Sorted(tokens, np.logaddexp.accumulate(logs[tokens]))
        return self._sorted[order]
