"""Token bytes of ``sentencepiece`` models."""

from __future__ import annotations

from typing import Any

from maskwright.errors import VocabularyError
from maskwright.tokenizers.probe import verify
from maskwright.tokenizers.table import TokenTable, require, wrong_type

_SPACE = "\u2581"


def read(processor: Any) -> TokenTable:
    """Read a ``SentencePieceProcessor``; control and unknown pieces are special, byte pieces are one byte.

    Raises ``VocabularyError`` when no model is loaded or its ``decode`` disagrees with the pieces.
    """
    library = require("sentencepiece", "sentencepiece")
    if not isinstance(processor, library.SentencePieceProcessor):
        raise wrong_type("from_sentencepiece", "a sentencepiece.SentencePieceProcessor", processor)
    size = processor.GetPieceSize()
    if size <= 0:
        raise VocabularyError("SentencePieceProcessor: no model is loaded; call its Load(model_file=...)")
    pieces = [processor.IdToPiece(i) for i in range(size)]
    special_ids = {i for i in range(size) if processor.IsControl(i) or processor.IsUnknown(i)}
    ordinary = [i for i in range(size) if i not in special_ids]
    byte_ids = {i for i in ordinary if processor.IsByte(i)}
    tokens = [b""] * size
    for i in ordinary:
        piece = pieces[i]
        tokens[i] = bytes([int(piece[3:5], 16)]) if i in byte_ids else piece.replace(_SPACE, " ").encode()
    verify(tokens, ordinary, processor.decode, "SentencePieceProcessor", byte_ids)
    eos = processor.eos_id()
    return TokenTable(
        tokens=tokens,
        special_tokens={pieces[i]: i for i in sorted(special_ids)},
        special_ids=special_ids,
        eos_ids=(eos,) if eos >= 0 else (),
    )
