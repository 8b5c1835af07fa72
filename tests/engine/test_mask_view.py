"""``Matcher.next_token_bitmask``: a read-only view that stays what it was, whatever becomes of its makers."""

from __future__ import annotations

import ctypes
import gc
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import toys
from schema_walks import SCHEMAS, choose, ids, vocabulary, walk
from toys import ANY_STRING, grammar, term

import maskwright as mw
from maskwright._core import Engine, Matcher
from maskwright.compiling.lowering import lower
from maskwright.ir.grammar import Choice, Grammar, Keyset, Seq, Term
from maskwright.ir.prune import prune
from maskwright.limits import DEFAULT_LIMITS

SHARED = vocabulary()
WORDS = (SHARED.vocab_size + 31) // 32


@pytest.fixture
def matcher() -> Matcher:
    found = mw.compile_json_schema(SCHEMAS["strings"], SHARED).matcher()
    assert found.accept_bytes(b'{"a":"a')
    return found


def filled(matcher: Matcher) -> np.ndarray:
    row = np.full((matcher.compiled.engine.vocab_size + 31) // 32, 0x5A5A5A5A, dtype=np.int32)
    matcher.fill_next_token_bitmask(row)
    return row


def address(view: Any) -> int:
    return np.asarray(view).__array_interface__["data"][0]


# --- what it is


def test_a_buffer_of_words(matcher: Matcher) -> None:
    view = matcher.next_token_bitmask()
    assert isinstance(view, memoryview)
    assert (view.format, view.itemsize, view.ndim, view.shape, view.strides) == ("i", 4, 1, (WORDS,), (4,))
    assert view.readonly and view.contiguous and view.nbytes == 4 * WORDS
    array = np.asarray(view)
    assert array.dtype == np.int32
    assert np.array_equal(array, filled(matcher))
    assert view.tolist() == filled(matcher).tolist()
    assert ids(array) == sorted(toys.allowed(matcher))


def test_no_copy(matcher: Matcher) -> None:
    first, second = matcher.next_token_bitmask(), matcher.fork().next_token_bitmask()
    assert np.shares_memory(np.asarray(first), np.asarray(first))
    assert np.shares_memory(np.asarray(first), np.asarray(second))
    filled(matcher)
    assert address(first) == address(second) == address(matcher.next_token_bitmask())


def test_it_cannot_be_written(matcher: Matcher) -> None:
    before = filled(matcher)
    view = matcher.next_token_bitmask()
    with pytest.raises(TypeError):
        view[0] = 0
    array = np.asarray(view)
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        array.setflags(write=True)
    with pytest.raises(TypeError):
        (ctypes.c_int32 * WORDS).from_buffer(view)
    with pytest.raises(mw.BitmaskError):
        matcher.fill_next_token_bitmask(view)
    with pytest.raises(mw.BitmaskError):
        mw.fill_next_token_bitmasks([matcher], array[None])
    assert np.array_equal(filled(matcher), before)


def test_it_can_be_applied(matcher: Matcher) -> None:
    logits = np.zeros(SHARED.vocab_size, dtype=np.float32)
    mw.apply_token_bitmask_inplace(logits, np.asarray(matcher.next_token_bitmask()))
    assert set(np.flatnonzero(logits == 0).tolist()) == toys.allowed(matcher)


KINDS = {
    "few tokens": (grammar(Seq((term("ab"), term("c")))), b""),
    "bits only": (grammar(Term(ANY_STRING)), b'"'),
    "bits and crossings": (grammar(Seq((Term(ANY_STRING), term(", ")))), b'"'),
    "removals": (
        grammar(Seq((Term(Keyset(("a", "ab", "c"), ANY_STRING)), Choice((term(":"), term("}")))))),
        b'"',
    ),
    "several threads": (
        grammar(
            Choice((Term(Keyset(("a", "b"), ANY_STRING)), Seq((Term(ANY_STRING), term("1"))), term('"a"b')))
        ),
        b'"a',
    ),
    "complete": (grammar(term("a")), b"a"),
    "start": (grammar(Choice((Term(ANY_STRING), term("1")))), b""),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("view_first", [True, False])
@pytest.mark.parametrize("self_loop_least", [0, 2**30], ids=["slices", "walks"])
def test_masks_of_all_kinds(kind: str, view_first: bool, self_loop_least: int) -> None:
    source, text = KINDS[kind]
    vocabulary = toys.piece_vocabulary(1, size=1500)
    engine = Engine(list(vocabulary.tokens), vocabulary.eos_ids, self_loop_least=self_loop_least)
    matcher = Matcher(lower(prune(source), engine, DEFAULT_LIMITS))
    assert not text or matcher.accept_bytes(text)
    expected = toys.allowed(matcher_behind(source, text, vocabulary))
    if view_first:
        view = np.asarray(matcher.next_token_bitmask())
        assert set(ids(view)) == expected
    assert toys.allowed(matcher) == expected
    for _ in range(2):
        view = np.asarray(matcher.next_token_bitmask())
        assert set(ids(view)) == expected == toys.allowed(matcher)
    # Other states that share bits with this one are what they were.
    for token in sorted(expected)[:40]:
        other, fresh = matcher.fork(), matcher_behind(source, text, vocabulary)
        assert other.accept_token(token) and fresh.accept_token(token)
        assert toys.allowed(other) == toys.allowed(fresh) == set(ids(np.asarray(other.next_token_bitmask())))
    assert set(ids(view)) == expected


def matcher_behind(source: Grammar, text: bytes, vocabulary: mw.Vocabulary) -> Matcher:
    found = toys.matcher(source, vocabulary)
    assert not text or found.accept_bytes(text)
    return found


def test_after_the_end_only_eos(matcher: Matcher) -> None:
    assert matcher.accept_tokens(matcher.shortest_completion())
    open_end = np.asarray(matcher.next_token_bitmask())
    before = open_end.copy()
    assert set(SHARED.eos_ids) <= set(ids(open_end))
    assert matcher.accept_token(SHARED.eos_ids[0])
    view = np.asarray(matcher.next_token_bitmask())
    assert ids(view) == list(SHARED.eos_ids)
    matcher.rollback(1)
    assert np.array_equal(open_end, before)
    assert np.array_equal(matcher.next_token_bitmask(), before)
    assert ids(view) == list(SHARED.eos_ids)


# --- how long it lasts


@pytest.mark.slow
@pytest.mark.parametrize("budget", [128 << 20, 0, 2000])
@pytest.mark.parametrize("name", SCHEMAS)
def test_it_stays_what_it_was(name: str, budget: int) -> None:
    shared = vocabulary()
    shared.mask_budget = budget
    compiled = mw.compile_json_schema(SCHEMAS[name], shared)
    matcher = compiled.matcher()
    rng = random.Random(1)
    kept: list[tuple[np.ndarray, bytes]] = []
    for _ in range(40):
        view = np.asarray(matcher.next_token_bitmask())
        kept.append((view, filled(matcher).tobytes()))
        token = choose(rng, ids(view), shared)
        if token is None or matcher.is_terminated or rng.random() < 0.1:
            matcher.rollback(len(matcher.accepted_tokens) // 2)
        else:
            assert matcher.accept_token(token)
        assert all(view.tobytes() == mask for view, mask in kept[-3:])
    assert all(view.tobytes() == mask for view, mask in kept)
    shared.mask_budget = 0
    assert all(view.tobytes() == mask for view, mask in kept)
    del matcher, compiled, shared, view
    gc.collect()
    assert all(view.tobytes() == mask for view, mask in kept)
    junk = [np.full(WORDS, -1, dtype=np.int32) for _ in range(200)]
    assert all(view.tobytes() == mask for view, mask in kept)
    assert len(junk) == 200


def test_its_bytes_are_counted_until_it_goes() -> None:
    shared = vocabulary()
    compiled = mw.compile_json_schema(SCHEMAS["strings"], shared)
    views = []
    matcher = compiled.matcher()
    for text in (b'{"', b'a":"', b"b"):
        assert matcher.accept_bytes(text)
        views.append(matcher.next_token_bitmask())
    shared.mask_budget = 0
    assert 0 < shared.mask_bytes <= len(views) * WORDS * 4
    for _ in walk(compiled, 0):
        assert shared.mask_bytes <= len(views) * WORDS * 4
    while views:
        before = shared.mask_bytes
        del views[-1]
        assert shared.mask_bytes <= before
    assert shared.mask_bytes == 0


def test_views_of_ended_texts_are_let_go() -> None:
    shared = vocabulary()
    matcher = mw.compile_json_schema(SCHEMAS["strings"], shared).matcher()
    assert matcher.accept_tokens([*matcher.shortest_completion(), shared.eos_ids[0]])
    before = shared.mask_bytes
    for _ in range(100):
        assert ids(np.asarray(matcher.next_token_bitmask())) == list(shared.eos_ids)
    assert shared.mask_bytes == before


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize("keep", ["view", "matcher", "array", "both"])
def test_it_may_be_part_of_a_cycle(keep: str) -> None:
    # In a process of its own: a crash must not take the other tests with it.
    program = f"""
import gc, sys
sys.path[:] = {sys.path!r}
import numpy as np
import schema_walks, maskwright as mw
class Request: pass
for _ in range(5):
    vocabulary = schema_walks.vocabulary()
    matcher = mw.compile_json_schema(schema_walks.SCHEMAS["strings"], vocabulary).matcher()
    view = matcher.next_token_bitmask()
    array = np.asarray(matcher.next_token_bitmask())
    both = [matcher, view, array]
    request = Request()
    request.itself = request
    request.kept = {keep}
    del vocabulary, matcher, view, array, both, request
    gc.collect()
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0
