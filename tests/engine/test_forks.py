"""Child processes that are forked while other threads compile, fill masks and free: they work, and end."""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import toys
from schema_walks import SCHEMAS, vocabulary, walk

import maskwright as mw
from maskwright.vocabulary import compile_cache, engine_cache

pytestmark = [
    pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning"),
]
SECONDS = 60
"""Until a child counts as one that hangs."""


@contextmanager
def meanwhile(*jobs: Callable[[int], object]) -> Iterator[None]:
    """Threads that do something again and again; each is told how often it has done so."""
    stop = threading.Event()
    errors: list[BaseException] = []

    def repeat(job: Callable[[int], object]) -> None:
        times = 0
        try:
            while not stop.is_set():
                job(times)
                times += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=repeat, args=(job,)) for job in jobs]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        sys.setswitchinterval(before)
    assert not errors


def in_child(job: Callable[[], Any]) -> Any:
    """What a job gives in a forked child."""
    here, there = multiprocessing.get_context("fork").Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        try:
            there.send(job())
        except BaseException:
            there.send(traceback.format_exc())
        finally:
            os._exit(0)
    there.close()
    try:
        assert here.poll(SECONDS), "the child hangs"
        return here.recv()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        here.close()


@pytest.mark.slow
def test_children_of_busy_parents() -> None:
    shared = vocabulary(size=2000)
    expected = {name: list(walk(mw.compile_json_schema(SCHEMAS[name], shared), 1)) for name in SCHEMAS}
    held = [mw.compile_json_schema(SCHEMAS[name], shared).matcher() for name in SCHEMAS]
    width = (shared.vocab_size + 31) // 32

    def compile_anew(times: int) -> None:
        schema = {"type": "object", "properties": {f"a{times % 100}": {"type": "string", "maxLength": times}}}
        assert mw.compile_json_schema(schema, shared).matcher().accept_bytes(b"{")

    def compile_others(times: int) -> None:
        fresh = vocabulary(size=300)
        assert mw.compile_json_schema({"const": times}, fresh).matcher().accept_bytes(str(times).encode())

    def fill(times: int) -> None:
        limits = mw.Limits(max_seconds=1000 + times % 50)
        for _ in walk(
            mw.compile_json_schema(SCHEMAS[sorted(SCHEMAS)[times % len(SCHEMAS)]], shared, limits=limits),
            times,
        ):
            pass

    def fill_batches(times: int) -> None:
        mw.fill_next_token_bitmasks(
            [m.fork() for m in held] * 10, np.zeros((10 * len(held), width), np.int32)
        )

    def evict(times: int) -> None:
        shared.mask_budget = random.Random(times).choice((1000, 100_000, 128 << 20))

    def job() -> Any:
        found = {name: list(walk(mw.compile_json_schema(SCHEMAS[name], shared), 1)) for name in SCHEMAS}
        mask = np.zeros((len(held), width), np.int32)
        mw.fill_next_token_bitmasks(held, mask)
        return found, mask.tobytes()

    mask = np.zeros((len(held), width), np.int32)
    mw.fill_next_token_bitmasks(held, mask)
    mw.set_threads(4)
    try:
        with meanwhile(compile_anew, compile_others, fill, fill_batches, evict):
            for _ in range(10):
                assert in_child(job) == (expected, mask.tobytes())
    finally:
        mw.set_threads()


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_fork_waits_for_an_operation() -> None:
    """One that takes long, of one vocabulary, and a child that uses another one and the same one."""
    first, second = toys.byte_vocabulary(), toys.byte_vocabulary()
    slow = mw.compile_json_schema({"type": "array", "minItems": 5_000}, first)
    quick = mw.compile_json_schema({"const": 1}, second)
    length = len(slow.matcher().shortest_completion_bytes())

    def job() -> Any:
        return len(slow.matcher().shortest_completion_bytes()), toys.allowed(quick.matcher())

    with meanwhile(lambda _: slow.matcher().shortest_completion_bytes()):
        for _ in range(5):
            assert in_child(job) == (length, {ord("1")})


@pytest.mark.slow
def test_forks_of_several_threads() -> None:
    shared = [toys.byte_vocabulary() for _ in range(3)]

    def job() -> Any:
        return [toys.allowed(mw.compile_json_schema({"const": 1}, each).matcher()) for each in shared]

    def fork(times: int) -> None:
        assert in_child(job) == [{ord("1")}] * 3

    def compile_anew(times: int) -> None:
        for each in shared:
            mw.compile_json_schema({"const": times}, each)

    with meanwhile(fork, fork, compile_anew):
        for _ in range(10):
            assert in_child(job) == [{ord("1")}] * 3


@pytest.mark.parametrize("lock", ["building", "cache"])
def test_locks_that_another_thread_holds(lock: str) -> None:
    shared = toys.byte_vocabulary()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with engine_cache._building if lock == "building" else compile_cache._lock:
            held.set()
            release.wait(SECONDS if lock == "building" else 0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_child(lambda: toys.allowed(mw.compile_json_schema({"const": 1}, shared).matcher())) == {
        ord("1")
    }
    release.set()
    thread.join()
    assert toys.allowed(mw.compile_json_schema({"const": 1}, shared).matcher()) == {ord("1")}


def test_children_of_children() -> None:
    shared = toys.byte_vocabulary()
    compiled = mw.compile_json_schema({"type": "string"}, shared)

    def job(depth: int) -> Any:
        found = [len(toys.allowed(compiled.matcher())), compiled.matcher().accept_bytes(b'"abc')]
        return [found, *(in_child(lambda: job(depth - 1)) if depth else [])]

    assert in_child(lambda: job(2)) == [[1, True]] * 3


@pytest.mark.parametrize("children", [5, pytest.param(60, marks=pytest.mark.slow)])
def test_a_grammar_that_begins_anew_while_a_child_is_forked(children: int) -> None:
    """Who was about to make another generation is not there in the child, and somebody else makes it."""
    shared = vocabulary(size=400)
    shared.state_budget = 1 << 14
    grammar = mw.compile_json_schema({"type": "object", "additionalProperties": {"type": "string"}}, shared)

    def texts(count: int, seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(count):
            assert grammar.matcher().accept_bytes(b'{"k%d":"' % rng.randrange(10**7))

    def child() -> bool:
        before: int = grammar._core.generation
        texts(300, 0)
        return bool(grammar._core.generation > before)

    with meanwhile(*[lambda times: texts(10, times)] * 3):
        for _ in range(children):
            assert in_child(child) is True
