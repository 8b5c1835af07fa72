"""The engine against the oracle, on random and on nasty grammars and vocabularies."""

from __future__ import annotations

import json
import random

import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Column, Oracle
from toys import ANY_STRING, FEW_CHARS_STRING, PRINTED_STRING, SHORT_STRING, grammar, record, term

from maskwright._core import Matcher
from maskwright.errors import UnsatisfiableError
from maskwright.ir.grammar import (
    EMPTY,
    FAIL,
    Choice,
    Grammar,
    Keyset,
    Lexeme,
    Ref,
    Repeated,
    Seq,
    Switch,
    Term,
    Words,
)
from maskwright.regular.expressions import ANY_CHAR, Lit, Regular, alt, one_of, repeat
from maskwright.vocabulary.vocabulary import Vocabulary

BYTES = toys.byte_vocabulary()
PIECES = toys.piece_vocabulary(1)
MANY_PIECES = toys.piece_vocabulary(2, size=1500)
STEPS = 10
MANY_STATES = 600
"""Walks through very ambiguous grammars end early."""
USUAL = set(b'ab1"\\u06{}:, \xc3\xa9')
"""Bytes that walks prefer, so that they get past the first free string."""


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
    """The characters that may come next as a backslash sequence, in all their spellings."""
    found, work = [], [b"\\"]
    while work:
        sequence = work.pop()
        behind = oracle.read(sequence, column)
        if behind is None:
            continue
        try:
            json.loads(b'"%s"' % sequence).encode()
            found.append(sequence)
        except ValueError:  # not whole yet; half of a surrogate pair is no character
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
    some = rng.sample(range(vocabulary.vocab_size), min(40, vocabulary.vocab_size)) + rng.sample(
        sorted(mask), min(20, len(mask))
    )
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
        elif not text_ids or core.statistics["parser_states"] > MANY_STATES:
            break
        else:
            usual = [i for i in text_ids if USUAL.issuperset(vocabulary.tokens[i])] or text_ids
            longest = max(usual, key=lambda i: (len(vocabulary.tokens[i]), i))
            token = rng.choice([*rng.choices(usual, k=5), rng.choice(text_ids), longest])
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


# --- nasty grammars

a, b, c, d = map(term, ("a", "b", "c", "d"))
plus, times, opening, closing = map(term, ("+", "*", "(", ")"))
ONE_TEXT = Term(Lexeme("only xy", Lit("xy"), "quoted"))
XY_OR_XN = Lexeme("xy or x-newline", alt(Lit("xy"), Lit("x\n")), "quoted")

NASTY = {
    "expressions": grammar(
        Choice((Seq((Ref(0), plus, Ref(1))), Ref(1))),
        Choice((Seq((Ref(1), times, Ref(2))), Ref(2))),
        Choice((Seq((opening, Ref(0), closing)), a)),
    ),
    "ambiguous and nullable": grammar(Choice((Seq((Ref(0), Ref(0))), a, EMPTY))),
    "ambiguous": grammar(Choice((Seq((Ref(0), Ref(0), Ref(0))), Seq((Ref(0), Ref(0))), a, b))),
    "hidden left recursion": grammar(Choice((Seq((Ref(1), Ref(0), c)), a)), Choice((EMPTY, b))),
    "right recursion": grammar(Choice((Seq((a, Ref(0))), b))),
    "hidden right recursion": grammar(Choice((Seq((a, Ref(0), Ref(1))), b)), Choice((EMPTY, c))),
    "mutual left recursion": grammar(
        Choice((Seq((Ref(1), c)), a)), Choice((Seq((Ref(0), d)), Seq((Ref(1), b)), b))
    ),
    "cycle": grammar(Ref(1), Choice((Ref(1), Ref(0), a))),
    "nullable cycle": grammar(Choice((Seq((Ref(1), Ref(0))), a)), Choice((Ref(0), EMPTY, Seq((Ref(1), b))))),
    "stacks that refer to each other": grammar(Seq((Ref(1), Ref(1), b, a)), Choice((a, Ref(0), EMPTY))),
    "palindromes": grammar(Choice((Seq((a, Ref(0), a)), Seq((b, Ref(0), b)), EMPTY))),
    "nested": grammar(Choice((Seq((opening, Ref(0), closing, Ref(0))), EMPTY))),
    "left and right": grammar(Choice((Seq((a, Ref(0))), Seq((Ref(0), b)), c))),
    "shared beginnings of lexemes": grammar(
        Choice(
            (
                Seq((term("ab"), term("c"))),
                Seq((a, term("bd"))),
                Seq((term(repeat(Lit("a"), 1, None), "a+"), b, term("e"))),
            )
        )
    ),
    "runs that meet": grammar(Repeated(1, 1, 2, 4), term(repeat(Lit("a"), 2, 12), "a{2,12}")),
    "counted by two": grammar(Repeated(1, 2, 2, 3), Choice((a, EMPTY)), Seq((term(","), Ref(1)))),
    "repeated itself": grammar(Repeated(1, 1, 0, None), Choice((Seq((opening, Ref(0), closing)), a))),
    "repeated nullable": grammar(
        Seq((Ref(1), c)), Repeated(2, 3, 3, 5), Choice((a, EMPTY)), Choice((b, EMPTY))
    ),
    "unproductive parts": grammar(
        Choice((Seq((a, Ref(1))), Seq((a, b, Ref(2))), Seq((a, FAIL)))), Seq((c, Ref(1))), Choice((d, Ref(1)))
    ),
    "unproductive alternatives of productive rules": grammar(
        Choice((Seq((a, FAIL)), Seq((b, c)), Switch((a.lexeme, d.lexeme), (FAIL, Choice((FAIL, b))))))
    ),
    "unproductive words": grammar(Switch(Words.tagged({b"ab": 0, b"ac": 1, b"b": 1}), (FAIL, c))),
    "unproductive members": grammar(
        record([toys.member("a", 1), toys.member("b", 2), toys.member("c", 3, required=True)], ANY_STRING, 1),
        Seq((a, Ref(1))),
        b,
        Repeated(1, 1, 0, 5),
    ),
    "names that begin names": grammar(Term(Keyset(("a", "ab", "abc", "", "b")))),
    "names with escapes": grammar(
        Term(Keyset(('"', "\\", "\\u00", "\n", "\x00", "\x01", "\x1f", "/", "\x7f")))
    ),
    "printed names with escapes": grammar(
        Term(
            Keyset(('"', "\\", "\\u00", "\n", "\x00", "\x01", "\x1f", "/", "\x7f", "<a"), spelling="printed")
        )
    ),
    "names beyond ASCII": grammar(
        Term(Keyset(("\u00e9", "e\u0301", "\u20ac", "\U0001f600", "\U0001f601", "\uffff", "\u00e9\u20ac")))
    ),
    "printed names beyond ASCII": grammar(
        Term(
            Keyset(
                ("\u00e9", "e\u0301", "\u20ac", "\U0001f600", "\U0001f601", "\uffff", "\u00e9\u20ac"),
                spelling="printed",
            )
        )
    ),
    "names and others": grammar(Seq((Term(Keyset(('"', "a", "\u00e9", "ab"), ANY_STRING)), a))),
    "printed names and others": grammar(
        Seq((Term(Keyset(('"', "a", "/", "<", "\u00e9", "ab"), PRINTED_STRING, "printed")), a))
    ),
    "both spellings": grammar(
        Choice((Seq((Term(Keyset(("a/b", "c"))), a)), Seq((Term(Keyset(("a/b", "d"), None, "printed")), b))))
    ),
    "a forbidden key": grammar(
        record([toys.member("a", None), toys.member("ab", 1)], ANY_STRING, 1), term("1")
    ),
    "a forbidden key of few": grammar(record([toys.member("a", None)], FEW_CHARS_STRING, 1), term("1")),
    "others but for an escape": grammar(record([toys.member("xy", 1)], XY_OR_XN, 1), term("1")),
    "values of unlike length": grammar(
        record([toys.member("\x01", 1), toys.member("\x02", 2), toys.member("\\", 1)]),
        term("1234567"),
        term("1"),
    ),
    "required and optional": grammar(
        record(
            [
                toys.member("a", 1),
                toys.member("b", 1, required=True),
                toys.member("", 1),
                toys.member("c", 1, required=True),
            ]
        ),
        Choice((term("1"), Ref(0))),
    ),
    "key or any text": grammar(
        Choice((Ref(1), Ref(2))),
        Seq((term("{"), term(repeat(ANY_CHAR, 1, None), "any text"))),
        record([toys.member("a", None), toys.member("aa", 3)], SHORT_STRING, 3),
        term("1"),
    ),
    "records side by side": grammar(
        Choice((Ref(1), Ref(2), Ref(3))),
        record([toys.member("a", 4), toys.member("b", 4, required=True)], ANY_STRING, 4),
        record([toys.member("b", 4), toys.member("a", None)], SHORT_STRING, 4),
        record([toys.member("b", 4), toys.member("a", 0, required=True)]),
        term(repeat(toys.DIGIT, 1, None), "[0-9]+"),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", NASTY)
@pytest.mark.parametrize("vocabulary", [BYTES, PIECES, MANY_PIECES], ids=["bytes", "pieces", "many"])
def test_nasty_grammars(name: str, vocabulary: Vocabulary) -> None:
    for seed in range(3):
        check_walk(NASTY[name], vocabulary, seed, steps=8)


@pytest.mark.parametrize(
    "body", [one_of("1234"), alt(Lit("2"), Lit("1"), Lit("34"))], ids=["characters", "texts"]
)
@pytest.mark.parametrize(("low", "high"), [(1, 12), (3, 12), (1, None), (11, None), (12, 12)])
def test_tokens_that_leave_a_counted_repetition(body: Regular, low: int, high: int | None) -> None:
    # No token stays in the repetition for as long as those that leave it.
    tokens = [b"22ab", b"2222ab", b"a", b"ab", b"b", b"1", b"2", b"3", b"4", b"34a", b"3434343434ab", b"23"]
    vocabulary = Vocabulary.from_bytes([*tokens, b"</s>"], eos_ids=len(tokens))
    number = term(repeat(body, low, high), f"{body!r}{low},{high}")
    source = grammar(Choice((Seq((Ref(0), term("ab"))), number)))
    for seed in range(8):
        check_walk(source, vocabulary, seed, steps=12)


def texts(source: Grammar, alphabet: bytes, length: int) -> set[bytes]:
    """The sentences of up to ``length`` bytes, by the oracle."""
    oracle, out = Oracle(source), set()
    work = [(b"", oracle.empty)]
    while work:
        text, column = work.pop()
        if column.complete:
            out.add(text)
        if len(text) < length:
            after = ((text + bytes([byte]), oracle.step(column, byte)) for byte in alphabet)
            work += [(longer, column) for longer, column in after if column is not None]
    return out


def test_the_oracle_knows_small_languages() -> None:
    assert texts(NASTY["palindromes"], b"ab", 4) == {b"", b"aa", b"bb", b"aaaa", b"abba", b"baab", b"bbbb"}
    assert texts(NASTY["hidden left recursion"], b"abc", 4) == {b"a", b"ac", b"acc", b"accc", b"bac", b"bacc"}
    assert texts(NASTY["nested"], b"()", 4) == {b"", b"()", b"()()", b"(())"}
    assert texts(NASTY["mutual left recursion"], b"abcd", 3) == {b"a", b"bc", b"adc", b"bbc"}
    assert texts(NASTY["counted by two"], b"a,", 3) == {
        b",",
        b"a,",
        b",a",
        b"a,a",
        b",,",
        b"a,,",
        b",a,",
        b",,a",
    }
    assert texts(NASTY["unproductive parts"], b"abcd", 3) == {b"abd"}
    assert texts(NASTY["runs that meet"], b"a", 6) == {b"a" * n for n in range(4, 7)}
    assert texts(NASTY["unproductive members"], b'{}:,"abc', 10) == {b'{"c":}'}
    keys = texts(NASTY["names with escapes"], b'"\\nu01fF/', 8)
    assert {b'"\\n"', b'"\\u001f"', b'"\\u001F"', b'"/"', b'"\\/"', b'"\\\\u00"'} <= keys
    assert {b'"n"', b'"\\u0010"', b'"\n"', b'"u00"'}.isdisjoint(keys)
    both = texts(NASTY["a forbidden key of few"], b'{}:1ab"', 7)
    assert b'{"b":1}' in both
    assert b'{"a":1}' not in both


def test_an_empty_language_is_refused() -> None:
    with pytest.raises(UnsatisfiableError):
        toys.compile_ir(grammar(Seq((a, Ref(0)))), BYTES)
    with pytest.raises(UnsatisfiableError):
        toys.compile_ir(grammar(record([toys.member("a", None, required=True)])), BYTES)


def test_equal_states_have_equal_numbers() -> None:
    matcher = toys.matcher(NASTY["expressions"], BYTES)
    matcher.accept_bytes(b"a+a")
    short = matcher.state_id
    matcher.accept_bytes(b"+a+a+a")
    assert matcher.state_id == short
    matcher = toys.matcher(NASTY["right recursion"], BYTES)
    matcher.accept_bytes(b"a")
    short = matcher.state_id
    matcher.accept_bytes(b"a" * 500)
    assert matcher.state_id == short


def test_deep_nesting() -> None:
    depth = 5000
    matcher = toys.matcher(NASTY["expressions"], BYTES)
    assert matcher.accept_bytes(b"(" * depth + b"a")
    assert matcher.shortest_completion_bytes() == b")" * depth
    assert matcher.accept_bytes(b")" * (depth - 1))
    assert not matcher.is_accepting
    assert matcher.accept_bytes(b")")
    assert matcher.is_accepting
    assert not matcher.accept_bytes(b")")


# --- random grammars


@settings(max_examples=60, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20))
def test_random_grammars_over_bytes(source: Grammar, seed: int) -> None:
    check_walk(source, BYTES, seed, steps=14)


@pytest.mark.slow
@settings(max_examples=150, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20))
def test_random_grammars_over_pieces(source: Grammar, seed: int) -> None:
    check_walk(source, toys.piece_vocabulary(seed, sentences(source, seed)), seed)


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(toys.grammars(), st.integers(0, 2**20))
def test_random_grammars_over_many_pieces(source: Grammar, seed: int) -> None:
    check_walk(source, MANY_PIECES, seed)
