"""Random sentences of a grammar: walks over its masks.

At each step a byte is drawn from those allowed, printable ASCII before anything else and blanks seldom.  A complete
text ends with some chance, and one that has grown long by its shortest completion, so every walk ends.  The
distribution over sentences is nothing in particular.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from maskwright.compiling.compiler import CompiledGrammar
from maskwright.masks.bitmask import allocate_token_bitmask

_END = 0.15
_BLANK = 0.1
_PRINTABLE = range(0x21, 0x7F)


def sentences(
    compiled: CompiledGrammar, count: int, *, seed: int | None = None, most: int = 80
) -> Iterator[str]:
    """``count`` texts of a grammar over single bytes; about ``most`` bytes are drawn for each, then it is ended."""
    draw = random.Random(seed)
    for _ in range(count):
        yield _sentence(compiled, draw, most).decode("utf-8", "replace")


def _sentence(compiled: CompiledGrammar, draw: random.Random, most: int) -> bytes:
    matcher = compiled.matcher()
    mask = allocate_token_bitmask(1, compiled.vocabulary.vocab_size)
    text = b""
    while len(text) < most:
        if matcher.is_accepting and draw.random() < _END:
            return text
        matcher.fill_next_token_bitmask(mask)
        allowed = [i for i in range(256) if mask[0, i >> 5] >> (i & 31) & 1]
        blank = [i for i in allowed if i in b" \t\r\n"]
        chosen = [i for i in allowed if i in _PRINTABLE]
        if blank and (not chosen or draw.random() < _BLANK):
            chosen = blank
        chosen = chosen or allowed
        if not chosen:
            return text
        byte = bytes([draw.choice(chosen)])
        matcher.accept_bytes(byte)
        text += byte
    return text + matcher.shortest_completion_bytes()
