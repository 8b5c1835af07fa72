"""JSON Schemas that are deep, wide, or of odd types and numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hostile.cases import Case, family, nested
from maskwright import JsonSchema

DEEP = (150, 900, 10_000, 100_000)
WIDE = (2_000, 50_000)


def schema(make: Any, **options: Any) -> Any:
    return lambda size: JsonSchema(make(size), **options)


def text(make: Any) -> Any:
    """As JSON text: what no walk over Python's objects has seen yet."""
    return lambda size: JsonSchema(make(size))


def wrapped(wrap: Any, inner: Any = None) -> Any:
    return schema(lambda depth: nested(depth, {"type": "integer"} if inner is None else inner, wrap))


def deep() -> Iterator[Case]:
    wraps = {
        "arrays": lambda s: {"type": "array", "items": s},
        "tuples": lambda s: {"type": "array", "prefixItems": [s], "minItems": 1},
        "members": lambda s: {"type": "object", "properties": {"a": s}},
        "required members": lambda s: {"type": "object", "properties": {"a": s}, "required": ["a"]},
        "undeclared members": lambda s: {"additionalProperties": s},
        "patterned members": lambda s: {"patternProperties": {"^a": s}},
        "allOf": lambda s: {"allOf": [s]},
        "anyOf": lambda s: {"anyOf": [s, {"type": "string"}]},
        "oneOf": lambda s: {"oneOf": [s, {"type": "string"}]},
        "not": lambda s: {"not": s},
        "if": lambda s: {"if": s, "then": {"minimum": 2}, "else": {"type": "string"}},
        "contains": lambda s: {"type": "array", "contains": s},
        "propertyNames": lambda s: {"propertyNames": s},
        "dependentSchemas": lambda s: {"dependentSchemas": {"a": s}},
        "unevaluatedProperties": lambda s: {"unevaluatedProperties": s},
        "unevaluatedItems": lambda s: {"unevaluatedItems": s},
        "two members": lambda s: {"properties": {"a": s, "b": s}, "required": ["a", "b"]},
        "allOf twice": lambda s: {"allOf": [s, s]},
        "anyOf twice": lambda s: {"anyOf": [s, s]},
        "not of a member": lambda s: {"not": {"properties": {"a": s}, "required": ["a"]}},
        "enum": lambda s: {"enum": [s]},
        "const": lambda s: {"const": s},
        "default": lambda s: {"default": s},
        "$defs": lambda s: {"$defs": {"a": s}, "$ref": "#/$defs/a"},
        "$id": lambda s: {"$id": "a/", "items": s},
        "unknown keyword": lambda s: {"x-deep": s},
    }
    for name, wrap in wraps.items():
        yield from family(
            f"schemas/deep {name}", wrapped(wrap), DEEP[:3] if name in ("not", "$id") else DEEP[1:3]
        )
    opening = {
        "arrays": "[",
        "objects": '{"a":',
        "schemas": '{"items":',
        "required": '{"required":["a"],"properties":{"a":',
    }
    for name, begin in opening.items():
        closing = {"[": "]", '{"a":': "}", '{"items":': "}"}.get(begin, "}}")
        for inner in ("", "1", "{}"):
            yield from family(
                f"schemas/text of {name} around {inner or 'nothing'}",
                text(lambda n, begin=begin, inner=inner, closing=closing: begin * n + inner + closing * n),
                (900, 200_000),
            )
    yield from family("schemas/text that does not end", text(lambda n: '{"items":' * n), (100_000,))
    yield from family("schemas/deep value", schema(lambda n: {"const": nested(n, 0, lambda v: [v])}), DEEP)
    yield from family(
        "schemas/deep value of objects",
        schema(lambda n: {"enum": [nested(n, 0, lambda v: {"a": v}), 1]}),
        DEEP,
    )
    indented = schema(lambda n: nested(n, {}, lambda s: {"items": s, "type": "array"}), whitespace=2)
    yield from family("schemas/deep and indented", indented, (30, 900))


def wide() -> Iterator[Case]:
    def many(key: str, item: Any, **more: Any) -> Any:
        return schema(lambda n: {key: [item(i) for i in range(n)], **more})

    integers, texts = (lambda i: {"const": i}), (lambda i: {"const": f"text {i}"})
    for key in ("anyOf", "oneOf", "allOf"):
        yield from family(f"schemas/wide {key} of numbers", many(key, integers), WIDE)
        yield from family(f"schemas/wide {key} of texts", many(key, texts), WIDE)
        yield from family(
            f"schemas/wide {key} of types",
            many(key, lambda i: {"type": ["string", "array"], "minLength": i}),
            WIDE,
        )
        member = many(key, lambda i: {"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]})
        yield from family(f"schemas/wide {key} of members", member, (40, 5_000))
        optional = many(key, lambda i: {"properties": {f"p{i}": {"type": "integer"}}})
        yield from family(f"schemas/wide {key} of optional members", optional, (40, 5_000))
        items = many(key, lambda i: {"type": "array", "items": {"multipleOf": i + 1}, "minItems": i})
        yield from family(f"schemas/wide {key} of arrays", items, (30, 3_000))
        bounds = many(key, lambda i: {"minimum": i, "maximum": 2 * i + 7, "type": "number"})
        yield from family(f"schemas/wide {key} of bounds", bounds, (60, 5_000))
        negated = many(
            key, lambda i: {"not": {"properties": {f"p{i}": {"type": "integer"}}, "required": [f"p{i}"]}}
        )
        yield from family(f"schemas/wide {key} of not", negated, (20, 3_000))
        contains = many(key, lambda i: {"type": "array", "contains": {"const": i}})
        yield from family(f"schemas/wide {key} of contains", contains, (12, 17, 400))
    yield from family(
        "schemas/wide enum of numbers", schema(lambda n: {"enum": list(range(n))}), (100_000, 600_000)
    )
    yield from family(
        "schemas/wide enum of texts", schema(lambda n: {"enum": [f"{i:x}" * 9 for i in range(n)]}), (100_000,)
    )
    yield from family(
        "schemas/wide enum of arrays", schema(lambda n: {"enum": [[i, [i]] for i in range(n)]}), WIDE
    )
    yield from family(
        "schemas/wide enum of objects",
        schema(lambda n: {"enum": [{"a": i, "b": {"c": i}} for i in range(n)]}),
        WIDE,
    )
    yield from family(
        "schemas/wide enum beside its opposite",
        schema(lambda n: {"enum": list(range(n)), "not": {"enum": list(range(1, n))}}),
        WIDE,
    )
    yield from family("schemas/one long text", schema(lambda n: {"const": "ab" * n}), (100_000, 3_000_000))
    yield from family(
        "schemas/tuples",
        schema(lambda n: {"prefixItems": [{"const": i} for i in range(n)], "minItems": n}),
        WIDE,
    )
    yield from family(
        "schemas/tuples of unions",
        schema(lambda n: {"prefixItems": [{"enum": list(range(i))} for i in range(1, n)]}),
        (400, 1_500),
    )
    yield from family("schemas/types", schema(lambda n: {"type": ["string", "number"] * n}), (50_000,))
    yield from family(
        "schemas/many definitions",
        schema(
            lambda n: {
                "$defs": {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(n)} | {f"d{n}": {"const": 1}},
                "$ref": "#/$defs/d0",
            }
        ),
        (10_000, 100_000),
    )
    yield from family(
        "schemas/definitions of members",
        schema(
            lambda n: {
                "$defs": {
                    f"d{i}": {"properties": {"a": {"$ref": f"#/$defs/d{(i * 7 + 1) % n}"}}, "required": ["a"]}
                    for i in range(n)
                },
                "$ref": "#/$defs/d0",
            }
        ),
        (10_000,),
    )
    yield from family("schemas/examples", schema(lambda n: {"examples": list(range(n))}), (700_000,))


def numbers() -> Iterator[Case]:
    huge = 10**400
    odd: dict[str, Any] = {
        "minimum huge": {"minimum": huge},
        "maximum minus huge": {"maximum": -huge},
        "between huge": {"type": "integer", "minimum": huge, "maximum": huge + 10**399},
        "between floats": {"minimum": 1e-300, "maximum": 1.0000001e-300},
        "minimum infinite": {"minimum": float("inf")},
        "minimum nan": {"minimum": float("nan")},
        "const nan": {"const": float("nan")},
        "const infinite": {"const": float("-inf")},
        "const huge": {"const": 10**5000},
        "const tiny": {"const": 5e-324},
        "enum huge": {"enum": [huge + i for i in range(500)]},
        "multipleOf huge": {"type": "integer", "multipleOf": 10**300 + 1},
        "multipleOf prime": {"type": "integer", "multipleOf": 16_381},
        "multipleOf prime number": {"type": "number", "multipleOf": 15_991},
        "multipleOf large prime": {"type": "integer", "multipleOf": 1_000_003},
        "multipleOf tiny": {"type": "number", "multipleOf": 1e-308},
        "multipleOf odd": {"type": "number", "multipleOf": 0.123456789},
        "multipleOf zero": {"multipleOf": 0},
        "multipleOf many": {
            "allOf": [{"multipleOf": p} for p in (101, 103, 107, 109, 113, 127)],
            "type": "integer",
        },
        "multipleOf not": {"type": "integer", "not": {"multipleOf": 9_973}},
        "multipleOf not many": {
            "type": "integer",
            "allOf": [{"not": {"multipleOf": p}} for p in range(2, 60)],
        },
        "multipleOf bounds": {"type": "integer", "multipleOf": 9_973, "minimum": 10**30, "maximum": 10**35},
        "multipleOf number bounds": {"multipleOf": 0.37, "minimum": 12345.678, "maximum": 10**12},
        "multipleOf enum": {"enum": list(range(50_000)), "multipleOf": 7},
        "minItems huge": {"type": "array", "minItems": 10**30},
        "maxItems huge": {"type": "array", "maxItems": 10**30},
        "minItems": {"type": "array", "minItems": 10**9},
        "minItems of items": {
            "type": "array",
            "items": {"type": "string", "minLength": 10**8},
            "minItems": 10**8,
        },
        "minLength": {"type": "string", "minLength": 10**9},
        "minLength and pattern": {"type": "string", "minLength": 60_000, "pattern": "^(ab|c)*$"},
        "maxLength and pattern": {"type": "string", "maxLength": 10**9, "pattern": "x.*y.*z"},
        "lengths and format": {"type": "string", "minLength": 3_000, "format": "uri"},
        "minLength of email": {"type": "string", "minLength": 300, "format": "email"},
        "length beside multiples": {
            "type": "string",
            "minLength": 99_999,
            "maxLength": 99_999,
            "pattern": "^(aaa)*$",
        },
        "minProperties": {"type": "object", "minProperties": 100_000},
        "minProperties huge": {"type": "object", "minProperties": 10**9},
        "maxProperties": {"type": "object", "maxProperties": 10**9, "minProperties": 10**6},
        "minContains": {"type": "array", "contains": {"const": 1}, "minContains": 10**6},
        "maxContains": {
            "type": "array",
            "contains": {"type": "integer"},
            "maxContains": 10**6,
            "minItems": 10**6,
        },
        "minContains above": {
            "type": "array",
            "contains": {"const": 1},
            "minContains": 10**6,
            "maxItems": 10**6 - 1,
        },
        "float counts": {"type": "array", "minItems": 1e9, "maxItems": 1e300},
        "counts crossed": {"type": "array", "minItems": 10**8, "maxItems": 10**8 - 1},
        "negative count": {"minLength": -(10**40)},
        "oneOf of bounds": {"oneOf": [{"minimum": i} for i in range(3000)]},
        "oneOf of multiples": {
            "type": "integer",
            "oneOf": [{"multipleOf": p} for p in (2, 3, 5, 7, 11, 13, 17, 19)],
        },
        "anyOf of multiples": {"type": "integer", "anyOf": [{"multipleOf": p} for p in range(1000, 1100)]},
        "allOf of bounds": {"allOf": [{"exclusiveMinimum": i + 0.5} for i in range(50_000)]},
        "items of bounds": {
            "type": "array",
            "items": {"type": "integer", "minimum": 10**35, "maximum": 3 * 10**37 + 7},
            "uniqueItems": True,
        },
    }
    for name, value in odd.items():
        yield Case(f"schemas/numbers: {name}", lambda value=value: JsonSchema(value))
    for digits in (900, 20_000, 2_000_000):
        yield Case(
            f"schemas/text of a number/{digits}", lambda n=digits: JsonSchema('{"const":' + "7" * n + "}")
        )
        yield Case(
            f"schemas/text of a fraction/{digits}",
            lambda n=digits: JsonSchema('{"minimum":0.' + "7" * n + "}"),
        )
        yield Case(
            f"schemas/text of an exponent/{digits}",
            lambda n=digits: JsonSchema('{"maximum":1e' + "9" * n + "}"),
        )
    for digits in (1, 300):
        yield Case(
            f"schemas/max_number_digits/{digits}",
            lambda n=digits: JsonSchema(
                {"type": "number", "multipleOf": 0.01, "minimum": -(10**30)}, max_number_digits=n
            ),
        )


def odd_types() -> Iterator[Case]:
    keywords = [
        "type", "properties", "items", "prefixItems", "required", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "then",
        "pattern", "format", "minimum", "multipleOf", "minLength", "maxItems", "minProperties", "uniqueItems", "contains", "minContains",
        "propertyNames", "patternProperties", "additionalProperties", "dependentRequired", "dependentSchemas", "dependencies",
        "unevaluatedProperties", "unevaluatedItems", "$ref", "$dynamicRef", "$anchor", "$id", "$defs", "$schema", "$vocabulary",
    ]  # fmt: skip
    values = [
        None,
        True,
        -1,
        1e308,
        "",
        "\ud800",
        "\0",
        [],
        [[]],
        {},
        {"\0": {"\ud800": None}},
        [None, 1, "a", {}],
    ]
    for keyword in keywords:
        # All values in one case: each is small, but each has its own branch in a reader.
        def all_of(keyword: str = keyword) -> Any:
            return [JsonSchema({keyword: value}) for value in values]

        yield Case(f"schemas/odd values of {keyword}", all_of)
    others: dict[str, Any] = {
        "number": 5, "list": [], "none": None, "text": "no JSON", "bytes": b"{}", "long text": "[" + "1," * 500_000 + "1]",
        "surrogate key": {"properties": {"\ud800": {"const": 1}}, "required": ["\ud800"]}, "NUL key": {"properties": {"\0": True}, "required": ["\0"]},
        "surrogate text": {"const": "\udfff"}, "NUL text": {"enum": ["\0", "\0" * 5000]}, "surrogate pattern": {"pattern": "\ud800"},
        "surrogates in text": '{"const": "\\ud800\\ud800\\udc00"}', "lone low": '{"const": "\\udc00"}', "NUL in text": '{"const": "\\u0000"}\0',
        "duplicate keys": '{' + ",".join(['"type": "string"'] * 100_000) + "}", "byte order": "\ufeff{}", "long key": {"properties": {"k" * 3_000_000: {"const": 1}}},
        "set": {"enum": {1, 2}}, "object": {"const": object()}, "complex": {"const": 1j}, "keys": {1: 2, None: 3}, "tuple": {"enum": (1, 2)},
        "class": {"type": int}, "astral": {"const": "\U0010ffff" * 3_000, "pattern": "^\U0010ffff+$"},
    }  # fmt: skip
    for name, value in others.items():
        yield Case(f"schemas/odd: {name}", lambda value=value: JsonSchema(value))

    def holding_itself() -> Any:
        value: dict[str, Any] = {"type": "object"}
        value["properties"] = {"a": value, "b": [value]}
        return JsonSchema(value)

    yield Case("schemas/odd: holds itself", holding_itself)
    shared = nested(60, {"type": "integer"}, lambda s: {"properties": {"a": s, "b": s, "c": s}})
    yield Case("schemas/odd: shared 3^60 times", lambda: JsonSchema(shared))
    yield Case(
        "schemas/odd: value shared 2^60 times", lambda: JsonSchema({"const": nested(60, 1, lambda v: [v, v])})
    )
    yield Case(
        "schemas/odd: values in text", lambda: JsonSchema(json.dumps({"enum": [[0] * 90_000, [1] * 90_000]}))
    )


def cases() -> Iterator[Case]:
    yield from deep()
    yield from wide()
    yield from numbers()
    yield from odd_types()
