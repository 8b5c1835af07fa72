"""Modes of a lexer (``%mode``, ``rule[mode=...]``), against a reader written by hand that knows every text."""

from __future__ import annotations

from functools import cache
from itertools import product

import pytest
import toys
from places import ROOT
from reference_lexing import LexingOracle

import maskwright
from maskwright import GrammarError, LimitError, Limits, Vocabulary
from maskwright.frontends.lark import modes
from maskwright.frontends.parts import lark_part

TEMPLATES = r"""
start: main
main: (NAME | "(" main ")" | template)*
template: OPENING text
text[mode=text]: CHARS? (FIELD field CHARS?)* CLOSING
field[mode=main]: main END
NAME: /a+/
OPENING: "`"
END: "}"
%ignore " "
%ignore /#[^#]*#/

%mode text
CHARS: /[a#(]+/
FIELD: "{"
CLOSING: /`/
"""
"""Names, brackets and templates, with blanks and comments between them; in a template, fields of the same."""
ALPHABET = "a `{}(#"
LONGEST = 5


def reading(text: str) -> tuple[bool, bool]:
    """Whether a text begins one of the language, and whether it is one.  Whatever was opened can be closed."""
    stack = ["main"]
    for letter in text:
        match stack[-1], letter:
            case ("main" | "bracket" | "field", "a" | " ") | ("text", "a" | "#" | "("):
                pass
            case "comment", "#":
                stack.pop()
            case "comment", _:
                pass
            case (("main" | "bracket" | "field"), "#"):
                stack.append("comment")
            case (("main" | "bracket" | "field"), "("):
                stack.append("bracket")
            case "bracket", ")":
                stack.pop()
            case (("main" | "bracket" | "field"), "`"):
                stack.append("text")
            case "text", "{":
                stack.append("field")
            case ("field", "}") | ("text", "`"):
                stack.pop()
            case _:
                return False, False
    return True, stack == ["main"]


def texts(most: int, alphabet: str = ALPHABET) -> list[str]:
    return ["".join(letters) for n in range(most + 1) for letters in product(alphabet, repeat=n)]


TOKENS = Vocabulary.from_bytes([*(text.encode() for text in texts(2) if text), b"</s>"], eos_ids=[56])


def disagreements(grammar: str, depth: int = 3) -> list[tuple[str, str]]:
    """(text, token) where the mask is not that of the reader; tokens have up to two letters."""
    compiled = maskwright.compile_lark(grammar, TOKENS)
    found = []
    for text in texts(depth):
        matcher = compiled.matcher()
        read = matcher.accept_bytes(text.encode())
        if read != reading(text)[0]:
            found.append((text, ""))
        if not read:
            continue
        mask = toys.allowed(matcher)
        for i, token in enumerate(TOKENS.tokens):
            assert token is not None
            expected = reading(text)[1] if i == 56 else reading(text + token.decode())[0]
            if (i in mask) != expected:
                found.append((text, token.decode()))
    return found


def test_the_masks_are_those_of_the_reader() -> None:
    assert disagreements(TEMPLATES) == []


@cache
def by_bytes(grammar: str) -> maskwright.CompiledGrammar:
    return maskwright.compile_lark(grammar, TOKENS)


def test_every_text_is_read_as_the_reader_does() -> None:
    counted = {True: 0, False: 0}
    for text in texts(LONGEST):
        matcher = by_bytes(TEMPLATES).matcher()
        begins, is_whole = reading(text)
        assert matcher.accept_bytes(text.encode()) == begins, text
        if begins:
            assert matcher.is_accepting == is_whole, text
            assert reading(text + matcher.shortest_completion_bytes().decode())[1], text
        counted[is_whole] += 1
    assert min(counted.values()) > 300


@pytest.mark.parametrize(
    ("change", "text"),
    [
        # Blanks are dropped within the text of a template too.
        (("%mode text", '%mode text\n%ignore " "'), "` "),
        # And comments, which the text would be.
        (("%mode text", "%mode text\n%ignore /#[^#]*#/"), "`# "),
        # No mode at all: the text is read with what is ignored around it.
        (("text[mode=text]", "text"), "` "),
        # A field is read in the mode of the text around it.
        (("field[mode=main]", "field"), "`{ "),
    ],
)
def test_a_wrong_mode_is_found(change: tuple[str, str], text: str) -> None:
    grammar = TEMPLATES.replace(*change)
    assert grammar != TEMPLATES
    if change[1] == "text":
        # Then what the mode defines belongs to all.
        grammar = grammar.replace("%mode text\n", "").replace("field[mode=main]", "field")
    wrong = {before + token for before, token in disagreements(grammar, depth=2)}
    assert any(each.startswith(text) for each in wrong), sorted(wrong)[:20]


# --- modes mean what they mean in a grammar that says it at length


def test_what_is_ignored_where() -> None:
    """Before each terminal, what its own mode ignores; at the end, what the main one does."""
    grammar = 'start: "a" x "a"\nx[mode=m]: "b" "b"\n%ignore " "\n%mode m\n%ignore "c"'
    compiled = by_bytes_of(grammar, "abc ")
    for text in texts(7, "abc "):
        pieces = "".join(text.split())
        expected = (
            pieces.replace("c", "") == "abba"
            # Blanks before an "a" and at the end, "c" before a "b".
            and all(
                (letter == " ") == (following in ("a", "")) for letter, following in _ignored_before(text)
            )
        )
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == expected, text


def _ignored_before(text: str) -> list[tuple[str, str]]:
    """Each letter that is ignored, and the one that is not behind it."""
    found, following = [], ""
    for letter in reversed(text):
        if letter in " c":
            found.append((letter, following))
        else:
            following = letter
    return found


def by_bytes_of(grammar: str, letters: str) -> maskwright.CompiledGrammar:
    vocabulary = Vocabulary.from_bytes(
        [*(letter.encode() for letter in letters), b"</s>"], eos_ids=[len(letters)]
    )
    return maskwright.compile_lark(grammar, vocabulary)


@pytest.mark.slow
@pytest.mark.sanitized
@pytest.mark.parametrize(
    "grammar",
    [
        # A name stands for something else in a mode, or for nothing.
        'start: (W | "(" x ")")+\nx[mode=m]: W | start_\nstart_: "(" W ")" | V\nW: /a+/\nV: "c"\n%ignore " "\n'
        "%mode m\nW: /b+/\n%without V",
        # Two modes in one place: each terminal may be waited for, and what either ignores may come.
        'start: (x | y)* \nx[mode=m]: "a"\ny[mode=n]: /b+/\n%mode m\n%ignore " "\n%mode n\n%ignore "c"',
        # Longer matches across the border of a mode.
        'start: A x A?\nx[mode=m]: B+\nA: /a+/\nB: /ab|b/\n%ignore " "\n%mode m\n%ignore /c+/',
        # The start itself has a mode.
        'start[mode=m]: "a" start? "b"\n%mode m\n%ignore " "',
    ],
)
def test_masks_are_those_of_the_definition(grammar: str) -> None:
    """``reference_lexing.py`` reads longer texts straight from the definition."""
    letters = "abc( )" if "(" in grammar else "abc "
    vocabulary = Vocabulary.from_bytes([*(letter.encode() for letter in texts(2, letters)[1:]), b"</s>"],
                                       eos_ids=[len(texts(2, letters)) - 1])  # fmt: skip
    compiled = maskwright.compile_lark(grammar, vocabulary)
    oracle = LexingOracle(lark_part(grammar, "start", "contextual", (), None, Limits()).make())
    longest = 5 if len(letters) > 4 else 6
    whole = oracle.texts(letters.encode(), longest)
    begun = {text[:end] for text in whole for end in range(len(text) + 1)}
    assert len(whole) > 10
    for text in sorted(begun):
        if len(text) > 3:
            continue
        matcher = compiled.matcher()
        assert matcher.accept_bytes(text) and matcher.is_accepting == (text in whole)
        mask = toys.allowed(matcher)
        for i, token in enumerate(vocabulary.tokens[:-1]):
            assert token is not None
            if i in mask:
                after = matcher.fork()
                assert after.accept_token(i)
                assert oracle.accepts(text + token + after.shortest_completion_bytes()), (text, token)
            else:
                assert text + token not in begun, (text, token)


def test_blocks_by_indentation_around_a_mode() -> None:
    """In a mode, and in what it goes back to, lines mean nothing."""
    grammar = r"""
    start: line+
    line: NAME "=" value _NEWLINE | NAME ":" _NEWLINE _INDENT line+ _DEDENT
    value: NAME | QUOTE text | "(" value ")"
    text[mode=text]: CHARS? (FIELD field CHARS?)* END
    field[mode=main]: value CLOSE
    NAME: /[a-z]/
    CLOSE: /\}/
    QUOTE: "'"
    _NEWLINE: /(\n *)+/
    %ignore " "
    %declare _INDENT _DEDENT

    %mode text
    CHARS: /[a-z\n ]+/
    FIELD: "{"
    END: /'/
    """
    compiled = by_bytes_of(grammar, "abcdefghij =:'{}()\n")
    for text, expected in [
        ("a='b\n c'\n", True),
        ("a:\n  b='c {\n(\nd)}\n'\n  e=f\ng=h\n", True),
        ("a:\n  b='c {\n(\nd)}\n'\n e=f\n", False),
        ("a=' b{c\n}'\n", True),
        ("a=\nb\n", False),
        ("a=(\nb)\n", True),
    ]:
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == expected, text


# --- misuse


@pytest.mark.parametrize(
    ("grammar", "place", "says"),
    [
        ('start: "a"\n%mode', "2:1", "name in small letters"),
        ('start: "a"\n%mode Text', "2:1", "name in small letters"),
        ('start: "a"\n%mode main', "2:7", "in which a grammar begins"),
        ('start: "a"\n%mode m\n%mode m', "3:7", "there twice"),
        ('start: "a"\n%mode m\nx: "a"', "3:1", "x[mode=m]"),
        ('start: "a"\n%mode m\nx[mode=m]: "a"', "3:1", "rules stand before"),
        ('start: "a"\n%mode m\n%import common.WS', "3:1", "stands before the first %mode"),
        ('start: "a"\n%mode m\n%ignore WS', "3:11", "ignores WS, which is no terminal"),
        ('start: A\nA: "a"\n%mode m\n%without', "4:1", "names of terminals"),
        ('start: A\nA: "a"\n%mode m\n%use a b', "4:1", "two modes"),
        ('start: A\nA: "a"\n%mode m\n%use m -> n', "3:1", "no mode 'n'"),
        ('start: A\nA: "a"\n%mode m\n%without B', "3:1", "there is none outside"),
        ('start: A\nA: "a"\n%mode m\nA: "b"\n%without A', "3:1", "defines it as well"),
        ('start: x\nx[mode=n]: "a"\n%mode m', "2:3", "write %mode n"),
        ('start: x\nx[mode=txt]: "a"\n%mode text', "2:3", "did you mean text"),
        ('start: X\nX[mode=m]: "a"\n%mode m', "2:3", "modes belong to rules"),
        ('start: x\nx[mode]: "a"\n%mode m', "2:3", "mode needs a value"),
        ('start: A x\nx[mode=m]: B A\nA: "a"\nB: "b"\n%mode m\n%ignore A\n', None, None),
        ('start: A x\nx[mode=m]: B\nA: "a"\nB: "b"\n%mode m\n%ignore A\n', None, "ignored in the mode m"),
        ('start: x\nx[mode=m, capture]: "a"\n%mode m', None, "captures are not supported"),
    ],
)  # fmt: skip
def test_refused(grammar: str, place: str | None, says: str | None) -> None:
    if says is None:
        # Nothing reads what the mode drops.
        with pytest.raises(maskwright.UnsatisfiableError):
            by_bytes_of(grammar.replace("start: A x", "start: x"), "ab")
        return
    with pytest.raises(GrammarError) as caught:
        by_bytes_of(grammar, "ab")
    assert says in str(caught.value)
    assert caught.value.place == place


def test_a_mode_says_which_ones_are_entered_in_it() -> None:
    """Texts within a loop may have a "b", and within a function an "r", also in loops of functions."""
    grammar = """
    start: item*
    item: "a" | BREAK | RETURN | "l(" loop ")" | "f(" function ")"
    loop[mode=loop]: item*
    function[mode=function]: item*
    BREAK: "b"
    RETURN: "r"
    %without BREAK RETURN

    %mode loop
    %without RETURN
    %mode function
    %without BREAK
    %use loop -> both
    %mode both
    %use loop -> both
    """
    compiled = by_bytes_of(grammar, "abrlf()")
    for text, expected in [
        ("al(ab)a", True),
        ("b", False),
        ("f(ar)", True),
        ("f(b)", False),
        ("f(l(br))", True),
        ("f(l(l(br)))", True),
        ("l(r)", False),
        ("l(f(r))", True),
        ("l(f(b))", False),
        ("f(l(f(b)))", False),
    ]:
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == expected, text


def test_the_page_on_modes() -> None:
    page = (ROOT / "docs" / "grammars.md").read_text("utf-8")
    snippet = page.partition("### Modes")[2].partition("```python\n")[2].partition("```")[0]
    names = {"maskwright": maskwright, "vocabulary": Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])}  # fmt: skip
    exec(snippet, names)
    assert names["matcher"].is_accepting  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("grammar", "whole", "refused"),
    [
        # Comments, other ends of lines, definitions of several lines, uses within a mode of what it defines.
        (
            'start: x\nx[mode=m]: T U\n%mode m // c\n%ignore " " // blanks\n# z\nT: "a"\n | "b"\nU: T "c"',
            " b ac",
            "a c",
        ),
        ('start: x\r\nx[mode=m]: "b" "b"\r\n%mode m\r\n%ignore " "\r\n', " b b", "bb "),
        # Texts and patterns are no names; templates, values and early ends have modes too.
        ('start: x\nx[mode=m]: T "T"\n%mode m\nT: /T/', "TT", "T T"),
        ('start: t{"a"}\nt{x}: y x\ny[mode=m]: "b"\n%ignore "c"\n%mode m\n%ignore " "', " bca", "cba"),
        ('start: x\nx[mode=m]: %json {"type": "integer"} "b"\n%mode m\n%ignore " "', " 1 b", "1b "),
        ('start: x "c"\nx[mode=m, suffix="e"]: /[a-d]*/\n%ignore " "\n%mode m', "ce c", " cec"),
        # A mode within itself, and one that nothing enters.
        ('start[mode=m]: a\na[mode=n]: "(" start ")" | "x"\n%mode m\n%mode n\n%ignore " "', "( x )", "(x) "),
        ('start: "a"\n%ignore " "\n%mode m\n%ignore "b"\nZ: "z"', " a ", "ba"),
    ],
)
def test_texts_of_grammars(grammar: str, whole: str, refused: str) -> None:
    compiled = by_bytes_of(grammar, "".join(map(chr, range(32, 127))))
    for text, expected in ((whole, True), (refused, False)):
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == expected, text


def test_many_modes_meet_a_limit() -> None:
    rules = "\n".join(f'x{i}[mode=m{i}]: "a" y0 | "b"' for i in range(100))
    chain = "\n".join(f'y{i}: "c" y{i + 1}' for i in range(100)) + '\ny100: "d"'
    modes = "\n".join(f"%mode m{i}" for i in range(100))
    grammar = f"start: {' | '.join(f'x{i}' for i in range(100))}\n{rules}\n{chain}\n{modes}"
    with pytest.raises(LimitError) as caught:
        maskwright.compile_lark(grammar, TOKENS, limits=Limits(max_rules=5000, max_seconds=60))
    assert caught.value.limit == "max_rules"


def test_the_dynamic_lexer_has_no_modes() -> None:
    with pytest.raises(GrammarError, match="modes need the contextual lexer"):
        maskwright.compile_lark(TEMPLATES, TOKENS, lexer="dynamic")


def test_the_validator_knows_modes() -> None:
    report = maskwright.check_grammar(maskwright.Lark(TEMPLATES))
    assert report.findings == []


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ('start: x\nx[mode=m]: "if"\n%mode m\nIF: "x"', "calls IF, as a terminal of the mode m is called"),
        ('start: x\nx[mode=m]: "+" PLUS\n%mode m\nPLUS: "p"', "calls PLUS"),
        (
            "start: x\nx[mode=m, lazy]: C\nC: /[a-z]*x/\n%mode m\nC: /[0-9]+x/",
            "2:17: x is read as one terminal, and the mode m",
        ),
        ('start: x\nx[mode=m, suffix=T]: /[0-9]*/\nT: "<"\n%mode m\nT: ">"', "defines T anew"),
        ('start[mode=m]: x\nx[stop="."]: "a"\n  | C\nC: /[a-z]/\n%mode m\nC: /[0-9]/', "defines C anew"),
    ],
)
def test_what_would_be_read_as_something_else(grammar: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message):
        maskwright.compile_lark(grammar, toys.byte_vocabulary())


def test_what_the_main_mode_ignores_comes_at_the_end() -> None:
    """Whatever the rules are read in."""
    for more in ("", ' | x\nx[mode=main]: "b"'):
        text = f'start[mode=m]: "a" "a"{more}\n%ignore " "\n%mode m\n%ignore "c"'
        matcher = maskwright.compile_lark(text, toys.byte_vocabulary()).matcher()
        assert matcher.accept_bytes(b"aca") and matcher.is_accepting
        assert matcher.accept_bytes(b"  ") and matcher.is_accepting


@pytest.mark.parametrize("many", [0, 100])
def test_what_is_the_same_in_two_modes_is_there_once(many: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums have no break: one copy of them will do in all loops, but for the mode in which something else is ignored.

    Where copies are few, all are kept.
    """
    monkeypatch.setattr(modes, "_MANY_RULES", many)
    grammar = """
    start: item*
    item: sum ";" | BREAK | "{" loop "}" | "[" other "]"
    sum: sum "+" sum | "a" | "(" sum ")"
    loop[mode=loop]: item*
    other[mode=other]: sum
    BREAK: "b"
    BLANK: " "
    %ignore BLANK
    %without BREAK

    %mode loop
    %ignore BLANK
    %mode other
    %ignore "c"
    """
    made = lark_part(grammar, "start", "contextual", (), None, Limits()).make()
    names = [name for name in made.names if name.startswith(("item", "sum"))]
    assert sorted(names) == ["item", "item@loop", "sum", *(["sum@loop"] if many else []), "sum@other"]
    compiled = by_bytes_of(grammar, "ab+;{}[]() c")
    for text, expected in [
        ("a + a;{b a; [ca]}", True),
        ("b", False),
        ("[a c+a]{ b{ (a );}}", True),
        ("{[ a]}", False),
        ("{a c;}", False),
    ]:
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(text.encode()) and matcher.is_accepting) == expected, text


def test_a_terminal_of_a_mode_may_be_made_of_parts() -> None:
    found = by_bytes(
        'start: "a" x "b"\nx[mode=m]: S\nS: "k"\n%mode m\nS: %regex {"substring_chars": "xyz"}\n'
    )

    def takes(text: str) -> bool:
        matcher = found.matcher()
        return matcher.accept_bytes(text.encode()) and matcher.is_accepting

    assert takes("axyb") and takes("azb") and takes("ab")
    assert not takes("akb") and not takes("axzb")
