"""Ranges of numbers, dates and clock times as regular expressions, where the order of values is the order of texts.

The syntax is what ECMA-262 and Python's ``re`` share, without anchors.
"""

from __future__ import annotations

import re

MOST_DIGITS = 40
"""Of integers without a bound; as ``SchemaOptions.max_number_digits`` has it."""


def _digits(low: str, high: str) -> str:
    return low if low == high else f"[{low}-{high}]"


def _shape(text: str) -> str:
    """All texts that have digits and other characters where ``text`` has them."""
    return re.sub("[0-9]+", lambda run: f"[0-9]{{{len(run[0])}}}", re.escape(text))


def at_least(text: str) -> str:
    """The texts of the same shape from ``text`` on."""
    return between(text, re.sub("[0-9]", "9", text))


def at_most(text: str) -> str:
    """The texts of the same shape up to ``text``."""
    return between(re.sub("[0-9]", "0", text), text)


def between(low: str, high: str) -> str:
    """The texts of the shape that both bounds have, from ``low`` to ``high`` (not before ``low``)."""
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=True)) if a != b), len(low))
    prefix, low, high = re.escape(low[:same]), low[same:], high[same:]
    if not low:
        return prefix
    rest = _shape(low[1:])
    first, last = low[0], high[0]
    branches = []
    if re.search("[1-9]", low[1:]):
        branches.append(first + at_least(low[1:]))
        first = chr(ord(first) + 1)
    after = ""
    if re.search("[0-8]", high[1:]):
        after = last + at_most(high[1:])
        last = chr(ord(last) - 1)
    if first <= last:
        branches.append(_digits(first, last) + rest)
    if after:
        branches.append(after)
    return f"{prefix}(?:{'|'.join(branches)})"


def _naturals(low: int, high: int | None) -> list[str]:
    branches = []
    length = len(str(low))
    longest = length if high is None else len(str(high))
    for digits in range(length, longest + 1):
        first = max(low, 10 ** (digits - 1) if digits > 1 else 0)
        last = 10**digits - 1
        branches.append(between(str(first), str(last if high is None else min(high, last))))
    if high is None and length < MOST_DIGITS:
        branches.append(f"[1-9][0-9]{{{length},{MOST_DIGITS - 1}}}")
    return branches


def integers(low: int | None, high: int | None) -> str | None:
    """The integers from ``low`` to ``high`` (None: no bound), without leading zeros; None where there are none."""
    if low is not None and high is not None and low > high:
        return None
    branches = []
    if low is None or low < 0:
        negative = _naturals(1 if high is None or high >= 0 else -high, None if low is None else -low)
        branches.append(f"-(?:{'|'.join(negative)})")
    if high is None or high >= 0:
        branches += _naturals(0 if low is None else max(low, 0), high)
    return f"(?:{'|'.join(branches)})"
