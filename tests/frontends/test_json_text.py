"""JSON text of sources: what is long is read in Python, where other threads have their turns, and means the same."""

from __future__ import annotations

import json
import random
import time
from decimal import Decimal
from typing import Any

import pytest

import maskwright as mw
from maskwright.base.deadline import deadline
from maskwright.frontends import json_text
from maskwright.frontends.json_text import read_json


def _value(draw: random.Random, depth: int) -> Any:
    kind = draw.randrange(8 if depth else 5)
    if kind == 0:
        return draw.choice([True, False, None])
    if kind == 1:
        return draw.randint(-(10**20), 10**20)
    if kind == 2:
        return draw.random() * 10 ** draw.randint(-300, 300)
    if kind < 5:
        return "".join(draw.choices('ab"\\/\n\t\x7f\u20ac\U0001f600{}[]:,', k=draw.randrange(6)))
    if kind == 5:
        return {f"{i}{_value(draw, 0)}": _value(draw, depth - 1) for i in range(draw.randrange(4))}
    return [_value(draw, depth - 1) for _ in range(draw.randrange(4))]


def _read(text: str | bytes) -> Any:
    try:
        return repr(read_json(text))
    except mw.GrammarError as error:
        return str(error), error.place


def test_what_is_long_is_read_as_what_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(1)
    different = 0
    for _ in range(600):
        text = json.dumps(_value(draw, 4), ensure_ascii=draw.random() < 0.5, indent=draw.choice([None, 1]))
        if draw.random() < 0.5:
            at = draw.randrange(len(text) + 1)
            text = text[:at] + draw.choice(["", ",", "}", "]", '"', "\\", "1", "NaN"]) + text[at + 1 :]
        short = _read(text)
        different += isinstance(short, tuple)
        with monkeypatch.context() as patch:
            patch.setattr(json_text, "_LONG", -1)
            assert _read(text) == short, text
            assert _read(text.encode()) == short, text
    assert 100 < different < 500


def test_a_long_text_ends_with_its_deadline() -> None:
    with pytest.raises(mw.LimitError, match="max_seconds"), deadline(0.05):
        read_json("[" + "1," * 1_900_000 + "1]")


def test_numbers_of_a_long_text_are_exact() -> None:
    assert read_json("[" + "0.10," * 100_000 + "0.10]")[-1] == Decimal("0.10")


SOURCES = [
    (mw.JsonSchema, '{"description": "%s"}'),
    (mw.GBNF, 'root ::= "a" # %s'),
    (mw.StructuralTag, '{"type": "const_string", "value": "%s"}'),
]


@pytest.mark.parametrize(("source", "text"), SOURCES)
def test_longer_texts_than_the_limit_are_refused(source: Any, text: str) -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    written = text % ("x" * 900)
    limits = mw.Limits(max_source_chars=len(written))
    mw.compile(source(written), vocabulary, limits=limits)
    assert mw.check_grammar(source(written), limits=limits).ok
    message = f"max_source_chars is {len(written)}, {len(written) + 1} needed"
    with pytest.raises(mw.LimitError, match=message):
        mw.compile(source(written + " "), vocabulary, limits=limits)
    report = mw.check_grammar(source(written + " "), limits=limits)
    assert not report.ok and message in str(report.findings)


def test_a_document_of_a_registry_is_a_source_too() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    source = mw.JsonSchema({"$ref": "https://x.example/"}, registry={"https://x.example/": " " * 99 + "{}"})
    with pytest.raises(mw.LimitError, match="max_source_chars"):
        mw.compile(source, vocabulary, limits=mw.Limits(max_source_chars=100))


def test_members_twice_in_bytes_with_a_lone_surrogate() -> None:
    vocabulary = mw.Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    with pytest.raises(mw.GrammarError, match="the member 'a' comes twice"):
        mw.compile(mw.JsonSchema(b'{"\xed\xa0\x80": 1, "a": 1, "a": 2}'), vocabulary)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n\n "minimum": NaN}', "3:13"),
        ('{"NaN": "NaN",\n "minimum": -Infinity}', "2:13"),
        ('["' + "9" * 5000 + '",\n 12, ' + "9" * 5000 + "]", "2:6"),
        ("[1e5,\n 1e" + "9" * 30 + "]", "2:2"),
    ],
)
def test_places_of_what_json_does_not_have(text: str, place: str) -> None:
    for source in (text, text.encode()):
        with pytest.raises(mw.GrammarError) as caught:
            read_json(source)
        assert caught.value.place == place


def test_places_of_a_long_text_take_a_second() -> None:
    """And the place of all of it takes none."""
    text = '{"a": ' + "[1," * 400_000
    started = time.monotonic()
    assert json_text.Places(text).span("#") == (0, 1)
    assert time.monotonic() - started < 0.5
    assert json_text.Places(text).span("/a/1/7") in ((1, 4), (9, 10))
    assert time.monotonic() - started < 6
