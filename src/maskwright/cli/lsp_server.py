"""The language server: LSP 3.17 by pygls, over the reports of ``maskwright check``.

It publishes diagnostics of what is open, when it is opened and a moment after it was changed.  A check runs in a thread, within the
limits of the compiler; the next change ends it.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from bisect import bisect
from collections.abc import Callable
from fnmatch import fnmatch
from functools import partial
from pathlib import PurePath
from typing import Any

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from maskwright import __version__
from maskwright.base.deadline import Cancellation, Cancelled, cancellable
from maskwright.check.outline import finding_of
from maskwright.check.report import Finding, Report
from maskwright.cli.check import check_file
from maskwright.cli.sources import LANGUAGES, language_named
from maskwright.errors import MaskwrightError, caret_snippet
from maskwright.frontends.json_text import Places

_QUIET_SECONDS = 0.2
"""Behind a change, before it is looked at."""
_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}
_IS_SCHEMA = re.compile(r'"\$schema"\s*:\s*"https?://json-schema\.org/')
_LINE_END = re.compile("\r\n|\n|\r")
_BYTE_ORDER_MARK = "\ufeff"
_WORD = re.compile(r"\w+|\S|")


class Server(LanguageServer):
    """Knows how it is ended."""

    is_shut_down = False
    was_cut_off = False
    """Whether it was told to exit, and not to shut down before."""


def make_server(args: argparse.Namespace) -> Server:
    """A server that ``start_io`` runs; ``args``: of ``maskwright lsp``."""
    server = Server("maskwright", __version__)
    checks = _Checks(server, args)

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)  # type: ignore[untyped-decorator, unused-ignore]
    async def opened(params: types.DidOpenTextDocumentParams) -> None:
        await checks.look(params.text_document.uri, 0)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)  # type: ignore[untyped-decorator, unused-ignore]
    async def changed(params: types.DidChangeTextDocumentParams) -> None:
        await checks.look(params.text_document.uri, _QUIET_SECONDS)

    @server.feature(types.TEXT_DOCUMENT_DID_CLOSE)  # type: ignore[untyped-decorator, unused-ignore]
    def closed(params: types.DidCloseTextDocumentParams) -> None:
        checks.end(params.text_document.uri)

    @server.feature(types.SHUTDOWN)  # type: ignore[untyped-decorator, unused-ignore]
    def shut_down(_: None) -> None:
        server.is_shut_down = True

    @server.feature(types.EXIT)  # type: ignore[untyped-decorator, unused-ignore]
    def told_to_exit(_: None) -> None:
        server.was_cut_off = not server.is_shut_down

    return server


class _Checks:
    """What is being checked: one check of each document, of its newest text."""

    def __init__(self, server: LanguageServer, args: argparse.Namespace) -> None:
        self._server, self._args = server, args
        self._running: dict[str, Cancellation] = {}

    async def look(self, uri: str, delay: float) -> None:
        """Check a document, and publish what was found unless its text is another one by then."""
        if uri in self._running:
            self._running[uri].set()
        mine = self._running[uri] = Cancellation()
        await asyncio.sleep(delay)
        if mine.is_set:
            return
        document = self._server.workspace.get_text_document(uri)
        version, text = document.version, document.source
        language = _language(document.path or uri, document.language_id, text, self._args.schemas)
        found: list[types.Diagnostic] | None = []
        if language is not None:
            units = document.position_codec.client_num_units
            find = partial(_diagnostics, uri, document.path or uri, language, text, units, self._args, mine)
            found = await asyncio.to_thread(find)
        if found is not None and not mine.is_set:
            self._publish(uri, version, found)

    def end(self, uri: str) -> None:
        """A document is closed."""
        if uri in self._running:
            self._running.pop(uri).set()
        self._publish(uri, None, [])

    def _publish(self, uri: str, version: int | None, found: list[types.Diagnostic]) -> None:
        self._server.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(uri=uri, version=version, diagnostics=found)
        )


def _language(path: str, language_id: str | None, text: str, schemas: list[str]) -> str | None:
    """What a document is written in; None: nothing of ours.  JSON is a schema where its name or its ``$schema`` says so."""
    named = language_named(path)
    if named in LANGUAGES:
        return named
    if language_id in LANGUAGES and language_id != "json-schema":
        return language_id
    pure = PurePath(path)
    if pure.name.endswith(".schema.json") or any(pure.match(each) or fnmatch(path, each) for each in schemas):
        return "json-schema"
    is_json = pure.suffix == ".json" or language_id == "json"
    return "json-schema" if is_json and _IS_SCHEMA.search(text) else None


def _diagnostics(
    uri: str,
    path: str,
    language: str,
    text: str,
    units: Callable[[str], int],
    args: argparse.Namespace,
    cancellation: Cancellation,
) -> list[types.Diagnostic] | None:
    """What ``check`` finds; None when it was not wanted any more."""
    is_schema = language == "json-schema"
    of_language = {
        "language": language,
        "start": args.start if language in ("lark", "gbnf") else None,
        "profile": args.profile if is_schema else None,
    }
    try:
        with cancellable(cancellation):
            given = argparse.Namespace(**{**vars(args), **of_language})
            try:
                report, _ = check_file(path, text.removeprefix(_BYTE_ORDER_MARK), given, compiled=False)
            except MaskwrightError as error:
                report = Report([finding_of(error)])
            shown = _Shown(uri, text, units)
            found = [shown.diagnostic(each, _SEVERITIES[each.severity]) for each in report.findings]
            if args.verbose:
                found += [shown.diagnostic(each, types.DiagnosticSeverity.Hint) for each in report.hints]
            return found
    except Cancelled:
        return None


class _Shown:
    """Findings about a text, as the client counts its characters."""

    def __init__(self, uri: str, text: str, units: Callable[[str], int]) -> None:
        self._uri, self._units = uri, units
        # A byte order mark is no text; but the client counts it.
        self._mark = len(text) - len(text.removeprefix(_BYTE_ORDER_MARK))
        self._text = text = text.removeprefix(_BYTE_ORDER_MARK)
        self._starts = [0, *(found.end() for found in _LINE_END.finditer(text))]
        self._places: Places | None = None

    def diagnostic(self, finding: Finding, severity: types.DiagnosticSeverity) -> types.Diagnostic:
        message = finding.message
        if finding.place.partition(":")[0].isdecimal():
            # The editor shows the line itself.
            message = message.removesuffix("\n" + caret_snippet(self._text, finding.place))
        related = [
            types.DiagnosticRelatedInformation(
                types.Location(self._uri, self._range(each.pointer)), each.text
            )
            for each in finding.constraints
        ]
        return types.Diagnostic(
            self._range(finding.place),
            message,
            severity,
            code=finding.code,
            source="maskwright",
            related_information=related or None,
        )

    def _range(self, place: str) -> types.Range:
        start, end = self._span(place)
        return types.Range(self._position(start), self._position(end))

    def _span(self, place: str) -> tuple[int, int]:
        line, _, column = place.partition(":")
        if not line.isdecimal():
            self._places = self._places or Places(self._text)
            return self._places.span(place)
        at = 0
        for _ in range(int(line) - 1):
            at = self._text.find("\n", at) + 1
        start = min(at + int(column) - 1, len(self._text))
        word: Any = _WORD.match(self._text, start)
        return start, word.end()

    def _position(self, at: int) -> types.Position:
        line = bisect(self._starts, at) - 1
        before = 0 if line else self._mark
        return types.Position(line, before + self._units(self._text[self._starts[line] : at]))
