"""The JSON Schemas of Python types, narrowed to texts that pydantic reads back.

What pydantic writes as a schema is wider than what it reads: it says nothing about keys that are numbers, names formats
that no specification has (``ipv4network``), and takes any text for a ``Decimal``.  Here each gets a pattern or bounds.
Imported when a Python type is read, with pydantic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

_LARGEST = 1e308
"""Greater numbers may be infinite to a reader with floats."""
_INTEGER = r"(?:0|-?[1-9][0-9]{0,39})"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?"
_DURATION = r"^[^0-9]*(?:[0-9]{1,6}[^0-9]+)*$"
"""Of so few digits that no sum has too many days."""
_CONSTRAINTS = ("max_digits", "decimal_places", "multiple_of", "ge", "gt", "le", "lt")


def _octet(bits: int) -> str:
    """The numbers of eight bits of which all but the first ones are 0."""
    return "|".join(str(number) for number in range(0, 256, 1 << (8 - bits)))


def _ipv4_networks() -> Iterable[str]:
    """By length of the prefix: behind it, an address has zeros only."""
    any_octet = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
    for length in range(33):
        whole, bits = divmod(length, 8)
        octets = [any_octet] * whole + ([f"(?:{_octet(bits)})"] if bits else [])
        yield r"\.".join(octets + ["0"] * (4 - len(octets))) + f"/{length}"


def _ipv6_networks() -> Iterable[str]:
    for length in range(129):
        whole, bits = divmod(length, 16)
        groups = ["[0-9a-f]{1,4}"] * whole
        if bits:
            digits, rest = divmod(bits, 4)
            digit = f"[{''.join(f'{n:x}' for n in range(0, 16, 1 << (4 - rest)))}]" if rest else ""
            groups.append(f"[0-9a-f]{{{digits}}}" + digit + "0" * (4 - digits - bool(rest)))
        yield ":".join(groups) + ("" if len(groups) == 8 else "::") + f"/{length}"


def _uuid(version: int) -> str:
    return rf"^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{version}[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$"


_PATTERNS = {
    "ipv4network": f"^(?:{'|'.join(_ipv4_networks())})$",
    "ipv6network": f"^(?:{'|'.join(_ipv6_networks())})$",
    "ipv4interface": r"^(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!/)|(?=/))){4}/(?:3[0-2]|[12]?[0-9])$",
    "ipv6interface": r"^(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])$",
    "base64": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?$",
    "base64url": "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9_-][AQgw]==)?$",
    **{f"uuid{version}": _uuid(version) for version in range(1, 9)},
}
"""Of formats that are pydantic's own."""


class ReadableSchema(GenerateJsonSchema):
    """Writes schemas whose instances pydantic reads, as far as a schema can say it."""

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """A schema for one part of a type."""
        made = super().generate_inner(schema)
        pattern = _PATTERNS.get(made.get("format", ""))
        return made if pattern is None or "pattern" in made else {**made, "pattern": pattern}

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        """Floats that must be finite are bounded."""
        made = super().float_schema(schema)
        return made if schema.get("allow_inf_nan") is not False else _finite(made)

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """A number; without constraints a text as well, which has all digits where floats do not."""
        bounds = {
            name: float(schema[name]) for name in ("multiple_of", "ge", "gt", "le", "lt") if name in schema
        }
        core: Any = {"type": "float", **bounds}
        number = super().float_schema(core)
        places = schema.get("decimal_places")
        if places is not None:
            number.setdefault("multipleOf", float(f"1e-{places}"))
            if schema.get("max_digits") is not None:
                most = float(f"1e{schema['max_digits'] - places}")
                number.setdefault("exclusiveMaximum", most)
                number.setdefault("exclusiveMinimum", -most)
        number = _finite(number)
        if any(schema.get(name) is not None for name in _CONSTRAINTS):
            return number
        return {"anyOf": [number, {"type": "string", "pattern": f"^{_NUMBER}$"}]}

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        """Durations within ``timedelta``'s range."""
        made = super().timedelta_schema(schema)
        return {**made, "pattern": _DURATION} if made.get("format") == "duration" else made

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Keys are strings in JSON, and those of other types are read from them."""
        made = super().dict_schema(schema)
        names = self._names(schema.get("keys_schema", {}))
        return made if names is None else {**made, "propertyNames": names}

    def _names(self, keys: Mapping[str, Any]) -> JsonSchemaValue | None:
        if keys.get("type") == "enum":
            values = [getattr(member, "value", member) for member in keys["members"]]
            return {"enum": [value if isinstance(value, str) else str(value) for value in values]}
        if "type" not in keys or keys["type"] == "any":
            return None
        written = self.generate_inner(keys)
        match written.get("type"):
            case "integer" if written.keys() <= {"type", "title"}:
                return {"pattern": f"^{_INTEGER}$"}
            case "number" if written.keys() <= {"type", "title"}:
                return {"pattern": f"^{_NUMBER}$"}
            case "boolean":
                return {"enum": ["true", "false"]}
            case "string" if "pattern" in written:
                # Beside patternProperties: keys of other patterns would have any value.
                return {name: value for name, value in written.items() if name not in ("type", "title")}
        return None


def _finite(number: JsonSchemaValue) -> JsonSchemaValue:
    low = {} if number.keys() & {"minimum", "exclusiveMinimum"} else {"minimum": -_LARGEST}
    high = {} if number.keys() & {"maximum", "exclusiveMaximum"} else {"maximum": _LARGEST}
    return {**number, **low, **high}
