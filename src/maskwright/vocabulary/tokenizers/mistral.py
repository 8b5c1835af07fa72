"""Token bytes of ``mistral-common`` tokenizers: Tekken and SentencePiece."""

from __future__ import annotations

from typing import Any

from maskwright.vocabulary.tokenizers import sentencepiece
from maskwright.vocabulary.tokenizers.table import TokenTable, require, wrong_type


def read(tokenizer: Any, at_start: bool) -> TokenTable:
    """Read a mistral-common tokenizer, bare or inside its instruct, Mistral or transformers wrapper.

    ``at_start``: whether the very start of a text has a reading of its own, which byte-level Tekken has not.  Raises ``VocabularyError`` when there is no Tekken or SentencePiece tokenizer inside.
    """
    inner = tokenizer
    # From the outside in: transformers' backend, MistralTokenizer, InstructTokenizer.
    for attribute in ("tokenizer", "instruct_tokenizer", "tokenizer"):
        inner = getattr(inner, attribute, inner)
    tekken = require("mistral_common.tokens.tokenizers.tekken", "mistral-common")
    if isinstance(inner, tekken.Tekkenizer):
        return _read_tekken(inner)
    pieces = require("mistral_common.tokens.tokenizers.sentencepiece", "mistral-common")
    if isinstance(inner, pieces.SentencePieceTokenizer):
        return sentencepiece.read(inner._model, at_start)
    raise wrong_type("from_mistral_common", "a mistral-common tokenizer (Tekken or SentencePiece)", tokenizer)


def _read_tekken(tokenizer: Any) -> TokenTable:
    special_ids = {int(i) for i in tokenizer.special_ids}
    tokens = _tekken_pieces(tokenizer, len(special_ids))
    if tokens is None:
        # The default policy gives b"" for special tokens.
        tokens = [tokenizer.id_to_byte_piece(i) for i in range(tokenizer.n_words)]
    special_tokens = {tokenizer.id_to_piece(i): i for i in sorted(special_ids)}
    return TokenTable(tokens, special_tokens, special_ids, (tokenizer.eos_id,))


def _tekken_pieces(tokenizer: Any, special: int) -> list[bytes] | None:
    """All pieces at once, from the merge ranks, ten times faster than one by one; None where these
    are not what the public interface says."""
    ranks = getattr(getattr(tokenizer, "_model", None), "_mergeable_ranks", None)
    if not isinstance(ranks, dict) or len(ranks) != tokenizer.n_words - special:
        return None
    tokens = [b""] * tokenizer.n_words
    for piece, rank in ranks.items():
        if not 0 <= rank < len(ranks):
            return None
        tokens[special + rank] = piece
    sample = range(0, len(tokens), max(1, len(tokens) // 256))
    return tokens if all(tokens[i] == tokenizer.id_to_byte_piece(i) for i in sample) else None
