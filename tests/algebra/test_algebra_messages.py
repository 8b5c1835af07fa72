"""What errors of expressions say: which part, by what is its own, and what works instead."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import maskwright as mw
from maskwright import GrammarError, UnsatisfiableError
from maskwright.compiling.expressions import described
from maskwright.sampling import CallableModel, GrammarConstraint, Predicate, TrieConstraint, smc

VOCABULARY = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), b""], eos_ids=[256])
CONTEXT_FREE = mw.GBNF('root ::= "(" root ")" | "x"')


def said(source: Any, kind: type[Exception] = GrammarError) -> str:
    with pytest.raises(kind) as raised:
        mw.compile(source, VOCABULARY)
    return str(raised.value)


@dataclass
class Point:
    x: int


def test_parts_are_named_by_what_is_their_own() -> None:
    for source, text in (
        (mw.JsonSchema({"enum": ["a"]}), "JsonSchema({'enum': ['a']})"),
        (mw.JsonSchema({"enum": ["a"]}, escapes="any"), "JsonSchema({'enum': ['a']}, escapes='any')"),
        (mw.Regex("a"), "Regex('a')"),
        (mw.Regex("a", flags="i"), "Regex('a', flags='i')"),
        (mw.Lark("start: A", lexer="dynamic"), "Lark('start: A', lexer='dynamic')"),
        (mw.Choice(["a", b"b"]), "Choice(['a', b'b'])"),
        (mw.Contains(["a"], ordered=True), "Contains(['a'], ordered=True)"),
        (~mw.Regex("a"), "Not(Regex('a'))"),
        (mw.Regex("a") | mw.Choice(["b"]), "Union((Regex('a'), Choice(['b'])))"),
        (mw.Regex("a") * (0, None), "Repetition(Regex('a'), 0, None)"),
        (mw.JsonString(mw.Regex("a")), "JsonString(Regex('a'))"),
        (mw.Type(Point), f"Type({Point!r})"[:55]),
    ):
        assert described(source).startswith(text.removesuffix(")")), described(source)
    assert described(mw.Regex("a" * 100)) == "Regex('" + "a" * 48 + " ...)"


def test_an_empty_result_names_both_parts() -> None:
    found = said(mw.JsonSchema({"enum": ["a"]}) & mw.JsonSchema({"enum": ["b"]}), UnsatisfiableError)
    assert found == "no text is in JsonSchema({'enum': ['a']}) and in JsonSchema({'enum': ['b']})"


def test_parts_that_begin_alike_are_shown_as_far_as_they_differ() -> None:
    long = "a" * 100
    found = said(mw.Regex(long + "b") & mw.Regex(long + "c"), UnsatisfiableError)
    assert f"{long}b" in found and f"{long}c" in found
    # Only as far as that: what is longer is cut.
    found = said(mw.Regex("b" * 9_000) & mw.Regex("c" * 9_000), UnsatisfiableError)
    assert len(found) < 200


@pytest.mark.parametrize("source", [~CONTEXT_FREE, mw.Regex("[(x)]*") - CONTEXT_FREE])
def test_a_complement_is_told_what_works_for_it(source: Any) -> None:
    message = said(source)
    assert "'root' contains itself; bound its depth" in message and "Predicate(complete=" in message
    assert "multiply" not in message


def test_others_are_told_what_works_for_them() -> None:
    other = mw.GBNF('root ::= "(" root ")" | "y"')
    assert "multiply constraints" in said(CONTEXT_FREE & other)
    different = mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True})
    message = said(~different)
    assert "Predicate(complete=" in message and "bound" not in message
    lark = mw.Lark('start: a\na[capture="q"]: /a+/')
    message = said(lark + mw.Regex("x"))
    assert "lexer='dynamic'" in message and "smc" not in message


def test_what_the_messages_offer_works() -> None:
    """A bounded depth or count has a complement; and a difference is sampled by refusing its texts at their ends."""
    bounded = mw.GBNF('root ::= "(" inner ")" | "x"\ninner ::= "(x)" | "x"')
    matcher = mw.compile(mw.Regex("[(x)]*") - bounded, VOCABULARY).matcher()
    assert matcher.fork().accept_tokens([*b"(x)", 256]) != 4 and matcher.accept_tokens([*b"(x", 256]) == 3
    some = mw.JsonSchema({"type": "array", "items": {"type": "integer"}, "maxItems": 3})
    assert mw.compile(~some, VOCABULARY).matcher().accept_bytes(b"[1, 2, 3, 4]")

    tokens = mw.Vocabulary.from_bytes([b"(", b")", b"x", b""], eos_ids=[3])
    step = np.log([0.2, 0.25, 0.3, 0.25])
    model = CallableModel(lambda prefixes: [step for _ in prefixes], 4, 3)
    its = GrammarConstraint(mw.compile(CONTEXT_FREE, tokens))
    others = GrammarConstraint(mw.compile(mw.Regex("[(x)]{0,3}"), tokens))
    constraint = others * Predicate(complete=lambda ids: not its.complete(ids))
    post = smc(model, constraint, 2000, max_tokens=6, seed=0)
    wanted = [
        ids for n in range(4) for ids in itertools.product(range(3), repeat=n) if not its.complete(list(ids))
    ]
    mass = sum(float(np.exp(step[[*ids, 3]].sum())) for ids in wanted)
    found = post.probabilities(tuple)
    assert set(found) == set(wanted) and len(wanted) == 38
    assert np.exp(post.log_evidence) == pytest.approx(mass, rel=0.05)


def test_operands_without_a_text() -> None:
    """Sequences of token ids, and what is compiled: none has a text that an operator could combine."""
    trie = mw.TokenTrie([[97], [98]], 257, [256])
    letter = mw.Regex("[ab]")
    for other in (mw.Choice([[97], [98]]), mw.Choice(np.array([[97], [98]])), mw.Choice([(97,)])):
        for source in (letter | other, other & letter, ~other, other * 2, mw.JsonString(other)):
            message = said(source)
            assert "token ids" in message and "vocabulary.decode" in message and "TrieConstraint" in message
    for source in (letter | trie, trie & letter, mw.Not(trie), mw.Type(trie) + letter):
        message = said(source)
        assert "TokenTrie" in message and "vocabulary.decode" in message and "TrieConstraint" in message
    for each in (mw.compile(letter, VOCABULARY), mw.compile(trie, VOCABULARY)):
        message = said(letter | each)
        assert type(each).__name__ in message and "compiled" in message and "from which" in message
    # What the first one offers.
    model = CallableModel(lambda prefixes: [np.log(np.full(257, 1 / 257)) for _ in prefixes], 257, 256)
    both = TrieConstraint(trie) * GrammarConstraint(mw.compile(mw.Regex("[bc]"), VOCABULARY))
    assert set(smc(model, both, 5, max_tokens=3, seed=0).probabilities(tuple)) == {(98,)}
    assert mw.compile(letter - mw.Choice([VOCABULARY.decode([97])]), VOCABULARY).matcher().accept_bytes(b"b")
