"""Hugging Face ``tokenizers`` decoders, read as a function from one token to its bytes.

A decoder is a chain of steps over the list of token strings.  A chain is usable when every step treats
each token alone, wherever it stands, except for the first token of a text, which has a reading of its own.  Any
other chain is refused.

The meaning of a token is what ``decode`` makes of it: ``<0x0A>`` is a newline only under ``ByteFallback``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from maskwright.errors import VocabularyError
from maskwright.vocabulary.tokenizers.table import require

TokenBytes = Callable[[str], bytes]
_TextStep = Callable[[str], str]


class Reading(NamedTuple):
    """What a token's string stands for: in the middle of a text, and at its very start (None: the same)."""

    middle: TokenBytes
    start: TokenBytes | None


_BYTE_PIECE = re.compile(r"<0x[0-9A-Fa-f]{2}>")
# Not in the byte-level alphabet and not in latin-1, so that encoding it to latin-1 fails.
_OUTSIDE = 0xFFFF


def _byte_level_table() -> dict[int, int]:
    """Code points of the GPT-2 byte alphabet -> byte; other code points below 256 -> ``_OUTSIDE``."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    remapped = [byte for byte in range(256) if byte not in printable]
    table = dict.fromkeys(remapped, _OUTSIDE)
    table.update({256 + position: byte for position, byte in enumerate(remapped)})
    return table


_BYTE_LEVEL = _byte_level_table()


def _utf8(token: str) -> bytes:
    return token.encode("utf-8")


def _byte_level(token: str) -> bytes:
    try:
        return token.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:
        # One character outside the alphabet makes the decoder keep the whole token as it is.
        return token.encode("utf-8")


def is_byte_piece(token: str) -> bool:
    """Whether a token is written like a byte-fallback piece, ``<0x0A>``."""
    return _BYTE_PIECE.fullmatch(token) is not None


def _byte_fallback(token: str) -> bytes:
    if is_byte_piece(token):
        return bytes([int(token[3:5], 16)])
    return token.encode("utf-8")


def token_bytes(state: dict[str, Any] | None, source: str, at_start: bool) -> Reading:
    """Interpret a decoder as a function from a token's string to the bytes it adds to a text.

    ``state`` is the decoder's JSON object (None: the tokenizer has no decoder), ``source`` names the
    tokenizer in messages; ``at_start``: whether the very start of a text is asked for.  Raises ``VocabularyError``
    naming the step that has no exact token bytes.
    """
    if state is None:
        # Without a decoder, tokens are joined with single spaces.
        return Reading(lambda token: b" " + token.encode("utf-8"), _utf8 if at_start else None)
    text_steps: list[_TextStep] = []
    first_steps: list[_TextStep] = []  # the same for the first token of a text
    to_bytes: TokenBytes | None = None
    fused_by = ""
    stripped = b""
    for step in _flatten(state):
        kind = step["type"]
        if kind == "Strip" and fused_by and step["stop"] == 0:
            if at_start and step["start"]:
                if stripped or step["start"] != 1 or not step["content"].isascii():
                    raise VocabularyError(
                        f"{source}: decoder Strip drops more than one byte at the start of a text; "
                        'word_start_mark="keep" reads the first token as any other one'
                    )
                stripped = step["content"].encode()
        elif kind == "Fuse":
            fused_by = fused_by or kind
        elif fused_by or to_bytes is not None:
            raise _refusal(source, kind, f"it runs after {fused_by or 'ByteFallback'}, across token borders")
        elif kind == "ByteLevel":
            to_bytes, fused_by = _byte_level, kind
        elif kind == "ByteFallback":
            to_bytes = _byte_fallback
        else:
            text_steps.append(_text_step(step, source))
            first_steps.append(_first_step(step) or text_steps[-1])
    middle, first = (_compose(steps, to_bytes or _utf8) for steps in (text_steps, first_steps))
    if not at_start or (first_steps == text_steps and not stripped):
        return Reading(middle, None)
    return Reading(middle, lambda token: first(token).removeprefix(stripped))


def _flatten(state: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if state["type"] == "Sequence":
        for inner in state["decoders"]:
            yield from _flatten(inner)
    else:
        yield state


def _compose(text_steps: list[_TextStep], to_bytes: TokenBytes) -> TokenBytes:
    if not text_steps:
        return to_bytes

    def run(token: str) -> bytes:
        for step in text_steps:
            token = step(token)
        return to_bytes(token)

    return run


def _text_step(step: dict[str, Any], source: str) -> _TextStep:
    """One step that rewrites each token's string by itself."""
    kind = step["type"]
    if kind == "Metaspace":
        replacement = step["replacement"]
        return lambda token: token.replace(replacement, " ")
    if kind == "Replace":
        return _replace(step)
    if kind == "Strip" and step["stop"] == 0:
        content, count = step["content"], step["start"]
        return lambda token: token[min(count, len(token) - len(token.lstrip(content))) :]
    if kind == "WordPiece":
        if step["cleanup"]:
            raise _refusal(
                source,
                "WordPiece(cleanup=True)",
                "clean-up deletes spaces before punctuation; rebuild the decoder with cleanup=False",
            )
        prefix = step["prefix"]
        return lambda token: token[len(prefix) :] if token.startswith(prefix) else " " + token
    if kind == "BPEDecoder":
        raise _refusal(source, kind, "the space that a suffix stands for disappears at the end of a text")
    if kind == "CTC":
        raise _refusal(source, kind, "repeated tokens are merged")
    raise _refusal(source, kind, "no exact token bytes are known for it")


def _first_step(step: dict[str, Any]) -> _TextStep | None:
    """What a step does with the first token of a text, if that differs."""
    if step["type"] == "Metaspace" and step["prepend_scheme"] != "never":
        replacement = step["replacement"]
        return lambda token: token.replace(replacement, "")
    if step["type"] == "WordPiece":
        return lambda token: token
    return None


def _replace(step: dict[str, Any]) -> _TextStep:
    pattern, content = step["pattern"], step["content"]
    if "String" in pattern:
        literal = pattern["String"]
        return lambda token: token.replace(literal, content)
    # The pattern is in another regex dialect than Python's; run the library's own step.
    library = require("tokenizers", "maskwright[hf]")
    replace = library.decoders.Replace(library.Regex(pattern["Regex"]), content)
    return lambda token: str(replace.decode([token]))


def _refusal(source: str, kind: str, reason: str) -> VocabularyError:
    return VocabularyError(
        f"{source}: decoder {kind} does not give exact token bytes: {reason}; "
        "or pass the bytes yourself with Vocabulary.from_bytes"
    )
