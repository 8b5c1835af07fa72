"""Arguments of a wrong type or size: a typed error before anything happens, at every entry point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from toys import byte_vocabulary

import maskwright as mw
from maskwright.diffusion.between import complete_between
from maskwright.errors import MaskwrightError, VocabularyError

BYTES = byte_vocabulary()
A = mw.compile_regex("a+", BYTES)
TRIE = mw.compile_choice([[97, 98], [97, 97, 97]], BYTES)
A_ID = BYTES.tokens.index(b"a")


class Index:
    """What a tensor of one integer is."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value

    def __int__(self) -> int:
        raise AssertionError("a number that is cut is asked for its integer")


MATCHERS: list[Callable[[], Any]] = [
    A.matcher,
    TRIE.matcher,
    lambda: complete_between(A, "a", "a", max_tokens=8),
]


@pytest.mark.parametrize("make", MATCHERS)
class TestMatchers:
    def test_tokens_that_are_no_integers(self, make: Callable[[], Any]) -> None:
        matcher = make()
        for token in (97.0, 97.9, "a", None, [97], 2**80, -(2**80), 2**63, np.float64(97.5)):
            with pytest.raises(VocabularyError):
                matcher.accept_token(token)
        assert matcher.accept_token(A_ID)

    def test_integers_of_other_types(self, make: Callable[[], Any]) -> None:
        matcher = make()
        for token in (np.int64(A_ID), Index(A_ID)):
            assert matcher.accept_token(token)
        matcher.rollback(np.int32(1))
        matcher.rollback(Index(1))

    def test_counts_that_are_no_integers(self, make: Callable[[], Any]) -> None:
        matcher = make()
        assert matcher.accept_token(A_ID)
        for count in (1.5, 1.0, "1", None, -1, 2, 2**70, -(2**70)):
            with pytest.raises(MaskwrightError):
                matcher.rollback(count)
        matcher.rollback(1)


def test_lists_of_tokens_that_are_no_integers() -> None:
    for matcher in (A.matcher(), TRIE.matcher()):
        for take in (matcher.accept_tokens, matcher.validate_tokens):
            with pytest.raises(VocabularyError):
                take([97.5])
        assert matcher.accepted_tokens == []
    for options in ([[1.5]], [[97], np.array([98.0])], np.array([[1.5]])):
        with pytest.raises(VocabularyError):
            mw.compile_choice(options, BYTES)
    assert mw.compile_choice([np.array([97]), [Index(98)]], BYTES)
