"""A small language model and a set of schemas to try constrained decoding on, without a download.

The model is trained on synthetic "request and schema -> JSON" text; see ``model/README.md``.
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

from maskwright.demo.prompts import ANSWER_TOKEN, format_prompt, schema_outline

__all__ = [
    "ANSWER_TOKEN",
    "demo_diffusion_path",
    "demo_model_path",
    "demo_schemas",
    "format_prompt",
    "schema_outline",
]


def demo_model_path() -> Path:
    """Directory of the demo model, as ``AutoModelForCausalLM.from_pretrained`` takes it."""
    return Path(str(files(__name__) / "model"))


def demo_diffusion_path() -> Path:
    """Directory of the demo masked-diffusion model, as ``AutoModelForMaskedLM.from_pretrained`` takes it."""
    return Path(str(files(__name__) / "diffusion"))


def demo_schemas() -> dict[str, dict[str, Any]]:
    """The demo cases by file name: each has ``title``, ``request`` and ``schema``."""
    folder = Path(str(files(__name__) / "schemas"))
    return {path.stem: json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*.json"))}
