"""Look-ahead at the start and the end of terminals, against the longest matches of Python's ``re``."""

from __future__ import annotations

import itertools
import re

import lark
import pytest
import toys

import maskwright as mw

BYTES = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])


def splits(terminals: dict[str, str], text: str) -> bool:
    """Whether longest matches, one behind the other, make up the text."""
    at = 0
    while at < len(text):
        ends = [m.end() for m in (re.compile(p).match(text, at) for p in terminals.values()) if m]
        if not ends or max(ends) == at:
            return False
        at = max(ends)
    return True


@pytest.mark.parametrize(
    ("terminals", "alphabet", "most"),
    [
        ({"T": "'{1,2}(?!')", "X": "x"}, "'x", 6),
        ({"T": "a+(?!b)", "X": "b"}, "ab", 6),
        ({"T": r"(?!ab\b)[ab]+", "S": " "}, "ab ", 6),
        # A reserved word that another one begins with.
        ({"T": r"(?!(ab|abab)\b)[ab]+", "S": " "}, "ab ", 6),
        ({"T": r"(?!(ab|abab)\b)[ab]+", "W": r"ab\b", "S": " "}, "ab ", 6),
        ({"T": "(?!(ab|abcd)(?![a-d]))[a-d]+", "W": "ab(?![a-d])", "S": " "}, "abcd ", 5),
        # Another one matches as much and ranks higher, or more, up to what is refused or behind it.
        ({"E.1": "n", "L": r"n(?!\[)", "X": r"\[|c"}, "nc[x", 5),
        ({"LONG": r"n\[", "L": r"n(?!\[\[)", "X": r"\[|c"}, "nc[x", 5),
        ({"E": r"n+\[+n", "L": r"n(?!\[)", "X": "c"}, "nc[", 5),
        ({"E.1": "[ab]+", "L": "a+(?!b)", "X": "c"}, "abcx", 5),
    ],
)
def test_longest_matches(terminals: dict[str, str], alphabet: str, most: int) -> None:
    names = [name.partition(".")[0] for name in terminals]
    rules = [f"start: ({' | '.join(names)})*", *(f"{name}: /{p}/" for name, p in terminals.items())]
    compiled = mw.compile_lark("\n".join(rules), BYTES)
    read = set(filter(lambda text: accepts(compiled, text), texts(alphabet, most)))
    assert read == {text for text in texts(alphabet, most) if splits(terminals, text)}
    assert 1 < len(read) < len(texts(alphabet, most))


def texts(alphabet: str, most: int) -> list[str]:
    return ["".join(t) for length in range(most + 1) for t in itertools.product(alphabet, repeat=length)]


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    """Whether a text is read to its end, with masks that have all that is read, and a way on from each place."""
    matcher = compiled.matcher()
    for byte in text.encode():
        if byte not in toys.allowed(matcher):
            assert not matcher.accept_token(byte)
            return False
        assert matcher.accept_token(byte)
        on = matcher.fork()
        assert on.accept_bytes(on.shortest_completion_bytes()) and on.is_accepting
    return matcher.is_accepting


# "d" needs a line end before a word; a line end before "k" is part of it, and other blanks are a part of "e".
GAPS = 'start: (D | M | K | E)+\nD: /d(?![a-z ])/\nM: "m"\nK: /\\n*k/\nE: / *e/\n%ignore " "\n%ignore /\\n/'


def test_ignored_texts_that_may_stand_before_some_terminals() -> None:
    compiled = mw.compile_lark(GAPS, BYTES)
    read = {text for text in texts("dmke \n", 4) if accepts(compiled, text)}
    assert {"d\nm", "d\ne", "d\n\nk", "dm", "d m", "dk"} & read == {"d\nm", "d\ne", "d\n\nk"}


@pytest.mark.parametrize(
    ("grammar", "alphabet"),
    [
        # Of two that match as much, the one that looks ahead ranks lower: what it refuses is not its business.
        ('start: E "[" | L "c"\nE.1: "n"\nL: /n(?!\\[)/', "nc["),
        # It refuses where the other one may not come.
        ('start: "c" L ("[" | "n") | L "c" | E "[["\nE.1: "n"\nL: /n(?!\\[)/', "nc["),
        # Two others, at two places of the text.
        ('start: E "[" | W "]" | L "c" | "c" L "["\nE.1: "n"\nW.1: "nn"\nL: /nn?(?!\\[|\\])/', "nc[]"),
    ],
)
def test_what_a_lower_terminal_refuses(grammar: str, alphabet: str) -> None:
    compiled, by_lark = mw.compile_lark(grammar, BYTES), lark.Lark(grammar, parser="lalr")
    read = {text for text in texts(alphabet, 5) if accepts(compiled, text)}
    assert read == {text for text in texts(alphabet, 5) if reads(by_lark, text)}
    assert read


def reads(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True
