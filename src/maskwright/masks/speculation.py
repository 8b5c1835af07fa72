"""What speculative decoding needs besides masks of drafts, for serving engines: no model, no torch.

``Matcher.fill_tree_bitmasks`` and ``Matcher.validate_tree`` say which drafted tokens are legal and what may follow each.  Here is
where drafts come from: text that the grammar forces, and drafts of a model with another vocabulary.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from typing import Any

from maskwright._core import checked_tree
from maskwright.base.arguments import check_type
from maskwright.errors import MaskwrightError, VocabularyError
from maskwright.masks.forced import CONTEXT, ForcedText
from maskwright.vocabulary.engine_cache import engine_for
from maskwright.vocabulary.vocabulary import Vocabulary

Encode = Callable[[str], Iterable[int]]
"""A tokenizer's token ids of a text, without special tokens."""


class JumpForward:
    """Forced text as token ids, in the tokenizer's own tokens: what an engine may append without asking the model.

    ``encode``: token ids of a text, without special ones (``lambda text: tokenizer.encode(text, add_special_tokens=False)``).
    One object serves all grammars of a vocabulary; answers are kept.
    """

    def __init__(self, encode: Encode, vocabulary: Vocabulary) -> None:
        check_type(vocabulary, Vocabulary, "vocabulary", VocabularyError)
        if not callable(encode):
            raise MaskwrightError(
                f"encode: expected a function from a text to token ids, got {encode!r}"[:300]
            )
        self._forced = ForcedText(_Tokenizer(encode), vocabulary)

    def __call__(
        self, matcher: Any, before: Sequence[int] | None = None, *, may_replace: bool = False
    ) -> tuple[bool, list[int]]:
        """(whether the last token is replaced, the tokens that follow instead or besides); the matcher stays where it is.

        ``before``: the tokens of the output so far, default ``matcher.accepted_tokens``; give them where ``max_rollback`` keeps
        fewer than five.  ``may_replace``: the model has not read the last token yet, so it may be spelled anew together with the
        forced text (``"`` and ``name"`` become ``"name``); then roll back by one before accepting.  The tokens are legal one
        after another; none where nothing is forced, where an allowed token goes further, or behind ``accept_bytes``.
        """
        known: list[int] = matcher.accepted_tokens if before is None else list(before)
        if any(token < 0 for token in known[-CONTEXT - 1 :]):
            return False, []
        return self._forced.tokens(matcher, known, may_replace)


class _Tokenizer:
    """A function as the tokenizer that ``ForcedText`` asks."""

    def __init__(self, encode: Encode) -> None:
        self._encode = encode

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        return list(self._encode(text))


def translate_draft(
    ids: Iterable[int],
    draft_vocabulary: Vocabulary,
    target_vocabulary: Vocabulary,
    encode: Encode | None = None,
    *,
    start: bool = False,
) -> list[int]:
    """The draft of a model with another vocabulary, in tokens of the target: exact on bytes.

    The bytes of the result are those of the draft, or fewer at the end: an unfinished character is left out, and so is everything
    from the first byte on that the target has no tokens for.  ``encode`` is the target tokenizer's own (token ids of a text without
    special ones); where its tokens do not spell the text exactly, and without it, the fewest tokens do.  ``start``: the
    draft begins the output, where tokenizers drop a blank in front.

    An EOS becomes the target's (that of the same name, else the first) and ends the draft.  Another special token becomes the
    one of the same name; where there is none, the draft ends in front of it.  Raises ``VocabularyError`` for an id outside
    the draft's vocabulary.
    """
    for vocabulary, name in (
        (draft_vocabulary, "draft_vocabulary"),
        (target_vocabulary, "target_vocabulary"),
    ):
        check_type(vocabulary, Vocabulary, name, VocabularyError)
    names = {i: name for name, i in draft_vocabulary.special_tokens.items()}
    rest = list(ids)
    draft_vocabulary.decode(rest)  # raises for what is no id of it
    found: list[int] = []
    while True:
        run = list(takewhile(lambda i: draft_vocabulary.tokens[i], rest))
        data = draft_vocabulary.decode(run, start=start)
        spelled = _spell(_whole_characters(data), target_vocabulary, encode, start)
        found += spelled
        if len(run) == len(rest) or target_vocabulary.decode(spelled, start=start) != data:
            return found
        special = rest[len(run)]
        other = target_vocabulary.special_tokens.get(names.get(special, ""))
        ends = target_vocabulary.eos_ids
        if special in draft_vocabulary.eos_ids:
            return [*found, other if other is not None and other in ends else ends[0]]
        if other is None or other in ends:
            return found
        found.append(other)
        rest = rest[len(run) + 1 :]
        start = False


def deepest_path(parents: Iterable[int], legal: Sequence[bool]) -> list[int]:
    """Numbers of the nodes of the longest legal path of a draft tree, from the top; of several, the one that ends first.

    ``legal``: what ``Matcher.validate_tree`` says, or any other choice of nodes (those that the target model would have taken);
    below a node that is not chosen none counts.  Raises ``MaskwrightError`` as ``validate_tree`` does for parents.
    """
    _, above = checked_tree([0] * len(legal), parents, 1)
    depths: list[int] = []
    for parent, good in zip(above, legal, strict=True):
        before = 0 if parent < 0 else depths[parent]
        depths.append(before + 1 if good and (parent < 0 or before) else 0)
    path: list[int] = []
    node = depths.index(max(depths)) if any(depths) else -1
    while node >= 0:
        path.append(node)
        node = above[node]
    return path[::-1]


def _whole_characters(data: bytes) -> bytes:
    """Without the beginning of a character at the end."""
    decoder = getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    unfinished, _ = decoder.getstate()
    return data[: len(data) - len(unfinished)]


def _spell(data: bytes, vocabulary: Vocabulary, encode: Encode | None, start: bool) -> list[int]:
    """The tokens of a text, or of as much of its beginning as there are tokens for."""
    if encode is not None:
        # A draft may begin inside a character; the tokenizer reads none of that.
        inside = next((i for i, byte in enumerate(data) if byte & 0xC0 != 0x80), len(data))
        try:
            ids = _fewest(data[:inside], vocabulary, start) + list(encode(data[inside:].decode()))
        except UnicodeDecodeError:
            return _fewest(data, vocabulary, start)
        if vocabulary.decode(ids, start=start) == data and all(vocabulary.tokens[i] for i in ids):
            return ids
    return _fewest(data, vocabulary, start)


def _fewest(data: bytes, vocabulary: Vocabulary, start: bool) -> list[int]:
    engine = engine_for(vocabulary)
    try:
        return engine.segment(data, start)
    except VocabularyError:
        missing = vocabulary.missing_bytes
    # Every byte in front of the first missing one is a token, but at the very start some may stand for something else.
    known = len(list(takewhile(lambda byte: byte not in missing, data)))
    try:
        return engine.segment(_whole_characters(data[:known]), start)
    except VocabularyError:
        return []
