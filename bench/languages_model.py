"""Is what SmolLM2-135M-Instruct writes in a language read by what reads that language: free, and under the shipped grammar?

    python bench/languages_model.py [--languages python,javascript,...] [--tokens 160] [--out FILE]

Ten requests for each language, the likeliest token, at most ``--tokens`` tokens.  Of free text, the first fenced block counts, or all of it where there is none; a
text that was cut off by the budget counts as it is, as a caller would get it.  Judges are those of bench/languages.py; Python is read by ``ast``, SQL by
SQLite (``EXPLAIN`` without any table: names do not count), Markdown not at all, as every text is Markdown.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sqlite3
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import torch
from languages import JUDGES
from quality_programs import UNREAD

import maskwright as mw

TASKS = {
    "python": "a Python function that {}",
    "javascript": "a JavaScript function that {}",
    "typescript": "a TypeScript function, with types, that {}",
    "c": "a C function that {}",
    "shell": "a shell script that {}",
    "verilog": "a Verilog module that {}",
    "html": "an HTML page about a program that {}",
    "sql": "an SQLite query for a database of a program that {}",
}
WHAT = [
    "adds two numbers",
    "finds the largest of three numbers",
    "counts the words of a text",
    "greets a user by name",
    "says whether a number is even",
    "sorts a list of names",
    "counts down from ten",
    "converts Celsius to Fahrenheit",
    "prints the days of the week",
    "sums the digits of a number",
]


def said_by_python(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def said_by_sqlite(text: str) -> bool:
    """Of one statement or several."""
    with closing(sqlite3.connect(":memory:")) as connection:
        statement = ""
        for part in re.split("(;)", text):
            statement += part
            if part == ";" and sqlite3.complete_statement(statement):
                if not _is_statement(connection, statement):
                    return False
                statement = ""
        return _is_statement(connection, statement)


def _is_statement(connection: sqlite3.Connection, text: str) -> bool:
    try:
        connection.execute(f"EXPLAIN {text}" if re.sub(r"--.*", "", text).strip() else "")
    except (sqlite3.Error, sqlite3.Warning) as error:
        return not UNREAD.search(str(error))
    return True


def reader(language: str) -> Callable[[str], bool]:
    if language == "python":
        return said_by_python
    if language == "sql":
        return said_by_sqlite
    judge = JUDGES[language]
    if missing := judge.missing():
        raise SystemExit(f"{language} needs {', '.join(missing)}")
    return lambda text: not judge.wrong([text])


def free(gen: mw.Generator, prompt: str, tokens: int) -> str:
    messages = [{"role": "user", "content": prompt}]
    ids = gen.tokenizer.apply_chat_template(
        messages, add_generation_prompt=True, return_tensors="pt", return_dict=True
    )
    with torch.no_grad():
        out = gen.model.generate(**ids, max_new_tokens=tokens, do_sample=False)
    text = gen.tokenizer.decode(out[0, ids["input_ids"].shape[1] :], skip_special_tokens=True)
    block = re.search(r"```[^\n]*\n(.*?)(```|\Z)", text, re.DOTALL)
    return block[1] if block else text


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--languages", default=",".join(TASKS))
    parser.add_argument("--tokens", type=int, default=160)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    torch.set_num_threads(1)
    gen = mw.Generator.from_pretrained()
    rows = {}
    for language in args.languages.split(","):
        reads, source = reader(language), mw.shipped_grammar(language)
        row = {
            "texts": 0,
            "free": 0,
            "grammar": 0,
            "free seconds": 0.0,
            "grammar seconds": 0.0,
            "removed": 0.0,
        }
        for what in WHAT:
            prompt = f"Write {TASKS[language].format(what)}. Answer with the code only."
            began = time.perf_counter()
            text = free(gen, prompt, args.tokens)
            row["free seconds"] += time.perf_counter() - began
            row["free"] += reads(text)
            began = time.perf_counter()
            [found] = gen.generate([prompt], source, max_new_tokens=args.tokens)
            row["grammar seconds"] += time.perf_counter() - began
            row["removed"] += found.removed_mass.total / len(WHAT)
            good = reads(found.text)
            row["grammar"] += good
            row["texts"] += 1
            print(
                json.dumps({"language": language, "free": text, "grammar": found.text, "read": good}),
                flush=True,
            )
        rows[language] = row
        print(language, row, flush=True)
    if args.out:
        args.out.write_text(json.dumps({"tokens": args.tokens, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
