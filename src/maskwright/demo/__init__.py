"""Requests and schemas to try constrained decoding on, and a small diffusion model for ``maskwright infill``."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from maskwright.demo.prompts import ANSWER_TOKEN, format_prompt, schema_outline

__all__ = [
    "ANSWER_TOKEN",
    "demo_cases",
    "demo_diffusion_path",
    "format_prompt",
    "schema_outline",
]


def demo_diffusion_path() -> Path:
    """Directory of the demo masked-diffusion model, as ``AutoModelForMaskedLM.from_pretrained`` takes it."""
    return Path(str(files(__name__) / "diffusion"))


def demo_cases() -> dict[str, dict[str, Any]]:
    """The demo cases by file name.

    Each has ``title``, ``schema``, ``request``, ``answer`` (what the request says) and ``example``: another ``request`` with its
    ``answer``, which the model is shown.
    """
    folder = Path(str(files(__name__) / "cases"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
