"""Patterns of Python types: pydantic reads them with Rust's regex or Python's, and the engine as ECMA-262 has them.

What these read alike needs nothing.  Characters that they tell apart differently are not written; what means something else is a
``GrammarError``, here or where the engine reads the pattern.
"""

from __future__ import annotations

import re

from maskwright.errors import GrammarError

ASCII_TEXT = r"^[\x00-\x7f]*$"
_NO_ODD_BLANKS = r"^[^\x1c-\x1f\x85\ufeff]*$"
"""Of these, ECMA-262, Python and Rust do not agree which are blanks."""
_ONE_KIND_OF_LINES = r"^[^\r\u2028\u2029]*$"
"""Texts whose lines end with a line feed, as all have it."""
_NO_LAST_LINE_FEED = r"^(?:[^]*[^\n])?$"
"""Before one that comes last, Python finds an end of the text."""
_NOT_EMPTY = r"[^]"
_FLAGS = {re.IGNORECASE: "i", re.DOTALL: "s", re.MULTILINE: "m"}
_COUNT = re.compile(r"\{(?=[\s,]*\d|\s*,)[\s\d,]*\}")
_PLAIN_COUNT = re.compile(r"\{\d+(?:,\d*)?\}")


def as_read(pattern: str | re.Pattern[str], *, rust: bool) -> list[str]:
    """Patterns that, all of them, are only in texts in which pydantic finds ``pattern``.

    ``rust``: whether Rust's regex reads those that are not compiled.
    Raises ``GrammarError`` for what means something else there.
    """
    if isinstance(pattern, str) and rust:
        return [pattern, *_beside(pattern, rust=True)]
    compiled = re.compile(pattern)
    text = compiled.pattern
    letters = "".join(letter for flag, letter in _FLAGS.items() if compiled.flags & flag)
    if compiled.flags & ~(re.UNICODE | re.ASCII | re.IGNORECASE | re.DOTALL | re.MULTILINE):
        raise _refusal(text, "its flags", "without re.VERBOSE, re.LOCALE and re.DEBUG")
    # Those of the whole pattern, which the flags have as well.
    text = re.sub(r"^\(\?[a-zA-Z]+\)", "", text)
    if letters:
        text = f"(?{letters}:{text})"
    beside = _beside(text, rust=False)
    return [text, *beside, *([ASCII_TEXT] if compiled.flags & re.ASCII else [])]


def _refusal(pattern: str, what: str, advice: str) -> GrammarError:
    return GrammarError(f"pattern {pattern!r}: pydantic reads {what} in another way; write it {advice}")


def _beside(pattern: str, *, rust: bool) -> list[str]:
    """What else holds for texts in which both readers find the pattern."""
    # Where a text must not go on as said, what a reader finds less is not less that is written.
    excludes = re.search(r"\(\?<?!", pattern) is not None
    caseless, multiline = (re.search(rf"\(\?[a-z]*{flag}", pattern) is not None for flag in "im")
    seen: set[str] = set()
    inside = complement = ascii_only = False
    at = 0
    while at < len(pattern):
        char, pair = pattern[at], pattern[at : at + 2]
        at += 1
        if char == "\\":
            at += 1
            seen.add(pair)
            if not inside:
                if rust and pair in (r"\<", r"\>"):
                    raise _refusal(pattern, repr(pair), "without the backslash")
                if pair in (r"\b", r"\B") and pattern[at : at + 1] == "{":
                    raise _refusal(pattern, repr(pair + "{"), r"as \b alone")
            if caseless and (pair == r"\P" or (pair == r"\p" and complement)):
                raise _refusal(pattern, f"{pair} without regard to case", "outside of (?i:")
            # Complements, and borders of words, depend on which letters there are.
            ascii_only |= pair in (r"\W", r"\D", r"\b", r"\B")
            ascii_only |= pair in (r"\w", r"\d") and (complement or excludes)
        elif inside:
            if char == "]":
                inside = complement = False
            elif rust and (char == "[" or pair in ("&&", "--", "~~")):
                raise GrammarError(
                    f"pattern {pattern!r}: {pair if char != '[' else '['!r} in a class means something else to pydantic; "
                    "escape it, or set regex_engine='python-re'"
                )
        elif char == "[":
            inside, complement = True, pattern[at : at + 1] == "^"
            at += complement
            if pattern[at : at + 1] == "]":
                raise _refusal(pattern, "a bracket that comes first in a class", r"as \]")
            # Each reader has a list of its own of the letters that differ in case alone.
            ascii_only |= caseless and complement
        elif (count := _COUNT.match(pattern, at - 1)) and not _PLAIN_COUNT.fullmatch(count[0]):
            raise _refusal(pattern, repr(count[0]), "as in {0,2}, or with a backslash before the brace")
        else:
            seen.add(char)
    ascii_only |= caseless and excludes
    if caseless and ascii_only and not pattern.isascii():
        raise _refusal(pattern, "what is left out without regard to case", "outside of (?i:")
    return [
        *([ASCII_TEXT] if ascii_only else []),
        *([_NO_ODD_BLANKS] if seen & {r"\s", r"\S"} else []),
        *([_ONE_KIND_OF_LINES] if multiline or (excludes and "." in seen) else []),
        *([_NO_LAST_LINE_FEED] if excludes and "$" in seen else []),
        *([_NOT_EMPTY] if not rust and r"\B" in seen else []),
    ]
