"""An operation that exceeds its limits raises, and leaves everything as it was."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import numpy as np
import pytest
import toys
from reference import Oracle
from schema_walks import SCHEMAS, choose, compiled, hurried, ids, source, vocabulary
from toys import grammar, term

import maskwright as mw
from maskwright._core import Engine, Matcher
from maskwright.compiling.lowering import lower
from maskwright.errors import LimitError
from maskwright.ir.grammar import Choice, Ref, Seq
from maskwright.ir.prune import prune
from maskwright.limits import Limits
from maskwright.regular.expressions import Lit, repeat

# The clock is looked at every few thousand trie nodes or sixteen bytes: long tokens and a trie of
# many nodes make operations that this limit always catches.
SHORT = Limits(max_seconds=1e-9)
SIZE = 8000
STALE = 0x5A5A5A5A
SAME = vocabulary(size=SIZE)


@cache
def oracle(name: str) -> Oracle:
    return Oracle(source(name))


@cache
def allowed(name: str, text: bytes) -> set[int]:
    return toys.oracle_allowed(oracle(name), text, SAME)


def new_row() -> np.ndarray:
    return np.full((1, (SAME.vocab_size + 31) // 32), STALE, dtype=np.int32)


def place(matcher: Matcher) -> tuple[Any, ...]:
    return matcher.state_id, matcher.accepted_tokens, matcher.is_accepting, matcher.is_terminated


def slow_vocabulary() -> mw.Vocabulary:
    """A new one whose masks are always found by a walk of the whole trie."""
    return vocabulary(size=SIZE, self_loop_least=2**30)


def slow_operations(matcher: Matcher, more: bytes, row: np.ndarray) -> list[Any]:
    return [
        lambda: matcher.fill_next_token_bitmask(row),
        matcher.next_token_bitmask,
        lambda: mw.fill_next_token_bitmasks([matcher], row),
        lambda: matcher.accept_bytes(more),
        lambda: matcher.longest_prefix(more),
    ]


def check_walk(matcher: Matcher, name: str, seed: int, steps: int = 8) -> None:
    rng = random.Random(seed)
    for _ in range(steps):
        accepted = matcher.accepted_tokens
        mask = toys.allowed(matcher)
        assert mask == allowed(name, SAME.decode(accepted))
        token = choose(rng, sorted(mask - set(SAME.eos_ids)), SAME)
        if token is None:
            return
        assert matcher.accept_token(token)


# --- time


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("strings", b'{"a":"', b"a" * 40),
        ("counted strings", b'["', b"ab" * 15),
        ("other bounds", b'["', b'aa","' * 8),
        ("recursive", b'{"b":{"a":"', b'aa","c":"' * 4),
    ],
)
def test_a_late_operation_changes_nothing(name: str, text: bytes, more: bytes) -> None:
    shared = slow_vocabulary()
    late = compiled(name, shared, limits=SHORT).matcher()
    assert late.accept_tokens([SAME.tokens.index(bytes([byte])) for byte in text]) == len(text)
    row = new_row()
    before = place(late)
    used = shared.mask_bytes
    for operation in slow_operations(late, more, row) * 2:
        with pytest.raises(LimitError, match="max_seconds is 1e-09") as info:
            operation()
        assert info.value.limit == "max_seconds"
        assert info.value.allowed == 1e-9 < info.value.given < 30
        assert place(late) == before
        assert (row == STALE).all()
    # Nothing is kept of what is unfinished but for what was finished on the way.
    assert used <= shared.mask_bytes < used + 100_000
    # It is of no consequence: neither for others, nor for the same grammar.
    ample = compiled(name, shared).matcher()
    assert ample.accept_tokens(late.accepted_tokens) == len(text)
    check_walk(ample, name, 1)
    for other in SCHEMAS:
        check_walk(compiled(other, shared).matcher(), other, 1)
    # What others have computed is found in time.
    assert late.accept_token(SAME.tokens.index(b"a"))
    shared.mask_budget = 0
    assert shared.mask_bytes == 0


def test_a_late_token_is_not_remembered_as_refused() -> None:
    long = b"a" * 40
    tokens = [*(bytes([b]) for b in range(256)), long, b'"' + long + b"1" + long, None]
    shared = mw.Vocabulary.from_bytes(tokens, eos_ids=258)
    late = hurried({"type": "string"}, shared, SHORT).matcher()
    assert late.accept_token(34)
    before = place(late)
    for _ in range(3):
        for operation in (
            late.accept_token,
            lambda i: late.accept_tokens([97, i]),
            lambda i: late.validate_tokens([97, i]),
        ):
            with pytest.raises(LimitError, match="max_seconds"):
                operation(256)
            late.rollback(len(late.accepted_tokens) - 1)
            assert place(late) == before
    for _ in range(40):
        assert late.accept_token(97)
    assert late.accept_token(34)
    assert late.is_accepting
    ample = mw.compile_json_schema({"type": "string"}, shared).matcher()
    assert ample.accept_token(34) and ample.accept_token(256) and ample.accept_token(34)
    assert ample.is_accepting


def test_a_late_completion() -> None:
    shared = vocabulary()
    schema = {"type": "string", "minLength": 3000}
    late = hurried(schema, shared, SHORT).matcher()
    before = place(late)
    for _ in range(2):
        with pytest.raises(LimitError, match="max_seconds"):
            late.shortest_completion_bytes()
        with pytest.raises(LimitError, match="max_seconds"):
            late.shortest_completion()
        assert place(late) == before
    assert len(mw.compile_json_schema(schema, shared).matcher().shortest_completion_bytes()) == 3002


def test_no_limit_and_a_long_one() -> None:
    for seconds in (0, 0.0, 60, 1e9):
        shared = slow_vocabulary()
        limits = Limits(max_seconds=seconds)
        check_walk(compiled("strings", shared, limits).matcher(), "strings", 1)


def test_a_late_row_of_a_batch() -> None:
    shared = slow_vocabulary()
    late = hurried(SCHEMAS["strings"], shared, SHORT).matcher()
    assert late.accept_bytes(b'{"a":"')
    ample = [compiled(name, shared).matcher() for name in SCHEMAS]
    matchers = [*ample[:3], late, *ample[3:]]
    before = [place(m) for m in matchers]
    mask = np.repeat(new_row(), len(matchers), axis=0)
    for _ in range(2):
        with pytest.raises(LimitError, match="max_seconds"):
            mw.fill_next_token_bitmasks(matchers, mask)
        assert [place(m) for m in matchers] == before
        assert (mask[3] == STALE).all()
    mw.fill_next_token_bitmasks(ample, mask[1:])
    for row, name in zip(mask[1:], SCHEMAS, strict=True):
        assert set(ids(row)) == allowed(name, b"")


@pytest.mark.slow
@pytest.mark.sanitized
def test_late_and_ample_matchers_take_turns() -> None:
    for budget in (128 << 20, 0, 20_000):
        shared = slow_vocabulary()
        shared.mask_budget = budget
        pairs = {
            name: [compiled(name, shared, limits).matcher() for limits in (Limits(), SHORT)]
            for name in SCHEMAS
        }
        rng = random.Random(0)
        late_masks = 0
        for _ in range(8):
            for name, (ample, late) in pairs.items():
                text = SAME.decode(ample.accepted_tokens)
                row = new_row()
                try:
                    late.fill_next_token_bitmask(row)
                except LimitError:
                    assert (row == STALE).all()
                    late_masks += 1
                else:
                    assert set(ids(row[0])) == allowed(name, text)
                mask = toys.allowed(ample)
                assert mask == allowed(name, text)
                assert 0 <= shared.mask_bytes <= budget
                token = choose(rng, sorted(mask - set(SAME.eos_ids)), SAME)
                if token is None:
                    ample.reset()
                    late.reset()
                    continue
                assert ample.accept_token(token)
                try:
                    assert late.accept_token(token)
                except LimitError:
                    assert len(SAME.tokens[token]) >= 16
                    ample.rollback(1)
        assert late_masks > 5


# --- sizes


NESTED = grammar(Choice((Seq((term("("), Ref(0), term(")"))), term("a"))))
COUNTED = grammar(term(repeat(Lit("ab"), 1, 3000), "(ab){1,3000}"))


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize(
    ("source", "limits", "name", "good", "bad"),
    [
        (NESTED, Limits(max_parser_states=20), "max_parser_states", b"(((", b"(" * 200),
        (COUNTED, Limits(max_lexer_states=50), "max_lexer_states", b"abab", b"ab" * 200),
    ],
    ids=["parser", "lexer"],
)
def test_sizes_leave_the_matcher_where_it_was(
    source: Any, limits: Limits, name: str, good: bytes, bad: bytes
) -> None:
    tokens = [*(bytes([b]) for b in range(256)), bad, bad + b"!", None]
    vocabulary = mw.Vocabulary.from_bytes(tokens, eos_ids=258)
    expected = toys.oracle_allowed(Oracle(source), good, vocabulary)
    row = np.full((1, 9), STALE, dtype=np.int32)
    for operation in (
        lambda m: m.accept_bytes(bad),
        lambda m: m.accept_token(256),
        lambda m: m.accept_token(257),
        lambda m: m.accept_tokens([256, 256]),
        lambda m: m.validate_tokens([256, 257]),
        lambda m: m.longest_prefix(bad),
        lambda m: m.next_token_bitmask(),
        lambda m: m.fill_next_token_bitmask(row),
        lambda m: mw.fill_next_token_bitmasks([m, m], np.repeat(row, 2, axis=0)),
    ):
        engine = Engine(list(vocabulary.tokens), vocabulary.eos_ids, self_loop_least=0)
        matcher = Matcher(lower(prune(source), engine, limits))
        assert matcher.accept_bytes(good)
        before = place(matcher)
        with pytest.raises(LimitError) as info:
            operation(matcher)
        assert info.value.limit == name
        assert info.value.given > info.value.allowed
        assert place(matcher) == before
        ample = Matcher(lower(prune(source), engine, Limits()))
        assert ample.accept_bytes(good)
        assert toys.allowed(ample) == expected
        assert ample.accept_token(256)
