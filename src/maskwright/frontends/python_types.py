"""Python types -> JSON Schema, and text -> values of the type; through pydantic."""

from __future__ import annotations

import json
from typing import Any

from maskwright.errors import GrammarError, MaskwrightError


def _adapter(tp: Any) -> Any:
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise MaskwrightError(
            'Python types are read through pydantic: pip install "maskwright[hf]", or pass a JSON Schema'
        ) from None
    try:
        return TypeAdapter(tp)
    except PydanticUserError as error:
        raise GrammarError(f"{tp!r} is no type that pydantic understands: {error.message}") from None


def python_type_to_schema(tp: Any) -> dict[str, Any]:
    """The JSON Schema of a pydantic model, dataclass, TypedDict, Literal, Enum, int, list[...] and the like.

    Raises ``GrammarError`` for what is no such type.
    """
    from pydantic_core import PydanticOmit

    adapter = _adapter(tp)
    try:
        schema: dict[str, Any] = adapter.json_schema(mode="validation")
    except (ValueError, PydanticOmit, NotImplementedError) as error:
        raise GrammarError(f"{tp!r} has no JSON Schema: {error}") from None
    return schema


def is_schema(output_type: Any) -> bool:
    """Whether an output type is a JSON Schema (dict, bool or JSON text) and not a Python type."""
    return isinstance(output_type, (dict, bool, str, bytes))


def parse_output(output_type: Any, text: str) -> Any:
    """The value that ``text`` denotes: plain JSON data for a schema, else an instance of the type.

    Raises pydantic's ``ValidationError`` for constraints that a schema cannot say.
    """
    return json.loads(text) if is_schema(output_type) else _adapter(output_type).validate_json(text)
