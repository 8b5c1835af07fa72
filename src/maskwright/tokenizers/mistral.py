"""Token bytes of ``mistral-common`` tokenizers: Tekken and SentencePiece."""

from __future__ import annotations

from typing import Any

from maskwright.tokenizers import sentencepiece
from maskwright.tokenizers.table import TokenTable, require, wrong_type


def read(tokenizer: Any) -> TokenTable:
    """Read a mistral-common tokenizer, bare or inside its instruct, Mistral or transformers wrapper.

    Raises ``VocabularyError`` when there is no Tekken or SentencePiece tokenizer inside.
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
        return sentencepiece.read(inner._model)
    raise wrong_type("from_mistral_common", "a mistral-common tokenizer (Tekken or SentencePiece)", tokenizer)


def _read_tekken(tokenizer: Any) -> TokenTable:
    special_ids = {int(i) for i in tokenizer.special_ids}
    # The default policy gives b"" for special tokens.
    tokens = [tokenizer.id_to_byte_piece(i) for i in range(tokenizer.n_words)]
    special_tokens = {tokenizer.id_to_piece(i): i for i in sorted(special_ids)}
    return TokenTable(tokens, special_tokens, special_ids, (tokenizer.eos_id,))
