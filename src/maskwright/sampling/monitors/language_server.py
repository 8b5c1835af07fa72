"""Names that a language server knows, over the Language Server Protocol (3.17), as monitor-guided decoding asks for them."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from maskwright.base.arguments import check_type, real
from maskwright.errors import ConstraintError
from maskwright.sampling.monitors.monitor import LINE_END, UNICODE_WORD, Monitor
from maskwright.sampling.monitors.python_text import PythonText
from maskwright.vocabulary.vocabulary import Vocabulary

_NO_NAMES = (1, 14, 15)
"""Kinds of completion items that are no members: text, keywords, snippets."""
_COMPLETION = "textDocument/completion"
_NEVER = (-32601, -32002)
"""Codes of errors that are about no single place: the method is not known, the server has not begun."""
_UNITS = {"utf-32": 4, "utf-16": 2}
"""In what columns may be counted, and bytes of each; characters first, since servers for Python count those, whatever they say."""
_SHORTEST, _LONGEST = 1e-3, 1e6
_LAST_SECONDS = 0.2
"""Between a server's last word and its end."""


class _RefusedHere(ConstraintError):
    """The server refuses a question, and may answer others."""


class LanguageServerNames(Monitor):
    """Text in which the name behind a dot is one that a language server completes there.

    ``command``: starts the server, which talks over its standard input and output (``["basedpyright-langserver", "--stdio"]``,
    ``["jedi-language-server"]``, ``["gopls"]``).  ``language``: the protocol's identifier of the language; ``suffix`` and ``root``: of the
    file that the text is said to be; it is not written.  ``context``: what comes before the text in that file.  Where the server finds nothing, or says
    that its list is incomplete, anything may follow; ``trust_incomplete`` takes such lists, since pyright says it of every list, those of
    members included, which are whole.  ``triggers``, ``word``, ``between``, ``comments``: as for ``Monitor``; the last two are Python's
    (C, Go: ``comments={b"//": b"\\n", b"/*": b"*/"}``).  ``timeout``: of one answer (seconds).  Analyses are remembered for each text.
    ``close()`` ends the server.

    In Python code the server is asked only about dots that access a member, none in comments, texts, numbers and imports, where servers answer
    as they like (``pip install "maskwright[lsp]"`` has parso, which reads the code).  In other languages it is asked about every trigger; where
    it should not be, extend ``names``:

        class GoNames(LanguageServerNames):
            def names(self, text):
                return None if "//" in text.rpartition("\\n")[2] else super().names(text)

    Raises ``ConstraintError`` for arguments of a wrong type, and when the server cannot be started, ends, does not answer in time or not by the
    protocol, or has been closed.  Where it refuses a single question, nothing is known there.
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        command: Sequence[str],
        *,
        language: str = "python",
        suffix: str = ".py",
        root: str | Path = ".",
        context: str = "",
        triggers: bytes = b".",
        word: bytes = UNICODE_WORD,
        between: bytes = b" \t\f\r\n\\",
        comments: Mapping[bytes, bytes] = MappingProxyType({b"#": b"\n"}),
        settings: Mapping[str, Any] | None = None,
        trust_incomplete: bool = False,
        timeout: float = 30.0,
    ) -> None:
        super().__init__(
            vocabulary, self.names, triggers=triggers, word=word, between=between, comments=comments
        )
        for given, name in ((language, "language"), (suffix, "suffix"), (context, "context")):
            check_type(given, str, name, ConstraintError)
        try:
            context.encode()
        except UnicodeEncodeError as error:
            raise ConstraintError(f"context: it has a lone surrogate, which no file has: {error}") from None
        check_type(root, (str, os.PathLike), "root", ConstraintError)
        check_type(trust_incomplete, bool, "trust_incomplete", ConstraintError)
        self._context = context
        self._trust_incomplete = trust_incomplete
        self._ends = tuple(triggers.decode("latin-1"))
        self._python = PythonText("lsp") if language == "python" else None
        self._client = Client(
            command, Path(root), language, suffix, {} if settings is None else settings, timeout
        )

    def names(self, text: str) -> Iterable[str] | None:
        """The names that may follow ``text``, or None where nothing is known."""
        code = self._context + text
        if not code.endswith(self._ends):
            return None
        if self._python is not None and code.endswith(".") and not self._python.is_access(code):
            return None
        return self._client.complete(code, self._trust_incomplete) or None

    def close(self) -> None:
        """End the server; questions that were not asked before are errors then."""
        self._client.close()


class Client:
    """One server and one open document, whose text is sent whole before each question."""

    def __init__(
        self,
        command: Sequence[str],
        root: Path,
        language: str,
        suffix: str,
        settings: Mapping[str, Any],
        timeout: float,
    ) -> None:
        is_list = isinstance(command, Sequence) and not isinstance(command, (str, bytes))
        if not is_list or not command or not all(isinstance(each, (str, os.PathLike)) for each in command):
            message = (
                f'command: expected a list of texts, ["gopls"] or [program, argument, ...], got {command!r}'
            )
            raise ConstraintError(message[:300])
        self._timeout = real(timeout, "timeout", ConstraintError, _SHORTEST, _LONGEST)
        check_type(settings, Mapping, "settings", ConstraintError)
        self._settings = dict(settings)
        try:
            json.dumps(self._settings)
        except (TypeError, ValueError, RecursionError) as error:
            raise ConstraintError(f"settings: they cannot be written as JSON: {error}") from None
        self._name = repr(os.fspath(command[0]))
        self._closed = False
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except (OSError, ValueError) as error:
            raise ConstraintError(f"the language server {self._name} cannot be started: {error}") from None
        self._answers: queue.Queue[Any] = queue.Queue()
        self._messages: queue.Queue[bytes | None] = queue.Queue()
        self._end = weakref.finalize(self, _end, self._process, self._messages)
        # A server that does not read keeps whoever writes to it waiting, as one that does not answer does.
        for target, stream, messages in (
            (_listen, self._process.stdout, self._answers),
            (_speak, self._process.stdin, self._messages),
        ):
            threading.Thread(target=target, args=(stream, messages), daemon=True).start()
        self._number = 0
        self._version = 0
        folder = root.absolute()
        self._uri = (folder / f"written{suffix}").as_uri()
        self._language = language
        try:
            self._unit = self._introduce(folder)
        except ConstraintError:
            self._end()
            raise

    def _introduce(self, folder: Path) -> str:
        """Begin to talk; the unit in which the server counts columns."""
        result = self._ask(
            "initialize",
            {
                "processId": None,
                "rootUri": folder.as_uri(),
                "workspaceFolders": [{"uri": folder.as_uri(), "name": "written"}],
                "capabilities": {
                    "textDocument": {"completion": {"completionItem": {"snippetSupport": False}}},
                    "workspace": {"configuration": True},
                    "general": {"positionEncodings": list(_UNITS)},
                },
                "initializationOptions": self._settings,
            },
        )
        abilities = result.get("capabilities", {}) if isinstance(result, dict) else None
        if not isinstance(abilities, dict):
            raise self._senseless("initialize", result)
        unit = abilities.get("positionEncoding") or "utf-16"
        if unit not in _UNITS:
            raise ConstraintError(
                f"the language server {self._name} counts columns in {unit!r}, of which it was not told"
            )
        self._tell("initialized", {})
        return str(unit)

    def complete(self, text: str, trust_incomplete: bool) -> list[str]:
        """The names that complete a text at its end; none where nothing is known for certain."""
        document = {"uri": self._uri, "version": self._version}
        if self._version == 0:
            self._tell(
                "textDocument/didOpen",
                {"textDocument": {**document, "languageId": self._language, "text": text}},
            )
        else:
            self._tell(
                "textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]}
            )
        self._version += 1
        lines = LINE_END.split(text)
        character = len(lines[-1].encode(f"{self._unit}-le")) // _UNITS[self._unit]
        place = {"line": len(lines) - 1, "character": character}
        context = {"triggerKind": 2, "triggerCharacter": text[-1:]}
        try:
            found = self._ask(
                _COMPLETION, {"textDocument": {"uri": self._uri}, "position": place, "context": context}
            )
        except _RefusedHere:
            return []
        items = found
        if isinstance(found, dict):
            items = found.get("items") if trust_incomplete or not found.get("isIncomplete") else []
        if not isinstance(items, (list, type(None))):
            raise self._senseless(_COMPLETION, found)
        names = []
        for item in items or []:
            if not isinstance(item, dict) or not isinstance(item.get("label"), str):
                raise self._senseless(_COMPLETION, found)
            if item.get("kind") not in _NO_NAMES:
                edit = item.get("textEdit")
                written = edit.get("newText") if isinstance(edit, dict) else None
                written = written or item.get("insertText") or item["label"]
                if not isinstance(written, str):
                    raise self._senseless(_COMPLETION, found)
                # Some servers write what triggered them once more.
                names.append(written.removeprefix(text[-1:]).split("(")[0])
        return names

    def close(self) -> None:
        """End the server."""
        if not self._closed and self._process.poll() is None:
            try:
                self._ask("shutdown", None)
                self._tell("exit", None)
                self._process.wait(self._timeout)
            except (ConstraintError, subprocess.TimeoutExpired):
                pass
        self._closed = True
        self._end()

    def _ask(self, method: str, given: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": given})
        deadline = time.monotonic() + self._timeout
        while True:
            try:
                message = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise ConstraintError(
                    f"the language server {self._name} did not answer {method} within {self._timeout:g} s"
                ) from None
            if message is None:
                self._answers.put(None)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_LAST_SECONDS)
                status = self._process.poll()
                how = (
                    "does not talk as the protocol has it"
                    if status is None
                    else f"ended (exit status {status})"
                )
                raise ConstraintError(f"the language server {self._name} {how}")
            if not isinstance(message, dict):
                raise ConstraintError(
                    f"the language server {self._name} sends what is no message of the protocol: {message!r}"[
                        :300
                    ]
                )
            if "method" in message:
                if "id" in message:
                    self._serve(message)
            elif message.get("id") == self._number:
                if message.get("error") is not None:
                    raise self._refused(method, message["error"])
                return message.get("result")

    def _refused(self, method: str, error: Any) -> ConstraintError:
        is_plain = isinstance(error, dict)
        said = error.get("message") if is_plain else error
        kind = _RefusedHere if is_plain and error.get("code") not in _NEVER else ConstraintError
        return kind(f"the language server {self._name} refuses {method}: {said}"[:300])

    def _senseless(self, method: str, found: Any) -> ConstraintError:
        return ConstraintError(
            f"the language server {self._name} answers {method} with {found!r}, which is not as the protocol has it"[
                :300
            ]
        )

    def _serve(self, message: dict[str, Any]) -> None:
        """Answer what the server asks: for its settings, and otherwise with nothing."""
        result: Any = None
        if message["method"] == "workspace/configuration":
            try:
                result = [self._settings.get(item.get("section")) for item in message["params"]["items"]]
            except (KeyError, TypeError, AttributeError):
                raise self._senseless(message["method"], message.get("params")) from None
        self._send({"id": message["id"], "result": result})

    def _tell(self, method: str, given: Any) -> None:
        self._send({"method": method, "params": given})

    def _send(self, message: dict[str, Any]) -> None:
        if self._closed:
            raise ConstraintError(f"the language server {self._name} is closed; make another monitor")
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._messages.put(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))


def _listen(stream: IO[bytes], answers: queue.Queue[Any]) -> None:
    """Put every message of the server into the queue, and None when it ends."""
    try:
        with stream:
            while True:
                length = 0
                while (line := stream.readline().strip()) != b"":
                    name, _, value = line.partition(b":")
                    if name.lower() == b"content-length":
                        length = int(value)
                if not length:
                    break
                answers.put(json.loads(stream.read(length)))
    except (OSError, ValueError, RecursionError):
        pass
    answers.put(None)


def _speak(stream: IO[bytes], messages: queue.Queue[bytes | None]) -> None:
    """Send what is in the queue, until None comes, or the server has ended."""
    # What was written to a server that has ended cannot be flushed.
    with contextlib.suppress(OSError), stream:
        while (data := messages.get()) is not None:
            stream.write(data)
            stream.flush()


def _end(process: subprocess.Popen[bytes], messages: queue.Queue[bytes | None]) -> None:
    messages.put(None)
    process.kill()
    process.wait()
