"""Pages of the documentation: their snippets, run as a reader pastes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from places import ROOT

DOCS = ROOT / "docs"
HUB_NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
"""What pages call the default model where a name is asked for; tests have its folder instead, as there may be no hub."""


def path_of(page: str) -> Path:
    """A page of ``docs``, or the README."""
    return ROOT / page if page == "README.md" else DOCS / page


def blocks(page: str, language: str) -> list[str]:
    """What stands between ```` ```language ```` and ```` ``` ````."""
    return re.findall(
        rf"^```{language}\n(.*?)^```", path_of(page).read_text("utf-8"), re.DOTALL | re.MULTILINE
    )


def run(page: str, only: slice = slice(None), instead: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The names that a page's snippets (those of ``only``) leave behind, run one after another in a fresh namespace.

    ``instead``: texts that must be there, and what stands for them here: the port of a server, the folder of a model.
    """
    code = "\n".join(blocks(page, "python")[only])
    for text, other in (instead or {}).items():
        assert text in code, text
        code = code.replace(text, other)
    names: dict[str, Any] = {"__name__": "docs"}
    # As a reader pastes it: what this file imports from __future__ is not theirs.
    exec(compile(code, page, "exec", dont_inherit=True), names)
    return names
