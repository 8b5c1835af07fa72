"""Phrases in objects and arrays whose other names, or different items, are finitely many: some of them may have the phrase, and
what came before may be any of them."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest

import maskwright as mw
from tests.algebra.test_algebra import SEVERAL, VOCABULARY, accepts

TWO = ["ab", "qz", "cd", "qq"]


def unique(items: Any, most: int = 3) -> dict[str, Any]:
    return {"type": "array", "items": items, "uniqueItems": True, "maxItems": most}


def names(pattern: str, most: int = 2) -> dict[str, Any]:
    return {
        "type": "object",
        "patternProperties": {pattern: {"enum": [1, 2]}},
        "additionalProperties": False,
        "maxProperties": most,
    }


CASES: list[tuple[dict[str, Any], list[str], list[Any]]] = [
    (names("^[a-z]{2}$"), ["qz"], TWO),
    (names("^(ab|qz|cd)$", 3), ["q"], TWO),
    (names("^(ab|qz|cd)$", 3), ["q", "d"], TWO),
    (unique({"enum": ["ab", "cd"]}), ["a"], ["ab", "cd"]),
    (unique({"type": "string", "pattern": "^[a-z]{2}$"}, 2), ["qz"], TWO),
    (unique({"type": "string", "pattern": "^[abc]$"}), ["a"], ["a", "b", "c"]),
    (unique({"enum": ["ab", "qz", 1, 2]}), ["q"], ["ab", "qz", 1, 2]),
]


def texts(schema: dict[str, Any], values: list[Any]) -> list[str]:
    """Arrays of the values, or objects with these names, short ones."""
    found = []
    for n in range(4):
        for some in itertools.product(values, repeat=n):
            if schema["type"] == "array":
                found.append("[" + ",".join(map(json.dumps, some)) + "]")
            else:
                found.append("{" + ",".join(f'"{name}":{i % 2 + 1}' for i, name in enumerate(some)) + "}")
    return found


@pytest.mark.parametrize(("schema", "phrases", "values"), CASES, ids=lambda value: json.dumps(value)[:60])
def test_texts_are_those_with_the_phrases(
    schema: dict[str, Any], phrases: list[str], values: list[Any]
) -> None:
    source = mw.JsonSchema(schema)
    alone, both = mw.compile(source, VOCABULARY), mw.compile(source & mw.Contains(phrases), VOCABULARY)
    judged = [
        (text, accepts(alone, text) and all(p in text for p in phrases)) for text in texts(schema, values)
    ]
    assert any(good for _, good in judged)
    for text, good in judged:
        assert accepts(both, text) == good, text


@pytest.mark.parametrize(("schema", "phrases", "values"), CASES, ids=lambda value: json.dumps(value)[:60])
def test_masks_lead_to_such_texts(schema: dict[str, Any], phrases: list[str], values: list[Any]) -> None:
    source = mw.JsonSchema(schema)
    alone, both = mw.compile(source, VOCABULARY), mw.compile(source & mw.Contains(phrases), SEVERAL)
    mask = mw.allocate_token_bitmask(1, SEVERAL.vocab_size)
    rng = random.Random(1)
    for _ in range(12):
        matcher = both.matcher()
        for _ in range(14):
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(256) if mask[0, i >> 5] >> (i & 31) & 1]
            for token in rng.sample(allowed, min(len(allowed), 4)):
                fork = matcher.fork()
                assert fork.accept_token(token)
                rest = fork.shortest_completion_bytes()
                assert rest is not None
            if not allowed:
                break
            assert matcher.accept_token(rng.choice(allowed))
        ids = matcher.accepted_tokens
        text = b"".join(SEVERAL.tokens[i] or b"" for i in ids) + matcher.shortest_completion_bytes()
        assert accepts(alone, text.decode()) and all(p.encode() in text for p in phrases)


@pytest.mark.parametrize(
    ("items", "phrase", "escapes", "text"),
    [
        ({"enum": ["\u00e9", 1]}, "u0", "printed", '["\\u00e9",1]'),
        ({"enum": ["b", 1]}, "\\", "any", '["\\u0062",1]'),
    ],
)
def test_phrases_that_only_escapes_have(items: Any, phrase: str, escapes: Any, text: str) -> None:
    source = mw.JsonSchema({"type": "array", "items": items, "uniqueItems": True}, escapes=escapes)
    assert accepts(mw.compile(source, VOCABULARY), text)
    both = mw.compile(source & mw.Contains([phrase]), VOCABULARY)
    assert accepts(both, text) and phrase.encode() in both.matcher().shortest_completion_bytes()


def test_the_message_about_different_items_speaks_of_arrays() -> None:
    source = mw.JsonSchema(unique({"enum": ["ab", "cd"]}))
    with pytest.raises(mw.GrammarError, match="items of an array must be different"):
        mw.compile(source - mw.Contains(["a"]), VOCABULARY)
