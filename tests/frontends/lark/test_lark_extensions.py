"""What llguidance adds to Lark's language: tokens, ``%regex``, rules that end as early as they can.  Oracles are Python's re, and texts
listed one by one."""

from __future__ import annotations

import json
import re
from itertools import product
from typing import Any

import lark
import pytest
import toys
from hypothesis import given, settings
from hypothesis import strategies as st

import maskwright
from maskwright import GrammarError, Lark, UnsatisfiableError, Vocabulary

VOCABULARY = Vocabulary.from_bytes(
    [
        *(bytes([i]) for i in range(256)),
        b"</s>",
        b"<|tool|>",
        b"<think>",
        b"</think>",
        b"<|eot|>",
        b"<b>",
        None,
    ],
    eos_ids=[256, 260],
    special_ids=[257, 258, 259],
)
LEXERS = ("contextual", "dynamic")


def compiled(grammar: str, lexer: Any = "contextual") -> maskwright.CompiledGrammar:
    return maskwright.compile_lark(grammar, VOCABULARY, lexer=lexer)


def accepts(grammar: maskwright.CompiledGrammar, *parts: str | int) -> bool:
    matcher = grammar.matcher()
    ids = [i for part in parts for i in ([part] if isinstance(part, int) else part.encode())]
    return matcher.accept_tokens(ids) == len(ids) and matcher.is_accepting


def texts(letters: str, most: int) -> list[str]:
    return ["".join(chosen) for n in range(most + 1) for chosen in product(letters, repeat=n)]


# --- rules that end as early as they can

BODIES = ("[ab]*", "(?:a|b|c)+", "a*b?", "(?:ab)*", "[abc]{2,3}", "b|ab|c")
ENDS = ("c", "ab", "b+", "a|ca", "[bc]", "cc?")
TAILS = ("", "a*", "[abc]+", "c?b")


@pytest.mark.parametrize("lexer", LEXERS)
@given(st.sampled_from(BODIES), st.sampled_from(("", *ENDS)), st.sampled_from(TAILS))
@settings(max_examples=30, deadline=None)
def test_the_first_end_counts(lexer: str, body: str, end: str, tail: str) -> None:
    whole = re.compile(f"(?:{body})(?:{end})")
    attributes = f"suffix=/{end}/" if end else "lazy"
    start = f"start: x y\ny: (/{tail}/)?" if tail and not re.fullmatch(tail, "") else "start: x"
    grammar = f"{start}\nx[{attributes}]: /{body}/"
    if whole.fullmatch(""):
        with pytest.raises(GrammarError, match="empty text"):
            compiled(grammar, lexer)
        return
    try:
        found = compiled(grammar, lexer)
    except UnsatisfiableError:
        found = None
    for text in texts("abc", 4):
        ends = [i for i in range(len(text) + 1) if whole.fullmatch(text[:i])]
        rest = text[ends[0] :] if ends else "none"
        expected = bool(ends) and (not rest or ("y" in start and bool(re.fullmatch(tail, rest))))
        assert (found is not None and accepts(found, text)) == expected, (grammar, text)


@pytest.mark.parametrize("lexer", LEXERS)
def test_a_stop_is_read_by_who_comes_behind(lexer: Any) -> None:
    found = compiled('start: (x "<e>")+ "z"\nx[stop="<e>"]: /[a-z<]*/', lexer)
    for text in texts("<ze>", 5):
        parts = text.split("<e>")
        expected = (
            len(parts) > 1 and parts[-1] == "z" and not any(">" in part or "e>" in part for part in parts)
        )
        assert accepts(found, text) == expected, text


@pytest.mark.parametrize("lexer", LEXERS)
def test_calls_within_text(lexer: Any) -> None:
    """As in the manual of llguidance: text, in which a trigger begins a call."""
    found = compiled(
        """
        start: (foo | bar)* TEXT?
        TEXT: /(.|\\n)+/
        foo_head[lazy]: TEXT? "<function"
        foo: foo_head "=foo>" %json {"type": "object"} "</function>"
        bar_head[lazy]: TEXT? "<function"
        bar: bar_head "=bar>" /[0-9]+/ "</function>"
        """,
        lexer,
    )
    assert accepts(found, "some text") and accepts(found, "")
    assert accepts(found, 'so <function=bar>12</function> <function=foo>{"a": 1}</function> and <b>')
    if lexer == "contextual":
        # The trigger ends the text, which could be longer.
        assert found.matcher().longest_prefix(b"a<function=bar>x") == 15
        assert not accepts(found, "a<function=baz>") and accepts(found, "a<functio")


# --- languages of substrings


@pytest.mark.parametrize(
    ("kind", "content", "chunks"),
    [
        ("chunks", ["ab", "a", "b", "", "ab"], ["ab", "a", "b", "ab"]),
        ("chars", "abba", list("abba")),
        ("words", "ab b, a", ["ab", " ", "b", ",", " ", "a"]),
        ("words", "don't  stop!!", ["don", "'", "t", "  ", "stop", "!!"]),
    ],
)
@pytest.mark.parametrize("lexer", LEXERS)
def test_substrings(kind: str, content: Any, chunks: list[str], lexer: Any) -> None:
    runs = {"".join(chunks[i:j]) for i in range(len(chunks)) for j in range(i, len(chunks) + 1)}
    inline = json.dumps({f"substring_{kind}": content})
    for grammar in (f'start: "<" %regex {inline} ">"', f'start: "<" PART ">"\nPART: %regex {inline}'):
        found = compiled(grammar, lexer)
        whole = "".join(chunks)
        cut = {whole[i:j] for i in range(len(whole)) for j in range(i, len(whole) + 1)}
        for text in cut | runs:
            assert accepts(found, f"<{text}>") == (text in runs), text
        assert not accepts(found, f"<{whole}{whole}x>")


@pytest.mark.slow
def test_long_substrings_cost_what_they_are_long() -> None:
    content = " ".join(f"word{i}" for i in range(5000))
    found = compiled(f"start: %regex {json.dumps({'substring_words': content})}")
    assert accepts(found, "word17 word18 word19") and not accepts(found, "word17 word19")


# --- patterns of several lines


@pytest.mark.parametrize(
    "pattern",
    ["\n  a [bc]\n  d\n", "\n  %mode\n  d\n", "\n %use\n", "a\n  c [lazy]: d", "a\n x.2 [lazy] # b\n"],
)
def test_what_looks_like_attributes_in_a_pattern_of_several_lines(pattern: str) -> None:
    grammar = f"start: A\nA: /{pattern}/x\n"
    reader = lark.Lark(grammar, parser="lalr")
    found = compiled(grammar)
    for text in ("abd", "acd", "%moded", "%use", "acl:d", "acz:d", "ax2l", "a"):
        try:
            is_right = bool(reader.parse(text))
        except lark.exceptions.LarkError:
            is_right = False
        assert accepts(found, text) == is_right, text


# --- ends


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize(
    ("grammar", "pattern"),
    [
        ('start: x\nx[suffix="e"]: /[a-e]*?/', "(?:[a-e]*?e)"),
        ('start: x\nx[suffix="ee"]: /(.|\\n)*?/', "(?:(?s:.)*?ee)"),
        ('start: x "e"\nx[stop="e"]: /[a-e]+?/', "(?:[a-e]+?e)"),
        ('start: x\nx[suffix="e"]: /a.*?b|c/', "(?:(?:a.*?b|c)e)"),
        ("start: x\nx[lazy]: /[a-e]*?e/", "(?:[a-e]*?e)"),
    ],
)
def test_bodies_with_lazy_quantifiers_end_where_their_end_is_found(
    grammar: str, pattern: str, lexer: Any
) -> None:
    """As Python's ``re`` says: the whole text is the first match of body and end, and no shorter one."""
    found = compiled(grammar, lexer)
    for size in range(5):
        for text in map("".join, product("abce", repeat=size)):
            first = min((n for n in range(size + 1) if re.fullmatch(pattern, text[:n])), default=None)
            assert accepts(found, text) == (first == size), text


# --- tokens


@pytest.mark.parametrize("lexer", LEXERS)
def test_tokens_between_texts(lexer: Any) -> None:
    found = compiled('start: <think> /[^<]+/ </think> ("a" | <|tool|> "b" <|eot|>)\n%ignore " "', lexer)
    assert accepts(found, 258, "hm", 259, "a") and accepts(found, 258, " hm", 259, " ", 257, "b", 260)
    assert not accepts(found, "<think>", "hm", 259, "a") and not accepts(found, 258, "hm", "</think>", "a")


@pytest.mark.parametrize(
    ("spelled", "ids"),
    [
        ("<[65]>", {65}),
        ("<[65-67, 70]>", {65, 66, 67, 70}),
        ("<[^0-255,258]>", {257, 259, 261}),
        ("<[*]>", {*range(256), 257, 258, 259, 261}),
        ("<[256-261]>", {256, 257, 258, 259, 260, 261}),
        ("<b>", {261}),
    ],
)
def test_sets_of_tokens(spelled: str, ids: set[int]) -> None:
    matcher = compiled(f'start: {spelled} "z"').matcher()
    assert {i for i in range(len(VOCABULARY)) if matcher.validate_tokens([i])} == ids


def test_what_looks_like_a_token_elsewhere() -> None:
    grammar = 'start: "<|tool|>" /<b>/ // <[no]>\n  "<[1]>"  # <x>\n'.replace("\n  ", " ")
    assert accepts(compiled(grammar.replace("// <[no]> ", "")), "<|tool|><b><[1]>")


# --- misuse


@pytest.mark.parametrize(
    ("grammar", "place", "says"),
    [
        ('start: a\na[lazzy]: "x"', "2:3", "no attribute lazzy"),
        ('start: a\na[capture, capture]: "x"', "2:12", "twice"),
        ('start: a\na[capture=""]: "x"', "2:3", "needs a name"),
        ('start: a\na[capture "x"]: "x"', "2:3", "written"),
        ('start: a\na[capture] "x"', "2:11", "colon"),
        ('start: a\na[stop]: "x"', "2:3", "needs a value"),
        ('start: a\na[lazy=1]: "x"', "2:3", "no value"),
        ('start: a\na[stop="x", suffix="y"]: "x"', "2:1", "only one"),
        ('start: a\na[stop=""]: "x"', "2:3", "some text"),
        ('start: a\na[suffix=<b>]: "x"', "2:3", "write <b> behind a"),
        ('start: a\na[stop_capture="s"]: "x"', "2:3", "stop_capture"),
        ('start: a\na[max_tokens=5]: "x"', "2:3", "max_tokens cannot be enforced"),
        ('start: a\na[temperature=0.5]: "x"', "2:3", "temperature cannot be enforced"),
        ('start: A\nA[lazy]: "x"', "2:1", "belong to rules"),
        ('start: a "y"\na[stop="x"]: /[a-w]+/', "2:1", "its stop must stand"),
        ('start: a "x."\na[stop=/x./]: /[a-w]+/', "2:1", "its stop must stand"),
        ('start: a "X"\na[stop="x"i]: /[a-w]+/', "2:1", "its stop must stand"),
        ('start: a\na[lazy]: b\nb: "x"', "2:10", "Rules aren't allowed"),
        ("start: a\na[lazy]: /x*/", "2:1", "empty text"),
        ("start: a\na[lazy]: /x(?!y)/", "2:1", "looks ahead"),
        ("start: a\n\na[suffix=Q]: /x/", "3:1", "Q"),
        ("start: A\nA: <[7]>", "2:4", "cannot be part of the terminal"),
        ("start: <[7-5]>", "1:8", "empty"),
        ("start: <[x]>", "1:8", "written"),
        ("start: <|tol|>", "1:8", "did you mean <|tool|>"),
        ("start: <[262]>", "1:8", "no such token"),
        ("start: <[500]>", "1:8", "token ids"),
        ('start: %regex {"substring_chars": 3}', "1:8", "is a text"),
        ('start: %regex {"substring_chunks": "ab"}', "1:8", "list of texts"),
        ('start: %regex {"substring_words": ""}', "1:8", "has no text"),
        ("start: %regex {", "1:8", "%regex needs"),
        ('start: A\nA: "x" %regex {"substring_chars": "a"}', "2:1", "all that a terminal is"),
    ],
)
def test_refused(grammar: str, place: str | None, says: str) -> None:
    with pytest.raises(GrammarError) as caught:
        compiled(grammar)
    assert caught.value.place == place and says in str(caught.value)


def test_the_validator_knows_them() -> None:
    report = maskwright.check_grammar(
        Lark(
            "start: <|tool|> name <[^5,300]> x? y\nname[capture]: /[a-z]+/\n"
            'x[suffix="Q"]: %regex {"substring_chars": "abc"}\ny[stop="!"]: /z*/\n'.replace(
                " y\n", ' y "!"\n', 1
            )
        )
    )
    assert report.findings == []
    report = maskwright.check_grammar(Lark('start: "a"\nx[suffix="q"]: "a"\n'))
    assert [(f.code, f.place) for f in report.findings] == [("unreachable-rule", "2:1")]


def test_embedded_json_where_the_lexer_is_not_safe() -> None:
    # Of A and B, which text a terminal has decides what may come; within a key nothing of that matters.
    pairs = [bytes(pair) for pair in product(b'abcdefgh"{}[]:, 1', repeat=2)]
    tokens = [*(bytes([i]) for i in range(256)), *pairs]
    vocabulary = Vocabulary.from_bytes([*tokens, None], eos_ids=[len(tokens)])
    grammar = 'start: "[" %json {} "]" (A | B "b")\nA: /ab|c/\nB: /a|d/'
    compiled = maskwright.compile_lark(grammar, vocabulary, limits=maskwright.Limits(max_search=50))
    for text in (
        "",
        "[",
        '[{"',
        '[{"a',
        '[{"a":[',
        '[{"a":["x',
        '[{"a":["x"]}',
        '[{"a":["x"]}]',
        '[{"a":["x"]}]a',
    ):
        matcher = compiled.matcher()
        assert matcher.accept_bytes(text.encode())
        allowed = toys.allowed(matcher)
        for token, data in enumerate(tokens):
            after = matcher.fork()
            assert after.accept_bytes(data) == (token in allowed), (text, data)
            assert token not in allowed or accepts_whole(
                compiled, text.encode() + data + after.shortest_completion_bytes()
            )


def accepts_whole(compiled: maskwright.CompiledGrammar, text: bytes) -> bool:
    matcher = compiled.matcher()
    return matcher.accept_bytes(text) and matcher.is_accepting


def test_the_line_in_which_a_schema_ends_goes_on() -> None:
    vocabulary = toys.byte_vocabulary()
    for text in (
        'start: "f(" %json {\n "type":"array"\n} ")"',
        'start: ("f(" %json {\n "type":"array"\n} ) ")"',
        'start: "f(" %json {\n "type":\n"array"} ")" // a comment\n | "g"\n',
        'start: "f(" A ")"\nA: %regex {\n "substring_chars": "[1]"\n} // a comment\n',
    ):
        assert maskwright.compile_lark(text, vocabulary).matcher().accept_bytes(b"f([1])"), text
    # Places are those of the source, from the next line on.
    with pytest.raises(GrammarError) as caught:
        maskwright.compile_lark('start: %json {\n"type":\n"array"} "x"\nother: )\n', vocabulary)
    assert str(caught.value.place).startswith("4:")


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ('start: "x" a\na: "b" /[a-z]*/ "c"\n', "2:8", r"terminal /\[a-z\]\*/ matches the empty text"),
        ('start: A\n\n  A.2: "a"? | "b"?\n', "3:3", "terminal A matches the empty text"),
        ('start: "a" (B | "c")\nB: /[z-a]/\n', "2:1", r"terminal B \(/\[z-a\]/\)"),
        ('start: "a"\n  | /x(?=b)y(?=c)/ "d"\n', "2:5", "matches nothing"),
    ],
)
def test_errors_of_terminals_have_a_place(text: str, place: str, what: str) -> None:
    with pytest.raises(GrammarError, match=what) as caught:
        maskwright.compile_lark(text, toys.byte_vocabulary())
    assert caught.value.place == place and caught.value.snippet is not None


@pytest.mark.parametrize("lexer", ["contextual", "dynamic"])
@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ('start: x "a"\nx[suffix="b"]: "a"', "aba", "abab"),
        ('start: "\\"" text num\ntext[suffix="\\""]: /[0-9]+/\nnum: /[0-9]+/', '"1"2', '"1"2"'),
        ("start: x y\nx[lazy]: /a+/\ny: /a+/", "aaaa", "a"),
        ('start: x "b" y\nx[stop="b"]: /a+/\ny: /a+/', "aba", "abab"),
        ('start: x "a"\nx[suffix=";"]: /\\t/\n%ignore /\\t/', "\t;\ta", "\t;\t;a"),
        ('start: "-" a | b\na[suffix="."].5: /[a-z]+/\nb: /[a-z]+/ "?" | "if" "!"\n', "if!", "if."),
    ],
)
def test_what_is_written_like_a_rule_that_ends_early_does_not(
    text: str, yes: str, no: str, lexer: Any
) -> None:
    compiled = maskwright.compile_lark(text, toys.byte_vocabulary(), lexer=lexer)
    for each, is_taken in ((yes, True), (no, False)):
        matcher = compiled.matcher()
        assert (matcher.accept_bytes(each.encode()) and matcher.is_accepting) == is_taken
