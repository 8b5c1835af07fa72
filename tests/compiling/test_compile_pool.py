"""Compiling on threads of its own: shared by all who wait, cancelled when nobody does, bounded, and never in the way."""

from __future__ import annotations

import asyncio
import gc
import json
import multiprocessing
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future, wait
from pathlib import Path
from typing import Any

import pytest
import toys
from travel_sources import SOURCES, vocabulary, walk

import maskwright as mw
from maskwright.compiling import compiler
from maskwright.compiling import pool as compile_pool

NO_LIMIT = mw.Limits(max_seconds=0)
WAIT = 120  # seconds


@pytest.fixture
def shared() -> mw.Vocabulary:
    return vocabulary()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Compiles begin when this is set."""
    gate = threading.Event()
    plain = compile_pool.compile_job

    def gated(*arguments: Any) -> Any:
        assert gate.wait(WAIT)
        return plain(*arguments)

    monkeypatch.setattr(compile_pool, "compile_job", gated)
    yield gate
    gate.set()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def counts(pool: mw.Compiler, *names: str) -> list[float]:
    return [pool.statistics[name] for name in names]


def large_grammar() -> mw.Lark:
    """One that takes some seconds."""
    rules = [f'r{i}: "a{i}" ["b"] ["c"] r{i}* | start "{i}"' for i in range(400)]
    return mw.Lark("\n".join(["start: " + " | ".join(f"r{i}" for i in range(400)), *rules]))


def endless() -> mw.Regex:
    """Minutes of a compile."""
    return mw.Regex("(?=(a|b)*a(a|b){17}$)(?=(a|b)*b(a|b){16}$)(a|b)*a(a|b){15}")


# --- one compile for all


def test_identical_waiters_share_one_compile(shared: mw.Vocabulary, held: threading.Event) -> None:
    schema = {"type": "object", "required": ["a"]}
    with mw.Compiler(shared) as pool:
        futures = [pool.compile(mw.JsonSchema(json.loads(json.dumps(schema)))) for _ in range(100)]
        assert counts(pool, "requested", "shared", "in_progress", "compiled") == [100, 99, 1, 0]
        held.set()
        first = futures[0].result(WAIT)
        assert all(future.result(WAIT) is first for future in futures)
        assert pool.compile(mw.JsonSchema(schema)).done()
        assert counts(pool, "requested", "shared", "compiled", "cached", "failed", "in_progress") == [
            101, 99, 1, 1, 0, 0,
        ]  # fmt: skip
        assert pool.statistics["cached_bytes"] > 0 and pool.statistics["seconds"] > 0
    assert mw.compile(mw.JsonSchema(schema), shared) is first


@pytest.mark.parametrize("name", SOURCES)
def test_what_is_compiled_is_the_same(name: str, shared: mw.Vocabulary) -> None:
    with mw.Compiler(shared, workers=1) as pool:
        there = pool.compile(SOURCES[name]).result(WAIT)
    assert walk(there.matcher(), 1) == walk(mw.compile(SOURCES[name], vocabulary()).matcher(), 1)


def test_choices(shared: mw.Vocabulary, held: threading.Event) -> None:
    held.set()
    with mw.Compiler(shared) as pool:
        tokens = pool.compile(mw.Choice([[1, 2], [3]])).result(WAIT)
        assert isinstance(tokens, type(mw.compile(mw.Choice([[1]]), shared)))
        many = pool.compile(mw.Choice([str(i) for i in range(20_000)])).result(WAIT)
        assert many.matcher().accept_bytes(b"19999")
        assert pool.compile(mw.Choice(["a", "b"])).result(WAIT) is pool.compile(mw.Choice(["b", "a"])).result(
            WAIT
        )
        for wrong in (mw.Choice("ab"), mw.Choice([]), mw.Choice(5), mw.Choice([1.5])):
            assert isinstance(pool.compile(wrong).exception(WAIT), mw.MaskwrightError)


def test_limits_tell_sources_apart(shared: mw.Vocabulary, held: threading.Event) -> None:
    with mw.Compiler(shared, limits=NO_LIMIT) as pool:
        futures = [
            pool.compile(mw.Regex("ab"), limits=limits)
            for limits in (None, NO_LIMIT, mw.Limits(max_rules=1000))
        ]
        assert counts(pool, "shared", "in_progress") == [1, 2]
        held.set()
        assert len({id(future.result(WAIT)) for future in futures}) == 2


def test_a_source_that_is_changed_meanwhile(shared: mw.Vocabulary, held: threading.Event) -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"const": 1}}, "required": ["a"]}
    tag = json.loads(json.dumps(SOURCES["tag"].tag))
    with mw.Compiler(shared) as pool:
        one, two = pool.compile(mw.JsonSchema(schema)), pool.compile(mw.StructuralTag(tag))
        schema["properties"]["a"]["const"] = 2
        tag["format"]["tags"][0]["content"]["json_schema"]["required"] = ["other"]
        held.set()
        assert one.result(WAIT).matcher().accept_bytes(b'{"a": 1}')
        assert two.result(WAIT).matcher().accept_bytes(b'<t>{"ab": 1}</t>')
        assert pool.compile(mw.JsonSchema(schema)).result(WAIT).matcher().accept_bytes(b'{"a": 2}')


# --- what goes wrong


def test_a_bad_source_fails_alone(shared: mw.Vocabulary, held: threading.Event) -> None:
    bad: list[tuple[Any, type[Exception]]] = [
        (mw.Lark("start: missing"), mw.GrammarError),
        (mw.Regex("("), mw.GrammarError),
        (mw.JsonSchema({"type": "integer", "minimum": 2, "maximum": 1}), mw.UnsatisfiableError),
        (mw.JsonSchema({"$dynamicRef": 5}), mw.MaskwrightError),
        ({"type": "object"}, mw.GrammarError),
        ("text", mw.GrammarError),
    ]
    with mw.Compiler(shared) as pool:
        good = pool.compile(mw.JsonSchema({"type": "null"}))
        futures = [(pool.compile(source), error) for source, error in bad for _ in range(3)]
        held.set()
        found = [future.exception(WAIT) for future, _ in futures]
        assert all(isinstance(each, error) for each, (_, error) in zip(found, futures, strict=True))
        assert len(set(map(id, found))) == len(found)
        assert good.result(WAIT).matcher().accept_bytes(b"null")
        before = pool.statistics["failed"]
        # It is read again: nothing is kept of an error.
        assert isinstance(pool.compile(mw.Regex("(")).exception(WAIT), mw.GrammarError)
        assert pool.statistics["failed"] == before + 1
        clash = pool.compile(bad[2][0]).exception(WAIT)
        assert isinstance(clash, mw.UnsatisfiableError) and len(clash.constraints) == 3


def test_a_slow_source_fails_alone(shared: mw.Vocabulary) -> None:
    with mw.Compiler(shared) as pool:
        slow = pool.compile(endless(), limits=mw.Limits(max_seconds=1, max_regex_states=10**9))
        for i in range(20):
            assert pool.compile(mw.Regex(f"a{{{i + 1}}}")).result(WAIT).matcher().accept_bytes(b"a")
        error = slow.exception(WAIT)
        assert isinstance(error, mw.LimitError) and error.limit == "max_seconds"


def test_wrong_arguments(shared: mw.Vocabulary) -> None:
    with pytest.raises(mw.VocabularyError):
        mw.Compiler(None)  # type: ignore[arg-type]
    wrong: list[dict[str, Any]] = [
        {"workers": 0}, {"workers": 1.5}, {"cache_bytes": -1}, {"cache_bytes": "1"}, {"shared": 5}, {"limits": 5},
    ]  # fmt: skip
    for arguments in wrong:
        with pytest.raises(mw.MaskwrightError):
            mw.Compiler(shared, **arguments)
    with mw.Compiler(shared) as pool:
        assert isinstance(pool.compile(mw.Regex("a"), limits=5).exception(WAIT), mw.GrammarError)  # type: ignore[arg-type]


# --- cancelling


def test_cancelling_leaves_others_alone(shared: mw.Vocabulary, held: threading.Event) -> None:
    with mw.Compiler(shared, workers=1) as pool:
        futures = [pool.compile(mw.Regex("abc")) for _ in range(5)]
        for future in futures[:4]:
            assert future.cancel() and future.cancelled()
        assert counts(pool, "cancelled", "in_progress") == [4, 1]
        done, _ = wait(futures[:4], timeout=WAIT)
        assert len(done) == 4
        held.set()
        assert futures[4].result(WAIT).matcher().accept_bytes(b"abc")
        assert not futures[4].cancel()
        assert counts(pool, "compiled", "cancelled", "in_progress") == [1, 4, 0]


# What ends the package lark may come in a callback of the collector, which swallows it: then it comes again.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "slow",
    [endless(), large_grammar(), mw.JsonSchema({"pattern": endless().pattern})],
    ids=["patterns", "lark", "schema"],
)
def test_a_compile_that_nobody_waits_for_ends(
    slow: Any, shared: mw.Vocabulary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASKWRIGHT_CACHE_DIR", "")
    limits = mw.Limits(max_seconds=0, max_regex_states=10**9)
    with mw.Compiler(shared, workers=1) as pool:
        for pause in (0.0, 0.05, 0.5):
            future = pool.compile(slow, limits=limits)
            time.sleep(pause)
            assert future.cancel()
            with pytest.raises(CancelledError):
                future.result(WAIT)
            # The only thread is free again.
            assert pool.compile(mw.Regex(f"a{{1,{int(100 * pause) + 2}}}")).result(WAIT)
        assert counts(pool, "cancelled", "compiled", "in_progress") == [3, 3, 0]


def test_an_engine_operation_ends_as_well() -> None:
    # What the engine computes does not look at the deadlines of compiles.
    stop = compile_pool.Stop()
    grammar = mw.compile_json_schema({"type": "array", "minItems": 10**8}, vocabulary(), limits=NO_LIMIT)
    found: list[BaseException] = []

    def run() -> None:
        try:
            with stop:
                grammar.matcher().shortest_completion_bytes()
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.2)
    stop.set()
    thread.join(WAIT)
    assert not thread.is_alive()
    assert not found or isinstance(found[0], (KeyboardInterrupt, MemoryError, mw.LimitError))


def test_whoever_comes_behind_a_cancelled_one_gets_a_grammar(
    shared: mw.Vocabulary, held: threading.Event
) -> None:
    with mw.Compiler(shared, workers=2) as pool:
        first = pool.compile(mw.Regex("xyz"))
        first.cancel()
        second = pool.compile(mw.Regex("xyz"))
        held.set()
        assert second.result(WAIT).matcher().accept_bytes(b"xyz")


def test_many_threads_ask_and_cancel(shared: mw.Vocabulary) -> None:
    errors: list[BaseException] = []

    def client(seed: int, pool: mw.Compiler) -> None:
        try:
            for i in range(40):
                future = pool.compile(mw.Regex(f"a{{{(seed * i) % 7 + 1}}}"))
                if (seed + i) % 3:
                    assert future.result(WAIT).matcher().accept_bytes(b"a")
                else:
                    future.cancel()
        except BaseException as error:
            errors.append(error)

    with mw.Compiler(shared) as pool:
        threads = [threading.Thread(target=client, args=(seed, pool)) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        until(lambda: pool.statistics["in_progress"] == 0)
        found = pool.statistics
    assert not errors
    assert found["requested"] == 320 and found["compiled"] >= 7 and found["failed"] == 0
    assert found["cached"] + found["shared"] + found["compiled"] <= 320


# --- ending


def test_closing_while_it_is_busy(shared: mw.Vocabulary) -> None:
    pool = mw.Compiler(shared, workers=1, limits=mw.Limits(max_seconds=0, max_regex_states=10**9))
    futures: list[Future[Any]] = [
        pool.compile(endless()),
        *(pool.compile(mw.Regex(f"b{{{i + 1}}}")) for i in range(5)),
    ]
    pool.close()
    assert all(future.done() for future in futures)
    assert futures[0].cancelled() and pool.statistics["in_progress"] == 0
    with pytest.raises(mw.MaskwrightError, match="closed"):
        pool.compile(mw.Regex("a"))
    pool.close()


def test_leaving_it_finishes_what_is_under_way(shared: mw.Vocabulary) -> None:
    with mw.Compiler(shared, workers=1) as pool:
        futures = [pool.compile(mw.Regex(f"c{{{i + 1}}}")) for i in range(5)]
    assert all(future.result(0) for future in futures)
    limits = mw.Limits(max_seconds=0, max_regex_states=10**9)
    with mw.Compiler(shared, workers=1, limits=limits) as pool:
        late = pool.compile(endless())
        pool.__exit__(KeyError, KeyError(), None)
    assert late.cancelled()


def test_a_vocabulary_goes_with_its_compiler() -> None:
    mine = vocabulary()
    others = set(threading.enumerate())
    asyncio.run(mw.acompile(mw.Regex("a"), mine))
    own = {
        thread for thread in threading.enumerate() if thread.name.startswith("maskwright-compile")
    } - others
    assert own
    del mine

    def gone() -> bool:
        # A thread may still be about to leave what it has done.
        gc.collect()
        return own.isdisjoint(threading.enumerate())

    until(gone)


def _child(pool: mw.Compiler, out: Any) -> None:
    out.send(toys.allowed(pool.compile(mw.Regex("new{2}")).result(WAIT).matcher()))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_has_threads_of_its_own(shared: mw.Vocabulary) -> None:
    with mw.Compiler(shared) as pool:
        pool.compile(mw.Regex("a")).result(WAIT)
        here, there = multiprocessing.Pipe()
        child = multiprocessing.get_context("fork").Process(target=_child, args=(pool, there))
        child.start()
        assert here.poll(WAIT)
        assert here.recv() == {ord("n")}
        child.join(WAIT)


# --- what is kept


def test_bytes_bound_what_is_kept(shared: mw.Vocabulary) -> None:
    sources = [
        mw.JsonSchema({"type": "object", "properties": {f"name{i}": {"type": "array"}}}) for i in range(100)
    ]
    with mw.Compiler(shared) as pool:
        for source in sources:
            pool.compile(source).result(WAIT)
        all_bytes = pool.statistics["cached_bytes"]
        assert all(pool.compile(source).done() for source in sources)
    kept = len(shared._compiled)
    assert kept >= 100 and all_bytes > 0
    small = vocabulary()
    with mw.Compiler(small, cache_bytes=int(all_bytes // 5)) as pool:
        for source in sources:
            pool.compile(source).result(WAIT)
        assert pool.statistics["cached_bytes"] <= all_bytes // 5
        assert 5 < len(small._compiled) < 50
        # What was used last is there.
        assert mw.compile(sources[99], small) is pool.compile(sources[99]).result(0)
        before = pool.statistics["compiled"]
        assert pool.compile(sources[0]).result(WAIT) and pool.statistics["compiled"] == before + 1
    none = vocabulary()
    with mw.Compiler(none, cache_bytes=0) as pool:
        for source in sources[:5]:
            pool.compile(source).result(WAIT)
        assert len(none._compiled) == 1


# --- shared by many processes


class Client:
    """As a client of Redis has it."""

    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}
        self.asked = 0

    def get(self, name: str) -> bytes | None:
        self.asked += 1
        return self.kept.get(name)

    def set(self, name: str, data: bytes) -> bool:
        self.kept[name] = data
        return True


@pytest.mark.parametrize("kind", ["dict", "client", "directory"])
def test_other_processes_compile_nothing(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    caches: dict[str, Any] = {
        "dict": {},
        "client": Client(),
        "directory": mw.DirectoryCache(tmp_path / "fleet"),
    }
    fleet = caches[kind]
    names = ("members", "different items", "blocks", "captures", "tag", "choice", "tokens", "gbnf")
    with mw.Compiler(vocabulary(), shared=fleet) as pool:
        here = {name: pool.compile(SOURCES[name]).result(WAIT) for name in names}
    monkeypatch.setattr(compiler, "_lowered", lambda *_: pytest.fail("it was compiled again"))
    other = vocabulary()
    with mw.Compiler(other, shared=fleet) as pool:
        there = {name: pool.compile(SOURCES[name]).result(WAIT) for name in names}
        assert pool.compile(SOURCES["tag"]).done()
    for name in names:
        assert there[name].vocabulary is other
        assert walk(there[name].matcher(), 3) == walk(here[name].matcher(), 3)
    if kind == "directory":
        assert len(list((tmp_path / "fleet").iterdir())) == len(names)


def test_a_shared_cache_that_is_damaged_or_gone(tmp_path: Path) -> None:
    source = SOURCES["members"]
    fleet: dict[str, Any] = {}
    with mw.Compiler(vocabulary(), shared=fleet) as pool:
        expected = walk(pool.compile(source).result(WAIT).matcher(), 1)
    ((name, good),) = fleet.items()
    for wrong in (b"", b"x", good[:-1], good[:50] + b"?" + good[51:], "text", 5, None):
        fleet[name] = wrong
        with mw.Compiler(vocabulary(), shared=fleet) as pool:
            assert walk(pool.compile(source).result(WAIT).matcher(), 1) == expected
        assert fleet == {name: good}

    class Gone:
        def get(self, name: str) -> bytes:
            raise ConnectionError("no server")

        def set(self, name: str, data: bytes) -> None:
            raise ConnectionError("no server")

    (tmp_path / "file").write_bytes(b"")
    broken: list[Any] = [Gone(), mw.DirectoryCache(tmp_path / "file"), mw.DirectoryCache("/proc/none")]
    for each in broken:
        with mw.Compiler(vocabulary(), shared=each) as pool:
            assert walk(pool.compile(source).result(WAIT).matcher(), 1) == expected


def test_names_of_a_directory(tmp_path: Path) -> None:
    fleet = mw.DirectoryCache(tmp_path)
    fleet.set("a-1", b"data")
    assert fleet.get("a-1") == b"data" and fleet.get("b") is None
    for wrong in ("", "../a", "a/b", ".a", "a\0", "a\n"):
        with pytest.raises(ValueError, match="no name"):
            fleet.set(wrong, b"")


# --- asyncio


def test_tasks_share_one_compile(shared: mw.Vocabulary) -> None:
    async def main() -> None:
        found = await asyncio.gather(*(mw.acompile(SOURCES["members"], shared) for _ in range(50)))
        assert len(set(map(id, found))) == 1
        with pytest.raises(mw.GrammarError):
            await mw.acompile(mw.Regex("("), shared)
        with pytest.raises(mw.VocabularyError):
            await mw.acompile(mw.Regex("a"), None)  # type: ignore[arg-type]

    asyncio.run(main())
    assert shared._compiler.statistics["compiled"] == 1


def test_cancelled_tasks(shared: mw.Vocabulary) -> None:
    limits = mw.Limits(max_seconds=0, max_regex_states=10**9)

    async def main() -> None:
        tasks = [asyncio.create_task(mw.acompile(endless(), shared, limits=limits)) for _ in range(3)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        for task in tasks:
            with pytest.raises(asyncio.CancelledError):
                await task
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(mw.acompile(endless(), shared, limits=limits), 0.2)
        # Both threads are free.
        await asyncio.gather(*(mw.acompile(mw.Regex(f"a{{{i + 1}}}"), shared) for i in range(4)))

    asyncio.run(asyncio.wait_for(main(), WAIT))
    until(lambda: shared._compiler.statistics["in_progress"] == 0)


@pytest.mark.slow
def test_the_loop_goes_on_meanwhile(shared: mw.Vocabulary) -> None:
    async def main() -> int:
        ticks = 0
        task = asyncio.create_task(
            mw.acompile(endless(), shared, limits=mw.Limits(max_seconds=2, max_regex_states=10**9))
        )
        while not task.done():
            await asyncio.sleep(0.001)
            ticks += 1
        assert isinstance(task.exception(), mw.LimitError)
        return ticks

    assert asyncio.run(main()) > 10


def test_a_callback_may_close_the_compiler() -> None:
    compiler = mw.Compiler(toys.byte_vocabulary(), workers=1)
    closed = threading.Event()

    def close(_: object) -> None:
        compiler.close()
        closed.set()

    # Slow enough for the callback to be added before it is compiled.
    future = compiler.compile(mw.Regex("(a|b)*a(a|b){10}"))
    future.add_done_callback(close)
    assert future.result(60).matcher().accept_bytes(b"a")
    assert closed.wait(60)
    with pytest.raises(mw.MaskwrightError, match="closed"):
        compiler.compile(mw.Regex("a"))
