"""``uniqueItems`` over many arrays and objects: what came is compared by what it is made of, not item by item."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from test_distinct import UNIQUE, VOCABULARY, different, equal, reads, tokens

import maskwright as mw

NESTED = {
    **UNIQUE,
    "items": {"anyOf": [UNIQUE, {"type": "object", "properties": {"c": UNIQUE}}, {"type": "string"}]},
}
"""Arrays of different items in an array of different items."""


def _scalar(rng: random.Random) -> Any:
    return rng.choice((None, False, True, 0, 1, -1, 0.5, 10, 1200, "", "a", "ab", "é", '"', "\\", "😀", "n1"))


def _item(rng: random.Random, depth: int = 0) -> Any:
    """Of so few parts that many items begin alike."""
    kind = rng.randrange(5 if depth < 3 else 1)
    if kind == 0 and depth:
        return _scalar(rng)
    if kind < 3:
        return [_item(rng, depth + 1) for _ in range(rng.choice((0, 1, 2, 2, 3)))]
    keys = rng.sample(("a", "b", "c", "ab", "é", '"'), rng.choice((0, 1, 2, 3)))
    return {key: _item(rng, depth + 1) for key in keys}


def _number(rng: random.Random, value: float) -> str:
    spelled = {
        0: ("0", "-0", "0.0", "0e7"),
        10: ("10", "1e1", "1.0E+01", "100e-1"),
        1200: ("1200", "12e2", "0.12e004"),
    }
    return rng.choice(spelled.get(value, (json.dumps(value), json.dumps(value) + "e0")))


def _written(rng: random.Random, value: Any) -> str:
    """One of the texts of a value: members in any order, numbers and strings in any spelling."""
    if isinstance(value, dict):
        members = [
            f"{_written(rng, key)}:{_written(rng, value[key])}" for key in rng.sample(list(value), len(value))
        ]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_written(rng, item) for item in value) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=rng.random() < 0.5).replace("a", rng.choice(("a", "\\u0061")))
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return _number(rng, value)


def _inner(value: Any) -> bool:
    """Whether an item of ``NESTED`` is one: its array, or that of its member c, has different items."""
    array = value.get("c") if isinstance(value, dict) else value
    return not isinstance(array, list) or different(array)


def _many(rng: random.Random, count: int, good: Callable[[Any], bool]) -> list[Any]:
    items: list[Any] = []
    while len(items) < count:
        item = _item(rng)
        if good(item) and not any(equal(item, other) for other in items):
            items.append(item)
    return items


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("budget", [None, 0])
def test_many_items(seed: int, budget: int | None) -> None:
    rng = random.Random(seed)
    nested = seed % 3 == 2
    vocabulary = mw.Vocabulary.from_bytes(VOCABULARY.tokens, eos_ids=VOCABULARY.eos_ids)
    if budget is not None:
        vocabulary.state_budget = budget
    good = _inner if nested else lambda item: True
    options: Any = {"escapes": "any", "whitespace": "flexible", "property_order": "any"}
    matcher = mw.compile_json_schema(NESTED if nested else UNIQUE, vocabulary, **options).matcher()
    items = [
        item
        for item in _many(rng, 150, good)
        if not nested or not isinstance(item, dict) or "c" not in item or isinstance(item["c"], list)
    ]
    assert matcher.accept_bytes(b"[")
    for count, item in enumerate(items):
        for _ in range(3 if count else 0):
            again = _written(rng, rng.choice(items[:count])).encode()
            # All but its last byte may be something else.
            assert reads(matcher, again[:-1]) and not reads(matcher, again), again
        text = _written(rng, item).encode()
        assert reads(matcher, text), text
        if count % 10 == 9:
            _follow(rng, matcher.fork(), text)
        assert matcher.accept_bytes(text + b",")
    text = matcher.shortest_completion_bytes()
    assert matcher.accept_bytes(text) and matcher.is_accepting


def _follow(rng: random.Random, matcher: mw.Matcher, text: bytes) -> None:
    """Masks along an item are what can be read."""
    for byte in text:
        allowed = tokens(matcher)
        for token in rng.sample(range(256, len(VOCABULARY.tokens) - 1), 12):
            data = VOCABULARY.tokens[token]
            assert data is not None and reads(matcher, data) == (token in allowed), data
        assert byte in allowed and matcher.accept_token(byte)


@pytest.mark.parametrize("first", ["new", "same", "often"])
def test_unlike_and_like(first: str) -> None:
    """Items that begin like many others are told apart by what is behind."""
    begin = {"new": itertools.count(), "same": itertools.repeat(0), "often": itertools.cycle(range(7))}[first]
    values = [
        {"kind": n, "at": [i, {"x": i}], "more": str(i)} for i, n in zip(range(200), begin, strict=False)
    ]
    matcher = mw.compile_json_schema(UNIQUE, VOCABULARY, property_order="any").matcher()
    assert matcher.accept_bytes(b"[" + b",".join(json.dumps(value).encode() for value in values) + b",")
    rng = random.Random(first)
    for value in values:
        again = json.dumps({key: value[key] for key in rng.sample(list(value), 3)}).encode()
        assert not reads(matcher, again)
        assert reads(matcher, again[:-1] + b',"y":0}')
        assert reads(matcher, json.dumps({**value, "more": "x"}).encode())


KINDS: dict[str, Callable[[int], Any]] = {
    "objects": lambda i: {"id": i * 7919 % 10007, "name": f"n{i}"},
    "objects that begin alike": lambda i: {"kind": "point", "on": True, "at": i},
    "members in any order": lambda i: {"abc"[(i + n) % 3]: (i, i % 3, str(i))[(i + n) % 3] for n in range(3)},
    "arrays": lambda i: [i % 5, i, "a"],
    "objects in arrays": lambda i: ["a", {"b": [i]}],
    "all kinds": lambda i: (i, str(i), [i], {"a": i}, {"b": [i]})[i % 5],
}


@pytest.mark.parametrize("kind", KINDS)
def test_few_items_are_looked_at(kind: str) -> None:
    vocabulary = mw.Vocabulary.from_bytes(VOCABULARY.tokens, eos_ids=VOCABULARY.eos_ids)
    vocabulary.state_budget = 1 << 32
    compiled = mw.compile_json_schema(UNIQUE, vocabulary, property_order="any")
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"[0.5")
    listed = []
    for i in range(1200):
        assert matcher.accept_bytes(b"," + json.dumps(KINDS[kind](i)).encode())
        if i % 400 == 399:
            tokens(matcher)
            listed.append(compiled.statistics["listed_items"])
    assert compiled.statistics["generation"] == 1
    # As many for later items as for earlier ones; all that came would be a thousand for each.
    assert listed[2] - listed[1] < 1.5 * (listed[1] - listed[0]) + 400 and listed[2] < 1200 * 40, listed
