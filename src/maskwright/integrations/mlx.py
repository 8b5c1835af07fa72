"""MLX-LM: a logits processor (``docs/engines.md``)."""

from __future__ import annotations

from typing import Any

import numpy as np

import maskwright as mw
from maskwright.integrations.following import Followers, checked_width

__all__ = ["LogitsProcessor", "vocabulary"]


def vocabulary(tokenizer: Any, model: Any) -> mw.Vocabulary:
    """The vocabulary of what ``mlx_lm.load`` returns, as wide as the logits of the model.

    Raises ``VocabularyError`` for a tokenizer without exact bytes, and for a model that does not tell its width.
    """
    size = getattr(getattr(model, "args", None), "vocab_size", None)
    if size is None:
        raise mw.VocabularyError(
            "this model does not tell the width of its logits: use Vocabulary.from_huggingface(tokenizer, vocab_size=...)"
        )
    # mlx_lm wraps the tokenizer, and knows more ends.
    inner = getattr(tokenizer, "_tokenizer", tokenizer)
    ends = getattr(tokenizer, "eos_token_ids", None) or [tokenizer.eos_token_id]
    return mw.Vocabulary.from_huggingface(inner, vocab_size=size, eos_ids=sorted(ends))


class LogitsProcessor:
    """Keeps what MLX-LM writes in a language: ``generate(..., logits_processors=[LogitsProcessor(grammar)])``.

    ``grammar``: compiled for ``vocabulary(tokenizer, model)``.  One object serves one call after another, all sequences of a batch
    (up to some 500), and ``draft_model=``.  A prompt that continues an earlier text of it by at most two tokens is taken for that
    text, going on: call ``reset()`` before, or use a new processor for each call.

    Where no mask can be computed (a limit), only the ends are allowed, so that other sequences go on; call ``check()`` behind it.
    """

    def __init__(self, grammar: Any) -> None:
        self._followers = Followers(grammar)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """``logits`` ([1, V] or [V]) for what follows ``tokens``, with minus infinity where a token is not allowed.

        Waits for ``tokens``, as the mask depends on them; the mask is sent packed, and applied on the device.
        Raises ``VocabularyError`` when the logits are not as wide as the vocabulary.
        """
        import mlx.core as mx

        checked_width(self._followers.vocabulary, logits.shape[-1])
        words = self._followers.mask(np.array(tokens, dtype=np.int64))
        packed = mx.array(words.view(np.uint32))
        bits = (packed[:, None] >> mx.arange(32, dtype=mx.uint32)) & 1
        allowed = bits.reshape(-1)[: logits.shape[-1]] == 1
        return mx.where(allowed, logits, mx.array(-float("inf"), dtype=logits.dtype))

    def check(self) -> None:
        """Raise the error that ended the output, if one did."""
        if self._followers.error is not None:
            raise self._followers.error

    def reset(self) -> None:
        """Forget the text: the next call begins a new one."""
        self._followers.reset()
