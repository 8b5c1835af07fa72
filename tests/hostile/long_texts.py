"""Texts of millions of characters, of every kind of source: most of what goes through one at once cannot be stopped on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hostile.cases import Case, family
from maskwright import GBNF, JsonSchema, Lark, Regex, StructuralTag

SIZES = (900_000, 3_900_000, 40_000_000)
"""Characters: of the longest pattern that is read, of the longest text, and of what is refused."""
TEXTS: dict[str, dict[str, Callable[[int], str]]] = {
    "schema": {
        "description": lambda n: '{"description":"' + "a" * n + '"}',
        "escapes": lambda n: '{"description":"' + "\\u0041" * (n // 6) + '"}',
        "const": lambda n: '{"const":"' + "a" * n + '"}',
        "name": lambda n: '{"properties":{"' + "a" * n + '":{}}}',
        "pattern": lambda n: '{"pattern":"' + "a" * n + '"}',
        "items": lambda n: '{"enum":[' + "1," * (n // 2) + "1]}",
        "braces in texts": lambda n: '{"enum":[' + '"}",' * (n // 4) + "1]}",
        "objects": lambda n: '{"enum":[' + '{"":1},' * (n // 7) + "1]}",
        "blanks": lambda n: " " * n + "{}",
        "digits": lambda n: '{"const":' + "1" * n + "}",
        "open": lambda n: "[" * n,
        "member twice": lambda n: '{"a":[' + "1," * (n // 2) + '1],"a":1}',
    },
    "lark": {
        "text": lambda n: f'start: "{"a" * n}"',
        "pattern": lambda n: f"start: /{'a' * n}/",
        "comment": lambda n: f'start: "a" //{"a" * n}',
        "blanks": lambda n: 'start: "a"' + " " * n,
        "name": lambda n: f'{"a" * n}: "a"',
    },
    "gbnf": {
        "text": lambda n: f'root ::= "{"a" * n}"',
        "class": lambda n: f"root ::= [{'a' * n}]",
        "comment": lambda n: f'root ::= "a" #{"a" * n}',
        "blanks": lambda n: 'root ::= "a"' + " " * n,
        "lines": lambda n: 'root ::= "a"' + "\n#" * (n // 2),
        "name": lambda n: f'{"a" * n} ::= "a"',
        "open": lambda n: "(" * n,
    },
    "regex": {
        "text": lambda n: "a" * n,
        "class": lambda n: f"[{'a' * n}]",
        "bound": lambda n: "a{" + "1" * n + "}",
        "comment": lambda n: f"(?x)a#{'a' * n}",
        "blanks": lambda n: "(?x)a" + " " * n,
        "alternatives": lambda n: "|".join(["ab"] * (n // 3)),
        "options": lambda n: "a?" * (n // 2),
        "open": lambda n: "(" * n,
        "group's name": lambda n: f"(?P<{'a' * n}>a)",
    },
    "tag": {
        "text": lambda n: '{"type":"const_string","value":"' + "a" * n + '"}',
        "words": lambda n: '{"type":"any_text","excludes":[' + '"a",' * (n // 4) + '"b"]}',
    },
}
SOURCES: dict[str, Any] = {
    "schema": JsonSchema,
    "lark": Lark,
    "gbnf": GBNF,
    "regex": Regex,
    "tag": StructuralTag,
}


def cases() -> Iterator[Case]:
    for kind, texts in TEXTS.items():
        for name, text in texts.items():
            yield from family(
                f"long/{kind}: {name}", lambda n, kind=kind, text=text: SOURCES[kind](text(n)), SIZES
            )
