"""Value-guided search beside best-of-n and particles, at equal numbers of model calls, on the default model.

    PYTHONPATH=src python bench/search_strategies.py --tasks 8 --budget 150

Two kinds of tasks.  *Sums*: write a sum of small numbers and products that has a given value; the reward is 1 for the value, and falls with the
distance (PG-TD: executed candidates are the reward of the tree; A*-decoding: prefixes in the order of their probability).  *Items*: of 400 names in
a ``TokenTrie``, find the one of highest rating, which names with equal first words have in common (V-STAR: values along the trie).
"""

from __future__ import annotations

import argparse
import random
from typing import Any

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

import maskwright as mw
from maskwright.generation.default_model import default_model
from maskwright.sampling import GrammarConstraint, HuggingFaceModel, TrieConstraint
from maskwright.search import Strategy, search

SUM = r"""
    start: term (SIGN term)~1..2
    term: NUMBER ("*" NUMBER)?
    SIGN: "+" | "-"
    NUMBER: /[1-9][0-9]?/
"""
STRATEGIES = {
    "greedy": Strategy("greedy", max_tokens=12),
    "beam": Strategy("beam", width=4, max_tokens=12),
    "best first": Strategy("best_first", width=1000, max_tokens=12),
    "best of n": Strategy("sample", max_tokens=12),
    "particles": Strategy("smc", width=4, max_tokens=12),
    "tree": Strategy("mcts", max_tokens=12),
}
ADJECTIVES = [
    "red",
    "blue",
    "green",
    "small",
    "large",
    "old",
    "new",
    "cheap",
    "fine",
    "strong",
    "light",
    "dark",
    "soft",
    "hard",
    "warm",
    "cold",
    "plain",
    "bright",
    "smooth",
    "heavy",
]
NOUNS = [
    "chair",
    "table",
    "lamp",
    "bowl",
    "knife",
    "cup",
    "shelf",
    "clock",
    "mirror",
    "basket",
    "pillow",
    "blanket",
    "vase",
    "rug",
    "candle",
    "kettle",
    "spoon",
    "plate",
    "jar",
    "box",
]


def sums(model: Any, tokenizer: Any, rng: random.Random, count: int) -> list[tuple[Any, Any, Any]]:
    """(model, constraint, reward) of tasks to write a sum of a value."""
    found = []
    for _ in range(count):
        goal = rng.randint(20, 150)
        source = HuggingFaceModel(
            model, tokenizer, f"12*3+7 = 43\n9*9-20+5 = 66\nWrite {goal} as a sum: {goal} = "
        )
        constraint = GrammarConstraint(mw.compile_lark(SUM, source.vocabulary))

        def reward(ids: list[int], source: Any = source, goal: int = goal) -> float:
            # The text is of the grammar above, so it is digits and signs.
            distance = abs(eval(source.decode(ids), {"__builtins__": {}}) - goal)
            return 1.0 if not distance else 0.9 / (1 + distance / 10)

        found.append((source, constraint, reward))
    return found


def items(model: Any, tokenizer: Any, rng: random.Random, count: int) -> list[tuple[Any, Any, Any]]:
    """(model, constraint, reward) of tasks to find the item of highest rating."""
    names = [f" {adjective} {noun}" for adjective in ADJECTIVES for noun in NOUNS]
    found = []
    for _ in range(count):
        source = HuggingFaceModel(model, tokenizer, "The customer bought the")
        sequences = [tokenizer.encode(name, add_special_tokens=False) for name in names]
        trie = mw.TokenTrie(sequences, source.vocab_size, source.eos_ids)
        first = {word: rng.random() for word in ADJECTIVES}
        second = {word: rng.random() for word in NOUNS}
        ratings = {name: 0.7 * first[name.split()[0]] + 0.25 * second[name.split()[1]] for name in names}
        best = max(ratings.values())
        constraint = TrieConstraint(trie)
        values = {tuple(ids): ratings[name] / best for ids, name in zip(sequences, names, strict=True)}
        found.append((source, constraint, lambda ids, values=values: values[tuple(ids)]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--budget", type=int, default=150)
    parser.add_argument("--kinds", nargs="+", choices=("sums", "items"), default=["sums", "items"])
    parser.add_argument("--methods", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    args = parser.parse_args()
    torch.set_num_threads(1)
    name = default_model()
    model = AutoModelForCausalLM.from_pretrained(name).eval()
    tokenizer = AutoTokenizer.from_pretrained(name)
    for kind in args.kinds:
        tasks = {"sums": sums, "items": items}[kind](model, tokenizer, random.Random(0), args.tasks)
        for method in args.methods:
            found = [
                search(
                    source, STRATEGIES[method], {"grammar": constraint}, reward, budget=args.budget, seed=i
                )
                for i, (source, constraint, reward) in enumerate(tasks)
            ]
            print(
                f"{kind}, {method}: reward {np.mean([each.reward for each in found]):.3f}, "
                f"solved {sum(each.reward == 1.0 for each in found)} of {len(found)}, "
                f"calls {np.mean([each.calls for each in found]):.0f}, "
                f"different texts {np.mean([len(each.rewards) for each in found]):.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
