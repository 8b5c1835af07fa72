"""Modes of a lexer that ignore different texts, beside a regular language."""

from __future__ import annotations

import itertools
import random

import pytest
from random_products import outcomes
from test_algebra import VOCABULARY, accepts

import maskwright as mw
from maskwright.algebra import lexers
from maskwright.errors import GrammarError

PATTERNS = ("(?:..)*", ".*c.*", "[^_]*", "a.*")
TEXTS = ["".join(parts) for n in range(6) for parts in itertools.product("ac _", repeat=n)]


def random_grammar(rng: random.Random) -> str:
    """Three rules, each in a mode of its own; letters are terminals of a mode or of all."""
    modes = ("main", "one", "two")
    letters = ['"a"', '"c"', '"aa"', '"ca"', '("a" "c")~1..2', "/c{2}/"]

    def row(names: list[str]) -> str:
        symbols = [*letters, *names]
        return " ".join(
            rng.choice(symbols) + rng.choice(["", "", "", "?", "*"]) for _ in range(rng.randint(1, 3))
        )

    lines = [f"start: {row(['x', 'y'])} | {row(['x', 'y'])}"]
    lines.append(f"x[mode=one]: {row(['y'])} | {row([])}")
    lines.append(f"y[mode=two]: {row([])}" + rng.choice(["", f" | {row(['x'])}"]))
    for mode in modes:
        lines += [] if mode == "main" else [f"%mode {mode}"]
        lines += [f"%ignore /{each}/" for each in " _" if rng.random() < 0.5]
    return "\n".join(lines)


@pytest.mark.slow
def test_each_text_is_accepted_if_both_have_it() -> None:
    found = outcomes(random_grammar, PATTERNS, TEXTS, "two modes wait together", range(150))
    assert found["wrong"] == 0
    assert found["right"] > 20 and found["refused"] > 20


@pytest.mark.slow
def test_modes_that_wait_together_are_not_said_by_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lexers, "check_alike", lambda grammar, ignored: None)
    assert outcomes(random_grammar, PATTERNS, TEXTS, "two modes wait together", range(60))["wrong"] > 5


WITH_END = """
start: "(" text
text[mode=inside]: CHAR* CLOSE
%ignore " "
%mode inside
CHAR: /[ab]/
CLOSE: ")"
%ignore "="
"""


def test_a_mode_with_an_end_of_its_own() -> None:
    taken = ["(a)", " (a=b) ", "(=a)"]
    refused = ["( a)", "(a)=", "=(a)", "(a )"]
    for source in (mw.Lark(WITH_END), mw.Lark(WITH_END) & mw.Regex(".*")):
        compiled = mw.compile(source, VOCABULARY)
        assert [each for each in taken + refused if accepts(compiled, each)] == taken


def test_a_mode_without_one_is_refused_by_name() -> None:
    text = WITH_END.replace('CLOSE: ")"', "").replace(" CLOSE", "").replace('"(" text', '"(" text ")"')
    assert accepts(mw.compile(mw.Lark(text), VOCABULARY), "( a)")
    with pytest.raises(GrammarError, match="behind LPAR two modes wait together: let a mode begin and end"):
        mw.compile(mw.Lark(text) & mw.Regex(".*"), VOCABULARY)
