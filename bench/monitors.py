"""Do statements of SmolLM2-135M-Instruct prepare, with and without the monitor ``SqlNames``?  Both under the shipped SQL grammar.

    python bench/monitors.py [--tasks 20] [--particles 4] [--out FILE]

Questions are those of bench/quality_programs.py; the model sees the tables and one answered question of another database, so that it knows
the form and no name.  ``smc`` writes particles for each; SQLite judges those that ended within the budget.  Monitor-guided decoding (Agrawal et al.,
NeurIPS 2023) counts the same for Java: programs that compile, with the monitor and without.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import torch
from quality_programs import QUESTIONS, TABLES, create_table, database

import maskwright as mw
from maskwright.sampling import Constraint, GrammarConstraint, HuggingFaceModel, SqlNames, smc

MAX_TOKENS = 32


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


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=20)
    parser.add_argument("--particles", type=int, default=4)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)  # a model this small waits for a second thread longer than it helps
    generator = mw.Generator.from_pretrained()
    model = HuggingFaceModel(generator.model, generator.tokenizer, "SELECT")
    grammar = GrammarConstraint(mw.compile(mw.shipped_grammar("sql"), model.vocabulary))
    counts = {
        name: {"finished": 0, "prepared": 0, "tasks_answered": 0, "tasks_prepared": 0, "seconds": 0.0}
        for name in ("grammar", "grammar * SqlNames")
    }
    for number, (domain, messages) in enumerate(drawn(args.tasks)):
        prompt = generator.tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
        model.set_prompt(prompt)
        with closing(database(TABLES[domain], random.Random(0))) as connection:
            for name, count in counts.items():
                constraint: Constraint = grammar
                if name != "grammar":
                    constraint = grammar * SqlNames(model.vocabulary, connection)
                began = time.perf_counter()
                post = smc(model, constraint, args.particles, max_tokens=MAX_TOKENS, seed=number)
                count["seconds"] += time.perf_counter() - began
                ended = np.isfinite(post.log_weights) & post.is_complete
                texts = [model.decode(ids) for ids in post.sequences]
                right = [prepares(connection, text) for text in texts]
                count["finished"] += int(ended.sum())
                count["prepared"] += int((ended & right).sum())
                if ended.any():
                    best = int(np.argmax(np.where(ended, post.log_weights, -np.inf)))
                    count["tasks_answered"] += 1
                    count["tasks_prepared"] += right[best]
                    print(f"{name}: {texts[best]!r} {right[best]}", flush=True)
    rows = {
        name: {**count, "share": round(count["prepared"] / max(1, count["finished"]), 3)}
        for name, count in counts.items()
    }
    for name, row in rows.items():
        print(name, row)
    if args.out:
        given = {"tasks": args.tasks, "particles": args.particles, "max_tokens": MAX_TOKENS, "rows": rows}
        args.out.write_text(json.dumps(given, indent=1) + "\n")


if __name__ == "__main__":
    main()
