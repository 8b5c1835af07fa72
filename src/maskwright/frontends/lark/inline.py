"""What the package lark does not look into: ``%json {...}``, ``%regex {...}`` and tokens ``<name>``, ``<[ids]>``."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

from maskwright.errors import GrammarError, line_column
from maskwright.frontends.lark.literals import REGEXP, STRING
from maskwright.ir.grammar import Tokens
from maskwright.regular.expressions import Lit, Machine, Regular

_PART = "INLINE_JSON_"
_TOKEN = "INLINE_TOKEN_"
MARK = "\ue0a7"
"""Around the number of a ``%regex``, which stands in the text as a string."""
# What may hold the characters "%json" without meaning it; and what is meant.
_TOKENS = re.compile(
    rf"{STRING}|{REGEXP}|(?://|\#)[^\n]*|%(json|regex|lark|llguidance)\b"
    r"|(<\[[^\]\n]*\]>|<[^<>\s\[\]\"]+>)"
)
_ESCAPES = re.compile(
    r"(\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\U0000[dD][89a-fA-F][0-9a-fA-F]{2}|[\ud800-\udfff])|\\."
)
_RANGES = re.compile(r"\d+(?:\s*-\s*\d+)?(?:\s*,\s*\d+(?:\s*-\s*\d+)?)*")
_HEADS = re.compile(r"^[ \t]*[?!]*(\w+)[^:\n\"/]*:", re.MULTILINE)
_SUBSTRING = "substring_"
_CHUNKS = {
    "chars": re.compile(r"(?s:.)"),
    "words": re.compile(r"\w+|\s+|[^\w\s]+"),
}


@dataclass(slots=True)
class Inlined:
    """A text that the package reads, and what stands in it under other names."""

    text: str
    schemas: dict[str, Any] = field(default_factory=dict)
    """By terminal."""
    tokens: dict[str, Tokens] = field(default_factory=dict)
    """By terminal."""
    languages: dict[str, Regular] = field(default_factory=dict)
    """By the string that stands for them, without the empty text, which they all have."""


def take_inline(text: str) -> Inlined:
    """The text with a declared terminal for each inline schema and token, and a string for each inline language.

    Lines stay where they are, but for those that what was taken goes on in: they come behind the line that it ends in, which goes on with it.  Raises ``GrammarError`` for malformed JSON, and for what has no meaning.
    """
    taken = Inlined(text)
    known: dict[Tokens, str] = {}
    out, at = [], 0
    # Ends of lines within what was taken, since the last one outside.
    owed = 0
    while (found := _TOKENS.search(text, at)) is not None:
        between = text[at : found.start()]
        out.append(_with_lines(between, owed))
        owed = 0 if "\n" in between else owed
        at = found.end()
        if found[2] is not None:
            tokens = _tokens(text, found)
            name = known.setdefault(tokens, f"{_TOKEN}{len(known)}")
            taken.tokens.setdefault(name, tokens)
            out.append(name)
        elif found[1] is None:
            _check_characters(text, found)
            out.append(found[0])
        elif found[1] not in ("json", "regex"):
            raise _error(f"{found[0]} is not supported", text, found.start())
        else:
            value, at = _json(text, found)
            if found[1] == "json":
                name = f"{_PART}{len(taken.schemas)}"
                taken.schemas[name] = value
            else:
                key = f"{MARK}{len(taken.languages)}{MARK}"
                taken.languages[key] = _language(text, found.start(), value)
                name = f'"{key}"'
            out.append(name)
            owed += text.count("\n", found.start(), at)
    out.append(_with_lines(text[at:], owed))
    declared = [*taken.schemas, *taken.tokens]
    if declared:
        out.append(f"\n%declare {' '.join(declared)}\n")
    taken.text = "".join(out)
    return taken


def _with_lines(text: str, count: int) -> str:
    """With so many empty lines behind its first."""
    first, end, rest = text.partition("\n")
    return f"{first}{end}{chr(10) * count}{rest}" if end else text


def _check_characters(text: str, found: re.Match[str]) -> None:
    """A string has no surrogates, and the package does not join pairs of them to characters.  (Sets may have some.)"""
    if not found[0].startswith('"'):
        return
    for escape in _ESCAPES.finditer(found[0]):
        if escape[1]:
            message = "a surrogate is no character: write \\U0001F600 and the like"
            raise _error(message, text, found.start() + escape.start())


def _error(message: str, text: str, at: int) -> GrammarError:
    return GrammarError(message, place=line_column(text, at), source=text)


_MOST_DIGITS = 18
"""Of a token id."""


def _json(text: str, found: re.Match[str]) -> tuple[Any, int]:
    start = found.end() + len(text[found.end() :]) - len(text[found.end() :].lstrip())
    try:
        return json.JSONDecoder().raw_decode(text, start)
    except ValueError as error:
        what = "a JSON Schema" if found[1] == "json" else "a JSON object"
        raise _error(f"%{found[1]} needs {what} behind it: {error}", text, found.start()) from None
    except RecursionError:
        raise _error(f"what stands behind %{found[1]} is nested too deeply", text, found.start()) from None


def _tokens(text: str, found: re.Match[str]) -> Tokens:
    spelled, at = found[0], found.start()
    heads = [head[1] for head in _HEADS.finditer(text, 0, at)]
    if heads and heads[-1].isupper():
        message = f"the token {spelled} cannot be part of the terminal {heads[-1]}: tokens are no text; use it in a rule"
        raise _error(message, text, at)
    place = line_column(text, at)
    if not spelled.startswith("<["):
        return Tokens(names=(spelled,), place=place)
    inner = spelled[2:-2].strip()
    if inner == "*":
        return Tokens(excluded=True, place=place)
    excluded = inner.startswith("^")
    inner = inner.removeprefix("^").strip()
    if _RANGES.fullmatch(inner) is None:
        raise _error("token ids are written <[17]>, <[5-9,12]>, <[^5-9]> or <[*]>", text, at)
    ranges = []
    for part in inner.split(","):
        low, _, high = part.strip().partition("-")
        if max(len(low), len(high)) > _MOST_DIGITS:
            raise _error(f"no token id has more than {_MOST_DIGITS} digits", text, at)
        ranges.append((int(low), int(high or low)))
        if ranges[-1][0] > ranges[-1][1]:
            raise _error(f"{spelled}: the range {part.strip()} is empty", text, at)
    return Tokens(ids=tuple(ranges), excluded=excluded, place=place)


def _language(text: str, at: int, value: Any) -> Regular:
    """What ``%regex`` means: runs of neighbours in a list of texts, joined; the empty run is left out."""
    kinds = list(value) if isinstance(value, dict) else []
    kind = kinds[0].removeprefix(_SUBSTRING) if len(kinds) == 1 else ""
    if kind not in ("chunks", *_CHUNKS) or not kinds[0].startswith(_SUBSTRING):
        raise _error(
            "%regex needs one of substring_chars, substring_words (a text) and substring_chunks (a list of texts)",
            text,
            at,
        )
    given = value[kinds[0]]
    if kind == "chunks":
        if not isinstance(given, list) or not all(isinstance(chunk, str) for chunk in given):
            raise _error("substring_chunks is a list of texts", text, at)
        chunks = given
    elif isinstance(given, str):
        chunks = _CHUNKS[kind].findall(given)
    else:
        raise _error(f"{kinds[0]} is a text", text, at)
    chunks = [chunk for chunk in chunks if chunk]
    if not chunks:
        raise _error(f"{kinds[0]} has no text", text, at)
    # State i + 1 is behind chunk i, wherever the run began; state 0 is the start.
    edges = [(i, Lit(chunk), i + 1) for i, chunk in enumerate(chunks)]
    edges += [(0, Lit(chunk), i + 1) for i, chunk in enumerate(chunks) if i]
    return Machine(len(chunks) + 1, 0, tuple(edges), tuple(range(1, len(chunks) + 1)))
