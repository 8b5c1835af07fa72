"""A logits processor for ``generate`` of Hugging Face transformers.

``generate`` tells a processor neither when a generation begins nor which row is which: beams are
permuted at every step, and assisted decoding shrinks and regrows its candidates.  So the state here
is a function of the generated tokens alone: each row is looked up among the prefixes seen lately, and
only what is missing is replayed.

Where a generation begins is told by the masks: what they forbid had no chance to be chosen, so who shows it behind a
prompt, or behind an output, begins anew.  Three things are chosen nevertheless: padding behind the end of a row while
others go on, anything behind the end of beams and by beams that have no hope, and tokens of a draft, which are rejected
in the same pass.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
import transformers

from maskwright.base.arguments import whole
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.masks.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from maskwright.masks.forced import ForcedText

if TYPE_CHECKING:
    from maskwright._core import Matcher
    from maskwright.compiling.compiler import CompiledGrammar

_MAX_PROMPTS = 32
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
    generation begins where the processor first sees a prompt, also one that extends an earlier prompt or output.
    One case cannot be told from a continuation: a new prompt that extends an earlier one by text which the grammar
    also allows there (an output with its EOS, say, and nothing behind it); pass ``prompt_length``, call
    ``reset()``, or use a new processor then.
    ``assistant_vocab_size``: logits of this width come from an assistant model and pass unchanged; needed
    when the assistant's width differs from the model's (the model checks what it drafts anyway).
    ``tokenizer``: with one, text that the grammar forces is written in its own tokens, as the model was trained on,
    instead of any that spell it.  (``forced_decoding`` does not even ask the model about them.)

    A row whose tokens the grammar does not allow (a beam without hope) is left as it came; a finished row allows EOS.
    Where something behind this processor overrules it in the middle of an output, what follows begins anew, with a
    warning.  Raises ``VocabularyError`` when the logits are not as wide as the vocabulary.
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
        if prompt_length is not None:
            prompt_length = whole(prompt_length, "prompt_length", low=0)
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
        self._last: npt.NDArray[np.int64] = np.zeros((0, 0), dtype=np.int64)
        self._begun = 0 if self._prompt_length is None else self._prompt_length
        """Columns before the generated tokens, in the last call."""
        self._given: torch.Tensor | None = None
        # Prompts with one grammar share one.
        histories = {
            id(grammar): _History(grammar.matcher(_WINDOW), frozenset(grammar.vocabulary.eos_ids))
            for grammar in self._grammars
        }
        self._histories = [histories[id(grammar)] for grammar in self._grammars]

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
        drafted = self._is_drafted(input_ids)
        matchers = self._follow(ids, drafted)
        if not drafted and all(matcher is None for matcher in matchers):
            warnings.warn(
                "no row is a text of the grammar, so nothing is masked: is prompt_length that of this prompt?",
                stacklevel=2,
            )
        for row, matcher in enumerate(matchers):
            if matcher is not None:
                matcher.fill_next_token_bitmask(bitmask, row)
                if self._forced is not None:
                    _leave_own_token(self._forced, matcher, bitmask[row])
        scores = scores.clone()  # prompt-lookup decoding hands in the same scores again and again
        apply_token_bitmask_inplace(scores, bitmask)
        self._rescue(scores, bitmask)
        self.mask_seconds += time.perf_counter() - started
        return scores

    def _is_drafted(self, input_ids: torch.Tensor) -> bool:
        """Whether the last column is a candidate's: assisted decoding shows more and more of one tensor."""
        # The last one is held on to, so that no other tensor can lie in its place.
        before, self._given = self._given, input_ids
        return (
            before is not None
            and input_ids.shape[1] == before.shape[1] + 1
            and input_ids.device == before.device
            and input_ids.untyped_storage().data_ptr() == before.untyped_storage().data_ptr()
        )

    def _follow(self, ids: npt.NDArray[np.int64], drafted: bool = False) -> list[Matcher | None]:
        """A matcher for each row (do not change it), None for rows outside the language."""
        width = int(ids.shape[1])
        if self._prompt_length is not None:
            if width < self._prompt_length:
                raise MaskwrightError(
                    f"prompt_length is {self._prompt_length}, but there are only {width} tokens"
                )
            return [place.matcher for place in self._look_up(ids, self._prompt_length)]
        step = self._is_step(ids)
        length = self._begun if step else self._known_prompt_length(ids)
        found = self._look_up(ids, length)
        if length < width and self._begins(ids[:, :length], found, step):
            if step and not drafted:
                self._warn_of_disobedience(ids, length, found)
            length = width
            found = self._look_up(ids, length)
        if length == width and not drafted:
            # The drafts of one pass could push out the prompt that they are for.
            self._remember_prompt(ids)
        self._last, self._begun = ids.copy(), length
        return [place.matcher for place in found]

    def _is_step(self, ids: npt.NDArray[np.int64]) -> bool:
        """Whether these are rows of the last call with a token more each, in any order, or the same rows again."""
        last = self._last
        if len(last) != len(ids) or not 0 <= ids.shape[1] - last.shape[1] <= 1:
            return False
        before = np.ascontiguousarray(ids[:, : last.shape[1]])
        return bool(np.array_equal(before, last)) or {row.tobytes() for row in before} <= {
            row.tobytes() for row in last
        }

    def _begins(self, prompts: npt.NDArray[np.int64], found: list[_Place], step: bool) -> bool:
        """Whether these rows are no outputs behind ``prompts``, but prompts themselves."""
        strange = [place.matcher is None or bool(place.padding) for place in found]
        if len(found) == 1 or not step:
            # A single row is not padded, and several never leap.
            return any(strange)
        if all(strange):
            return True
        # Beams begin with equal rows.  Only they may be without hope, and behind an end anything but one padding.
        beams = len({row.tobytes() for row in prompts}) < len(found)
        paddings = frozenset[int]().union(*(place.padding for place in found))
        return not beams and (len(paddings) > 1 or any(place.matcher is None for place in found))

    def _warn_of_disobedience(self, ids: npt.NDArray[np.int64], length: int, found: list[_Place]) -> None:
        if ids.shape[1] - length < 2:  # no output has been seen that this could be the middle of
            return
        before = self._look_up(ids[:, :-1], length)
        for place, earlier in zip(found, before, strict=True):
            if place.matcher is None and earlier.matcher is not None and not earlier.matcher.is_accepting:
                warnings.warn(
                    "behind an output that is not complete stands a token that the grammar forbids; it is taken "
                    "for the end of a new prompt. Where a logits processor behind this one wrote it, the output is "
                    "no text of the grammar; where it is a prompt, call reset() before it, or pass prompt_length",
                    stacklevel=4,
                )
                return

    def _look_up(self, ids: npt.NDArray[np.int64], length: int) -> list[_Place]:
        share = ids.shape[0] // len(self._grammars)
        # Only a single row may shrink by more than a step (assisted decoding).
        keep = 2 * ids.shape[0] + (32 if ids.shape[0] == 1 else 2)
        generated = np.ascontiguousarray(ids[:, length:])
        return [self._histories[row // share].follow(generated[row], keep) for row in range(ids.shape[0])]

    def _known_prompt_length(self, ids: npt.NDArray[np.int64]) -> int:
        known = [
            prompt
            for prompt in self._prompts
            if prompt.shape[0] == ids.shape[0] and np.array_equal(prompt, ids[:, : prompt.shape[1]])
        ]
        if not known:
            return int(ids.shape[1])
        longest = max(known, key=lambda prompt: prompt.shape[1])
        self._remember_prompt(longest)
        return int(longest.shape[1])

    def _remember_prompt(self, ids: npt.NDArray[np.int64]) -> None:
        # Several, since an assistant with a tokenizer of its own has another prompt; the latest used last.
        others = [prompt for prompt in self._prompts if not np.array_equal(prompt, ids)]
        self._prompts = [*others[1 - _MAX_PROMPTS :], ids.copy()]

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


class _Place(NamedTuple):
    """Where a row is: its matcher, None outside of the language, and what stands behind its end other than EOS."""

    matcher: Matcher | None
    padding: frozenset[int] = frozenset()


class _History:
    """Places by generated prefix, the latest used last."""

    def __init__(self, start: Matcher, eos_ids: frozenset[int]) -> None:
        self._start = _Place(start)
        self._eos_ids = eos_ids
        self._places: dict[bytes, _Place] = {}

    def follow(self, tokens: npt.NDArray[np.int64], keep: int) -> _Place:
        """The place behind ``tokens``; at most ``keep`` prefixes are kept."""
        data = tokens.tobytes()
        # startswith is one memcmp: cheaper than hashing every prefix, and exact.
        known = max((path for path in self._places if data.startswith(path)), key=len, default=b"")
        place = self._places.pop(known, self._start)
        missing = tokens[len(known) // _TOKEN_BYTES :].tolist()
        if known:
            self._places[known] = place
        if missing and place.matcher is not None:
            place = self._advance(place.matcher.fork(), place.padding, missing)
        if data:
            self._places[data] = place
        while len(self._places) > keep:
            del self._places[next(iter(self._places))]
        return place

    def _advance(self, matcher: Matcher, padding: frozenset[int], tokens: list[int]) -> _Place:
        try:
            taken = matcher.accept_tokens(tokens)
        except VocabularyError:  # an id of another tokenizer
            return _Place(None)
        if taken < len(tokens) and not matcher.is_terminated:
            return _Place(None)
        return _Place(matcher, padding | (frozenset(tokens[taken:]) - self._eos_ids))
