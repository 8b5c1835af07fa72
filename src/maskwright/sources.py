"""What ``maskwright.compile`` takes: a text or an object, together with the language that it is written in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from maskwright.frontends.json_schema.references import Registry
from maskwright.frontends.lark import LexerKind
from maskwright.frontends.regex import Flavour


@dataclass(frozen=True)
class JsonSchema:
    """A JSON Schema: a dict, a bool, or JSON text; options as in ``compile_json_schema``."""

    schema: dict[str, Any] | bool | str
    property_order: str = "schema"
    whitespace: str = "flexible"
    formats: str = "assert"
    dialect: str = "auto"
    registry: Registry | None = None


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


@dataclass(frozen=True)
class Choice:
    """One of some texts (str, or bytes), or one of some sequences of token ids; up to millions."""

    options: Any


@dataclass(frozen=True)
class GBNF:
    """A grammar in GBNF (llama.cpp) or the EBNF of XGrammar; options as in ``compile_gbnf``."""

    text: str
    root: str = "root"
