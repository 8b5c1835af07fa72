"""Token bytes of ``tiktoken`` encodings."""

from __future__ import annotations

from typing import Any

from maskwright.vocabulary.tokenizers.table import TokenTable, require, wrong_type

_END_OF_TEXT = "<|endoftext|>"


def read(encoding: Any) -> TokenTable:
    """Read a ``tiktoken.Encoding``; ids without a token get ``b""``.  Raises ``VocabularyError``."""
    library = require("tiktoken", "tiktoken")
    if not isinstance(encoding, library.Encoding):
        raise wrong_type("from_tiktoken", "a tiktoken.Encoding", encoding)
    names = sorted(encoding.special_tokens_set)
    special_tokens = {name: encoding.encode_single_token(name) for name in names}
    special_ids = set(special_tokens.values())
    tokens = []
    for i in range(encoding.n_vocab):
        try:
            tokens.append(b"" if i in special_ids else encoding.decode_single_token_bytes(i))
        except KeyError:
            tokens.append(b"")
    eos = special_tokens.get(_END_OF_TEXT)
    return TokenTable(tokens, special_tokens, special_ids, () if eos is None else (eos,))
