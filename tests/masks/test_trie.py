"""Tries of token sequences against sets of sequences, one sequence at a time and batched in torch."""

from __future__ import annotations

import copy
import random
from typing import Any

import numpy as np
import pytest
import torch
import toys
from byte_walks import BYTES, accepts, check_equal, finished_walk
from devices import DEVICE
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright as mw
from maskwright.errors import BitmaskError, GrammarError, UnsatisfiableError, VocabularyError
from maskwright.frontends.parts import choice_part
from maskwright.integrations.following import Follower
from maskwright.ir.grammar import Choice, Grammar, Lexeme, Seq, Term
from maskwright.limits import DEFAULT_LIMITS
from maskwright.masks.trie import CompiledTrie, TokenTrie, TrieMatcher
from maskwright.regular.expressions import Lit

VOCAB = 70
EOS = 69
SEQUENCES = st.lists(st.lists(st.sampled_from([0, 1, 2, 31, 32, 64]), max_size=5), min_size=1, max_size=30)


def after(sequences: list[list[int]], prefix: list[int]) -> tuple[set[int], bool]:
    """What may follow a prefix, and whether it is whole: from the definition."""
    begun = [s for s in sequences if s[: len(prefix)] == prefix]
    return {s[len(prefix)] for s in begun if len(s) > len(prefix)}, prefix in begun


def bits(row: np.ndarray) -> set[int]:
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=120, deadline=None)
@given(SEQUENCES, st.integers(0, 99))
def test_every_prefix(sequences: list[list[int]], seed: int) -> None:
    trie = TokenTrie(sequences, VOCAB, [EOS])
    assert trie.n_states == len({tuple(s[:i]) for s in sequences for i in range(len(s) + 1)})
    fast = trie.to(DEVICE, dense_bytes=random.Random(seed).choice((0, 1 << 20)))
    states = {(): 0}
    for sequence in sequences:
        for i, token in enumerate(sequence):
            states[tuple(sequence[: i + 1])] = trie.next(states[tuple(sequence[:i])], token)
    batch = torch.tensor([*states.values(), -1], device=DEVICE)
    masks = fast.bitmask(batch).cpu().numpy()
    tokens, targets = fast.children(batch)
    assert not bits(masks[-1]) and (tokens[-1] == -1).all()
    for row, (prefix, state) in enumerate(states.items()):
        follow, whole = after(sequences, list(prefix))
        expected = follow | ({EOS} if whole else set())
        matcher = TrieMatcher(trie)
        assert matcher.accept_tokens(prefix) == len(prefix) and matcher.state_id == state
        assert toys_allowed(matcher) == bits(masks[row]) == expected
        assert matcher.is_accepting == whole
        assert {int(t) for t in tokens[row] if t >= 0} == follow
        completion = matcher.shortest_completion()
        assert [*prefix, *completion] in sequences
        shortest = min(len(s) for s in sequences if s[: len(prefix)] == list(prefix))
        assert len(completion) == shortest - len(prefix)
        for token in (*range(-1, 4), 31, 32, 64, 69, 70, 200):
            target = int(
                fast.step(torch.tensor([state], device=DEVICE), torch.tensor([token], device=DEVICE))
            )
            assert target == states.get((*prefix, token), -1)
        assert all(
            states.get((*prefix, int(t))) == int(s)
            for t, s in zip(tokens[row], targets[row], strict=True)
            if t >= 0
        )


def toys_allowed(matcher: TrieMatcher) -> set[int]:
    mask = np.full((2, 3), 0x5A5A5A5A, dtype=np.int32)
    matcher.fill_next_token_bitmask(mask, 1)
    other = torch.full((3,), 0x5A5A, dtype=torch.int32)
    matcher.fill_next_token_bitmask(other)
    assert np.array_equal(other.numpy(), mask[1])
    return bits(mask[1])


def test_states_with_many_children_have_a_table() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 1000, (5000, 3))
    rows[:2000, 0] = 7
    trie = TokenTrie(rows, 1000)
    fast = trie.to(DEVICE)
    assert len(fast.dense_states) == 2
    assert len(trie.to(DEVICE, dense_bytes=128).dense_states) == 1
    states = torch.tensor([0, trie.next(0, 7), trie.next(0, int(rows[-1, 0]))], device=DEVICE)
    for some in (fast, trie.to(DEVICE, dense_bytes=0)):
        for row, state in zip(some.bitmask(states).cpu().numpy(), states.tolist(), strict=True):
            assert bits(row) == set(trie.children(state).tolist())


def test_a_matcher_forks_rolls_back_and_ends() -> None:
    compiled = mw.compile(
        mw.Choice([[1, 2], [1, 2, 3], [4]]), mw.Vocabulary.from_bytes([b"x"] * 9, eos_ids=[7, 8])
    )
    assert isinstance(compiled, CompiledTrie)
    matcher = compiled.matcher()
    assert matcher.validate_tokens([1, 2, 3, 7]) == 4
    assert not matcher.accept_token(2) and matcher.accepted_tokens == []
    assert matcher.accept_tokens([1, 2]) == 2
    fork = matcher.fork()
    assert fork.accept_tokens([3, 3]) == 1 and fork.is_accepting
    assert matcher.accept_token(8) and matcher.is_terminated and not matcher.accept_token(8)
    assert matcher.shortest_completion() == []
    matcher.rollback(2)
    assert matcher.accepted_tokens == [1] and not matcher.is_accepting
    matcher.reset()
    assert matcher.accept_token(4)
    with pytest.raises(ValueError, match="roll back"):
        matcher.rollback(2)
    with pytest.raises(VocabularyError):
        matcher.accept_token(9)
    for mask in (np.zeros((1, 2), np.int32), np.zeros((1, 1), np.int64), [0]):
        with pytest.raises(BitmaskError):
            matcher.fill_next_token_bitmask(mask)
    with pytest.raises(BitmaskError):
        matcher.fill_next_token_bitmask(np.zeros((1, 1), np.int32), 1)


@pytest.mark.parametrize(
    ("sequences", "error"),
    [([], UnsatisfiableError), ([[1, 70]], VocabularyError), ([[-1]], VocabularyError), ([[1], 2], VocabularyError),
     ([["a"]], VocabularyError), ([[2**70]], VocabularyError), (np.zeros((2, 2)), VocabularyError),
     (np.zeros(3, int), VocabularyError), (np.array([[1, -1, 2]]), VocabularyError)],
    ids=str,
)  # fmt: skip
def test_wrong_sequences(sequences: object, error: type[Exception]) -> None:
    with pytest.raises(error):
        TokenTrie(sequences, VOCAB)  # type: ignore[arg-type]


NARROW = [
    (np.uint8, 255, 256),
    (np.int8, 127, 300),
    (np.int16, 2**15 - 1, 2**15),
    (np.uint16, 65535, 70_000),
    (np.int32, 2**31 - 1, 2**31),
    (np.uint32, 2**31 - 1, 2**31),
    (np.uint64, 2**31 - 1, 2**31),
]


@pytest.mark.parametrize(("dtype", "last", "vocab_size"), NARROW)
def test_the_last_id_of_a_narrow_type(dtype: Any, last: int, vocab_size: int) -> None:
    rows = [[5, 1], [last, 7], [5, 0], [last, 3]]
    made = TokenTrie(np.array(rows, dtype=dtype), vocab_size)
    wanted = TokenTrie(rows, vocab_size)
    assert made.tokens.tolist() == wanted.tokens.tolist() == [5, last, 0, 1, 3, 7]
    assert made.offsets.tolist() == wanted.offsets.tolist()
    for row in rows:
        assert made.final[made.next(made.next(0, row[0]), row[1])]


@pytest.mark.parametrize(
    ("sequences", "place"),
    [([[3, 1]], "sequence 0, position 0: 3"), ([[1], [0, 4, 2]], "sequence 1, position 1: 4"),
     ([[0, 1], [0, 3]], "sequence 1, position 1: 3"), (np.array([[1, 2], [4, -1]], np.int8), "sequence 1, position 0: 4")],
    ids=str,
)  # fmt: skip
def test_an_end_is_no_part_of_a_sequence(sequences: Any, place: str) -> None:
    with pytest.raises(VocabularyError, match=f"{place} is an end token, .* leave it out"):
        TokenTrie(sequences, 5, [3, 4])
    vocabulary = mw.Vocabulary.from_bytes([b"a", b"b", b"c", b"", b""], eos_ids=[3, 4])
    with pytest.raises(VocabularyError, match=place):
        mw.compile_choice(sequences, vocabulary)


@pytest.mark.parametrize("size", ["a", None, 3.5, True, 0, -1, 2**31 + 1, 2**70])
def test_wrong_sizes(size: Any) -> None:
    with pytest.raises(VocabularyError, match="vocab_size"):
        TokenTrie([[0]], size)


@pytest.mark.parametrize("ends", [5, None, [None], "a", [2**70]])
def test_wrong_ends(ends: Any) -> None:
    with pytest.raises(VocabularyError, match="eos_ids"):
        TokenTrie([[1]], 3, ends)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_copies_are_of_their_own(copied: Any) -> None:
    trie = TokenTrie([[1, 2], [1, 3]], VOCAB, [EOS])
    matcher = TrieMatcher(trie)
    assert matcher.accept_token(1)
    other = copied(matcher)
    assert other.accept_token(2) and other.compiled is trie
    assert matcher.accepted_tokens == [1] and matcher.accept_token(3)
    assert other.accepted_tokens == [1, 2]


def test_the_mask_as_a_view() -> None:
    matcher = TrieMatcher(TokenTrie([[1, 2], [1]], VOCAB, [EOS]))
    first = matcher.next_token_bitmask()
    assert first.readonly and first.format == "i" and first.shape == (3,)
    for token in (1, EOS):
        assert bits(np.asarray(matcher.next_token_bitmask())) == toys_allowed(matcher)
        assert matcher.accept_token(token)
    assert bits(np.asarray(matcher.next_token_bitmask())) == {EOS}
    assert bits(np.asarray(first)) == {1}


def test_tries_where_matchers_are_expected() -> None:
    compiled = mw.compile_choice([[97, 98], [97], [99]], BYTES)
    assert isinstance(compiled, CompiledTrie)
    follower = Follower(compiled, 0)
    for text, allowed in (([], {97, 99}), ([97], {98, *BYTES.eos_ids}), ([97, 99], set(BYTES.eos_ids))):
        assert bits(np.asarray(follower.mask(np.array(text, dtype=np.int64)))) == allowed
    assert follower.error is not None
    table = mw.MaskTable(BYTES.vocab_size, 8, "cpu")
    matchers = [compiled.matcher() for _ in range(3)]
    assert matchers[1].accept_token(97) and matchers[2].accept_token(99)
    rows = table.rows([*matchers, mw.compile_regex("a", BYTES).matcher()])
    for matcher, row in zip(matchers, rows.tolist(), strict=False):
        assert np.array_equal(table.masks[row].numpy(), np.asarray(matcher.next_token_bitmask()))
    assert len(set(rows.tolist())) == 4 and table.rows(matchers).tolist() == rows.tolist()[:3]


# --- texts

TEXTS = st.lists(st.text(st.sampled_from('ab1"\\\u00e9\U0001f600'), max_size=4), min_size=1, max_size=12)


@settings(max_examples=80, deadline=None)
@given(TEXTS, st.integers(0, 99))
def test_choices_agree_with_the_oracle(texts: list[str], seed: int) -> None:
    naive = Grammar()
    ways = tuple(Seq(tuple(Term(Lexeme(c, Lit(c))) for c in text)) for text in texts)
    naive.add("texts", Choice(ways))
    check_equal(choice_part(texts, DEFAULT_LIMITS).make(), naive, seed)


def test_many_texts() -> None:
    rng = random.Random(3)
    texts = ["".join(rng.choices("abc12()", k=rng.randint(1, 12))) for _ in range(20_000)]
    compiled = mw.compile(mw.Choice(texts), toys.piece_vocabulary(4))
    known = set(texts)
    for seed in range(30):
        assert finished_walk(compiled, seed).decode() in known
    for text in texts[:50]:
        assert accepts(compiled, text)
        assert accepts(compiled, text + "a") == (text + "a" in known)
    assert mw.compile_choice(texts[::-1], compiled.vocabulary) is compiled


def test_wrong_choices() -> None:
    for options, error in (("abc", GrammarError), ([], UnsatisfiableError), (["\ud800"], GrammarError)):
        with pytest.raises(error):
            mw.compile_choice(options, BYTES)
    for mixed, kind in ((["a", 3], "int"), ([1, 2], "int"), ([[97], "a"], "str")):
        with pytest.raises(VocabularyError, match=f"all texts, or all lists of token ids; got {kind}$"):
            mw.compile_choice(mixed, BYTES)
    assert accepts(mw.compile_choice([b"\xff", ""], BYTES), "")
    assert mw.compile_choice([""], BYTES).matcher().is_accepting


def test_a_ready_trie_is_compiled() -> None:
    ends = list(BYTES.eos_ids)
    compiled = mw.compile(TokenTrie([[97, 98], [97]], BYTES.vocab_size, ends), BYTES)
    matcher = compiled.matcher()
    assert matcher.accept_token(97) and matcher.is_accepting and matcher.accept_token(98)
    for trie in (TokenTrie([[97]], BYTES.vocab_size), TokenTrie([[97]], BYTES.vocab_size + 1, ends)):
        with pytest.raises(VocabularyError, match="does not fit"):
            mw.compile(trie, BYTES)
    for wrong in ([BYTES.vocab_size], [-1], ["a"]):
        with pytest.raises(VocabularyError, match="eos_ids"):
            TokenTrie([[97]], BYTES.vocab_size, wrong)


def test_one_long_sequence_among_many_is_a_limit_before_it_takes_memory() -> None:
    # Padded to the longest, this would be 80 GB.
    ragged = [[0] * 100_000, *([1] for _ in range(100_000))]
    with pytest.raises(mw.LimitError, match="max_bytes"):
        mw.TokenTrie(ragged, 257, (256,))
    vocabulary = mw.Vocabulary([*(bytes([each]) for each in range(256)), b""], (256,))
    few = mw.Limits(max_bytes=10_000)
    with pytest.raises(mw.LimitError, match="max_bytes") as caught:
        mw.compile(mw.Choice([[0] * 50, *([each] for each in range(1, 200))]), vocabulary, limits=few)
    assert caught.value.given == 8 * 50 * 200
    assert mw.compile(mw.Choice([[0] * 5, *([each] for each in range(1, 200))]), vocabulary, limits=few)
