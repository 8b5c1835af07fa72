"""How long the text of a source may be: some of what goes through all of it cannot be stopped on the way."""

from __future__ import annotations

from maskwright.errors import LimitError
from maskwright.limits import Limits


def check_length(text: str | bytes, limits: Limits) -> None:
    """Raises ``LimitError`` (max_source_chars)."""
    if len(text) > limits.max_source_chars:
        raise LimitError("max_source_chars", len(text), limits.max_source_chars)
