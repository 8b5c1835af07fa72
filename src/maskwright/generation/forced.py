"""Text that the grammar leaves no choice about, in the tokens that the tokenizer itself would use.

A model was trained on its tokenizer's own splits.  So forced bytes are not spelled token by token under the mask, but
handed to the tokenizer together with a little of the text before them.  Two seams need care:

    written so far   | last token |  forced bytes        | what comes next
    ... , "          | "          |  n a m e "           | :
                       ^ may merge with what is forced     ^ the last quote may merge with it

On the left, the last token is spelled anew when the model has not read it yet.  On the right, forced bytes that some
allowed token goes beyond are held back: the model chooses how they go on.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.vocabulary import Vocabulary

_CONTEXT = 4
"""Tokens in front of the forced text that the tokenizer is shown: enough for splits at words."""

Words = npt.NDArray[np.int32]


def mask_words(matcher: Any, vocab_size: int) -> Words:
    """The mask of a matcher's state: int32 [ceil(V / 32)]."""
    words = np.empty((vocab_size + 31) // 32, dtype=np.int32)
    matcher.fill_next_token_bitmask(words)
    return words


def is_allowed(words: Words, token: int) -> bool:
    """Whether a mask allows a token."""
    return bool(words[token >> 5] >> (token & 31) & 1)


class ForcedText:
    """Finds the tokens of forced text for one tokenizer; the answers are kept by what was asked."""

    def __init__(self, tokenizer: Any, vocabulary: Vocabulary) -> None:
        self.tokenizer = tokenizer
        self.vocabulary = vocabulary
        self._sorted: tuple[list[bytes], list[int]] | None = None
        self._spelled: dict[tuple[bytes, bytes, bytes], tuple[bool, list[int]] | None] = {}

    def tokens(self, matcher: Any, before: Sequence[int], may_replace: bool) -> tuple[bool, list[int]]:
        """(whether the last token of ``before`` is replaced, the tokens that follow instead or besides).

        ``before``: the tokens so far; ``matcher`` stands behind them and is left as it is.  ``may_replace``: whether the
        last one may be spelled anew together with the forced text.
        """
        forced: bytes = matcher.forced_bytes() if hasattr(matcher, "forced_bytes") else b""
        if not forced:
            return False, []
        spelled = self._spell(before, forced, may_replace)
        if spelled is None:
            return False, []
        replaces, tokens = spelled
        start = matcher.fork()
        if replaces:
            start.rollback(1)
        tokens = self._without_open_end(start, tokens)
        if not tokens or (replaces and tokens == list(before[-1:])):
            return False, []
        return replaces, tokens

    def _spell(
        self, before: Sequence[int], forced: bytes, may_replace: bool
    ) -> tuple[bool, list[int]] | None:
        """The tokenizer's tokens of forced bytes behind a text; None where it has none that fit."""
        table = self.vocabulary.tokens
        last = table[before[-1]] if before else b""
        # A token that stands for itself is no text to spell anew.
        may_replace = may_replace and bool(last)
        context = b"".join([table[i] for i in before[-_CONTEXT - 1 : -1]])
        key = (context, last, forced if may_replace else b"=" + forced)
        if key not in self._spelled:
            if len(self._spelled) > 4096:
                self._spelled.clear()
            self._spelled[key] = self._spell_anew(context, last, forced, may_replace)
        return self._spelled[key]

    def _spell_anew(
        self, context: bytes, last: bytes, forced: bytes, may_replace: bool
    ) -> tuple[bool, list[int]] | None:
        # The context may begin inside a character, and the forced bytes may end in one.
        context = context.decode("utf-8", "ignore").encode()
        whole = context + last + forced
        try:
            text = whole.decode()
        except UnicodeDecodeError as error:
            if error.end < len(whole) or error.reason != "unexpected end of data":
                return None
            text = whole[: error.start].decode()
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        table = self.vocabulary.tokens
        # Vocabularies that mark word starts put a blank in front.
        at = -1 if ids and table[ids[0]] != text.encode()[: len(table[ids[0]])] else 0
        places = {len(context): True, len(context) + len(last): False}
        if not may_replace:
            del places[len(context)]
            places[len(context) + len(last)] = False
        for index, token in enumerate(ids):
            if at in places:
                tail = ids[index:]
                spelled = b"".join([table[i] for i in tail])
                if whole[at:].startswith(spelled) and all(table[i] for i in tail):
                    return places[at] and bool(last), tail
            at += len(table[token])
        return None

    def _without_open_end(self, matcher: Any, tokens: list[int]) -> list[int]:
        """Without the tokens at the end that an allowed token, which goes on, could take the place of."""
        table = self.vocabulary.tokens
        rest = b"".join([table[i] for i in tokens])
        for index, token in enumerate(tokens):
            beyond = self._longer(rest)
            if beyond:
                words = mask_words(matcher, self.vocabulary.vocab_size)
                if any(is_allowed(words, i) for i in beyond):
                    return tokens[:index]
            if not matcher.accept_token(token):
                return tokens[:index]
            rest = rest[len(table[token]) :]
        return tokens

    def _longer(self, data: bytes) -> list[int]:
        """The ids whose bytes begin with ``data`` and go on."""
        if self._sorted is None:
            order = sorted((token, i) for i, token in enumerate(self.vocabulary.tokens) if token)
            self._sorted = [token for token, _ in order], [i for _, i in order]
        texts, ids = self._sorted
        first = bisect_left(texts, data)
        while first < len(texts) and texts[first] == data:
            first += 1
        last = bisect_left(texts, data + b"\xff" * 2, first)
        return ids[first:last]
