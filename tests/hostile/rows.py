"""Expressions of grammars with a lexer: beside each other, and in rows."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from operator import add, or_

import maskwright as mw
from hostile.cases import Case, family, nested

EMPTY = mw.Lark('start: NAME*\nNAME: /[if]+/\n%ignore " "')
LIST = mw.Lark('start: "if" ("," "if")*\nCOMMENT: /f+/\n%ignore COMMENT')


def numbered(number: int) -> mw.Lark:
    return mw.Lark(f'start: NAME*\nNAME: /[a-z]+{number}?/\n%ignore " "')


def cases() -> Iterator[Case]:
    yield from family("rows/empty parts", lambda n: EMPTY * (n, n), (600, 10_000, 1_000_000))
    yield from family("rows/either empty", lambda n: (EMPTY | LIST) * (0, n), (200, 5_000))
    yield from family("rows/any number", lambda n: (EMPTY | LIST) * (n, None), (0, 5_000))
    yield from family("rows/alternatives", lambda n: reduce(or_, map(numbered, range(n))), (70, 400))
    yield from family("rows/parts", lambda n: reduce(add, map(numbered, range(n))), (70, 400))
    yield from family("rows/optional parts", lambda n: reduce(add, [mw.Optional(LIST)] * n), (100, 3_000))
    yield from family(
        "rows/nested", lambda n: nested(n, EMPTY, lambda inner: (inner | LIST) * (0, 2)), (20, 300)
    )
    yield from family("rows/shipped", lambda n: mw.shipped_grammar("python") * (0, n), (300,))
    yield from family(
        "rows/without a phrase", lambda n: (EMPTY + mw.Regex("x")) * (0, n) - mw.Contains(["fi"]), (30, 2_000)
    )
