"""GBNF, regular expressions, choices, structural tags and Python types."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import reduce
from operator import or_
from typing import Any, Literal

import numpy as np

from hostile.cases import Case, family, nested
from maskwright import GBNF, Choice, JsonSchema, Regex, StructuralTag


def gbnf(make: Any) -> Any:
    return lambda size: GBNF(make(size))


def gbnf_cases() -> Iterator[Case]:
    yield from family(
        "gbnf/repetition", gbnf(lambda n: f'root ::= "a"{{{n}}}'), (1_000, 1_000_000, 10**9, 10**30)
    )
    yield from family(
        "gbnf/repetition of rules",
        gbnf(lambda n: f'root ::= r{{2,{n}}}\nr ::= "(" r ")" | "a"'),
        (100, 10_000, 10**6),
    )
    yield from family(
        "gbnf/repetition in repetition",
        gbnf(lambda n: f'root ::= (("a"{{1,{n}}} "b"){{1,{n}}} "c"){{1,{n}}}'),
        (9, 90, 3_000),
    )
    yield from family(
        "gbnf/chain",
        gbnf(
            lambda n: (
                "root ::= r0\n"
                + "".join(f'r{i} ::= "a" r{i + 1} "b" | "c"\n' for i in range(n))
                + f'r{n} ::= "d"'
            )
        ),
        (1_000, 20_000),
    )
    yield from family(
        "gbnf/chain without text",
        gbnf(lambda n: "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1}\n" for i in range(n)) + f'r{n} ::= "d"'),
        (1_000, 20_000),
    )
    yield from family(
        "gbnf/doubling",
        gbnf(
            lambda n: (
                "root ::= r0\n" + "".join(f"r{i} ::= r{i + 1} r{i + 1}\n" for i in range(n)) + f'r{n} ::= "d"'
            )
        ),
        (10, 22, 200),
    )
    yield from family(
        "gbnf/linear equations",
        gbnf(
            lambda n: (
                "root ::= r0\n"
                + "".join(
                    f'r{i} ::= "a" r{(i * 7 + 1) % n} | "b" r{(i * 5 + 3) % n} | "c"\n' for i in range(n)
                )
            )
        ),
        (30, 300, 3_000),
    )
    yield from family(
        "gbnf/left equations",
        gbnf(
            lambda n: (
                "root ::= r0\n"
                + "".join(
                    f'r{i} ::= r{(i * 7 + 1) % n} "a" | r{(i * 5 + 3) % n} "b" | "c"\n' for i in range(n)
                )
            )
        ),
        (30, 300, 3_000),
    )
    yield from family(
        "gbnf/left recursion",
        gbnf(
            lambda n: (
                "root ::= r0\n"
                + "".join(f'r{i} ::= r{(i + 1) % n} "a" | "(" r{i} ")" | "b"\n' for i in range(n))
            )
        ),
        (3, 500),
    )
    yield from family(
        "gbnf/nullable",
        gbnf(
            lambda n: (
                "root ::= r0\n"
                + "".join(f'r{i} ::= r{(i + 1) % n} r{(i + 2) % n} | "a"?\n' for i in range(n))
            )
        ),
        (3, 40, 500),
    )
    yield from family(
        "gbnf/deep groups", gbnf(lambda n: "root ::= " + "(" * n + '"a"' + ")*" * n), (100, 5_000, 200_000)
    )
    yield from family(
        "gbnf/alternatives",
        gbnf(lambda n: "root ::= " + " | ".join(f'"a{i}" root? "b{i % 7}"' for i in range(n))),
        (500, 20_000),
    )
    yield from family(
        "gbnf/classes",
        gbnf(lambda n: "root ::= " + " ".join(f"[\\u{i % 50000 + 64:04x}-\\uffff]" for i in range(n))),
        (500, 20_000),
    )
    yield from family(
        "gbnf/exponential", gbnf(lambda n: "root ::= [ab]* " + '"a" ' + "[ab] " * n + "root?"), (12, 25, 300)
    )
    yield from family("gbnf/long text", gbnf(lambda n: f'root ::= "{"ab" * n}"'), (1_000_000,))
    yield from family("gbnf/look at all", gbnf(lambda n: "root ::= (!( " + '"a" | ' * n + '"b") .)*'), (30,))
    texts = {"nothing": "", "NUL": 'root ::= "\0"', "surrogate": 'root ::= "\ud800"', "escape": 'root ::= "\\ud800\\xff"', "itself": "root ::= root", "twice": 'root ::= "a"\n' * 5_000,
             "unclosed": "root ::= " + "(" * 100_000, "bars": "root ::= " + "|" * 100_000, "class": "root ::= [" + "a-" * 50_000, "counts": 'root ::= "a"{9,1}', "nested stars": 'root ::= "a"' + "*" * 20_000}  # fmt: skip
    for name, text in texts.items():
        yield Case(f"gbnf/odd: {name}", lambda text=text: GBNF(text))


def regex(make: Any) -> Any:
    return lambda size: Regex(make(size))


def regex_cases() -> Iterator[Case]:
    yield from family("regex/exponential", regex(lambda n: f"(a|b)*a(a|b){{{n}}}"), (12, 20, 60, 5_000))
    yield from family("regex/count", regex(lambda n: f"[a-z]{{{n}}}"), (1_000, 1_000_000, 10**10))
    yield from family(
        "regex/counts in counts",
        regex(lambda n: nested(n, "a", lambda s: f"(?:{s}b?){{2,9}}")),
        (3, 6, 12, 100),
    )
    yield from family(
        "regex/counts beside counts",
        regex(lambda n: f"(?:a{{1,{n}}}b{{1,{n}}}|a{{2,{n}}}c)*(?:ab?){{3,{n}}}"),
        (30, 3_000, 10**6),
    )
    yield from family(
        "regex/counted alternatives",
        regex(lambda n: f"(?:a|aa|aaa|(?:ab){{1,{n}}}){{1,{n}}}"),
        (30, 3_000, 10**6),
    )
    yield from family("regex/groups", regex(lambda n: "(" * n + "a" + ")*" * n), (100, 5_000, 300_000))
    yield from family(
        "regex/alternatives", regex(lambda n: "|".join(f"w{i}x*" for i in range(n))), (2_000, 50_000)
    )
    yield from family(
        "regex/look-aheads",
        regex(lambda n: "".join(f"(?=.*{chr(97 + i % 26)}{i})" for i in range(n)) + ".*"),
        (4, 10, 40),
    )
    yield from family(
        "regex/nested look-aheads",
        regex(lambda n: nested(n, "a", lambda s: f"(?=b{s})") + ".*"),
        (9, 40, 2_000),
    )
    yield from family(
        "regex/look-behinds",
        regex(lambda n: ".*" + "".join(f"(?<!{chr(97 + i % 26)}{i}x*)" for i in range(n)) + "z"),
        (2, 6, 40),
    )
    yield from family(
        "regex/look-arounds in loops",
        regex(lambda n: "(?:" + "".join(f"(?!a{{{i}}}b)(?<=c|^)" for i in range(n)) + "[abc])*"),
        (1, 4, 12),
    )
    yield from family(
        "regex/negative look-aheads of counts",
        regex(lambda n: f"(?!(?:a|b)*a(?:a|b){{{n}}}).*"),
        (8, 20, 200),
    )
    yield from family(
        "regex/classes",
        regex(lambda n: "".join(f"[^\\w{chr(0x3000 + i)}]\\p{{Lu}}?" for i in range(n))),
        (100, 3_000),
    )
    yield from family(
        "regex/case", lambda n: Regex("(?i:" + "straße ſK" * n + "\\w+)", flags="i"), (100, 5_000)
    )
    yield from family("regex/stars", regex(lambda n: "(?:a*)*" * n + "b"), (100, 10_000))
    yield from family("regex/optionals", regex(lambda n: "a?" * n + "a" * n), (25, 2_000, 30_000))
    yield from family("regex/dots", regex(lambda n: ".*a" * n), (20, 1_000))
    yield from family("regex/boundaries", regex(lambda n: "(?:\\b\\w*\\B.?)" * n), (3, 12, 200))
    yield from family(
        "regex/ecma",
        lambda n: Regex("^(?:(?=a)[\\s\\S]\\p{Script=Greek}?){" + str(n) + "}$", flavour="ecma"),
        (9, 2_000),
    )
    patterns = ["(", "[", "\\", "a{", "(?P<", "(?<n>a)(?<n>b)", "\\u{110000}", "\\ud800", "\0", "\ud800", "[z-a]", "a**", "(?R)", "(a)\\1", "(?(1)a|b)", "(?>a)", "x{99999999999999999999}", "[[:alpha:]]", "\\p{Nope}", "(?i", "a|*", "(?#" * 9_000, "|" * 100_000, "\\Q", "[" * 50_000, "(?:" * 100_000, "^" * 50_000 + "$" * 50_000, ""]  # fmt: skip
    yield Case("regex/odd patterns", lambda: [Regex(p) for p in patterns])
    yield Case("regex/odd patterns of ECMA", lambda: [Regex(p, flavour="ecma") for p in patterns])
    yield Case(
        "regex/odd options",
        lambda: [
            Regex("a", flags="zz"),
            Regex("a", flags=2**70),
            Regex(5),
            Regex("a", flavour="perl"),
            Regex(b"a"),
        ],
    )  # type: ignore[arg-type]


def choice_cases() -> Iterator[Case]:
    yield from family("choice/texts", lambda n: Choice([f"text {i}" for i in range(n)]), (200_000, 1_000_000))
    yield from family("choice/long text", lambda n: Choice(["ab" * n, "ab" * n + "c"]), (500_000,))
    yield from family("choice/prefixes", lambda n: Choice(["a" * i for i in range(n)]), (2_000,))
    yield from family(
        "choice/of ids", lambda n: Choice([[i % 200, i % 7, i // 7 % 200] for i in range(n)]), (100_000,)
    )
    odd: list[Any] = [[], [""], [[]], ["a", 1], [["a"]], [[-1]], [[2**70]], [[1.5]], 5, None, "abc", np.zeros((2, 2)), np.zeros((0, 0), dtype=np.int64), np.full((3, 3), 2**62), ["\ud800"], [b"\xff"], {"a": 1}]  # fmt: skip
    yield Case("choice/odd", lambda: [Choice(options) for options in odd])


def word(text: str) -> dict[str, Any]:
    return {"type": "const_string", "value": text}


def tag(begin: str, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def tags(make: Any) -> Any:
    return lambda size: StructuralTag(make(size))


def tag_cases() -> Iterator[Case]:
    yield from family(
        "tags/deep optionals",
        tags(lambda n: nested(n, word("a"), lambda t: {"type": "optional", "content": t})),
        (100, 3_000, 100_000),
    )
    yield from family(
        "tags/deep tags", tags(lambda n: nested(n, word("a"), lambda t: tag("<", t, ">"))), (100, 3_000)
    )
    yield from family(
        "tags/deep free text",
        tags(
            lambda n: nested(
                n,
                {"type": "any_text"},
                lambda t: tag("<a>", {"type": "sequence", "elements": [{"type": "any_text"}, t]}, "</a>"),
            )
        ),
        (3, 12, 150),
    )
    yield from family(
        "tags/sequence",
        tags(lambda n: {"type": "sequence", "elements": [word(f"w{i}") for i in range(n)]}),
        (5_000, 100_000),
    )
    yield from family(
        "tags/or",
        tags(
            lambda n: {
                "type": "or",
                "elements": [tag(f"<{i}>", {"type": "any_text"}, f"</{i}>") for i in range(n)],
            }
        ),
        (100, 3_000),
    )
    yield from family(
        "tags/triggered",
        tags(
            lambda n: {
                "type": "triggered_tags",
                "triggers": [f"<t{i}>" for i in range(n)],
                "tags": [
                    tag(
                        f"<t{i}>",
                        {"type": "json_schema", "json_schema": {"type": "integer", "minimum": i}},
                        "</t>",
                    )
                    for i in range(n)
                ],
            }
        ),
        (100, 3_000),
    )
    yield from family(
        "tags/excludes",
        tags(lambda n: {"type": "any_text", "excludes": [f"{'ab' * (i % 50)}{i}" for i in range(n)]}),
        (500, 20_000),
    )
    yield from family(
        "tags/long trigger",
        tags(
            lambda n: {
                "type": "triggered_tags",
                "triggers": ["a" * n],
                "tags": [tag("a" * n + "b", word("x"), "c")],
            }
        ),
        (1_000, 30_000, 100_000),
    )
    yield from family(
        "tags/repeat",
        tags(lambda n: {"type": "repeat", "min": n, "content": {"type": "any_text", "max_chars": 5}}),
        (1_000, 10**9, 10**20),
    )
    yield from family(
        "tags/repeat in repeat",
        tags(
            lambda n: nested(n, word("a"), lambda t: {"type": "repeat", "min": 2, "max": 1000, "content": t})
        ),
        (3, 12, 100),
    )
    yield from family(
        "tags/max_chars",
        tags(lambda n: tag("<", {"type": "any_text", "max_chars": n}, ">")),
        (1_000, 10**6, 10**15),
    )
    yield from family(
        "tags/ends", tags(lambda n: tag("<", {"type": "any_text"}, [f"{i}>" for i in range(n)])), (300, 5_000)
    )
    yield from family(
        "tags/separators",
        tags(
            lambda n: {
                "type": "tags_with_separator",
                "tags": [
                    tag(f"<{i}", {"type": "regex", "pattern": "(a|b)*a(a|b){9}"}, ">") for i in range(n)
                ],
                "separator": "<",
            }
        ),
        (10, 500),
    )
    yield from family(
        "tags/stars in stars",
        tags(
            lambda n: nested(
                n, word("a"), lambda t: {"type": "star", "content": {"type": "optional", "content": t}}
            )
        ),
        (9, 90),
    )
    yield from family(
        "tags/many schemas",
        tags(
            lambda n: {
                "type": "or",
                "elements": [
                    {
                        "type": "json_schema",
                        "json_schema": {"properties": {f"p{j}": {"minLength": i + j} for j in range(40)}},
                    }
                    for i in range(n)
                ],
            }
        ),
        (20, 500),
    )
    yield from family(
        "tags/hostile regex",
        tags(
            lambda n: {
                "type": "sequence",
                "elements": [{"type": "regex", "pattern": f"(a|b)*a(a|b){{{n}}}"}, {"type": "any_text"}],
            }
        ),
        (12, 40),
    )
    yield from family(
        "tags/hostile grammar",
        tags(
            lambda n: {"type": "grammar", "grammar": f'root ::= (("a"{{1,{n}}} "b"){{1,{n}}} root?){{1,{n}}}'}
        ),
        (9, 900),
    )
    yield from family(
        "tags/dispatch",
        tags(lambda n: {"type": "dispatch", "rules": [[f"<{i}>", {"type": "any_text"}] for i in range(n)]}),
        (50, 2_000),
    )
    odd: list[Any] = [5, None, "{", "[" * 100_000, {"type": "\0"}, {"type": ["or"]}, {"type": "or", "elements": "ab"}, word("\ud800"), word("\0" * 100_000), {"type": "any_text", "excludes": ["\ud800"]}, {"type": "json_schema", "json_schema": 5}, {"type": "regex", "pattern": 5}, {"type": "repeat", "min": 1.5, "content": word("a")}, {"type": "repeat", "min": -1, "content": word("a")}, {"triggers": 5, "structures": {}}]  # fmt: skip
    yield Case("tags/odd", lambda: [StructuralTag(t) for t in odd])

    def holding_itself() -> Any:
        content: dict[str, Any] = {"type": "optional"}
        content["content"] = content
        return StructuralTag(content)

    yield Case("tags/holds itself", holding_itself)
    shared = nested(60, word("a"), lambda t: {"type": "sequence", "elements": [t, t]})
    yield Case("tags/shared 2^60 times", lambda: StructuralTag(shared))
    tools = [
        {
            "type": "function",
            "function": {
                "name": f"f{i}",
                "parameters": {
                    "type": "object",
                    "properties": {f"a{j}": {"type": "string"} for j in range(20)},
                },
            },
        }
        for i in range(300)
    ]
    yield Case("tags/many tools", lambda: StructuralTag.from_tools(tools))


def python_cases() -> Iterator[Case]:
    def members(n: int) -> Any:
        from pydantic import create_model

        return create_model("M", **{f"m{i}": (int | str | None, None) for i in range(n)})  # type: ignore[call-overload]

    def union(n: int) -> Any:
        from pydantic import create_model

        return reduce(
            or_, [create_model(f"M{i}", **{f"a{i}": (int, ...), "b": (str, "x")}) for i in range(n)]
        )  # type: ignore[call-overload]

    def deep_models(n: int) -> Any:
        from pydantic import create_model

        return nested(n, int, lambda inner: create_model("D", x=(inner, ...), y=(list[inner], ...)))

    yield from family("python/lists of lists", lambda n: nested(n, int, lambda t: list[t]), (30, 180, 900))
    yield from family("python/dicts of dicts", lambda n: nested(n, int, lambda t: dict[str, t]), (30, 180))
    yield from family("python/unions", lambda n: reduce(or_, [Literal[i] for i in range(n)]), (1_000,))
    yield from family("python/literals", lambda n: Literal[tuple(f"text {i}" for i in range(n))], (3_000,))
    yield from family("python/enum", lambda n: enum.Enum("E", {f"n{i}": i for i in range(n)}), (3_000,))  # type: ignore[misc]
    yield from family("python/tuples", lambda n: tuple[tuple(Literal[i] for i in range(n))], (2_000,))  # type: ignore[misc]
    yield from family("python/sets", lambda n: set[Literal[tuple(range(n))]], (500,))  # type: ignore[misc]
    yield from family("python/members", members, (50, 600))
    yield from family("python/unions of models", union, (12, 60))
    yield from family("python/deep models", deep_models, (12, 90))
    yield Case(
        "python/odd",
        lambda: [
            object(),
            5,
            type,
            ...,
            NotImplemented,
            list[5],
            dict[int, Any],
            "str",
            b"",
            {"a": 1},
            lambda x: x,
        ],
    )  # type: ignore[misc]


def cases() -> Iterator[Case]:
    yield from gbnf_cases()
    yield from regex_cases()
    yield from choice_cases()
    yield from tag_cases()
    yield from python_cases()
    yield Case(
        "schemas/as a plain dict",
        lambda: [
            {"type": "object"},
            "{}",
            JsonSchema({}, whitespace=10**9),
            JsonSchema({}, max_whitespace=-1),
            JsonSchema({}, dialect="draft99"),
            JsonSchema({}, registry=7),
        ],
    )  # type: ignore[arg-type]
