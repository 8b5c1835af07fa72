"""The grammars that come with the package (the folder ``grammars``)."""

from __future__ import annotations

import json
import re
from importlib.resources import files

from maskwright.base.arguments import check_type
from maskwright.errors import GrammarError
from maskwright.sources import Lark

_FOLDER = files("maskwright") / "grammars"
_ON = re.compile(r"// On ([\w.-]+)\.lark")
_VERSIONS = {"python": ("3.11", "3.12", "3.13"), "shell": ("posix", "bash")}
"""Of grammars that come in several: the first is NAME.lark, and what a later one adds is NAME-VERSION.lark."""


def shipped_grammars() -> list[str]:
    """The names that ``shipped_grammar`` knows, sorted."""
    names = [entry.name.removesuffix(".lark") for entry in _FOLDER.iterdir() if entry.name.endswith(".lark")]
    return sorted(name for name in names if "-" not in name)


def shipped_grammar(name: str, version: str | None = None) -> Lark:
    """A grammar that comes with the package, as a source for ``compile``: "sql", "python", "json" ...

    ``version``, of a language that comes in several: "3.11" (the same as None), "3.12" or "3.13" of "python"; "posix" (the same as None),
    which all shells read, or "bash" of "shell".

    Raises ``GrammarError`` for another name or version.
    """
    if not isinstance(name, str) or name not in shipped_grammars():
        raise GrammarError(
            f"there is no shipped grammar {name!r}: it is one of {', '.join(shipped_grammars())}"
        )
    return Lark(_text(f"{name}{_suffix(name, version)}"))


def _suffix(name: str, version: str | None) -> str:
    """What a version adds to the name of a file."""
    known = _VERSIONS.get(name, ())
    # A number would lose zeros: 3.1 is not 3.10.
    check_type(version, (str, type(None)), "version", GrammarError)
    if version is None or version in known[:1]:
        return ""
    if version not in known:
        hint = f"it is one of {', '.join(known)}" if known else "it comes in one only, without version="
        raise GrammarError(f"there is no version {version!r} of the shipped grammar {name!r}: {hint}")
    return f"-{version}"


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
    """Texts to "accept" and to "reject" of a shipped grammar ("python", "python-3.12")."""
    found: dict[str, list[str]] = json.loads(
        (_FOLDER / "examples" / f"{name}.json").read_text(encoding="utf-8")
    )
    return found
