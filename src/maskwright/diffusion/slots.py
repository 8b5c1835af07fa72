"""A canvas as slots: what is fixed, what is open, what may be left out.

A *canvas* is given as a list of token ids, text, and gaps; it is turned into one slot a token.  The text
ends at the first end token (EOS); every slot behind it holds an end token as well.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from maskwright.base.arguments import check_type, listed, whole
from maskwright.errors import CanvasError, VocabularyError
from maskwright.vocabulary.vocabulary import Vocabulary

OPEN = -1
"""A slot for one token."""
EMPTY = -2
"""An optional slot that is left out."""


@dataclass(frozen=True)
class Gap:
    """Open slots for ``min`` to ``max`` tokens."""

    min: int
    max: int

    def __post_init__(self) -> None:
        for value in (self.min, self.max):
            if isinstance(value, bool) or not isinstance(value, int):
                raise CanvasError(f"Gap: expected two numbers of tokens, got {self.min!r} and {self.max!r}")
        if not 0 <= self.min <= self.max:
            raise CanvasError(f"Gap: expected 0 <= min <= max, got {self.min} and {self.max}")


@dataclass
class Slots:
    """``tokens[i]``: an id, ``OPEN`` or ``EMPTY``; ``optional[i]``: whether the slot may be left out."""

    tokens: list[int]
    optional: list[bool]

    def __len__(self) -> int:
        return len(self.tokens)


MAX_SLOTS = 1 << 16


def check_size(slots: int) -> None:
    """Raises ``CanvasError`` for more slots than a canvas may have."""
    if slots > MAX_SLOTS:
        raise CanvasError(f"canvas: too many slots; at most {MAX_SLOTS} are supported")


def read_canvas(
    canvas: Sequence[Any],
    vocabulary: Vocabulary,
    mask_id: int | None,
    eos_ids: Iterable[int],
    encode: Callable[[str], list[int]] | None = None,
    segment: Callable[[bytes, bool], list[int]] | None = None,
) -> Slots:
    """Slots of a canvas: ids (``mask_id`` or None is an open slot), ``str`` or ``bytes``, and ``Gap``.

    Text is spelled in tokens by ``encode`` (str) or ``segment`` (bytes).  Raises ``CanvasError``.
    """
    if isinstance(canvas, bytes):
        raise CanvasError("canvas: expected a list of ids, texts and gaps, got bytes")
    given = listed(canvas, "canvas", "a list of ids, texts and gaps", CanvasError)
    ends = frozenset(eos_ids)
    tokens: list[int] = []
    optional: list[bool] = []
    for place, part in enumerate(given):
        if part is None or isinstance(part, Gap):
            gap = Gap(1, 1) if part is None else part
            check_size(len(tokens) + gap.max)
            added, free = [OPEN] * gap.max, gap.max - gap.min
        elif isinstance(part, (str, bytes)):
            added, free = _spelled(part, vocabulary, encode, segment, place, vocabulary.at_start(tokens)), 0
        else:
            added, free = [_token(part, vocabulary, mask_id, ends, place)], 0
        tokens += added
        optional += [False] * (len(added) - free) + [True] * free
        check_size(len(tokens))
    if not tokens:
        raise CanvasError("canvas: there is no slot")
    return Slots(tokens, optional)


def _token(part: Any, vocabulary: Vocabulary, mask_id: int | None, ends: frozenset[int], place: int) -> int:
    try:
        if isinstance(part, bool):
            raise TypeError
        token = operator.index(part)
    except TypeError:
        raise CanvasError(
            f"canvas[{place}]: expected a token id, None, text or a Gap, got {type(part).__name__}"
        ) from None
    if token == mask_id:
        return OPEN
    if token in ends:
        return token
    if not 0 <= token < vocabulary.vocab_size:
        raise CanvasError(
            f"canvas[{place}]: id {token} is outside the vocabulary of {vocabulary.vocab_size} ids"
        )
    if not vocabulary.tokens[token]:
        raise CanvasError(f"canvas[{place}]: id {token} is neither text, nor an end token, nor the mask")
    return token


def text_bytes(text: str | bytes, name: str) -> bytes:
    """Text as UTF-8.  Raises ``CanvasError``."""
    check_type(text, (str, bytes), name, CanvasError)
    try:
        return text.encode() if isinstance(text, str) else text
    except UnicodeEncodeError as error:
        raise CanvasError(f"{name}: the text holds a surrogate, which is no character: {text!r}") from error


def checked_ends(eos_ids: Iterable[int] | None, vocabulary: Vocabulary) -> tuple[int, ...]:
    """End tokens, by default the vocabulary's.  Raises ``VocabularyError`` for what is text or no id."""
    if eos_ids is None:
        return vocabulary.eos_ids
    ends = checked_ids(eos_ids, "eos_ids", vocabulary)
    for end in ends:
        if vocabulary.tokens[end]:
            raise VocabularyError(f"eos_ids: {end} is text, which no end token is")
    return ends


def checked_ids(ids: Iterable[int], name: str, vocabulary: Vocabulary) -> tuple[int, ...]:
    """Ids of a vocabulary.  Raises ``VocabularyError`` for what is none."""
    check_type(ids, Iterable, name, VocabularyError)
    return tuple(checked_id(each, name, vocabulary) for each in ids)


def checked_id(given: int, name: str, vocabulary: Vocabulary) -> int:
    """An id of a vocabulary.  Raises ``VocabularyError`` for what is none."""
    found = whole(given, name, VocabularyError)
    if not 0 <= found < vocabulary.vocab_size:
        raise VocabularyError(f"{name}: {found} is outside the vocabulary of {vocabulary.vocab_size} ids")
    return found


def _spelled(
    part: str | bytes,
    vocabulary: Vocabulary,
    encode: Callable[[str], list[int]] | None,
    segment: Callable[[bytes, bool], list[int]] | None,
    place: int,
    start: bool,
) -> list[int]:
    data = text_bytes(part, f"canvas[{place}]")
    if isinstance(part, str) and encode is not None:
        ids = list(encode(part))
        if (
            any(not 0 <= i < vocabulary.vocab_size for i in ids)
            or vocabulary.decode(ids, start=start) != data
        ):
            raise CanvasError(f"canvas[{place}]: the model's tokens for {part!r} do not spell it")
        return ids
    if segment is None:
        raise CanvasError(f"canvas[{place}]: there is no tokenizer for text; give token ids")
    return segment(data, start)
