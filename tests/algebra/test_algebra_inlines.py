"""Inline schemas of a grammar with a lexer, beside a regular language."""

from __future__ import annotations

import itertools
import random
import re

import pytest
from random_products import outcomes
from test_algebra import VOCABULARY, accepts

import maskwright as mw
from maskwright.algebra import product
from maskwright.errors import GrammarError

PATTERNS = (".{0,4}", "1?[ab ]*", "(..)*", "[ab]*1[ab]*", "(11)*[ab ]+", ".*[ab].?")
SCHEMAS = ("[1]", "[1, 11]", "[11]", "[1, 11, 111]")
TEXTS = ["".join(parts) for n in range(6) for parts in itertools.product("ab 1", repeat=n)]


def random_grammar(rng: random.Random) -> str:
    def row() -> str:
        return " ".join(rng.choice(["x", "y", "x", "A", "B", "C", "r"]) for _ in range(rng.randint(1, 4)))

    terminals = rng.sample(["/ab?/", "/b+/", "/a/", "/ab/", "/b(?!1)/", "/a1?/"], 3)
    lines = [f"start: {row()} | {row()} | {row()}", f"r: A | {row().replace('r', 'B')}"]
    lines += [
        f"{name}.{rank}: {each}" for rank, (name, each) in enumerate(zip("ABC", terminals, strict=True))
    ]
    lines += [
        f'{name}: %json {{"enum": {each}}}' for name, each in zip("xy", rng.sample(SCHEMAS, 2), strict=True)
    ]
    return "\n".join(lines + ['%ignore " "'] * rng.randint(0, 1))


@pytest.mark.slow
def test_each_text_is_accepted_if_both_have_it() -> None:
    found = outcomes(random_grammar, PATTERNS, TEXTS, "two of its inline schemas", range(160))
    assert not found["wrong"], found
    assert min(found["right"], found["refused"]) > 20, found


COMPETING = mw.Lark('start: x "a" "b" | y "ab" "c"\nx: %json {"enum": [1, 11]}\ny: %json {"enum": [1, 111]}')


def test_schemas_that_begin_at_one_place_become_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert accepts(mw.compile(COMPETING, VOCABULARY), "1ab")
    monkeypatch.setattr(product, "check_schemas", lambda grammar: None)
    assert not accepts(mw.compile(COMPETING & mw.Regex("1[abc]+"), VOCABULARY), "1ab")


@pytest.mark.parametrize(
    "start",
    [
        'x "a" | "b" y "ab"',  # never at one place
        '(x | y) "a"',  # the same follows
        'x "b"? "a" | y "b"? "a"',
        'x "a" "b" | x "ab"',  # one schema
    ],
)
def test_schemas_that_do_not_compete(start: str) -> None:
    source = mw.Lark(f'start: {start}\nx: %json {{"enum": [1, 11]}}\ny: %json {{"enum": [1, 111]}}')
    alone, both = (mw.compile(each, VOCABULARY) for each in (source, source & mw.Regex("b?1[ab]+")))
    texts = [text for text in TEXTS if accepts(both, text)]
    assert texts == [text for text in TEXTS if accepts(alone, text) and re.fullmatch("b?1[ab]+", text)] != []


def test_a_rule_that_is_a_schema_or_itself() -> None:
    """Looking through such a rule must come to an end."""
    source = mw.Lark('start: v "a" | y "b"\nv: %json {"enum": [1, 11]} | v\ny: %json {"enum": [2]}')
    with pytest.raises(GrammarError, match="two of its inline schemas may begin"):
        mw.compile(source & mw.Regex("1[a2]*"), VOCABULARY)


def test_schemas_that_compete_are_refused_by_name() -> None:
    with pytest.raises(
        GrammarError, match="two of its inline schemas may begin, and different text may follow"
    ):
        mw.compile(COMPETING & mw.Regex("1[abc]*"), VOCABULARY)
    with pytest.raises(
        GrammarError, match="two of its inline schemas may begin, and different text may follow"
    ):
        mw.compile(COMPETING & mw.Contains(["abc"]), VOCABULARY)


def test_what_ignored_text_leads_to_is_not_kept_for_other_places() -> None:
    """Behind "  a" no text of four characters goes on; that says nothing of what may come behind "a"."""
    grammar = 'start: T | A T | x\nA.5: /ab?/\nT.7: /b(?! ?1)/\nx: %json {"enum": [1]}\nI.11: / /\n%ignore I'
    vocabulary = mw.Vocabulary.from_bytes([b"a", b"b", b" ", b"1", b""], eos_ids=4)
    compiled = mw.compile(mw.Lark(grammar) & mw.Regex(".{0,4}"), vocabulary)
    assert not compiled.matcher().accept_bytes(b"  a")
    matcher = compiled.matcher()
    assert matcher.accept_bytes(b"a")
    assert matcher.accept_token(2)
