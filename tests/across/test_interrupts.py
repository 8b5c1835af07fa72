"""Ctrl-C ends whatever is under way soon, and leaves everything as it was.

In processes of their own: an interrupt that comes late must not end the tests.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")

# Without an interrupt, each of these takes at least half a minute.
COMMON = """
import os, signal, subprocess, sys, time
import maskwright as mw
import toys

# Whatever a shell began in the background ignores it, and so do its children.
signal.signal(signal.SIGINT, signal.default_int_handler)
FOREVER = mw.Limits(max_seconds=0, max_search=10**12, max_bytes=10**12, max_lexer_states=10**12)
VOCABULARY = toys.byte_vocabulary()
assert toys.allowed(mw.compile_json_schema({"const": "a"}, VOCABULARY).matcher()) == {ord('"')}

def interrupted(job):
    # A process of its own sends the signal: it needs no turn here.
    killer = subprocess.Popen(["sh", "-c", f"sleep 0.5; kill -INT {os.getpid()}"], preexec_fn=os.setpgrp)
    begin = time.monotonic()
    try:
        job()
    except KeyboardInterrupt:
        assert time.monotonic() - begin < 15
        killer.wait()
        return
    raise AssertionError("it was not interrupted")
"""

COMPILING = {
    "patterns": """
def job():
    schema = {"oneOf": [{"type": "string", "pattern": f"^(a|b)*a(a|b){{{i}}}$"} for i in range(18)]}
    mw.compile_json_schema(schema, VOCABULARY, limits=FOREVER)
""",
    "lexers": """
def job():
    names = [f"T{i}" for i in range(60)]
    rules = [f"T{i}: /[a-z]*{chr(97 + i % 26)}[a-z]{{{3 + i // 26}}}/" for i in range(60)]
    text = "start: " + "|".join(names) + chr(10) + chr(10).join(rules)
    mw.compile_lark(text, VOCABULARY, limits=FOREVER)
""",
    "different items": """
def job():
    # Fifteen values for sixteen places; values of optional members are not counted beforehand.
    values = [{"a": {"enum": list(range(i % 3, 14))}} for i in range(16)]
    places = [{"type": "object", "properties": value, "additionalProperties": False} for value in values]
    schema = {"type": "array", "uniqueItems": True, "prefixItems": places, "minItems": 16}
    mw.compile_json_schema(schema, VOCABULARY, limits=FOREVER)
""",
}


def run(program: str) -> str:
    path = f"import sys; sys.path[:] = {sys.path!r}\n"
    done = subprocess.run(
        [sys.executable, "-c", path + textwrap.dedent(program)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILING)
def test_compiling(name: str) -> None:
    program = """
for _ in range(2):
    interrupted(job)
    assert toys.allowed(mw.compile_json_schema({"const": "b"}, VOCABULARY).matcher()) == {ord('"')}
    assert len(VOCABULARY._compiled._kept) == 2
"""
    run(COMMON + COMPILING[name] + program)


@pytest.mark.slow
def test_a_completion() -> None:
    program = """
schema = {"type": "object", "minProperties": 100_000}
matcher = mw.compile_json_schema(schema, VOCABULARY, limits=FOREVER).matcher()
assert matcher.accept_bytes(b'{"a"')
before = matcher.state_id, matcher.accepted_tokens, toys.allowed(matcher)
for _ in range(2):
    interrupted(matcher.shortest_completion)
    assert (matcher.state_id, matcher.accepted_tokens, toys.allowed(matcher)) == before
assert matcher.accept_bytes(b': 1')
assert toys.allowed(matcher) >= set(b",0")
"""
    run(COMMON + program)


@pytest.mark.slow
@pytest.mark.sanitized
def test_another_handler_runs_when_the_operation_is_over() -> None:
    program = """
seen = []
signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
schema = {"type": "array", "minItems": 20_000}
matcher = mw.compile_json_schema(schema, VOCABULARY, limits=FOREVER).matcher()
expected = matcher.shortest_completion_bytes()
killer = subprocess.Popen(["sh", "-c", f"sleep 0.2; kill -INT {os.getpid()}"], preexec_fn=os.setpgrp)
while not seen:
    assert matcher.shortest_completion_bytes() == expected
assert seen == [signal.SIGINT]
"""
    run(COMMON + program)


def test_handlers_of_other_signals_end_compiling() -> None:
    program = """
def alarm(number, frame):
    raise TimeoutError

signal.signal(signal.SIGALRM, alarm)
signal.setitimer(signal.ITIMER_REAL, 0.3)
begin = time.monotonic()
try:
    job()
except TimeoutError:
    assert time.monotonic() - begin < 15
else:
    raise AssertionError
assert toys.allowed(mw.compile_json_schema({"const": "b"}, VOCABULARY).matcher()) == {ord('"')}
"""
    run(COMMON + COMPILING["patterns"] + program)


@pytest.mark.slow
@pytest.mark.sanitized
def test_threads_beside_the_main_one_are_not_interrupted() -> None:
    program = """
import threading
schema = {"type": "array", "minItems": 20_000}
matcher = mw.compile_json_schema(schema, VOCABULARY, limits=FOREVER).matcher()
expected = matcher.shortest_completion_bytes()
found = []
stop = False
def work():
    while not stop:
        found.append(matcher.shortest_completion_bytes() == expected)
thread = threading.Thread(target=work)
thread.start()
interrupted(lambda: time.sleep(60))
stop = True
thread.join()
assert found and all(found)
"""
    run(COMMON + program)
