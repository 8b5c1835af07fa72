"""``/v1/responses``: a request -> a plan, and the output -> an answer, whole or as events.

Both ways are one: an output becomes events, and the whole answer is what they add up to.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator, Iterator
from typing import Any

from maskwright.serve.chat import choices_of, instruction, usage_of
from maskwright.serve.constraints import format_constraint, response_choice, response_tools, tool_constraint
from maskwright.serve.conversation import response_messages
from maskwright.serve.errors import refused
from maskwright.serve.outputs import Outputs, Progress
from maskwright.serve.protocol import ResponseRequest
from maskwright.serve.sampling import Sampling
from maskwright.serve.service import Plan, Service
from maskwright.serve.tool_calls import CallBegins, CallGoesOn, Event, Thought


def plan_response(request: ResponseRequest, service: Service) -> Plan:
    """What a response asks for.  Raises ``RequestError``."""
    settings = service.settings
    constraint = format_constraint(_format(request.text), "text.format", named="text.format")
    choice = response_choice(request.tool_choice)
    if request.tools:
        constraint = tool_constraint(
            response_tools(request.tools),
            choice,
            constraint,
            writing=service.writing,
            parallel=request.parallel_tool_calls,
            most=settings.max_tools,
            inside="",
        )
    elif choice not in (None, "none", "auto"):
        raise refused("tool_choice: there are no tools", "tool_choice")
    messages = response_messages(request.input, request.instructions)
    return Plan(
        prompts=lambda: [
            service.prompts.chat(messages, constraint.shown, instruction(constraint, service), "input")
        ],
        prompt_param="input",
        constraint=constraint,
        sampling=Sampling(temperature=request.temperature, top_p=request.top_p),
        max_tokens=request.max_output_tokens,
        max_param="max_output_tokens",
        stream=request.stream,
    )


def _format(text: dict[str, Any] | None) -> dict[str, Any] | None:
    """``text.format``, as chats write it: with the schema in an object of its own."""
    for name, value in (text or {}).items():
        if name != "format" and value is not None:
            raise refused(
                f"text.{name}: the model has no such setting"[:300], "text", "unsupported_parameter"
            )
    given = (text or {}).get("format")
    if given is None:
        return None
    if not isinstance(given, dict):
        raise refused("text.format: an object with a type is needed", "text.format")
    if given.get("type") != "json_schema":
        return given
    return {
        "type": "json_schema",
        "json_schema": {name: value for name, value in given.items() if name != "type"},
    }


class ResponseAnswer:
    """The answer to one request."""

    def __init__(self, request: ResponseRequest, plan: Plan, outputs: Outputs, service: Service) -> None:
        self.request = request
        self.outputs = outputs
        (self.choice,) = choices_of(outputs, plan, service)
        self._id = f"resp_{uuid.uuid4().hex}"
        self._created = int(time.time())
        self._items: list[dict[str, Any]] = []
        self._is_open = False

    async def whole(self) -> dict[str, Any]:
        """A ``response``."""
        await self.outputs.finished()
        for _ in self._read(self.outputs.last(0)):
            pass
        return self._response(self._status)

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """The events of a response, numbered."""
        number = 0
        async for event in self._events():
            yield {**event, "sequence_number": number}
            number += 1

    async def _events(self) -> AsyncIterator[dict[str, Any]]:
        for kind in ("created", "in_progress"):
            yield {"type": f"response.{kind}", "response": self._response("in_progress")}
        async for _, progress in self.outputs.changes():
            for event in self._read(progress):
                yield event
        yield {"type": f"response.{self._status}", "response": self._response(self._status)}

    @property
    def _status(self) -> str:
        return "incomplete" if self.choice.row.reason == "budget" else "completed"

    def _read(self, progress: Progress) -> Iterator[dict[str, Any]]:
        for event in self.choice.feed(progress):
            yield from self._take(event)
        if progress.done:
            # What was being written when the budget ran out is as incomplete as the response.
            yield from self._close(self._status)

    def _take(self, event: Event) -> Iterator[dict[str, Any]]:
        item = self._items[-1] if self._is_open else None
        if isinstance(event, Thought):
            return
        if isinstance(event, CallGoesOn):
            assert item is not None, "a call goes on behind its beginning"
            item["arguments"] += event.text
            yield self._about("response.function_call_arguments.delta", delta=event.text)
            return
        if isinstance(event, CallBegins):
            yield from self._close()
            call_id = self.choice.ids[event.index]
            made = {
                "type": "function_call",
                "id": f"fc_{uuid.uuid4().hex}",
                "call_id": call_id,
                "name": event.name,
            }
            yield self._open({**made, "arguments": "", "status": "in_progress"})
            return
        if item is None or item["type"] != "message":
            yield from self._close()
            made = {"type": "message", "id": f"msg_{uuid.uuid4().hex}", "role": "assistant"}
            yield self._open({**made, "content": [], "status": "in_progress"})
            part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
            self._items[-1]["content"].append(part)
            yield self._about("response.content_part.added", content_index=0, part=dict(part))
        self._items[-1]["content"][0]["text"] += event.text
        yield self._about("response.output_text.delta", content_index=0, delta=event.text, logprobs=[])

    def _open(self, item: dict[str, Any]) -> dict[str, Any]:
        self._items.append(item)
        self._is_open = True
        return {
            "type": "response.output_item.added",
            "output_index": len(self._items) - 1,
            "item": dict(item),
        }

    def _close(self, status: str = "completed") -> Iterator[dict[str, Any]]:
        if not self._is_open:
            return
        item = self._items[-1]
        item["status"] = status
        if item["type"] == "message":
            part = item["content"][0]
            yield self._about("response.output_text.done", content_index=0, text=part["text"], logprobs=[])
            yield self._about("response.content_part.done", content_index=0, part=dict(part))
        else:
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield self._about("response.function_call_arguments.done", **done)
        yield {"type": "response.output_item.done", "output_index": len(self._items) - 1, "item": dict(item)}
        self._is_open = False

    def _about(self, kind: str, **more: Any) -> dict[str, Any]:
        place = len(self._items) - 1
        return {"type": kind, "item_id": self._items[place]["id"], "output_index": place, **more}

    def _response(self, status: str) -> dict[str, Any]:
        request = self.request
        done = status != "in_progress"
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "status": status,
            "error": None,
            "incomplete_details": {"reason": "max_output_tokens"} if status == "incomplete" else None,
            "instructions": request.instructions,
            "max_output_tokens": request.max_output_tokens,
            "metadata": request.metadata or {},
            "model": request.model,
            "output": list(self._items) if done else [],
            "parallel_tool_calls": request.parallel_tool_calls,
            "previous_response_id": None,
            "store": False,
            "temperature": request.temperature,
            "text": {"format": (request.text or {}).get("format") or {"type": "text"}},
            "tool_choice": request.tool_choice or "auto",
            "tools": request.tools or [],
            "top_p": request.top_p,
            "truncation": "disabled",
            "usage": self._usage() if done else None,
            "maskwright": self.choice.report if done else None,
        }

    def _usage(self) -> dict[str, Any]:
        usage = usage_of(self.outputs.rows, 1)
        return {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        }
