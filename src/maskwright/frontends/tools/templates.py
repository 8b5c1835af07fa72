"""How families of models write thinking, text and calls of tools: templates, as data (``grammars/tags``)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from maskwright.base.arguments import check_type
from maskwright.errors import GrammarError, LimitError, MaskwrightError
from maskwright.frontends.json_schema.algebra.strings import is_text
from maskwright.frontends.json_text import read_json
from maskwright.frontends.tools.arguments import ArgumentStyle, argument_style
from maskwright.frontends.tools.texts import ToolOutput, read_output

_FOLDER = files("maskwright") / "grammars" / "tags"
_MAX_BYTES = 100_000
"""Of a template's file."""
_NAMES = ("{name}", "{json_name}")
_PLACEHOLDER = re.compile(r"\{(?:name|json_name|index)\}")

Thinks = Literal["auto", "required", "prompt", "off"]
THINKS = ("auto", "required", "prompt", "off")


@dataclass(frozen=True, slots=True)
class Block:
    """Text between marks; ``begin`` lists the ways to begin it."""

    begin: tuple[str, ...]
    end: str


@dataclass(frozen=True, slots=True)
class Thinking(Block):
    """Thinking in front of an answer.  ``after`` may stand behind it; ``repeat``: there may be several in a row.

    ``default`` is one of ``THINKS``, for who does not say.
    """

    after: str = ""
    repeat: bool = False
    default: Thinks = "auto"


@dataclass(frozen=True, slots=True)
class Content(Block):
    """Text for the user, in a channel of its own; ``preamble``: what may come before it, or before a call."""

    preamble: Block | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """All calls of an answer: between ``begin`` and ``end``, with ``separator`` between two of them.

    ``start``: an answer is these calls, or text.  Otherwise text may come before them; and where there is no ``begin``, each
    call stands alone in free text (``alone``).  ``single``: the family never makes two.
    """

    begin: tuple[str, ...] = ("",)
    end: str = ""
    separator: str = ""
    start: bool = False
    single: bool = False

    @property
    def alone(self) -> bool:
        return self.begin == ("",) and not self.start


@dataclass(frozen=True, slots=True)
class Form:
    """A way to write one call: ``begin``, the arguments, ``end``.

    In ``begin``, ``{name}`` is the name of the tool, ``{json_name}`` the same as a JSON string, ``{index}`` a number.
    """

    begin: str
    end: str


@dataclass(frozen=True)
class ToolTemplate:
    """How a family of models writes thinking, text and calls.

    ``ToolTemplate.load("qwen3")`` has one of those that come with the package (``ToolTemplate.names()``), or one of your
    own; docs/tools.md describes the JSON.
    """

    name: str
    calls: Calls
    forms: tuple[Form, ...]
    arguments: ArgumentStyle | None = None
    """None: a JSON object."""
    trigger: str = ""
    """What gives a call away in free text."""
    tokens: tuple[str, ...] = ()
    """Marks that are special tokens in the vocabularies of the family; they are never part of a text."""
    thinking: Thinking | None = None
    content: Content | None = None
    between: str = ""
    """What stands between thinking, preamble, and text or calls."""
    models: str = ""
    source: str = ""
    aliases: tuple[str, ...] = ()
    style: Any = field(default="json", repr=False)
    """The style of the arguments as structural tags say it."""

    @staticmethod
    def names() -> list[str]:
        """The templates that come with the package, sorted."""
        return sorted(_shipped())

    @classmethod
    def load(cls, template: str | os.PathLike[str] | Mapping[str, Any] | ToolTemplate) -> ToolTemplate:
        """A template by name, from a JSON file (a path, or a text that ends with ``.json``), or from a dict.

        Raises ``GrammarError`` (with a JSON pointer) for what is no template, ``LimitError`` for a large file.
        """
        if isinstance(template, ToolTemplate):
            return template
        if isinstance(template, Mapping):
            return _template(template)
        if isinstance(template, str) and not template.endswith(".json"):
            name = _aliases().get(template, template)
            if name not in _shipped():
                raise GrammarError(
                    f"there is no template {template!r}: it is one of {', '.join(cls.names())}, a dict, or the path "
                    "of a JSON file"
                )
            return _loaded(name)
        if not isinstance(template, (str, os.PathLike)):
            raise GrammarError(f"a template is a name, a path or a dict, not {type(template).__name__}")
        try:
            data = Path(template).read_bytes()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", error)
            raise GrammarError(f"the template {str(template)!r} cannot be read: {reason}") from None
        if len(data) > _MAX_BYTES:
            message = f"the template {str(template)!r} has {len(data)} bytes, at most {_MAX_BYTES} are read"
            raise LimitError("template_bytes", len(data), _MAX_BYTES, message=message)
        try:
            content = read_json(data.decode(), float)
        except UnicodeDecodeError:
            raise GrammarError(f"the template {str(template)!r} is not UTF-8") from None
        except GrammarError as error:
            raise GrammarError(
                f"the template {str(template)!r}: {error.message}", place=error.place
            ) from None
        return _template(content)

    def parse(
        self,
        text: str,
        tools: Iterable[dict[str, Any]] | None = None,
        *,
        thinking: Thinks | None = None,
    ) -> ToolOutput:
        """Thinking, content and calls of what a model wrote.

        tools: those that could be called; only their names count then, and their schemas tell of arguments that are
        written without quotes whether they are texts.  thinking: as for ``StructuralTag.from_tools``.  Nothing is raised for
        a text: what is no whole call is content.  Raises ``GrammarError`` for tools without a name, and another ``thinking``.
        """
        check_type(text, str, "text", MaskwrightError)
        check_thinking(thinking)
        return read_output(self, text, tools, thinking)


def check_thinking(thinking: object) -> None:
    """Raises ``GrammarError`` unless it is one of ``THINKS``, or None."""
    if thinking is not None and thinking not in THINKS:
        raise GrammarError(f"thinking={thinking!r} is not one of {', '.join(THINKS)}")


@cache
def _shipped() -> dict[str, Any]:
    """The templates of the package as data, by name."""
    found = {}
    for entry in _FOLDER.iterdir():
        if entry.name.endswith(".json"):
            found[entry.name.removesuffix(".json")] = json.loads(entry.read_text(encoding="utf-8"))
    return found


@cache
def _aliases() -> dict[str, str]:
    return {alias: name for name, data in _shipped().items() for alias in data.get("aliases", ())}


@cache
def _loaded(name: str) -> ToolTemplate:
    return _template(_shipped()[name])


# --- reading

_FIELDS = {
    "": {
        "name", "models", "source", "aliases", "tokens", "thinking", "content", "between", "calls", "call", "trigger",
        "arguments",
    },
    "/thinking": {"begin", "end", "after", "repeat", "default"},
    "/content": {"begin", "end", "preamble"},
    "/content/preamble": {"begin", "end"},
    "/calls": {"begin", "end", "separator", "place", "parallel"},
}  # fmt: skip


def _template(data: object) -> ToolTemplate:
    fields = _object(data, "")
    name = _text(fields, "name", "")
    style = fields.get("arguments", "json")
    forms = _forms(fields)
    calls = _calls(fields)
    thinking, content = fields.get("thinking"), fields.get("content")
    begins = _marked(calls, forms)
    trigger = _text(fields, "trigger", "", default=_first_mark(begins))
    if content is None:
        _check_trigger(trigger, begins)
    return ToolTemplate(
        name,
        calls,
        forms,
        None if style == "json" else argument_style(style, "/arguments"),
        trigger,
        _texts(fields, "tokens", ""),
        None if thinking is None else _thinking(thinking),
        None if content is None else _content(content),
        _text(fields, "between", "", default=""),
        _text(fields, "models", "", default=""),
        _text(fields, "source", "", default=""),
        _texts(fields, "aliases", ""),
        style,
    )


def _object(data: object, place: str) -> Mapping[str, Any]:
    if not isinstance(data, Mapping):
        raise GrammarError(f"an object is expected here, not {type(data).__name__}", place=place or "#")
    for name in data:
        if name not in _FIELDS[place]:
            known = ", ".join(sorted(_FIELDS[place]))
            raise GrammarError(f"a template has no field {name!r} here: use {known}", place=f"{place}/{name}")
    return data


def _text(fields: Mapping[str, Any], name: str, place: str, *, default: str | None = None) -> str:
    value = fields.get(name, default)
    if not isinstance(value, str) or not is_text(value):
        raise GrammarError(f"{name} is a text", place=f"{place}/{name}")
    if not value and default is None:
        raise GrammarError(f"{name} is a text that is not empty", place=f"{place}/{name}")
    return value


def _texts(fields: Mapping[str, Any], name: str, place: str) -> tuple[str, ...]:
    """A list of texts; one text is a list of one."""
    value = fields.get(name, [])
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, (list, tuple)) or not all(
        isinstance(v, str) and v and is_text(v) for v in listed
    ):
        raise GrammarError(f"{name} is a list of texts that are not empty", place=f"{place}/{name}")
    return tuple(listed)


def _flag(fields: Mapping[str, Any], name: str, place: str, default: bool) -> bool:
    value = fields.get(name, default)
    if not isinstance(value, bool):
        raise GrammarError(f"{name} is true or false", place=f"{place}/{name}")
    return value


def _begins(fields: Mapping[str, Any], place: str) -> tuple[str, ...]:
    begins = _texts(fields, "begin", place)
    if not begins:
        raise GrammarError("begin is a text, or a list of texts", place=f"{place}/begin")
    return begins


def _thinking(data: object) -> Thinking:
    place = "/thinking"
    fields = _object(data, place)
    default = fields.get("default", "auto")
    if default not in THINKS:
        raise GrammarError(f"default is one of {', '.join(THINKS)}", place=f"{place}/default")
    return Thinking(
        _begins(fields, place),
        _text(fields, "end", place),
        _text(fields, "after", place, default=""),
        _flag(fields, "repeat", place, False),
        default,
    )


def _content(data: object) -> Content:
    fields = _object(data, "/content")
    preamble = None
    if fields.get("preamble") is not None:
        place = "/content/preamble"
        inner = _object(fields["preamble"], place)
        preamble = Block(_begins(inner, place), _text(inner, "end", place))
    return Content(_begins(fields, "/content"), _text(fields, "end", "/content"), preamble)


def _calls(fields: Mapping[str, Any]) -> Calls:
    place = "/calls"
    data = _object(fields.get("calls", {}), place)
    if data.get("place", "anywhere") not in ("anywhere", "start"):
        raise GrammarError("place is anywhere or start", place=f"{place}/place")
    begins = _texts(data, "begin", place)
    if not begins and data.keys() & {"end", "separator"} and data.get("place") != "start":
        raise GrammarError("without a begin, each call stands alone in free text", place=f"{place}/begin")
    return Calls(
        begins or ("",),
        _text(data, "end", place, default=""),
        _text(data, "separator", place, default=""),
        data.get("place") == "start",
        not _flag(data, "parallel", place, True),
    )


def _forms(fields: Mapping[str, Any]) -> tuple[Form, ...]:
    given = fields.get("call")
    listed = given if isinstance(given, (list, tuple)) else [given]
    forms = []
    for i, data in enumerate(listed):
        place = f"/call/{i}" if listed is given else "/call"
        if not isinstance(data, Mapping) or not data.keys() <= {"begin", "end"}:
            raise GrammarError("a call has a begin and an end", place=place)
        form = Form(_text(data, "begin", place), _text(data, "end", place, default=""))
        if sum(form.begin.count(name) for name in _NAMES) != 1:
            raise GrammarError("{name} or {json_name} stands in it, once", place=f"{place}/begin")
        if any(mark in form.end for mark in (*_NAMES, "{index}")):
            raise GrammarError("the end of a call has no name in it", place=f"{place}/end")
        forms.append(form)
    if not forms:
        raise GrammarError("there is no way to write a call", place="/call")
    return tuple(forms)


def _marked(calls: Calls, forms: tuple[Form, ...]) -> list[str]:
    """The beginnings of calls in free text."""
    if not calls.alone and not calls.start:
        return list(calls.begin)
    return [begin + form.begin for begin in calls.begin for form in forms]


def _first_mark(begins: list[str]) -> str:
    """What all of them begin with, as far as there is no name in it."""
    texts = [_PLACEHOLDER.split(begin)[0] for begin in begins]
    shortest = min(texts, key=len)
    same = (i for i, c in enumerate(shortest) if any(text[i] != c for text in texts))
    return shortest[: next(same, len(shortest))]


def _check_trigger(trigger: str, begins: list[str]) -> None:
    if not trigger:
        raise GrammarError("calls begin in different ways: say what gives them away", place="/trigger")
    for begin in begins:
        if not begin.startswith(trigger):
            raise GrammarError(f"{begin!r} does not begin with it", place="/trigger")
