"""Python types -> JSON Schema, and text -> values of the type; through pydantic."""

from __future__ import annotations

import json
from typing import Any

from maskwright.errors import GrammarError, MaskwrightError, OutputError
from maskwright.frontends.json_schema.options import SchemaOptions

PYTHON_OPTIONS = SchemaOptions(plain_integers=True, additional_properties=False)
"""How values of Python types are written: pydantic takes ``1e30`` for a float, and refuses it where an int is asked for."""


def _adapter(tp: Any) -> Any:
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
    except ImportError:
        raise MaskwrightError(
            'Python types are read through pydantic: pip install "maskwright[hf]", or pass a JSON Schema'
        ) from None
    try:
        return TypeAdapter(tp)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise GrammarError(f"{tp!r} is no type that pydantic understands: {_reason(error.message)}") from None


def python_type_to_schema(tp: Any, *, narrowed: bool = True) -> dict[str, Any]:
    """The JSON Schema of a pydantic model, dataclass, TypedDict, Literal, Enum, int, list[...] and the like.

    ``narrowed``: to what pydantic reads back, for ``PYTHON_OPTIONS``; else as pydantic shows it, for a prompt.
    Raises ``GrammarError`` for what is no such type.
    """
    adapter = _adapter(tp)
    options: dict[str, Any] = {"mode": "validation"}
    if narrowed:
        from maskwright.frontends.python_schemas import ReadableSchema

        options["schema_generator"] = ReadableSchema
    from pydantic.errors import PydanticUserError
    from pydantic_core import PydanticOmit

    try:
        schema: dict[str, Any] = adapter.json_schema(**options)
    except (ValueError, PydanticUserError, PydanticOmit, NotImplementedError) as error:
        raise GrammarError(f"{tp!r} has no JSON Schema: {_reason(str(error))}") from None
    return schema


def _reason(message: str) -> str:
    """Without what follows in paragraphs of their own, such as addresses of pages."""
    return message.partition("\n")[0]


def is_schema(output_type: Any) -> bool:
    """Whether an output type is a JSON Schema (dict, bool or JSON text) and not a Python type."""
    return isinstance(output_type, (dict, bool, str, bytes))


def parse_output(output_type: Any, text: str) -> Any:
    """The value that ``text`` denotes: plain JSON data for a schema, else an instance of the type.

    Raises ``OutputError`` for constraints that a schema cannot say, such as those of validators.
    """
    if is_schema(output_type):
        return json.loads(text)
    adapter = _adapter(output_type)
    from pydantic import ValidationError

    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise OutputError(f"{output_type!r} refuses the output: {error}", text) from error
