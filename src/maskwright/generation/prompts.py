"""Prompts: a text, or messages by the tokenizer's chat template, as token ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from maskwright.base.html import cut
from maskwright.errors import MaskwrightError
from maskwright.frontends.json_schema.algebra.strings import is_text

_SHOWN = 100
"""Characters of an argument in a message."""

Prompt = str | Sequence[Mapping[str, Any]]


def is_messages(prompt: object) -> bool:
    """Whether a prompt is a list of messages rather than a text."""
    return isinstance(prompt, Sequence) and not isinstance(prompt, (str, bytes))


class Prompter:
    """Makes the ids that a model continues.

    ``format_prompt(prompt, schema)``, where given, makes the text of a prompt that is a text, instead of the template.
    """

    def __init__(self, tokenizer: Any, format_prompt: Callable[[str, Any], str] | None) -> None:
        if format_prompt is not None and not callable(format_prompt):
            raise MaskwrightError(
                f"format_prompt is a function of a prompt and a schema, not {cut(repr(format_prompt), _SHOWN)}"
            )
        self.tokenizer = tokenizer
        self.format_prompt = format_prompt

    @property
    def _has_template(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def ids(self, prompt: Prompt, instruction: str | None, schema: Callable[[], Any]) -> list[int]:
        """The token ids of a prompt; ``instruction`` (the schema, say) goes into its system message, or
        into the user's first one where the template refuses that.

        Raises ``MaskwrightError`` for messages in a wrong shape and for a prompt without tokens.
        """
        text = self.text(prompt, instruction, schema)
        if not isinstance(text, str):
            raise MaskwrightError(f"format_prompt returned {text!r}, which is no text"[:300])
        if not is_text(text):
            raise MaskwrightError("a prompt has a lone surrogate, which is no text: decode it properly")
        special = not self._has_template or (self.format_prompt is not None and isinstance(prompt, str))
        ids: list[int] = list(self.tokenizer(text, add_special_tokens=special)["input_ids"])
        if not ids:
            raise MaskwrightError("a prompt has no tokens; the model needs at least one to start from")
        return ids

    def contrasts(
        self, prompt: Prompt, instruction: str | None, schema: Callable[[], Any]
    ) -> list[list[int]]:
        """The same prompt with less of the request in it, for guidance: what a template puts around it stays.

        The last message of the user goes without its last paragraph (or line), and without any text; a prompt without
        a template keeps its last line, and nothing.  What makes no prompt is left out, so the list may be empty.
        """
        ids = self.ids(prompt, instruction, schema)
        found: list[list[int]] = []
        for less in _with_less(prompt, self._has_template or self.format_prompt is not None):
            try:
                made = self.ids(less, instruction, schema)
            except MaskwrightError:
                continue
            if made != ids and made not in found:
                found.append(made)
        return found

    def text(self, prompt: Prompt, instruction: str | None, schema: Callable[[], Any]) -> str:
        """The text that is tokenised."""
        if isinstance(prompt, str):
            if self.format_prompt is not None:
                return self.format_prompt(prompt, schema())
            messages: list[dict[str, Any]] = [{"role": "user", "content": prompt}]
        else:
            messages = _checked(prompt)
        if not self._has_template:
            if not isinstance(prompt, str):
                raise MaskwrightError(
                    "the tokenizer has no chat template, so the prompt is a text and not messages"
                )
            return prompt if instruction is None else f"{instruction}\n\n{prompt}"
        if instruction is None:
            return self._templated(messages)
        try:
            return self._templated(instructed(messages, instruction))
        except MaskwrightError:
            # Some templates know no system message.
            if not any(message["role"] == "user" for message in messages):
                raise
            return self._templated(instructed(messages, instruction, "user"))

    def _templated(self, messages: list[dict[str, Any]]) -> str:
        from jinja2 import TemplateError

        begun = messages[-1]["role"] == "assistant"
        try:
            text: str = self.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=not begun, continue_final_message=begun
            )
        except (TemplateError, TypeError, KeyError, ValueError) as error:
            raise MaskwrightError(f"the chat template refuses these messages: {error}") from error
        return text


def _with_less(prompt: Prompt, is_request: bool) -> list[Prompt]:
    """Prompts with less of the request in them.  ``is_request``: a text is what the user asks, not what the model continues."""
    if isinstance(prompt, str):
        return [*_less(prompt)] if is_request else [prompt.rstrip().rpartition("\n")[2], ""]
    asked = [at for at, message in enumerate(prompt) if message["role"] == "user"]
    if not asked or not isinstance(prompt[asked[-1]]["content"], str):
        return []
    at = asked[-1]
    return [
        [*prompt[:at], {**prompt[at], "content": text}, *prompt[at + 1 :]]
        for text in _less(prompt[at]["content"])
    ]


def _less(request: str) -> list[str]:
    """A request without its last paragraph, or line where there is one paragraph, and without anything."""
    request = request.strip()
    first = request.rpartition("\n\n")[0] or request.rpartition("\n")[0]
    return [first, ""] if first else [""]


def _checked(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    if not messages:
        raise MaskwrightError("messages: the list is empty; the model needs something to answer")
    for at, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise MaskwrightError(
                f'messages[{at}]: expected {{"role": ..., "content": ...}}, got {message!r}'[:300]
            )
        calls = message.get("tool_calls")
        if not isinstance(message.get("content"), (str, list)) and not (
            calls and message.get("content") is None
        ):
            shown = message.get("content")
            raise MaskwrightError(f"messages[{at}]: the content is a text, not {shown!r}"[:300])
    return [_joined(message) for message in messages]


def _joined(message: Mapping[str, Any]) -> dict[str, Any]:
    """A copy; parts of its content that are all text are one text, which every template can write."""
    parts = message.get("content")
    if isinstance(parts, list):
        texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
        known = [text for text in texts if isinstance(text, str)]
        if len(known) == len(parts):
            return {**message, "content": "".join(known)}
    return dict(message)


def instructed(
    messages: list[dict[str, Any]], instruction: str, role: Literal["system", "user"] = "system"
) -> list[dict[str, Any]]:
    """The messages with an instruction: at the end of the system message, which is made where there is none, or at the
    beginning of the user's first message."""
    at = next((at for at, message in enumerate(messages) if message["role"] == role), None)
    if at is None or (role == "system" and at > 0):
        return [{"role": role, "content": instruction}, *messages]
    content = messages[at]["content"]
    if isinstance(content, str):
        parts = [content, instruction]
        told: Any = "\n\n".join(parts if role == "system" else parts[::-1])
    else:
        part = [{"type": "text", "text": instruction}]
        told = [*content, *part] if role == "system" else [*part, *content]
    return [*messages[:at], {**messages[at], "content": told}, *messages[at + 1 :]]
