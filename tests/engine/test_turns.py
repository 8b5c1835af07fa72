"""Operations of different grammars take turns: a long search for a completion lets others in, and finds what it would find alone."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from schema_walks import SCHEMAS, vocabulary, walk

import maskwright as mw
from maskwright._core import Stop

ENDLESS = [
    mw.JsonSchema({"type": "array", "minItems": 100_000, "uniqueItems": True, "items": {"type": "string", "pattern": "^[ab]{20}$"}}),
    mw.JsonSchema({"type": "array", "minItems": 1000, "items": {"type": "string", "pattern": "^((a{50}){50}){3}$"}}),
]  # fmt: skip
"""Their shortest completions take far longer to find than these tests."""

SLOW_MASKS = {
    "closure": mw.GBNF("root ::= r0\n" + "".join(f'r{i} ::= r{(i + 1) % 2500} r{(i + 2) % 2500} | "a"?\n' for i in range(2500))),
    "behind lexemes": mw.Lark(
        "start: (" + " | ".join(f"T{i}" for i in range(2000)) + ")*\n" + "".join(f"T{i}: /[a-f]+{i % 10}?/\n" for i in range(2000)),
        lexer="dynamic",
    ),
}  # fmt: skip
"""So do their first masks: the closure over calls and returns, and what may follow a lexeme."""

LONG: dict[str, Any] = {
    "passes": mw.Regex("(a{300}){150}"),
    "different": mw.JsonSchema(
        {"type": "array", "minItems": 1000, "uniqueItems": True, "items": {"type": "string", "pattern": "^[ab]{20}$"}}
    ),
    "many": mw.JsonSchema({"type": "array", "minItems": 40, "items": {"type": "string", "pattern": "^(a{50}){50}$"}}),
    "tracked": mw.JsonSchema(
        {"type": "array", "items": {"type": "string", "pattern": "^[ab]{9}$"}, "minItems": 4000, "not": {"uniqueItems": True}}
    ),
    "lexer": mw.Lark("start: x~300\nx: A B | B A\nA: /a{30}/\nB: /(b{20}){20}/\n%ignore / /\n"),
}  # fmt: skip
"""Sources whose shortest completions take a tenth of a second or more."""

LEXERS = {
    "overlapping": mw.Lark("start: (A | B | C)+\nA: /[a-z]*b[a-z]{3}/\nB: /[a-m]*c[a-z]{4}/\nC: /[a-z ]+x/\n%ignore /[ \\n]+/\n"),
    "words": mw.Lark(
        "start: (W | N | S)+\nW: /[a-z]+[0-9]?/\nN: /[0-9]+(\\.[0-9]+)?/\nS: /\"([^\"\\\\]|\\\\.)*\"/\n%ignore /[ \\t\\n]+/\n"
    ),
    "counted": mw.Lark("start: (A B)+\nA: /[a-z]{2,40}/\nB: /[a-z]*[0-9][a-z]{6}/\n%ignore / /\n"),
}  # fmt: skip


@cache
def alone() -> dict[str, bytes]:
    own = vocabulary(size=2000)
    return {name: completion(mw.compile(source, own)) for name, source in LONG.items()}


@cache
def walks_alone(name: str) -> list[list[Any]]:
    compiled = mw.compile_json_schema(SCHEMAS[name], vocabulary(size=2000))
    return [list(walk(compiled, seed)) for seed in range(3)]


def walked(compiled: mw.CompiledGrammar, seed: int) -> list[Any]:
    return list(walk(compiled, seed))


def completion(compiled: mw.CompiledGrammar) -> bytes:
    return compiled.matcher().shortest_completion_bytes()


def mask(compiled: mw.CompiledGrammar) -> bytes:
    return bytes(compiled.matcher().next_token_bitmask())


class Searching:
    """A thread that searches for what it does not find, until it is stopped."""

    def __init__(
        self,
        shared: mw.Vocabulary,
        source: Any = ENDLESS[0],
        search: Callable[[mw.CompiledGrammar], bytes] = completion,
    ) -> None:
        self.compiled = mw.compile(source, shared, limits=mw.Limits(max_seconds=600))
        self._search = search
        self._stop, self._begun = Stop(), threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self._begun.set()
        with self._stop, contextlib.suppress(KeyboardInterrupt):
            self._search(self.compiled)

    def __enter__(self) -> Searching:
        self._thread.start()
        self._begun.wait()
        return self

    def stop(self) -> None:
        self._stop.set()

    def __exit__(self, *_: object) -> None:
        assert self._thread.is_alive() or self._stop.is_set
        self.stop()
        self._thread.join()


@pytest.mark.parametrize("source", ENDLESS, ids=["different", "long"])
def test_others_do_not_wait_for_the_end_of_a_search(source: mw.JsonSchema) -> None:
    shared = vocabulary(size=2000)
    for name in SCHEMAS:
        walks_alone(name)
    with Searching(shared, source):
        for name in SCHEMAS:
            compiled = mw.compile_json_schema(SCHEMAS[name], shared)
            assert [list(walk(compiled, seed)) for seed in range(3)] == walks_alone(name)


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize("name", SLOW_MASKS)
def test_others_do_not_wait_for_the_end_of_a_mask(name: str) -> None:
    shared = vocabulary(size=2000)
    schema = next(iter(SCHEMAS))
    with Searching(shared, SLOW_MASKS[name], mask):
        compiled = mw.compile_json_schema(SCHEMAS[schema], shared)
        assert [list(walk(compiled, seed)) for seed in range(3)] == walks_alone(schema)


def test_two_searches_and_others() -> None:
    shared = vocabulary(size=2000)
    name = next(iter(SCHEMAS))
    compiled = mw.compile_json_schema(SCHEMAS[name], shared)
    with Searching(shared), Searching(shared, ENDLESS[1]):
        assert [list(walk(compiled, seed)) for seed in range(3)] == walks_alone(name)


def test_the_same_grammar_waits() -> None:
    shared = vocabulary(size=2000)
    with Searching(shared) as searching, ThreadPoolExecutor(1) as pool:
        known = pool.submit(lambda: bytes(searching.compiled.matcher().next_token_bitmask()))
        searching.stop()
        assert known.result(timeout=60)


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.sanitized
@pytest.mark.parametrize("budget", [None, 0])
def test_searches_find_what_they_find_alone(budget: int | None) -> None:
    shared = vocabulary(size=2000)
    if budget is not None:
        shared.mask_budget = budget
    grammars = {name: mw.compile(source, shared) for name, source in LONG.items()}
    schemas = {name: mw.compile_json_schema(SCHEMAS[name], shared) for name in SCHEMAS}
    jobs: list[tuple[Callable[[], Any], Any]] = [
        *((lambda name=name: completion(grammars[name]), alone()[name]) for name in LONG),
        *((lambda name=name: [list(walk(schemas[name], seed)) for seed in range(3)], walks_alone(name)) for name in SCHEMAS),
    ]  # fmt: skip
    with ThreadPoolExecutor(len(jobs)) as pool:
        found = [(pool.submit(job), expected) for job, expected in jobs]
        for future, expected in found:
            assert future.result() == expected


@pytest.mark.sanitized
@pytest.mark.parametrize("name", LONG)
def test_threads_with_one_grammar(name: str) -> None:
    shared = vocabulary(size=2000)
    compiled = mw.compile(LONG[name], shared)
    copies = [compiled, compiled.with_limits(mw.Limits(max_seconds=60)), mw.compile(LONG[name], shared)]
    expected = bytes(compiled.matcher().next_token_bitmask())
    with ThreadPoolExecutor(9) as pool:
        searches = [pool.submit(completion, each) for each in copies * 2]
        masks = [pool.submit(lambda each=each: bytes(each.matcher().next_token_bitmask())) for each in copies]
        assert {search.result() for search in searches} == {alone()[name]}
        assert [mask.result() for mask in masks] == [expected] * 3


@cache
def lexed_alone(name: str) -> list[list[Any]]:
    compiled = mw.compile(LEXERS[name], vocabulary(size=2000))
    return [list(walk(compiled, seed)) for seed in range(4)]


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.sanitized
@pytest.mark.parametrize("budget", [None, 0, 200_000])
def test_masks_of_lexers(budget: int | None) -> None:
    """What they borrow from stays, whatever others do: masks of the same lexer, of other grammars, and evictions."""
    shared = vocabulary(size=2000)
    if budget is not None:
        shared.mask_budget = budget
    for _ in range(2):
        grammars = [(name, mw.compile(LEXERS[name], shared)) for name in LEXERS]
        grammars += [(name, compiled.with_limits(mw.Limits(max_seconds=60))) for name, compiled in grammars]
        schemas = {name: mw.compile_json_schema(SCHEMAS[name], shared) for name in SCHEMAS}
        with ThreadPoolExecutor(24) as pool:
            lexed = [
                (name, seed, pool.submit(walked, each, seed)) for seed in range(4) for name, each in grammars
            ]
            others = [
                (name, seed, pool.submit(walked, each, seed))
                for seed in range(3)
                for name, each in schemas.items()
            ]
            for name, seed, found in lexed:
                assert found.result() == lexed_alone(name)[seed]
            for name, seed, found in others:
                assert found.result() == walks_alone(name)[seed]


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_a_search_that_let_others_in() -> None:
    shared = vocabulary(size=2000)
    schema = mw.compile_json_schema(SCHEMAS[next(iter(SCHEMAS))], shared)
    expected = walks_alone(next(iter(SCHEMAS)))[0]
    with Searching(shared) as searching, ThreadPoolExecutor(2) as pool:
        others = [
            pool.submit(lambda: [list(walk(schema, 0)) == expected for _ in range(20)]) for _ in range(2)
        ]
        threading.Timer(0.5, searching.stop).start()
        child = os.fork()
        if child == 0:
            good = list(walk(schema, 0)) == expected and searching.compiled.matcher().accept_bytes(b"[")
            os._exit(0 if good else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert all(all(other.result()) for other in others)
