"""Models and constraints for ``sampling.py``: small ones that can be listed, and the tiny model's tasks."""

from __future__ import annotations

import itertools
import sqlite3
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import maskwright as mw
from maskwright.demo import format_prompt
from maskwright.sampling import (
    CallableModel,
    Constraint,
    GrammarConstraint,
    HuggingFaceModel,
    Predicate,
    SqlNames,
)

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from tiny_model import REQUESTS

Texts = dict[tuple[int, ...], float]

# --- models whose texts can be listed


def enumerate_target(model: CallableModel, constraint: Constraint, max_tokens: int) -> Texts:
    """Every good text that ends in time, with its probability."""
    found: Texts = {}
    level: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    for _ in range(max_tokens):
        rows = np.exp(model.state([ids for ids, _ in level]).logprobs)
        following = []
        for (ids, p), row in zip(level, rows, strict=True):
            if constraint.complete(ids):
                found[ids] = p * float(sum(row[list(model.eos_ids)]))
            for v in np.flatnonzero(row):
                if v not in model.eos_ids and constraint.prefix((*ids, int(v))):
                    following.append(((*ids, int(v)), p * float(row[v])))
        level = following
        if not level:
            break
    return found


def binary_strings() -> tuple[CallableModel, Callable[[], Constraint], int]:
    """The example of grammar-aligned decoding: five bits, all zero or beginning with one.

    The model likes a leading zero, behind which all but one continuation is refused.
    """
    vocabulary_size, eos, length = 3, 2, 5

    def function(prefixes: list[list[int]]) -> np.ndarray:
        rows = np.array([[0.55, 0.43, 0.02] if len(ids) < length else [0.02, 0.02, 0.96] for ids in prefixes])
        return np.log(rows)

    def prefix(ids: Sequence[int]) -> bool:
        return len(ids) <= length and (not ids or ids[0] == 1 or not any(ids))

    def make() -> Constraint:
        return Predicate(prefix, lambda ids: len(ids) == length and prefix(ids))

    return CallableModel(function, vocabulary_size, eos), make, length + 1


def bracket_transformer() -> tuple[CallableModel, Callable[[], Constraint], int]:
    """A transformer with random weights over six tokens; texts have balanced brackets and no two equal tokens together."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=6,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    network = transformers.LlamaForCausalLM(config).eval()
    known: dict[tuple[int, ...], np.ndarray] = {}

    def function(prefixes: list[list[int]]) -> np.ndarray:
        new = [tuple(ids) for ids in prefixes if tuple(ids) not in known]
        for ids in dict.fromkeys(new):
            with torch.no_grad():
                logits = network(torch.tensor([[5, *ids]])).logits[0, -1].double()
            known[ids] = logits.log_softmax(-1).numpy()
        return np.array([known[tuple(ids)] for ids in prefixes])

    def prefix(ids: Sequence[int]) -> bool:
        depths = list(itertools.accumulate((t == 0) - (t == 1) for t in ids))
        return min(depths, default=0) >= 0 and all(a != b or a < 2 for a, b in itertools.pairwise(ids))

    def make() -> Constraint:
        return Predicate(prefix, lambda ids: prefix(ids) and ids.count(0) == ids.count(1))

    return CallableModel(function, 6, 5), make, 7


class Masked(Constraint):
    """Any constraint with exact masks, by asking about every token of a small vocabulary; remembers answers."""

    exact = True

    def __init__(self, inner: Constraint, vocab_size: int, eos_id: int) -> None:
        self._inner, self._size, self._eos = inner, vocab_size, eos_id
        self._known: dict[tuple[int, ...], int] = {}

    def start(self) -> tuple[int, ...]:
        return ()

    def advance(self, state: tuple[int, ...], token: int) -> tuple[int, ...]:
        return (*state, token)

    def masks(self, states: Sequence[tuple[int, ...]]) -> np.ndarray:
        return np.array([[self._bits(state)] for state in states], dtype=np.int32)

    def _bits(self, state: tuple[int, ...]) -> int:
        if state not in self._known:
            self._known[state] = sum(
                1 << v
                for v in range(self._size)
                if (self._inner.complete(state) if v == self._eos else self._inner.prefix((*state, v)))
            )
        return self._known[state]


# --- tasks


def ngram_model(texts: Sequence[str], backend: HuggingFaceModel) -> CallableModel:
    """A confident model: trigrams of the tiny model's tokens, mixed with shorter ones and 1 % of anything."""
    size, eos = backend.vocab_size, backend.eos_ids[0]
    counts: list[dict[tuple[int, ...], Counter[int]]] = [defaultdict(Counter) for _ in range(4)]
    for text in texts:
        ids = [*backend.tokenizer(text, add_special_tokens=False)["input_ids"], eos]
        for at, token in enumerate(ids):
            for order in range(4):
                if at >= order or order == 0:
                    counts[order][tuple(ids[at - order : at])][token] += 1

    def row(ids: tuple[int, ...]) -> np.ndarray:
        p = np.full(size, 1 / size)
        for order, share in ((0, 0.9), (1, 0.9), (2, 0.9), (3, 0.9)):
            found = counts[order].get(ids[len(ids) - order :] if order else ())
            if found and len(ids) >= order:
                best = np.zeros(size)
                best[list(found)] = list(found.values())
                p = (1 - share) * p + share * best / best.sum()
        return 0.99 * p + 0.01 / size

    return CallableModel(
        lambda prefixes: np.log([row(tuple(ids[-3:])) for ids in prefixes]), size, list(backend.eos_ids)
    )


def music_database() -> sqlite3.Connection:
    """Singers and concerts."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "create table singer (singer_id integer, name text, country text, age integer);"
        "create table stadium (stadium_id integer, location text, capacity integer);"
        "create table concert (concert_id integer, theme text, year integer, stadium_id integer);"
    )
    return connection


def sql_corpus(seed: int = 0) -> list[str]:
    """Queries as a model might write them: a fifth of them with names that the database does not have."""
    rng = np.random.default_rng(seed)
    tables = {
        "singer": ["singer_id", "name", "country", "age"],
        "stadium": ["stadium_id", "location", "capacity"],
        "concert": ["concert_id", "theme", "year", "stadium_id"],
    }
    invented = ["title", "genre", "id", "city", "artist", "venue", "price", "songs"]
    texts = []
    for _ in range(2000):
        table = str(rng.choice(list(tables)))
        names = [*tables[table], *(invented if rng.random() < 0.2 else [])]
        columns = ", ".join(rng.choice(names, size=rng.integers(1, 3)))
        text = f"select {columns} from {table}"
        if rng.random() < 0.5:
            text += f" where {rng.choice(names)} > {rng.integers(1, 3000)}"
        if rng.random() < 0.3:
            text += f" order by {rng.choice(names)} desc"
        texts.append(text)
    return texts


def smiles_corpus(seed: int = 0) -> list[str]:
    """Strings of chains, branches and rings; a tenth of them is broken somewhere."""
    rng = np.random.default_rng(seed)

    def chain(depth: int) -> str:
        text = ""
        for _ in range(rng.integers(1, 5)):
            text += str(rng.choice(["C", "C", "C", "N", "O", "c1ccccc1", "C1CCCC1", "Cl", "S"]))
            if depth and rng.random() < 0.3:
                text += "(" + str(rng.choice(["", "=", ""])) + chain(depth - 1) + ")"
            if rng.random() < 0.2:
                text += "="
        return text.rstrip("=") or "C"

    texts = []
    for _ in range(2000):
        text = chain(2)
        if rng.random() < 0.1:
            at = rng.integers(len(text))
            text = text[:at] + text[at + 1 :]
        texts.append(text)
    return texts


class BlackBox(GrammarConstraint):
    """A grammar that decides about single tokens, and says nothing of all."""

    exact = False
    measured = False

    def masks(self, states: Sequence[Any]) -> None:
        return None

    def needed(self, state: Any) -> int:
        return 0

    def check(self, states: Sequence[Any], tokens: Sequence[int]) -> np.ndarray:
        pairs = zip(states, tokens, strict=True)
        return np.array([self._allows(state, token) for state, token in pairs], dtype=bool)


def tasks(backend: HuggingFaceModel) -> dict[str, tuple[Any, Constraint, int]]:
    """name -> (model, constraint, token budget); the tiny model must be ``backend``.

    Grammars are black boxes here: a JSON Schema, the shipped grammars of SQL and SMILES.  Names of a database are one by
    nature, also behind the masks of the SQL grammar.
    """
    vocabulary = backend.vocabulary
    case = REQUESTS["person"]
    json_box = BlackBox(mw.compile_json_schema(case["schema"], vocabulary))
    sql = mw.compile(mw.shipped_grammar("sql"), vocabulary)
    smiles = BlackBox(mw.compile(mw.shipped_grammar("smiles"), vocabulary))
    names = SqlNames(vocabulary, music_database())
    prompted = {
        name: HuggingFaceModel(backend.model, backend.tokenizer, prompt)
        for name, prompt in {
            "json": format_prompt(case["request"], case["schema"]),
            "sql": "select name, age from singer where age > 20;\nselect theme from concert;\n",
            "smiles": "CCO\nc1ccccc1\nCC(=O)N\n",
        }.items()
    }
    confident_sql, confident_smiles = (
        ngram_model(corpus, backend) for corpus in (sql_corpus(), smiles_corpus())
    )
    return {
        "JSON, tiny model": (prompted["json"], json_box, 120),
        "SQL with schema, tiny model": (prompted["sql"], BlackBox(sql) * names, 40),
        "SMILES, tiny model": (prompted["smiles"], smiles, 40),
        "SQL with schema, confident model": (confident_sql, BlackBox(sql) * names, 40),
        "SQL masks and schema, confident model": (confident_sql, GrammarConstraint(sql) * names, 40),
        "SMILES, confident model": (confident_smiles, smiles, 40),
    }


def shared_masses() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """name -> (probabilities [V], whether each token is good [V]): what the variance of single draws is measured on."""
    tokens = np.arange(100_000)
    cases = {
        "100 000 equal ones": (np.ones(100_000), tokens % 100 == 0),
        "10 000 equal ones": (np.ones(10_000), tokens[:10_000] % 100 == 0),
        "1000 equal ones, half of them good": (np.ones(1000), tokens[:1000] % 2 == 0),
        "one of 0.9 that is bad, equal ones": (np.r_[0.9, np.full(1000, 1e-4)], tokens[:1001] % 100 == 1),
        "one of 0.2 that is good, equal ones": (np.r_[0.2, np.full(1000, 8e-4)], tokens[:1001] % 100 == 0),
        "Zipf over 2000, 3 % good": (1 / np.arange(1, 2001), tokens[:2000] % 33 == 20),
        "one good one of 0.01, equal bad ones": (np.r_[0.01, np.full(1000, 0.00099)], tokens[:1001] == 0),
        "0.95 good, 0.03 bad, 0.02 good": (np.array([0.95, 0.03, 0.02]), np.array([True, False, True])),
    }
    return {name: (p / p.sum(), good) for name, (p, good) in cases.items()}
