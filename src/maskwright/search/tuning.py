"""A strategy tuned on tasks: its method, parameters and constraints, within a budget of model calls (optuna's tree of Parzen estimators).

TreeCoder (Princis et al. 2025, arXiv 2511.22277) optimises decoding strategies and constraints as parts of a tree search; here the parts
are those of ``Strategy``, and the file that comes out is used as it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from maskwright.base.arguments import generator, whole
from maskwright.errors import LimitError, MaskwrightError
from maskwright.sampling.constraints import Constraint
from maskwright.sampling.models import LanguageModel
from maskwright.search.configurable import Configurable, Scalar
from maskwright.search.strategy import METHODS, Reward, Strategy, search

Choices = dict[str, dict[str, tuple[Scalar, ...]]]
"""By constraint and parameter, the values that it may have."""
_SEEDS = 1 << 32
"""As many has the estimator."""
_FIRST = 6
"""One task in so many is asked first: fewer tell too little of a strategy."""
_KEPT = 3
"""One trial in so many goes on."""


@dataclass(frozen=True)
class Task:
    """A prompt's model, the constraints that there are, and the reward of complete texts (0 to 1), such as the tests that they pass."""

    model: LanguageModel
    constraints: Mapping[str, Constraint | Configurable]
    reward: Reward


@dataclass(frozen=True)
class Trial:
    """A strategy that was tried: its mean reward over the first ``tasks`` tasks, and the model calls that it took."""

    strategy: Strategy
    reward: float
    calls: int
    tasks: int


@dataclass(frozen=True)
class Tuned:
    """``strategy``: of the trials with all tasks that of highest mean reward, of equal ones that of fewest calls; ``trials``: in their order."""

    strategy: Strategy
    trials: list[Trial]


def tune(
    tasks: Sequence[Task],
    *,
    budget: int,
    calls: int,
    methods: Sequence[str] = METHODS,
    required: Sequence[str] = ("grammar",),
    max_tokens: int = 256,
    seed: int | np.random.Generator | None = 0,
) -> Tuned:
    """Try strategies on ``tasks``, each with at most ``calls`` model calls a task, as long as ``budget`` calls last for one task more.

    A trial goes from task to task, in their order, and ends early where others did better: it goes on behind the first sixth of the tasks, and
    behind the first half, while it is among the best third of those that came so far (asynchronous successive halving: Li et al. 2020,
    arXiv 1810.05934).  So put tasks in an order that means nothing.

    ``methods``: those to choose from; the first trial of each comes before any other, with parameters that are drawn as later ones.
    ``required``: constraints that are always used; the others of the tasks are used or not, as it pays.  Parameters of ``Configurable`` constraints are chosen as well.  Equal seeds give equal
    results.  Raises ``LimitError`` when the budget does not last for one trial, or the shortest text takes more than ``max_tokens``, ``MaskwrightError`` for bad options and without optuna (``pip install "maskwright[tune]"``).
    """
    try:
        import optuna
    except ImportError:
        raise MaskwrightError('tuning needs optuna: pip install "maskwright[tune]"') from None
    whole(calls, "calls", low=1)
    whole(budget, "budget", low=1)
    if not tasks or not methods:
        raise MaskwrightError("tune needs at least one task and one method")
    if budget < len(tasks) * calls:
        message = (
            f"budget: {budget} calls do not last for one trial of {len(tasks)} tasks with {calls} calls each: "
            f"{len(tasks) * calls} do"
        )
        raise LimitError("budget", len(tasks) * calls, budget, message=message)
    rng = generator(seed)
    # Searches get numbers that differ.
    number = int(rng.integers(_SEEDS)) if seed is None or rng is seed else whole(seed, "seed", low=0)
    shared = set.intersection(*(set(task.constraints) for task in tasks))
    optional = sorted(shared - set(required))
    choices = _choices(tasks, [*required, *optional])
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize",
        sampler=optuna.samplers.TPESampler(seed=number % _SEEDS),
        pruner=optuna.pruners.SuccessiveHalvingPruner(
            min_resource=max(1, len(tasks) // _FIRST), reduction_factor=_KEPT
        ),
    )
    for method in methods:
        study.enqueue_trial({"method": method})
    trials: list[Trial] = []
    left = budget
    while left >= calls:
        asked = study.ask()
        strategy = _suggested(asked, methods, required, optional, choices, max_tokens)
        rewards: list[float] = []
        spent = 0
        for i, task in enumerate(tasks):
            if left < calls or (rewards and asked.should_prune()):
                break
            found = search(task.model, strategy, task.constraints, task.reward, budget=calls, seed=number + i)
            # A search that costs nothing ends as well.
            left -= max(found.calls, 1)
            spent += found.calls
            rewards.append(found.reward)
            asked.report(float(np.mean(rewards)), len(rewards))
        trials.append(Trial(strategy, float(np.mean(rewards)), spent, len(rewards)))
        if len(rewards) == len(tasks):
            study.tell(asked, trials[-1].reward)
        else:
            study.tell(asked, state=optuna.trial.TrialState.PRUNED)
    finished = [trial for trial in trials if trial.tasks == len(tasks)]
    best = max(finished, key=lambda trial: (trial.reward, -trial.calls))
    return Tuned(best.strategy, trials)


def _choices(tasks: Sequence[Task], names: Sequence[str]) -> Choices:
    """The parameters of the constraints that have some.  Raises ``MaskwrightError`` where tasks differ in them."""
    found: Choices = {}
    for name in names:
        given = [task.constraints.get(name) for task in tasks]
        if any(each is None for each in given):
            raise MaskwrightError(f"constraints: some tasks have no {name!r}")
        made = [dict(each.choices) if isinstance(each, Configurable) else {} for each in given]
        # By what is written: True is not 1.
        if len({repr(sorted(each.items())) for each in made}) > 1:
            raise MaskwrightError(
                f"constraints: {name!r} has other parameters, or values of them, in some tasks"
            )
        found[name] = made[0]
    return found


def _key(kind: str, *names: str) -> str:
    """A name of the estimator's: no two are the same, whatever constraints are called."""
    return f"{kind} {json.dumps(names)}"


def _suggested(
    asked: Any,
    methods: Sequence[str],
    required: Sequence[str],
    optional: Sequence[str],
    choices: Choices,
    max_tokens: int,
) -> Strategy:
    method = asked.suggest_categorical("method", list(methods))
    given: dict[str, Any] = {}
    if method != "greedy":
        given["temperature"] = asked.suggest_float("temperature", 0.1, 2.0, log=True)
    if method in ("beam", "smc"):
        given["width"] = asked.suggest_int("width", 2, 32, log=True)
    if method == "mcts":
        given["exploration"] = asked.suggest_float("exploration", 0.1, 4.0, log=True)
    if method == "smc":
        given["power"] = asked.suggest_float("power", 0.25, 4.0, log=True)
    used = [name for name in optional if asked.suggest_categorical(_key("uses", name), [True, False])]
    names = (*required, *used)
    parameters = {
        name: {
            each: values[asked.suggest_categorical(_key("value", name, each), list(range(len(values))))]
            for each, values in choices[name].items()
        }
        for name in names
        if choices[name]
    }
    return Strategy(method=method, max_tokens=max_tokens, constraints=names, parameters=parameters, **given)
