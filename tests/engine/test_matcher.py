"""The contract of a matcher: bitmasks, ids, moving back, ending, counting tokens."""

from __future__ import annotations

import numpy as np
import pytest
import toys
from toys import grammar, term

from maskwright._core import Engine, Matcher
from maskwright.compiling.lowering import lower
from maskwright.errors import BitmaskError, LimitError, VocabularyError
from maskwright.ir.grammar import EMPTY, Choice, Keyset, Ref, Repeated, Seq, Term
from maskwright.ir.prune import prune
from maskwright.limits import Limits
from maskwright.regular.expressions import ANY_CHAR, Lit, repeat
from maskwright.vocabulary.engine_cache import engine_for
from maskwright.vocabulary.vocabulary import Vocabulary

# Ids 0 to 39 spell 40 ways to write a run of a's; the vocabulary needs two words.
A_RUN = grammar(term(repeat(Lit("a"), 1, 40), "a{1,40}"))
TOKENS = [
    *(b"a" * n for n in range(1, 36)),
    b"b",
    b"ab",
    b"",
    None,
    b"aa",
    b"</s>",
    b"<end>",
    b"<tool>",
    None,
]
EOS, END, TOOL = 40, 41, 42
VOCABULARY = Vocabulary.from_bytes(TOKENS, eos_ids=[EOS, END], special_ids=[TOOL])
WORDS = (len(TOKENS) + 31) // 32


@pytest.fixture
def matcher() -> Matcher:
    return toys.matcher(A_RUN, VOCABULARY)


def bits(row: np.ndarray) -> list[int]:
    """The ids of a row, by the definition: bit ``id % 32`` of word ``id // 32``."""
    return [i for i in range(32 * len(row)) if int(row[i // 32]) >> (i % 32) & 1]


# --- bitmasks


def test_layout_is_least_significant_bit_first(matcher: Matcher) -> None:
    row = np.zeros(WORDS, dtype=np.int32)
    matcher.fill_next_token_bitmask(row)
    assert bits(row) == [*range(35), 39]
    assert row[0] == -1
    matcher.accept_token(34)
    matcher.fill_next_token_bitmask(row)
    assert bits(row) == [0, 1, 2, 3, 4, 39, EOS, END]


def test_only_the_row_is_written(matcher: Matcher) -> None:
    bitmask = np.full((4, WORDS), 0x12345678, dtype=np.int32)
    matcher.fill_next_token_bitmask(bitmask, row=2)
    assert bits(bitmask[2]) == [*range(35), 39]
    assert (bitmask[[0, 1, 3]] == 0x12345678).all()
    matcher.fill_next_token_bitmask(bitmask)
    assert bits(bitmask[0]) == [*range(35), 39]


def test_bits_behind_the_vocabulary_are_clear(matcher: Matcher) -> None:
    row = np.full(WORDS, -1, dtype=np.int32)
    matcher.fill_next_token_bitmask(row)
    assert max(bits(row)) < len(TOKENS)


@pytest.mark.parametrize(
    "slices", [np.s_[::2], np.s_[::-1], np.s_[1:3]], ids=["every other", "reversed", "part"]
)
def test_rows_may_be_apart(matcher: Matcher, slices: slice) -> None:
    whole = np.zeros((6, WORDS), dtype=np.int32)
    view = whole[slices]
    matcher.fill_next_token_bitmask(view, 1)
    assert bits(view[1]) == [*range(35), 39]
    assert np.count_nonzero(whole.any(axis=1)) == 1


def test_columns_may_be_cut_from_a_wider_array(matcher: Matcher) -> None:
    whole = np.zeros((2, WORDS + 3), dtype=np.int32)
    matcher.fill_next_token_bitmask(whole[:, 1 : 1 + WORDS], 1)
    assert bits(whole[1, 1 : 1 + WORDS]) == [*range(35), 39]
    assert not whole[:, 0].any()
    assert not whole[:, 1 + WORDS :].any()


def test_torch_rows(matcher: Matcher) -> None:
    torch = pytest.importorskip("torch")
    bitmask = torch.full((3, WORDS), -1, dtype=torch.int32)
    matcher.fill_next_token_bitmask(bitmask, 1)
    assert bits(bitmask[1].numpy()) == [*range(35), 39]
    assert (bitmask[[0, 2]] == -1).all()
    for wrong in (bitmask.long(), bitmask.float(), bitmask.t(), torch.empty(3, WORDS, device="meta")):
        with pytest.raises(BitmaskError):
            matcher.fill_next_token_bitmask(wrong)


def read_only() -> np.ndarray:
    row = np.zeros((1, WORDS), dtype=np.int32)
    row.setflags(write=False)
    return row


@pytest.mark.parametrize(
    ("bitmask", "row"),
    [
        (np.zeros((1, WORDS), dtype=np.int64), 0),
        (np.zeros((1, WORDS), dtype=np.uint32), 0),
        (np.zeros((1, WORDS), dtype=np.float32), 0),
        (np.zeros((1, WORDS), dtype=np.int16), 0),
        (np.zeros((1, WORDS), dtype=">i4"), 0),
        (np.zeros((1, WORDS + 1), dtype=np.int32), 0),
        (np.zeros((1, WORDS - 1), dtype=np.int32), 0),
        (np.zeros((0, WORDS), dtype=np.int32), 0),
        (np.zeros((1, 1, WORDS), dtype=np.int32), 0),
        (np.zeros((), dtype=np.int32), 0),
        (np.zeros((2, WORDS), dtype=np.int32), 2),
        (np.zeros((2, WORDS), dtype=np.int32), -1),
        (np.zeros(WORDS, dtype=np.int32), 1),
        (np.zeros((1, 2 * WORDS), dtype=np.int32)[:, ::2], 0),
        (np.zeros((3, WORDS), dtype=np.int32, order="F"), 0),
        (read_only(), 0),
        (bytes(4 * WORDS), 0),
        (bytearray(4 * WORDS), 0),
        ([0] * WORDS, 0),
        (None, 0),
    ],
)
def test_unfit_bitmasks(matcher: Matcher, bitmask: object, row: int) -> None:
    matcher.accept_token(2)
    before = matcher.state_id, matcher.accepted_tokens
    with pytest.raises(BitmaskError):
        matcher.fill_next_token_bitmask(bitmask, row)
    if isinstance(bitmask, np.ndarray):
        assert not bitmask.any()
    assert (matcher.state_id, matcher.accepted_tokens) == before
    assert toys.allowed(matcher) == {*range(35), 39, EOS, END}


# --- ids


@pytest.mark.parametrize("token", [-1, len(TOKENS), 2**31, 2**40, -(2**40)])
def test_ids_outside_the_vocabulary(matcher: Matcher, token: int) -> None:
    matcher.accept_token(1)
    before = matcher.state_id
    for method in (
        matcher.accept_token,
        lambda i: matcher.accept_tokens([i]),
        lambda i: matcher.validate_tokens([i]),
    ):
        with pytest.raises(VocabularyError):
            method(token)
    assert matcher.state_id == before
    assert matcher.accepted_tokens == [1]


def test_ids_without_text_are_never_allowed() -> None:
    anything = grammar(term(repeat(ANY_CHAR, 1, None), "characters"))
    matcher = toys.matcher(anything, VOCABULARY)
    without = [i for i, token in enumerate(VOCABULARY.tokens) if not token]
    assert {TOOL, 37, 38, 43} < set(without)
    for _ in range(2):
        assert not toys.allowed(matcher) & set(without) - {EOS, END}
        for i in without:
            if i not in (EOS, END):
                assert not matcher.accept_token(i)
        assert matcher.accept_token(0)


def test_equal_bytes_are_allowed_together(matcher: Matcher) -> None:
    first, second = matcher.fork(), matcher.fork()
    assert first.accept_token(1)
    assert second.accept_token(39)
    assert first.state_id == second.state_id


def test_accept_tokens_stops_at_the_first_refusal(matcher: Matcher) -> None:
    assert matcher.validate_tokens([0, 1, 35, 0]) == 2
    assert matcher.accepted_tokens == []
    assert matcher.accept_tokens([0, 1, 35, 0]) == 2
    assert matcher.accepted_tokens == [0, 1]
    assert matcher.accept_tokens([]) == matcher.validate_tokens([]) == 0
    assert matcher.validate_tokens([34, 3]) == 1
    assert matcher.accept_tokens(iter([34, EOS, END])) == 2
    assert matcher.is_terminated


# --- moving back


def test_rollback(matcher: Matcher) -> None:
    states = [matcher.state_id]
    for token in (0, 5, 10):
        matcher.accept_token(token)
        states.append(matcher.state_id)
    matcher.rollback(0)
    assert matcher.state_id == states[3]
    matcher.rollback(2)
    assert matcher.state_id == states[1]
    assert matcher.accepted_tokens == [0]
    matcher.accept_token(34)
    assert matcher.accepted_tokens == [0, 34]
    matcher.rollback(2)
    assert matcher.state_id == states[0]


@pytest.mark.parametrize("count", [3, 100, -1, 2**40])
def test_rollback_too_far(matcher: Matcher, count: int) -> None:
    matcher.accept_tokens([0, 1])
    before = matcher.state_id
    with pytest.raises(ValueError, match="cannot roll back"):
        matcher.rollback(count)
    assert matcher.state_id == before
    assert matcher.accepted_tokens == [0, 1]


def test_refusals_cannot_be_rolled_back(matcher: Matcher) -> None:
    assert not matcher.accept_token(35)
    with pytest.raises(ValueError, match="cannot roll back"):
        matcher.rollback(1)


def test_reset_and_fork(matcher: Matcher) -> None:
    start = matcher.state_id
    matcher.accept_tokens([3, 4])
    fork = matcher.fork()
    matcher.reset()
    assert matcher.state_id == start
    assert matcher.accepted_tokens == []
    assert fork.accepted_tokens == [3, 4]
    fork.rollback(1)
    assert fork.accepted_tokens == [3]
    fork.accept_tokens([0, EOS])
    assert fork.is_terminated
    assert not matcher.is_terminated


# --- ending


@pytest.mark.parametrize("eos", [EOS, END])
def test_the_end(matcher: Matcher, eos: int) -> None:
    assert not matcher.is_accepting
    assert not matcher.accept_token(eos)
    matcher.accept_token(0)
    assert matcher.is_accepting
    assert not matcher.is_terminated
    assert matcher.accept_token(eos)
    assert matcher.is_terminated
    assert matcher.is_accepting
    assert toys.allowed(matcher) == {EOS, END}
    for token in (0, eos, TOOL):
        assert not matcher.accept_token(token)
        assert matcher.validate_tokens([token]) == 0
    assert not matcher.accept_bytes(b"a")
    assert matcher.longest_prefix(b"a") == 0
    assert matcher.forced_bytes() == b""
    assert matcher.shortest_completion() == []
    assert matcher.accepted_tokens == [0, eos]
    matcher.rollback(1)
    assert not matcher.is_terminated
    assert toys.allowed(matcher) == {*range(35), 39, EOS, END}


def test_eos_only_where_nothing_may_follow() -> None:
    matcher = toys.matcher(A_RUN, VOCABULARY)
    matcher.accept_bytes(b"a" * 40)
    assert toys.allowed(matcher) == {EOS, END}
    empty = toys.matcher(grammar(EMPTY), VOCABULARY)
    assert empty.is_accepting
    assert toys.allowed(empty) == {EOS, END}


# --- bytes


def test_bytes_count_as_one_step(matcher: Matcher) -> None:
    assert matcher.longest_prefix(b"aab") == 2
    assert not matcher.accept_bytes(b"aab")
    assert matcher.accepted_tokens == []
    assert matcher.accept_bytes(b"aa")
    assert matcher.accepted_tokens == [-1]
    same = matcher.fork()
    same.reset()
    same.accept_token(1)
    assert same.state_id == matcher.state_id
    matcher.rollback(1)
    assert matcher.accepted_tokens == []


def test_shortest_completion_is_spelled_in_few_tokens() -> None:
    tokens = [b"a", b"b", b"ab", b"abab", b"</s>"]
    vocabulary = Vocabulary.from_bytes(tokens, eos_ids=4)
    fixed = grammar(term("ababab"))
    matcher = toys.matcher(fixed, vocabulary)
    assert matcher.shortest_completion_bytes() == matcher.forced_bytes() == b"ababab"
    assert len(matcher.shortest_completion()) == 2
    matcher.accept_token(0)
    assert vocabulary.decode(matcher.shortest_completion()) == b"babab"


def test_a_vocabulary_that_cannot_spell_the_completion() -> None:
    vocabulary = Vocabulary.from_bytes([b"a", b"</s>"], eos_ids=1)
    matcher = toys.matcher(grammar(term("ab")), vocabulary)
    assert toys.allowed(matcher) == {0}
    assert matcher.accept_token(0)
    assert toys.allowed(matcher) == set()
    assert matcher.shortest_completion_bytes() == b"b"
    with pytest.raises(VocabularyError):
        matcher.shortest_completion()


# --- what is shared


def test_grammars_on_one_vocabulary_share_lexemes() -> None:
    body = Seq((Term(toys.ANY_STRING), term("!")))
    engine = Engine(list(VOCABULARY.tokens), VOCABULARY.eos_ids)
    limits = Limits()
    first = Matcher(lower(prune(grammar(body)), engine, limits))
    handle = engine.get_automaton(toys.ANY_STRING.key)
    assert handle is not None
    first.accept_bytes(b'"ab')
    second = Matcher(lower(prune(grammar(Choice((body, term("a"))))), engine, limits))
    assert engine.get_automaton(toys.ANY_STRING.key) is handle
    del first
    assert second.accept_bytes(b'"ab"!')


def test_saved_tables_give_the_same_masks() -> None:
    vocabulary = toys.piece_vocabulary(3)
    body = Seq((Term(Keyset(("a", "ab"), toys.ANY_STRING)), Term(toys.ANY_STRING)))
    limits = Limits()
    built = Engine(list(vocabulary.tokens), vocabulary.eos_ids)
    core = lower(prune(grammar(body)), built, limits)
    loaded = Engine(list(vocabulary.tokens), vocabulary.eos_ids, built.dump_trie())
    again = lower(prune(grammar(body)), loaded, limits)
    first, second = Matcher(core), Matcher(again)
    for piece in (b'"', b"a", b"b", b"\\", b"u00", b"e9", b'"', b'"', b"\xc3", b"\xa9", b'"'):
        assert toys.allowed(first) == toys.allowed(second)
        assert first.accept_bytes(piece)
        assert second.accept_bytes(piece)


# --- limits


def test_too_many_parser_states() -> None:
    nested = grammar(Choice((Seq((term("("), Ref(0), term(")"))), term("a"))))
    matcher = Matcher(toys.compile_ir(nested, VOCABULARY_OF_BYTES, Limits(max_parser_states=20)))
    matcher.accept_bytes(b"(((")
    with pytest.raises(LimitError) as info:
        matcher.accept_bytes(b"(" * 100)
    assert info.value.limit == "max_parser_states"
    assert matcher.accepted_tokens == [-1]


def test_too_many_lexer_states() -> None:
    long = grammar(term(repeat(Lit("ab"), 1, 3000), "(ab){1,3000}"))
    matcher = Matcher(toys.compile_ir(long, VOCABULARY_OF_BYTES, Limits(max_lexer_states=50)))
    with pytest.raises(LimitError) as info:
        matcher.accept_bytes(b"ab" * 1000)
    assert info.value.limit == "max_lexer_states"
    assert matcher.accepted_tokens == []


def test_too_many_rules() -> None:
    many = grammar(Repeated(1, 1, 1, 2), *(term("a") for _ in range(50)))
    with pytest.raises(LimitError):
        toys.compile_ir(many, VOCABULARY_OF_BYTES, Limits(max_rules=50))


VOCABULARY_OF_BYTES = toys.byte_vocabulary()


def test_a_long_text_is_spelled_in_time() -> None:
    engine = engine_for(Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256]))
    with pytest.raises(LimitError, match="max_seconds is 5,"):
        engine.segment(b"d" * 100_000, False, 5.0, 1e-9)
    assert engine.segment(b"dd") == engine.segment(b"dd", False, 5.0, 1e12) == [100, 100]
