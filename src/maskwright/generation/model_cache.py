"""How a model of transformers is given its cache, and gives it back: ``past_key_values``, and ``cache`` since transformers 5.24."""

from __future__ import annotations

import inspect
from typing import Any

_NAMES = ("cache", "past_key_values")


def cache_parameter(model: Any) -> str | None:
    """The parameter of ``model.forward`` that takes a cache; None where it keeps none."""
    parameters = inspect.signature(model.forward).parameters
    return next((name for name in _NAMES if name in parameters), None)


def cache_of(output: Any) -> Any:
    """The cache behind a forward pass."""
    return next(output[name] for name in _NAMES if name in output)
