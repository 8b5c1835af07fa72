"""Tools and response formats of the OpenAI API, as structural tags and schemas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from maskwright.errors import GrammarError


@dataclass(frozen=True, slots=True)
class ToolStyle:
    """How a family of models writes a call: around the arguments, and what gives a call away.

    ``{name}`` is the tool's name; in ``begin`` it stands inside JSON where ``quoted``.
    """

    begin: str
    end: str
    trigger: str
    quoted: bool = True


STYLES = {
    "hermes": ToolStyle('<tool_call>\n{"name": {name}, "arguments": ', "}\n</tool_call>", "<tool_call>"),
    "llama": ToolStyle('{"name": {name}, "parameters": ', "}", '{"name": '),
    "function": ToolStyle("<function={name}>", "</function>", "<function=", quoted=False),
}


def tools_tag(
    tools: list[dict[str, Any]],
    tool_choice: str | dict[str, Any] = "auto",
    *,
    style: str | ToolStyle = "hermes",
    parallel_tool_calls: bool = True,
) -> dict[str, Any]:
    """The structural tag of OpenAI ``tools`` and ``tool_choice``.

    tools: ``{"type": "function", "function": {"name", "parameters"}}``; arguments follow ``parameters`` whether
    or not the tool says ``strict``.  tool_choice: ``"auto"`` (free text and calls), ``"none"`` (free text without a
    call), ``"required"`` (begins with a call), a function to be called once, or ``allowed_tools``.  style: ``"hermes"`` (also
    Qwen), ``"llama"`` (JSON of Llama 3), ``"function"`` (``<function=name>``), or a ``ToolStyle``.
    Raises ``GrammarError`` for what has another shape, a name that comes twice or is not known.
    """
    form = STYLES.get(style) if isinstance(style, str) else style
    if form is None:
        raise GrammarError(f"unknown style {style!r}: use one of {', '.join(STYLES)}, or a ToolStyle")
    schemas = _schemas(tools)
    mode, names = _choice(tool_choice, list(schemas))
    if mode == "none" or not schemas:
        if mode == "required":
            raise GrammarError("a call is required, but there are no tools")
        return _tag({"type": "any_text", "excludes": [form.trigger]})
    tags = [
        {
            "type": "tag",
            "begin": form.begin.replace("{name}", json.dumps(name) if form.quoted else name),
            "content": {"type": "json_schema", "json_schema": schemas[name]},
            "end": form.end,
        }
        for name in names
    ]
    return _tag(
        {
            "type": "triggered_tags",
            "triggers": [form.trigger],
            "tags": tags,
            "at_least_one": mode != "auto",
            "stop_after_first": mode == "forced" or not parallel_tool_calls,
        }
    )


def response_schema(response_format: dict[str, Any]) -> dict[str, Any] | bool | None:
    """The schema of an OpenAI ``response_format``; None for plain text.

    ``{"type": "text"}``, ``{"type": "json_object"}``, ``{"type": "json_schema", "json_schema": {"schema": ...}}``.
    Raises ``GrammarError`` for anything else.
    """
    kind = response_format.get("type") if isinstance(response_format, dict) else None
    if kind == "text":
        return None
    if kind == "json_object":
        return {"type": "object"}
    if kind == "json_schema":
        named = response_format.get("json_schema")
        if not isinstance(named, dict) or not isinstance(named.get("schema"), (dict, bool)):
            raise GrammarError("the schema is missing", place="/json_schema/schema")
        schema: dict[str, Any] | bool = named["schema"]
        return schema
    raise GrammarError("a response_format has the type text, json_object or json_schema", place="/type")


def _tag(source: dict[str, Any]) -> dict[str, Any]:
    return {"type": "structural_tag", "format": source}


def _schemas(tools: object) -> dict[str, Any]:
    if not isinstance(tools, list):
        raise GrammarError(f"tools are a list, not {type(tools).__name__}")
    schemas: dict[str, Any] = {}
    for i, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type", "function") != "function":
            raise GrammarError('a tool is {"type": "function", "function": {...}}', place=f"/{i}")
        name = function.get("name")
        if not isinstance(name, str) or not name:
            raise GrammarError("a function has a name", place=f"/{i}/function/name")
        if name in schemas:
            raise GrammarError(f"two tools are named {name!r}", place=f"/{i}/function/name")
        parameters = function.get("parameters")
        schemas[name] = {"type": "object"} if parameters is None else parameters
    return schemas


def _choice(tool_choice: object, names: list[str]) -> tuple[str, list[str]]:
    """The mode (auto, none, required, forced) and the tools that may be called."""
    if tool_choice in ("auto", "none", "required"):
        return str(tool_choice), names
    mode: Any = "forced"
    chosen: list[str] = []
    if isinstance(tool_choice, dict) and tool_choice.get("type") == "function":
        chosen = [_name(tool_choice)]
    elif isinstance(tool_choice, dict) and tool_choice.get("type") == "allowed_tools":
        allowed = tool_choice.get("allowed_tools", tool_choice)
        mode = allowed.get("mode", "auto") if isinstance(allowed, dict) else None
        listed = allowed.get("tools") if isinstance(allowed, dict) else None
        if mode not in ("auto", "required") or not isinstance(listed, list) or not listed:
            raise GrammarError(
                "allowed_tools has a mode (auto or required) and a list of tools", place="/tool_choice"
            )
        chosen = [_name(tool) for tool in listed]
    else:
        raise GrammarError(
            "tool_choice is auto, none, required, a function or allowed_tools", place="/tool_choice"
        )
    for name in chosen:
        if name not in names:
            raise GrammarError(f"there is no tool {name!r}", place="/tool_choice")
    return mode, list(dict.fromkeys(chosen))


def _name(tool: object) -> str:
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        raise GrammarError("a function to be called has a name", place="/tool_choice")
    return name
