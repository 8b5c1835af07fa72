"""The tiny language model of tests and benches (``models/tiny``), and requests with schemas that it knows the form of."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_MODELS = Path(__file__).parent / "models"

TINY = _MODELS / "tiny"
"""Its folder, as ``from_pretrained`` takes it."""

REQUESTS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(path.read_text("utf-8")) for path in sorted((_MODELS / "requests").glob("*.json"))
}
"""By name: ``title``, ``request`` and ``schema``.  The demo diffusion model knows their form, too."""
