"""Constraints as parts of a strategy: which of a grammar, names of a database, tests and a wrong one are used, SQLite says."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright.sampling import CallableModel, GrammarConstraint, Predicate, SqlNames
from maskwright.search import Strategy, Task, search, tune, tuning

pytest.importorskip("optuna", reason="the optional extra tune is not installed")

WORDS = ["name", "city", "label", "price", "size", "shop", "item", "stock"]
TOKENS = [*(word.encode() for word in WORDS), b"select ", b" from ", b" where ", b">", b"1", b"2", b""]
EOS = len(TOKENS) - 1
VOCABULARY = mw.Vocabulary.from_bytes(TOKENS, eos_ids=EOS)
GRAMMAR = """
    start: "select " NAME " from " NAME (" where " NAME ">" NUMBER)?
    NAME: /name|city|label|price|size|shop|item|stock/
    NUMBER: /[12]/
"""
ASKED = [
    "select name from shop where size>1",
    "select label from item where price>2",
    "select city from shop where size>2",
    "select price from item where price>1",
    "select city from shop where size>1",
    "select size from shop where size>2",
]
CALLS = 150
HELD_OUT = [
    "select label from item where price>1",
    "select name from shop where size>2",
    "select price from item where price>2",
]


def model() -> CallableModel:
    """It knows SQL a little, and nothing of the database."""

    p = np.ones(len(TOKENS))
    p[TOKENS.index(b" where ")] = 2
    row = np.log(p / p.sum())
    return CallableModel(lambda prefixes: np.tile(row, (len(prefixes), 1)), len(TOKENS), EOS)


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(
            "create table shop(name, city, size); create table item(label, price);"
            "insert into shop values ('Nile', 'Cairo', 1), ('Arno', 'Pisa', 2), ('Ebro', 'Tudela', 3);"
            "insert into item values ('cup', 1), ('lamp', 2), ('chair', 3);"
        )
        yield connection


def constraints_of(database: sqlite3.Connection) -> dict[str, Any]:
    def runs(ids: list[int]) -> bool:
        try:
            return bool(database.execute(VOCABULARY.decode(ids).decode()).fetchall())
        except sqlite3.Error:
            return False

    return {
        "grammar": GrammarConstraint(mw.compile_lark(GRAMMAR, VOCABULARY)),
        "names": SqlNames(VOCABULARY, database),
        "runs": Predicate(complete=runs, prefix=lambda ids: True),
        "no condition": Predicate(lambda ids: TOKENS.index(b" where ") not in ids),
    }


def task(database: sqlite3.Connection, asked: str, constraints: dict[str, Any]) -> Task:
    expected = database.execute(asked).fetchall()

    def reward(ids: list[int]) -> float:
        """1 for the rows that were asked for, less for others, 0 for what SQLite does not run."""
        try:
            found = database.execute(VOCABULARY.decode(ids).decode()).fetchall()
        except sqlite3.Error:
            return 0.0
        return 1.0 if found == expected else 0.3 * len({*found} & {*expected}) / len({*found} | {*expected})

    return Task(model(), constraints, reward)


def mean(tasks: list[Task], used: tuple[str, ...]) -> float:
    strategy = Strategy("mcts", max_tokens=9, constraints=used)
    return float(
        np.mean(
            [
                search(each.model, strategy, each.constraints, each.reward, budget=CALLS, seed=seed).reward
                for each in tasks
                for seed in range(3)
            ]
        )
    )


def check_what_tuning_chooses(database: sqlite3.Connection) -> None:
    constraints = constraints_of(database)
    tasks = [task(database, asked, constraints) for asked in ASKED * 2]
    tuned = tune(tasks, budget=5000, calls=CALLS, methods=("mcts",), max_tokens=9, seed=0)
    used = tuned.strategy.constraints
    assert used[0] == "grammar" and "names" in used and "no condition" not in used
    # Other questions, with the same method: what is gained is the constraints' part.
    others = [task(database, asked, constraints) for asked in HELD_OUT]
    assert mean(others, used) > 0.9 > 0.5 > mean(others, ("grammar",))
    assert mean(others, ("grammar", "names", "no condition")) < 0.5


@pytest.mark.slow
def test_tuning_chooses_names_of_a_database_and_no_wrong_constraint(database: sqlite3.Connection) -> None:
    check_what_tuning_chooses(database)


def _always(used: bool) -> Any:
    right = tuning._suggested

    def wrong(asked: Any, methods: Any, required: Any, optional: Any, *more: Any) -> Strategy:
        return right(asked, methods, (*required, *optional) if used else required, (), *more)

    return wrong


@pytest.mark.slow
@pytest.mark.parametrize("used", [True, False])
def test_constraints_that_are_not_chosen_are_noticed(
    used: bool, database: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tuning, "_suggested", _always(used))
    with pytest.raises(AssertionError):
        check_what_tuning_chooses(database)
