"""Patterns are those that pydantic reads: of Rust's regex, or of Python's where they are compiled or the model says so."""

from __future__ import annotations

import json
import re
from typing import Annotated, Any

import pytest
from byte_walks import BYTES, accepts

import maskwright as mw

pydantic = pytest.importorskip("pydantic")

LETTERS = "abAkK\u212asſiİıé1٣ \n\r\x85\x1c\ufeff\u2028]<>{},^[&-x\\"
TEXTS = [
    *("", *LETTERS, *(a + b for a in LETTERS for b in LETTERS)),
    *("aaa", "a{,2}", "a{2}", "a{}", "a{ 2 }", "xa]", "<a>", "a\nb", "admin", "admin\n", "admins"),
]


def by_python(pattern: str) -> Any:
    config = pydantic.ConfigDict(regex_engine="python-re")
    return pydantic.create_model("Read", __config__=config, x=(str, pydantic.Field(pattern=pattern)))


def of_pattern(pattern: str | re.Pattern[str]) -> Any:
    return Annotated[str, pydantic.Field(pattern=pattern)]


RUST = [
    r"^\s$", r"^\S$", r"^[^\s]+$", r"^.$", r"^(?s:.)$", r"^(?m:a$)", r"^(?i:k)$", r"^(?i:[^k])$", r"^[^\p{L}]$", r"^\P{Lu}$", r"^\d+$",
    r"^[\w-]+$", r"^[\]a]$", r"^[a^]$", r"^a{2,}$", r"^\{1,2\}$|^a$", r"^a\b.$", r"^\W$",
]  # fmt: skip
PYTHON = [
    "^a$", "^a.$", "^a{}$|b", r"^\<a\>$", r"^\s$", r"^\S$", "^[[a]$", "^[a&&b]$", "(?i)^a$", "(?m)^a$", "(?s)^.$", r"(?a)^\w$",
    r"^\B|x$", r"^(?!admin$)[a-z]+$", r"^(?!a$)[^x]+$", r"^(?!a.)[^x]*$", r"^(?!\d)[^x]*$", "(?<!a)b$", "(?i)^[^k]$", "(?i)^ſ$",
]  # fmt: skip


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("pattern", "rust"), [*((each, True) for each in RUST), *((each, False) for each in PYTHON)]
)
def test_texts_of_patterns_are_read(pattern: str, rust: bool) -> None:
    tp = of_pattern(pattern if rust else re.compile(pattern))
    compiled, adapter = mw.compile(tp, BYTES), pydantic.TypeAdapter(tp)
    found = [text for text in map(json.dumps, TEXTS) if accepts(compiled, text)]
    assert found
    for text in found:
        adapter.validate_json(text)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_flags_and_engine() -> None:
    """Of compiled patterns and of models whose patterns Python reads."""
    for tp, text, wrong in (
        (of_pattern(re.compile("^ab$", re.IGNORECASE)), '"aB"', '"ac"'),
        (of_pattern(re.compile("^a.b$", re.DOTALL)), '"a\\nb"', '"ab"'),
        (of_pattern(re.compile("^b$", re.MULTILINE)), '"a\\nb"', '"a\\rb"'),
        (of_pattern(re.compile(r"^\w$", re.ASCII)), '"a"', '"é"'),
        (by_python(r"^\<(?!b)[[a]$"), '{"x":"<a"}', '{"x":"a"}'),
        (by_python("(?i)^a$"), '{"x":"A"}', '{"x":"b"}'),
    ):
        compiled = mw.compile(tp, BYTES)
        assert accepts(compiled, text) and not accepts(compiled, wrong)
        pydantic.TypeAdapter(tp).validate_json(text)


@pytest.mark.parametrize(
    ("tp", "named"),
    [
        *((of_pattern(re.compile(pattern)), named) for pattern, named in (
            ("^a{,2}$", "'{,2}' in another way"), ("^[]a]$", "comes first in a class"), ("^[^]a]$", "comes first in a class"),
            ("(?x)^a b$", "its flags"), ("(?i)^[^ı]$", "without regard to case"), ("(?i)^(?!ı).$", "without regard to case"),
        )),
        *((of_pattern(pattern), named) for pattern, named in (
            ("^a{ 2 }$", "'{ 2 }' in another way"), ("^[]a]$", "comes first in a class"), ("^[^]a]$", "comes first in a class"),
            (r"^\<a\>$", r"'\\\\<' in another way"), (r"a\b{end}", r"'\\\\b{' in another way"), (r"^(?i:\P{Lu})$", "without regard to case"),
            (r"^(?i:[^\p{Lu}])$", "without regard to case"), ("^[a~~b]$", "'~~' in a class"),
        )),
        (by_python("^a{,2}$"), "'{,2}' in another way"),
    ],
    ids=str,
)  # fmt: skip
def test_what_readers_take_for_something_else_is_refused(tp: Any, named: str) -> None:
    with pytest.raises(mw.GrammarError, match=named) as caught:
        mw.compile(tp, BYTES)
    assert "\n" not in str(caught.value)


def test_blanks_that_are_stripped() -> None:
    tp = Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1)]
    compiled = mw.compile(tp, BYTES)
    for text in map(json.dumps, TEXTS):
        if accepts(compiled, text):
            pydantic.TypeAdapter(tp).validate_json(text)
