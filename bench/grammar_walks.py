"""Random walks over shipped grammars, judged by what reads the language anyway: ``ast`` for Python, sqlite3 for SQL.

    python bench/grammar_walks.py [--walks 1000] [--grammars python,sql] [--steps 60] [--seed 3]

A walk draws bytes from the mask, mostly printable ones, for a random number of steps, and ends with the shortest completion.
Prints each text that is refused.  In SQL, tables and columns that are not there are no question of grammar.
"""

from __future__ import annotations

import argparse
import ast
import random
import sqlite3
import sys
import time
import warnings
from collections.abc import Callable

import numpy as np

import maskwright as mw
from maskwright.check.grammars import compile_for_bytes
from maskwright.compiling.shipped import shipped_grammar

LIMITS = mw.Limits(max_seconds=600.0, max_lexer_states=10_000_000, max_parser_states=100_000_000)

_OTHERS = 0.05
"""How often any byte is drawn."""


def walk(compiled: mw.CompiledGrammar, rng: random.Random, steps: int) -> str:
    matcher = compiled.matcher()
    mask = mw.allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
    text = b""
    for _ in range(rng.randrange(1, steps)):
        matcher.fill_next_token_bitmask(mask)
        allowed = np.flatnonzero(np.unpackbits(mask[0].view(np.uint8), bitorder="little")[:256]).tolist()
        if not allowed:
            break
        letters = [byte for byte in allowed if 32 <= byte < 127 or byte == 10]
        # Others, too: letters of other scripts are where readers differ.
        text += bytes([rng.choice(letters if letters and rng.random() > _OTHERS else allowed)])
        assert matcher.accept_bytes(text[-1:])
    return (text + matcher.shortest_completion_bytes()).decode()


def judge_python(text: str) -> str | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError) as error:
        return str(error)
    return None


def judge_sql(text: str) -> str | None:
    with sqlite3.connect(":memory:") as connection:
        try:
            connection.execute(text)
        except sqlite3.Error as error:
            if "syntax error" in str(error) or "unrecognized" in str(error):
                return str(error)
    return None


JUDGES: dict[str, Callable[[str], str | None]] = {"python": judge_python, "sql": judge_sql}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--walks", type=int, default=1000)
    parser.add_argument("--grammars", default=",".join(JUDGES))
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    problems = 0
    for name in args.grammars.split(","):
        compiled = compile_for_bytes(shipped_grammar(name), LIMITS)[1]
        started = time.perf_counter()
        refused = 0
        for number in range(args.walks):
            text = walk(compiled, random.Random(f"{args.seed} {name} {number}"), args.steps)
            problem = JUDGES[name](text)
            if problem is not None:
                refused += 1
                print(f"{name} {number}: {text!r}: {problem}", flush=True)
        problems += refused
        seconds = time.perf_counter() - started
        print(f"{name}: {args.walks - refused} of {args.walks} walks accepted, {seconds:.0f} s", flush=True)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
