"""What the compiler would do with a schema, as a report; needs no vocabulary."""

from __future__ import annotations

from typing import Any

from maskwright.base.arguments import check_limits, check_type
from maskwright.base.collection import rare_collection
from maskwright.base.deadline import check_time, deadline, in_time, let_frames_go, let_go
from maskwright.check.alphabet import compiled_for_bytes
from maskwright.check.json_schema import hints as practical
from maskwright.check.json_schema.dead import DeadParts
from maskwright.check.json_schema.inventory import about_other_types, remarks, uses
from maskwright.check.json_schema.profiles import Profile, outside_profile, profile_named
from maskwright.check.report import Finding, Report
from maskwright.errors import GrammarError, LimitError, Refusal, UnsatisfiableError
from maskwright.frontends.json_schema.algebra.normalize import Normalizer
from maskwright.frontends.json_schema.emit.emitter import Emitter
from maskwright.frontends.json_schema.read.document import Document
from maskwright.frontends.json_schema.read.keywords import reachable, survey
from maskwright.frontends.json_schema.read.nodes import Node
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.ir.grammar import Distinct
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
        if report.compiles and (isinstance(options.whitespace, int) or _asks_for_different_items(nodes)):
            _emit(document, options, limits)
        if wanted is not None:
            report.findings.extend(outside_profile(wanted, document, nodes))
    except LimitError as error:
        report.findings.append(_limit(error))
        let_frames_go(error)
    except UnsatisfiableError as error:
        report.findings.append(Finding("error", "unsatisfiable", error.place or "#", error.message))
    except GrammarError as error:
        report.findings.append(Finding("error", "malformed", error.place or "#", error.message))
    finally:
        if document is not None:
            document.release()


def _emit(document: Document, options: SchemaOptions, limits: Limits) -> None:
    """Raises what is seen on the whole grammar only: how deep values must be nested, and whether there are enough different items."""
    emitter = Emitter(Normalizer(document, options, limits), options, limits)
    try:
        grammar = emitter.emit((document.root,))
        if any(isinstance(body, Distinct) and body.free != 0 for body in grammar.rules):
            compiled_for_bytes(grammar, limits)
    finally:
        emitter.release()
        let_go(emitter.grammar.rules, emitter.grammar.names)


def _asks_for_different_items(nodes: list[Node]) -> bool:
    return any(isinstance(node.value, dict) and "uniqueItems" in node.value for node in in_time(nodes))


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
