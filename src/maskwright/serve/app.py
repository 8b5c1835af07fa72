"""The routes, and what happens to a request from its first byte to its last."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Protocol

from fastapi import FastAPI, Request
from fastapi.exceptions import HTTPException
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException as StarletteError
from starlette.requests import ClientDisconnect

from maskwright import __version__
from maskwright.errors import MaskwrightError
from maskwright.serve.chat import ChatAnswer, plan_chat
from maskwright.serve.completions import CompletionAnswer, plan_completion
from maskwright.serve.errors import RequestError, of_row
from maskwright.serve.outputs import Outputs
from maskwright.serve.protocol import ChatRequest, CompletionRequest, ResponseRequest
from maskwright.serve.responses import ResponseAnswer, plan_response
from maskwright.serve.service import Service
from maskwright.serve.transport import (
    EventStream,
    error_response,
    gone_response,
    read_body,
    read_json,
    while_connected,
)

_log = logging.getLogger("maskwright.serve")
_LARGE = 2**16
"""Bytes of a body that is read in a thread."""


class _Answer(Protocol):
    async def whole(self) -> dict[str, Any]: ...
    def stream(self) -> AsyncIterator[dict[str, Any]]: ...


class _Endpoint:
    """One of the three: its request, how it is planned, and how it is answered."""

    def __init__(self, name: str, request: Any, plan: Any, answer: Any) -> None:
        self.name = name
        self.request = request
        self.plan = plan
        self.answer = answer


_ENDPOINTS = {
    "/v1/chat/completions": _Endpoint("chat", ChatRequest, plan_chat, ChatAnswer),
    "/v1/completions": _Endpoint("completions", CompletionRequest, plan_completion, CompletionAnswer),
    "/v1/responses": _Endpoint("responses", ResponseRequest, plan_response, ResponseAnswer),
}


def make_app(service: Service, model: str) -> FastAPI:
    """The server of one model, under the name that clients use."""
    started = int(time.time())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.close()

    app = FastAPI(title="maskwright", version=__version__, lifespan=lifespan)

    def reads(path: str) -> Callable[[Any], Any]:
        """GET and HEAD of a path.  One route with both would be two operations of one name in OpenAPI: it lists the second route."""

        def add(function: Any) -> Any:
            app.api_route(path, methods=["GET", "HEAD"], include_in_schema=False)(function)
            return app.get(path)(function)

        return add

    @reads("/health")
    async def health() -> Response:
        """Whether requests are taken."""
        if service.engine.is_refusing:
            return JSONResponse({"status": "shutting down"}, 503)
        if not service.engine.is_alive:
            return JSONResponse({"status": "the thread of the model has ended"}, 503)
        return JSONResponse({"status": "ok", "model": model})

    @reads("/metrics")
    async def metrics() -> Response:
        """What Prometheus reads."""
        return Response(service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    about = {"id": model, "object": "model", "created": started, "owned_by": "maskwright"}

    @reads("/v1/models")
    async def models() -> dict[str, Any]:
        """The one model."""
        return {"object": "list", "data": [about]}

    @reads("/v1/models/{name:path}")
    async def one_model(name: str) -> Response:
        """What is known of it."""
        return JSONResponse(about) if name == model else error_response(_no_model(name, model))

    for path, endpoint in _ENDPOINTS.items():
        schema = endpoint.request.model_json_schema(ref_template=f"#{path}/{{model}}")
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        app.post(path, name=endpoint.name, openapi_extra={"requestBody": body})(
            _route(service, endpoint, model)
        )

    @app.exception_handler(StarletteError)
    async def unknown(request: Request, error: HTTPException) -> Response:
        message = f"{request.method} {request.url.path}: {error.detail}"
        # Allow, of a method that a path does not have.
        return error_response(RequestError(error.status_code, message), error.headers)

    return app


def _no_model(name: str, model: str) -> RequestError:
    message = f"there is no model {name[:100]!r} here, but {model!r}"
    return RequestError(404, message, param="model", code="model_not_found")


def _route(service: Service, endpoint: _Endpoint, model: str) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        return await _Handling(service, endpoint, model).run(request)

    return answer


class _Handling:
    """One request."""

    def __init__(self, service: Service, endpoint: _Endpoint, model: str) -> None:
        self.service = service
        self.endpoint = endpoint
        self.model = model
        self.began = time.perf_counter()
        self.outputs: Outputs | None = None

    async def run(self, request: Request) -> Response:
        """The answer, or an error."""
        service = self.service
        service.open_requests += 1
        try:
            response = await self._respond(request)
        except BaseException as error:
            self._end(error)
            if not isinstance(error, Exception):
                raise
            if isinstance(error, ClientDisconnect):
                return gone_response()
            return error_response(self._as_error(error))
        if not isinstance(response, EventStream):
            self._end(None)
        return response

    async def _respond(self, request: Request) -> Response:
        service, settings = self.service, self.service.settings
        if service.open_requests > settings.max_requests or service.engine.is_refusing:
            await read_body(request, settings)  # whoever is still sending would not see the answer
            raise _turned_away(service)
        data = await read_body(request, settings)
        asked = self._read(data) if len(data) < _LARGE else await service.in_thread(self._read, data)
        if asked.model != self.model:
            raise _no_model(asked.model, self.model)
        plan = self.endpoint.plan(asked, service)
        answer = await while_connected(request, self._within(self._start(asked, plan)))
        if asked.stream:
            return EventStream(
                answer.stream(),
                self._end,
                self._as_error,
                seconds=self._left(),
                named=self.endpoint.request is ResponseRequest,
            )
        return JSONResponse(await while_connected(request, self._within(answer.whole())))

    def _read(self, data: bytes) -> Any:
        return self.endpoint.request.read(read_json(data))

    async def _start(self, asked: Any, plan: Any) -> _Answer:
        self.outputs = outputs = await self.service.start(plan)
        answer: _Answer = self.endpoint.answer(asked, plan, outputs, self.service)
        return answer

    async def _within(self, work: Awaitable[Any]) -> Any:
        try:
            async with asyncio.timeout(self._left()):
                return await work
        except TimeoutError:
            raise self._late() from None

    def _left(self) -> float:
        """Seconds until the request is late."""
        return max(self.service.settings.request_seconds - (time.perf_counter() - self.began), 0.0)

    def _late(self) -> RequestError:
        seconds = self.service.settings.request_seconds
        return RequestError(
            504,
            f"the answer was not done within request_seconds, which is {seconds}",
            code="timeout",
            kind="timeout_error",
        )

    def _as_error(self, error: BaseException) -> RequestError:
        """What the client is told."""
        if isinstance(error, TimeoutError):
            return self._late()
        known = isinstance(error, (RequestError, MaskwrightError))
        if not known:
            _log.error("a request failed", exc_info=error)
        return of_row(error) if isinstance(error, Exception) else _turned_away(self.service)

    def _end(self, error: BaseException | None) -> None:
        """Free the rows, and count."""
        self.service.open_requests -= 1
        if self.outputs is not None:
            self.outputs.cancel()
        if error is None:
            outcome = "ok"
        elif isinstance(error, (ClientDisconnect, asyncio.CancelledError)):
            outcome = "disconnected"
        else:
            outcome = _outcome(self._status(error))
        self.service.metrics.request(self.endpoint.name, outcome, time.perf_counter() - self.began)

    def _status(self, error: BaseException) -> int:
        if isinstance(error, TimeoutError):
            return 504
        return of_row(error).status if isinstance(error, Exception) else 500


def _outcome(status: int) -> str:
    if status in (429, 503):
        return "overloaded"
    if status in (408, 504):
        return "timeout"
    return "refused" if status < 500 else "failed"


def _turned_away(service: Service) -> RequestError:
    wait = service.settings.retry_after
    if service.engine.is_refusing:
        return RequestError(503, "the server is shutting down", code="shutting_down", retry_after=wait)
    most = service.settings.max_requests
    return RequestError(
        429,
        f"{most} requests are under way, which is max_requests: come again later",
        code="too_many_requests",
        kind="rate_limit_error",
        retry_after=wait,
    )
