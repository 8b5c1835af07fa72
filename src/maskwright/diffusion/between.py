"""Fill in the middle, left to right: prefix and suffix are given, the middle is constrained.

For autoregressive models.  A token is allowed when some middle of at most ``max_tokens`` tokens that goes on with
it makes prefix + middle + suffix a text of the language; the end of the middle when it does already.  This asks
whether a context-free language meets a regular one, prefix V{0,k} suffix, and is answered by ``Reading``: open slots
that may be left out, then the suffix.
"""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt

from maskwright._core import StateSets
from maskwright.base.arguments import whole
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.diffusion.distance import Distances
from maskwright.diffusion.sets import HoldsSets, check_grammar, state_sets
from maskwright.diffusion.slots import text_bytes
from maskwright.errors import CanvasError, UnsatisfiableError

MAX_MIDDLE = 4096


class Middle(HoldsSets):
    """The middle of a text, token by token; see ``complete_between``.  A rejected token and an error change nothing.

    All methods but ``rollback`` raise ``LimitError`` when they exceed the grammar's ``Limits``.
    """

    def __init__(self, grammar: CompiledGrammar, prefix: bytes, suffix: bytes, max_tokens: int) -> None:
        self.grammar = grammar
        self.vocabulary = grammar.vocabulary
        self.prefix = prefix
        self.suffix = suffix
        self.max_tokens = max_tokens
        self._tokens: list[int] = []
        self._move(state_sets(grammar))
        if self.with_room(self._state) < 0:
            raise UnsatisfiableError("no text of the language begins with the prefix")
        if not self.with_room(lambda: self._can_close(self._state(), max_tokens)):
            raise UnsatisfiableError(f"no middle of at most {max_tokens} tokens joins prefix and suffix")

    def _move(self, sets: StateSets) -> None:
        self.sets = sets
        self._states: list[int] = []
        self._closing: dict[int, bool] = {}
        self._distances = Distances()

    def _state(self) -> int:
        """The state of prefix and middle."""
        if not self._states:
            start = self.sets.start
            states = [self.sets.next_bytes(start, self.prefix) if self.prefix else start]
            for token in self._tokens:
                states.append(self.sets.next(states[-1], token))
            self._states = states
        return self._states[-1]

    @property
    def tokens(self) -> list[int]:
        """The middle so far."""
        return list(self._tokens)

    @property
    def can_end(self) -> bool:
        """Whether prefix, middle so far and suffix make a text of the language."""
        return self.with_room(lambda: self._closes(self._state()))

    def allowed(self) -> npt.NDArray[np.bool_]:
        """Which ids may come next (bool [vocabulary size]); end tokens exactly when the middle may end (``can_end``)."""
        return self.with_room(self._allowed)

    def _allowed(self) -> npt.NDArray[np.bool_]:
        out = np.zeros(self.vocabulary.vocab_size, dtype=np.bool_)
        left = self.max_tokens - len(self._tokens)
        if left > 0:
            for target, ids in self.sets.classes(self._state()):
                if self._can_close(target, left - 1):
                    out[np.frombuffer(ids, dtype=np.int32)] = True
        if self._closes(self._state()):
            out[list(self.vocabulary.eos_ids)] = True
        return out

    def accept_token(self, token: int) -> bool:
        """Go on by one token; False, and nothing changed, when it is not allowed.

        An end token is not part of the middle, so it is False: where ``allowed`` has one and the model chooses it, the middle is
        over.  Raises ``VocabularyError`` for an id outside the vocabulary.
        """
        state = self.with_room(lambda: self._after(token))
        if state < 0:
            return False
        self._states.append(state)
        self._tokens.append(operator.index(token))
        return True

    def _after(self, token: int) -> int:
        """The state behind one more token, -1 when it is not allowed."""
        state = int(self.sets.next(self._state(), token))
        left = self.max_tokens - len(self._tokens)
        return state if left > 0 and self._can_close(state, left - 1) else -1

    def rollback(self, count: int) -> None:
        """Take back the last ``count`` tokens.  Raises ``CanvasError`` when there are fewer."""
        count = whole(count, "count", CanvasError)
        if not 0 <= count <= len(self._tokens):
            raise CanvasError(f"cannot take back {count} of {len(self._tokens)} tokens")
        del self._tokens[len(self._tokens) - count :]
        del self._states[len(self._tokens) + 1 :]

    def _closes(self, state: int) -> bool:
        known = self._closing.get(state)
        if known is None:
            after = self.sets.next_bytes(state, self.suffix) if self.suffix else state
            known = self._closing[state] = after >= 0 and self.sets.is_accepting(after)
        return known

    def _can_close(self, state: int, tokens: int) -> bool:
        """Whether at most ``tokens`` more tokens and the suffix complete a text in ``state``."""
        return state >= 0 and self._distances.within(state, tokens, self._closes, self.sets.any)


def complete_between(
    grammar: CompiledGrammar, prefix: str | bytes, suffix: str | bytes, *, max_tokens: int = 256
) -> Middle:
    """The middle between two texts as a constraint for an autoregressive model.

    ``max_tokens`` bounds the middle; masks never lead to where it does not suffice.  Exact, except that
    undeclared keys of one object may clash with those of the suffix (``StateSets``): then a text may not be completed.

    Raises ``UnsatisfiableError`` when no such middle exists, ``CanvasError`` for ``max_tokens`` outside 0 to 4096 and for what is
    no text.
    """
    most = whole(max_tokens, "max_tokens", CanvasError, 0)
    if most > MAX_MIDDLE:
        raise CanvasError(f"max_tokens: expected 0 to {MAX_MIDDLE}, got {max_tokens!r}")
    check_grammar(grammar)
    return Middle(grammar, text_bytes(prefix, "prefix"), text_bytes(suffix, "suffix"), most)
