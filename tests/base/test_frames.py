"""What fails late gives up the variables of its frames, and nothing that others have."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from types import TracebackType

import pytest

from maskwright.base import deadline as deadlines
from maskwright.base import frames
from maskwright.base.deadline import deadline, let_go


class Tree:
    def __init__(self, *parts: object) -> None:
        self.parts = list(parts)


def _names(trace: TracebackType | None) -> list[set[str]]:
    found = []
    while trace is not None:
        found.append(set(trace.tb_frame.f_locals))
        trace = trace.tb_next
    return found


def _fails(seconds: float, kept: list[object]) -> None:
    own, shared = Tree(Tree()), Tree(Tree())
    kept += [weakref.ref(own.parts[0]), shared]
    begin = time.monotonic()
    while time.monotonic() < begin + seconds:
        pass
    raise ValueError("late")


def _fails_twice(kept: list[object]) -> None:
    try:
        _fails(0, kept)
    except ValueError:
        _fails(0.12, kept)


@pytest.fixture(autouse=True)
def _as_if_these_calls_were_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "_PACKAGES", (__name__,))


@pytest.mark.parametrize("late", [False, True])
def test_a_failed_call_loses_its_variables_where_it_took_long(late: bool) -> None:
    kept: list[object] = []
    mine = Tree()
    with pytest.raises(ValueError, match="late") as raised, deadline(60):
        _fails(0.12 if late else 0, kept)
    own, shared = kept
    assert (own() is None) == late  # type: ignore[operator]
    assert len(shared.parts) == 1  # type: ignore[attr-defined]
    assert ("own" in _names(raised.tb)[-1]) != late
    # This call is not over.
    assert "mine" in _names(raised.tb)[0]
    assert mine.parts == []


def test_exceptions_from_before_keep_theirs() -> None:
    kept: list[object] = []
    try:
        _fails(0, kept)
    except ValueError as before:
        with pytest.raises(ValueError, match="late") as raised, deadline(60):
            _fails_twice(kept)
        assert raised.value.__context__ is not before
        assert "own" in _names(before.__traceback__)[-1]
        assert kept[0]() is not None  # type: ignore[operator]
        # Neither what failed last nor what failed before that, within.
        assert kept[2]() is kept[4]() is None  # type: ignore[operator]


def test_calls_of_other_packages_keep_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    kept: list[object] = []
    with pytest.raises(ValueError, match="late") as raised, deadline(60):
        _fails(0.12, kept)
    assert "own" in _names(raised.tb)[-1]


def test_modules_and_running_calls_keep_their_variables() -> None:
    program = compile("value = [1]\nfail(0.12, kept)", "a module", "exec")
    kept: list[object] = []
    names = {"fail": _fails, "kept": kept, "__name__": __name__}
    with pytest.raises(ValueError, match="late"), deadline(60):
        exec(program, names)
    assert names["value"] == [1]


@pytest.mark.slow
@pytest.mark.skipif(
    not deadlines.__file__.endswith((".so", ".pyd")), reason="references are counted in compiled code"
)
def test_others_have_their_turns_while_one_tree_is_freed() -> None:
    shared = [[], []]
    tree = [[[[i], shared] for i in range(500)] for _ in range(500)]
    held = {"key": tree}
    del tree
    ticks: list[float] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(0.001):
            ticks.append(time.monotonic())

    with deadline(60):
        time.sleep(0.12)
        thread = threading.Thread(target=tick)
        thread.start()
        while not ticks:
            time.sleep(0.001)
        begin = time.monotonic()
        let_go(held)
        end = time.monotonic()
    over.set()
    thread.join()
    assert not held
    assert shared == [[], []]
    assert sys.getrefcount(shared) == 2
    # Freed at once, it takes one turn.
    assert sum(begin < at < end for at in ticks) > 2
