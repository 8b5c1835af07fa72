"""Sets of texts end at ``Limits.max_set_bytes``: what is known is dropped, and found out again; nothing else changes."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from diffusion_oracle import allowed_by_slot, fillings
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import Oracle
from toys import PIECES, grammars

import maskwright as mw
from maskwright._core import StateSets
from maskwright.compiling.compiler import compile_grammar
from maskwright.diffusion import Canvas
from maskwright.diffusion.between import complete_between
from maskwright.diffusion.slots import OPEN
from maskwright.errors import LimitError, UnsatisfiableError

END = 256
LOW = 8 << 20
SLACK = 1 << 20
"""What one step adds before its size is looked at, and allocations that double."""
TEXT = json.dumps(
    {"a": [{"b": 1, "c": "ab"}, {"d": [True, {"e": "abab"}]}], "f": {"g": {"h": "ab"}, "i": 12}}
)


def byte_vocabulary() -> mw.Vocabulary:
    """One of its own for each test: sets of lexer states belong to it."""
    pieces = [b'{"', b'": ', b'", "', b'"}', b"}}", b"]}", b", ", b"ab", b"12", b'":']
    return mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None, *pieces], eos_ids=[END])


def free_objects(vocabulary: mw.Vocabulary, most: int) -> mw.CompiledGrammar:
    return mw.compile_json_schema({"type": "object"}, vocabulary, limits=mw.Limits(max_set_bytes=most))


def masked_canvas(grammar: mw.CompiledGrammar, share: float) -> tuple[Canvas, list[int]]:
    rng = random.Random(3)
    slots = [None if rng.random() < share else byte for byte in TEXT.encode()]
    return Canvas(grammar, [*slots, END]), [i for i, slot in enumerate(slots) if slot is None]


def accepts(grammar: mw.CompiledGrammar, tokens: list[int]) -> bool:
    matcher = grammar.matcher()
    text = [token for token in tokens if token != END]
    return matcher.accept_tokens(text) == len(text) and matcher.is_accepting


def total(sets: StateSets) -> int:
    return sets.held_bytes + sets.shared_bytes


def proposals(positions: list[int]) -> Iterator[tuple[int, int]]:
    """A wrong token and then the right one for each position, in any order."""
    rng = random.Random(5)
    for position in rng.sample(positions, len(positions)):
        yield position, rng.choice(b'{}[]":,ab12')
        yield position, TEXT.encode()[position]


class TestLimit:
    def test_is_kept_and_results_are_those_without_it(self) -> None:
        """The same canvas with room and in a quarter of what that takes."""
        grammars = [free_objects(byte_vocabulary(), most) for most in (2**30, LOW)]
        (ample, positions), (canvas, _) = (masked_canvas(grammar, 0.7) for grammar in grammars)
        moved = 0
        for position, token in proposals(positions):
            sets = canvas.sets
            undecided = ample.undecided + canvas.undecided
            taken = [each.try_commit(position, token) for each in (ample, canvas)]
            assert taken[0] == taken[1] or ample.undecided + canvas.undecided > undecided
            if token != TEXT.encode()[position] or taken[0] != taken[1]:
                for each in (ample, canvas):
                    each.uncommit([position])
            moved += canvas.sets is not sets
            assert total(canvas.sets) <= LOW + SLACK
            assert accepts(grammars[1], canvas.witness())
        assert moved > 0 and total(ample.sets) > 2 * LOW
        assert canvas.undecided <= ample.undecided + len(positions) // 20

    def test_a_limit_that_is_too_low_is_an_error_before_anything_is_done(self) -> None:
        with pytest.raises(LimitError, match="max_set_bytes") as info:
            masked_canvas(free_objects(byte_vocabulary(), 2**16), 0.7)
        assert info.value.limit == "max_set_bytes" and info.value.given > info.value.allowed == 2**16

    def test_no_room_at_all(self) -> None:
        sets = StateSets(free_objects(byte_vocabulary(), 1)._core)
        assert sets.is_full and not sets.is_accepting(sets.start)
        with pytest.raises(LimitError, match="max_set_bytes is 1,"):
            sets.any(sets.start)

    def test_what_is_known_can_be_asked_when_full(self) -> None:
        source = 'root ::= "(" root ")" root | "[" root "]" root | "a"?'
        grammar = mw.compile_gbnf(source, byte_vocabulary(), limits=mw.Limits(max_set_bytes=200_000))
        sets = StateSets(grammar._core)
        states = [sets.start]
        while not sets.is_full and len(states) < 10_000:
            with contextlib.suppress(LimitError):
                states.append(sets.any(states[-1]))
        assert 3 < len(states) < 10_000
        for before, after in itertools.pairwise(states):
            assert sets.any(before) == after
        for _ in range(2):
            with pytest.raises(LimitError, match="max_set_bytes is 200000"):
                sets.any(states[-1])


def test_sets_that_are_shared_are_dropped_too() -> None:
    """When one canvas fills the memory for sets of lexer states, all are dropped: both go on."""
    vocabulary = byte_vocabulary()
    limits = mw.Limits(max_set_bytes=2_300_000)
    email, uri = ({"type": "string", "format": name} for name in ("email", "uri"))
    expected = Canvas(mw.compile_json_schema(email, byte_vocabulary(), escapes="any"), [None] * 12)
    waiting = Canvas(mw.compile_json_schema(email, vocabulary, escapes="any", limits=limits), [None] * 12)
    sets = waiting.sets
    asked = (0, 4, 8)
    masks = [waiting.allowed(position) for position in asked]
    canvas = Canvas(mw.compile_json_schema(uri, vocabulary, escapes="any", limits=limits), [None] * 30)
    for position in range(0, 30, 3):
        canvas.allowed(position)
        assert total(canvas.sets) <= limits.max_set_bytes + SLACK
    assert accepts(canvas.grammar, canvas.witness())
    assert sets.is_full and waiting.sets is sets
    with pytest.raises(LimitError, match="take new ones"):
        sets.any(sets.start)
    for position, mask in zip(asked, masks, strict=True):
        assert (mask == expected.allowed(position)).all()
        assert (waiting.allowed(position + 1) == expected.allowed(position + 1)).all()
    assert waiting.sets is not sets


@pytest.mark.slow
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(grammars(), st.integers(1_000, 60_000), st.randoms(use_true_random=False), st.data())
def test_any_limit_gives_the_same_answers_or_none(
    source: Any, most: int, rng: random.Random, data: Any
) -> None:
    """Against brute force: masks are exact or an error, after which nothing has changed; what is taken fits."""
    tokens = rng.sample(PIECES, min(6, len(PIECES)))
    vocabulary = mw.Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])
    oracle = Oracle(source)
    try:
        grammar = compile_grammar(source, vocabulary, limits=mw.Limits(max_set_bytes=most))
    except UnsatisfiableError:
        return
    found = list(fillings(oracle, vocabulary, [OPEN] * 3, [False] * 3, (len(tokens),)))
    try:
        canvas = Canvas(grammar, [None] * 3)
    except UnsatisfiableError:
        assert not found
        return
    except LimitError as error:
        assert error.limit == "max_set_bytes"
        return
    assert tuple(canvas.witness()) in found
    for _ in range(6):
        position, token = rng.randrange(3), rng.randrange(len(tokens) + 1)
        before = canvas.tokens, canvas.witness()
        try:
            mask = canvas.allowed(position)
        except LimitError as error:
            assert error.limit == "max_set_bytes" and (canvas.tokens, canvas.witness()) == before
        else:
            others = [
                f
                for f in found
                if all(t in (OPEN, f[i]) for i, t in enumerate(canvas.tokens) if i != position)
            ]
            assert set(mask.nonzero()[0].tolist()) == allowed_by_slot(others, 3)[position]
        undecided = canvas.undecided
        held = canvas.tokens[position]
        fitting = [f for f in found if all(t in (OPEN, f[i]) for i, t in enumerate(canvas.tokens))]
        took = canvas.try_commit(position, token)
        possible = held == OPEN and any(f[position] == token for f in fitting)
        assert took == possible or (possible and canvas.undecided > undecided)
        assert tuple(canvas.witness()) in found
        if rng.random() < 0.3:
            canvas.uncommit([position])


def test_a_middle_goes_on_in_new_sets() -> None:
    prefix, suffix, text = '{"a": [', '}], "z": 1}', b'{"b": "ab"}, {"cd": [1, [2, {"e": 12'
    middles = []
    for most in (2**30, 1_500_000):
        middle = complete_between(free_objects(byte_vocabulary(), most), prefix, suffix, max_tokens=60)
        middles.append(middle)
    sets = middles[1].sets
    for byte in text:
        masks = [middle.allowed() for middle in middles]
        assert (masks[0] == masks[1]).all()
        assert all(middle.accept_token(byte) for middle in middles)
        assert middles[0].can_end == middles[1].can_end
        assert total(middles[1].sets) <= 1_500_000 + SLACK
    assert middles[1].sets is not sets


RUN = """
    import random, resource, sys
    sys.path[:] = {path!r}
    import test_diffusion_memory as t
    def resident():
        return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
    # The engine has so much more address space, and the rest of this script has as much as it wants.
    room, hard = {room}, resource.getrlimit(resource.RLIMIT_AS)[1]
    def bound(most):
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    grammar = t.free_objects(t.byte_vocabulary(), {most})
    before = resident()
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    most = hard if room is None else size + room
    bound(most)
    canvas, positions = t.masked_canvas(grammar, 0.9)
    bound(hard)
    peak, moved, sets = 0, 0, canvas.sets
    for proposal in t.proposals(positions):
        bound(most)
        canvas.try_commit(*proposal)
        bound(hard)
        peak = max(peak, resident() - before)
        moved += canvas.sets is not sets
        sets = canvas.sets
    assert t.accepts(grammar, canvas.witness())
    print(peak, moved)
"""


def run(most: int, room: int | None = None) -> tuple[int, int]:
    """With at most so many bytes of sets, and of address space; the largest growth, and how often sets were made anew."""
    code = textwrap.dedent(RUN.format(path=sys.path, most=most, room=room))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and not done.stderr, done.stderr
    peak, moved = done.stdout.split()
    return int(peak), int(moved)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits the address space")
class TestProcess:
    def test_memory_is_what_was_counted(self) -> None:
        """With two sets at a time, the old and the new ones, and what the allocator keeps."""
        most = 16 << 20
        peak, moved = run(most)
        assert moved > 0 and peak < 2.5 * most

    @pytest.mark.slow
    def test_running_out_of_memory_is_an_answer(self) -> None:
        """An address space that ends before the limit does."""
        _, moved = run(2**40, room=34 << 20)
        assert moved > 0
