"""Do statements of SmolLM2-135M-Instruct prepare: under the shipped SQL grammar alone, with the monitor ``SqlNames``, and in sessions?

    python bench/monitors.py [--tasks 20] [--texts 4] [--out FILE]

Questions are those of bench/quality_programs.py; the model sees the tables and one answered question of another database, so that it knows
the form and no name.  ``smc`` writes the texts of a question as particles; sessions write them one after another, and take back names that the
database does not have, as IterGen does (Ugare et al., ICLR 2025).  SQLite judges those that ended within the budget.  Monitor-guided decoding
(Agrawal et al., NeurIPS 2023) counts the same for Java: programs that compile, with the monitor and without.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from quality_programs import QUESTIONS, TABLES, create_table, database

import maskwright as mw
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.sampling import Constraint, GrammarConstraint, HuggingFaceModel, SqlNames, smc
from maskwright.search import Session

MAX_TOKENS = 32
PENALTY = 1.0
RETRIES = 20
"""How often a session takes a name back before it leaves the text as it is."""


def drawn(count: int, seed: int = 5) -> list[tuple[str, list[dict[str, str]]]]:
    """(database, messages) of each task."""
    r = random.Random(seed)
    found = []
    for _ in range(count):
        domain, other = r.sample(sorted(TABLES), 2)
        shown, answer = r.choice(QUESTIONS[other])(r)
        question, _ = r.choice(QUESTIONS[domain])(r)
        found.append(
            (
                domain,
                [
                    {"role": "system", "content": "Answer each question with one SQLite query."},
                    {"role": "user", "content": asked(other, shown)},
                    {"role": "assistant", "content": answer.rstrip(";")},
                    {"role": "user", "content": asked(domain, question)},
                ],
            )
        )
    return found


def asked(domain: str, question: str) -> str:
    created = "\n".join(create_table(name, columns) for name, columns in TABLES[domain].items())
    return f"{created}\n{question}"


def prepares(connection: sqlite3.Connection, text: str) -> bool:
    """SQLite's own word, asked without the monitor."""
    try:
        connection.execute(f"EXPLAIN {text}").close()
    except sqlite3.Error:
        return False
    return True


@dataclass
class Row:
    """What one way of writing came to, over all questions."""

    texts: int = 0
    ended: int = 0
    prepared: int = 0
    questions_answered: int = 0
    questions_prepared: int = 0
    taken_back: int = 0
    seconds: float = 0.0

    def add(self, written: Sequence[Written], connection: sqlite3.Connection) -> str | None:
        """Count the texts of one question; the likeliest one that ended."""
        self.texts += len(written)
        ended = [each for each in written if each.weight > -np.inf]
        self.ended += len(ended)
        self.prepared += sum(prepares(connection, each.text) for each in ended)
        self.taken_back += sum(each.taken_back for each in written)
        if not ended:
            return None
        best = max(ended, key=lambda each: each.weight).text
        self.questions_answered += 1
        self.questions_prepared += prepares(connection, best)
        return best


class Written(NamedTuple):
    """A text; its log-weight, -inf where it did not end within the budget; how often something was taken back on the way."""

    text: str
    weight: float
    taken_back: int = 0


def particles(model: HuggingFaceModel, constraint: Constraint, texts: int, seed: int) -> list[Written]:
    post = smc(model, constraint, texts, max_tokens=MAX_TOKENS, seed=seed)
    weights = np.where(post.is_complete, post.log_weights, -np.inf)
    return [Written(model.decode(ids), float(w)) for ids, w in zip(post.sequences, weights, strict=True)]


def sessions(
    model: HuggingFaceModel, grammar: CompiledGrammar, known: set[str] | None, texts: int, seed: int
) -> list[Written]:
    """One after another.  ``known``: the names of the database, in lower case; one that is not among them is taken back."""
    found = []
    for i in range(texts):
        session = Session(
            model, grammar, symbols=["name"], penalty=PENALTY, max_tokens=MAX_TOKENS, seed=seed * texts + i
        )
        taken_back = 0
        while not session.finished:
            session.forward("name")
            if known is None or taken_back == RETRIES:
                continue
            if any(name.strip('"`[]').lower() not in known for name in session.view("name")[-1:]):
                session.backward("name")
                taken_back += 1
        found.append(Written(session.text, session.log_probability, taken_back))
    return found


def ways_to_write(
    model: HuggingFaceModel, compiled: CompiledGrammar, connection: sqlite3.Connection, known: set[str]
) -> dict[str, Callable[[int, int], list[Written]]]:
    """By name: from a number of texts and a seed to the texts."""
    grammar = GrammarConstraint(compiled)
    monitored = grammar * SqlNames(model.vocabulary, connection)
    return {
        "grammar": partial(particles, model, grammar),
        "grammar * SqlNames": partial(particles, model, monitored),
        "session": partial(sessions, model, compiled, None),
        "session, names taken back": partial(sessions, model, compiled, known),
    }


def report(rows: Mapping[str, Any], args: argparse.Namespace, max_tokens: int) -> None:
    """Print the rows, which are dataclasses, and write them with what was asked for to ``args.out``."""
    for name, row in rows.items():
        print(name, row)
    if args.out:
        given = {"tasks": args.tasks, "texts": args.texts, "max_tokens": max_tokens}
        record = {**given, "rows": {name: asdict(row) for name, row in rows.items()}}
        args.out.write_text(json.dumps(record, indent=1) + "\n")


def names_of(tables: dict[str, Any]) -> set[str]:
    return {name.lower() for table, columns in tables.items() for name in (table, *columns)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)  # a model this small waits for a second thread longer than it helps
    generator = mw.Generator.from_pretrained()
    model = HuggingFaceModel(generator.model, generator.tokenizer, "SELECT")
    compiled = mw.compile(mw.shipped_grammar("sql"), model.vocabulary)
    rows: dict[str, Row] = defaultdict(Row)
    for number, (domain, messages) in enumerate(drawn(args.tasks)):
        prompt = generator.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        model.set_prompt(prompt)
        with closing(database(TABLES[domain], random.Random(0))) as connection:
            ways = ways_to_write(model, compiled, connection, names_of(TABLES[domain]))
            for name, write in ways.items():
                began = time.perf_counter()
                written = write(args.texts, number)
                rows[name].seconds += time.perf_counter() - began
                print(f"{name}: {rows[name].add(written, connection)!r}", flush=True)
    report(rows, args, MAX_TOKENS)


if __name__ == "__main__":
    main()
