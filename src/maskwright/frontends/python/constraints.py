"""Constraints of types that have none of their own, such as unions and ``Any``: pydantic checks what was read, in Python.

The JSON Schema that it writes has no keyword for them, or one that is not for all branches.  Here they narrow the texts; where
the value of a text does not say whether it passes, they are a ``GrammarError``.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Mapping
from decimal import Decimal
from enum import Enum
from typing import Any

from maskwright.errors import GrammarError
from maskwright.frontends.python.floats import finite
from maskwright.frontends.python.patterns import ASCII_TEXT

_COMPARED = {"ge": operator.ge, "gt": operator.gt, "le": operator.le, "lt": operator.lt}
_NUMBERS = frozenset({"int", "float", "bool", "any", "literal", "enum", "decimal", "fraction", "ByteSize"})
"""What is read from numbers as what can be compared with one."""
_NO_NUMBERS = frozenset(
    {"str", "none", "list", "tuple", "set", "frozenset", "dict", "model", "dataclass", "typed-dict"}
)
_COUNTED = frozenset(
    {
        "str",
        "bytes",
        "list",
        "tuple",
        "dict",
        "any",
        "literal",
        "enum",
        "SecretStr",
        "SecretBytes",
        "EmailStr",
    }
)
"""What is as long as the JSON value that it is read from."""
_UNCOUNTED = frozenset({"int", "float", "bool", "none"})
_TEXT_CHANGES = ("strip_whitespace", "to_lower", "to_upper")
_LENGTHS = {
    "min_length": {"string": "minLength", "array": "minItems", "object": "minProperties"},
    "max_length": {"string": "maxLength", "array": "maxItems", "object": "maxProperties"},
}
_SHOWN = {
    "GenerateSchema": "Path",
    "_BaseUrl": "URL",
    "EncodedStr": "Base64Str",
    "EncodedBytes": "Base64Bytes",
}
_EXACT = 2**53
"""Up to here, floats have every integer."""


def constraint_of(schema: Any) -> tuple[str, Any] | None:
    """The name and the value of the constraint that a part of pydantic's own checks, if it does nothing else."""
    if schema.get("type") == "chain":
        last = schema["steps"][-1]
        function = last.get("function", {}).get("function")
        if getattr(function, "__qualname__", "").startswith("apply_known_metadata."):
            return next((name, value) for name, value in last["schema"].items() if name != "type")
    if schema.get("type") != "function-after":
        return None
    function = schema["function"]["function"]
    if getattr(function, "__qualname__", "") == "forbid_inf_nan_check":
        return "allow_inf_nan", False
    if isinstance(function, functools.partial) and _is_of_pydantic(function.func):
        name: str = next(iter(function.keywords))
        return name, function.keywords[name]
    return None


def without_keywords(schema: Any) -> Any:
    """The same part; where pydantic checks a constraint of it, without the keywords for it, which are those of other types."""
    metadata = schema.get("metadata", {})
    constraint = constraint_of(schema)
    if constraint is None or "pydantic_js_updates" not in metadata:
        return schema
    dropped = {constraint[0], *_LENGTHS.get(constraint[0], {}).values()}
    kept = {name: value for name, value in metadata["pydantic_js_updates"].items() if name not in dropped}
    return {**schema, "metadata": {**metadata, "pydantic_js_updates": kept}}


def constrained(
    made: dict[str, Any],
    schema: Any,
    definitions: Mapping[str, Any],
    config: Mapping[str, Any],
) -> dict[str, Any]:
    """``made`` of what the constraint stands behind, and the constraint.

    Raises ``GrammarError`` for a constraint that is none of the texts.
    """
    constraint = constraint_of(schema)
    assert constraint is not None
    name, value = constraint
    inner = schema["steps"][0] if schema["type"] == "chain" else schema["schema"]
    leaves = _leaves(inner, definitions)
    if name in _LENGTHS:
        return _with_length(made, name, value, leaves, config)
    if name == "pattern" and all(_kind(leaf) == "str" and _is_verbatim(leaf, config) for leaf in leaves):
        return made
    if name in (*_COMPARED, "multiple_of", "allow_inf_nan"):
        return _with_number(made, name, value, leaves, schema["function"]["function"])
    raise _refusal(name, value, leaves)


def _refusal(name: str, value: Any, leaves: list[Any], why: str = "") -> GrammarError:
    kinds = " | ".join(dict.fromkeys(_SHOWN.get(kind, kind) for kind in map(_kind, leaves)))
    return GrammarError(
        f"{name}={value!r} on {kinds}: {why or 'no text says whether what is read passes'}; put it on the types in there that have it, "
        "as in Annotated[int, Field(ge=0)] | str, or leave it out"
    )


def _is_of_pydantic(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    return module == "pydantic" or module.startswith("pydantic.")


def _named(schema: Any) -> tuple[Any, str]:
    function = schema["function"]["function"]
    function = getattr(function, "func", function)
    return function, getattr(function, "__qualname__", "")


def _leaves(part: Any, definitions: Mapping[str, Any]) -> list[Any]:
    """The types that a part reads JSON as; functions of the user's are taken to leave the value as it is."""
    kind = part["type"]
    if kind == "nullable":
        return [*_leaves(part["schema"], definitions), {"type": "none"}]
    if kind == "union" and part.get("mode", "smart") == "smart":
        choices = (choice[0] if isinstance(choice, tuple) else choice for choice in part["choices"])
        return [leaf for choice in choices for leaf in _leaves(choice, definitions)]
    if kind == "definition-ref":
        return _leaves(definitions[part["schema_ref"]], definitions)
    if kind in ("function-after", "function-before", "function-wrap"):
        function, name = _named(part)
        # The second: annotated_types' predicates.
        passes = name == "defaultdict_validator" or name.startswith("apply_known_metadata.")
        if passes or constraint_of(part) or not _is_of_pydantic(function):
            return _leaves(part["schema"], definitions)
    if kind == "chain" and constraint_of(part):
        return _leaves(part["steps"][0], definitions)
    into = {"default": "schema", "lax-or-strict": "lax_schema", "json-or-python": "json_schema"}.get(kind)
    return [part] if into is None else _leaves(part[into], definitions)


def _kind(leaf: Any) -> str:
    if leaf["type"].startswith("function-"):
        function, name = _named(leaf)
        if _is_of_pydantic(function):
            return name.partition(".")[0]
    return str(leaf["type"]) + (" with a root" if leaf.get("root_model") else "")


def _is_verbatim(leaf: Any, config: Mapping[str, Any]) -> bool:
    """Whether a text, or what holds texts, is read without a change to its length."""
    kind = _kind(leaf)
    if kind in ("str", "SecretStr"):
        inner = leaf.get("schema", leaf)
        return not any(inner.get(name, config.get(f"str_{name}")) for name in _TEXT_CHANGES)
    if kind in ("bytes", "SecretBytes"):
        return bool(config.get("val_json_bytes", "utf8") == "utf8")
    if kind == "dict":
        # Two keys that differ as texts may be one.
        keys = leaf.get("keys_schema", {"type": "any"})
        return keys["type"] in ("str", "any") and _is_verbatim(keys, config)
    return _has_plain_values(leaf)


def _has_plain_values(leaf: Any) -> bool:
    """Whether the members of an enumeration are what their values are."""
    members = leaf.get("members", ()) if leaf["type"] == "enum" else leaf.get("expected", ())
    return all(not isinstance(member, Enum) or member == member.value for member in members)


def _with_length(
    made: dict[str, Any], name: str, value: int, leaves: list[Any], config: Mapping[str, Any]
) -> dict[str, Any]:
    kinds = {_kind(leaf) for leaf in leaves} - {"none"}
    if kinds <= {"EncodedStr", "EncodedBytes"} and all(map(_is_base64, leaves)):
        # The value is as long as the digits say, of which four are three characters.
        count = -(-4 * value // 3)
        bounds = f"{{{count},}}" if name == "min_length" else f"{{0,{count}}}"
        return {"allOf": [made, {"type": "string", "pattern": f"^[^=]{bounds}=*$"}]}
    if not (kinds & _COUNTED and kinds <= _COUNTED | _UNCOUNTED) or not all(
        _is_verbatim(leaf, config) for leaf in leaves
    ):
        raise _refusal(name, value, leaves)
    keywords = _LENGTHS[name]
    narrower: dict[str, Any] = {"type": list(keywords), **dict.fromkeys(keywords.values(), value)}
    if isinstance(made.get("type"), str) and made["type"] in keywords:
        narrower = {keywords[made["type"]]: value}
    if name == "max_length" and kinds & {"bytes", "SecretBytes"}:
        narrower["pattern"] = ASCII_TEXT
    return _narrowed(made, narrower)


def _is_base64(leaf: Any) -> bool:
    if leaf["type"] == "none":
        return True
    form: str = leaf["function"]["function"].__self__.encoder.get_json_format()
    return form in ("base64", "base64url")


def _narrowed(made: dict[str, Any], narrower: dict[str, Any]) -> dict[str, Any]:
    """Both; in one schema where the first is a plain one without what the second says."""
    if isinstance(made.get("type"), str) and not narrower.keys() & (made.keys() | {"type", "anyOf"}):
        return {**made, **narrower}
    return {"allOf": [made, narrower]}


def _with_number(
    made: dict[str, Any], name: str, value: Any, leaves: list[Any], check: Callable[[Any], Any]
) -> dict[str, Any]:
    kinds = {_kind(leaf) for leaf in leaves}
    if not (kinds & _NUMBERS and kinds <= _NUMBERS | _NO_NUMBERS and all(map(_has_plain_values, leaves))):
        raise _refusal(name, value, leaves)
    if not isinstance(value, (int, float)) or abs(value) == math.inf or value != value:
        raise _refusal(name, value, leaves, f"{value!r} is no finite number")
    # What is read from decimal digits as they are is not compared with a float as its digits are.
    if kinds & {"decimal", "fraction"} and not isinstance(value, int):
        raise _refusal(name, value, leaves, f"{value!r} is no integer")
    narrower = _bound(name, value) if name in _COMPARED else finite({})
    if name == "multiple_of":
        narrower = _multiples(value, leaves)
    if made.get("type") in ("integer", "number"):
        return _narrowed(made, narrower)
    number = {"type": "number", **narrower}
    truths = [truth for truth in (False, True) if _passes(check, truth)]
    if truths and kinds & {"bool", "any", "literal"}:
        number = {"anyOf": [number, {"type": "boolean", "enum": truths}]}
    return _narrowed(made, number)


def _bound(name: str, value: float) -> dict[str, Any]:
    """The outermost float that passes: texts are rounded to floats, and none from there on to one that does not."""
    upward = name in ("ge", "gt")
    if value == 0 and name in ("gt", "lt"):
        # Next to 0 there is a float for every text that may be written.
        return {"exclusiveMinimum" if upward else "exclusiveMaximum": 0}
    try:
        nearest = float(value)
    except OverflowError:
        raise GrammarError(f"{name}={value}: no float is as great as this; use a smaller bound") from None
    if not _COMPARED[name](nearest, value):
        nearest = math.nextafter(nearest, math.inf if upward else -math.inf)
    if math.isinf(nearest):
        raise GrammarError(f"{name}={value}: no float is greater than this; use a smaller bound")
    # All digits of great ones, which integers are compared with.
    return {"minimum" if upward else "maximum": int(nearest) if nearest.is_integer() else nearest}


def _multiples(value: float, leaves: list[Any]) -> dict[str, Any]:
    """Multiples, as far as floats have them exactly."""
    if value == 0 or Decimal(repr(value)) != Decimal(value):
        raise _refusal(
            "multiple_of", value, leaves, "floats have no exact multiples of it, or there are none"
        )
    most = _EXACT // float(value).as_integer_ratio()[1]
    return {"multipleOf": abs(value), "minimum": -most, "maximum": most}


def _passes(check: Callable[[Any], Any], value: Any) -> bool:
    try:
        check(value)
    except (ValueError, TypeError):
        return False
    return True
