"""Constraints with parameters, which a strategy gives and ``tune`` chooses."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from maskwright.base.arguments import check_type
from maskwright.errors import MaskwrightError
from maskwright.sampling.constraints import Constraint

Scalar = bool | int | float | str
"""What a file holds of a parameter."""
Parameters = Mapping[str, Scalar]
_SCALARS = (bool, int, float, str)
_LARGEST = 2**63 - 1
"""Integers of TOML go as far."""


class Configurable:
    """A constraint that is made of parameters: ``make(**parameters)``, each one of a few values.

    ``Configurable(lambda most: Predicate(lambda ids: len(ids) <= most), most=[4, 8, 16])``.  A strategy says which (``Strategy.parameters``); of what it
    says nothing, the first value is taken.

    Raises ``MaskwrightError`` for parameters without a value or that ``make`` does not take, and for values that are no bools, texts,
    finite numbers or integers of 64 bits.
    """

    def __init__(self, make: Callable[..., Constraint], /, **choices: Sequence[Scalar]) -> None:
        if not callable(make):
            raise MaskwrightError(f"make: expected a function of the parameters, got {type(make).__name__}")
        self._make = make
        known: dict[str, tuple[Scalar, ...]] = {}
        for name, values in choices.items():
            check_text(name, "the name of a parameter")
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise MaskwrightError(f"{name}: expected a list of values, got {values!r}")
            known[name] = tuple(scalar(value, name) for value in values)
        self.choices: Mapping[str, tuple[Scalar, ...]] = MappingProxyType(known)
        try:
            signature = inspect.signature(make)
        except (TypeError, ValueError):
            return  # written in C, and says nothing
        try:
            signature.bind(**self._first())
        except TypeError as error:
            raise MaskwrightError(f"make: {error}; its parameters are {', '.join(known) or 'none'}") from None

    def _first(self) -> dict[str, Scalar]:
        return {name: values[0] for name, values in self.choices.items()}

    def made(self, parameters: Parameters) -> Constraint:
        """The constraint.  Raises ``MaskwrightError`` for parameters that are not there, and values that are not among the choices."""
        chosen = self._first()
        for name, value in parameters.items():
            known = self.choices.get(name)
            if known is None:
                raise MaskwrightError(f"no parameter {name!r}; there are {', '.join(self.choices) or 'none'}")
            # A file may say 3.0 of 3.
            same = [each for each in known if same_scalar(value, each)]
            if not same:
                raise MaskwrightError(
                    f"{name}: {value!r} is not among {', '.join(repr(each) for each in known)}"
                )
            chosen[name] = same[0]
        made = self._make(**chosen)
        check_type(made, Constraint, "what make returns", MaskwrightError)
        return made


def scalar(value: Any, name: str) -> Scalar:
    """The value as one of Python's own types, if a file can hold it.  Raises ``MaskwrightError``."""
    if isinstance(value, np.generic):
        value = value.item()
    check_type(value, _SCALARS, name, MaskwrightError)
    if isinstance(value, float) and not math.isfinite(value):
        raise MaskwrightError(f"{name}: expected a finite number, got {value}")
    if isinstance(value, int) and not -_LARGEST - 1 <= value <= _LARGEST:
        raise MaskwrightError(f"{name}: expected an integer of 64 bits")
    if isinstance(value, str):
        check_text(value, name)
    found: Scalar = value
    return found


def check_text(text: Any, name: str) -> None:
    """Raises ``MaskwrightError`` for what is no text, or none that a file can hold."""
    check_type(text, str, name, MaskwrightError)
    if text.encode("utf-8", "replace").decode() != text:
        raise MaskwrightError(f"{name}: {text!r} has half a character, which no file holds")


def same_scalar(a: Scalar, b: Scalar) -> bool:
    """True is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def configured(
    constraints: Mapping[str, Constraint | Configurable],
    names: Sequence[str],
    parameters: Mapping[str, Parameters],
) -> list[Constraint]:
    """Those of ``names``, made of their parameters.  Raises ``MaskwrightError`` for what is not there."""
    for name, each in constraints.items():
        check_type(name, str, "constraints", MaskwrightError)
        check_type(each, (Constraint, Configurable), f"constraints: {name!r}", MaskwrightError)
    missing = set(names) - constraints.keys()
    if missing:
        raise MaskwrightError(
            f"constraints: the strategy names {', '.join(sorted(missing))}; there are {', '.join(sorted(constraints))}; "
            "give the others by name: constraints={name: Constraint}"
        )
    found = []
    for name in names:
        each, given = constraints[name], parameters.get(name, {})
        if isinstance(each, Configurable):
            try:
                found.append(each.made(given))
            except MaskwrightError as error:
                raise MaskwrightError(f"constraints: {name!r}: {error}") from None
        elif given:
            raise MaskwrightError(f"constraints: {name!r} has no parameters, and the strategy gives it some")
        else:
            found.append(each)
    return found
