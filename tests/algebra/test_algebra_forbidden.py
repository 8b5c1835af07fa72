"""Grammars with a lexer without some phrases, which keep their ignored text, modes and blocks."""

from __future__ import annotations

import ast
import itertools
import random
from dataclasses import replace

import pytest
from byte_walks import finished_walk
from test_algebra import (
    AHEAD,
    BOXES,
    COMMENTS,
    KEYWORD,
    VOCABULARY,
    WORDS,
    Case,
    accepts,
    assert_masks,
    assert_texts,
    has,
)
from test_algebra_modes import TEXTS, random_grammar

import maskwright as mw
from maskwright.algebra import forbidden, found
from maskwright.algebra.found import Phrases
from maskwright.errors import GrammarError, UnsatisfiableError
from maskwright.ir.grammar import FAIL

BLOCKS = mw.Lark(
    'start: (NAME _NEWLINE | "if" _NEWLINE _INDENT start _DEDENT)+\nNAME: /[fi]+/\n_NEWLINE: /(\\n *(#[fi]*)?)+/\n'
    '%declare _INDENT _DEDENT\n%ignore " "'
)
MODES = mw.Lark(
    'start: NAME ("(" text ")" NAME)*\ntext[mode=inside]: CHARS? (FIELD NAME CHARS?)*\nNAME: /[ab]+/\n%ignore " "\n%ignore /#b*/\n'
    "%mode inside\nCHARS: /[ab #]+/\nFIELD: /[$]/"
)
# The keyword ranks above the name in one place, and is none in the other.
KEYWORDS = mw.Lark('start: ("aba" NAME | NAME) ("." NAME)*\nNAME: /[ab]+/\n%ignore " "')
SHORTER = mw.Lark('start: (A | "abab" | B)+\nA: /ab?/\nB: /ba*;/')


def without(source: mw.Lark, alphabet: str | tuple[str, ...], most: int, *phrases: str) -> Case:
    made = source - mw.Contains(phrases[:1])
    for phrase in phrases[1:]:
        made = made - mw.Contains([phrase])
    return Case(made, lambda t: has(source, t) and not any(each in t for each in phrases), alphabet, most)


INDENTED = mw.Lark(
    'start: "." _NEWLINE (_INDENT start _DEDENT)?\n_NEWLINE: /(\\n *)+/\n%declare _INDENT _DEDENT'
)
TWO_MODES = mw.Lark(
    'start: "a" "(" text\ntext[mode=inside]: "b"* CLOSE\n%ignore " "\n%ignore "_"\n%mode inside\nCLOSE: ")"\n%ignore "_"'
)
INLINE = mw.Lark('start: "a"+ %json {"enum": ["bc", "b"]}')
BLOCK_PARTS = ("f", "i", "if", "\n", "\n ", " ", "#i", "#f")
CASES = {
    "a keyword and names": without(KEYWORD, "if ", 7, "if"),
    "names": without(KEYWORD, "if ", 7, "ff"),
    "two phrases": without(KEYWORD, "if ", 7, "ff", "ii"),
    "punctuation": without(WORDS, "if(<=) ", 5, "<="),
    "a character": without(WORDS, "if(<=) ", 5, "i"),
    "ignored text": without(COMMENTS, "a#;\n", 7, "#a"),
    "all ignored text": without(COMMENTS, "a#;\n", 7, "#"),
    "behind a look-ahead": without(AHEAD, "ab", 8, "bb"),
    "one terminal": without(BOXES, ("<ab>", "<ba>", "<", "a", ">", ",", " "), 5, "ab"),
    "a keyword that is a name elsewhere": without(KEYWORDS, "ab. ", 7, "aba"),
    "a shorter match": without(SHORTER, "ab;", 8, "baa"),
    "blocks": without(BLOCKS, BLOCK_PARTS, 5, "if"),
    "comments in line ends": without(BLOCKS, BLOCK_PARTS, 5, "#i"),
    "names in blocks": without(BLOCKS, BLOCK_PARTS, 5, "ff", "fi"),
    "blocks in one column": without(BLOCKS, BLOCK_PARTS, 5, "\n  "),
    "no blocks": without(BLOCKS, BLOCK_PARTS, 5, "\n "),
    "no blanks and no blocks": without(INDENTED, ".\n ", 8, " "),
    "lines in two columns": without(INDENTED, ".\n ", 8, "\n  "),
    "modes": without(MODES, "ab()$ #", 6, "bb"),
    "a character of all modes": without(MODES, "ab()$ #", 6, "a"),
    "ignored text of one mode": without(MODES, "ab()$ #", 6, "#b"),
    "equal texts that are left": without(mw.Lark('start: A "x" | B "y"\nA: /c|ab/\nB: /c|bb+/'), "abcxy", 4, "b"),
    "equal texts of another rank": without(mw.Lark('start: "bc" | A* B+\nA: /a+/\nB.-1: /a+/\n%ignore " "\n%ignore /_(?!b)/'), "abc _", 5, "aa"),
    "a last terminal that is cut": without(mw.Lark('start: "ab"+ B? A* | B "bc" "ba"+\nA.-1: /ab|c/\nB: /ab|ba/'), "abc", 6, "c"),
    "a last terminal that is cut, and a schema": without(
        mw.Lark('start: A* "ab"+ | y? y\nA: /[ab _]*c/\nB: /b(?!_)/\ny: %json {"enum": [1, 11, "a"]}'), ("a", "b", "c", "_", "1", '"'), 5, "b"
    ),
    "the first ignored text is gone": without(mw.Lark('start: x+\n%ignore "#"\n%ignore " "\nx: %json {"enum": [1]}'), "1# ", 5, "#"),
    "another ignored text is left": without(
        mw.Lark('start: "." | A x | x\n%ignore " "\n%ignore "_"\nA: /b/\nx: %json {"enum": [1]}'), "b1_ .", 5, " "
    ),
    "ignored text of two modes, one gone": Case(
        (TWO_MODES - mw.Contains(["_"])) & mw.Regex("(?s:.*)"), lambda t: has(TWO_MODES, t) and "_" not in t, "ab_( )", 5
    ),
    "line ends with comments": without(BLOCKS, BLOCK_PARTS, 5, "#f", "#i"),
    "an inline schema": without(INLINE, ("a", '"bc"', '"b"', '"', "b", "c"), 5, "bc"),
    "and a regular language": Case(
        (KEYWORD - mw.Contains(["ff"])) & mw.Regex("(..)*"),
        lambda t: has(KEYWORD, t) and "ff" not in t and len(t) % 2 == 0,
        "if ",
        7,
    ),
    "in a string": Case(
        mw.JsonString(KEYWORD - mw.Contains(["ff"])),
        lambda t: len(t) > 1 and t[0] == t[-1] == '"' and has(KEYWORD, t[1:-1]) and "ff" not in t,
        'if "',
        7,
    ),
    "beside another grammar": Case(
        (mw.Regex("!") + (KEYWORD - mw.Contains(["ff"]))) | (mw.Regex("[?]") + WORDS),
        lambda t: (t[:1] == "!" and has(KEYWORD, t[1:]) and "ff" not in t) or (t[:1] == "?" and has(WORDS, t[1:])),
        "!?if ",
        6,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_texts_are_those_without_the_phrases(name: str) -> None:
    assert_texts(CASES[name])


@pytest.mark.parametrize("name", CASES)
def test_masks_lead_to_such_texts(name: str) -> None:
    assert_masks(CASES[name], random.Random(name))


@pytest.mark.slow
def test_random_grammars_with_modes() -> None:
    decided = 0
    for seed in range(150):
        rng = random.Random(seed)
        source = mw.Lark(random_grammar(rng))
        phrase = rng.choice(["a", "c", "aa", "ca", "cc", " ", "_"])
        try:
            alone = mw.compile(source, VOCABULARY)
        except (GrammarError, UnsatisfiableError):
            continue
        wanted = {text for text in TEXTS if phrase not in text and accepts(alone, text)}
        try:
            made = mw.compile(source - mw.Contains([phrase]), VOCABULARY)
        except UnsatisfiableError:
            assert not wanted, seed
            continue
        except GrammarError as error:
            assert "may begin in" in str(error), (seed, error)
            continue
        assert {text for text in TEXTS if accepts(made, text)} == wanted, seed
        decided += 1
    assert decided > 30


def differs(case: Case) -> bool:
    """Whether some text of a case is accepted wrongly; compiled anew, for a vocabulary of its own."""
    fresh = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_ids=[256])
    compiled = mw.compile(case.source, fresh)
    texts = [
        "".join(parts) for n in range(case.most + 1) for parts in itertools.product(case.alphabet, repeat=n)
    ]
    return any(accepts(compiled, text) != case.oracle(text) for text in texts)


def test_what_is_left_out_must_not_be_read_as_something_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not differs(CASES["names"])
    monkeypatch.setattr(
        forbidden, "replace", lambda lexing, **changes: replace(lexing, **{**changes, "forbidden": ()})
    )
    assert differs(CASES["names"])


def test_what_leads_to_a_terminal_without_a_text_must_compete(monkeypatch: pytest.MonkeyPatch) -> None:
    # Before "!", "aa" is read where it may come, and so two of "a" are not.
    case = without(mw.Lark('start: "a"* | "aa" "!"'), "a!", 5, "!")
    assert not differs(case) and not case.oracle("aa")
    monkeypatch.setattr(forbidden, "NO_TEXT", FAIL)
    assert differs(case)


def test_a_phrase_may_lie_in_two_lexemes(monkeypatch: pytest.MonkeyPatch) -> None:
    case = without(mw.Lark('start: (A B)+\nA: "a"\nB: "b"'), "ab", 6, "ba")
    assert not differs(case)
    monkeypatch.setattr(Phrases, "check_apart", lambda self, leaves, grammar: None)
    assert differs(case)


def test_which_lexemes_may_stand_next_to_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    source = mw.Lark('start: (A " " B)+\nA: "a"\nB: "b"')
    assert not differs(without(source, "ab ", 6, "ab"))
    monkeypatch.setattr(found, "neighbours", lambda grammar: [0] * len(grammar.lexing.terminals))
    assert differs(without(mw.Lark('start: (A B)+\nA: "a"\nB: "b"'), "ab", 6, "ab"))


STRING = mw.JsonString(mw.Lark('start: "k"+'))


@pytest.mark.parametrize(
    "between",
    [mw.Regex("q?"), mw.Choice(["q", ""]), mw.Lark('start: "q"?', lexer="dynamic"), mw.Choice(["q"])],
)
def test_what_may_be_empty_stands_between_lexemes(between: mw.Source) -> None:
    whole = STRING + between + STRING
    assert_texts(
        Case(whole - mw.Contains(['""']), lambda t: has(whole, t) and '""' not in t, ('"', "k", "q"), 7)
    )


@pytest.mark.parametrize(
    ("source", "phrase", "message"),
    [
        (BLOCKS, "f\n", "column.*'f.n' may begin in NAME and end in _NEWLINE"),
        (BLOCKS, "\n", "column.*its line ends have the phrase"),
        (mw.JsonString(BLOCKS), "#i", "column.*its line ends have the phrase"),
    ],
)
def test_phrases_that_cannot_be_left_out_say_why(source: mw.Source, phrase: str, message: str) -> None:
    with pytest.raises((GrammarError, UnsatisfiableError), match=message):
        mw.compile(source - mw.Contains([phrase]), VOCABULARY)


PYTHON = mw.shipped_grammar("python")


@pytest.mark.slow
def test_python_without_some_names() -> None:
    words = ("import", "eval", "exec")
    source: mw.Source = PYTHON
    for word in words:
        source = source - mw.Contains([word])
    compiled = mw.compile(source, VOCABULARY, limits=mw.Limits(max_seconds=60))
    for text in ("def f(x):\n    return x\n", "ev = eva(l)\n", "imp.ort\n"):
        assert accepts(compiled, text)
    for text in (
        "import os\n",
        "x = 1  # eval\n",
        "x = 'exec'\n",
        "if x:\n    # import\n    y\n",
        "reimport = 1\n",
    ):
        assert not accepts(compiled, text)
    for seed in range(20):
        text = finished_walk(compiled, seed).decode()
        ast.parse(text)
        assert not any(word in text for word in words)
