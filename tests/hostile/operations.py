"""What is done with a source: everything that a server, a validator or a canvas would ask of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import maskwright as mw
from hostile.cases import Case
from maskwright.check.grammars import compile_for_bytes
from maskwright.check.texts import Explainer

_WORDS = [
    '{"',
    '": ',
    '", "',
    '"}',
    "}}",
    "]}",
    ", ",
    "ab",
    "12",
    '":',
    "[[",
    "]]",
    "((",
    "))",
    "aaaa",
    "abab",
    "text ",
    "true",
    "null",
    "</",
    "<t",
    "</t>",
    "é",
    "\u4e00",
    "😀",
]
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


def _vocabulary() -> mw.Vocabulary:
    draw = random.Random(5)
    words = {*_WORDS, *(a + b for a in _LETTERS for b in _LETTERS)}
    while len(words) < 6_000:
        words.add("".join(draw.choices(_LETTERS + '"_ {}[]:,.\\', k=draw.randint(2, 9))))
    tokens = [*(bytes([i]) for i in range(256)), None, *(word.encode() for word in sorted(words))]
    return mw.Vocabulary.from_bytes(tokens, eos_ids=[256])


VOCABULARY = _vocabulary()
STEPS = 24
TEXT = '[{"a": 1, "p0": [{"a": "abab"}]}] ab ' * 50


def operations(case: Case, limits: mw.Limits) -> Iterator[tuple[str, Callable[[], Any]]]:
    """What is to be done, by name; each is called once, and raises or ends."""
    made = case.make()
    if case.use is not None:
        for call in case.use(made, limits):
            yield "call", call
        return
    for source in made if isinstance(made, list) else [made]:
        yield from _of_source(source, limits)


def _of_source(source: Any, limits: mw.Limits) -> Iterator[tuple[str, Callable[[], Any]]]:
    compiled: list[Any] = []
    yield "compile", lambda: compiled.append(mw.compile(source, VOCABULARY, limits=limits))
    if isinstance(source, (mw.JsonSchema, mw.Lark, mw.GBNF, mw.Regex, mw.StructuralTag, mw.Choice)):
        yield "check", lambda: mw.check_grammar(source, limits=limits)
    if not compiled:
        return
    matcher = compiled[0].matcher()
    yield "complete at the start", matcher.shortest_completion
    draw = random.Random(7)
    row = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    for _ in range(STEPS):
        row[:] = 0
        yield "mask", lambda: matcher.fill_next_token_bitmask(row)
        token = _chosen(draw, row)
        if token is None:
            break
        yield "token", lambda token=token: matcher.accept_token(token)
    if isinstance(matcher, mw.Matcher):
        yield "forced bytes", matcher.forced_bytes
        yield "captures", matcher.captures
        yield "text", lambda: matcher.longest_prefix(TEXT.encode())
    yield "complete", matcher.shortest_completion
    if isinstance(source, (mw.JsonSchema, mw.Lark, mw.GBNF)):
        explainer: list[Explainer] = []
        yield "explain", lambda: explainer.append(_explainer(source, limits))
        if explainer:
            yield "explain a text", lambda: explainer[0].check(TEXT)


def _explainer(source: Any, limits: mw.Limits) -> Explainer:
    grammar, compiled = compile_for_bytes(source, limits)
    return Explainer(grammar, compiled, is_schema=isinstance(source, mw.JsonSchema), limits=limits)


def _chosen(draw: random.Random, row: np.ndarray) -> int | None:
    """An allowed token: often a byte, so that structure is met and not only text."""
    bits = np.unpackbits(row.view(np.uint8), bitorder="little")[: VOCABULARY.vocab_size]
    allowed = np.flatnonzero(bits)
    allowed = allowed[allowed != 256]
    few = allowed[allowed < 256]
    if len(few) and draw.random() < 0.6:
        allowed = few
    return int(draw.choice(allowed)) if len(allowed) else None
