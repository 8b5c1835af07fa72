"""A small server in OpenAI's shape, with an engine behind it: it answers what the schema of a request allows, or fails on command.

``behave(request, number)`` decides about each request: None answers it, a number is the status of a refusal, ``"close"`` ends the connection
without an answer, ``"nonsense"`` ignores the schema, ``"cut"`` stops in the middle, ``"spaced"`` writes blanks around the JSON, ``"other"`` answers something that is no completion;
a pair adds headers to a status, and a triple what the error says; of 200, to an answer.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from maskwright.check.grammars import compile_for_bytes
from maskwright.sources import GBNF, JsonSchema, Lark, Regex


class Server:
    """Listens on a free port of this machine; ``requests`` are the bodies that came, ``most`` how many there were at once."""

    def __init__(
        self,
        behave: Callable[[dict[str, Any], int], Any] = lambda request, number: None,
        models: tuple[str, ...] = ("tiny",),
        seconds: float = 0.0,
        owner: str = "tests",
    ) -> None:
        self.behave = behave
        self.models = models
        self.seconds = seconds
        self.owner = owner
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.busy = self.most = 0
        self.lock = threading.Lock()
        self.connections: set[socket.socket] = set()
        self._http = _Listener(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def die(self) -> None:
        """As a process that is killed: nothing listens any more, and connections end."""
        self._http.shutdown()
        self._http.server_close()
        with self.lock:
            for connection in self.connections:
                try:
                    connection.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.die()


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    owner: Server

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Connections end in the middle here."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Listener

    def setup(self) -> None:
        super().setup()
        with self.server.owner.lock:
            self.server.owner.connections.add(self.connection)

    def log_message(self, format: str, *args: Any) -> None:
        """Tests print nothing."""

    def do_GET(self) -> None:
        owner = self.server.owner
        models = [{"id": name, "object": "model", "owned_by": owner.owner} for name in owner.models]
        self._send(200, {"object": "list", "data": models})

    def do_POST(self) -> None:
        owner = self.server.owner
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with owner.lock:
            owner.requests.append(request)
            owner.headers.append(dict(self.headers))
            number = len(owner.requests)
            owner.busy += 1
            owner.most = max(owner.most, owner.busy)
        try:
            time.sleep(owner.seconds)
            self._answer(request, owner.behave(request, number))
        finally:
            with owner.lock:
                owner.busy -= 1

    def _answer(self, request: dict[str, Any], what: Any) -> None:
        headers: dict[str, str] = {}
        message = f"told to answer {what}"
        if isinstance(what, tuple):
            what, headers, *said = what
            message = "".join(said) or f"told to answer {what}"
        if what == "close":
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
            return
        if isinstance(what, int) and what != 200:
            self._send(what, {"error": {"message": message}}, headers)
            return
        if what == "other":
            self._send(200, {"choices": [{}]})
            return
        text = "nonsense" if what == "nonsense" else _text(request)
        if what == "spaced":
            text = f"\n {text}\r\n"
        choices = [
            {
                "index": index,
                "message": {
                    "role": "assistant",
                    "content": text[: len(text) // 2] if what == "cut" else text,
                },
                "finish_reason": "length" if what == "cut" else "stop",
            }
            for index in range(request.get("n", 1))
        ]
        usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
        body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": request["model"]}
        self._send(200, {**body, "choices": choices, "usage": usage}, headers)

    def _send(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _text(request: dict[str, Any]) -> str:
    """The shortest text that the request allows, JSON as another printer writes it."""
    given = request.get("structured_outputs") or request["response_format"]
    if "json_schema" in given:
        source: Any = JsonSchema(given["json_schema"]["schema"])
    elif "grammar" in given:
        source = (GBNF if "::=" in given["grammar"] else Lark)(given["grammar"])
    else:
        source = Regex(given.get("regex") or given["pattern"])
    text = compile_for_bytes(source)[1].matcher().shortest_completion_bytes().decode()
    return json.dumps(json.loads(text), indent=3) if isinstance(source, JsonSchema) else text
