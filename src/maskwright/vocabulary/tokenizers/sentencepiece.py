"""Token bytes of ``sentencepiece`` models."""

from __future__ import annotations

from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.tokenizers.probe import verify, verify_start
from maskwright.vocabulary.tokenizers.table import TokenTable, require, wrong_type

_SPACE = "\u2581"


def read(processor: Any, at_start: bool) -> TokenTable:
    """Read a ``SentencePieceProcessor``; control and unknown pieces are special, byte pieces are one byte.

    ``at_start``: whether the very start of a text has a reading of its own.  Raises ``VocabularyError`` when no model is loaded or its ``decode`` disagrees with the pieces.
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
    start_tokens, stays = _start(processor, pieces, tokens, ordinary) if at_start else ({}, False)
    if at_start:
        verify_start(
            tokens, start_tokens, ordinary, processor.decode, "SentencePieceProcessor", byte_ids, stays
        )
    eos = processor.eos_id()
    return TokenTable(
        tokens=tokens,
        special_tokens={pieces[i]: i for i in sorted(special_ids)},
        special_ids=special_ids,
        eos_ids=(eos,) if eos >= 0 else (),
        start_tokens=start_tokens,
        start_stays=stays,
    )


def _start(
    processor: Any, pieces: list[str], tokens: list[bytes], ordinary: list[int]
) -> tuple[dict[int, bytes], bool]:
    """Pieces at the very start of a text, and whether blanks are dropped there in any number.

    The model's options decide that (add_dummy_prefix, remove_extra_whitespaces), so two of its pieces are tried.  A piece loses one blank
    at most; a blank alone leaves the text empty, where options may have the next piece lose one as well.
    """
    marked = [i for i in ordinary if pieces[i].startswith(_SPACE)]
    if not marked or processor.decode(marked[:1]).encode() == tokens[marked[0]]:
        return {}, False
    blank = next((i for i in marked if pieces[i] == _SPACE), None)
    stays = blank is not None and not processor.decode([blank, blank])
    return {i: tokens[i][1:] for i in marked}, stays
