"""``/v1/chat/completions``: a request -> a plan, and outputs -> an answer, whole or streamed."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from maskwright.generation.row import Row
from maskwright.serve.constraints import Constraint, chat_tools, format_constraint, tool_constraint
from maskwright.serve.conversation import chat_messages
from maskwright.serve.errors import refused
from maskwright.serve.logprobs import TokenList
from maskwright.serve.outputs import GrowingText, Outputs, Progress
from maskwright.serve.protocol import ChatRequest
from maskwright.serve.service import Plan, Service
from maskwright.serve.tool_calls import CallBegins, Event, Reader, Said, Thought


def plan_chat(request: ChatRequest, service: Service) -> Plan:
    """What a chat asks for.  Raises ``RequestError``."""
    settings = service.settings
    constraint = format_constraint(request.response_format, "response_format")
    if request.tools:
        constraint = tool_constraint(
            chat_tools(request.tools),
            request.tool_choice,
            constraint,
            writing=service.writing,
            parallel=request.parallel_tool_calls,
            most=settings.max_tools,
        )
    elif request.tool_choice not in (None, "none", "auto"):
        raise refused("tool_choice: there are no tools", "tool_choice")
    messages = chat_messages(request.messages)
    most = request.max_completion_tokens
    return Plan(
        prompts=lambda: [
            service.prompts.chat(messages, constraint.shown, instruction(constraint, service), "messages")
        ],
        prompt_param="messages",
        constraint=constraint,
        sampling=request.sampling(len(service.vocabulary)),
        n=request.n,
        max_tokens=request.max_tokens if most is None else most,
        max_param="max_tokens" if most is None else "max_completion_tokens",
        stops=request.stops,
        top=request.top,
        stream=request.stream,
    )


def instruction(constraint: Constraint, service: Service) -> str | None:
    """What tells the model about the schema or grammar, where that is wanted."""
    shown = service.settings.schema_in_prompt and constraint.is_format and constraint.output is not None
    return constraint.output.instruction() if shown and constraint.output is not None else None


@dataclass
class Choice:
    """One output while it comes: its text, calls and probabilities."""

    row: Row
    tokens: TokenList | None
    reader: Reader | None
    text: GrowingText = field(default_factory=GrowingText)
    ids: list[str] = field(default_factory=list)
    """Of its calls."""

    def feed(self, progress: Progress) -> list[Event]:
        """What is new."""
        text = self.text.more(progress.text, final=progress.done)
        if self.reader is None:
            events: list[Event] = [Said(text)] if text else []
        else:
            events = [*self.reader.feed(text), *(self.reader.finish() if progress.done else ())]
        self.ids += [f"call_{uuid.uuid4().hex[:24]}" for event in events if isinstance(event, CallBegins)]
        return events

    @property
    def finish_reason(self) -> str:
        """Why it ended."""
        if self.row.reason == "budget":
            return "length"
        return "tool_calls" if self.ids else "stop"

    @property
    def report(self) -> dict[str, Any]:
        """What no other server says: how likely the model would have left the grammar, and what it was not asked about."""
        return {"removed_mass": self.row.removed.total, "forced_tokens": self.row.usage.forced_tokens}


def choices_of(outputs: Outputs, plan: Plan, service: Service) -> list[Choice]:
    """One for each output."""
    reader = plan.constraint.reader
    return [
        Choice(
            row,
            TokenList(row, service.vocabulary, reader is not None) if plan.top is not None else None,
            None if reader is None else reader(),
        )
        for row in outputs.rows
    ]


def usage_of(rows: list[Row], n: int) -> dict[str, Any]:
    """What all of it took; each prompt counts once."""
    prompt = sum(len(row.prompt) for row in rows[::n])
    written = sum(len(row.ids) for row in rows)
    return {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}


class ChatAnswer:
    """The answer to one request."""

    def __init__(self, request: ChatRequest, plan: Plan, outputs: Outputs, service: Service) -> None:
        self.request = request
        self.plan = plan
        self.outputs = outputs
        self.choices = choices_of(outputs, plan, service)
        self._head = {
            "id": f"chatcmpl-{uuid.uuid4().hex}",
            "created": int(time.time()),
            "model": request.model,
        }

    async def whole(self) -> dict[str, Any]:
        """A ``chat.completion``."""
        await self.outputs.finished()
        made = [self._whole(index, choice) for index, choice in enumerate(self.choices)]
        usage = usage_of(self.outputs.rows, self.plan.n)
        return {**self._head, "object": "chat.completion", "choices": made, "usage": usage}

    def _whole(self, index: int, choice: Choice) -> dict[str, Any]:
        progress = self.outputs.last(index)
        said = thought = ""
        calls: list[dict[str, Any]] = []
        for event in choice.feed(progress):
            if isinstance(event, Said):
                said += event.text
            elif isinstance(event, Thought):
                thought += event.text
            elif isinstance(event, CallBegins):
                function = {"name": event.name, "arguments": ""}
                calls.append({"id": choice.ids[event.index], "type": "function", "function": function})
            else:
                calls[event.index]["function"]["arguments"] += event.text
        message: dict[str, Any] = {"role": "assistant", "content": said, "refusal": None}
        if thought:
            message["reasoning_content"] = thought
        if calls:
            message.update(content=said or None, tool_calls=calls)
        return {
            "index": index,
            "message": message,
            "logprobs": self._logprobs(choice, len(progress.text), progress.judged),
            "finish_reason": choice.finish_reason,
            "maskwright": choice.report,
        }

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """``chat.completion.chunk``s."""
        for index in range(len(self.choices)):
            yield self._chunk(index, {"role": "assistant", "content": ""})
        async for index, progress in self.outputs.changes():
            choice = self.choices[index]
            for event in choice.feed(progress):
                logprobs = self._logprobs(choice, len(progress.text), progress.judged)
                yield self._chunk(index, self._delta(event, choice), logprobs=logprobs)
            if progress.done:
                rest = self._logprobs(choice, len(progress.text), progress.judged)
                reason, report = choice.finish_reason, choice.report
                yield self._chunk(index, {}, logprobs=rest, finish_reason=reason, maskwright=report)
        if self.request.include_usage:
            usage = usage_of(self.outputs.rows, self.plan.n)
            yield {**self._head, "object": "chat.completion.chunk", "choices": [], "usage": usage}

    def _delta(self, event: Event, choice: Choice) -> dict[str, Any]:
        if isinstance(event, Said):
            return {"content": event.text}
        if isinstance(event, Thought):
            return {"reasoning_content": event.text}
        if isinstance(event, CallBegins):
            function = {"name": event.name, "arguments": ""}
            begun = {"id": choice.ids[event.index], "type": "function", "function": function}
            return {"tool_calls": [{"index": event.index, **begun}]}
        return {"tool_calls": [{"index": event.index, "function": {"arguments": event.text}}]}

    def _chunk(
        self,
        index: int,
        delta: dict[str, Any],
        logprobs: Any = None,
        finish_reason: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        choice = {
            "index": index,
            "delta": delta,
            "logprobs": logprobs,
            "finish_reason": finish_reason,
            **more,
        }
        usage = {"usage": None} if self.request.include_usage else {}
        return {**self._head, "object": "chat.completion.chunk", "choices": [choice], **usage}

    def _logprobs(self, choice: Choice, shown: int, judged: int) -> dict[str, Any] | None:
        if choice.tokens is None:
            return None
        return {"content": choice.tokens.chat(choice.tokens.more(shown, judged)), "refusal": None}
