"""Whether other services take a schema: the subsets of JSON Schema that they document, as data."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from maskwright.base.arguments import one_of
from maskwright.check.report import Finding, Severity
from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import SUBSCHEMAS, held
from maskwright.frontends.json_schema.read.nodes import Node


@dataclass(frozen=True, slots=True)
class Profile:
    """A documented subset of JSON Schema.  Counts are of the whole schema, lengths in characters."""

    name: str
    source: str
    """Where it is documented, and as of when these rules were read."""
    supported: frozenset[str]
    """Keywords documented as supported, and annotations that change nothing."""
    unsupported: frozenset[str]
    """Keywords documented as not supported.  Others are not documented: a warning."""
    formats: frozenset[str]
    root_type: str
    closed_objects: bool
    """Objects must have ``additionalProperties: false``."""
    all_required: bool
    """Every property must be listed in ``required``."""
    max_properties: int
    max_object_levels: int
    """Objects inside each other, the root included; references to what is around do not count."""
    max_enum_values: int
    max_text: int
    """Names of properties and definitions, and texts of ``enum`` and ``const``, together."""
    long_enum: tuple[int, int]
    """An ``enum`` of strings with more values than the first has at most so many characters as the second."""


OPENAI_STRICT = Profile(
    name="openai-strict",
    source="OpenAI API documentation, Structured Outputs, section 'Supported schemas', as of February 2026",
    supported=frozenset(
        (
            "$comment", "$defs", "$id", "$ref", "$schema", "additionalProperties", "anyOf", "const", "definitions",
            "description", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "items", "maxItems", "maximum",
            "minItems", "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
        )
    ),
    unsupported=frozenset(
        ("allOf", "dependentRequired", "dependentSchemas", "else", "if", "not", "then")
    ),
    formats=frozenset(
        ("date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid")
    ),
    root_type="object",
    closed_objects=True,
    all_required=True,
    max_properties=5_000,
    max_object_levels=10,
    max_enum_values=1_000,
    max_text=120_000,
    long_enum=(250, 15_000),
)  # fmt: skip

PROFILES = {profile.name: profile for profile in (OPENAI_STRICT,)}
_TYPED = frozenset(("type", "$ref", "anyOf", "enum", "const"))


def profile_named(name: str) -> Profile:
    """Raises ``GrammarError`` for a name that no profile has."""
    one_of(name, PROFILES, "profile", GrammarError)
    return PROFILES[name]


def outside_profile(profile: Profile, document: Document, nodes: list[Node]) -> list[Finding]:
    """Where a schema leaves the profile: errors for what it documents, warnings for what it is silent about."""
    found: list[Finding] = []

    def note(place: str, message: str, severity: Severity = "error") -> None:
        found.append(Finding(severity, profile.name, place or "#", message))

    for message in _about_root(profile, document.root.value):
        note("#", message)
    nodes = list({node.pointer: node for node in nodes}.values())
    for node in nodes:
        schema = node.value
        if isinstance(schema, bool):
            if node.pointer and not node.pointer.endswith("/additionalProperties"):
                note(node.pointer, "a boolean schema is not documented as supported", "warning")
            continue
        for keyword in schema:
            if keyword in profile.unsupported:
                note(node.pointer, f"{keyword} is not supported")
            elif keyword not in profile.supported:
                note(node.pointer, f"{keyword} is not documented as supported", "warning")
        if _is_of_objects(schema):
            for message in _about_object(profile, schema):
                note(node.pointer, message)
        if "format" in schema and schema["format"] not in profile.formats:
            note(node.pointer, f"format {schema['format']!r} is not documented as supported", "warning")
        if _TYPED.isdisjoint(schema):
            note(node.pointer, "the subschema has no type (nor $ref, anyOf, enum or const)", "warning")
        values = schema.get("enum", ())
        many, longest = profile.long_enum
        if len(values) > many and all(isinstance(v, str) for v in values):
            length = sum(map(len, values))
            if length > longest:
                note(
                    node.pointer,
                    f"the {len(values)} strings of enum have {length} characters; from {many + 1} values on, "
                    f"{longest} are allowed",
                )
    for message in _about_size(profile, document, nodes):
        note("#", message)
    return found


def _about_root(profile: Profile, root: Any) -> Iterator[str]:
    if not isinstance(root, dict) or root.get("type") != profile.root_type:
        yield f"the root must have type {profile.root_type!r}"
    if isinstance(root, dict) and "anyOf" in root:
        yield "the root must not be an anyOf"


def _is_of_objects(schema: dict[str, Any]) -> bool:
    types = schema.get("type")
    return types == "object" or (isinstance(types, list) and "object" in types) or "properties" in schema


def _about_object(profile: Profile, schema: dict[str, Any]) -> Iterator[str]:
    if profile.closed_objects and schema.get("additionalProperties") is not False:
        yield "an object must have additionalProperties: false"
    required = schema.get("required")
    listed = required if isinstance(required, list) else ()
    missing = [name for name in schema.get("properties", ()) if name not in listed]
    if profile.all_required and missing:
        names = ", ".join(map(repr, missing[:5])) + (" ..." if len(missing) > 5 else "")
        yield f"every property must be required: list {names}, and let what is optional be null"


def _about_size(profile: Profile, document: Document, nodes: list[Node]) -> Iterator[str]:
    names = [
        name for node in nodes if isinstance(node.value, dict) for name in node.value.get("properties", ())
    ]
    values = [v for node in nodes if isinstance(node.value, dict) for v in node.value.get("enum", ())]
    consts = [node.value["const"] for node in nodes if isinstance(node.value, dict) and "const" in node.value]
    root = document.root.value if isinstance(document.root.value, dict) else {}
    definitions = [name for keyword in ("$defs", "definitions") for name in root.get(keyword, ())]
    text = sum(len(t) for t in (*names, *definitions, *values, *consts) if isinstance(t, str))
    for count, most, what in (
        (len(names), profile.max_properties, "properties"),
        (_object_levels(document, profile.max_object_levels), profile.max_object_levels, "levels of objects"),
        (len(values), profile.max_enum_values, "enum values"),
        (text, profile.max_text, "characters in names, enum and const"),
    ):
        if count > most:
            yield f"more than {most} {what}"


def _object_levels(document: Document, most: int) -> int:
    """How many objects are inside each other at most, also through references but those to what is around.

    Not followed further than one more than ``most``.
    """
    deepest = 0
    best: dict[str, int] = {}
    work: list[tuple[Node, int, frozenset[str]]] = [(document.root, 0, frozenset())]
    while work:
        node, level, around = work.pop()
        if node.pointer in around or not isinstance(node.value, dict):
            continue
        level += _is_of_objects(node.value)
        if best.get(node.pointer, -1) >= level:
            continue
        best[node.pointer] = level
        deepest = max(deepest, level)
        if level > most:
            break
        around |= {node.pointer}
        for keyword in node.value:
            if keyword in SUBSCHEMAS:
                work += ((below, level, around) for below in held(node, keyword))
            elif keyword in node.base.dialect.references:
                work.append((document.resolve(node, keyword), level, around))
    return deepest
