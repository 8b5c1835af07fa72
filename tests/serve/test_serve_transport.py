"""Events for clients that read slowly, or not at all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the server needs the extra serve")

from maskwright.serve import transport
from maskwright.serve.errors import RequestError
from maskwright.serve.transport import EventStream

SECONDS = 0.1


def sent_to(pause: float) -> tuple[str, list[BaseException | None]]:
    """What a client gets that takes its time for an event, of an answer that never ends, and how it ended."""
    parts: list[bytes] = []
    ends: list[BaseException | None] = []

    async def events() -> AsyncIterator[dict[str, Any]]:
        yield {"type": "first"}
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        if message.get("body"):
            await asyncio.sleep(pause if not parts else 0)
            parts.append(message["body"])

    async def receive() -> Any:
        await asyncio.Event().wait()

    late = RequestError(504, "late", code="timeout", kind="timeout_error")
    stream = EventStream(events(), ends.append, lambda error: late, seconds=SECONDS, named=True)
    scope = {"type": "http", "asgi": {"spec_version": "2.4"}}
    asyncio.run(asyncio.wait_for(stream(scope, receive, send), 20))
    return b"".join(parts).decode(), ends


@pytest.mark.parametrize("pause", [0, 5 * SECONDS])
def test_who_reads_slowly_is_told_that_the_time_is_over(pause: float) -> None:
    text, ends = sent_to(pause)
    first, error, rest = text.split("\n\n")
    assert first.startswith("event: first\n") and not rest
    assert error == (
        'event: error\ndata: {"message": "late", "type": "error", "param": null, "code": "timeout", "sequence_number": 1}'
    )
    assert [type(each) for each in ends] == [TimeoutError]


def test_who_does_not_read_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "_UNREAD_SECONDS", SECONDS)
    text, ends = sent_to(60)
    assert not text and [type(each) for each in ends] == [TimeoutError]
