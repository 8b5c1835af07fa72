"""How a model of transformers is given its cache, and gives it back (``past_key_values``, and ``cache`` since transformers 5.24), and what columns of it may be."""

from __future__ import annotations

import inspect
from typing import Any

from transformers.cache_utils import DynamicCache, DynamicLayer

from maskwright.errors import ModelError

_NAMES = ("cache", "past_key_values")
_COUNTS_UNMASKED = "bloom"
"""Takes no positions, and counts what is not masked by itself."""


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


def pads_in_front(config: Any, takes_positions: bool) -> bool:
    """Whether masked columns in front of a text change nothing: positions do not count them, or are distances."""
    return takes_positions or config.model_type in (_COUNTS_UNMASKED, "mpt")


def masks_columns(config: Any, takes_positions: bool) -> bool:
    """Whether a masked column changes nothing, wherever it is: no window counts columns, nor do positions."""
    plain = all(type(layer) is DynamicLayer for layer in DynamicCache(config=config).layers)
    # GPT-Neo has windows that its cache does not know.
    windowed = "local" in getattr(config, "attention_layers", ())
    return plain and not windowed and (takes_positions or config.model_type == _COUNTS_UNMASKED)
