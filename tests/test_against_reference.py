"""The engine against the oracle, on random and on nasty grammars and vocabularies."""

from __future__ import annotations

import json
import random

import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Column, Oracle

from maskwright._core import Matcher
from maskwright.errors import UnsatisfiableError
from maskwright.grammar import (
    Grammar,
)
from maskwright.vocabulary import Vocabulary

BYTES = toys.byte_vocabulary()
PIECES = toys.piece_vocabulary(1)
MANY_PIECES = toys.piece_vocabulary(2, size=1500)
STEPS = 10


# --- what must hold of a matcher anywhere


def check_state(matcher: Matcher, oracle: Oracle, text: bytes, vocabulary: Vocabulary) -> set[int]:
    """Mask, acceptance, forced bytes and shortest completion; returns the mask."""
    column = oracle.read(text)
    assert column is not None
    mask = toys.allowed(matcher)
    expected = toys.oracle_allowed(oracle, text, vocabulary)
    assert mask == expected, (
        f"after {text!r}: wrongly allowed {names(vocabulary, mask - expected)}, "
        f"wrongly refused {names(vocabulary, expected - mask)}"
    )
    assert matcher.is_accepting == column.complete
    check_forced(oracle, column, matcher.forced_bytes())
    check_shortest(matcher, oracle, column, vocabulary)
    return mask


def names(vocabulary: Vocabulary, ids: set[int]) -> list[bytes | int]:
    return [vocabulary.tokens[i] or i for i in sorted(ids)]


def check_forced(oracle: Oracle, column: Column, forced: bytes) -> None:
    for byte in forced:
        assert not column.complete
        after = oracle.step(column, byte)
        assert after is not None, f"{forced!r} is not viable"
        viable = set(oracle.viable_bytes(column)) - {byte}
        assert viable <= {0x5C}, f"{bytes([byte])!r} is not forced: {bytes(viable)!r} in {forced!r}"
        for escape in escapes(oracle, column) if viable else ():
            assert json.loads(b'"%s"' % escape).encode()[0] == byte, f"{escape!r} may stand for {forced!r}"
        column = after
    assert column.complete or len(oracle.viable_bytes(column)) > 1, f"more is forced behind {forced!r}"


def escapes(oracle: Oracle, column: Column) -> list[bytes]:
    """The whole backslash sequences that may come next."""
    found, work = [], [b"\\"]
    while work:
        sequence = work.pop()
        behind = oracle.read(sequence, column)
        try:
            whole = behind is not None and json.loads(b'"%s"' % sequence).isprintable is not None
            whole = whole and not "\ud800" <= json.loads(b'"%s"' % sequence) <= "\udbff"
        except ValueError:
            whole = False
        if whole:
            found.append(sequence)
        elif behind is not None:
            work += [sequence + bytes([byte]) for byte in oracle.viable_bytes(behind)]
    return found


def check_shortest(matcher: Matcher, oracle: Oracle, column: Column, vocabulary: Vocabulary) -> None:
    shortest = matcher.shortest_completion_bytes()
    end = oracle.read(shortest, column)
    assert end is not None and end.complete, f"{shortest!r} does not complete the text"
    assert len(shortest) == oracle.shortest(column), f"{shortest!r} is not the shortest completion"
    ids = matcher.shortest_completion()
    assert vocabulary.decode(ids) == shortest
    assert not set(ids) & set(vocabulary.eos_ids)


def check_tokens(matcher: Matcher, mask: set[int], vocabulary: Vocabulary, rng: random.Random) -> None:
    """``accept_token`` and ``validate_tokens`` agree with the mask; refusals change nothing."""
    before = matcher.state_id, matcher.accepted_tokens
    some = rng.sample(range(vocabulary.size), 40) + rng.sample(sorted(mask), min(20, len(mask)))
    for token in some:
        fork = matcher.fork()
        assert matcher.validate_tokens([token]) == (token in mask)
        assert fork.accept_token(token) == (token in mask)
        assert fork.accepted_tokens == matcher.accepted_tokens + [token] * (token in mask)
        if token not in mask:
            assert fork.state_id == matcher.state_id
    assert (matcher.state_id, matcher.accepted_tokens) == before


def check_walk(source: Grammar, vocabulary: Vocabulary, seed: int, steps: int = STEPS) -> None:
    rng = random.Random(seed)
    oracle = Oracle(source)
    try:
        core = toys.compile_ir(source, vocabulary)
    except UnsatisfiableError:
        assert not oracle.by_left.get(source.start)
        return
    assert oracle.by_left.get(source.start)
    matcher = Matcher(core)
    ids: list[int] = []
    masks: dict[int, set[int]] = {}
    forks: list[tuple[Matcher, list[int]]] = []
    for _ in range(steps):
        mask = check_state(matcher, oracle, vocabulary.decode(ids), vocabulary)
        assert masks.setdefault(matcher.state_id, mask) == mask
        check_tokens(matcher, mask, vocabulary, rng)
        forks.append((matcher.fork(), list(ids)))
        text_ids = sorted(mask - set(vocabulary.eos_ids))
        if ids and rng.random() < 0.25:
            # Leave the path at an earlier point.
            back = rng.randint(1, len(ids))
            matcher.rollback(back)
            del ids[-back:]
        elif not text_ids:
            break
        else:
            longest = max(text_ids, key=lambda i: (len(vocabulary.tokens[i]), i))
            token = rng.choice([*rng.choices(text_ids, k=3), longest])
            assert matcher.accept_token(token)
            ids.append(token)
        assert matcher.accepted_tokens == ids
    fresh = Matcher(toys.compile_ir(source, vocabulary))
    for fork, path in forks:
        fresh.reset()
        assert fresh.validate_tokens(path) == len(path)
        assert fresh.accept_tokens(path) == len(path)
        assert fork.accepted_tokens == path
        assert toys.allowed(fork) == toys.allowed(fresh) == masks[fork.state_id]


def sentences(source: Grammar, seed: int, count: int = 12) -> list[bytes]:
    """Random beginnings of sentences, completed."""
    rng = random.Random(seed)
    oracle = Oracle(source)
    if not oracle.by_left.get(source.start):
        return []
    matcher = toys.matcher(source, BYTES)
    out = []
    for _ in range(count):
        matcher.reset()
        text = b""
        for _ in range(rng.randint(0, 12)):
            viable = sorted(toys.allowed(matcher) - {256})
            if not viable:
                break
            printable = [byte for byte in viable if 32 <= byte < 127]
            byte = rng.choice(printable or viable)
            matcher.accept_token(byte)
            text += bytes([byte])
        out.append(text + matcher.shortest_completion_bytes())
    return out


# --- random grammars


@settings(max_examples=120, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20))
def test_random_grammars_over_bytes(source: Grammar, seed: int) -> None:
    check_walk(source, BYTES, seed, steps=14)


@settings(max_examples=120, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20))
def test_random_grammars_over_pieces(source: Grammar, seed: int) -> None:
    check_walk(source, toys.piece_vocabulary(seed, sentences(source, seed)), seed)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20))
def test_random_grammars_over_many_pieces(source: Grammar, seed: int) -> None:
    check_walk(source, MANY_PIECES, seed)
