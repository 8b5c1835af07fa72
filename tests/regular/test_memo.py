"""What functions remember takes bounded memory."""

from __future__ import annotations

import contextlib
import gc

import pytest

import maskwright as mw
from maskwright.frontends.json_schema.algebra.groups import ArrayGroup, NumberGroup, StringGroup
from maskwright.regular import memo
from maskwright.regular.expressions import Alt, Cat, Chars, Lit, Repeat, weight
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
