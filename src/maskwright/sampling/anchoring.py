"""A strong model that stays within a budget of information of a safe one (He et al. 2026, arXiv 2602.07120).

In every step, of all distributions q with KL(q ‖ safe) at most the allowance, the one closest to the strong model, that is of least
KL(q ‖ strong), is on the geometric path between the two:

    q  ∝  strong^(1 - a) · safe^a        with the smallest a that keeps to the allowance

KL(q ‖ safe) falls from that of the strong model (a = 0) to zero (a = 1), so a is found by halving.  Divergences of steps add
up: KL of whole texts is the mean over texts of the sum of their steps' divergences (the chain rule).  Each step
takes what it spends from what is left of the budget along its own text, whatever token is drawn then, so no text's sum exceeds it, and
neither does the mean.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from maskwright.base.arguments import MOST_COUNTED, check_type, real, whole
from maskwright.errors import MaskwrightError
from maskwright.sampling.byte_model import columns
from maskwright.sampling.combinations import Combination, Masked
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, normalized_rows
from maskwright.sampling.models import STAY, LanguageModel, ModelState, one_end

_HALVINGS = 60


def anchored(
    strong: LanguageModel,
    safe: LanguageModel,
    budget: float,
    *,
    steps: int | None = None,
    constraint: Constraint | None = None,
) -> Anchored:
    """The strong model, kept within a budget of the safe one: KL(texts ‖ the safe model's texts) is at most ``budget`` nats.

    The budget is positive and finite: with nothing to spend the result would be the safe model, without a bound the strong one.  ``steps``: the budget is spread evenly over so many steps (tokens or bytes): within the first t
    of them at most the share t / steps is spent, and what is left over is carried on.  None: any step may spend all that is left.

    Models of the same tokens are taken as they are; with different vocabularies they are given as ``ByteModel``.  ``constraint``: an
    exact one (``GrammarConstraint``), applied to *both* models, so the guarantee is against the safe model under the same masks.  Masks on the
    result instead, or the weights of ``smc``, would void it.

    A safe model that drops token sequences (``ByteModel`` with ``prune`` above 0, or None and more than ``max_sequences``) is another model: the
    budget then holds against what it keeps, and KL to its true texts can be more.  A warning says so once, when it happens.  What the strong model
    drops does no harm.

    Where no distribution within the allowance is possible for the strong model (it gives probability zero to what the safe model writes), the
    step is the safe model's.  Raises ``MaskwrightError`` for a budget that is not positive and finite and for bad options,
    ``VocabularyError`` for models that do not fit each other (``Combination``), ``ConstraintError`` for constraints that are not exact.
    """
    return Anchored(strong, safe, budget, steps, constraint)


class Anchored(Combination):
    """See ``anchored``."""

    def __init__(
        self,
        strong: LanguageModel,
        safe: LanguageModel,
        budget: float,
        steps: int | None,
        constraint: Constraint | None,
    ) -> None:
        for name, each in (("strong", strong), ("safe", safe)):
            check_type(each, LanguageModel, name, MaskwrightError)
        models = (
            [strong, safe] if constraint is None else [Masked(strong, constraint), Masked(safe, constraint)]
        )
        super().__init__(models)
        self.budget = real(budget, "budget")
        if self.budget in (0.0, np.inf):
            why, instead = (
                ("0 nats leave nothing to the strong model", "safe")
                if self.budget == 0
                else ("an infinite one bounds nothing", "strong")
            )
            raise MaskwrightError(
                f"budget: {why}; give positive, finite nats, or use the {instead} model itself"
            )
        self.steps = None if steps is None else whole(steps, "steps", low=1, high=MOST_COUNTED)
        self._warned = False

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        count = len(prefixes)
        strong, safe = self._states([[] for _ in prefixes])
        state: ModelState = _State(self, strong, safe, np.zeros(count), np.zeros(count, dtype=np.int64))
        for column in columns(prefixes):
            state = state.extend(np.arange(count), np.array(column, dtype=np.int64))
        return state

    def warn_of_dropped(self) -> None:
        """Say once that the safe model is no longer exactly itself."""
        if not self._warned and self.models[1].has_dropped:
            self._warned = True
            warnings.warn(
                "anchored: the safe model has dropped token sequences (ByteModel, prune), so the budget holds against what it keeps, "
                "not against its true texts; for a guarantee give it prune=0, and max_sequences as large as is needed. "
                "ByteModel.bounds says what was lost",
                stacklevel=2,
            )

    def allowance(self, spent: Floats, lengths: Integers) -> Floats:
        """What the next step may spend, in nats."""
        share = np.ones(len(spent)) if self.steps is None else np.minimum(1.0, (lengths + 1) / self.steps)
        return np.maximum(0.0, self.budget * share - spent)


class _State(ModelState):
    """``spent``: nats, by each text so far [R]; ``divergences``: KL(next token ‖ the safe model's), [R]."""

    def __init__(
        self, owner: Anchored, strong: ModelState, safe: ModelState, spent: Floats, lengths: Integers
    ) -> None:
        self.owner = owner
        self.strong = strong
        self.safe = safe
        self.spent = spent
        self.lengths = lengths
        self.logprobs, self.divergences = closest(
            # Rows of models are normalised nearly.
            normalized_rows(one_end(strong.logprobs, owner.eos_ids)),
            normalized_rows(one_end(safe.logprobs, owner.eos_ids)),
            owner.allowance(spent, lengths),
        )
        owner.warn_of_dropped()

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        moving = tokens != STAY
        return _State(
            self.owner,
            self.strong.extend(parents, tokens),
            self.safe.extend(parents, tokens),
            self.spent[parents] + np.where(moving, self.divergences[parents], 0.0),
            self.lengths[parents] + moving,
        )


def closest(strong: Floats, safe: Floats, allowances: Floats) -> tuple[Floats, Floats]:
    """For each row, the log-distribution closest to ``strong`` with KL(it ‖ ``safe``) within the allowance, and that divergence.

    ``strong``, ``safe``: log-distributions [R, V]; ``allowances``: finite, [R].  Where the safe model is impossible, so is the result.
    """
    found = safe.copy()
    divergences = np.zeros(len(found))
    for row in np.flatnonzero(allowances > 0):
        found[row], divergences[row] = _on_the_path(strong[row], safe[row], float(allowances[row]))
    return found, divergences


def _on_the_path(strong: Floats, safe: Floats, allowance: float) -> tuple[Floats, float]:
    shared = (strong > MINUS_INFINITY) & (safe > MINUS_INFINITY)
    a, b = strong[shared], safe[shared]
    full = np.full(len(safe), MINUS_INFINITY)

    def mixed(share: float) -> tuple[Floats, float]:
        q = normalized_rows((a + share * (b - a))[None, :])[0]
        return q, max(0.0, float((np.exp(q) * (q - b)).sum()))

    if not len(a) or mixed(1.0)[1] > allowance:
        return safe.copy(), 0.0
    best, divergence = mixed(0.0)
    if divergence > allowance:
        low, high = 0.0, 1.0
        best, divergence = mixed(1.0)
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            q, spent = mixed(middle)
            if spent <= allowance:
                high, best, divergence = middle, q, spent
            else:
                low = middle
    full[shared] = best
    return full, divergence
