"""Where Python code asks for a member, as parso reads code that goes on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Any

from maskwright.errors import MaskwrightError

_WORDS = ("keyword", "error_leaf", "name")


class PythonText:
    """Needs parso, which jedi brings: ``MaskwrightError`` without it says what to install, ``extra`` of this package."""

    def __init__(self, extra: str) -> None:
        try:
            from parso.grammar import load_grammar
        except ImportError:
            raise MaskwrightError(
                f'Python code is read with parso: pip install "maskwright[{extra}]"'
            ) from None
        self._grammar: Any = load_grammar()

    def is_access(self, code: str) -> bool:
        """Whether the dot at the end is an operator behind a value, and no part of a comment, a text, a number or an import."""
        end = self._grammar.parse(code).get_last_leaf()
        leaf = end.get_previous_leaf() if end is not None else None
        if leaf is None or end.prefix or leaf.type != "operator" or leaf.value != ".":
            return False
        before = leaf.get_previous_leaf()
        if before is None or (before.type != "name" and before.value not in (")", "]", "}")):
            return False
        line = list(takewhile(lambda each: each.type != "newline", _back(before)))
        # A text that has no end yet is read as its quote, and what looks like code.
        if any(_is_quote(each) and each.line == leaf.line for each in line):
            return False
        statement = list(takewhile(lambda each: each.value != ";", line))
        return not any(_is_import(each, statement[i + 1 :]) for i, each in enumerate(statement))


def _back(leaf: Any) -> Iterator[Any]:
    while leaf is not None:
        yield leaf
        leaf = leaf.get_previous_leaf()


def _is_import(leaf: Any, before: list[Any]) -> bool:
    """Whether a leaf is the word ``import``, or a ``from`` that begins one: not that of ``yield`` or ``raise``.  ``before``: nearest first."""
    if leaf.type not in _WORDS or leaf.value not in ("import", "from"):
        return False
    is_yield = bool(before) and before[0].value == "yield"
    return bool(leaf.value == "import" or not (is_yield or any(each.value == "raise" for each in before)))


def _is_quote(leaf: Any) -> bool:
    return bool(leaf.type == "error_leaf" and leaf.value[:1] in ("'", '"'))
