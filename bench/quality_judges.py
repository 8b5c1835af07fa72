"""How an answer is judged: is it in the language, which parts are right, and how is it spelled."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import jsonschema

MISSING = object()
"""Stands for a value that is not there."""


@dataclass(frozen=True)
class Score:
    """What a judge says of one answer.

    ``valid``: it is in the task's language (a JSON Schema with formats, or a query that SQLite can read).  ``fields``: share of
    the expected leaves that are equal, 0 to 1.  ``whole``: everything is equal.  ``executes``: the call or query runs; None
    for tasks where nothing is executed.
    """

    valid: bool
    fields: float
    whole: bool
    executes: bool | None = None


WRONG = Score(False, 0.0, False)


def validates(schema: Any, value: Any) -> bool:
    """Whether ``value`` obeys ``schema``, its formats included, by the package jsonschema."""
    validator = jsonschema.Draft202012Validator(
        schema, format_checker=jsonschema.Draft202012Validator.FORMAT_CHECKER
    )
    return bool(validator.is_valid(value))


def parse_json(text: str) -> Any:
    """The value of a text that is JSON and nothing else, or ``MISSING``."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return MISSING


def first_json(text: str) -> Any:
    """The first object or array of a text, or ``MISSING``: what people do with free text."""
    decoder = json.JSONDecoder()
    for start in re.finditer(r"[\[{]", text):
        try:
            return decoder.raw_decode(text, start.start())[0]
        except (ValueError, RecursionError):
            continue
    return MISSING


def compare(expected: Any, found: Any) -> tuple[int, int]:
    """(leaves that are right, leaves in all).

    Lists of scalars are bags, whose order says nothing; other lists are compared item by item.  Items that nobody
    asked for are wrong leaves; keys that nobody asked for are not counted (``Score.whole`` sees them).
    """
    if isinstance(expected, dict) and expected:
        given = found if isinstance(found, dict) else {}
        pairs = [compare(value, given.get(key, MISSING)) for key, value in expected.items()]
        return sum(right for right, _ in pairs), sum(total for _, total in pairs)
    if isinstance(expected, list) and expected:
        items = found if isinstance(found, list) else []
        if not any(isinstance(item, (dict, list)) for item in expected):
            common = Counter(map(_leaf, expected)) & Counter(map(_leaf, items))
            return common.total(), max(len(expected), len(items))
        padded = [*items, *[MISSING] * (len(expected) - len(items))]
        pairs = [compare(want, have) for want, have in zip(expected, padded, strict=False)]
        extra = sum(compare(item, item)[1] for item in items[len(expected) :])
        return sum(right for right, _ in pairs), sum(total for _, total in pairs) + extra
    return int(_leaf(expected) == _leaf(found)), 1


def _leaf(value: Any) -> str:
    """A scalar as text that tells 1 from true and "1", and not 1 from 1.0."""
    if value is MISSING:
        return "missing"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps(value, sort_keys=True)


def judge_json(schema: Any, expected: Any, value: Any) -> Score:
    """The score of a JSON value, or of ``MISSING``."""
    if value is MISSING:
        return WRONG
    right, total = compare(expected, value)
    return Score(validates(schema, value), right / total, same(expected, value))


def same(expected: Any, value: Any) -> bool:
    """Whether two values are equal, the order of lists of scalars aside."""
    if isinstance(expected, dict):
        return (
            isinstance(value, dict)
            and expected.keys() == value.keys()
            and all(same(each, value[key]) for key, each in expected.items())
        )
    right, total = compare(expected, value)
    if isinstance(expected, list) and any(isinstance(item, dict) for item in expected):
        return isinstance(value, list) and len(expected) == len(value) and all(map(same, expected, value))
    return right == total


@dataclass(frozen=True)
class Spelling:
    """How a JSON text is spelled.

    ``escaped``: characters that need no escape and have one.  ``blanks``: places with white space before a comma.
    """

    escaped: int
    blanks: int


_STRING = re.compile(r'"(?:[^"\\]|\\.)*"?', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
# Printers for web pages escape these on purpose.
_PRINTED_ESCAPED = frozenset("\\<>&")


def spelling(text: str) -> Spelling:
    """Count what no printer writes.  Characters beyond ASCII may be escaped, as ``json.dumps`` does."""
    escaped = 0
    for string in _STRING.findall(text):
        for code, plain in _ESCAPE.findall(string):
            if code:
                character = chr(int(code, 16))
                escaped += " " <= character <= "~" and character not in _PRINTED_ESCAPED
            else:
                escaped += plain == "/"
    return Spelling(escaped, len(re.findall(r"\s,", _STRING.sub('""', text))))
