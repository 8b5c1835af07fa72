"""The recorded cases: what they say, and the tokens that they are read in.

A file of cases is a JSON array of objects:

    {"group": "oneOf", "name": "overlapping numbers",
     "schema": {"oneOf": [{"type": "integer", "maximum": 10}, {"type": "integer", "minimum": 5}]},
     "valid": [4, 11], "invalid": [5, 10]}

``schema`` or ``regex``      the language: a JSON Schema, or a regular expression that the whole output matches
``valid``, ``invalid``       values, written as ``json.dumps(value, ensure_ascii=False)``
``valid_texts``, ``invalid_texts``  outputs as they stand; a list of [piece, count] is the pieces, each so many times
``invalid_bytes``            outputs in hexadecimal, for what is no UTF-8
``language``                 all texts of the language: then no mask may have anything else; where ``exact`` is true, all
                             of it must be there, however a text is divided into tokens
``rollback``                 ``"tokens"``: tokens are taken back and read again on the way; ``"end"``: an end id, too
``tokens``                   changes to the vocabulary: ``ends`` (number of end ids), ``padding`` (ids behind the vocabulary),
                             ``multiple`` (the vocabulary is filled up to a multiple of 32 first), ``holes`` (ids without
                             text), ``twins`` (texts that have a second id)
``judge``                    ``"ecma"`` where Python's ``re`` cannot read a pattern (for tests of the cases themselves)
``basis``                    ``"practice"`` where no specification says so: white space without end is JSON, and no output

A case without anything valid has an empty language: there, refusing it is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from maskwright.conformance.protocol import ConformanceError, Language, Tokens

_FOLDER = Path(__file__).parent / "cases"
_END_NAMES = ("</s>", "<|end|>", "<|im_end|>")
_ROLLBACKS = ("tokens", "end")
_FIELDS = {
    "group", "name", "schema", "regex", "valid", "invalid", "valid_texts", "invalid_texts", "invalid_bytes", "language", "exact",
    "rollback", "tokens", "basis", "judge",
}  # fmt: skip
_PIECES = (
    *('{"', '":', '": ', '": "', '",', '", "', '"}', '"},', '"]', "},", "}}", "[[", "]]", "[]", "{}", "],", '["', ", ", ": ", ",\n"),
    *("  ", "    ", "\n  ", "\n\n", " \n", "\\n", '\\"', "\\u", "\\\\", "\\u00", "//"),
    *("true", "false", "null", "tr", "al", "se", "ue", "nu", "ll"),
    *("00", "01", "10", "12", "20", "99", "100", "000", "1.", ".5", ".0", "-1", "e+", "1e", "19", "202", "-02"),
    *("ab", "aa", "aaa", "bb", "ba", "abc", "xy", "the", "he", "th", "em", "en", "in", "re", "ed", "er", "or", "name", "na", "val"),
    *("kind", "circle", "yes", "no", "not", " not", " now", " cat", " car", "ca", "st", "stop", "int", "text", "</", "s>", "<|", "|>"),
    *("end", "é", "日", "日本", "本", "語", "ß", "Ω", "名", "\u00c3", "\u2028"),
)  # fmt: skip
# Parts of characters: of 日, of a musical sign.
_PARTS = (b"\xe6\x97", b"\x97\xa5", b"\xf0\x9d", b"\x84\x9e", b"\xf0\x9d\x84")


@dataclass(frozen=True)
class Case:
    """One case; outputs are bytes."""

    group: str
    name: str
    kind: Language
    source: str
    valid: tuple[bytes, ...]
    invalid: tuple[bytes, ...]
    language: tuple[bytes, ...] | None = None
    exact: bool = False
    rollback: str = ""
    basis: str = "specification"
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Of the vocabulary."""

    @property
    def id(self) -> str:
        """``group/name``."""
        return f"{self.group}/{self.name}"

    @property
    def is_empty(self) -> bool:
        """Whether no output is in the language, so that an engine may well refuse it."""
        return not self.valid and not self.language

    def tokens(self) -> Tokens:
        """The vocabulary that the case is read in."""
        return _tokens(json.dumps(self.changes, sort_keys=True))


def load_cases(paths: Iterable[str | Path] = ()) -> list[Case]:
    """The cases of some files, else those of this package, in order.

    Raises ``ConformanceError`` for what is no file of cases, with its name; ``OSError`` where one cannot be read.
    """
    found = []
    for path in [*map(Path, paths)] or sorted(_FOLDER.glob("*.json")):
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            found += [_case(entry) for entry in read]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ConformanceError(f"{path}: no file of cases: {error}") from None
    return found


def _case(entry: dict[str, Any]) -> Case:
    where = f"{entry['group']}/{entry['name']}"
    if unknown := entry.keys() - _FIELDS:
        raise ValueError(f"{where}: unknown {', '.join(sorted(unknown))}")
    if ("schema" in entry) == ("regex" in entry):
        raise ValueError(f"{where}: a case has a schema or a regex")
    kind: Language = "regex" if "regex" in entry else "json_schema"
    source = entry["regex"] if kind == "regex" else json.dumps(entry["schema"], ensure_ascii=False)
    for field_name in ("valid_texts", "invalid_texts", "invalid_bytes", "language"):
        if not isinstance(entry.get(field_name, []), list):
            raise ValueError(f"{where}: {field_name} is a list")
    if entry.get("rollback", "") not in ("", *_ROLLBACKS):
        raise ValueError(f"{where}: rollback is one of {', '.join(_ROLLBACKS)}")
    try:
        _tokens(json.dumps(entry.get("tokens", {})))
    except (ValueError, TypeError, IndexError, AttributeError) as error:
        raise ValueError(f"{where}: tokens: {error}") from None
    valid = [*map(_written, entry.get("valid", ())), *map(_spelled, entry.get("valid_texts", ()))]
    invalid = [*map(_written, entry.get("invalid", ())), *map(_spelled, entry.get("invalid_texts", ()))]
    invalid += [bytes.fromhex(each) for each in entry.get("invalid_bytes", ())]
    language = tuple(map(_spelled, entry["language"])) if "language" in entry else None
    return Case(
        entry["group"],
        entry["name"],
        kind,
        source,
        tuple(valid),
        tuple(invalid),
        language,
        bool(entry.get("exact")),
        entry.get("rollback", ""),
        entry.get("basis", "specification"),
        entry.get("tokens", {}),
    )


def _written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()


def _spelled(text: str | list[tuple[str, int]]) -> bytes:
    return (text if isinstance(text, str) else "".join(piece * count for piece, count in text)).encode()


@cache
def _tokens(changes: str) -> Tokens:
    """All bytes, common pieces of text, then holes and end ids."""
    made: dict[str, Any] = {"ends": 1, "padding": 0, "multiple": False, "holes": 0, "twins": ()}
    changed = json.loads(changes)
    if not isinstance(changed, dict) or not changed.keys() <= made.keys():
        raise ValueError(f"an object with {', '.join(made)}, not {changed}")
    made |= changed
    if not 0 < made["ends"] <= len(_END_NAMES):
        raise ValueError(f"there are 1 to {len(_END_NAMES)} ends")
    texts = [bytes([value]) for value in range(256)]
    texts += [piece.encode() for piece in _PIECES] + list(_PARTS)
    texts += [text.encode() for text in made["twins"]] + [b""] * made["holes"]
    first = len(texts)
    texts += [b""] * made["ends"]
    if made["multiple"]:
        texts += [b""] * (-len(texts) % 32)
    ends = {first + i: _END_NAMES[i] for i in range(made["ends"])}
    return Tokens(tuple(texts), ends, len(texts) + made["padding"])
