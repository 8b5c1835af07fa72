"""The playground over HTTP, on this machine only.

Whoever can open the port can let this process compile and, with a model, write.  So it listens on 127.0.0.1 and answers only what
names it as its host, and only what its own page sends: no other site can ask through a visitor's browser.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from maskwright.errors import MaskwrightError
from maskwright.pages.page import page
from maskwright.playground.answers import LANGUAGES, RequestError, check, generate, read_request
from maskwright.vocabulary.vocabulary import Vocabulary

MOST_BYTES = 1_000_000
"""Of the body of a request."""
_AT_ONCE = 2
_IDLE_SECONDS = 30.0

_FIRST = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "age": {"type": "integer", "minimum": 0, "maximum": 150}
  },
  "required": ["name", "age"],
  "additionalProperties": false
}
"""


class Playground(ThreadingHTTPServer):
    """A server on 127.0.0.1.  ``port`` 0 is any free one; ``generator``: of a model, for the button that lets it write."""

    daemon_threads = True

    def __init__(self, port: int, generator: Any = None, vocabulary: Vocabulary | None = None) -> None:
        """Raises ``OSError`` when the port is taken."""
        super().__init__(("127.0.0.1", port), _Handler)
        self.generator = generator
        self.vocabulary = generator.vocabulary if generator is not None else vocabulary
        self.room = threading.BoundedSemaphore(_AT_ONCE)
        self.page = _page(generator is not None).encode()

    @property
    def address(self) -> str:
        """Where the page is."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """What went wrong with a request, but for a page that has gone."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    @property
    def hosts(self) -> set[str]:
        """The names by which it may be asked for."""
        return {f"{name}:{self.server_address[1]}" for name in ("127.0.0.1", "localhost")}


class _Handler(BaseHTTPRequestHandler):
    server: Playground
    protocol_version = "HTTP/1.1"
    timeout = _IDLE_SECONDS

    def do_GET(self) -> None:
        if not self._is_ours():
            return
        if self.path != "/":
            self._tell(HTTPStatus.NOT_FOUND, {"error": "there is one page, /"})
            return
        self._send(HTTPStatus.OK, "text/html; charset=utf-8", self.server.page)

    def do_POST(self) -> None:
        if not self._is_ours():
            return
        answers: dict[str, Callable[[Any], dict[str, Any]]] = {
            "/check": lambda request: check(request, self.server.vocabulary)
        }
        if self.server.generator is not None:
            answers["/generate"] = lambda request: generate(request, self.server.generator)
        answer = answers.get(self.path)
        body = self._body()
        if body is None:
            return
        if answer is None:
            self._tell(HTTPStatus.NOT_FOUND, {"error": f"there are {', '.join(answers)}"})
            return
        if not self.server.room.acquire(timeout=_IDLE_SECONDS):
            self._tell(HTTPStatus.SERVICE_UNAVAILABLE, {"error": "busy with other requests"})
            return
        try:
            self._tell(HTTPStatus.OK, answer(read_request(body)))
        except RequestError as error:
            self._tell(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        except MaskwrightError as error:
            self._tell(HTTPStatus.OK, {"error": str(error)})
        finally:
            self.server.room.release()

    def _is_ours(self) -> bool:
        """Whether the request names this server, and comes from its own page."""
        origin = self.headers.get("Origin")
        ours = self.headers.get("Host") in self.server.hosts and (
            origin is None or origin in {f"http://{host}" for host in self.server.hosts}
        )
        if not ours:
            self._refuse(HTTPStatus.FORBIDDEN, "asked for by another name, or from another page")
        return ours

    def _body(self) -> bytes | None:
        """The body of a request; None where it was refused."""
        # A form of another site can send every type but this one.
        if self.headers.get_content_type() != "application/json":
            self._refuse(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "a request is application/json")
            return None
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdecimal():
            self._refuse(HTTPStatus.LENGTH_REQUIRED, "a request has a Content-Length")
            return None
        if len(length) > 9 or int(length) > MOST_BYTES:
            self._refuse(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"{MOST_BYTES} bytes are allowed")
            return None
        return self.rfile.read(int(length))

    def _refuse(self, status: HTTPStatus, why: str) -> None:
        """An error that leaves a body unread."""
        self.close_connection = True
        self._tell(status, {"error": why})

    def _tell(self, status: HTTPStatus, answer: dict[str, Any]) -> None:
        self._send(status, "application/json", json.dumps(answer).encode())

    def _send(self, status: HTTPStatus, kind: str, data: bytes) -> None:
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Cache-Control": "no-store",
            "X-Content-Type-Options": "nosniff",
            "Connection": "close" if self.close_connection else "keep-alive",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        with contextlib.suppress(ConnectionError):  # the page has gone
            self.end_headers()
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are nobody's news."""


def _page(writes: bool) -> str:
    names = {"json-schema": "JSON Schema", "lark": "Lark", "gbnf": "GBNF", "regex": "Regular expression"}
    options = "".join(f'<option value="{each}">{names[each]}</option>' for each in LANGUAGES)
    writing = (
        "<h2>Let the model write</h2>\n"
        '<label for="prompt">Prompt</label><textarea id="prompt" rows="2" spellcheck="false">Ada Lovelace, 36, as JSON.</textarea>\n'
        '<button class="act" id="write" type="button">Write</button>\n'
        '<pre id="written" aria-live="polite" tabindex="0">Nothing yet.</pre>\n'
    )
    body = (
        '<div class="two">\n<section aria-label="source">\n'
        f'<label for="language">Language</label><select id="language">{options}</select>\n'
        f'<label for="source">Schema or grammar</label><textarea id="source" rows="16" spellcheck="false">{_FIRST}</textarea>\n'
        '<h2>Problems</h2><div id="problems" aria-live="polite"></div>\n'
        '<h2>Samples</h2><button class="act" id="again" type="button">Others</button><div id="samples"></div>\n'
        '</section>\n<section aria-label="instance">\n'
        '<label for="instance">Output, checked as you type</label>'
        '<textarea id="instance" rows="16" spellcheck="false">{"name": "Ada", "age": 3</textarea>\n'
        '<h2>The output</h2><div id="verdict" aria-live="polite"></div>\n'
        '<h2>At the cursor</h2><div id="cursor"></div>\n'
        f"{writing if writes else ''}</section>\n</div>\n"
    )
    return page("maskwright playground", body, scripts=["playground.js"], connects=True)
