"""Look-ahead at the start and the end of terminals, against the longest matches of Python's ``re``."""

from __future__ import annotations

import itertools
import re

import pytest

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
    ],
)
def test_longest_matches(terminals: dict[str, str], alphabet: str, most: int) -> None:
    rules = [f"start: ({' | '.join(terminals)})*", *(f"{name}: /{p}/" for name, p in terminals.items())]
    compiled = mw.compile_lark("\n".join(rules), BYTES)
    answers = set()
    for length in range(most + 1):
        for letters in itertools.product(alphabet, repeat=length):
            text = "".join(letters)
            matcher = compiled.matcher()
            read = matcher.accept_bytes(text.encode()) and matcher.is_accepting
            assert read == splits(terminals, text), text
            answers.add(read)
    assert answers == {True, False}
