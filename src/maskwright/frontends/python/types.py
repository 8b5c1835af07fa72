"""Python types and functions -> JSON Schema, and text -> values of the type, or ready calls; through pydantic."""

from __future__ import annotations

import json
from typing import Any

from maskwright.errors import GrammarError, MaskwrightError, OutputError, no_recursion
from maskwright.frontends.json_schema.read.options import SchemaOptions
from maskwright.frontends.python.calls import call_of

PYTHON_OPTIONS = SchemaOptions(plain_integers=True, additional_properties="needed")
"""How values of Python types are written: pydantic takes ``1e30`` for a float, and refuses it where an int is asked for; members
that a type does not have are dropped when it is read."""


def _adapter(tp: Any) -> Any:
    try:
        from pydantic import TypeAdapter
        from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
        from pydantic_core import SchemaError
    except ImportError:
        raise MaskwrightError(
            'Python types are read through pydantic: pip install "maskwright[hf]", or pass a JSON Schema'
        ) from None
    if isinstance(tp, (int, float, list, tuple, set, frozenset)):
        raise GrammarError(f"{tp!r} is no type: mw.Choice([...]) for texts, Literal[...] for values")
    try:
        return TypeAdapter(tp)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise GrammarError(f"{tp!r} is no type that pydantic understands: {_reason(error.message)}") from None
    except SchemaError as error:
        raise GrammarError(f"{tp!r} is no type that pydantic can validate: {_reason(str(error))}") from None
    except RecursionError:
        raise
    except (TypeError, RuntimeError) as error:
        raise GrammarError(f"{tp!r} is no type that pydantic understands: {_reason(str(error))}") from error
    except ImportError as error:
        raise MaskwrightError(f"{tp!r} needs another package: {_reason(str(error))}") from None


@no_recursion()
def python_type_to_schema(tp: Any, *, narrowed: bool = True) -> dict[str, Any]:
    """The JSON Schema of a pydantic model, dataclass, TypedDict, Literal, Enum, int, list[...] and the like.

    Of a function, that of an object with its arguments by name; of a list of functions, that of an object with
    ``name`` and ``arguments`` (see ``calls``).
    ``narrowed``: to what pydantic reads back, for ``PYTHON_OPTIONS``; else as pydantic shows it, for a prompt.
    Raises ``GrammarError`` for what is no such type, or has no text that is sure to be read; it names the type, and of
    a function the parameter.
    """
    call = call_of(tp)
    if call is None:
        return _type_to_schema(tp, narrowed)
    try:
        return _type_to_schema(call.model, narrowed)
    except GrammarError:
        call.blame(lambda annotation: _type_to_schema(annotation, narrowed))
        raise


def _type_to_schema(tp: Any, narrowed: bool) -> dict[str, Any]:
    adapter = _adapter(tp)
    options: dict[str, Any] = {"mode": "validation"}
    if narrowed:
        from maskwright.frontends.python.schemas import ReadableSchema

        options["schema_generator"] = ReadableSchema
    from pydantic.errors import PydanticUserError
    from pydantic_core import PydanticOmit, SchemaError

    try:
        schema: dict[str, Any] = adapter.json_schema(**options)
    except (ValueError, PydanticUserError, PydanticOmit, SchemaError, NotImplementedError) as error:
        raise GrammarError(f"{tp!r} has no JSON Schema: {_reason(str(error))}") from None
    return schema


def _reason(message: str) -> str:
    """Without what follows in paragraphs of their own, such as addresses of pages, and without advice for a class that there is not."""
    return message.partition("\n")[0].partition(" Set `arbitrary_types_allowed")[0]


def is_schema(output_type: Any) -> bool:
    """Whether an output type is a JSON Schema (dict, bool or JSON text) and not a Python type."""
    return isinstance(output_type, (dict, bool, str, bytes))


def parse_output(output_type: Any, text: str) -> Any:
    """The value that ``text`` denotes: plain JSON data for a schema, else an instance of the type.

    Of a function (or a list of functions) a ``functools.partial`` with arguments of the annotated types: a ready call.
    Raises ``OutputError`` for constraints that a schema cannot say, such as those of validators.
    """
    if is_schema(output_type):
        return json.loads(text)
    call = call_of(output_type)
    adapter = _adapter(output_type if call is None else call.model)
    from pydantic import ValidationError

    try:
        value = adapter.validate_json(text)
    except (ValidationError, TypeError) as error:
        # A validator that compares what cannot be compared raises a TypeError.
        raise OutputError(f"{output_type!r} refuses the output: {error}", text) from error
    return value if call is None else call.ready(value)
