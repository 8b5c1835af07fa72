"""What ``maskwright.compile`` takes: a text or an object, together with the language that it is written in; and
expressions over such sources (``A | B``, ``A + B``, ``A & R``, ``A - R``, ``~R``, ``A * n``)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal

from maskwright.base.typed import Value
from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.read.options import DEFAULT_OPTIONS, SchemaOptions
from maskwright.frontends.lark import Indentation, LexerKind
from maskwright.frontends.regex import Flavour
from maskwright.frontends.tools.requests import response_schema, tools_tag
from maskwright.frontends.tools.templates import Thinks, ToolTemplate

if TYPE_CHECKING:
    from maskwright.vocabulary.vocabulary import Vocabulary


class Source(Generic[Value]):
    """What sources have in common: the operators of sets of texts.  ``Source[str]`` is one whose texts are what a generator gives.

    A Python type beside a source counts as ``Type`` of it.  Nothing is read before the expression is compiled.
    ``|``: the texts of either.  ``+``: a text of the first and then one of the second.  ``&``: the texts of both.  ``-``:
    those of the first that are none of the second.  ``~``: all others.  ``* n`` and ``* (low, high)``: so many texts in a
    row; high None is without an end.
    """

    def __or__(self, other: Any) -> Source[str]:
        return Union((*_items(Union, self), *_items(Union, other)))

    def __ror__(self, other: Any) -> Source[str]:
        return Union((*_items(Union, other), *_items(Union, self)))

    def __add__(self, other: Any) -> Source[str]:
        return Sequence((*_items(Sequence, self), *_items(Sequence, other)))

    def __radd__(self, other: Any) -> Source[str]:
        return Sequence((*_items(Sequence, other), *_items(Sequence, self)))

    def __and__(self, other: Any) -> Source[Any]:
        return Intersection((*_items(Intersection, self), *_items(Intersection, other)))

    def __rand__(self, other: Any) -> Source[Any]:
        return Intersection((*_items(Intersection, other), *_items(Intersection, self)))

    def __sub__(self, other: Any) -> Source[Any]:
        return Intersection((*_items(Intersection, self), Not(other)))

    def __rsub__(self, other: Any) -> Source[Any]:
        return Intersection((*_items(Intersection, other), Not(self)))

    def __invert__(self) -> Source[str]:
        return Not(self)

    def __mul__(self, times: int | tuple[int, int | None]) -> Source[str]:
        low, high = times if isinstance(times, tuple) and len(times) == 2 else (times, times)
        return Repetition(self, low, high)

    __rmul__ = __mul__


def as_source(value: Any) -> Source:
    """A source as it is, and a Python type as a ``Type``.  Raises ``GrammarError`` for plain data."""
    if isinstance(value, Source):
        return value
    if isinstance(value, (str, bytes, dict, bool, int, float, tuple)) or value is NotImplemented:
        raise GrammarError(
            f"a {type(value).__name__} does not say what language it is written in: wrap it, a text in Choice([...]), a "
            "schema in JsonSchema(...)"
        )
    return Type(value)


def _items(kind: type[Union] | type[Sequence] | type[Intersection], value: Any) -> tuple[Source, ...]:
    """The operands of a chain of one operator, or a source alone."""
    source = as_source(value)
    return source.items if isinstance(source, kind) else (source,)


@dataclass(frozen=True)
class JsonSchema(SchemaOptions, Source[Any]):
    """A JSON Schema: a dict, a bool, or JSON text; with the options of ``compile_json_schema``."""

    schema: dict[str, Any] | bool | str = field(kw_only=False)


@dataclass(frozen=True)
class Regex(Source[str]):
    """A regular expression that the whole output matches; options as in ``compile_regex``."""

    pattern: str
    flavour: Flavour = "python"
    flags: str | int = ""


@dataclass(frozen=True)
class Lark(Source[str]):
    """A grammar in Lark's language; options as in ``compile_lark``."""

    text: str
    start: str = "start"
    lexer: LexerKind = "contextual"
    import_paths: tuple[str, ...] = ()
    indentation: Indentation | None = None


@dataclass(frozen=True)
class Choice(Source[str]):
    """One of some texts (str, or bytes), or one of some sequences of token ids; up to millions."""

    options: Any


@dataclass(frozen=True)
class StructuralTag(Source[str]):
    """Free text with tagged parts, as XGrammar and vLLM write it: a dict, or JSON text.  ``options``: of the schemas in it, as in
    ``compile_json_schema``."""

    tag: dict[str, Any] | str
    options: SchemaOptions = DEFAULT_OPTIONS

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
class GBNF(Source[str]):
    """A grammar in GBNF (llama.cpp) or the EBNF of XGrammar; options as in ``compile_gbnf``."""

    text: str
    root: str = "root"
    symbols: Iterable[str] = ()


@dataclass(frozen=True)
class Type(Source[Any]):
    """A Python type as a source: what ``maskwright.compile`` takes as it is, for those whose own ``|`` is in the way."""

    of: Any


@dataclass(frozen=True)
class JsonString(Source[str]):
    """A JSON string that holds a text of ``content``, with its quotes: a query in a field of a document, say.

    escapes: as in ``JsonSchema``.
    """

    content: Any
    escapes: Literal["printed", "any"] = "printed"


@dataclass(frozen=True)
class Contains(Source[str]):
    """Every text that contains all of ``texts`` (not empty); ``ordered``: in this order, each behind the end of the one before.

    Not ``ordered``, they may overlap, and there are at most ``Limits.max_phrases``.
    """

    texts: Any
    ordered: bool = False


@dataclass(frozen=True)
class Not(Source[str]):
    """Every text that is none of ``item``, which must be regular: ``~item``."""

    item: Any


@dataclass(frozen=True)
class Union(Source[str]):
    """``A | B``: the texts of any of ``items``."""

    items: tuple[Source, ...]


@dataclass(frozen=True)
class Sequence(Source[str]):
    """``A + B``: a text of each of ``items``, one behind the other."""

    items: tuple[Source, ...]


@dataclass(frozen=True)
class Repetition(Source[str]):
    """``A * n``: ``low`` to ``high`` texts of ``item`` in a row (None: without an end)."""

    item: Any
    low: int
    high: int | None


@dataclass(frozen=True)
class Intersection(Source[Any]):
    """``A & B``: the texts of all of ``items``, all of which but one are regular."""

    items: tuple[Source, ...]


EXPRESSIONS = (Type, JsonString, Contains, Not, Union, Sequence, Repetition, Intersection)
"""The sources that are made of others."""


def Optional(item: Any) -> Source[str]:
    """The texts of a source, and the empty one."""
    return Repetition(as_source(item), 0, 1)
