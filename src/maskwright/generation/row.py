"""One output while it is written.

What the model has read and what is written are two things.  Written tokens are certain; of these, the model has read all
but the last few, and behind them it may be shown guesses:

    prompt | written, read | written, not read | guesses
                             base    certain     draft

One pass reads `base`, the certain tokens and the draft, and gives logits behind each of them.  `read` then judges the
certain ones (their probability, what the mask removed), makes a free choice behind the last, and goes on as long as the
draft agrees with what was chosen.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from maskwright.errors import LimitError, MaskwrightError, ModelError
from maskwright.generation.chooser import Chooser
from maskwright.generation.drafts import Drafter
from maskwright.generation.results import RemovedMass, Usage
from maskwright.masks.bitmask import apply_token_bitmask_inplace
from maskwright.masks.forced import ForcedText, Words, mask_words
from maskwright.vocabulary.vocabulary import Vocabulary


class StopError(MaskwrightError):
    """A stop text would cut an output where it is not complete."""


class Stop:
    """Texts at which an output ends.  They are looked for in what tokens spell (``Vocabulary.pieces``); one that spells nothing, as
    special tokens do, ends a text, and no stop text reaches over it."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = [text.encode() for text in texts]
        self.longest = max(map(len, self.texts))

    def found(self, pieces: Sequence[bytes]) -> tuple[int, int] | None:
        """Where the first stop text begins: behind so many pieces, and so many bytes of the next one."""
        ends = [at for at, piece in enumerate(pieces) if not piece]
        begin = 0
        for end in (*ends, len(pieces)):
            text = b"".join(pieces[begin:end])
            place = min((at for stop in self.texts if (at := text.find(stop)) >= 0), default=-1)
            if place >= 0:
                while place >= len(pieces[begin]):
                    place -= len(pieces[begin])
                    begin += 1
                return begin, place
            begin = end + 1
        return None

    def begun(self, pieces: Sequence[bytes]) -> int:
        """How many bytes at the end may be the beginning of a stop text."""
        text = b""
        for piece in reversed(pieces):
            if not piece or len(text) >= self.longest:
                break
            text = piece + text
        lengths = (n for stop in self.texts for n in range(1, len(stop)) if text.endswith(stop[:n]))
        return max(lengths, default=0)


class Spelling:
    """What the tokens of an output spell.  Whoever looks at each step spells only what came since the last one."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._names = {i: name.encode() for name, i in vocabulary.special_tokens.items()}
        self.pieces: list[bytes] = []
        self.named: list[bytes] = []
        """The same, with special tokens by name."""

    def follow(self, ids: list[int]) -> None:
        """Spell those behind the ones that are known."""
        known = len(self.pieces)
        new = ids[known:]
        if new:
            start = not any(self.pieces) and self._vocabulary.at_start(ids[:known])
            pieces = self._vocabulary.pieces(new, start=start)
            self.pieces += pieces
            self.named += map(self._names.get, new, pieces)

    def forget(self, count: int) -> None:
        """All but so many are to be spelled anew."""
        del self.pieces[count:], self.named[count:]


def too_short(what: str, needed: int, allowed: int) -> LimitError:
    """The error for a budget, ``what``, that not even the shortest output fits."""
    message = f"{what} is {allowed}, but the shortest output takes {needed} tokens, EOS included"
    return LimitError("max_new_tokens", needed, allowed, message=message)


class Row:
    """One output: its matcher, its tokens, its budget.

    ``room``: the tokens it may have, EOS included; the shortest output must fit, and the row sees to it that it always
    does.  ``scores_all``: whether the model is asked about tokens at the very end, too.  ``on_end``: told when it is done.
    """

    def __init__(
        self,
        matcher: Any,
        prompt: list[int],
        room: int,
        chooser: Chooser,
        *,
        forced: ForcedText,
        drafter: Drafter,
        stop: Stop | None = None,
        scores_all: bool = False,
        top: int = 0,
        on_end: Callable[[Row], object] | None = None,
    ) -> None:
        self.matcher = matcher
        self.prompt = prompt
        self.remaining = room
        self.chooser = chooser
        self.forced = forced
        self.drafter = drafter
        self.stop = stop
        self.vocabulary = forced.vocabulary
        self.scores_all = scores_all
        self.top = top
        self.on_end = on_end
        self.ids: list[int] = []
        self.text: bytes | None = None
        self.done = False
        self.cancelled = False
        self.error: Exception | None = None
        self.reason: Literal["stop", "budget"] = "stop"
        self.logprobs: list[float] = []
        self.top_logprobs: list[dict[int, float]] = []
        self.posterior: dict[str, float] | None = None
        self.removed = RemovedMass()
        self.usage = Usage(prompt_tokens=len(prompt))
        self._ended = False
        self._judged = 0
        self._searched = 0
        self._cut: tuple[int, int] | None = None
        self._spelling = Spelling(self.vocabulary)
        self._masks: deque[Words] = deque()
        self._filled: Words | None = None
        self._started = time.perf_counter()
        self._guessed = 0
        self._timed(self._follow_forced, False)
        self.drafter.wrote(self.ids)
        self._end_if_complete()

    def write(self, tokens: list[int], started: float) -> None:
        """Take a finished output as it is: it is only judged.  ``started``: when the search for it began (``perf_counter``).

        Raises ``MaskwrightError`` where the grammar does not allow it."""
        self._started = started
        self.matcher.reset()
        self._filled = None
        self.ids, self._ended = [], True
        self._masks.clear()
        self._spelling.forget(0)
        self._searched, self._cut = 0, None
        self._add(tokens)
        self.scores_all = True
        self.usage.forced_tokens = 0

    # --- what the batch asks

    @property
    def needs_mask(self) -> bool:
        """Whether the next pass makes a choice behind what is written, for which no mask was handed over."""
        return not self._ended and not self.done and self._filled is None

    def take_mask(self, words: Words, seconds: float) -> None:
        """The mask behind what is written, and what it took."""
        self._filled = words
        self.usage.mask_seconds += seconds

    def next_tokens(self, most: int, draft: bool) -> list[int]:
        """What the model reads next: what it has not read yet, then guesses, together at most ``most`` tokens."""
        unread = self.ids[max(self._judged - 1, 0) :]
        self._guessed = 0
        if draft and not self._ended and len(unread) < most and self.remaining > 2:
            guesses: list[int] = self._timed(
                self.drafter.draft, self.matcher, self.ids, min(most - len(unread), self.remaining - 2)
            )
            self._guessed = len(guesses)
            return unread + guesses
        return unread[:most]

    def read(self, logits: Any, given: list[int]) -> int:
        """Take logits [k + 1, V] behind the base and each of ``given`` [k]; how many of these were rejected."""
        self.usage.model_calls += 1
        before = len(self.ids)
        certain = before - self._judged
        at = 0
        while True:
            masked = self._choose(logits[at]) if self._judged == len(self.ids) else None
            if self._judged < len(self.ids):
                words = self._masks.popleft()
                self._judge(logits[at], self._masked(logits[at], words) if masked is None else masked)
                self._judged += 1
            if self._is_over() or at == len(given) or given[at] != self.ids[self._judged - 1]:
                break
            at += 1
        self.drafter.judged(self._guessed, max(at - certain, 0))
        self.drafter.wrote(self.ids[before:])
        if self._is_over():
            self._finish()
        return len(given) - at

    def fail(self, error: Exception) -> None:
        """End with an error, which concerns this row only."""
        self.error = error
        self._finish()

    # --- choosing and judging

    def _masked(self, logits: Any, words: Words) -> Any:
        """A copy of logits [V], minus infinity where a mask does not allow a token."""
        started = time.perf_counter()
        masked = logits.clone()
        apply_token_bitmask_inplace(masked, words)
        self.usage.mask_seconds += time.perf_counter() - started
        return masked

    def _choose(self, logits: Any) -> Any:
        """Choose a token behind the last one; it joins ``ids``, with what is forced behind it, unless it is EOS.

        Returns the masked logits."""
        started = time.perf_counter()
        words, self._filled = self._filled, None
        if words is None:
            words = mask_words(self.matcher, self.vocabulary.vocab_size)
        self.usage.mask_seconds += time.perf_counter() - started
        masked = self._masked(logits, words)
        if not bool(masked.max().isfinite()):
            raise ModelError("the model gives no finite score to any token that the grammar allows")
        token = self.chooser(masked, self.prompt, self.ids)
        started = time.perf_counter()
        self.drafter.habits.note(words, token)
        self._take(token, words)
        self.usage.mask_seconds += time.perf_counter() - started
        return masked

    def _take(self, token: int, words: Words) -> None:
        """Add a token if the budget still suffices behind it; otherwise the shortest completion."""
        if not self.matcher.accept_token(token):
            raise MaskwrightError(f"a logits processor chose token {token}, which the grammar does not allow")
        if self.matcher.is_terminated:
            self._ended = True
            return
        self.remaining -= 1
        if not self._fits():
            self.matcher.rollback(1)
            self._close()
            return
        self.ids.append(token)
        self._masks.append(words)
        self._follow_forced(may_replace=True)
        self._end_if_complete()

    def _fits(self) -> bool:
        """Whether the budget suffices for the shortest completion and EOS."""
        matcher = self.matcher
        # A token spells at least one byte, unless it stands for itself, so that few bytes need no look at the tokens.
        if (
            hasattr(matcher, "shortest_completion_bytes")
            and not matcher.compiled.has_tokens
            and len(matcher.shortest_completion_bytes()) < self.remaining
        ):
            return True
        return len(matcher.shortest_completion()) < self.remaining

    def _close(self) -> None:
        self.reason = "budget"
        self._ended = True
        self._add(self.matcher.shortest_completion())
        if self.stop is not None:
            self._end_at_stop(self.stop)

    def _add(self, tokens: list[int]) -> None:
        """Write tokens as they are, with the masks that they are judged by."""
        for token in tokens:
            self._masks.append(mask_words(self.matcher, self.vocabulary.vocab_size))
            if not self.matcher.accept_token(token):
                raise MaskwrightError(f"token {token} is not allowed behind {self.ids[-5:]}")
            self.ids.append(token)

    def _follow_forced(self, may_replace: bool) -> None:
        """Write what the grammar forces, in the tokenizer's own tokens; the last token may be spelled anew with it."""
        replaces, tokens = self.forced.tokens(self.matcher, self.ids, may_replace)
        if not tokens:
            return
        matcher, remaining = self.matcher, self.remaining
        count = len(tokens) - 1 if replaces else len(tokens)
        self.matcher, self.remaining = matcher.fork(), remaining - count
        masks = []
        if replaces:
            self.matcher.rollback(1)
        for token in tokens:
            masks.append(mask_words(self.matcher, self.vocabulary.vocab_size))
            if not self.matcher.accept_token(token):
                self.matcher, self.remaining = matcher, remaining
                return
        if not self._fits():
            # The tokenizer's own spelling takes more tokens than there are left.
            self.matcher, self.remaining = matcher, remaining
            return
        if replaces:
            self.ids.pop()
            self._spelling.forget(len(self.ids))
            self._masks.pop()
        self.ids += tokens
        self._masks += masks
        self.usage.forced_tokens += count

    def _end_if_complete(self) -> None:
        """End where nothing but EOS can follow, and at a stop text."""
        if self.stop is not None:
            self._end_at_stop(self.stop)
        if self.matcher.is_accepting and not self._ended:
            words = mask_words(self.matcher, self.vocabulary.vocab_size)
            used = words.nonzero()[0]
            ends = {i >> 5 for i in self.vocabulary.eos_ids}
            if set(used.tolist()) <= ends:
                count = sum(int(word).bit_count() for word in words[used].view("uint32"))
                self._ended = count == len(self.vocabulary.eos_ids)

    def _end_at_stop(self, stop: Stop) -> None:
        ids = self.ids
        self._spelling.follow(ids)
        pieces = self._spelling.pieces
        # In front of these there is none; the last one may have been spelled anew since.
        begin, length = max(min(self._searched, len(ids)) - 1, 0), 0
        while begin and length < stop.longest:
            begin -= 1
            length += len(pieces[begin])
        self._searched = len(ids)
        found = stop.found(pieces[begin:])
        if found is None:
            return
        count, length = found
        short = self.matcher.fork()
        short.reset()
        # Special tokens among them are no bytes.
        for token in ids[: begin + count]:
            short.accept_token(token)
        rest = pieces[begin + count][:length]
        # Sequences of tokens have no text that ends within one.
        reads = not rest or (hasattr(short, "accept_bytes") and short.accept_bytes(rest))
        if not reads or not short.is_accepting:
            behind = b"".join(pieces[: begin + count]) + rest
            raise StopError(
                "a stop text would cut the output where it is not complete, behind "
                f"{behind.decode('utf-8', 'replace')[-60:]!r}: choose another one"
            )
        self._cut = begin + count, length
        self._ended = True

    def shown(self, names: bool = False) -> bytes:
        """What is written, up to a stop text or what may be the beginning of one; ``names``: with special tokens by name."""
        count, length = (len(self.ids), 0) if self._cut is None else self._cut
        self._spelling.follow(self.ids)
        pieces = self._spelling.pieces
        rest = pieces[count][:length] if length else b""
        held = 0 if self.stop is None or self.done or self._cut is not None else self.stop.begun(pieces)
        text = b"".join((self._spelling.named if names else pieces)[:count]) + rest
        return text[: len(text) - held]

    def _judge(self, logits: Any, masked: Any) -> None:
        """Note what the model thought of the next written token, and how much of its distribution the mask removed."""
        token = self.ids[self._judged]
        total = float(torch.logsumexp(logits, dim=-1))
        if not math.isfinite(total):
            raise ModelError("the model gives no finite score to any token that the grammar allows")
        left = math.exp(float(torch.logsumexp(masked, dim=-1)) - total)
        self.removed.steps.append(min(max(1.0 - left, 0.0), 1.0))
        if self.scores_all:
            self.logprobs.append(float(logits[token]) - total)
        if self.top:
            values, ids = logits.topk(min(self.top, len(logits)))
            self.top_logprobs.append(dict(zip(ids.tolist(), (values - total).tolist(), strict=True)))

    # --- the end

    def _is_over(self) -> bool:
        # Tokens at the end are judged only if somebody asks for their probabilities.
        return self._ended and (self._judged >= len(self.ids) or not self.scores_all)

    def _finish(self) -> None:
        self.done = True
        self.text = self.shown()
        self.usage.generated_tokens = len(self.ids)
        self.usage.seconds = time.perf_counter() - self._started
        if self.on_end is not None:
            self.on_end(self)

    def finish_unread(self) -> bool:
        """End without asking the model at all, where the grammar has one text only; whether it is over."""
        if self._is_over() and not self.done:
            self._finish()
        return self.done

    def _timed(self, function: Any, *arguments: Any) -> Any:
        started = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            self.usage.mask_seconds += time.perf_counter() - started
