"""Constraints with parameters, which a strategy gives and ``tune`` chooses."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from maskwright.base.arguments import check_function, check_type
from maskwright.errors import MaskwrightError
from maskwright.sampling.constraints import Constraint

Scalar = bool | int | float | str
"""What a file holds of a parameter."""
Parameters = Mapping[str, Scalar]
_SCALARS = (bool, int, float, str)


class Configurable:
    """A constraint that is made of parameters: ``make(**parameters)``, each one of a few values.

    ``Configurable(lambda most: Predicate(lambda ids: len(ids) <= most), most=[4, 8, 16])``.  A strategy says which (``Strategy.parameters``); of what it
    says nothing, the first value is taken.

    Raises ``MaskwrightError`` for parameters without a value, and for values that are no numbers, texts or bools.
    """

    def __init__(self, make: Callable[..., Constraint], **choices: Sequence[Scalar]) -> None:
        check_function(make, "make")
        self._make = make
        self.choices: dict[str, tuple[Scalar, ...]] = {}
        for name, values in choices.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not values:
                raise MaskwrightError(f"{name}: expected a list of values, got {values!r}")
            self.choices[name] = tuple(check_scalar(value, name) for value in values)

    def made(self, parameters: Parameters) -> Constraint:
        """The constraint.  Raises ``MaskwrightError`` for parameters that are not there, and values that are not among the choices."""
        for name, value in parameters.items():
            known = self.choices.get(name)
            if known is None:
                raise MaskwrightError(f"no parameter {name!r}; there are {', '.join(self.choices) or 'none'}")
            if not any(_same(value, each) for each in known):
                raise MaskwrightError(
                    f"{name}: {value!r} is not among {', '.join(repr(each) for each in known)}"
                )
        made = self._make(**{name: values[0] for name, values in self.choices.items()} | dict(parameters))
        check_type(made, Constraint, "what make returns", MaskwrightError)
        return made


def check_scalar(value: Any, name: str) -> Scalar:
    """The value, if a file can hold it.  Raises ``MaskwrightError``."""
    check_type(value, _SCALARS, name, MaskwrightError)
    if isinstance(value, float) and not math.isfinite(value):
        raise MaskwrightError(f"{name}: expected a finite number, got {value}")
    if isinstance(value, str):
        check_text(value, name)
    scalar: Scalar = value
    return scalar


def check_text(text: Any, name: str) -> None:
    """Raises ``MaskwrightError`` for what is no text, or none that a file can hold."""
    check_type(text, str, name, MaskwrightError)
    if text.encode("utf-8", "replace").decode() != text:
        raise MaskwrightError(f"{name}: {text!r} has half a character, which no file holds")


def _same(a: Scalar, b: Scalar) -> bool:
    """True is not 1."""
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def configured(
    constraints: Mapping[str, Constraint | Configurable],
    names: Sequence[str],
    parameters: Mapping[str, Parameters],
) -> list[Constraint]:
    """Those of ``names``, made of their parameters.  Raises ``MaskwrightError`` for what is not there."""
    for name, each in constraints.items():
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
