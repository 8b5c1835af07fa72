"""From messages to token ids, by the model's chat template; and how tools are shown to a model whose template has none."""

from __future__ import annotations

import json
from typing import Any

from maskwright.frontends.tools.templates import ToolTemplate
from maskwright.serve.errors import refused

_PIECE = 1 << 16
"""Characters of a long text that are tokenised to see how many tokens it has."""
_MOST_PRINTED = 1 << 24
"""Bytes of what a chat template is given, as JSON with four blanks a level, in which many templates print tools."""


class Prompts:
    """``tools``: how the model writes calls.  ``most``: tokens of a prompt."""

    def __init__(self, tokenizer: Any, tools: ToolTemplate, most: int) -> None:
        self.tokenizer = tokenizer
        self.most = most
        self.form = tools
        template = getattr(tokenizer, "chat_template", None)
        shown = json.dumps(template) if template else ""
        self.has_template = bool(template)
        self.knows_tools = "tools" in shown

    def chat(
        self, messages: list[dict[str, Any]], tools: list[dict[str, Any]], instruction: str | None, param: str
    ) -> list[int]:
        """The ids of a chat.  ``instruction``: for the system message.  ``param``: what errors are about.

        Raises ``RequestError`` for messages that the template refuses, and where there is no template.
        """
        from jinja2 import TemplateError

        if not self.has_template:
            raise refused("the model has no chat template: use /v1/completions", param)
        options: dict[str, Any] = {}
        if self.knows_tools:
            options["tools"] = tools or None
        else:
            messages = [_plain(message, self.form) for message in messages]
            if tools:
                messages = _instructed(messages, _tools_shown(tools, self.form))
        if instruction is not None:
            messages = _instructed(messages, instruction)
        if _printed([messages, tools]) > _MOST_PRINTED:
            message = f"{param}: messages and tools are more than {_MOST_PRINTED} bytes when they are printed by level"
            raise refused(message, param, "context_length_exceeded")
        try:
            text: str = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **options
            )
        except (TemplateError, TypeError, KeyError, ValueError, RecursionError) as error:
            raise refused(f"{param}: the chat template refuses these messages: {error}", param) from error
        return self._ids(text, special=False, param=param)

    def text(self, text: str, instruction: str | None, param: str) -> list[int]:
        """The ids of a text that is continued."""
        if instruction is not None:
            text = f"{instruction}\n\n{text}"
        return self._ids(text, special=True, param=param)

    def _ids(self, text: str, *, special: bool, param: str) -> list[int]:
        self._check_length(text, param)
        ids: list[int] = list(self.tokenizer(text, add_special_tokens=special)["input_ids"])
        if not ids:
            raise refused(f"{param}: the prompt has no tokens; the model needs one to start from", param)
        return ids

    def _check_length(self, text: str, param: str) -> None:
        """Refuse a text of far more tokens than are read before all of it is tokenised, which takes a kilobyte a token."""
        count = 0
        for at in range(0, len(text), _PIECE) if len(text) > _PIECE else ():
            count += len(self.tokenizer(text[at : at + _PIECE], add_special_tokens=False)["input_ids"])
            # Pieces may have more tokens than the whole.
            if count > 2 * self.most:
                message = f"{param}: the prompt has more than {self.most} tokens, which are read at most"
                raise refused(message, param, "context_length_exceeded")


def _printed(value: Any) -> int:
    """About how many bytes JSON has, each value in a line of its own."""
    size = 0
    work: list[tuple[Any, int]] = [(value, 0)]
    while work:
        part, depth = work.pop()
        size += 4 * depth
        if isinstance(part, str):
            size += len(part)
        elif isinstance(part, (list, tuple)):
            work += [(each, depth + 1) for each in part]
        elif isinstance(part, dict):
            size += sum(map(len, part))
            work += [(each, depth + 1) for each in part.values()]
    return size


def _instructed(messages: list[dict[str, Any]], instruction: str) -> list[dict[str, Any]]:
    first = messages[0]
    if first["role"] == "system":
        return [{**first, "content": f"{first['content']}\n\n{instruction}"}, *messages[1:]]
    return [{"role": "system", "content": instruction}, *messages]


def _tools_shown(tools: list[dict[str, Any]], template: ToolTemplate) -> str:
    listed = "\n".join(json.dumps(tool["function"], ensure_ascii=False) for tool in tools)
    form = _written([("NAME", "{ARGUMENTS}")], template)
    return f"These functions can be called, each with arguments of its JSON Schema:\n{listed}\nA call is written as:\n{form}"


def _plain(message: dict[str, Any], template: ToolTemplate) -> dict[str, Any]:
    """A message for a template that knows no calls: they are text, and what they gave is said by the user."""
    if message["role"] == "tool":
        return {"role": "user", "content": f"The function gave:\n{message['content']}"}
    calls = message.get("tool_calls")
    if not calls:
        return message
    functions = [call["function"] for call in calls]
    written = _written(
        [(f["name"], json.dumps(f["arguments"], ensure_ascii=False)) for f in functions], template
    )
    return {"role": "assistant", "content": "\n".join(filter(None, [message["content"], written]))}


def _written(calls: list[tuple[str, str]], template: ToolTemplate) -> str:
    """Calls, each a name and its arguments, as the model would write them if they were JSON."""
    form = template.forms[0]
    each = [
        form.begin.replace("{json_name}", json.dumps(name, ensure_ascii=False))
        .replace("{name}", name)
        .replace("{index}", str(index))
        + arguments
        + form.end
        for index, (name, arguments) in enumerate(calls)
    ]
    begin, end = template.calls.begin[0], template.calls.end
    return begin + (template.calls.separator or ("" if begin else "\n")).join(each) + end
