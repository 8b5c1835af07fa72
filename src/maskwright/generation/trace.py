"""What a model wanted at every token of an output, and what the mask left of it.

The output is written first, as always.  Then one forward pass reads prompt and output again, and every place of the output is
looked at: the model's distribution, the mask, and which part of the schema or grammar was open.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from maskwright.check.grammars import compile_for_bytes
from maskwright.check.texts import Explainer
from maskwright.compiling.compiler import CompiledGrammar
from maskwright.errors import MaskwrightError, ModelError
from maskwright.generation.partial import open_parts
from maskwright.generation.results import Generation
from maskwright.masks.bitmask import allowed_tokens
from maskwright.masks.forced import is_allowed, mask_words
from maskwright.sources import JsonSchema

_WANTED = 8
_END = "end of the output"


@dataclass(frozen=True)
class Wanted:
    """One token that the model would have written: its text, its probability before and after the mask (0: not allowed)."""

    text: str
    before: float
    after: float


@dataclass(frozen=True)
class TracedToken:
    """One place of an output.

    ``text``: the token that was written (the end of the output at the last place).  ``allowed``: how many tokens the mask left.
    ``probability``: the token's own, before the mask; ``rank``: its place among all tokens by that, from 1.  ``removed``: the probability
    that the mask took away.  ``entropy_before``, ``entropy_after``: of the distributions, in bits.  ``wanted``: the likeliest tokens.
    ``forced``: the grammar left no choice of text here.  ``open``: what was open, the innermost first: JSON pointers into the
    output, or rules of the grammar; ``expected``: what was expected there.
    """

    text: str
    allowed: int
    probability: float
    rank: int
    removed: float
    entropy_before: float
    entropy_after: float
    wanted: tuple[Wanted, ...]
    forced: bool
    open: tuple[str, ...]
    expected: str


@dataclass(frozen=True)
class Trace:
    """An output, place by place.  ``vocabulary``: the number of tokens that the model chooses among."""

    prompt: str
    text: str
    vocabulary: int
    tokens: tuple[TracedToken, ...]
    generation: Generation

    @property
    def removed(self) -> float:
        """The probability that the model, left alone along this output, would have left the language somewhere."""
        logs = [math.log1p(-token.removed) if token.removed < 1 else -math.inf for token in self.tokens]
        return -math.expm1(sum(logs))


def trace(
    model: Any,
    prompt_ids: Sequence[int],
    grammar: CompiledGrammar,
    source: Any,
    prompt: str,
    generation: Generation,
) -> Trace:
    """The trace of a finished output.  Raises ``MaskwrightError`` for encoder-decoder models."""
    if getattr(model.config, "is_encoder_decoder", False):
        raise MaskwrightError("traces are for decoder-only models")
    ids = generation.token_ids
    logits = _logits(model, prompt_ids, ids)
    by_bytes, compiled = compile_for_bytes(source)
    explainer = Explainer(by_bytes, compiled, is_schema=isinstance(source, JsonSchema))
    vocabulary = grammar.vocabulary
    matcher = grammar.matcher()
    found = []
    read = b""
    for i, token in enumerate([*ids, None]):
        if token is None and not matcher.is_accepting:
            break  # A stop text ended it.
        data = b"" if token is None else vocabulary.decode([token], start=vocabulary.at_start(ids[:i]))
        forced = token is not None and bool(data) and bytes(matcher.forced_bytes()).startswith(data)
        expectation = explainer.expected(read)
        if explainer.is_schema:
            parts = open_parts(read.decode("utf-8", "ignore"))
        else:
            parts = expectation.groups[0][1] if expectation.groups else ()
        found.append(
            _place(
                logits[i],
                mask_words(matcher, vocabulary.vocab_size),
                vocabulary,
                token,
                forced=forced,
                parts=parts,
                expected=str(expectation),
            )
        )
        if token is not None and not matcher.accept_token(token):
            raise MaskwrightError(f"token {token} is not allowed behind {read[-40:]!r}")
        read += data
    return Trace(prompt, generation.text, vocabulary.vocab_size, tuple(found), generation)


def _logits(model: Any, prompt: Sequence[int], ids: Sequence[int]) -> Any:
    """Logits [n + 1, V] before each of n tokens and behind the last."""
    options: dict[str, Any] = {}
    if "logits_to_keep" in inspect.signature(model.forward).parameters:
        options["logits_to_keep"] = len(ids) + 1
    with torch.inference_mode():
        read = torch.tensor([[*prompt, *ids]], device=model.device)
        return model(input_ids=read, use_cache=False, **options).logits[0, -len(ids) - 1 :].float().cpu()


def _place(
    logits: Any,
    words: Any,
    vocabulary: Any,
    token: int | None,
    *,
    forced: bool,
    parts: tuple[str, ...],
    expected: str,
) -> TracedToken:
    before = torch.softmax(logits.double(), dim=-1)
    if not bool(before.isfinite().all()):
        raise ModelError("the model's scores are no finite numbers")
    allowed = torch.from_numpy(allowed_tokens(words.view("int32"), len(before)))
    left = float(before[allowed].sum())
    after = torch.where(allowed, before / left if left else 0.0, 0.0)
    written = list(vocabulary.eos_ids) if token is None else [token]
    chance = float(before[written].sum())
    values, ids = before.topk(min(_WANTED, len(before)))
    wanted = tuple(
        Wanted(_shown(vocabulary, i), value, float(after[i]) if is_allowed(words, i) else 0.0)
        for value, i in zip(values.tolist(), ids.tolist(), strict=True)
    )
    return TracedToken(
        text=_END if token is None else _shown(vocabulary, token),
        allowed=int(allowed.sum()),
        probability=chance,
        rank=1 + int((before > float(before[written].max())).sum()),
        removed=min(max(1.0 - left, 0.0), 1.0),
        entropy_before=_entropy(before),
        entropy_after=_entropy(after),
        wanted=wanted,
        forced=forced,
        open=parts,
        expected=expected,
    )


def _entropy(chances: Any) -> float:
    return max(0.0, -float(torch.special.xlogy(chances, chances).sum()) / math.log(2))


def _shown(vocabulary: Any, token: int) -> str:
    if token in vocabulary.eos_ids:
        return _END
    text: str = vocabulary.tokens[token].decode("utf-8", "backslashreplace")
    names = (name for name, i in vocabulary.special_tokens.items() if i == token)
    return text or next(names, f"token {token}")
