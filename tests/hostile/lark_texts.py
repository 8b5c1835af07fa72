"""Lark grammars: terminals that overlap, ambiguity, recursion, templates, repetitions, imports."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hostile.cases import Case, family, nested
from maskwright import Lark


def lark(make: Any, **options: Any) -> Any:
    return lambda size: Lark(make(size), **options)


def one_of(terminals: list[str]) -> str:
    """Any number of some terminals."""
    names = [f"T{i}" for i in range(len(terminals))]
    return (
        "start: ("
        + " | ".join(names)
        + ")*\n"
        + "".join(f"{n}: {t}\n" for n, t in zip(names, terminals, strict=True))
    )


def terminals() -> Iterator[Case]:
    kinds: dict[str, Any] = {
        "letters before a count": lambda i: f"/[a-z]*{chr(97 + i % 26)}[a-z]{{{3 + i // 26}}}/",
        "overlapping words": lambda i: f"/[a-z]*{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}[a-z]*/",
        "long counts": lambda i: f"/[a-y]*z[a-z]{{{i + 1}}}/",
        "classes": lambda i: f"/[\\x{i % 64 + 32:02x}-\\x{i % 64 + 62:02x}]+x{{{i // 64 + 1}}}/",
        "words": lambda i: f'"word{i * 7919 % 1009}"',
        "look-aheads": lambda i: f"/[a-z]+(?!{chr(97 + i % 26)}{i % 7})/",
        "lazy": lambda i: f"/a{{{i % 9}}}.*?{chr(97 + i % 26)}{i % 10}/",
        "priorities": lambda i: f"/[a-f]+{i % 10}?/",
        "flags": lambda i: f"/w[a-z]*{i}/i",
        "unicode": lambda i: f"/\\w*{chr(0x4E00 + i)}\\w{{2}}/",
    }
    for name, make in kinds.items():
        for lexer in ("contextual", "dynamic"):
            text = lark(lambda n, make=make: one_of([make(i) for i in range(n)]), lexer=lexer)
            yield from family(f"lark/{lexer} terminals: {name}", text, (25, 200, 2_000))
    lines = lark(
        lambda n: (
            one_of([f"/[a-z]*b[a-z]{{{i % 12}}}/" for i in range(n)]) + "%ignore /[ a-z]+;/\n%ignore / +/\n"
        )
    )
    yield from family("lark/terminals beside ignored ones", lines, (30, 200))
    yield from family(
        "lark/terminal of an exponential pattern",
        lark(lambda n: f"start: A B\nA: /(a|b)*a(a|b){{{n}}}/\nB: /[ab]+/\n"),
        (12, 20, 60, 900),
    )
    yield from family(
        "lark/terminal with counts",
        lark(lambda n: f"start: A+\nA: /(ab?){{2,{n}}}c/\n"),
        (1_000, 60_000, 10_000_000),
    )
    yield from family(
        "lark/counts in counts",
        lark(lambda n: f"start: A+\nA: /((a{{1,{n}}}b){{1,{n}}}c){{1,{n}}}/\n"),
        (9, 90, 900),
    )
    yield from family(
        "lark/terminals of terminals",
        lark(
            lambda n: "start: T0\n" + "".join(f"T{i}: T{i + 1} T{i + 1}\n" for i in range(n)) + f'T{n}: "a"\n'
        ),
        (12, 22, 60, 5_000),
    )
    yield from family(
        "lark/chain of terminals",
        lark(lambda n: "start: T0\n" + "".join(f'T{i}: T{i + 1} "x"\n' for i in range(n)) + f'T{n}: "a"\n'),
        (300, 5_000),
    )
    yield from family(
        "lark/ranges",
        lark(
            lambda n: (
                "start: (" + "|".join(f'"{chr(0x4E00 + i)}".."{chr(0x4E09 + i)}"' for i in range(n)) + ")+\n"
            )
        ),
        (200, 5_000),
    )


def rules() -> Iterator[Case]:
    yield from family(
        "lark/chain of rules",
        lark(
            lambda n: (
                "start: r0\n" + "".join(f'r{i}: "a" r{i + 1} | "b"\n' for i in range(n)) + f'r{n}: "c"\n'
            )
        ),
        (1_000, 20_000),
    )
    yield from family(
        "lark/rules alone",
        lark(lambda n: "start: r0\n" + "".join(f"r{i}: r{i + 1}\n" for i in range(n)) + f'r{n}: "c"\n'),
        (1_000, 20_000),
    )
    yield from family(
        "lark/left recursion",
        lark(
            lambda n: (
                "start: r0\n"
                + "".join(f'r{i}: r{(i + 1) % n} "a" | "b" | r{i * 3 % n} "c"\n' for i in range(n))
            )
        ),
        (3, 30, 1_000),
    )
    yield from family(
        "lark/nullable cycles",
        lark(
            lambda n: (
                "start: r0\n" + "".join(f'r{i}: r{(i + 1) % n} r{(i + 2) % n} | "a"?\n' for i in range(n))
            )
        ),
        (3, 30, 500),
    )
    yield from family(
        "lark/hidden left recursion",
        lark(
            lambda n: (
                "start: r0\n"
                + "".join(f'r{i}: e r{(i + 1) % n} "x" | "y"\n' for i in range(n))
                + 'e: | "e"\n'
            )
        ),
        (3, 300),
    )
    yield from family(
        "lark/ambiguous",
        lark(lambda n: "start: s\ns: " + " | ".join(" ".join(["s"] * k) for k in range(2, n)) + ' | "a"\n'),
        (4, 9, 40),
    )
    yield from family(
        "lark/ambiguous and nullable",
        lark(lambda n: "start: s\ns: " + " ".join(["s"] * n) + ' | "a" | \n'),
        (3, 9, 60),
    )
    yield from family(
        "lark/expressions",
        lark(
            lambda n: (
                "start: e0\n"
                + "".join(f'e{i}: e{i} "op{i}" e{i + 1} | e{i + 1}\n' for i in range(n))
                + f'e{n}: /[a-z]+/ | "(" e0 ")"\n%ignore " "\n'
            )
        ),
        (20, 300, 3_000),
    )
    yield from family(
        "lark/expressions without order",
        lark(
            lambda n: (
                "start: e\ne: "
                + "".join(f'e "op{i}" e | ' for i in range(n))
                + '/[a-z]+/ | "(" e ")"\n%ignore " "\n'
            )
        ),
        (20, 1_000),
    )
    yield from family(
        "lark/alternatives",
        lark(lambda n: "start: " + " | ".join(f'"a" "b{i % 97}" "c{i}"' for i in range(n)) + "\n"),
        (3_000, 50_000),
    )
    yield from family("lark/long rule", lark(lambda n: "start: " + '"a" ' * n + "\n"), (3_000, 100_000))
    yield from family(
        "lark/optionals",
        lark(lambda n: "start: " + "".join(f'"a{i}"? ' for i in range(n)) + "\n"),
        (30, 400, 5_000),
    )
    yield from family(
        "lark/optionals alike", lark(lambda n: "start: " + '("a" | "b")? ' * n + "\n"), (30, 400, 5_000)
    )
    yield from family(
        "lark/groups",
        lark(lambda n: "start: " + "".join(f'("a{i}" | "b{i}" | "c")' for i in range(n)) + "\n"),
        (20, 1_000),
    )
    yield from family(
        "lark/deep groups",
        lark(lambda n: "start: " + "(" * n + '"a"' + ")?" * n + "\n"),
        (100, 5_000, 100_000),
    )
    yield from family(
        "lark/stars in stars",
        lark(lambda n: "start: " + nested(n, '"a"', lambda s: f"({s} b)*") + '\nb: "b"?\n'),
        (10, 60, 2_000),
    )
    yield from family("lark/repetition", lark(lambda n: f'start: ("a" "b"?) ~ {n}\n'), (40, 3_000, 1_000_000))
    yield from family(
        "lark/repetition between",
        lark(lambda n: f'start: r ~ 3..{n}\nr: "a" | "b" r\n'),
        (40, 3_000, 1_000_000),
    )
    yield from family(
        "lark/repetition in repetition",
        lark(lambda n: f'start: (("a" ~ 1..{n} "b") ~ 1..{n} "c") ~ 1..{n}\n'),
        (5, 60, 2_000),
    )
    yield from family(
        "lark/templates",
        lark(
            lambda n: (
                "start: t0{A}\n"
                + "".join(f't{i}{{x}}: t{i + 1}{{x}} "," t{i + 1}{{x}}\n' for i in range(n))
                + f't{n}{{x}}: x\nA: "a"\n'
            )
        ),
        (10, 40),
    )
    yield from family(
        "lark/templates of larger arguments",
        lark(lambda n: 'start: t{"a"}\nt{x}: x | t{(x ' + '"b" ' * n + ")}\n"),
        (1, 50),
    )
    yield from family(
        "lark/templates of templates",
        lark(lambda n: "start: " + nested(n, '"a"', lambda s: f"d{{{s}}}") + "\nd{x}: x x\n"),
        (8, 25, 900),
    )
    yield from family(
        "lark/imports",
        lark(
            lambda n: (
                "start: w+\nw: WORD | NUMBER\n" + "%import common.WORD\n" * n + "%import common.NUMBER\n"
            )
        ),
        (1, 3_000),
    )
    yield from family("lark/definitions twice", lark(lambda n: 'start: "a"\n' * n), (3, 10_000))
    yield from family("lark/long names", lark(lambda n: f'start: {"a" * n}\n{"a" * n}: "b"\n'), (100_000,))
    yield from family("lark/long text", lark(lambda n: f'start: "{"ab" * n}"\n'), (50_000, 2_000_000))
    yield from family("lark/comments", lark(lambda n: 'start: "a"\n' + "// comment\n\n" * n), (200_000,))
    lines = "start: line+\nline: NAME _NEWLINE [_INDENT line+ _DEDENT]\nNAME: /[a-z]+/\n_NEWLINE: /(\\n[ \\t]*)+/\n%declare _INDENT _DEDENT\n"
    yield Case("lark/indentation", lambda: Lark(lines))
    yield from family(
        "lark/inline schemas",
        lark(
            lambda n: (
                "start: "
                + "|".join(f"s{i}" for i in range(n))
                + "\n"
                + "".join(f's{i}: %json {{"type": "array", "minItems": {i}}}\n' for i in range(n))
            )
        ),
        (20, 1_000),
    )
    yield from family(
        "lark/captures",
        lark(lambda n: 'start: a*\na[capture]: "x" | "x" a | ' + '"x" ' * n + "\n", lexer="dynamic"),
        (4, 300),
    )


def odd() -> Iterator[Case]:
    texts = {
        "nothing": "", "NUL": "start: \"\0\"\n\0", "surrogate": 'start: "\ud800"\n', "no start": "a: b\n", "self": "start: start\n", "unclosed": "start: (" * 50_000,
        "empty terminal": 'start: A*\nA: ""\n', "empty pattern": "start: A*\nA: /a*/\n", "empty class": "start: A\nA: /[^\\x00-\\U0010ffff]/\n",
        "backslashes": 'start: "' + "\\" * 100_001 + '"\n', "quotes": 'start: "' * 10_000, "bars": "start: " + "|" * 100_000 + "\n", "lazy": 'start: A\nA: /(a*?)*?(b*?)*?c/\n',
        "import of a path": "%import .....a.b (C)\nstart: C\n", "import of odd names": "%import common." + "A" * 100_000 + "\nstart: A\n", "declare": "%declare " + "A " * 50_000 + "\nstart: A\n",
        "extend": "%extend start: \"a\"\n" * 5_000, "override": '%override start: "a"\n' * 5_000, "ignore all": 'start: "a"\n%ignore /(.|\\n)*/\n', "ignore itself": 'start: A\nA: "a"\n%ignore A\n',
        "back-reference": "start: A\nA: /(a)\\1/\n", "verbose": "start: A\nA: /" + "( a | b ) # c " * 3_000 + "/x\n", "numbers": "start: \"a\" ~ " + "9" * 5_000 + "\n",
        "look-behind": "start: A\nA: /" + "(?<=a)b?" * 300 + "/\n", "nested look-aheads": "start: A\nA: /" + "(?=a" * 200 + ")" * 200 + "a/\n", "terminals without text": one_of(["/(?!)/"] * 200),
    }  # fmt: skip
    for name, text in texts.items():
        yield Case(f"lark/odd: {name}", lambda text=text: Lark(text))
    yield Case(
        "lark/odd: options",
        lambda: [
            Lark('start: "a"', start=""),
            Lark('start: "a"', start="\0"),
            Lark(5),
            Lark('start: "a"', lexer="fast"),
            Lark('start: "a"', import_paths=("\0",)),
            Lark('start: "a"', indentation=3),
        ],
    )  # type: ignore[arg-type]


def cases() -> Iterator[Case]:
    yield from terminals()
    yield from rules()
    yield from odd()
