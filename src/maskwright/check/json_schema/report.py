"""What the compiler would do with a schema, as a report; needs no vocabulary."""

from __future__ import annotations

from typing import Any

from maskwright.base.arguments import check_limits, check_type
from maskwright.base.collection import rare_collection
from maskwright.base.deadline import check_time, deadline, let_go
from maskwright.check.json_schema import hints as practical
from maskwright.check.json_schema.dead import DeadParts
from maskwright.check.json_schema.inventory import about_other_types, remarks, uses
from maskwright.check.json_schema.profiles import Profile, outside_profile, profile_named
from maskwright.check.report import Finding, Report
from maskwright.errors import GrammarError, LimitError, Refusal
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.emit.emitter import Emitter
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import reachable, survey
from maskwright.frontends.json_schema.read.nodes import Node
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.limits import DEFAULT_LIMITS, Limits


def check_json_schema(
    schema: dict[str, Any] | bool | str | bytes,
    options: SchemaOptions | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    profile: str | None = None,
) -> Report:
    """What becomes of every keyword of a schema, every problem with its place, and hints.

    Errors are what stops ``compile_json_schema``: codes ``malformed``, ``unsupported``,
    ``unsatisfiable`` (with the constraints that exclude each other), ``limit``.  Warnings are about
    parts that can never be used while the whole can: ``unsatisfiable``, ``excluded`` (by what is around).  Notes point out
    what demands nothing: ``unknown-keyword``, ``format-annotation``, ``ignored-keyword``,
    ``other-type``.

    profile: ``"openai-strict"`` also tells what OpenAI's strict structured outputs would not take, under
    the profile's name as code.  It does not change what is compiled.
    Raises ``GrammarError`` for an unknown option or profile, and for limits that are none, only.
    """
    check_limits(limits)
    check_type(options, (SchemaOptions, type(None)), "options", GrammarError)
    wanted = profile_named(profile) if profile is not None else None
    report = Report(profile=profile)
    with rare_collection(), deadline(limits.max_seconds):
        _fill(report, schema, options or SchemaOptions(), limits, wanted)
    return report


def _fill(
    report: Report,
    schema: dict[str, Any] | bool | str | bytes,
    options: SchemaOptions,
    limits: Limits,
    wanted: Profile | None,
) -> None:
    document: Document | None = None
    try:
        document = Document(schema, limits, options.dialect, options.registry)
        refusals = survey(document, options)
        nodes = reachable(document)
        is_large = False
        if not refusals:
            dead = DeadParts(document, nodes, options, limits)
            refusals = _compile(dead, report)
            is_large = dead.is_large
        report.findings[:0] = [_refused(refusal) for refusal in refusals]
        _each(document, nodes, options, refusals, report)
        report.hints.extend(practical.hints(document, nodes, options, limits, is_large))
        if isinstance(options.whitespace, int) and report.compiles:
            # How deep values must be nested is seen on the grammar only.
            emitter = Emitter(Normalizer(document, options, limits), options, limits)
            try:
                emitter.emit((document.root,))
            finally:
                emitter.release()
                let_go(emitter.grammar.rules, emitter.grammar.names)
        if wanted is not None:
            report.findings.extend(outside_profile(wanted, document, nodes))
    except LimitError as error:
        report.findings.append(_limit(error))
    except GrammarError as error:
        report.findings.append(Finding("error", "malformed", error.place or "#", error.message))
    finally:
        if document is not None:
            document.release()


def _compile(dead: DeadParts, report: Report) -> list[Refusal]:
    findings = dead.findings()
    if dead.refusals or dead.limit is not None:
        # Compiling stops before emptiness matters.
        findings = [finding for finding in findings if finding.severity != "error"]
    if dead.limit is not None:
        report.findings.append(_limit(dead.limit))
    report.findings.extend(findings)
    return list(dict.fromkeys(dead.refusals))


def _each(
    document: Document, nodes: list[Node], options: SchemaOptions, refusals: list[Refusal], report: Report
) -> None:
    # One place may be reached in several dynamic scopes.
    for node in {node.pointer: node for node in nodes}.values():
        check_time()
        if not isinstance(node.value, dict):
            continue
        for use in uses(document, node, options, refusals):
            report.keywords.append(use)
            report.findings.extend(remarks(use, node))
        report.findings.extend(about_other_types(node))


def _limit(error: LimitError) -> Finding:
    return Finding("error", "limit", error.place or "#", str(error))


def _refused(refusal: Refusal) -> Finding:
    return Finding("error", "unsupported", refusal.pointer or "#", f"{refusal.keyword}: {refusal.reason}")
