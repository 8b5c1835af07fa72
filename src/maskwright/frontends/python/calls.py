"""Functions by signature: the arguments of a call as a pydantic model, and a model's values as a ready call.

Parameters are members of an object.  One with a default may be left out, and then Python's own default holds: it need
not have a JSON text.  ``*args`` is an array under its name; ``**kwargs`` are further members.
"""

from __future__ import annotations

import functools
import inspect
import operator
import re
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from maskwright.errors import GrammarError

_DOC_SECTION = re.compile(r"(?:Args|Arguments|Parameters):\s*$")
_DOC_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(\S.*)")
_DOC_FIELD = re.compile(r":param (?:[^:]* )?\*{0,2}(\w+):\s*(\S.*)")


def is_function(value: Any) -> bool:
    """Whether this is a function, a method, a ``functools.partial`` or an object with ``__call__``, and no type."""
    if inspect.isroutine(value) or isinstance(value, functools.partial):
        return True
    module = type(value).__module__
    return (
        callable(value)
        and not isinstance(value, type)
        and module not in ("typing", "types", "typing_extensions")
    )


def function_name(function: Any) -> str:
    """The name as in its definition; of an object with ``__call__``, that of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations with what stands as text inside others, as in ``list["Query"]``; none where that cannot be evaluated: pydantic
    then says why."""
    while isinstance(function, functools.partial):
        function = function.func
    if hasattr(function, "__signature__"):
        return {}
    if not inspect.isroutine(function):
        function = type(function).__call__
    try:
        return typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception:
        return {}


class Call:
    """What is known of calls of one function.

    Raises ``GrammarError``, which names the function, where there is no signature, or no value for an annotation.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.name = function_name(function)
        bound = function.keywords if isinstance(function, functools.partial) else {}
        try:
            signature = inspect.signature(function, eval_str=True)
        except (ValueError, TypeError) as error:
            raise GrammarError(
                f"{self.name} has no signature that Python knows: wrap it in a function ({error})"
            ) from None
        except Exception as error:
            # Annotations are evaluated: whatever is wrong with them is raised here.
            raise GrammarError(f"{self.name}: an annotation cannot be evaluated: {error}") from None
        hints = _hints(function)
        self.parameters = [
            p.replace(annotation=hints.get(p.name, p.annotation))
            for p in signature.parameters.values()
            if p.name not in bound
        ]

    @functools.cached_property
    def model(self) -> Any:
        """A pydantic model of the arguments; raises ``GrammarError`` for an annotation that is no type."""
        from pydantic import BaseModel, ConfigDict, Field, create_model
        from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

        described = _descriptions(self.function)
        fields: dict[str, Any] = {}
        extra: Any = None
        for place, parameter in enumerate(self.parameters):
            annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
            if parameter.kind is parameter.VAR_KEYWORD:
                extra = dict[str, annotation]  # type: ignore[valid-type]
                continue
            settings: dict[str, Any] = {"alias": parameter.name, "title": parameter.name}
            if parameter.name in described:
                settings["description"] = described[parameter.name]
            if parameter.kind is parameter.VAR_POSITIONAL:
                annotation = list[annotation]  # type: ignore[valid-type]
                settings["default_factory"] = list
            elif parameter.default is not parameter.empty:
                # Shown to the model where it is plain; never read from here.
                if isinstance(parameter.default, (str, int, float, bool, type(None))):
                    settings["default"] = parameter.default
                else:
                    settings["default_factory"] = _nothing
            fields[_field(place)] = (annotation, Field(**settings))
        config = ConfigDict(extra="forbid" if extra is None else "allow", protected_namespaces=())
        space: dict[str, Any] = {"__module__": __name__, "model_config": config}
        if extra is not None:
            space["__annotations__"] = {"__pydantic_extra__": extra}
        base: type[BaseModel] = types.new_class(
            "Arguments", (BaseModel,), exec_body=lambda body: body.update(space)
        )
        try:
            return create_model(self.name, __base__=base, __doc__=_summary(self.function), **fields)
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            raise GrammarError(f"{self.name}: {error.message.partition(chr(10))[0]}") from None

    def blame(self, reads: Callable[[Any], Any]) -> None:
        """Raise the error of the first parameter whose type ``reads`` refuses, with its name."""
        for parameter in self.parameters:
            if parameter.annotation is not parameter.empty:
                try:
                    reads(parameter.annotation)
                except GrammarError as error:
                    raise GrammarError(f"{self.name}: parameter {parameter.name!r}: {error}") from None

    def ready(self, values: Any) -> functools.partial[Any]:
        """The call with the arguments of an instance of ``model``; what it leaves out, Python fills in."""
        given = {name for name in values.model_fields_set if name in type(values).model_fields}
        rest = self._rest(values, given)
        positional: list[Any] = []
        named: dict[str, Any] = dict(values.model_extra or {})
        skipped: list[Any] = []
        for place, parameter in enumerate(self.parameters):
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                continue
            is_given, value = _field(place) in given, getattr(values, _field(place))
            in_place = parameter.kind is parameter.POSITIONAL_ONLY or (
                parameter.kind is parameter.POSITIONAL_OR_KEYWORD and rest
            )
            if not in_place:
                if is_given:
                    named[parameter.name] = value
            elif is_given:
                positional += [*skipped, value]
                skipped = []
            else:
                # Needed only in front of a later one.
                skipped.append(parameter.default)
        if rest:
            positional += [*skipped, *rest]
        return functools.partial(self.function, *positional, **named)

    def _rest(self, values: Any, given: set[str]) -> list[Any]:
        """What is written for ``*args``."""
        for place, parameter in enumerate(self.parameters):
            if parameter.kind is parameter.VAR_POSITIONAL and _field(place) in given:
                return list(getattr(values, _field(place)))
        return []


class Calls:
    """A choice of functions.  Raises ``GrammarError`` as ``Call`` does, and where two have one name."""

    def __init__(self, functions: Sequence[Callable[..., Any]]) -> None:
        self.calls: dict[str, Call] = {}
        for call in map(Call, functions):
            if call.name in self.calls:
                raise GrammarError(
                    f"two functions have the name {call.name!r}: rename one, so that calls tell them apart"
                )
            self.calls[call.name] = call

    @functools.cached_property
    def model(self) -> Any:
        """The ``name`` of one function and its ``arguments``, as tool calls are written."""
        from pydantic import ConfigDict, Field, create_model

        config = ConfigDict(extra="forbid")
        models = []
        for name, call in self.calls.items():
            fields: dict[str, Any] = {"name": (Literal[name], ...), "arguments": (call.model, ...)}
            models.append(create_model(f"call_{name}", __config__=config, **fields))
        # A discriminator needs two branches at least.
        return (
            models[0]
            if len(models) == 1
            else Annotated[functools.reduce(operator.or_, models), Field(discriminator="name")]
        )

    def blame(self, reads: Callable[[Any], Any]) -> None:
        """As ``Call.blame``."""
        for call in self.calls.values():
            call.blame(reads)

    def ready(self, values: Any) -> functools.partial[Any]:
        """As ``Call.ready``."""
        return self.calls[values.name].ready(values.arguments)


def call_of(output_type: Any) -> Call | Calls | None:
    """What is known of a function, or of a list or tuple of functions; None for what is neither."""
    if is_function(output_type):
        return Call(output_type)
    if isinstance(output_type, (list, tuple)) and output_type and all(map(is_function, output_type)):
        return Calls(output_type)
    return None


def _field(place: int) -> str:
    """Names of parameters may be none that pydantic allows; they are aliases."""
    return f"p{place}"


def _nothing() -> None:
    """In place of a default that is left to Python."""


def _documentation(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    if not inspect.isroutine(function):
        function = type(function).__call__
    return inspect.getdoc(function) or ""


def _summary(function: Any) -> str | None:
    """The first paragraph of a docstring."""
    return _documentation(function).partition("\n\n")[0] or None


def _descriptions(function: Any) -> dict[str, str]:
    """What a docstring says of parameters, in Google's or Sphinx's style: the first line of each."""
    found: dict[str, str] = {}
    inside = False
    for line in _documentation(function).splitlines():
        field = _DOC_FIELD.match(line)
        entry = _DOC_ENTRY.match(line.strip()) if inside and line[:1].isspace() else None
        if field or entry:
            name, text = (field or entry).groups()  # type: ignore[union-attr]
            found[name] = text
        elif line.strip() and not line[:1].isspace():
            inside = _DOC_SECTION.match(line) is not None
    return found
