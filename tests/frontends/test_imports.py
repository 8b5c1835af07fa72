"""Grammars that are made of parts: the same language, the same masks, and each part made once."""

from __future__ import annotations

from typing import Any

import pytest
import toys
from byte_walks import BYTES, accepts, check_equal
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import Oracle

import maskwright as mw
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.parts import json_schema_part
from maskwright.ir.grammar import EMPTY, Choice, Grammar, Import, Ref, Repeated, Seq, Switch, Words
from maskwright.limits import DEFAULT_LIMITS

a, b, comma = map(toys.term, ("a", "b", ","))


@st.composite
def parts(draw: Any) -> list[Import]:
    made = draw(st.lists(toys.grammars(), min_size=1, max_size=3))
    good = [one for one in made if Oracle(one).by_left.get(one.start)]
    return [Import(("part", i, repr(one)), lambda one=one: one) for i, one in enumerate(good)]


@pytest.mark.slow
@pytest.mark.sanitized
@settings(max_examples=25, deadline=None)
@given(parts(), st.integers(0, 99))
def test_parts_are_their_rules(found: list[Import], seed: int) -> None:
    if not found:
        return
    switch = Switch(Words.tagged({b"a": 0, b"ab": len(found) - 1}), tuple(found))
    whole = toys.grammar(
        Choice((Seq((b, Ref(1))), Seq((found[0], comma, Ref(0))), switch)),
        Repeated(2, 2, 0, 3),
        Seq((Choice(tuple(found)), comma)),
    )
    # Several members may be open at once when a part repeats itself: `unique` is a register, not context-free.
    check_equal(whole, toys.flatten(whole), seed)


def test_parts_of_parts() -> None:
    inner = Import("inner", lambda: toys.grammar(Choice((Seq((a, Ref(0), b)), EMPTY))))
    middle = Import("middle", lambda: toys.grammar(Seq((inner, comma, inner))))
    whole = toys.grammar(Seq((middle, inner, Choice((middle, EMPTY)))))
    for seed in range(10):
        check_equal(whole, toys.flatten(whole), seed)


def object_part(schema: dict[str, Any]) -> Import:
    return json_schema_part(schema, SchemaOptions(whitespace="compact", escapes="any"), DEFAULT_LIMITS)


def test_keys_stay_unique_in_parts_that_are_shared() -> None:
    vocabulary = toys.byte_vocabulary()
    part = object_part({"type": "object", "additionalProperties": {"type": "integer"}})
    one = mw.compile_grammar(toys.grammar(Seq((part, part))), vocabulary)
    two = mw.compile_grammar(toys.grammar(Seq((a, part))), vocabulary)
    assert accepts(one, '{"k":1}{"k":2}')
    assert not accepts(one, '{"k":1,"k":2}{}')
    assert accepts(two, 'a{"k":1,"l":2}')
    assert not accepts(two, 'a{"k":1,"l":2,"\\u006b":3}')
    del one
    assert not accepts(two, 'a{"x":1,"x":2}')
    assert accepts(two, 'a{"x":1,"y":2}')


def test_a_schema_and_a_part_are_lowered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    vocabulary = toys.byte_vocabulary()
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    mw.compile_json_schema(schema, vocabulary, whitespace="compact", escapes="any")
    part = object_part(schema)

    def never() -> Grammar:
        raise AssertionError("made again")

    whole = toys.grammar(Seq((a, Import(part.key, never), Import(part.key, never))))
    assert accepts(mw.compile_grammar(whole, vocabulary), 'a{"a":1}{"a":2}')
    other = Import((*part.key, "other"), never)  # type: ignore[misc]
    with pytest.raises(AssertionError, match="made again"):
        mw.compile_grammar(toys.grammar(other), vocabulary)


def test_what_may_not_be_kept_is_made_again() -> None:
    made = []

    def make() -> Grammar:
        made.append(1)
        return toys.grammar(a)

    for keep, count in ((False, 2), (True, 3)):
        part = Import(("kept", count), make, keep)
        for _ in range(2):
            mw.compile_grammar(toys.grammar(part), BYTES)
        assert len(made) == count
