"""Messages of chats and items of responses, as chat templates take them: ``role``, ``content`` (a text), calls."""

from __future__ import annotations

import json
from collections.abc import Set
from typing import Any

from maskwright.serve.errors import refused
from maskwright.serve.transport import exact_json

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
_MEMBERS = {"role", "content", "name", "tool_calls"}
_MORE = {
    # What answers have, and clients send back: thinking is not shown to the model again, nor is what was parsed.
    "assistant": {"refusal", "annotations", "parsed", "reasoning_content"},
    "tool": {"tool_call_id"},
}
"""Members that messages may have: all of them, and those of a role."""
_ITEM = {"type", "id", "status", "phase"}
"""And those that are items of a response."""
_TEXTS = ("text", "input_text", "output_text", "refusal")


def chat_messages(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages of a chat.  Raises ``RequestError`` for roles and contents that no model here takes."""
    return [_message(message, f"messages[{at}]") for at, message in enumerate(given)]


def response_messages(given: str | list[Any], instructions: str | None) -> list[dict[str, Any]]:
    """The messages of a response's input: a text, or messages, calls and what they gave."""
    messages: list[dict[str, Any]] = []
    if instructions is not None:
        messages.append({"role": "system", "content": _text(instructions, "instructions")})
    if isinstance(given, str):
        return [*messages, {"role": "user", "content": _text(given, "input")}]
    for at, item in enumerate(given):
        place = f"input[{at}]"
        if not isinstance(item, dict):
            raise refused(f"{place}: an item is an object", place)
        last = messages[-1] if messages else {}
        kind = "message" if item.get("type") is None else item["type"]
        if kind == "message":
            message = _message(item, place, _ITEM)
            if last.get("tool_calls") and message["role"] == "assistant":
                # Said behind calls, in the same turn.
                last["content"] += message["content"]
            else:
                messages.append(message)
        elif kind == "function_call":
            call = _call(item, item.get("call_id"), place)
            if last.get("role") == "assistant":
                # One turn, as a chat has it.
                last.setdefault("tool_calls", []).append(call)
            else:
                messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        elif kind == "function_call_output":
            content = _content(item.get("output"), f"{place}.output")
            messages.append({"role": "tool", "content": content, "tool_call_id": item.get("call_id")})
        else:
            raise refused(
                f"{place}: items are messages, function_call and function_call_output, not {kind!r}"[:300],
                place,
            )
    return messages


def _message(message: dict[str, Any], place: str, more: Set[str] = frozenset()) -> dict[str, Any]:
    """``more``: members that it may have as well."""
    role = message.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise refused(f"{place}.role: one of {', '.join(_ROLES)}, not {role!r}"[:300], f"{place}.role")
    known = _MEMBERS | _MORE.get(role, set()) | more
    for name, value in message.items():
        if value is not None and name not in known:
            raise refused(
                f"{place}.{name}: messages of the role {role} have no such member here"[:300], place
            )
    made: dict[str, Any] = {"role": _ROLES[role]}
    calls = message.get("tool_calls")
    content = message.get("content")
    if content is None and role == "assistant" and (calls or message.get("refusal")):
        content = message.get("refusal") or ""
    made["content"] = _content(content, f"{place}.content")
    if message.get("name") is not None:
        made["name"] = _text(message["name"], f"{place}.name")
    if role == "tool":
        made["tool_call_id"] = message.get("tool_call_id")
    if calls:
        if role != "assistant" or not isinstance(calls, list):
            raise refused(f"{place}.tool_calls: a list, in messages of the assistant", f"{place}.tool_calls")
        made["tool_calls"] = [_chat_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(calls)]
    return made


def _content(content: object, place: str) -> str:
    if isinstance(content, str):
        return _text(content, place)
    if not isinstance(content, list):
        raise refused(f"{place}: a text, or a list of parts", place)
    texts = []
    for at, part in enumerate(content):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind not in _TEXTS:
            raise refused(f"{place}[{at}]: the model reads text, not {kind!r}"[:300], f"{place}[{at}]")
        texts.append(_text(part.get("refusal" if kind == "refusal" else "text"), f"{place}[{at}]"))
    return "".join(texts)


def _text(text: object, place: str) -> str:
    if not isinstance(text, str):
        raise refused(f"{place}: a text is needed", place)
    return text


def _chat_call(call: object, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(call, dict) or not isinstance(function, dict):
        raise refused(f'{place}: a call is {{"id", "type": "function", "function": {{...}}}}', place)
    return _call(function, call.get("id"), f"{place}.function")


def _call(function: dict[str, Any], call_id: object, place: str) -> dict[str, Any]:
    """A call as templates take it: with arguments that are read."""
    name, text = function.get("name"), function.get("arguments")
    if not isinstance(name, str):
        raise refused(f"{place}: a call has a name", place)
    try:
        arguments = exact_json(_text(text, f"{place}.arguments") or "{}")
        json.dumps(arguments, ensure_ascii=False).encode()  # no lone surrogates
    except (ValueError, RecursionError):
        raise refused(f"{place}.arguments: no JSON", f"{place}.arguments") from None
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": _text(name, place), "arguments": arguments},
    }
