"""Masks do not depend on what is kept: they equal the oracle's with any budget, and the budget is kept."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import Any

import numpy as np
import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Oracle
from schema_walks import SCHEMAS, choose, compiled, ids, source, vocabulary, walk

import maskwright as mw
from maskwright._core import Engine, Matcher
from maskwright.compiling.lowering import lower
from maskwright.errors import UnsatisfiableError
from maskwright.ir.grammar import Grammar
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS

DEFAULT = 128 << 20
BUDGETS = (DEFAULT, 0, 500, 8 << 10, 64 << 10)
MANY_STATES = 600
SAME = vocabulary()
"""For the oracle: vocabularies of one seed are equal."""


@cache
def oracle(name: str) -> Oracle:
    return Oracle(source(name))


@cache
def allowed(name: str, text: bytes) -> set[int]:
    return toys.oracle_allowed(oracle(name), text, SAME)


class Sequence:
    """A matcher, and what the oracle says of it."""

    def __init__(self, name: str, matcher: Matcher) -> None:
        self.name = name
        self.matcher = matcher

    def check(self) -> set[int]:
        accepted = self.matcher.accepted_tokens
        expected = set(SAME.eos_ids)
        if not self.matcher.is_terminated:
            expected = allowed(self.name, SAME.decode(accepted))
        assert toys.allowed(self.matcher) == expected, (self.name, SAME.decode(accepted))
        return expected


# --- masks


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize("budget", BUDGETS)
def test_masks_equal_the_oracles(budget: int) -> None:
    shared = vocabulary()
    shared.mask_budget = budget
    rng = random.Random(1)  # the same texts for all budgets: the oracle is slow
    live = [Sequence(name, compiled(name, shared).matcher()) for name in SCHEMAS for _ in range(2)]

    def check_bytes() -> None:
        assert 0 <= shared.mask_bytes <= budget

    for _ in range(400):
        at = rng.randrange(len(live))
        mask = live[at].check()
        check_bytes()
        matcher = live[at].matcher
        some = rng.randrange(shared.vocab_size)
        assert matcher.validate_tokens([some]) == (some in mask)
        check_bytes()
        kind = rng.random()
        if kind < 0.1:
            live[rng.randrange(len(live))] = Sequence(live[at].name, matcher.fork())
            continue
        token = choose(rng, sorted(mask), shared)
        if token is None or matcher.is_terminated or kind < 0.2:
            matcher.rollback(rng.randint(0, len(matcher.accepted_tokens)))
        else:
            assert matcher.accept_token(token)
        check_bytes()
        if kind > 0.9:
            matcher.shortest_completion()
            matcher.forced_bytes()
            check_bytes()
    if budget == DEFAULT:
        assert shared.mask_bytes > 64 << 10  # the others had something to drop


@pytest.mark.parametrize("budget", BUDGETS)
def test_views_and_batches_equal_the_oracles(budget: int) -> None:
    shared = vocabulary()
    shared.mask_budget = budget
    rng = random.Random(1)  # the same texts for all budgets: the oracle is slow
    live = [Sequence(name, compiled(name, shared).matcher()) for name in SCHEMAS]
    mask = mw.allocate_token_bitmask(len(live), shared.vocab_size)
    for _ in range(25):
        mw.fill_next_token_bitmasks([s.matcher for s in live], mask)
        assert 0 <= shared.mask_bytes <= budget
        for i, sequence in enumerate(live):
            expected = sequence.check()
            assert ids(mask[i]) == sorted(expected)
            assert ids(np.asarray(sequence.matcher.next_token_bitmask())) == sorted(expected)
            token = choose(rng, sorted(expected), shared)
            if token is None or sequence.matcher.is_terminated or not sequence.matcher.accept_token(token):
                sequence.matcher.reset()


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=80, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20), st.sampled_from((0, 300, 2000, 10_000)))
def test_random_grammars(grammar: Grammar, seed: int, budget: int) -> None:
    rng = random.Random(seed)
    pieces = toys.piece_vocabulary(7)
    try:
        cores = [
            lower(
                prune(grammar), Engine(list(pieces.tokens), pieces.eos_ids, self_loop_least=0), DEFAULT_LIMITS
            )
            for _ in range(2)
        ]
    except UnsatisfiableError:
        return
    cores[0].engine.mask_budget = budget
    small, large = map(Matcher, cores)
    for _ in range(12):
        mask = toys.allowed(small)
        assert mask == toys.allowed(large)
        assert 0 <= cores[0].engine.cached_bytes <= budget
        token = choose(rng, sorted(mask), pieces) if mask else None
        if token is None or small.is_terminated or cores[0].statistics["parser_states"] > MANY_STATES:
            break
        assert small.accept_token(token) and large.accept_token(token)
        assert small.state_id == large.state_id
        if rng.random() < 0.3:
            back = rng.randint(0, len(small.accepted_tokens))
            small.rollback(back)
            large.rollback(back)


def test_what_is_used_all_the_time_outlives_what_was_used_once() -> None:
    shared = vocabulary()
    names = [f"a{number}" for number in range(400)]
    schema = {
        "type": "object",
        "properties": {name: {"type": "string"} for name in names},
        "required": names,
        "additionalProperties": False,
    }
    compiled = mw.compile_json_schema(schema, shared)
    often, once = compiled.matcher(), compiled.matcher()
    assert often.accept_bytes(b'{"a0":"')
    shared.mask_budget = 30_000
    kept = drops = 0
    address, before = 0, shared.mask_bytes
    for number, name in enumerate(names):
        # Bytes, not tokens: then nothing but masks is cached.
        assert once.accept_bytes(b'%c"%s' % (b"," if number else b"{", name.encode()))
        toys.allowed(once)
        assert once.accept_bytes(b'":""')
        # A view of before is held, so that a new bitset has another address.
        view = np.asarray(often.next_token_bitmask())
        if shared.mask_bytes <= before:
            drops += 1
            kept += view.ctypes.data == address
        address, held, before = view.ctypes.data, view, shared.mask_bytes
        del view
    assert drops > 50 and held.any()
    assert kept > 0.9 * drops


# --- the budget


def test_lowering_the_budget_drops_at_once() -> None:
    shared = vocabulary()
    walks = [walk(compiled(name, shared), 1, steps=60) for name in SCHEMAS]
    before = [[next(w) for w in walks] for _ in range(30)]
    used = shared.mask_bytes
    assert used > 64 << 10
    for budget in (used, used - 1, used // 3, 5000, 100, 0):
        shared.mask_budget = budget
        assert 0 <= shared.mask_bytes <= budget
    assert shared.mask_bytes == 0
    after = [[next(w) for w in walks] for _ in range(30)]
    again = vocabulary()
    walks = [walk(compiled(name, again), 1, steps=60) for name in SCHEMAS]
    assert before + after == [[next(w) for w in walks] for _ in range(60)]


LEXED = r"""
start: statement+
statement: NAME "=" sum ";" | IF sum ":" statement
sum: atom (("+" | "-") atom)*
atom: NAME | NUMBER | "(" sum ")" | NAME "(" [sum ("," sum)*] ")"
IF: /if(?![a-z])/
NAME: /(?!if(?![a-z]))[a-z]+/
NUMBER: /[0-9]+(\.[0-9]+)?/
COMMENT: /#[^\n]*/
%ignore /[ \n]+/
%ignore COMMENT
"""
LEXED_TEXT = b"if a-b : cc = f(1.5 , a- 2) + (ab - c); # no\nifx=a -b-if; "


def test_masks_of_a_lexer_are_dropped_and_found_again() -> None:
    tokens = [bytes(pair) for pair in itertools.product(b"abif(,-+=.1 #;:)", repeat=2)]
    tokens += [b"-ab", b"- a", b" -a(", b"-1.", b"if ", b" = a", b"a-b", b"a - b", b"(a,b)", b"#a", b"# if;"]
    tokens = [*dict.fromkeys([*(bytes([i]) for i in range(256)), *tokens]), b"</s>"]

    def masks(shared: mw.Vocabulary, budgets: list[int]) -> list[set[int]]:
        matcher = mw.compile_lark(LEXED, shared).matcher()
        found = []
        for at, byte in enumerate(LEXED_TEXT):
            found.append(toys.allowed(matcher))
            if not matcher.accept_token(byte):
                break
            shared.mask_budget = budgets[at % len(budgets)]
            assert 0 <= shared.mask_bytes <= shared.mask_budget
        return found

    def fresh() -> mw.Vocabulary:
        return mw.Vocabulary.from_bytes(tokens, eos_ids=len(tokens) - 1)

    expected = masks(fresh(), [DEFAULT])
    assert len(expected) > 50
    for budgets in ([0], [500], [20_000, DEFAULT, DEFAULT, 0]):
        shared = fresh()
        assert masks(shared, budgets) == expected
        assert masks(shared, budgets) == expected
        shared.mask_budget = 0
        assert shared.mask_bytes == 0


def test_the_default_and_the_property() -> None:
    shared = vocabulary()
    assert shared.mask_budget == DEFAULT
    assert mw.Vocabulary.from_bytes([b"a", None], eos_ids=1).mask_bytes == 0
    for budget in (0, 1, 2**40, np.int64(7)):
        shared.mask_budget = budget
        assert shared.mask_budget == budget
        assert shared._engine.mask_budget == budget


@pytest.mark.parametrize(
    "budget", [-1, -(2**70), 2**62, 2**63, 2**70, "1", b"1", True, False, 1.0, None, [1]]
)
@pytest.mark.parametrize("compiled", [True, False])
def test_budgets_that_are_none(budget: Any, compiled: bool) -> None:
    shared = toys.piece_vocabulary(1)
    shared.mask_budget = 5000
    if compiled:
        mw.compile_json_schema(SCHEMAS["strings"], shared)
    with pytest.raises(mw.VocabularyError, match="mask_budget"):
        shared.mask_budget = budget
    assert shared.mask_budget == 5000
    if compiled:
        assert shared._engine.mask_budget == 5000


@pytest.mark.parametrize("budget", [0, 3000])
def test_a_budget_from_before_the_first_grammar(budget: int) -> None:
    shared = toys.piece_vocabulary(1)
    shared.mask_budget = budget
    compiled = mw.compile_json_schema(SCHEMAS["strings"], shared)
    assert shared._engine.mask_budget == budget
    for _ in walk(compiled, 0):
        assert 0 <= shared.mask_bytes <= shared.mask_budget == budget


# --- counting


def test_bytes_are_counted_alike_every_time() -> None:
    shared = vocabulary()
    counted = set()
    for _ in range(4):
        for name in SCHEMAS:
            for _ in walk(compiled(name, shared), 5):
                pass
        counted.add(shared.mask_bytes)
        shared.mask_budget = 0
        assert shared.mask_bytes == 0
        shared.mask_budget = DEFAULT
    assert len(counted) == 1
    assert counted.pop() > 10_000


def test_nothing_is_left_of_forgotten_grammars() -> None:
    shared = vocabulary()
    fresh = vocabulary()
    for seed in range(4):
        for name in SCHEMAS:
            grammar = compiled(name, shared)
            results = list(walk(grammar, seed))
            assert results == list(walk(compiled(name, fresh), seed))
            # What the grammar alone holds goes with it, what its lexemes hold may stay.
            before = shared.mask_bytes
            edges = grammar.statistics["token_edges"]
            shared._compiled._kept.clear()
            del grammar
            assert 0 <= shared.mask_bytes < before - 8 * edges
        shared.mask_budget = 0
        assert shared.mask_bytes == 0
        shared.mask_budget = DEFAULT


def test_grammars_are_deleted_while_nothing_is_kept() -> None:
    shared = vocabulary()
    shared.mask_budget = 0
    held = []
    for name in (*SCHEMAS, *SCHEMAS):
        matcher = compiled(name, shared).matcher()
        shared._compiled._kept.clear()
        held.append(Sequence(name, matcher))
        del matcher
        held[-1].check()
        if len(held) > 2:
            del held[0]
        for sequence in held:
            sequence.check()
            assert shared.mask_bytes == 0


def test_a_grammar_does_not_reach_into_the_masks_of_another() -> None:
    # Both use the masks of one lexeme, one of them through a bitset of its own.
    shared = vocabulary()
    first = mw.compile_json_schema({"type": "array", "items": {"type": "string"}}, shared)
    second = mw.compile_json_schema({"type": "object", "additionalProperties": {"type": "string"}}, shared)
    one, two = first.matcher(), second.matcher()
    assert one.accept_bytes(b'["a') and two.accept_bytes(b'{"b":"a')
    masks = toys.allowed(one), toys.allowed(two)
    views = one.next_token_bitmask(), two.next_token_bitmask()
    for _ in range(3):
        assert (toys.allowed(one), toys.allowed(two)) == masks
        assert (set(ids(np.asarray(views[0]))), set(ids(np.asarray(views[1])))) == masks
        shared.mask_budget = 0
        shared.mask_budget = DEFAULT


def test_masks_of_more_counts_than_a_table_holds() -> None:
    """States that differ in counts only share masks in a table of 2 048: one that is full begins anew."""
    vocabulary = toys.byte_vocabulary()
    grammar = mw.compile(mw.Regex("[ab]*a[ab]{20}"), vocabulary)
    rng = random.Random(5)
    seen = set()
    while len(seen) < 6_000:
        text = bytes(rng.choices(b"ab", k=40))
        matcher = grammar.matcher()
        for end, byte in enumerate(text, 1):
            assert matcher.accept_bytes(bytes([byte]))
            expected = {
                *b"ab",
                *(vocabulary.eos_ids if text[max(end - 21, 0)] == ord("a") and end > 20 else ()),
            }
            assert toys.allowed(matcher) == expected, text[:end]
            seen.add(text[max(end - 21, 0) : end])
