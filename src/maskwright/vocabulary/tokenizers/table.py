"""What every tokenizer reader returns, and how it loads its optional library."""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from typing import Any

from maskwright.errors import VocabularyError


@dataclass
class TokenTable:
    """The bytes behind the ids of one tokenizer, before they are fitted to a model's width.

    ``tokens[i]`` is the bytes that id ``i`` adds in the middle of a text, ``b""`` when it adds none
    (special tokens, holes).  ``eos_ids`` are the end-of-sequence ids the tokenizer itself names.
    ``start_tokens`` and ``start_stays``: as those of a ``Vocabulary``.
    """

    tokens: list[bytes]
    special_tokens: dict[str, int] = field(default_factory=dict)
    special_ids: set[int] = field(default_factory=set)
    eos_ids: tuple[int, ...] = ()
    start_tokens: dict[int, bytes] = field(default_factory=dict)
    start_stays: bool = False


def require(module: str, package: str) -> Any:
    """Import an optional library, or raise ``VocabularyError`` naming the package or extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise VocabularyError(
            f'this tokenizer needs the package {module!r} ({error}); install it with: pip install "{package}"'
        ) from error


def wrong_type(method: str, expected: str, given: object) -> VocabularyError:
    """The error for an object that is not a tokenizer of the family asked for."""
    return VocabularyError(f"Vocabulary.{method}: expected {expected}, got {type(given).__name__}")
