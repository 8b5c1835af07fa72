"""What constrained sampling is compared with: the same models, constraints and results.

Only ``locally_constrained`` has the wrong distribution.  The other two draw from the model without a constraint
and look at complete texts only: right, and hopeless when few texts are good.
"""

from __future__ import annotations

import math

import numpy as np

from maskwright.base.arguments import MOST_COUNTED, check_function, generator, real, whole
from maskwright.errors import ConstraintError, MaskwrightError
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, log
from maskwright.sampling.models import LanguageModel
from maskwright.sampling.population import Counts
from maskwright.sampling.posterior import Posterior
from maskwright.sampling.sequential import check_fit, smc
from maskwright.sampling.target import Potential, log_potential


def locally_constrained(
    model: LanguageModel,
    constraint: Constraint,
    n_samples: int = 16,
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
) -> Posterior:
    """Locally constrained decoding: mask, renormalise, sample, forget what was cut off.

    Equal weights for all texts that ended; black-box constraints are sampled by adaptive rejection, which has
    the same law.  ``log_evidence`` is here only the share of texts that ended.
    """
    found = smc(model, constraint, n_samples, ess_threshold=0, max_tokens=max_tokens, seed=seed)
    found.log_weights = np.where(found.is_complete, 0.0, MINUS_INFINITY)
    return found


def sample_verify(
    model: LanguageModel,
    constraint: Constraint,
    n_samples: int = 16,
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
    *,
    reward: Potential | None = None,
) -> Posterior:
    """Sample without the constraint, then weigh each text by ``1[good] · reward``.  Raises as ``smc``."""
    check_fit(model, constraint)
    check_function(reward, "reward", optional=True)
    found = smc(model, None, n_samples, ess_threshold=0, max_tokens=max_tokens, seed=seed)
    weights = [
        _log_value(constraint, reward, ids) if ended else MINUS_INFINITY
        for ids, ended in zip(found.sequences, found.is_complete, strict=True)
    ]
    found.counts.constraint_calls += int(found.is_complete.sum())
    found.log_weights = found.log_weights + np.array(weights)
    found.is_complete = np.isfinite(found.log_weights)
    return found


def rejection_sampling(
    model: LanguageModel,
    constraint: Constraint,
    n_samples: int = 16,
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = None,
    *,
    reward: Potential | None = None,
    reward_bound: float = 1.0,
    max_proposals: int = 10_000,
) -> Posterior:
    """Exact samples: propose without the constraint, accept with probability ``1[good] · reward / reward_bound``.

    The log-weights are all the logarithm of the evidence's unbiased estimate, (n - 1) / (m - 1) for n accepted
    of m proposed texts (Girshick, Mosteller and Savage 1946), n / m when ``max_proposals`` ran out.  There are
    fewer than ``n_samples`` texts then; the missing ones count as dead particles.  The estimate needs two accepted texts, so a
    single sample goes on to the second one.
    Raises ``ConstraintError`` for a reward above ``reward_bound``, and as ``smc``.
    """
    n_samples = whole(n_samples, "n_samples", low=1, high=MOST_COUNTED)
    max_proposals = whole(max_proposals, "max_proposals", low=1)
    reward_bound = real(reward_bound, "reward_bound")
    if not 0 < reward_bound < math.inf:
        raise MaskwrightError(f"reward_bound is positive and finite, not {reward_bound}")
    check_fit(model, constraint)
    check_function(reward, "reward", optional=True)
    rng = generator(seed)
    wanted = max(n_samples, 2)
    accepted: list[list[int]] = []
    counts = Counts()
    proposed = 0
    while len(accepted) < wanted and proposed < max_proposals:
        size = min(max(n_samples, 16), max_proposals - proposed)
        batch = smc(model, None, size, ess_threshold=0, max_tokens=max_tokens, seed=rng)
        counts.model_rows += batch.counts.model_rows
        counts.model_calls += batch.counts.model_calls
        lucky = log(rng.random(size))
        for ids, weight, ended, chance in zip(
            batch.sequences, batch.log_weights, batch.is_complete, lucky, strict=True
        ):
            proposed += 1
            if ended:
                counts.constraint_calls += 1
                value = _log_value(constraint, reward, ids) - math.log(reward_bound)
                if value > 1e-12:
                    raise ConstraintError(f"reward({ids}) exceeds reward_bound, which is {reward_bound}")
                if chance < weight + value:
                    accepted.append(ids)
                    if len(accepted) == wanted:
                        break
    full = len(accepted) == wanted
    rate = (wanted - 1) / (proposed - 1) if full else len(accepted) / proposed
    return _equal(accepted[:n_samples], n_samples, rate * reward_bound, counts)


def _equal(accepted: list[list[int]], size: int, evidence: float, counts: Counts) -> Posterior:
    is_complete = np.arange(size) < len(accepted)
    # The mean over all particles is the evidence, also when some are missing.
    each: Floats = log(np.where(is_complete, evidence * size / max(len(accepted), 1), 0.0))
    sequences = accepted + [[] for _ in range(size - len(accepted))]
    return Posterior(sequences, each, is_complete, counts=counts)


def _log_value(constraint: Constraint, reward: Potential | None, ids: list[int]) -> float:
    if not constraint.complete(ids):
        return MINUS_INFINITY
    return 0.0 if reward is None else log_potential(reward(list(ids)), "reward", ids)
