"""Inline schemas between the terminals of a lexer, which reads none of their text: no dead ends, and exact masks."""

from __future__ import annotations

import random

import pytest
import toys

import maskwright as mw

ALPHABET = b"ab1x "
VOCABULARY = mw.Vocabulary.from_bytes(
    [*(bytes([byte]) for byte in ALPHABET), b"ab", b"b1", b"1b", b"a1", b" 1", b"1 ", b"</s>"], eos_ids=11
)
BYTES = toys.byte_vocabulary()
# What stands between two inline schemas may go on into the second one.
PATTERNS = ["a(b1)*", "a1*", "b(1a)?", "a( 1)?b?", "b+", "ab?", "x(1x)?", "1b", "1+", "a(1 ?b)*", "b1?", "x", "a(?!1)", "(a|b)+", " a", "1(11)?x"]  # fmt: skip


def random_grammar(rng: random.Random) -> str:
    terminals = {name: rng.choice(PATTERNS) for name in "TUVW"[: rng.randint(1, 4)]}

    def row(*more: str) -> str:
        return " ".join(rng.choice([*terminals, "x", "x", "y", *more]) for _ in range(rng.randint(1, 4)))

    rows = " | ".join(row() for _ in range(rng.randint(1, 3)))
    ignored = rng.choice(["", '%ignore " "\n', "%ignore / +/\n"])
    if rng.random() < 0.7:
        rules = f"start: s{rng.choice(['', '+', ' s', ' | s start'])}\ns: {rows}\n"
    else:
        rules = f"start: {row('inner')} inner | {rows}\ninner[mode=inside]: {rows}\n"
        ignored += "%mode inside\n" + rng.choice(["", '%ignore "b"\n', ignored])
    named = "".join(f"{name}: /{pattern}/\n" for name, pattern in terminals.items())
    inline = 'x: %json {"enum": [1, 11]}\ny: %json {"enum": [1]}\n'
    return rules + named + inline + ignored


@pytest.mark.slow
@pytest.mark.sanitized
def test_random_grammars_have_exact_masks_and_no_dead_ends() -> None:
    looked = 0
    for seed in range(200):
        rng = random.Random(seed)
        text = random_grammar(rng)
        try:
            compiled = mw.compile_lark(text, VOCABULARY, limits=mw.Limits(max_search=20_000))
        except mw.UnsatisfiableError:
            continue
        work = [b""]
        for _ in range(60):
            if not work:
                break
            before = work.pop(rng.randrange(len(work)))
            matcher = compiled.matcher()
            assert matcher.accept_bytes(before)
            taken = {token for token in range(11) if matcher.fork().accept_token(token)}
            assert toys.allowed(matcher) - {11} == taken, (text, before)
            rest = matcher.shortest_completion_bytes()
            whole = compiled.matcher()
            assert whole.accept_bytes(before + rest), (text, before, rest)
            assert whole.is_accepting, (text, before, rest)
            looked += 1
            if len(before) < 8:
                work += [before + VOCABULARY.tokens[token] for token in taken]
    assert looked > 5_000


SCHEMA = 'x: %json {"enum": [1]}\ny: %json {"enum": [2]}\n'


@pytest.mark.parametrize(
    ("grammar", "texts"),
    [
        ('start: T U x | "c"\nT: /a(b1)*/\nU: "b"\n', {"c"}),
        ('start: y T x | y "c"\nT: /a1*/\n', {"2c"}),
        ('start: T x | "c"\nT: /a1?/\n%ignore " "\n', {"c", "a 1", "a1 1", "a11"}),
        ('start: "e" T x | "c"\nT: /a[ 1]*/\n%ignore " "\n', {"c"}),
        ('start: "c" (T x | "d")\nT: /a(?!1)/\n', {"cd"}),
        ('start: "c" (T x T | "d")\nT: /a(1a)?/\n', {"cd", "ca1a1a", "ca1a1a1a"}),
    ],
)
def test_a_match_that_goes_on_into_an_inline_schema_is_one_match(grammar: str, texts: set[str]) -> None:
    compiled = mw.compile_lark(grammar + SCHEMA, BYTES)
    for text in sorted(texts):
        matcher = compiled.matcher()
        assert matcher.accept_bytes(text.encode())
        assert matcher.is_accepting
    begun = {text[:end] for text in texts for end in range(len(text) + 1)}
    for before in sorted(begun):
        for byte in b"abcde12 ":
            if before + chr(byte) not in begun and byte != 0x20:
                assert not compiled.matcher().accept_bytes(before.encode() + bytes([byte])), (before, byte)


def test_nothing_is_left_where_the_longest_match_takes_the_inline_schema() -> None:
    with pytest.raises(mw.UnsatisfiableError, match="T directly before a lexeme that is no terminal is read"):
        mw.compile_lark("start: T x\nT: /a1*/\n" + SCHEMA, BYTES)


def test_a_token_from_an_inline_schema_into_ignored_text() -> None:
    compiled = mw.compile_lark('start: "x" x\nx: %json {"enum": [1, 11]}\n%ignore " "\n', VOCABULARY)
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"x1")
    assert toys.allowed(matcher) == {2, 4, 10, 11}


@pytest.mark.parametrize(
    ("grammar", "text"),
    [
        ('start: "b" T x | "c"\nT: /a1*/\n%ignore /#1*/\n', b"b"),
        ('start: "a" x\n%ignore /#1*/\n%mode inside\n', b"a#"),
        ('start: "a" x | "b" i\ni[mode=inside]: "c"\n%ignore /#(?!1)/\n%mode inside\n', b"a#"),
    ],
    ids=["no mode", "a mode", "looks ahead"],
)
def test_ignored_text_that_goes_on_into_an_inline_schema_is_no_way_out(grammar: str, text: bytes) -> None:
    assert not mw.compile_lark(SCHEMA + grammar, BYTES).matcher().accept_bytes(text)


NUMBERS = (
    '{"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, '
    '"required": ["a", "b"], "additionalProperties": false}'
)


@pytest.mark.parametrize(
    ("grammar", "before", "token"),
    [
        ('start: x\nx: %json {"enum": [[1]]}\n%ignore "#"\n', b"[", b" 1#"),
        (f"start: x\nx: %json {NUMBERS}\n%ignore /\\s+/\n", b'{"a":', b" 1 "),
        ('start: x x T "b" | x\nT: /b+/\nx: %json {"enum": [12]}\n', b"1", b"21"),
    ],
    ids=["ignored text inside", "blanks inside", "a second one that cannot end"],
)
def test_tokens_that_go_on_behind_a_value_inside(grammar: str, before: bytes, token: bytes) -> None:
    vocabulary = mw.Vocabulary.from_bytes(
        [*(bytes([byte]) for byte in range(128)), token, b"</s>"], eos_ids=129
    )
    matcher = mw.compile_lark(grammar, vocabulary).matcher()
    assert matcher.accept_bytes(before)
    assert 128 not in toys.allowed(matcher)
    assert not matcher.accept_token(128)


def test_what_a_terminal_may_lead_to_is_not_kept_for_other_places() -> None:
    """Behind "1", "b" would make the phrase; where it stands the terminal leads elsewhere."""
    grammar = 'start: A B x\nA: "1"\nB: /b+/\n%ignore "#"\nx: %json {"enum": ["c"]}\n'
    compiled = mw.compile(mw.Lark(grammar) - mw.Contains(["1b"]), BYTES)
    refused = compiled.matcher()
    assert refused.accept_bytes(b"1")
    assert not refused.accept_bytes(b"b")
    assert compiled.matcher().accept_bytes(b"1#bb")


def test_a_search_that_was_ended_says_nothing_of_other_texts() -> None:
    grammar = (
        "start: x x | r T\nr: r U r | y\nU.2: /1(?!1)/\nT.1: /1(?!1)/\n"
        'x: %json {"enum": [1, 11]}\ny: %json {"enum": [111]}\n%ignore / +/\n'
    )
    compiled = mw.compile_lark(grammar, BYTES, limits=mw.Limits(max_search=200))
    with pytest.raises(mw.LimitError):
        compiled.matcher().accept_bytes(b"111")
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"1   11")
    assert matcher.is_accepting
