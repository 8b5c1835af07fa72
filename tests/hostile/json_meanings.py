"""JSON Schemas whose keywords multiply: objects and arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hostile.cases import Case, family, nested
from maskwright import JsonSchema


def schema(make: Any, **options: Any) -> Any:
    return lambda size: JsonSchema(make(size), **options)


def objects() -> Iterator[Case]:
    members = schema(lambda n: {"properties": {f"member {i}": {"type": "integer"} for i in range(n)}})
    yield from family("objects/members", members, (10_000, 100_000))
    required = schema(
        lambda n: {
            "properties": {f"m{i}": {"type": "integer"} for i in range(n)},
            "required": [f"m{i}" for i in range(n)],
        }
    )
    yield from family("objects/required members", required, (10_000, 100_000))
    anyhow = schema(
        lambda n: {
            "properties": {f"m{i}": {"type": "integer"} for i in range(n)},
            "required": [f"m{i}" for i in range(0, n, 2)],
        },
        property_order="any",
    )
    yield from family("objects/members in any order", anyhow, (30, 1_000, 20_000))
    undeclared = schema(
        lambda n: {"required": [f"m{i}" for i in range(n)], "additionalProperties": {"type": "integer"}}
    )
    yield from family("objects/required, not declared", undeclared, (20, 5_000))
    yield from family(
        "objects/names of one letter",
        schema(lambda n: {"propertyNames": {"pattern": "^[a-z]$"}, "minProperties": n}),
        (26, 27),
    )
    yield from family(
        "objects/names of two letters",
        schema(lambda n: {"propertyNames": {"pattern": "^[a-z]{2}$"}, "minProperties": n}),
        (676, 677),
    )
    yield from family(
        "objects/names of three letters",
        schema(lambda n: {"propertyNames": {"pattern": "^[a-z]{3}$"}, "minProperties": n}),
        (17_576, 17_577),
    )
    yield from family(
        "objects/listed names",
        schema(lambda n: {"propertyNames": {"enum": [f"n{i}" for i in range(n)]}, "minProperties": n}),
        (300, 20_000),
    )
    patterns = schema(lambda n: {"patternProperties": {f"a.*{i}": {"multipleOf": i + 1} for i in range(n)}})
    yield from family("objects/overlapping patterns", patterns, (4, 8, 14, 60))
    counted = schema(
        lambda n: {"patternProperties": {f"^[ab]*a[ab]{{{i}}}$": {"const": i} for i in range(n)}}
    )
    yield from family("objects/exploding patterns", counted, (6, 12, 25))
    disjoint = schema(
        lambda n: {
            "patternProperties": {f"^p{i}_": {"const": i} for i in range(n)},
            "additionalProperties": False,
        }
    )
    yield from family("objects/disjoint patterns", disjoint, (100, 2_000))
    named = schema(
        lambda n: {
            "properties": {f"p{i}": {"type": "string"} for i in range(n)},
            "patternProperties": {"^p.*7$": {"minLength": 3}, "^p1": {"pattern": "x"}},
        }
    )
    yield from family("objects/members under patterns", named, (300, 10_000))
    dependent = schema(
        lambda n: {
            "properties": {f"p{i}": {} for i in range(n)},
            "dependentRequired": {f"p{i}": [f"p{(i * 3 + 1) % n}"] for i in range(n)},
        }
    )
    yield from family("objects/dependentRequired", dependent, (12, 40, 2_000))
    schemas = schema(
        lambda n: {
            "dependentSchemas": {
                f"p{i}": {"properties": {f"p{i + 1}": {"const": i}}, "required": [f"p{i + 1}"]}
                for i in range(n)
            }
        }
    )
    yield from family("objects/dependentSchemas", schemas, (8, 14, 30, 1_000))
    free = schema(lambda n: {"dependentSchemas": {f"p{i}": {"minProperties": i} for i in range(n)}})
    yield from family("objects/dependentSchemas of counts", free, (8, 16, 300))
    conditions = schema(
        lambda n: {
            "allOf": [
                {"if": {"properties": {f"p{i}": {"const": 1}}}, "then": {"required": [f"q{i}"]}}
                for i in range(n)
            ]
        }
    )
    yield from family("objects/conditions", conditions, (6, 14, 40, 2_000))
    chained = schema(
        lambda n: nested(
            n,
            {"const": 0},
            lambda s: {"if": {"properties": {"k": s}}, "then": {"required": ["k"]}, "else": s},
        )
    )
    yield from family("objects/chained conditions", chained, (6, 12, 60))
    product = schema(
        lambda n: {
            "allOf": [
                {"anyOf": [{"properties": {f"p{i}": {"const": j}}, "required": [f"p{i}"]} for j in range(4)]}
                for i in range(n)
            ]
        }
    )
    yield from family("objects/anyOf under allOf", product, (4, 8, 30, 500))
    one_of = schema(
        lambda n: {
            "allOf": [
                {
                    "oneOf": [
                        {"properties": {f"p{i}": {"minimum": j}}, "required": [f"p{i}"]} for j in range(3)
                    ]
                }
                for i in range(n)
            ]
        }
    )
    yield from family("objects/oneOf under allOf", one_of, (3, 7, 30, 300))
    shared = schema(
        lambda n: {
            "oneOf": [
                {
                    "properties": {"a": {"minimum": i}, "b": {"maximum": -i}, "c": {"minLength": i}},
                    "required": ["a"],
                }
                for i in range(n)
            ]
        }
    )
    yield from family("objects/oneOf of shared members", shared, (6, 16, 33, 500))
    overlap = schema(lambda n: {"oneOf": [{"required": [f"p{i}", f"p{(i + 1) % n}"]} for i in range(n)]})
    yield from family("objects/oneOf of required", overlap, (5, 14, 31, 400))
    any_required = schema(
        lambda n: {
            "anyOf": [{"required": [f"p{i}", f"p{(i * 5 + 2) % n}"]} for i in range(n)],
            "minProperties": n // 2,
        }
    )
    yield from family("objects/anyOf of required", any_required, (10, 33, 400))
    negated = schema(lambda n: {"not": {"anyOf": [{"required": [f"p{i}"]} for i in range(n)]}})
    yield from family("objects/none of many", negated, (100, 5_000))
    not_all = schema(
        lambda n: {
            "not": {"properties": {f"p{i}": {"type": "integer"} for i in range(n)}, "required": ["p0"]}
        }
    )
    yield from family("objects/not all of many", not_all, (10, 33, 1_000))
    discriminated = schema(
        lambda n: {
            "oneOf": [
                {
                    "properties": {
                        "kind": {"const": f"k{i}"},
                        **{f"m{j}": {"type": "string"} for j in range(i % 30)},
                    },
                    "required": ["kind"],
                }
                for i in range(n)
            ]
        }
    )
    yield from family("objects/discriminated", discriminated, (500, 3_000))
    optional = schema(
        lambda n: {
            "oneOf": [{"properties": {"kind": {"const": f"k{i}"}, "v": {"minimum": i}}} for i in range(n)]
        }
    )
    yield from family("objects/optional discriminator", optional, (8, 18, 40, 300))
    unevaluated = schema(
        lambda n: {
            "anyOf": [{"properties": {f"p{i}": {"const": i}}} for i in range(n)],
            "unevaluatedProperties": False,
        }
    )
    yield from family("objects/unevaluatedProperties", unevaluated, (5, 10, 16, 200))
    both = schema(
        lambda n: {
            "allOf": [
                {"if": {"required": [f"p{i}"]}, "then": {"properties": {f"q{i}": {}}}} for i in range(n)
            ],
            "unevaluatedProperties": {"type": "null"},
        }
    )
    yield from family("objects/unevaluatedProperties of conditions", both, (4, 9, 16, 200))
    nest = schema(
        lambda n: nested(
            n,
            {"properties": {"z": {}}},
            lambda s: {
                "anyOf": [s, {"properties": {"y": {}}, "required": ["y"]}],
                "unevaluatedProperties": False,
            },
        )
    )
    yield from family("objects/nested unevaluatedProperties", nest, (4, 12, 100))
    counts = schema(
        lambda n: {
            "minProperties": n,
            "maxProperties": n,
            "patternProperties": {"^[a-m]": {"type": "integer"}, "^[n-z]": {"type": "string"}},
            "not": {"patternProperties": {"^a": {"const": 1}}},
        }
    )
    yield from family("objects/counts beside opposites", counts, (30, 3_000))
    indented = schema(
        lambda n: {
            "properties": {f"p{i}": {"properties": {f"q{j}": {} for j in range(30)}} for i in range(n)}
        },
        whitespace=2,
    )
    yield from family("objects/indented", indented, (30, 1_000))
    escaped = schema(
        lambda n: {
            "properties": {'é\n\t"\\😀' * 30 + str(i): {"const": '\n"😀' * 200} for i in range(n)},
            "required": [],
            "additionalProperties": False,
        },
        escapes="any",
    )
    yield from family("objects/escaped names", escaped, (100, 3_000))
    blanks = schema(
        lambda n: {"properties": {f"p{i}": {"type": "integer"} for i in range(n)}},
        whitespace="flexible",
        max_whitespace=256,
    )
    yield from family("objects/flexible white space", blanks, (10, 1_000))


def arrays() -> Iterator[Case]:
    yield from family(
        "arrays/unique of few",
        schema(lambda n: {"uniqueItems": True, "items": {"enum": list(range(n))}, "minItems": n}),
        (10, 300, 3_000),
    )
    yield from family(
        "arrays/unique of too few",
        schema(lambda n: {"uniqueItems": True, "items": {"enum": list(range(n))}, "minItems": n + 1}),
        (10, 300, 3_000),
    )
    yield from family(
        "arrays/unique numbers",
        schema(lambda n: {"uniqueItems": True, "items": {"type": "integer"}, "minItems": n}),
        (1_000, 1_000_000),
    )
    yield from family(
        "arrays/unique numbers between",
        schema(
            lambda n: {
                "uniqueItems": True,
                "items": {"type": "integer", "minimum": 1, "maximum": n},
                "minItems": n,
            }
        ),
        (50, 2_000),
    )
    yield from family(
        "arrays/unique and multiples",
        schema(
            lambda n: {
                "uniqueItems": True,
                "items": {"multipleOf": 0.5, "minimum": 0, "maximum": n},
                "minItems": 2 * n,
            }
        ),
        (20, 600),
    )
    yield from family(
        "arrays/unique booleans in arrays",
        schema(
            lambda n: {
                "uniqueItems": True,
                "minItems": 2**n,
                "items": {"type": "array", "items": {"type": "boolean"}, "minItems": n, "maxItems": n},
            }
        ),
        (4, 8, 11),
    )
    yield from family(
        "arrays/unique objects",
        schema(
            lambda n: {
                "uniqueItems": True,
                "minItems": 3**n,
                "items": {
                    "properties": {f"p{i}": {"type": "boolean"} for i in range(n)},
                    "additionalProperties": False,
                },
            }
        ),
        (3, 6),
    )
    yield from family(
        "arrays/unique and contains",
        schema(
            lambda n: {
                "uniqueItems": True,
                "items": {"enum": list(range(n + 5))},
                "contains": {"enum": list(range(n))},
                "minContains": n,
            }
        ),
        (8, 60, 500),
    )
    yield from family(
        "arrays/unique tuples",
        schema(
            lambda n: {
                "uniqueItems": True,
                "prefixItems": [{"enum": [i, i + 1]} for i in range(n)],
                "minItems": n,
            }
        ),
        (10, 40, 300),
    )
    yield from family(
        "arrays/unique tuples that clash",
        schema(
            lambda n: {"uniqueItems": True, "prefixItems": [{"enum": list(range(n - 1))}] * n, "minItems": n}
        ),
        (5, 9, 14),
    )
    yield from family(
        "arrays/unique in unique",
        schema(
            lambda n: nested(
                n,
                {"type": "boolean"},
                lambda s: {"type": "array", "uniqueItems": True, "minItems": 2, "items": s},
            )
        ),
        (2, 4, 9),
    )
    yield from family(
        "arrays/equal items",
        schema(lambda n: {"not": {"uniqueItems": True}, "minItems": n, "items": {"type": "integer"}}),
        (2, 3_000),
    )
    yield from family(
        "arrays/equal among few",
        schema(
            lambda n: {
                "type": "array",
                "not": {"uniqueItems": True},
                "prefixItems": [{"enum": [i, -1]} for i in range(n)],
                "items": False,
            }
        ),
        (6, 40),
    )
    contains = schema(lambda n: {"type": "array", "allOf": [{"contains": {"const": i}} for i in range(n)]})
    yield from family("arrays/contains", contains, (6, 12, 17, 100))
    overlapping = schema(
        lambda n: {"type": "array", "allOf": [{"contains": {"multipleOf": i + 2}} for i in range(n)]}
    )
    yield from family("arrays/contains that overlap", overlapping, (4, 8, 14))
    counted = schema(
        lambda n: {
            "type": "array",
            "allOf": [{"contains": {"const": i}, "minContains": 5, "maxContains": 9} for i in range(n)],
        }
    )
    yield from family("arrays/contains with counts", counted, (2, 4, 7))
    many = schema(
        lambda n: {
            "type": "array",
            "contains": {"const": 1},
            "minContains": n,
            "maxContains": 2 * n,
            "items": {"enum": [1, 2]},
        }
    )
    yield from family("arrays/contains often", many, (100, 100_000))
    not_contains = schema(
        lambda n: {
            "type": "array",
            "not": {"anyOf": [{"contains": {"minLength": i, "pattern": "a"}} for i in range(n)]},
        }
    )
    yield from family("arrays/contains none", not_contains, (10, 300))
    one_of = schema(lambda n: {"oneOf": [{"type": "array", "contains": {"const": i}} for i in range(n)]})
    yield from family("arrays/oneOf of contains", one_of, (4, 9, 17))
    tuples = schema(
        lambda n: {
            "oneOf": [{"type": "array", "prefixItems": [{"const": 0}] * i + [{"const": 1}]} for i in range(n)]
        }
    )
    yield from family("arrays/oneOf of tuples", tuples, (8, 30, 200))
    unevaluated = schema(
        lambda n: {
            "anyOf": [{"prefixItems": [True] * i} for i in range(1, n)],
            "unevaluatedItems": {"type": "null"},
        }
    )
    yield from family("arrays/unevaluatedItems", unevaluated, (5, 12, 60))
    contained = schema(
        lambda n: {"allOf": [{"contains": {"const": i}} for i in range(n)], "unevaluatedItems": False}
    )
    yield from family("arrays/unevaluatedItems of contains", contained, (3, 7, 12))
    lists = schema(
        lambda n: {
            "anyOf": [{"type": "array", "items": {"enum": [i, i + 1]}, "minItems": i} for i in range(n)]
        }
    )
    yield from family("arrays/anyOf of lists", lists, (20, 300))
    bounds = schema(
        lambda n: {
            "oneOf": [{"type": "array", "minItems": i * 10, "maxItems": i * 10 + 15} for i in range(n)]
        }
    )
    yield from family("arrays/oneOf of counts", bounds, (10, 100))


def cases() -> Iterator[Case]:
    yield from objects()
    yield from arrays()
