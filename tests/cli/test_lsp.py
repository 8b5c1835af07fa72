"""``maskwright lsp`` with the client of pygls, over standard input and output of a process of its own."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("pygls", reason="the optional extra lsp-server is not installed")
from lsprotocol import types
from pygls.lsp.client import LanguageClient

from maskwright.base.deadline import Cancellation
from maskwright.cli import main
from maskwright.cli.lsp_server import _diagnostics
from maskwright.cli.program import make_parser

DEAD = '{\n  "properties": {"é𝄞": {"type": "integer", "minimum": 5, "maximum": 3}},\n  "type": "object"\n}\n'


class Editor:
    """A client with what came of each document, in order."""

    def __init__(self) -> None:
        self.client = LanguageClient("test", "1")
        self.shown: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
        self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda params: self.shown.put_nowait(params)
        )

    async def open(self, uri: str, language: str, text: str) -> list[types.Diagnostic]:
        item = types.TextDocumentItem(uri, language, 1, text)
        self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        return await self.next(uri, 1)

    def change(self, uri: str, version: int, *changes: types.TextDocumentContentChangeEvent) -> None:
        named = types.VersionedTextDocumentIdentifier(version, uri)
        self.client.text_document_did_change(types.DidChangeTextDocumentParams(named, list(changes)))

    async def next(self, uri: str, version: int | None) -> list[types.Diagnostic]:
        found = await asyncio.wait_for(self.shown.get(), 60)
        assert (found.uri, found.version) == (uri, version)
        return list(found.diagnostics)


def run(
    script: Callable[[Editor], Awaitable[None]],
    *options: str,
    encoding: types.PositionEncodingKind | None = None,
    cut_off: bool = False,
) -> None:
    async def session() -> None:
        editor = Editor()
        await editor.client.start_io(sys.executable, "-m", "maskwright", "lsp", *options)
        general = types.GeneralClientCapabilities(position_encodings=[encoding] if encoding else None)
        given = types.InitializeParams(types.ClientCapabilities(general=general))
        found = await asyncio.wait_for(editor.client.initialize_async(given), 60)
        assert found.server_info is not None and found.server_info.name == "maskwright"
        editor.client.initialized(types.InitializedParams())
        await script(editor)
        if not cut_off:
            await asyncio.wait_for(editor.client.shutdown_async(None), 60)
        editor.client.exit(None)
        process: Any = editor.client._server
        assert await asyncio.wait_for(process.wait(), 60) == cut_off
        await editor.client.stop()

    asyncio.run(session())


def where(found: types.Diagnostic) -> tuple[int, int, int, int]:
    return (
        found.range.start.line,
        found.range.start.character,
        found.range.end.line,
        found.range.end.character,
    )


@pytest.mark.slow
def test_an_editor_that_does_not_shut_it_down() -> None:
    async def script(editor: Editor) -> None:
        assert await editor.open("file:///a/b.regex", "regex", "a") == []

    run(script, cut_off=True)


@pytest.mark.slow
def test_a_byte_order_mark_is_no_text() -> None:
    async def script(editor: Editor) -> None:
        (found,) = await editor.open("file:///a/b.schema.json", "json", '\ufeff{"type": "x"}')
        assert where(found)[0] == 0 and "BOM" not in found.message
        (found,) = await editor.open("file:///a/b.lark", "lark", "\ufeffstart: A\n")
        assert where(found)[:2] == (0, 8)

    run(script)


def test_a_pattern_of_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lsp", "--schemas", ""]) == 2
    assert "--schemas" in capsys.readouterr().err


@pytest.mark.slow
def test_problems_of_each_language_at_their_places() -> None:
    async def script(editor: Editor) -> None:
        (found,) = await editor.open("file:///a/person.schema.json", "json", DEAD)
        # UTF-16: the note takes two units.
        assert where(found) == (1, 17, 1, 22) and found.severity == types.DiagnosticSeverity.Warning
        assert (found.code, found.source) == ("unsatisfiable", "maskwright")
        assert {each.message for each in found.related_information or ()} >= {"minimum 5", "maximum 3"}
        (found,) = await editor.open("file:///a/g.lark", "lark", 'start: "a" word\r\n%ignore " "\r\n')
        assert where(found) == (0, 11, 0, 15) and found.code == "undefined-rule"
        assert "\n" not in found.message
        (found,) = await editor.open("file:///a/g.gbnf", "plaintext", 'root ::= "a"\n\nother ::= "b"')
        assert where(found) == (2, 0, 2, 5) and found.code == "unreachable-rule"
        (found,) = await editor.open("untitled:Untitled-1", "lark", "start: (")
        assert found.severity == types.DiagnosticSeverity.Error
        (found,) = await editor.open("file:///a/broken.schema.json", "json", '{"type":')
        assert where(found) == (0, 8, 0, 8) and found.message == "malformed JSON: Expecting value"

    run(script)


@pytest.mark.slow
def test_units_are_those_that_the_client_asks_for() -> None:
    async def script(editor: Editor) -> None:
        (found,) = await editor.open("file:///a/person.schema.json", "json", DEAD)
        assert where(found) == (1, 17, 1, 25)

    run(script, encoding=types.PositionEncodingKind.Utf8)


@pytest.mark.slow
def test_changes_and_closing() -> None:
    async def script(editor: Editor) -> None:
        uri = "file:///a/g.lark"
        assert len(await editor.open(uri, "lark", "start: nothing\n")) == 1
        # Of three changes within a moment, the last one is looked at.
        whole = types.TextDocumentContentChangeWholeDocument
        editor.change(uri, 2, whole("start: (\n"))
        editor.change(uri, 3, whole('start: "b"\n'))
        place = types.Range(types.Position(0, 8), types.Position(0, 9))
        editor.change(uri, 4, types.TextDocumentContentChangePartial(place, "c"))
        assert await editor.next(uri, 4) == []
        closed = types.DidCloseTextDocumentParams(types.TextDocumentIdentifier(uri))
        editor.client.text_document_did_close(closed)
        assert await editor.next(uri, None) == []

    run(script)


def slow_grammar() -> str:
    """Terminals that overlap: seconds of comparing them."""
    names = range(400)
    rule = " | ".join(f"T{i}" for i in names)
    return f"start: ({rule})+\n" + "".join(f"T{i}: /[a-z]{{1,{i % 20 + 1}}}x{i}[0-9]*/\n" for i in names)


@pytest.mark.slow
def test_nothing_is_said_of_a_text_that_was_changed() -> None:
    async def script(editor: Editor) -> None:
        uri = "file:///a/g.lark"
        item = types.TextDocumentItem(uri, "lark", 1, slow_grammar())
        editor.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await asyncio.sleep(0.5)
        editor.change(uri, 2, types.TextDocumentContentChangeWholeDocument('start: "a"'))
        assert await editor.next(uri, 2) == []

    run(script)


def test_a_change_ends_the_check_that_is_under_way() -> None:
    args = make_parser().parse_args(["lsp"])
    cancellation = Cancellation()
    threading.Timer(0.3, cancellation.set).start()
    began = time.monotonic()
    assert _diagnostics("file:///g", "/g", "lark", slow_grammar(), len, args, cancellation) is None
    assert time.monotonic() - began < 2.5


@pytest.mark.slow
def test_which_json_is_a_schema() -> None:
    async def script(editor: Editor) -> None:
        strange = '{"type": "strnig"}'
        assert await editor.open("file:///a/package.json", "json", strange) == []
        assert len(await editor.open("file:///a/api/x.json", "json", strange)) == 1
        named = '{"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "strnig"}'
        assert len(await editor.open("file:///a/y.json", "json", named)) == 1

    run(script, "--schemas", "api/*.json")


@pytest.mark.slow
def test_options_are_those_of_check() -> None:
    async def script(editor: Editor) -> None:
        schema = '{"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}'
        found = await editor.open("file:///a/s.schema.json", "json", schema)
        assert [each.code for each in found] == ["openai-strict"]
        found = await editor.open("file:///a/g.gbnf", "gbnf", 'root ::= "a"\nother ::= other "b" | "b"')
        assert {each.code for each in found} == {"unreachable-rule", "left-recursion"}
        severities = {each.severity for each in found}
        assert severities == {types.DiagnosticSeverity.Warning, types.DiagnosticSeverity.Hint}

    run(script, "--profile", "openai-strict", "--start", "other", "--verbose")


def test_bad_options_are_told_at_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lsp", "--max-whitespace", "-1"]) == 2
    assert "max_whitespace" in capsys.readouterr().err


@pytest.mark.slow
def test_an_editor_that_dies() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", "lsp"], input=b"", capture_output=True, timeout=60
    )
    assert (run.returncode, run.stdout) == (0, b"")


@pytest.mark.slow
@pytest.mark.parametrize("length", [b"9" * 15, b"9" * 30])
def test_a_message_that_fits_into_no_memory(length: bytes) -> None:
    given = b"Content-Length: " + length + b"\r\n\r\n{}"
    run = subprocess.run(
        [sys.executable, "-m", "maskwright", "lsp"], input=given, capture_output=True, timeout=60
    )
    assert run.returncode == 2 and b"Content-Length" in run.stderr and b"Traceback" not in run.stderr


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "pygls.lsp.server", None)
    monkeypatch.delitem(sys.modules, "maskwright.cli.lsp_server", raising=False)
    assert main(["lsp"]) == 2
    assert "maskwright[lsp-server]" in capsys.readouterr().err
