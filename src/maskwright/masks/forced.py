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
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from maskwright.vocabulary.vocabulary import Vocabulary

CONTEXT = 4
"""Tokens in front of the forced text that the tokenizer is shown: enough for splits at words."""

_KEPT = 4096
"""Answers of the tokenizer that are kept."""

_UNKNOWN: Any = object()

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
        # Here and not when first needed: it takes as long as hundreds of masks.
        order = sorted((token, i) for i, token in enumerate(vocabulary.tokens) if token)
        self._sorted = [token for token, _ in order], [i for _, i in order]
        self._spelled: dict[Hashable, tuple[bool, list[int]] | None] = {}

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
        opening = self.vocabulary.at_start(before[:-1] if replaces else before)
        tokens = self._without_open_end(start, tokens, opening)
        # What was written stays, and something is added.
        least = len(self.vocabulary.decode(before[-1:], start=opening)) if replaces else 0
        if len(self.vocabulary.decode(tokens, start=opening)) <= least:
            return False, []
        return replaces, tokens

    def _spell(
        self, before: Sequence[int], forced: bytes, may_replace: bool
    ) -> tuple[bool, list[int]] | None:
        """The tokenizer's tokens of forced bytes behind a text; None where it has none that fit."""
        window = list(before[-CONTEXT - 1 :])
        whole = len(window) == len(before)
        data = self.vocabulary.decode(window, start=whole)
        context = self.vocabulary.decode(window[:-1], start=whole)
        # A token that stands for itself is no text to spell anew.
        may_replace = may_replace and len(context) < len(data)
        # Behind tokens that spell nothing, a text without bytes may have begun.
        opens = whole and self.vocabulary.at_start(window), whole and self.vocabulary.at_start(window[:-1])
        key = (opens, may_replace, context, data, forced)
        known = self._spelled.get(key, _UNKNOWN)
        found: tuple[bool, list[int]] | None = known
        if known is _UNKNOWN:
            places = {len(context): (True, opens[1])} if may_replace else {}
            found = self._spell_anew(data + forced, {**places, len(data): (False, opens[0])})
            # Other threads may be here as well: each goes on with its own answer.
            if len(self._spelled) > _KEPT:
                self._spelled.clear()
            self._spelled[key] = found
        return found

    def _spell_anew(self, data: bytes, places: dict[int, tuple[bool, bool]]) -> tuple[bool, list[int]] | None:
        """The tokens of ``data`` from the first of ``places`` that one begins at.

        ``places``: bytes, whether the last token is replaced there, and whether the text begins there.  ``data`` may begin and end
        inside a character."""
        first = 0
        while first < len(data) and data[first] & 0xC0 == 0x80:
            first += 1
        text = data[first:].decode("utf-8", "ignore")
        if not data[first:].startswith(text.encode()):
            return None
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        table = self.vocabulary.tokens
        at = first
        for index, token in enumerate(ids):
            # The tokenizer takes what it is given for a text of its own: its first token may have a mark that is no blank.
            spelled = self.vocabulary.decode([token], start=index == 0)
            if at in places:
                replaces, opening = places[at]
                tail = ids[index:]
                rest = self.vocabulary.decode(tail, start=opening)
                if data[at:].startswith(rest) and all(table[i] for i in tail):
                    return replaces, tail
            at += len(spelled)
        return None

    def _without_open_end(self, matcher: Any, tokens: list[int], at_start: bool) -> list[int]:
        """Without the tokens at the end that an allowed token, which goes on, could take the place of."""
        rest = self.vocabulary.decode(tokens, start=at_start)
        for index, token in enumerate(tokens):
            begins = at_start and index == 0
            beyond = self._longer(rest)
            if begins and self.vocabulary.start_tokens:
                beyond = beyond + self._longer(b" " + rest)
            if beyond:
                words = mask_words(matcher, self.vocabulary.vocab_size)
                if any(is_allowed(words, i) for i in beyond):
                    return tokens[:index]
            if not matcher.accept_token(token):
                return tokens[:index]
            rest = rest[len(self.vocabulary.decode([token], start=begins)) :]
        return tokens

    def _longer(self, data: bytes) -> list[int]:
        """The ids whose bytes begin with ``data`` and go on."""
        texts, ids = self._sorted
        first = bisect_left(texts, data)
        while first < len(texts) and texts[first] == data:
            first += 1
        last = bisect_left(texts, data + b"\xff" * 2, first)
        return ids[first:last]
