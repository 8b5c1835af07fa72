"""Where things are: the project, its tests, and the public data beside its checkout."""

from __future__ import annotations

import os
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
DATA = Path(os.environ.get("MASKWRIGHT_DATA", ROOT.parent / "shared" / "data"))
"""It is not part of the project."""
