"""How the engine spells code points as bytes: UTF-8 (RFC 3629) and quoted strings (RFC 8259)."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_lexemes import LexemeLanguage
from spelling import spelled as spelled_tree

from maskwright.ir.grammar import Lexeme, Spelling, Term
from maskwright.regular.dfa import difference, with_length
from maskwright.regular.expressions import ANY_CHAR, Chars, Lit, Regular, alt, cat, char, chars, repeat

BYTES = toys.byte_vocabulary()


def acceptor(regular: Regular, spelling: Spelling = "utf8") -> Callable[[bytes], bool]:
    """Whether the engine takes bytes as a whole lexeme."""
    start = toys.matcher(toys.grammar(Term(Lexeme(("spelled", regular, spelling), regular, spelling))), BYTES)

    def accepts(data: bytes) -> bool:
        matcher = start.fork()
        return matcher.accept_bytes(data) and matcher.is_accepting

    return accepts


ANYTHING = acceptor(repeat(ANY_CHAR, 0, None), "quoted")

EDGES = sorted(
    {
        code + d
        for code in (0, 0x20, 0x22, 0x2F, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xD7FF, 0xE000)
        for d in (-1, 0, 1)
    }
    | {0xCFFF, 0xD000, 0xFFFD, 0xFFFF, 0x10000, 0x103FF, 0x10400, 0x3FFFF, 0x40000, 0xFFFFF, 0x100000}
    | {0x10FFFE, 0x10FFFF}
)
SCALARS = [code for code in EDGES if code >= 0 and not 0xD800 <= code <= 0xDFFF]


@pytest.mark.parametrize("low", SCALARS[::3])
def test_utf8_is_exact_at_every_boundary(low: int) -> None:
    for high in (low, low + 1, 0x7FF, 0xFFFF, 0x10000, 0x10FFFF):
        if high < low:
            continue
        accepts = acceptor(Chars(((low, high),)))
        for code in SCALARS:
            assert accepts(chr(code).encode()) == (low <= code <= high), (low, high, code)


@pytest.mark.parametrize(
    "data",
    [b"\xc0\x80", b"\xc1\xbf", b"\xe0\x9f\xbf", b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xf0\x8f\xbf\xbf",
     b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xff", b"\x80", b"\xe2\x82", b"\xf0\x9f\x98"],
)  # fmt: skip
def test_utf8_has_no_overlong_or_surrogate_forms(data: bytes) -> None:
    assert not acceptor(Chars(((0, 0x10FFFF),)))(data)


SHORT = {
    '"': '\\"',
    "\\": "\\\\",
    "/": "\\/",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
}


def spellings(c: str) -> list[str]:
    """Every way to write a character in a JSON string (two of the cases of hex digits)."""
    units = c.encode("utf-16-be")
    escaped = "".join(f"\\u{units[i]:02x}{units[i + 1]:02x}" for i in range(0, len(units), 2))
    out = [escaped, escaped.upper().replace("\\U", "\\u")]
    if c >= " " and c not in '"\\':
        out.append(c)
    if c in SHORT:
        out.append(SHORT[c])
    return out


def test_quoted_spellings_of_boundary_characters() -> None:
    for code in SCALARS:
        others = acceptor(difference(ANY_CHAR, char(chr(code))), "quoted")
        own = acceptor(char(chr(code)), "quoted")
        for spelling in spellings(chr(code)):
            data = f'"{spelling}"'.encode()
            assert json.loads(data) == chr(code)
            assert own(data)
            assert not others(data)


ASCII_AND_EDGES = sorted({*range(128), *SCALARS})


def printed_spellings(c: str) -> set[str]:
    """What Python, and Go's encoding/json, write for a character: the latter escapes three more."""
    out = {json.dumps(c)[1:-1], json.dumps(c, ensure_ascii=False)[1:-1]}
    out |= {s.upper().replace("\\U", "\\u") for s in out if s.startswith("\\u")}
    if c in "<>&":
        out |= {s for s in spellings(c) if s.startswith("\\u")}
    return out


def test_printed_spellings_are_those_of_printers_and_no_others() -> None:
    anything = acceptor(repeat(ANY_CHAR, 0, None), "printed")
    for c in map(chr, ASCII_AND_EDGES):
        own = acceptor(char(c), "printed")
        others = acceptor(difference(ANY_CHAR, char(c)), "printed")
        printed = printed_spellings(c)
        for spelling in {*spellings(c), *printed}:
            data = f'"{spelling}"'.encode()
            assert json.loads(data) == c
            assert own(data) == anything(data) == (spelling in printed), spelling
            assert not others(data)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_quoted_strings_agree_with_json(data: st.DataObject) -> None:
    value = data.draw(st.text(st.characters(exclude_categories=["Cs"]), max_size=4))
    spelled = '"' + "".join(data.draw(st.sampled_from(spellings(c))) for c in value) + '"'
    assert json.loads(spelled) == value
    assert ANYTHING(spelled.encode())
    assert acceptor(Lit(value), "quoted")(spelled.encode())


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from([*'"\\/bu0dD8cC9aé\n', "\\u", "\\ud83d", "\\ude00", "\\n"]), max_size=6))
def test_anything_in_quotes_is_a_json_string_or_refused(pieces: list[str]) -> None:
    spelled = f'"{"".join(pieces)}"'
    try:
        value = json.loads(spelled)
        expected = isinstance(value, str) and not any("\ud800" <= c <= "\udfff" for c in value)
    except ValueError:
        expected = False
    assert ANYTHING(spelled.encode()) == expected, spelled


def test_length_counts_code_points_not_bytes() -> None:
    two = acceptor(with_length(repeat(ANY_CHAR, 0, None), 2, 2), "quoted")
    for spelled in ('"\U0001f600\u00e9"', '"\\ud83d\\ude00a"', '"\\n\\u0041"'):
        assert two(spelled.encode())
    assert not two('"\U0001f600"'.encode())


SETS = st.lists(st.sampled_from(SCALARS), min_size=1, max_size=6).map(sorted)


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=60, deadline=None)
@given(SETS, SETS, st.sampled_from(("utf8", "quoted", "printed")), st.data())
def test_every_prefix_is_alive_exactly_when_it_can_be_completed(
    first: list[int], second: list[int], spelling: Spelling, data: st.DataObject
) -> None:
    # Sets with ends at the boundaries of every length and escape, against the oracle's spelling.
    one = chars(*zip(first[::2], first[1::2], strict=False), (first[0], first[0]))
    two = chars(*zip(second[::2], second[1::2], strict=False), (second[-1], second[-1]))
    lexeme = Lexeme(
        ("prefixes", one, two, spelling), cat(one, repeat(alt(two, cat(one, one)), 0, 2)), spelling
    )
    oracle = LexemeLanguage(spelled_tree(lexeme))
    matcher = toys.matcher(toys.grammar(Term(lexeme)), BYTES)
    state = oracle.start
    for _ in range(20):
        following = {b for b in range(256) if oracle.step(state, b) is not None}
        assert toys.allowed(matcher) - {256} == following
        assert matcher.is_accepting == oracle.accepts(state)
        if not following:
            break
        byte = data.draw(st.sampled_from(sorted(following)))
        assert matcher.accept_bytes(bytes([byte]))
        state = oracle.step(state, byte)
