"""Prompt text of the demo diffusion model: a request, an outline of the schema, and the answer marker."""

from __future__ import annotations

from typing import Any

ANSWER_TOKEN = "<|json|>"

_SHORT_TYPES = {"string": "str", "integer": "int", "number": "num", "boolean": "bool", "null": "null"}


def format_prompt(request: str, schema: Any) -> str:
    """The text in front of the canvas of JSON; the tokenizer puts ``<|bos|>`` in front."""
    return f"{request}\nSchema: {schema_outline(schema)}\n{ANSWER_TOKEN}"


def schema_outline(schema: Any) -> str:
    """Names and types of ``schema`` in one line.

    The full schema would fill most of a small context, and lengths, ranges and patterns are
    enforced by the mask, so the outline leaves them out.  ``key?`` marks a key that may be absent.
    """
    defs = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    parts = [f"{name} = {_outline(part)}; " for name, part in defs.items()]
    return "".join(parts) + _outline(schema)


def _outline(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "any"
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[-1]
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return "|".join("null" if value is None else str(value) for value in schema["enum"])
    if "anyOf" in schema:
        return "|".join(_outline(part) for part in schema["anyOf"])
    if "allOf" in schema:
        return _outline(schema["allOf"][0])
    kind = schema.get("type")
    if isinstance(kind, list):
        return "|".join(_outline({**schema, "type": one}) for one in kind)
    if kind == "object":
        required = schema.get("required", [])
        members = (
            f"{key}{'' if key in required else '?'}: {_outline(part)}"
            for key, part in schema.get("properties", {}).items()
        )
        return "{" + ", ".join(members) + "}"
    if kind == "array":
        if "prefixItems" in schema:
            return "(" + ", ".join(_outline(part) for part in schema["prefixItems"]) + ")"
        return "[" + _outline(schema.get("items", {})) + "]"
    return str(schema.get("format") or _SHORT_TYPES.get(str(kind), "any"))
