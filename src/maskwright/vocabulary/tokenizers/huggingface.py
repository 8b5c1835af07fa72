"""Token bytes of Hugging Face fast tokenizers: ``transformers`` wrappers and ``tokenizers.Tokenizer``."""

from __future__ import annotations

import json
from typing import Any

from maskwright.errors import VocabularyError
from maskwright.vocabulary.tokenizers import mistral
from maskwright.vocabulary.tokenizers.decoders import is_byte_piece, token_bytes
from maskwright.vocabulary.tokenizers.probe import verify, verify_start
from maskwright.vocabulary.tokenizers.table import TokenTable, require, wrong_type


def read(tokenizer: Any, at_start: bool) -> TokenTable:
    """Read a fast tokenizer, or the mistral-common tokenizer inside transformers' ``MistralCommonBackend``.

    Special tokens (added with ``special=True``, the wrapper's bos/eos/pad/unk..., the model's unknown token)
    get no bytes; ordinary added tokens are text.  ``at_start``: whether the very start of a text has a reading of
    its own.  Raises ``VocabularyError`` for slow tokenizers, for
    decoders without exact token bytes, and when ``decode`` disagrees with the bytes.
    """
    source = type(tokenizer).__name__
    if hasattr(getattr(tokenizer, "tokenizer", None), "instruct_tokenizer"):
        _refuse_cleanup(tokenizer, "", source)
        return mistral.read(tokenizer, at_start)
    backend = _backend(tokenizer)
    _refuse_cleanup(tokenizer, type(backend.model).__name__, source)
    reading = token_bytes(_decoder_state(backend, source), source, at_start)
    added = backend.get_added_tokens_decoder()
    size = max([backend.get_vocab_size() - 1, *backend.get_vocab().values(), *added]) + 1
    if size == 0:
        raise VocabularyError(f"{source}: the tokenizer has no tokens")
    strings = [backend.id_to_token(i) for i in range(size)]

    special_ids = {i for i, token in added.items() if token.special} | _unknown_ids(backend)
    special_ids.update(getattr(tokenizer, "all_special_ids", ()))
    # A wrapper may name tokens that the vocabulary lacks: their id is None.
    special_ids = {i for i in special_ids if i is not None and i < size and strings[i] is not None}
    tokens = [b"" if s is None or i in special_ids else reading.middle(s) for i, s in enumerate(strings)]
    ordinary = [i for i, s in enumerate(strings) if s is not None and i not in special_ids]
    byte_ids = {i for i in ordinary if is_byte_piece(strings[i])}
    verify(tokens, ordinary, tokenizer.decode, source, byte_ids)
    start_tokens = {}
    if at_start:
        # What spells nothing behind other tokens ("##" alone) is never allowed.
        spelled = [i for i in ordinary if tokens[i]]
        if reading.start is not None:
            found = ((i, reading.start(strings[i])) for i in spelled)
            start_tokens = {i: data for i, data in found if data != tokens[i]}
        # Where a decoder has no reading of its own there, a wrapper may still change what it writes.
        verify_start(tokens, start_tokens, spelled, tokenizer.decode, source, byte_ids)
    return TokenTable(
        tokens=tokens,
        special_tokens={strings[i]: i for i in sorted(special_ids)},
        special_ids=special_ids,
        eos_ids=_eos_ids(tokenizer),
        start_tokens=start_tokens,
    )


def _backend(tokenizer: Any) -> Any:
    library = require("tokenizers", "maskwright[hf]")
    backend = tokenizer
    if not isinstance(backend, library.Tokenizer):
        backend = getattr(tokenizer, "backend_tokenizer", None)
    if not isinstance(backend, library.Tokenizer):
        expected = "a fast tokenizer (AutoTokenizer.from_pretrained(...)) or a tokenizers.Tokenizer"
        if hasattr(tokenizer, "tokenizer"):
            expected += "; a processor's is its .tokenizer attribute"
        elif hasattr(tokenizer, "convert_ids_to_tokens"):
            expected += "; a slow tokenizer's bytes go through Vocabulary.from_sentencepiece or from_bytes"
        raise wrong_type("from_huggingface", expected, tokenizer)
    return backend


def _refuse_cleanup(tokenizer: Any, model: str, source: str) -> None:
    """Refuse wrappers that rewrite decoded text ("a ." -> "a."); byte-pair models are exempt from it."""
    if not getattr(tokenizer, "clean_up_tokenization_spaces", False):
        return
    if model == "BPE" and not getattr(
        tokenizer, "clean_up_tokenization_spaces_for_bpe_even_though_it_will_corrupt_output", True
    ):
        return
    raise VocabularyError(
        f"{source}: clean_up_tokenization_spaces=True makes decode() delete spaces, so bytes are not exact; "
        "set tokenizer.clean_up_tokenization_spaces = False"
    )


def _decoder_state(backend: Any, source: str) -> dict[str, Any] | None:
    """The decoder's part of ``tokenizer.json``, without serialising the whole vocabulary."""
    if backend.decoder is None:
        return None
    try:
        state: dict[str, Any] = json.loads(backend.decoder.__getstate__())
    except Exception as error:
        # Decoders written in Python have no description to read.
        raise VocabularyError(
            f"{source}: decoder {type(backend.decoder).__name__} cannot be read ({error}); "
            "pass the token bytes with Vocabulary.from_bytes"
        ) from error
    return state


def _unknown_ids(backend: Any) -> set[int]:
    """The id that the model gives to what it cannot encode: it stands for no text."""
    model = backend.model
    if type(model).__name__ == "Unigram":
        found = json.loads(model.__getstate__())["unk_id"]
    else:
        name = getattr(model, "unk_token", None)
        found = None if name is None else backend.token_to_id(name)
    return set() if found is None else {found}


def _eos_ids(tokenizer: Any) -> tuple[int, ...]:
    eos = getattr(tokenizer, "eos_token_id", None)
    if eos is None:
        return ()
    return tuple(eos) if isinstance(eos, (list, tuple)) else (eos,)
