"""Settings of all tests."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

# The models here are tiny: waiting for a second thread takes longer than its help saves.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every run of continuous integration; elsewhere new ones are tried.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes a file, bytes as given, and tells its path."""

    def write(name: str, text: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8", newline="")
        return str(path)

    return write
