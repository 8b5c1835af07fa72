"""A real server in a thread of the tests, and clients for it."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")
pytest.importorskip("uvicorn", reason="the server needs the extra serve")
pytest.importorskip("prometheus_client", reason="the server needs the extra serve")
openai = pytest.importorskip("openai", reason="the tests talk to the server with the openai client")

from devices import DEVICE  # noqa: E402
from tiny_model import TINY  # noqa: E402

from maskwright.generation.generator import Generator  # noqa: E402
from maskwright.serve.running import Server, make_server  # noqa: E402
from maskwright.serve.service import Service  # noqa: E402
from maskwright.serve.settings import Settings  # noqa: E402

MODEL = "tiny"
TEMPLATE = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}
SLOW = {"pattern": "^(?=.*" + ")(?=.*".join(f"{c}.*x.*{c}" for c in "abcdefgh") + ")", "type": "string"}
"""Compiling it takes longer than a test allows."""


@cache
def tiny() -> Generator:
    """The tiny model, with a chat template, which it does not have by itself."""
    generator = Generator.from_pretrained(str(TINY))
    generator.model.to(DEVICE)
    generator.tokenizer.chat_template = TEMPLATE
    return generator


class Served:
    """``client``: of OpenAI; ``url``: of the server; ``service``: what is behind it."""

    def __init__(self, server: Server, service: Service, port: int) -> None:
        self.server = server
        self.service = service
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.client = openai.OpenAI(base_url=f"{self.url}/v1", api_key="none", max_retries=0, timeout=120)

    def chat(self, text: str = "Hello", **options: Any) -> Any:
        """An answer, of few tokens unless said otherwise."""
        given = {"max_tokens": 60, **options}
        messages = [{"role": "user", "content": text}]
        return self.client.chat.completions.create(model=MODEL, messages=messages, **given)  # type: ignore[arg-type, unused-ignore]

    def metric(self, name: str) -> float:
        """The value of a line of /metrics; 0 for labels that nothing was counted for."""
        lines = self.service.metrics.text().decode().splitlines()
        values = [line.rpartition(" ")[2] for line in lines if line.startswith(f"{name} ")]
        assert values or "{" in name, f"there is no metric {name}"
        return float(values[0]) if values else 0.0

    def wait_until_running(self, seconds: float = 20) -> None:
        """Until a row runs."""
        end = time.monotonic() + seconds
        while not self.metric("maskwright_rows_running"):
            assert time.monotonic() < end, "no row runs"
            time.sleep(0.01)  # whoever asks without a break takes the server's time

    def wait_until_idle(self, seconds: float = 30) -> None:
        """Until no row runs or waits."""
        end = time.monotonic() + seconds
        while self.metric("maskwright_rows_running") or self.metric("maskwright_rows_waiting"):
            assert time.monotonic() < end, "rows are still there"
            time.sleep(0.02)


def free_port() -> int:
    """A port that nobody listens to."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


@contextlib.contextmanager
def serving(generator: Generator | None = None, name: str = MODEL, **settings: Any) -> Iterator[Served]:
    """A server with these settings, of the tiny model where no other one is given."""
    service = Service(generator or tiny(), Settings(**settings))
    port = free_port()
    server = make_server(service, name, host="127.0.0.1", port=port, log_level="warning")
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        end = time.monotonic() + 60
        while not server.started:
            assert thread.is_alive() and time.monotonic() < end, "the server does not start"
            time.sleep(0.02)
        yield Served(server, service, port)
    finally:
        server.end()
        thread.join(timeout=60)
        assert not thread.is_alive(), "the server does not end"


def json_schema(schema: Any, name: str = "answer") -> dict[str, Any]:
    """A ``response_format``."""
    return {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


def tool(name: str, parameters: Any) -> dict[str, Any]:
    """A tool of chats."""
    return {
        "type": "function",
        "function": {"name": name, "description": f"calls {name}", "parameters": parameters},
    }
