"""What a model wrote -> thinking, text and calls, by the template of its family."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from maskwright.base.arguments import listed
from maskwright.errors import GrammarError

if TYPE_CHECKING:
    from maskwright.frontends.tools.arguments import ArgumentStyle
    from maskwright.frontends.tools.templates import Thinks, ToolTemplate

_MAX_DEPTH = 32
"""Of schemas, where the types of an argument are looked for."""
_MAX_STEPS = 10_000
"""For one argument: schemas may refer to themselves in several places."""
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""Keywords with values in them that are no schemas."""
_SAID_ASIDE = frozenset({"title", "description", "$comment", "default", "examples"})
_LISTING = _SAID_ASIDE | {"const", "enum"}
_LOOKED_AT = _SAID_ASIDE | {"required", "properties", "allOf", "$ref"}
"""What ``_Types.fits`` judges, of a member and of an object."""
_TYPES = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_PLACEHOLDER = re.compile(r"\{(name|json_name|index)\}")
_JSON = json.JSONDecoder()
_UNREADABLE = (ValueError, SyntaxError, TypeError, RecursionError, MemoryError)


@dataclass(frozen=True)
class ToolCall:
    """A call of a tool: its name, and its arguments as plain data."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class ToolOutput:
    """What a model wrote: ``thinking`` (None where there was none), ``content`` and ``calls``, in order."""

    thinking: str | None
    content: str
    calls: list[ToolCall] = field(default_factory=list)


def read_output(
    template: ToolTemplate, text: str, tools: Iterable[dict[str, Any]] | None, thinking: Thinks | None
) -> ToolOutput:
    """See ``ToolTemplate.parse``."""
    schemas = None if tools is None else dict(_schemas(tools))
    thought, rest = _thinking(template, text, thinking)
    if template.between:
        rest = _without(rest, template.between)
    channel, content = _channels(template, rest)
    pieces, calls = _Calls(template, schemas).find(rest if channel is None else channel)
    if template.content is None:
        content = "".join(pieces)
    return ToolOutput(thought, content.strip() if calls else content, calls)


def _schemas(tools: Iterable[dict[str, Any]]) -> Iterator[tuple[str, Any]]:
    for i, tool in enumerate(listed(tools, "tools", "a list of tools", GrammarError)):
        function = tool.get("function", tool) if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise GrammarError("a tool is a function with a name", place=f"/{i}")
        yield function["name"], function.get("parameters")


# --- thinking and channels


def _thinking(template: ToolTemplate, text: str, wanted: Thinks | None) -> tuple[str | None, str]:
    """Thinking, and what is left behind it."""
    form = template.thinking
    kind = wanted if wanted is not None or form is None else form.default
    if form is None or kind == "off":
        return None, text
    thoughts: list[str] = []
    opened = kind == "prompt"
    while True:
        rest = text.lstrip()
        begin = next((b for b in form.begin if rest.startswith(b)), None)
        if begin is None and not opened:
            break
        inside, end, text = (text if begin is None else rest[len(begin) :]).partition(form.end)
        thoughts.append(inside)
        opened = False
        text = _without(_without(text, template.between), form.after)
        if not end or not form.repeat:
            break
    return ("\n".join(thoughts) if thoughts else None), text


def _without(text: str, start: str) -> str:
    return text.removeprefix(start) if start else text


def _channels(template: ToolTemplate, text: str) -> tuple[str | None, str]:
    """Where content has a channel: what is outside of it, and what is inside; else None and nothing."""
    form = template.content
    if form is None:
        return None, ""
    blocks = [form, *([form.preamble] if form.preamble is not None else [])]
    found: list[str] = []
    outside = ""
    while text:
        places = [(at, b, block) for block in blocks for b in block.begin if (at := text.find(b)) >= 0]
        if not places:
            break
        at, begin, block = min(places, key=lambda place: (place[0], -len(place[1])))
        inside, _, rest = text[at + len(begin) :].partition(block.end)
        outside += text[:at]
        found.append(inside)
        text = _without(rest, template.between)
    return outside + text, "\n".join(found)


# --- calls


class _Calls:
    """Finds calls of the tools in ``schemas``; of any, where these are not known."""

    def __init__(self, template: ToolTemplate, schemas: Mapping[str, Any] | None) -> None:
        self.template = template
        self.schemas = schemas
        self.forms = [(self.pattern(form.begin), self.pattern(form.end)) for form in template.forms]
        calls = template.calls
        self.calls = calls
        self.begins = [self.pattern(begin) for begin in calls.begin]
        self.separator = re.compile(r"\s*" + _spaced(calls.separator.strip()) + r"\s*")
        self.end = re.compile(r"\s*" + _spaced(calls.end.strip()))

    def pattern(self, text: str) -> re.Pattern[str]:
        """A pattern of the template; blanks may be more or fewer, as models without masks write them."""
        if self.schemas is None:
            name, quoted = r"[\w.\-/]+", r'"(?:[^"\\]|\\.)*"'
        else:
            ordered = sorted(self.schemas, key=len, reverse=True)
            name = "|".join(map(re.escape, ordered)) or r"(?!)"
            quoted = "|".join(re.escape(json.dumps(n, ensure_ascii=False)) for n in ordered) or r"(?!)"
        parts = _PLACEHOLDER.split(text)
        made = [_spaced(part) if i % 2 == 0 else "" for i, part in enumerate(parts)]
        groups = {"name": f"(?P<name>{name})", "json_name": f"(?P<json_name>{quoted})", "index": r"[0-9]+"}
        made = [groups[part] if i % 2 else made[i] for i, part in enumerate(parts)]
        return re.compile("".join(made))

    def find(self, text: str) -> tuple[list[str], list[ToolCall]]:
        """The text around calls, and the calls."""
        pieces: list[str] = []
        calls: list[ToolCall] = []
        done = at = 0
        while True:
            start = self.next_start(text, at)
            if start is None:
                break
            found = self.one(text, start) if self.calls.alone else self.section(text, start)
            if found is None and self.calls.start:
                break
            if found is None:
                at = start + 1
                continue
            own, end = found
            pieces.append(text[done:start])
            calls += own
            done = at = end
        pieces.append(text[done:])
        return pieces, calls

    def next_start(self, text: str, at: int) -> int | None:
        if self.calls.start:
            return None if at else len(text) - len(text.lstrip())
        patterns = [begin for begin, _ in self.forms] if self.calls.alone else self.begins
        starts = [match.start() for pattern in patterns if (match := pattern.search(text, at)) is not None]
        return min(starts, default=None)

    def section(self, text: str, at: int) -> tuple[list[ToolCall], int] | None:
        for begin in self.begins:
            opened = begin.match(text, at)
            if opened is None:
                continue
            calls: list[ToolCall] = []
            where = opened.end()
            while (found := self.one(text, where)) is not None:
                calls += found[0]
                where = found[1]
                gap = self.separator.match(text, where)
                if gap is None:
                    break
                behind = self.one(text, gap.end())
                if behind is None:
                    break
                where = gap.end()
            closed = self.end.match(text, where)
            if calls and closed is not None:
                return calls, closed.end()
        return None

    def one(self, text: str, at: int) -> tuple[list[ToolCall], int] | None:
        for begin, end in self.forms:
            opened = begin.match(text, at)
            if opened is None:
                continue
            groups = opened.groupdict()
            name = groups["name"] if groups.get("name") is not None else json.loads(groups["json_name"])
            read = self.arguments(name, text, opened.end())
            if read is None:
                continue
            closed = end.match(text, read[1])
            if closed is not None:
                return [ToolCall(name, read[0])], closed.end()
        return None

    def arguments(self, name: str, text: str, at: int) -> tuple[dict[str, Any], int] | None:
        style = self.template.arguments
        try:
            if style is None:
                value, end = _JSON.raw_decode(text, re.compile(r"\s*").match(text, at).end())  # type: ignore[union-attr]
                return (value, end) if isinstance(value, dict) else None
            if style.python:
                return _keywords(text, at)
        except _UNREADABLE:
            return None
        return _marked(text, at, style, None if self.schemas is None else self.schemas.get(name))


def _spaced(text: str) -> str:
    return r"\s*".join(map(re.escape, re.split(r"\s+", text)))


def _keywords(text: str, at: int) -> tuple[dict[str, Any], int]:
    """Keyword arguments of Python up to the bracket that closes the call.  Raises ``ValueError`` and the like."""
    end = _closing(text, at)
    call = ast.parse(f"f({text[at:end]})", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or not all(k.arg for k in call.keywords):
        raise ValueError("only keyword arguments are known by name")
    return {str(k.arg): _with_pairs(ast.literal_eval(k.value)) for k in call.keywords}, end


def _with_pairs(value: Any) -> Any:
    """A value whose keys were written as in JSON: two escapes of surrogates are one character."""
    if isinstance(value, dict):
        return {
            _paired(key) if isinstance(key, str) else key: _with_pairs(each) for key, each in value.items()
        }
    return [_with_pairs(each) for each in value] if isinstance(value, list) else value


def _paired(text: str) -> str:
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")


def _closing(text: str, at: int) -> int:
    """Where the bracket stands that closes the one in front of ``at``."""
    depth, quote = 0, ""
    place = at
    while place < len(text):
        c = text[place]
        if quote:
            if c == "\\":
                place += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c in "([{":
            depth += 1
        elif c in ")]}":
            if depth == 0:
                return place
            depth -= 1
        place += 1
    raise ValueError("the call is not closed")


def _marked(text: str, at: int, style: ArgumentStyle, schema: Any) -> tuple[dict[str, Any], int]:
    """Arguments with marks around each."""
    written: dict[str, tuple[str, bool]] = {}
    openings = [
        (_opening(style.open), False),
        *([(_opening(style.open_text), True)] if style.open_text else []),
    ]
    while True:
        read = None
        for opening, plain in openings:
            opened = opening.match(text, at)
            if opened is not None:
                end = text.find(style.close, opened.end())
                read = None if end < 0 else (opened, plain, end)
                break
        if read is None:
            break
        opened, plain, end = read
        written[opened["key"]] = text[opened.end() : end], plain
        at = end + len(style.close)
    if style.open_text is not None:
        return {
            key: value if plain else _value(value, _TYPES - {"string"})
            for key, (value, plain) in written.items()
        }, at
    texts = {key: value for key, (value, _) in written.items()}
    types = _Types(schema, texts)
    return {key: _value(value, types.of(key)) for key, value in texts.items()}, at


def _opening(pattern: str) -> re.Pattern[str]:
    before, _, behind = pattern.partition("{key}")
    return re.compile(r"\s*" + _spaced(before) + r'(?P<key>[^<>"\n]+?)' + re.escape(behind))


def _value(text: str, types: frozenset[str]) -> Any:
    """A value that is written without quotes where it is a text."""
    if types == {"string"}:
        return text
    try:
        value = json.loads(text)
    except _UNREADABLE:
        return text
    # A text stands without quotes: those that there are belong to it.
    return value if not isinstance(value, str) and _json_types(value) & types else text


def _json_types(value: Any) -> frozenset[str]:
    if value is None:
        return frozenset({"null"})
    if isinstance(value, bool):
        return frozenset({"boolean"})
    if isinstance(value, int):
        return frozenset({"integer", "number"})
    if isinstance(value, float):
        return frozenset({"number", "integer"}) if value.is_integer() else frozenset({"number"})
    if isinstance(value, str):
        return frozenset({"string"})
    return frozenset({"array"}) if isinstance(value, list) else frozenset({"object"})


class _Types:
    """The types that the arguments of a call may have; all, where the schema of its tool does not say.

    ``texts``: the arguments as they are written.  Of alternatives, those count that have what they require, and the constants
    that they say."""

    def __init__(self, root: Any, texts: Mapping[str, str]) -> None:
        self.root = root
        self.texts = texts
        self.steps = 0
        self._anchors: dict[str, Any] | None = None

    def ends(self, part: Any, depth: int) -> bool:
        """Whether a schema says nothing more: it is no object, or has been looked at for long."""
        self.steps += 1
        return not isinstance(part, dict) or depth > _MAX_DEPTH or self.steps > _MAX_STEPS

    def of(self, key: str) -> frozenset[str]:
        self.steps = 0
        members = self.members(self.root, key, 0)
        self.steps = 0
        return frozenset.intersection(_TYPES, *(self.types(part, 0) for part in members))

    def members(self, part: Any, key: str, depth: int) -> list[Any]:
        """The schemas of a member, where a schema that holds in place has them."""
        if self.ends(part, depth):
            return []
        found: list[Any] = []
        properties, others = part.get("properties"), part.get("additionalProperties")
        if isinstance(properties, dict) and key in properties:
            found.append(properties[key])
        elif isinstance(others, dict) and "patternProperties" not in part:
            found.append(others)
        for each in (*_listed(part, "allOf"), *self.demanded(part, depth), self.referred(part)):
            found += self.members(each, key, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            branches = _listed(part, keyword)
            branches = [branch for branch in branches if self.fits(branch, depth + 1)] or branches
            schemas = [self.members(branch, key, depth + 1) for branch in branches]
            if schemas and all(schemas):
                found.append({"anyOf": [{"allOf": own} for own in schemas]})
        left = part.get("unevaluatedProperties")
        return found if found or not isinstance(left, dict) or "patternProperties" in part else [left]

    def demanded(self, part: dict[str, Any], depth: int) -> Iterator[Any]:
        """What conditions demand, where it is certain that they hold, or do not."""
        if "if" in part:
            if not self.fits(part["if"], depth + 1):
                yield part.get("else")
            elif self.is_known(part["if"], depth + 1):
                yield part.get("then")
        depending = part.get("dependentSchemas")
        if isinstance(depending, dict):
            yield from (depending[name] for name in depending.keys() & self.texts.keys())

    def fits(self, part: Any, depth: int) -> bool:
        """Whether the arguments have what a schema requires, and the values that it lists; if not, they do not satisfy it."""
        if self.ends(part, depth):
            return part is not False
        required, properties = part.get("required"), part.get("properties")
        if isinstance(required, list) and any(isinstance(n, str) and n not in self.texts for n in required):
            return False
        if isinstance(properties, dict):
            for name in properties.keys() & self.texts.keys():
                if not self.is_listed(properties[name], self.texts[name]):
                    return False
        return all(self.fits(each, depth + 1) for each in (*_listed(part, "allOf"), self.referred(part)))

    def is_known(self, part: Any, depth: int) -> bool:
        """Whether ``fits`` looks at all that a schema says."""
        if self.ends(part, depth):
            return isinstance(part, bool)
        properties = part.get("properties", {})
        if not part.keys() <= _LOOKED_AT or not isinstance(properties, dict):
            return False
        members = (self.resolved(each) for each in properties.values())
        if not all(isinstance(each, dict) and each.keys() <= _LISTING for each in members):
            return False
        inner = (*_listed(part, "allOf"), *([self.referred(part)] if "$ref" in part else []))
        return all(self.is_known(each, depth + 1) for each in inner)

    def is_listed(self, schema: Any, text: str) -> bool:
        """Whether a text is one of the values that a schema lists, if it lists any."""
        schema = self.resolved(schema)
        if not isinstance(schema, dict) or not ("const" in schema or isinstance(schema.get("enum"), list)):
            return schema is not False
        values = [schema["const"]] if "const" in schema else schema["enum"]
        return any(_value(text, _json_types(value)) == value for value in values)

    def types(self, part: Any, depth: int) -> frozenset[str]:
        if self.ends(part, depth):
            return _TYPES
        types = _TYPES
        if "type" in part:
            named = part["type"] if isinstance(part["type"], list) else [part["type"]]
            types &= {
                *(name for name in named if isinstance(name, str)),
                *(["integer"] if "number" in named else []),
            }
        if "const" in part:
            types &= _json_types(part["const"])
        if isinstance(part.get("enum"), list):
            types &= frozenset().union(*map(_json_types, part["enum"]))
        for keyword in ("anyOf", "oneOf"):
            branches = [self.types(each, depth + 1) for each in _listed(part, keyword)]
            if branches:
                types &= frozenset().union(*branches)
        for each in (*_listed(part, "allOf"), self.referred(part)):
            types &= self.types(each, depth + 1)
        return types

    def resolved(self, part: Any) -> Any:
        """A schema that is a reference and nothing else: what it leads to."""
        return self.referred(part) if isinstance(part, dict) and part.keys() == {"$ref"} else part

    def referred(self, part: dict[str, Any]) -> Any:
        """What a reference within the schema leads to; None where there is none."""
        reference = part.get("$ref", part.get("$dynamicRef"))
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        pointer = unquote(reference[1:])
        if pointer and not pointer.startswith("/"):
            if self._anchors is None:
                self._anchors = _anchors(self.root)
            return self._anchors.get(pointer)
        found = self.root
        for step in pointer.split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(found, dict):
                found = found.get(step)
            elif isinstance(found, list) and step.isdecimal() and int(step) < len(found):
                found = found[int(step)]
            else:
                return None
        return found


def _anchors(root: Any) -> dict[str, Any]:
    """The schemas that have names of their own."""
    found: dict[str, Any] = {}
    work, seen = [root], set()
    while work:
        part = work.pop()
        if not isinstance(part, (dict, list)) or id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, list):
            work += part
            continue
        for name in (part.get("$anchor"), part.get("$dynamicAnchor")):
            if isinstance(name, str):
                found.setdefault(name, part)
        work += [each for keyword, each in part.items() if keyword not in _VALUES]
    return found


def _listed(part: dict[str, Any], keyword: str) -> list[Any]:
    value = part.get(keyword)
    return value if isinstance(value, list) else []
