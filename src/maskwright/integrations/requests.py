"""What back-ends of serving engines share: limits from the environment, grammars in either language, and bits of masks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

import maskwright as mw


def limits_of_environment(variable: str) -> mw.Limits:
    """The fields of ``mw.Limits`` that a variable gives as JSON.  Raises ``MaskwrightError`` for anything else."""
    text = os.environ.get(variable, "")
    if not text:
        return mw.Limits()
    try:
        return mw.Limits(**json.loads(text))
    except (TypeError, ValueError) as error:
        raise mw.MaskwrightError(f"{variable}={text!r}: {error}") from None


def compile_grammar_text(text: str, is_lark: bool, vocabulary: mw.Vocabulary, limits: mw.Limits) -> Any:
    """A grammar whose request does not say which language it is in; errors say as what it was read.

    Raises the errors of ``mw.compile``.
    """
    try:
        return mw.compile(mw.Lark(text) if is_lark else mw.GBNF(text), vocabulary, limits=limits)
    except mw.MaskwrightError as error:
        language = "Lark: no line has '::='" if is_lark else "GBNF: a line has '::='"
        # The class stays, so that a limit is told from a mistake.
        error.args = (f"the grammar was read as {language}. {error}",)
        raise


def allow(row: npt.NDArray[np.int32], tokens: Iterable[int]) -> None:
    """Set the bits of ``tokens`` in a mask ``[words]``."""
    words = row.view(np.uint32)
    for token in tokens:
        words[token >> 5] |= np.uint32(1 << (token & 31))


def deny(row: npt.NDArray[np.int32], tokens: Iterable[int]) -> None:
    """Clear the bits of ``tokens`` in a mask ``[words]``."""
    words = row.view(np.uint32)
    for token in tokens:
        words[token >> 5] &= np.uint32(~(1 << (token & 31)) & 0xFFFFFFFF)
