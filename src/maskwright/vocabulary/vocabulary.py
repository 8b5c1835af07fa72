"""The vocabulary of a model: the exact bytes that every token id adds to a text."""

from __future__ import annotations

import hashlib
import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakValueDictionary

import numpy as np

from maskwright.base.arguments import check_type, each_of, exact_bytes, listed, one_of, written
from maskwright.errors import VocabularyError
from maskwright.vocabulary.compile_cache import CompileCache

if TYPE_CHECKING:
    from maskwright.vocabulary.tokenizers.table import TokenTable

# The engine counts the depth of its trie in 16 bits.
MAX_TOKEN_BYTES = 2**16 - 1
_DIGEST_VERSION = 1
_MASK_BUDGET = 128 << 20
_MOST_IDS = 1 << 24
"""Some twenty times as many as the largest vocabularies have."""
_STATE_BUDGET = 64 << 20
_TABLES_KEPT = 16384  # rules

WordStartMark = Literal["drop", "keep"]


class Vocabulary:
    """Token bytes by id, with the ids that end a sequence and the ids that never stand for text.

    The bytes of an id are what it adds in the middle of a text, as the tokenizer's own ``decode`` has it;
    several ids may have equal bytes.  Tokenizers that mark the starts of words (SentencePiece, Metaspace) write a blank into
    most tokens and drop it at the very start of a text: ``start_tokens`` says what ids stand for there.  Ids that text can never produce have ``b""``: special tokens, EOS,
    padding up to the model's width, holes.  Build one with a ``from_...`` class method.

    Shared by all of them: ``vocab_size`` is the width of the model's logits (default: the tokenizer's highest
    id + 1); ids above the tokenizer's are padding and never allowed, ids at or above the width are cut off.
    ``eos_ids`` is one id or several, for example a generation config's ``eos_token_id``; when given, it
    replaces the tokenizer's own EOS.  ``word_start_mark``: ``"drop"`` reads the first token as ``decode`` of the output
    alone does, ``"keep"`` as in the middle of a text.  All raise ``VocabularyError`` when the tokenizer has no exact token
    bytes, a token has more than ``MAX_TOKEN_BYTES``, an id lies outside the width, no EOS is known, or the
    tokenizer's library is missing.

    A pickled vocabulary is read as one of the process that reads it, where that has an equal one, else made from its tokens.

    Languages are of bytes.  As long as every byte is a token, as in byte-level tokenizers and those with byte
    fallback, tokens can spell every text, so that nothing ends in a dead end; ``missing_bytes`` has the others.
    For a vocabulary that lacks some, compile the texts of its bytes alone: ``JsonSchema(...) & Regex('[a-z"]*')``.
    """

    def __init__(
        self,
        tokens: Sequence[bytes | None],
        eos_ids: int | Iterable[int],
        special_ids: Iterable[int] = (),
        *,
        special_tokens: Mapping[str, int] | None = None,
        start_tokens: Mapping[int, bytes] | None = None,
        start_stays: bool = False,
    ) -> None:
        checked = _checked_tokens(tokens)
        size = len(checked)
        self._eos_ids = _checked_ids(eos_ids, size, "eos_ids")
        if not self._eos_ids:
            raise VocabularyError("eos_ids: the list is empty; pass at least one id that ends a text")
        self._special_ids = _checked_ids(special_ids, size, "special_ids")
        if special_tokens is None:
            special_tokens = _names(checked, (*self._special_ids, *self._eos_ids))
        check_type(special_tokens, Mapping, "special_tokens", VocabularyError)
        for name in special_tokens:
            check_type(name, str, "special_tokens", VocabularyError)
        _indices(special_tokens.values(), size, "special_tokens")
        self._special_tokens = dict(special_tokens)
        _warn_of_lost_bytes(checked, {*self._special_ids, *self._eos_ids})
        for i in (*self._special_ids, *self._eos_ids):
            checked[i] = b""
        self._tokens = tuple(checked)
        self._start_tokens = _checked_start({} if start_tokens is None else start_tokens, self._tokens)
        self._start_stays = bool(start_stays) and b"" in self._start_tokens.values()
        self._digest = _digest(
            self._tokens, self._eos_ids, self._special_ids, self._start_tokens, self._start_stays
        )
        self._mask_budget = _MASK_BUDGET
        self._state_budget = _STATE_BUDGET
        self._forget()
        self._identity = f"{self._digest}-{_names_digest(self._special_tokens)}"
        _alive.setdefault(self._identity, self)

    def _forget(self) -> None:
        """Have nothing that was computed."""
        self._engine: Any = None
        self._compiled = CompileCache()
        self._tables = CompileCache(_TABLES_KEPT)
        self._compiler: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        # What is computed from a vocabulary stays in its process.
        lengths = np.fromiter(map(len, self._tokens), dtype="<u2", count=len(self._tokens)).tobytes()
        content = {
            "eos_ids": self._eos_ids,
            "special_ids": self._special_ids,
            "special_tokens": self._special_tokens,
            "start_tokens": self._start_tokens,
            "start_stays": self._start_stays,
        }
        budgets = self._mask_budget, self._state_budget
        return _received, (self._identity, lengths, b"".join(self._tokens), content, budgets)

    @classmethod
    def from_huggingface(
        cls,
        hf_tokenizer: Any,
        vocab_size: int | None = None,
        eos_ids: int | Iterable[int] | None = None,
        *,
        word_start_mark: WordStartMark = "drop",
    ) -> Vocabulary:
        """From a Hugging Face fast tokenizer (``transformers`` or ``tokenizers``) or a MistralCommonBackend.

        The decoder is read step by step and the result is checked against ``decode`` for every token.
        """
        from maskwright.vocabulary.tokenizers import huggingface

        return cls._from_table(huggingface.read(hf_tokenizer, _drops(word_start_mark)), vocab_size, eos_ids)

    @classmethod
    def from_tiktoken(
        cls, encoding: Any, vocab_size: int | None = None, eos_ids: int | Iterable[int] | None = None
    ) -> Vocabulary:
        """From a ``tiktoken.Encoding``; the default EOS is ``<|endoftext|>``."""
        from maskwright.vocabulary.tokenizers import tiktoken

        return cls._from_table(tiktoken.read(encoding), vocab_size, eos_ids)

    @classmethod
    def from_sentencepiece(
        cls,
        processor: Any,
        vocab_size: int | None = None,
        eos_ids: int | Iterable[int] | None = None,
        *,
        word_start_mark: WordStartMark = "drop",
    ) -> Vocabulary:
        """From a loaded ``sentencepiece.SentencePieceProcessor``."""
        from maskwright.vocabulary.tokenizers import sentencepiece

        return cls._from_table(sentencepiece.read(processor, _drops(word_start_mark)), vocab_size, eos_ids)

    @classmethod
    def from_mistral_common(
        cls,
        tokenizer: Any,
        vocab_size: int | None = None,
        eos_ids: int | Iterable[int] | None = None,
        *,
        word_start_mark: WordStartMark = "drop",
    ) -> Vocabulary:
        """From a mistral-common MistralTokenizer, InstructTokenizer, Tekkenizer or SentencePieceTokenizer."""
        from maskwright.vocabulary.tokenizers import mistral

        return cls._from_table(mistral.read(tokenizer, _drops(word_start_mark)), vocab_size, eos_ids)

    @classmethod
    def from_bytes(
        cls,
        tokens: Sequence[bytes | None],
        eos_ids: int | Iterable[int],
        special_ids: Iterable[int] = (),
        *,
        start_tokens: Mapping[int, bytes] | None = None,
        start_stays: bool = False,
    ) -> Vocabulary:
        """From the bytes of every id in order, None or ``b""`` for ids that are no text.

        Bytes given for EOS and special ids become their names in ``special_tokens``.  ``start_tokens`` and ``start_stays``:
        as the properties; only ids that are text may be given.
        """
        return cls(tokens, eos_ids, special_ids, start_tokens=start_tokens, start_stays=start_stays)

    @classmethod
    def _from_table(
        cls, table: TokenTable, vocab_size: int | None, eos_ids: int | Iterable[int] | None
    ) -> Vocabulary:
        size = len(table.tokens) if vocab_size is None else _checked_size(vocab_size)
        if eos_ids is None:
            eos_ids = table.eos_ids
            if not eos_ids:
                raise VocabularyError("the tokenizer names no EOS token; pass the model's EOS as eos_ids=...")
        ends = _checked_ids(eos_ids, size, "eos_ids")
        return cls(
            table.tokens[:size] + [b""] * (size - len(table.tokens)),
            ends,
            [i for i in table.special_ids if i < size],
            special_tokens={name: i for name, i in table.special_tokens.items() if i < size},
            start_tokens={i: data for i, data in table.start_tokens.items() if i < size and i not in ends},
            start_stays=table.start_stays,
        )

    @property
    def vocab_size(self) -> int:
        """Number of ids, padding included: the width of the model's logits."""
        return len(self._tokens)

    @property
    def tokens(self) -> tuple[bytes, ...]:
        """Bytes by id, ``b""`` for ids that text can never produce; length ``vocab_size``."""
        return self._tokens

    @property
    def start_tokens(self) -> Mapping[int, bytes]:
        """Bytes at the very start of a text, of the ids that stand for something else there than ``tokens`` says;
        ``b""``: nothing.  Empty for byte-level tokenizers; read-only."""
        return MappingProxyType(self._start_tokens)

    @property
    def start_stays(self) -> bool:
        """Whether a text is still at its very start behind an id that stands for nothing there: the tokenizer drops all
        blanks in front, however many tokens they come in."""
        return self._start_stays

    @property
    def eos_ids(self) -> tuple[int, ...]:
        """Ids that end a sequence, ascending, at least one."""
        return self._eos_ids

    @property
    def special_ids(self) -> tuple[int, ...]:
        """Ids the tokenizer declares special, ascending; EOS ids are among them when it declares them so."""
        return self._special_ids

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Ids of special tokens by name, where names are known; read-only."""
        return MappingProxyType(self._special_tokens)

    @property
    def missing_bytes(self) -> bytes:
        """Bytes that no token stands for alone: a text with one of them may be one that tokens cannot finish."""
        alone = {token for token in self.tokens if len(token) == 1}
        return bytes(byte for byte in range(256) if bytes((byte,)) not in alone)

    @property
    def digest(self) -> str:
        """Hexadecimal hash of the size, the EOS and special ids and all token bytes, those at the start of a text
        included (64 digits)."""
        return self._digest

    @property
    def mask_budget(self) -> int:
        """Bytes that may be cached for all grammars on this vocabulary (default 128 MiB); settable.

        Between two operations ``mask_bytes`` stays below it: what was not used lately is dropped
        and computed again when it is needed, with equal results.  0 keeps nothing.
        """
        return self._mask_budget

    @mask_budget.setter
    def mask_budget(self, budget: int) -> None:
        budget = _index(budget, "mask_budget")
        if not 0 <= budget < 2**62:
            raise VocabularyError(f"mask_budget: expected a number of bytes, got {budget}")
        self._mask_budget = budget
        if self._engine is not None:
            self._engine.mask_budget = budget

    @property
    def state_budget(self) -> int:
        """Bytes that one grammar may keep of the states that texts reached (default 64 MiB); settable.

        Beyond it, or beyond twice what the matchers at hand need, the grammar begins anew with its states: matchers go on
        with equal masks, and what none of them can come back to is let go of.  0 keeps as little as possible.
        """
        return self._state_budget

    @state_budget.setter
    def state_budget(self, budget: int) -> None:
        budget = _index(budget, "state_budget")
        if not 0 <= budget < 2**62:
            raise VocabularyError(f"state_budget: expected a number of bytes, got {budget}")
        self._state_budget = budget
        if self._engine is not None:
            self._engine.state_budget = budget

    @property
    def mask_bytes(self) -> int:
        """Bytes of masks, token edges and slices that are cached now for this vocabulary."""
        return 0 if self._engine is None else int(self._engine.cached_bytes)

    def __len__(self) -> int:
        return len(self._tokens)

    def __repr__(self) -> str:
        text = len(self._tokens) - self._tokens.count(b"")
        return (
            f"Vocabulary(vocab_size={self.vocab_size}, text_tokens={text}, eos_ids={self._eos_ids}, "
            f"special={len(self._special_ids)}, digest={self._digest[:12]!r})"
        )

    def decode(self, ids: Iterable[int], *, start: bool = True) -> bytes:
        """Concatenate the bytes of ``ids``; special, EOS and padding ids add nothing.

        ``start``: the ids begin a text, which a matcher reads so (``start_tokens``); else they come in the middle of one.
        Raises ``VocabularyError`` for an id outside ``0 <= id < vocab_size``.
        """
        return b"".join(self.pieces(ids, start=start))

    def pieces(self, ids: Iterable[int], *, start: bool = True) -> list[bytes]:
        """The bytes that each of ``ids`` adds, as ``decode`` joins them."""
        tokens = self._tokens
        checked = _indices(ids, len(tokens), "ids")
        found = [tokens[i] for i in checked]
        if start and self._start_tokens:
            for at, token in enumerate(checked):
                found[at] = self._start_tokens.get(token, found[at])
                if not self._stays_at_start(token):
                    break
        return found

    def at_start(self, ids: Iterable[int]) -> bool:
        """Whether what follows ``ids`` is at the very start of a text, where ``start_tokens`` count."""
        return all(map(self._stays_at_start, each_of(ids, "ids", "token ids", VocabularyError)))

    def _stays_at_start(self, token: int) -> bool:
        return self._start_stays and self._start_tokens.get(token) == b""


_alive: WeakValueDictionary[str, Vocabulary] = WeakValueDictionary()
"""One of the vocabularies of each content: all that is received with it shares one engine."""


def _received(
    identity: str, lengths: bytes, data: bytes, content: dict[str, Any], budgets: tuple[int, int]
) -> Vocabulary:
    """A vocabulary that was pickled: one of this process with the same content, or a new one."""
    known = _alive.get(identity)
    if known is not None:
        return known
    tokens = []
    at = 0
    for length in np.frombuffer(lengths, dtype="<u2").tolist():
        tokens.append(data[at : at + length])
        at += length
    made = Vocabulary(tokens, **content)
    if made._identity != identity:
        raise VocabularyError("this is no vocabulary that was pickled, or it is damaged: pickle it again")
    made.mask_budget, made.state_budget = budgets
    # Another thread may have been faster.
    return _alive.setdefault(identity, made)


def _names_digest(special_tokens: Mapping[str, int]) -> str:
    """Of what a digest of tokens leaves out."""
    content = repr(sorted(special_tokens.items())).encode()
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _checked_tokens(tokens: Sequence[bytes | None]) -> list[bytes]:
    if isinstance(tokens, (bytes, Mapping)):
        raise VocabularyError(f"tokens: expected a list of bytes by id, got {type(tokens).__name__}")
    given = listed(tokens, "tokens", "a list of bytes by id", VocabularyError)
    checked = [b"" if token is None else token for token in given]
    if set(map(type, checked)) != {bytes}:
        for i, token in enumerate(checked):
            if not isinstance(token, bytes):
                raise VocabularyError(f"tokens[{i}]: expected bytes or None, got {type(token).__name__}")
            checked[i] = exact_bytes(token)
    if not checked:
        raise VocabularyError("tokens: the list is empty")
    if max(map(len, checked)) > MAX_TOKEN_BYTES:
        wrong = next(i for i, token in enumerate(checked) if len(token) > MAX_TOKEN_BYTES)
        raise VocabularyError(
            f"tokens[{wrong}]: {len(checked[wrong])} bytes, more than MAX_TOKEN_BYTES ({MAX_TOKEN_BYTES})"
        )
    return checked


def _checked_start(start_tokens: Mapping[int, bytes], tokens: Sequence[bytes]) -> dict[int, bytes]:
    """By ascending id, without those that stand for what they always do."""
    if not isinstance(start_tokens, Mapping):
        raise VocabularyError(
            f"start_tokens: expected a mapping of ids to bytes, got {type(start_tokens).__name__}"
        )
    checked: dict[int, bytes] = {}
    for i in sorted(_indices(start_tokens, len(tokens), "start_tokens")):
        data = start_tokens[i]
        if not isinstance(data, bytes):
            raise VocabularyError(f"start_tokens[{i}]: expected bytes, got {type(data).__name__}")
        if not tokens[i]:
            raise VocabularyError(f"start_tokens[{i}]: the id is no text")
        if len(data) > MAX_TOKEN_BYTES:
            raise VocabularyError(
                f"start_tokens[{i}]: {len(data)} bytes, more than MAX_TOKEN_BYTES ({MAX_TOKEN_BYTES})"
            )
        if data != tokens[i]:
            checked[i] = exact_bytes(data)
    return checked


def _warn_of_lost_bytes(tokens: Sequence[bytes], lost: set[int]) -> None:
    """Of bytes that only special tokens stand for: grammars that need them have masks that allow nothing."""
    left = {token for i, token in enumerate(tokens) if len(token) == 1 and i not in lost}
    gone = sorted({tokens[i] for i in lost if len(tokens[i]) == 1} - left)
    if gone:
        warnings.warn(
            f"only EOS or special ids have the bytes {b''.join(gone)!r}, so no text can have them: pass b'' for ids that are "
            "no text, and other ids as EOS",
            stacklevel=3,
        )


def _drops(word_start_mark: str) -> bool:
    one_of(word_start_mark, ("drop", "keep"), "word_start_mark", VocabularyError)
    return word_start_mark == "drop"


def _checked_size(vocab_size: int) -> int:
    size = _index(vocab_size, "vocab_size")
    if not 0 < size <= _MOST_IDS:
        raise VocabularyError(
            f"vocab_size: expected the width of the model's logits, at most {_MOST_IDS}, got {written(size)}"
        )
    return size


def _checked_ids(ids: int | Iterable[int], size: int, name: str) -> tuple[int, ...]:
    if not isinstance(ids, Iterable) or getattr(ids, "shape", None) == ():
        ids = [ids]  # type: ignore[list-item]
    return tuple(sorted(set(_indices(ids, size, name))))


def _indices(ids: Iterable[int], size: int, name: str) -> list[int]:
    if isinstance(ids, bytes):
        raise VocabularyError(f"{name}: expected token ids, got bytes")
    checked = [_index(i, name) for i in each_of(ids, name, "token ids", VocabularyError)]
    if checked and not (min(checked) >= 0 and max(checked) < size):
        wrong = next(i for i in checked if not 0 <= i < size)
        raise VocabularyError(f"{name}: id {wrong} is outside the vocabulary of {size} ids (0 to {size - 1})")
    return checked


def _index(value: Any, name: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise VocabularyError(f"{name}: expected an integer, got {type(value).__name__}: {value!r}") from None


def _names(tokens: Sequence[bytes], ids: Iterable[int]) -> dict[str, int]:
    """Special ids by the text that was given for them."""
    names: dict[str, int] = {}
    for i in ids:
        try:
            name = tokens[i].decode("utf-8")
        except UnicodeDecodeError:
            continue
        if name:
            names.setdefault(name, i)
    return names


def _digest(
    tokens: Sequence[bytes],
    eos_ids: Sequence[int],
    special_ids: Sequence[int],
    start_tokens: Mapping[int, bytes],
    start_stays: bool,
) -> str:
    # The counts come first and the token lengths before the bytes, so that no two vocabularies read the same.
    header = [_DIGEST_VERSION, len(tokens), len(eos_ids), len(special_ids), *eos_ids, *special_ids]
    lengths = np.fromiter(map(len, tokens), dtype="<u8", count=len(tokens))
    state = hashlib.blake2b(np.array(header, dtype="<u8").tobytes(), digest_size=32)
    state.update(lengths.tobytes())
    state.update(b"".join(tokens))
    if start_tokens:
        start = [start_stays, len(start_tokens), *start_tokens, *map(len, start_tokens.values())]
        state.update(np.array(start, dtype="<u8").tobytes() + b"".join(start_tokens.values()))
    return state.hexdigest()
