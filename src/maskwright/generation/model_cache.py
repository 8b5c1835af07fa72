"""How a model of transformers is given its cache, and gives it back: ``past_key_values``, and ``cache`` since transformers 5.24."""

from __future__ import annotations

import inspect
from typing import Any

from maskwright.errors import ModelError

_NAMES = ("cache", "past_key_values")


def cache_parameter(model: Any) -> str | None:
    """The parameter of ``model.forward`` that takes a cache; None where it keeps none."""
    parameters = inspect.signature(model.forward).parameters
    return next((name for name in _NAMES if name in parameters), None)


def cache_of(output: Any) -> Any:
    """The cache behind a forward pass.  Raises ``ModelError`` where there is none."""
    for name in _NAMES:
        if name in output:
            return output[name]
    raise ModelError(
        f"the model keeps no cache behind a pass ({type(output).__name__} has none): use a causal language model with a key-value cache"
    )
