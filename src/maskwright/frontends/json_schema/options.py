"""What a caller can choose about JSON output."""

from __future__ import annotations

from dataclasses import dataclass, field

from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.dialects import DIALECTS
from maskwright.frontends.json_schema.references import Registry

_CHOICES = {
    "property_order": ("schema", "any"),
    "whitespace": ("flexible", "compact"),
    "formats": ("assert", "annotate"),
    "dialect": ("auto", *DIALECTS),
}


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """See ``maskwright.compile_json_schema``.  Raises ``GrammarError`` for an unknown choice."""

    property_order: str = "schema"
    whitespace: str = "flexible"
    formats: str = "assert"
    dialect: str = "auto"
    registry: Registry | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            if given not in choices:
                raise GrammarError(f"{name}={given!r} is not one of {', '.join(map(repr, choices))}")
