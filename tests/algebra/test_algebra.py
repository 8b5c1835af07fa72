"""Expressions over sources against set operations on all texts up to a length."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pydantic
import pytest
import toys

import maskwright as mw
from maskwright.compiling.shipped import shipped_grammar
from maskwright.errors import GrammarError, LimitError, UnsatisfiableError
from maskwright.generation.outputs import Output

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_ids=[256])
SEVERAL = mw.Vocabulary.from_bytes(
    [
        *(bytes([i]) for i in range(256)),
        b"",
        *(x.encode() for x in ("ab", "ba", "if", '":', ', "', "end", "aa")),
    ],
    eos_ids=[256],
)

NESTED = mw.GBNF('root ::= "(" root ")" root | "x" | ""')
PALINDROME = mw.GBNF('root ::= "a" root "a" | "b" root "b" | "a" | "b" | ""')
KEYWORD = mw.Lark('start: NAME+ "if"\nNAME: /[if]+/\n%ignore " "')
WORDS = mw.Lark('start: (NAME | "if" "(" start ")" | "<" | "<=")+\nNAME: /[if]+/\n%ignore / +/')
COMMENTS = mw.Lark('start: "a" (";" "a")*\nCOMMENT: /#[^\\n]*/\n%ignore COMMENT\n%ignore "\\n"')
BOXES = mw.Lark('start: BOX ("," BOX)*\nBOX: "<" /[ab]*/ ">"\n%ignore " "')
CUT = mw.Lark('start: A B?\nA: /[ab]+/\nB: "b"') & mw.Regex("a?b?")
AHEAD = mw.Lark("start: A* B?\nA: /a(?!b)/\nB: /ab+/")
DYNAMIC = mw.Lark('start: NAME+ "if"\nNAME: /[if]+/\n%ignore " "', lexer="dynamic")
OBJECT = mw.JsonSchema(
    {
        "type": "object",
        "properties": {"a": {"enum": [1, 11]}, "b": {"type": "array", "items": {"const": 1}, "maxItems": 2}},
        "additionalProperties": False,
    },
    whitespace="compact",
)
ANY_ORDER = mw.JsonSchema(
    {
        "type": "object",
        "properties": {"a": {"const": 1}, "b": {"const": 1}},
        "required": ["a"],
        "anyOf": [{"properties": {"b": False}}, {"required": ["b"]}],
        "additionalProperties": False,
        "minProperties": 1,
    },
    whitespace="compact",
    property_order="any",
)


def accepts(compiled: mw.CompiledGrammar, text: str) -> bool:
    matcher = compiled.matcher()
    data = text.encode()
    return matcher.accept_tokens(list(data)) == len(data) and matcher.is_accepting


_known: dict[int, tuple[object, mw.CompiledGrammar]] = {}
"""By the address of a source, which is kept so that no other one gets it."""


def has(source: object, text: str) -> bool:
    """Whether a text is in the language of a source that is compiled alone."""
    key = id(source)
    if key not in _known:
        _known[key] = source, mw.compile(source, VOCABULARY)
    return accepts(_known[key][1], text)


def is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def matches(pattern: str) -> Callable[[str], bool]:
    return lambda text: re.fullmatch(pattern, text, re.DOTALL) is not None


def nested_words(text: str) -> int:
    """How many of x, (x), ((x)) ... a text consists of; -1: it does not."""
    count = 0
    while text:
        found = re.match(r"(\(*)x(\)*)", text)
        if found is None or len(found[2]) < len(found[1]):
            return -1
        text = text[2 * len(found[1]) + 1 :]
        count += 1
    return count


@dataclass
class Case:
    source: object
    oracle: Callable[[str], bool]
    alphabet: str | tuple[str, ...]
    most: int


def both(a: object, pattern: str, alphabet: str | tuple[str, ...], most: int) -> list[Case]:
    """A & R, A - R and R - ~A, as far as there are such."""
    regular = mw.Regex(pattern, flags="s")
    inside = matches(pattern)
    return [
        Case(a & regular, lambda t: has(a, t) and inside(t), alphabet, most),
        Case(a - regular, lambda t: has(a, t) and not inside(t), alphabet, most),
    ]


OPEN_OBJECT = mw.JsonSchema(
    {"type": "object", "properties": {"b": {"type": "string"}}, "maxProperties": 2}, whitespace="compact"
)
ANYTHING = mw.JsonSchema(True, whitespace="compact")
DIFFERENT_ITEMS = mw.JsonSchema(
    {"type": "array", "items": {"type": ["string", "integer"]}, "uniqueItems": True}, whitespace="compact"
)
DIFFERENT_STRINGS = mw.JsonSchema(
    {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, whitespace="compact"
)
TWO_MATCH = mw.JsonSchema(
    {"type": "array", "contains": {"const": "ab"}, "minItems": 2, "maxItems": 3}, whitespace="compact"
)
MEMBERS = (
    '{"b":"ab"',
    '{"ab":"b"',
    '{"b":1',
    ',"ab":1',
    ',"b":"b"',
    ',"c":"ba"',
    ',"c":[1,{"ab":2}]',
    "}",
    "{",
)
ITEMS = ("[", "]", ",", '"ab"', '"bab"', '"b"', "12", "121")


def phrases(a: object, alphabet: str | tuple[str, ...], most: int, *texts: str) -> list[Case]:
    """A with all texts; and without the first."""
    return [
        Case(
            a & mw.Contains(list(texts)),
            lambda t: has(a, t) and all(each in t for each in texts),
            alphabet,
            most,
        ),
        Case(a - mw.Contains(texts[:1]), lambda t: has(a, t) and texts[0] not in t, alphabet, most),
        Case(
            a & mw.Contains(texts[1:]) - mw.Contains(texts[:1]),
            lambda t: has(a, t) and texts[0] not in t and all(each in t for each in texts[1:]),
            alphabet,
            most,
        ),
    ]


JSON_PARTS = ("{", "}", "[", "]", ":", ",", '"a"', '"b"', "1", "11")
CASES = {
    "nested": both(NESTED, ".{0,4}|.{7}", "()x", 7),
    "nested with a word": both(NESTED, r".*x\)\(.*", "()x", 7),
    "left and right": both(PALINDROME, "(a|bb)*", "ab", 8),
    "records": both(OBJECT, r".*1\].*|\{\}|.*1.*:.*", JSON_PARTS, 5),
    "records in any order": both(ANY_ORDER, '.*b.*a.*|.*"a":1}', ('{"a":1', '{"b":1', ',"a":1', ',"b":1', "}", "1"), 4),
    "keyword": both(KEYWORD, "(..)*", "if ", 6),
    "keyword counted": both(KEYWORD, "[^i]*i[^i]*i?", "if ", 6),
    "context": both(WORDS, r".*\(i.*|.*<", "if(<=) ", 6),
    "longest match": both(WORDS, r"[^=]*<(if|=)?", "if<= ", 6),
    "comments": both(COMMENTS, r".*#a.*", "a#;\n", 7),
    "look-ahead": both(AHEAD, "(..)*", "ab", 8),
    "look-ahead beside another": both(mw.Lark('start: "a"+ B | T\n%ignore " "\nB: "b"\nT: /a+(?! )/'), "(..)*", "ab ", 6)
    + both(mw.Lark('start: "a"+ T? "c"?\n%ignore " "\nT: /a+(?! )/'), "(..)*", "ac ", 6),
    "dynamic": both(DYNAMIC, "(..)*", "if ", 6),
    "several at once": [
        Case(
            NESTED & mw.Regex("x?[^x]*") & mw.Regex(".{2,6}") - mw.Regex(r"\(\(.*"),
            lambda t: has(NESTED, t) and matches("x?[^x]*")(t) and 2 <= len(t) <= 6 and not t.startswith("(("),
            "()x",
            7,
        )
    ],
    "union": [
        Case(NESTED | mw.Regex("y+") | PALINDROME, lambda t: has(NESTED, t) or has(PALINDROME, t) or matches("y+")(t), "()xyab", 4),
        Case(KEYWORD | mw.Regex("f i"), lambda t: has(KEYWORD, t) or t == "f i", "if ", 6),
        Case(mw.Optional(KEYWORD), lambda t: t == "" or has(KEYWORD, t), "if ", 5),
    ],
    "sequence": [
        Case(NESTED + mw.Choice(["x", "()"]), lambda t: any(has(NESTED, t[:i]) and t[i:] in ("x", "()") for i in range(len(t) + 1)), "()x", 7),
        Case(mw.Regex("[if]?") + KEYWORD, lambda t: has(KEYWORD, t) or (t[:1] in ("i", "f") and has(KEYWORD, t[1:])), "if ", 6),
    ],
    "repetition": [
        Case(PALINDROME * 2, lambda t: any(has(PALINDROME, t[:i]) and has(PALINDROME, t[i:]) for i in range(len(t) + 1)), "ab", 8),
        Case(mw.Regex("ab?") * (1, 3), matches("(ab?){1,3}"), "ab", 7),
        Case(mw.GBNF('root ::= "(" root ")" | "x"') * (2, None), lambda t: nested_words(t) >= 2, "()x", 6),
    ],
    "complement": [
        Case(~mw.Regex("a*b?") & mw.Regex("[ab]*"), lambda t: matches("[ab]*")(t) and not matches("a*b?")(t), "abc", 6),
        Case(mw.Not(mw.Choice(["a", "", "ba"])) & mw.Regex("[ab]{0,4}"), lambda t: len(t) < 5 and t not in ("a", "", "ba"), "ab", 6),
        Case(mw.Regex("[ab]*") - mw.JsonSchema({"enum": [1]}), matches("[ab]*"), "ab1", 4),
    ],
    "of what is cut out of a grammar with a lexer": [
        Case(mw.JsonString(CUT), lambda t: t in {'"a"', '"b"', '"ab"'}, '"ab', 5),
        Case(mw.Optional(CUT) & mw.Regex("[abc]*"), lambda t: t in {"", "a", "b", "ab"}, "abc", 5),
        Case(mw.JsonString(CUT) & mw.Regex('"[^a]*"'), lambda t: t == '"b"', '"ab', 5),
        Case((mw.JsonString(CUT) + mw.Regex("x?")) - mw.Choice(['"a"', '"b"x']), lambda t: t in {'"ab"', '"a"x', '"b"', '"ab"x'}, '"abx', 6),
        Case(mw.JsonString(mw.Optional(CUT)) & mw.Regex("..|...."), lambda t: t in {'""', '"ab"'}, '"ab', 5),
        Case(mw.Regex("x") + mw.JsonString(CUT - mw.Regex("a")), lambda t: t in {'x"b"', 'x"ab"'}, 'x"ab', 5),
        Case(mw.JsonString(mw.JsonString(CUT)), lambda t: t[:3] == '"\\"' and t[-3:] == '\\""' and t[3:-3] in {"a", "b", "ab"}, ('"', '\\"', "a", "b"), 7),
    ],
    "phrases": [
        Case(mw.Contains(["ab", "ba"]), lambda t: "ab" in t and "ba" in t, "abc", 6),
        Case(mw.Contains(["ab", "ba"], ordered=True), lambda t: "ab" in t and "ba" in t[t.index("ab") + 2 :], "abc", 6),
        Case(PALINDROME & mw.Contains(["aba", "bb"]), lambda t: has(PALINDROME, t) and "aba" in t and "bb" in t, "ab", 10),
        Case(~mw.Contains(["ab"]) & mw.Regex("[ab]*"), lambda t: matches("[ab]*")(t) and "ab" not in t, "abc", 5),
    ],
    "undeclared members": phrases(OPEN_OBJECT, MEMBERS, 4, "ab", "ba")[:1] + phrases(ANYTHING, MEMBERS, 4, "ab", "b")[:1],
    "different items": phrases(DIFFERENT_ITEMS, ITEMS, 5, "ab", "2") + phrases(DIFFERENT_STRINGS, ITEMS, 5, "ab", "bab")[:1],
    "counted items": phrases(TWO_MATCH, ITEMS, 5, "bab", "ab")[:1],
    "members": phrases(OBJECT, JSON_PARTS, 5, "11", "b") + phrases(ANY_ORDER, ('{"a":1', '{"b":1', ',"a":1', ',"b":1', "}"), 4, "b", "a"),
    "phrases of terminals": phrases(WORDS, "if<= ", 6, "fi", "<=") + phrases(KEYWORD, "if ", 7, "ff", "i f") + phrases(COMMENTS, "a#;\n", 7, "#a", ";a"),
    "phrases that no two terminals share": phrases(BOXES, ("<ab>", "<ba>", "<aba>", "<a>", ",", " "), 5, "ab", "ba"),
    "in a string": [
        Case(
            mw.JsonString(mw.GBNF('root ::= "\\"" root "\\n" | "a"')),
            lambda t: (found := re.fullmatch(r'"((?:\\")*)a((?:\\n)*)"', t)) is not None and len(found[1]) == len(found[2]),
            ('"', "\\n", '\\"', "a", "\\"),
            7,
        ),
        Case(mw.Regex("q:") + mw.JsonString(KEYWORD) + mw.Regex(";"), lambda t: t[:3] == 'q:"' and t[-2:] == '";' and len(t) > 4 and has(KEYWORD, t[3:-2]), ("q:", '"', "i", "f", " ", ";"), 7),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_every_text_is_accepted_exactly_if_the_set_operation_has_it(name: str) -> None:
    for case in CASES[name]:
        assert_texts(case)


def assert_texts(case: Case) -> None:
    """Each short text is accepted exactly if the oracle has it."""
    try:
        compiled = mw.compile(case.source, VOCABULARY)
    except UnsatisfiableError:
        compiled = None
    taken: set[str] = set()
    texts = {""}
    for n in range(case.most + 1):
        texts.update("".join(parts) for parts in itertools.product(case.alphabet, repeat=n))
    wanted = {text for text in texts if case.oracle(text)}
    if compiled is not None:
        taken = {text for text in texts if accepts(compiled, text)}
    assert taken == wanted, (case.source, sorted(taken ^ wanted)[:5])


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow) if name == "different items" else name for name in CASES],
)
def test_masks_lead_to_texts_of_the_language_and_to_nothing_else(name: str) -> None:
    rng = random.Random(name)
    for case in CASES[name]:
        assert_masks(case, rng)


def assert_masks(case: Case, rng: random.Random) -> None:
    """Along random walks, masks have what short texts go on with, and whatever they allow leads to a text of the oracle."""
    try:
        compiled = mw.compile(case.source, SEVERAL)
    except UnsatisfiableError:
        return
    texts = [
        "".join(parts)
        for n in range(min(case.most, 4) + 1)
        for parts in itertools.product(case.alphabet, repeat=n)
    ]
    wanted = [text.encode() for text in texts if case.oracle(text)]
    for _ in range(6):
        matcher = compiled.matcher()
        written = b""
        for _ in range(12):
            mask = mw.allocate_token_bitmask(1, SEVERAL.vocab_size)
            matcher.fill_next_token_bitmask(mask)
            allowed = [i for i in range(SEVERAL.vocab_size) if mask[0, i >> 5] >> (i & 31) & 1]
            assert (256 in allowed) == (is_text(written) and case.oracle(written.decode()))
            after = {
                text[len(written)] for text in wanted if text.startswith(written) and len(text) > len(written)
            }
            assert after <= set(allowed)
            for token in rng.sample(allowed, min(len(allowed), 8)):
                if token == 256:
                    continue
                fork = matcher.fork()
                assert fork.accept_token(token)
                rest = fork.shortest_completion()
                data = written + SEVERAL.tokens[token] + b"".join(SEVERAL.tokens[t] for t in rest)
                assert case.oracle(data.decode()), data
            more = [token for token in allowed if token != 256]
            if not more:
                break
            token = rng.choice(more)
            assert matcher.accept_token(token)
            written += SEVERAL.tokens[token]


# --- bad input

CONTEXT_FREE = mw.GBNF('root ::= "(" root ")" | "x"')
OPEN = mw.JsonSchema({"type": "object", "properties": {"a": {"type": "integer"}}})
NAMES = mw.JsonSchema(
    {"type": "object", "patternProperties": {"^[jk<]+$": {"type": "boolean"}}, "additionalProperties": False},
    escapes="any",
)
BYTE = mw.Choice([b"\xff"])
DIFFERENT = mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
INDENTED = mw.Lark('start: "a" _NEWLINE [_INDENT start _DEDENT]\n_NEWLINE: /\\n */\n%declare _INDENT _DEDENT')
REFUSED = {
    "two grammars": (CONTEXT_FREE & PALINDROME, GrammarError, "both context-free.*cannot be decided.*GrammarConstraint"),
    "a complement": (~CONTEXT_FREE, GrammarError, "complement only if it is regular.*'root' contains itself"),
    "a difference": (mw.Regex("x*") - CONTEXT_FREE, GrammarError, "taken away if it is regular"),
    "undeclared members": (OPEN & mw.Regex(".{3,9}"), GrammarError, "no two undeclared members.*additional_properties"),
    "different items": (DIFFERENT & mw.Regex(".{3,9}"), GrammarError, "uniqueItems"),
    "blocks": (INDENTED & mw.Regex("(?s).{3,9}"), GrammarError, "column"),
    "bytes": (BYTE & mw.Regex("a"), GrammarError, "no UTF-8"),
    "names with escapes": (NAMES & mw.Contains(["k"]), GrammarError, "no two undeclared members.*additional_properties"),
    "names of characters that may be escaped": (NAMES & mw.Contains(["<"]), GrammarError, "no two undeclared members"),
    "names that cannot have it": (NAMES & mw.Contains(["K"]), UnsatisfiableError, "in JsonSchema.*in Contains"),
    "bytes that are no text": (mw.JsonString(BYTE), GrammarError, "no UTF-8"),
    "nothing in common": (CONTEXT_FREE & mw.Regex("y"), UnsatisfiableError, "in GBNF.*and in Regex.*'y'"),
    "nothing left": (mw.Regex("a|b") - mw.Regex("[ab]"), UnsatisfiableError, "in Regex.*outside of Regex"),
    "no other text": (~mw.Regex("(?s).*"), UnsatisfiableError, "no text is in Not"),
    "no phrase": (mw.Contains([]), GrammarError, "one text at least"),
    "an empty phrase": (mw.Contains(["a", ""]), GrammarError, "some character"),
    "one text": (mw.Contains("abc"), GrammarError, "pass a list"),
    "many phrases": (mw.Contains(list("abcdefghijkl")), LimitError, "max_phrases is 10, 12 needed"),
    "a negative count": (mw.Regex("a") * -1, GrammarError, "at least 0"),
    "an empty range": (mw.Regex("a") * (3, 2), GrammarError, "at least 3"),
    "no count": (mw.Regex("a") * 1.5, GrammarError, "integer"),
    "a huge count": (CONTEXT_FREE * 10**12, LimitError, "max_count"),
    "escapes": (mw.JsonString(mw.Regex("a"), escapes="some"), GrammarError, "printed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_exact_result_is_an_error_that_says_why(name: str) -> None:
    source, kind, message = REFUSED[name]
    with pytest.raises(kind, match=message):
        mw.compile(source, VOCABULARY)


def test_operands_that_are_no_sources() -> None:
    for other in ("abc", b"abc", {"type": "integer"}, 3):
        with pytest.raises(GrammarError, match="wrap it"):
            mw.Regex("a") | other
        with pytest.raises(GrammarError, match="wrap it"):
            other + mw.Regex("a")


def test_limits_have_names() -> None:
    with pytest.raises(LimitError, match="max_pairs"):
        mw.compile(PALINDROME & mw.Regex(".{0,40}"), VOCABULARY, limits=mw.Limits(max_pairs=100))
    with pytest.raises(LimitError, match="max_seconds"):
        mw.compile(
            mw.Lark('start: (NAME | NUMBER | "(" start ")")+\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/')
            & mw.Regex(".{0,4000}"),
            VOCABULARY,
            limits=mw.Limits(max_seconds=0.2, max_pairs=10**9),
        )


# --- types, generators, caches


class Person(pydantic.BaseModel):
    name: str
    age: int


def test_types_are_operands() -> None:
    compiled = mw.compile(mw.Regex("none") | Person, VOCABULARY)
    assert accepts(compiled, "none")
    assert accepts(compiled, '{"name": "a", "age": 3}')
    assert not accepts(compiled, "null")
    for source in (Person & mw.Contains(["storm"]), mw.Contains(["storm"]) & mw.Type(Person)):
        compiled = mw.compile(source, VOCABULARY)
        assert accepts(compiled, '{"name": "a storm", "age": 3}')
        assert not accepts(compiled, '{"name": "a", "age": 3}')
    assert accepts(mw.compile(int | mw.Regex("x"), VOCABULARY), "12")
    assert accepts(mw.compile(mw.Type(Literal["a"]) | mw.Regex("x"), VOCABULARY), '"a"')


def test_equal_expressions_are_compiled_once() -> None:
    def source() -> object:
        return (mw.Choice(["a", "b"]) | mw.GBNF('root ::= "(" root ")" | "x"')) & mw.Contains(["x"])

    assert source() == source()
    first = mw.compile(source(), VOCABULARY)
    assert mw.compile(source(), VOCABULARY) is first
    with mw.Compiler(VOCABULARY) as compiler:
        assert compiler.compile(source()).result() is first
    read = mw.CompiledGrammar.from_bytes(first.to_bytes(), SEVERAL)
    assert accepts(read, "((x))")
    assert not accepts(read, "a")


def test_a_text_behind_the_phrase_has_the_masks_of_the_grammar_alone() -> None:
    schema = mw.JsonSchema(
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}
    )
    alone, with_phrase = (
        mw.compile(schema, SEVERAL).matcher(),
        mw.compile(schema & mw.Contains(["ab"]), SEVERAL).matcher(),
    )
    masks = []
    for matcher in (alone, with_phrase):
        assert matcher.accept_tokens(list(b'{"a":"xab')) == 9
        mask = mw.allocate_token_bitmask(1, SEVERAL.vocab_size)
        matcher.fill_next_token_bitmask(mask)
        masks.append(mask.tolist())
    assert masks[0] == masks[1]


def test_the_validator_reports_what_an_expression_cannot_do() -> None:
    assert mw.check_grammar(NESTED & mw.Regex(".{4}")).ok
    report = mw.check_grammar(CONTEXT_FREE & mw.Regex("y"))
    assert not report.ok
    assert "no text is in" in report.findings[0].message


def test_values_of_expressions() -> None:
    assert Output(mw.Type(Person) & mw.Contains(["storm"])).value('{"name": "a storm", "age": 3}') == Person(
        name="a storm", age=3
    )
    assert Output(mw.JsonSchema({"type": "integer"}) - mw.Regex("1")).value("12") == 12
    assert Output(mw.Regex("none") | Person).value("none") == "none"
    assert Output(mw.Contains(["a"])).value("abc") == "abc"


def test_expressions_that_are_nested_too_deeply() -> None:
    source: mw.Regex = mw.Regex("a")
    for _ in range(5000):
        source = ~source
    with pytest.raises(GrammarError, match="nested too deeply"):
        mw.compile(source, VOCABULARY)


def test_structural_tags_and_captures() -> None:
    part = {"type": "tag", "begin": "<f>", "content": {"type": "regex", "pattern": "[a-z]*"}, "end": "</f>"}
    tag = mw.StructuralTag(
        {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": ["<f"], "tags": [part]}}
    )
    compiled = mw.compile(tag & mw.Contains(["storm"]), VOCABULARY)
    assert accepts(compiled, "x<f>storm</f>")
    assert not accepts(compiled, "x<f>calm</f>")
    matcher = mw.compile(
        mw.Lark('start: a "!"\na[capture="q"]: /[a-z]+/') & mw.Contains(["ab"]), VOCABULARY
    ).matcher()
    assert matcher.accept_bytes(b"xab!")
    assert matcher.captures() == {"q": b"xab"}


def test_a_schema_in_a_lark_grammar() -> None:
    text = 'start: "x" j\nj: %json {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}\n%ignore " "'
    compiled = mw.compile(mw.Lark(text) & mw.Regex(".*12.*"), VOCABULARY)
    assert [accepts(compiled, t) for t in ('x {"a":12}', 'x{"a":1}', 'x {"a": 312}')] == [True, False, True]


@pytest.mark.slow
def test_two_phrases_in_sql() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    words = mw.Contains(["users", "price"], ordered=False)
    # Not of time: `max_search` is the default.
    compiled = mw.compile(shipped_grammar("sql") & words, vocabulary, limits=mw.Limits(max_seconds=600.0))
    matcher = compiled.matcher()
    for byte in b"SELECT price FROM users":
        assert byte in toys.allowed(matcher)
        assert not matcher.is_accepting
        assert matcher.accept_token(byte)
    assert matcher.is_accepting


EMBEDDED = mw.Lark('start: N v*\nN: /[ab]+/\nv: %json {"enum": ["a", "b"]}')
PAIRS = mw.Lark('start: "{" pair ("," pair)* "}"\npair: NAME ":" NUMBER\nNAME: /[a-z]+/\nNUMBER: /[0-9]+/')


@pytest.mark.parametrize(
    ("source", "alphabet"),
    [
        (mw.Lark('start: "a"*') & mw.Regex("a"), "a"),
        (mw.Lark('start: "a" | "b"') & mw.Regex("a"), "ab"),
        (mw.Lark('start: "a"? "b"?') - mw.Regex("a|b"), "ab"),
        (mw.Lark('start: "a" start "b" |') & mw.Regex("a*"), "ab"),
        (mw.Lark('start: NAME\nNAME: /a+/\n%ignore " "') & mw.Regex("a"), "a "),
        (mw.Lark('start: A B\nA: "a"+\nB: "b"+\n%ignore " "') & mw.Regex("ab"), "ab "),
        (PAIRS & mw.Regex("[^,]*"), "{}:,b1"),
        (PAIRS & mw.Regex("[^,]*,[^,]*"), "{}:,b1"),
        (mw.Optional(mw.Lark('start: "a"*') & mw.Regex("a")) | mw.Regex("b"), "ab"),
        (EMBEDDED & mw.Regex('ab"a"'), 'ab"'),
        (EMBEDDED & mw.Regex('[^"]*("a"[^"]*)?'), 'ab"'),
    ],
)
def test_terminals_that_do_not_clash_lead_into_no_dead_end(source: object, alphabet: str) -> None:
    """Whatever is allowed can be completed, and the mask allows what is accepted."""
    compiled = mw.compile(source, VOCABULARY)
    bitmask = mw.allocate_token_bitmask(1, VOCABULARY.vocab_size)
    texts = [b""]
    for text in texts:
        matcher = compiled.matcher()
        assert matcher.accept_bytes(text)
        ended = matcher.fork()
        assert ended.accept_bytes(ended.shortest_completion_bytes()) and ended.is_accepting, text
        matcher.fill_next_token_bitmask(bitmask)
        for c in alphabet.encode():
            accepted = matcher.fork().accept_token(c)
            assert accepted == bool(bitmask[0, c >> 5] >> (c & 31) & 1), (text, c)
            if accepted and len(text) < 6:
                texts.append(text + bytes([c]))


@pytest.mark.parametrize(
    ("source", "texts", "others"),
    [
        (BYTE | mw.Regex("a"), [b"\xff", b"a"], [b"", b"b", b"\xfe"]),
        (BYTE + mw.Regex("a+"), [b"\xffa", b"\xffaa"], [b"\xff", b"a"]),
        (mw.Optional(BYTE), [b"", b"\xff"], [b"\xff\xff"]),
        (BYTE * 2, [b"\xff\xff"], [b"\xff", b"\xff\xff\xff"]),
        (
            BYTE | mw.Choice(["a"]) | BYTE + mw.Not(mw.Regex("a")),
            [b"\xff", b"a", b"\xff", b"\xffb"],
            [b"\xffa"],
        ),
    ],
)
def test_choices_of_bytes_that_are_no_text(source: object, texts: list[bytes], others: list[bytes]) -> None:
    grammar = mw.compile(source, VOCABULARY)
    for text in [*texts, *others]:
        matcher = grammar.matcher()
        assert (matcher.accept_tokens(list(text)) == len(text) and matcher.is_accepting) == (text in texts), (
            text
        )


@pytest.mark.parametrize("options", [5, None, "ab", b"ab"])
def test_choices_of_no_options(options: Any) -> None:
    for source in (mw.Choice(options), mw.Choice(options) | mw.Choice(["a"])):
        with pytest.raises(GrammarError, match="options"):
            mw.compile(source, VOCABULARY)
