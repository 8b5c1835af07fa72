"""Lark grammars: against Lark itself, and what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import lark
import lark.load_grammar
import lark_grammars as texts
import pytest
from byte_walks import accepts, finished_walk

import maskwright as mw
from maskwright import Vocabulary
from maskwright.compiling.shipped import shipped_grammar
from maskwright.frontends.lark.reader import read

BYTES = Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
LARK_GRAMMARS = Path(lark.__file__).parent / "grammars"
LARK = (LARK_GRAMMARS / "lark.lark").read_text()
GRAMMARS = {
    "calc": (texts.CALC, texts.CALC_TEXTS),
    "json": (texts.JSON, texts.JSON_TEXTS),
    "sql": (texts.SQL, texts.SQL_TEXTS),
    "c": (texts.C, texts.C_TEXTS),
    "lines": (texts.LINES, texts.LINES_TEXTS),
    "lark": (LARK, [texts.CALC, texts.JSON, (LARK_GRAMMARS / "common.lark").read_text(), LARK]),
}


def ok(grammar: str, text: str, **options: object) -> bool:
    return accepts(mw.compile_lark(grammar, BYTES, **options), text)  # type: ignore[arg-type]


def mutated(text: str, alphabet: str, rng: random.Random) -> str:
    letters = list(text)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(letters) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            del letters[at : at + rng.randint(1, 3)]
        elif kind == 1:
            letters[at : at + 1] = rng.choice(alphabet)
        elif kind == 2:
            letters.insert(at, rng.choice(alphabet))
        else:
            letters[at:at] = letters[(start := rng.randrange(len(letters) + 1)) : start + rng.randint(1, 8)]
    return "".join(letters)


def lark_accepts(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


@pytest.mark.parametrize("name", GRAMMARS)
def test_agrees_with_lark(name: str) -> None:
    grammar, sentences = GRAMMARS[name]
    compiled = mw.compile_lark(grammar, BYTES)
    parser = lark.Lark(grammar, parser="lalr", lexer="contextual")
    rng = random.Random(name)
    alphabet = "".join(sorted(set("".join(sentences))))
    cases = [*sentences, *(mutated(rng.choice(sentences), alphabet, rng) for _ in range(250))]
    found = {text: lark_accepts(parser, text) for text in cases}
    assert sum(found.values()) > len(sentences) / 2
    wrong = [text for text, expected in found.items() if accepts(compiled, text) != expected]
    assert not wrong, wrong[0]


# Not C: LALR merges what may come behind a declaration at the top and in a block, so that Lark reads "doubleC"
# there as a name where only a type can come.
@pytest.mark.parametrize("name", ["calc", "json", "sql", "lines"])
def test_walks_are_parsed_by_lark(name: str) -> None:
    grammar, _ = GRAMMARS[name]
    compiled = mw.compile_lark(grammar, BYTES)
    parser = lark.Lark(grammar, parser="lalr", lexer="contextual")
    for seed in range(12):
        text = finished_walk(compiled, seed).decode()
        assert lark_accepts(parser, text), text


# --- what grammars mean


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('start: ("list" | "listen") "ed"', ["listed", "listened"], ["listen", "listeed"]),
        ('start: ("if" | NAME) NUM?\nNAME: /[a-z]+/\nNUM: /\\d+/\n%ignore " "', ["if", "iff 1", "x", " if1 "], ["1", "i f"]),
        # A keyword where only a name may stand is a name.
        ('start: "let" NAME\nNAME: /[a-z]+/\n%ignore " "', ["let x", "let let", "letx"], ["let", "le t"]),
        ('start: "a"i ("b".."d")~2..3', ["abc", "Abcd"], ["ab", "abcdd", "aBc"]),
        ('start: _sep{"x", ","}\n_sep{item, mark}: item (mark item)*', ["x", "x,x"], ["", "x,"]),
        ('start: A "b"\nA.2: /a|ab/\nB: "ab"', ["ab b".replace(" ", "")], ["ab", "a b"]),
        ("start: A*\nA: /a/x\n%ignore /\\s/", ["", " a a ", "aa"], ["b"]),
        # Ambiguous, nullable, cyclic, left- and hidden-left-recursive.
        ('start: start start | "a" | start |', ["", "a", "aaaa"], ["b"]),
        ('start: e start "b" | "a"\ne: | "c"', ["a", "ab", "cab", "cabb"], ["b", "ac"]),
        ("start: STRING+\nSTRING: /\".*?\"/", ['"a"', '"a""b"', '"a" "b"'.replace(" ", "")], ['"a"b"', '"a']),
        ("start: REGEXP\nREGEXP: /\\/(?!\\/)(\\\\\\/|\\\\\\\\|[^\\/])*?\\/[imslux]*/", ["/a/", "/a\\/b/im", "/a\\/"], ["//", "/a/b/", "/a\\/b"]),
        ("start: N \".\"\nN: /[0-9]+(?!0\\.)/", ["10.", "20.", "1."], ["1", "."]),
        ("start: (NUM | NAME)+\nNUM: /\\d+(?![a-z])/\nNAME: /[a-z]+/\n%ignore / /", ["1 a", "a1", "12"], ["1a", "12a"]),
        ("start: (IF | NAME)+\nIF: /if\\b/\nNAME: /[a-z]+/\n%ignore / /", ["if x", "ifx", "if"], []),
        ("start: IF /x/\nIF: /if\\b/\n%ignore / /", ["if x"], ["ifx"]),
    ],
)  # fmt: skip
def test_meaning(grammar: str, good: list[str], bad: list[str]) -> None:
    compiled = mw.compile_lark(grammar, BYTES)
    assert [text for text in good if not accepts(compiled, text)] == []
    assert [text for text in bad if accepts(compiled, text)] == []


def test_dynamic_lexer_splits_in_every_way() -> None:
    grammar = 'start: A B\nA: /a+/\nB: /ab?/\n%ignore " "'
    compiled = mw.compile_lark(grammar, BYTES, lexer="dynamic")
    for text in ("aa", "aaab", " a a ", "aaa b".replace(" ", "")):
        assert accepts(compiled, text), text
    for text in ("a", "ab", "a a b"):
        assert not accepts(compiled, text), text
    contextual = mw.compile_lark(grammar, BYTES)
    assert accepts(contextual, "a ab")
    assert not accepts(contextual, "aab")


def test_imports_from_folders(tmp_path: Path) -> None:
    (tmp_path / "units.lark").write_text('UNIT: "km" | "mi"\nlength: /\\d+/ UNIT\n')
    grammar = "%import units.length\n%import units (UNIT)\nstart: length UNIT"
    assert ok(grammar, "12kmmi", import_paths=(str(tmp_path),))
    (tmp_path / "units.lark").write_text('UNIT: "m"\nlength: /\\d+/ UNIT\n')
    assert ok(grammar, "12mm", import_paths=(str(tmp_path),)), "files are read each time"


def test_override_and_extend(tmp_path: Path) -> None:
    (tmp_path / "base.lark").write_text('start: word\nword: "a"\n')
    grammar = '%import base (start, word)\n%extend word: "b"\n'
    assert ok(grammar, "b", import_paths=(str(tmp_path),))
    grammar = '%import base (start, word)\n%override word: "b"\n'
    assert not ok(grammar, "a", import_paths=(str(tmp_path),))


def test_source_object() -> None:
    compiled = mw.compile(mw.Lark('text: "a"+', start="text"), BYTES)
    assert accepts(compiled, "aaa")
    assert compiled is mw.compile_lark('text: "a"+', BYTES, start="text")


def test_inline_schemas() -> None:
    grammar = """
        // %json { in a comment
        start: "call" NAME "(" argument ")"
        argument: %json {
            "type": "object", "properties": {"a": {"type": "integer"}, "%json": {"enum": ["x y"]}},
            "required": ["a"], "additionalProperties": false
        }
            | %json {"type": "boolean"} "!"
        NAME: /[a-z]+/
        %ignore " "
        """
    for lexer in ("contextual", "dynamic"):
        compiled = mw.compile_lark(grammar, BYTES, lexer=lexer)  # type: ignore[arg-type]
        for text in (
            'call f({"a": 1})',
            'call f (  {"a":1, "%json": "x y"} ) ',
            "call f(true !)",
            "call f( false!)",
        ):
            assert accepts(compiled, text), (lexer, text)
        for text in (
            'call f({"a": "1"})',
            "call f({})",
            "call f(true)",
            "call f(t rue!)",
        ):
            assert not accepts(compiled, text), (lexer, text)
        for seed in range(5):
            finished_walk(compiled, seed)


def test_what_looks_like_a_surrogate() -> None:
    assert ok(r'start: "\\ud800"', r"\ud800")
    assert ok(r'start: "\U0001F600"', "\U0001f600")
    assert ok(r"start: /[^\ud800-\udfff]/", "\U0001f600")
    assert ok(r"start: /a\ud800|b/", "b")


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        ('start: %json {"type": "boolean"}', ["true", "false"], ["", "t"]),
        ("start: ", [""], ["a"]),
        ("start: ()", [""], ["a"]),
        ("start: //", [""], ["a", "/"]),
        ('start: T~0\nT: "a"', [""], ["a"]),
        ('start: a*\na: %json {"const": [1]}', ["", "[1]", "[1][1]"], ["[1],[1]"]),
    ],
)
def test_no_terminals(grammar: str, good: list[str], bad: list[str], lexer: str) -> None:
    for text in good:
        assert ok(grammar, text, lexer=lexer), text
    for text in bad:
        assert not ok(grammar, text, lexer=lexer), text


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
def test_only_a_token(lexer: str) -> None:
    matcher = mw.compile_lark("start: <[65]>", BYTES, lexer=lexer).matcher()  # type: ignore[arg-type]
    assert not matcher.accept_token(66)
    assert matcher.accept_token(65)
    assert matcher.is_accepting


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
@pytest.mark.parametrize(
    ("schema", "begun", "rest"),
    [
        ('{"type": ["null", "object"]}', 'a{\n"', '":0\n}'),
        ('{"type": "object"}', 'a{"k', '":0}'),
        ('{"type": "object", "properties": {"long": {"const": "value"}}, "required": ["long"]}', 'a{"', 'long":"value"}'),
        ('{"type": "object", "additionalProperties": {"const": 12345}}', 'a{"', '":12345}'),
    ],
)  # fmt: skip
def test_completion_of_embedded_json(schema: str, begun: str, rest: str, lexer: str) -> None:
    # What is behind a key counts while the key is read, else every text of so many bytes would be looked at.
    grammar = mw.compile_lark(
        f'start: "a" %json {schema}', BYTES, lexer=lexer, limits=mw.Limits(max_search=2000)
    )
    matcher = grammar.matcher()
    assert matcher.accept_tokens(list(begun.encode())) == len(begun)
    completion = bytes(matcher.shortest_completion())
    assert len(completion) <= len(rest)
    assert accepts(grammar, begun + completion.decode())


# --- what is refused


@pytest.mark.parametrize(
    ("grammar", "place", "says"),
    [
        ('start: "a', "1:8", "cannot stand here"),
        ('start: "x"\n  | missing', "2:5", "missing"),
        ("start: A\nA: B", "2:4", "B"),
        ("start: A\nA: /a*/", None, "empty text"),
        ("start: A\n%declare A", None, "declared"),
        ('other: "a"', None, "no rule 'start'"),
        ("%import nowhere.x\nstart: x", "1:1", "import_paths"),
        (
            "start: NAME\n%import common.CNAM -> NAME",
            "2:16",
            "common.lark has no terminal CNAM: did you mean CNAME?",
        ),
        ("start: a\n%import common (INT, CNAM)\na: INT CNAM", "2:22", "common.lark has no terminal CNAM"),
        ("start: x\n%import python.fooo -> x", "2:16", "python.lark has no rule fooo"),
        ("start: A\nA /x/", "2:3", "this cannot stand here; expected ':' or '.PRIORITY:'"),
        ("start: A\nA: /a(/", None, "terminal A"),
        ("start: A\nA: /(a)\\1/", None, "terminal A"),
        ("start: A\nA: /a$/", None, "anchor"),
        ("start: A\nA: /(?<!b)a/", None, "before"),
        ("start: A\nA: /\\ba/", None, "before"),
        ("start: A\nA: /a(?=b)/", None, "behind"),
        ('start: A\nA: /".*?"(?!"")/', None, "lazy"),
        ('start: x{"a"}\nx{y, z}: y z', None, "template"),
        ('start: "a"\n  b\nb: %json {"a": }', "3:4", "JSON"),
        ('start: %regex {"words": "a"}', "1:8", "%regex"),
        ('start: %lark {start: "a"}', "1:8", "%lark"),
        ("start: <|end|>", "1:8", "no token"),
        ("start: <[1200]>", "1:8", "token ids"),
        ("start: A[lazy]\nA: /a/", "1:10", "lazy"),
        ("start: t\nt{x}: x", "1:8", "rule start uses the template t without"),
        ('start: "t" b // t\nb: t+\nt{x}: x', "2:4", "rule b uses the template t"),
        ("start: t{t}\nt{x}: x", "1:10", "rule t uses the template t"),
        ('start: "a"\n  | "b\\ud83d\\ude00"', "2:7", "surrogate"),
        ('start: A\nA: "\\\\\\ud800"i', "2:7", "surrogate"),
        ('start: a\na[suffix="\\U0000dfff"]: /b/', "2:1", "surrogate"),
        ('start: "\ud800"', "1:9", "surrogate"),
        ("start: A\nA: /\\ud83d\\ude00/", None, "matches nothing"),
    ],
)
def test_refused(grammar: str, place: str | None, says: str) -> None:
    with pytest.raises(mw.GrammarError, match=says) as caught:
        mw.compile_lark(grammar, BYTES)
    assert caught.value.place == place or place is None


def test_terminals_that_swallow_each_other() -> None:
    with pytest.raises(mw.UnsatisfiableError, match="NAMES directly before NAME "):
        mw.compile_lark("start: NAMES NAME\nNAMES: /a+/\nNAME: /ab?/", BYTES)


def test_an_endless_search_meets_its_limit() -> None:
    grammar = 'start: "q" | X tail\ntail: "(" tail ")" | X "x"\nX: /x+/'
    compiled = mw.compile_lark(grammar, BYTES, limits=mw.Limits(max_search=500))
    matcher = compiled.matcher()
    with pytest.raises(mw.LimitError, match="max_search"):
        matcher.accept_bytes(b"xx(")
    assert matcher.accept_bytes(b"q") and matcher.is_accepting


def test_other_arguments() -> None:
    with pytest.raises(mw.GrammarError, match="lexer: expected one of"):
        mw.compile_lark('start: "a"', BYTES, lexer="basic")  # type: ignore[arg-type]
    with pytest.raises(mw.GrammarError, match="is a str"):
        mw.compile_lark(b"start: A", BYTES)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["c", "json", pytest.param("python", marks=pytest.mark.slow), "sql"])
def test_what_a_start_leads_to(name: str) -> None:
    """As the package itself leaves out what is not used."""
    text = texts.plain_python() if name == "python" else shipped_grammar(name).text
    whole = read(text, "start", ())
    loaded, _ = lark.load_grammar.load_grammar(text, "<grammar>", [], False)
    terminals, rules, ignored = loaded.compile(["start"], set())
    used = whole.used("start")
    assert list(used.rules) == list(dict.fromkeys(str(rule.origin.name) for rule in rules))
    assert list(used.terminals) == [terminal.name for terminal in terminals]
    assert used.ignored == list(ignored)


def test_terminals_to_keep_and_rules_that_only_lead_to_each_other() -> None:
    text = 'start: A\nA: "a"\nB: "b"\nC: "c"\nD: "d"\nx: B y\ny: x\n%ignore D'
    used = read(text, "start", ()).used("start", {"C"})
    assert set(used.rules) == {"start"} and set(used.terminals) == {"A", "C", "D"}
