"""Texts that ``diffusion_adapt.py`` learns from, and others that it is measured on: what comes before, and what is filled in.

- *requests*: those of the demo models (``demo_data.py``), so that today's demo model can be compared with;
- *documents*: valid JSON documents of the MaskBench dev schemas, behind an outline of their schema;
- *sources*: windows of Python files in the standard library and in site-packages, behind the lines before them.

Whole schemas and whole packages are held out, by a hash of their name.  Held-out requests are those of ``train_demo_diffusion.py``.
"""

from __future__ import annotations

import gzip
import json
import sysconfig
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from demo_data import draw
from walks import DEFAULT_DATA

from maskwright.demo.prompts import schema_outline

HELD_OUT_SHARE = 12
"""One schema and one package of so many is held out."""
LONGEST_OUTLINE = 700
LONGEST_DOCUMENT = 400
"""Bytes."""
WINDOW = 240
"""Characters of a source that are filled in, behind as many that are given."""


class Text(NamedTuple):
    """``before`` is read, ``text`` filled in; ``whole`` says whether the text ends there."""

    kind: str
    before: str
    text: str
    whole: bool
    schema: Any = None


def prompt_of(request: str, schema: Any) -> str:
    return f"{request}\nSchema: {schema_outline(schema)}\nJSON:\n".lstrip()


def is_held_out(name: str) -> bool:
    return zlib.crc32(name.encode()) % HELD_OUT_SHARE == 0


def excluded_requests() -> frozenset[str]:
    """The prompts of ``bench/diffusion.py quality``, which nothing may be trained on."""
    rng = Random("held-out 0")
    return frozenset(draw(rng, frozenset()).prompt for _ in range(220))


def request(rng: Random, excluded: frozenset[str]) -> Text:
    example = draw(rng, excluded)
    asked = example.prompt.split("\nSchema: ")[0]
    return Text("requests", prompt_of(asked, example.schema), example.answer(), True, example.schema)


def held_out_requests(count: int) -> list[Text]:
    rng = Random("held-out 0")
    return [request(rng, frozenset()) for _ in range(count)]


@cache
def documents(held_out: bool, data: Path = DEFAULT_DATA) -> list[Text]:
    """Documents of up to ``LONGEST_DOCUMENT`` bytes, each as one line and indented."""
    found = []
    with gzip.open(data, "rt") as file:
        for case in map(json.loads, file):
            schema, outline = case["schema"], schema_outline(case["schema"])
            if is_held_out(case["id"]) != held_out or len(outline) > LONGEST_OUTLINE:
                continue
            title = schema.get("title") if isinstance(schema, dict) else None
            asked = str(title)[:80] if title else "A document."
            for test in case["tests"]:
                for indent in (None, 2):
                    text = json.dumps(test["data"], ensure_ascii=False, indent=indent)
                    if test["valid"] and 8 <= len(text.encode()) <= LONGEST_DOCUMENT:
                        found.append(Text("documents", prompt_of(asked, schema), text, True, schema))
    return found


@cache
def source_files(held_out: bool) -> list[Path]:
    """Python files; a package is the folder or file right below the standard library or site-packages."""
    found = []
    for root in map(Path, {sysconfig.get_path("stdlib"), sysconfig.get_path("purelib")}):
        for top in sorted(root.iterdir()):
            if top.name in ("site-packages", "test", "__pycache__") or is_held_out(top.name) != held_out:
                continue
            found += sorted(top.rglob("*.py"))[:60] if top.is_dir() else [top] if top.suffix == ".py" else []
    return found


def window(rng: Random, held_out: bool) -> Text:
    """Some lines of a source; no licence, of which there are too many."""
    while True:
        lines = rng.choice(source_files(held_out)).read_text("utf-8", "replace").splitlines(keepends=True)
        start = rng.randrange(max(1, len(lines)))
        text = "".join(lines[start : start + 12])[:WINDOW]
        if len(text.strip()) > WINDOW // 2 and "licen" not in text.lower():
            before = "".join(lines[max(0, start - 8) : start])[-WINDOW:]
            return Text("sources", before, text, False)


def training_texts(rng: Random) -> Iterator[Text]:
    """Endless: nearly half requests, a third documents, the rest sources."""
    excluded = excluded_requests()
    while True:
        kind = rng.random()
        if kind < 0.45:
            yield request(rng, excluded)
        elif kind < 0.78:
            yield rng.choice(documents(False))
        else:
            yield window(rng, False)


def held_out_texts(count: int) -> list[Text]:
    """``count`` of each kind, always the same ones."""
    rng = Random("held-out texts")
    return [
        *held_out_requests(count),
        *rng.sample(documents(True), count),
        *(window(rng, True) for _ in range(count)),
    ]
