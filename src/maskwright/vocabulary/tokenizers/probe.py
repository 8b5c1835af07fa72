"""Checks token bytes against a tokenizer's own ``decode``.

Ids are decoded between anchors (a fixed ordinary token), because ``decode`` treats the start of a text
differently.  Many ids share one call: ``decode`` of ``a 17 a 18 a ...`` costs about as much as one id.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping, Sequence

from maskwright.errors import VocabularyError

Decode = Callable[[list[int]], str]

_CHUNK = 4096
_EXAMPLES = 3
_RANDOM_SEQUENCES = 200
_RANDOM_LENGTH = 12
_STARTS = 250
_EXACT = "pass the exact bytes with Vocabulary.from_bytes"
_AS_ANY_OTHER = 'word_start_mark="keep" reads the first token as any other one'


def verify(
    tokens: Sequence[bytes], ids: Sequence[int], decode: Decode, source: str, byte_ids: Collection[int] = ()
) -> None:
    """Check that ``decode`` of the ordinary token ids ``ids`` is the UTF-8 reading of their bytes.

    Every id is decoded once between anchors, then random sequences and characters spelled byte by byte.
    ``source`` names the tokenizer, ``byte_ids`` are its byte-fallback ids.  Raises ``VocabularyError`` with
    examples on a mismatch.
    """
    # A byte token cannot be an anchor: decoders replace a whole run of bytes when a part of it is invalid.
    probe = _Probe(tokens, _anchor(tokens, [i for i in ids if i not in byte_ids], source), decode)
    for first in range(0, len(ids), _CHUNK):
        chunk = ids[first : first + _CHUNK]
        if not probe.agrees([i for token in chunk for i in (token, probe.anchor)]):
            alone = [[i] for i in chunk if not probe.agrees([i])]
            raise probe.mismatch(alone or [list(chunk)], source)
    sequences = _random_sequences(tokens, ids) + _spelled_characters(tokens, ids)
    wrong = [sequence for sequence in sequences if not probe.agrees(sequence)]
    if wrong:
        raise probe.mismatch(wrong, source)
    blank = [i for i in ids if tokens[i].startswith(b" ") or tokens[i].endswith(b" ")]
    for last in random.Random(0).sample(blank, min(len(blank), _STARTS)):
        text = [probe.anchor, last]
        data = probe.start.encode() + tokens[last]
        _check_text(text, data, decode, f"{source}, at the end of a text", _EXACT)


def verify_start(
    tokens: Sequence[bytes],
    start_tokens: Mapping[int, bytes],
    ids: Sequence[int],
    decode: Decode,
    source: str,
    byte_ids: Collection[int] = (),
    stays: bool = False,
) -> None:
    """The same at the very start of a text, where ``start_tokens`` count; ``stays``: as ``Vocabulary.start_stays``.

    There every id takes a call of its own, so all that stand for nothing are looked at, and samples of the others.
    """
    anchor = _anchor(tokens, [i for i in ids if i not in byte_ids], source)
    rng = random.Random(0)
    silent = [i for i in start_tokens if not start_tokens[i]][:_STARTS]
    firsts = silent + rng.sample(list(start_tokens), min(len(start_tokens), _STARTS))
    firsts += rng.sample(list(ids), min(len(ids), _STARTS))
    sequences = [[i, anchor] for i in firsts]
    sequences += [[first, *rng.choices(ids, k=2), anchor] for first in (*silent, *firsts)]
    if silent:
        sequences += [[*rng.choices(silent, k=rng.randint(1, 2)), first, anchor] for first in firsts]
    for sequence in sequences:
        rest = sequence
        while stays and start_tokens.get(rest[0]) == b"":
            rest = rest[1:]
        data = start_tokens.get(rest[0], tokens[rest[0]]) + b"".join([tokens[i] for i in rest[1:]])
        _check_text(sequence, data, decode, f"{source}, at the start of a text", _AS_ANY_OTHER)


def _check_text(ids: list[int], data: bytes, decode: Decode, where: str, mend: str) -> None:
    """Raise ``VocabularyError`` unless ids are decoded to ``data``, as a text of their own."""
    expected, found = data.decode("utf-8", "replace"), decode(ids)
    # Decoders replace invalid bytes in their own ways.
    if found != expected and "\ufffd" not in expected:
        raise _disagreement(where, _difference(ids, found, expected), mend)


def _difference(ids: Sequence[int], found: str, expected: str) -> str:
    return f"ids {ids} decode to {found!r}, bytes say {expected!r}"


def _disagreement(where: str, examples: str, mend: str) -> VocabularyError:
    return VocabularyError(f"{where}: decode() disagrees with the token bytes: {examples}; {mend}")


class _Probe:
    """``decode`` in the middle of a text, next to what the token bytes say."""

    def __init__(self, tokens: Sequence[bytes], anchor: int, decode: Decode) -> None:
        self.tokens = tokens
        self.anchor = anchor
        self.decode = decode
        self.start = decode([anchor])

    def expected(self, ids: Sequence[int]) -> str:
        # Partial characters become U+FFFD on both sides; an anchor on either side keeps them apart.
        return self.start + b"".join([self.tokens[i] for i in (*ids, self.anchor)]).decode("utf-8", "replace")

    def agrees(self, ids: Sequence[int]) -> bool:
        return self.decode([self.anchor, *ids, self.anchor]) == self.expected(ids)

    def mismatch(self, wrong: Sequence[Sequence[int]], source: str) -> VocabularyError:
        examples = "; ".join(self._example(ids) for ids in wrong[:_EXAMPLES])
        more = f" (and {len(wrong) - _EXAMPLES} more)" if len(wrong) > _EXAMPLES else ""
        return _disagreement(source, examples + more, _EXACT)

    def _example(self, ids: Sequence[int]) -> str:
        shown = [self.anchor, *ids[:_RANDOM_LENGTH], self.anchor]
        return _difference(shown, self.decode(shown), self.expected(shown[1:-1]))


def _anchor(tokens: Sequence[bytes], ids: Sequence[int], source: str) -> int:
    """An ordinary token that reads as text on its own, an ASCII letter if there is one."""
    tests: tuple[Callable[[bytes], bool], ...] = (
        lambda token: len(token) == 1 and token.isalpha(),
        lambda token: token.isascii() and token.strip().isalnum(),
        _is_text,
    )
    for test in tests:
        for i in ids:
            if test(tokens[i]):
                return i
    raise VocabularyError(f"{source}: no ordinary token stands for text; nothing can be generated with it")


def _is_text(token: bytes) -> bool:
    try:
        return bool(token.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def _random_sequences(tokens: Sequence[bytes], ids: Sequence[int]) -> list[list[int]]:
    """Sequences of whole-character tokens, the same at every call."""
    rng = random.Random(0)
    drawn = [rng.choices(ids, k=_RANDOM_LENGTH) for _ in range(_RANDOM_SEQUENCES)]
    return [[i for i in sequence if _is_text(tokens[i])] for sequence in drawn]


def _spelled_characters(tokens: Sequence[bytes], ids: Sequence[int]) -> list[list[int]]:
    """Characters spelled with one token a byte: every lead byte and every continuation byte once."""
    by_byte = {tokens[i]: i for i in ids if len(tokens[i]) == 1}
    codes = (
        *range(0x80, 0xC0),
        *range(0xC0, 0x800, 0x40),
        *range(0x800, 0xD800, 0x800),
        *range(0xE000, 0x110000, 0x1000),
    )
    spelled = [[by_byte.get(bytes([byte]), -1) for byte in chr(code).encode()] for code in codes]
    return [sequence for sequence in spelled if -1 not in sequence]
