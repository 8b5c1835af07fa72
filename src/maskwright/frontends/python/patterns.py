"""Patterns of Python types: pydantic reads them with Rust's regex or Python's, and the engine as ECMA-262 has them.

What these read alike needs nothing.  Classes of more letters than ASCII's are told apart by ASCII texts alone; what only Rust has
is a ``GrammarError``.
"""

from __future__ import annotations

from maskwright.errors import GrammarError

ASCII_TEXT = r"^[\x00-\x7f]*$"


def is_for_ascii(pattern: str, *, rust: bool) -> bool:
    """Whether only of ASCII texts the reader finds ``pattern`` in the same ones.  ``rust``: whether Rust's regex reads it.

    Raises ``GrammarError`` for what Rust reads as an operation on classes: a class in a class, ``&&``, ``--`` and ``~~``.
    """
    ascii_only = inside = negated = False
    at = 0
    while at < len(pattern):
        char, pair = pattern[at], pattern[at : at + 2]
        at += 1
        if char == "\\":
            # Complements, and borders of words, depend on which letters there are.
            ascii_only |= pair[1:] in ("W", "D", "b", "B") or (negated and pair[1:] in ("w", "d"))
            at += 1
        elif inside and char == "]":
            inside = negated = False
        elif inside and rust and (char == "[" or pair in ("&&", "--", "~~")):
            raise GrammarError(
                f"pattern {pattern!r}: {pair if char != '[' else '['!r} in a class means something else to pydantic; "
                "escape it, or set regex_engine='python-re'"
            )
        elif not inside and char == "[":
            inside, negated = True, pattern[at : at + 1] == "^"
            # A bracket that comes first is a character there.
            at += negated
    return ascii_only
