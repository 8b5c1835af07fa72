"""Garbage collection while something is compiled: rarer, never off, and afterwards as it was."""

from __future__ import annotations

import gc
import multiprocessing
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event
from typing import Any

import pytest
import toys

import maskwright as mw
from maskwright.base import collection
from maskwright.base.collection import FULL, MIDDLE, PUT_OFF, RARE, rare_collection


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, ...]]:
    before = gc.get_threshold()
    yield before
    gc.set_threshold(*before)
    gc.enable()


def test_it_is_rare_and_usual_again(thresholds: tuple[int, ...]) -> None:
    with rare_collection():
        assert gc.isenabled()
        assert gc.get_threshold() == (RARE, MIDDLE, FULL)
        with pytest.raises(KeyError), rare_collection():
            raise KeyError
        assert gc.get_threshold()[0] == RARE
    assert gc.get_threshold() == thresholds
    with pytest.raises(KeyError), rare_collection():
        raise KeyError
    assert gc.get_threshold() == thresholds


def test_compiling_is_within(thresholds: tuple[int, ...]) -> None:
    seen = []

    def registry(_: str) -> bool:
        seen.append((gc.isenabled(), gc.get_threshold()[0]))
        return True

    mw.compile_json_schema({"$ref": "https://example.org/other"}, toys.byte_vocabulary(), registry=registry)
    with pytest.raises(mw.GrammarError):
        mw.compile_json_schema({"type": 3}, toys.byte_vocabulary())
    assert seen and set(seen) == {(True, RARE)}
    assert gc.get_threshold() == thresholds


def _due() -> bool:
    return gc.get_count()[2] > gc.get_threshold()[2]


@pytest.fixture(autouse=True)
def _nothing_is_frozen(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(collection, "_looks_after", 0)
    gc.unfreeze()
    yield
    gc.freeze()


@pytest.mark.slow
def test_a_full_collection_is_put_off_and_comes() -> None:
    gc.collect()
    for i in range(PUT_OFF + 1):
        with rare_collection():
            for _ in range(12):
                gc.collect(1)
        assert _due() == (i >= PUT_OFF)


@pytest.mark.slow
def test_what_is_frozen_stays_so() -> None:
    gc.collect()
    gc.freeze()
    try:
        frozen = gc.get_freeze_count()
        with rare_collection():
            for _ in range(12):
                gc.collect(1)
        assert frozen - 100 < gc.get_freeze_count() <= frozen
    finally:
        gc.unfreeze()


@pytest.mark.slow
def test_what_is_frozen_is_not_counted_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    # Counting walks through all of it: a tenth of a second for a server's million objects.
    looks = []
    count = gc.get_freeze_count
    monkeypatch.setattr(gc, "get_freeze_count", lambda: looks.append(None) or count())
    gc.collect()
    gc.freeze()
    try:
        for _ in range(50):
            with rare_collection():
                for _ in range(12):
                    gc.collect(1)
    finally:
        gc.unfreeze()
    assert len(looks) <= 1


@pytest.mark.parametrize("chosen", [(0, 10, 10), (RARE + 1, 5, 5), (1_000_000, 1, 1)])
def test_who_wants_even_less_has_it(chosen: tuple[int, ...]) -> None:
    gc.set_threshold(*chosen)
    with rare_collection():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


def test_off_stays_off(thresholds: tuple[int, ...]) -> None:
    gc.disable()
    with rare_collection():
        assert not gc.isenabled()
    assert not gc.isenabled()
    assert gc.get_threshold() == thresholds


def test_what_is_set_meanwhile_stays() -> None:
    with rare_collection():
        gc.set_threshold(123, 4, 5)
    assert gc.get_threshold() == (123, 4, 5)


def test_in_any_order(thresholds: tuple[int, ...]) -> None:
    first, second = rare_collection(), rare_collection()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds
    second.__exit__(None, None, None)
    assert gc.get_threshold() == thresholds


def test_threads(thresholds: tuple[int, ...]) -> None:
    barrier = Barrier(8)

    def job(seed: int) -> None:
        rng = random.Random(seed)
        barrier.wait()
        for _ in range(300):
            try:
                with rare_collection():
                    if rng.random() < 0.3:
                        raise KeyError
            except KeyError:
                pass

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(job, range(8)))
    assert gc.get_threshold() == thresholds


def test_garbage_goes_while_a_thread_always_compiles() -> None:
    """Cycles that another thread leaves behind are freed meanwhile."""
    collected = []
    stop = Event()

    def compile_always() -> None:
        while not stop.is_set():
            with rare_collection():
                stop.wait(0.01)

    def note(phase: str, info: dict[str, Any]) -> None:
        if phase == "stop":
            collected.append(info["collected"])

    with ThreadPoolExecutor(1) as threads:
        busy = threads.submit(compile_always)
        gc.callbacks.append(note)
        try:
            for _ in range(5 * RARE):
                cycle: list[Any] = []
                cycle.append(cycle)
        finally:
            gc.callbacks.remove(note)
            stop.set()
        busy.result()
    assert sum(collected) >= 3 * RARE


def _report(connection: Any) -> None:
    connection.send((gc.isenabled(), gc.get_threshold()))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_that_is_forked_meanwhile(thresholds: tuple[int, ...]) -> None:
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    with rare_collection():
        child = fork.Process(target=_report, args=(there,))
        child.start()
        assert gc.get_threshold()[0] == RARE
    assert here.poll(60)
    assert here.recv() == (True, thresholds)
    child.join()
