"""The dialects of JSON Schema: what ``$schema`` declares, and what differs from one to the next."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from maskwright.errors import GrammarError

MAPS = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)
"""Keywords whose members are subschemas."""

HOLDERS = MAPS | {
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "contains",
    "contentSchema",
    "disallow",
    "else",
    "extends",
    "if",
    "items",
    "not",
    "oneOf",
    "prefixItems",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
}
"""Keywords that hold subschemas in some dialect; identifiers below any other keyword are none."""


@dataclass(frozen=True)
class Dialect:
    """What one dialect means by its keywords, as far as others mean something else."""

    name: str
    identifier: str | None = "$id"
    """The keyword that starts a schema resource: ``id`` up to draft 4 (draft-04 core, section 7.2)."""
    references: tuple[str, ...] = ("$ref",)
    """The keywords that point to a subschema to be applied here."""
    ref_hides_siblings: bool = False
    """Up to draft 7, keywords beside ``$ref`` are ignored (draft-07 core, section 8.3)."""
    anchors: bool = False
    """``$anchor`` names a place (2019-09 core, section 8.2.3)."""
    list_items: bool = False
    """``items`` may be the list that 2020-12 calls ``prefixItems``, and ``additionalItems`` is the
    rest (up to 2019-09)."""
    boolean_exclusive: bool = False
    """``exclusiveMinimum`` and ``exclusiveMaximum`` say how ``minimum`` and ``maximum`` are meant
    (draft-04 validation, sections 5.1.2 and 5.1.3)."""
    contains_evaluates: bool = False
    """Items that match ``contains`` are evaluated (2020-12 core, section 11.2)."""
    plain_integers: bool = False
    """An integer is written without fraction and exponent (draft-04 core, section 3.5)."""
    nullable: bool = False
    """``nullable: true`` adds null to ``type`` (OpenAPI 3.0, Schema Object)."""
    punycode: bool = True
    """Host names may be internationalised (draft-07 validation, section 7.3.3)."""
    asserts_formats: bool = False
    """``format`` is an assertion, whatever the options say (2020-12 validation, section 7.2.2)."""
    later_formats: frozenset[str] = frozenset()
    """Formats of later dialects: they are enforced, but a validator of this one may take every string for them."""
    ignored: frozenset[str] = frozenset()
    """Assertions of later dialects, which mean nothing here: unknown keywords are ignored (core,
    section 4.3.1, in draft 7 as in 2020-12)."""

    @property
    def dynamic(self) -> bool:
        """``$dynamicRef`` and ``$dynamicAnchor`` (2020-12 core, section 8.2.3.2)."""
        return "$dynamicRef" in self.references

    @property
    def recursive(self) -> bool:
        """``$recursiveRef`` and ``$recursiveAnchor`` (2019-09 core, section 8.2.4.2)."""
        return "$recursiveRef" in self.references


_NEW_IN_2020_12 = frozenset(["prefixItems"])
_NEW_IN_2019_09 = frozenset(
    [
        "dependentRequired",
        "dependentSchemas",
        "maxContains",
        "minContains",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
_NEW_IN_DRAFT_7 = frozenset(["else", "if", "then"])
_NEW_IN_DRAFT_6 = frozenset(["const", "contains", "propertyNames"])
_NEWER_THAN_DRAFT_7 = _NEW_IN_2019_09 | _NEW_IN_2020_12
_NEWER_THAN_DRAFT_6 = _NEWER_THAN_DRAFT_7 | _NEW_IN_DRAFT_7

_FORMATS_OF_2019_09 = frozenset(["duration", "uuid"])
_FORMATS_OF_DRAFT_7 = frozenset(
    ["date", "idn-email", "idn-hostname", "iri", "iri-reference", "regex", "relative-json-pointer", "time"]
)
_FORMATS_OF_DRAFT_6 = frozenset(["json-pointer", "uri-reference", "uri-template"])

_DRAFT_4 = Dialect(
    "draft4",
    identifier="id",
    ref_hides_siblings=True,
    list_items=True,
    boolean_exclusive=True,
    plain_integers=True,
    punycode=False,
    later_formats=_FORMATS_OF_DRAFT_6 | _FORMATS_OF_DRAFT_7 | _FORMATS_OF_2019_09,
    ignored=_NEWER_THAN_DRAFT_6 | _NEW_IN_DRAFT_6,
)
_DRAFT_6 = Dialect(
    "draft6",
    ref_hides_siblings=True,
    list_items=True,
    punycode=False,
    later_formats=_FORMATS_OF_DRAFT_7 | _FORMATS_OF_2019_09,
    ignored=_NEWER_THAN_DRAFT_6,
)
_2020_12 = Dialect("2020-12", references=("$ref", "$dynamicRef"), anchors=True, contains_evaluates=True)
DEFAULT = _2020_12

DIALECTS = {
    dialect.name: dialect
    for dialect in (
        replace(_DRAFT_4, name="draft3"),
        _DRAFT_4,
        _DRAFT_6,
        replace(
            _DRAFT_6,
            name="draft7",
            punycode=True,
            later_formats=_FORMATS_OF_2019_09,
            ignored=_NEWER_THAN_DRAFT_7,
        ),
        Dialect(
            "2019-09",
            references=("$ref", "$recursiveRef"),
            anchors=True,
            list_items=True,
            ignored=_NEW_IN_2020_12,
        ),
        _2020_12,
        Dialect(
            "openapi-3.0", identifier=None, ref_hides_siblings=True, boolean_exclusive=True, nullable=True
        ),
        replace(_2020_12, name="openapi-3.1"),
    )
}

# Parts of metaschema URIs; those of many derived metaschemas have them too.
_MARKS = (
    ("draft-03", "draft3"),
    ("draft-04", "draft4"),
    ("draft-05", "draft4"),
    ("draft-06", "draft6"),
    ("draft-07", "draft7"),
    ("2019-09", "2019-09"),
    ("2020-12", "2020-12"),
    ("oas/3.0", "openapi-3.0"),
    ("oas/3.1", "openapi-3.1"),
)

_UNEVALUATED = frozenset(["unevaluatedItems", "unevaluatedProperties"])
_APPLICATOR = HOLDERS - _UNEVALUATED - {"$defs", "contentSchema"}
_VALIDATION = frozenset(
    [
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    ]
)
_VOCABULARIES = {
    "2019-09": {"applicator": _APPLICATOR | _UNEVALUATED, "validation": _VALIDATION},
    "2020-12": {"applicator": _APPLICATOR, "unevaluated": _UNEVALUATED, "validation": _VALIDATION},
}
_OTHER_VOCABULARIES = ("core", "meta-data", "format", "format-annotation", "format-assertion", "content")


def declared_dialect(uri: Any, metaschema: Callable[[str], Any], place: str) -> Dialect | None:
    """The dialect that a ``$schema`` names; None when nothing tells.

    ``metaschema`` gives the schema at a URI, or None: a custom metaschema has the dialect of its own
    ``$schema``, without the vocabularies that its ``$vocabulary`` leaves out (2020-12 core, section
    8.1.2).  Raises ``GrammarError`` when it requires a vocabulary that is not known.
    """
    seen: list[str] = []
    required: Any = None
    while isinstance(uri, str) and uri not in seen:
        marked = next((DIALECTS[name] for mark, name in _MARKS if mark in uri), None)
        if marked is not None and "://json-schema.org/" in uri:
            return _with_vocabularies(marked, required, seen, place)
        found = metaschema(uri.removesuffix("#"))
        if not isinstance(found, dict):
            return None if marked is None else _with_vocabularies(marked, required, seen, place)
        if required is None:
            required = found.get("$vocabulary")
        seen.append(uri)
        uri = found.get("$schema")
    return None


def _with_vocabularies(dialect: Dialect, vocabularies: Any, metaschemas: list[str], place: str) -> Dialect:
    known = _VOCABULARIES.get(dialect.name)
    if known is None or not isinstance(vocabularies, dict):
        return dialect
    start = f"https://json-schema.org/draft/{dialect.name}/vocab/"
    for uri, needed in vocabularies.items():
        name = uri.removeprefix(start)
        if needed is True and (name == uri or (name not in known and name not in _OTHER_VOCABULARIES)):
            raise GrammarError(
                f"the metaschema {metaschemas[0]!r} requires the vocabulary {uri!r}, which is not known here",
                place=place,
            )
    left_out = [keywords for name, keywords in known.items() if start + name not in vocabularies]
    return replace(
        dialect,
        ignored=dialect.ignored.union(*left_out),
        asserts_formats=start + "format-assertion" in vocabularies,
    )
