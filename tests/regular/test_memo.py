"""What functions remember takes bounded memory."""

from __future__ import annotations

import contextlib
import gc
import random

import pytest

import maskwright as mw
from maskwright._core import automata_bytes
from maskwright.frontends.json_schema.algebra.groups import ArrayGroup, NumberGroup, StringGroup
from maskwright.limits import DEFAULT_LIMITS
from maskwright.regex import parse_regex
from maskwright.regular import determinize, memo
from maskwright.regular.determinize import minimal_dfa
from maskwright.regular.expressions import Alt, Cat, Chars, Lit, Machine, Repeat, weight
from maskwright.regular.memo import remembered


def test_answers_are_remembered() -> None:
    asked = []

    @remembered(2)
    def double(x: int, by: int = 2) -> int:
        asked.append(x)
        return x * by

    assert [double(1), double(1), double(2), double(1, by=3), double(1, by=3)] == [2, 2, 4, 3, 3]
    assert asked == [1, 2, 1]
    assert double(1) == 2
    assert asked == [1, 2, 1, 1]
    assert double.__name__ == "double"


@pytest.mark.parametrize("large", ["argument", "answer"])
def test_all_are_forgotten_before_they_are_too_much(large: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo, "ROOM", 1_000)
    asked = []

    @remembered(1_000_000)
    def texts(n: int, parts: tuple[str, ...]) -> tuple[str, ...]:
        asked.append(n)
        return tuple(str(i) for i in range(300 if large == "answer" else 3))

    parts = tuple(map(str, range(300 if large == "argument" else 3)))
    for n in (0, 1, 2, 2, 1, 0):
        texts(n, parts)
    assert asked == [0, 1, 2]
    texts(3, parts)  # the fourth would be too much
    texts(3, parts)
    texts(0, parts)
    assert asked == [0, 1, 2, 3, 0]
    # What is too much alone is there until something else comes.
    many = tuple(map(str, range(5_000)))
    texts(4, many)
    texts(4, many)
    assert asked == [0, 1, 2, 3, 0, 4]
    texts(5, parts)
    texts(4, many)
    assert asked == [0, 1, 2, 3, 0, 4, 5, 4]


def test_the_weight_of_trees() -> None:
    letters = Chars(((97, 122), (200, 300)))
    assert weight(letters, 1_000) == 5
    assert weight(Lit("a" * 640), 1_000) == 11
    assert weight(Repeat(letters, 0, None), 1_000) == 6
    assert weight(Cat((letters, letters)), 1_000) == 12
    assert weight(Alt((letters,) * 300_000), 1_000) > 1_000
    assert weight(((1, 2), "x"), 1_000) == 5
    # Edges of an automaton share labels; each counts with its ranges.
    many = Chars(tuple((3 * i, 3 * i + 1) for i in range(300)))
    machine = Machine(2, 0, ((0, many, 1), (1, many, 1), (1, letters, 0)), (1,))
    assert weight((machine,), 10_000) == 1 + 1 + 1 + 3 * 4 + 601 + 5
    assert weight((minimal_dfa(Cat((many, letters)), DEFAULT_LIMITS),), 100_000) > 3 * 300
    # A class is what it is, and has none of the fields of its instances.
    for kind in (StringGroup, ArrayGroup, NumberGroup):
        assert weight((kind, (kind, letters)), 1_000) == 9


def _bytes() -> int:
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@pytest.fixture
def small() -> mw.Vocabulary:
    return mw.Vocabulary([bytes([i]) for i in range(256)] + [b""], (256,))


@pytest.mark.slow
def test_large_schemas_that_were_compiled_take_no_memory(small: mw.Vocabulary) -> None:
    # Three of them take some 30 MB.
    def compile_one(k: int) -> None:
        with contextlib.suppress(mw.LimitError):
            mw.compile_json_schema({"enum": [k * 10**6 + i * 7 for i in range(10_000)]}, small)

    for k in range(1, 7):
        compile_one(k)
    before = _bytes()
    for k in range(7, 22):
        compile_one(k)
    assert _bytes() - before < 50 << 20


def test_patterns_that_were_read_take_no_memory(small: mw.Vocabulary) -> None:
    # Each has some 3.5 MB of states; the grammars used last are kept.
    text = bytes(random.Random(1).choice(b"ab") for _ in range(9000))

    def read_one(k: int) -> None:
        assert mw.compile_regex(rf".*a.{{12}}{k}", small).matcher().accept_bytes(text)

    for k in range(100):
        read_one(k)
    before = _bytes()
    for k in range(100, 180):
        read_one(k)
    assert _bytes() - before < 80 << 20
    for cache, most in ((small._compiled, 128), (small._tables, 64)):
        tables = [
            each if cache is small._tables else each._core.first_tables for each, _ in cache._kept.values()
        ]
        assert sum(map(automata_bytes, tables)) < (most + 32) << 20


def test_automata_that_are_shared_while_they_are_compared_take_no_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = determinize._shared
    shared.forget()
    monkeypatch.setattr(determinize, "_SHARED_BYTES", 100_000)
    for k in range(3, 9):
        first, second = (parse_regex(f"[ab]*{letter}[ab]{{{k}}}") for letter in "ab")
        assert determinize.product([first], [second], DEFAULT_LIMITS)
        shared.look()
        assert shared.total <= 100_000 and shared.total == sum(shared.bytes.values())
        assert shared.known.keys() == shared.bytes.keys()
    # The last ones take more alone.
    assert not shared.known
