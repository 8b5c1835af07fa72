"""What ``maskwright.compile`` takes: a text or an object, together with the language that it is written in."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.lark import Indentation, LexerKind
from maskwright.frontends.regex import Flavour
from maskwright.frontends.tools.requests import response_schema, tools_tag
from maskwright.frontends.tools.templates import Thinks, ToolTemplate

if TYPE_CHECKING:
    from maskwright.vocabulary.vocabulary import Vocabulary


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
        template: str | os.PathLike[str] | Mapping[str, Any] | ToolTemplate = "hermes",
        thinking: Thinks | None = None,
        parallel_tool_calls: bool = True,
        vocabulary: Vocabulary | None = None,
    ) -> StructuralTag:
        """The tag of OpenAI ``tools`` and ``tool_choice``, as a family of models writes calls; see docs/tools.md.

        tools: ``{"type": "function", "function": {"name", "parameters", "strict"}}``; arguments follow ``parameters``, unless
        the tool has ``"strict": false``: then they are any object.  tool_choice: ``"auto"`` (text and calls), ``"none"`` (text
        without a call), ``"required"`` (calls), a function to be called once, or ``allowed_tools``.  template: a name out
        of ``templates()``, the path of a JSON file, or its content.  thinking: ``"auto"`` (a block of thinking may come
        first), ``"required"``, ``"prompt"`` (its opening mark ends the prompt), ``"off"``; None: what is usual for the template.
        vocabulary: of the model; marks of the template that are special tokens there are these tokens.  Without it, they
        are text.
        Raises ``GrammarError`` for what has another shape, a name that comes twice, is not known or cannot be written.
        """
        special = {} if vocabulary is None else vocabulary.special_tokens
        ends = () if vocabulary is None else vocabulary.eos_ids
        return cls(
            tools_tag(
                tools,
                tool_choice,
                template=template,
                thinking=thinking,
                parallel_tool_calls=parallel_tool_calls,
                special_tokens=special,
                end_tokens={name for name, token in special.items() if token in ends},
            )
        )

    @staticmethod
    def templates() -> list[str]:
        """The names of the templates of ``from_tools`` that come with the package."""
        return ToolTemplate.names()


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
