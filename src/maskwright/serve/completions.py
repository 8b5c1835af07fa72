"""``/v1/completions``: a request -> a plan, and outputs -> an answer, whole or streamed."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from typing import Any

from maskwright.serve.chat import Choice, choices_of, instruction, usage_of
from maskwright.serve.constraints import format_constraint
from maskwright.serve.errors import refused
from maskwright.serve.outputs import Outputs, Progress
from maskwright.serve.protocol import CompletionRequest
from maskwright.serve.service import Plan, Service
from maskwright.serve.tool_calls import Said


def plan_completion(request: CompletionRequest, service: Service) -> Plan:
    """What a completion asks for.  Raises ``RequestError``."""
    constraint = format_constraint(request.response_format, "response_format")
    prompts = _prompts(request, len(service.vocabulary))

    def read() -> list[list[int]]:
        shown = instruction(constraint, service)
        return [
            service.prompts.text(each, shown, "prompt") if isinstance(each, str) else each for each in prompts
        ]

    return Plan(
        prompts=read,
        prompt_count=len(prompts),
        prompt_param="prompt",
        constraint=constraint,
        sampling=request.sampling(len(service.vocabulary)),
        n=request.n,
        max_tokens=request.max_tokens,
        stops=request.stops,
        top=request.logprobs,
        top_param="logprobs",
        stream=request.stream,
    )


def _prompts(request: CompletionRequest, vocab_size: int) -> list[str | list[int]]:
    given: Any = request.prompt
    if isinstance(given, str) or isinstance(given[0], int):
        given = [given]
    for prompt in given:
        if isinstance(prompt, list) and not (prompt and all(0 <= token < vocab_size for token in prompt)):
            raise refused(
                f"prompt: token ids from 0 to {vocab_size - 1} are needed, and at least one", "prompt"
            )
    return list(given)


class CompletionAnswer:
    """The answer to one request."""

    def __init__(self, request: CompletionRequest, plan: Plan, outputs: Outputs, service: Service) -> None:
        self.request = request
        self.plan = plan
        self.outputs = outputs
        self.choices = choices_of(outputs, plan, service)
        self._head = {
            "id": f"cmpl-{uuid.uuid4().hex}",
            "object": "text_completion",
            "created": int(time.time()),
            "model": request.model,
        }

    async def whole(self) -> dict[str, Any]:
        """A ``text_completion``."""
        await self.outputs.finished()
        made = []
        for index, choice in enumerate(self.choices):
            made.append(self._part(index, choice, self.outputs.last(index)))
        return {**self._head, "choices": made, "usage": usage_of(self.outputs.rows, self.plan.n)}

    async def stream(self) -> AsyncIterator[dict[str, Any]]:
        """Parts of a ``text_completion``."""
        usage = {"usage": None} if self.request.include_usage else {}
        async for index, progress in self.outputs.changes():
            yield {**self._head, "choices": [self._part(index, self.choices[index], progress)], **usage}
        if self.request.include_usage:
            yield {**self._head, "choices": [], "usage": usage_of(self.outputs.rows, self.plan.n)}

    def _part(self, index: int, choice: Choice, progress: Progress) -> dict[str, Any]:
        text = "".join(event.text for event in choice.feed(progress) if isinstance(event, Said))
        logprobs = None
        if choice.tokens is not None:
            logprobs = choice.tokens.completion(choice.tokens.more(len(progress.text), progress.judged))
        part = {"index": index, "text": text, "logprobs": logprobs, "finish_reason": None}
        if progress.done:
            part |= {"finish_reason": choice.finish_reason, "maskwright": choice.report}
        return part
