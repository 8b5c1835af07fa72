"""Do random walks through the masks always end in valid output?

Walks choose uniformly among allowed tokens, accept EOS when they draw it, and are closed with the
shortest completion after ``--steps`` tokens.  Every text is parsed and validated by ``jsonschema``
(with format checks).  Also prints what a mask and an accept cost on the way.

    python bench/walks.py --data ../shared/data/maskbench-dev.jsonl.gz --schemas 300
    python bench/walks.py --suite ../shared/data/json-schema-test-suite
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import official_suite
import referencing
import referencing.jsonschema
from jsonschema import validators

import maskwright as mw

DATA = Path(os.environ.get("MASKWRIGHT_DATA", Path(__file__).parents[2] / "shared" / "data"))
DEFAULT_DATA = DATA / "maskbench-dev.jsonl.gz"
DEMO_SCHEMAS = Path(__file__).parents[1] / "src" / "maskwright" / "demo" / "cases"


@dataclass
class Totals:
    schemas: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    walks: int = 0
    unjudged: int = 0
    tokens: int = 0
    problems: list[str] = field(default_factory=list)
    mask_seconds: list[float] = field(default_factory=list)
    accept_seconds: list[float] = field(default_factory=list)


def tekken_vocabulary() -> mw.Vocabulary:
    """The 131 072-token vocabulary that ships with mistral-common."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    path = Path(mistral_common.__file__).parent / "data" / "tekken_240911.json"
    return mw.Vocabulary.from_mistral_common(Tekkenizer.from_file(path))


_ECMA = re.compile(r"\\(?:[dDwWsSbB/]|.)|\[\^?|\]|\.|\$", re.DOTALL)
_OUTSIDE = {".": r"[^\n\r\u2028\u2029]", "$": r"\Z", r"\b": r"(?a:\b)", r"\B": r"(?a:\B)"}
_BLANKS = r"\t-\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_ANYWHERE = {r"\s": _BLANKS, r"\d": "0-9", r"\w": "A-Za-z0-9_", r"\D": r"\D", r"\W": r"\W", r"\/": "/"}


def as_python(pattern: str) -> str:
    """A pattern of ECMA-262 as Python reads it: where both know a construct, its meaning may differ."""
    inside = False

    def one(match: re.Match[str]) -> str:
        nonlocal inside
        part = match.group()
        if part[0] == "[" and not inside:
            inside = True
        elif part == "]":
            inside = False
        elif inside:
            return _ANYWHERE.get(part, part)
        elif part in (r"\D", r"\W", r"\S"):
            return f"[^{_ANYWHERE[part.lower()]}]"
        elif part in (r"\d", r"\w", r"\s"):
            return f"[{_ANYWHERE[part]}]"
        return part if inside else _OUTSIDE.get(part, part)

    return _ECMA.sub(one, pattern)


def for_python(schema: Any) -> Any:
    """A schema with its patterns as Python reads them."""
    if isinstance(schema, list):
        return [for_python(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    found: dict[str, Any] = {}
    for keyword, value in schema.items():
        if keyword == "pattern" and isinstance(value, str):
            found[keyword] = as_python(value)
        elif keyword == "patternProperties" and isinstance(value, dict):
            found[keyword] = {as_python(each): for_python(below) for each, below in value.items()}
        else:
            found[keyword] = value if keyword in ("const", "enum", "default") else for_python(value)
    return found


def validator_for(schema: Any, default: Any = jsonschema.Draft202012Validator, **options: Any) -> Any:
    """A validator of the schema's dialect, with what it takes (else a format checker)."""
    kind = validators.validator_for(schema, default=default)
    options = options or {"format_checker": kind.FORMAT_CHECKER}
    if kind is jsonschema.Draft201909Validator and "$recursiveRef" not in json.dumps(schema):
        # Its own one (4.26) forgets what a schema in additionalProperties beside it has evaluated.
        keyword = "unevaluatedProperties"
        kind = validators.extend(kind, {keyword: jsonschema.Draft202012Validator.VALIDATORS[keyword]})
    return kind(for_python(exact_values(schema)), **options)


def walk(compiled: mw.CompiledGrammar, rng: random.Random, steps: int, totals: Totals) -> bytes | str:
    """One walk: the bytes of the finished text, or what went wrong."""
    vocabulary = compiled.vocabulary
    matcher = compiled.matcher()
    mask = np.zeros((vocabulary.vocab_size + 31) // 32, dtype=np.int32)
    ids: list[int] = []
    while len(ids) < steps:
        before = time.perf_counter()
        matcher.fill_next_token_bitmask(mask)
        totals.mask_seconds.append(time.perf_counter() - before)
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little"))
        if not len(allowed):
            return f"stuck after {vocabulary.decode(ids)!r}"
        token = int(allowed[rng.randrange(len(allowed))])
        before = time.perf_counter()
        accepted = matcher.accept_token(token)
        totals.accept_seconds.append(time.perf_counter() - before)
        if not accepted:
            return f"token {token} is in the mask and refused after {vocabulary.decode(ids)!r}"
        if matcher.is_terminated:
            break
        ids.append(token)
    if not matcher.is_terminated:
        completion = matcher.shortest_completion()
        if matcher.accept_tokens(completion) != len(completion) or not matcher.is_accepting:
            return f"the completion {completion} of {vocabulary.decode(ids)!r} is not one"
        ids += completion
    totals.tokens += len(ids)
    return vocabulary.decode(ids)


def exact_number(text: str) -> int | float:
    """An integer however it is written: the validator's doubles lose the digits of large ones."""
    value = Decimal(text)
    if -400 < value.adjusted() < 400 and value == value.to_integral_value():
        return int(value)
    return float(text)


def exact_values(value: Any) -> Any:
    """The same value with ``exact_number``: 1e308 as a double is not the integer that these digits say."""
    if isinstance(value, list):
        return [exact_values(each) for each in value]
    if isinstance(value, dict):
        return {name: exact_values(each) for name, each in value.items()}
    return exact_number(repr(value)) if isinstance(value, float) else value


def check_schema(
    schema: Any,
    vocabulary: mw.Vocabulary,
    name: str,
    args: argparse.Namespace,
    totals: Totals,
    options: dict[str, Any] | None = None,
    validator: Any = None,
) -> None:
    try:
        compiled = mw.compile_json_schema(schema, vocabulary, **(options or {}))
    except mw.MaskwrightError as error:
        totals.refused[type(error).__name__] += 1
        return
    totals.schemas += 1
    validator = validator or validator_for(schema)
    for number in range(args.walks):
        rng = random.Random(f"{args.seed} {name} {number}")
        totals.walks += 1
        try:
            text = walk(compiled, rng, args.steps, totals)
        except mw.MaskwrightError as beyond:
            text = f"{type(beyond).__name__}: {beyond}"
        if isinstance(text, str):
            totals.problems.append(f"{name}: {text}")
            continue
        try:
            instance = json.loads(text, parse_float=exact_number)
            error = next(iter(validator.iter_errors(instance)), None)
        except re.error:
            # The validator does not read this pattern (`\p{...}`).
            totals.unjudged += 1
            continue
        except ValueError as caught:
            error = caught
        if error is not None:
            totals.problems.append(f"{name}: {text[:300]!r}: {str(error).splitlines()[0][:200]}")


def schemas(path: Path) -> Iterator[tuple[str, Any]]:
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                case = json.loads(line)
                yield case["id"], case["schema"]
    else:
        print(f"{path} is not here: walking the demo schemas instead")
        for file in sorted(DEMO_SCHEMAS.glob("*.json")):
            yield file.stem, json.loads(file.read_text())["schema"]


_DIALECTS = {
    "draft4": (jsonschema.Draft4Validator, referencing.jsonschema.DRAFT4),
    "draft6": (jsonschema.Draft6Validator, referencing.jsonschema.DRAFT6),
    "draft7": (jsonschema.Draft7Validator, referencing.jsonschema.DRAFT7),
    "draft2019-09": (jsonschema.Draft201909Validator, referencing.jsonschema.DRAFT201909),
    "draft2020-12": (jsonschema.Draft202012Validator, referencing.jsonschema.DRAFT202012),
}


def suite_schemas(data: Path) -> Iterator[tuple[str, Any, dict[str, Any], Any]]:
    """Name, schema, options and validator of the schemas of the official suite's required tests."""
    suite = official_suite.Suite(data)
    for draft, (kind, specification) in _DIALECTS.items():
        others = _DIALECTS.keys() - {draft} | {"v1"}
        registry = referencing.Registry().with_resources(
            (uri, referencing.Resource.from_contents(contents, default_specification=specification))
            for uri, contents in suite.remotes.items()
            if isinstance(contents, dict) and others.isdisjoint(uri.split("/"))
        )
        for section, path in suite.files(draft):
            for group in json.loads(path.read_text(encoding="utf-8")) if section == "required" else ():
                schema = group["schema"]
                options: dict[str, Any] = {"formats": "annotate", "registry": suite.remotes}
                if not (isinstance(schema, dict) and "$schema" in schema):
                    options["dialect"] = official_suite.DRAFTS[draft]
                name = f"{draft}/{path.stem}: {group['description']}"
                yield name, schema, options, validator_for(schema, kind, registry=registry)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1e6


def report(totals: Totals, seconds: float) -> None:
    print(f"{totals.schemas} schemas compiled, {sum(totals.refused.values())} refused {dict(totals.refused)}")
    print(
        f"{totals.walks} walks, {totals.tokens} tokens, {seconds:.1f} s, {len(totals.problems)} problems, "
        f"{totals.unjudged} texts not judged"
    )
    for name, values in (("mask", totals.mask_seconds), ("accept", totals.accept_seconds)):
        figures = ", ".join(
            f"p{100 * share:g} {percentile(values, share):.1f}" for share in (0.5, 0.99, 0.999)
        )
        print(f"{name}: {figures}, max {max(values) * 1e6:.1f} µs")
    for problem in totals.problems:
        print("PROBLEM", problem)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=DEFAULT_DATA, help="MaskBench cases, .jsonl.gz")
    parser.add_argument("--suite", type=Path, help="walk the schemas of the official suite in this folder")
    parser.add_argument("--schemas", type=int, default=300, help="compiled schemas to walk")
    parser.add_argument("--every", type=int, default=1, help="take every n-th case")
    parser.add_argument("--walks", type=int, default=3, help="walks a schema")
    parser.add_argument("--steps", type=int, default=100, help="tokens before a walk is closed")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(arguments)
    vocabulary = tekken_vocabulary()
    totals = Totals()
    started = time.perf_counter()
    if args.suite:
        for name, schema, options, validator in suite_schemas(args.suite):
            check_schema(schema, vocabulary, name, args, totals, options, validator)
    for index, (name, schema) in enumerate(() if args.suite else schemas(args.data)):
        if totals.schemas >= args.schemas:
            break
        if index % args.every == 0:
            check_schema(schema, vocabulary, name, args, totals)
    report(totals, time.perf_counter() - started)
    return 1 if totals.problems or not totals.schemas else 0


if __name__ == "__main__":
    sys.exit(main())
