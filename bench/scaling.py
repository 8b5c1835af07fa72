"""What a token costs as one thing grows: items, string length, properties, enum values, depth.

For every family and size, on the tekken vocabulary: compile time, first mask, and mask and accept of every
token of a text that uses what the schema offers, by a first matcher and "again" by a second one of the same
grammar.  A flat line is the aim: a token should not cost more because the schema allows more.  Every point
has an engine of its own, so that none profits from what the one before has computed.

    python bench/scaling.py --out bench/results/scaling.json --plot bench/results/scaling.png
    python bench/scaling.py --families array,enum --sizes 10,1000

Times are in microseconds.  A text that is not accepted, or not in full, is an error.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from maskbench import figures, machine, versions
from maskbench_tokenizers import Tokenizer, tekken

import maskwright as mw

STRING_WORDS = 400  # about 2000 tokens
USED_PROPERTIES = 300
USED_VALUES = 100
WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliett", "kilo"]


@dataclass(frozen=True)
class Probe:
    """A schema, and texts to read: whole instances, or beginnings of one."""

    schema: Any
    texts: list[str]
    whole: bool = True


@dataclass(frozen=True)
class Family:
    make: Callable[[int], Probe]
    sizes: tuple[int, ...]
    completion: bool = False
    """Also time ``shortest_completion`` after each text."""


def array_of(size: int) -> Probe:
    """``maxItems: size``, and that many items."""
    schema = {"type": "array", "items": {"type": "integer"}, "maxItems": size}
    return Probe(schema, [json.dumps(list(range(size)))])


def long_string(size: int) -> Probe:
    """``maxLength: size``, and the beginning of a long string."""
    words = (f"{WORDS[i % len(WORDS)]} {i} " for i in range(STRING_WORDS))
    text = "".join(words)[: size - 1]
    return Probe({"type": "string", "maxLength": size}, ['"' + text], whole=False)


def object_of(size: int) -> Probe:
    """``size`` optional properties, and an object with some of them, evenly spread."""
    names = [f"{WORDS[i % len(WORDS)]}_{i}" for i in range(size)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "integer"} for name in names},
        "additionalProperties": False,
    }
    return Probe(schema, [json.dumps(dict.fromkeys(_spread(names, USED_PROPERTIES), 1))])


def enum_of(size: int) -> Probe:
    """``size`` strings, and some of them, evenly spread."""
    values = [f"{WORDS[i % len(WORDS)]} {WORDS[i // 7 % len(WORDS)]} {i}" for i in range(size)]
    return Probe({"enum": values}, [json.dumps(value) for value in _spread(values, USED_VALUES)])


def nesting(size: int) -> Probe:
    """A recursive schema, and an instance of depth ``size``."""
    return Probe(LINKED_LIST, ['{"next": ' * size + "null" + "}" * size])


def completion(size: int) -> Probe:
    """The same, left open at depth ``size``."""
    return Probe(LINKED_LIST, ['{"next": ' * size], whole=False)


def required_items(size: int) -> Probe:
    """``minItems: size``, left open after the first item: the completion writes all others."""
    return Probe({"type": "array", "items": {"type": "integer"}, "minItems": size}, ["[1, "], whole=False)


LINKED_LIST = {
    "$ref": "#/$defs/Link",
    "$defs": {
        "Link": {
            "type": "object",
            "properties": {"next": {"anyOf": [{"$ref": "#/$defs/Link"}, {"type": "null"}]}},
            "required": ["next"],
            "additionalProperties": False,
        }
    },
}
FAMILIES = {
    "array": Family(array_of, (10, 100, 1_000, 10_000)),
    "string": Family(long_string, (100, 1_000, 10_000, 100_000, 1_000_000)),
    "object": Family(object_of, (10, 100, 1_000, 5_000)),
    "enum": Family(enum_of, (10, 100, 1_000, 10_000)),
    "nesting": Family(nesting, (10, 100, 1_000)),
    "completion": Family(completion, (10, 100, 1_000), completion=True),
    "required items": Family(required_items, (10, 100, 1_000), completion=True),
}


def _spread(values: list[str], count: int) -> list[str]:
    step = max(1, len(values) // count)
    return values[::step][:count]


@dataclass
class Times:
    """Seconds of each token."""

    masks: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)


def read(matcher: mw.Matcher, ids: list[int], bitmask: Any, times: Times) -> None:
    """One mask and one accept a token."""
    for token in ids:
        begun = time.perf_counter()
        matcher.fill_next_token_bitmask(bitmask, 0)
        masked = time.perf_counter()
        accepted = matcher.accept_token(token)
        done = time.perf_counter()
        times.masks.append(masked - begun)
        times.steps.append(done - begun)
        if not accepted:
            raise SystemExit(f"scaling: token {token} is not accepted")


def complete(matcher: mw.Matcher, vocabulary: mw.Vocabulary, text: str) -> Iterator[tuple[str, float]]:
    """The shortest completion: the first call, one more, and its length; it has to be one."""
    for name in ("completion", "completion again"):
        begun = time.perf_counter()
        ids = matcher.shortest_completion()
        yield name, 1e6 * (time.perf_counter() - begun)
    yield "completion tokens", len(ids)
    json.loads(text.encode() + vocabulary.decode(ids))
    if matcher.accept_tokens(ids) != len(ids) or not matcher.is_accepting:
        raise SystemExit(f"scaling: the completion of {text[:40]!r}... is not one")


def measure(family: Family, size: int, tokenizer: Tokenizer) -> dict[str, Any]:
    probe = family.make(size)
    vocabulary = tokenizer.vocabulary()
    mw.compile_json_schema(True, vocabulary)  # sets up the engine
    bitmask = mw.allocate_token_bitmask(1, vocabulary.vocab_size)
    texts = [(text, tokenizer.encode(text)) for text in probe.texts]
    begun = time.perf_counter()
    compiled = mw.compile_json_schema(probe.schema, vocabulary)
    made = time.perf_counter()
    compiled.matcher().fill_next_token_bitmask(bitmask, 0)
    point: dict[str, Any] = {
        "size": size,
        "compile": 1e6 * (made - begun),
        "first mask": 1e6 * (time.perf_counter() - begun),
    }
    for name in ("mask+accept", "again"):
        times = Times()
        for text, ids in texts:
            matcher = compiled.matcher()
            read(matcher, ids, bitmask, times)
            if probe.whole and not matcher.is_accepting:
                raise SystemExit(f"scaling: {text[:40]!r}... is not accepted in full")
            if family.completion and name == "mask+accept":
                point.update(complete(matcher, vocabulary, text))
        point[name] = figures(1e6 * np.asarray(times.steps))
        if name == "mask+accept":
            point["mask"] = figures(1e6 * np.asarray(times.masks))
    return point


def show(name: str, point: dict[str, Any]) -> None:
    tokens, again = point["mask+accept"], point["again"]
    line = (
        f"{name:14} {point['size']:8}  compile {point['compile']:9.0f}  first mask {point['first mask']:9.0f}  "
        f"mask+accept p50 {tokens['p50']:6.1f} p99 {tokens['p99']:7.1f} max {tokens['max']:8.1f} "
        f"of {tokens['count']:5}  again p50 {again['p50']:5.1f} p99 {again['p99']:5.1f}"
    )
    if "completion" in point:
        line += (
            f"  completion {point['completion']:.0f}, again {point['completion again']:.0f}, "
            f"{point['completion tokens']:.0f} tokens"
        )
    print(line, flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", default=",".join(FAMILIES), help="some of these, with commas between")
    parser.add_argument("--sizes", help="sizes for every family, with commas between; up to its own largest")
    parser.add_argument("--out", type=Path, help="write the results here as JSON")
    parser.add_argument("--plot", type=Path, help="draw them here, PNG")
    args = parser.parse_args()
    args.families = args.families.split(",")
    for name in args.families:
        if name not in FAMILIES:
            parser.error(f"no family {name!r}; there are {', '.join(FAMILIES)}")
    if args.sizes is not None:
        try:
            args.sizes = sorted({int(size) for size in args.sizes.split(",")})
        except ValueError:
            parser.error(f"--sizes takes integers with commas between, not {args.sizes!r}")
        if args.sizes[0] < 1:
            parser.error("--sizes are 1 or more")
    return args


def main() -> int:
    args = arguments()
    sys.setrecursionlimit(10_000)  # for json.loads of deep texts
    tokenizer = tekken()
    found: dict[str, list[dict[str, Any]]] = {}
    for name in args.families:
        family = FAMILIES[name]
        sizes = family.sizes if args.sizes is None else [n for n in args.sizes if n <= family.sizes[-1]]
        for size in sizes:
            found.setdefault(name, []).append(measure(family, size, tokenizer))
            show(name, found[name][-1])
    if not found:
        print("scaling: every size is above the largest of every family", file=sys.stderr)
        return 2
    results = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions([]),
        "options": {"families": args.families, "sizes": args.sizes, "tokenizer": tokenizer.name},
        "families": found,
    }
    if args.out is not None:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(results, indent=2) + "\n")
    if args.plot is not None:
        from plots import plot_scaling

        plot_scaling(found, f"Cost against size, {tokenizer.name} tokenizer", args.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
