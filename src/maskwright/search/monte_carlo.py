"""Monte Carlo tree search for texts of high reward, where only complete texts can be judged.

Selection is that of AlphaZero (PUCT: Rosin 2011; Silver et al. 2017) with the model's masked probabilities as priors:
from the root, take the token of largest  Q + c · prior · sqrt(visits of the parent) / (1 + visits),  where Q is the mean
reward behind it, or its parent's where nothing is known.  A new prefix is tried by one text that the model
writes from there.  What was explored completely is not visited again, so that with enough simulations the search is exhaustive.
What the model said while it wrote that text is kept, as PG-TD does (Zhang et al., ICLR 2023, arXiv 2303.05510): no prefix is asked about twice.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from maskwright.base.arguments import check_function, generator, real
from maskwright.errors import MaskwrightError
from maskwright.sampling.constraints import END, Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Booleans, Floats, log_sum_exp
from maskwright.sampling.models import LanguageModel, ModelState
from maskwright.sampling.verdicts import checked
from maskwright.search.result import Found, SearchResult, allowed_scores, check_problem, number

_MOST_KEPT = 1 << 24
"""Next tokens that are kept with prefixes of written texts, which are not in the tree yet: 16 bytes each."""


class _Node:
    """A prefix whose next tokens are known.  It is in the tree once it was entered."""

    def __init__(
        self, ids: list[int], log_p: float, state: Any, model: ModelState | None, scores: Floats
    ) -> None:
        self.ids = ids
        self.log_p = log_p
        self.state = state
        self.model = model
        """None: not kept, since each one may hold a cache of the whole prefix."""
        self.tokens = np.flatnonzero(scores > MINUS_INFINITY)
        self.scores = scores[self.tokens]
        self.children: dict[int, _Node] = {}
        self.entered = False

    def priors(self) -> Floats:
        return np.exp(self.scores - log_sum_exp(self.scores)) if len(self.tokens) else self.scores

    def enter(self) -> None:
        self.entered = True
        self.prior = self.priors()
        self.visits = np.zeros(len(self.tokens))
        self.values = np.zeros(len(self.tokens))
        self.open: Booleans = np.ones(len(self.tokens), dtype=bool)
        """Which tokens lead to something that is not known completely."""

    def choose(self, exploration: float) -> int:
        """The place of the token to visit."""
        total = self.visits.sum()
        mean = self.values.sum() / total if total else 0.0
        quality = np.divide(
            self.values, self.visits, out=np.full(len(self.tokens), mean), where=self.visits > 0
        )
        worth = quality + exploration * self.prior * np.sqrt(total + 1) / (1 + self.visits)
        return int(np.where(self.open, worth, MINUS_INFINITY).argmax())


def mcts(
    model: LanguageModel,
    constraint: Constraint,
    reward: Callable[[list[int]], float],
    *,
    simulations: int = 256,
    exploration: float = 1.25,
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
) -> SearchResult:
    """Complete texts of high ``reward(ids)`` (a number from 0 to 1), each once, the best first, then the likeliest.

    ``simulations``: walks down the tree, each with one text written by the model; ``exploration``: the c above.
    ``max_tokens`` counts EOS; a text that does not end in time is worth 0.  ``SearchResult.proved``: whether all
    texts were seen.  Equal seeds give equal results.

    Raises ``VocabularyError`` when model and constraint differ in ids, ``ConstraintError`` for rewards that are no such
    numbers, ``LimitError`` when the shortest text takes more than ``max_tokens``, ``MaskwrightError`` for bad options.
    """
    check_problem(model, constraint, simulations=(simulations, 1), max_tokens=(max_tokens, 1))
    check_function(reward, "reward")
    exploration = real(exploration, "exploration")
    if exploration == float("inf"):
        raise MaskwrightError("exploration is finite")
    search = _Search(model, constraint, reward, exploration, max_tokens, generator(seed))
    return search.run(simulations)


class _Search:
    def __init__(
        self,
        model: LanguageModel,
        constraint: Constraint,
        reward: Callable[[list[int]], float],
        exploration: float,
        max_tokens: int,
        rng: np.random.Generator,
    ) -> None:
        self.model = model
        self.constraint = constraint
        self.reward = reward
        self.exploration = exploration
        self.max_tokens = max_tokens
        self.rng = rng
        self.end = model.eos_ids[0]
        self.nodes = 0
        self.kept = 0
        """Next tokens of prefixes that are kept and were not entered."""
        self.found: dict[tuple[int, ...], Found] = {}

    def run(self, simulations: int) -> SearchResult:
        root = None
        if self.constraint.prefix([]):
            root = self.node([], 0.0, self.constraint.start(), self.model.state([[]]))
            root.enter()
        for _ in range(simulations):
            if root is None or not root.open.any():
                break
            self.simulate(root)
        ranked = sorted(self.found.values(), key=lambda each: (-each.score, -each.log_probability, each.ids))
        return SearchResult(ranked, self.nodes, root is None or not root.open.any())

    def node(self, ids: list[int], log_p: float, state: Any, model: ModelState) -> _Node:
        self.nodes += 1
        [scores] = allowed_scores(self.model, self.constraint, [state], model.logprobs)
        if len(ids) + 1 >= self.max_tokens:
            kept = scores[self.end]
            scores[:] = MINUS_INFINITY
            scores[self.end] = kept
        if not self.constraint.exact:
            # A search comes back to a prefix: what is allowed is asked once for each token that is possible.
            tokens = np.flatnonzero(scores > MINUS_INFINITY)
            asked = [END if token == self.end else token for token in tokens.tolist()]
            scores[tokens[~checked(self.constraint, [state] * len(tokens), asked)]] = MINUS_INFINITY
        return _Node(ids, log_p, state, model, scores)

    def child(self, node: _Node, place: int) -> _Node:
        """The prefix behind a token that is not EOS: a kept one, or a new one, which is not kept."""
        known = node.children.get(place)
        if known is not None:
            return known
        token = int(node.tokens[place])
        ids = [*node.ids, token]
        state = self.constraint.advance(node.state, token)
        if node.model is None:
            model = self.model.state([ids])
        else:
            model = node.model.extend(np.zeros(1, dtype=np.int64), np.array([token]))
        return self.node(ids, node.log_p + float(node.scores[place]), state, model)

    def simulate(self, root: _Node) -> None:
        """Go down to a new prefix or an end, try it, and tell all that is above."""
        path: list[tuple[_Node, int]] = []
        node = root
        while True:
            place = node.choose(self.exploration)
            path.append((node, place))
            if node.tokens[place] == self.end:
                value = self.finish(node, place)
                node.open[place] = False
                break
            child = self.child(node, place)
            if not child.entered:
                if place in node.children:
                    self.kept -= len(child.tokens)
                node.children[place] = child
                child.enter()
                value = self.write(child)
                node.open[place] = child.open.any()
                break
            node = child
        for i in range(len(path) - 1, -1, -1):
            node, place = path[i]
            node.visits[place] += 1
            node.values[place] += value
            if i and not node.open.any():
                above, where = path[i - 1]
                above.open[where] = False

    def write(self, node: _Node) -> float:
        """A text that the model writes behind a prefix; its reward."""
        while len(node.tokens):
            place = int(self.rng.choice(len(node.tokens), p=node.priors()))
            if node.tokens[place] == self.end:
                self.leave(node)
                return self.finish(node, place)
            child = self.child(node, place)
            if place not in node.children and self.kept + len(child.tokens) <= _MOST_KEPT:
                node.children[place] = child
                self.kept += len(child.tokens)
            self.leave(node)
            node = child
        return 0.0

    def leave(self, node: _Node) -> None:
        """Let go of what the model knows of a prefix that is not in the tree."""
        if not node.entered:
            node.model = None

    def finish(self, node: _Node, place: int) -> float:
        key = tuple(node.ids)
        if key not in self.found:
            value = number(self.reward(list(node.ids)), f"reward({node.ids})", 0.0, 1.0)
            self.found[key] = Found(list(node.ids), node.log_p + float(node.scores[place]), value)
        return self.found[key].score
