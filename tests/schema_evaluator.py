"""A plain interpreter of JSON Schema over ``Document``: where references lead, without an automaton.

It knows every keyword of the dialects from draft 4 on but ``format``, so that whole schemas with
dynamic references can be judged.  Slow, and only for tests.
"""

from __future__ import annotations

import json
import re
from fractions import Fraction
from typing import Any

import maskwright as mw
from maskwright.errors import GrammarError
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import survey
from maskwright.frontends.json_schema.read.nodes import Node
from maskwright.limits import DEFAULT_LIMITS

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
V2019 = "https://json-schema.org/draft/2019-09/schema"
V2020 = "https://json-schema.org/draft/2020-12/schema"
INTEGER, STRING = {"type": "integer"}, {"type": "string"}
BYTES = mw.Vocabulary.from_bytes([bytes([i]) for i in range(256)] + [None], eos_ids=[256])


def accepts(compiled: mw.CompiledGrammar, value: Any) -> bool:
    """Whether a grammar accepts a value as ``json.dumps`` writes it."""
    matcher = compiled.matcher()
    return matcher.accept_bytes(json.dumps(value).encode()) and matcher.is_accepting


def is_valid(document: Document, data: Any) -> bool:
    """Whether an instance satisfies the root of a document."""
    return evaluated(document, document.root, data) is not None


def evaluated(document: Document, node: Node, data: Any) -> set[str | int] | None:
    """The members and items that a subschema has looked at, or None when it is not satisfied."""
    schema = node.value
    if isinstance(schema, bool):
        return set() if schema else None
    dialect = node.base.dialect
    seen: set[str | int] = set()
    for keyword in dialect.references:
        if keyword in schema:
            found = evaluated(document, document.resolve(node, keyword), data)
            if found is None:
                return None
            seen |= found
    if "$ref" in schema and dialect.ref_hides_siblings:
        return seen

    def branch(*path: str | int) -> set[str | int] | None:
        return evaluated(document, node.at(*path), data)

    def holds(value: Any, *path: str | int) -> bool:
        return evaluated(document, node.at(*path), value) is not None

    if not _assertions(schema, data):
        return None
    for i in range(len(schema.get("allOf", ()))):
        found = branch("allOf", i)
        if found is None:
            return None
        seen |= found
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            good = [f for i in range(len(schema[keyword])) if (f := branch(keyword, i)) is not None]
            if not good or (keyword == "oneOf" and len(good) > 1):
                return None
            seen = seen.union(*good)
    if "not" in schema and branch("not") is not None:
        return None
    if "if" in schema:
        condition = branch("if")
        seen |= condition or set()
        consequence = "then" if condition is not None else "else"
        if consequence in schema:
            found = branch(consequence)
            if found is None:
                return None
            seen |= found
    if isinstance(data, dict):
        for keyword in ("dependencies", "dependentSchemas", "dependentRequired"):
            for name, needed in schema.get(keyword, {}).items():
                if name not in data:
                    continue
                if isinstance(needed, list):
                    if not set(needed) <= set(data):
                        return None
                    continue
                found = branch(keyword, name)
                if found is None:
                    return None
                seen |= found
        for name, value in data.items():
            known = False
            if name in schema.get("properties", {}):
                known = True
                if not holds(value, "properties", name):
                    return None
            for pattern in schema.get("patternProperties", {}):
                if re.search(pattern, name):
                    known = True
                    if not holds(value, "patternProperties", pattern):
                        return None
            if not known and "additionalProperties" in schema:
                known = True
                if not holds(value, "additionalProperties"):
                    return None
            if known:
                seen.add(name)
            if "propertyNames" in schema and not holds(name, "propertyNames"):
                return None
        if "unevaluatedProperties" in schema:
            for name in set(data) - seen:
                if not holds(data[name], "unevaluatedProperties"):
                    return None
            seen |= set(data)
    if isinstance(data, list):
        found = _items(schema, data, holds)
        if found is None:
            return None
        if "contains" in schema and dialect.contains_evaluates:
            found |= {i for i, item in enumerate(data) if holds(item, "contains")}
        seen |= found
        if "unevaluatedItems" in schema:
            indices = set(range(len(data)))
            if not all(holds(data[i], "unevaluatedItems") for i in indices - seen):
                return None
            seen |= indices
    return seen


def _items(schema: dict[str, Any], data: list[Any], holds: Any) -> set[str | int] | None:
    keyword = "prefixItems" if "prefixItems" in schema else "items"
    rest: str | None = keyword
    start = 0
    if isinstance(schema.get(keyword), list):
        start = len(schema[keyword])
        if not all(holds(item, keyword, i) for i, item in enumerate(data[:start])):
            return None
        rest = "items" if keyword == "prefixItems" else "additionalItems"
    if rest in schema and not all(holds(item, rest) for item in data[start:]):
        return None
    if "contains" in schema:
        count = sum(holds(item, "contains") for item in data)
        if not schema.get("minContains", 1) <= count <= schema.get("maxContains", count):
            return None
    return set(range(len(data) if rest in schema else min(start, len(data))))


def _assertions(schema: dict[str, Any], data: Any) -> bool:
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_has_type(data, name) for name in types):
        return False
    if "const" in schema and _text(schema["const"]) != _text(data):
        return False
    if "enum" in schema and _text(data) not in map(_text, schema["enum"]):
        return False
    if _has_type(data, "number"):
        low, high = schema.get("minimum"), schema.get("maximum")
        exclusive = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        return not (
            (low is not None and (data < low or (exclusive[0] is True and data == low)))
            or (high is not None and (data > high or (exclusive[1] is True and data == high)))
            or (_has_type(exclusive[0], "number") and data <= exclusive[0])
            or (_has_type(exclusive[1], "number") and data >= exclusive[1])
            or ("multipleOf" in schema and Fraction(str(data)) % Fraction(str(schema["multipleOf"])))
        )
    if isinstance(data, str):
        return _counted(schema, len(data), "Length") and (
            "pattern" not in schema or re.search(schema["pattern"], data) is not None
        )
    if isinstance(data, list):
        texts = list(map(_text, data))
        unique = schema.get("uniqueItems") is not True or len(set(texts)) == len(texts)
        return unique and _counted(schema, len(data), "Items")
    if isinstance(data, dict):
        return set(schema.get("required", ())) <= set(data) and _counted(schema, len(data), "Properties")
    return True


def _counted(schema: dict[str, Any], count: int, of: str) -> bool:
    return schema.get("min" + of, 0) <= count <= schema.get("max" + of, count)


def _has_type(data: Any, name: str) -> bool:
    if isinstance(data, bool) or data is None:
        return name == ("null" if data is None else "boolean")
    if isinstance(data, (int, float)):
        return name == "number" or (name == "integer" and data % 1 == 0)
    return name == {str: "string", list: "array", dict: "object"}[type(data)]


def _text(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and value % 1 == 0:
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return value


# --- documents of schemas, for tests


def document(schema: Any, **options: Any) -> Document:
    return Document(schema, DEFAULT_LIMITS, **options)


def target(schema: dict[str, Any], *path: str | int, **options: Any) -> Node:
    """What the ``$ref`` at a path of a schema leads to; at the root by default."""
    read = document(schema, **options)
    node = read.root
    for i in range(0, len(path), 2):
        node = node.at(*path[i : i + 2])
    return read.resolve(node)


def error(schema: Any, **options: Any) -> GrammarError:
    """The error of a schema that is malformed."""
    try:
        survey(document(schema, **options), SchemaOptions())
    except GrammarError as found:
        return found
    raise AssertionError("there is no error")
