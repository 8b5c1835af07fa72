"""Following outputs of which an engine tells all tokens at each step, and nothing else: not when a prompt is new, not when it ends."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Any

import numpy as np
import numpy.typing as npt

import maskwright as mw
from maskwright.integrations.requests import allow

logger = logging.getLogger(__name__)

Tokens = npt.NDArray[np.int64]


class Follower:
    """One output at a time, from the tokens of the prompt and of the output so far.

    The first tokens are a prompt.  What is one token longer than before continues the output, and what is equal is the same place
    again.  Anything else is a new prompt, and the grammar begins anew.  ``prompt_length``: where the prompt ends, if that is known.

    Raises ``VocabularyError`` for what is no compiled grammar.
    """

    def __init__(self, compiled: Any, prompt_length: int | None = None) -> None:
        if not hasattr(compiled, "matcher"):
            raise mw.VocabularyError(f"a compiled grammar is needed, not {type(compiled).__name__}")
        self.compiled = compiled
        self.vocabulary: mw.Vocabulary = compiled.vocabulary
        self._prompt_length = prompt_length
        self.reset()

    def reset(self) -> None:
        """The next tokens are a prompt."""
        self.tokens: Tokens | None = None
        """What it has read, with the prompt."""
        self.error: mw.MaskwrightError | None = None
        """Why the output had to end, if it had to."""

    def fork(self) -> Follower:
        """Another one in the same state."""
        other = Follower(self.compiled, self._prompt_length)
        if self.tokens is not None:
            other.tokens, other.error, other._matcher = self.tokens, self.error, self._matcher.fork()
        return other

    def mask(self, tokens: Tokens) -> npt.NDArray[np.int32]:
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

    def _follow(self, tokens: Tokens) -> None:
        known, self.tokens = self.tokens, tokens.copy()
        if known is not None and 0 <= len(tokens) - len(known) <= 1:
            if np.array_equal(known, tokens[: len(known)]):
                if self.error is None:
                    self._accept(tokens[len(known) :].tolist())
                return
        self.error = None
        # Nothing is ever taken back.
        self._matcher = self.compiled.matcher(max_rollback=1)
        if self._prompt_length is not None:
            self._accept(tokens[self._prompt_length :].tolist())

    def _accept(self, wanted: list[int]) -> None:
        for token in wanted:
            if self._matcher.is_terminated:
                return  # What follows the end is free.
            if not 0 <= token < len(self.vocabulary) or not self._matcher.accept_token(token):
                raise mw.MaskwrightError(
                    f"token {token} was chosen, which the grammar does not allow: another processor has the last word, or this "
                    "is the prompt of a new call (use a new processor for each call, or reset())"
                )


class Followers:
    """Several outputs in any order, such as the sequences of a batch, beams, and drafts that are taken back.

    Which one is meant is looked up by its tokens: what continues one of the last ``most`` texts by up to two tokens is its output.
    Anything else is a new prompt.
    """

    def __init__(self, compiled: Any, prompt_length: int | None = None, *, most: int = 1024) -> None:
        self._first = Follower(compiled, prompt_length)
        self._most = most
        self.reset()

    def reset(self) -> None:
        """Forget all texts, and the error."""
        self._texts: OrderedDict[tuple[int, int], Follower] = OrderedDict()
        self.error: mw.MaskwrightError | None = None
        """Why an output had to end, of the first that had to."""

    @property
    def compiled(self) -> Any:
        """The grammar."""
        return self._first.compiled

    @property
    def vocabulary(self) -> mw.Vocabulary:
        """That of the grammar."""
        return self._first.vocabulary

    def mask(self, tokens: Tokens) -> npt.NDArray[np.int32]:
        """As ``Follower.mask``."""
        follower = self._known(tokens)
        if follower is None:
            follower = self._continued(tokens)
        mask = follower.mask(tokens)
        self.error = self.error or follower.error
        self._texts[_key(tokens)] = follower
        self._texts.move_to_end(_key(tokens))
        while len(self._texts) > self._most:
            self._texts.popitem(last=False)
        return mask

    def _continued(self, tokens: Tokens) -> Follower:
        before = self._known(tokens[:-1])
        if before is None and (before := self._known(tokens[:-2])) is not None:
            before = before.fork()
            before.mask(tokens[:-1])
            if before.error is not None:
                before = None  # The prompt of a new call that begins with an old text.
        return self._first.fork() if before is None else before.fork()

    def _known(self, tokens: Tokens) -> Follower | None:
        found = self._texts.get(_key(tokens))
        if found is None or found.tokens is None or not np.array_equal(found.tokens, tokens):
            return None
        return found


def _key(tokens: Tokens) -> tuple[int, int]:
    return len(tokens), hash(tokens.tobytes())


def checked_width(vocabulary: mw.Vocabulary, width: int) -> None:
    """Raises ``VocabularyError`` when logits are not as wide as the vocabulary."""
    if width != len(vocabulary):
        raise mw.VocabularyError(
            f"the model's logits are {width} wide, the vocabulary has {len(vocabulary)} ids; build it with vocab_size={width}"
        )
