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


def check_size(text: str, limits: Limits) -> None:
    """Raises ``LimitError`` (max_lark_tokens)."""
    most = limits.max_lark_tokens
    if len(text) <= most:
        return
    count = len(text) // CHARACTERS
    if count <= most:
        count = sum(1 for _ in in_time(_TOKEN.finditer(text)))
    if count > most:
        raise LimitError("max_lark_tokens", count, most, subject=f"a Lark grammar of {len(text)} characters")
