"""What long steps are made of: turns for others, items in time, freeing piece by piece."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from threading import Event, Thread

import pytest

import maskwright as mw
from maskwright.base.deadline import check_time, deadline, in_time, let_go, out_of_time, seconds_left
from maskwright.errors import LimitError, line_column, line_columns
from maskwright.ir.grammar import Words


@pytest.mark.slow
@pytest.mark.sanitized
def test_compiled_code_gives_others_their_turns() -> None:
    """One that only ever looks at the clock, and never runs a line of Python itself: ``dict.fromkeys`` of a compiled generator."""
    stop, turns = Event(), []

    def other() -> None:
        while not stop.is_set():
            time.sleep(0.001)
            turns.append(time.process_time())

    thread = Thread(target=other)
    thread.start()
    try:
        while len(turns) < 2:
            time.sleep(0.001)
        turns.clear()
        dict.fromkeys(in_time(range(8_000_000)))
        count = len(turns)
    finally:
        stop.set()
        thread.join()
    assert count >= 8


def test_in_time_is_all_of_them() -> None:
    def each() -> Iterator[int]:
        yield from range(1000)

    assert list(in_time(each())) == list(range(1000))
    with deadline(1e-6), pytest.raises(mw.LimitError):
        list(in_time(each()))
    check_time()


def test_some_of_the_time_is_kept_for_freeing() -> None:
    with deadline(1000.0):
        assert 800 < seconds_left() < 900
        with deadline(2000.0):
            assert 800 < seconds_left() < 900
        with deadline(100.0):
            assert 80 < seconds_left() < 90
    with deadline(0):
        assert seconds_left() == 0


def test_let_go_empties() -> None:
    held = list(range(1000)), {i: i for i in range(1000)}, set(range(1000))
    let_go(*held)
    assert held == ([], {}, set())
    let_go(*held)


@pytest.mark.parametrize("text", ["", "a", "\n", "a\nb\n\nc", "\n" * 9, "é\n\u2028x\r\ny"])
def test_places(text: str) -> None:
    places = range(len(text) + 1)
    assert list(line_columns(text, places)) == [line_column(text, at) for at in places]


def test_many_texts_are_sorted() -> None:
    rng = random.Random(3)
    alike = [b"x" * 40 + str(rng.random()).encode() for _ in range(30_000)]
    texts = [*alike, *(rng.randbytes(rng.randint(1, 3)) for _ in range(30_000))]
    words = Words(texts)
    assert [text for text, _ in words.items()] == sorted(set(texts))


def test_another_clock_says_that_the_time_is_over() -> None:
    """Python's clock stands still while a machine sleeps, or ticks in longer steps: that of C++ may know it first."""
    with deadline(60), pytest.raises(LimitError, match="max_seconds is 60") as caught:
        out_of_time()
    assert caught.value.limit == "max_seconds"
