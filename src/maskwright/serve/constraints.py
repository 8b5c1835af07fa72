"""``response_format`` and ``tools``: what is compiled, and what is said when that fails."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from maskwright.errors import GrammarError, MaskwrightError
from maskwright.frontends.tools.requests import NO_ARGUMENTS, chosen_tools
from maskwright.frontends.tools.templates import Thinks, ToolTemplate
from maskwright.generation.outputs import Output
from maskwright.serve.errors import RequestError, of_source, refused
from maskwright.serve.tool_calls import Reader, is_told_from_json, reader_for, thinks
from maskwright.sources import GBNF, JsonSchema, Lark, Regex, StructuralTag
from maskwright.vocabulary.vocabulary import Vocabulary

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_FORMATS = {
    "text": {"type"},
    "json_object": {"type"},
    "json_schema": {"type", "json_schema"},
    "grammar": {"type", "syntax", "grammar"},
    "regex": {"type", "pattern"},
    "structural_tag": {"type", "format"},
}
_NAMED = ("name", "description", "schema", "strict")
"""Members of a named JSON Schema."""
_OF_FUNCTIONS = ("name", "description", "parameters", "strict")
_SYNTAXES = {"lark": Lark, "gbnf": GBNF}


@dataclass(frozen=True)
class Constraint:
    """What an output has to be.

    ``output``: its source; None for free text.  ``tools``: those that may be called, by name, with the schemas of their arguments.
    ``shown``: those that the model is told about, as chat templates take them.  ``reader``: tells calls from text; None: all is text.
    ``param``: the parameter that errors are about.
    """

    output: Output | None
    param: str
    tools: dict[str, Any] = field(default_factory=dict)
    shown: list[dict[str, Any]] = field(default_factory=list)
    reader: Callable[[], Reader] | None = None
    is_format: bool = False
    """Whether it is what ``response_format`` says, and nothing else."""

    @property
    def source(self) -> Any:
        """What ``maskwright.compile`` takes; None for free text."""
        return None if self.output is None else self.output.source

    def parts(self) -> list[tuple[str, Any]]:
        """Each tool and the source of its arguments, to find out which of them fails."""
        return [(name, JsonSchema(schema)) for name, schema in self.tools.items()]


@dataclass(frozen=True)
class Writing:
    """How the model writes calls, and with which tokens."""

    template: ToolTemplate
    thinking: Thinks | None
    vocabulary: Vocabulary


def format_constraint(
    response_format: dict[str, Any] | None, param: str, *, named: str | None = None
) -> Constraint:
    """What a ``response_format`` asks for; ``named``: where a named schema is, if not in ``json_schema``.  Raises ``RequestError``."""
    output = None
    if response_format is not None:
        output = _output(response_format, param, named or f"{param}.json_schema")
    return Constraint(output, param, is_format=True)


def tool_constraint(
    tools: list[dict[str, Any]],
    tool_choice: str | dict[str, Any] | None,
    answer: Constraint,
    *,
    writing: Writing,
    parallel: bool,
    most: int,
    inside: str = ".function",
) -> Constraint:
    """What an output with tools may be: calls, and beside them text or, with a ``response_format``, instead of them ``answer``;
    thinking comes before either.

    ``inside``: where in a tool its name is, for errors.  Raises ``RequestError`` for tools and choices in another shape.
    """
    if len(tools) > most:
        raise refused(
            f"tools: {len(tools)} are more than max_tools, which is {most}", "tools", "limit_max_tools"
        )
    schemas = _schemas(tools, inside)
    choice = "auto" if tool_choice is None else tool_choice
    try:
        mode, called = chosen_tools(choice, list(schemas))
    except GrammarError as error:
        raise of_source(error, "tool_choice") from None
    if mode == "none" and answer.output is not None:
        return answer
    forced = mode in ("required", "forced")
    either = answer.output is not None and not forced
    if either:
        _check_either(answer, writing.template)
    shown = [tool for tool in tools if tool["function"]["name"] in called]
    try:
        if forced or either:
            other = answer.source if either else None
            source = _calls_only(tools, shown, writing, other, once=mode == "forced" or not parallel)
        else:
            source = StructuralTag.from_tools(
                tools,
                choice,
                template=writing.template,
                thinking=writing.thinking,
                parallel_tool_calls=parallel,
                vocabulary=writing.vocabulary,
            )
    except GrammarError as error:
        raise of_source(error, "tools") from None
    if mode == "none":
        return Constraint(Output(source), "tools")
    return Constraint(
        Output(source),
        "tools",
        {name: schemas[name] for name in called},
        shown,
        lambda: reader_for(writing.template, shown, writing.thinking, or_json=either),
    )


def of_compile(error: MaskwrightError, constraint: Constraint, tool: str | None = None) -> RequestError:
    """The 400 for a source that cannot be compiled."""
    return of_source(error, constraint.param, None if tool is None else f"tool {tool!r}")


def chat_tools(tools: list[Any], *, flat: bool = False) -> list[dict[str, Any]]:
    """The tools of a chat request, each ``{"type": "function", "function": {...}}``.  Raises ``RequestError``.

    ``flat``: what is in ``function`` is beside ``type``, where members are checked with it.
    """
    place = "tools"
    for at, tool in enumerate(tools):
        if not isinstance(tool, dict) or tool.get("type") != "function":
            kind = tool.get("type") if isinstance(tool, dict) else tool
            raise refused(f"{place}[{at}]: tools are functions, not {kind!r}"[:300], f"{place}[{at}]")
        for name, value in tool.items():
            if flat or name in ("type", "function") or value is None:
                continue
            hint = "; put it into function" if name in _OF_FUNCTIONS else ""
            raise refused(f"{place}[{at}].{name}: this member is not known"[:200] + hint, f"{place}[{at}]")
    return tools


def response_tools(tools: list[Any]) -> list[dict[str, Any]]:
    """The tools of a response, where name and parameters are not in an object of their own."""
    return [
        {"type": "function", "function": {name: value for name, value in tool.items() if name != "type"}}
        for tool in chat_tools(tools, flat=True)
    ]


def response_choice(choice: str | dict[str, Any] | None) -> str | dict[str, Any] | None:
    """``tool_choice`` of a response, as chats have it."""
    if isinstance(choice, dict) and choice.get("type") == "function" and "function" not in choice:
        return {"type": "function", "function": {"name": choice.get("name")}}
    return choice


def _output(given: dict[str, Any], param: str, within: str) -> Output | None:
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in _FORMATS:
        raise refused(f"{param}.type: one of {', '.join(_FORMATS)}, not {kind!r}"[:300], f"{param}.type")
    for name in given:
        if name not in _FORMATS[kind]:
            hint = (
                '; put it into json_schema: {"name", "schema"}'
                if kind == "json_schema" and name in _NAMED
                else ""
            )
            raise refused(f"{param}.{name}: the format {kind} has no such member"[:200] + hint, param)
    if kind == "text":
        return None
    if kind == "json_object":
        return Output({"type": "object"})
    if kind == "json_schema":
        named = given.get("json_schema")
        schema = named.get("schema") if isinstance(named, dict) else None
        if not isinstance(named, dict) or not isinstance(schema, (dict, bool)):
            raise refused(f"{within}.schema: a JSON Schema is needed", f"{within}.schema")
        for name in named:
            if name not in _NAMED:
                raise refused(f"{within}.{name}: this member is not known"[:300], within)
        return Output(schema)
    if kind == "structural_tag":
        return Output(StructuralTag(given))
    if kind == "regex":
        return Output(Regex(_text(given, "pattern", param)))
    syntax = given.get("syntax")
    if not isinstance(syntax, str) or syntax not in _SYNTAXES:
        raise refused(f"{param}.syntax: lark or gbnf, not {syntax!r}"[:300], f"{param}.syntax")
    return Output(_SYNTAXES[syntax](_text(given, "grammar", param)))


def _text(given: dict[str, Any], name: str, param: str) -> str:
    value = given.get(name)
    if not isinstance(value, str):
        raise refused(f"{param}.{name}: a text is needed", f"{param}.{name}")
    return value


def _schemas(tools: list[dict[str, Any]], inside: str) -> dict[str, Any]:
    """The schemas of arguments, by the names of tools."""
    schemas: dict[str, Any] = {}
    for at, tool in enumerate(tools):
        place = f"tools[{at}]{inside}"
        function = tool.get("function")
        if not isinstance(function, dict):
            raise refused(f"{place}: an object with name and parameters is needed", place)
        name = function.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise refused(
                f"{place}.name: letters, digits, _, - and ., up to 128 of them, not {name!r}"[:300], place
            )
        if name in schemas:
            raise refused(f"{place}.name: two tools are named {name!r}", place)
        for member in function:
            if member not in _OF_FUNCTIONS:
                raise refused(f"{place}.{member}: this member is not known (tool {name!r})"[:300], place)
        parameters = function.get("parameters")
        if parameters is not None and not isinstance(parameters, (dict, bool)):
            raise refused(
                f"{place}.parameters: a JSON Schema is needed (tool {name!r})", f"{place}.parameters"
            )
        is_any = function.get("strict") is False
        schemas[name] = {"type": "object"} if is_any else NO_ARGUMENTS if parameters is None else parameters
    return schemas


def _calls_only(
    tools: list[dict[str, Any]],
    shown: list[dict[str, Any]],
    writing: Writing,
    other: JsonSchema | None,
    *,
    once: bool,
) -> Any:
    """Thinking, and behind it calls of the tools ``shown`` without text, or else ``other``.  Raises ``GrammarError``."""
    template = writing.template
    # Such calls have text between them, unless there is one: several are a line each.
    lines = template.calls.alone and template.content is None
    tag: Any = StructuralTag.from_tools(
        tools,
        {"type": "allowed_tools", "mode": "required", "tools": shown},
        template=template,
        thinking=writing.thinking,
        parallel_tool_calls=not (once or lines),
        vocabulary=writing.vocabulary,
    ).tag
    thinking, calls = [], tag["format"]
    if thinks(template, writing.thinking) != "off":
        *thinking, calls = calls["elements"]
    if lines and not (once or template.calls.single):
        calls = {**calls, "separator": "\n", "stop_after_first": False}
    if template.content is not None and template.content.preamble is not None:
        calls = calls["elements"][-1]

    def tagged(*formats: Any) -> StructuralTag:
        return StructuralTag({**tag, "format": {"type": "sequence", "elements": list(formats)}})

    if other is None:
        return tagged(*thinking, calls)
    either = tagged(calls) | other
    return tagged(*thinking) + either if thinking else either


def _check_either(answer: Constraint, template: ToolTemplate) -> None:
    """Whether an output may be calls, or else what ``response_format`` asks for."""
    if not isinstance(answer.source, JsonSchema):
        raise refused(
            "response_format: together with tools that need not be called, only JSON can be asked for",
            "response_format",
        )
    if not is_told_from_json(template):
        raise refused(
            f"response_format: calls as {template.name} writes them look like JSON, so that the two cannot be told apart: "
            'set tool_choice to "required" or "none"',
            "response_format",
        )
