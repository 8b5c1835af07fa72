"""Held grammars: many tokens through one grammar of each kind, in requests and in one long text.

    python bench/soak.py --tokens 10000000 --out soak.json --plot soak.png
    python bench/soak.py --tokens 200000 --only 'unique*'
    python bench/soak.py --tokens 10000000 --request-tokens 10 --only declared --ways requests   # a million outputs

Every grammar is compiled once and held.  Keys, items and strings are ever new.  For every part of the run a line says: tokens so
far, memory of the process more than at first (MB), bytes of states, generation, µs a token, and the longest single call (ms).  Times
are those of the processor for this thread, so that a busy machine does not count.  A mask is written for one token in
``--masks-every``.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import random
import string
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from itertools import count
from pathlib import Path
from typing import Any

import maskbench_tokenizers

import maskwright as mw
from maskwright.compiling.shipped import shipped_grammar

PARTS = 100

# --- texts, in pieces that are as good as endless


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_letters + "     éß-", k=rng.randrange(3, 14)))


def _value(rng: random.Random, depth: int = 0) -> Any:
    kind = rng.randrange(6 if depth < 3 else 4)
    if kind == 4:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
    if kind == 5:
        return {_word(rng): _value(rng, depth + 1) for _ in range(rng.randrange(4))}
    return (_word(rng), rng.randrange(10**6), rng.random(), rng.choice([True, False, None]))[kind]


def _listed(items: Callable[[random.Random], Any]) -> Callable[[random.Random], Iterator[str]]:
    def pieces(rng: random.Random) -> Iterator[str]:
        yield "[" + json.dumps(items(rng), ensure_ascii=False)
        while True:
            yield ", " + json.dumps(items(rng), ensure_ascii=False)

    return pieces


def _keyed(rng: random.Random) -> Iterator[str]:
    before = "{"
    while True:
        yield f"{before}{json.dumps(f'{_word(rng)}{rng.getrandbits(40):x}', ensure_ascii=False)}: {rng.randrange(1000)}"
        before = ", "


def _lines(line: Callable[[random.Random], str], first: str = "") -> Callable[[random.Random], Iterator[str]]:
    def pieces(rng: random.Random) -> Iterator[str]:
        yield first + line(rng)
        while True:
            yield line(rng)

    return pieces


def _name(rng: random.Random) -> str:
    return "".join(rng.choices(string.ascii_lowercase, k=rng.randrange(2, 9))) + "_"


def _person(rng: random.Random) -> dict[str, Any]:
    return {
        "name": _word(rng),
        "age": rng.randrange(100),
        "tags": [_word(rng) for _ in range(rng.randrange(3))],
    }


def _alike(rng: random.Random) -> dict[str, Any]:
    """Members in any order, most of them as in many other objects."""
    members = [
        ("kind", "point"),
        ("on", rng.random() < 0.5),
        ("at", [rng.randrange(100), rng.getrandbits(48)]),
    ]
    return dict(rng.sample(members, 3))


def _any_item(rng: random.Random) -> Any:
    number = rng.getrandbits(48)
    items = (
        number,
        f"{_word(rng)}{number:x}",
        [_word(rng), number],
        {"id": number, "in": {"name": _word(rng)}},
    )
    return rng.choice(items)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
GBNF = 'root ::= item+\nitem ::= name "=" value ";" "\\n"\nname ::= [a-z_]+\nvalue ::= [0-9]+ | "(" value ("," value)* ")"\n'


def _assigned(rng: random.Random) -> str:
    return f"{_name(rng)}=({rng.randrange(10**6)},{rng.randrange(100)});\n"


def _python(rng: random.Random) -> str:
    name = _name(rng)
    return f"def {name}({_name(rng)}, {_name(rng)}=1):\n    return {_name(rng)}({rng.randrange(1000)}) + '{_name(rng)}'\n"


# The twenty-first character from the end decides: an automaton of two million states, and each text reaches others of them.
DECIDED = "[ab]*a[ab]{20}"


def _decided(rng: random.Random) -> str:
    return "".join(rng.choices("ab", k=rng.randrange(40))) + "a" + "".join(rng.choices("ab", k=20))


IDS = [f"{random.Random(i).getrandbits(80):x}" for i in range(45_000)]

KINDS: dict[str, tuple[Any, Callable[[random.Random], Iterator[str]]]] = {
    "free JSON": (mw.JsonSchema({"type": "array"}), _listed(_value)),
    "undeclared keys": (
        mw.JsonSchema({"type": "object", "additionalProperties": {"type": "number"}}),
        _keyed,
    ),
    "unique strings": (
        mw.JsonSchema({"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        _listed(lambda rng: f"{_word(rng)}{rng.getrandbits(40):x}"),
    ),
    "unique numbers": (
        mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        _listed(lambda rng: rng.getrandbits(48)),
    ),
    "unique objects": (
        mw.JsonSchema({"type": "array", "items": {"type": "object"}, "uniqueItems": True}),
        _listed(lambda rng: {"id": rng.getrandbits(48), "name": _word(rng)}),
    ),
    "unique alike": (
        mw.JsonSchema(
            {"type": "array", "items": {"type": "object"}, "uniqueItems": True}, property_order="any"
        ),
        _listed(_alike),
    ),
    "unique arrays": (
        mw.JsonSchema({"type": "array", "items": {"type": "array"}, "uniqueItems": True}),
        _listed(lambda rng: [rng.randrange(9), [rng.getrandbits(48), _word(rng)], rng.random()]),
    ),
    "unique items": (mw.JsonSchema({"type": "array", "uniqueItems": True}), _listed(_any_item)),
    "declared": (mw.JsonSchema({"type": "array", "items": PERSON}), _listed(_person)),
    "Lark JSON": (shipped_grammar("json"), _listed(_value)),
    "GBNF": (mw.GBNF(GBNF), _lines(_assigned)),
    "Python": (shipped_grammar("python"), _lines(_python)),
    "SQL": (
        shipped_grammar("sql"),
        _lines(lambda rng: f", {_name(rng)}.{_name(rng)} + {rng.randrange(100)}", "select a"),
    ),
    "many states": (
        mw.JsonSchema({"type": "array", "items": {"type": "string", "pattern": f"^{DECIDED}$"}}),
        _listed(_decided),
    ),
    "many states, names": (
        mw.JsonSchema(
            {"type": "object", "patternProperties": {f"^{DECIDED}$": True}, "additionalProperties": False}
        ),
        lambda rng: ((", " if i else "{") + f'"{_decided(rng)}": {i}' for i in count()),
    ),
    "many states, Lark": (
        mw.Lark(f'start: (A ";")+\nA: /"{DECIDED}"/\n'),
        _lines(lambda rng: f'"{_decided(rng)}";'),
    ),
    "many ids": (
        mw.JsonSchema({"type": "array", "items": {"enum": IDS}}),
        _listed(lambda rng: rng.choice(IDS)),
    ),
}


# --- measuring


def memory() -> float:
    """Of this process (MB)."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Run:
    """One grammar, and what its parts took."""

    def __init__(self, grammar: mw.CompiledGrammar, masks_every: int, part: int) -> None:
        self.grammar = grammar
        self.masks_every = masks_every
        self.part = part
        self.bitmask = mw.allocate_token_bitmask(1, grammar.vocabulary.vocab_size)
        self.tokens = 0
        self.spent = self.longest = 0.0
        self.base = memory()
        self.points: list[dict[str, float]] = []

    def follow(self, matcher: Any, ids: list[int]) -> None:
        clock = time.thread_time
        for token in ids:
            before = clock()
            if not matcher.accept_token(token):
                raise SystemExit(
                    f"token {token} was refused behind {self.tokens}: the text is no part of the language"
                )
            if self.tokens % self.masks_every == 0:
                accepted = clock()
                self.longest = max(self.longest, accepted - before)
                self.spent += accepted - before
                matcher.fill_next_token_bitmask(self.bitmask)
                before = accepted
            took = clock() - before
            self.spent += took
            self.longest = max(self.longest, took)
            self.tokens += 1
            if self.tokens % self.part == 0:
                self.note()

    def note(self) -> None:
        known = self.grammar.statistics
        self.points.append(
            {
                "tokens": self.tokens,
                "MB": round(memory() - self.base, 1),
                "state_MB": round(known["state_bytes"] / 2**20, 2),
                "generation": known["generation"],
                "us_per_token": round(self.spent / self.part * 1e6, 2),
                "longest_ms": round(self.longest * 1e3, 2),
            }
        )
        self.spent = self.longest = 0.0


def soak(kind: str, tokens: int, request_tokens: int | None, masks_every: int, words: Any) -> dict[str, Any]:
    source, pieces = KINDS[kind]
    vocabulary = words.vocabulary()
    # Without a deadline: the machine may be busy.
    run = Run(
        mw.compile(source, vocabulary, limits=mw.Limits(max_seconds=0)), masks_every, max(tokens // PARTS, 1)
    )
    rng = random.Random(kind)
    requests = 0
    while run.tokens < tokens:
        matcher = run.grammar.matcher(max_rollback=16)
        requests += 1
        begun = run.tokens
        for piece in pieces(rng):
            run.follow(matcher, words.encode(piece))
            if run.tokens >= tokens or (request_tokens and run.tokens - begun >= request_tokens):
                break
    return {
        "kind": kind,
        "one_text": request_tokens is None,
        "requests": requests,
        "masks_every": masks_every,
        "points": run.points,
    }


def shown(found: dict[str, Any]) -> str:
    points = found["points"]
    cost = [point["us_per_token"] for point in points]
    tenth = max(len(cost) // 10, 1)
    return (
        f"{found['kind']:16} {'one text' if found['one_text'] else str(found['requests']) + ' requests':17} {points[-1]['tokens']:>10} tokens, "
        f"{max(point['MB'] for point in points):7.1f} MB more at most ({points[len(points) // 2]['MB']:.1f} halfway, "
        f"{points[-1]['MB']:.1f} at the end), {points[-1]['generation']} generations, "
        f"{sum(cost[:tenth]) / tenth:.2f} then {sum(cost[-tenth:]) / tenth:.2f} us a token, "
        f"longest call {max(point['longest_ms'] for point in points):.1f} ms"
    )


def plot(runs: list[dict[str, Any]], path: Path) -> None:
    import plots

    plots.plot_soak(runs, "Held grammars: memory and time a token", path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, default=10_000_000, help="through each grammar, each way")
    parser.add_argument("--request-tokens", type=int, default=400, help="tokens of one request, at least")
    parser.add_argument("--only", default="*", help="kinds whose names match this pattern")
    parser.add_argument("--ways", default="both", choices=("both", "requests", "one text"))
    parser.add_argument("--masks-every", type=int, default=8)
    parser.add_argument(
        "--tokenizer", default="sentencepiece", choices=sorted(maskbench_tokenizers.TOKENIZERS)
    )
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    parser.add_argument(
        "--join", type=Path, nargs="*", default=[], help="plot and write these earlier runs as well"
    )
    args = parser.parse_args()
    runs: list[dict[str, Any]] = [run for path in args.join for run in json.loads(path.read_text())]
    words = maskbench_tokenizers.TOKENIZERS[args.tokenizer]()
    for kind in KINDS:
        for one_text in (False, True):
            if fnmatchcase(kind, args.only) and args.ways in ("both", "one text" if one_text else "requests"):
                started = time.monotonic()
                request_tokens = None if one_text else args.request_tokens
                runs.append(soak(kind, args.tokens, request_tokens, args.masks_every, words))
                print(shown(runs[-1]), f"({time.monotonic() - started:.0f} s)", flush=True)
                gc.collect()
    if args.out:
        # A line for each run.
        args.out.write_text("[\n" + ",\n".join(map(json.dumps, runs)) + "\n]\n")
    if args.plot:
        plot(runs, args.plot)


if __name__ == "__main__":
    main()
