"""Sets of code points that patterns name: properties, shorthand classes, case variants.

Properties come from the ``unicodedata`` of the running Python and are computed at first use.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from functools import cache
from itertools import groupby

import numpy as np

from maskwright.regular.expressions import MAX_CODE_POINT, Ranges, complement_ranges, normalize_ranges
from maskwright.regular.memo import remembered

ASCII_DIGIT: Ranges = ((0x30, 0x39),)
ASCII_WORD: Ranges = ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
ASCII_SPACE: Ranges = ((0x09, 0x0D), (0x20, 0x20))
# ECMA-262, sections 12.2 and 12.3: WhiteSpace and LineTerminator.
ECMA_SPACE: Ranges = (
    (0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
    (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF),
)  # fmt: skip
# ``str.isspace``, which `\s` of ``re`` follows: Unicode's white space and four separators of ASCII.
PYTHON_SPACE = normalize_ranges((*ECMA_SPACE[:-1], (0x1C, 0x1F), (0x85, 0x85)))
ECMA_LINE_TERMINATOR: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
LINE_FEED: Ranges = ((0x0A, 0x0A),)
EVERY_CODE_POINT: Ranges = ((0, MAX_CODE_POINT),)

# PropertyValueAliases.txt, gc: short name, then the other names.
_CATEGORY_NAMES = """
C Other;Cc Control cntrl;Cf Format;Cn Unassigned;Co Private_Use;Cs Surrogate;L Letter
LC Cased_Letter;Ll Lowercase_Letter;Lm Modifier_Letter;Lo Other_Letter;Lt Titlecase_Letter
Lu Uppercase_Letter;M Mark Combining_Mark;Mc Spacing_Mark;Me Enclosing_Mark;Mn Nonspacing_Mark
N Number;Nd Decimal_Number digit;Nl Letter_Number;No Other_Number;P Punctuation punct
Pc Connector_Punctuation;Pd Dash_Punctuation;Pe Close_Punctuation;Pf Final_Punctuation
Pi Initial_Punctuation;Po Other_Punctuation;Ps Open_Punctuation;S Symbol;Sc Currency_Symbol
Sk Modifier_Symbol;Sm Math_Symbol;So Other_Symbol;Z Separator;Zl Line_Separator
Zp Paragraph_Separator;Zs Space_Separator
"""
_CATEGORIES = {
    name: names.split()[0]
    for names in _CATEGORY_NAMES.replace("\n", ";").strip(";").split(";")
    for name in names.split()
}
# All characters with case variants lie below this point in every version of Unicode so far.
_CASED_END = 0x20000


def unicode_property(expression: str) -> Ranges | None:
    """The set of ``\\p{expression}``; None when it is unknown or not in ``unicodedata``.

    General categories (short, long, or as ``General_Category=...``), ``Any``, ``ASCII``,
    ``Assigned``, ``ASCII_Hex_Digit`` and ``White_Space``, spelled exactly (ECMA-262, 22.2.2.9).
    """
    name, equals, value = expression.partition("=")
    if equals:
        if name not in ("General_Category", "gc") or value not in _CATEGORIES:
            return None
        return _category(_CATEGORIES[value])
    if name in _CATEGORIES:
        return _category(_CATEGORIES[name])
    if name == "Assigned":
        return complement_ranges(_category("Cn"))
    return _BINARY_PROPERTIES.get(name)


_BINARY_PROPERTIES: dict[str, Ranges] = {
    "Any": EVERY_CODE_POINT,
    "ASCII": ((0, 0x7F),),
    "ASCII_Hex_Digit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "AHex": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
    "White_Space": tuple(sorted({*ECMA_SPACE[:-1], (0x85, 0x85)})),
    "space": tuple(sorted({*ECMA_SPACE[:-1], (0x85, 0x85)})),
}


@cache
def _category(short: str) -> Ranges:
    if short == "LC":
        return normalize_ranges(_category("Lu") + _category("Ll") + _category("Lt"))
    two_letter = _all_categories()
    if len(short) == 2:
        return two_letter.get(short, ())
    return normalize_ranges([r for name, rs in two_letter.items() if name[0] == short for r in rs])


# Planes and parts of planes that no version of Unicode has used: asking for each of their characters would take four times as long as
# asking for the others.
_UNIFORM = (
    ("Cn", 0x40000, 0xDFFFF), ("Cn", 0xE1000, 0xEFFFF), ("Co", 0xF0000, 0xFFFFD), ("Cn", 0xFFFFE, 0xFFFFF), ("Co", 0x100000, 0x10FFFD),
    ("Cn", 0x10FFFE, 0x10FFFF),
)  # fmt: skip


@cache
def _all_categories() -> dict[str, Ranges]:
    runs: dict[str, list[tuple[int, int]]] = {name: [] for name, _, _ in _UNIFORM}
    for first, end in ((0, 0x40000), (0xE0000, 0xE1000)):
        for name, group in groupby(map(unicodedata.category, map(chr, range(first, end)))):
            low, first = first, first + sum(1 for _ in group)
            runs.setdefault(name, []).append((low, first - 1))
    for name, low, high in _UNIFORM:
        runs[name].append((low, high))
    return {name: normalize_ranges(ranges) for name, ranges in runs.items()}


@cache
def python_digit() -> Ranges:
    return _matched(r"\d+")


@cache
def python_word() -> Ranges:
    return _matched(r"\w+")


def _matched(pattern: str) -> Ranges:
    """The runs that ``re`` finds among all code points, which is much faster than asking for each.

    Plane by plane: others have their turns in between, and no run goes on from one plane to the next.
    """
    runs: list[tuple[int, int]] = []
    for first in range(0, MAX_CODE_POINT + 1, _PLANE):
        plane = np.arange(first, first + _PLANE, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
        runs += [(first + found.start(), first + found.end() - 1) for found in re.finditer(pattern, plane)]
    return tuple(runs)


_PLANE = 0x10000
# Characters that are looked up one by one.
_FEW = 256


@remembered(1024)
def case_variants(ranges: Ranges, dialect: str) -> Ranges:
    """The set and everything that equals a member when case is ignored.

    "ecma": simple case folding (ECMA-262, 22.2.2.7.3).  "python": the rules of ``re``.
    "ascii": letters a to z only.
    """
    starts = [low for low, _ in ranges]
    more: list[tuple[int, int]] = list(ranges)
    if sum(high - low + 1 for low, high in ranges) <= _FEW:
        classes = _case_classes(dialect)
        for low, high in ranges:
            more += [(other, other) for code in range(low, high + 1) for other in classes.get(code, ())]
        return normalize_ranges(more)
    for code, equal in _case_classes(dialect).items():
        i = bisect_right(starts, code) - 1
        if i >= 0 and code <= ranges[i][1]:
            more += [(other, other) for other in equal]
    return normalize_ranges(more)


@cache
def _case_classes(dialect: str) -> dict[int, tuple[int, ...]]:
    """The characters that are equal when case is ignored, of each that has others."""
    fold = {"ecma": _simple_fold, "python": _python_fold, "ascii": str.lower}[dialect]
    classes: dict[str, list[int]] = {}
    for code in range(0x80 if dialect == "ascii" else _CASED_END):
        c = chr(code)
        # What has a variant is changed by one of these.
        if c.lower() != c or c.upper() != c or c.casefold() != c:
            for each in (c, c.lower(), c.upper(), c.casefold()):
                if len(each) == 1:
                    members = classes.setdefault(fold(each), [])
                    if ord(each) not in members:
                        members.append(ord(each))
    return {code: tuple(equal) for equal in classes.values() if len(equal) > 1 for code in equal}


def _simple_fold(c: str) -> str:
    full = c.casefold()
    if len(full) == 1:
        return full
    # Only the full folding is at hand; where it expands, the simple one is the lower case.
    lower = c.lower()
    return lower if len(lower) == 1 else c


def _python_fold(c: str) -> str:
    if c == "\u0130":
        return "I"
    return c.lower().upper()
