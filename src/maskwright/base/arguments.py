"""Checks of arguments that many functions share: each raises an error that says what is expected."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from maskwright.errors import GrammarError, MaskwrightError
from maskwright.limits import Limits

MOST_COUNTED = (1 << 31) - 1
"""More particles, proposals or steps fit in no memory, and end in no time."""


def whole(
    value: Any,
    name: str,
    error: type[Exception] = MaskwrightError,
    low: int | None = None,
    high: int | None = None,
) -> int:
    """An integer of any type that says it is one (numpy's, a tensor of one); a float or a bool is none."""
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or (low is not None and number < low):
        least = "" if low is None else f" of at least {low}"
        raise error(f"{name}: expected an integer{least}, got {value!r}")
    if high is not None and number > high:
        raise error(f"{name}: expected at most {high}, got {written(number)}")
    return number


def written(number: int) -> str:
    """A whole number as a message shows it: Python does not write those of thousands of digits."""
    return str(number) if abs(number) < 1 << 1000 else "so many"


def real(
    value: Any,
    name: str,
    error: type[Exception] = MaskwrightError,
    low: float = 0.0,
    high: float = math.inf,
) -> float:
    """A number within bounds, which NaN is not."""
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or not low <= value <= high:
        bounds = f"from {low:g} to {high:g}" if high < math.inf else f"of at least {low:g}"
        raise error(f"{name}: expected a number {bounds}, got {value!r}")
    try:
        return float(value)
    except OverflowError:
        raise error(f"{name}: the number is larger than a double can be") from None


def generator(
    seed: int | np.random.Generator | None, error: type[Exception] = MaskwrightError, name: str = "seed"
) -> np.random.Generator:
    """The random numbers of a seed."""
    if not isinstance(seed, np.random.Generator) and seed is not None:
        seed = whole(seed, name, error, 0)
    return np.random.default_rng(seed)


def exact_bytes(data: bytes) -> bytes:
    """The bytes themselves, whatever a subclass says about them."""
    return data if type(data) is bytes else bytes(memoryview(data))


def exact_text(text: str) -> str:
    """The text itself, whatever a subclass says about it."""
    return text if type(text) is str else str.__str__(text)


def check_type(value: object, kind: type | tuple[type, ...], name: str, error: type[Exception]) -> None:
    """Raises unless the value is of one of these types."""
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        names = " or ".join("None" if each is type(None) else each.__name__ for each in kinds)
        raise error(f"{name}: expected {names}, got {type(value).__name__}: {value!r}"[:300])


def one_of(
    value: object, choices: Iterable[str], name: str, error: type[Exception] = MaskwrightError
) -> None:
    """Raises unless the value is one of these texts."""
    if not isinstance(value, str) or value not in choices:
        raise error(f"{name}: expected one of {', '.join(map(repr, choices))}, got {value!r}"[:300])


def listed(values: Any, name: str, what: str, error: type[Exception] = MaskwrightError) -> list[Any]:
    """The items of a list, an array or anything else that can be gone through, but for a text."""
    return list(each_of(values, name, what, error))


def each_of(values: Any, name: str, what: str, error: type[Exception] = MaskwrightError) -> Iterator[Any]:
    """The same one after another, for those that may be many."""
    try:
        if not isinstance(values, str):
            return iter(values)
    except TypeError:
        pass
    raise error(f"{name}: expected {what}, got {type(values).__name__}: {values!r}"[:300])


def token_ids(ids: Any, name: str = "ids", error: type[Exception] = MaskwrightError) -> list[int]:
    """What a caller gave as ids, as a list of Python's integers."""
    return [whole(each, name, error) for each in listed(ids, name, "token ids", error)]


def check_function(value: object, name: str, *, optional: bool = False) -> None:
    """Raises ``MaskwrightError`` for what cannot be called."""
    if not callable(value) and not (optional and value is None):
        raise MaskwrightError(f"{name} is a function of token ids, not {type(value).__name__}")


def check_limits(limits: object) -> None:
    """Raises ``GrammarError`` unless these are ``Limits``."""
    check_type(limits, Limits, "limits", GrammarError)
