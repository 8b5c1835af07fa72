"""Token sequences as a constraint: masks, budgets and searches, against the list of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.sampling import CallableModel, TrieConstraint, smc
from maskwright.search import Strategy, best_first, search

ITEMS = [[0], [0, 1], [0, 1, 2, 3], [2, 2, 2], [3, 0], [3, 1], [3, 1, 1, 1, 1]]
NEXT = np.random.default_rng(4).dirichlet(np.ones(5), size=6)


def model() -> CallableModel:
    return CallableModel(lambda prefixes: np.log([NEXT[ids[-1] if ids else 5] for ids in prefixes]), 5, 4)


def log_p(ids: list[int]) -> float:
    return sum(math.log(NEXT[a, b]) for a, b in zip([5, *ids], [*ids, 4], strict=True))


def test_masks_and_what_is_needed_are_those_of_the_list() -> None:
    constraint = TrieConstraint(mw.TokenTrie(ITEMS, 5, [4]))
    prefixes = {tuple(item[:end]) for item in ITEMS for end in range(len(item) + 1)}
    for prefix in prefixes:
        state = constraint.start()
        for token in prefix:
            state = constraint.advance(state, token)
        behind = [item for item in ITEMS if tuple(item[: len(prefix)]) == prefix]
        allowed = {item[len(prefix)] if len(item) > len(prefix) else 4 for item in behind}
        assert int(constraint.masks([state])[0, 0]) == sum(1 << token for token in allowed)
        assert constraint.needed(state) == min(map(len, behind)) - len(prefix)
        assert constraint.complete(prefix) == (list(prefix) in ITEMS) and constraint.prefix(prefix)
    assert not constraint.prefix([1]) and not constraint.prefix([0, 0])
    with pytest.raises(mw.MaskwrightError, match="not allowed"):
        constraint.advance(0, 1)
    for size, ends in ((6, [4]), (5, [3])):
        with pytest.raises(mw.VocabularyError, match="ends with"):
            constraint.bind(size, ends)


def test_samples_and_searches_are_of_the_items() -> None:
    constraint = TrieConstraint(mw.TokenTrie(ITEMS, 5, [4]))
    post = smc(model(), constraint, 4000, max_tokens=6, seed=0)
    total = sum(math.exp(log_p(item)) for item in ITEMS)
    assert math.exp(post.log_evidence) == pytest.approx(total, rel=0.1)
    found = best_first(model(), constraint, n=20, max_tokens=6)
    assert [each.ids for each in found.found] == sorted(ITEMS, key=log_p, reverse=True)
    ratings = {tuple(item): (i + 1) / 8 for i, item in enumerate(ITEMS)}
    best = search(
        model(), Strategy("mcts", max_tokens=6, constraints=("items",)), {"items": constraint}, lambda ids: ratings[tuple(ids)],
        budget=200, seed=0,
    )  # fmt: skip
    assert best.ids == ITEMS[-1] and len(best.rewards) == len(ITEMS)


@pytest.mark.parametrize("trie", ["a", None, ITEMS])
def test_what_is_no_trie(trie: Any) -> None:
    with pytest.raises(mw.MaskwrightError, match="trie: expected TokenTrie"):
        TrieConstraint(trie)


def _no_end_within(self: Any, states: Any) -> Any:
    bitmask = RIGHT_MASKS(self, states)
    for row, state in enumerate(states):
        if len(self.trie.children(state)):
            bitmask[row] &= ~(1 << 4)
    return bitmask


RIGHT_MASKS = TrieConstraint.masks


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("masks", _no_end_within),
        ("needed", lambda self, state: 0),
        ("needed", lambda self, state: 3),
        ("advance", lambda self, state, token: max(self.trie.next(state, token), 0)),
    ],
)
def test_wrong_tries_are_caught(name: str, wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrieConstraint, name, wrong)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        test_masks_and_what_is_needed_are_those_of_the_list()


@pytest.mark.parametrize("name", ["masks", "advance"])
def test_searches_of_wrong_tries_are_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mask that ends no item early; a walk that stays where it is."""
    wrong: Any = _no_end_within if name == "masks" else lambda self, state, token: 0
    monkeypatch.setattr(TrieConstraint, name, wrong)
    with pytest.raises((AssertionError, KeyError)):
        test_samples_and_searches_are_of_the_items()
