"""Reading structural tags: the JSON around formats, and the fields in them."""

from __future__ import annotations

import re
from typing import Any

from maskwright.base.deadline import check_time
from maskwright.errors import GrammarError, LimitError
from maskwright.frontends.json_text import read_json
from maskwright.frontends.size import check_length
from maskwright.limits import Limits

_SURROGATE = re.compile("[\ud800-\udfff]")


def read_tag(tag: object, limits: Limits) -> dict[str, Any]:
    if isinstance(tag, str):
        check_length(tag, limits)
        text = tag
        try:
            tag = read_json(tag, float)
        except GrammarError as error:
            raise GrammarError(
                f"a structural tag is JSON: {error.message}", place=error.place, source=text
            ) from None
    if not isinstance(tag, dict):
        raise GrammarError(f"a structural tag is a JSON object, not {type(tag).__name__}", place="#")
    return tag


def check_size(source: dict[str, Any], limits: Limits) -> None:
    """Raises ``LimitError`` for too many values: formats that Python shares are built at each of their places.

    Schemas in it are counted where they are read.
    """
    level: list[Any] = [source]
    count = 0
    while level:
        check_time()
        count += len(level)
        if count > limits.max_schema_values:
            raise LimitError("max_schema_values", count, limits.max_schema_values)
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                below.extend(held for name, held in value.items() if name != "json_schema")
            elif isinstance(value, (list, tuple)):
                below.extend(value)
        level = below


def legacy(source: dict[str, Any]) -> dict[str, Any]:
    """The older form: ``structures`` of begin, schema and end."""
    tags = []
    for i, item in enumerate(list_field(source, "structures", "")):
        if not isinstance(item, dict) or not {"begin", "end"} <= item.keys():
            raise GrammarError("a structure has begin, schema and end", place=f"/structures/{i}")
        content = {"type": "json_schema", "json_schema": item.get("schema", True)}
        tags.append({"type": "tag", "begin": item["begin"], "content": content, "end": item["end"]})
    return {"type": "triggered_tags", "triggers": source["triggers"], "tags": tags}


def list_field(source: dict[str, Any], name: str, pointer: str) -> list[Any]:
    value = source.get(name)
    if not isinstance(value, (list, tuple)):
        raise GrammarError(f"{name} is a list", place=f"{pointer}/{name}")
    return list(value)


def text_field(source: dict[str, Any], name: str, pointer: str) -> str:
    value = source.get(name)
    if not isinstance(value, str):
        raise GrammarError(f"{name} is a text", place=f"{pointer}/{name}")
    check_encodable(value, f"{pointer}/{name}")
    return value


def texts_field(source: Any, name: str, pointer: str, *, empty: bool = False) -> list[str]:
    value = source.get(name, [])
    if not isinstance(value, (list, tuple)) or not all(isinstance(v, str) and (v or empty) for v in value):
        raise GrammarError(f"{name} is a list of texts that are not empty", place=f"{pointer}/{name}")
    for text in value:
        check_encodable(text, f"{pointer}/{name}")
    return list(value)


def check_encodable(text: str, place: str) -> None:
    if not text.isascii() and _SURROGATE.search(text):
        raise GrammarError("a surrogate is no character", place=place)


def flag_field(source: dict[str, Any], name: str, pointer: str, default: bool = False) -> bool:
    value = source.get(name, default)
    if not isinstance(value, bool):
        raise GrammarError(f"{name} is true or false", place=f"{pointer}/{name}")
    return value
