"""Following an output of which an engine tells all tokens at each step, and nothing else: not when a prompt is new, not when it ends."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import numpy.typing as npt

import maskwright as mw
from maskwright.integrations.requests import allow

logger = logging.getLogger(__name__)

_WINDOW = 64
"""Tokens that can be taken back, which only drafts are."""


class Follower:
    """One output at a time, from the tokens of the prompt and of the output so far.

    The first tokens are a prompt.  What is one token longer than before continues the output, and what is equal is the same place
    again.  Anything else is a new prompt, and the grammar begins anew.  ``drafts``: up to so many tokens may come or go at once
    behind the prompt, as in speculative decoding; they are a new prompt only when the grammar does not allow them.
    ``prompt_length``: where the prompt ends, if that is known.

    Raises ``VocabularyError`` for what is no compiled grammar.
    """

    def __init__(self, compiled: Any, *, drafts: int = 0, prompt_length: int | None = None) -> None:
        if not hasattr(compiled, "matcher"):
            raise mw.VocabularyError(f"a compiled grammar is needed, not {type(compiled).__name__}")
        self.compiled = compiled
        self.vocabulary: mw.Vocabulary = compiled.vocabulary
        self.error: mw.MaskwrightError | None = None
        """Why the output had to end, if it had to."""
        self._drafts = drafts
        self._fixed_length = prompt_length
        self.reset()

    def reset(self) -> None:
        """The next tokens are a prompt."""
        self._known: npt.NDArray[np.int64] | None = None
        self._prompt_length = 0
        self.error = None

    def fork(self) -> Follower:
        """Another one in the same state."""
        other = Follower(self.compiled, drafts=self._drafts, prompt_length=self._fixed_length)
        other.error = self.error
        if self._known is not None:
            other._known, other._prompt_length = self._known, self._prompt_length
            other._accepted, other._matcher = self._accepted, self._matcher.fork()
        return other

    def mask(self, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """The mask ``[words]`` of what may follow all ``tokens``; read-only.

        It never raises, because engines swallow or die of what is raised here.  Where there is no mask, it allows the ends only, and
        ``error`` says why.
        """
        try:
            self._follow(tokens)
            if self.error is None:
                return np.asarray(self._matcher.next_token_bitmask())
        except mw.MaskwrightError as error:
            self.error = error
            logger.error("The output has to end here: %s", error)
        row = np.zeros((len(self.vocabulary) + 31) // 32, dtype=np.int32)
        allow(row, self.vocabulary.eos_ids)
        return row

    def _follow(self, tokens: npt.NDArray[np.int64]) -> None:
        known = self._known
        if known is None:
            self._begin(tokens)
            return
        shared = min(len(known), len(tokens))
        if not np.array_equal(known[:shared], tokens[:shared]):
            shared = int(np.argmax(known[:shared] != tokens[:shared]))
        gone, come = len(known) - shared, len(tokens) - shared
        step = gone == 0 and come <= 1
        if not step and (shared < self._prompt_length or max(gone, come) > self._drafts):
            self._begin(tokens)
            return
        if self.error is not None:
            self._known = tokens.copy()
            return
        before = self._matcher.fork()
        # Fewer than went, where some had come behind the end.
        kept = min(self._accepted, shared - self._prompt_length)
        self._matcher.rollback(self._accepted - kept)
        wanted = tokens[shared:].tolist()
        count = 0 if self._has_foreign(wanted) else self._matcher.accept_tokens(wanted)
        if count < len(wanted) and not self._matcher.is_terminated:
            self._matcher = before
            if not step:
                self._begin(tokens)
                return
            self._known = tokens.copy()
            raise mw.MaskwrightError(
                f"token {wanted[0]} was chosen, which the grammar does not allow: another processor or a draft has the last word, "
                "or this is the prompt of a new call (use a new processor for each call, or reset())"
            )
        self._accepted = kept + count
        self._known = tokens.copy()

    def _has_foreign(self, tokens: list[int]) -> bool:
        return any(not 0 <= token < len(self.vocabulary) for token in tokens)

    def _begin(self, tokens: npt.NDArray[np.int64]) -> None:
        self.error = None
        self._matcher = self.compiled.matcher(max_rollback=_WINDOW if self._drafts else 1)
        self._accepted = 0
        self._known = tokens.copy()
        self._prompt_length = len(tokens) if self._fixed_length is None else self._fixed_length
        wanted = tokens[self._prompt_length :].tolist()
        count = 0 if self._has_foreign(wanted) else self._matcher.accept_tokens(wanted)
        self._accepted = count
        if count < len(wanted) and not self._matcher.is_terminated:
            raise mw.MaskwrightError(f"token {wanted[count]} was chosen, which the grammar does not allow")


def checked_width(follower: Follower, width: int) -> None:
    """Raises ``VocabularyError`` when logits are not as wide as the vocabulary."""
    size = len(follower.vocabulary)
    if width != size:
        raise mw.VocabularyError(
            f"the model's logits are {width} wide, the vocabulary has {size} ids; build it with vocab_size={width}"
        )
