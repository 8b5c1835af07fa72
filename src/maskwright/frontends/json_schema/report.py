"""What the compiler would do with a schema, as a report; needs no vocabulary."""

from __future__ import annotations

from typing import Any

from maskwright.errors import GrammarError, LimitError, Refusal, UnsatisfiableError, UnsupportedSchemaError
from maskwright.frontends.json_schema.document import Document
from maskwright.frontends.json_schema.emit import Emitter
from maskwright.frontends.json_schema.formats import INTEGER_BOUNDS, PATTERNS
from maskwright.frontends.json_schema.keywords import CHECKS, REFUSED, reachable, survey
from maskwright.frontends.json_schema.normalize import Normalizer
from maskwright.frontends.json_schema.options import SchemaOptions
from maskwright.limits import DEFAULT_LIMITS, Limits
from maskwright.passes.prune import prune
from maskwright.report import Finding, Report

_ANNOTATIONS = frozenset(
    [
        "$schema",
        "$id",
        "id",
        "$comment",
        "$anchor",
        "$dynamicAnchor",
        "$recursiveAnchor",
        "$vocabulary",
        "$defs",
        "definitions",
        "title",
        "description",
        "default",
        "deprecated",
        "readOnly",
        "writeOnly",
        "examples",
        "example",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "const",
        "discriminator",
        "xml",
        "externalDocs",
        "nullable",
    ]
)


def check_json_schema(
    schema: dict[str, Any] | bool | str | bytes,
    options: SchemaOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Report:
    """Every problem of a schema with its place.

    Errors are what stops ``compile_json_schema``: codes ``malformed``, ``unsupported``,
    ``unsatisfiable``, ``limit``.  Notes point out keywords and formats that are mere annotations.
    """
    options = options or SchemaOptions()
    findings: list[Finding] = []
    try:
        document = Document(schema, limits, options.dialect, options.registry)
        for refusal in survey(document, options):
            findings.append(_refused(refusal))
        findings.extend(_notes(document, options))
        if all(finding.severity != "error" for finding in findings):
            emitter = Emitter(Normalizer(document, options, limits), options, limits)
            prune(emitter.emit((document.root,)))
    except UnsupportedSchemaError as error:
        findings.extend(_refused(refusal) for refusal in error.refusals)
    except UnsatisfiableError as error:
        findings.append(Finding("error", "unsatisfiable", error.place or "#", error.message))
    except LimitError as error:
        findings.append(Finding("error", "limit", error.place or "#", str(error)))
    except GrammarError as error:
        findings.append(Finding("error", "malformed", error.place or "#", error.message))
    return Report(findings)


_ENFORCED_FORMATS = PATTERNS.keys() | INTEGER_BOUNDS.keys()


def _refused(refusal: Refusal) -> Finding:
    return Finding("error", "unsupported", refusal.pointer or "#", f"{refusal.keyword}: {refusal.reason}")


def _notes(document: Document, options: SchemaOptions) -> list[Finding]:
    notes = []
    for node in reachable(document):
        if not isinstance(node.value, dict):
            continue
        for keyword in document.ignored_keywords(node):
            message = f"{keyword!r} is no keyword of {node.base.dialect.name}; it is ignored"
            notes.append(Finding("note", "unknown-keyword", node.pointer or "#", message))
        for keyword, value in node.value.items():
            known = keyword in CHECKS or keyword in REFUSED or keyword in _ANNOTATIONS
            if keyword in ("$dynamicRef", "$recursiveRef"):
                known = keyword in node.base.dialect.references
            if not known:
                notes.append(
                    Finding(
                        "note",
                        "unknown-keyword",
                        node.pointer or "#",
                        f"{keyword!r} is no keyword; it is ignored",
                    )
                )
            if keyword == "format" and (options.formats == "annotate" or value not in _ENFORCED_FORMATS):
                notes.append(
                    Finding(
                        "note", "format-annotation", node.pointer or "#", f"format {value!r} is not enforced"
                    )
                )
    return notes
