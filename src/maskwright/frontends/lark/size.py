"""How long a grammar text may be: the package lark, which reads it, makes objects of each of its tokens, and frees many of them at once."""

from __future__ import annotations

import re

from maskwright.base.deadline import in_time
from maskwright.errors import LimitError
from maskwright.frontends.lark.literals import REGEXP, STRING
from maskwright.limits import Limits

_TOKEN = re.compile(rf"{STRING}|{REGEXP}|//[^\n]*|\w+|[^\s\w]")
CHARACTERS = 10
"""Of a token with what stands around it: usual are 5 to 8."""


_LONGEST = 2
"""Times as many characters may one token have as a text tokens: the package reads it one by one, and lets nobody else run."""


def check_size(text: str, limits: Limits) -> None:
    """Raises ``LimitError`` (max_lark_tokens)."""
    most = limits.max_lark_tokens
    if len(text) <= most:
        return
    count, longest = len(text) // CHARACTERS, 0
    if count <= most:
        count = 0
        for token in in_time(_TOKEN.finditer(text)):
            count += 1
            if not text.startswith("//", token.start()):
                longest = max(longest, token.end() - token.start())
    if count > most:
        raise LimitError("max_lark_tokens", count, most, subject=f"a Lark grammar of {len(text)} characters")
    if longest > _LONGEST * most:
        subject = f"a text or pattern of {longest} characters"
        raise LimitError("max_lark_tokens", -(-longest // _LONGEST), most, subject=subject)
