"""The process: it listens, and ends when it is told to."""

from __future__ import annotations

import logging
import socket
import threading
from types import FrameType
from typing import Any

import uvicorn

from maskwright.serve.app import make_app
from maskwright.serve.service import Service

_LAST_WORDS = 2
"""Seconds behind ``shutdown_seconds`` for errors to reach those who still wait."""


class Server(uvicorn.Server):
    """Ends gracefully: told to (SIGTERM, SIGINT), it takes nothing new and finishes what it has, within ``shutdown_seconds``; what is
    not done then gets an error.  Told twice, it ends at once."""

    def __init__(self, service: Service, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.service = service

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen.  Of sockets that it is given, uvicorn does not say where they are."""
        await super().startup(sockets)
        for each in sockets or ():
            host, port, *_ = each.getsockname()
            shown = f"[{host}]" if ":" in host else host
            logging.getLogger("uvicorn.error").info(
                "Listening on http://%s:%d (ends with Ctrl-C)", shown, port
            )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal came: of either kind, the second one is for those who cannot wait.

        uvicorn would raise them again in the end, and the process would not end with 0.
        """
        if self.should_exit:
            self.service.engine.fail()
            self.force_exit = True
        self.end()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let go of what listens, and of the service, also where nobody is waited for: the model's thread must not outlive the process."""
        await super().shutdown(sockets)
        if self.force_exit:
            await self.lifespan.shutdown()

    def end(self) -> None:
        """Take nothing new, and end when all is done or ``shutdown_seconds`` are over."""
        if not self.service.engine.is_refusing:
            self.service.engine.refuse()
            late = threading.Timer(self.service.settings.shutdown_seconds, self.service.engine.fail)
            late.daemon = True
            late.start()
        self.should_exit = True


def make_server(service: Service, model: str, **options: Any) -> Server:
    """A server that ``run`` starts.  ``options``: of ``uvicorn.Config`` (host, port, log_level, ...)."""
    seconds = service.settings.shutdown_seconds + _LAST_WORDS
    config = uvicorn.Config(
        make_app(service, model), timeout_graceful_shutdown=int(seconds) + 1, lifespan="on", **options
    )
    return Server(service, config)
