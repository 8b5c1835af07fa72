"""What ``maskwright.compile`` takes: a text or an object, together with the language that it is written in."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from maskwright.frontends.json_schema.options import SchemaOptions
from maskwright.frontends.lark import Indentation, LexerKind
from maskwright.frontends.regex import Flavour
from maskwright.frontends.tools import ToolStyle, response_schema, tools_tag


@dataclass(frozen=True)
class JsonSchema(SchemaOptions):
    """A JSON Schema: a dict, a bool, or JSON text; with the options of ``compile_json_schema``."""

    schema: dict[str, Any] | bool | str = field(kw_only=False)


@dataclass(frozen=True)
class Regex:
    """A regular expression that the whole output matches; options as in ``compile_regex``."""

    pattern: str
    flavour: Flavour = "python"
    flags: str | int = ""


@dataclass(frozen=True)
class Lark:
    """A grammar in Lark's language; options as in ``compile_lark``."""

    text: str
    start: str = "start"
    lexer: LexerKind = "contextual"
    import_paths: tuple[str, ...] = ()
    indentation: Indentation | None = None


@dataclass(frozen=True)
class Choice:
    """One of some texts (str, or bytes), or one of some sequences of token ids; up to millions."""

    options: Any


@dataclass(frozen=True)
class StructuralTag:
    """Free text with tagged parts, as XGrammar and vLLM write it: a dict, or JSON text."""

    tag: dict[str, Any] | str

    @classmethod
    def from_tools(
        cls,
        tools: list[dict[str, Any]],
        tool_choice: str | dict[str, Any] = "auto",
        *,
        style: str | ToolStyle = "hermes",
        parallel_tool_calls: bool = True,
    ) -> StructuralTag:
        """The tag of OpenAI ``tools`` and ``tool_choice``; see ``maskwright.frontends.tools.tools_tag``."""
        return cls(tools_tag(tools, tool_choice, style=style, parallel_tool_calls=parallel_tool_calls))


def response_format(value: dict[str, Any]) -> JsonSchema | StructuralTag:
    """The source of an OpenAI ``response_format`` (text, json_object, json_schema), or of a structural tag.

    Raises ``GrammarError`` for anything else.
    """
    if isinstance(value, dict) and value.get("type") == "structural_tag":
        return StructuralTag(value)
    schema = response_schema(value)
    return StructuralTag({"type": "any_text"}) if schema is None else JsonSchema(schema)


@dataclass(frozen=True)
class GBNF:
    """A grammar in GBNF (llama.cpp) or the EBNF of XGrammar; options as in ``compile_gbnf``."""

    text: str
    root: str = "root"
