"""Bytes of automata are bounded, and so is the time of what makes them and of what others read for us."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading
import time
from typing import Any

import pytest
from toys import byte_vocabulary, compile_ir

import maskwright as mw
from maskwright._core import Matcher
from maskwright.base.deadline import deadline
from maskwright.base.interruption import within_time
from maskwright.check.grammars import to_grammar
from maskwright.errors import LimitError

AMPLE = 60  # seconds: what is meant to end by another limit


def overlapping(count: int) -> str:
    """A grammar of terminals of which the lexer has to keep all places apart."""
    names = [f"T{i}" for i in range(count)]
    rules = [f"T{i}: /[a-z]*{chr(97 + i % 26)}[a-z]{{{3 + i // 26}}}/\n" for i in range(count)]
    return f"start: ({' | '.join(names)})*\n{''.join(rules)}"


def test_preparing_a_lexer_obeys_every_limit() -> None:
    text, vocabulary = overlapping(200), byte_vocabulary()
    for name, most in (("max_bytes", 1 << 20), ("max_lexer_states", 50), ("max_seconds", 0.5)):
        limits = mw.Limits(**{"max_seconds": AMPLE, name: most})
        with pytest.raises(LimitError, match=name) as caught:
            mw.compile_lark(text, vocabulary, limits=limits)
        assert caught.value.limit == name and caught.value.given > caught.value.allowed == most
    # What could not be prepared is not kept.
    matcher = mw.compile_lark(overlapping(2), vocabulary).matcher()
    assert matcher.accept_bytes(b"xxaxxx") and matcher.is_accepting


def test_a_pattern_that_takes_too_much_leaves_its_matcher_where_it_was() -> None:
    vocabulary = byte_vocabulary()
    limits = mw.Limits(max_bytes=1 << 20, max_seconds=AMPLE)
    matcher = mw.compile_regex("(a|b)*a(a|b){16}c", vocabulary, limits=limits).matcher()
    draw = random.Random(1)
    before = matcher.state_id, matcher.accepted_tokens
    with pytest.raises(LimitError) as info:
        matcher.accept_bytes(bytes(draw.choices(b"ab", k=50_000)))
    assert info.value.limit == "max_bytes" and info.value.given > info.value.allowed == 1 << 20
    assert (matcher.state_id, matcher.accepted_tokens) == before
    # It is a limit of one operation: the same in pieces is read.
    for _ in range(100):
        assert matcher.accept_bytes(bytes(draw.choices(b"ab", k=500)))
    # With room, the same text goes on.
    ample = mw.compile_regex("(a|b)*a(a|b){16}c", vocabulary).matcher()
    assert ample.accept_bytes(b"a" * 17 + b"c") and ample.is_accepting


def ambiguous(count: int) -> str:
    """Rules that all begin in one place, return to each other and may be empty."""
    return "start: r0\n" + "".join(
        f'r{i}: r{(i + 1) % count} r{(i + 2) % count} | "a"? | "b" r{i * 7 % count}\n' for i in range(count)
    )


def walked(tries: int, **limits: float) -> tuple[list[bytes], set[str]]:
    """Masks along a text, each asked for until it is there or so many tries are over; and the limits that were met."""
    masks: list[bytes] = []
    met: set[str] = set()
    grammar = to_grammar(mw.Lark(ambiguous(60)), mw.Limits()).unshared()
    try:
        matcher = Matcher(compile_ir(grammar, byte_vocabulary(), mw.Limits(**limits)))
    except LimitError as error:
        return [], {error.limit}
    row = mw.allocate_token_bitmask(1, 257)
    for byte in b"aabab" * 4:
        for _ in range(tries):
            before = matcher.state_id, matcher.accepted_tokens
            row[:] = 0
            try:
                matcher.fill_next_token_bitmask(row)
                assert matcher.accept_token(byte)
            except LimitError as error:
                met.add(error.limit)
                assert (matcher.state_id, matcher.accepted_tokens) == before
            else:
                masks.append(row.tobytes())
                break
        else:
            break
    return masks, met


@pytest.mark.slow
@pytest.mark.sanitized
def test_what_is_given_up_on_the_way_is_not_kept() -> None:
    whole, met = walked(1, max_seconds=AMPLE)
    assert len(whole) == 20 and not met
    # Whatever is found out between two interruptions, no answer is another one.
    for milliseconds in (1, 2, 4, 8, 16):
        hurried, _ = walked(30, max_seconds=milliseconds / 1000)
        assert hurried == whole[: len(hurried)]
    for kilobytes in (50, 100, 200, 400):
        small, met = walked(3, max_seconds=AMPLE, max_bytes=kilobytes << 10)
        assert small == whole[: len(small)]
    assert met == {"max_bytes"} and small


def test_calls_that_never_look_at_the_clock_end_with_the_deadline() -> None:
    def forever() -> None:
        while True:
            pass

    swallowed = []

    def swallowing() -> None:
        while len(swallowed) < 3:
            try:
                forever()
            except BaseException as error:
                swallowed.append(error)
        forever()

    for call in (forever, swallowing):
        with deadline(0.2), pytest.raises(LimitError, match="max_seconds"):
            within_time(call)
    assert len(swallowed) == 3
    # Nothing comes any more.
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass


@pytest.mark.slow
@pytest.mark.sanitized
def test_a_late_call_is_not_ended_where_exceptions_are_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops what finalizers and the like raise, and prints it."""

    def wait() -> None:
        end = time.monotonic() + 0.02
        while time.monotonic() < end:
            pass

    def slowly(*_: object) -> None:
        wait()

    class Finalized:
        def __del__(self) -> None:
            wait()

    def collecting() -> None:
        while True:
            gc.collect(0)
            wait()

    def finalizing() -> None:
        while True:
            Finalized()
            wait()

    printed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    gc.callbacks.append(slowly)
    try:
        for call in (collecting, finalizing):
            for milliseconds in (30, 50, 70, 90):
                with deadline(milliseconds / 1000), pytest.raises(LimitError, match="max_seconds"):
                    within_time(call)
    finally:
        gc.callbacks.remove(slowly)
    assert printed == []


def test_a_watch_that_is_late_as_soon_as_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, the time may be over before the call begins."""
    start = threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        start(thread)
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            pass

    monkeypatch.setattr(threading.Thread, "start", slowly)
    with deadline(0.1), pytest.raises(LimitError, match="max_seconds"):
        within_time(lambda: 5)
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass


def test_nothing_comes_while_a_late_call_is_being_stopped() -> None:
    """Between any two steps of a program, more time may pass than between two attempts: there are none that are not the call's."""

    def forever() -> None:
        while True:
            pass

    steps: set[tuple[str, str]] = set()

    def trace(frame: Any, event: str, argument: object) -> Any:
        steps.add((frame.f_code.co_filename, frame.f_code.co_name))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with deadline(0.1), pytest.raises(LimitError, match="max_seconds"):
            within_time(forever)
    finally:
        sys.settrace(before)
    own = {name for file, name in steps if "interruption" in file}
    assert own <= {"run", "wait"} and (__file__, "forever") in steps


TRACED = """
import sys
from maskwright.base.deadline import deadline
from maskwright.base.interruption import within_time
from maskwright.errors import LimitError

def forever():
    while True:
        pass

sys.settrace(lambda frame, event, argument: None)
for _ in range(3):
    try:
        with deadline(0.1):
            within_time(forever)
    except LimitError:
        print("late")
"""


def test_a_call_that_is_late_under_a_debugger() -> None:
    """Coverage and debuggers trace steps: whatever stays pending in the interpreter is looked for again and again."""
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "late\n" * 3, done.stderr


def test_what_a_call_returns_or_raises_in_time() -> None:
    assert within_time(lambda: 5) == 5
    with deadline(AMPLE):
        assert within_time(lambda: 5) == 5
        with pytest.raises(KeyError):
            within_time(lambda: {}[1])


@pytest.mark.parametrize("pattern", ["\ud800", "a\udfffb", "[\ud800-\udbff]"])
def test_patterns_of_surrogates_alone_match_nothing(pattern: str) -> None:
    schema = {"type": ["string", "integer"], "pattern": pattern}
    matcher = mw.compile_json_schema(schema, byte_vocabulary()).matcher()
    assert not matcher.fork().accept_bytes(b'"')
    assert len(matcher.shortest_completion_bytes()) == 1


def test_repetitions_of_what_may_be_empty() -> None:
    tag = {"type": "repeat", "min": 10**9, "content": {"type": "any_text", "max_chars": 5}}
    matcher = mw.compile_structural_tag(tag, byte_vocabulary()).matcher()
    assert matcher.is_accepting and matcher.accept_bytes(b"abcdefgh") and matcher.is_accepting
    with pytest.raises(LimitError, match="max_count"):
        mw.compile_structural_tag({**tag, "min": 10**20}, byte_vocabulary())
