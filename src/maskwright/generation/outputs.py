"""What a caller wants written: an output type -> its source, and a text -> its value."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from maskwright.base.html import cut
from maskwright.errors import GrammarError, MaskwrightError
from maskwright.frontends.python.types import PYTHON_OPTIONS, is_schema, parse_output, python_type_to_schema
from maskwright.generation.partial import NOTHING, partial_value
from maskwright.sources import (
    EXPRESSIONS,
    GBNF,
    Choice,
    Contains,
    Intersection,
    JsonSchema,
    Lark,
    Not,
    Regex,
    StructuralTag,
    Type,
)

_TEXT_SOURCES = (Regex, Choice, Lark, GBNF, StructuralTag, *EXPRESSIONS)

_SHOWN = 60
"""Characters of a text in a message."""
_DATA_OPTIONS = {**asdict(PYTHON_OPTIONS), "max_number_digits": 20}
"""For somebody who wants the data: as for Python types, and 20 digits hold 64 bits; a model that goes on writing zeros has to stop."""


class Output:
    """An output type, as a source to compile, and its values.

    ``source``: what ``maskwright.compile`` takes.  ``is_json``: whether the text is JSON; else the value is the text itself.
    """

    def __init__(self, output_type: Any) -> None:
        typed = _typed_part(output_type)
        self.type = typed.schema if isinstance(typed, JsonSchema) else typed
        self.is_json = not isinstance(typed, _TEXT_SOURCES)
        if isinstance(output_type, (JsonSchema, *_TEXT_SOURCES)):
            self.source: Any = output_type
        elif isinstance(output_type, str) and output_type.lstrip()[:1] not in ("{", "t", "f"):
            raise GrammarError(
                f"{cut(output_type, _SHOWN)!r} is no JSON Schema: a str is read as the text of one; wrap others in Regex(...), "
                "Choice([...]), Lark(...), GBNF(...)"
            )
        elif is_schema(output_type):
            self.source = JsonSchema(output_type, **_DATA_OPTIONS)
        else:
            self.source = JsonSchema(python_type_to_schema(output_type), **_DATA_OPTIONS)

    def schema(self) -> Any:
        """The JSON Schema as a prompt shows it; None for what is no JSON."""
        if not self.is_json:
            return None
        shown = self.type if is_schema(self.type) else python_type_to_schema(self.type, narrowed=False)
        return json.loads(shown) if isinstance(shown, (str, bytes)) else shown

    def instruction(self) -> str:
        """A sentence that tells the model what it may write."""
        if self.is_json:
            schema = json.dumps(self.schema(), ensure_ascii=False)
            return f"Answer with JSON that follows this JSON Schema:\n{schema}"
        if isinstance(self.source, Regex):
            return f"Answer with a text that matches this regular expression:\n{self.source.pattern}"
        if isinstance(self.source, (Lark, GBNF)):
            return f"Answer with a text of this grammar:\n{self.source.text}"
        if isinstance(self.source, Choice) and all(isinstance(o, str) for o in self.source.options):
            return f"Answer with one of: {', '.join(self.source.options)}"
        raise MaskwrightError(
            f"schema_in_prompt: a {type(self.source).__name__} cannot be shown in words; describe it in the prompt"
        )

    def value(self, text: str) -> Any:
        """The value of a finished text.  Raises ``OutputError`` for what the type refuses and no schema can say."""
        return parse_output(self.type, text) if self.is_json else text

    def partial(self, text: str) -> Any:
        """The value of an unfinished text so far, or ``partial.NOTHING``."""
        if self.is_json:
            return partial_value(text)
        return text or NOTHING


class Changes:
    """The partial values of a growing text, each once."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.shown: Any = NOTHING

    def of(self, text: str) -> Iterator[Any]:
        partial = self.output.partial(text)
        if partial is not NOTHING and partial != self.shown:
            self.shown = partial
            yield partial


def _typed_part(source: Any) -> Any:
    """The type or schema whose values the texts of an expression have: ``A``, or an intersection of it with a ``Regex``,
    ``Contains`` or complements; else the source itself, whose values are texts."""
    if isinstance(source, Type):
        return source.of
    if isinstance(source, Intersection):
        rest = [item for item in source.items if not isinstance(item, (Regex, Contains, Not))]
        if len(rest) == 1 and isinstance(rest[0], (JsonSchema, Type)):
            return _typed_part(rest[0])
    return source
