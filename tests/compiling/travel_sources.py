"""Sources of every kind, small, that are sent from one place to another."""

from __future__ import annotations

import random
from typing import Any

import toys

import maskwright as mw

PIECES = [*(bytes([i]) for i in range(256)), b'{"', b'": ', b'", "', b"ab", b"\n  ", b"12", b"<t>", b"true"]
END = len(PIECES)

BLOCKS = r"""
start: (line | block)+
line: NAME "=" NUMBER _NEWLINE
block: "if" NAME ":" _NEWLINE _INDENT line+ _DEDENT
NAME: /(?!if\b)[a-z]+/
NUMBER: /[0-9]+(?![a-z])/
_NEWLINE: /(\n *)+/
%ignore " "
%declare _INDENT _DEDENT
"""
CAPTURES = r"""
start: pair ("," pair)*
pair: key "=" value
key[capture]: /[a-z]+/
value[capture="values"]: /[0-9]{1,3}/ | "(" start ")"
%ignore " "
"""
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "triggered_tags",
        "triggers": ["<t"],
        "tags": [
            {
                "type": "tag",
                "begin": "<t>",
                "content": {
                    "type": "json_schema",
                    "json_schema": {"type": "object", "required": ["ab"]},
                },
                "end": "</t>",
            }
        ],
    },
}
SOURCES: dict[str, Any] = {
    "members": mw.JsonSchema(
        {
            "type": "object",
            "properties": {"ab": {"type": "integer"}, "c\u00e9": {"enum": ["x", None, 1.5]}},
            "required": ["ab"],
            "patternProperties": {"^z": {"type": "number", "multipleOf": 3}},
            "minProperties": 2,
        }
    ),
    "goals": mw.JsonSchema(
        {"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}], "maxProperties": 3}
    ),
    "different items": mw.JsonSchema(
        {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": ["integer", "string", "array"], "maxLength": 3},
            "maxItems": 4,
        }
    ),
    "anything": mw.JsonSchema({}),
    "any order": mw.JsonSchema({"type": "object", "required": ["a", "b"]}, property_order="any"),
    "indented": mw.JsonSchema({"type": "array", "items": {"type": "boolean"}}, whitespace=2),
    "long texts": mw.JsonSchema({"type": "string", "minLength": 3, "maxLength": 1000, "pattern": "^[a-z]+$"}),
    "blocks": mw.Lark(BLOCKS),
    "captures": mw.Lark(CAPTURES),
    "lexer and schema": mw.Lark(
        'start: (NAME | "ab")+ %json {"type": "integer"}\nNAME: /[a-z]+/\n%ignore " "'
    ),
    "repeated captures": mw.Regex("x*") + mw.Lark("start: b\nb[capture]: /[ab]+/", lexer="dynamic") * 3,
    "captures or nothing": mw.Optional(mw.Lark("start: b\nb[capture]: /ab*/")),
    "captures of schemas": mw.Lark('start: v\nv[capture]: %json {"type": "integer"}') | mw.Regex("z{3}"),
    "modes": mw.Lark(
        'start: ("a" | "q" text)*\ntext[mode=text]: CHARS? "q"\n%ignore " "\n%mode text\nCHARS: /[a ]+/'
    ),
    "mode without terminals": mw.Lark('start: t\nt[mode=text]:\n%mode text\n%ignore "c"\n'),
    "dynamic": mw.Lark('start: "a" (start | "b") "c"? | "ab"', lexer="dynamic"),
    "tokens": mw.Lark(f"start: name <[256-258]> /x+/\nname[capture]: /[a-c]+/ | <[{END - 1}]>"),
    "gbnf": mw.GBNF('root ::= "(" root ")" root | "a"*'),
    "regex": mw.Regex(r"(?!abc)[a-z]{2,5}\d+|\u00e9*"),
    "choice": mw.Choice(["ab", "abc", "b12", "", "a\u00e9"]),
    "tag": mw.StructuralTag(TAG),
}


def vocabulary(**changed: Any) -> mw.Vocabulary:
    return mw.Vocabulary.from_bytes([*PIECES, None], eos_ids=[END], **changed)


def walk(matcher: Any, seed: int, steps: int = 25) -> list[Any]:
    """What is allowed along a random text, and what is captured in the end."""
    rng = random.Random(seed)
    seen: list[Any] = []
    for _ in range(steps):
        ids = toys.allowed(matcher)
        seen.append((ids, matcher.is_accepting))
        if matcher.is_terminated:
            break
        assert matcher.accept_token(rng.choice(sorted(ids)))
    return [*seen, matcher.accepted_tokens, matcher.captures()]
