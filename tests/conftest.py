"""Settings of all tests."""

from __future__ import annotations

import os

from hypothesis import settings

# The models here are tiny: waiting for a second thread takes longer than its help saves.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# The same examples on every run of continuous integration; elsewhere new ones are tried.
settings.register_profile("ci", derandomize=True, deadline=None)
settings.register_profile("local", deadline=None)
settings.load_profile("ci" if os.environ.get("CI") else "local")
