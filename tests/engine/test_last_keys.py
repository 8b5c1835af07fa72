"""Tokens that close a key and go on to the next one, where keys run out: what a mask allows is accepted."""

from __future__ import annotations

import random
from typing import Any

import pytest
from toys import allowed

import maskwright as mw

CROSSING = [
    b'":1,',
    b'":',
    b'":1',
    b'":{},',
    b'":1,\n  ',
    b'":1, ',
    b'":1,"',
    b'":1}',
    b'x":1,',
    b'y":1,',
    b'z":1,"',
    b'",',
    b'","',
    b'"]',
    b"1,",
    b",",
    b'":{"x',
]
VOCABULARY = mw.Vocabulary.from_bytes(
    [*(bytes([i]) for i in range(256)), *CROSSING, b"</s>"], eos_ids=[256 + len(CROSSING)]
)  # fmt: skip
INTEGER = {"type": "integer"}
LETTERS = [chr(97 + i) for i in range(26)]


def exhausted(names: list[str]) -> str:
    return "{" + "".join(f'"{name}":1,' for name in names[:-1]) + f'"{names[-1]}'


CASES: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "one name": ({"type": "object", "propertyNames": {"const": "x"}}, {}, ['{"x', '{"']),
    "two names": ({"type": "object", "propertyNames": {"enum": ["x", "y"]}}, {}, ['{"x', '{"x":1,"y', '{"y":1,"']),
    "the empty name": ({"type": "object", "propertyNames": {"maxLength": 0}}, {}, ['{"']),
    "behind a declared one": (
        {"type": "object", "properties": {"a": INTEGER}, "patternProperties": {"^[xy]$": INTEGER}, "additionalProperties": False},
        {}, ['{"a":1,"x":1,"y', '{"x":1,"y', '{"a":1,"x', '{"a'],
    ),
    "nested": ({"properties": {"k": {"propertyNames": {"const": "x"}, "type": "object"}}}, {}, ['{"k":{"x', '{"k":{"x":{"x']),
    "kinds of different values": (
        {"type": "object", "patternProperties": {"^[xy]$": INTEGER, "^[yz]$": {"maximum": 3}}, "additionalProperties": False},
        {}, ['{"x":1,"y', '{"x":1,"y":1,"z', '{"z":1,"y'],
    ),
    "a kind that may not come again": (
        {"type": "object", "propertyNames": {"pattern": "^[xyz]$"}, "maxProperties": 2}, {}, ['{"x', '{"x":1,"y'],
    ),
    "many names in any order": (
        {"type": "object", "propertyNames": {"pattern": "^[a-z]{2}$"}}, {"property_order": "any"},
        [exhausted([a + b for a in LETTERS for b in LETTERS]), exhausted([a + b for a in LETTERS for b in LETTERS][:-1])],
    ),
    "different texts": (
        {"type": "array", "uniqueItems": True, "items": {"type": "string", "pattern": "^[a-k]{3}$"}}, {},
        ["[" + ",".join(f'"{a}{b}{c}"' for a in LETTERS[:11] for b in LETTERS[:11] for c in LETTERS[:11])[:-1]],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_allowed_is_accepted(name: str) -> None:
    schema, options, texts = CASES[name]
    grammar = mw.compile_json_schema(schema, VOCABULARY, **options)
    for text in texts:
        matcher = grammar.matcher()
        assert matcher.accept_bytes(text.encode()), text
        tokens = range(256 + len(CROSSING))
        assert {*tokens} & allowed(matcher) == {
            token for token in tokens if matcher.fork().accept_token(token)
        }, text


def random_object(rng: random.Random, depth: int = 0) -> dict[str, Any]:
    """Objects whose undeclared keys are mostly few."""
    names = ["a", "b", "ab", "x", "y", ""]
    schema: dict[str, Any] = {"type": "object"}
    if rng.random() < 0.4:
        schema["propertyNames"] = rng.choice(
            [
                {"enum": rng.sample(names, 2)},
                {"pattern": "^[xy]$"},
                {"pattern": "^[xy]{1,2}$"},
                {"maxLength": 0},
            ]
        )
    else:
        patterns = rng.sample(["^[xy]$", "^[ab]$", "^a?$", "^xy?$", "^[abxy]{1,2}$"], rng.randrange(1, 3))
        schema["patternProperties"] = {pattern: random_value(rng, depth) for pattern in patterns}
        schema["additionalProperties"] = False
    for keyword, some in (("required", [rng.choice(names)]), ("maxProperties", 2), ("minProperties", 1)):
        if rng.random() < 0.2:
            schema[keyword] = some
    if rng.random() < 0.4:
        schema["properties"] = {name: random_value(rng, depth) for name in rng.sample(names, 2)}
    return schema


def random_value(rng: random.Random, depth: int) -> Any:
    if depth < 2 and rng.random() < 0.3:
        return random_object(rng, depth + 1)
    return rng.choice(
        [INTEGER, {"const": 1}, {"uniqueItems": True, "items": {"enum": ["x", "y", 1]}}, True, False]
    )


@pytest.mark.parametrize("seed", range(30))
def test_what_is_allowed_is_accepted_on_random_walks(seed: int) -> None:
    rng = random.Random(seed)
    tokens = [token for token in VOCABULARY.tokens if token and (len(token) > 1 or 32 <= token[0] < 127)]
    vocabulary = mw.Vocabulary.from_bytes([*tokens, b"</s>"], eos_ids=[len(tokens)])
    walked = 0
    while walked < 5:
        try:
            grammar = mw.compile_json_schema(
                random_object(rng), vocabulary, property_order=rng.choice(("schema", "any"))
            )
        except mw.UnsatisfiableError:
            continue
        walked += 1
        matcher = grammar.matcher()
        for _ in range(40):
            accepted = {token for token in range(len(tokens)) if matcher.fork().accept_token(token)}
            assert allowed(matcher) - {len(tokens)} == accepted
            if not accepted:
                break
            assert matcher.accept_token(rng.choice(sorted(accepted)))
