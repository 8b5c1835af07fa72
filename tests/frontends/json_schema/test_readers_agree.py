"""Strings and numbers that validators disagree about are not written: judged by Python's and node's own engines."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from typing import Any

import pytest
from toys import byte_vocabulary

import maskwright as mw

NODE = shutil.which("node")
# White space and ends of lines, for some engines or for all; and what is neither.
CHARACTERS = "a \n\r\t\x1c\x85\xa0\u180e\u2028\u2029\ufeff"
TEXTS = ["".join(each) for length in range(3) for each in itertools.product(CHARACTERS, repeat=length)]
DISPUTED = frozenset("\n\x1c\x85\ufeff")
PATTERNS = [
    r"^\s$",
    r"^\S+$",
    r"^[^\s]$",
    r"^[^\Sa]+$",
    r"^[\s\S]$",
    r"a\sa|\sa",
    r"^(?!\s)",
    r"^(?!.*a$)",
    r"^(?!a.)[\s\S]*$",
    "^.$",
    "^a.*$",
    "a$",
    "^(a|aa)$",
    r"^(?!(?!\s))",
]
ASK_NODE = """
const [pattern, texts] = JSON.parse(require("fs").readFileSync(0));
console.log(JSON.stringify(texts.map((text) => new RegExp(pattern, "u").test(text))));
"""


def accepted(schema: object, text: str) -> bool:
    matcher = mw.compile_json_schema(schema, byte_vocabulary()).matcher()
    return matcher.accept_bytes(text.encode()) and matcher.is_accepting


def written(schema: object, around: str = "%s") -> list[str]:
    """The texts that are written, as such or within something."""
    compiled = mw.compile_json_schema(schema, byte_vocabulary())
    found = []
    for text in TEXTS:
        matcher = compiled.matcher()
        whole = around % json.dumps(text, ensure_ascii=False)
        if matcher.accept_bytes(whole.encode()) and matcher.is_accepting:
            found.append(text)
    return found


@pytest.mark.skipif(NODE is None, reason="node is not installed")
@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_are_those_on_which_all_engines_agree(pattern: str) -> None:
    asked = subprocess.run(
        [str(NODE), "-e", ASK_NODE],
        input=json.dumps([pattern, TEXTS]),
        capture_output=True,
        text=True,
        check=True,
    )
    in_javascript = json.loads(asked.stdout)
    in_python = [re.search(pattern, text) is not None for text in TEXTS]
    both = [t for t, a, b in zip(TEXTS, in_javascript, in_python, strict=True) if a and b]
    neither = [t for t, a, b in zip(TEXTS, in_javascript, in_python, strict=True) if not a and not b]
    one = {"type": "object", "maxProperties": 1, "additionalProperties": {"const": 2}}
    for schema, around, agreed in [
        ({"type": "string", "pattern": pattern}, "%s", both),
        ({"type": "string", "not": {"pattern": pattern}}, "%s", neither),
        ({**one, "patternProperties": {pattern: {"const": 1}}}, "{%s: 1}", both),
        ({**one, "patternProperties": {pattern: {"const": 1}}}, "{%s: 2}", neither),
        ({**one, "propertyNames": {"pattern": pattern}}, "{%s: 2}", both),
        ({**one, "propertyNames": {"not": {"pattern": pattern}}}, "{%s: 2}", neither),
    ]:
        found = written(schema, around)
        assert [text for text in found if text not in agreed] == []
        # Engines that differ in two characters may agree on their row by accident.
        missing = [text for text in agreed if text not in found]
        assert [text for text in missing if len(text) < 2 or not DISPUTED.issuperset(text)] == []


def test_disputed_texts_are_written_where_there_are_no_others() -> None:
    agreed = [
        " ",
        "\t",
        "\n",
        "\v",
        "\f",
        "\r",
        "\xa0",
        "\u1680",
        "\u2028",
        "\u2029",
        "\u202f",
        "\u205f",
        "\u3000",
    ]
    agreed += [chr(code) for code in range(0x2000, 0x200B)]
    schema = {"type": "string", "pattern": r"^\s$", "not": {"enum": agreed}}
    assert accepted(schema, '"\ufeff"')
    assert not accepted(schema, '" "')


def test_keys_of_which_all_are_disputed_are_written_only_where_members_are_needed() -> None:
    # Patterns that have many other keys each leave none between them but those on which engines differ.
    schema: dict[str, Any] = {
        "propertyNames": {"maxLength": 1},
        "patternProperties": {"^.$": {"type": "string"}, "^$": {"type": "string"}},
        "type": "object",
    }
    for key in ("\n", "\u2028"):
        assert not accepted(schema, json.dumps({key: 0}))
        assert not accepted(schema, json.dumps({key: "a"}))
    for value in ({}, {"": "a"}, {"b": "a"}):
        assert accepted(schema, json.dumps(value))
    only = {"type": "object", "propertyNames": {"pattern": r"^\s$", "not": {"pattern": "^[^\ufeff]"}}}
    text = json.dumps({"\ufeff": 0}, ensure_ascii=False)
    assert accepted(only, "{}") and not accepted(only, text)
    assert accepted({**only, "minProperties": 1}, text)


@pytest.mark.parametrize(
    ("schema", "yes", "no"),
    [
        (
            {"multipleOf": 3},
            ["12345678", "999999999999999", "3.0", "-6"],
            ["1234567890123456", "3e20", "1e1"],
        ),
        ({"multipleOf": 3, "minimum": 4}, ["12345678", "999999999999999"], ["1234567890123456", "3e20"]),
        ({"multipleOf": 0.01}, ["4.35", "-123456789012345.25"], ["4.355", "12345678901234567890"]),
        ({"multipleOf": 10, "minimum": 10**16}, ["1" + "0" * 16, "1" + "0" * 15 + "10"], ["10"]),
        (
            {"not": {"type": "integer"}},
            ["1.5", "0.1234567890123", "1e-7"],
            ["1.0000000000000000001", "9007199254740993.5"],
        ),
        ({"not": {"multipleOf": 3}}, ["1.5", "100000", "1e-7"], ["10000000000000001", "3.00000000000000001"]),
        ({"type": "integer"}, ["1234567890123456789", "1e20"], ["1.5"]),
    ],
)
def test_multiples_and_fractions_are_told_by_doubles(
    schema: dict[str, object], yes: list[str], no: list[str]
) -> None:
    schema = {"type": "number", **schema}
    assert [text for text in yes if not accepted(schema, text)] == []
    assert [text for text in no if accepted(schema, text)] == []
