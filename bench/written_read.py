"""Does everybody read what is written?  Random walks over real schemas, read by three parsers and three validators.

    python bench/written_read.py --fetch                       # install ajv, into the cache directory
    python bench/written_read.py --every 10 --walks 3 --out bench/results/TODAY-written-read.json
    python bench/written_read.py --packages                    # schemas of packages (bench/package_schemas.py fetches them)

Texts are written with the options as they come.  The table counts, by class, texts and schemas that one reader refuses, or understands differently;
``--show`` lists cases.  Why readers differ: docs/readers.md.  Classes that begin with ``OURS`` are defects.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import package_schemas
import readers
import walks

import maskwright as mw


def classes(reading: readers.Reading) -> Iterator[tuple[str, str]]:
    """What is to be said of one text, each with a message; nothing where all agree."""
    refused = reading.refused
    for name in readers.PARSERS:
        if name in refused and refused[name][0] in readers.NO_OPINION:
            yield f"{name}: {refused[name][0]}", ""
        elif name in refused:
            yield f"OURS: {name} does not parse", refused[name][1]
    if len(set(reading.values.values())) > 1:
        yield "OURS: parsers find different values", ""
    if reading.rounded:
        yield "an integer that doubles round (JavaScript)", ""
    judged = [name for name in readers.VALIDATORS if name in refused]
    asked = [name for name in readers.VALIDATORS if name != "ajv" or "JavaScript" in reading.values]
    if judged == asked and not reading.valid:
        yield f"OURS: invalid: {refused['jsonschema'][0]}", refused["jsonschema"][1]
        return
    for name in judged:
        yield f"{name}: {refused[name][0]}", refused[name][1]


def sources(args: argparse.Namespace) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Name, schema, and options of compiling."""
    if args.packages:
        root = package_schemas.corpus()
        for package, schemas in package_schemas.packages(root) if root is not None and root.is_dir() else ():
            registry = package_schemas.identified(schemas)
            for name, schema in schemas.items():
                yield f"{package}/{name}", schema, {"registry": registry}
        return
    for index, (name, schema) in enumerate(walks.schemas(args.data)):
        if index % args.every == args.first:
            yield name, schema, {}


def texts(
    schema: Any, name: str, vocabulary: mw.Vocabulary, args: argparse.Namespace, options: dict[str, Any]
) -> list[bytes]:
    """What random walks write; none where the schema is refused."""
    try:
        compiled = mw.compile_json_schema(schema, vocabulary, **options)
        totals = walks.Totals()
        found = [
            walks.walk(compiled, random.Random(f"{args.seed} {name} {number}"), args.steps, totals)
            for number in range(args.walks)
        ]
    except mw.MaskwrightError:
        return []
    # A walk that is stuck is found by walks.py.
    return [text for text in found if isinstance(text, bytes)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fetch", action="store_true", help="install ajv into the cache directory and end")
    parser.add_argument("--data", type=Path, default=walks.DEFAULT_DATA, help="MaskBench cases, .jsonl.gz")
    parser.add_argument("--packages", action="store_true", help="schemas of packages instead")
    parser.add_argument("--every", type=int, default=10, help="take every n-th schema")
    parser.add_argument("--first", type=int, default=0, help="beginning with this one")
    parser.add_argument("--walks", type=int, default=3, help="walks a schema")
    parser.add_argument("--steps", type=int, default=60, help="tokens before a walk is closed")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="list this many cases of each class")
    parser.add_argument("--out", type=Path, help="file for the counts")
    args = parser.parse_args(arguments)
    if args.fetch:
        readers.fetch()
        return 0
    folder = readers.node_folder()
    if folder is None:
        print("without JavaScript: node or ajv is missing (--fetch installs ajv)")
    javascript = None if folder is None else readers.JavaScript(folder)
    vocabulary = walks.tekken_vocabulary()
    totals = Counter[str]()
    found: dict[str, list[tuple[str, bytes, str]]] = defaultdict(list)
    for name, schema, options in sources(args):
        written = texts(schema, name, vocabulary, args, options)
        if not written:
            totals["schemas that we refuse"] += 1
            continue
        totals["schemas"] += 1
        for text, reading in zip(
            written, readers.Readers(schema, javascript, options.get("registry")).read(written), strict=True
        ):
            totals["texts"] += 1
            said = list(classes(reading))
            totals["texts that all read alike"] += not said
            for kind, message in said:
                found[kind].append((name, text, message))
    if javascript is not None:
        javascript.close()
    report(totals, found, args)
    return 1 if any(kind.startswith("OURS") for kind in found) or not totals["schemas"] else 0


def report(
    totals: Counter[str], found: dict[str, list[tuple[str, bytes, str]]], args: argparse.Namespace
) -> None:
    print(", ".join(f"{count} {name}" for name, count in totals.items()))
    counts = {
        kind: {"texts": len(cases), "schemas": len({name for name, _, _ in cases})}
        for kind, cases in sorted(found.items())
    }
    print("| class | texts | schemas |\n|---|---|---|")
    for kind, count in counts.items():
        print(f"| {kind} | {count['texts']} | {count['schemas']} |")
    for kind, cases in sorted(found.items()):
        for name, text, message in sorted(cases, key=lambda case: len(case[1]))[: args.show]:
            print(f"{kind}: {name}: {text[:200]!r}: {message[:200]}")
    if args.out is not None:
        what = {"command": " ".join(sys.argv), **totals, "classes": counts}
        args.out.write_text(json.dumps(what, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
