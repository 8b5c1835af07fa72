"""Best-first search for the texts of largest p(y) · reward(y) (A*: Hart, Nilsson and Raphael 1968).

Prefixes are taken up in the order of what the best text behind each can be worth: log p of the prefix plus a
bound on the reward.  The first complete text that comes up is therefore the best one of all, the next one the
second, whatever was not looked at.  Only the next-best sibling of a prefix is put on the heap, so a vocabulary of any size
costs one sort a prefix.
"""

from __future__ import annotations

import heapq
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from maskwright.base.arguments import check_function
from maskwright.errors import MaskwrightError
from maskwright.sampling.constraints import END, Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers
from maskwright.sampling.models import LanguageModel, ModelState
from maskwright.sampling.verdicts import checked
from maskwright.search.result import Found, SearchResult, allowed_scores, check_problem, number

_ROUNDED = 1e-9
"""By so much (nats) may rounding lift a reward above its bound."""

Weight = Callable[[list[int]], float]


class _Prefix(NamedTuple):
    ids: list[int]
    log_p: float
    bound: float
    """The logarithm of what a text behind it can have as its reward."""
    state: Any
    """The constraint's."""


class _Children(NamedTuple):
    """What may follow a prefix, the likeliest first."""

    parent: _Prefix
    tokens: Integers
    scores: Floats
    model: ModelState
    row: int

    def worth(self, rank: int) -> float:
        """What a text behind one of them can be worth at most, by the parent's bound."""
        return self.parent.log_p + float(self.scores[rank]) + self.parent.bound


def best_first(
    model: LanguageModel,
    constraint: Constraint,
    *,
    n: int = 1,
    reward: Weight | None = None,
    bound: Weight | None = None,
    max_tokens: int = 256,
    max_nodes: int = 10_000,
    batch: int = 8,
) -> SearchResult:
    """The ``n`` complete texts of at most ``max_tokens`` tokens (EOS included) with the largest p(y) · reward(y).

    ``reward(ids)``: what a complete text is worth, as in ``smc``: finite, not negative, and at most what ``bound(ids)`` says of each of
    its prefixes.  ``bound`` never grows with a prefix; without it, it is 1.
    ``batch``: prefixes that the model is asked about together.  After ``max_nodes`` prefixes the search ends
    with the best complete texts that it has seen; ``SearchResult.proved`` says whether none that it has not seen is better.

    Raises ``VocabularyError`` when model and constraint differ in ids, ``ConstraintError`` for rewards that are no such
    numbers, ``LimitError`` when the shortest text takes more than ``max_tokens``, ``MaskwrightError`` for bad options.
    """
    check_problem(
        model, constraint, n=(n, 1), max_tokens=(max_tokens, 1), max_nodes=(max_nodes, 1), batch=(batch, 1)
    )
    check_function(reward, "reward", optional=True)
    check_function(bound, "bound", optional=True)
    judge = _Judge(reward or _one, bound or _one)
    end = model.eos_ids[0]
    order = itertools.count()
    # (worth, negated; number; complete text, prefix that is to be expanded, or next sibling)
    heap: list[
        tuple[float, int, Found | tuple[_Prefix, ModelState | None, int, int] | tuple[_Children, int]]
    ] = []

    def push(worth: float, what: Any) -> None:
        if worth > MINUS_INFINITY:
            heapq.heappush(heap, (-worth, next(order), what))

    found: list[Found] = []
    nodes = 0
    if constraint.prefix([]):
        most = judge.bound([])
        push(most, (_Prefix([], 0.0, most, constraint.start()), None, 0, 0))
    while True:
        wave: list[tuple[_Prefix, ModelState | None, int, int]] = []
        while heap and len(found) < n and len(wave) < batch:
            what = heap[0][2]
            if isinstance(what, Found):
                if wave:
                    break
                heapq.heappop(heap)
                found.append(what)
            elif isinstance(what[0], _Children):
                heapq.heappop(heap)
                children, rank = what[0], int(what[1])
                if rank + 1 < len(children.tokens):
                    push(children.worth(rank + 1), (children, rank + 1))
                _take(children, rank, constraint, judge, end, push)
            elif nodes + len(wave) < max_nodes:
                heapq.heappop(heap)
                wave.append(what)
            else:
                break
        if not wave:
            break
        nodes += len(wave)
        for children in _expand(model, constraint, wave, max_tokens):
            if len(children.tokens):
                push(children.worth(0), (children, 0))
    proved = len(found) == n or not heap
    # Texts that end behind a prefix that the model was asked about still count, though others may be better.
    while heap and len(found) < n:
        what = heapq.heappop(heap)[2]
        if isinstance(what, Found):
            found.append(what)
        elif isinstance(what[0], _Children):
            children, rank = what[0], int(what[1])
            for place in np.flatnonzero(children.tokens[rank:] == end).tolist():
                _take(children, rank + place, constraint, judge, end, push)
    return SearchResult(found, nodes, proved)


def _one(ids: list[int]) -> float:
    return 1.0


class _Judge:
    """Rewards and bounds as logarithms."""

    def __init__(self, reward: Weight, bound: Weight) -> None:
        self._reward, self._bound = reward, bound

    def reward(self, ids: list[int]) -> float:
        return _logarithm(self._reward, "reward", ids)

    def bound(self, ids: list[int]) -> float:
        return _logarithm(self._bound, "bound", ids)


def _logarithm(weight: Weight, name: str, ids: list[int]) -> float:
    value = number(weight(list(ids)), f"{name}({ids})", 0.0, sys.float_info.max)
    return math.log(value) if value else MINUS_INFINITY


def _take(
    children: _Children,
    rank: int,
    constraint: Constraint,
    judge: _Judge,
    end: int,
    push: Callable[[float, Any], None],
) -> None:
    """Put one child on the heap, with its own bound."""
    parent = children.parent
    token = int(children.tokens[rank])
    if not checked(constraint, [parent.state], [END if token == end else token])[0]:
        return
    log_p = parent.log_p + float(children.scores[rank])
    ids = parent.ids if token == end else [*parent.ids, token]
    bound = judge.reward(ids) if token == end else judge.bound(ids)
    if bound > parent.bound + _ROUNDED:
        name = "reward" if token == end else "bound"
        raise MaskwrightError(
            f"{name}({ids}) is {math.exp(bound):.12g}, larger than {math.exp(parent.bound):.12g}, the bound for {parent.ids}"
        )
    bound = min(bound, parent.bound)
    if token == end:
        push(log_p + bound, Found(list(ids), log_p, log_p + bound))
    elif bound > MINUS_INFINITY:
        prefix = _Prefix(ids, log_p, bound, constraint.advance(parent.state, token))
        push(log_p + bound, (prefix, children.model, children.row, token))


def _expand(
    model: LanguageModel,
    constraint: Constraint,
    wave: list[tuple[_Prefix, ModelState | None, int, int]],
    max_tokens: int,
) -> list[_Children]:
    """Ask the model about prefixes, those behind one state together."""
    groups: dict[int, list[tuple[_Prefix, ModelState | None, int, int]]] = {}
    for entry in wave:
        groups.setdefault(id(entry[1]), []).append(entry)
    found = []
    end = model.eos_ids[0]
    for group in groups.values():
        source = group[0][1]
        if source is None:
            state = model.state([[]])
        else:
            state = source.extend(
                np.array([row for _, _, row, _ in group]), np.array([token for *_, token in group])
            )
        prefixes = [prefix for prefix, *_ in group]
        scores = allowed_scores(model, constraint, [prefix.state for prefix in prefixes], state.logprobs)
        for row, prefix in enumerate(prefixes):
            tokens = np.flatnonzero(scores[row] > MINUS_INFINITY)
            if len(prefix.ids) + 1 >= max_tokens:
                tokens = tokens[tokens == end]
            tokens = tokens[np.argsort(-scores[row, tokens], kind="stable")]
            found.append(_Children(prefix, tokens, scores[row, tokens], state, row))
    return found
