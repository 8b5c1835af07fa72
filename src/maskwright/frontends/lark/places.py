"""Where names stand in a grammar text: the package's trees do not say it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from maskwright.errors import GrammarError, line_column
from maskwright.frontends.lark.literals import REGEXP, STRING

_TEXTS = rf"{STRING}|{REGEXP}|//[^\n]*"
"""Where a name stands for nothing."""
_IMPORT = re.compile(r"%import[ \t]+\.*([\w.]+)")


class Places:
    """The places of one text.  ``imported`` are the names of definitions that stand in other files."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.imported: set[str] = set()

    def error(self, message: str, place: str | None) -> GrammarError:
        """An error at a place, if there is one."""
        return GrammarError(message, place=place, source=self.text)

    def of_definition(self, name: str) -> str | None:
        """Where a name is defined, or else first used; of what was imported, where that is asked for."""
        head = rf"^[ \t]*(?:%\w+[ \t]+)?[?!]*(?P<use>{re.escape(name)})[ \t]*(?:\{{[^}}\n]*\}})?[ \t]*(?:\.[ \t]*-?\d+)?[ \t]*:"
        defined = re.search(head, self.text, re.MULTILINE)
        if defined is not None:
            return line_column(self.text, defined.start("use"))
        used = self.of_use(name)
        if used is not None:
            return used
        # Names of what an imported grammar uses begin with the path of its file.
        for found in _IMPORT.finditer(self.text):
            parts = found[1].split(".")
            for end in range(len(parts), 0, -1):
                if name.lstrip("_").startswith("__".join(parts[:end]).lstrip("_") + "__"):
                    return line_column(self.text, found.start())
        return None

    def of_use(self, name: str, behind: str = "") -> str | None:
        """Where a name is used first, with a pattern that must match behind it."""
        use = rf"(?P<use>(?<![\w%]){re.escape(name)}(?!\w){behind})"
        for found in re.finditer(rf"{_TEXTS}|{use}", self.text):
            if found["use"]:
                return line_column(self.text, found.start())
        return None

    def of_import(self, path: str) -> str | None:
        """Where a grammar is imported, by the path as it is written."""
        found = next(
            (each for each in _IMPORT.finditer(self.text) if f"{each[1]}.".startswith(f"{path}.")), None
        )
        return None if found is None else line_column(self.text, found.start())

    def of_imported(self, path: str, name: str) -> str | None:
        """Where a name of a grammar is imported, by the path as it is written."""
        head = (
            rf"%import[ \t]+\.*{re.escape(path)}(?:\.|[ \t]*\((?:[^)]*\W)?)(?P<use>{re.escape(name)})(?!\w)"
        )
        found = re.search(head, self.text)
        return None if found is None else line_column(self.text, found.start("use"))

    def of_tokens(self, parts: Iterable[Any], owner: str) -> str | None:
        """Where a part of a rule or terminal stands, as far as its tokens say it."""
        if owner not in self.imported:
            for token in parts:
                if getattr(token, "line", None) is not None:
                    return f"{token.line}:{token.column}"
        return self.of_definition(owner)
