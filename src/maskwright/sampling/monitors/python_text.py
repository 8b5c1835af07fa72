"""Where Python code asks for a member, as parso reads code that goes on."""

from __future__ import annotations

from typing import Any

from maskwright.errors import MaskwrightError


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
        while before is not None and before.type != "newline" and before.value != ";":
            if before.value in ("import", "from") and before.type in ("keyword", "error_leaf", "name"):
                return False
            before = before.get_previous_leaf()
        return True
