"""Processes around the pools of threads: limits of the system, exits, children that are spawned, matchers that are shared."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest
import toys
from schema_walks import SCHEMAS, vocabulary, walk

import maskwright as mw

SETUP = """
import sys, threading
import numpy as np
import maskwright as mw
import toys

vocabulary = toys.byte_vocabulary()
compiled = mw.compile_json_schema({"type": "array", "items": {"type": "integer"}}, vocabulary)
matchers = []
for i in range(200):
    matchers.append(compiled.matcher())
    assert matchers[-1].accept_bytes(b"[" + b"1," * i)
one_by_one = np.zeros((len(matchers), (vocabulary.vocab_size + 31) // 32), np.int32)
for i, matcher in enumerate(matchers):
    matcher.fill_next_token_bitmask(one_by_one, i)

def fill():
    mask = np.zeros_like(one_by_one)
    mw.fill_next_token_bitmasks(matchers, mask)
    assert np.array_equal(mask, one_by_one)
"""


def run(program: str) -> None:
    path = f"import sys; sys.path[:] = {sys.path!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", path + textwrap.dedent(program)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of memory")
def test_no_room_for_threads() -> None:
    # The stack of another thread does not fit any more; there are none before, and then a few.
    program = """
import resource

def limit(room):
    pages = int(open("/proc/self/statm").read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + room, resource.RLIM_INFINITY))

mw.set_threads(64)
limit(4 << 20)
fill()
fill()
limit(30 << 20)
fill()
logits = np.zeros((200, vocabulary.vocab_size))
mw.apply_token_bitmask_inplace(logits, one_by_one)
assert (logits == 0).any() and np.isneginf(logits).any()
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
fill()
"""
    run(SETUP + program)


@pytest.mark.slow
@pytest.mark.sanitized
def test_exits_with_busy_pools() -> None:
    program = """
import time
mw.set_threads(4)
def work():
    while True:
        fill()
def compile():
    i = 0
    while True:
        i += 1
        mw.compile_json_schema({"const": i}, vocabulary).matcher().shortest_completion()
for job in (work, work, compile, compile):
    threading.Thread(target=job, daemon=True).start()
time.sleep(0.05)
"""
    for _ in range(6):
        run(SETUP + program)


def _walks(shared: mw.Vocabulary, name: str) -> Any:
    return list(walk(mw.compile_json_schema(SCHEMAS[name], shared), 3))


@pytest.mark.slow
@pytest.mark.sanitized
def test_children_that_are_spawned() -> None:
    shared = vocabulary(size=1000)
    for name in SCHEMAS:
        mw.compile_json_schema(SCHEMAS[name], shared)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = {name: pool.submit(_walks, shared, name) for name in SCHEMAS}
        for name, walked in found.items():
            assert walked.result(timeout=120) == _walks(shared, name)


# --- one matcher, several threads


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_matcher_that_another_thread_uses_does_not_move() -> None:
    compiled = mw.compile_json_schema({"type": "array", "minItems": 20_000}, toys.byte_vocabulary())
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"[1")
    before = matcher.accepted_tokens
    # None of these does anything when it comes too late.
    moves = {
        "accept_token": lambda: matcher.accept_token(ord("x")),
        "accept_tokens": lambda: matcher.accept_tokens([ord("x")]),
        "accept_bytes": lambda: matcher.accept_bytes(b"x"),
        "rollback": lambda: matcher.rollback(0),
    }
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(matcher.shortest_completion_bytes()))
    thread.start()
    refused = set()
    while thread.is_alive():
        for name, move in moves.items():
            try:
                move()
            except mw.MaskwrightError as error:
                assert "another thread" in str(error)
                refused.add(name)
    thread.join()
    assert refused == set(moves)
    assert found == [matcher.shortest_completion_bytes()]
    assert matcher.accepted_tokens == before


def test_threads_that_share_a_matcher_get_an_error_or_an_answer() -> None:
    compiled = mw.compile_json_schema({"type": "array", "items": {"type": "integer"}}, vocabulary(size=1000))
    text = b"[" + b"12, " * 300
    matcher = compiled.matcher()
    width = (compiled.vocabulary.vocab_size + 31) // 32
    errors: list[BaseException] = []

    def guarded(job: Any) -> None:
        for i in range(3000):
            try:
                job(i)
            except mw.MaskwrightError:
                pass
            except BaseException as error:
                errors.append(error)
                return

    jobs = [
        lambda i: matcher.accept_token(text[i % len(text)]),
        lambda i: matcher.accept_bytes(text[: i % 7]),
        lambda i: matcher.rollback(i % 3),
        lambda i: matcher.threads(),
        lambda i: matcher.captures(),
        lambda i: matcher.fill_next_token_bitmask(np.zeros((1, width), np.int32)),
        lambda i: mw.fill_next_token_bitmasks([matcher] * 20, np.zeros((20, width), np.int32)),
        lambda i: matcher.fork().accept_tokens(text),
        lambda i: (matcher.forced_bytes(), matcher.shortest_completion(), matcher.reset()),
    ]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=guarded, args=(job,)) for job in jobs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not errors
    matcher.reset()
    assert matcher.accept_bytes(b"[12")
