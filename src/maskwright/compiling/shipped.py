"""The grammars that come with the package (the folder ``grammars``)."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from maskwright.errors import GrammarError
from maskwright.sources import Lark

_FOLDER = files("maskwright") / "grammars"
_ON = re.compile(r"// On (\w+)\.lark")


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
    return Lark(_text(name))


def _text(name: str) -> str:
    """The text of a grammar.  One that begins with ``// On NAME.lark`` stands behind the rules of that one, and its modes behind the
    modes of that one: all names are in one space, so that it can extend and override any of them."""
    text = (_FOLDER / f"{name}.lark").read_text(encoding="utf-8")
    on = _ON.match(text)
    if on is None:
        return text
    pairs = zip(_halves(_text(on[1])), _halves(text), strict=True)
    return "".join(f"{first}\n{second}" for first, second in pairs)


def _halves(text: str) -> tuple[str, str]:
    """What stands before the first mode, and the modes."""
    at = text.find("\n%mode") + 1 or len(text)
    return text[:at], text[at:]


def examples(name: str) -> dict[str, list[str]]:
    """Texts to "accept" and to "reject" of a shipped grammar."""
    found: dict[str, list[str]] = json.loads(
        (_FOLDER / "examples" / f"{name}.json").read_text(encoding="utf-8")
    )
    return found
