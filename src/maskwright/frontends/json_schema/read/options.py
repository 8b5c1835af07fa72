"""What a caller can choose about JSON output: the one list of options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal

from maskwright.base.arguments import check_type
from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.read.dialects import DIALECTS
from maskwright.frontends.json_schema.read.references import Registry

MOST_WHITESPACE = 256
MOST_INDENTATION = 64
MOST_DIGITS = 1000
_WHITESPACE = ("printed", "flexible", "compact")
_CHOICES: dict[str, tuple[object, ...]] = {
    "escapes": ("printed", "any"),
    "property_order": ("schema", "any"),
    "formats": ("assert", "annotate"),
    "dialect": ("auto", *DIALECTS),
}
_RANGES = {"max_whitespace": (1, MOST_WHITESPACE), "max_number_digits": (1, MOST_DIGITS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaOptions:
    """The options of ``compile_json_schema``, ``JsonSchema`` and ``check_json_schema``.

    Raises ``GrammarError`` for a value that an option does not have.
    """

    property_order: Literal["schema", "any"] = "schema"
    """"schema": declared members in the order of the schema, then others, because models write best what they were
    shown; "any": all members in any order, at the price of more states."""
    escapes: Literal["printed", "any"] = "printed"
    """How characters are written in strings and keys.  "printed", as JSON printers do: a character that needs no escape
    is written as itself; ``\\"``, ``\\\\`` and control characters in their short form, or as ``\\u00XX`` where they have none;
    characters above ASCII, U+007F, ``<``, ``>`` and ``&`` as themselves or as ``\\uXXXX``.  So most keys have one spelling.
    "any": everything that RFC 8259 allows, ``\\u0061`` for ``a`` too."""
    whitespace: Literal["printed", "flexible", "compact"] | int = "printed"
    """"printed", as JSON printers write it: none, one blank, or one line break with an indentation of blanks or of tabs
    behind brackets and commas and before closing brackets; none or one blank before and behind a colon; nowhere else
    any.  "flexible": bounded runs between all tokens, as RFC 8259 allows them; "compact": none, for the fewest tokens; a
    number n: exactly that of ``json.dumps(value, indent=n)``, with values nested up to ``Limits.max_indented_depth``."""
    max_whitespace: int = 64
    """With "printed" and "flexible", the blanks behind a line break (1 to 256; with "printed" a tab counts as four,
    "flexible" has 8 at most within a line).  More serve nobody, and a model that goes on writing blanks has to stop."""
    max_number_digits: int = 40
    """The digits of a number before its point, and those behind it (1 to 1000); where the schema itself has more,
    as many; with ``multipleOf``, in all twice as many.  40 hold integers of 128 bits, and a model that goes on writing digits has to stop."""
    plain_integers: bool = False
    """Whether integers are written without fraction and exponent.  False, as the specification has it since draft 6:
    ``1.0`` and ``2e9`` are integers too.  Most readers make floats of these, or refuse them; so Python types set it, and
    whoever reads integers with something else than a validator should.  Draft 4 and earlier always have it so."""
    additional_properties: bool | Literal["needed"] = True
    """Whether objects may have members that the schema does not mention, where it says nothing about them.  True, as
    the specification has it; False is what callers of tools usually want; "needed" is False, or True for a schema that
    nothing satisfies then.  An object of which no member is declared may have any, and ``additionalProperties`` or
    ``unevaluatedProperties`` always decides."""
    formats: Literal["assert", "annotate"] = "assert"
    """"assert": known formats are enforced, because output that breaks one is of no use; "annotate": none, as the
    specification has it by default."""
    dialect: str = "auto"
    """"auto": what ``$schema`` says, or 2020-12; "draft3" to "draft7", "2019-09", "2020-12", "openapi-3.0" and
    "openapi-3.1" overrule it."""
    registry: Registry | None = field(default=None, hash=False)
    """The schemas that references to other documents stand for: a mapping from URIs, or a function of the URI that
    returns None for what it does not have.  Nothing is ever fetched."""

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            given = getattr(self, name)
            if not isinstance(given, str) or given not in choices:
                raise GrammarError(f"{name}={given!r} is not one of {', '.join(map(repr, choices))}")
        for name, (low, high) in _RANGES.items():
            given = getattr(self, name)
            if not _is_within(given, low, high):
                raise GrammarError(f"{name}={given!r} is no integer from {low} to {high}")
        space = self.whitespace
        is_named = isinstance(space, str) and space in _WHITESPACE
        if not is_named and not _is_within(space, 0, MOST_INDENTATION):
            named = ", ".join(map(repr, _WHITESPACE))
            choices_text = f"{named}, or an indentation from 0 to {MOST_INDENTATION}"
            raise GrammarError(f"whitespace={space!r} is not {choices_text}")
        if not isinstance(self.plain_integers, bool):
            raise GrammarError(f"plain_integers={self.plain_integers!r} is not True or False")
        open_ = self.additional_properties
        if not isinstance(open_, bool) and not (isinstance(open_, str) and open_ == "needed"):
            raise GrammarError(f"additional_properties={open_!r} is not True, False or 'needed'")
        check_type(self.registry, (Mapping, Callable, type(None)), "registry", GrammarError)  # type: ignore[arg-type]


def schema_options(registry: Registry | None, **given: Any) -> SchemaOptions:
    """Options; where they are the same as before, without a registry, the same object: they are checked once."""
    if registry is not None:
        return SchemaOptions(registry=registry, **given)
    try:
        return _checked(**given)
    except TypeError:
        # What has no hash is no option: the error says of which.
        return SchemaOptions(**given)


@lru_cache(maxsize=64, typed=True)
def _checked(**given: Any) -> SchemaOptions:
    return SchemaOptions(**given)


def _is_within(value: object, low: int, high: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


DEFAULT_OPTIONS = SchemaOptions()
