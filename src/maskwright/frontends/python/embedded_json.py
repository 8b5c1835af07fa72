"""JSON text inside of a string: the pattern of strings that hold the JSON text of a schema's instances.

A pattern is a regular expression, so this is for what nests to a depth that is known.  Members come in the order of
the schema, and a blank may stand behind ``,`` and ``:``.  What has no such pattern is a ``GrammarError``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.texts.formats import PATTERNS
from maskwright.frontends.python.ranges import integers

_ANY_DEPTH = 2
"""How deep values nest of which nothing is said."""
_COMMA, _COLON = ", ?", ": ?"
_CHARACTER = r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])'
_NUMBER = r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,16})?"
_QUOTE_FREE = frozenset({"date", "time", "date-time", "duration", "hostname", "ipv4", "ipv6", "uuid", "uri"})
"""Formats whose texts have no character that JSON escapes."""
_SILENT = frozenset(
    {"title", "description", "default", "examples", "deprecated", "$defs", "discriminator", "uniqueItems"}
    | {"contentMediaType"}
)
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})


def with_embedded_json(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema in which every string with a ``contentSchema`` has the pattern of it.

    Raises ``GrammarError`` for content that no regular expression describes.
    """
    definitions = schema.get("$defs", {})

    def walk(part: Any) -> Any:
        if isinstance(part, list):
            return [walk(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "contentSchema" in part and part.get("type") == "string":
            kept = {
                name: value
                for name, value in part.items()
                if name not in ("contentSchema", "contentMediaType")
            }
            return {**kept, "pattern": f"^{_Embedding(definitions).text(part['contentSchema'])}$"}
        return {name: walk(value) for name, value in part.items()}

    made: dict[str, Any] = walk(schema)
    return made


def _refuse(what: str) -> GrammarError:
    return GrammarError(f"Json[...]: {what}; use the type itself, without Json")


class _Embedding:
    """The patterns of the parts of one content."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self.open: list[str] = []

    def text(self, schema: Any) -> str:
        """The JSON texts of a schema's instances, without anchors."""
        if schema is True or not (schema.keys() - _SILENT):
            return self._any(_ANY_DEPTH)
        if "$ref" in schema:
            return self._reference(schema["$ref"])
        if "const" in schema or "enum" in schema:
            values = schema.get("enum", [schema.get("const")])
            return _either([re.escape(json.dumps(value, ensure_ascii=False)) for value in values])
        for name in ("anyOf", "oneOf"):
            if name in schema:
                return _either([self.text(branch) for branch in schema[name]])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _either([self.text({**schema, "type": one}) for one in kind])
        match kind:
            case "null":
                return "null"
            case "boolean":
                return "(?:true|false)"
            case "integer" | "number":
                return self._number(schema, whole=kind == "integer")
            case "string":
                return self._string(schema)
            case "array":
                return self._array(schema)
            case "object":
                return self._object(schema)
        raise _refuse(f"no pattern for {', '.join(sorted(schema.keys() - _SILENT))}")

    def _reference(self, reference: str) -> str:
        name = reference.removeprefix("#/$defs/")
        if name in self.open:
            raise _refuse(f"{name} nests to any depth, and a pattern cannot count")
        self.open.append(name)
        made = self.text(self.definitions[name])
        self.open.pop()
        return made

    def _any(self, depth: int) -> str:
        scalars = ["null", "true", "false", _NUMBER, f'"{_CHARACTER}*"']
        if depth:
            inner = self._any(depth - 1)
            scalars += [
                _repeated(inner, r"\[", r"\]"),
                _repeated(f'"{_CHARACTER}*"{_COLON}{inner}', r"\{", r"\}"),
            ]
        return _either(scalars)

    def _number(self, schema: dict[str, Any], *, whole: bool) -> str:
        _check(schema, {"type", *_BOUNDS})
        if not schema.keys() & _BOUNDS:
            return r"(?:0|-?[1-9][0-9]{0,15})" if whole else _NUMBER
        low, high = _whole_bounds(schema)
        numbers = integers(low, high)
        if numbers is None:
            raise _refuse("no integer lies between the bounds of a number")
        if whole:
            return numbers
        # With a fraction behind it, a number is nearer to 0 than the next one.
        branches = [numbers]
        for sign, first, last in (("", low, high), ("-", _minus(high), _minus(low))):
            least = max(first, 0) if first is not None else 0
            inner = integers(least, None if last is None else last - 1)
            if (last is None or last > least) and inner is not None:
                branches.append(rf"{sign}{inner}\.[0-9]{{0,15}}[1-9]")
        return _either(branches)

    def _string(self, schema: dict[str, Any]) -> str:
        _check(schema, {"type", "format", "minLength", "maxLength"})
        form = schema.get("format")
        if form in _QUOTE_FREE and not schema.keys() & {"minLength", "maxLength"}:
            return f'"{PATTERNS[form]}"'
        if form not in (None, "binary", "password", "path"):
            raise _refuse(f"no pattern for the format {form!r} in a string that is written in a string")
        return f'"{_CHARACTER}{_counts(schema, "minLength", "maxLength")}"'

    def _array(self, schema: dict[str, Any]) -> str:
        _check(schema, {"type", "items", "prefixItems", "minItems", "maxItems"})
        least, most = schema.get("minItems", 0), schema.get("maxItems")
        if schema.get("uniqueItems") and least > 1:
            raise _refuse("a pattern cannot compare the items of a set")
        if "prefixItems" in schema:
            items = [self.text(item) for item in schema["prefixItems"]]
            if most != len(items) or least != len(items):
                raise _refuse("a tuple with more items")
            return rf"\[{_COMMA.join(items)}\]"
        return _repeated(self.text(schema.get("items", True)), r"\[", r"\]", least, most)

    def _object(self, schema: dict[str, Any]) -> str:
        _check(
            schema,
            {"type", "properties", "required", "additionalProperties", "minProperties", "maxProperties"},
        )
        properties = schema.get("properties", {})
        if not properties:
            more = schema.get("additionalProperties", True)
            if more is False:
                return r"\{\}"
            member = f'"{_CHARACTER}*"{_COLON}{self.text(more)}'
            if schema.get("minProperties", 0) > 1:
                raise _refuse("a pattern cannot compare the keys of a dict")
            return _repeated(
                member, r"\{", r"\}", schema.get("minProperties", 0), schema.get("maxProperties")
            )
        if schema.keys() & {"minProperties", "maxProperties"}:
            raise _refuse("a number of members beside declared ones")
        return rf"\{{{self._members(properties, set(schema.get('required', ())))}\}}"

    def _members(self, properties: dict[str, Any], required: set[str]) -> str:
        """Declared members in their order: from each that may be the first, those that may follow."""
        first, behind = "", ""
        for name, value in reversed(properties.items()):
            member = f"{re.escape(json.dumps(name, ensure_ascii=False))}{_COLON}{self.text(value)}"
            if name in required:
                first, behind = f"{member}{behind}", f"{_COMMA}{member}{behind}"
            else:
                first, behind = f"(?:{member}{behind}|{first})", f"(?:{_COMMA}{member})?{behind}"
        return first


def _either(branches: list[str]) -> str:
    return f"(?:{'|'.join(branches)})"


def _repeated(item: str, opening: str, closing: str, least: int = 0, most: int | None = None) -> str:
    if most == 0:
        return opening + closing
    more = f"{{{max(least - 1, 0)},{'' if most is None else most - 1}}}"
    some = f"{item}(?:{_COMMA}{item}){more}"
    return f"{opening}{some}{closing}" if least else f"{opening}(?:{some})?{closing}"


def _counts(schema: dict[str, Any], least: str, most: str) -> str:
    return f"{{{schema.get(least, 0)},{schema.get(most, '')}}}"


def _check(schema: dict[str, Any], known: set[str]) -> None:
    unknown = sorted(schema.keys() - known - _SILENT)
    if unknown:
        raise _refuse(f"no pattern for {', '.join(unknown)} of {schema.get('type')}s")


def _minus(bound: int | None) -> int | None:
    return None if bound is None else -bound


def _whole_bounds(schema: dict[str, Any]) -> tuple[int | None, int | None]:
    """The least and the greatest integer; bounds beyond what patterns write are none."""
    low = [math.ceil(schema["minimum"])] if "minimum" in schema else []
    high = [math.floor(schema["maximum"])] if "maximum" in schema else []
    if "exclusiveMinimum" in schema:
        low.append(math.floor(schema["exclusiveMinimum"]) + 1)
    if "exclusiveMaximum" in schema:
        high.append(math.ceil(schema["exclusiveMaximum"]) - 1)
    least, most = (max(low) if low else None), (min(high) if high else None)
    beyond = 10**40
    return (None if least is not None and least < -beyond else least), (
        None if most is not None and most > beyond else most
    )
