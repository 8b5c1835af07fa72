"""Edits of documents: a span is opened and filled again, a member comes or goes; nothing else changes, and the whole stays valid.

Judges: all texts of a small language, the package jsonschema, SQLite, and Python's own parser.
"""

from __future__ import annotations

import ast
import functools
import itertools
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import numpy as np
import pytest

import maskwright as mw
from maskwright.diffusion import (
    EMPTY,
    Canvas,
    Gap,
    MaskedDiffusionModel,
    Schedule,
    Step,
    infill,
    infill_steps,
)
from maskwright.errors import LimitError, UnsatisfiableError

PIECES = [b"a", b"b", b"ab", b"ba", b"aab"]
LETTERS = mw.Vocabulary.from_bytes([*PIECES, None, None], eos_ids=[5], special_ids=[6])
PATTERN = "(ab|aab)*b?"
DOCUMENT = "abaabb"


class Random(MaskedDiffusionModel):
    """Random logits, of one seed; the mask is the last id."""

    def __init__(self, vocabulary: mw.Vocabulary, mask_id: int, seed: int) -> None:
        self.mask_id = mask_id
        self.eos_ids = list(vocabulary.eos_ids)
        self.size = vocabulary.vocab_size
        self.rng = np.random.default_rng(seed)

    def logits(self, canvas: list[int]) -> Any:
        return self.rng.normal(size=(len(canvas), self.size)).astype(np.float32)


def fillings(head: str, tail: str, low: int, high: int) -> set[tuple[int, ...]]:
    """By trying them all: what may stand between two texts, in so many tokens."""
    return {
        ids
        for count in range(low, high + 1)
        for ids in itertools.product(range(len(PIECES)), repeat=count)
        if re.fullmatch(PATTERN, head + b"".join(PIECES[i] for i in ids).decode() + tail)
    }


def edits(
    grammar: Any,
    head: str,
    tail: str,
    gap: Gap,
    seeds: int,
    loop: Callable[..., Iterator[Step]] = infill_steps,
) -> set[tuple[int, ...]]:
    """What a loop puts between two texts, with so many seeds; nothing else changes."""
    parts = [head.encode(), gap, tail.encode(), 5]
    slots = [i for i, token in enumerate(Canvas(grammar, parts).tokens) if token < 0]
    found = set()
    for seed in range(seeds):
        schedule = Schedule(temperature=1.0, steps=1 + seed % 3)
        model = Random(LETTERS, 6, seed)
        *_, step = loop(model, grammar, parts, schedule=schedule, seed=seed)
        middle = tuple(step.tokens[i] for i in slots if 0 <= step.tokens[i] < len(PIECES))
        text = LETTERS.decode([token for token in step.tokens if token not in (EMPTY, 5)]).decode()
        assert text == head + b"".join(PIECES[i] for i in middle).decode() + tail
        found.add(middle)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 2), (1, 1), (2, 2)])
def test_a_span_of_a_text(low: int, high: int) -> None:
    """Replace, insert (an empty span) and delete (an empty gap), for all spans: what comes is a filling, and every filling comes."""
    grammar = mw.compile_regex(PATTERN, LETTERS)
    refused = 0
    for start, end in itertools.combinations_with_replacement(range(len(DOCUMENT) + 1), 2):
        head, tail = DOCUMENT[:start], DOCUMENT[end:]
        # Behind the last text a slot may hold an end token.
        expected = fillings(head, tail, low if tail else 0, high)
        if not expected:
            refused += 1
            with pytest.raises(UnsatisfiableError):
                Canvas(grammar, [head.encode(), Gap(low, high), tail.encode(), 5])
            continue
        found = edits(grammar, head, tail, Gap(low, high), 12 * len(expected))
        assert found <= expected
        if len(expected) <= 6:
            assert found == expected
    assert refused > 0 or high > 0


def forgets_what_follows(model: Any, grammar: Any, parts: list[Any], **options: Any) -> Iterator[Step]:
    *_, step = infill_steps(model, grammar, parts[:2], **options)
    step.tokens += Canvas(grammar, parts).tokens[len(step.tokens) :]
    yield step


def takes_the_first_that_fits(model: Any, grammar: Any, parts: list[Any], **options: Any) -> Iterator[Step]:
    *_, step = infill_steps(model, grammar, parts, **options)
    step.tokens = Canvas(grammar, parts).witness()
    yield step


def test_wrong_variants_are_caught() -> None:
    """Loops that check nothing, forget the text behind the span, or write the same whatever the model says."""
    grammar = mw.compile_regex(PATTERN, LETTERS)
    head, tail, gap = "ab", "bb", Gap(0, 2)
    expected = fillings(head, tail, 0, 2)
    assert edits(grammar, head, tail, gap, 60) == expected
    for wrong in (functools.partial(infill_steps, criterion="none"), forgets_what_follows):
        assert not edits(grammar, head, tail, gap, 60, wrong) <= expected, wrong
    assert edits(grammar, head, tail, gap, 60, takes_the_first_that_fits) < expected


# --- documents

VOCABULARY = mw.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), None, None], eos_ids=[256], special_ids=[257]
)
PACKAGE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z]+(-[a-z]+)*$"},
        "version": {"type": "string", "pattern": "^[0-9]+(\\.[0-9]+){2}$"},
        "private": {"type": "boolean"},
        "scripts": {"type": "object", "additionalProperties": {"type": "string"}},
        "files": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    },
    "required": ["name", "version"],
    "additionalProperties": False,
}
TEXT = """{
  "name": "left-pad",
  "version": "1.3.0",
  "private": false,
  "scripts": {
    "test": "node test",
    "build": "tsc -p ."
  },
  "files": ["lib", "bin"]
}"""


def edited(grammar: Any, head: str, gap: Gap, tail: str, seed: int) -> str:
    """The text after an edit, which changes nothing outside."""
    end = grammar.vocabulary.eos_ids[0]
    ids = infill(
        Random(grammar.vocabulary, end + 1, seed),
        grammar,
        [head.encode(), gap, tail.encode(), end],
        schedule=Schedule(steps=4),
    )
    text = grammar.vocabulary.decode(ids[: ids.index(end)]).decode("utf-8", "replace")
    assert text.startswith(head) and text.endswith(tail)
    return text


def test_members_and_values_of_a_document() -> None:
    """Every value is replaced, and every member."""
    from diffusion_real import members_of

    grammar = mw.compile_json_schema(PACKAGE, VOCABULARY)
    for seed, (start, value, end) in enumerate(members_of(TEXT)):
        for begin in (value, start):
            text = edited(grammar, TEXT[:begin], Gap(1, 40), TEXT[end:], seed)
            jsonschema.validate(json.loads(text), PACKAGE)


def test_a_member_is_deleted_where_the_schema_lets_it_go() -> None:
    from diffusion_real import members_of, without_member

    grammar = mw.compile_json_schema(PACKAGE, VOCABULARY)
    validator, verdicts = jsonschema.Draft202012Validator(PACKAGE), []
    for number, _ in enumerate(members_of(TEXT)):
        shorter = without_member(TEXT, number)
        verdicts.append(validator.is_valid(json.loads(shorter)))
        if verdicts[-1]:
            assert len(Canvas(grammar, [shorter.encode(), 256]).open) == 0
        else:
            with pytest.raises(UnsatisfiableError):
                Canvas(grammar, [shorter.encode(), 256])
    assert verdicts == [False, False, True, True, True]


def test_a_member_is_inserted_beside_one_of_the_same_key() -> None:
    """A key that is there already does not come again."""
    grammar = mw.compile_json_schema(PACKAGE, VOCABULARY)
    short = TEXT.replace('  "private": false,\n', "").replace(',\n  "files": ["lib", "bin"]', "")
    head, tail = short[: short.index('  "scripts"')], short[short.index('  "scripts"') :]
    keys = set()
    for seed in range(12):
        text = edited(grammar, head, Gap(8, 40), tail, seed)
        value = json.loads(text, object_pairs_hook=lambda pairs: pairs)
        names = [name for name, _ in value]
        assert len(set(names)) == len(names)
        keys |= set(names)
    assert "private" in keys or "files" in keys


def test_a_query_and_a_program() -> None:
    from diffusion_real import is_python, is_sql

    query = "SELECT name, price FROM products WHERE price > 10 ORDER BY name"
    at = query.index("price > 10")
    text = edited(
        mw.compile(mw.shipped_grammar("sql"), VOCABULARY), query[:at], Gap(1, 6), query[at + 10 :], 0
    )
    assert is_sql(text) and not is_sql(query[:at] + query[at + 10 :])
    program = "def area(width, height):\n    return width * height\n"
    at = program.index("width * height")
    grammar = mw.compile(mw.shipped_grammar("python"), VOCABULARY)
    text = edited(grammar, program[:at], Gap(1, 5), program[at + 14 :], 0)
    assert is_python(text) and len(ast.parse(text).body) >= 1


def test_the_limits_of_the_first_filling_are_given() -> None:
    grammar = mw.compile_json_schema(PACKAGE, VOCABULARY)
    canvas = [b'{"name": "', *[None] * 3, b'", "version": "1.2.3"}', 256]
    model = Random(VOCABULARY, 257, 0)
    with pytest.raises(LimitError, match="max_canvas_steps"):
        infill(model, grammar, canvas, limits=mw.Limits(max_canvas_steps=1))
    assert infill(model, grammar, canvas, limits=mw.Limits(max_canvas_steps=100_000))[-1] == 256
