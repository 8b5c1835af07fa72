"""How to look for a good text, as data: a method, its parameters, and the constraints that it uses; and running one within a budget.

Decoding as a tree search whose parts are chosen (TreeCoder, Princis et al. 2025, arXiv 2511.22277): a strategy is a file, so what was tuned
on tasks with executable answers (``tune``) is used elsewhere as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from maskwright.base.arguments import check_function, check_type, generator, listed, one_of, real, whole
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import MaskwrightError
from maskwright.sampling.constraints import END, Constraint, Everything, GrammarConstraint, Product
from maskwright.sampling.logspace import MINUS_INFINITY, Floats, Integers, tempered_rows
from maskwright.sampling.models import LanguageModel, ModelState, one_end
from maskwright.sampling.sequential import smc
from maskwright.sampling.verdicts import checked
from maskwright.search.best_first import best_first
from maskwright.search.configurable import Configurable, Parameters, Scalar, check_text, configured, scalar
from maskwright.search.monte_carlo import mcts
from maskwright.search.result import allowed_scores, check_problem, number

METHODS = ("greedy", "sample", "beam", "best_first", "mcts", "smc")
Reward = Callable[[list[int]], float]
_COLDEST = 1e-6
"""The least temperature: what it divides stays within a double."""


@dataclass(frozen=True)
class Strategy:
    """``method`` and what it needs; ``constraints``: the names of those that are used, of all that a caller has; ``parameters``: by the name of a
    constraint, those of a ``Configurable`` one.

    ``greedy``: the likeliest token each time.  ``sample``: texts one after another, the best of all.  ``beam``: ``width`` prefixes.
    ``best_first``: texts in the order of p.  ``mcts``: as ``mcts``, with ``exploration``.  ``smc``: runs of ``width`` particles, weighted by
    p^``power`` and the reward.  ``temperature`` is the model's, so p of a next token is in proportion to p^(1/``temperature``): 1e-6
    or more, since below that p is 0 or 1 in doubles.  ``max_tokens`` counts EOS.

    Raises ``MaskwrightError`` for a value that means nothing.
    """

    method: str = "greedy"
    width: int = 8
    temperature: float = 1.0
    exploration: float = 1.25
    power: float = 1.0
    max_tokens: int = 256
    constraints: tuple[str, ...] = ("grammar",)
    parameters: Mapping[str, Parameters] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        one_of(self.method, METHODS, "method")
        for name in ("width", "max_tokens"):
            object.__setattr__(self, name, whole(getattr(self, name), name, low=1))
        for name in ("temperature", "exploration", "power"):
            value = real(getattr(self, name), name)
            if value == float("inf") or (value == 0 and name != "exploration"):
                raise MaskwrightError(f"{name} is positive and finite, not {value}")
            if name == "temperature" and value < _COLDEST:
                raise MaskwrightError(f"temperature is at least {_COLDEST:g}, which is greedy, not {value}")
            object.__setattr__(self, name, value)
        object.__setattr__(self, "constraints", tuple(listed(self.constraints, "constraints", "names")))
        for name in self.constraints:
            check_text(name, "constraints")
        self._check_parameters()

    def _check_parameters(self) -> None:
        check_type(self.parameters, Mapping, "parameters", MaskwrightError)
        kept: dict[str, dict[str, Scalar]] = {}
        for name, given in self.parameters.items():
            if name not in self.constraints:
                raise MaskwrightError(f"parameters: {name!r} is not among the constraints")
            check_type(given, Mapping, f"parameters: {name!r}", MaskwrightError)
            kept[name] = {}
            for each, value in given.items():
                check_text(each, f"parameters: {name!r}")
                kept[name][each] = scalar(value, f"parameters: {name!r}: {each!r}")
        object.__setattr__(self, "parameters", kept)

    @classmethod
    def load(cls, path: str | Path) -> Strategy:
        """From a file, TOML or JSON by its suffix.  Raises ``MaskwrightError`` for what is no strategy."""
        path = _path(path)
        try:
            text = path.read_text("utf-8")
            data = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
        except (OSError, ValueError) as error:
            raise MaskwrightError(f"{path}: {error}") from None
        except RecursionError:
            raise MaskwrightError(f"{path}: nested too deeply for a strategy") from None
        known = {each.name for each in fields(cls)}
        if not isinstance(data, dict) or not data.keys() <= known:
            raise MaskwrightError(f"{path}: expected an object with members among {', '.join(sorted(known))}")
        return cls(**data)

    def save(self, path: str | Path) -> None:
        """To a file, TOML or JSON by its suffix.  Raises ``MaskwrightError`` where it cannot be written."""
        path = _path(path)
        self._check_parameters()  # the mapping can be changed
        data = {**asdict(self), "constraints": list(self.constraints)}
        try:
            path.write_text(
                _as_toml(data) if path.suffix == ".toml" else json.dumps(data, indent=2) + "\n", "utf-8"
            )
        except (OSError, ValueError) as error:
            raise MaskwrightError(f"{path}: {error}") from None

    def write(
        self,
        model: Any,
        tokenizer: Any,
        prompt: Sequence[int],
        grammar: CompiledGrammar,
        reward: Reward,
        *,
        constraints: Mapping[str, Constraint | Configurable] | None = None,
        budget: int,
        seed: int | np.random.Generator | None = None,
    ) -> Best:
        """The best text of a grammar behind a prompt of a Hugging Face model; this is what ``Generator.search`` calls.

        ``constraints``: those that there are beside ``"grammar"``, by name.
        """
        from maskwright.sampling.huggingface import HuggingFaceModel

        check_type(constraints, (Mapping, type(None)), "constraints", MaskwrightError)
        if constraints is not None and "grammar" in constraints:
            raise MaskwrightError(
                "constraints: 'grammar' is that of the output type; give yours another name"
            )
        named = {"grammar": GrammarConstraint(grammar), **(constraints or {})}
        source = HuggingFaceModel(model, tokenizer, prompt, eos_ids=grammar.vocabulary.eos_ids)
        return search(source, self, named, reward, budget=budget, seed=seed)


def _as_toml(data: Mapping[str, Any]) -> str:
    """What is written in JSON means the same in TOML, which has no pairs of surrogates, and no DEL as it is."""

    def written(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")

    lines = [f"{name} = {written(value)}\n" for name, value in data.items() if name != "parameters"]
    for name, given in data["parameters"].items():
        lines.append(f"\n[parameters.{written(name)}]\n")
        lines += [f"{written(each)} = {written(value)}\n" for each, value in given.items()]
    return "".join(lines)


def _path(path: str | Path) -> Path:
    check_type(path, (str, os.PathLike), "path", MaskwrightError)
    return Path(path)


@dataclass(frozen=True)
class Best:
    """``ids``: the text of highest reward, EOS excluded; None when no text was complete within the budget.

    ``reward``: its reward, 0 without a text.  ``calls``: prefixes that the model was asked about.  ``rewards``: of all complete texts
    that were seen, each judged once.
    """

    ids: list[int] | None
    reward: float
    calls: int
    rewards: dict[tuple[int, ...], float]


class _SpentError(Exception):
    """The budget is spent; what was found until then counts."""


def search(
    model: LanguageModel,
    strategy: Strategy,
    constraints: Mapping[str, Constraint | Configurable],
    reward: Reward,
    *,
    budget: int,
    seed: int | np.random.Generator | None = None,
) -> Best:
    """The text of highest ``reward(ids)`` (0 to 1) that a strategy finds within ``budget`` calls of the model, one a prefix.

    Methods that can go on do so until the budget is spent, or until a text has reward 1.  Equal seeds give equal results.  Raises
    ``MaskwrightError`` for names of constraints and parameters that are not there, ``ConstraintError`` for other rewards, ``LimitError`` when the
    shortest text takes more than ``max_tokens``, and what the methods raise.
    """
    check_type(strategy, Strategy, "strategy", MaskwrightError)
    check_type(constraints, Mapping, "constraints", MaskwrightError)
    chosen = configured(constraints, strategy.constraints, strategy.parameters)
    constraint = chosen[0] if len(chosen) == 1 else Product(chosen) if chosen else Everything()
    check_problem(model, constraint, budget=(budget, 1), max_tokens=(strategy.max_tokens, 1))
    check_function(reward, "reward")
    # What is likeliest is the same at all temperatures, but differences may be rounded away at high ones.
    metered = _Metered(model, budget, 1.0 if strategy.method == "greedy" else strategy.temperature)
    judged = _Judged(reward)
    rng = generator(seed)
    with contextlib.suppress(_SpentError):
        _METHODS[strategy.method](metered, constraint, strategy, judged, rng)
    rewards = judged.rewards
    best = max(rewards, key=lambda ids: rewards[ids], default=None)
    return Best(
        None if best is None else list(best),
        rewards[best] if best is not None else 0.0,
        metered.calls,
        rewards,
    )


class _Judged:
    """A reward that is asked once for each text, and stops the search at 1."""

    def __init__(self, reward: Reward) -> None:
        self._reward = reward
        self.rewards: dict[tuple[int, ...], float] = {}

    def __call__(self, ids: list[int]) -> float:
        key = tuple(ids)
        if key not in self.rewards:
            self.rewards[key] = number(self._reward(list(ids)), f"reward({ids})", 0.0, 1.0)
            if self.rewards[key] == 1.0:
                raise _SpentError
        return self.rewards[key]


class _Metered(LanguageModel):
    """A model at a temperature that is asked about so many prefixes, and no more."""

    def __init__(self, model: LanguageModel, budget: int, temperature: float) -> None:
        self._model = model
        self._budget = budget
        self._temperature = temperature
        self.calls = 0
        self.vocab_size, self.eos_ids, self.room = model.vocab_size, model.eos_ids, model.room

    @property
    def left(self) -> int:
        """How many prefixes it may still be asked about."""
        return self._budget - self.calls

    def pay(self, prefixes: int) -> None:
        if prefixes > self.left:
            raise _SpentError
        self.calls += prefixes

    def at_temperature(self, logprobs: Floats) -> Floats:
        """log p [rows, V], normalised again; all EOS ids as the first one, so that it does not matter how many there are."""
        if self._temperature == 1.0:
            return logprobs
        # A row may have nothing (`product`).
        return tempered_rows(one_end(logprobs, self.eos_ids), self._temperature)

    def state(self, prefixes: Sequence[Sequence[int]]) -> ModelState:
        self.pay(len(prefixes))
        return _MeteredState(self, self._model.state(prefixes))


class _MeteredState(ModelState):
    def __init__(self, owner: _Metered, state: ModelState) -> None:
        self._owner = owner
        self._state = state
        self.logprobs = owner.at_temperature(state.logprobs)

    def extend(self, parents: Integers, tokens: Integers) -> ModelState:
        self._owner.pay(int((tokens >= 0).sum()))
        return _MeteredState(self._owner, self._state.extend(parents, tokens))


def _rows(
    model: LanguageModel, constraint: Constraint, states: list[Any], state: ModelState, last: bool
) -> Floats:
    """log p of allowed tokens behind each state, those that need ``check`` asked; nothing but EOS where ``last``."""
    scores = allowed_scores(model, constraint, states, state.logprobs)
    end = model.eos_ids[0]
    if last:
        kept = scores[:, end].copy()
        scores[:] = MINUS_INFINITY
        scores[:, end] = kept
    if not constraint.exact:
        for row, each in enumerate(states):
            tokens = np.flatnonzero(scores[row] > MINUS_INFINITY)
            asked = [END if token == end else token for token in tokens.tolist()]
            scores[row, tokens[~checked(constraint, [each] * len(tokens), asked)]] = MINUS_INFINITY
    return scores


def _beam(
    model: LanguageModel, constraint: Constraint, strategy: Strategy, judged: _Judged, width: int
) -> None:
    beams: list[tuple[float, list[int], Any]] = [(0.0, [], constraint.start())]
    state = model.state([[]])
    for length in range(strategy.max_tokens):
        scores = _rows(
            model, constraint, [each for *_, each in beams], state, length + 1 >= strategy.max_tokens
        )
        totals = np.array([log_p for log_p, *_ in beams])[:, None] + scores
        order = np.argsort(-totals, axis=None, kind="stable")[:width]
        order = order[totals.ravel()[order] > MINUS_INFINITY]
        rows, tokens = np.divmod(order, scores.shape[1])
        going = []
        for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
            _, ids, each = beams[row]
            if token == model.eos_ids[0]:
                judged(ids)
            else:
                going.append(
                    (row, token, (float(totals[row, token]), [*ids, token], constraint.advance(each, token)))
                )
        if not going:
            return
        state = state.extend(np.array([row for row, *_ in going]), np.array([token for _, token, _ in going]))
        beams = [each for *_, each in going]


def _sample(
    model: LanguageModel,
    constraint: Constraint,
    strategy: Strategy,
    judged: _Judged,
    rng: np.random.Generator,
) -> None:
    start = model.state([[]])
    while True:
        state, matched, ids = start, constraint.start(), list[int]()
        while True:
            [scores] = _rows(model, constraint, [matched], state, len(ids) + 1 >= strategy.max_tokens)
            if scores.max() == MINUS_INFINITY:
                break
            token = int((scores - np.log(rng.standard_exponential(len(scores)))).argmax())
            if token == model.eos_ids[0]:
                judged(ids)
                break
            ids.append(token)
            matched = constraint.advance(matched, token)
            state = state.extend(np.zeros(1, dtype=np.int64), np.array([token]))
        if not ids:
            # An empty text costs nothing, and would be drawn for ever.
            assert isinstance(model, _Metered)
            model.pay(1)


def _greedy(model: Any, constraint: Any, strategy: Strategy, judged: _Judged, rng: Any) -> None:
    _beam(model, constraint, strategy, judged, 1)


def _beams(model: Any, constraint: Any, strategy: Strategy, judged: _Judged, rng: Any) -> None:
    _beam(model, constraint, strategy, judged, strategy.width)


def _best_first(model: Any, constraint: Any, strategy: Strategy, judged: _Judged, rng: Any) -> None:
    def seen(ids: list[int]) -> float:
        # It is asked about texts as they come up, and the order is that of p alone.
        judged(ids)
        return 1.0

    best_first(
        model,
        constraint,
        n=sys.maxsize,
        reward=seen,
        max_tokens=strategy.max_tokens,
        max_nodes=model.left,
        batch=1,
    )


def _mcts(model: Any, constraint: Any, strategy: Strategy, judged: _Judged, rng: Any) -> None:
    options: dict[str, Any] = {"exploration": strategy.exploration, "max_tokens": strategy.max_tokens}
    mcts(model, constraint, judged, simulations=10**9, seed=rng, **options)


def _smc(model: Any, constraint: Any, strategy: Strategy, judged: _Judged, rng: Any) -> None:
    while True:
        model.pay(0)
        options: dict[str, Any] = {"power": strategy.power, "max_tokens": strategy.max_tokens}
        smc(model, constraint, strategy.width, reward=judged, seed=rng, **options)


_METHODS: dict[str, Callable[..., None]] = {
    "greedy": _greedy,
    "sample": _sample,
    "beam": _beams,
    "best_first": _best_first,
    "mcts": _mcts,
    "smc": _smc,
}
