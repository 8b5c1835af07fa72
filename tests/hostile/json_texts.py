"""JSON Schemas whose keywords multiply: strings and references."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hostile.cases import Case, family, nested
from maskwright import JsonSchema


def schema(make: Any, **options: Any) -> Any:
    return lambda size: JsonSchema(make(size), **options)


def strings() -> Iterator[Case]:
    pattern = schema(lambda p: {"type": "string", "pattern": p})
    for n in (12, 20, 30, 60):
        yield Case(f"strings/exponential pattern/{n}", lambda n=n: pattern(f"^(a|b)*a(a|b){{{n}}}$"))
        yield Case(
            f"strings/its opposite/{n}",
            lambda n=n: JsonSchema({"type": "string", "not": {"pattern": f"^(a|b)*a(a|b){{{n}}}$"}}),
        )
    for n in (6, 12, 18, 100):
        yield Case(
            f"strings/oneOf of exponential patterns/{n}",
            lambda n=n: JsonSchema(
                {"oneOf": [{"type": "string", "pattern": f"^(a|b)*a(a|b){{{i}}}$"} for i in range(n)]}
            ),
        )
        yield Case(
            f"strings/allOf of letters/{n}",
            lambda n=n: JsonSchema(
                {"type": "string", "allOf": [{"pattern": chr(97 + i % 26) + str(i)} for i in range(n)]}
            ),
        )
        yield Case(
            f"strings/anyOf of words/{n}",
            lambda n=n: JsonSchema(
                {"type": "string", "anyOf": [{"pattern": f"{i}.*x.*{i}"} for i in range(n)]}
            ),
        )
        yield Case(
            f"strings/none of words/{n}",
            lambda n=n: JsonSchema(
                {"type": "string", "not": {"anyOf": [{"pattern": f"{i}.*x.*{i}"} for i in range(n)]}}
            ),
        )
        yield Case(
            f"strings/allOf of lengths/{n}",
            lambda n=n: JsonSchema(
                {"type": "string", "allOf": [{"pattern": f"^(a{{{i + 2}}})*$"} for i in range(n)]}
            ),
        )
    for n in (1_000, 30_000, 10_000_000):
        yield Case(f"strings/counted pattern/{n}", lambda n=n: pattern(f"^[a-z]{{{n}}}$"))
        yield Case(
            f"strings/counted product/{n}",
            lambda n=n: JsonSchema(
                {"type": "string", "pattern": f"^([a-z]x?){{0,{n}}}$", "minLength": n // 3}
            ),
        )
        yield Case(
            f"strings/long alternatives/{n}",
            lambda n=n: pattern("^(" + "|".join(f"w{i}" for i in range(min(n, 100_000))) + ")$"),
        )
    formats = [
        "date-time",
        "email",
        "uri",
        "uuid",
        "ipv6",
        "idn-email",
        "iri",
        "uri-template",
        "json-pointer",
        "regex",
        "duration",
        "hostname",
        "time",
    ]
    for name in formats:
        yield Case(
            f"strings/format {name} beside a pattern",
            lambda f=name: JsonSchema(
                {"type": "string", "format": f, "pattern": "7.*(a|b)*a.{5}", "minLength": 40}
            ),
        )
        yield Case(
            f"strings/not format {name}",
            lambda f=name: JsonSchema({"type": "string", "not": {"format": f}, "maxLength": 300}),
        )
    yield Case(
        "strings/all formats",
        lambda: JsonSchema({"type": "string", "anyOf": [{"format": f} for f in formats]}),
    )
    yield Case(
        "strings/one of the formats",
        lambda: JsonSchema({"type": "string", "oneOf": [{"format": f} for f in formats]}),
    )
    yield Case(
        "strings/no format",
        lambda: JsonSchema({"type": "string", "not": {"anyOf": [{"format": f} for f in formats]}}),
    )
    yield from family(
        "strings/encoded",
        schema(
            lambda n: {"contentMediaType": "application/json", "contentEncoding": "base64", "minLength": n}
        ),
        (10**6,),
    )
    yield from family(
        "strings/texts under a pattern",
        schema(lambda n: {"enum": [f"a{i}b" for i in range(n)], "pattern": "a.*7.*b"}),
        (20_000,),
    )
    yield from family(
        "strings/texts beside opposites",
        schema(lambda n: {"type": "string", "not": {"enum": [f"word {i}" for i in range(n)]}}),
        (500, 20_000),
    )


def references() -> Iterator[Case]:
    yield from family(
        "references/chain",
        schema(
            lambda n: {
                "$ref": "#/$defs/0",
                "$defs": {
                    **{str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(n)},
                    str(n): {"type": "null"},
                },
            }
        ),
        (190, 10_000, 100_000),
    )
    yield from family(
        "references/cycle",
        schema(
            lambda n: {
                "$ref": "#/$defs/0",
                "$defs": {str(i): {"$ref": f"#/$defs/{(i + 1) % n}"} for i in range(n)},
            }
        ),
        (1, 190, 10_000),
    )
    yield from family(
        "references/cycle under not",
        schema(
            lambda n: {
                "$ref": "#/$defs/0",
                "$defs": {str(i): {"not": {"$ref": f"#/$defs/{(i + 1) % n}"}} for i in range(n)},
            }
        ),
        (1, 2, 100),
    )
    yield from family(
        "references/cycle of anyOf",
        schema(
            lambda n: {
                "$ref": "#/$defs/0",
                "$defs": {
                    str(i): {
                        "anyOf": [{"$ref": f"#/$defs/{(i * 3 + j) % n}"} for j in range(4)] + [{"const": i}]
                    }
                    for i in range(n)
                },
            }
        ),
        (20, 2_000),
    )
    yield from family(
        "references/cycle of oneOf",
        schema(
            lambda n: {
                "$ref": "#/$defs/0",
                "$defs": {
                    str(i): {"oneOf": [{"$ref": f"#/$defs/{(i + 1) % n}"}, {"const": i}]} for i in range(n)
                },
            }
        ),
        (3, 40),
    )
    doubling = schema(
        lambda n: {
            "$ref": "#/$defs/0",
            "$defs": {
                **{
                    str(i): {"allOf": [{"$ref": f"#/$defs/{i + 1}"}, {"$ref": f"#/$defs/{i + 1}"}]}
                    for i in range(n)
                },
                str(n): {"minimum": 3},
            },
        }
    )
    yield from family("references/doubling allOf", doubling, (20, 60, 150))
    members = schema(
        lambda n: {
            "$ref": "#/$defs/0",
            "$defs": {
                **{
                    str(i): {
                        "properties": {"a": {"$ref": f"#/$defs/{i + 1}"}, "b": {"$ref": f"#/$defs/{i + 1}"}},
                        "required": ["a", "b"],
                    }
                    for i in range(n)
                },
                str(n): {"const": 3},
            },
        }
    )
    yield from family("references/doubling members", members, (15, 40, 150))
    meeting = schema(
        lambda n: {
            "$ref": "#/$defs/0",
            "$defs": {
                str(i): {
                    "properties": {
                        "a": {"$ref": f"#/$defs/{(i + 1) % n}"},
                        "b": {"$ref": f"#/$defs/{(i * 2) % n}"},
                    },
                    "allOf": [{"$ref": f"#/$defs/{(i * 5 + 3) % n}"}],
                }
                for i in range(n)
            },
        }
    )
    yield from family("references/meeting", meeting, (12, 100))
    tree = {
        "type": "object",
        "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
        "required": ["left", "right"],
    }
    yield Case("references/tree without leaves", lambda: JsonSchema(tree))
    yield Case(
        "references/tree under oneOf", lambda: JsonSchema({"oneOf": [tree, {"not": tree}, {"const": 1}]})
    )
    yield Case("references/only itself", lambda: JsonSchema({"$ref": "#"}))
    yield Case("references/missing", lambda: JsonSchema({"$ref": "#/$defs/" + "a/" * 100_000}))
    yield Case("references/remote", lambda: JsonSchema({"$ref": "http://203.0.113.1/never.json"}))
    yield Case("references/file", lambda: JsonSchema({"$ref": "file:///etc/passwd"}))
    yield Case(
        "references/odd addresses",
        lambda: [
            JsonSchema({"$ref": ref})
            for ref in ("#%zz", "http://[", "\0", "#/~2", "\ud800", "//", "?" * 100_000, "#" * 9)
        ],
    )
    dynamic = schema(
        lambda n: {
            "$dynamicRef": "#a",
            "$defs": {
                str(i): {
                    "$id": f"r{i}",
                    "$dynamicAnchor": "a",
                    "items": {"$ref": f"r{(i + 1) % n}"},
                    "properties": {"b": {"$dynamicRef": "#a"}},
                }
                for i in range(n)
            },
        }
    )
    yield from family("references/dynamic", dynamic, (5, 60, 1_000))
    dynamic_scopes = schema(
        lambda n: {
            "$id": "http://t/",
            "$ref": "r0",
            "$defs": {
                str(i): {
                    "$id": f"r{i}",
                    "$defs": {f"d{j}": {"$dynamicAnchor": f"a{j}", "const": i} for j in range(8)},
                    "anyOf": [
                        {"$ref": f"r{(i + 1) % n}"},
                        {"$ref": f"r{(i * 3) % n}"},
                        {"$dynamicRef": "#a3"},
                    ],
                }
                for i in range(n)
            },
        }
    )
    yield from family("references/dynamic scopes", dynamic_scopes, (4, 12, 100))
    recursive = schema(
        lambda n: {
            "$schema": "https://json-schema.org/draft/2019-09/schema",
            "$recursiveAnchor": True,
            "anyOf": [{"properties": {f"p{i}": {"$recursiveRef": "#"}}} for i in range(n)],
        }
    )
    yield from family("references/recursive", recursive, (5, 300))
    ids = schema(
        lambda n: nested(
            n, {"$anchor": "end", "type": "null"}, lambda s: {"$id": "a/b/../", "not": {"not": s}}
        )
    )
    yield from family("references/nested identifiers", ids, (20, 190))

    def endless(uri: str) -> Any:
        return {"properties": {"a": {"$ref": uri + "a"}, "b": {"$ref": uri + "b"}}}

    def in_place(uri: str) -> Any:
        return {"allOf": [{"$ref": uri + "a"}]}

    yield Case("references/registry without end", lambda: JsonSchema({"$ref": "http://x/"}, registry=endless))
    yield Case(
        "references/registry without end in place",
        lambda: JsonSchema({"$ref": "http://x/"}, registry=in_place),
    )
    for kind in ("draft3", "draft4", "draft7", "2019-09", "openapi-3.0"):
        yield Case(
            f"references/{kind}",
            lambda kind=kind: JsonSchema(
                nested(150, {"$ref": "#"}, lambda s: {"properties": {"a": s}, "dependencies": {"a": ["b"]}}),
                dialect=kind,
            ),
        )


def cases() -> Iterator[Case]:
    yield from strings()
    yield from references()
