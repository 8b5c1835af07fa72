"""Tools and response formats of the OpenAI API, as structural tags and schemas."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from maskwright.errors import GrammarError
from maskwright.frontends.tools.arguments import is_python_name
from maskwright.frontends.tools.templates import Content, Thinks, ToolTemplate, check_thinking

_INDEX = "[0-9]{1,4}"
_PIECES = re.compile(r"(\{(?:name|json_name|index)\})")
_ANY_ARGUMENTS = {"type": "object"}
NO_ARGUMENTS: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
"""Of a function without ``parameters``, as OpenAI's reference has it."""

Format = dict[str, Any]


def tools_tag(
    tools: list[dict[str, Any]],
    tool_choice: str | dict[str, Any] = "auto",
    *,
    template: str | os.PathLike[str] | Mapping[str, Any] | ToolTemplate = "hermes",
    thinking: Thinks | None = None,
    parallel_tool_calls: bool = True,
    special_tokens: Collection[str] = (),
    end_tokens: Collection[str] = (),
) -> Format:
    """The structural tag of OpenAI ``tools`` and ``tool_choice``; see ``StructuralTag.from_tools``.

    special_tokens: names of tokens of the vocabulary that no text spells; where the template has them, they are tokens.
    end_tokens: those among them that end every output, so that no rule asks for them.
    """
    form = ToolTemplate.load(template)
    schemas = _schemas(tools)
    mode, names = chosen_tools(tool_choice, list(schemas))
    if mode in ("required", "forced") and not schemas:
        raise GrammarError("a call is required, but there are no tools")
    check_thinking(thinking)
    tokens = {token for token in form.tokens if token in special_tokens}
    builder = _Builder(form, tokens, tokens.intersection(end_tokens), list(schemas))
    once = mode == "forced" or not parallel_tool_calls or form.calls.single
    chosen = {name: schemas[name] for name in names} if mode != "none" else {}
    parts = [*builder.thinking(thinking), builder.answer(mode, chosen, once)]
    return _tag(_sequence(parts))


class _Builder:
    """Formats of one template.  ``tokens``: its marks that are tokens; ``ends``: those that end an output."""

    def __init__(
        self, template: ToolTemplate, tokens: Collection[str], ends: Collection[str], names: list[str]
    ) -> None:
        self.template = template
        self.tokens = frozenset(tokens)
        self.ends = frozenset(ends)
        self.names = names
        self.spelled = [mark for mark in template.tokens if mark not in self.tokens]
        """The marks that are text: no string may contain them, as a reader would find them there."""
        self.unreadable = [*self.spelled, *_channels(template)]
        """What no JSON may contain: these, and what begins a channel, which is looked for in all of an answer."""
        marks = "|".join(map(re.escape, sorted(tokens, key=len, reverse=True)))
        self._split = re.compile(f"({marks})") if tokens else None

    # --- marks

    def pieces(self, pattern: str, name: str = "") -> list[Format]:
        """A pattern of the template as formats: texts, tokens, numbers."""
        found: list[Format] = []
        for part in self._split.split(pattern) if self._split is not None else [pattern]:
            if part in self.tokens:
                found.append({"type": "token", "token": part})
                continue
            text = ""
            for piece in _PIECES.split(part):
                if piece == "{index}":
                    found += [_const(text)] if text else []
                    found.append({"type": "regex", "pattern": _INDEX})
                    text = ""
                else:
                    text += {"{name}": name, "{json_name}": json.dumps(name, ensure_ascii=False)}.get(
                        piece, piece
                    )
            found += [_const(text)] if text else []
        return found

    def mark(self, pattern: str) -> list[Format]:
        return [] if pattern in self.ends else self.pieces(pattern)

    def free(self, *allowed: str) -> Format:
        """Text without the marks of the template, but for those in which one of ``allowed`` has a part."""
        marks = [t for t in self.template.tokens if not any(t in text or text in t for text in allowed)]
        return {"type": "any_text", "excludes": marks} if marks else {"type": "any_text"}

    def block(self, begin: str, end: str) -> Format:
        """Text between marks."""
        return _sequence([*self.mark(begin), self.up_to(end)])

    def up_to(self, end: str) -> Format:
        """Text, and the mark that ends it."""
        if end in self.ends:
            return self.free()
        first, *rest = self.mark(end)
        closing = first if first["type"] == "token" else first["value"]
        # Where the end is a token, nothing that reads like it may come before.
        content = self.free() if first["type"] == "token" else self.free(end)
        tag = {"type": "tag", "begin": "", "content": content, "end": closing}
        return _sequence([tag, *rest])

    # --- parts of an answer

    def thinking(self, wanted: Thinks | None) -> list[Format]:
        thinking = self.template.thinking
        if thinking is None:
            if wanted not in (None, "off", "auto"):
                raise GrammarError(f"models of the template {self.template.name!r} write no thinking")
            return []
        kind = thinking.default if wanted is None else wanted
        if kind == "off":
            return []
        behind = self.mark(self.template.between)
        if thinking.after:
            behind.append({"type": "optional", "content": _const(thinking.after)})
        blocks = [self.block(begin, thinking.end) for begin in thinking.begin]
        block = _sequence([_either(blocks), *behind])
        more = [{"type": "star", "content": block}] if thinking.repeat else []
        if kind == "prompt":
            return [self.up_to(thinking.end), *behind, *more]
        if kind == "required":
            return [block, *more]
        return more or [{"type": "optional", "content": block}]

    def answer(self, mode: str, schemas: Mapping[str, Any], once: bool) -> Format:
        """What stands behind the thinking."""
        content = self.template.content
        if content is not None:
            text = _either([self.block(begin, content.end) for begin in content.begin])
            ways = [text] if mode in ("auto", "none") or not schemas else []
            if schemas:
                ways.append(self.section(schemas, once))
            return _sequence([*self.preamble(content), _either(ways)])
        if not schemas:
            return self.without_calls()
        if mode == "auto":
            return self.calls_in_text(schemas, once)
        if not self.template.calls.alone:
            return self.section(schemas, once)
        if once:
            return self.one_call(schemas)
        return self.calls_in_text(schemas, once, at_least_one=True)

    def preamble(self, content: Content) -> list[Format]:
        """Text for the user in front of a call, or of more text."""
        if content.preamble is None:
            return []
        blocks = [self.block(begin, content.preamble.end) for begin in content.preamble.begin]
        behind = self.mark(self.template.between)
        return [{"type": "optional", "content": _sequence([_either(blocks), *behind])}]

    def without_calls(self) -> Format:
        trigger = self.template.trigger
        # Readers take blanks as they come, or leave them out.
        triggers = (trigger.rstrip() or trigger for trigger in self.triggers(self.names))
        marks = dict.fromkeys((*self.template.tokens, *triggers))
        text: Format = {"type": "any_text"}
        if marks:
            text["excludes"] = list(marks)
        if self.template.calls.start and self.names:
            # Readers take whatever begins so for a call, whether or not there is such a tool.
            head = _PIECES.split(trigger)[0].rstrip()
            if head:
                text["begins_without"] = head
        return text

    def calls_in_text(self, schemas: Mapping[str, Any], once: bool, at_least_one: bool = False) -> Format:
        """Free text with calls in it, or behind it; or calls alone (``Calls.start``)."""
        template = self.template
        alone = template.calls.alone
        trigger = template.trigger
        if template.calls.start:
            return _either([self.section(schemas, once), self.without_calls()])
        whole = self.one_call(schemas) if alone else self.section(schemas, once)
        if self.pieces(trigger)[0]["type"] == "token":
            # A token is no text, so free text ends in front of it.
            text = self.free()
            again = {"type": "star", "content": _sequence([whole, text])}
            last = {"type": "optional", "content": whole}
            if at_least_one:
                return _sequence([whole, text, again])
            return _sequence([text, last if once or not alone else again])
        found: Format = {
            "type": "triggered_tags",
            "triggers": self.triggers(schemas),
            "tags": [tag for _, tag in self.tags(schemas)] if alone else self.section_tags(schemas, once),
            "at_least_one": at_least_one,
            "stop_after_first": once or not alone,
        }
        excluded = self.free(trigger).get("excludes")
        return {**found, "excludes": excluded} if excluded else found

    def triggers(self, names: Iterable[str]) -> list[str]:
        """What gives calls of some tools away."""
        found: dict[str, None] = {}
        for name in names:
            found[
                "".join(str(p.get("value", p.get("token"))) for p in self.pieces(self.template.trigger, name))
            ] = None
        return list(found) if self.template.content is None else []

    # --- calls

    def tags(self, schemas: Mapping[str, Any]) -> list[tuple[str, Format]]:
        """Each way to call each tool: the token that it begins with ("" for none), and a tag that begins with text."""
        found = []
        style = self.template.style
        for form in self.template.forms:
            for name, schema in schemas.items():
                self.check_name(name)
                before = self.pieces(form.begin, name)
                token = str(before.pop(0)["token"]) if before[0]["type"] == "token" else ""
                begin = before.pop(0)["value"] if before and before[0]["type"] == "const_string" else ""
                arguments: Format = {"type": "json_schema", "json_schema": schema, "name": name}
                if style != "json":
                    arguments["style"] = self.style(style)
                elif self.unreadable:
                    arguments["excludes"] = self.unreadable
                content = [*before, arguments, *self.mark(form.end)]
                end = content.pop()["value"] if content[-1]["type"] == "const_string" else ""
                tag = {"type": "tag", "begin": begin, "content": _sequence(content), "end": end}
                found.append((token, tag))
        return found

    def style(self, style: Any) -> Any:
        """The style of arguments; where marks in it are tokens, written out with these."""
        own = self.template.arguments
        if own is None or not any(token in own.open + own.close for token in self.tokens):
            return style
        written = {name: getattr(own, name) for name in ("open", "close", "between")}
        if own.open_text is not None:
            written["open_text"] = own.open_text
        return {**written, "excludes": list(own.excludes), "tokens": sorted(self.tokens)}

    def check_name(self, name: str) -> None:
        style = self.template.arguments
        if style is None:
            return
        if style.python and not is_python_name(name):
            raise GrammarError(
                f"the tool {name!r} is no name in Python, as calls of {self.template.name!r} are"
            )
        if not style.python and set(name) & set('<>"\n\r'):
            raise GrammarError(f"the name of the tool {name!r} cannot be told from the marks around it")

    def one_call(self, schemas: Mapping[str, Any]) -> Format:
        return self.listed(schemas, "", True)

    def listed(self, schemas: Mapping[str, Any], separator: str, once: bool) -> Format:
        """Calls with a separator between them."""
        by_token: dict[str, list[Format]] = {}
        for token, tag in self.tags(schemas):
            by_token.setdefault(token, []).append(tag)
        tags: list[Format] = by_token.pop("", [])
        for token, own in by_token.items():
            begin = {"type": "token", "token": token}
            tags.append({"type": "tag", "begin": begin, "content": _separated(own, "", True), "end": ""})
        return _separated(tags, separator, once)

    def section(self, schemas: Mapping[str, Any], once: bool) -> Format:
        """All calls, with the marks around them."""
        calls = self.template.calls
        if calls.begin == ("",):
            return self.listed(schemas, calls.separator, once)
        begins = _either([_sequence(self.mark(begin)) for begin in calls.begin])
        return _sequence([begins, self.listed(schemas, calls.separator, once), *self.mark(calls.end)])

    def section_tags(self, schemas: Mapping[str, Any], once: bool) -> list[Format]:
        """The same as tags, each of which begins with text."""
        calls = self.template.calls
        inner = _sequence([self.listed(schemas, calls.separator, once), *self.mark(calls.end)])
        return [{"type": "tag", "begin": begin, "content": inner, "end": ""} for begin in calls.begin]


def _channels(template: ToolTemplate) -> Iterator[str]:
    content = template.content
    if content is not None:
        yield from content.begin
        if content.preamble is not None:
            yield from content.preamble.begin


def _const(text: str) -> Format:
    return {"type": "const_string", "value": text}


def _sequence(parts: list[Format]) -> Format:
    return parts[0] if len(parts) == 1 else {"type": "sequence", "elements": parts}


def _either(ways: list[Format]) -> Format:
    return ways[0] if len(ways) == 1 else {"type": "or", "elements": ways}


def _separated(tags: list[Format], separator: str, once: bool) -> Format:
    return {
        "type": "tags_with_separator",
        "tags": tags,
        "separator": separator,
        "at_least_one": True,
        "stop_after_first": once,
    }


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
        schemas[name] = _parameters(function, f"/{i}/function")
    return schemas


def _parameters(function: dict[str, Any], place: str) -> dict[str, Any]:
    """The schema of a tool's arguments, which are an object; any object, where it is not ``strict``."""
    name, parameters, strict = function["name"], function.get("parameters"), function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise GrammarError(f"tool {name!r}: strict is true or false", place=f"{place}/strict")
    if parameters is not None and not isinstance(parameters, dict):
        raise GrammarError(
            f"tool {name!r}: parameters are a JSON Schema of an object", place=f"{place}/parameters"
        )
    if strict is False:
        return _ANY_ARGUMENTS
    if parameters is None:
        return NO_ARGUMENTS
    kind = parameters.get("type", "object")
    if kind == "object":
        return parameters if "type" in parameters else {"type": "object", **parameters}
    if isinstance(kind, list) and "object" in kind:
        return {**parameters, "type": "object"}
    raise GrammarError(
        f"tool {name!r}: arguments are an object, so the type of its parameters is not {kind!r}",
        place=f"{place}/parameters/type",
    )


def chosen_tools(tool_choice: object, names: list[str]) -> tuple[str, list[str]]:
    """The mode (auto, none, required, forced) and those of the tools ``names`` that may be called.  Raises ``GrammarError``."""
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
            f"tool_choice is auto, none, required, a function or allowed_tools, not {tool_choice!r}"[:300],
            place="/tool_choice",
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
