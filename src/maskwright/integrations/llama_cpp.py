"""llama-cpp-python: the vocabulary of a ``Llama``, and a logits processor for its completions (``docs/engines.md``)."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

import maskwright as mw
from maskwright.integrations.following import Follower, checked_width

__all__ = ["LogitsProcessor", "vocabulary"]


def vocabulary(llm: Any) -> mw.Vocabulary:
    """The vocabulary of a loaded ``llama_cpp.Llama``: bytes of its tokens, and all ids at which llama.cpp ends.

    Takes some tenths of a second; make it once a model.  Raises ``VocabularyError`` when the model has no tokens or no end.
    """
    import llama_cpp

    model = getattr(llm, "_model", None)
    if model is None:
        raise mw.VocabularyError(f"a llama_cpp.Llama is needed, not {type(llm).__name__}")
    handle = model.vocab
    no_text = (
        llama_cpp.LLAMA_TOKEN_ATTR_CONTROL
        | llama_cpp.LLAMA_TOKEN_ATTR_UNKNOWN
        | llama_cpp.LLAMA_TOKEN_ATTR_UNUSED
    )
    tokens, ends, special = [], [], []
    for token in range(llama_cpp.llama_vocab_n_tokens(handle)):
        if llama_cpp.llama_vocab_is_eog(handle, token):
            ends.append(token)
        if llama_cpp.llama_vocab_get_attr(handle, token) & no_text:
            special.append(token)
        # Special tokens are given with their names.
        tokens.append(_piece(llama_cpp, handle, token))
    if not ends:
        raise mw.VocabularyError("this model has no token that ends a text")
    # llama.cpp decodes the output behind its prompt, so words keep the blank that they start with.
    return mw.Vocabulary.from_bytes(tokens, eos_ids=ends, special_ids=special)


def _piece(llama_cpp: Any, handle: Any, token: int) -> bytes:
    size = 64
    while True:
        buffer = ctypes.create_string_buffer(size)
        written: int = llama_cpp.llama_token_to_piece(handle, token, buffer, size, 0, True)
        if written >= 0:
            return buffer.raw[:written]
        size = -written


class LogitsProcessor:
    """Keeps what a completion of ``llm`` writes in a language: ``llm(prompt, logits_processor=LogitsProcessorList([processor]))``.

    ``grammar``: compiled for ``vocabulary(llm)``.  One object serves one completion after another; where the next prompt is the last text
    and one token more, call ``reset()`` before.

    llama-cpp-python calls it where an exception would be printed and forgotten, and the token chosen without a mask.  So none is
    raised: where no mask can be computed, only the ends are allowed, and the completion ends.  Call ``check()`` behind it.

    Raises ``MaskwrightError`` for a model with ``draft_model``: processors are then shown all that was drafted, at each of its places.
    """

    def __init__(self, grammar: Any, llm: Any) -> None:
        self._llm = llm
        self._follower = Follower(grammar)
        self._refuse_drafts()

    def _refuse_drafts(self) -> None:
        if getattr(self._llm, "draft_model", None) is not None:
            raise mw.MaskwrightError(
                "llama-cpp-python does not tell a logits processor which of the drafted tokens were taken: load the model without draft_model"
            )

    def __call__(
        self, input_ids: npt.NDArray[np.intc], scores: npt.NDArray[np.single]
    ) -> npt.NDArray[np.single]:
        """``scores`` [V] for what follows ``input_ids``, with minus infinity where a token is not allowed; changed in place."""
        follower = self._follower
        mask = follower.mask(np.asarray(input_ids).astype(np.int64))
        try:
            self._refuse_drafts()
            checked_width(follower.vocabulary, len(scores))
            mw.apply_token_bitmask_inplace(scores, mask)
        except mw.MaskwrightError as error:
            follower.error = follower.error or error
            scores[:] = -np.inf
            ends = [end for end in follower.vocabulary.eos_ids if end < len(scores)]
            scores[ends] = 0
        return scores

    def check(self) -> None:
        """Raise the error that ended the completion, if one did (``LimitError``, ``VocabularyError``, ``MaskwrightError``)."""
        if self._follower.error is not None:
            raise self._follower.error

    def reset(self) -> None:
        """Forget the text: the next call begins a new one."""
        self._follower.reset()

    def fork(self) -> LogitsProcessor:
        """Another one in the same state; both share all that is computed."""
        other = LogitsProcessor(self._follower.compiled, self._llm)
        other._follower = self._follower.fork()
        return other
