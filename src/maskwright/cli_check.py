"""What ``maskwright check`` finds, and how it is printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from maskwright import __version__
from maskwright.compiler import CompiledGrammar, compile_json_schema
from maskwright.errors import GrammarError, caret_snippet
from maskwright.frontends.json_schema import SchemaOptions
from maskwright.frontends.json_schema.document import read_json
from maskwright.frontends.json_schema.report import check_json_schema
from maskwright.report import Finding, Report
from maskwright.vocabulary import Vocabulary

_BOLD, _RED, _BLUE, _RESET = "\033[1m", "\033[31m", "\033[34m", "\033[0m"

Located = tuple[str, Finding]


def check_schema(text: str, args: argparse.Namespace) -> Report:
    """All findings about a schema; a caret shows where malformed JSON breaks off."""
    try:
        read_json(text)
    except GrammarError as error:
        snippet = "\n" + caret_snippet(text, error.place) if error.place is not None else ""
        return Report([Finding("error", "malformed", error.place or "#", error.message + snippet)])
    return check_json_schema(text, SchemaOptions(whitespace=args.whitespace, formats=args.formats))


def compile_for_bytes(text: str, args: argparse.Namespace) -> CompiledGrammar:
    """The schema's language over single bytes."""
    vocabulary = Vocabulary.from_bytes([*(bytes([i]) for i in range(256)), None], eos_ids=[256])
    return compile_json_schema(text, vocabulary, whitespace=args.whitespace, formats=args.formats)


def check_instance(compiled: CompiledGrammar, text: str) -> list[Finding]:
    """Where a text leaves the schema's language, or how an unfinished one could end.

    White space at the end of the file is no part of the text.
    """
    matcher = compiled.matcher()
    data = text.rstrip(" \t\r\n").encode()
    read = matcher.longest_prefix(data)
    matcher.accept_bytes(data[:read])
    before = data[:read].decode("utf-8", "ignore")
    place = f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"
    if read < len(data):
        expected = matcher.shortest_completion_bytes().decode("utf-8", "replace")
        instead = f"it could go on with {expected!r}" if expected else "it could end"
        message = f"the text leaves the schema here; {instead}\n" + caret_snippet(text, place)
        return [Finding("error", "not-in-language", place, message)]
    if not matcher.is_accepting:
        completion = matcher.shortest_completion_bytes().decode("utf-8", "replace")
        return [
            Finding("error", "incomplete", place, f"the text is unfinished; shortest end: {completion!r}")
        ]
    return []


# --- output ---------------------------------------------------------------------------------


def render(findings: Sequence[Located], args: argparse.Namespace) -> str:
    """The findings in the format that the arguments ask for."""
    formats: dict[str, Callable[[Sequence[Located]], str]] = {
        "text": _text,
        "json": _json,
        "sarif": _sarif,
        "github": _github,
    }
    return formats[args.output_format](findings)


def _text(findings: Sequence[Located]) -> str:
    colour = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    lines = []
    for path, finding in findings:
        head = f"{path}:{finding.place}:"
        severity = finding.severity
        if colour:
            head = f"{_BOLD}{head}{_RESET}"
            severity_text = f"{_RED if severity == 'error' else _BLUE}{severity}{_RESET}"
        else:
            severity_text = severity
        lines.append(f"{head} {severity_text}: {finding.message} [{finding.code}]\n")
    errors = sum(finding.severity == "error" for _, finding in findings)
    lines.append(f"{errors} error(s), {len(findings) - errors} note(s)\n" if findings else "all good\n")
    return "".join(lines)


def _json(findings: Sequence[Located]) -> str:
    items = [
        {"file": path, "severity": f.severity, "code": f.code, "place": f.place, "message": f.message}
        for path, f in findings
    ]
    return json.dumps({"version": 1, "findings": items}, indent=2, ensure_ascii=False) + "\n"


def _position(place: str) -> tuple[int, int] | None:
    line, _, column = place.partition(":")
    return (int(line), int(column)) if line.isdecimal() and column.isdecimal() else None


def _sarif(findings: Sequence[Located]) -> str:
    # SARIF 2.1.0, sections 3.14 (run) and 3.27 (result).
    results = []
    for path, finding in findings:
        physical: dict[str, Any] = {"artifactLocation": {"uri": path if path != "-" else "stdin"}}
        location: dict[str, Any] = {"physicalLocation": physical}
        position = _position(finding.place)
        if position is not None:
            physical["region"] = {"startLine": position[0], "startColumn": position[1]}
        else:
            location["logicalLocations"] = [{"fullyQualifiedName": finding.place}]
        results.append(
            {
                "ruleId": finding.code,
                "level": finding.severity,
                "message": {"text": finding.message},
                "locations": [location],
            }
        )
    rules = [{"id": code} for code in sorted({finding.code for _, finding in findings})]
    run = {
        "tool": {"driver": {"name": "maskwright", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return (
        json.dumps(
            {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]},
            indent=2,
            ensure_ascii=False,
        )
        + "\n"
    )


def _github(findings: Sequence[Located]) -> str:
    # Workflow commands: percent, carriage return and newline are escaped.
    lines = []
    for path, finding in findings:
        level = "notice" if finding.severity == "note" else finding.severity
        position = _position(finding.place)
        where = f",line={position[0]},col={position[1]}" if position is not None else ""
        message = finding.message if position is not None else f"{finding.place}: {finding.message}"
        message = message.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
        lines.append(f"::{level} file={path}{where},title={finding.code}::{message}\n")
    return "".join(lines)
