"""Inputs and outputs of batches, for the tests of each back-end."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import jsonschema
from tiny_model import TINY

PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
    "required": ["name", "age"],
    "additionalProperties": False,
}  # fmt: skip
COLOUR: dict[str, Any] = {"enum": ["red", "green", "blue"]}
TEMPLATE = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}"


def chatty_model(folder: Path) -> Path:
    """The tiny model, with a chat template."""
    shutil.copytree(TINY, folder)
    (folder / "chat_template.jinja").write_text(TEMPLATE, encoding="utf-8")
    return folder


def plain_rows(count: int) -> list[dict[str, Any]]:
    """Every third with a schema of its own."""
    return [
        {"id": f"r{i}", "prompt": f"Person number {i}:", **({"schema": COLOUR} if i % 3 == 0 else {})}
        for i in range(count)
    ]


def openai_rows(count: int, **body: Any) -> list[dict[str, Any]]:
    """Every third with a schema of its own."""
    own = {"response_format": {"type": "json_schema", "json_schema": {"name": "colour", "schema": COLOUR}}}
    return [
        {
            "custom_id": f"r{i}",
            "method": "POST",
            "url": "/v1/chat/completions",
            "body": {
                "messages": [{"role": "user", "content": f"Person number {i}:"}],
                **(own if i % 3 == 0 else {}),
                **body,
            },
        }
        for i in range(count)
    ]


def write_rows(path: Path, rows: Iterable[Any]) -> str:
    """One a line; texts as they are."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def read_rows(path: Path | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def check_filled(path: Path | str, count: int) -> list[dict[str, Any]]:
    """Rows of ``plain_rows`` or ``openai_rows``: each is there once, and follows its schema."""
    rows = read_rows(path)
    names = [row.get("custom_id", row["id"]) for row in rows]
    assert sorted(names) == sorted(f"r{i}" for i in range(count))
    for name, row in zip(names, rows, strict=True):
        schema = PERSON if int(name[1:]) % 3 else COLOUR
        if "custom_id" in row:
            for choice in row["response"]["body"]["choices"]:
                jsonschema.validate(json.loads(choice["message"]["content"]), schema)
        else:
            jsonschema.validate(row["value"], schema)
            assert json.loads(row["text"]) == row["value"]
    return rows
