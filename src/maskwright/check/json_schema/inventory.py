"""What becomes of each keyword: enforced, an annotation, or refused."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import Any

from maskwright.check.report import Finding, KeywordUse
from maskwright.errors import Refusal
from maskwright.frontends.json_schema.algebra.typed import ABOUT, type_names
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import CHECKS, REFUSED, is_hidden
from maskwright.frontends.json_schema.read.nodes import Node
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.json_schema.texts.formats import INTEGER_BOUNDS, OPENAPI_PATTERNS, PATTERNS

ENFORCED = (CHECKS.keys() | {"const"}) - REFUSED.keys()
_ANNOTATIONS = frozenset(
    (
        "$anchor", "$comment", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "$schema", "$vocabulary",
        "contentEncoding", "contentMediaType", "contentSchema", "default", "definitions", "deprecated", "description",
        "discriminator", "example", "examples", "externalDocs", "id", "nullable", "readOnly", "title", "writeOnly",
        "xml",
    )
)  # fmt: skip
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_NEEDS = {
    "then": "if",
    "else": "if",
    "minContains": "contains",
    "maxContains": "contains",
}
"""Keywords that say nothing without another one."""
_MISSPELLED = 0.8


def uses(document: Document, node: Node, options: SchemaOptions, refusals: list[Refusal]) -> list[KeywordUse]:
    """The keywords of one schema object, in order."""
    place = node.pointer or "#"
    refused = {r.keyword: r.reason for r in refusals if (r.pointer or "#") == place}
    found: list[KeywordUse] = []
    for keyword in node.value:
        if keyword in refused:
            found.append(KeywordUse(place, keyword, "refused", refused[keyword]))
            continue
        reason = _not_enforced(node, keyword, options)
        if reason is None:
            found.append(KeywordUse(place, keyword, "enforced"))
        else:
            found.append(KeywordUse(place, keyword, "annotation", reason))
    for keyword in document.ignored_keywords(node):
        reason = f"{node.base.dialect.name} does not have it"
        found.append(KeywordUse(place, keyword, "annotation", reason))
    return found


def _not_enforced(node: Node, keyword: str, options: SchemaOptions) -> str | None:
    """Why a keyword demands nothing, "" where its name says so; None when it is enforced."""
    schema, dialect = node.value, node.base.dialect
    value = schema[keyword]
    if keyword in REFUSED:
        return "with this value it demands nothing"
    if keyword == "nullable" and dialect.nullable:
        return None if "type" in schema else "without type, it says nothing"
    if keyword == "nullable" and value is True:
        return f"{dialect.name} does not have it"
    if keyword in _REFERENCES and keyword not in dialect.references:
        return f"{dialect.name} does not have it"
    if keyword in _ANNOTATIONS:
        return ""
    if keyword not in ENFORCED:
        return "no keyword"
    if keyword != "$ref" and is_hidden(node):
        return f"{dialect.name} ignores it beside $ref"
    if keyword == "format":
        return _format_not_enforced(value, node, options)
    if keyword in _NEEDS and _NEEDS[keyword] not in schema:
        return f"without {_NEEDS[keyword]}, it says nothing"
    if keyword == "additionalItems" and not isinstance(schema.get("items"), list):
        return "without a list of items, it says nothing"
    if keyword in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
        bound = keyword.removeprefix("exclusive").lower()
        return None if bound in schema else f"without {bound}, it says nothing"
    if keyword == "required" and isinstance(value, bool) and node.base.dialect.name != "draft3":
        return "true and false are of draft 3; list the names in the object around"
    return None


def _format_not_enforced(value: Any, node: Node, options: SchemaOptions) -> str | None:
    if options.formats == "annotate" and not (node.base.dialect.asserts_formats and value in PATTERNS):
        return 'formats="annotate"'
    of_openapi = value in OPENAPI_PATTERNS and node.base.dialect.name.startswith("openapi")
    if value in PATTERNS or of_openapi or value in INTEGER_BOUNDS:
        return None
    return "unknown format"


def remarks(use: KeywordUse, node: Node) -> Iterator[Finding]:
    """What an author should know about an annotation that may have been meant as more."""
    if use.status != "annotation":
        return
    keyword, reason = use.keyword, use.reason
    if keyword == "format" and not is_hidden(node):
        message = f"format {node.value[keyword]!r} is not enforced"
        if reason == "unknown format":
            message += _meant(node.value[keyword], _FORMATS)
        yield Finding("note", "format-annotation", use.pointer, message)
    elif reason == "no keyword":
        message = f"{keyword!r} is no keyword; it is ignored"
        if not keyword.startswith("x-"):
            message += _meant(keyword, _KNOWN)
        yield Finding("note", "unknown-keyword", use.pointer, message)
    elif reason.endswith("does not have it"):
        dialect = node.base.dialect.name
        message = f"{keyword!r} is no keyword of {dialect}; it is ignored"
        if keyword == "nullable":
            kind = node.value.get("type")
            instead = f'type ["{kind}", "null"]' if isinstance(kind, str) else 'anyOf with {"type": "null"}'
            message += f" (write {instead}, or dialect openapi-3.0)"
        yield Finding("note", "unknown-keyword", use.pointer, message)
    elif reason:
        yield Finding("note", "ignored-keyword", use.pointer, f"{keyword!r} is ignored: {reason}")


_KNOWN = sorted(ENFORCED | _ANNOTATIONS)
_FORMATS = sorted(PATTERNS.keys() | INTEGER_BOUNDS.keys())


def _meant(word: str, known: list[str]) -> str:
    close = difflib.get_close_matches(word, known, 1, _MISSPELLED)
    return f" (did you mean {close[0]!r}?)" if close else ""


def about_other_types(node: Node) -> Iterator[Finding]:
    """Keywords about types that ``type`` does not allow: no value is ever held against them."""
    schema = node.value
    if "type" not in schema or is_hidden(node):
        return
    names = type_names(node)
    for name, keywords in ABOUT.items():
        if name in names or name == "integer" or (name == "number" and "integer" in names):
            continue
        for keyword in schema:
            if keyword not in keywords or (keyword == "format" and schema["format"] in INTEGER_BOUNDS):
                continue
            message = f"{keyword} is about {_PLURALS[name]}, which type {schema['type']!r} does not allow"
            yield Finding("note", "other-type", node.pointer or "#", message)


_PLURALS = {"number": "numbers", "string": "strings", "array": "arrays", "object": "objects"}
