"""Guesses at the next tokens, which the model checks in the pass that reads them.

Reading five tokens takes a model little longer than reading one.  A guess that the model would have chosen anyway saves a
pass, a wrong one is dropped: what is written does not depend on guesses (speculative decoding by look-up, as in
prompt-lookup decoding of transformers).  Two things are easy to guess in structured output: what is copied from
the prompt, and marks such as `":` that come again wherever the grammar allows the same few tokens.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from maskwright.masks.forced import ForcedText, Words, is_allowed, mask_words

MOST_GUESSES = 6
"""Tokens that are guessed ahead of one pass."""
_FEW_TOKENS = 128
"""A mask with at most so many tokens says enough to guess by what was chosen the last time."""
_KEPT = 4096
_LONGEST_PAUSE = 16
_SHOWN = 8
"""Tokens before a guess that the tokenizer may see: more than it looks at, so that a text's start is known by its length."""


class Habits:
    """What a model chose under masks of few tokens; shared by all outputs of a grammar."""

    def __init__(self) -> None:
        self._chosen: dict[bytes, int] = {}

    def note(self, words: Words, token: int) -> None:
        """Remember the choice under a mask."""
        if _is_small(words):
            if len(self._chosen) >= _KEPT:
                self._chosen.clear()
            self._chosen[_key(words)] = token

    def guess(self, words: Words) -> int | None:
        """What was chosen under an equal mask of few tokens."""
        return self._chosen.get(_key(words)) if _is_small(words) else None


def _key(words: Words) -> bytes:
    """A mask of few tokens in few bytes."""
    (places,) = words.nonzero()
    return places.astype(np.int32).tobytes() + words[places].tobytes()


def _is_small(words: Words) -> bool:
    return int(np.count_nonzero(words)) <= _FEW_TOKENS >= int(np.bitwise_count(words).sum())


class Drafter:
    """Guesses for one output.

    The next token is looked up behind the last two in the prompt and the output, then in ``habits``.  After wrong
    guesses it pauses, longer each time.
    """

    def __init__(self, prompt: list[int], habits: Habits, forced: ForcedText) -> None:
        self.habits = habits
        self.forced = forced
        self._text = list(prompt)
        self._behind: dict[tuple[int, int], int] = {}
        self._index(1)
        self._pause = 0
        self._misses = 0

    def _index(self, first: int) -> None:
        text = self._text
        for i in range(max(first, 2), len(text)):
            self._behind[text[i - 2], text[i - 1]] = text[i]

    def wrote(self, tokens: list[int]) -> None:
        """These tokens were added for good."""
        first = len(self._text)
        self._text += tokens
        self._index(first)

    def judged(self, guessed: int, right: int) -> None:
        """So many tokens were guessed, of which so many were right."""
        if guessed and not right:
            self._misses += 1
            self._pause = min(2**self._misses, _LONGEST_PAUSE)
        elif right:
            self._misses = 0

    def draft(self, matcher: Any, last: list[int], most: int) -> list[int]:
        """Up to ``most`` tokens that may come behind ``last``, the output so far, where ``matcher`` stands."""
        if self._pause:
            self._pause -= 1
            return []
        ahead = matcher.fork()
        tokens: list[int] = []
        text = self._text[-2:]
        written = last[-_SHOWN:]
        while len(tokens) < most and not ahead.is_terminated:
            words = mask_words(ahead, self.forced.vocabulary.vocab_size)
            guess = self._behind.get((text[-2], text[-1])) if len(text) > 1 else None
            if guess is None or not is_allowed(words, guess):
                guess = self.habits.guess(words)
            if guess is None or not ahead.accept_token(guess) or ahead.is_terminated:
                break
            written.append(guess)
            replaces, forced = self.forced.tokens(ahead, written, may_replace=True)
            if replaces:
                ahead.rollback(1)
                written.pop()
            new = forced if replaces else [guess, *forced]
            ahead.accept_tokens(forced)
            written += forced
            tokens += new
            text += new
        return tokens[:most]
