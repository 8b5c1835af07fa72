"""Adaptive sampling with approximate expected futures (ASAp).

Park et al., "Grammar-Aligned Decoding" (NeurIPS 2024, arXiv 2405.21047).  Samples are drawn from
p(v) · f(prefix v) with f an over-approximation of the expected future grammaticality: 1 for what was never
visited and may be completed, and for what was visited the sum over children.  Each sample tightens f along its
path, and the distribution approaches the target as the tree of visited prefixes grows; no sample has weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from maskwright.base.arguments import MOST_COUNTED, whole
from maskwright.sampling.constraints import END, Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Booleans, Floats, Integers, log_sum_exp
from maskwright.sampling.models import LanguageModel
from maskwright.sampling.population import Counts
from maskwright.sampling.posterior import Posterior
from maskwright.sampling.rows import Rows, rows_behind, score
from maskwright.sampling.sequential import make_problem
from maskwright.sampling.target import Target
from maskwright.sampling.verdicts import checked

_CHUNK = 4096


class _Node:
    """A visited prefix: its good tokens, their probabilities, and what is known to come behind them.

    Logarithms: the future of a long text is less than any double."""

    __slots__ = ("children", "log_futures", "log_probabilities", "tokens")

    def __init__(self, tokens: Integers, log_probabilities: Floats) -> None:
        self.tokens = tokens
        self.log_probabilities = log_probabilities
        self.log_futures = np.zeros(len(tokens))
        self.children: dict[int, _Node] = {}

    @property
    def log_future(self) -> float:
        return float(log_sum_exp(self.log_probabilities + self.log_futures))


class Asap:
    """A sampler that learns: every call of ``sample`` goes on where the last one stopped.

    A constraint without exact masks is evaluated for every token of every visited prefix.  Raises as ``smc``.
    """

    def __init__(
        self,
        model: LanguageModel,
        constraint: Constraint,
        max_tokens: int = 256,
        seed: int | np.random.Generator | None = None,
    ) -> None:
        self._problem = make_problem(model, constraint, Target(None, None, 1.0, 0, max_tokens), seed)
        self._root: _Node | None = None

    @property
    def counts(self) -> Counts:
        """What all calls cost together."""
        return self._problem.counts

    @property
    def log_evidence_bound(self) -> float:
        """Logarithm of the present upper bound on the mass of good texts; 0 before the first sample."""
        return 0.0 if self._root is None else self._root.log_future

    def sample(self, n_samples: int = 16) -> Posterior:
        """``n_samples`` walks; those that ran into a corner have weight zero, the others equal weights."""
        n_samples = whole(n_samples, "n_samples", low=1, high=MOST_COUNTED)
        walks = [self._walk() for _ in range(n_samples)]
        is_complete = np.array([ended for _, ended in walks], dtype=bool)
        with np.errstate(divide="ignore"):
            weights = np.log(is_complete.astype(float))
        return Posterior([ids for ids, _ in walks], weights, is_complete, counts=self.counts)

    def _walk(self) -> tuple[list[int], bool]:
        ids: list[int] = []
        path: list[tuple[_Node, int]] = []
        rows: Rows | None = None
        if self._root is None:
            self._root, rows = self._visit(ids, None)
        node = self._root
        ended = False
        while True:
            weights = node.log_probabilities + node.log_futures
            most = weights.max(initial=MINUS_INFINITY)
            if most == MINUS_INFINITY:
                break
            sums = np.exp(weights - most).cumsum()
            at = int(np.searchsorted(sums, self._problem.rng.random() * sums[-1], side="right"))
            path.append((node, at))
            token = int(node.tokens[at])
            if token == END:
                ended = True
                break
            ids.append(token)
            child = node.children.get(token)
            if child is None:
                child, rows = self._visit(ids, rows)
                node.children[token] = child
            else:
                rows = None
            node = child
        log_future = None if ended else node.log_future
        for parent, at in reversed(path):
            if log_future is not None:
                parent.log_futures[at] = log_future
            log_future = parent.log_future
        return ids, ended

    def _visit(self, ids: list[int], rows: Rows | None) -> tuple[_Node, Rows]:
        # ``rows`` is the parent's when that was just visited; otherwise the model reads the prefix anew.
        problem = self._problem
        counts, model, constraint = problem.counts, problem.model, problem.constraint
        zero = np.zeros(1, dtype=np.int64)
        counts.model_calls += 1
        counts.model_rows += 1
        if rows is None:
            rows = rows_behind(model, constraint, [ids])
        else:
            rows = rows.children(zero, np.array(ids[-1:]), constraint)
        scores = score(rows, constraint, model.eos_ids, np.ones(1), problem.target.room(rows.lengths))
        tokens = np.flatnonzero(np.isfinite(scores.table.logs[0]))
        named = np.where(tokens == model.eos_ids[0], END, tokens)
        if not constraint.exact:
            good = self._check_all(rows.states[0], named)
            tokens, named = tokens[good], named[good]
        return _Node(named, scores.table.logs[0, tokens]), rows

    def _check_all(self, state: Any, tokens: Sequence[int] | Integers) -> Booleans:
        constraint = self._problem.constraint
        self._problem.counts.constraint_calls += len(tokens)
        parts = [
            checked(constraint, [state] * len(part), [int(token) for token in part])
            for part in (tokens[at : at + _CHUNK] for at in range(0, len(tokens), _CHUNK))
        ]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=bool)
