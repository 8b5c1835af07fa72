"""``%json {...}`` in a Lark grammar: JSON Schemas as terminals that the package lark does not look into."""

from __future__ import annotations

import json
import re
from typing import Any

from maskwright.errors import GrammarError, line_column

_NAME = "INLINE_JSON_"
# What may hold the characters "%json" without meaning it.
_TOKENS = re.compile(
    r'"(?:\\.|[^"\\\n])*"|/(?!/)(?:\\.|[^/\\\n])+/|(?://|\#)[^\n]*|%(json|regex|lark|llguidance)\b|(<\|[^|>\n]*\|>|<\[[^\]\n]*\]>)'
)


def take_inline(text: str) -> tuple[str, dict[str, Any]]:
    """The text with a declared terminal for each inline schema, and the schemas by terminal.

    Lines stay where they are.  Raises ``GrammarError`` for malformed JSON, and for ``%regex``.
    """
    schemas: dict[str, Any] = {}
    out, at = [], 0
    while (found := _TOKENS.search(text, at)) is not None:
        out.append(text[at : found.start()])
        at = found.end()
        if found[2] is not None:
            raise GrammarError(
                f"the special token {found[2]} is not supported: grammars are over text",
                place=line_column(text, found.start()),
                source=text,
            )
        if found[1] is None:
            out.append(found[0])
            continue
        place = line_column(text, found.start())
        if found[1] != "json":
            raise GrammarError(f"{found[0]} is not supported", place=place, source=text)
        start = at + len(text[at:]) - len(text[at:].lstrip())
        try:
            schema, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError as error:
            raise GrammarError(
                f"%json needs a JSON Schema behind it: {error}", place=place, source=text
            ) from None
        name = f"{_NAME}{len(schemas)}"
        schemas[name] = schema
        out.append(name + "\n" * text.count("\n", found.start(), end))
        at = end
    out.append(text[at:])
    if schemas:
        out.append(f"\n%declare {' '.join(schemas)}\n")
    return "".join(out), schemas
