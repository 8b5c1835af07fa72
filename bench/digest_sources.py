"""What ``digests.py`` asks: a fixed, broad set of sources, by group, and the vocabularies that they are asked in.

The full set has all of the quick one.  What is random comes from strategies of the tests, drawn from a seed by name; no
file of the project but these strategies has a say in it.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import json
import os
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import maskbench_tokenizers
import official_suite
from digest_record import LIMITS, Source, Words
from hypothesis.control import BuildContext
from hypothesis.errors import StopTest
from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.internal.conjecture.providers import HypothesisProvider

import maskwright as mw
from maskwright.compiling.shipped import examples, shipped_grammar, shipped_grammars
from maskwright.frontends.lark import Indentation

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"
DEMO_SCHEMAS = ROOT / "src" / "maskwright" / "demo" / "cases"
DATA = Path(os.environ.get("MASKWRIGHT_DATA", ROOT.parent / "shared" / "data"))
MASKBENCH = DATA / "maskbench-dev.jsonl.gz"
SUITE = DATA / "json-schema-test-suite"
WIDE: dict[str, Any] = {"escapes": "any", "whitespace": "flexible", "property_order": "any"}

sys.path[:0] = [str(TESTS / name) for name in (".", "engine", "compiling", "frontends", "frontends/lark")]

import bnf_strategies  # noqa: E402
import lark_grammars  # noqa: E402
import regular_strategies  # noqa: E402
import schema_strategies  # noqa: E402
import schema_walks  # noqa: E402
import test_captures  # noqa: E402
import test_indentation  # noqa: E402
import test_lexing  # noqa: E402
import test_structural_tag  # noqa: E402
import test_tokens  # noqa: E402
import test_unique  # noqa: E402
import toys  # noqa: E402

# --- vocabularies


def _plain(vocabulary: mw.Vocabulary) -> Words:
    """Texts in the longest token first, as one reads from the left."""
    ids = {token: i for i, token in reversed(list(enumerate(vocabulary.tokens))) if token}
    for special in (*vocabulary.special_ids, *vocabulary.eos_ids):
        ids.pop(vocabulary.tokens[special], None)
    longest = max(map(len, ids))

    def encode(text: str) -> list[int]:
        data, at, found = text.encode(), 0, []
        while at < len(data):
            size = next(n for n in range(longest, 0, -1) if data[at : at + n] in ids)
            found.append(ids[data[at : at + size]])
            at += size
        return found

    return Words(vocabulary, encode)


def _shipped(name: str) -> Words:
    tokenizer = maskbench_tokenizers.TOKENIZERS[name]()
    return Words(tokenizer.vocabulary(), tokenizer.encode)


def _tight() -> Words:
    """Masks are thrown away all the time."""
    vocabulary = schema_walks.vocabulary(seed=2)
    vocabulary.mask_budget = 1 << 14
    return _plain(vocabulary)


WORDS: dict[str, Callable[[], Words]] = {
    "tekken": lambda: _shipped("tekken"),
    "sentencepiece": lambda: _shipped("sentencepiece"),
    "pieces": lambda: _plain(schema_walks.vocabulary()),
    "tight": _tight,
    "tokens": lambda: _plain(test_tokens.VOCABULARY),
    "captures": lambda: _plain(test_captures.VOCABULARY),
}
words = functools.cache(lambda name: WORDS[name]())

# --- random things


class _Plain(HypothesisProvider):
    """Draws from the seed alone: the usual one also takes constants from the source code of the project."""

    def _maybe_draw_constant(self, *_: Any, **__: Any) -> None:
        return None


def drawn(strategy: Any, name: str, count: int) -> Iterator[tuple[str, Any]]:
    """(Name, value) of values of a strategy; the n-th one does not depend on how many are asked for."""
    for number in range(count):
        data = ConjectureData(random=random.Random(f"{name} {number}"), provider=_Plain)
        try:
            with BuildContext(data, wrapped_test=drawn):
                value = data.draw(strategy)
        except StopTest:  # the strategy gives this draw up
            continue
        yield f"{name} {number}", value


# --- groups


def as_text(value: Any) -> str:
    """JSON; with escapes where characters have no UTF-8."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() or not _has_surrogates(text) else json.dumps(value)


def _has_surrogates(text: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in text)


def shipped(quick: bool) -> Iterator[Source]:
    """The grammars of the package, with their examples; those of the tests, and what a lexer does with them."""
    for name in shipped_grammars():
        given = examples(name)
        texts = [text for text in given["accept"] + given["reject"] if len(text) < 400]
        texts = texts[:: 6 if quick else 1][:40]
        source = shipped_grammar(name)
        yield Source(f"shipped/{name}", source, "tekken", texts, walks=1 if quick else 4)
        if not quick:
            yield Source(f"shipped/{name} sentencepiece", source, "sentencepiece", texts, walks=3)
            yield Source(f"shipped/{name} pieces", source, "pieces", texts, walks=3, canvas=name != "python")
    for name in ("CALC", "JSON", "SQL", "C", "LINES"):
        texts = getattr(lark_grammars, f"{name}_TEXTS")
        for lexer in ("contextual", "dynamic"):
            source = mw.Lark(getattr(lark_grammars, name), lexer=lexer)
            yield Source(f"shipped/tests {name} {lexer}", source, "pieces", texts, walks=2, canvas=True)
    calculator = mw.Lark(test_captures.CALC)
    yield Source("shipped/captures", calculator, "captures", lark_grammars.CALC_TEXTS, walks=4)


def maskbench(quick: bool) -> Iterator[Source]:
    for index, line in enumerate(_lines(MASKBENCH)):
        if quick and index % 40:
            continue
        case = json.loads(line)
        name = f"maskbench/{case['id']}"
        texts = [as_text(test["data"]) for test in case["tests"]]
        narrow = mw.JsonSchema(case["schema"])
        yield Source(name, narrow, "tekken", texts, walks=index % 4 == 0)
        if index % 8 == 0:
            wide = mw.JsonSchema(case["schema"], **WIDE)
            indented = [json.dumps(test["data"], indent=3) for test in case["tests"]]
            yield Source(f"{name} wide", wide, "tekken", [*texts, *indented], walks=1)
            yield Source(f"{name} sentencepiece", narrow, "sentencepiece", texts, walks=1)
        if index % 40 == 0:
            yield Source(f"{name} pieces", narrow, "pieces", texts, walks=1, canvas=True)
            yield Source(f"{name} tight", narrow, "tight", texts, walks=1)


def _lines(path: Path) -> Iterator[str]:
    if path.exists():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            yield from lines


def suite(quick: bool) -> Iterator[Source]:
    """The official suite: instances in its order of members, and as printers write them."""
    if not SUITE.exists():
        return
    read = official_suite.Suite(SUITE)
    for draft, dialect in official_suite.DRAFTS.items():
        number = 0
        for section, path in read.files(draft):
            for group in json.loads(path.read_text(encoding="utf-8")):
                number += 1
                if quick and number % 16:
                    continue
                schema = group["schema"]
                options: dict[str, Any] = {"formats": "assert" if section == "format" else "annotate"}
                if not (isinstance(schema, dict) and "$schema" in schema):
                    options["dialect"] = dialect
                if official_suite.REMOTES in json.dumps(schema):
                    options["registry"] = read.remotes
                texts = [as_text(test["data"]) for test in group["tests"]]
                source = mw.JsonSchema(schema, property_order="any", **options)
                name = f"suite/{draft}/{path.stem} {number}: {group['description']}"
                yield Source(name, source, "tekken", texts, walks=1, steps=30)


def demos(quick: bool) -> Iterator[Source]:
    """The schemas of the demo and of the tests: objects as people write them, in every sort of white space."""
    cases = [
        (file.stem, json.loads(file.read_text())["schema"]) for file in sorted(DEMO_SCHEMAS.glob("*.json"))
    ]
    for file in sorted((TESTS / "frontends" / "json_schema" / "corpus").glob("*.json")):
        for case in json.loads(file.read_text()):
            texts = case["accept"] + case["reject"]
            name = f"demos/{file.stem}: {case['description']}"
            yield Source(name, mw.JsonSchema(case["schema"]), "pieces", texts, walks=1, canvas=True)
            if not quick:
                wide = mw.JsonSchema(case["schema"], **WIDE)
                yield Source(f"{name} wide", wide, "sentencepiece", texts, walks=1)
    for name, schema in cases[:: 4 if quick else 1]:
        for whitespace in ("printed", "flexible", "compact", 2):
            source = mw.JsonSchema(schema, whitespace=whitespace)
            yield Source(f"demos/{name} {whitespace}", source, "sentencepiece", walks=2, canvas=True)


def counted(quick: bool) -> Iterator[Source]:
    """Counters near to and far from their bounds, and what is tracked: items and keys that may not come twice."""
    integer: dict[str, Any] = {"type": "integer"}
    string = {"type": "string", "maxLength": 12}
    schemas: dict[str, dict[str, Any]] = {
        **schema_walks.SCHEMAS,
        "long string": {"type": "string", "minLength": 40, "maxLength": 90},
        "huge string": {"type": "string", "minLength": 3, "maxLength": 100_000},
        "pattern with counts": {"type": "string", "pattern": "^(ab|c){3,40}[0-9]{2,9}$"},
        "items": {"type": "array", "items": integer, "minItems": 3, "maxItems": 12},
        "many items": {"type": "array", "items": {"type": "null"}, "minItems": 5, "maxItems": 100_000},
        "members": {
            "type": "object",
            "additionalProperties": integer,
            "minProperties": 2,
            "maxProperties": 5,
        },
        "unique integers": {"type": "array", "items": {"enum": [*range(25)]}, "uniqueItems": True},
        "unique strings": {"type": "array", "items": string, "uniqueItems": True, "minItems": 3},
        "unique anything": {"type": "array", "uniqueItems": True, "maxItems": 9},
        "undeclared keys": {"type": "object", "additionalProperties": string, "minProperties": 3},
        "unique objects": {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "object", "properties": {"a": integer, "b": string}, "required": ["a"]},
        },
        "contains": {"type": "array", "contains": integer, "minContains": 2, "maxContains": 4},
        "tree": {
            "$ref": "#/$defs/node",
            "$defs": {
                "node": {
                    "type": "object",
                    "properties": {
                        "name": string,
                        "below": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 3},
                    },
                    "required": ["name"],
                }
            },
        },
    }
    texts = [
        "[1, 2, 2]",
        "[1,2,3,1]",
        '["a","b","\\u0061"]',
        '{"a":"x","a":"y"}',
        '[{"a":1},{"a":1}]',
        '"' + "ab" * 60 + '"',
    ]
    for name, schema in schemas.items():
        for among in ("pieces", "tight") if quick else ("tekken", "sentencepiece", "pieces", "tight"):
            canvas = among == "pieces"
            yield Source(f"counted/{name} {among}", mw.JsonSchema(schema), among, texts, 3, 120, canvas)
            if not quick:
                wide = mw.JsonSchema(schema, **WIDE)
                yield Source(f"counted/{name} {among} wide", wide, among, texts, 2, 120)
    for number, (schema, options) in enumerate(test_unique.SCHEMAS):
        source = mw.JsonSchema(schema, **options)  # type: ignore[arg-type]
        yield Source(f"counted/tracked {number}", source, "pieces", texts, walks=3, steps=80)


def patterns(quick: bool) -> Iterator[Source]:
    """Regular expressions, choices and structural tags."""
    count = 25 if quick else 250
    anything = regular_strategies.patterns(["^", "$", "\\b"], ["?=", "?!"])
    texts = ["ab", "aab\nb", "bbbb", ""]
    for name, pattern in drawn(anything, "regex", count):
        yield Source(f"patterns/{name}", mw.Regex(pattern), "pieces", texts, walks=1, steps=20, canvas=True)
    for number, pattern in enumerate(_PATTERNS):
        yield Source(
            f"patterns/real {number}", mw.Regex(pattern), "tekken", ["2024-02-29", "a@b.example"], walks=3
        )
        yield Source(f"patterns/real {number} sentencepiece", mw.Regex(pattern), "sentencepiece", walks=3)
    choice = mw.Choice([" yes", "yes", "yesterday", "no", "not at all", "é", "\U0001f600"])
    for among in ("tekken", "sentencepiece", "pieces"):
        yield Source(f"patterns/choice {among}", choice, among, ["yes", " yes", "not"], walks=4, steps=10)
    for name, tag in drawn(test_structural_tag.triggered(), "tag", count // 2):
        yield Source(f"patterns/{name}", mw.StructuralTag(tag), "pieces", ["ab<", "<ab<"], walks=2, steps=20)


_PATTERNS = (
    r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])",
    r"[^@\s]{1,40}@[a-z0-9-]+(\.[a-z]{2,8})+",
    r"(?i)(select|insert|update) [\w, ]+ from \w+",
    r"(\s*\w+\s*=\s*\"[^\"\n]*\";)*",
    r"\p{Lu}\p{Ll}+( \p{Lu}\p{Ll}+){0,3}",
    r"(?=.*\d)(?=.*[a-z]).{8,20}",
    r"[ab]*a[ab]{20}",
)


_FEW_STATES = replace(
    LIMITS, max_parser_states=3_000, max_search=3_000, max_canvas_steps=5_000, max_set_bytes=1 << 24
)
"""For grammars that are ambiguous in every way at once: their states grow without end."""


def random_grammars(quick: bool) -> Iterator[Source]:
    """Rules of every form as the engine has them; grammars with a lexer; GBNF; blocks of lines; single tokens."""
    count = 40 if quick else 500
    texts = ["ab", "a", "(12)", '{"a":1}', "aaaa", "ba"]
    for name, made in drawn(toys.grammars(), "rules", count):
        yield Source(f"random/{name}", made, "pieces", texts, 2, 20, True, _FEW_STATES)
    for name, made in drawn(test_lexing.grammars(), "lexer", count):
        yield Source(f"random/{name}", made, "pieces", texts, 2, 20, True, _FEW_STATES)
    for name, made in drawn(test_tokens.grammars(toys.grammars()), "tokens", count // 2):
        yield Source(f"random/{name}", made, "tokens", texts, 2, 20, False, _FEW_STATES)
    for name, bodies in drawn(bnf_strategies.grammars(), "gbnf", count):
        source = mw.GBNF(bnf_strategies.gbnf_text(bodies))
        yield Source(f"random/{name}", source, "pieces", texts, 2, 20, True, _FEW_STATES)
    indentation = Indentation(newline="NEWLINE", columns=6)
    for name, text in drawn(test_indentation.grammars(), "blocks", count // 2):
        source = mw.Lark(text, indentation=indentation)
        lines = ["a\n", "a:\n  a\n  a\n a", "(a)\n"]
        yield Source(f"random/{name}", source, "pieces", lines, 2, 20, True, _FEW_STATES)


def random_schemas(quick: bool) -> Iterator[Source]:
    count = 40 if quick else 600
    kinds = {
        "schema": (schema_strategies.documents(), schema_strategies.values),
        "conditional schema": (schema_strategies.conditional_documents(), schema_strategies.objects),
    }
    for kind, (documents, values) in kinds.items():
        texts = [as_text(value) for _, value in drawn(values, f"values for {kind}", 8)]
        for number, (name, schema) in enumerate(drawn(documents, kind, count)):
            options = ({}, {"property_order": "any"}, WIDE)[number % 3]
            among = "pieces" if number % 2 else "tight"
            source = mw.JsonSchema(schema, **options)
            canvas = number % 5 == 1
            yield Source(f"random/{name}", source, among, texts, walks=2, steps=40, canvas=canvas)


GROUPS = (shipped, demos, counted, patterns, random_grammars, random_schemas, suite, maskbench)


def sources(quick: bool, groups: Iterable[Any] = GROUPS) -> Iterator[Source]:
    return itertools.chain.from_iterable(group(quick) for group in groups)


def missing() -> list[str]:
    """Public data that is not here."""
    return [path.name for path in (MASKBENCH, SUITE) if not path.exists()]
