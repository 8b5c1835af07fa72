"""A logits processor for ``generate`` of Hugging Face transformers.

``generate`` tells a processor neither when a generation begins nor which row is which: beams are
permuted at every step, and assisted decoding shrinks and regrows its candidates.  So the state here
is a function of the generated tokens alone: each row is looked up among the prefixes seen lately, and
only what is missing is replayed.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.masks.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from maskwright.masks.forced import ForcedText

if TYPE_CHECKING:
    from maskwright._core import Matcher
    from maskwright.compiling.compiler import CompiledGrammar

_MAX_PROMPTS = 8
_TOKEN_BYTES = 8
_WINDOW = 16
"""Tokens that a matcher remembers: prefixes are found by others, and forced text looks a few tokens back."""


class LogitsProcessor(transformers.LogitsProcessor):  # type: ignore[misc, unused-ignore]
    """Keeps what ``model.generate(..., logits_processor=[LogitsProcessor(grammar)])`` writes in a language.

    Works with greedy search, sampling, beams, ``num_return_sequences``, batches, assisted and prompt-lookup
    decoding, and for any number of generations one after another.

    ``grammars``: one for all rows, or a list with one for each prompt of the batch (then prompt i owns rows
    ``i * k`` to ``(i + 1) * k - 1``, with k beams or returned sequences).
    ``prompt_length``: the number of columns of ``input_ids`` before the generated tokens.  Without it, a
    generation begins where the processor first sees a prompt.  One case cannot be told from a
    continuation: a new prompt that extends an earlier one by text which the grammar also allows; pass
    ``prompt_length``, call ``reset()``, or use a new processor then.
    ``assistant_vocab_size``: logits of this width come from an assistant model and pass unchanged; needed
    when the assistant's width differs from the model's (the model checks what it drafts anyway).
    ``tokenizer``: with one, text that the grammar forces is written in its own tokens, as the model was trained on,
    instead of any that spell it.  (``forced_decoding`` does not even ask the model about them.)

    A row whose tokens the grammar does not allow (a rejected candidate, a beam without hope) is left as it
    came; a finished row allows EOS.  Raises ``VocabularyError`` when the logits are not as wide as the
    vocabulary.
    """

    supports_continuous_batching = False

    def __init__(
        self,
        grammars: CompiledGrammar | Sequence[CompiledGrammar],
        *,
        prompt_length: int | None = None,
        assistant_vocab_size: int | None = None,
        tokenizer: Any = None,
    ) -> None:
        self._grammars = list(grammars) if isinstance(grammars, Sequence) else [grammars]
        for grammar in self._grammars:
            if not hasattr(grammar, "matcher"):
                raise MaskwrightError(f"a compiled grammar is needed, not {type(grammar).__name__}")
        sizes = {grammar.vocabulary.vocab_size for grammar in self._grammars}
        if len(sizes) != 1:
            raise VocabularyError(
                f"one or more grammars of one vocabulary are needed; sizes: {sorted(sizes)}"
            )
        if prompt_length is not None and prompt_length < 0:
            raise MaskwrightError(f"prompt_length is a number of tokens, not {prompt_length}")
        (self._vocab_size,) = sizes
        self._prompt_length = prompt_length
        self._assistant_vocab_size = assistant_vocab_size
        self._forced = None if tokenizer is None else ForcedText(tokenizer, self._grammars[0].vocabulary)
        self._warned = False
        self.mask_seconds = 0.0
        """Time spent on masks so far, in seconds: following tokens, filling and applying."""
        self.reset()

    def reset(self) -> None:
        """Forget all prompts and prefixes: the next call begins a new generation."""
        self._prompts: list[npt.NDArray[np.int64]] = []
        self._histories = {id(grammar): _History(grammar.matcher(_WINDOW)) for grammar in self._grammars}

    def __call__(self, input_ids: torch.LongTensor, scores: torch.Tensor) -> torch.Tensor:
        """A masked copy of ``scores`` ([rows, V]) for what follows ``input_ids`` ([rows, columns])."""
        rows, width = scores.shape
        if width != self._vocab_size:
            if width == self._assistant_vocab_size:
                return scores
            raise VocabularyError(
                f"the model's logits are {width} wide, the vocabulary has {self._vocab_size} ids; build it "
                f"with Vocabulary.from_huggingface(tokenizer, vocab_size={width}), or, when these logits are "
                f"an assistant model's, pass assistant_vocab_size={width} to LogitsProcessor"
            )
        if rows % len(self._grammars):
            raise MaskwrightError(
                f"{rows} rows cannot be shared out among {len(self._grammars)} grammars; pass one a prompt"
            )
        if input_ids.dim() != 2 or len(input_ids) != rows:
            raise MaskwrightError(
                f"input_ids is [{rows}, columns], as scores has {rows} rows, not {list(input_ids.shape)}"
            )
        # Prefixes are compared as bytes.
        ids = input_ids.detach().cpu().numpy().astype(np.int64, copy=False)
        started = time.perf_counter()
        bitmask = allocate_token_bitmask(rows, width)
        for row, matcher in enumerate(self._follow(ids)):
            if matcher is not None:
                matcher.fill_next_token_bitmask(bitmask, row)
                if self._forced is not None:
                    _leave_own_token(self._forced, matcher, bitmask[row])
        scores = scores.clone()  # prompt-lookup decoding hands in the same scores again and again
        apply_token_bitmask_inplace(scores, bitmask)
        self._rescue(scores, bitmask)
        self.mask_seconds += time.perf_counter() - started
        return scores

    def _follow(self, ids: npt.NDArray[np.int64]) -> list[Matcher | None]:
        """A matcher for each row (do not change it), None for rows outside the language."""
        length = self._known_prompt_length(ids)
        found = self._look_up(ids, length)
        if length != ids.shape[1] and self._prompt_length is None and all(leap for _, _, leap in found):
            # Nothing led here step by step, and it is no output of ours: the prompt of a new generation.
            if any(matcher is None or stray for matcher, stray, _ in found):
                self._remember_prompt(ids)
                found = self._look_up(ids, ids.shape[1])
        return [matcher for matcher, _, _ in found]

    def _look_up(self, ids: npt.NDArray[np.int64], length: int) -> list[tuple[Matcher | None, bool, bool]]:
        share = ids.shape[0] // len(self._grammars)
        # Only a single row may shrink by more than a step (assisted decoding).
        keep = 2 * ids.shape[0] + (32 if ids.shape[0] == 1 else 2)
        generated = np.ascontiguousarray(ids[:, length:])
        return [
            self._histories[id(self._grammars[row // share])].follow(generated[row], keep)
            for row in range(ids.shape[0])
        ]

    def _known_prompt_length(self, ids: npt.NDArray[np.int64]) -> int:
        if self._prompt_length is not None:
            if ids.shape[1] < self._prompt_length:
                raise MaskwrightError(
                    f"prompt_length is {self._prompt_length}, but there are only {ids.shape[1]} tokens"
                )
            return self._prompt_length
        lengths = [
            prompt.shape[1]
            for prompt in self._prompts
            if prompt.shape[0] == ids.shape[0] and np.array_equal(prompt, ids[:, : prompt.shape[1]])
        ]
        if not lengths:
            self._remember_prompt(ids)
        return max(lengths, default=int(ids.shape[1]))

    def _remember_prompt(self, ids: npt.NDArray[np.int64]) -> None:
        # Several, since an assistant with a tokenizer of its own has another prompt.
        self._prompts = [*self._prompts[1 - _MAX_PROMPTS :], ids.copy()]

    def _rescue(self, scores: torch.Tensor, bitmask: npt.NDArray[np.int32]) -> None:
        # Processors before this one may have forbidden all that the grammar allows.
        empty = scores.amax(dim=-1).isneginf().nonzero().flatten().tolist()
        if not empty:
            return
        fallback = torch.zeros((len(empty), scores.shape[1]), dtype=scores.dtype, device=scores.device)
        apply_token_bitmask_inplace(fallback, bitmask[empty])
        # Beam search compares scores across rows, so they must remain log-probabilities.
        scores[empty] = fallback.log_softmax(dim=-1)
        if not self._warned:
            self._warned = True
            warnings.warn(
                "other logits processors (such as min_new_tokens or bad_words_ids) forbid every token that "
                "the grammar allows here; the grammar has precedence",
                stacklevel=2,
            )


def _leave_own_token(forced: ForcedText, matcher: Matcher, words: npt.NDArray[np.int32]) -> None:
    """Where text is forced, allow only the tokenizer's own first token of it."""
    _, tokens = forced.tokens(matcher, matcher.accepted_tokens, may_replace=False)
    if tokens:
        words[:] = 0
        words.view(np.uint32)[tokens[0] >> 5] = 1 << (tokens[0] & 31)


class _History:
    """Matchers by generated prefix, the latest used last."""

    def __init__(self, start: Matcher) -> None:
        self._start = start
        self._matchers: dict[bytes, Matcher | None] = {}

    def follow(self, tokens: npt.NDArray[np.int64], keep: int) -> tuple[Matcher | None, bool, bool]:
        """(the matcher behind ``tokens`` or None, whether text follows its EOS, whether the prefix is new by
        more than one token); at most ``keep`` prefixes are kept."""
        data = tokens.tobytes()
        # startswith is one memcmp: cheaper than hashing every prefix, and exact.
        known = max((path for path in self._matchers if data.startswith(path)), key=len, default=b"")
        matcher = self._matchers.pop(known, self._start)
        missing = tokens[len(known) // _TOKEN_BYTES :].tolist()
        stray = False
        if known:
            self._matchers[known] = matcher
        if missing and matcher is not None:
            matcher, stray = _advance(matcher.fork(), missing)
        if data:
            self._matchers[data] = matcher
        while len(self._matchers) > keep:
            del self._matchers[next(iter(self._matchers))]
        return matcher, stray, len(missing) > 1


def _advance(matcher: Matcher, tokens: list[int]) -> tuple[Matcher | None, bool]:
    try:
        taken = matcher.accept_tokens(tokens)
    except VocabularyError:  # an id of another tokenizer
        return None, False
    if taken == len(tokens):
        return matcher, False
    if not matcher.is_terminated:
        return None, False
    # A finished row is padded with one token, whichever that is.
    return matcher, len(set(tokens[taken:])) > 1
