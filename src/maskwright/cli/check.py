"""What ``maskwright check`` finds, and how it is printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from maskwright import __version__
from maskwright.check.grammars import check_grammar, compile_for_bytes
from maskwright.check.json_schema.report import check_json_schema
from maskwright.check.report import Finding, KeywordUse, Report
from maskwright.check.texts import Explainer
from maskwright.cli.sources import schema_options, source_of
from maskwright.errors import GrammarError, caret_snippet
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_text import read_json
from maskwright.sources import JsonSchema

_BOLD, _RED, _BLUE, _RESET = "\033[1m", "\033[31m", "\033[34m", "\033[0m"

Located = tuple[str, Finding]
Reports = Sequence[tuple[str, Report]]
Samples = Sequence[tuple[str, str]]


def check_schema(text: str, options: SchemaOptions, profile: str | None) -> Report:
    """All findings about a schema; a caret shows where malformed JSON breaks off."""
    try:
        read_json(text)
    except GrammarError as error:
        snippet = "\n" + caret_snippet(text, error.place) if error.place is not None else ""
        return Report([Finding("error", "malformed", error.place or "#", error.message + snippet)])
    return check_json_schema(text, options, profile=profile)


def check_file(
    path: str, text: str, args: argparse.Namespace, *, compiled: bool
) -> tuple[Report, Explainer | None]:
    """The report about a file, and if ``compiled`` what checks texts against it (None: it does not compile)."""
    source = source_of(path, text, args)
    is_schema = isinstance(source, JsonSchema)
    report = check_schema(text, schema_options(args), args.profile) if is_schema else check_grammar(source)
    if not compiled or not report.compiles:
        return report, None
    return report, Explainer(*compile_for_bytes(source), is_schema=is_schema)


# --- output ---------------------------------------------------------------------------------


def render(findings: Sequence[Located], reports: Reports, samples: Samples, args: argparse.Namespace) -> str:
    """The findings, what the reports say besides, and random sentences, in the format that the arguments ask for.

    Hints and the list of keywords are shown when the output is verbose, and always in JSON.
    """
    if args.output_format == "json":
        return _json(findings, reports, samples)
    if args.output_format == "text":
        sentences = [json.dumps(text, ensure_ascii=False) + "\n" for _, text in samples]
        return _text(findings, reports, args.verbose) + "".join(sentences)
    formats = {"sarif": _sarif, "github": _github}
    return formats[args.output_format](findings, reports, args.verbose)


def _hints(reports: Reports) -> list[Located]:
    return [(path, hint) for path, report in reports for hint in report.hints]


def _text(findings: Sequence[Located], reports: Reports, verbose: bool) -> str:
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    lines = [_line(path, finding, finding.severity, colour) for path, finding in findings]
    if verbose:
        lines += [_line(path, hint, "hint", colour) for path, hint in _hints(reports)]
        lines += [_keywords(path, report) for path, report in reports]
    lines.append(_summary(findings, reports, verbose))
    return "".join(lines)


def _line(path: str, finding: Finding, kind: str, colour: bool) -> str:
    head = f"{path}:{finding.place}:"
    if colour:
        head = f"{_BOLD}{head}{_RESET}"
        kind = f"{_RED if kind == 'error' else _BLUE}{kind}{_RESET}"
    return f"{head} {kind}: {finding.message} [{finding.code}]\n"


def _keywords(path: str, report: Report) -> str:
    """One line a subschema: what is enforced, then what is not."""
    by_place: dict[str, list[KeywordUse]] = {}
    for use in report.keywords:
        by_place.setdefault(use.pointer, []).append(use)
    lines = []
    for place, uses in by_place.items():
        parts = []
        for status in ("enforced", "annotation", "refused"):
            names = [u.keyword + (f" ({u.reason})" if u.reason else "") for u in uses if u.status == status]
            if names:
                parts.append(f"{status}: {', '.join(names)}")
        lines.append(f"{path}:{place}: {'; '.join(parts)}\n")
    return "".join(lines)


def _summary(findings: Sequence[Located], reports: Reports, verbose: bool) -> str:
    found = []
    for severity in ("error", "warning", "note"):
        count = sum(finding.severity == severity for _, finding in findings)
        if count:
            found.append(_counted(count, severity))
    text = ", ".join(found) if found else "all good"
    statuses = Counter(use.status for _, report in reports for use in report.keywords)
    if statuses:
        used = [_counted(statuses["annotation"], "annotation")] if statuses["annotation"] else []
        used += [f"{statuses['refused']} refused"] if statuses["refused"] else []
        text += f"; keywords: {', '.join([str(statuses['enforced']) + ' enforced', *used])}"
    hints = len(_hints(reports))
    if hints:
        text += f"; {_counted(hints, 'hint')}" + ("" if verbose else " (--verbose shows them)")
    return text + "\n"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _json(findings: Sequence[Located], reports: Reports, samples: Samples) -> str:
    data: dict[str, Any] = {
        "version": 1,
        "findings": [_as_dict(path, finding) for path, finding in findings],
        "hints": [_as_dict(path, hint) for path, hint in _hints(reports)],
        "keywords": [{"file": path, **asdict(use)} for path, report in reports for use in report.keywords],
    }
    if samples:
        data["samples"] = [{"file": path, "text": text} for path, text in samples]
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"


def _as_dict(path: str, finding: Finding) -> dict[str, Any]:
    shown: dict[str, Any] = {"file": path, **asdict(finding)}
    shown["constraints"] = [constraint._asdict() for constraint in finding.constraints]
    return shown


def _position(place: str) -> tuple[int, int] | None:
    line, _, column = place.partition(":")
    return (int(line), int(column)) if line.isdecimal() and column.isdecimal() else None


def _sarif(findings: Sequence[Located], reports: Reports, verbose: bool) -> str:
    # SARIF 2.1.0, sections 3.14 (run), 3.27 (result) and 3.8 (property bags).
    shown = [*findings, *(_hints(reports) if verbose else ())]
    results = [_result(path, finding) for path, finding in shown]
    rules = [{"id": code} for code in sorted({finding.code for _, finding in shown})]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "maskwright", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    if verbose:
        uses = [{"file": path, **asdict(use)} for path, report in reports for use in report.keywords]
        run["properties"] = {"keywords": uses}
    log = {
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [run],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _result(path: str, finding: Finding) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": path if path != "-" else "stdin"}}
    location: dict[str, Any] = {"physicalLocation": physical}
    position = _position(finding.place)
    if position is not None:
        physical["region"] = {"startLine": position[0], "startColumn": position[1]}
    else:
        location["logicalLocations"] = [{"fullyQualifiedName": finding.place}]
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": finding.severity,
        "message": {"text": finding.message},
        "locations": [location],
    }
    if finding.constraints:
        result["relatedLocations"] = [
            {
                "id": i,
                "physicalLocation": physical,
                "logicalLocations": [{"fullyQualifiedName": constraint.pointer}],
                "message": {"text": constraint.text},
            }
            for i, constraint in enumerate(finding.constraints)
        ]
    return result


def _github(findings: Sequence[Located], reports: Reports, verbose: bool) -> str:
    lines = [
        _command(path, finding.severity, finding.code, finding.place, finding.message)
        for path, finding in (*findings, *(_hints(reports) if verbose else ()))
    ]
    for path, report in reports if verbose else ():
        for line in _keywords(path, report).splitlines():
            place, _, uses = line.removeprefix(f"{path}:").partition(": ")
            lines.append(_command(path, "note", "keywords", place, uses))
    return "".join(lines)


def _command(path: str, severity: str, title: str, place: str, message: str) -> str:
    # Workflow commands: percent, carriage return and newline are escaped.
    level = "notice" if severity == "note" else severity
    position = _position(place)
    where = f",line={position[0]},col={position[1]}" if position is not None else ""
    shown = message if position is not None else f"{place}: {message}"
    shown = shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return f"::{level} file={path}{where},title={title}::{shown}\n"
