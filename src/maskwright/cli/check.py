"""``maskwright check``: what it finds, and how that is printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from maskwright import __version__
from maskwright.check.grammars import check_grammar, compile_for_bytes
from maskwright.check.json_schema.report import check_json_schema
from maskwright.check.report import Finding, KeywordUse, Report
from maskwright.check.sentences import sentences
from maskwright.check.texts import Explainer
from maskwright.cli.command import (
    FINDINGS,
    GOOD,
    Command,
    add_format_option,
    has_colours,
    print_document,
    printable_json,
    without_controls,
)
from maskwright.cli.progress import progress
from maskwright.cli.sources import (
    UsageError,
    add_language_options,
    add_schema_options,
    count,
    read_instances,
    read_source,
    schema_options,
    source_of,
)
from maskwright.errors import GrammarError, caret_snippet, line_column
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_text import Places, read_json
from maskwright.sources import JsonSchema

_BOLD, _RED, _BLUE, _RESET = "\033[1m", "\033[31m", "\033[34m", "\033[0m"

Located = tuple[str, Finding]
Reports = Sequence[tuple[str, Report]]
Samples = Sequence[tuple[str, str]]

_PROFILES = ("openai-strict",)


def add_check_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", nargs="+", metavar="FILE", help="JSON Schemas, grammars, regular expressions")
    parser.add_argument(
        "--instance", action="extend", nargs="+", default=[], metavar="FILE", help="texts to check against it"
    )
    parser.add_argument(
        "--sample", type=count, default=0, metavar="N", help="also print N random sentences, as JSON strings"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the sentences")
    add_format_option(parser, "sarif", "github", names=("--output-format", "--format"))
    add_profile_option(parser)
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also list hints, and for each subschema which keywords are enforced, annotations, or refused "
        "(JSON output always has both)",
    )
    add_language_options(parser)
    add_schema_options(parser)


def add_profile_option(parser: argparse.ArgumentParser) -> None:
    """``--profile``, of schemas."""
    parser.add_argument(
        "--profile", choices=_PROFILES, help="also report what that service's documented subset does not have"
    )


def check(args: argparse.Namespace) -> int:
    """Print all findings; 1 when one of them is an error."""
    if args.sample and args.format not in ("text", "json"):
        raise UsageError("--sample needs --format text or json")
    texts = read_instances(args.instance) | {path: read_source(path) for path in args.file}
    findings: list[Located] = []
    reports: list[tuple[str, Report]] = []
    samples: list[tuple[str, str]] = []
    with progress("checking", len(args.file), "files") as bar:
        for path in args.file:
            report, explainer = check_file(
                path, texts[path], args, compiled=bool(args.instance or args.sample)
            )
            reports.append((path, report))
            findings.extend((path, finding) for finding in report.findings)
            if explainer is not None:
                for instance in args.instance:
                    findings.extend((instance, finding) for finding in explainer.check(texts[instance]))
                drawn = sentences(explainer.compiled, args.sample, seed=args.seed)
                samples.extend((path, text) for text in drawn)
            bar.update()
    _show(findings, reports, samples, _Positions(texts), args)
    return FINDINGS if any(finding.severity == "error" for _, finding in findings) else GOOD


COMMAND = Command(
    "check",
    "report every problem of schemas and grammars, or of texts against them",
    add_check_arguments,
    check,
    (
        "maskwright check schema.json --verbose",
        "maskwright check grammar.lark --instance program.txt",
        "maskwright check grammar.gbnf --sample 5 --seed 1",
        "maskwright check schema.json --profile openai-strict --json",
        "maskwright check *.schema.json --format sarif > report.sarif",
    ),
    "Report every problem of JSON Schemas, grammars and regular expressions; where texts leave them; random sentences.",
)


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


class _Positions:
    """Lines and columns of findings, from 1; columns are code points."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._places: dict[str, Places] = {}

    def of(self, path: str, place: str) -> tuple[int, int]:
        """Of a place, which is ``line:column`` or a JSON pointer: that of the nearest place around it which the text has."""
        if not place.partition(":")[0].isdecimal():
            text = self._texts[path]
            if path not in self._places:
                self._places[path] = Places(text)
            place = line_column(text, self._places[path].span(place)[0])
        line, _, column = place.partition(":")
        return int(line), int(column)


def _show(
    findings: Sequence[Located],
    reports: Reports,
    samples: Samples,
    positions: _Positions,
    args: argparse.Namespace,
) -> None:
    """Print the findings, what the reports say besides, and random sentences, in the format that the arguments ask for.

    Hints and the list of keywords are shown when the output is verbose, and always in JSON.
    """
    if args.format == "json":
        print_document(args, _document(findings, reports, samples, positions))
        return
    if args.format == "text":
        drawn = [json.dumps(text, ensure_ascii=False) + "\n" for _, text in samples]
        shown = _text(findings, reports, args.verbose) + "".join(drawn)
    else:
        formats = {"sarif": _sarif, "github": _github}
        shown = formats[args.format](findings, reports, positions, args.verbose)
    # Names in a schema may have lone surrogates, which no output can.
    print(shown.encode("utf-8", "backslashreplace").decode(), end="")


def _hints(reports: Reports) -> list[Located]:
    return [(path, hint) for path, report in reports for hint in report.hints]


def _text(findings: Sequence[Located], reports: Reports, verbose: bool) -> str:
    colour = has_colours(sys.stdout)
    lines = [_line(path, finding, finding.severity, colour) for path, finding in findings]
    if verbose:
        lines += [_line(path, hint, "hint", colour) for path, hint in _hints(reports)]
        lines += [_keywords(path, report) for path, report in reports]
    lines.append(_summary(findings, reports, verbose))
    return "".join(lines)


def _line(path: str, finding: Finding, kind: str, colour: bool) -> str:
    head = without_controls(f"{path}:{finding.place}:")
    if colour:
        head = f"{_BOLD}{head}{_RESET}"
        kind = f"{_RED if kind == 'error' else _BLUE}{kind}{_RESET}"
    return f"{head} {kind}: {without_controls(finding.message)} [{finding.code}]\n"


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
        lines.append(without_controls(f"{path}:{place}: {'; '.join(parts)}\n"))
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


def _document(
    findings: Sequence[Located], reports: Reports, samples: Samples, positions: _Positions
) -> dict[str, Any]:
    data: dict[str, Any] = {
        "findings": [_as_dict(path, finding, positions) for path, finding in findings],
        "hints": [_as_dict(path, hint, positions) for path, hint in _hints(reports)],
        "keywords": [{"file": path, **asdict(use)} for path, report in reports for use in report.keywords],
    }
    if samples:
        data["samples"] = [{"file": path, "text": text} for path, text in samples]
    return data


def _as_dict(path: str, finding: Finding, positions: _Positions) -> dict[str, Any]:
    line, column = positions.of(path, finding.place)
    shown: dict[str, Any] = {"file": path, "line": line, "column": column, **asdict(finding)}
    shown["constraints"] = [constraint._asdict() for constraint in finding.constraints]
    return shown


def _sarif(findings: Sequence[Located], reports: Reports, positions: _Positions, verbose: bool) -> str:
    # SARIF 2.1.0, sections 3.14 (run), 3.27 (result) and 3.8 (property bags).
    shown = [*findings, *(_hints(reports) if verbose else ())]
    results = [_result(path, finding, positions.of(path, finding.place)) for path, finding in shown]
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
    return printable_json(log) + "\n"


def _result(path: str, finding: Finding, position: tuple[int, int]) -> dict[str, Any]:
    physical: dict[str, Any] = {
        "artifactLocation": {"uri": _uri(path) if path != "-" else "stdin"},
        "region": {"startLine": position[0], "startColumn": position[1]},
    }
    location: dict[str, Any] = {"physicalLocation": physical}
    if finding.place.startswith(("/", "#")):
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


def _uri(path: str) -> str:
    """A URI reference (RFC 3986), as SARIF 2.1.0 has it in section 3.4.3."""
    pure = PurePath(path)
    return pure.as_uri() if pure.is_absolute() else quote(os.fsencode(pure.as_posix()))


def _github(findings: Sequence[Located], reports: Reports, positions: _Positions, verbose: bool) -> str:
    lines = [
        _workflow_command(path, finding.severity, finding.code, finding.place, finding.message, positions)
        for path, finding in (*findings, *(_hints(reports) if verbose else ()))
    ]
    for path, report in reports if verbose else ():
        for line in _keywords(path, report).splitlines():
            place, _, uses = line.removeprefix(f"{path}:").partition(": ")
            lines.append(_workflow_command(path, "note", "keywords", place, uses, positions))
    return "".join(lines)


def _workflow_command(
    path: str, severity: str, title: str, place: str, message: str, positions: _Positions
) -> str:
    level = "notice" if severity == "note" else severity
    line, column = positions.of(path, place)
    shown = f"{place}: {message}" if place.startswith(("/", "#")) else message
    # In properties, colon and comma are escaped as well.
    file = _escaped(path).replace(":", "%3A").replace(",", "%2C")
    return (
        f"::{level} file={file},line={line},col={column},title={title}::{_escaped(without_controls(shown))}\n"
    )


def _escaped(text: str) -> str:
    """For a workflow command."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
