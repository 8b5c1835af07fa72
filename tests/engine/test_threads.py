"""Threads on one vocabulary see what a single thread sees; batches equal their rows."""

from __future__ import annotations

import multiprocessing
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier
from typing import Any

import numpy as np
import pytest
import toys
from schema_walks import SCHEMAS, choose, ids, vocabulary, walk

import maskwright as mw

SEEDS = range(8)
STALE = 0x5A5A5A5A


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Change threads often, and leave the pool as it was."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)
    mw.set_threads()


@cache
def expected(name: str) -> list[list[Any]]:
    compiled = mw.compile_json_schema(SCHEMAS[name], vocabulary(size=2000))
    return [list(walk(compiled, seed)) for seed in SEEDS]


def at_once(jobs: list[Callable[[], Any]]) -> list[Any]:
    """Run every job in a thread of its own, all begun together."""
    barrier = Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        barrier.wait()
        return job()

    with ThreadPoolExecutor(len(jobs)) as threads:
        return [f.result() for f in [threads.submit(run, job) for job in jobs]]


def walks(compiled: mw.CompiledGrammar) -> list[Callable[[], Any]]:
    return [lambda seed=seed: list(walk(compiled, seed)) for seed in SEEDS]


# --- matchers


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("budget", [None, 0, 20_000])
def test_walks_on_one_grammar(name: str, budget: int | None) -> None:
    shared = vocabulary(size=2000)
    if budget is not None:
        shared.mask_budget = budget
    compiled = mw.compile_json_schema(SCHEMAS[name], shared)
    for _ in range(3):
        assert at_once(walks(compiled)) == expected(name)
    assert 0 <= shared.mask_bytes <= shared.mask_budget


@pytest.mark.slow
@pytest.mark.sanitized
def test_the_budget_changes_meanwhile() -> None:
    shared = vocabulary(size=2000)
    compiled = {name: mw.compile_json_schema(SCHEMAS[name], shared) for name in SCHEMAS}

    def change() -> None:
        rng = random.Random(0)
        for _ in range(2000):
            shared.mask_budget = rng.choice((0, 1000, 100_000, 128 << 20))

    found = at_once(
        [change, *(lambda n=name, s=s: list(walk(compiled[n], s)) for name in SCHEMAS for s in SEEDS)]
    )
    assert found[1:] == [result for name in SCHEMAS for result in expected(name)]
    shared.mask_budget = 0
    assert shared.mask_bytes == 0


def test_what_threads_compute_at_the_same_time_is_counted_once() -> None:
    shared = vocabulary(size=2000)
    compiled = mw.compile_json_schema(SCHEMAS["strings"], shared)
    for _ in range(10):

        def job() -> None:
            matcher = compiled.matcher()
            assert matcher.accept_bytes(b'{"a":"')
            for token in range(shared.vocab_size):
                matcher.validate_tokens([token])

        at_once([job] * len(SEEDS))
        shared.mask_budget = 0
        assert shared.mask_bytes == 0
        shared.mask_budget = 128 << 20


def test_compiling_in_threads() -> None:
    for _ in range(3):
        shared = vocabulary(size=2000)
        shared._engine = None

        def job(seed: int, shared: mw.Vocabulary = shared) -> dict[str, Any]:
            names = random.Random(seed).sample(sorted(SCHEMAS), len(SCHEMAS))
            return {name: mw.compile_json_schema(SCHEMAS[name], shared) for name in names}

        found = at_once([lambda seed=seed: job(seed) for seed in SEEDS])
        assert len({id(compiled._core.engine) for result in found for compiled in result.values()}) == 1
        for name in SCHEMAS:
            assert list(walk(random.choice(found)[name], 0)) == expected(name)[0]
            assert mw.compile_json_schema(SCHEMAS[name], shared) in [result[name] for result in found]


@pytest.mark.slow
@pytest.mark.sanitized
def test_compiling_and_walking_in_threads() -> None:
    shared = vocabulary(size=2000)
    shared.mask_budget = 50_000

    def job(name: str, seed: int) -> Any:
        # Grammars are forgotten meanwhile, and their automata shared all the same.
        limits = mw.Limits(max_seconds=100 + seed)
        return list(walk(mw.compile_json_schema(SCHEMAS[name], shared, limits=limits), seed))

    jobs = [(name, seed) for seed in SEEDS for name in SCHEMAS]
    found = at_once([lambda n=name, s=seed: job(n, s) for name, seed in jobs])
    assert found == [expected(name)[seed] for name, seed in jobs]


def test_a_large_automaton_is_made_while_others_are_evicted() -> None:
    """Eviction goes along all automata of a vocabulary: ThreadSanitizer tells when one of them is not whole yet."""
    shared = vocabulary(size=2000)
    shared.mask_budget = 0

    def job(seed: int) -> Any:
        if seed:
            return list(walk(mw.compile_json_schema(SCHEMAS["recursive"], shared), seed))
        rng = random.Random(0)
        for _ in range(4):
            words = {"".join(rng.choices("abcdefgh", k=20)) for _ in range(200)}
            mw.compile_lark(
                f"start: (WORD | OTHER)+\nWORD: /{'|'.join(sorted(words))}/\nOTHER: /[i-z]+/", shared
            )
        return expected("recursive")[0]

    assert at_once([lambda s=seed: job(s) for seed in SEEDS]) == expected("recursive")


def test_a_view_outlives_evictions_by_other_threads() -> None:
    shared = vocabulary(size=2000)
    shared.mask_budget = 0
    compiled = mw.compile_json_schema(SCHEMAS["strings"], shared)

    def job(seed: int) -> Any:
        return [
            (m, np.asarray(m.next_token_bitmask()), m.next_token_bitmask()) for m in moved(compiled, seed, 30)
        ]

    for kept in at_once([lambda seed=seed: job(seed) for seed in SEEDS]):
        for matcher, array, view in kept:
            assert ids(array) == ids(np.asarray(view)) == sorted(toys.allowed(matcher))
        del kept, matcher, array, view
    shared.mask_budget = 0
    assert shared.mask_bytes == 0


# --- batches


def moved(compiled: mw.CompiledGrammar, seed: int, count: int) -> list[mw.Matcher]:
    """Matchers at different places; some masks are known, some are not, some texts are ended."""
    rng = random.Random(seed)
    vocabulary = compiled.vocabulary
    found = []
    for _ in range(count):
        matcher = compiled.matcher()
        for _ in range(rng.randrange(12)):
            token = choose(rng, sorted(toys.allowed(matcher)), vocabulary)
            if token is None or not matcher.accept_token(token):
                break
        if rng.random() < 0.5:
            token = choose(rng, sorted(toys.allowed(matcher)), vocabulary)
            if token is not None:
                matcher.accept_token(token)
        if rng.random() < 0.1:
            matcher.accept_tokens([*matcher.shortest_completion(), vocabulary.eos_ids[0]])
        found.append(matcher)
    return found


def rows(matchers: list[mw.Matcher]) -> np.ndarray:
    """The mask of every matcher, one by one."""
    out = np.full((len(matchers), (matchers[0].compiled.engine.vocab_size + 31) // 32), STALE, dtype=np.int32)
    for i, matcher in enumerate(matchers):
        matcher.fill_next_token_bitmask(out, i)
    return out


def batch(count: int = 150) -> list[mw.Matcher]:
    """Matchers of several grammars on two vocabularies of one width, in random order."""
    matchers = []
    for seed in (1, 2):
        shared = vocabulary(seed)
        for name in SCHEMAS:
            matchers += moved(
                mw.compile_json_schema(SCHEMAS[name], shared), seed, count // (2 * len(SCHEMAS))
            )
    random.Random(3).shuffle(matchers)
    assert any(m.is_terminated for m in matchers)
    return matchers


@pytest.mark.parametrize("count", [1, 2, 8, None])
@pytest.mark.parametrize("budget", [None, 0, 50_000])
def test_a_batch_equals_its_rows(count: int | None, budget: int | None) -> None:
    mw.set_threads(count)
    matchers, copies = batch(), batch()
    if budget is not None:
        for matcher in matchers:
            matcher.compiled.engine.mask_budget = budget
    one_by_one = rows(copies)
    for size in (len(matchers), 17, 16, 1):
        mask = np.full((size, one_by_one.shape[1]), STALE, dtype=np.int32)
        for _ in range(2):
            mw.fill_next_token_bitmasks(matchers[:size], mask)
            assert np.array_equal(mask, one_by_one[:size])


@pytest.mark.parametrize("slices", [np.s_[::2], np.s_[::-2]], ids=["every other", "from the end"])
def test_rows_of_a_batch_may_be_apart(slices: slice) -> None:
    mw.set_threads(2)
    matchers = batch(60)
    one_by_one = rows(matchers)
    whole = np.full((2 * len(matchers), one_by_one.shape[1]), STALE, dtype=np.int32)
    mw.fill_next_token_bitmasks(matchers, whole[slices])
    assert np.array_equal(whole[slices], one_by_one)
    whole[slices] = STALE
    assert (whole == STALE).all()


def test_batches_in_threads() -> None:
    mw.set_threads(4)
    batches = [batch(60) for _ in range(4)]
    one_by_one = rows(batch(60))

    def job(matchers: list[mw.Matcher]) -> bool:
        mask = np.full(one_by_one.shape, STALE, dtype=np.int32)
        for _ in range(20):
            mask[:] = STALE
            mw.fill_next_token_bitmasks(matchers, mask)
            if not np.array_equal(mask, one_by_one):
                return False
        return True

    assert all(at_once([lambda m=matchers: job(m) for matchers in batches * 2]))


def test_vocabularies_of_different_widths_in_a_batch() -> None:
    matchers = batch(40)
    narrow = mw.compile_json_schema(True, toys.byte_vocabulary()).matcher()
    mask = np.full((3, rows(matchers).shape[1]), STALE, dtype=np.int32)
    for mixed in ([*matchers[:2], narrow], [matchers[0], narrow, matchers[1]], [narrow, *matchers[:2]]):
        with pytest.raises(mw.BitmaskError):
            mw.fill_next_token_bitmasks(mixed, mask)
        assert (mask == STALE).all()


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize("other", [object(), 1, "matcher", None])
def test_a_batch_of_something_else(other: Any) -> None:
    # In a process of its own: a crash must not take the other tests with it.
    program = f"""
import maskwright as mw, toys
from maskwright._core import Engine
vocabulary = toys.byte_vocabulary()
vocabulary._engine = Engine(list(vocabulary.tokens), vocabulary.eos_ids)
matcher = mw.compile_json_schema(True, vocabulary).matcher()
other = {"object()" if type(other) is object else repr(other)}
mask = mw.allocate_token_bitmask(2, vocabulary.vocab_size)
for mixed in ([matcher, other], [other, matcher]):
    try:
        mw.fill_next_token_bitmasks(mixed, mask)
    except (TypeError, mw.BitmaskError):
        assert (mask == -1).all()
    else:
        raise AssertionError("accepted")
"""
    path = repr(sys.path)
    done = subprocess.run([sys.executable, "-c", f"import sys; sys.path[:] = {path}\n{program}"], timeout=60)
    assert done.returncode == 0


@pytest.mark.parametrize("count", [0, -1, -(2**40)])
def test_a_pool_needs_a_thread(count: int) -> None:
    with pytest.raises(ValueError, match="at least one"):
        mw.set_threads(count)
    matchers = batch(40)
    mask = np.zeros((len(matchers), rows(matchers).shape[1]), dtype=np.int32)
    mw.fill_next_token_bitmasks(matchers, mask)
    assert np.array_equal(mask, rows(matchers))


# --- processes


def _fill_in_a_child(matchers: list[mw.Matcher], mask: np.ndarray, connection: Any) -> None:
    for _ in range(3):
        mask[:] = STALE
        mw.fill_next_token_bitmasks(matchers, mask)
    connection.send_bytes(mask.tobytes())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_a_pool_of_its_own() -> None:
    mw.set_threads(4)
    matchers = batch()
    mask = np.zeros((len(matchers), (matchers[0].compiled.engine.vocab_size + 31) // 32), dtype=np.int32)
    mw.fill_next_token_bitmasks(matchers[::2], mask[::2])
    one_by_one = rows(batch())
    fork = multiprocessing.get_context("fork")
    for _ in range(2):
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_fill_in_a_child, args=(matchers, mask, there))
        child.start()
        try:
            assert here.poll(60), "the child hangs"
            assert here.recv_bytes() == one_by_one.tobytes()
        finally:
            child.kill()
            child.join()
    mw.fill_next_token_bitmasks(matchers, mask)
    assert np.array_equal(mask, one_by_one)


def _drop(name: str, shared: mw.Vocabulary) -> int:
    """Bytes that a grammar held, which is dropped."""
    shared._compiled._kept.clear()
    before = shared.mask_bytes
    compiled = mw.compile_json_schema(SCHEMAS[name], shared)
    for _ in walk(compiled, 3):
        pass
    held = shared.mask_bytes - before
    shared._compiled._kept.clear()
    return held


def _drop_in_a_child(shared: mw.Vocabulary, connection: Any) -> None:
    connection.send([_drop(name, shared) for name in SCHEMAS])
    connection.send(shared.mask_bytes)
    shared.mask_budget = 0
    connection.send(shared.mask_bytes)


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_frees_what_it_drops() -> None:
    """Whatever the parent was freeing when it forked."""
    shared = vocabulary()
    for name in SCHEMAS:
        _drop(name, shared)
    kept = shared.mask_bytes
    expected = [_drop(name, shared) for name in SCHEMAS]
    assert any(expected)
    assert shared.mask_bytes == kept
    fork = multiprocessing.get_context("fork")
    for _ in range(10):
        for name in SCHEMAS:
            _drop(name, shared)
        here, there = fork.Pipe(duplex=False)
        child = fork.Process(target=_drop_in_a_child, args=(shared, there))
        child.start()
        try:
            for answer in (expected, kept, 0):
                assert here.poll(60), "the child hangs"
                assert here.recv() == answer
        finally:
            child.kill()
            child.join()


def test_grammars_are_dropped_by_many_threads() -> None:
    shared = vocabulary()
    for name in SCHEMAS:
        _drop(name, shared)
    kept = shared.mask_bytes
    at_once([lambda name=name: [_drop(name, shared) for _ in range(5)] for name in SCHEMAS])
    assert shared.mask_bytes == kept
    shared.mask_budget = 0
    assert shared.mask_bytes == 0


def test_automata_are_forgotten_by_many_threads() -> None:
    """More than are remembered; forgetting the oldest runs Python code, between which others forget them as well."""
    engine: Any = vocabulary(size=300)._engine

    def job(seed: int) -> int:
        for i in range(3000):
            engine.add_words((seed, i), b"a", struct.pack("qq", 0, 1), b"")
        return seed

    assert at_once([lambda seed=seed: job(seed) for seed in range(6)]) == list(range(6))
