"""What an engine looks like to the kit: three small classes, of which two are the engine's adapter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol

from maskwright.errors import MaskwrightError

Language = Literal["json_schema", "regex"]


class ConformanceError(MaskwrightError):
    """There is no such engine, it cannot be set up here, or a file has no cases; the message says why."""


@dataclass(frozen=True)
class Tokens:
    """A small vocabulary, and how wide the model's rows of logits are."""

    texts: tuple[bytes, ...]
    """The bytes of every id; ``b""`` for ids that stand for no text (end ids, holes)."""
    ends: Mapping[int, str]
    """The ids that end an output, and the names that a tokenizer would show for them."""
    width: int
    """Logits in a row: ids from ``len(texts)`` on are padding, which no mask may allow."""

    @cached_property
    def by_text(self) -> dict[bytes, list[int]]:
        """The ids of each text."""
        found: dict[bytes, list[int]] = {}
        for token, text in enumerate(self.texts):
            if text:
                found.setdefault(text, []).append(token)
        return found

    def encode(self, text: bytes) -> list[int]:
        """How the vocabulary's tokenizer spells a text: by the longest token each time; of equal ones, the first."""
        longest = max(map(len, self.by_text))
        found, at = [], 0
        while at < len(text):
            size = next(n for n in range(longest, 0, -1) if text[at : at + n] in self.by_text)
            size = min(size, len(text) - at)
            found.append(self.by_text[text[at : at + size]][0])
            at += size
        return found


class Matcher(Protocol):
    """One output while it is written."""

    def allowed(self) -> Collection[int]:
        """The ids that the mask leaves: which tokens may come next.  An end id is one of them where the output may end."""
        ...

    def accept(self, token: int) -> bool:
        """Read a token; False when it may not come here."""
        ...

    def rollback(self, count: int) -> None:
        """Take the last ``count`` tokens back.  ``NotImplementedError`` where the engine cannot."""
        ...


class Engine(Protocol):
    """An engine that was set up for ``Tokens``."""

    def compile(self, language: Language, source: str) -> Callable[[], Matcher]:
        """A factory of matchers for a JSON Schema (JSON text) or a regular expression that the whole output matches.

        Any exception means that the engine refuses the source.
        """
        ...


Factory = Callable[[Tokens], Engine]
"""Sets an engine up.  An exception means that it cannot work with such tokens."""
