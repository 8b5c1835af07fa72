"""Names that a language server knows, over the Language Server Protocol (3.17), as monitor-guided decoding asks for them."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import weakref
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from maskwright.errors import ConstraintError
from maskwright.sampling.monitors.monitor import LINE_END, UNICODE_WORD, Monitor
from maskwright.vocabulary.vocabulary import Vocabulary

_NO_NAMES = (1, 14, 15)
"""Kinds of completion items that are no members: text, keywords, snippets."""


class LanguageServerNames(Monitor):
    """Text in which the name behind a dot is one that a language server completes there.

    ``command``: starts the server, which talks over its standard input and output (``["basedpyright-langserver", "--stdio"]``,
    ``["jedi-language-server"]``, ``["gopls"]``).  ``language``: the protocol's identifier of the language; ``suffix`` and ``root``: of the
    file that the text is said to be; it is not written.  ``context``: what comes before the text in that file.  Where the server finds nothing, or says
    that its list is incomplete, anything may follow; ``trust_incomplete`` takes such lists, since pyright says it of every list, those of
    members included, which are whole.  ``triggers``, ``between``, ``comments``: as for ``Monitor``.
    ``timeout``: of one answer (seconds).  Analyses are remembered for each text.  ``close()`` ends the server.

    Raises ``ConstraintError`` when the server cannot be started, ends, or does not answer in time.
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
        self._context = context
        self._trust_incomplete = trust_incomplete
        self._ends = triggers.decode("latin-1")
        self._client = Client(command, Path(root), language, suffix, settings or {}, timeout)
        super().__init__(
            vocabulary, self.names, triggers=triggers, word=word, between=between, comments=comments
        )

    def names(self, text: str) -> Iterable[str] | None:
        """The names that may follow ``text``, or None where nothing is known."""
        if not text.endswith(tuple(self._ends)):
            return None
        return self._client.complete(self._context + text, self._trust_incomplete) or None

    def close(self) -> None:
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
        self._command = list(command)
        self._timeout = timeout
        self._settings = settings
        try:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise ConstraintError(
                f"the language server {self._command[0]!r} cannot be started: {error}"
            ) from None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._end = weakref.finalize(self, _end, self._process)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._input = self._process.stdin
        threading.Thread(target=_listen, args=(self._process.stdout, self._answers), daemon=True).start()
        self._number = 0
        self._version = 0
        folder = root.absolute()
        self._uri = (folder / f"written{suffix}").as_uri()
        self._language = language
        abilities = {"textDocument": {"completion": {"completionItem": {"snippetSupport": False}}}}
        workspace = {"uri": folder.as_uri(), "name": "written"}
        self._ask(
            "initialize",
            {
                "processId": None,
                "rootUri": folder.as_uri(),
                "workspaceFolders": [workspace],
                "capabilities": {**abilities, "workspace": {"configuration": True}},
                "initializationOptions": dict(settings),
            },
        )
        self._tell("initialized", {})

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
        # Columns are counted in UTF-16.
        place = {"line": len(lines) - 1, "character": len(lines[-1].encode("utf-16-le")) // 2}
        context = {"triggerKind": 2, "triggerCharacter": text[-1:]}
        found = self._ask(
            "textDocument/completion",
            {"textDocument": {"uri": self._uri}, "position": place, "context": context},
        )
        if isinstance(found, dict):
            found = found.get("items") if trust_incomplete or not found.get("isIncomplete") else []
        items = [item for item in found or [] if item.get("kind") not in _NO_NAMES]
        return [str(item.get("insertText") or item["label"]).split("(")[0] for item in items]

    def close(self) -> None:
        """End the server."""
        if self._process.poll() is None:
            try:
                self._ask("shutdown", None)
                self._tell("exit", None)
                self._process.wait(self._timeout)
            except (ConstraintError, subprocess.TimeoutExpired):
                pass
        self._end()

    def _ask(self, method: str, given: Any) -> Any:
        self._number += 1
        self._send({"id": self._number, "method": method, "params": given})
        while True:
            try:
                message = self._answers.get(timeout=self._timeout)
            except queue.Empty:
                raise ConstraintError(
                    f"the language server {self._command[0]!r} did not answer {method} within {self._timeout:g} s"
                ) from None
            if message is None:
                raise ConstraintError(
                    f"the language server {self._command[0]!r} ended (exit status {self._process.poll()})"
                )
            if "method" in message:
                if "id" in message:
                    self._serve(message)
            elif message.get("id") == self._number:
                if "error" in message:
                    raise ConstraintError(
                        f"the language server refuses {method}: {message['error'].get('message')}"
                    )
                return message.get("result")

    def _serve(self, message: dict[str, Any]) -> None:
        """Answer what the server asks: for its settings, and otherwise with nothing."""
        result: Any = None
        if message["method"] == "workspace/configuration":
            sections = [item.get("section") for item in message["params"]["items"]]
            result = [self._settings.get(section) for section in sections]
        self._send({"id": message["id"], "result": result})

    def _tell(self, method: str, given: Any) -> None:
        self._send({"method": method, "params": given})

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            self._input.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
            self._input.flush()
        except OSError as error:
            raise ConstraintError(f"the language server {self._command[0]!r} ended: {error}") from None


def _listen(stream: IO[bytes], answers: queue.Queue[dict[str, Any] | None]) -> None:
    """Put every message of the server into the queue, and None when it ends."""
    try:
        while True:
            length = 0
            while (line := stream.readline().strip()) != b"":
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not length:
                break
            answers.put(json.loads(stream.read(length)))
    except (OSError, ValueError):
        pass
    answers.put(None)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            stream.close()
