"""Arguments of a wrong type or size: a typed error before anything happens, at every entry point."""

from __future__ import annotations

import warnings
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
        for token in (
            97.0,
            97.9,
            "a",
            None,
            [97],
            2**80,
            -(2**80),
            2**63,
            np.float64(97.5),
            True,
            False,
            np.True_,
        ):
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
        for count in (1.5, 1.0, "1", None, -1, 2, 2**70, -(2**70), True, False):
            with pytest.raises(MaskwrightError):
                matcher.rollback(count)
        matcher.rollback(1)


@pytest.mark.parametrize(
    "token", [-1, 257, 2**31, 2**62, 2**62 + 1, 2**63 - 1, 2**63, -(2**63), 2**64 + 5, -(2**100)]
)
def test_messages_name_the_number_that_was_given(token: int) -> None:
    for use in (
        A.matcher().accept_token,
        lambda token: A.matcher().validate_tokens([token]),
        TRIE.matcher().accept_token,
    ):
        with pytest.raises(VocabularyError, match=rf"token id {token} is outside"):
            use(token)
    with pytest.raises(MaskwrightError, match=f"{max(token, 1)} of 0 accepted"):
        A.matcher().rollback(max(token, 1))
    row = token if token < 0 else token + 2
    with pytest.raises(mw.BitmaskError, match=rf"row {row} is outside a bitmask of 2"):
        A.matcher().fill_next_token_bitmask(np.zeros((2, 9), np.int32), row)


def test_numbers_that_python_does_not_write() -> None:
    for number in (10**5000, -(10**5000)):
        with pytest.raises(VocabularyError, match=r"0x.*\.\.\. is outside"):
            A.matcher().accept_token(number)
        with pytest.raises(MaskwrightError, match=r"\.\.\. of 0"):
            A.matcher().rollback(number)
        with pytest.raises(mw.BitmaskError, match=r"\.\.\. is outside"):
            A.matcher().fill_next_token_bitmask(np.zeros((2, 9), np.int32), number)


@pytest.mark.parametrize("row", [1.0, "1", None, True, [1]])
def test_rows_that_are_no_integers(row: Any) -> None:
    for matcher in (A.matcher(), TRIE.matcher()):
        mask = np.full((2, 9), 7, np.int32)
        with pytest.raises(mw.BitmaskError, match="integer"):
            matcher.fill_next_token_bitmask(mask, row)
        assert (mask == 7).all()
        matcher.fill_next_token_bitmask(mask, np.int64(1))
        assert (mask[0] == 7).all() and not (mask[1] == 7).all()


@pytest.mark.parametrize("count", [1.5, "2", True, [1], 0, -1, -(2**70)])
def test_numbers_of_threads(count: Any) -> None:
    with pytest.raises(MaskwrightError, match=r"threads is an integer|at least one thread"):
        mw.set_threads(count)
    try:
        mw.set_threads(2**70)
        mask = np.zeros((1, 9), np.int32)
        mw.fill_next_token_bitmasks([A.matcher()], mask)
        assert mask.any()
    finally:
        mw.set_threads()


@pytest.mark.parametrize("make", [A.matcher, TRIE.matcher])
def test_an_error_halfway_changes_nothing(make: Callable[[], Any]) -> None:
    matcher = make()
    assert matcher.accept_tokens([A_ID]) == 1

    def tokens() -> Any:
        yield A_ID
        raise KeyError

    for ids, error in (
        ([A_ID, "a"], VocabularyError),
        ([A_ID, 2**63], VocabularyError),
        (tokens(), KeyError),
    ):
        with pytest.raises(error):
            matcher.accept_tokens(ids)
        assert matcher.accepted_tokens == [A_ID]
    assert matcher.accept_tokens([A_ID, ord("x"), "a"]) == 1


class Liar(bytes):
    """Bytes that say something else of themselves."""

    def __len__(self) -> int:
        return 1000

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __bytes__(self) -> bytes:
        return b"other"

    def __getitem__(self, key: Any) -> Any:
        return 0

    def __iter__(self) -> Any:
        return iter([1, 2])


def test_bytes_that_say_something_else_of_themselves() -> None:
    plain = mw.Vocabulary.from_bytes([b"ab", b"a", b"b", None], 3, start_tokens={0: b"b"})
    odd = mw.Vocabulary.from_bytes([Liar(b"ab"), b"a", Liar(b"b"), None], 3, start_tokens={0: Liar(b"b")})
    assert odd.tokens == plain.tokens and set(map(type, odd.tokens)) == {bytes}
    assert odd.start_tokens == plain.start_tokens
    assert odd.digest == plain.digest
    matcher = mw.compile_regex("(ab)*", odd).matcher()
    assert not matcher.accept_token(0)
    assert matcher.accept_tokens([1, 2, 0]) == 3
    choice = mw.compile_choice([Liar(b"ab"), b"x"], BYTES).matcher()
    assert choice.accept_bytes(b"ab") and choice.is_accepting


def test_needed_bytes_that_are_special() -> None:
    tokens = [bytes([i]) for i in range(256)]
    with pytest.warns(UserWarning, match=r"only EOS or special ids have the bytes b'ac'"):
        vocabulary = mw.Vocabulary.from_bytes(tokens, eos_ids=ord("a"), special_ids=[ord("c")])
    assert vocabulary.missing_bytes == b"ac"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mw.Vocabulary.from_bytes([*tokens, b"a", b"<s>"], eos_ids=[ord("a"), 257])
        mw.Vocabulary.from_bytes([*tokens, None], eos_ids=256)


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


@pytest.mark.parametrize(
    "move",
    [
        lambda matcher: matcher.accept_token(A_ID),
        lambda matcher: matcher.accept_tokens([A_ID]),
        lambda matcher: matcher.accept_bytes(b"a"),
        lambda matcher: matcher.rollback(1),
        lambda matcher: matcher.reset(),
    ],
)
def test_what_makes_the_ids_does_not_move_the_matcher(move: Callable[[Any], Any]) -> None:
    class Number(Index):
        def __index__(self) -> int:
            move(matcher)
            return A_ID

    def tokens() -> Any:
        yield A_ID
        assert matcher.fork().accept_tokens([A_ID] * 9) == 9
        move(matcher)
        yield A_ID

    matcher = A.matcher(2)
    assert matcher.accept_tokens([A_ID] * 5) == 5
    for ids in (tokens(), [A_ID, Number(A_ID)]):
        for take in (matcher.accept_tokens, matcher.validate_tokens):
            with pytest.raises((MaskwrightError, VocabularyError), match="in use"):
                take(ids if isinstance(ids, list) else tokens())
            assert matcher.accepted_tokens == [A_ID] * 2
    # A fork that was made meanwhile has the same bound.
    forks = []

    def forking() -> Any:
        for _ in range(50):
            yield A_ID
        forks.append(matcher.fork())

    assert matcher.accept_tokens(forking()) == 50
    with pytest.raises(MaskwrightError, match="max_rollback is 2"):
        forks[0].rollback(3)
    forks[0].rollback(2)
