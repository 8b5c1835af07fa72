"""Bodies, events, and clients that go away."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

from fastapi import Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from starlette.requests import ClientDisconnect

from maskwright.frontends.json_schema.algebra.strings import is_text
from maskwright.frontends.json_text import finite
from maskwright.serve.errors import RequestError, refused
from maskwright.serve.settings import Settings

_T = TypeVar("_T")
_DRAINED = 16
"""Times ``max_body_bytes`` that are read and dropped, so that whoever sends too much sees the refusal."""
_DEEPEST = 500
"""Levels of JSON, well below what Python can write again."""
_UNREAD_SECONDS = 10.0
"""Behind the time of a request, for a client to read what was sent, and the error."""


async def read_body(request: Request, settings: Settings) -> bytes:
    """The body.  Raises ``RequestError``: 413 for too much of it, 408 when it takes too long."""
    most = settings.max_body_bytes
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(settings.body_seconds):
            async for part in request.stream():
                size += len(part)
                if size <= most:
                    parts.append(part)
                else:
                    parts.clear()
                    if size > _DRAINED * most:
                        break
    except TimeoutError:
        message = f"the body did not come within body_seconds, which is {settings.body_seconds}"
        raise RequestError(408, message, code="body_timeout") from None
    if size > most:
        message = f"the body is larger than max_body_bytes, which is {most}"
        raise RequestError(413, message, code="limit_max_body_bytes")
    return b"".join(parts)


def read_json(body: bytes) -> Any:
    """Decoded JSON.  Raises ``RequestError`` for anything else, and for what no answer could repeat: NaN, infinities, lone surrogates."""
    try:
        read = exact_json(body)
        try:
            json.dumps(read, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            place = _surrogate(read)
            raise refused(
                f"{place or 'the body'}: it has a lone surrogate, which is no text", place or None
            ) from None
        return read
    except RecursionError:
        raise refused("the body is nested too deeply", None, "invalid_json") from None
    except ValueError as error:
        raise refused(f"the body is no JSON: {error}", None, "invalid_json") from None


def exact_json(data: bytes | str) -> Any:
    """Decoded JSON without NaN and infinities.  Raises ``ValueError``, and ``RecursionError`` for what is nested too deeply to be written."""
    read = json.loads(data, parse_constant=_no_number, parse_float=finite)
    if len(data) > _DEEPEST and _is_deep(read):
        raise RecursionError
    return read


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _is_deep(read: Any) -> bool:
    level = [read]
    for _ in range(_DEEPEST):
        inside = [each.values() if isinstance(each, dict) else each for each in level]
        level = [each for values in inside for each in values if isinstance(each, (dict, list))]
        if not level:
            return False
    return True


def _surrogate(read: Any) -> str:
    """Where a text with a lone surrogate is, as errors name parameters."""
    left = [("", read)]
    while left:
        place, value = left.pop()
        if isinstance(value, dict):
            left += [(place, name) for name in value]
            left += [(f"{place}.{name}" if place else name, each) for name, each in value.items()]
        elif isinstance(value, list):
            left += [(f"{place}[{at}]", each) for at, each in enumerate(value)]
        elif isinstance(value, str) and not is_text(value):
            return place
    return ""


def error_response(error: RequestError, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """An error as an answer, with its own headers and others."""
    return JSONResponse(error.body, error.status, headers={**error.headers, **(headers or {})})


async def while_connected(request: Request, work: Coroutine[Any, Any, _T]) -> _T:
    """The result of some work, which is cancelled when the client goes away.  Raises ``ClientDisconnect`` then."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise ClientDisconnect
        return task.result()
    finally:
        for each in (task, gone):
            each.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class EventStream(StreamingResponse):
    """Server-sent events.  ``ended(error)`` is called in any case: with None, what went wrong, or ``ClientDisconnect``.

    ``named``: whether events say their type (responses), or end with ``[DONE]`` (the others).
    """

    def __init__(
        self,
        events: AsyncIterator[dict[str, Any]],
        ended: Callable[[BaseException | None], None],
        as_error: Callable[[BaseException], RequestError],
        *,
        seconds: float,
        named: bool,
    ) -> None:
        self._ended = ended
        self._as_error = as_error
        self._seconds = seconds
        self._named = named
        self._outcome: BaseException | None = ClientDisconnect()
        super().__init__(
            self._lines(events), media_type="text/event-stream", headers={"Cache-Control": "no-cache"}
        )

    async def __call__(
        self,
        scope: Any,
        receive: Callable[[], Awaitable[Any]],
        send: Callable[[Any], Awaitable[None]],
    ) -> None:
        """Send it.  The client may go away at any time, even before the first event."""
        try:
            async with asyncio.timeout(self._seconds + _UNREAD_SECONDS):
                await super().__call__(scope, receive, send)
        except TimeoutError as error:
            self._outcome = error
        finally:
            self._ended(self._outcome)

    async def _lines(self, events: AsyncIterator[dict[str, Any]]) -> AsyncIterator[str]:
        end = asyncio.get_running_loop().time() + self._seconds
        number = 0
        try:
            while True:
                # Around the waiting only: a client that reads slowly is to be told that the time is over.
                async with asyncio.timeout_at(end):
                    event = await anext(events, None)
                if event is None:
                    break
                yield self._line(event)
                number += 1
        except Exception as error:
            self._outcome = error
            body = self._as_error(error).body
            if self._named:
                body = {**body["error"], "type": "error", "sequence_number": number}
            yield self._line(body)
            return
        if not self._named:
            yield "data: [DONE]\n\n"
        self._outcome = None

    def _line(self, event: dict[str, Any]) -> str:
        name = f"event: {event['type']}\n" if self._named else ""
        return f"{name}data: {json.dumps(event, ensure_ascii=False)}\n\n"


def gone_response() -> Response:
    """For the log: nobody reads it."""
    return Response(status_code=499)
