"""The grammars that come with the package (the folder ``grammars``)."""

from __future__ import annotations

import json
from importlib.resources import files

from maskwright.errors import GrammarError
from maskwright.sources import Lark

_FOLDER = files("maskwright") / "grammars"


def shipped_grammars() -> list[str]:
    """The names that ``shipped_grammar`` knows, sorted."""
    return sorted(
        entry.name.removesuffix(".lark") for entry in _FOLDER.iterdir() if entry.name.endswith(".lark")
    )


def shipped_grammar(name: str) -> Lark:
    """A grammar that comes with the package, as a source for ``compile``: "sql", "python", "json" ...

    Raises ``GrammarError`` for another name.
    """
    if name not in shipped_grammars():
        raise GrammarError(
            f"there is no shipped grammar {name!r}: it is one of {', '.join(shipped_grammars())}"
        )
    return Lark((_FOLDER / f"{name}.lark").read_text(encoding="utf-8"))


def examples(name: str) -> dict[str, list[str]]:
    """Texts to "accept" and to "reject" of a shipped grammar."""
    found: dict[str, list[str]] = json.loads(
        (_FOLDER / "examples" / f"{name}.json").read_text(encoding="utf-8")
    )
    return found
