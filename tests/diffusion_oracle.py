"""Brute force: every filling of a canvas, by trying all tokens in all open slots."""

from __future__ import annotations

from collections.abc import Iterator

from reference import Column, Oracle

from maskwright.diffusion.slots import EMPTY, OPEN
from maskwright.vocabulary.vocabulary import Vocabulary


def fillings(
    oracle: Oracle,
    vocabulary: Vocabulary,
    tokens: list[int],
    optional: list[bool],
    ends: tuple[int, ...],
    forbidden: tuple[int, ...] = (),
) -> Iterator[tuple[int, ...]]:
    """All ways to fill a canvas; ids by slot, EMPTY for what is left out; open slots get no ``forbidden`` ids."""
    texts = [i for i, data in enumerate(vocabulary.tokens) if data and i not in forbidden]

    def extend(i: int, column: Column | None, ended: bool, start: bool) -> Iterator[tuple[int, ...]]:
        if i == len(tokens):
            if ended or (column is not None and column.complete):
                yield ()
            return
        held = tokens[i]
        if held == EMPTY or (held == OPEN and optional[i]):
            for rest in extend(i + 1, column, ended, start):
                yield (EMPTY, *rest)
            if held == EMPTY:
                return
        choices = [*texts, *ends] if held == OPEN else [held]
        for token in choices:
            if token in ends:
                if ended or (column is not None and column.complete):
                    for rest in extend(i + 1, column, True, False):
                        yield (token, *rest)
            elif not ended:
                data = vocabulary.tokens[token]
                data = vocabulary.start_tokens.get(token, data) if start else data
                after = oracle.read(data, column)
                if after is not None:
                    for rest in extend(i + 1, after, False, start and not data and vocabulary.start_stays):
                        yield (token, *rest)

    yield from extend(0, oracle.empty, False, True)


def allowed_by_slot(found: list[tuple[int, ...]], slots: int) -> list[set[int]]:
    return [{filling[i] for filling in found if filling[i] != EMPTY} for i in range(slots)]
