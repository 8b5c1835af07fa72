"""Compiled grammars, vocabularies and matchers that go to another process: equal there, and damage is found."""

from __future__ import annotations

import copy
import gc
import json
import os
import pickle
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pytest
import toys
from travel_sources import END, PIECES, SOURCES, vocabulary, walk

import maskwright as mw
from maskwright.base.sealed import seal, unseal
from maskwright.compiling import compiled

SHARED = vocabulary()
FROM_BYTES = mw.CompiledGrammar.from_bytes
REFUSED = (mw.GrammarError, mw.LimitError)


def grammar(name: str) -> mw.CompiledGrammar:
    return mw.compile(SOURCES[name], SHARED)


# --- bytes


@pytest.mark.parametrize("name", SOURCES)
def test_masks_and_captures_are_the_same(name: str) -> None:
    here = grammar(name)
    data = here.to_bytes()
    there = FROM_BYTES(data, SHARED)
    assert there is not here and FROM_BYTES(data, SHARED) is there
    assert there.to_bytes() == data
    for seed in range(6):
        assert walk(there.matcher(), seed) == walk(here.matcher(), seed)


@pytest.mark.parametrize("name", SOURCES)
def test_a_grammar_is_bound_to_any_vocabulary(name: str) -> None:
    other = mw.Vocabulary.from_bytes([b"xyz", b"00", *PIECES[2:], b"more", None], eos_ids=[END + 1])
    there = FROM_BYTES(grammar(name).to_bytes(), other)
    here = mw.compile(SOURCES[name], other)
    assert there.vocabulary is other
    for seed in range(3):
        assert walk(there.matcher(), seed) == walk(here.matcher(), seed)


@pytest.mark.slow
@pytest.mark.sanitized
def test_bytes_are_the_same_in_every_process() -> None:
    code = (
        "import hashlib, maskwright as mw; from travel_sources import SOURCES, vocabulary; v = vocabulary()\n"
        "print({name: hashlib.sha256(mw.compile(s, v).to_bytes()).hexdigest() for name, s in SOURCES.items()})"
    )
    run = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
        ).stdout
        for seed in ("1", "2")
    ]
    assert run[0] == run[1] and len(run[0]) > 1000


def test_limits_travel() -> None:
    limits = mw.Limits(max_search=1234, max_seconds=2.5)
    there = FROM_BYTES(mw.compile(SOURCES["regex"], SHARED, limits=limits).to_bytes(), vocabulary())
    assert there._core.limits == limits
    few = mw.Limits(max_parser_states=60)
    deep = mw.compile(mw.JsonSchema({"type": "array"}), SHARED, limits=few)
    for each in (deep, FROM_BYTES(deep.to_bytes(), SHARED)):
        matcher = each.matcher()
        with pytest.raises(mw.LimitError, match="max_parser_states is 60"):
            matcher.accept_bytes(b"[" * 500)


def test_a_vocabulary_without_the_tokens_of_a_grammar() -> None:
    named = mw.Vocabulary([*PIECES, b""], END, [END], special_tokens={"<end>": END})
    data = mw.compile(mw.Lark('start: "a" <end>'), named).to_bytes()
    with pytest.raises(mw.GrammarError, match="no token '<end>'"):
        FROM_BYTES(data, SHARED)
    with pytest.raises(mw.GrammarError, match="token ids are 0 to 1"):
        FROM_BYTES(grammar("tokens").to_bytes(), mw.Vocabulary.from_bytes([b"a", None], eos_ids=[1]))


def test_wrong_arguments() -> None:
    for data in ("text", None, 5, [1]):
        with pytest.raises(mw.GrammarError, match="read from bytes"):
            FROM_BYTES(data, SHARED)  # type: ignore[arg-type]
    with pytest.raises(mw.VocabularyError):
        FROM_BYTES(grammar("choice").to_bytes(), None)  # type: ignore[arg-type]
    data = grammar("choice").to_bytes()
    for kind in (bytearray, memoryview):
        assert FROM_BYTES(kind(data), SHARED).matcher().accept_bytes(b"abc")  # type: ignore[arg-type]


# --- damage


def test_every_damaged_byte_and_every_cut_is_found() -> None:
    good = grammar("choice").to_bytes()
    assert len(good) < 2000
    for at in range(len(good)):
        damaged = bytearray(good)
        damaged[at] ^= 1 << at % 8
        with pytest.raises(mw.GrammarError):
            FROM_BYTES(bytes(damaged), SHARED)
        with pytest.raises(mw.GrammarError):
            FROM_BYTES(good[:at], SHARED)
    with pytest.raises(mw.GrammarError, match="damaged or cut off"):
        FROM_BYTES(good + b"\0", SHARED)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"maskwright grammar 999 little\n", "layout 999, and this version of maskwright reads layout"),
        (f"maskwright grammar {compiled._LAYOUT} middle\n".encode(), "another byte order"),
        (b"maskwright cache 1 little\n", "no compiled grammar"),
        (b"maskwright grammar x\n", "no compiled grammar"),
        (b"", "no compiled grammar"),
    ],
)
def test_other_versions_and_machines(line: bytes, message: str) -> None:
    parts = unseal(compiled._LINE, "", grammar("choice").to_bytes())
    assert parts is not None
    with pytest.raises(mw.GrammarError, match=message):
        FROM_BYTES(seal(line, "", parts), SHARED)


@pytest.mark.parametrize("name", ["choice", "members", "different items", "captures", "blocks", "tokens"])
def test_forged_content_is_an_error_or_a_grammar(name: str) -> None:
    # With a digest that fits: what no damage does.
    good = unseal(compiled._LINE, "", grammar(name).to_bytes())
    assert good is not None
    for at in range(len(good)):
        for wrong in (
            b"",
            b"null",
            b"[]",
            b"[[]]",
            b"{}",
            b"\xff",
            good[at][:-3],
            b"[" * 100_000,
            good[at] * 2,
        ):
            parts = [*good[:at], wrong, *good[at + 1 :]]
            with pytest.raises(REFUSED):
                FROM_BYTES(seal(compiled._LINE, "", parts), SHARED)
        with pytest.raises(REFUSED):
            FROM_BYTES(seal(compiled._LINE, "", good[:at]), SHARED)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["members", "different items", "captures", "blocks", "choice", "regex"])
def test_numbers_that_lead_out_of_arrays_are_refused(name: str) -> None:
    good = unseal(compiled._LINE, "", grammar(name).to_bytes())
    assert good is not None
    refused = 0
    for part in range(1, len(good)):
        line, newline, rest = good[part].partition(b"\n")
        for number, _ in enumerate(_numbers(json.loads(line))):
            for wrong in (2**31 - 1, -7, 2**70, 1.5, None):
                document = _replaced(json.loads(line), number, wrong)
                parts = [*good[:part], json.dumps(document).encode() + newline + rest, *good[part + 1 :]]
                try:
                    FROM_BYTES(seal(compiled._LINE, "", parts), SHARED)
                except REFUSED:
                    refused += 1
            if number > 60:
                break
    assert refused > 20


def _numbers(document: Any) -> list[int]:
    if isinstance(document, list):
        return [number for each in document for number in _numbers(each)]
    return [document] if type(document) is int else []


def _replaced(document: Any, number: int, wrong: Any) -> Any:
    at = -1

    def copied(each: Any) -> Any:
        nonlocal at
        if isinstance(each, list):
            return [copied(item) for item in each]
        if type(each) is int:
            at += 1
            return wrong if at == number else each
        return each

    return copied(document)


def test_limits_that_are_none() -> None:
    good = unseal(compiled._LINE, "", grammar("choice").to_bytes())
    assert good is not None
    changed = [
        {**json.loads(good[0]), name: wrong} for name in ("max_seconds", "max_rules") for wrong in (-1, "no")
    ]
    for wrong in (b"{}", b"[]", b"x", *(json.dumps(each).encode() for each in changed)):
        with pytest.raises(mw.GrammarError):
            FROM_BYTES(seal(compiled._LINE, "", [wrong, *good[1:]]), SHARED)


# --- pickles


def test_what_is_pickled_together_shares_one_vocabulary() -> None:
    here = grammar("members")
    matcher = here.matcher()
    assert matcher.accept_bytes(b'{"ab": 12')
    sent = pickle.dumps((here, matcher, SHARED, [matcher.fork()]))
    again = pickle.dumps(matcher)
    there, first, shared, (second,) = pickle.loads(sent)
    third = pickle.loads(again)
    assert shared is SHARED and there.vocabulary is SHARED
    assert first.compiled is second.compiled is third.compiled is there._core
    assert toys.allowed(first) == toys.allowed(second) == toys.allowed(third) == toys.allowed(matcher)


def test_a_vocabulary_that_is_not_there_is_made_from_its_tokens() -> None:
    for made in (
        vocabulary(start_tokens={3: b"x", 4: b""}, start_stays=True),
        mw.Vocabulary([*PIECES, b"", b""], END, [END + 1], special_tokens={"<a>": END + 1}),
    ):
        made.mask_budget, made.state_budget = 1 << 20, 1 << 21
        content = made.tokens, made.eos_ids, made.special_ids, dict(made.special_tokens), made.digest
        start = dict(made.start_tokens), made.start_stays
        sent = pickle.dumps(made)
        assert pickle.loads(sent) is made
        del made
        gc.collect()
        there = pickle.loads(sent)
        assert (
            there.tokens,
            there.eos_ids,
            there.special_ids,
            dict(there.special_tokens),
            there.digest,
        ) == content
        assert (dict(there.start_tokens), there.start_stays) == start
        assert (there.mask_budget, there.state_budget) == (1 << 20, 1 << 21)


def test_vocabularies_with_other_names_are_others() -> None:
    first, second = (
        mw.Vocabulary([*PIECES, b"", b""], END, [END + 1], special_tokens={name: END + 1})
        for name in ("<a>", "<b>")
    )
    assert first.digest == second.digest
    assert pickle.loads(pickle.dumps(second)) is second and pickle.loads(pickle.dumps(first)) is first


def test_a_damaged_vocabulary() -> None:
    made = mw.Vocabulary.from_bytes([b"a", b"bcd", None], eos_ids=[2])
    receive, (identity, lengths, _, content, budgets) = made.__reduce__()
    del made
    gc.collect()
    with pytest.raises(mw.VocabularyError, match="damaged"):
        receive(identity, lengths, b"aXcd", content, budgets)


def test_copies() -> None:
    here = grammar("captures")
    assert copy.copy(here) is copy.deepcopy(here) is here
    matcher = here.matcher()
    assert matcher.accept_bytes(b"ab=1")
    for other in (copy.copy(matcher), copy.deepcopy(matcher)):
        assert other.compiled is matcher.compiled
        assert other.captures() == matcher.captures()
        assert other.accept_bytes(b",x") and matcher.accepted_tokens == [-1]


@pytest.mark.parametrize("name", SOURCES)
def test_matchers_go_on_where_they_were(name: str) -> None:
    for seed in range(4):
        matcher = grammar(name).matcher()
        walk(matcher, seed, steps=3 + 5 * seed)
        there = pickle.loads(pickle.dumps(matcher))
        assert there.accepted_tokens == matcher.accepted_tokens
        assert there.is_terminated == matcher.is_terminated
        assert there.captures() == matcher.captures()
        assert walk(there, seed + 100) == walk(matcher, seed + 100)
        there.rollback(len(there.accepted_tokens))
        assert walk(there, seed) == walk(grammar(name).matcher(), seed)


def test_bytes_and_windows_of_matchers() -> None:
    matcher = grammar("anything").matcher(max_rollback=4)
    assert matcher.accept_bytes(b'["x') and matcher.accept_tokens([ord("y"), ord('"'), ord(",")]) == 3
    matcher.rollback(2)
    there = pickle.loads(pickle.dumps(matcher))
    assert there.accepted_tokens == matcher.accepted_tokens == [-1, ord("y")]
    for each in (there, matcher):
        with pytest.raises(mw.MaskwrightError, match="max_rollback is 4"):
            each.rollback(3)
        each.rollback(2)
        assert not each.accepted_tokens
    long = grammar("anything").matcher(max_rollback=4)
    assert long.accept_bytes(b'"') and all(long.accept_token(ord("x")) for _ in range(1000))
    with pytest.raises(mw.MaskwrightError, match="let go of its first"):
        pickle.dumps(long)


def test_a_matcher_outlives_its_grammar() -> None:
    matcher = mw.compile(SOURCES["regex"], vocabulary()).matcher()
    assert matcher.accept_bytes(b"xy")
    gc.collect()
    assert walk(pickle.loads(pickle.dumps(matcher)), 1) == walk(matcher, 1)


def test_a_history_that_does_not_fit() -> None:
    receive, (there, _, window, reached) = compiled._sent(grammar("gbnf").matcher())
    for read in ([ord("x")], [b"()x"], [ord("a"), END, END, ord("a")]):
        with pytest.raises(mw.MaskwrightError, match="does not fit"):
            receive(there, read, window, reached)
    with pytest.raises(mw.VocabularyError):
        receive(there, [10**6], window, reached)


def test_states_of_a_renewed_grammar_travel() -> None:
    small = vocabulary(start_tokens={5: b"q"})
    small.state_budget = 0
    here = mw.compile(SOURCES["anything"], small)
    matcher = here.matcher()
    for _ in range(40):
        assert matcher.accept_bytes(b'[{"a": 1, "b": ')
    assert here._core.generation > 1
    assert walk(pickle.loads(pickle.dumps(matcher)), 2) == walk(matcher, 2)


def _walks(there: mw.CompiledGrammar, matcher: Any) -> tuple[list[Any], list[Any], bool]:
    shared = pickle.loads(pickle.dumps(there.vocabulary)) is there.vocabulary is matcher.compiled.vocabulary
    return walk(there.matcher(), 5), walk(matcher, 6), shared


@pytest.mark.slow
@pytest.mark.sanitized
def test_other_processes() -> None:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        found = {}
        for name in ("members", "different items", "blocks", "captures", "tag"):
            matcher = grammar(name).matcher()
            walk(matcher, 1, steps=4)
            found[name] = pool.submit(_walks, grammar(name), matcher), matcher
        for name, (future, matcher) in found.items():
            there, on, shared = future.result(timeout=300)
            assert shared
            assert there == walk(grammar(name).matcher(), 5)
            assert on == walk(matcher, 6)
