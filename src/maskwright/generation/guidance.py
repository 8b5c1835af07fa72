"""Guided rows: rows that lean towards what their prompt says.

A guided row is read behind two prompts, its own and one that lacks (a part of) the request:

    own prompt        "Extract the person. Ada, 36, ..."  | {"name": "
    contrast prompt   "Extract the person."               | {"name": "

What both expect is what anybody would write; what only the first expects comes from the request.  With strength s the
logits are ``contrast + s * (own - contrast)``; s = 1 is the model as it is (classifier-free guidance: Sanchez et al. 2023,
arXiv 2306.17806; with the evidence left out: Shi et al. 2023, arXiv 2305.14739).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from maskwright.generation.key_values import KeyValueRows


@dataclass(frozen=True)
class Guide:
    """The contrast prompt of a row, and the strength of its guidance."""

    prompt: list[int]
    strength: float


class GuidedRows:
    """As ``KeyValueRows``, for rows with and without guides: a guided one takes two rows of the cache.

    ``guides``: of the rows that will be added, in their order.  Where the rows of a model have to run in step, they are not guided.
    """

    def __init__(self, rows: KeyValueRows, guides: Sequence[Guide | None]) -> None:
        self.rows = rows
        self.model = rows.model
        self.widest = rows.widest
        self.croppable = False
        """A row alone may still be two rows of the cache."""
        self.passes = 0
        """Forward passes, those that read prompts included."""
        self._coming = list(guides)
        self._guides: list[Guide | None] = []
        self._owners: list[int] = []
        """For each row of the cache, the row that it belongs to."""

    @property
    def flexible(self) -> bool:
        """Whether rows may read different numbers of tokens, and join others."""
        return self.rows.flexible

    def add(self, prompts: list[list[int]], starts: list[list[int]]) -> list[Any]:
        """New rows; as ``KeyValueRows.add``."""
        first = len(self._guides)
        guides, self._coming = self._coming[: len(prompts)], self._coming[len(prompts) :]
        found = self._add(prompts, starts, range(first, first + len(prompts)))
        if not self.flexible:
            guides = [None] * len(prompts)
        self._guides += guides
        contrast: dict[int, Any] = {}
        for prompt in {tuple(guide.prompt): None for guide in guides if guide is not None}:
            rows = [
                i for i, guide in enumerate(guides) if guide is not None and tuple(guide.prompt) == prompt
            ]
            read = [starts[i][: len(found[i]) - 1] for i in rows]
            contrast.update(
                zip(rows, self._add([list(prompt)] * len(rows), read, [first + i for i in rows]), strict=True)
            )
        return [
            logits if guide is None else _guided(logits, contrast[i], guide.strength)
            for i, (logits, guide) in enumerate(zip(found, guides, strict=True))
        ]

    def _add(self, prompts: list[list[int]], starts: list[list[int]], owners: Sequence[int]) -> list[Any]:
        self.passes += 1
        self._owners += owners
        return self.rows.add(prompts, starts)

    def feed(self, tokens: list[list[int]]) -> list[Any]:
        """Let row i read ``tokens[i]``; as ``KeyValueRows.feed``."""
        self.passes += 1
        found: dict[int, Any] = {}
        logits = self.rows.feed([tokens[owner] for owner in self._owners])
        for owner, each in zip(self._owners, logits, strict=True):
            guide = self._guides[owner]
            # A row's own logits come before those behind its contrast prompt.
            found[owner] = (
                each if owner not in found else _guided(found[owner], each, guide.strength if guide else 1.0)
            )
        return [found[row] for row in range(len(tokens))]

    def reject(self, counts: Sequence[int]) -> None:
        """Row i has not read its last ``counts[i]`` tokens."""
        self.rows.reject([counts[owner] for owner in self._owners])

    def keep(self, rows: list[int]) -> None:
        """Only these rows go on, in this order."""
        new = {row: place for place, row in enumerate(rows)}
        kept = [at for at, owner in enumerate(self._owners) if owner in new]
        self._owners = [new[self._owners[at]] for at in kept]
        self._guides = [self._guides[row] for row in rows]
        self.rows.keep(kept)


def _guided(own: Any, contrast: Any, strength: float) -> Any:
    """Logits [tokens, V]; a token that either prompt rules out keeps its own logit."""
    guided = contrast + strength * (own - contrast)
    return torch.where(guided.isfinite(), guided, own)
