"""Attributes that exist, in Python code, as the static analysis of jedi finds them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from maskwright.base.arguments import check_type
from maskwright.errors import ConstraintError, MaskwrightError
from maskwright.sampling.monitors.monitor import LINE_END, UNICODE_WORD, Monitor
from maskwright.sampling.monitors.python_text import PythonText
from maskwright.vocabulary.vocabulary import Vocabulary


class PythonAttributes(Monitor):
    """Python code in which the name behind a dot is an attribute that jedi knows there.

    ``context``: the code before the text that is written (a prompt), which the analysis reads as well.  Where jedi
    finds nothing (an unknown type, a number, a string, an import) anything may follow, as behind dots of comments and texts.
    Blanks, line ends and comments may stand before the name.
    ``private``: whether names with a leading underscore count.  An analysis takes 10 to 100 ms, and is remembered for each text.
    Needs ``pip install "maskwright[jedi]"``.
    """

    def __init__(self, vocabulary: Vocabulary, context: str = "", *, private: bool = True) -> None:
        check_type(context, str, "context", ConstraintError)
        check_type(private, bool, "private", ConstraintError)
        try:
            import jedi
        except ImportError:
            raise MaskwrightError('PythonAttributes needs jedi: pip install "maskwright[jedi]"') from None
        self._jedi: Any = jedi
        self._text = PythonText("jedi")
        self._context = context
        self._private = private
        super().__init__(
            vocabulary,
            self.names,
            triggers=b".",
            word=UNICODE_WORD,
            between=b" \t\f\r\n\\",
            comments={b"#": b"\n"},
        )

    def names(self, text: str) -> Iterable[str] | None:
        """The attributes that may follow ``text``, or None where nothing is known."""
        code = self._context + text
        if not code.endswith(".") or not self._text.is_access(code):
            return None
        lines = LINE_END.split(code)
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
