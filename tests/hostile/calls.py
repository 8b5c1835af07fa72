"""Odd arguments: token ids, bitmasks, canvases."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import maskwright as mw
from hostile.cases import Case
from hostile.operations import VOCABULARY
from maskwright.diffusion import Canvas, Gap
from maskwright.diffusion.between import complete_between
from maskwright.diffusion.lattice import Lattice

IDS: dict[str, list[Any]] = {
    "integers": [-1, 0, VOCABULARY.vocab_size, 2**31, -(2**31) - 1, 2**63, 2**64, 2**200, -(2**200)],
    "others": [
        None,
        1.5,
        float("nan"),
        "a",
        b"a",
        [],
        {},
        object(),
        True,
        np.float32(3),
        np.int8(-1),
        np.array(5),
        np.array([5]),
    ],
}
GRAMMARS: dict[str, Any] = {
    "json": mw.JsonSchema({}),
    "unique": mw.JsonSchema({"uniqueItems": True, "type": "array"}),
    "lark": mw.Lark('start: (A | B | s)*\ns: "(" s* ")"\nA: /[a-z]+/\nB: /[a-z]+[0-9]/\n%ignore " "\n'),
    "regex": mw.Regex("(a|b)*a(a|b){9}"),
}


def matchers(name: str, limits: mw.Limits) -> mw.Matcher:
    return mw.compile(GRAMMARS[name], VOCABULARY, limits=limits).matcher()


def ids(name: str, kind: str, limits: mw.Limits) -> Iterator[Callable[[], Any]]:
    matcher = matchers(name, limits)
    for value in IDS[kind]:
        yield partial(matcher.accept_token, value)
        yield partial(matcher.accept_tokens, [97, value, value])
        yield partial(matcher.validate_tokens, [value])
        yield partial(matcher.rollback, value)
        yield partial(matcher.accept_bytes, value)
        yield partial(matcher.accept_tokens, value)
    yield partial(matcher.accept_tokens, range(10**7))
    yield partial(matcher.validate_tokens, iter(range(10**7)))
    yield partial(matcher.accept_bytes, b"[" * 1_000_000)
    yield partial(matcher.longest_prefix, b"(" * 1_000_000)
    yield partial(matcher.accept_bytes, bytes(range(256)) * 1000)
    yield partial(matcher.rollback, len(matcher.accepted_tokens) + 1)


class Lying:
    """An array that says something else of itself."""

    def __init__(self, array: Any, **more: Any) -> None:
        self.array, self.more = array, more

    def __getattr__(self, name: str) -> Any:
        return self.more.get(name, getattr(self.array, name))

    def __buffer__(self, flags: int) -> memoryview:
        return memoryview(self.array)

    def __len__(self) -> int:
        return int(self.more.get("length", len(self.array)))


def bitmasks(name: str, limits: mw.Limits) -> Iterator[Callable[[], Any]]:
    matcher = matchers(name, limits)
    words = (VOCABULARY.vocab_size + 31) // 32
    good = np.zeros((3, words), dtype=np.int32)
    arrays: list[Any] = [
        None, 5, b"", b"\0" * 4 * words, bytearray(4 * words), memoryview(good), [[0] * words], good[:, ::2], good[::2], good[::-1], good.T, good[:, :-1],
        np.asfortranarray(np.zeros((3, words), dtype=np.int32)), good.astype(np.int64), good.astype(np.float32), good.astype(">i4"), np.zeros((0, words), dtype=np.int32), np.zeros((words,), dtype=np.int32),
        np.zeros((2, 2, words), dtype=np.int32), np.lib.stride_tricks.as_strided(good, (1000, words), (0, 4)), Lying(good, shape=(10**9, words)), Lying(good, length=10**9), np.zeros((1, words), dtype=np.uint32),
    ]  # fmt: skip
    frozen = np.zeros((1, words), dtype=np.int32)
    frozen.setflags(write=False)
    for array in [*arrays, frozen]:
        yield partial(matcher.fill_next_token_bitmask, array)
        yield partial(mw.fill_next_token_bitmasks, [matcher] * 3, array)
        yield partial(
            mw.apply_token_bitmask_inplace, np.zeros((3, VOCABULARY.vocab_size), dtype=np.float32), array
        )
        yield partial(mw.apply_token_bitmask_inplace, array, good)
    for row in (-1, 3, 2**63, -(2**63), 1.5, None, "0"):
        yield partial(matcher.fill_next_token_bitmask, good, row)
    for given in (None, 5, [None], [matcher] * 5_000, [matcher, 5], matcher):
        yield partial(mw.fill_next_token_bitmasks, given, good)
    for sizes in ((-1, 5), (1, -1), (1.5, 2), (2**70, 2**70), (None, None)):
        yield partial(mw.allocate_token_bitmask, *sizes)
    for indices in ([5], [-1], [2**70], [1.5], None, 5, range(10**7)):
        yield partial(
            mw.apply_token_bitmask_inplace,
            np.zeros((3, VOCABULARY.vocab_size), dtype=np.float32),
            good,
            indices,
        )


def canvases(name: str, limits: mw.Limits) -> Iterator[Callable[[], Any]]:
    grammar = mw.compile(GRAMMARS[name], VOCABULARY, limits=limits)
    gaps: list[Any] = [
        [], [None], [None] * 400, [None] * 3_000, [91, None] * 200, [None, 93] * 100, [97, None, 98, None] * 60, [-1], [2**70], ["a", None], ["\ud800"], [Gap(0, 300)], [Gap(5, 6)] * 80, [1.5], 5, None, "abc",
        [b"\xff", None], [VOCABULARY.eos_ids[0], None], [None] * 30 + [VOCABULARY.eos_ids[0]] + [None] * 30,
    ]  # fmt: skip
    for slots in gaps:
        made: list[Canvas] = []
        yield lambda slots=slots, made=made: made.append(Canvas(grammar, slots, limits=limits))
        if made:
            yield partial(Lattice, made[0])
    yield lambda: Gap(10**9, 10**9)
    yield lambda: Canvas(grammar, [Gap(0, 10**6)], limits=limits)
    for before, behind in (
        ("", ""),
        ("[" * 2_000, "]" * 2_000),
        ("a" * 100_000, "b"),
        (b"\xff", b"\0"),
        (5, None),
    ):
        middle: list[Any] = []
        yield lambda a=before, b=behind, middle=middle: middle.append(
            complete_between(grammar, a, b, max_tokens=60)
        )
        if middle:
            yield middle[0].allowed


def cases() -> Iterator[Case]:
    for name in GRAMMARS:
        for kind in IDS:
            yield Case(
                f"calls/ids: {kind}/{name}",
                lambda name=name: name,
                lambda name, limits, kind=kind: ids(name, kind, limits),
            )
        yield Case(f"calls/bitmasks/{name}", lambda name=name: name, bitmasks)
        yield Case(f"calls/canvases/{name}", lambda name=name: name, canvases)
