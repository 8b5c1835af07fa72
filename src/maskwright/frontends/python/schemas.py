"""The JSON Schemas of Python types, narrowed to texts that pydantic reads back.

What pydantic writes as a schema is wider than what it reads: it says nothing about keys that are numbers, names formats
that no specification has (``ipv4network``), and takes any text for a ``Decimal``.  Here each gets a pattern or bounds.
What no text says (a class), or what depends on the machine (a file that exists), is a ``GrammarError``.
Imported when a Python type is read, with pydantic.
"""

from __future__ import annotations

import datetime
import math
import zoneinfo
from collections.abc import Hashable, Iterable
from typing import Any

from pydantic import ByteSize
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import SchemaValidator, ValidationError, to_json

from maskwright.errors import GrammarError
from maskwright.frontends.json_schema.texts.formats import PATTERNS
from maskwright.frontends.python.constraints import constrained, constraint_of, without_keywords
from maskwright.frontends.python.embedded_json import with_embedded_json
from maskwright.frontends.python.floats import LARGEST, finite, strictly, with_places
from maskwright.frontends.python.patterns import ASCII_TEXT, as_read
from maskwright.frontends.python.ranges import integers
from maskwright.frontends.python.times import date_pattern, datetime_pattern, duration_pattern, time_pattern
from maskwright.frontends.python.urls import EMAIL, NAMED_EMAIL, url

_INTEGER = r"(?:0|-?[1-9][0-9]{0,39})"
_NUMBER = r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,40})?"
_DURATION = r"^[^0-9]*(?:[0-9]{1,6}[^0-9]+)*$"
"""Of so few digits that no sum has too many days."""
_REAL = r"(?:0|[1-9][0-9]{0,15})(?:\.[0-9]{1,16})?"
_COMPLEX = f"^-?{_REAL}(?:j|[+-]{_REAL}j)?$"
_FRACTION = r"^-?(?:0|[1-9][0-9]{0,39})(?:/[1-9][0-9]{0,39}|\.[0-9]{1,40})?$"
_UNITS = "|".join(
    sorted(
        {spelled for unit in ByteSize.byte_sizes for spelled in (unit, unit.upper())}
        | {"kB", "KiB", "MiB", "GiB", "TiB"}
    )
)
_BYTE_SIZE = rf"^[0-9]{{1,12}}(?:\.[0-9]{{1,3}})? ?(?:{_UNITS})?$"
_SCALARS = {"type": ["string", "number", "boolean", "null"]}
_UNHASHABLE = frozenset(
    {"list", "dict", "set", "deque", "typed-dict", "ordered-dict", "counter", "generator"}
)
_READ_AS_WRITTEN = frozenset({"str", "int", "bool", "none", "date", "enum", "literal"})
"""Types of which two texts are two values."""
_SECOND = datetime.timedelta(seconds=1)
_DAY = datetime.timedelta(days=1)
_LEAD = datetime.timedelta(hours=1)
"""What is in the future when a type is compiled should still be so when its values are read."""
_LONGEST_KEY = 100
"""Of keys with a pattern and a length: the automaton of both has a state for each pair."""
_CONSTRAINTS = ("max_digits", "decimal_places", "multiple_of", "ge", "gt", "le", "lt")
_MOST_DIGITS_OF_DECIMALS = 28

_REFUSED = {
    "PathType.validate_file": "FilePath: which files exist is no matter of texts; use pathlib.Path, or a Literal of names",
    "PathType.validate_directory": "DirectoryPath: which directories exist is no matter of texts; use pathlib.Path, or a Literal",
    "PathType.validate_new": "NewPath: which files exist is no matter of texts; use pathlib.Path",
    "PathType.validate_socket": "SocketPath: which sockets exist is no matter of texts; use pathlib.Path, or a Literal of names",
    "import_string": "ImportString: what can be imported is no matter of texts; use an Enum or a Literal of names",
    "pattern_bytes_validator": "re.Pattern[bytes] is never read from JSON; use re.Pattern[str]",
}
"""Validators of pydantic's own that no text is sure to pass, by their names."""


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


_IPV4_NETWORK, _IPV6_NETWORK = "|".join(_ipv4_networks()), "|".join(_ipv6_networks())
_IPV4_INTERFACE = (
    r"(?:(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])(?:\.(?!/)|(?=/))){4}/(?:3[0-2]|[12]?[0-9])"
)
_IPV6_INTERFACE = r"(?:[0-9a-f]{1,4}:){7}[0-9a-f]{1,4}/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9])"


def _uuid(version: int) -> str:
    return rf"^[0-9a-f]{{8}}-[0-9a-f]{{4}}-{version}[0-9a-f]{{3}}-[89ab][0-9a-f]{{3}}-[0-9a-f]{{12}}$"


def _ascii_base64(digits: str) -> str:
    """Base64 of ASCII texts, with these 64 digits: the first bit of each octet is 0."""
    first, second, third = (
        "[" + "".join(digit for n, digit in enumerate(digits) if not n & bit).replace("-", r"\-") + "]"
        for bit in (32, 8, 2)
    )
    any_digit = f"[{digits[:62]}{digits[62:].replace('-', chr(92) + '-')}]"
    two, one = f"{first}{second}[AEIMQUYcgkosw048]=", f"{first}[AQgw]=="
    return f"^(?:{first}{second}{third}{any_digit})*(?:{two}|{one})?$"


_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_ASCII_BASE64 = {"base64": _ascii_base64(_DIGITS + "+/"), "base64url": _ascii_base64(_DIGITS + "-_")}
_PATTERNS = {
    "ipv4network": f"^(?:{_IPV4_NETWORK})$",
    "ipv6network": f"^(?:{_IPV6_NETWORK})$",
    "ipv4interface": f"^{_IPV4_INTERFACE}$",
    "ipv6interface": f"^{_IPV6_INTERFACE}$",
    "ipvanyaddress": f"^(?:{PATTERNS['ipv4']}|{PATTERNS['ipv6']})$",
    "ipvanynetwork": f"^(?:{_IPV4_NETWORK}|{_IPV6_NETWORK})$",
    "ipvanyinterface": f"^(?:{_IPV4_INTERFACE}|{_IPV6_INTERFACE})$",
    "base64": "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9+/][AQgw]==)?$",
    "base64url": "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}[AEIMQUYcgkosw048]=|[A-Za-z0-9_-][AQgw]==)?$",
    "email": EMAIL,
    "name-email": NAMED_EMAIL,
    **{f"uuid{version}": _uuid(version) for version in range(1, 9)},
}
"""Of formats that are pydantic's own, or that it reads in its own way."""


class ReadableSchema(GenerateJsonSchema):
    """Writes schemas whose instances pydantic reads, as far as a schema can say it."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def generate(self, schema: Any, mode: Any = "validation") -> JsonSchemaValue:
        """The whole schema; raises ``GrammarError`` for a type of which no text is sure to be read."""
        self._parts: dict[str, Any] = {}
        made: JsonSchemaValue = with_embedded_json(super().generate(schema, mode))
        return made

    def definitions_schema(self, schema: Any) -> JsonSchemaValue:
        """Parts by name, which constraints that stand behind a reference look up."""
        self._parts |= {part["ref"]: part for part in schema["definitions"]}
        return super().definitions_schema(schema)

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """A schema for one part of a type."""
        kind = schema.get("type", "")
        if kind.startswith("function-"):
            name = getattr(schema["function"]["function"], "__qualname__", "")
            if name in _REFUSED:
                raise GrammarError(_REFUSED[name])
        made = super().generate_inner(without_keywords(schema))
        if "ref" not in schema or "$ref" not in made:
            return self._of_format(made, schema)
        # What has a name of its own stands there, and here only what refers to it.
        name = self.json_to_defs_refs[made["$ref"]]
        if name in self.definitions:
            self.definitions[name] = self._of_format(self.definitions[name], schema)
        return made

    @staticmethod
    def _of_format(made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        form = made.get("format", "")
        inner = schema
        while inner.get("type") == "function-after":
            inner = inner["schema"]
        if inner is not schema and form in _ASCII_BASE64 and inner.get("type") == "str":
            return {**made, "pattern": _ASCII_BASE64[form]}
        if form == "zoneinfo":
            return {"type": "string", "enum": sorted(zoneinfo.available_timezones())}
        pattern = _PATTERNS.get(form)
        if pattern is None or "pattern" in made:
            return made
        # Where the pattern is narrower than the format, the format would only make the automaton greater.
        kept = {name: value for name, value in made.items() if name != "format" or form not in PATTERNS}
        return {**kept, "pattern": pattern}

    def _get_alias_name(self, field: Any, name: str) -> str:
        """The first alias that is one name; a path leads into another member."""
        alias = field.get("validation_alias")
        if not isinstance(alias, list):
            return super()._get_alias_name(field, name)
        paths = alias if isinstance(alias[0], list) else [alias]
        for path in paths:
            if len(path) == 1 and isinstance(path[0], str):
                return path[0]
        raise GrammarError(
            f"{name} is read at the path {paths[0]}, inside of another member; give it an alias that is one name"
        )

    def is_subclass_schema(self, schema: Any) -> JsonSchemaValue:
        """A class cannot be written."""
        raise GrammarError(
            f"type[{schema['cls'].__name__}]: no text is read as a class; use an Enum or a Literal of names"
        )

    def url_schema(self, schema: Any) -> JsonSchemaValue:
        """URLs of the schemes, as pydantic's reader has them."""
        return self._url(schema, several_hosts=False)

    def multi_host_url_schema(self, schema: Any) -> JsonSchemaValue:
        """The same with a list of hosts."""
        return self._url(schema, several_hosts=True)

    def _url(self, schema: Any, *, several_hosts: bool) -> JsonSchemaValue:
        made: JsonSchemaValue = {
            "type": "string",
            "pattern": url(
                schema.get("allowed_schemes"),
                host_required=bool(schema.get("host_required")),
                several_hosts=several_hosts,
            ),
        }
        if schema.get("max_length") is not None:
            made["maxLength"] = schema["max_length"]
        return made

    def complex_schema(self, schema: Any) -> JsonSchemaValue:
        """As Python writes complex numbers, without exponents."""
        return {"type": "string", "pattern": _COMPLEX}

    def fraction_schema(self, schema: Any) -> JsonSchemaValue:
        """A number, or a quotient."""
        made = super().fraction_schema(schema)
        if "anyOf" not in made:
            return made
        number, text = made["anyOf"]
        return {**made, "anyOf": [finite(number), {**text, "pattern": _FRACTION}]}

    def bytes_schema(self, schema: Any) -> JsonSchemaValue:
        """Bytes are read from UTF-8, where their number is bounded from ASCII; or as the model's ``val_json_bytes`` says."""
        made = super().bytes_schema(schema)
        form = self._config.config_dict.get("val_json_bytes", "utf8")
        if form == "hex":
            bounds = f"{{{made.get('minLength', 0)},{made.get('maxLength', '')}}}"
            return {"type": "string", "pattern": f"^(?:[0-9A-Fa-f]{{2}}){bounds}$"}
        if form == "base64":
            if "minLength" in made or "maxLength" in made:
                raise GrammarError("bytes that are written in Base64 cannot have a bounded length here")
            return {"type": "string", "pattern": _PATTERNS["base64url"]}
        if "maxLength" in made:
            made["pattern"] = ASCII_TEXT
        return made

    def enum_schema(self, schema: Any) -> JsonSchemaValue:
        """An ``Enum`` of which every member is read from JSON."""
        self._check_read(schema, [member.value for member in schema["members"]], schema["cls"].__name__)
        return super().enum_schema(schema)

    def literal_schema(self, schema: Any) -> JsonSchemaValue:
        """A ``Literal`` of which every value is read from JSON."""
        values = [getattr(value, "value", value) for value in schema["expected"]]
        self._check_read(schema, values, "Literal")
        return super().literal_schema(schema)

    @staticmethod
    def _check_read(schema: Any, values: list[Any], name: str) -> None:
        plain = {
            key: value for key, value in schema.items() if key not in ("metadata", "ref", "serialization")
        }
        reader = SchemaValidator(plain)
        for value in values:
            try:
                reader.validate_json(to_json(value))
            except ValidationError:
                raise GrammarError(
                    f"{name}: {value!r} is not read from JSON; use text, numbers, booleans or None as values"
                ) from None

    def str_schema(self, schema: Any) -> JsonSchemaValue:
        """Where blanks are stripped before lengths are looked at, none are written at the ends; patterns as pydantic reads them."""
        made = super().str_schema(schema)
        beside = []
        if schema.get("pattern") is not None:
            engine = schema.get("regex_engine", self._config.config_dict.get("regex_engine", "rust-regex"))
            made["pattern"], *narrower = as_read(schema["pattern"], rust=engine == "rust-regex")
            beside += [{"pattern": pattern} for pattern in narrower]
        stripped = schema.get("strip_whitespace", self._config.config_dict.get("str_strip_whitespace"))
        if stripped and made.keys() & {"minLength", "pattern"}:
            beside.append({"pattern": r"^(?:[^\s\x85](?:[^]*[^\s\x85])?)?$"})
        return {**made, "allOf": [*made.get("allOf", []), *beside]} if beside else made

    def date_schema(self, schema: Any) -> JsonSchemaValue:
        """Days between bounds; past and future are those of today."""
        low, high = _bounds(schema, _DAY)
        if schema.get("now_op"):
            today = datetime.datetime.now(_zone(schema)).date()
            low, high = _and_now(schema, low, high, today - _DAY, today + _DAY)
        made = super().date_schema(schema)
        return made if low is high is None else _between(made, date_pattern(low, high), schema)

    def datetime_schema(self, schema: Any) -> JsonSchemaValue:
        """Moments between bounds, without leap seconds; past and future are those of now."""
        offset = schema.get("tz_constraint") != "naive"
        names = [name for name in ("ge", "gt", "le", "lt") if schema.get(name) is not None]
        bounds = [schema[name] for name in names]
        now = datetime.datetime.now(_zone(schema)).replace(microsecond=0)
        if not offset:
            # A clock without an offset is compared with that of a bound.
            schema = {**schema, **{n: schema[n].replace(tzinfo=None) for n in names}}
            now = now.replace(tzinfo=None)
        elif len({bound.tzinfo is None for bound in [*bounds, *([now] if schema.get("now_op") else [])]}) > 1:
            raise GrammarError(
                "a datetime between bounds with an offset and others without; give all of them one"
            )
        low, high = _bounds(schema, _SECOND)
        if schema.get("now_op"):
            low, high = _and_now(schema, low, high, now - _SECOND, now + _LEAD)
        made = super().datetime_schema(schema) if offset else {"type": "string"}
        return _between(made, datetime_pattern(low, high, offset=offset), schema)

    def time_schema(self, schema: Any) -> JsonSchemaValue:
        """Clock times between bounds, without leap seconds."""
        # Bounds without an offset are for times without one.
        bounds = [schema.get(name) for name in ("ge", "gt", "le", "lt")]
        naive = schema.get("tz_constraint") == "naive" or any(
            b is not None and b.tzinfo is None for b in bounds
        )
        if not naive and any(b is not None for b in bounds):
            raise GrammarError("a time between bounds with an offset; use bounds without one")
        low, high = _time_bounds(schema)
        made = {"type": "string"} if naive else super().time_schema(schema)
        return _between(made, time_pattern(low, high, offset=not naive), schema)

    def timedelta_schema(self, schema: Any) -> JsonSchemaValue:
        """Durations within ``timedelta``'s range, and within bounds."""
        made = super().timedelta_schema(schema)
        if schema.get("multiple_of") is not None:
            raise GrammarError("a duration that is a multiple of another one cannot be written; use a number")
        low, high = _bounds(schema, _SECOND)
        if low is high is None:
            return {**made, "pattern": _DURATION}
        return _between({"type": "string"}, duration_pattern(low, high), schema)

    def union_schema(self, schema: Any) -> JsonSchemaValue:
        """A union; that of ``ByteSize`` with the units that it knows."""
        made = super().union_schema(schema)
        if schema.get("custom_error_type") == "byte_size":
            return {"anyOf": [{"type": "string", "pattern": _BYTE_SIZE}, {"type": "integer", "minimum": 0}]}
        return made

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        """A union by a discriminator, which pydantic wants to see even where the member has a default."""
        made = super().tagged_union_schema(schema)
        if "discriminator" not in made:
            return made
        return {**made, "required": [made["discriminator"]["propertyName"]]}

    def function_after_schema(self, schema: Any) -> JsonSchemaValue:
        """What is checked after it was read; pydantic's own checks are kept."""
        made = super().function_after_schema(schema)
        return self._constrained(made, schema) if constraint_of(schema) else made

    def _constrained(self, made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        return constrained(made, schema, self._parts, self._config.config_dict)

    def chain_schema(self, schema: Any) -> JsonSchemaValue:
        """Steps; of ``Hashable``, what JSON has of it."""
        if schema["steps"][-1].get("cls") is Hashable:
            return dict(_SCALARS)
        if constraint_of(schema):
            *before, last = schema["steps"]
            made = self._constrained(self.generate_inner({"type": "chain", "steps": before}), schema)
            return {"allOf": [made, self.generate_inner(last)]}
        return super().chain_schema(schema)

    def set_schema(self, schema: Any) -> JsonSchemaValue:
        """Sets, of what is hashable."""
        return self._hashable(schema, super().set_schema(schema))

    def frozenset_schema(self, schema: Any) -> JsonSchemaValue:
        """Frozen sets, of what is hashable."""
        return self._hashable(schema, super().frozenset_schema(schema))

    def _hashable(self, schema: Any, made: JsonSchemaValue) -> JsonSchemaValue:
        items = schema.get("items_schema", {"type": "any"})
        if items["type"] in _UNHASHABLE:
            raise GrammarError(
                f"a {schema['type']} holds no {items['type']}: it has no hash; use a list of them"
            )
        if schema.get("min_length", 0) > 1:
            self._check_distinct(schema, items)
        return {**made, "items": dict(_SCALARS)} if items["type"] == "any" else made

    def _check_distinct(self, schema: Any, part: Any) -> None:
        """Raise unless texts that differ are read as values that differ."""
        stripped = part.get("strip_whitespace", self._config.config_dict.get("str_strip_whitespace"))
        values = part.get("expected", ())
        if (
            part["type"] not in _READ_AS_WRITTEN
            or (part["type"] == "str" and stripped)
            # 1 and True are one value.
            or len(set(values)) < len(values)
        ):
            raise GrammarError(
                f"a {schema['type']} with at least {schema['min_length']} values: different texts may be read as one {part['type']}, "
                "which makes too few; use a list, or min_length of at most 1"
            )

    def float_schema(self, schema: Any) -> JsonSchemaValue:
        """Floats between bounds as a reader has them; those that must be finite are bounded."""
        made = strictly(super().float_schema(schema))
        return made if schema.get("allow_inf_nan") is not False else finite(made)

    def decimal_schema(self, schema: Any) -> JsonSchemaValue:
        """A number; without constraints a text as well, which has all digits where floats do not."""
        bounds = {
            name: float(schema[name]) for name in ("multiple_of", "ge", "gt", "le", "lt") if name in schema
        }
        core: Any = {"type": "float", **bounds}
        number = strictly(super().float_schema(core))
        digits, places = schema.get("max_digits"), schema.get("decimal_places")
        if digits is not None and (digits == 0 or (places or 0) > digits):
            raise GrammarError(
                f"no Decimal is sure to be read: decimal_places is {places}, and max_digits {digits}"
            )
        if digits is not None and places is None:
            # As many behind the point as are left by those before it.
            most = min(digits, _MOST_DIGITS_OF_DECIMALS)
            return {"anyOf": [with_places(number, most, behind) for behind in range(most + 1)]}
        if places is not None:
            number = with_places(number, digits, places)
            if places == digits:
                # To pydantic, 0 is a digit before the point.
                number = {**number, "not": {"const": 0}}
        number = finite(number)
        if any(schema.get(name) is not None for name in _CONSTRAINTS):
            return number
        return {"anyOf": [number, {"type": "string", "pattern": f"^{_NUMBER}$"}]}

    def dict_schema(self, schema: Any) -> JsonSchemaValue:
        """Keys are strings in JSON, and those of other types are read from them."""
        return self._keyed(schema, super().dict_schema(schema))

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """The same of an ``OrderedDict``."""
        return self._keyed(schema, super().ordered_dict_schema(schema))

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        """The same of a ``Counter``."""
        return self._keyed(schema, super().counter_schema(schema))

    def _keyed(self, schema: Any, made: JsonSchemaValue) -> JsonSchemaValue:
        keys = schema.get("keys_schema", {"type": "any"})
        if keys["type"] == "any":
            return made
        if schema.get("min_length", 0) > 1:
            self._check_distinct(schema, keys)
        names = _key_names(self.resolve_ref_schema(self.generate_inner(keys)))
        if keys["type"] in ("enum", "literal"):
            plain = {**keys, "metadata": {}}
            reader = SchemaValidator({"type": "dict", "keys_schema": plain})
            read = [name for name in names["enum"] if _is_read(reader, {name: None})]
            if not read:
                raise GrammarError(
                    f"keys of a dict are text in JSON, and pydantic reads none of {names['enum']} as a key; use text as values"
                )
            names = {"enum": read}
        # Beside patternProperties: keys of other patterns would have any value.
        return made if names is True else {**made, "propertyNames": names}


def _bounds(schema: Any, step: datetime.timedelta) -> tuple[Any, Any]:
    """The inclusive bounds of a type with an order, in whole steps; None: none."""
    low, high = schema.get("ge"), schema.get("le")
    if schema.get("gt") is not None:
        low = schema["gt"] + step if low is None else max(low, schema["gt"] + step)
    if schema.get("lt") is not None:
        high = schema["lt"] - step if high is None else min(high, schema["lt"] - step)
    return _whole(low, step), high


def _whole(low: Any, step: datetime.timedelta) -> Any:
    """A lower bound rounded up to seconds; texts of an upper one are cut there anyway."""
    parts = getattr(low, "microsecond", 0) or getattr(low, "microseconds", 0)
    return low + datetime.timedelta(microseconds=1_000_000 - parts) if parts else low


def _time_bounds(schema: Any) -> tuple[datetime.time | None, datetime.time | None]:
    """The bounds of a ``time``, which has no arithmetic of its own."""
    moments = {
        name: datetime.datetime.combine(datetime.date(2000, 1, 2), schema[name])
        for name in ("ge", "gt", "le", "lt")
        if schema.get(name) is not None
    }
    low, high = _bounds(moments, _SECOND)
    ends = datetime.datetime(2000, 1, 2), datetime.datetime(2000, 1, 2, 23, 59, 59)
    if (low is not None and low > ends[1]) or (high is not None and high < ends[0]):
        return datetime.time(1), datetime.time(0)
    return None if low is None else low.time(), None if high is None else high.time()


def _zone(schema: Any) -> datetime.tzinfo:
    seconds = schema.get("now_utc_offset")
    if seconds is not None:
        return datetime.timezone(datetime.timedelta(seconds=seconds))
    here = datetime.datetime.now().astimezone().tzinfo
    assert here is not None
    return here


def _and_now(schema: Any, low: Any, high: Any, past: Any, future: Any) -> tuple[Any, Any]:
    """Bounds, and those of what is in the past or in the future: up to ``past``, or from ``future`` on."""
    if schema["now_op"] == "past":
        return low, past if high is None else min(high, past)
    return future if low is None else max(low, future), high


def _between(made: JsonSchemaValue, pattern: str | None, schema: Any) -> JsonSchemaValue:
    if pattern is None:
        raise GrammarError(f"no {schema['type']} lies between the bounds")
    return {**made, "pattern": pattern}


def _key_names(written: JsonSchemaValue) -> Any:
    """The schema of the names of members that are read as keys of a type; ``written``: its values' schema."""
    # Bounds that are there to keep floats finite mean nothing to what is written here.
    written = {
        name: value
        for name, value in written.items()
        if not (name in ("minimum", "maximum") and abs(value) >= LARGEST)
    }
    for name in ("anyOf", "oneOf"):
        if name in written:
            branches = [_key_names(branch) for branch in written[name] if branch.get("type") != "null"]
            return {"anyOf": branches}
    if "const" in written or "enum" in written:
        values = written.get("enum", [written.get("const")])
        # Not null and what has parts: of such a value there is no text that is a key.
        keys = [
            str(value)
            for value in values
            if isinstance(value, (str, int, float)) and not isinstance(value, bool)
        ]
        if not keys:
            raise GrammarError(f"keys of a dict are text in JSON, and none is read as one of {values}")
        return {"enum": keys}
    match written.get("type"):
        case "string" if "contentSchema" not in written:
            kept = {name: value for name, value in written.items() if name not in ("type", "title")}
            if "pattern" in kept and "maxLength" in kept:
                kept["maxLength"] = min(kept["maxLength"], _LONGEST_KEY)
            return kept or True
        case "integer" if written.keys() <= {
            "type",
            "title",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
        }:
            low, high = written.get("minimum"), written.get("maximum")
            if "exclusiveMinimum" in written:
                low = max(written["exclusiveMinimum"] + 1, low if low is not None else -math.inf)
            if "exclusiveMaximum" in written:
                high = min(written["exclusiveMaximum"] - 1, high if high is not None else math.inf)
            pattern = integers(low, high)
            if pattern is not None:
                return {"pattern": f"^{pattern}$"}
        case "number" if written.keys() <= {"type", "title"}:
            return {"pattern": f"^{_NUMBER}$"}
        case "boolean":
            return {"enum": ["true", "false"]}
    shown = {name: value for name, value in written.items() if name != "title"}
    raise GrammarError(f"keys of a dict are text in JSON, and none is read as {shown}; use a list of pairs")


def _is_read(reader: SchemaValidator, value: Any) -> bool:
    try:
        reader.validate_json(to_json(value))
    except ValidationError:
        return False
    return True
