"""Attributes that exist, in Python code, as the static analysis of jedi finds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from maskwright.errors import MaskwrightError
from maskwright.sampling.monitors.monitor import Monitor
from maskwright.vocabulary.vocabulary import Vocabulary


class PythonAttributes(Monitor):
    """Python code in which the name behind a dot is an attribute that jedi knows there.

    ``context``: the code before the text that is written (a prompt), which the analysis reads as well.  Where jedi
    finds nothing (an unknown type, a number, a string, an import) anything may follow, as behind dots of comments and texts.
    ``private``: whether names with a leading underscore count.  An analysis takes 10 to 100 ms, and is remembered for each text.
    Needs ``pip install "maskwright[jedi]"``.
    """

    def __init__(self, vocabulary: Vocabulary, context: str = "", *, private: bool = True) -> None:
        try:
            import jedi
            from parso.grammar import load_grammar
        except ImportError:
            raise MaskwrightError('PythonAttributes needs jedi: pip install "maskwright[jedi]"') from None
        self._jedi: Any = jedi
        self._grammar: Any = load_grammar()
        self._context = context
        self._private = private
        super().__init__(vocabulary, self.names, triggers=b".", between=b" \t\f\r\n\\", released=b"#")

    def names(self, text: str) -> Iterable[str] | None:
        """The attributes that may follow ``text``, or None where nothing is known."""
        code = self._context + text
        if not code.endswith(".") or not self._is_access(code):
            return None
        lines = code.split("\n")
        try:
            found = self._jedi.Script(code).complete(len(lines), len(lines[-1]))
        except Exception:
            # The analysis of code that is being written may fail in any way; then nothing is known.
            return None
        # A keyword here means that jedi did not see an attribute access.
        names = [one.name for one in found if one.type != "keyword"]
        if not self._private:
            names = [name for name in names if not name.startswith("_")]
        return names or None

    def _is_access(self, code: str) -> bool:
        """Whether the dot at the end is an operator behind a value, and no part of a comment, a text, a number or an import."""
        end = self._grammar.parse(code).get_last_leaf()
        leaf = end.get_previous_leaf() if end is not None else None
        if leaf is None or end.prefix or leaf.type != "operator" or leaf.value != ".":
            return False
        before = leaf.get_previous_leaf()
        if before is None or (before.type != "name" and before.value not in (")", "]", "}")):
            return False
        while before is not None and before.type != "newline":
            if before.value in ("import", "from") and before.type in ("keyword", "error_leaf", "name"):
                return False
            before = before.get_previous_leaf()
        return True
