"""Structural tags that name tokens, and grammars in Lark's language inside of tags."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import toys
from byte_walks import BYTES, accepts

import maskwright as mw
from maskwright.errors import GrammarError

A, B, OPEN, CLOSE, OTHER, EOS = range(6)
VOCABULARY = mw.Vocabulary.from_bytes(
    [b"a", b"b", b"<t>", b"</t>", b"<o>", b"<eos>"], eos_ids=[EOS], special_ids=[OPEN, CLOSE, OTHER]
)
SEQUENCES = [list(ids) for length in range(5) for ids in itertools.product(range(EOS), repeat=length)]


def token(value: int | str) -> dict[str, Any]:
    return {"type": "token", "token": value}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def language(format_: dict[str, Any]) -> set[tuple[int, ...]]:
    """The complete sequences of up to four ids; masks and reading agree at each of them."""
    compiled = mw.compile_structural_tag(format_, VOCABULARY)
    found = set()
    for ids in SEQUENCES:
        matcher = compiled.matcher()
        read = 0
        for each in ids:
            assert (each in toys.allowed(matcher)) == matcher.fork().accept_token(each)
            if not matcher.accept_token(each):
                break
            read += 1
        if read == len(ids):
            assert matcher.is_accepting == (EOS in toys.allowed(matcher))
            if matcher.is_accepting:
                found.add(tuple(ids))
    return found


def all_of(holds: Any) -> set[tuple[int, ...]]:
    return {tuple(ids) for ids in SEQUENCES if holds(ids)}


WORD_A = {"type": "const_string", "value": "a"}


@pytest.mark.parametrize("value", [OPEN, "<t>"])
def test_one_token(value: int | str) -> None:
    assert language(token(value)) == {(OPEN,)}
    assert language(tag(token(value), WORD_A, token("</t>"))) == {(OPEN, A, CLOSE)}
    assert language({"type": "exclude_token", "exclude_tokens": [value, CLOSE]}) == {(A,), (B,), (OTHER,)}


def test_any_tokens() -> None:
    def most(count: int | None) -> Any:
        return {"type": "any_tokens", "exclude_tokens": ["<t>"], "max_tokens": count}

    assert language(most(None)) == all_of(lambda ids: OPEN not in ids)
    assert language(most(2)) == all_of(lambda ids: OPEN not in ids and len(ids) <= 2)
    inside = language(tag(token("<t>"), {"type": "any_tokens"}, token("</t>")))
    assert inside == all_of(
        lambda ids: (
            len(ids) > 1 and ids[0] == OPEN and ids.index(CLOSE) == len(ids) - 1 if CLOSE in ids else False
        )
    )


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("first", [False, True])
def test_token_triggered_tags(once: bool, first: bool) -> None:
    found = language(
        {
            "type": "token_triggered_tags",
            "trigger_tokens": ["<t>"],
            "tags": [tag(token("<t>"), WORD_A, token("</t>"))],
            "exclude_tokens": [OTHER],
            "at_least_one": first,
            "stop_after_first": once,
        }
    )

    def holds(ids: list[int]) -> bool:
        calls = 0
        rest = list(ids)
        if first and rest[:1] != [OPEN]:
            return False
        while rest:
            if once and calls:
                return False
            if rest[0] == OPEN:
                if rest[:3] != [OPEN, A, CLOSE]:
                    return False
                rest, calls = rest[3:], calls + 1
            elif rest.pop(0) == OTHER:
                return False
        return True

    assert found == all_of(holds)


def test_token_dispatch_and_separated_tags() -> None:
    once = {
        "type": "token_dispatch",
        "rules": [["<t>", WORD_A]],
        "loop": False,
        "exclude_tokens": [CLOSE, OTHER],
    }
    assert language(once) == all_of(
        lambda ids: not {CLOSE, OTHER} & {*ids} and (OPEN not in ids or ids[ids.index(OPEN) :] == [OPEN, A])
    )
    tags = [tag(token("<t>"), WORD_A, ""), tag("b", WORD_A, "")]
    separated = {"type": "tags_with_separator", "tags": tags, "separator": "", "at_least_one": True}
    pairs = {(OPEN, A), (B, A)}
    assert language(separated) == pairs | {x + y for x in pairs for y in pairs}


@pytest.mark.parametrize("end", ["", []])
def test_a_tag_without_an_end_has_that_of_the_tag_around_it(end: Any) -> None:
    anything = {"type": "any_tokens"}
    inner = tag("b", anything, end)
    for content in (
        inner,
        {
            "type": "tags_with_separator",
            "tags": [inner],
            "separator": "a",
            "stop_after_first": True,
            "at_least_one": True,
        },
    ):
        assert language(tag(token(OPEN), content, token(CLOSE))) == all_of(
            lambda ids: ids[:2] == [OPEN, B] and ids[-1] == CLOSE and CLOSE not in ids[:-1]
        )
    # One with a text at its end, which is none of the tokens in it.
    closed = mw.compile_structural_tag(tag(token(OPEN), tag("b", anything, "a"), token(CLOSE)), VOCABULARY)
    assert closed.matcher().accept_tokens([OPEN, B, CLOSE, A, CLOSE]) == 5


@pytest.mark.parametrize(
    ("format_", "place", "message"),
    [
        (token(-1), "/token", "id or a name"),
        ({"type": "token"}, "/token", "id or a name"),
        (token("<tt>"), "/token", "no token '<tt>'"),
        (token(99), "/token", "0 to 5"),
        ({"type": "any_tokens", "max_tokens": -1}, "/max_tokens", "number"),
        ({"type": "any_tokens", "exclude_tokens": "x"}, "/exclude_tokens", "list"),
        ({"type": "token_dispatch", "rules": [["<t>"]]}, "/rules/0", "pair"),
        (
            {"type": "token_triggered_tags", "trigger_tokens": [], "tags": []},
            "/trigger_tokens",
            "no triggers",
        ),
        (
            {"type": "token_triggered_tags", "trigger_tokens": [OPEN], "tags": [tag("a", WORD_A, "")]},
            "/tags/0/begin",
            "one of trigger_tokens",
        ),
        (
            {"type": "triggered_tags", "triggers": ["a"], "tags": [tag(token(OPEN), WORD_A, "")]},
            "/tags/0/begin",
            "text is expected",
        ),
        (tag(WORD_A, WORD_A, ""), "/begin", "text or a token"),
    ],
)
def test_bad_tokens(format_: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(GrammarError, match=message) as caught:
        mw.compile_structural_tag(format_, VOCABULARY)
    assert caught.value.place == place


# --- grammars in Lark's language

CALL = 'begin: "set" NAME "=" INT\nNAME: /[a-z]+/\nINT: /[0-9]+/\n%ignore " "\n'


def test_lark_in_a_tag() -> None:
    grammar = {"type": "grammar", "grammar": CALL, "syntax": "lark", "start": "begin"}
    compiled = mw.compile_structural_tag(
        {"type": "triggered_tags", "triggers": ["<c>"], "tags": [tag("<c>", grammar, "</c>")]}, BYTES
    )
    assert accepts(compiled, "so <c>set x = 1</c> and <c> set y=22 </c>.")
    assert not accepts(compiled, "so <c>set x = </c>")
    assert not accepts(compiled, "so <c>set = 1</c>")


def test_lark_that_needs_a_lexer_is_refused_at_its_place() -> None:
    for text, message in (('start: /a(?!b)/ "b"?', "looks ahead"), ("start: (", "2|:")):
        with pytest.raises(GrammarError, match=message) as caught:
            mw.compile_structural_tag(
                {"type": "star", "content": {"type": "grammar", "grammar": text, "syntax": "lark"}}, BYTES
            )
        assert str(caught.value.place).startswith("/content")
    with pytest.raises(GrammarError, match="gbnf or lark"):
        mw.compile_structural_tag({"type": "grammar", "grammar": "x", "syntax": "antlr"}, BYTES)
