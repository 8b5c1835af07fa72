"""Value-guided search and a tuned strategy beside best-of-n and particles, at equal numbers of model calls, on the default model.

    export OUT=bench/results/DATE-search.json PYTHONPATH=src
    python bench/search_strategies.py tune --save strategy.toml --memory said --out $OUT
    python bench/search_strategies.py sums --strategy strategy.toml --memory said --out $OUT
    python bench/search_strategies.py items --tasks 32 --memory said --out $OUT

Two kinds of tasks.  *Sums*: write a sum of small numbers and products that has a given value; the reward is 1 for the value, and
falls with the distance (PG-TD: executed candidates are the reward of the tree).  *Items*: of 1000 names in a ``TokenTrie``, find the
one of highest rating; a rating is a sum of random numbers of the name's first word, of its first two, and of all three, so prefixes
say something about it (V-STAR).  Searches stop at reward 1.  What the model says of a prefix is kept: a search pays for what it
asks, also where another one asked before.

A*-decoding is ``best_first`` by p(y) · value^power for a sharpened p, with values that are never too low.  What they know:

    arithmetic   sums: the values that a begun sum can still have, and nothing of the model
    first words  items: the ratings' part of the first word, nothing of the rest
    noisy        items: the highest rating below a prefix, too high by up to 0.3
    index        items: the highest rating below a prefix, that is, the answer
"""

from __future__ import annotations

import argparse
import contextlib
import json
import platform
import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from quality_report import paired_interval
from search_memory import Remembered
from transformers import AutoModelForCausalLM, AutoTokenizer

import maskwright as mw
from maskwright.generation.default_model import default_model
from maskwright.sampling import CallableModel, GrammarConstraint, HuggingFaceModel, TrieConstraint
from maskwright.search import Strategy, Task, best_first, search, tune

SUM = r"""
    start: term (SIGN term)~1..2
    term: NUMBER ("*" NUMBER)?
    SIGN: "+" | "-"
    NUMBER: /[1-9][0-9]?/
"""
SHOWN = {43: "12*3+7", 66: "9*9-20+5", 28: "4*5+8", 35: "50-15"}
TURN = "<|im_start|>user\n{}=<|im_end|>\n<|im_start|>assistant\n"
SUM_PROMPT = "".join(f"{TURN.format(value)}{text}<|im_end|>\n" for value, text in SHOWN.items()) + TURN
"""A chat, so that the model knows the end: behind plain lines, it goes on with the next line, and every end is unlikely."""
SUM_TOKENS = 12
MOST_SUMS = 24
AHEAD = 96
"""Prefixes of each length that the model is asked about before the searches: batches take less time, and change nothing."""
TERMS = np.unique([*range(1, 100), *(a * b for a in range(1, 100) for b in range(1, 100))])
ADJECTIVES = ["small", "large", "old", "new", "cheap", "fine", "strong", "light", "dark", "plain"]
MATERIALS = ["wooden", "metal", "glass", "plastic", "cotton", "leather", "paper", "stone", "steel", "silver"]
NOUNS = ["chair", "table", "lamp", "bowl", "knife", "cup", "shelf", "clock", "mirror", "box"]
ITEM_PROMPTS = [
    "The customer bought the",
    "For the kitchen they chose the",
    "In the window of the shop she saw the",
    "He paid least for the",
]
WEIGHTS = (0.4, 0.3, 0.3)
"""Of the rating's parts: the first word's, the first two words', the name's own."""
NOISE = 0.3
POWER = 1024
"""Of values in A*; of 16, 64, 256 and 1024 the best on other draws of items.  Values decide, and p among equals; below 0.48 is nothing."""
TEMPERATURE = 0.25
"""Of the model in A*; of 1, 0.5 and 0.25 the best on other sums.  At 1 every token costs much, so the budget goes into short prefixes."""
FLAT = 10.0
"""Of the model in trees over items, where it knows nothing of ratings; 4, 10 and 100 did the same on other draws."""
Bound = Callable[[list[int]], float]


@dataclass
class Problem:
    memory: Remembered
    constraint: Any
    reward: Callable[[list[int]], float]
    bounds: dict[str, Bound]
    """Values for A*, by what they know."""
    goal: int = 0


@dataclass
class Outcome:
    calls: int
    rewards: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def reward(self) -> float:
        return max(self.rewards.values(), default=0.0)


def closeness(distance: int) -> float:
    return 1.0 if not distance else 0.9 / (1 + distance / 10)


def nearest(text: str, goal: int) -> int:
    """How near to ``goal`` a sum that begins with ``text`` can still come, or a smaller number."""
    *done, begun = re.split("([+-])", text)
    if not done:
        return 0
    so_far = eval("".join(done[:-1]), {"__builtins__": {}})
    first, times, second = begun.partition("*")
    numbers = np.array([n for n in range(1, 100) if str(n).startswith(second if times else first)])
    if times:
        begun_values = int(first) * numbers
    else:
        begun_values = np.unique(np.concatenate([numbers, np.outer(numbers, np.arange(1, 100)).ravel()]))
    missing = np.abs(goal - so_far - (begun_values if done[-1] == "+" else -begun_values))
    if len(done) == 2:
        # One more term may follow, added or taken off.
        place = np.searchsorted(TERMS, missing).clip(1, len(TERMS) - 1)
        after = np.minimum(np.abs(TERMS[place] - missing), np.abs(TERMS[place - 1] - missing))
        missing = np.minimum(missing, after)
    return int(missing.min())


def sums(model: Any, tokenizer: Any, goals: Iterable[int], folder: Path | None) -> Iterable[Problem]:
    """Tasks to write a sum of a value, one after another."""
    for goal in goals:
        source = HuggingFaceModel(model, tokenizer, SUM_PROMPT.format(goal))
        characters = [tokenizer.convert_tokens_to_ids(each) for each in "0123456789+-*"]
        memory = Remembered(source, characters, folder and folder / f"{goal}.pickle")
        constraint = GrammarConstraint(mw.compile_lark(SUM, memory.vocabulary))
        memory.ahead(constraint, AHEAD, SUM_TOKENS - 1)

        def reward(ids: list[int], memory: Any = memory, goal: int = goal) -> float:
            # The text is of the grammar above, so it is digits and signs.
            return closeness(abs(eval(memory.decode(ids), {"__builtins__": {}}) - goal))

        def bound(ids: list[int], memory: Any = memory, goal: int = goal) -> float:
            return closeness(nearest(memory.decode(ids), goal))

        yield Problem(memory, constraint, reward, {"arithmetic": bound}, goal)
        memory.save()


def goals_of(count: int, training: int) -> tuple[list[int], list[int]]:
    """Different goals for tests and for tuning; tuning does not depend on how many are tested."""
    drawn = random.Random(0).sample(range(20, 151), MOST_SUMS + training)
    return drawn[: min(count, MOST_SUMS)], drawn[MOST_SUMS:]


def items(model: Any, tokenizer: Any, count: int, seed: int, folder: Path | None) -> Iterable[Problem]:
    """Tasks to find the item of highest rating; those with one prompt share what the model says."""
    names = [f" {' '.join(words)}" for words in product(ADJECTIVES, MATERIALS, NOUNS)]
    written = [tokenizer.encode(name, add_special_tokens=False) for name in names]
    tokens = sorted({token for ids in written for token in ids})
    sequences = [tuple(tokens.index(token) for token in ids) for ids in written]
    for number, prompt in enumerate(ITEM_PROMPTS):
        source = HuggingFaceModel(model, tokenizer, prompt)
        memory = Remembered(source, tokens, folder and folder / f"items-{number}.pickle")
        memory.learn(ids[:length] for ids in sequences for length in range(len(ids) + 1))
        memory.save()
        constraint = TrieConstraint(mw.TokenTrie(sequences, memory.size, (memory.end,)))
        for _ in range(number, count, len(ITEM_PROMPTS)):
            seed += 1
            yield rated(memory, constraint, names, sequences, random.Random(seed))


def rated(
    memory: Remembered,
    constraint: Any,
    names: list[str],
    sequences: list[tuple[int, ...]],
    rng: random.Random,
) -> Problem:
    """Ratings for all names, the best one's 1, and three values that know more or less of them."""
    parts: dict[tuple[str, ...], float] = {}
    ratings = []
    for name in names:
        words = tuple(name.split())
        drawn = [parts.setdefault(words[: i + 1], rng.random()) for i in range(3)]
        ratings.append(sum(weight * part for weight, part in zip(WEIGHTS, drawn, strict=True)))
    best = max(ratings)
    values = {ids: rating / best for ids, rating in zip(sequences, ratings, strict=True)}
    highest: dict[tuple[int, ...], float] = {}
    first: dict[tuple[int, ...], float] = {}
    for name, ids in zip(names, sequences, strict=True):
        known = (WEIGHTS[0] * parts[(name.split()[0],)] + sum(WEIGHTS[1:])) / best
        for length in range(len(ids) + 1):
            prefix = ids[:length]
            highest[prefix] = max(highest.get(prefix, 0.0), values[ids])
            first[prefix] = max(first.get(prefix, 0.0), known)
    noisy: dict[tuple[int, ...], float] = {}
    for prefix in sorted(highest, key=len):
        guess = highest[prefix] + NOISE * rng.random()
        noisy[prefix] = min(guess, noisy[prefix[:-1]]) if prefix else guess
    bounds: dict[str, Bound] = {
        "first words": lambda ids: first[tuple(ids)],
        "noisy": lambda ids: noisy[tuple(ids)],
        "index": lambda ids: highest[tuple(ids)],
    }
    return Problem(memory, constraint, lambda ids: values[tuple(ids)], bounds)


def a_star(
    problem: Problem,
    value: str,
    budget: int,
    power: float = POWER,
    temperature: float = TEMPERATURE,
) -> Outcome:
    """``best_first`` with a value; it goes on until the budget is spent, or a text has reward 1."""
    found = Outcome(0)
    bound = problem.bounds[value]

    class SolvedError(Exception):
        pass

    def reward(ids: list[int]) -> float:
        found.rewards[tuple(ids)] = problem.reward(ids)
        if found.rewards[tuple(ids)] == 1.0:
            raise SolvedError
        return float(found.rewards[tuple(ids)] ** power)

    def sharpened(prefixes: Sequence[Sequence[int]]) -> Any:
        return torch.log_softmax(torch.from_numpy(problem.memory(prefixes)) / temperature, dim=-1).numpy()

    model = CallableModel(sharpened, problem.memory.size, problem.memory.end)
    with contextlib.suppress(SolvedError):
        best_first(
            model,
            problem.constraint,
            n=10**6,
            reward=reward,
            bound=lambda ids: bound(ids) ** power,
            max_tokens=SUM_TOKENS,
            max_nodes=budget,
            batch=1,
        )
    found.calls = model.rows
    return found


def by_strategy(problem: Problem, strategy: Strategy, budget: int, seed: int) -> Outcome:
    found = search(
        problem.memory.model,
        strategy,
        {"grammar": problem.constraint},
        problem.reward,
        budget=budget,
        seed=seed,
    )
    return Outcome(found.calls, found.rewards)


def methods(kind: str, budget: int, tuned: Strategy | None) -> dict[str, Strategy | str]:
    """What is compared: strategies, and A* by what its value knows.  Beams are as wide as the budget lasts."""
    width = budget // SUM_TOKENS if kind == "sums" else (budget - 11) // 2
    listed: dict[str, Strategy | str] = {
        "greedy": Strategy("greedy", max_tokens=SUM_TOKENS),
        "beam": Strategy("beam", width=width, max_tokens=SUM_TOKENS),
        "best of n": Strategy("sample", max_tokens=SUM_TOKENS),
        "best of n, cooler": Strategy("sample", temperature=0.5, max_tokens=SUM_TOKENS),
        "particles": Strategy("smc", width=4, max_tokens=SUM_TOKENS),
        "particles, cooler": Strategy("smc", width=4, temperature=0.5, max_tokens=SUM_TOKENS),
        "tree": Strategy("mcts", max_tokens=SUM_TOKENS),
        "best first": Strategy("best_first", max_tokens=SUM_TOKENS),
        "best first, cooler": Strategy("best_first", temperature=TEMPERATURE, max_tokens=SUM_TOKENS),
    }
    if kind == "sums":
        listed["tree, cooler"] = Strategy("mcts", temperature=TEMPERATURE, max_tokens=SUM_TOKENS)
    else:
        for exploration in (1.0, 1.5):
            listed[f"tree, {exploration}"] = Strategy(
                "mcts", temperature=FLAT, exploration=exploration, max_tokens=SUM_TOKENS
            )
    for value in ["arithmetic"] if kind == "sums" else ["first words", "noisy", "index"]:
        listed[f"A*, {value}"] = value
    if tuned is not None:
        listed["tuned"] = tuned
    return listed


def measure(
    kind: str, problems: Iterable[Problem], listed: dict[str, Strategy | str], budget: int, minutes: float
) -> dict[str, Any]:
    """Figures of each method over tasks, paired differences to best of n and to particles.  After ``minutes`` no task is begun."""
    outcomes: dict[str, list[Outcome]] = {name: [] for name in listed}
    words: dict[str, list[int]] = {name: [] for name in listed}
    started = time.perf_counter()
    for seed, problem in enumerate(problems):
        if time.perf_counter() - started > 60 * minutes:
            break
        for name, method in listed.items():
            if isinstance(method, Strategy):
                found = by_strategy(problem, method, budget, seed)
            else:
                found = a_star(problem, method, budget)
            outcomes[name].append(found)
            ten = sorted(found.rewards, key=lambda ids: -found.rewards[ids])[:10]
            words[name].append(len({problem.memory.decode(ids).split()[0] for ids in ten}))
        rewards = {name: round(each[-1].reward, 3) for name, each in outcomes.items()}
        print(kind, seed, f"{time.perf_counter() - started:.0f} s", rewards, flush=True)
    table: dict[str, Any] = {}
    for name, found in outcomes.items():
        rewards = np.array([each.reward for each in found])
        tens = [sum(sorted(each.rewards.values(), reverse=True)[:10]) / 10 for each in found]
        row = {
            "reward": interval(rewards),
            "solved": int((rewards == 1).sum()),
            "calls": round(float(np.mean([each.calls for each in found])), 1),
            "different texts": round(float(np.mean([len(each.rewards) for each in found])), 1),
            "best ten": interval(np.array(tens)),
        }
        if kind == "items":
            row["first words of the best ten"] = round(float(np.mean(words[name])), 2)
        for other in ("best of n", "best of n, cooler", "particles", "best first, cooler", "A*, arithmetic"):
            if name != other and other in outcomes:
                row[f"reward less {other}"] = interval(rewards - [each.reward for each in outcomes[other]])
        table[name] = {**row, "rewards": np.round(rewards, 4).tolist()}
        print(f"{kind}, {name}:", row, flush=True)
    return {"tasks": len(rewards), "budget": budget, "methods": table}


def interval(values: Any) -> dict[str, float]:
    """A mean, and the 95 % interval of its bootstrap over tasks."""
    return {name: round(value, 4) for name, value in asdict(paired_interval(values)).items()}


def tuning(
    model: Any, tokenizer: Any, goals: list[int], folder: Path | None, budget: int, calls: int, save: Path
) -> dict[str, Any]:
    """Tune on sums and keep the strategy as a file."""
    problems = list(sums(model, tokenizer, goals, folder))
    tasks = [Task(each.memory.model, {"grammar": each.constraint}, each.reward) for each in problems]
    tuned = tune(tasks, budget=budget, calls=calls, max_tokens=SUM_TOKENS, seed=0)
    tuned.strategy.save(save)
    trials = []
    for trial in tuned.trials:
        strategy = {
            name: getattr(trial.strategy, name) for name in ("method", *PARAMETERS[trial.strategy.method])
        }
        trials.append(
            {**strategy, "reward": round(trial.reward, 4), "calls": trial.calls, "tasks": trial.tasks}
        )
        print(trials[-1], flush=True)
    for problem in problems:
        problem.memory.save()
    return {
        "tasks": len(goals),
        "budget": budget,
        "calls a task": calls,
        "trials": trials,
        "file": save.read_text(),
    }


PARAMETERS: dict[str, tuple[str, ...]] = {
    "greedy": (),
    "sample": ("temperature",),
    "beam": ("temperature", "width"),
    "best_first": ("temperature",),
    "mcts": ("temperature", "exploration"),
    "smc": ("temperature", "width", "power"),
}


def write(path: Path | None, part: str, result: dict[str, Any]) -> None:
    """One part of a file of results, the others as they are."""
    if path is None:
        return
    machine = {
        "architecture": platform.machine(),
        "python": platform.python_version(),
        "versions": {name: version(name) for name in ("torch", "transformers", "optuna")},
    }
    known = json.loads(path.read_text("utf-8")) if path.exists() else {}
    known = {"date": time.strftime("%Y-%m-%d"), "machine": machine, **known, part: result}
    # One line for each list of rewards.
    text = re.sub(r"\[[^\][{}]*\]", lambda found: re.sub(r"\s+", " ", found[0]), json.dumps(known, indent=1))
    path.write_text(text + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("tune", "sums", "items"))
    parser.add_argument("--tasks", type=int, default=24)
    parser.add_argument("--budget", type=int, default=100, help="model calls a task")
    parser.add_argument("--minutes", type=float, default=1000, help="begin no task later")
    parser.add_argument("--training", type=int, default=18, help="tasks to tune on")
    parser.add_argument("--tuning-budget", type=int, default=12000, help="model calls in all trials")
    parser.add_argument(
        "--save", type=Path, default=Path("strategy.toml"), help="where the tuned strategy goes"
    )
    parser.add_argument("--strategy", type=Path, help="a tuned strategy, one more row")
    parser.add_argument("--memory", type=Path, help="a folder where what the model says is kept")
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    name = default_model()
    model = AutoModelForCausalLM.from_pretrained(name).eval()
    tokenizer = AutoTokenizer.from_pretrained(name)
    test, training = goals_of(args.tasks, args.training)
    if args.part == "tune":
        result = tuning(model, tokenizer, training, args.memory, args.tuning_budget, args.budget, args.save)
    else:
        tuned = Strategy.load(args.strategy) if args.strategy else None
        listed = methods(args.part, args.budget, tuned)
        if args.part == "sums":
            problems = sums(model, tokenizer, test, args.memory)
        else:
            problems = items(model, tokenizer, args.tasks, 0, args.memory)
        result = measure(args.part, problems, listed, args.budget, args.minutes)
    write(args.out, args.part, result)


if __name__ == "__main__":
    main()
