"""Probabilities of written tokens, as OpenAI's answers list them."""

from __future__ import annotations

import codecs
from typing import Any

from maskwright.generation.row import Row
from maskwright.vocabulary.vocabulary import Vocabulary

_LEAST = -9999.0
"""What stands for minus infinity, which JSON does not have."""


class TokenList:
    """The tokens of one output, handed out once each, as far as they are shown; ``named``: special tokens by name."""

    def __init__(self, row: Row, vocabulary: Vocabulary, named: bool = False) -> None:
        self.row = row
        self.vocabulary = vocabulary
        self._names = {i: name for name, i in vocabulary.special_tokens.items()}
        self._named = named
        self._at = 0
        self._opening = 0
        self._offset = 0
        self._characters = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def more(self, shown: int, judged: int) -> list[tuple[int, int]]:
        """(place, offset in characters) of the next tokens that begin among the first ``shown`` bytes, of the ``judged`` ones.

        A token in the middle of a character has the offset of that character.
        """
        found = []
        while self._at < min(judged, len(self.row.ids)) and self._offset < shown:
            found.append((self._at, self._characters))
            token = self.row.ids[self._at]
            data = self._bytes(token, self._at)
            if self._named:
                data = data or self._names.get(token, "").encode()
            self._offset += len(data)
            self._characters += len(self._decoder.decode(data))
            self._at += 1
        return found

    def _bytes(self, token: int, at: int) -> bytes:
        """What a token spells at a place, which may be at the very start of the text."""
        while self._opening < at and self.vocabulary.at_start([self.row.ids[self._opening]]):
            self._opening += 1
        return self.vocabulary.pieces([token], start=at <= self._opening)[0]

    def chat(self, places: list[tuple[int, int]]) -> list[dict[str, Any]]:
        """``logprobs.content`` of chats."""
        return [
            {
                **self._entry(self.row.ids[at], at, self.row.logprobs[at]),
                "top_logprobs": [self._entry(token, at, value) for token, value in self._top(at)],
            }
            for at, _ in places
        ]

    def completion(self, places: list[tuple[int, int]]) -> dict[str, Any]:
        """``logprobs`` of completions; offsets are characters of the output."""
        return {
            "tokens": [self._name(self.row.ids[at], at) for at, _ in places],
            "token_logprobs": [max(self.row.logprobs[at], _LEAST) for at, _ in places],
            "top_logprobs": [
                {self._name(token, at): max(value, _LEAST) for token, value in self._top(at)}
                for at, _ in places
            ]
            if self.row.top
            else None,
            "text_offset": [offset for _, offset in places],
        }

    def _top(self, at: int) -> list[tuple[int, float]]:
        return list(self.row.top_logprobs[at].items()) if self.row.top else []

    def _text(self, token: int, data: bytes) -> str:
        return data.decode("utf-8", "replace") if data else self._names.get(token, "")

    def _name(self, token: int, at: int) -> str:
        """As OpenAI writes tokens that are no whole text, which would all look the same: ``bytes:\\xf0\\x9f``."""
        data = self._bytes(token, at)
        try:
            data.decode()
        except UnicodeDecodeError:
            return "bytes:" + "".join(f"\\x{byte:02x}" for byte in data)
        return self._text(token, data)

    def _entry(self, token: int, at: int, logprob: float) -> dict[str, Any]:
        data = self._bytes(token, at)
        return {
            "token": self._text(token, data),
            "logprob": max(logprob, _LEAST),
            "bytes": list(data) if data else None,
        }
