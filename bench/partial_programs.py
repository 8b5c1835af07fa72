"""Partial programs on text to SQL with SmolLM2-135M-Instruct: how often they miss the right query, and how much they keep.

    python bench/partial_programs.py [--tasks 160] [--out FILE]

Tasks are those of bench/quality_programs.py: questions about one of three databases, with the right query.  The model sees the tables and an
answered question of each kind, and writes its likeliest query of the grammar below.  Then, over many splits: half of the tasks calibrate, the others are judged.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
from quality_programs import QUESTIONS, TABLES, create_table

import maskwright as mw
from maskwright.search import PartialPrograms, Scored, scored
from maskwright.search.partial import calibrated, check_examples

SPLITS = 1000
HOLES = [
    "start",
    "items",
    "item",
    "source",
    "where",
    "test",
    "column",
    "table",
    "value",
    "number",
    "group",
    "order",
    "limit",
]


def grammar() -> mw.Lark:
    """Queries over the tables of all three databases."""
    tables = [name for each in TABLES.values() for name in each]
    columns = sorted({column for each in TABLES.values() for columns in each.values() for column in columns})

    def either(names: list[str]) -> str:
        return " | ".join(f'"{name}"' for name in names)

    return mw.Lark(f"""
start: "SELECT " items " FROM " source (" " where)? (" " group)? (" " order)? (" " limit)? ";"
items: item (", " item)?
item: column | "COUNT(*)" | function "(" column ")"
function: "AVG" | "SUM" | "MIN" | "MAX"
source: table (" JOIN " table " ON " column " = " column)?
where: "WHERE " test (" AND " test)?
test: column operator value
operator: " = " | " < " | " > " | " >= " | " <= "
value: number | TEXT
group: "GROUP BY " column
order: "ORDER BY " item (" ASC" | " DESC")?
limit: "LIMIT " number
number: /[1-9][0-9]?/
TEXT: /'[A-Za-z]+'/
column: (table ".")? field
table: {either(tables)}
field: {either(columns)}
""")


def tasks(count: int, seed: int = 11) -> list[tuple[list[dict[str, str]], str]]:
    """(messages, right query), drawn independently."""
    r = random.Random(seed)
    found = []
    while len(found) < count:
        domain = r.choice(list(TABLES))
        created = "\n".join(create_table(name, columns) for name, columns in TABLES[domain].items())
        asked = [ask(r) for ask in QUESTIONS[domain]]
        r.shuffle(asked)
        messages = [
            {"role": "system", "content": f"Answer each question with one SQLite query.\n\n{created}"}
        ]
        question, query = r.choice(QUESTIONS[domain])(r)
        for before, answer in asked:
            messages += [{"role": "user", "content": before}, {"role": "assistant", "content": answer}]
        found.append(([*messages, {"role": "user", "content": question}], query))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=160)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    check_examples(args.tasks // 2, 0.1, 0.9)
    generator = mw.Generator.from_pretrained()
    source = grammar()
    programs = PartialPrograms(generator.compile(source), HOLES)
    drawn = tasks(args.tasks)
    written: list[Scored] = []
    for prompt, _ in drawn:
        [result] = generator.generate([prompt], source, max_new_tokens=64, logprobs=True)
        written.append(scored(programs.grammar, result.token_ids, result.logprobs or []))
    rights = [query for _, query in drawn]
    exact = float(np.mean([each.text.decode() == right for each, right in zip(written, rights, strict=True)]))
    print(f"{len(drawn)} tasks; {exact:.3f} written exactly right")
    critical = np.array([programs.critical_cost(*each) for each in zip(written, rights, strict=True)])
    # All or nothing: the text, or one hole.
    costs = np.array([sum(each.costs) for each in written])
    right_whole = np.array([each.text.decode() == right for each, right in zip(written, rights, strict=True)])
    plain_critical = np.where(right_whole, np.inf, costs)
    families = [programs.family(each) for each in written]
    rng = np.random.default_rng(1)
    rows = []
    for error_rate in (0.1, 0.2, 0.3, 0.4):
        missed, kept, whole, plain = [], [], [], []
        for _ in range(SPLITS):
            order = rng.permutation(len(drawn))
            first, second = order[: len(drawn) // 2], order[len(drawn) // 2 :]
            threshold = calibrated(critical[first].tolist(), error_rate, 0.9).threshold
            members = [next(each for each in families[i] if each.cost < threshold) for i in second]
            missed.append(float((critical[second] < threshold).mean()))
            kept.append(float(np.mean([each.kept for each in members])))
            limit = calibrated(plain_critical[first].tolist(), error_rate, 0.9).threshold
            plain.append(float((costs[second] < limit).mean()))
            whole.append(float(np.mean([not each.kept for each in members])))
        row = {
            "error_rate": error_rate,
            "confidence": 0.9,
            "missed": float(np.mean(missed)),
            "splits_above": float(np.mean(np.array(missed) > error_rate)),
            "kept": float(np.mean(kept)),
            "one_hole": float(np.mean(whole)),
            "kept_all_or_nothing": float(np.mean(plain)),
        }
        rows.append(row)
        print({name: round(value, 3) for name, value in row.items()})
    threshold = calibrated(critical.tolist(), 0.2, 0.9).threshold
    for scores, right in list(zip(written, rights, strict=True))[:8]:
        print(f"{scores.text.decode()}\n  {programs.at(scores, threshold)}\n  right: {right}")
    if args.out:
        args.out.write_text(json.dumps({"tasks": len(drawn), "exact": exact, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
