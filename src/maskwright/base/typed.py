"""Variables of types that are any type where nothing is said (PEP 696), which Python has from 3.13 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

    # Type checkers bring it along.
    from typing_extensions import TypeVar

    Value = TypeVar("Value", default=Any)
else:
    from typing import TypeVar

    Value = TypeVar("Value")
    """What is written, as a value of Python."""
