"""The process: it listens, and ends when it is told to."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from types import FrameType
from typing import Any

import uvicorn

from maskwright.serve.app import make_app
from maskwright.serve.service import Service

_LAST_WORDS = 2
"""Seconds for errors to reach those who still wait, behind ``shutdown_seconds`` or a second signal."""


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
        """Let go of what listens, and of the service.

        Told twice, uvicorn waits for nobody: tasks that are left when its event loop ends are cancelled, and their clients read of an
        error of the server.  So the model's thread ends first (it must not outlive the process either), and its rows have their words.
        """
        await super().shutdown(sockets)
        if self.force_exit:
            await asyncio.to_thread(self.service.engine.close)
            end = time.monotonic() + _LAST_WORDS
            while self.server_state.tasks and time.monotonic() < end:
                await asyncio.sleep(0.01)
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
